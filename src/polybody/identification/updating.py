"""A model with estimated parameters: bodies, armature and friction of its description replaced.

An estimate is of whole bodies. Where a body has several links (fixed joints between them), the link that gives the body
its name takes all of it, and the others are left without mass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from polybody.description.records import FRICTION_DEFAULTS, Body, Friction, Joint, frozen_array
from polybody.formulations.denoc.regressor import ENTRIES
from polybody.identification.crossings import inertia_map
from polybody.mechanism.columns import velocity_names
from polybody.model.model import Model
from polybody.model.validation import model_from

Array = np.ndarray


def updated_model(model: Model, values: Mapping[str, float], speeds: tuple[Array, Array]) -> Model:
    """The model with bodies' and joints' values by name ("forearm.mass", "elbow.coulomb"); speeds (u_0, u_s)."""
    m, d = model.mechanism, model.description
    bodies: dict[str, Body] = {body.name: body for body in d.bodies}
    for body in m.bodies:
        own = np.array([values[f"{body.name}.{x}"] for x in _NAMES])
        frame = m.frames[m.frame_index[body.name]]
        R, r = frame.rotation, frame.position
        own = np.linalg.solve(inertia_map(R, r), own)  # about the link's frame
        mass, com = float(own[0]), own[1:4] / own[0]
        inertia = np.zeros((3, 3))
        for x, (i, j) in zip(own[4:], ENTRIES, strict=True):
            inertia[i, j] = inertia[j, i] = x
        inertia -= mass * (com @ com * np.eye(3) - np.outer(com, com))
        none, flat = frozen_array(np.zeros(3)), frozen_array(np.zeros((3, 3)))
        for name in body.links:
            bodies[name] = replace(bodies[name], mass=0.0, com=none, inertia=flat)
        bodies[body.name] = replace(bodies[body.name], mass=mass, com=frozen_array(com), inertia=frozen_array(inertia))
    slots = {joint.name: joint.v for joint in m.independent_joints}
    names = velocity_names(m)
    joints = tuple(_joint(j, slots, names, values, speeds) for j in d.joints)
    changed = replace(d, bodies=tuple(bodies[body.name] for body in d.bodies), joints=joints)
    return model_from(changed, warn=False)


_NAMES = ("mass", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")


def _joint(
    joint: Joint, slots: Mapping[str, slice], names: list[str], values: Mapping[str, float], speeds: tuple[Array, Array]
) -> Joint:
    if joint.name not in slots:
        return joint
    own = range(slots[joint.name].start, slots[joint.name].stop)
    if not any(name.startswith(f"{names[k]}.") for k in own for name in values):
        return joint

    def numbers(term: str) -> Array:
        return np.array([values.get(f"{names[k]}.{term}", 0.0) for k in own])

    coulomb, count = numbers("coulomb"), len(own)
    friction = Friction(
        coulomb=frozen_array(coulomb), viscous=frozen_array(numbers("viscous")),
        static=frozen_array(coulomb + numbers("stribeck")), stribeck=frozen_array(speeds[1][list(own)]),
        exponent=frozen_array(np.full(count, FRICTION_DEFAULTS["exponent"])),
        regularisation=frozen_array(speeds[0][list(own)]), load=frozen_array(np.zeros(count)),
    )  # fmt: skip
    present = np.any(coulomb) or np.any(friction.viscous) or np.any(friction.static)
    armature = numbers("armature")
    return replace(
        joint, armature=frozen_array(armature) if np.any(armature) else None, damping=None,
        friction=friction if present else None,
    )  # fmt: skip


__all__ = ["updated_model"]
