"""MJCF written from a description: bodies nested as the joints say, loops as equalities, numbers with all their digits.

| here | MJCF |
|---|---|
| revolute, continuous, prismatic, spherical, floating, fixed | hinge, hinge, slide, ball, free, a body without joints |
| cylindrical, universal, planar, `custom` of stages (1, …, 1) | its hinges and slides, from the parent outwards |
| stiffness, rest, damping, armature, friction, limits | stiffness, springref, damping, armature, frictionloss, range, actuatorfrcrange |
| loops: spherical, fixed, revolute | connect, weld, two connects, each between two sites |
| couplings | joint equalities |
| active joints of one number | motors, with the effort as their control range |
| frames | sites |
| configurations | keyframes |

MuJoCo's constraints are soft: loops hold as well as its solver keeps them; masses and forces of joints are the same
numbers. What MJCF cannot express raises an error, all of it at once; with `lossy` it is left out and listed.
"""  # noqa: E501

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.algebra.rotations import matrix_quaternion
from polybody.description.mjcf.chains import chains, moved, offset, place
from polybody.description.mjcf.keyframes import add_keyframes
from polybody.description.mjcf.sayable import Piece, pieces, weighing, without_losses
from polybody.description.records import WORLD, Body, Description, Joint, Loop, Visual
from polybody.errors import InputError
from polybody.files import write_text

Array = np.ndarray


def write_mjcf(description: Description, path: str | os.PathLike[str], *, lossy: bool = False) -> list[str]:
    """Write the description as MJCF; an InputError names everything that MJCF cannot express, and nothing is written.

    With `lossy` what can be left out is left out; returns what was lost.
    """
    kept, lost = without_losses(description) if lossy else (description, [])
    write_text(path, mjcf_text(kept))
    return lost


