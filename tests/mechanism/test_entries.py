"""Sparse matrices of rotors: the same numbers as dense ones, in memory that grows with the joints."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import polybody as pb
from polybody.mechanism import mechanism_from
from polybody.mechanism.entries import Entries


def test_entries_are_the_dense_algebra() -> None:
    rng = np.random.default_rng(1)
    A = rng.normal(size=(5, 5)) * (rng.random((5, 5)) < 0.5)
    rows, columns = np.nonzero(A)
    entries = Entries.summed((5, 5), [(rows, columns, A[rows, columns] / 2)] * 2)
    np.testing.assert_allclose(entries.dense, A)
    np.testing.assert_allclose(entries.block(slice(1, 4)), A[1:4, 1:4])
    w = rng.random(5)
    np.testing.assert_allclose(entries.weighted(w).dense, A.T @ np.diag(w) @ A, atol=1e-14)
    slots, factors = np.array([0, 1, 0, 2, 1]), rng.normal(size=5)
    E = np.zeros((5, 3))
    E[np.arange(5), slots] = factors
    np.testing.assert_allclose(entries.moved(slots, factors, 3, both=True).dense, E.T @ A @ E, atol=1e-14)
    np.testing.assert_allclose(entries.moved(slots, factors, 3, both=False).dense, A @ E, atol=1e-14)


def test_no_motors_and_no_velocities() -> None:
    nothing = Entries.summed((0, 0), [])
    assert nothing.dense.shape == nothing.weighted(np.zeros(0)).dense.shape == (0, 0)


@pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
def test_memory_of_a_mechanism_grows_with_its_joints() -> None:
    """3,000 links: one dense matrix of rotors alone would take 72 MB."""
    build = pb.Builder("long")
    for k in range(3000):
        build.body(f"b{k}", 1.0, com=(0.1, 0, 0), inertia=(1, 1, 1))
        build.joint(f"j{k}", "revolute", f"b{k - 1}" if k else "world", f"b{k}", axis=(0, 1, 0), armature=0.1)
    description = build.description()
    tracemalloc.start()
    made = mechanism_from(description)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert made.nv == 3000
    assert most < 40e6
