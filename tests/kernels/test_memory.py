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
    held = [memory.empty((memory.KEPT // 64,)) for _ in range(20)]  # an eighth of the bound each, never touched
    assert len({address(a) for a in held}) == 20
    assert sum(8 * b.size for b in memory._buffers) <= memory.KEPT


def test_large_memory_can_be_written_read_and_used_again():
    first = memory.empty((3, 1 << 17))
    first[:] = 5.0
    assert first.flags.carray
    assert (first == 5.0).all()
    where = address(first)
    part = first[1, 7:9]
    del first
    assert address(memory.empty((3, 1 << 17))) != where, "a part of it is still held"
    assert (part == 5.0).all()
    del part
    assert address(memory.empty((3, 1 << 17))) == where


def test_release_keeps_what_is_in_use():
    held = memory.empty((1 << 18,))
    held[:] = 3.0
    memory.release()
    assert not memory._buffers
    other = memory.empty((1 << 18,))
    other[:] = 4.0
    assert (held == 3.0).all()


def test_a_system_without_huge_pages_gives_plain_memory(monkeypatch):
    class Refusing(memory.mmap.mmap):
        def madvise(self, *_):
            raise OSError(22, "Invalid argument")

    memory.release()
    monkeypatch.setattr(memory.mmap, "mmap", Refusing)
    array = memory.empty((1 << 18,))
    array[:] = 6.0
    assert (array == 6.0).all()
