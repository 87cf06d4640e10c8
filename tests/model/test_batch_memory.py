"""Peak memory of a batch: its results and little more, also where they are composed of other answers."""

from __future__ import annotations

import numpy as np

from polybody.model import batches


def test_pieces_are_the_whole_and_each_is_small(monkeypatch):
    """Arrays broadcast, several results, given memory: the same as in one go."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 4000, 3)), rng.normal(size=(4000, 2))
    most = []

    def answer(arrays):
        x, y = arrays
        most.append(x.shape[-2])
        return x[..., :, None] * y[..., None, :], x.sum(axis=-1) + y[..., 0]

    cost = 3 * 8 * (3 * 2 + 1)  # bytes that a state needs on the way
    whole = answer((a, b))
    monkeypatch.setattr("polybody.kernels.arrays.PIECE", 50_000)
    most.clear()
    found = batches.in_pieces(answer, (a, b), cost)
    out = np.empty((5, 4000, 3, 2)), np.empty((5, 4000))
    assert batches.in_pieces(answer, (a, b), cost, out) is out
    for one in (found, out):
        for f, w in zip(one, whole, strict=True):
            np.testing.assert_array_equal(f, w)
    assert len(most) > 20
    assert max(most) < 200
    one_row = batches.in_pieces(lambda x: x[0].sum(axis=-1), (b,), 24)
    np.testing.assert_array_equal(one_row, b.sum(axis=-1))
