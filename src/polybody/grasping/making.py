"""`pb.grasp`: which frames of a model hold which body, and where.

The object is a body of the model with a joint of its own from the ground (floating; planar in planar models), or a
`Body` record that is added so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polybody import grasping as cooperation
from polybody.algebra.spatial import inverse_pose
from polybody.description.records import WORLD, Body, Description, Joint
from polybody.errors import InputError, PolybodyError
from polybody.grasping import Grip
from polybody.grasping.grasp import Grasp
from polybody.mechanism.mechanism import BodyFrame, mechanism_from
from polybody.model.arguments import choose, state_array
from polybody.model.model import Model

Array = np.ndarray


def grasp(
    model: Model, object: str | Body, frames: Mapping[str, Any] | Sequence[str], q: Any = None
) -> Grasp:
    """Let end effectors of a model hold a body rigidly.

    `object` is a body of the model that moves from the ground by a joint of its own, or a `Body` record, which joins
    the model by a floating joint named `<name>_joint` (the result's `model` has it). `frames` maps each end-effector
    frame to its place on the object: a frame of the object, or a 4×4 pose in the object's frame. A plain sequence of
    end-effector frames takes the places where they are at the configuration q.
    """
    if isinstance(object, Body):
        model = Model(mechanism_from(_with_object(model.description, object)))
        object = object.name
    if model.mechanism.constrained:
        raise PolybodyError(
            "grasp: this model has loops or couplings of its own, and a grasp is made of a tree; hold the object by "
            "loops instead (Builder.loop with kind 'fixed'), whose closure_loads are the grip's"
        )
    held_link = model.frame(object)
    names = {body.name: body.index for body in model.mechanism.bodies}
    body = held_link.body if held_link.body >= 0 else choose("body", object, names)
    if isinstance(frames, Mapping):
        places = dict(frames)
    else:
        places = _places_at(model, object, frames, q)
    grips = [Grip(model.frame(tip), _hold(model, held_link, tip, place)) for tip, place in places.items()]
    near = None if q is None or isinstance(frames, Mapping) else state_array("q", q, model.nq)
    return Grasp(model, cooperation.plan_holding(model.mechanism, body, tuple(grips), near))


def _with_object(description: Description, body: Body) -> Description:
    joint = Joint(f"{body.name}_joint", "floating", WORLD, body.name)
    return dataclasses.replace(
        description, bodies=(*description.bodies, body), joints=(*description.joints, joint)
    )


def _places_at(model: Model, object: str, frames: Sequence[str], q: Any) -> dict[str, Array]:
    if isinstance(frames, str):
        raise InputError(f"frames must be a sequence or a mapping of end effectors, got the one name {frames!r}")
    if q is None:
        raise InputError(
            "frames alone do not say where the object is held: give q, at which it is held, or map each frame to its "
            "place on the object (a frame of it, or a 4×4 pose)"
        )
    q = state_array("q", q, model.nq)
    held = inverse_pose(model.pose(q, object))
    return {name: held @ model.pose(q, name) for name in frames}


def _hold(model: Model, link: BodyFrame, tip: str, place: Any) -> BodyFrame:
    if isinstance(place, str):
        return model.frame(place)
    T = np.asarray(place, dtype=float)
    if T.shape != (4, 4) or not np.allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=1e-8):
        raise InputError(f"the place of {tip!r} on the object must be a frame's name or a 4×4 pose, got {place!r}")
    R, p = link.rotation @ T[:3, :3], link.rotation @ T[:3, 3] + link.position
    return BodyFrame(f"{link.name} at {tip}", link.body, R, p)


__all__ = ["grasp"]
