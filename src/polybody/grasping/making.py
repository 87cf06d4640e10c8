"""`pb.grasp`: which frames of a model hold which body, and where.

The object is a body of the model with a joint of its own from the ground (floating; planar in planar models), or a
`Body` record that is added so. Every grip becomes a loop of kind "fixed" from the hand to its place on the object,
beside the loops that the model has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.algebra.spatial import inverse_pose
from polybody.description.records import WORLD, Body, Description, Joint, Loop, frozen_array
from polybody.errors import InputError
from polybody.grasping.grasp import Grasp
from polybody.grasping.grips import Grip, Holding
from polybody.mechanism.mechanism import BodyFrame
from polybody.model.arguments import choose, float_array
from polybody.model.model import Model
from polybody.model.validation import model_from
from polybody.quantities.frames import find_frame

Array = np.ndarray


def grasp(
    model: Model, object: str | Body, frames: Mapping[str, Any] | Sequence[str], q: ArrayLike | None = None
) -> Grasp:
    """Make a grasp: end effectors of a model hold a body rigidly.

    `object` is a body of the model connected to the ground by a joint of its own, or a `Body` record, which is added
    with a floating joint named `<name>_joint` (see `model` of the result). `frames` maps each end-effector frame to its
    place on the object: a frame of the object, or a 4×4 pose in the object's frame. A plain sequence of end-effector
    frames takes their places at the configuration q. The model may have loops of its own.
    """
    if model.mechanism.paced:
        raise InputError(f"grasp: velocity relations of {model.name!r} have right sides, which captures do not count")
    if isinstance(object, Body):
        model = model_from(_with_object(_standing(model), object), warn=False)
        object = object.name
    link = find_frame(model.mechanism, object)
    body = link.body if link.body >= 0 else choose("body", object, {b.name: b.index for b in model.mechanism.bodies})
    places = dict(frames) if isinstance(frames, Mapping) else _places_at(model, object, frames, q)
    grips, loops = [], []
    for tip, place in places.items():
        name = _free_name(model.description, f"grip {tip}")
        hold, (body_b, origin_b) = _hold(model, link, tip, place)
        grips.append(Grip(name, find_frame(model.mechanism, tip), hold))
        body_a, origin_a = _link(model, tip)
        loops.append(Loop(name, "fixed", body_a, body_b, origin_a, origin_b))
    held = Holding(body, tuple(grips))
    held.check(model.mechanism)
    said = _standing(model)
    return Grasp(model, held, model_from(replace(said, loops=(*said.loops, *loops)), warn=False))


def _standing(model: Model) -> Description:
    """The description without the constraints that the model has not: those that `model.tree` cut."""
    d, m = model.description, model.mechanism
    held = d.loops or d.rods or d.guides or d.relations or d.couplings or d.rolling or d.velocity_relations
    if m.constrained or not held:
        return d
    coupled = tuple(c for c in d.couplings if c.joint in m.followers)
    return replace(d, loops=(), rods=(), guides=(), relations=(), couplings=coupled, rolling=(),
                   velocity_relations=())  # fmt: skip


def _with_object(description: Description, body: Body) -> Description:
    joint = Joint(f"{body.name}_joint", "floating", WORLD, body.name)
    return replace(description, bodies=(*description.bodies, body), joints=(*description.joints, joint))


def _free_name(description: Description, name: str) -> str:
    d = description
    taken = {x.name for x in (*d.loops, *d.rods, *d.guides, *d.relations, *d.joints)}
    while name in taken:
        name += "'"
    return name


def _places_at(model: Model, object: str, frames: Sequence[str], q: ArrayLike | None) -> dict[str, Array]:
    if isinstance(frames, str):
        raise InputError(f"frames must be a sequence or a mapping of end effectors, got the one name {frames!r}")
    if q is None:
        raise InputError(
            "frames alone do not say where the object is held: give q, at which it is held, or map each frame to its "
            "place on the object (a frame of it, or a 4×4 pose)"
        )
    held = inverse_pose(model.pose(q, object))
    return {name: held @ model.pose(q, name) for name in frames}


def _link(model: Model, frame: str) -> tuple[str, Array]:
    """The link that a frame is on, and its pose there."""
    own = {f.name: (f.body, f.origin) for f in model.description.frames}
    return own.get(frame, (frame, frozen_array(np.eye(4))))


def _hold(model: Model, link: BodyFrame, tip: str, place: Any) -> tuple[BodyFrame, tuple[str, Array]]:
    """The place on the object as a frame of its tree body, and as a link with a pose in it."""
    if isinstance(place, str):
        return find_frame(model.mechanism, place), _link(model, place)
    T = float_array(f"the place of {tip!r} on the object", place)
    if T.shape != (4, 4) or not np.allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=1e-8):
        raise InputError(f"the place of {tip!r} on the object must be a frame's name or a 4×4 pose, got {place!r}")
    R, p = link.rotation @ T[:3, :3], link.rotation @ T[:3, 3] + link.position
    return BodyFrame(f"{link.name} at {tip}", link.body, R, p), (link.name, frozen_array(T))


__all__ = ["grasp"]
