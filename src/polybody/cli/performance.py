"""`polybody performance MODEL`: how well a machine moves, bears, accelerates and holds a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import JsonOption, emit

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("performance")(performance)


def performance(
    model: ModelArgument,
    frame: Annotated[str | None, typer.Option(help="Frame to analyse; default: the last named one.")] = None,
    rows: Annotated[
        str, typer.Option(help="position, orientation, pose, or some of 'rx ry rz x y z'; default: what moves.")
    ] = "",
    length: Annotated[float, typer.Option(help="Length in metres that corresponds to one radian.")] = 1.0,
    scaled: Annotated[bool, typer.Option("--scaled", help="Scale actuators by their limits.")] = False,
    at: Annotated[str, typer.Option("--q", "--at", help="Configuration; loops are assembled.")] = "neutral",
    samples: Annotated[int, typer.Option(help="Workspace samples; 0 for none.")] = 2000,
    stiffness: Annotated[
        float | None, typer.Option(help="Actuator stiffness, N m/rad or N/m, for deflection and modes.")
    ] = None,
    to: Annotated[str, typer.Option("--to", help="End of a quintic motion from --q, for actuator sizing.")] = "",
    duration: Annotated[float, typer.Option("--duration", "-t", help="Duration of that motion, seconds.")] = 1.0,
    grid: Annotated[str, typer.Option(help="Two coordinates 'a,b' for a map in the report.")] = "",
    report: Annotated[str, typer.Option("--report", "-o", help="Write a report with figures: an .html file.")] = "",
    page: Annotated[
        str, typer.Option(help="Write an interactive 3-D page: ellipsoids and animated modes (.html).")
    ] = "",
    base: BaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report velocity, force, acceleration and inertia ellipsoids, workspace, actuator sizing, stiffness, modes."""
    from polybody import paths
    from polybody.cli.linearize import named, numbers
    from polybody.design import performance as judged
    from polybody.errors import InputError
    from polybody.model.load import load

    loaded = load(model, base=base)
    found = judged(loaded, frame, rows=rows or None, length=length, scaled=scaled)

    def place(option: str, text: str) -> Any:
        q = loaded.neutral() if text == "neutral" else numbers(option, text, loaded, "q")
        return loaded.assemble(q, hold=named(text)) if loaded.mechanism.constrained else q

    q = place("--q", at)
    answer: dict[str, Any] = found.summary(q)
    if samples:
        answer["workspace"] = found.workspace(samples, q=q).summary()
    motion = paths.quintic(loaded, q, place("--to", to), duration) if to else None
    if motion is not None:
        told = found.sizing(motion)
        answer["actuators"] = {
            name: {key: getattr(told, key)[k] for key in
                   ("peak_torque", "rms_torque", "peak_speed", "peak_power", "energy_in", "energy_back", "utilisation")}
            for k, name in enumerate(told.names)
        }  # fmt: skip
    if stiffness is not None:
        held, modes = found.stiffness(q, stiffness), found.modes(q, stiffness)
        answer["stiffness"] = {"against_forces": held.principal()[0], "stable": held.stable}
        answer["frequencies"] = modes.frequencies
    pair: Any = tuple(part.strip() for part in grid.split(",")) if grid else None
    if pair is not None and len(pair) != 2:
        raise InputError(f"--grid is {grid!r}, expected two coordinates 'a,b'")
    if report:
        from polybody.studio.performance_report import write_performance

        options = {"samples": samples, "motion": motion, "stiffness": stiffness, "grid": pair}
        answer["report"] = str(write_performance(found, report, q, **options))
    if page:
        from polybody.studio.performance_page import write_performance_page

        swing = None if stiffness is None else found.modes(q, stiffness)
        answer["page"] = str(write_performance_page(found, page, q, modes=swing))
    emit(answer, as_json, lambda console: draw(console, answer))


def draw(console: Console, answer: dict[str, Any]) -> None:
    """The numbers as lines, groups indented."""

    def text(value: Any) -> str:
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, list):
            return ", ".join(text(x) for x in value)
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    def lines(group: dict[str, Any], indent: str) -> None:
        for key, value in group.items():
            if isinstance(value, dict):
                console.print(f"{indent}{key.replace('_', ' ')}:")
                lines(value, indent + "  ")
            else:
                console.print(f"{indent}{key.replace('_', ' ')}: {text(value)}", soft_wrap=True)

    lines(answer, "")


__all__ = ["register"]
