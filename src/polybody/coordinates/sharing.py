"""Overconstrained systems: more actuators q than coordinates u, and how to share the load (Freeman (4-76)-(4-90)).

With G = [G_u^q] (m×n, m > n) the actuators' loads T_q must satisfy GᵀT_q = T_u (4-80). Those with least T_qᵀWT_q are

    T_q = W⁻¹G(GᵀW⁻¹G)⁻¹ T_u                                                                     (4-85), (4-86)

W = 1 unless given. Any load in the null space of Gᵀ may be added: it squeezes the system and moves nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.coordinates.arrays import Dynamics, apply, combine
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.model.arguments import float_array, state_array

Array = np.ndarray
PENALTY = 1e6  # of a load that is not balanced, against its cost


@dataclass(frozen=True, eq=False)
class LoadSharing:
    """Distribution of a load T_u: `share` (m×n), and `internal` (m×(m−n)), an orthonormal basis of internal loads."""

    share: Array
    internal: Array
    G: Array  # T_u = Gᵀ T_q
    weight: Array  # W of T_qᵀWT_q

    def within(self, T_u: Any, limits: Any) -> Array:
        """T_q with least T_qᵀWT_q among those that no actuator's effort limit (m numbers, or (m, 2) bounds) forbids.

        Actuators at their limits give what they can, the others share the rest; where all together cannot bear the
        load an `InputError` says so. Infinite limits bind nobody.
        """
        wanted = state_array("T_u", T_u, self.share.shape[1])
        m = len(self.G)
        ends = float_array("limits", limits)
        if ends.shape == (m,):
            ends = np.column_stack([-ends, ends])
        if ends.shape != (m, 2) or not (ends[:, 0] <= ends[:, 1]).all():
            raise InputError(f"limits has shape {ends.shape}, expected ({m},) or ({m}, 2) with lower ends first")
        flat = [self._bounded(one, ends) for one in wanted.reshape(-1, wanted.shape[-1])]
        return np.array(flat).reshape(*wanted.shape[:-1], m)

    def _bounded(self, T_u: Array, ends: Array) -> Array:
        """Bounded least squares with a heavy penalty on the balance find who is at a limit; the rest is then exact."""
        from scipy.optimize import lsq_linear

        root, heavy = np.linalg.cholesky(self.weight).T, PENALTY * float(np.sqrt(np.abs(self.weight).max()))
        rows = np.concatenate([root, heavy * self.G.T / np.linalg.norm(self.G)])
        right = np.concatenate([np.zeros(len(root)), heavy * T_u / np.linalg.norm(self.G)])
        narrow = ends[:, 1] - ends[:, 0] <= 0
        open_ends = np.where(narrow, ends[:, 1] + 1e-12, ends[:, 1])  # the solver wants room between the ends
        found = lsq_linear(rows, right, (ends[:, 0], open_ends), method="bvls", tol=1e-15)
        T, free = found.x, np.flatnonzero(found.active_mask == 0)
        fixed = np.flatnonzero(found.active_mask != 0)
        # least cost of the free ones under exact balance: W T + G λ = 0 there
        n, k = len(T_u), len(free)
        K = np.zeros((k + n, k + n))
        K[:k, :k], K[:k, k:], K[k:, :k] = self.weight[np.ix_(free, free)], self.G[free], self.G[free].T
        load = np.concatenate([-self.weight[np.ix_(free, fixed)] @ T[fixed], T_u - self.G[fixed].T @ T[fixed]])
        T[free] = np.linalg.lstsq(K, load, rcond=None)[0][:k]
        size = 1e-9 * (1 + np.abs(T_u).max(initial=0.0))
        off = np.abs(self.G.T @ T - T_u).max(initial=0.0) > size
        if off or np.maximum(ends[:, 0] - T, T - ends[:, 1]).max(initial=0.0) > size:
            raise InputError(f"the actuators cannot bear the load {T_u} within their limits {ends.tolist()}")
        return T

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
    """Distribute loads on the coordinates u among actuators q with q̇ = G u̇, by weighted least squares.

    `weight` is the cost of each actuator load: m numbers or m×m, positive definite.
    """
    G = float_array("G", G)
    if G.ndim != 2 or G.shape[0] < G.shape[1]:
        raise InputError(f"G has shape {G.shape}, expected m×n with at least as many actuators m as coordinates n")
    m, n = G.shape
    W = np.eye(m) if weight is None else float_array("weight", weight)
    W = np.diag(W) if W.ndim == 1 else W
    if W.shape != (m, m) or np.linalg.eigvalsh((W + W.T) / 2).min() <= 0:
        raise InputError(f"weight must be {m} positive numbers or a positive definite {m}×{m} matrix")
    U, s, _ = np.linalg.svd(G)
    if s[-1] <= 1e-12 * s[0]:
        raise InputError(f"the actuators do not move every coordinate: G has singular values {s}")
    WiG = np.linalg.solve(W, G)
    return LoadSharing(WiG @ np.linalg.inv(G.T @ WiG), U[:, n:], G, W)


__all__ = ["LoadSharing", "share_load"]
