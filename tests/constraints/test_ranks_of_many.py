"""`ranks` counts what `ranked_svd` keeps, and `model.constraints.rank` answers large batches in pieces."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.constraints.ranks import newton_step, pseudo_inverse, ranked_svd, ranks


def test_ranks_are_the_singular_values_that_ranked_svd_keeps():
    rng = np.random.default_rng(0)
    for m, n, r in [(5, 3, 3), (3, 5, 2), (6, 6, 4), (4, 4, 0)]:
        J = rng.normal(size=(7, m, r)) @ rng.normal(size=(7, r, n))
        assert np.array_equal(ranks(J), np.full(7, r))
        assert np.array_equal(ranks(J), ranked_svd(J)[3].sum(axis=-1))


@pytest.mark.parametrize("shape", [(2, 0, 3), (2, 3, 0), (0, 4)])
def test_matrices_without_entries_have_rank_zero(shape: tuple[int, ...]):
    assert np.array_equal(ranks(np.zeros(shape)), np.zeros(shape[:-2]))


def test_rank_of_a_large_batch_is_that_of_its_states():
    model = pb.load("stewart")
    q = model.random_configuration(0, size=700)
    flat = model.assemble()
    q[350] = flat
    found = model.constraints.rank(q.reshape(7, 100, -1))
    assert found.shape == (7, 100)
    alone = [int(model.constraints.rank(q[k])) for k in (0, 349, 350, 699)]
    assert found.ravel()[[0, 349, 350, 699]].tolist() == alone


def test_ranks_of_many_matrices_are_those_of_each_near_and_far_from_full_rank():
    """From 16 matrices on most are decided by inverses: singular values from 1 down to below and above the bound."""
    rng = np.random.default_rng(1)
    for m, n in [(6, 9), (9, 6), (7, 7)]:
        k = min(m, n)
        U, V = (np.linalg.qr(rng.normal(size=(60, size, size)))[0] for size in (m, n))
        least = np.geomspace(1.0, 1e-13, 60)
        s = np.ones((60, k))
        s[:, -1] = least
        s[30:, -2] = least[30:]
        J = (U[:, :, :k] * s[:, None]) @ V[:, :k]
        expected = np.array([int(ranked_svd(one)[3].sum()) for one in J])
        assert {k, k - 2} <= set(expected.tolist())
        assert np.array_equal(ranks(J), expected)
        assert np.array_equal(ranks(J.reshape(6, 10, m, n)), expected.reshape(6, 10))
        J[20] = 0.0
        assert ranks(J)[20] == 0
        assert np.array_equal(np.delete(ranks(J), 20), np.delete(expected, 20))


def test_newton_steps_of_many_are_those_of_the_pseudo_inverse_near_and_far_from_full_rank() -> None:
    """From 16 matrices on squares give them; where these are unsure, or rows are fewer, singular values do."""
    rng = np.random.default_rng(2)
    for m, n in [(9, 6), (7, 7), (6, 9)]:
        k = min(m, n)
        U, V = (np.linalg.qr(rng.normal(size=(40, size, size)))[0] for size in (m, n))
        s = np.ones((40, k))
        s[:, -1] = np.geomspace(1.0, 1e-13, 40)
        J = (U[:, :, :k] * s[:, None]) @ V[:, :k]
        phi = rng.normal(size=(40, m))
        for some in (slice(None), slice(0, 5)):
            expected = -(pseudo_inverse(J[some]) @ phi[some, :, None])[..., 0]
            sizes = np.linalg.norm(expected, axis=-1)
            off = np.linalg.norm(newton_step(J[some], phi[some]) - expected, axis=-1) / sizes
            assert off.max() < 1e-5
        J[20] = 0.0  # one that is singular without rounding
        assert not newton_step(J, phi)[20].any()
        assert np.linalg.norm(newton_step(J, phi)[0] + pseudo_inverse(J[0]) @ phi[0]) < 1e-9
