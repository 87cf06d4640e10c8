"""`polybody simulate MODEL`: the motion of a model, into a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
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
from polybody.description.naming import printable
from polybody.names import counted

if TYPE_CHECKING:
    from polybody.model.model import Model
    from polybody.simulation import Trajectory

CONTROLLERS = ("none", "gravity", "hold")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate")(simulate)


def simulate(
    model: ModelArgument,
    duration: DurationOption = 5.0,
    q: ConfigurationOption = "neutral",
    v: VelocityOption = "",
    controller: ControllerOption = "none",
    method: MethodOption = "dop853",
    dt: StepOption = 1e-3,
    rtol: Annotated[float, typer.Option(help="Relative tolerance of adaptive methods.")] = 1e-9,
    sample: Annotated[float | None, typer.Option(help="Seconds between recorded states.")] = None,
    limits: JointLimitsOption = "stop",
    restitution: JointRestitutionOption = 0.0,
    efforts: Annotated[
        str | None, typer.Option(help="Effect of effort, power and velocity limits: saturate, report or ignore.")
    ] = None,
    friction: JointFrictionOption = "stick",
    values: SetOption = None,
    output: Annotated[str, typer.Option("--output", "-o", help="Folder of the run; default runs/MODEL.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace the folder of an earlier run.")] = False,
    base: BaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate a model or a network (a file with `network:`); write plots, data and a report to a folder.

    Ctrl-C keeps the states computed so far.
    """

    from polybody.description.naming import file_name
    from polybody.model.load import load
    from polybody.networks.reading import has_network
    from polybody.simulation import simulate as run
    from polybody.studio.record import from_trajectory
    from polybody.studio.results import check_folder, write_run

    if has_network(model):
        refused = {"--q": q != "neutral", "--v": bool(v), "--controller": controller != "none", "--base": bool(base),
                   "--efforts": efforts is not None, "--set": bool(values)}
        simulate_file(model, duration, [key for key, given in refused.items() if given], output, force, as_json,
                      method=method, dt=dt, rtol=rtol, atol=rtol * 1e-2, sample=sample, limits=limits,
                      restitution=restitution, friction=friction)
        return
    loaded = with_values(load(model, base=base), values)
    folder = check_folder(output or f"runs/{file_name(loaded.name)}", force)
    start = configuration("--q", q, loaded)
    speed = velocity("--v", v, loaded, start)
    law = controller_named(controller, loaded, start)

    def write(made: Trajectory) -> None:
        record = from_trajectory(made)
        record.options["controller"] = controller
        write_run(record, folder, force=force, source=model)

    try:
        with progress_bar(duration, not as_json) as advance:
            made = run(
                loaded, duration, start, speed, law, method=method, dt=dt, rtol=rtol, atol=rtol * 1e-2, sample=sample,
                limits=limits, restitution=restitution, efforts=efforts, friction=friction, progress=advance,
            )  # fmt: skip
    except Exception as error:  # whatever it is, what was computed before it is worth keeping
        keep_before(error, write, folder)
        raise
    write(made)
    answer = {"folder": str(folder), "states": len(made), "end": made.t[-1], "stopped": made.stopped,
              "audit": made.audit.as_dict()}  # fmt: skip
    emit(answer, as_json, lambda console: draw(console, answer))


def simulate_file(
    source: str, duration: float, refused: list[str], output: str, force: bool, as_json: bool, **options: Any
) -> None:
    """The motion of a file with a network, into a folder."""
    from polybody.description.naming import file_name
    from polybody.errors import InputError
    from polybody.networks.reading import load_network
    from polybody.simulation import simulate as run
    from polybody.studio.network_results import write_network_run
    from polybody.studio.results import check_folder

    if refused:
        raise InputError(f"{refused[0]} is for models; a network has `initial:` and its own drives in its file")
    net = load_network(source)
    folder = check_folder(output or f"runs/{file_name(net.name)}", force)
    with progress_bar(duration, not as_json) as advance:
        made: Any = run(net, duration, progress=advance, **options)  # type: ignore[arg-type]
    write_network_run(made, folder, force=force)
    answer = {"folder": str(folder), "states": len(made), "end": made.t[-1], "stopped": made.stopped,
              "switches": made.audit.switches, "models": list(made.models), "audit": made.audit.as_dict()}  # fmt: skip

    def show(console: Any) -> None:
        draw(console, answer)

    emit(answer, as_json, show)


