"""`ranks` counts what `ranked_svd` keeps, and `model.constraints.rank` answers large batches in pieces."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.constraints.ranks import ranked_svd, ranks


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
