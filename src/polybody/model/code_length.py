"""Whether quantities of a mechanism with loops have code of reasonable length.

Along a plan of elimination all is straight-line code. With nv velocities and m motions that pass, the largest part of
it is the inertia of these motions, Gᵀ M G and its factors: up to nv m² operations. Where many loops leave few motions
(rows of four-bars, lattices) it grows with nv alone. Measured, accelerations in steps of a run by rk4: a row of 160
four-bars (nv = 321, m = 1) is traced in 1.4 s and takes 0.7 ms per step, by singular values 3 s. A closed chain of 100
links (m = 98) is traced in 5 s and 0.7 GB, and eight times that would be needed for 200.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polybody.constraints.ranks import ranks

Array = np.ndarray

#: velocities up to which code is always made, and up to which it is if nv m² is no more than that
ALWAYS_UP_TO, AT_MOST, OPERATIONS_UP_TO = 300, 1000, 1_000_000
#: what rows of constraints bear: the least of it, where rows are redundant, takes the square of their number (25 s of
#: tracing for that row of four-bars, by singular values 1 s per state)
BORNE = ("reactions", "constraint_loads", "coupling_forces")


def is_short(nv: int, motions: Callable[[], int]) -> bool:
    """Whether code is made for nv velocities; `motions()` is m, asked for where it matters."""
    if nv <= ALWAYS_UP_TO:
        return nv > 0
    return nv <= AT_MOST and nv * motions() ** 2 <= OPERATIONS_UP_TO


def is_short_for(name: str, nv: int) -> bool:
    """Whether a quantity's own code is made where others' is."""
    return nv <= ALWAYS_UP_TO or name.partition(":")[0] not in BORNE


def motions_somewhere(
    jacobian: Callable[[Array], Array], integrate: Callable[[Array, Array], Array], q: Array, nv: int
) -> int:
    """How many motions pass at a place in general position, which need not be assembled: hardly ever another number
    than on the loops, and found without closing them."""
    place = integrate(q, np.random.default_rng(7).uniform(-0.5, 0.5, nv))
    return nv - int(ranks(jacobian(place)))


__all__ = ["is_short", "is_short_for", "motions_somewhere"]
