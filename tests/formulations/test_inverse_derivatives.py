"""Derivatives of inverse dynamics by hand against jets of its text, and M⁻¹ against M."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polybody.algebra.domains import FLOAT
from polybody.algebra.jets import BundleDomain
from polybody.formulations import denoc
from polybody.mechanism import kinematics
from trees import coupled_state, random_state, scale


@pytest.mark.parametrize(("seed", "loaded"), [(seed, bool(seed % 2)) for seed in range(8)])
@pytest.mark.parametrize("state", [random_state, coupled_state])
def test_derivatives_by_hand_equal_jets_of_inverse_dynamics(state: Callable[..., Any], seed: int, loaded: bool) -> None:
    mechanism, q, v, a, rng = state(seed)
    loads = (rng.normal(size=(len(mechanism.bodies), 6)),) if loaded else ()

    # all 3 nv directions at once: along q, then v, then a
    nv, unit = mechanism.nv, np.eye(mechanism.nv)
    jets = BundleDomain(FLOAT, 3 * nv)
    turned = np.column_stack([kinematics.rate(mechanism, q, e) for e in unit])
    moved = jets.lift(q, np.hstack([turned, np.zeros((mechanism.nq, 2 * nv))]))
    faster = jets.lift(v, np.hstack([np.zeros((nv, nv)), unit, np.zeros((nv, nv))]))
    pushed = jets.lift(a, np.hstack([np.zeros((nv, 2 * nv)), unit]))
    still = tuple(jets.lift(load, np.zeros((*load.shape, 3 * nv))) for load in loads)
    expected = jets.rates(denoc.inverse_dynamics(mechanism, moved, faster, pushed, *still, domain=jets)).astype(float)
    found = denoc.inverse_dynamics_derivatives(mechanism, q, v, a, *loads)
    for x, y in zip(found, np.split(expected, 3, axis=1), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=2e-13 * scale(expected))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("state", [random_state, coupled_state])
def test_sparse_inverse_times_mass_matrix_is_one(state: Callable[..., Any], seed: int) -> None:
    mechanism, q, *_ = state(seed)
    M, inverse = denoc.mass_matrix(mechanism, q), denoc.inverse_mass_matrix(mechanism, q)
    np.testing.assert_array_equal(inverse, inverse.T)
    np.testing.assert_allclose(M @ inverse, np.eye(mechanism.nv), rtol=0, atol=1e-14 * np.linalg.cond(M))
