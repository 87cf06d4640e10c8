"""Options of a motion, for the commands that compute one."""

from __future__ import annotations

from typing import Annotated

import typer

DurationOption = Annotated[float, typer.Option("--duration", "-t", help="Duration in seconds.")]
VelocityOption = Annotated[str, typer.Option("--v", help="Initial velocity, as --q; default at rest.")]
ControllerOption = Annotated[
    str, typer.Option(help="none (free motion), gravity (compensation) or hold (PD at the initial q).")
]
MethodOption = Annotated[str, typer.Option(help="dop853, radau, cvodes, idas, rk4, semi-implicit or midpoint.")]
StepOption = Annotated[float, typer.Option(help="Step of the fixed-step methods, seconds.")]
JointLimitsOption = Annotated[str, typer.Option(help="Effect of joint limits: stop, halt, report or ignore.")]
JointRestitutionOption = Annotated[float, typer.Option(help="Coefficient of restitution at joint limits, 0 to 1.")]
JointFrictionOption = Annotated[str, typer.Option(help="Dry friction of joints: stick or smooth (regularised).")]

__all__ = [
    "ControllerOption", "DurationOption", "JointFrictionOption", "JointLimitsOption", "JointRestitutionOption",
    "MethodOption", "StepOption", "VelocityOption",
]  # fmt: skip
