"""`polybody grasp MODEL --object BODY --hand FRAME …`: whether arms hold an object, and what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.cli.arguments import BaseOption, ModelArgument
from polybody.cli.output import JsonOption, emit
from polybody.cli.states import ConfigurationOption, numbers
from polybody.names import counted

if TYPE_CHECKING:
    from rich.console import Console

    from polybody.grasping.grasp import Grasp
    from polybody.model.model import Model


def register(app: typer.Typer) -> None:
    @app.command("grasp")
    def grasp(
        model: ModelArgument,
        held: Annotated[str, typer.Option("--object", help="The held body, connected to the ground by a joint.")],
        hand: Annotated[list[str], typer.Option(help="End-effector frame, or frame=place on the object; repeatable.")],
        at: ConfigurationOption = "neutral",
        base: BaseOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Analyse a grasp: grip deviations, remaining mobility, and the joint forces that hold the object at rest."""
        from polybody.model.load import load

        loaded = load(model, base=base).tree
        q = numbers("--q", at, loaded, "q")
        answer = summary(make(loaded, held, hand, q), q)
        emit(answer, as_json, lambda console: show(console, answer))


def make(model: Model, held: str, hands: list[str], q: Any) -> Grasp:
    """The grasp, its hands held where they are at q or at the places that were named."""
    from polybody.errors import InputError
    from polybody.grasping.making import grasp

    pairs = [text.partition("=")[::2] for text in hands]
    placed = {frame.strip(): place.strip() for frame, place in pairs if place}
    if placed and len(placed) != len(hands):
        raise InputError("--hand: give a place on the object for every hand, or for none")
    return grasp(model, held, placed or [frame.strip() for frame, _ in pairs], None if placed else q)


def summary(grasp: Grasp, q: Any) -> dict[str, Any]:
    """A grasp's facts as plain data."""
    import numpy as np

    from polybody.errors import InputError

    model = grasp.model
    (angles, distances), closed = grasp.openings(q), grasp.project(q)
    rank = model.nv - grasp.closed.mobility(closed).true
    answer: dict[str, Any] = {
        "object": grasp.object,
        "hands": grasp.frames,
        "off_angle": angles,
        "off_distance": distances,
        "rows": 6 * grasp.held.m,
        "independent_rows": rank,
        "freedom": model.nv - rank,
        "internal_loads": grasp.internal_names,
    }
    answer["q"] = q = closed
    still, columns = np.zeros(model.nv), model.mechanism.joints[grasp.held.object].v
    try:
        forces = grasp.inverse_dynamics(q, still, still[columns])
    except InputError as error:
        return answer | {"tau": None, "loads": None, "deficient": None, "cannot": str(error)}
    return answer | {"tau": forces.tau, "loads": forces.f_e, "deficient": bool(forces.deficient), "cannot": None}


def show(console: Console, answer: dict[str, Any]) -> None:
    console.print(f"{answer['object']} held by {', '.join(answer['hands'])}", markup=False)
    for hand, angle, distance in zip(answer["hands"], answer["off_angle"], answer["off_distance"], strict=True):
        console.print(f"  {hand}: {distance:.6g} m and {angle:.6g} rad from its grip", markup=False)
    console.print(
        f"{answer['independent_rows']} of {answer['rows']} closure rows are independent; freedom {answer['freedom']}, "
        f"{counted(len(answer['internal_loads']), 'internal load')}"
    )
    console.print(f"closed at q = ({_listed(answer['q'])})", soft_wrap=True, markup=False)
    if answer["cannot"]:
        console.print(f"it cannot be held at rest: {answer['cannot']}", soft_wrap=True, markup=False)
        return
    console.print(f"held at rest by tau = ({_listed(answer['tau'])})", soft_wrap=True, markup=False)
    for hand, load in zip(answer["hands"], answer["loads"], strict=True):
        console.print(f"  {hand} exerts [moment; force] = ({_listed(load)}), in its axes", soft_wrap=True, markup=False)
    if answer["deficient"]:
        console.print("the arms lose rank here: the solution nearest to equal shares is returned")


def _listed(values: Any) -> str:
    return ", ".join(f"{x:.6g}" for x in values)


__all__ = ["register", "summary"]
