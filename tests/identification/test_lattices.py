"""Shortest vectors of lattices of three vectors, and numbers read as sums with roots."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from polybody.identification.proofs.lattices import relation, shortest


def test_shortest_vector_is_that_of_all_small_combinations():
    rng = np.random.default_rng(0)
    for _ in range(40):
        vectors = [tuple(int(x) for x in row) for row in rng.integers(-30, 31, size=(3, 4))]
        if np.linalg.matrix_rank(np.array(vectors)) < 3:
            continue
        found = shortest(vectors)
        every = (np.array(n) @ np.array(vectors) for n in itertools.product(range(-12, 13), repeat=3) if any(n))
        assert sum(x * x for x in found) == min(int(x @ x) for x in every)
        n = np.linalg.lstsq(np.array(vectors, dtype=float).T, np.array(found, dtype=float), rcond=None)[0]
        assert np.abs(n - np.rint(n)).max() < 1e-9  # of the lattice


@pytest.mark.parametrize("d", [2, 3, 5])
def test_sums_with_a_root_are_recovered_from_their_digits(d: int):
    rng = np.random.default_rng(d)
    for _ in range(50):
        a, b = (Fraction(int(x), int(rng.integers(1, 40))) for x in rng.integers(1, 40, size=2))
        x = float(a) + float(b) * d**0.5
        n, n_a, n_b = relation((x, 1.0, d**0.5), 1e-13 * x)
        assert (Fraction(-n_a, n), Fraction(-n_b, n)) == (a, b)
