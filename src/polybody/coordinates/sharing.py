"""Overconstrained systems: more actuators q than coordinates u, and how to share the load (Freeman (4-76)-(4-90)).

With G = [G_u^q] (m×n, m > n) the actuators' loads T_q must satisfy GᵀT_q = T_u (4-80). Those with least T_qᵀWT_q are

    T_q = W⁻¹G(GᵀW⁻¹G)⁻¹ T_u                                                                     (4-85), (4-86)

W = 1 unless given. Any load in the null space of Gᵀ may be added: it squeezes the system and moves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.coordinates.arrays import Dynamics, apply, combine
from polybody.errors import InputError
from polybody.model.arguments import float_array, state_array

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class LoadSharing:
    """How one load T_u is shared: `share` (m×n) and `internal` (m×(m−n)), an orthonormal basis of internal loads."""

    share: Array
    internal: Array

    def loads(self, T_u: Any, internal: Any = None) -> Array:
        """T_q by (4-85), with amounts of internal load added."""
        T_q = apply(self.share, state_array("T_u", T_u, self.share.shape[1]))
        return T_q if internal is None else T_q + apply(
            self.internal, state_array("internal", internal, self.internal.shape[1])
        )

    def arrays(self, dynamics: Dynamics) -> Dynamics:
        """I*_qu, P*_quu and T_q^L by (4-88)-(4-90)."""
        return Dynamics(
            self.share @ dynamics.I, combine(self.share, dynamics.P), self.share @ dynamics.load
        )


def share_load(G: Any, weight: Any = None) -> LoadSharing:
    """Share loads on u among actuators q, q̇ = G u̇; `weight` is m numbers or m×m, positive: what each load costs."""
    G = float_array("G", G)
    if G.ndim != 2 or G.shape[0] < G.shape[1]:
        raise InputError(f"G has shape {G.shape}, wanted m×n with at least as many actuators m as coordinates n")
    m, n = G.shape
    W = np.eye(m) if weight is None else float_array("weight", weight)
    W = np.diag(W) if W.ndim == 1 else W
    if W.shape != (m, m) or np.linalg.eigvalsh((W + W.T) / 2).min() <= 0:
        raise InputError(f"weight must be {m} positive numbers or a positive definite {m}×{m} matrix")
    U, s, _ = np.linalg.svd(G)
    if s[-1] <= 1e-12 * s[0]:
        raise InputError(f"the actuators do not move every coordinate: G has singular values {s}")
    WiG = np.linalg.solve(W, G)
    return LoadSharing(WiG @ np.linalg.inv(G.T @ WiG), U[:, n:])


__all__ = ["LoadSharing", "share_load"]
