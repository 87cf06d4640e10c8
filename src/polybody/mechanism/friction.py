"""Friction in joints, over any domain: one smooth law, which kernels, derivatives and regressors share.

For each velocity u of the joint's own coordinates, with the numbers of `description.records.Friction`,

    f = −[F_c + (F_s − F_c) e^{−|u/u_s|^δ}] tanh(u/u_0) − B u                                        (1)

F_c `coulomb`, F_s `static`, u_s `stribeck`, δ `exponent`, B `viscous`, u_0 `regularisation`. A joint at rest is not
held by (1): under a load below F_s it creeps, at less than u_0 by far while the load is well below F_s. `pb.simulate`
takes the law without tanh, and joints that stick (`simulation.friction`). Joints with several velocities have (1) in
each of them. What depends on the joint's reaction (`load`) needs the motion, and is `pb.simulate`'s alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.description.records import Friction

#: Added to (u/u_s)² where a power of it is taken by logarithms.
TINY = 1e-12


def friction_forces(friction: Friction, u: Array, *, domain: Domain = FLOAT) -> Array:
    """(1): what friction exerts along the joint's own velocities u."""
    force = domain.zeros(len(u))
    coulomb, viscous, static, width = (
        domain.array(x) for x in (friction.coulomb, friction.viscous, friction.static, friction.regularisation)
    )
    for k in range(len(u)):
        level = coulomb[k] + stribeck_excess(friction, k, u[k], domain=domain)
        if not domain.is_zero(level) and not (domain.is_zero(coulomb[k]) and domain.is_zero(static[k])):
            force[k] = force[k] - level * domain.tanh(u[k] / width[k])
        force[k] = force[k] - viscous[k] * u[k]
    return force


def stribeck_excess(friction: Friction, k: int, u: Any, *, domain: Domain = FLOAT) -> Any:
    """(F_s − F_c) e^{−|u/u_s|^δ} of number k."""
    coulomb, static, speed, exponent = (
        domain.array(x[k : k + 1])[0]
        for x in (friction.coulomb, friction.static, friction.stribeck, friction.exponent)
    )
    above = static - coulomb
    if domain.is_zero(above):
        return domain.const(0)
    ratio = u / speed
    square = ratio * ratio
    if domain.is_constant(exponent) and exponent == 2:
        return above * domain.exp(-square)
    power = domain.exp(exponent * domain.const(0.5) * domain.log(square + domain.const(TINY)))
    return above * domain.exp(-power)


def numbers_of(friction: Friction | None, nv: int) -> Array:
    """All numbers of (1) in one row; the exponent halved, so that the usual 2 is 1, and folds."""
    if friction is None:
        return np.zeros(6 * nv)
    parts = (friction.coulomb, friction.viscous, friction.static, friction.stribeck, friction.exponent / 2,
             friction.regularisation)  # fmt: skip
    return np.concatenate([np.asarray(x, dtype=float) for x in parts])


def from_numbers(numbers: Array) -> Friction | None:
    """The friction whose `numbers_of` are these; None where all are zero."""
    if all(isinstance(x, float) and x == 0 for x in numbers):
        return None
    coulomb, viscous, static, speed, half, width = np.asarray(numbers, dtype=object).reshape(6, -1)
    return Friction(coulomb, viscous, static, speed, half * 2, width, np.zeros(len(coulomb)))


def smoothed(record: Any) -> Any:
    """A joint's record with only the viscous part of its friction."""
    law = record.friction
    if law is None:
        return record
    zero = np.zeros(len(law.coulomb))
    none = all(isinstance(x, float) and x == 0 for x in law.viscous)
    return replace(record, friction=None if none else replace(law, coulomb=zero, static=zero, load=zero))


__all__ = ["friction_forces", "from_numbers", "numbers_of", "smoothed", "stribeck_excess"]
