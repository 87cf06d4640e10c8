"""`polybody sensitivities MODEL link2.mass …`: how a motion depends on parameters of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import JsonOption, emit
from polybody.cli.parameter_values import SetOption, with_values
from polybody.cli.run_options import (
    ControllerOption,
    DurationOption,
    JointFrictionOption,
    JointLimitsOption,
    JointRestitutionOption,
    MethodOption,
    StepOption,
    VelocityOption,
)
from polybody.cli.states import ConfigurationOption, configuration, velocity

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sensitivities")(sensitivities)


def sensitivities(
    model: ModelArgument,
    parameter: Annotated[list[str], typer.Argument(help="Names or patterns: link2.mass '*.com' joint3.origin.x.")],
    duration: DurationOption = 1.0,
    q: ConfigurationOption = "neutral",
    v: VelocityOption = "",
    controller: ControllerOption = "none",
    method: MethodOption = "dop853",
    dt: StepOption = 1e-3,
    sample: Annotated[float | None, typer.Option(help="Seconds between states; default: a tenth.")] = None,
    limits: JointLimitsOption = "stop",
    restitution: JointRestitutionOption = 0.0,
    friction: JointFrictionOption = "stick",
    values: SetOption = None,
    base: BaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Derivatives ∂q/∂p and ∂v/∂p along a motion with respect to parameters of a model, exact for its steps.

    Prints those at the end, and how the times of events depend on the parameters; --json has them at all times.
    """
    from polybody.cli.simulate import controller_named
    from polybody.model.load import load
    from polybody.simulation.sensitivities import sensitivities as computed

    loaded = with_values(load(model, base=base), values)
    start = configuration("--q", q, loaded)
    speed = velocity("--v", v, loaded, start)
    law = controller_named(controller, loaded, start)
    fixed: dict[str, Any] = {"dt": dt} if method in ("rk4", "semi-implicit", "midpoint") else {}
    found = computed(
        loaded.with_parameters(*parameter), law, q0=start, v0=speed, duration=duration,
        sample=duration / 10 if sample is None else sample, method=method, limits=limits, restitution=restitution,
        friction=friction, **fixed,
    )  # fmt: skip
    answer = {
        "parameters": list(found.names), "t": found.t, "q": found.q, "v": found.v, "q_p": found.q_p, "v_p": found.v_p,
        "events": [{"t": event.t, "names": event.names, "t_p": event.t_p} for event in found.events],
    }  # fmt: skip
    rows = _rows(loaded)
    emit(answer, as_json, lambda console: draw(console, answer, rows))


def _rows(model: Any) -> list[str]:
    """Names of the numbers in q and in v."""
    names = []
    for part in (0, 1):
        for name, slices in model.joint_slices().items():
            count = slices[part].stop - slices[part].start
            names += [f"{'qv'[part]} {name}{f'[{k}]' if count > 1 else ''}" for k in range(count)]
    return names


def draw(console: Console, answer: dict[str, Any], rows: list[str]) -> None:
    """The derivatives at the end as a table, and the events."""
    import numpy as np
    from rich.table import Table

    table = Table(title=f"at t = {answer['t'][-1]:.6g} s, per unit of", title_justify="left")
    table.add_column("")
    for name in answer["parameters"]:
        table.add_column(name, justify="right")
    last = np.concatenate([answer["q_p"][-1], answer["v_p"][-1]])
    for name, values in zip(rows, last, strict=True):
        table.add_row(name, *(f"{x + 0.0:.5g}" for x in values))
    console.print(table)
    for event in answer["events"]:
        known = np.isfinite(event["t_p"]).all()
        text = ", ".join(f"{x + 0.0:.5g}" for x in event["t_p"]) if known else "not differentiated"
        console.print(f"t = {event['t']:.6g} s: {', '.join(event['names'])}; its time per unit: {text}")


__all__ = ["register"]