def mjcf_text(description: Description) -> str:
    """The description as MJCF text."""
    _, lost = without_losses(description)
    if lost:
        listed = "\n".join(f"- {what}" for what in lost)
        raise InputError(
            f"{description.name!r} cannot be written as MJCF:\n{listed}\n(--lossy, or lossy=True, writes the rest)"
        )
    import lxml.etree as etree

    root = etree.Element("mujoco", model=description.name)
    _add(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    _add(root, "option", gravity=_text(*description.gravity))
    _Writer(description).write(root)
    etree.indent(root)
    return etree.tostring(root, encoding="unicode") + "\n"


@dataclass
class _Writer:
    """Goes over the tree from the ground outwards."""

    description: Description

    def write(self, root: Any) -> None:
        d = self.description
        world = _add(root, "worldbody")
        elements = {WORLD: world}
        joined = chains(d, weighing(d))
        between = {joint.child for chain in joined.values() for joint in chain[:-1]}
        for joint in _outwards(d):
            if joint.child in between:
                continue
            body = next(body for body in d.bodies if body.name == joint.child)
            chain = joined.get(joint.child, [joint])
            elements[joint.child] = _add_body(elements[chain[0].parent], body, chain)
        for frame in d.frames:
            _add_site(elements[frame.body], frame.name, frame.origin)
        equality = _add(root, "equality")
        taken = {frame.name for frame in d.frames}
        for loop in d.loops:
            _add_loop(equality, elements, loop, taken)
        for coupling in d.couplings:
            _add(equality, "joint", joint1=coupling.joint, joint2=coupling.source_joint,
                 polycoef=_text(coupling.offset, coupling.ratio, 0, 0, 0))
        if not len(equality):
            root.remove(equality)
        self._add_motors(root)
        add_keyframes(root, world, d)

    def _add_motors(self, root: Any) -> None:
        """One motor for every driven coordinate that MJCF can drive by a joint of one number."""
        followers = {coupling.joint for coupling in self.description.couplings}
        actuator = _add(root, "actuator")
        for joint in self.description.joints:
            if joint.name in followers or joint.kind in ("fixed", "floating", "spherical", "planar"):
                continue
            active = joint.active or (True,) * len(pieces(joint))
            for piece, driven in zip(pieces(joint), active[::-1], strict=True):
                if driven:
                    limits = {} if not np.isfinite(piece.effort) else {
                        "ctrlrange": _text(-piece.effort, piece.effort)}  # fmt: skip
                    _add(actuator, "motor", name=f"{piece.name}_motor", joint=piece.name, **limits)
        if not len(actuator):
            root.remove(actuator)


def _outwards(d: Description) -> list[Joint]:
    """The joints in an order in which parents come before children."""
    waiting: dict[str, list[Joint]] = {}
    for joint in d.joints:
        waiting.setdefault(joint.parent, []).append(joint)
    order: list[Joint] = []
    reached = [WORLD]
    while reached:
        found = waiting.pop(reached.pop(), [])
        order += found
        reached += [joint.child for joint in reversed(found)]
    return order


def _add_body(parent: Any, body: Body, chain: list[Joint]) -> Any:
    """A body with its joint, or with a chain of joints that bodies without mass join."""
    element = _add(parent, "body", name=body.name, **_place(place(chain)))
    for k, joint in enumerate(chain):
        X = offset(chain, k)
        if joint.kind == "floating":
            _add(element, "freejoint", name=joint.name)
        elif joint.kind == "spherical":
            anchor = {"pos": _text(*-X[:3, 3])} if np.any(X[:3, 3]) else {}
            _add(element, "joint", name=joint.name, type="ball", **anchor, **_ball_numbers(joint))
        else:
            for piece in pieces(joint):
                _add_piece(element, moved(piece, X))
    if body.mass or np.any(body.inertia):
        at = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        inertia = [body.inertia[i] for i in at]
        _add(element, "inertial", pos=_text(*body.com), mass=_text(body.mass), fullinertia=_text(*inertia))
    for visual in body.visuals:
        _add_shape(element, visual)
    return element


def _add_piece(element: Any, piece: Piece) -> None:
    said = {"name": piece.name, "type": piece.type, "axis": _text(*piece.axis)}
    if np.any(piece.position):
        said["pos"] = _text(*piece.position)
    for key, word in (("stiffness", "stiffness"), ("rest", "springref"), ("damping", "damping"),
                      ("armature", "armature"), ("friction", "frictionloss")):
        if getattr(piece, key):
            said[word] = _text(getattr(piece, key))
    if np.isfinite([piece.lower, piece.upper]).any():
        said["range"] = _text(*np.clip([piece.lower, piece.upper], -1e10, 1e10))
    if np.isfinite(piece.effort):
        said["actuatorfrcrange"] = _text(-piece.effort, piece.effort)
    _add(element, "joint", **said)


def _ball_numbers(joint: Joint) -> dict[str, str]:
    said = {}
    for word, values in (("stiffness", joint.stiffness), ("damping", joint.damping), ("armature", joint.armature)):
        if values is not None and np.any(values):
            said[word] = _text(np.ravel(values)[0])
    if joint.friction is not None:
        said["frictionloss"] = _text(joint.friction.coulomb[0])
        said["damping"] = _text(joint.friction.viscous[0] + float(said.get("damping", "0")))
    return said


def _add_loop(equality: Any, elements: dict[str, Any], loop: Loop, taken: set[str]) -> None:
    ends = (("a", loop.body_a, loop.origin_a), ("b", loop.body_b, loop.origin_b))

    def sites(mark: str, along: Array) -> dict[str, str]:
        names = {}
        for number, (side, body, origin) in enumerate(ends, 1):
            placed = np.array(origin)
            placed[:3, 3] = placed[:3, :3] @ along + placed[:3, 3]
            name = f"{loop.name}_{side}{mark}"
            while name in taken:
                name += "_"
            taken.add(name)
            names[f"site{number}"] = name
            _add_site(elements[body], name, placed)
        return names

    if loop.kind == "revolute" or loop.kind == "continuous":
        # two points of the axis: their distance is a length to which the mechanism's own lengths compare
        for mark, sign in (("1", 0.0), ("2", 0.1)):
            _add(equality, "connect", name=f"{loop.name}_{mark}", **sites(mark, sign * loop.axis))
    else:
        _add(equality, "weld" if loop.kind == "fixed" else "connect", name=loop.name, **sites("", np.zeros(3)))


def _add_shape(element: Any, visual: Visual) -> None:
    half = {"box": visual.size / 2, "sphere": visual.size, "cylinder": np.array([visual.size[0], visual.size[-1] / 2])}
    if visual.shape not in half:
        return
    size = np.maximum(half[visual.shape], 1e-9)  # MuJoCo refuses shapes without thickness
    color = {} if visual.color is None else {"rgba": _text(*visual.color)}
    _add(element, "geom", type=visual.shape, size=_text(*size), contype="0", conaffinity="0", group="1",
         mass="0", **_place(visual.origin), **color)  # fmt: skip


def _add_site(element: Any, name: str, origin: Array) -> None:
    _add(element, "site", name=name, **_place(origin))


def _place(origin: Array) -> dict[str, str]:
    said = {}
    if np.any(origin[:3, 3]):
        said["pos"] = _text(*origin[:3, 3])
    if not np.array_equal(origin[:3, :3], np.eye(3)):
        x, y, z, w = matrix_quaternion(np.asarray(origin[:3, :3]))
        said["quat"] = _text(w, x, y, z)
    return said


def _add(parent: Any, tag: str, **attributes: str) -> Any:
    import lxml.etree as etree

    return etree.SubElement(parent, tag, **attributes)


def _text(*values: Any) -> str:
    return " ".join(repr(float(x) + 0.0) for x in values)


__all__ = ["mjcf_text", "write_mjcf"]
