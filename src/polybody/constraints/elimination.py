"""Minimal coordinates by a fixed elimination, over any domain: the text of the compiled closed-loop kernels.

Gauss' elimination of [J | γ] along the plan's pivots gives, from the last pivot back,

    φ̇_d = T u̇,      φ̈_d = T ü + β_d              for every dependent d; G = [1; T], and with it

    M* = Gᵀ M G,    M* ü = Gᵀ (tau − ID(q, v, β)),    a = G ü + β

ID(q, v, β) = M β + C v + g − passive − Σ Jᵀw is one pass of inverse dynamics. Known zeros are skipped, so that the cost
follows the mechanism's structure: legs, branches, chains of loops. Beside the answer three numbers tell whether it may
be believed: `growth`, the sum of (row/pivot)² over the pivots, which is large where the chosen coordinates are not
independent; `narrow`, the sum of (size in general position/row)², which is large near singular configurations, where
nearly nothing is left of a row; and `leftover`, the square of what is left of rows that are redundant elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.constraints.plan import Plan
from polybody.constraints.system import Constraints
from polybody.formulations import denoc
from polybody.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Followed:
    """v = G u̇ and a = G ü + β, with the measures of trust."""

    G: Array  # nv × m
    beta: Array  # nv
    growth: Any
    leftover: Any
    narrow: Any
    turns: Array  # 2×pivots: over the size of their rows, the pivots, and what else is in the rows, weighted


def eliminate(J: Array, gamma: Array | None, plan: Plan, domain: Domain) -> Followed:
    """G, β from J and γ (None: zero) along the plan."""
    m, n = J.shape
    zero = domain.const(0)
    rows: list[dict[int, Any]] = [
        {j: J[i, j] for j in range(n) if not domain.is_zero(J[i, j])} for i in range(m)
    ]
    right: list[Any] = [zero] * m if gamma is None else [gamma[i] for i in range(m)]
    growth = narrow = zero
    turns = domain.zeros(2, len(plan.pivots))
    open_rows = set(range(m))
    for k, (i, j) in enumerate(plan.pivots):
        open_rows.discard(i)
        pivot = rows[i][j]
        size = _squares(rows[i].values(), zero)
        growth = growth + size / (pivot * pivot)
        narrow = narrow + domain.const(plan.sizes[k] ** 2) / size
        turns[:, k] = _told(rows[i], j) / domain.sqrt(size)
        inverse = domain.const(1) / pivot
        for r in open_rows:
            if j not in rows[r]:
                continue
            factor = rows[r].pop(j) * inverse
            for c, value in rows[i].items():
                if c != j:
                    rows[r][c] = rows[r][c] - factor * value if c in rows[r] else -(factor * value)
            if not domain.is_zero(right[i]):
                right[r] = right[r] - factor * right[i]
    leftover = zero
    for r in plan.redundant:
        leftover = leftover + _squares(rows[r].values(), zero)
    place = {c: k for k, c in enumerate(plan.independent)}
    G, beta = domain.zeros(n, len(place)), domain.zeros(n)
    for c, k in place.items():
        G[c, k] = domain.const(1)
    for i, j in reversed(plan.pivots):
        scale = domain.const(-1) / rows[i][j]
        total, drift = domain.zeros(len(place)), right[i]
        for c, value in rows[i].items():
            if c == j:
                continue
            for k in range(len(place)):
                if not domain.is_zero(G[c, k]):
                    total[k] = total[k] + value * G[c, k]
            if not domain.is_zero(beta[c]):
                drift = drift + value * beta[c]
        for k in range(len(place)):
            if not domain.is_zero(total[k]):
                G[j, k] = total[k] * scale
        beta[j] = drift * scale
    return Followed(G, beta, growth, leftover, narrow, turns)


def _told(row: dict[int, Any], pivot: int) -> Array:
    """[the pivot, all others of its row in one number that no usual relation between them makes vanish]."""
    others = [value * (1.0 + (0.618 * c) % 1.0) for c, value in row.items() if c != pivot]
    return np.array([row[pivot], sum(others[1:], others[0]) if others else row[pivot]], dtype=object)


def _squares(values: Any, zero: Any) -> Any:
    total = zero
    for value in values:
        total = total + value * value
    return total


def sandwiched(G: Array, M: Array, domain: Domain) -> Array:
    """Gᵀ M G for symmetric M, known zeros skipped."""
    n, m = G.shape
    filled = [[k for k in range(m) if not domain.is_zero(G[i, k])] for i in range(n)]
    MG = domain.zeros(n, m)
    for i in range(n):
        for j in range(n):
            if not domain.is_zero(M[i, j]):
                for k in filled[j]:
                    MG[i, k] = MG[i, k] + M[i, j] * G[j, k]
    result = domain.zeros(m, m)
    for i in range(n):
        for k in filled[i]:
            for c in range(k, m):
                if not domain.is_zero(MG[i, c]):
                    result[k, c] = result[k, c] + G[i, k] * MG[i, c]
    for k in range(m):
        for c in range(k):
            result[k, c] = result[c, k]
    return result


def carried_back(G: Array, force: Array, domain: Domain) -> Array:
    """Gᵀ f."""
    result = domain.zeros(G.shape[1])
    for i in range(G.shape[0]):
        for k in range(G.shape[1]):
            if not domain.is_zero(G[i, k]):
                result[k] = result[k] + G[i, k] * force[i]
    return result


def carried_out(G: Array, u: Array, start: Array, domain: Domain) -> Array:
    """G u + start."""
    result = start.copy()
    for i in range(G.shape[0]):
        for k in range(G.shape[1]):
            if not domain.is_zero(G[i, k]):
                result[i] = result[i] + G[i, k] * u[k]
    return result


def trust(system: Constraints, q: Array, v: Array, found: Followed, domain: Domain) -> Array:
    """[‖φ‖², ‖J v‖², growth, leftover, narrow]: what the façade looks at before it believes a state."""
    phi, gap = system.residual(q, domain=domain), system.velocity(q, v, domain=domain)
    zero = domain.const(0)
    measures = [_squares(phi, zero), _squares(gap, zero), found.growth, found.leftover, found.narrow]
    return np.array(measures, dtype=domain.dtype)


def forward(
    tree: Mechanism, system: Constraints, plan: Plan, q: Array, v: Array, tau: Array, wrenches: Array | None,
    *, domain: Domain,
) -> tuple[Array, Array]:
    """(a, trust) under tau; wrenches (bodies, 6)."""
    J, gamma = system.jacobian(q, domain=domain), system.bias(q, v, domain=domain)
    found = eliminate(J, gamma, plan, domain)
    needed = denoc.inverse_dynamics(tree, q, v, found.beta, wrenches, domain=domain)
    M = sandwiched(found.G, denoc.mass_matrix(tree, q, domain=domain), domain)
    force = carried_back(found.G, tau - needed, domain)
    u = domain.solve(M, force) if len(force) else force
    return carried_out(found.G, u, found.beta, domain), trust(system, q, v, found, domain)


def way_back(
    system: Constraints, plan: Plan, q: Array, v: Array, *, domain: Domain
) -> tuple[Array, Array, Array, Array]:
    """(step, speed, [‖φ‖², growth, narrow], turns): so that φ + J step = 0, J (v + speed) = 0."""
    J = system.jacobian(q, domain=domain)
    phi = system.residual(q, domain=domain)
    position = eliminate(J, phi, plan, domain)
    speed = eliminate(J, system.velocity(q, v, domain=domain), plan, domain)
    measures = np.array([_squares(phi, domain.const(0)), position.growth, position.narrow], dtype=domain.dtype)
    return position.beta, speed.beta, measures, position.turns


def inverse(
    tree: Mechanism, system: Constraints, plan: Plan, shares: Plan, driven: tuple[int, ...],
    q: Array, v: Array, a: Array, wrenches: Array | None, *, domain: Domain,
) -> tuple[Array, Array]:
    """(tau at the driven velocities, trust with ‖J a + γ‖² as well) where they are as many as the mobility, or more.

    Exact: G_Aᵀ τ = Gᵀ ID by the plan `shares` of that matrix; redundant: the least τ = G_A (G_AᵀG_A)⁻¹ Gᵀ ID.
    """
    J, gamma = system.jacobian(q, domain=domain), system.bias(q, v, domain=domain)
    found = eliminate(J, None, plan, domain)
    needed = denoc.inverse_dynamics(tree, q, v, a, wrenches, domain=domain)
    force = carried_back(found.G, needed, domain)
    GA = found.G[list(driven)]
    tau = domain.zeros(tree.nv)
    measures = trust(system, q, v, found, domain)
    if len(driven) == len(force):
        answer = eliminate(GA.T, -force, shares, domain)
        tau[list(driven)] = answer.beta
        measures[2] = measures[2] + answer.growth
    else:
        tau[list(driven)] = GA @ domain.solve(GA.T @ GA, force)
    # Where the drives cannot do it, what they would need is out of all proportion: (‖τ‖ ‖G‖ / ‖Gᵀ ID‖)².
    zero = domain.const(0)
    asked = _squares(force, domain.const(1e-200))
    measures[2] = measures[2] + _squares(tau, zero) * _squares(found.G.ravel(), zero) / asked
    gap = J @ a + gamma
    return tau, np.array([*measures, _squares(gap, domain.const(0))], dtype=domain.dtype)


__all__ = ["Followed", "eliminate", "forward", "inverse", "sandwiched", "trust", "way_back"]
