"""Taking hold of a moving body: the jump of velocities and the impulses at the grips.

At the instant of capture positions stay and finite forces do nothing. With A = [J −WΦ_o] and I the impulses that the
grips exert on the object (grip axes),

    M (v⁺ − v⁻) = −Aᵀ I,      A v⁺ = 0      ⇒      I = (A M⁻¹ Aᵀ)⁺ A v⁻,    v⁺ = v⁻ − M⁻¹ Aᵀ I

v⁺ is the closed motion nearest to v⁻ in kinetic energy; the energy lost is ½ IᵀA v⁻ = ½ (v⁻ − v⁺)ᵀM(v⁻ − v⁺) ≥ 0.
Momentum of the whole is kept where nothing is fixed to the ground.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def captured(M: Array, A: Array, v: Array) -> tuple[Array, Array, Array]:
    """(v⁺ (..., nv), impulses (..., 6m), energy lost (...)); leading batch dimensions as given."""
    Y = np.linalg.solve(M, np.swapaxes(A, -1, -2))
    apart = (A @ v[..., None])[..., 0]
    inverse = np.linalg.pinv(A @ Y, rcond=1e-12, hermitian=True)
    impulses = (inverse @ apart[..., None])[..., 0]
    after = v - (Y @ impulses[..., None])[..., 0]
    return after, impulses, 0.5 * np.sum(impulses * apart, axis=-1)


__all__ = ["captured"]
