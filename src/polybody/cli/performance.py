"""`polybody performance MODEL`: how well a machine moves, bears, accelerates and holds a frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import ForceOption, JsonOption, emit, refuse_existing
from polybody.cli.states import ConfigurationOption, configuration

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
    at: ConfigurationOption = "neutral",
    samples: Annotated[int, typer.Option(help="Workspace samples; 0 for none.")] = 2000,
    stiffness: Annotated[
        float | None, typer.Option(help="Actuator stiffness, N m/rad or N/m, for deflection and modes.")
    ] = None,
    to: Annotated[str, typer.Option("--to", help="End of a quintic motion from --q, for actuator sizing.")] = "",
    duration: Annotated[float, typer.Option("--duration", "-t", help="Duration of that motion, seconds.")] = 1.0,
    effort: Annotated[
        float | None, typer.Option(help="Effort limit of every actuator, N m or N; default: the model's.")
    ] = None,
    grid: Annotated[str, typer.Option(help="Two coordinates 'a,b' for a map in the report.")] = "",
    report: Annotated[str, typer.Option("--report", "-o", help="Write a report with figures: an .html file.")] = "",
    page: Annotated[
        str, typer.Option(help="Write an interactive 3-D page: ellipsoids and animated modes (.html).")
    ] = "",
    base: BaseOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Report velocity, force, acceleration and inertia ellipsoids, workspace, actuator sizing, stiffness, modes."""
    import numpy as np

    from polybody import paths
    from polybody.design import performance as judged
    from polybody.errors import InputError
    from polybody.model.load import load

    for written in filter(None, (report, page)):
        refuse_existing(Path(written), force)
    loaded = load(model, base=base)
    found = judged(loaded, frame, rows=rows or None, length=length, scaled=scaled)

    q = configuration("--q", at, loaded)
    answer: dict[str, Any] = found.summary(q)
    if samples:
        answer["workspace"] = found.workspace(samples, q=q).summary()
    told: Any = None
    motion = paths.quintic(loaded, q, configuration("--to", to, loaded), duration) if to else None
    if motion is not None:
        told = found.sizing(motion, effort=effort)
        answer["actuators"] = {
            name: {key: getattr(told, key)[k] for key in
                   ("peak_torque", "rms_torque", "peak_speed", "peak_power", "energy_in", "energy_back", "effort",
                    "utilisation", "inertia_ratio", "gear")}
            for k, name in enumerate(told.names)
        }  # fmt: skip
    if effort is not None or np.isfinite(loaded.joint_limits()["effort"][found.task.active]).any():
        loads = found.capacity(q, motion, effort=effort)
        answer["load_capacity"] = {name: {"value": load.value, "actuator": load.actuator}
                                   for name, load in loads.items()}  # fmt: skip
    swing: Any = None
    if stiffness is not None:
        numbers_held, _, swing = found.held(q, stiffness)
        answer["frequencies"] = numbers_held.pop("frequencies")
        answer["stiffness"] = numbers_held
    pair: Any = tuple(part.strip() for part in grid.split(",")) if grid else None
    if pair is not None and len(pair) != 2:
        raise InputError(f"--grid is {grid!r}, expected two coordinates 'a,b'")
    if pair is not None and not report:
        raise InputError("--grid draws a map in the report: give --report FILE.html too")
    if report:
        from polybody.studio.performance_report import write_performance

        options = {"samples": samples, "motion": motion, "stiffness": stiffness, "grid": pair, "effort": effort}
        answer["report"] = str(write_performance(found, report, q, **options))
    if page:
        from polybody.studio.performance_page import write_performance_page

        answer["page"] = str(write_performance_page(found, page, q, modes=swing))
    emit(answer, as_json, lambda console: draw(console, answer, told))


def draw(console: Console, answer: dict[str, Any], sizing: Any) -> None:
    """The numbers as lines with units, groups indented; actuators as a table."""
    from polybody.design.labels import labelled

    def lines(group: dict[str, Any], indent: str) -> None:
        for name, value in labelled(group):
            console.print(f"{indent}{name}: {value}", soft_wrap=True)

    grouped = {key: value for key, value in answer.items() if isinstance(value, dict)}
    written = ("report", "page")
    lines({key: value for key, value in answer.items() if key not in grouped and key not in written}, "")
    for key, group in grouped.items():
        console.print(f"{key.replace('_', ' ')}:")
        if key == "actuators":
            console.print("\n".join(f"  {line}" for line in str(sizing).splitlines()), soft_wrap=True)
        elif key == "load_capacity":
            for (name, value), load in zip(labelled({k: x["value"] for k, x in group.items()}), group.values(),
                                           strict=True):  # fmt: skip
                limit = f", limited by {load['actuator']}" if load["actuator"] else ""
                console.print(f"  {name}: {value}{limit}", soft_wrap=True)
        else:
            lines(group, "  ")
    for key in written:
        if key in answer:
            console.print(f"wrote {answer[key]}", soft_wrap=True)


__all__ = ["register"]