def keep_before(error: Exception, write: Callable[[Trajectory], None], folder: Path) -> None:
    """Write the trajectory that an error carries, if any; where that fails it is said, and does not hide the error."""
    from polybody.errors import PolybodyError

    made = getattr(error, "trajectory", None)
    if made is None:
        return
    try:
        write(made)
    except PolybodyError as failure:
        typer.secho(printable(f"the states computed so far could not be saved: {failure}"), err=True)
    else:
        typer.secho(printable(f"the states computed so far are in {folder}"), err=True)


def controller_named(name: str, model: Model, start: Any) -> Any:
    """A controller that needs nothing but a name."""
    from polybody.errors import InputError
    from polybody.simulation import controllers

    if name == "none":
        return None
    if name == "gravity":
        return controllers.GravityCompensation(model)
    if name == "hold":
        import numpy as np

        # Gains for a quarter of a second, from the inertia each joint sees where it starts; with loops active joints
        # hold, and all that the mechanism can move is on each of them.
        if model.mechanism.constrained:
            eased = model.forward_dynamics_derivatives(start, np.zeros(model.nv), np.zeros(model.nv))[2]
            inertia = np.where(model.actuation.active, 1.0 / np.maximum(np.diag(eased), 1e-12), 0.0)
        else:
            inertia = np.diag(model.mass_matrix(start))
        return controllers.PD(model, start, kp=16.0 * inertia, kd=8.0 * inertia, gravity=True)
    raise InputError(f"--controller is {name!r}; expected one of {', '.join(CONTROLLERS)}")


def progress_bar(duration: float, shown: bool) -> Any:
    """A context that gives a function of the time reached."""
    from contextlib import contextmanager

    @contextmanager
    def bar() -> Any:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("simulating"), BarColumn(), TextColumn("{task.completed:.3f} of {task.total:g} s"),
                   TimeRemainingColumn())  # fmt: skip
        from rich.console import Console

        with Progress(*columns, console=Console(stderr=True), disable=not shown, transient=True) as progress:
            task = progress.add_task("", total=duration)
            yield lambda t: progress.update(task, completed=t)

    return bar()


def draw(console: Any, answer: dict[str, Any]) -> None:
    audit = answer["audit"]
    path = f", {audit['path']}" if "path" in audit else ""  # networks have no such choice
    console.print(f"{counted(answer['states'], 'state')} to t = {answer['end']:g} s in {audit['seconds']:.2f} s "
                  f"({audit['method']}, {counted(audit['steps'], 'step')}{path})", markup=False)  # fmt: skip
    balance = f"energy balance {audit['energy_error_relative']:.1e} relative"
    console.print(balance, style="green" if audit["trusted"] else "red")
    for at in audit.get("saturation", ()):
        word, first = "at" if at["bounded"] else "above", f"from t = {at['first']:.4g} s"
        told = f"{at['joint']} was {word} its {at['limit']} limit for {at['seconds']:.3g} s, {first}"
        console.print(told, style="yellow", soft_wrap=True, markup=False)
    for doubt in audit["doubts"]:
        console.print(f"not trusted: {doubt}", style="red", soft_wrap=True, markup=False)
    console.print(f"report: {answer['folder']}/report.html", soft_wrap=True, markup=False)
    if answer.get("models", True):  # a network without models has no bodies to look at
        console.print(f"view it: polybody view {answer['folder']}", soft_wrap=True, markup=False)


__all__ = ["CONTROLLERS", "controller_named", "register"]
