"""The conic programme against closed forms: a projection onto positive definite matrices cuts eigenvalues off."""

from __future__ import annotations

import numpy as np
import pytest

from polybody.errors import PolybodyError
from polybody.identification import payload, semidefinite
from polybody.identification.least_squares import Fit
from polybody.identification.semidefinite import pseudo_inertia

#: ‖A x − vec J‖² is the distance of matrices
A = pseudo_inertia(np.eye(10)).reshape(10, 16).T


def indefinite(seed: int) -> np.ndarray:
    J = np.random.default_rng(seed).normal(size=(4, 4))
    J = J + J.T
    assert np.linalg.eigvalsh(J)[0] < -0.1
    return J


def projected(J: np.ndarray, margin: float) -> np.ndarray:
    values, vectors = np.linalg.eigh(J)
    return (vectors * np.maximum(values, margin)) @ vectors.T


@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_bodies_that_can_exist_have_their_eigenvalues_cut_off_at_the_margin(seed: int) -> None:
    parts, margin = [indefinite(seed), indefinite(seed + 10)], 1e-2
    both = np.zeros((32, 20))
    both[:16, :10], both[16:, 10:] = A, A
    found = semidefinite.solve(both, np.concatenate([J.ravel() for J in parts]), [0, 10], margin)
    for x, J in zip(found.reshape(2, 10), parts, strict=True):
        np.testing.assert_allclose(pseudo_inertia(x), projected(J, margin), atol=1e-5)


def test_a_prior_pulls_by_its_weight_and_bounds_hold() -> None:
    """min (x − b)² + w (x − c)² of each number beside the body: (b + w c)/(1 + w), not below zero where bounded."""
    J = 4 * np.eye(4)
    whole, b = np.zeros((19, 13)), np.array([1.0, -2.0, -3.0])
    whole[:16, :10], whole[16:, 10:] = A, np.eye(3)
    weights, centre = np.zeros(13), np.zeros(13)
    weights[10:], centre[10:] = [2.0, 0.5, 1.0], [4.0, 1.0, 1.0]
    found = semidefinite.solve(whole, np.concatenate([J.ravel(), b]), [0], 0.1, [10, 12], weights, centre)
    np.testing.assert_allclose(pseudo_inertia(found[:10]), J, atol=1e-6)
    np.testing.assert_allclose(found[10:], [3.0, -1.0, 0.0], atol=1e-6)


def test_a_payload_that_cannot_exist_becomes_the_nearest_that_can() -> None:
    J = indefinite(3)
    J[3, 3] = 2.0  # its mass
    R = np.zeros((17, 11))
    R[0, 0], R[1:, 1:] = 3.0, A
    z = np.concatenate([[6.0], J.ravel()])
    x = np.linalg.lstsq(R, z, rcond=None)[0]
    fit = Fit(x, np.eye(11), 1.0, R, z, np.ones(1), 1e-3)
    found = payload._existing(fit)
    np.testing.assert_allclose(pseudo_inertia(found), projected(J, 1e-6 * 2.0), atol=1e-4)


def test_no_solution_is_an_error() -> None:
    with pytest.raises(PolybodyError, match="the semidefinite programme has no solution"):
        semidefinite.solve(A, np.full(16, np.nan), [0], 1e-3)
