"""Quadratic programs of a batch: the conditions of Karush, Kuhn and Tucker, and another solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from polybody.coordinates.quadratic import least


def programs(count: int, n: int, rows: int, seed: int, tight: bool = False):
    """Least squares with few rows and a little damping, boxes and oblique bounds; `tight`: many bounds are zero."""
    rng = np.random.default_rng(seed)
    J, e = rng.normal(size=(count, rows, n)), rng.normal(size=(count, rows))
    P = np.swapaxes(J, -1, -2) @ J + 1e-2 * np.eye(n)
    A = np.concatenate([np.broadcast_to(np.eye(n), (count, n, n)), rng.normal(size=(count, 3, n))], axis=1)
    low, high = -0.3 * np.abs(rng.normal(size=(count, n + 3))), 0.3 * np.abs(rng.normal(size=(count, n + 3)))
    if tight:
        high = high * (rng.random(high.shape) < 0.7)
    return P, -(np.swapaxes(J, -1, -2) @ e[..., None])[..., 0], A, low, high


@pytest.mark.parametrize("tight", [False, True])
def test_no_direction_within_the_bounds_is_better(tight):
    """−(P z + c) is a sum of the normals of bounds that are met, with coefficients that are not negative."""
    P, c, A, low, high = programs(60, 6, 3, seed=1, tight=tight)
    z = least(P, c, A, low, high)
    reached = (A @ z[..., None])[..., 0]
    assert (reached <= high + 1e-9).all()
    assert (reached >= low - 1e-9).all()
    met = 0
    for k in range(len(z)):
        upper, lower = reached[k] > high[k] - 1e-7, reached[k] < low[k] + 1e-7
        normals = np.concatenate([A[k][upper], -A[k][lower], np.zeros((1, 6))])
        met += int((upper | lower).any())
        assert nnls(normals.T, -(P[k] @ z[k] + c[k]))[1] < 1e-6
    assert met > 40


def test_a_state_does_not_depend_on_the_others():
    given = programs(40, 7, 4, seed=2)
    whole = least(*given)
    for k in (0, 7, 39):
        np.testing.assert_array_equal(least(*(x[k : k + 1] for x in given))[0], whole[k])


def test_clarabel_finds_the_same():
    clarabel = pytest.importorskip("clarabel")
    from scipy.sparse import csc_matrix

    P, c, A, low, high = programs(25, 8, 5, seed=3)
    z = least(P, c, A, low, high)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    for k in range(len(z)):
        rows, right = csc_matrix(np.concatenate([A[k], -A[k]])), np.concatenate([high[k], -low[k]])
        cones = [clarabel.NonnegativeConeT(len(right))]
        answer = clarabel.DefaultSolver(csc_matrix(np.triu(P[k])), c[k], rows, right, cones, settings).solve()
        np.testing.assert_allclose(z[k], answer.x, atol=1e-7)


def test_bounds_that_leave_nothing_give_no_displacement():
    P, c, A, low, high = programs(5, 4, 4, seed=4)
    np.testing.assert_allclose(least(P, c, A, 0 * low, 0 * high), 0.0, atol=1e-9)
