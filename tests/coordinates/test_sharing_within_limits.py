"""Loads shared among actuators that have limits: the least that no limit forbids."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import polybody as pb
from polybody.coordinates.sharing import share_load


@pytest.mark.parametrize("seed", range(6))
def test_shared_loads_within_limits_are_the_least_that_bear_the_load(seed: int) -> None:
    rng = np.random.default_rng(seed)
    G, weight = rng.normal(size=(6, 3)), rng.uniform(0.5, 3, size=6)
    sharing = share_load(G, weight)
    T_u = rng.normal(size=3)
    free = sharing.loads(T_u)
    np.testing.assert_allclose(sharing.within(T_u, np.full(6, np.inf)), free, atol=1e-12)
    # the least limit that can bear it, by a linear program in (T, limit); ours lies between it and what nobody needs
    rows = np.block([[np.eye(6), -np.ones((6, 1))], [-np.eye(6), -np.ones((6, 1))]])
    least = linprog([0] * 6 + [1], rows, np.zeros(12), np.column_stack([G.T, np.zeros(3)]), T_u, [(None, None)] * 7).fun
    limits = (0.4 * least + 0.6 * np.abs(free).max()) * np.ones(6)
    found = sharing.within(T_u, limits)
    np.testing.assert_allclose(G.T @ found, T_u, atol=1e-9)
    assert (np.abs(found) <= limits + 1e-12).all()
    best = minimize(lambda T: T @ (weight * T), free, jac=lambda T: 2 * weight * T, method="SLSQP",
                    bounds=list(zip(-limits, limits, strict=True)), options={"ftol": 1e-14, "maxiter": 500},
                    constraints={"type": "eq", "fun": lambda T: G.T @ T - T_u, "jac": lambda T: G.T})  # fmt: skip
    assert found @ (weight * found) == pytest.approx(best.fun, rel=1e-6)
    with pytest.raises(pb.InputError, match="cannot bear the load"):
        sharing.within(T_u, 0.99 * least * np.ones(6))
    with pytest.raises(pb.InputError, match="limits has shape"):
        sharing.within(T_u, np.ones(4))
