"""`polybody linearize MODEL --q …`: the state-space model about a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import JsonOption, emit
from polybody.cli.parameter_values import SetOption, with_values
from polybody.cli.states import ConfigurationOption, configuration, numbers
from polybody.cli.states import velocity as velocity_at

if TYPE_CHECKING:
    from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("linearize")(linearize)


def linearize(
    model: ModelArgument,
    at: ConfigurationOption = "neutral",
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
    values: SetOption = None,
    base: BaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Linearise a model about a state; print A, B, C, D and the poles. Angles may be written 90deg.

    With loops, joints given as joint=value are held and the others follow; if all of q is given, it must be closed.
    """
    import numpy as np

    from polybody.linearization import linearize as linearized
    from polybody.model.load import load

    loaded = with_values(load(model, base=base), values)
    q = configuration("--q", at, loaded)
    v = velocity_at("--v", velocity, loaded, q)
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
