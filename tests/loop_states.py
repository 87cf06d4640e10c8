"""Random consistent states of machines with loops, and machines whose bodies all have mass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import polybody as pb
from polybody.constraints.ranks import null_space
from polybody.description.records import frozen_array
from polybody.model.validation import model_from


def massive(name):
    """A shipped machine whose bodies all have mass, as Pinocchio needs."""
    rng = np.random.default_rng(7)
    d = pb.load(name).description
    bodies = []
    for body in d.bodies:
        I = np.diag(rng.uniform(0.02, 0.03, size=3)) + 0.002 * rng.normal(size=(3, 3))
        bodies.append(replace(body, mass=float(rng.uniform(0.5, 1.5)), com=frozen_array(0.1 * rng.normal(size=3)),
                              inertia=frozen_array((I + I.T) / 2)))
    joints = tuple(replace(j, armature=None) for j in d.joints)
    return model_from(replace(d, bodies=tuple(bodies), joints=joints), warn=False)


def states(model, count=4, reach=0.15):
    rng = np.random.default_rng(3)
    q0 = model.assemble()
    Z = null_space(model.constraints.jacobian(q0))
    # projected, not combined: rounding decides the signs of a basis, and with them which states would be met
    moved = [model.integrate(q0, Z @ (Z.T @ rng.normal(size=model.nv)) * reach) for _ in range(count)]
    q = model.assemble(np.array(moved))
    v = model.assemble_velocity(q, rng.normal(size=(count, model.nv)))
    return q, v, rng.normal(size=(count, model.nv)) * 3


__all__ = ["massive", "states"]
