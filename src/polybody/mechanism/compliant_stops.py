"""Compliant stops of joints, over any domain: one-sided springs beyond the limits.

With δ how far a coordinate is beyond its limit and δ̇ its rate, k `stiffness` and c `damping` of the limits,

    f = k δ max(0, 1 + c δ̇)   where δ > 0, else 0,     towards the inside                              (1)

(Hunt and Crossley's damping, which vanishes at first touch and never pulls). It stores ½ k δ². Stops without
stiffness are rigid: `simulation.stops`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.description.records import Limits


def compliant(limits: Limits) -> bool:
    """Whether any of the limits is a compliant stop."""
    return limits.stiffness is not None and bool(np.any(limits.stiffness))


def positive_part(x: Any, domain: Domain) -> Any:
    zero = domain.const(0)
    return domain.where(domain.less(zero, x), x, zero)


def stop_forces(limits: Limits, q: Array, v: Array | None, *, domain: Domain = FLOAT) -> Array:
    """(1) along each coordinate; without damping where v is None."""
    force = domain.zeros(len(q))
    assert limits.stiffness is not None
    for k in range(len(q)):
        damping = 0.0 if limits.damping is None else float(limits.damping[k])
        for bound, side in ((limits.lower[k], -1.0), (limits.upper[k], 1.0)):
            if not np.isfinite(bound) or not limits.stiffness[k]:
                continue
            push = positive_part((q[k] - domain.const(bound)) * domain.const(side), domain)
            push = push * domain.const(limits.stiffness[k])
            if v is not None and damping:
                push = push * positive_part(domain.const(1) + v[k] * domain.const(side * damping), domain)
            force[k] = force[k] - push * domain.const(side)
    return force


def stop_energy(limits: Limits, q: Array, *, domain: Domain = FLOAT) -> Any:
    """½ k δ² over all limits."""
    energy = domain.const(0)
    assert limits.stiffness is not None
    for k in range(len(q)):
        for bound, side in ((limits.lower[k], -1.0), (limits.upper[k], 1.0)):
            if np.isfinite(bound) and limits.stiffness[k]:
                beyond = positive_part((q[k] - domain.const(bound)) * domain.const(side), domain)
                energy = energy + beyond * beyond * domain.const(0.5 * limits.stiffness[k])
    return energy


__all__ = ["compliant", "positive_part", "stop_energy", "stop_forces"]
