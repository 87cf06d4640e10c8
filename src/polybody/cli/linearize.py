"""`polybody linearize MODEL --at …`: the state-space model about a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.cli.arguments import ModelArgument
from polybody.cli.output import JsonOption, emit
from polybody.names import counted

if TYPE_CHECKING:
    from rich.console import Console

    from polybody.model.model import Model


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("linearize")(linearize)


def linearize(
    model: ModelArgument,
    at: Annotated[
        str, typer.Option("--q", "--at", help="Configuration: a name, all of q ('0,0.5,…'), or 'joint=value,…'.")
    ] = "neutral",
    velocity: Annotated[str, typer.Option("--v", "--velocity", help="Velocity, as --q; default at rest.")] = "",
    torque: Annotated[
        str, typer.Option("--tau", "--torque", help="Joint forces, as --q; default: those for zero acceleration.")
    ] = "",
    inputs: Annotated[str, typer.Option(help="'torque' or 'voltage' (of the model's motors).")] = "torque",
    output: Annotated[
        list[str] | None, typer.Option("--measure", help="A frame to measure; default: every state.")
    ] = None,
    independent: Annotated[str, typer.Option(help="With loops: the independent coordinates, 'joint,…'.")] = "",
    wrench: Annotated[
        list[str] | None,
        typer.Option(help="Nominal wrench 'FRAME=mx,my,mz,fx,fy,fz' in world axes; repeatable."),
    ] = None,
    disturbance: Annotated[
        list[str] | None, typer.Option(help="Frame with disturbance wrenches: six inputs, matrix E; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Linearise a model about a state; print A, B, C, D and the poles. Angles may be written 90deg.

    With loops, joints given as joint=value are held and the others follow; if all of q is given, it must be closed.
    """
    import numpy as np

    from polybody.linearization import linearize as linearized
    from polybody.model.load import load

    loaded = load(model)
    q = loaded.neutral() if at == "neutral" else numbers("--q", at, loaded, "q")
    v = numbers("--v", velocity, loaded, "v") if velocity else np.zeros(loaded.nv)
    if loaded.mechanism.constrained:
        if at == "neutral" or "=" in at:
            q = loaded.assemble(q, hold=named(at))
        if "=" in velocity:
            v = loaded.assemble_velocity(q, v, hold=named(velocity))
    tau = numbers("--tau", torque, loaded, "tau") if torque else None
    chosen = [part.strip() for part in independent.split(",")] if independent else None
    system = linearized(
        loaded, q, v, tau, inputs=inputs, outputs=output or None, independent=chosen, wrenches=loads(wrench or []),
        disturbances=disturbance or (),
    )  # fmt: skip
    poles = system.poles()
    answer = {
        "states": system.states,
        "inputs": system.inputs,
        "outputs": system.outputs,
        **{name: getattr(system, name) for name in "ABCD"},
        **({"disturbances": system.disturbances, "E": system.E} if disturbance else {}),
        **({"nominal_load": system.nominal_load} if wrench else {}),
        "poles": [[pole.real, pole.imag] for pole in np.sort_complex(poles)],
    }
    emit(answer, as_json, lambda console: draw(console, answer))


def loads(given: list[str]) -> dict[str, Any] | None:
    """{frame: wrench} from 'FRAME=mx,my,mz,fx,fy,fz'."""
    from polybody.errors import InputError

    found = {}
    for text in given:
        frame, equals, rest = text.rpartition("=")
        try:
            wrench = [float(part) for part in rest.split(",")]
        except ValueError:
            wrench = []
        if not equals or len(wrench) != 6:
            raise InputError(f"--wrench is {text!r}, expected FRAME=mx,my,mz,fx,fy,fz in N·m and N, world axes")
        found[frame.strip()] = wrench
    return found or None


def named(text: str) -> list[str]:
    """The joints of 'joint=value,…'."""
    return [part.partition("=")[0].strip() for part in text.split(",") if "=" in part]


def numbers(option: str, text: str, model: Model, which: str) -> Any:
    """A configuration's name, all numbers in order, or 'joint=value' pairs over the neutral configuration (or zeros).

    `which` is "q", "v" or "tau". A number may carry the unit of its coordinate: an angle where the joint turns, a
    length where it slides; forces carry none.
    """
    import numpy as np

    from polybody.description.coordinate_units import coordinate_units
    from polybody.description.units import quantity
    from polybody.errors import InputError
    from polybody.names import nearest

    if which == "q" and "=" not in text:
        from polybody.model.named_configurations import configurations

        known = configurations(model)
        if text.strip() in known:
            return known[text.strip()]
    slices = {name: pair[0 if which == "q" else 1] for name, pair in model.joint_slices().items()}
    records = {joint.name: joint for joint in model.description.joints}
    units = {
        place.start + k: (name, unit)
        for name, place in slices.items()
        for k, unit in enumerate(coordinate_units(records[name], which))
    }
    result = model.neutral() if which == "q" else np.zeros(model.nv)
    parts = [part.strip() for part in text.split(",") if part.strip()]

    def value(part: str, index: int) -> float:
        owner, unit = units[index]
        try:
            number = quantity(part, unit)
        except InputError as error:
            raise InputError(f"{option}: joint {owner!r}: {error}") from None
        if not np.isfinite(number):
            raise InputError(f"{option}: joint {owner!r}: {part!r} is not a finite number")
        return number

    if not any("=" in part for part in parts):
        if len(parts) != len(result):
            raise InputError(
                f"{option} has {counted(len(parts), 'number')}, expected {len(result)}, or joint=value pairs"
            )
        return np.array([value(part, i) for i, part in enumerate(parts)])
    for part in parts:
        name, equals, number = part.partition("=")
        name = name.strip()
        if not equals or name not in slices:
            raise InputError(f"{option}: no joint {name!r}{nearest(name, slices)}; available: {', '.join(slices)}")
        place = slices[name]
        if place.stop - place.start != 1:
            raise InputError(f"{option}: joint {name!r} has {place.stop - place.start} numbers; give all of {which}")
        result[place] = value(number, place.start)
    return result


def draw(console: Console, answer: dict[str, Any]) -> None:
    """The matrices as tables with their names, and the poles."""
    from rich.table import Table

    states, inputs, outputs = answer["states"], answer["inputs"], answer["outputs"]
    shown = [("A", states, states), ("B", states, inputs)]
    if list(outputs) != list(states):
        shown += [("C", outputs, states)]
    if "E" in answer:
        shown += [("E", states, answer["disturbances"])]
    for name, rows, columns in shown:
        table = Table(title=name, title_justify="left")
        table.add_column("")
        for column in columns:
            table.add_column(column, justify="right")
        for row, values in zip(rows, answer[name], strict=True):
            table.add_row(row, *(f"{x + 0.0:.5g}" for x in values))
        console.print(table)
    console.print("poles: " + ", ".join(f"{a:.5g}" + (f"{b:+.5g}j" if b else "") for a, b in answer["poles"]))


__all__ = ["register"]
