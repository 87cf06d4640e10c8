"""What of a description MJCF can express: joints as hinges and slides, and the list of what is lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polybody.description.limit_losses import limit_losses
from polybody.description.records import WORLD, Description, Friction, Joint, Loop, frozen_array, joint_size
from polybody.errors import InputError

Array = np.ndarray

#: Added to inertias that are singular: MuJoCo refuses eigenvalues below 1e-15.
SLENDER = 1e-12
#: Losses that are a part of a field, which stays.
PARTS = ("velocity", "power", "stops", "static", "load")
LOOPS = ("spherical", "fixed", "revolute", "continuous")
WHOLE = ("fixed", "floating", "spherical")
#: Kinds whose columns are known here; `custom` brings its own.
_Y, _Z = np.eye(3)[1], np.eye(3)[2]


@dataclass(frozen=True)
class Piece:
    """A hinge or slide of one coordinate, in the child's axes."""

    name: str
    type: str
    axis: Array
    position: Array
    stiffness: float
    rest: float
    damping: float
    armature: float
    friction: float
    lower: float
    upper: float
    effort: float


def pieces(joint: Joint) -> list[Piece]:
    """The hinges and slides of a joint, from the parent outwards (our columns run the other way)."""
    columns = _columns(joint)
    count = len(columns)
    names = joint.name.split("+") if joint.name.count("+") == count - 1 else None
    names = names or [f"{joint.name}_{k}" for k in range(count)]

    def of(values: Any, k: int, default: float = 0.0) -> float:
        return default if values is None else float(np.ravel(values)[k])

    def diagonal(values: Any, k: int) -> float:
        return 0.0 if values is None else float(np.reshape(values, (count, count))[k, k])

    made = []
    for k, column in enumerate(columns):
        kind, axis, position = _hinge_or_slide(column)
        limits, friction = joint.limits, joint.friction
        made.append(
            Piece(
                name=names[k] if count > 1 else joint.name, type=kind, axis=axis, position=position,
                stiffness=diagonal(joint.stiffness, k), rest=of(joint.rest, k),
                damping=diagonal(joint.damping, k) + of(None if friction is None else friction.viscous, k),
                armature=of(joint.armature, k), friction=of(None if friction is None else friction.coulomb, k),
                lower=of(None if limits is None else limits.lower, k, -np.inf),
                upper=of(None if limits is None else limits.upper, k, np.inf),
                effort=of(None if limits is None else limits.effort, k, np.inf),
            )
        )  # fmt: skip
    return made[::-1]


def _columns(joint: Joint) -> list[Array]:
    zero, axis = np.zeros(3), np.asarray(joint.axis, dtype=float)
    known = {
        "fixed": [],
        "revolute": [(axis, zero)],
        "continuous": [(axis, zero)],
        "prismatic": [(zero, axis)],
        "cylindrical": [(axis, zero), (zero, axis)],
        "universal": [(_Y, zero), (_Z, zero)],
    }
    if joint.kind in known:
        return [np.concatenate(pair) for pair in known[joint.kind]]
    if joint.kind != "custom" or joint.map is None:
        raise InputError(f"its kind {joint.kind!r}")
    columns = list(np.asarray(joint.map, dtype=float).T)
    if (joint.stages or (len(columns),)) != (1,) * len(columns):
        raise InputError("its kind 'custom' of several columns in one stage")
    return columns


def _hinge_or_slide(column: Array) -> tuple[str, Array, Array]:
    """("hinge", axis, point on it) or ("slide", axis, 0) of a twist without pitch."""
    w, v = column[:3], column[3:]
    size = float(np.linalg.norm(w))
    if size < 1e-12 * np.linalg.norm(v):
        if abs(np.linalg.norm(v) - 1) > 1e-9:
            raise InputError("a sliding column of its map that is not a unit vector")
        return "slide", v, np.zeros(3)
    if abs(size - 1) > 1e-9 or abs(w @ v) > 1e-9 * max(1.0, float(np.linalg.norm(v))):
        raise InputError("a column of its map with pitch, or not of unit length")
    return "hinge", w, np.cross(w, v)


def without_losses(description: Description) -> tuple[Description, list[str]]:
    """The description without what MJCF cannot express, and the list of that; what cannot be left out is an error."""
    lost = []
    for what in ("rods", "guides", "relations", "springs", "motors", "transmissions", "contacts",
                 "actuators", "rolling", "velocity_relations"):
        lost += [f"{what[:-1]} {record.name!r}" for record in getattr(description, what)]
        description = replace(description, **{what: ()})
    if description.network is not None:
        lost.append("the network")
        description = replace(description, network=None)
    loops = []
    for loop in description.loops:
        if loop.kind not in LOOPS:
            lost.append(f"loop {loop.name!r}: its kind {loop.kind!r}; MJCF has {', '.join(LOOPS)} by equalities")
            continue
        reasons = _loop_losses(loop)
        lost += [f"loop {loop.name!r}: its {what}" for what in reasons.values()]
        loops.append(replace(loop, **dict.fromkeys(reasons)))
    joints = []
    for joint in description.joints:
        reasons = _joint_losses(joint)
        lost += [f"joint {joint.name!r}: {reason}" for reason in reasons.values()]
        left: dict[str, Any] = {key: None for key in reasons if key not in PARTS}
        if joint.friction is not None and "friction" not in reasons:
            zero = frozen_array(np.zeros_like(joint.friction.load))
            left["friction"] = replace(joint.friction, static=joint.friction.coulomb, load=zero)
        if "limits" not in reasons and joint.limits is not None:
            left["limits"] = replace(joint.limits, velocity=np.full_like(joint.limits.velocity, np.inf), power=None,
                                     stiffness=None, damping=None)  # fmt: skip
        joints.append(replace(joint, **left))
    _refuse_unsayable(description)
    bodies = []
    for body in description.bodies:
        lost += [f"body {body.name!r}: the mesh {v.mesh!r}, which is drawn only" for v in body.visuals if v.mesh]
        slender = (body.mass or np.any(body.inertia)) and np.linalg.eigvalsh(body.inertia)[0] < SLENDER
        if slender:
            lost.append(f"body {body.name!r}: its inertia is singular, MuJoCo rejects it; {SLENDER:g} kg m² is added")
        inertia = frozen_array(body.inertia + SLENDER * np.eye(3)) if slender else body.inertia
        bodies.append(replace(body, inertia=inertia, visuals=tuple(v for v in body.visuals if not v.mesh)))
    return replace(description, loops=tuple(loops), joints=tuple(joints), bodies=tuple(bodies)), lost


