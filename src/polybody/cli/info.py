"""`polybody info MODEL`: what a model is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from polybody.cli.arguments import ArgOption, BaseOption, ModelArgument, given_arguments
from polybody.cli.output import JsonOption, emit
from polybody.names import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.tree import Tree

    from polybody.model.model import Model


def register(app: typer.Typer) -> None:
    @app.command("info")
    def info(
        model: ModelArgument,
        base: BaseOption = None,
        arg: ArgOption = None,
        frames: Annotated[bool, typer.Option("--frames", help="List frames too.")] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Summarise a model: tree, bodies, joints with their slices of q and v, masses, degrees of freedom."""
        from polybody.model.load import load
        from polybody.model.readiness import only_reading

        with only_reading():
            loaded = load(model, base=base, arguments=given_arguments(arg))
        answer = summary(loaded)
        emit(answer, as_json, lambda console: show(console, answer, loaded, frames))


def summary(model: Model) -> dict[str, Any]:
    """A model's facts as plain data."""
    m = model.mechanism
    d = m.description
    return {
        "name": model.name,
        "degrees_of_freedom": degrees_of_freedom(model),
        "nq": model.nq,
        "nv": model.nv,
        "gravity": m.gravity,
        "mass": sum(body.mass for body in m.bodies),
        "bodies": [
            {"name": b.name, "mass": b.mass, "com": b.com, "inertia": b.inertia, "links": list(b.links)}
            for b in m.bodies
        ],
        "joints": [
            {
                "name": j.name,
                "kind": j.kind,
                "parent": "world" if j.parent < 0 else m.bodies[j.parent].name,
                "child": m.bodies[j.index].name,
                "q": j.q,
                "v": j.v,
                "reversed": j.reversed,
                "lower": j.limits.lower,
                "upper": j.limits.upper,
                "active": j.active,
            }
            for j in m.joints
        ],
        "fixed_joints": [joint.name for joint in m.fixed_joints],
        "frames": model.frame_names,
        "loops": [{"name": loop.name, "kind": loop.kind, "a": loop.body_a, "b": loop.body_b} for loop in d.loops],
        "couplings": [
            {"joint": c.joint, "source": c.source_joint, "ratio": c.ratio, "offset": c.offset} for c in d.couplings
        ],
        "rods": [{"name": r.name, "a": r.body_a, "b": r.body_b, "length": r.length} for r in d.rods],
        "guides": [{"name": g.name, "kind": g.kind, "a": g.body_a, "b": g.body_b} for g in d.guides],
        "relations": [{"name": r.name, "expression": r.expression} for r in d.relations],
        "springs": [spring.name for spring in d.springs],
        "motors": [motor.name for motor in d.motors],
    }


def degrees_of_freedom(model: Model) -> int | None:
    """The mobility where the loops can be assembled; None where they cannot."""
    if not model.mechanism.constrained:
        return model.nv
    from polybody.errors import PolybodyError

    try:
        return model.mobility().true
    except PolybodyError:
        return None


def freedom(answer: dict[str, Any]) -> str:
    """ "1 degree of freedom, 3 joint coordinates"."""
    found, coordinates = answer["degrees_of_freedom"], counted(answer["nv"], "joint coordinate")
    if found is None:
        return f"loops that could not be assembled, {coordinates}"
    return f"{counted(found, 'degree')} of freedom, {coordinates}"


def span(part: slice) -> str:
    """A slice as people write it: 3, or 3:7."""
    return str(part.start) if part.stop == part.start + 1 else f"{part.start}:{part.stop}"


def show(console: Console, answer: dict[str, Any], model: Model, frames: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    gravity = ", ".join(f"{x:g}" for x in answer["gravity"])
    console.print(
        Text.assemble(
            (answer["name"], "bold"),
            f": {freedom(answer)}, "
            f"{counted(len(answer['bodies']), 'moving body', 'moving bodies')}, "
            f"{answer['mass']:.6g} kg, gravity ({gravity})",
        )
    )
    console.print()
    console.print(drawn_tree(model))
    console.print()
    table = Table("joint", "kind", "q", "v", "moves", "mass, kg", "mass centre, m", box=None, header_style="bold")
    for joint, body in zip(answer["joints"], answer["bodies"], strict=True):
        com = ", ".join(f"{x:.4g}" for x in body["com"])
        table.add_row(
            joint["name"],
            joint["kind"],
            span(joint["q"]),
            span(joint["v"]),
            body["name"],
            f"{body['mass']:.6g}",
            f"({com})",
        )
    console.print(table)
    for what in ("fixed_joints", "springs", "motors"):
        if answer[what]:
            console.print(f"\n{what.replace('_', ' ')}: {', '.join(answer[what])}", soft_wrap=True)
    for loop in answer["loops"]:
        console.print(f"\nloop {loop['name']} ({loop['kind']}): {loop['a']} to {loop['b']}")
    for c in answer["couplings"]:
        more = f" + {c['offset']:g}" if c["offset"] else ""
        console.print(f"\ncoupling: {c['joint']} = {c['ratio']:g} {c['source']}{more}")
    for rod in answer["rods"]:
        console.print(f"\nrod {rod['name']}: {rod['a']} to {rod['b']}, {rod['length']:g} m")
    for guide in answer["guides"]:
        console.print(f"\nguide {guide['name']}: a point of {guide['b']} in a {guide['kind']} of {guide['a']}")
    for relation in answer["relations"]:
        console.print(f"\nrelation {relation['name']}: {relation['expression']} = 0")
    if frames:
        console.print(f"\nframes: {', '.join(answer['frames'])}", soft_wrap=True)


def drawn_tree(model: Model) -> Tree:
    """The bodies as a tree from the ground, each with the joint that moves it and the links welded to it."""
    from rich.text import Text
    from rich.tree import Tree

    m = model.mechanism
    root = Tree(Text("world"))
    branches: dict[int, Tree] = {-1: root}
    for joint, body in zip(m.joints, m.bodies, strict=True):
        welded = [name for name in body.links if name != body.name]
        more = f" + {', '.join(welded)}" if welded else ""
        arrow = "reversed " if joint.reversed else ""
        label = Text.assemble((body.name, "bold"), more, (f"  {joint.name}: {arrow}{joint.kind}", "dim"))
        branches[joint.index] = branches[joint.parent].add(label)
    return root


__all__ = ["register", "summary"]
