"""A tree whose only joint to the ground floats freely: what gravity and its base's velocity do is known beforehand.

Let R be the base's orientation and v = [ω; u, …]. Written in a frame that moves with the base's velocity at the moment
and falls with gravity g, the equations of motion have neither u nor g in them. Back in the frame of the ground

    a = â(q, v without u, τ) + [0; Rᵀ g − ω × u; 0, …]                                         (1)

â is the answer of the same mechanism without gravity. It depends neither on u nor on the position or orientation of
the base, so that of its derivatives six columns and more vanish, and of (1)

    ∂(Rᵀ g)/∂φ = skew(Rᵀ g),    ∂(−ω × u)/∂ω = skew(u),    ∂(−ω × u)/∂u = −skew(ω)             (2)

are all that is left of them. Whatever ties the base or a body to the ground but inertia spoils (1): forces in the
base's joint, armature (of numbers of v, not of motions), springs, contacts, wrenches with axes of the world. Friction
under load, which reads reactions, is left out as well.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import skew
from polybody.mechanism.compliant_stops import compliant
from polybody.mechanism.joints import FloatingJoint
from polybody.mechanism.mechanism import GROUND, Mechanism, TreeJoint


def free_base(mechanism: Mechanism) -> TreeJoint | None:
    """The joint of the base where (1) holds; numbers of the mechanism that are symbols are not relied upon."""
    roots = [joint for joint in mechanism.joints if joint.parent == GROUND]
    if len(roots) != 1 or type(roots[0].model) is not FloatingJoint or mechanism.sprung or len(mechanism.symbols):
        return None
    (base,) = roots
    forced = base.stiffness.any() or base.damping.any() or base.friction is not None or compliant(base.limits)
    tied = mechanism.armature[base.v].any() or mechanism.motor_damping[base.v].any()
    loaded = any(joint.friction is not None and np.any(joint.friction.load) for joint in mechanism.joints)
    return None if forced or tied or loaded else base


def falling(mechanism: Mechanism, base: TreeJoint, v: Array, *, domain: Domain) -> tuple[Mechanism, Array]:
    """(the mechanism without gravity, v without u)."""
    still = v.copy()
    still[_moving(base)] = domain.zeros(3)
    return replace(mechanism, gravity=np.zeros(3)), still


def falling_changes(
    mechanism: Mechanism, base: TreeJoint, q: Array, v: Array, *, domain: Domain
) -> tuple[Array, Array]:
    """The derivatives (2) in q and in v, (nv, nv) each."""
    turns, moves = slice(base.v.start, base.v.start + 3), _moving(base)
    R = domain.array(base.rotation) @ base.model.configuration(q[base.q], domain=domain)[0]
    of_q, of_v = domain.zeros(mechanism.nv, mechanism.nv), domain.zeros(mechanism.nv, mechanism.nv)
    of_q[moves, turns] = skew(R.T @ domain.array(mechanism.gravity), domain=domain)
    of_v[moves, turns] = skew(v[moves], domain=domain)
    of_v[moves, moves] = -skew(v[turns], domain=domain)
    return of_q, of_v


def _moving(base: TreeJoint) -> slice:
    """Where u stands."""
    return slice(base.v.start + 3, base.v.stop)


__all__ = ["falling", "falling_changes", "free_base"]
