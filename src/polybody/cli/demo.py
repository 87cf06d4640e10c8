"""`polybody demo`: a robot and a parallel machine move under control; data, plots and reports in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.cli.output import JsonOption, emit
from polybody.names import counted

if TYPE_CHECKING:
    from polybody.model.model import Model

SECONDS = 2.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for both runs.")] = Path("runs"),
    force: Annotated[bool, typer.Option("--force", help="Replace earlier runs of the demonstration.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Simulate the Stanford arm and a Stewart platform under computed torque; write data, plots and reports.

    Example: polybody demo && polybody view runs/stewart
    """
    from polybody.studio.results import check_folder

    folders = {name: check_folder(output / name, force) for name in ("stanford-arm", "stewart")}
    answer: dict[str, Any] = {}
    for name, folder in folders.items():
        if not as_json:
            typer.echo(f"{name}: loading, compiling, moving for {SECONDS:g} s …")
        answer[name] = moved(name, folder, force)
        if not as_json:
            show(answer[name])
    emit(answer, as_json, lambda console: console.print(
        f"\nView it in the browser:  polybody view {folders['stewart']}\nReport:  {folders['stewart']}/report.html",
        soft_wrap=True, markup=False))  # fmt: skip


def moved(name: str, folder: Path, force: bool) -> dict[str, Any]:
    """Run one model along its path and write the run."""
    import numpy as np

    from polybody import paths
    from polybody.model.load import load
    from polybody.simulation import controllers, simulate
    from polybody.studio.record import from_trajectory
    from polybody.studio.results import write_run

    model = load(name)
    start, end = ends(name, model)
    path: Any = paths.quintic(model, start, end, SECONDS)
    law = controllers.ComputedTorque(model, path)
    run = simulate(model, SECONDS, start, controller=law, sample=0.02)
    write_run(from_trajectory(run), folder, force=force, source=name)
    forces = np.abs(run.tau).max(axis=0)
    active = np.flatnonzero(model.actuation.active) if model.mechanism.constrained else range(model.nv)
    units = force_units(model)
    names = [joint for joint, (_, v) in model.joint_slices().items() for _ in range(v.stop - v.start)]
    return {
        "folder": str(folder), "trusted": run.audit.trusted, "states": len(run),
        "largest_forces": {names[k]: {"value": float(forces[k]), "unit": units[k]} for k in active},
    }  # fmt: skip


def ends(name: str, model: Model) -> tuple[Any, Any]:
    """Where the demonstration's path begins and ends."""
    import numpy as np

    if name == "stanford-arm":
        return np.array([0, np.pi / 2, 0.2, 0, 0, 0]), np.array([1.05, 1.05, 0.3, 1.05, 1.05, 1.05])
    start = model.assemble(hold=["platform_joint"])
    end = start.copy()
    place = model.joint_slices()["platform_joint"][0]
    end[place.start : place.start + 3] += [0.10, 0.05, 0.12]
    return start, model.assemble(end, hold=["platform_joint"])


def force_units(model: Model) -> list[str]:
    """N for coordinates that slide, N m for those that turn."""
    from polybody.description.coordinate_units import coordinate_units
    from polybody.description.units import LENGTH

    records = {joint.name: joint for joint in model.description.joints}
    units = [unit for name in model.joint_slices() for unit in coordinate_units(records[name], "v")]
    return ["N" if LENGTH in unit else "N m" for unit in units]


def show(answer: dict[str, Any]) -> None:
    largest = ", ".join(f"{name} {told['value']:.3g} {told['unit']}" for name, told in answer["largest_forces"].items())
    verdict = "energy audit passed" if answer["trusted"] else "see the doubts in the report"
    typer.echo(
        f"  largest drive forces: {largest}\n  {counted(answer['states'], 'state')} in {answer['folder']}; {verdict}"
    )


__all__ = ["register"]
