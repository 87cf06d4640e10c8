"""Models made from a model: another gravity, one more frame, a payload, joints locked; and its file.

Each changes the description and builds anew, so that everything that follows from it is right.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.description import shapes
from polybody.description.parameters import chosen, parameters_of
from polybody.description.reading import write_description
from polybody.description.records import Body, Description, Frame, Joint
from polybody.errors import InputError, warn
from polybody.mechanism.variation import Variation
from polybody.model.arguments import choose

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray


def _model(model: Model, description: Description) -> Model:
    from polybody.model.validation import model_from

    made = model_from(description, warn=False, couplings=_coupled(model))
    names = model.parameters.names
    if not names:
        return made
    lost = sorted(set(names) - {p.name for p in parameters_of(made.description)})
    if lost:
        raise InputError(f"the model would have no parameter {', '.join(map(repr, lost))} any more; change the model "
                         "first, then choose its parameters")
    return with_parameters(made, names)


def _coupled(model: Model) -> bool:
    m, d = model.mechanism, model.description
    return bool(m.followers) or len(m.relations) > len(d.relations) or not d.couplings


def with_parameters(model: Model, patterns: Sequence[str]) -> Model:
    """The same numbers, some of them inputs of the compiled code."""
    from polybody.model.model import varied_model

    if not patterns:
        raise InputError("with_parameters needs names or patterns, such as 'forearm.mass' or '*.com'")
    variation = Variation(model.description, tuple(chosen(model.description, patterns)), _coupled(model))
    return varied_model(model.mechanism, variation, variation.nominal)


def with_gravity(model: Model, gravity: ArrayLike) -> Model:
    return _model(model, replace(model.description, gravity=shapes.numbers("gravity", gravity, 3)))


def with_frame(model: Model, name: str, body: str, origin: ArrayLike | None) -> Model:
    _refuse_taken(model, name)
    choose("body", body, {b.name: 0 for b in model.description.bodies} | {"world": 0})
    pose = np.eye(4) if origin is None else shapes.pose_matrix(f"frame {name!r}: origin", origin)
    frame = Frame(name, body, pose)
    return _model(model, replace(model.description, frames=(*model.description.frames, frame)))


def with_payload(model: Model, frame: str, mass: float, com: ArrayLike, inertia: ArrayLike) -> Model:
    """A body of that name welded to the link that carries the frame."""
    d = model.description
    choose("frame", frame, model.mechanism.frame_index)
    own = {f.name: (f.body, f.origin) for f in d.frames}
    link, origin = own.get(frame, (frame, np.eye(4)))
    name = _free_name(model, "payload")
    body = Body(
        name, shapes.number("payload: mass", mass), shapes.numbers("payload: com", com, 3),
        shapes.inertia_matrix("payload: inertia", inertia),
    )  # fmt: skip
    weld = Joint(f"{name}_weld", "fixed", link, name, origin)
    return _model(model, replace(d, bodies=(*d.bodies, body), joints=(*d.joints, weld)))


def lock(model: Model, joints: str | Sequence[str], q: ArrayLike | None) -> Model:
    """Joints become fixed where they are at q; those that follow them with them."""
    m, d = model.mechanism, model.description
    place = model.neutral() if q is None else model._q(q)
    if place.ndim != 1:
        raise InputError(f"lock takes one configuration, got shape {place.shape}")
    chosen = [joints] if isinstance(joints, str) else list(joints)
    names = {m.joints[choose("joint", name, m.joint_index)].name for name in chosen}
    names |= {m.followers[name][0] for name in names if name in m.followers}
    names |= {follower for follower, (leader, *_) in m.followers.items() if leader in names}
    for relation in d.relations:
        if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", relation.expression) for name in names):
            raise InputError(f"relation {relation.name!r} refers to a joint that would be locked; remove it first")
    fixed = {name: _fixed(model, name, place) for name in names}
    return _model(
        model,
        replace(
            d,
            joints=tuple(fixed.get(joint.name, joint) for joint in d.joints),
            couplings=tuple(c for c in d.couplings if c.joint not in names and c.source_joint not in names),
            motors=tuple(motor for motor in d.motors if motor.joint not in names),
            transmissions=tuple(t for t in d.transmissions if not names & set(t.joints)),
        ),
    )


def _fixed(model: Model, name: str, q: Array) -> Joint:
    joint = model.mechanism.joints[model.mechanism.joint_index[name]]
    R, p = joint.model.configuration(q[joint.q])
    moved = np.eye(4)
    moved[:3, :3], moved[:3, 3] = (R.T, -R.T @ p) if joint.reversed else (R, p)
    record = joint.record
    return Joint(name, "fixed", record.parent, record.child, np.asarray(record.origin) @ moved, source=record.source)


def save(model: Model, path: str | os.PathLike[str], *, force: bool, lossy: bool) -> Path:
    lost = write_description(model.description, path, force=force, lossy=lossy)
    if lost:
        warn(f"{path}: left out: {'; '.join(lost)}")
    return Path(path)


def _refuse_taken(model: Model, name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise InputError(f"a frame's name is a text, got {name!r}")
    if name in model.mechanism.frame_index:
        raise InputError(f"frame {name!r} exists already; choose another name")


def _free_name(model: Model, name: str) -> str:
    taken, k = {*model.mechanism.frame_index}, 2
    while name in taken:
        name, k = f"payload{k}", k + 1
    return name


__all__ = ["lock", "save", "with_frame", "with_gravity", "with_parameters", "with_payload"]
