"""Batches: shapes, strides, dtypes, out=, errors."""

import casadi as ca
import numpy as np
import pytest
from helpers import of_function, product_kernel, product_oracle

from polybody.errors import InputError, PolybodyError
from polybody.kernels import arrays, threads
from polybody.kernels import kernel as kernels


def check(a, b, kernel=None):
    found = (kernel or product_kernel())(a, b)
    wanted = product_oracle(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    for f, w in zip(found, wanted, strict=True):
        assert f.shape == w.shape
        assert f.dtype == np.float64
        np.testing.assert_allclose(f, w, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("states", [0, 1, 2, 3, 5, 7, 8, 9, 1000])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
@pytest.mark.parametrize("sizes", [(1, 2), (3, 4), (5, 9), (8, 1), (1, 67), (33, 18)])
def test_every_remainder_is_right_and_writes_nothing_else(states, lanes, sizes):
    n, m = sizes
    a, b = ca.SX.sym("a", n), ca.SX.sym("b", m)
    function = ca.Function("f", [a, b], [ca.vertcat(ca.sin(a), 2 * b), a[0] * b])
    kernel = of_function(function, lanes=lanes)
    rng = np.random.default_rng(states)
    x, y = rng.normal(size=(states, n)), rng.normal(size=(states, m))
    whole = np.full((states + 2, n + m), 7.0)
    second = np.full((states + 2, m), 7.0)
    kernel(x, y, out=(whole[1:-1], second[1:-1]))
    np.testing.assert_allclose(whole[1:-1], np.hstack([np.sin(x), 2 * y]), rtol=1e-15, atol=1e-16)
    np.testing.assert_allclose(second[1:-1], x[:, :1] * y, rtol=1e-15)
    assert (whole[[0, -1]] == 7).all()
    assert (second[[0, -1]] == 7).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("states", [1, 3, 8, 21])
def test_many_results_by_a_table_repeat_zeros_and_mirrored_entries(dtype, states):
    x = ca.SX.sym("x", 25)
    upper = ca.triu(x @ x.T)
    symmetric = upper + upper.T
    some = ca.densify(ca.vertcat(ca.vec(symmetric), ca.SX.zeros(7), x, ca.SX(2.5), ca.cos(x[:2])))
    kernel = of_function(ca.Function("f", [x], [some, x[:3]]), dtype=dtype)
    values = np.random.default_rng(states).normal(size=(states, 25)).astype(dtype)
    found, tail = kernel(values)
    whole = values[:, :, None] * values[:, None, :]
    whole[:, range(25), range(25)] *= 2
    more = np.hstack([np.zeros((states, 7)), values, np.full((states, 1), 2.5), np.cos(values[:, :2])])
    tolerance = {"rtol": 4 * np.finfo(dtype).eps, "atol": np.finfo(dtype).eps}
    np.testing.assert_allclose(found, np.hstack([whole.reshape(states, -1), more]), **tolerance)
    np.testing.assert_array_equal(tail, values[:, :3])


@pytest.mark.parametrize("states", [3, 4, 8, 9, 1003])
@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("n", [37, 201])
def test_results_that_go_past_the_caches_are_the_same(monkeypatch, states, lanes, workers, n):
    x = ca.SX.sym("x", n)
    kernel = of_function(ca.Function("f", [x], [ca.vertcat(ca.sin(x), x), 3 * x]), lanes=lanes)
    values = np.random.default_rng(states).normal(size=(states, n))
    room = np.full((states + 16) * 3 * n + 16, 7.0)
    start = (-room.ctypes.data // 8) % 8
    first = room[start : start + states * 2 * n].reshape(states, 2 * n)
    second = room[start + 8 * (states * 2 * n // 8 + 3) :][: states * n].reshape(states, n)
    assert first.ctypes.data % 64 == second.ctypes.data % 64 == 0
    monkeypatch.setattr(kernels, "STREAMED_FROM", 0)
    monkeypatch.setattr(kernels, "WORTH_A_THREAD", 1.0)
    with threads(workers):
        kernel(values, out=(first, second))
    np.testing.assert_allclose(first, np.hstack([np.sin(values), values]), rtol=1e-15, atol=1e-16)
    np.testing.assert_array_equal(second, 3 * values)
    assert (room == 7).sum() == room.size - first.size - second.size


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [512, 513, 518, 527])
def test_rows_that_begin_anywhere_in_a_vector_go_past_the_caches_whole(monkeypatch, lanes, dtype, n):
    x = ca.SX.sym("x", 40)
    many = ca.vertcat(*[x[k % 40] * (k // 40) if k % 3 else x[k % 40] for k in range(n)])
    kernel = of_function(ca.Function("f", [x], [many, x, many[: 2 * lanes + 1]]), lanes=lanes, dtype=dtype)
    values = np.random.default_rng(n).integers(-99, 99, size=(7 * lanes + 3, 40)).astype(dtype)  # exact in both
    wanted = np.stack([values[:, k % 40] * (k // 40 if k % 3 else 1) for k in range(n)], axis=1)
    for places in (0, 1 << 40):
        monkeypatch.setattr(kernels, "STREAMED_FROM", places)
        size, states = np.dtype(dtype).itemsize, len(values)
        room = np.full(states * (n + 41 + 2 * lanes) + 512, 7, dtype)
        first = (-room.ctypes.data // size) % (128 // size)
        results = []
        for width in (n, 40, 2 * lanes + 1):
            results.append(room[first : first + states * width].reshape(states, width))
            first += -(-states * width // 32) * 32
        kernel(values, out=tuple(results))
        np.testing.assert_array_equal(results[0], wanted)
        np.testing.assert_array_equal(results[1], values)
        np.testing.assert_array_equal(results[2], wanted[:, : 2 * lanes + 1])
        used = np.ones(room.size, dtype=bool)
        for result in results:
            at = (result.ctypes.data - room.ctypes.data) // size
            used[at : at + result.size] = False
        assert (room[used] == 7).all()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((), ()),
        ((4,), ()),
        ((), (6,)),
        ((3, 1), (1, 5)),
        ((2, 1, 4), (3, 1)),
        ((1,), (9,)),
        ((5, 0), (1, 1)),
        ((7, 3), (3,)),
    ],
)
def test_leading_dimensions_broadcast(left, right):
    rng = np.random.default_rng(1)
    check(rng.normal(size=(*left, 5)), rng.normal(size=(*right, 3)))
    check(rng.normal(size=(*left, 9)), rng.normal(size=(*right, 8)), product_kernel(9, 8))


@pytest.mark.parametrize("size", [(5, 3), (9, 8)])
def test_results_go_into_arrays_with_gaps_and_leave_the_gaps_alone(size):
    n, m = size
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(13, n)), rng.normal(size=(13, m))
    wide = np.full((26, n, m), 7.0), np.full((13, 2 * n), 7.0)
    product_kernel(n, m)(a, b, out=(wide[0][::2], wide[1][:, :n]))
    wanted = product_oracle(a, b)
    np.testing.assert_allclose(wide[0][::2], wanted[0], rtol=1e-14)
    np.testing.assert_allclose(wide[1][:, :n], wanted[1], rtol=1e-14)
    assert (wide[0][1::2] == 7).all()
    assert (wide[1][:, n:] == 7).all()


DTYPES = [np.float32, np.float64, np.float16, np.int64, np.int8, np.uint16, bool, ">f8", np.longdouble]


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_real_dtype_is_taken(dtype):
    rng = np.random.default_rng(2)
    a = (rng.normal(size=(6, 5)) * 3).astype(dtype)
    check(a, rng.normal(size=(6, 3)))


def test_any_strides_are_taken():
    rng = np.random.default_rng(3)
    a = rng.normal(size=(5, 30)).T  # Fortran order: a row's numbers are far apart
    b = rng.normal(size=(60, 6))[::-2, ::2]  # negative and gapped
    check(a, b)
    check(a[::-1], rng.normal(size=(30, 4))[:, 1:])
    check(np.broadcast_to(a[0], (4, 8, 5)), np.swapaxes(rng.normal(size=(8, 4, 3)), 0, 1))


def test_unaligned_numbers_are_taken():
    raw = bytearray(1 + 8 * 5 * 4)
    a = np.frombuffer(raw, dtype=np.float64, offset=1).reshape(4, 5)
    a[:] = np.arange(20).reshape(4, 5)
    assert not a.flags.aligned
    check(a, np.ones((4, 3)))


def test_lists_are_taken():
    check([1, 2, 3, 4, 5], [[1, 2, 3], [4, 5, 6.5]])


@pytest.mark.parametrize("case", ["plain", "float32", "fortran", "gapped", "reversed"])
def test_out_of_any_layout_is_written_in_place(case):
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(9, 5)), rng.normal(size=(9, 3))
    layouts = {
        "plain": np.empty((9, 5, 3)),
        "float32": np.empty((9, 5, 3), dtype=np.float32),
        "fortran": np.empty((9, 5, 3), order="F"),
        "gapped": np.empty((18, 10, 3))[::2, ::2],
        "reversed": np.empty((9, 5, 3))[::-1],
    }
    out = (layouts[case], np.empty((9, 5)))
    returned = product_kernel()(a, b, out=out)
    assert returned is out
    wanted = product_oracle(a, b)
    np.testing.assert_allclose(out[0], wanted[0], rtol=1e-6 if case == "float32" else 1e-15)
    np.testing.assert_allclose(out[1], wanted[1], rtol=1e-14)


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_out_may_overlap_an_argument(shift):
    x = ca.SX.sym("x", 3)
    kernel = of_function(ca.Function("f", [x], [x[::-1] * 2 + 1]))
    memory = np.arange(3.0 * 53)
    source = memory[: 3 * 50].reshape(50, 3)
    wanted = source[:, ::-1] * 2 + 1
    target = memory[3 * shift : 3 * (50 + shift)].reshape(50, 3)
    kernel(source, out=target)
    np.testing.assert_array_equal(target, wanted)


def test_conversion_in_pieces_equals_conversion_at_once(monkeypatch):
    monkeypatch.setattr(arrays, "PIECE", 4096)
    rng = np.random.default_rng(5)
    a = rng.normal(size=(2, 1, 700, 5)).astype(np.float32)
    b = rng.normal(size=(3, 1, 3))
    check(a, b)
    out = (np.empty((2, 3, 700, 5, 3), order="F"), np.empty((2, 3, 700, 5), dtype=np.float32))
    product_kernel()(a, b, out=out)
    np.testing.assert_allclose(out[0], product_oracle(a.astype(float), b)[0], rtol=1e-15)


def test_broadcasting_allocates_nothing_but_the_result():
    import tracemalloc

    x, y = ca.SX.sym("x", 6), ca.SX.sym("y", 6)
    kernel = of_function(ca.Function("f", [x, y], [ca.dot(x, y)]))
    a = np.zeros((300_000, 6))
    b = np.ones(6)
    tracemalloc.start()
    kernel(a, b)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000 * 8 + 2**20
    b32 = np.ones((300_000, 6), dtype=np.float32)
    tracemalloc.start()
    kernel(a, b32)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000 * 8 + arrays.PIECE * 1.5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((np.zeros(4), np.zeros(3)), r"a has shape \(4,\); expected \(\.\.\., 5\)"),
        ((np.zeros(5), np.zeros((2, 2))), r"b has shape \(2, 2\); expected \(\.\.\., 3\)"),
        ((np.zeros(5), 3.0), r"b has shape \(\); expected \(\.\.\., 3\)"),
        ((np.zeros((4, 5)), np.zeros((3, 3))), r"do not broadcast: a \(4, 5\), b \(3, 3\)"),
        ((np.zeros(5),), "got 1 arguments; expected 2"),
        ((np.zeros(5, complex), np.zeros(3)), "a has dtype complex128"),
        ((["x"] * 5, np.zeros(3)), "a has dtype"),
        (([[1.0], [1.0, 2.0]], np.zeros(3)), "a is not an array of numbers"),
    ],
)
def test_wrong_argument_is_named_with_its_shape_and_the_one_wanted(values, message):
    with pytest.raises(InputError, match=message) as caught:
        product_kernel()(*values)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, PolybodyError)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty((5, 3)), "holds 1 arrays; outer has 2"),
        ((np.empty((5, 3)), np.empty(4)), r"out\[1\] \(s\) has shape \(4,\); expected \(5,\)"),
        ((np.empty((5, 3), int), np.empty(5)), "dtype int64"),
        (([0.0] * 5, np.empty(5)), "is a list"),
        ((np.broadcast_to(0.0, (5, 3)), np.empty(5)), "read-only"),
    ],
)
def test_wrong_out_is_refused(out, message):
    with pytest.raises(InputError, match=message):
        product_kernel()(np.zeros(5), np.zeros(3), out=out)


def test_check_names_the_argument_and_the_index_of_what_is_not_finite():
    a, b = np.zeros((4, 5)), np.zeros((2, 1, 3))
    product_kernel()(a, b, check=True)
    b[1, 0, 2] = np.inf
    with pytest.raises(InputError, match=r"b\[1, 0, 2\] is inf"):
        product_kernel()(a, b, check=True)
    a[3, 1] = np.nan
    with pytest.raises(InputError, match=r"a\[3, 1\] is nan"):
        product_kernel()(a, b, check=True)
    assert np.isnan(product_kernel()(a, b)[0][0, 3, 1]).any()


def test_outputs_without_dimensions_are_numbers_alone_and_vectors_in_batches():
    x = ca.SX.sym("x", 3)
    kernel = of_function(ca.Function("f", [x], [ca.sumsqr(x)]), outputs=[("energy", ())])
    for lone in (kernel(np.ones(3)), kernel([1, 1, 1]), kernel.call(np.ones(3))):
        assert lone == 3.0
        assert isinstance(lone, np.float64)
    assert kernel(np.ones((4, 2, 3))).shape == (4, 2)


def test_constant_and_passed_through_outputs():
    x = ca.SX.sym("x", 3)
    kernel = of_function(ca.Function("f", [x], [ca.SX([1.5, 0, -2]), ca.densify(ca.SX(2, 1)), x[::-1]]))
    one, zero, back = kernel(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(one, [[1.5, 0, -2]] * 2)
    np.testing.assert_array_equal(zero, np.zeros((2, 2)))
    np.testing.assert_array_equal(back, [[2, 1, 0], [5, 4, 3]])


def test_empty_inputs_and_outputs():
    x, y = ca.SX.sym("x", 0), ca.SX.sym("y", 2)
    kernel = of_function(ca.Function("f", [x, y], [x, 2 * y]))
    nothing, twice = kernel(np.empty((4, 0)), np.ones((4, 2)))
    assert nothing.shape == (4, 0)
    assert (twice == 2).all()
    nothing, twice = kernel(np.empty(0), np.ones(2))
    assert nothing.shape == (0,)
    assert (twice == 2).all()
