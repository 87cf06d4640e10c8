"""Products of tables by loops equal NumPy's products of the same tables, in every tier, precision and vector length."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from polybody.errors import InputError
from polybody.kernels import build, tape
from polybody.kernels.factored import Factored
from polybody.kernels.factored_rows import tile_sizes
from polybody.kernels.kernel import STREAMED_FROM
from polybody.kernels.target import host, without_avx512, without_fma


def tables(n: int, widths: tuple[int, ...], seed: int = 0) -> ca.Function:
    """A function of six numbers that gives A (symmetric), B₁, B₂, …, C₁, C₂, ….

    Columns of B share supports, some are empty, some entries are one another, one is constant and one is an input; C
    has entries in columns of either kind.
    """
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", 6)

    def some() -> ca.SX:
        i, j, k = rng.integers(6, size=3)
        return x[int(i)] * x[int(j)] - float(rng.normal()) * x[int(k)]

    A = ca.SX(n, n)
    for i in range(n):
        for j in range(i + 1):
            A[i, j] = A[j, i] = some()
    parts, added = [A], []
    for m in widths:
        supports = [rng.random(n) < 0.6 for _ in range(3)] + [np.zeros(n, bool), np.ones(n, bool)]
        own = np.array([supports[int(k)] for k in rng.integers(5, size=m)]).T.reshape(n, m)
        B = ca.SX(n, m)
        for i, j in zip(*np.nonzero(own), strict=True):
            B[int(i), int(j)] = some()
        if own.any():
            i, j = (int(k[0]) for k in np.nonzero(own))
            B[i, j] = x[3]
        if own.sum() > 1:
            i, j = (int(k[1]) for k in np.nonzero(own))
            B[i, j] = 2.5
        parts.append(ca.densify(B))
        C = ca.SX(n, m)
        for column in (np.flatnonzero(own.any(axis=0)), np.flatnonzero(~own.any(axis=0))):
            for j in column[:2]:
                C[int(rng.integers(n)), int(j)] = some()
        added.append(ca.densify(C))
    columns = [ca.vec(part.T) for part in (*parts, *added)]
    return ca.Function("tables", [x], [ca.densify(c) for c in columns])


def kernel_of(n: int, widths: tuple[int, ...], key: str = "", **options):
    function = tables(n, widths)
    shapes = [(f"P{k}", (n, m)) for k, m in enumerate(widths)] + [("A", (n, n))]
    read = lambda: Factored(tape.from_function(function))  # noqa: E731
    return function, build("products", [("x", 6)], shapes, read, f"factored {n} {widths} {key}", **options)


def products(function: ca.Function, x: np.ndarray, n: int, widths: tuple[int, ...]) -> list[np.ndarray]:
    A, *others = (np.asarray(t).reshape(n, -1) for t in function.call([ca.DM(x)]))
    right, added = others[: len(widths)], others[len(widths) :]
    return [*(C - A @ B for B, C in zip(right, added, strict=True)), A]


TARGETS = {"host": host(), "avx2": without_avx512(host()), "without fma": without_fma(host())}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "widths"), [(1, (1,)), (3, (2, 5)), (7, (7, 7)), (17, (17, 17, 4)), (23, (30,))])
def test_products_equal_those_of_numpy_in_both_tiers_to_the_bit(monkeypatch, n, widths, dtype, name):
    states = np.random.default_rng(n).normal(size=(21, 6)).astype(dtype)
    found = {}
    for tier in ("optimised", "fast"):
        monkeypatch.setenv("POLYBODY_TIER", tier)
        function, kernel = kernel_of(n, widths, f"{tier} {name}", dtype=dtype, target=TARGETS[name])
        found[tier] = kernel(states)
        for one, all_ in zip(kernel(states[4].copy()), found[tier], strict=True):
            np.testing.assert_array_equal(one, all_[4])
    for one, other in zip(found["optimised"], found["fast"], strict=True):
        np.testing.assert_array_equal(one, other)
    for k in (0, 8, 20):
        wanted = products(function, states[k].astype(float), n, widths)
        for one, reference in zip(found["optimised"], wanted, strict=True):
            tolerance = 40 * n * np.finfo(dtype).eps * (1 + np.abs(reference).max(initial=0))
            np.testing.assert_allclose(one[k], reference, rtol=0, atol=tolerance)


def test_products_written_past_the_caches_into_given_arrays_are_the_same():
    n, widths = 19, (19, 19)
    _, kernel = kernel_of(n, widths)
    count = STREAMED_FROM // (8 * 3 * n * n) + 37
    states = np.random.default_rng(1).normal(size=(count, 6))
    out = tuple(np.full((count, n, n), np.nan) for _ in range(3))
    assert kernel(states, out=out) is out
    for lo in range(0, count, 100):
        for part, whole in zip(kernel(states[lo : lo + 100]), out, strict=True):
            np.testing.assert_array_equal(part, whole[lo : lo + 100])


def test_a_tape_that_is_long_is_cut_and_multiplied_in_the_last_piece():
    n, widths = 40, (40, 40)
    function, kernel = kernel_of(n, widths)
    states = np.random.default_rng(2).normal(size=(9, 6))
    for one, reference in zip((x[5] for x in kernel(states)), products(function, states[5], n, widths), strict=True):
        np.testing.assert_allclose(one, reference, rtol=0, atol=1e-13 * np.abs(reference).max())


def test_tiles_leave_a_register_for_what_comes_from_memory():
    for held in (15, 31):
        for n in range(1, 100):
            rows, columns = tile_sizes(n, held)
            assert 1 <= rows <= n
            assert rows * columns + columns + 1 <= held + 1


def test_tables_that_cannot_be_multiplied_are_refused():
    x = ca.SX.sym("x", 6)
    wrong = tape.from_function(ca.Function("wrong", [x], [x[:4], x[:5], x[:5]]))
    with pytest.raises(InputError, match=r"tables of \[4, 5, 5\] numbers"):
        build("wrong", [("x", 6)], [("P", (5,)), ("A", (2, 2))], lambda: Factored(wrong), "wrong tables")
