"""Derivatives of inverse dynamics by hand against jets of its text, and M⁻¹ against M."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polybody.algebra.domains import FLOAT
from polybody.algebra.jets import along
from polybody.formulations import denoc
from polybody.mechanism import kinematics
from trees import coupled_state, random_state, scale


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("state", [random_state, coupled_state])
@pytest.mark.parametrize("loaded", [False, True])
def test_derivatives_by_hand_equal_jets_of_inverse_dynamics(state: Callable[..., Any], seed: int, loaded: bool) -> None:
    mechanism, q, v, a, rng = state(seed)
    loads = (rng.normal(size=(len(mechanism.bodies), 6)),) if loaded else ()

    def text(q, v, a, *loads, domain):
        return denoc.inverse_dynamics(mechanism, q, v, a, *loads, domain=domain)

    unit, still = np.eye(mechanism.nv), np.zeros(mechanism.nv)
    none = tuple(np.zeros_like(load) for load in loads)
    ways = [(kinematics.rate(mechanism, q, e), still, still, *none) for e in unit]
    ways += [(np.zeros(mechanism.nq), e, still, *none) for e in unit]
    ways += [(np.zeros(mechanism.nq), still, e, *none) for e in unit]
    expected = np.array(along(text, (q, v, a, *loads), ways, FLOAT), dtype=float).reshape(3, *unit.shape)
    found = denoc.inverse_dynamics_derivatives(mechanism, q, v, a, *loads)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y.T, rtol=0, atol=2e-13 * scale(expected))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("state", [random_state, coupled_state])
def test_sparse_inverse_times_mass_matrix_is_one(state: Callable[..., Any], seed: int) -> None:
    mechanism, q, *_ = state(seed)
    M, inverse = denoc.mass_matrix(mechanism, q), denoc.inverse_mass_matrix(mechanism, q)
    np.testing.assert_array_equal(inverse, inverse.T)
    np.testing.assert_allclose(M @ inverse, np.eye(mechanism.nv), rtol=0, atol=1e-14 * np.linalg.cond(M))
