"""Which rows are equal: the corners of an .stl file, 18 numbers a triangle, are some six times as many as its points.

Each row becomes one number (`keys`), and equal numbers are found by a table of hashes, in passes over
all that are still unplaced: everyone writes where its hash leads, the first of those that meet there stays, and who
finds its own number is placed with it; the others try the next bits. Sorting them took six times as long.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
ODD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5], dtype=np.uint64)


def keys(*columns: Array) -> Array:
    """One number per row, equal where the rows are; odd multipliers keep others apart.

    Floats are told by their bits (0.0 and −0.0 by the same): those of far points would not fit as whole numbers.
    """
    total = np.zeros(len(columns[0]), dtype=np.uint64)
    for column, before, after in zip(columns, ODD, ODD[::-1][: len(columns)], strict=False):
        plain = column + 0.0 if column.dtype.kind == "f" else column
        bits = plain.astype(float if plain.dtype.kind == "f" else np.int64).view(np.uint64)
        mixed = (bits ^ bits >> np.uint64(32)) * before
        mixed ^= mixed >> np.uint64(29)
        mixed *= after
        total += mixed
    return total


def equal(key: Array) -> tuple[Array, Array]:
    """(first, place): where each number comes first, in the order of the rows, and which of these each row's is."""
    count = len(key)
    bits = max(4, int(2 * count).bit_length())
    table = np.empty(1 << bits, dtype=np.int32)
    found = np.empty(count, dtype=np.int32)
    left, number = np.arange(count, dtype=np.int32), key
    multiplier = int(ODD[0])
    while len(left):
        slot = ((number * np.uint64(multiplier)) >> np.uint64(64 - bits)).astype(np.int32)
        table[slot[::-1]] = left[::-1]  # of those that meet the last one written stays: the first of the rows
        winner = table[slot]
        found[left] = winner
        lost = key[winner] != number
        left, number = left[lost], number[lost]
        multiplier = multiplier * int(ODD[1]) % 2**64
    first = found == np.arange(count, dtype=np.int32)
    return np.flatnonzero(first), (np.cumsum(first) - 1)[found]


def distinct(numbers: Array) -> Array:
    """The different ones of some whole numbers, in order.

    `np.unique` without further results imports NumPy's masked arrays: 20 to 70 ms of a first answer.
    """
    ordered = np.sort(np.asarray(numbers).ravel())
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]


__all__ = ["distinct", "equal", "keys"]
