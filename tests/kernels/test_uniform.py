"""Random numbers by machine code: the published generator, in streams that do not depend on the processor."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from polybody.kernels.uniform import STREAMS, uniform

MASK = (1 << 64) - 1


def turned(x: int, k: int) -> int:
    return ((x << k) | (x >> (64 - k))) & MASK


def xoshiro(state: list[int], count: int) -> list[int]:
    """xoshiro256+ with Python's integers."""
    s, found = list(state), []
    for _ in range(count):
        found.append((s[0] + s[3]) & MASK)
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = turned(s[3], 45)
    return found


def test_the_reference_of_this_test_is_the_published_generator() -> None:
    assert xoshiro([1, 2, 3, 4], 4) == [5, 211106232532999, 211106635186183, 9223759065350669058]


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (33, 3), (16, 4), (7, 9)])
def test_numbers_are_those_of_eight_streams_in_turn(rows: int, columns: int) -> None:
    seed = np.random.SeedSequence(5, spawn_key=(0, 2))
    words = [int(x) for x in seed.generate_state(4 * STREAMS, np.uint64)]
    count = rows * columns
    streams = [xoshiro(words[k::STREAMS], -(-count // STREAMS)) for k in range(STREAMS)]
    u = np.array([(streams[k % STREAMS][k // STREAMS] >> 12) * 2.0**-52 for k in range(count)]).reshape(rows, columns)
    low, width = np.linspace(-1, 2, columns), np.linspace(0.5, 3, columns)
    np.testing.assert_array_equal(uniform(seed, rows, low, width), u * width + low)


def test_numbers_are_uniform_and_independent() -> None:
    u = uniform(np.random.SeedSequence(1), 200_000, np.zeros(3), np.ones(3))
    assert u.min() >= 0
    assert u.max() < 1
    assert all(stats.kstest(u[:, k], "uniform").pvalue > 1e-3 for k in range(3))
    neighbours = np.corrcoef(np.column_stack([u[:-3], u[1:-2], u[3:]]).T)
    assert np.abs(neighbours - np.eye(9)).max() < 5 / np.sqrt(len(u))
    other = uniform(np.random.SeedSequence(2), 200_000, np.zeros(3), np.ones(3))
    assert abs(np.corrcoef(u.ravel(), other.ravel())[0, 1]) < 5 / np.sqrt(u.size)
