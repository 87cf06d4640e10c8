"""What joints add to the forces of the bodies, as columns that are linear in their coefficients.

    armature  a             viscous  v            coulomb  tanh(v/u_0)      offset  1
    quadratic  v |v|        stribeck  exp(−(v/u_s)²) tanh(v/u_0)            load  |τ_b| tanh(v/u_0)

The first, second, third and sixth are the law of `mechanism.friction`. `offset` beside `coulomb` is friction that
differs with the direction, and sensor offsets; `quadratic` the bend of friction against speed that lubricants and
harmonic drives show; `load` friction in proportion to what the gear transmits, τ_b the joint force of the bodies by
the estimate itself. The speeds u_0 and u_s are given as parts of each joint's usual top speed (98 % of samples are
below it).
"""

from __future__ import annotations

import numpy as np

from polybody.late import dataclass

Array = np.ndarray

#: terms that `model.regressor` has columns for, then those only data need
PLAIN = ("armature", "viscous", "coulomb", "offset")
MORE = ("quadratic", "stribeck", "load")
ALL = (*PLAIN, *MORE)
#: coefficients that cannot be negative
POSITIVE = ("armature", "viscous", "coulomb", "stribeck", "load")


@dataclass(frozen=True, eq=False)
class Speeds:
    """u_0 and u_s of each velocity."""

    regularisation: Array
    stribeck: Array


def top_speeds(v: Array) -> Array:
    """98 % of the samples of each velocity are slower."""
    return np.maximum(np.percentile(np.abs(v), 98, axis=0), 1e-9)


def term_values(term: str, v: Array, a: Array, speeds: Speeds, load: Array) -> Array:
    """(N, velocities): what a unit of the coefficient adds to each joint force."""
    direction = np.tanh(v / speeds.regularisation)
    if term == "armature":
        return a
    if term == "viscous":
        return v
    if term == "coulomb":
        return direction
    if term == "offset":
        return np.ones_like(v)
    if term == "quadratic":
        return v * np.abs(v)
    if term == "stribeck":
        return direction * np.exp(-((v / speeds.stribeck) ** 2))
    assert term == "load"
    return direction * np.abs(load)


__all__ = ["ALL", "MORE", "PLAIN", "POSITIVE", "Speeds", "term_values", "top_speeds"]
