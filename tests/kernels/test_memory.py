"""Result memory is used again only when nobody holds it."""

from __future__ import annotations

import numpy as np

from polybody.kernels import memory


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_held_results_are_never_overwritten():
    first = memory.empty((300, 200))
    first[:] = 1.0
    part = first[10:20, 3]
    del first
    second = memory.empty((300, 200))
    second[:] = 2.0
    assert (part == 1.0).all()


def test_memory_of_dropped_results_is_used_again():
    first = memory.empty((301, 200))
    where = address(first)
    del first
    assert address(memory.empty((301, 200))) == where


def test_kept_memory_is_bounded():
    held = [memory.empty((1 << 20,)) for _ in range(20)]
    assert len({address(a) for a in held}) == 20
    assert sum(8 * b.size for b in memory._buffers) <= memory.KEPT
