"""The decoupled natural orthogonal complement itself: N = N_l N_d, (16) and (17), and the mass matrices M, Ṁ-free.

N_l (6n×6n) is block lower triangular with B_ij between a body and its ancestors, N_d (6n×nv) block diagonal with the
joint maps. Twists are in body axes at the bodies' origins (see `links`). They are for reading and checking; the
recursions never form them.
"""

from __future__ import annotations

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import skew
from polybody.formulations.denoc.links import Crossing, crossings, links
from polybody.formulations.denoc.pivots import body_matrix
from polybody.mechanism.mechanism import GROUND, Mechanism


def propagation(step: Crossing, *, domain: Domain = FLOAT) -> Array:
    """B_ij of (13), in body axes: [Rᵀ 0; −Rᵀ[r] Rᵀ]."""
    R = step.factors[0] @ step.factors[1]
    B = domain.zeros(6, 6)
    B[:3, :3] = B[3:, 3:] = R.T
    B[3:, :3] = -(R.T @ skew(step.r, domain=domain))
    return B


def denoc_matrices(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
    """(N_l, N_d) of (17)."""
    chain = links(mechanism, domain=domain)
    across = crossings(mechanism, chain, q, domain=domain)
    n = len(chain)
    N_l, N_d = domain.eye(6 * n), domain.zeros(6 * n, mechanism.nv)
    for joint in mechanism.joints:
        i, j = joint.index, joint.parent
        N_d[6 * i : 6 * i + 6, joint.v] = across[i].H
        if j != GROUND:
            B = propagation(across[i], domain=domain)
            N_l[6 * i : 6 * i + 6, : 6 * i] = B @ N_l[6 * j : 6 * j + 6, : 6 * i]
    return N_l, N_d


def generalized_mass(mechanism: Mechanism, *, domain: Domain = FLOAT) -> Array:
    """M = diag[M_1 … M_n] of (4), about the bodies' origins."""
    chain = links(mechanism, domain=domain)
    M = domain.zeros(6 * len(chain), 6 * len(chain))
    for i, one in enumerate(chain):
        M[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = body_matrix(one, domain=domain)
    return M


__all__ = ["denoc_matrices", "generalized_mass", "propagation"]
