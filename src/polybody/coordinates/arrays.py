"""Transfer of influence coefficients and dynamic arrays from coordinates φ to coordinates u (Freeman, chapter III).

Given G = [G_φ^u] (n×n) and H = [H_φφ^u] (n×n×n), u̇ = G φ̇ and ü = G φ̈ + φ̇ᵀHφ̇:

    [G_u^φ]  = G⁻¹                                                                                     (3-15)
    [H_uu^φ] = −G⁻ᵀ (G⁻¹ • H) G⁻¹                                                                      (3-19)
    [G_u^p]  = G^p G⁻¹,    [H_uu^p] = G⁻ᵀ (H^p − (G^p G⁻¹) • H) G⁻¹          any parameter p    (3-22), (3-26)
    I*_uu    = G⁻ᵀ I* G⁻¹                                                                              (3-34)
    P*_uuu   = G⁻ᵀ (G⁻ᵀ • P* − I*_uu • H) G⁻¹                                                          (3-35)
    T_u^L    = G⁻ᵀ T^L                                                                                 (3-36)

H may be unsymmetric (orientations, quasi-velocities). Arrays may have leading dimensions. `inverse` arguments take G⁻¹,
so that a damped or right inverse can stand in its place.
"""

from __future__ import annotations

import numpy as np

from polybody.constraints.coefficients import combine, sandwich
from polybody.late import dataclass

Array = np.ndarray


def quadratic(x: Array, C: Array, y: Array) -> Array:
    """xᵀ C y plane by plane."""
    return np.einsum("...pmn,...m,...n->...p", C, x, y)


def apply(M: Array, x: Array) -> Array:
    """M x over leading dimensions."""
    return np.einsum("...ij,...j->...i", M, x)


def transposed(M: Array) -> Array:
    return np.swapaxes(M, -1, -2)


def reversed_coefficients(inverse: Array, H: Array) -> tuple[Array, Array]:
    """([G_u^φ], [H_uu^φ]) by (3-15), (3-19)."""
    return inverse, -sandwich(inverse, combine(inverse, H))


def dependent_coefficients(G_p: Array, H_p: Array, inverse: Array, H: Array) -> tuple[Array, Array]:
    """([G_u^p], [H_uu^p]) of a dependent parameter by (3-22), (3-26)."""
    G = G_p @ inverse
    return G, sandwich(inverse, H_p - combine(G, H))


@dataclass(frozen=True, eq=False)
class Dynamics:
    """T = I ü + u̇ᵀPu̇ − load, at one state or a batch of them."""

    I: Array  # the paper's name
    P: Array  # (..., m, m, m), of the velocity products
    load: Array

    def effort(self, velocity: Array, acceleration: Array) -> Array:
        """T by (3-33)."""
        return apply(self.I, acceleration) + quadratic(velocity, self.P, velocity) - self.load

    def transferred(self, inverse: Array, H: Array) -> Dynamics:
        """The same dynamics in new coordinates, by (3-34)-(3-36); `inverse` is G⁻¹, H is that of the new ones."""
        back = transposed(inverse)
        I_new = back @ self.I @ inverse
        P_new = sandwich(inverse, combine(back, self.P) - combine(I_new, H))
        return Dynamics(I_new, P_new, apply(back, self.load))

    def __add__(self, other: Dynamics) -> Dynamics:
        return Dynamics(self.I + other.I, self.P + other.P, self.load + other.load)


__all__ = [
    "Dynamics",
    "apply",
    "combine",
    "dependent_coefficients",
    "quadratic",
    "reversed_coefficients",
    "sandwich",
    "transposed",
]