def _loop_losses(loop: Loop) -> dict[str, str]:
    """{field: what is lost with it}."""
    words = ("stiffness", "damping", "friction", "rest", "armature", "limits")
    found = {word: word for word in words if getattr(loop, word) is not None}
    if loop.friction is not None:
        found["friction"] = " and ".join(what for what, x in _levels(loop.friction).items() if np.any(x)) or "friction"
    return found


def _levels(friction: Friction) -> dict[str, Array]:
    """What resists motion, by the words a reader knows it by."""
    return {"Coulomb friction": friction.coulomb, "viscous friction": friction.viscous}


def _joint_losses(joint: Joint) -> dict[str, str]:
    """{field: why MJCF cannot say it}."""
    reasons: dict[str, str] = {}
    nv = joint_size(joint)[1]
    for word in ("stiffness", "damping"):
        values = getattr(joint, word)
        if values is None:
            continue
        matrix = np.reshape(values, (nv, nv))
        alike = joint.kind in ("spherical", "floating")
        even = np.diag(np.full(nv, matrix.flat[0]) if alike else np.diag(matrix))
        if not np.array_equal(matrix, even) or (joint.kind == "floating" and np.any(matrix)):
            reasons[word] = f"its {word}, which couples coordinates or is that of a free body"
    if joint.kind in ("spherical", "floating"):
        for word in ("rest", "limits"):
            if getattr(joint, word) is not None:
                reasons[word] = f"its {word}"
        levels = {} if joint.friction is None else _levels(joint.friction)
        for word, given in (("armature", {"armature": joint.armature}), ("friction", levels)):
            used = {what: np.ravel(x) for what, x in given.items() if x is not None and np.any(x)}
            if used and (joint.kind == "floating" or any(np.ptp(x) for x in used.values())):
                listed = " and ".join(used)
                reasons[word] = f"its {listed}, which differs between its axes or is that of a free body"
    if joint.friction is not None and "friction" not in reasons:
        if not np.array_equal(joint.friction.static, joint.friction.coulomb):
            reasons["static"] = "its static friction and Stribeck curve; Coulomb and viscous friction are written"
        if np.any(joint.friction.load):
            reasons["load"] = "its friction under load; Coulomb and viscous friction are written"
    if joint.limits is not None and "limits" not in reasons:
        if np.isfinite(joint.limits.velocity).any():
            reasons["velocity"] = "its velocity limit"
        reasons |= limit_losses(joint)
    return reasons


def _refuse_unsayable(description: Description) -> None:
    """Kinds of joints, trees and inertias that MuJoCo does not have."""
    from polybody.description.mjcf.chains import chains  # which moves pieces

    problems, parent_of = [], dict[str, str]()
    for body in description.bodies:
        a, b, c = np.linalg.eigvalsh(body.inertia)
        if a < -SLENDER or c > (a + b) * (1 + 1e-9) + SLENDER:
            problems.append(f"body {body.name!r}: an inertia that no body can have; MuJoCo rejects it")
    names: set[str] = set()
    weighs = weighing(description)
    weighs |= {joint.child for chain in chains(description, weighs).values() for joint in chain}
    for joint in description.joints:
        if joint.kind != "fixed" and joint.child not in weighs:
            problems.append(f"joint {joint.name!r} moves body {joint.child!r}, which has no mass; MuJoCo rejects it")
        if joint.child in parent_of or joint.child == WORLD:
            problems.append(
                f"joint {joint.name!r} points towards the ground; reverse it so that its child is the outer body"
            )
        parent_of.setdefault(joint.child, joint.parent)
        if joint.kind == "floating" and joint.parent != WORLD:
            problems.append(f"joint {joint.name!r}: a free joint that is not on the ground")
        if joint.kind not in WHOLE:
            try:
                made = [piece.name for piece in pieces(joint)]
            except InputError as error:
                problems.append(f"joint {joint.name!r}: {error}")
                continue
        else:
            made = [] if joint.kind == "fixed" else [joint.name]
        problems += [f"joint {joint.name!r}: two joints would be named {name!r}" for name in made if name in names]
        names.update(made)
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        raise InputError(f"{description.name!r} cannot be written as MJCF:\n{listed}")


def weighing(description: Description) -> set[str]:
    """Bodies that have mass and inertia, or carry one that has on fixed joints."""
    found = {body.name for body in description.bodies if body.mass > 0}
    held = {joint.child: joint.parent for joint in description.joints if joint.kind == "fixed"}
    for name in list(found):
        while name in held and held[name] not in found:
            name = held[name]
            found.add(name)
    return found


__all__ = ["Piece", "pieces", "weighing", "without_losses"]
