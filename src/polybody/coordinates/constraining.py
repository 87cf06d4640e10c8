"""Constraining by transfer: loops and parallel legs from open chains (Freeman (4-8)-(4-64)), at given states.

One loop. The chain's end e (N numbers) is augmented by M − N of its own coordinates α to w = (α, e); after the transfer
φ → w some of w are held (c), the others are free (y):

    [T_y; T_c] = I*_w· ẅ + ẇᵀP*ẇ − T_w^L   with ċ = c̈ = 0                                          (4-24)-(4-31)

The rows y are the constrained mechanism, the rows c its constraint loads. Transferring y → q puts the actuators where
they are (4-39)-(4-41).

Legs. Each leg is transferred to the platform's motion w, and the legs and the platform are summed (4-42)-(4-54); rows
of the legs' own [G_w^φ] and planes of [H_ww^φ] then make up the actuators' coefficients (4-55)-(4-64). The platform's
motion is [angular; linear] here (the paper has it the other way round).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.algebra.rotations import skew
from polybody.coordinates.arrays import Dynamics, apply, quadratic, reversed_coefficients
from polybody.coordinates.conditioning import CONDITION_LIMIT, inverse
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.model.arguments import float_array

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Augmented:
    """The coordinates w = (chosen φ, end) of a chain: [G_φ^w], [H_φφ^w] by (4-11), (4-15)."""

    G: Array
    H: Array


def augmented(G_end: Any, H_end: Any, kept: Sequence[int] = ()) -> Augmented:
    """w = (kept φ, e): `kept` are the chain's coordinates that stay, one for each that e does not fix."""
    G_end, H_end = float_array("G_end", G_end), float_array("H_end", H_end)
    N, M = G_end.shape
    if len(kept) != M - N:
        raise InputError(f"the end has {N} coordinates and the chain {M}: {M - N} must be kept, got {len(kept)}")
    if len(set(kept)) != len(kept) or not all(0 <= k < M for k in kept):
        raise InputError(f"kept is {tuple(kept)}, expected {M - N} different indices from 0 to {M - 1}")
    G = np.vstack([np.eye(M)[list(kept)], G_end])
    return Augmented(G, np.concatenate([np.zeros((len(kept), M, M)), H_end]))


def transferred_chain(
    dynamics: Dynamics, w: Augmented, *, limit: float = CONDITION_LIMIT
) -> tuple[Dynamics, Array, Array]:
    """(dynamics in w, [G_w^φ], [H_ww^φ]) by (4-18)-(4-28)."""
    n = len(w.G)
    Gi = inverse(w.G, [f"w_{k}" for k in range(n)], [f"φ_{k}" for k in range(n)], limit=limit)
    back, bend = reversed_coefficients(Gi, w.H)
    return dynamics.transferred(Gi, w.H), back, bend


@dataclass(frozen=True, eq=False)
class Constrained:
    """Dynamics in w with some of w held: `free` is the constrained mechanism's own model (4-32)."""

    whole: Dynamics
    free_indices: tuple[int, ...]
    held_indices: tuple[int, ...]

    @property
    def free(self) -> Dynamics:
        """I*_yy, P*_yyy, T_y^L."""
        y = list(self.free_indices)
        return Dynamics(self.whole.I[np.ix_(y, y)], self.whole.P[np.ix_(y, y, y)], self.whole.load[y])

    def constraint_loads(self, y_dot: Any, y_ddot: Any) -> Array:
        """T_c: what holds the constrained coordinates (4-31)."""
        rates = [np.zeros(len(self.whole.load)) for _ in range(2)]
        for full, given in zip(rates, (y_dot, y_ddot), strict=True):
            full[list(self.free_indices)] = given
        return self.whole.effort(*rates)[list(self.held_indices)]

    def coefficients(self, G_w: Any, H_ww: Any) -> tuple[Array, Array]:
        """A parameter's coefficients over the free coordinates: their columns (4-33), (4-34)."""
        y = list(self.free_indices)
        return np.asarray(G_w)[:, y], np.asarray(H_ww)[np.ix_(range(len(H_ww)), y, y)]


def constrained(dynamics: Dynamics, held: Sequence[int]) -> Constrained:
    """Hold the coordinates of these indices."""
    n = len(dynamics.load)
    if not held or not all(0 <= k < n for k in held) or len(set(held)) != len(held):
        raise InputError(f"held is {tuple(held)}, expected different indices from 0 to {n - 1}")
    free = tuple(k for k in range(n) if k not in set(held))
    return Constrained(dynamics, free, tuple(held))


def platform(mass: float, inertia: Any, load: Any = None) -> Dynamics:
    """A rigid body in its own motion [ω; ċ], inertia about the mass centre in world axes (4-50)-(4-54)."""
    J = float_array("inertia", inertia)
    I = np.zeros((*J.shape[:-2], 6, 6))
    I[..., :3, :3], I[..., 3:, 3:] = J, mass * np.eye(3)
    P = np.zeros((*J.shape[:-2], 6, 6, 6))
    for m in range(3):
        P[..., :3, m, :3] = skew(np.eye(3)[m]) @ J  # ω × J ω
    return Dynamics(I, P, np.zeros(6) if load is None else float_array("load", load))


def sum_of_legs(legs: Sequence[Dynamics], body: Dynamics | None = None) -> Dynamics:
    """All legs and the platform in one motion w (4-48), (4-49)."""
    if not legs:
        raise InputError("a platform needs at least one leg")
    total = legs[0]
    for leg in legs[1:]:
        total = total + leg
    return total if body is None else total + body


def actuator_coefficients(
    legs: Sequence[tuple[Array, Array]], actuators: Sequence[tuple[int, int]]
) -> tuple[Array, Array]:
    """[G_w^q], [H_ww^q] of the joints (leg, index) that are driven, from the legs' [G_w^φ], [H_ww^φ] (4-56)-(4-60)."""
    for leg, joint in actuators:
        if not 0 <= leg < len(legs) or not 0 <= joint < legs[leg][0].shape[-2]:
            counts = [G.shape[-2] for G, _ in legs]
            raise InputError(f"no joint {joint} of leg {leg}; the legs have {counts} joints")
    G = np.stack([legs[r][0][..., m, :] for r, m in actuators], axis=-2)
    return G, np.stack([legs[r][1][..., m, :, :] for r, m in actuators], axis=-3)


def driven(dynamics: Dynamics, G: Array, H: Array, *, limit: float = CONDITION_LIMIT) -> tuple[Dynamics, Array, Array]:
    """(dynamics at the actuators q, [G_q^w], [H_qq^w]) by (4-61)-(4-64), from [G_w^q] and [H_ww^q]."""
    n = G.shape[-2]
    Gi = inverse(G, [f"q_{k}" for k in range(n)], [f"w_{k}" for k in range(n)], limit=limit)
    back, bend = reversed_coefficients(Gi, H)
    return dynamics.transferred(Gi, H), back, bend


def end_motion(G: Array, H: Array, v: Array, a: Array) -> tuple[Array, Array]:
    """(u̇, ü) of a parameter with these coefficients."""
    return apply(G, v), apply(G, a) + quadratic(v, H, v)


__all__ = [
    "Augmented",
    "Constrained",
    "actuator_coefficients",
    "augmented",
    "constrained",
    "driven",
    "end_motion",
    "platform",
    "sum_of_legs",
    "transferred_chain",
]
