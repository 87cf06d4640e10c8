"""Single precision: the same functions in float32, from arrays of float32 to arrays of float32."""

import casadi as ca
import mpmath
import numpy as np
import pytest
from helpers import of_function, product_kernel, product_oracle

from polybody.errors import InputError
from polybody.kernels import iterate, memory, runtime, scan, threads
from polybody.kernels.target import host, without_fma

SINGLE = np.float32
EPS = float(np.finfo(SINGLE).eps)


def arguments() -> np.ndarray:
    rng = np.random.default_rng(3)
    near = (np.arange(1, 6300, 23) * (np.pi / 2)).astype(SINGLE)
    parts = [
        rng.uniform(-np.pi, np.pi, 3000), rng.uniform(-1e4, 1e4, 3000), 10.0 ** rng.uniform(-12, 4, 600),
        near, np.nextafter(near, SINGLE(0)), np.nextafter(near, SINGLE(1e9)), -near, [0.0, 1e-45, 1e4, -1e4],
        rng.uniform(1e4, 1e6, 100),
    ]  # fmt: skip
    return np.concatenate([np.asarray(part, dtype=SINGLE) for part in parts])


@pytest.mark.parametrize("variant", ["host", "without fma"])
def test_sine_and_cosine_are_within_two_ulp(variant):
    target = host() if variant == "host" else without_fma(host())
    x = ca.SX.sym("x")
    kernel = of_function(ca.Function("sc", [x], [ca.sin(x), ca.cos(x)]), target=target, dtype=SINGLE)
    values = arguments()
    found = kernel(values[:, None])
    with mpmath.workdps(40):
        for answer, exact in zip(found, (mpmath.sin, mpmath.cos), strict=True):
            assert answer.dtype == SINGLE
            true = [exact(mpmath.mpf(float(v))) for v in values]
            ulp = np.spacing(np.abs(np.array([float(t) for t in true])).astype(SINGLE))
            error = np.array([float(mpmath.mpf(float(a)) - t) for a, t in zip(answer[:, 0], true, strict=True)])
            assert np.abs(error / ulp).max() <= 2.0
    wild = kernel(np.array([[np.nan], [np.inf], [-np.inf]], dtype=SINGLE))
    assert np.isnan(wild[0]).all()
    assert np.isnan(wild[1]).all()


def test_every_operation_equals_that_in_double_precision_to_rounding():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    u = ca.fabs(x) + 0.25
    terms = [
        x + y, x - y, x * y, x / u, -x, 2 * x, 1 / u, ca.sqrt(u), ca.fabs(x), ca.floor(3 * x), ca.ceil(3 * x),
        ca.copysign(x, y), ca.sign(x), ca.fmin(x, y), ca.fmax(x, y), x < y, x <= y, x == y, x != y, ca.logic_not(x),
        ca.if_else(x < y, x, y), ca.logic_and(x < 0, y < 0), ca.logic_or(x < 0, y < 0), ca.tan(x), ca.asin(x),
        ca.acos(x), ca.atan(x), ca.exp(x), ca.log(u), ca.sinh(x), ca.cosh(x), ca.tanh(x), ca.asinh(x), ca.acosh(1 + u),
        ca.atanh(0.9 * x), ca.erf(x), u**y, x**3, ca.fmod(x, u), ca.atan2(x, y), ca.hypot(x, y), ca.expm1(x),
        ca.log1p(u),
    ]  # fmt: skip
    function = ca.Function("all", [x, y], [ca.vertcat(*terms)])
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 1, size=(2, 400, 1)).astype(SINGLE)
    single, double = of_function(function, dtype=SINGLE), of_function(function)
    found, wanted = single(*values), double(*values.astype(float))
    few = ca.Function("few", [x, y], [ca.vertcat(*terms[:8])])  # more than 40 results have one vector at a time
    assert of_function(few, dtype=SINGLE).lanes == 2 * of_function(few).lanes
    assert found.dtype == SINGLE
    np.testing.assert_allclose(found, wanted, rtol=8 * EPS, atol=8 * EPS)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (33,), (2, 3), (5, 1, 4), (40_001,)])
def test_batches_lone_states_and_threads(shape):
    kernel = product_kernel(dtype=SINGLE)
    kernel._form.nanoseconds = 1e5
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(*shape, 5)).astype(SINGLE), rng.normal(size=(*shape, 3)).astype(SINGLE)
    for count in (1, 3):
        with threads(count):
            for left, right in ((a, b), (a, b.reshape(-1, 3)[0]), (np.asfortranarray(a), b), (a.astype(float), b)):
                for call in (kernel, kernel.batch):
                    for f, w in zip(call(left, right), product_oracle(left, right), strict=True):
                        assert f.dtype == SINGLE
                        np.testing.assert_allclose(f, w, rtol=4 * EPS, atol=4 * EPS)


def test_plain_float32_is_not_converted_and_never_enters_python_alone():
    fast = product_kernel(dtype=SINGLE).fast(lambda *values: "from python")
    a, b = np.ones(5, SINGLE), np.ones(3, SINGLE)
    assert fast(a, b)[0].dtype == SINGLE
    assert fast(a.astype(float), b) == "from python"
    assert runtime.can_be_called_alone()


def test_results_of_either_precision_can_be_given_a_place():
    kernel = product_kernel(dtype=SINGLE)
    a, b = np.ones((9, 5), SINGLE), np.ones((9, 3), SINGLE)
    for dtype in (SINGLE, np.float64):
        out = np.empty((9, 5, 3), dtype), np.empty((9, 5), dtype)
        assert kernel(a, b, out=out)[0] is out[0]
        np.testing.assert_allclose(out[1], np.sin(1) + 3, rtol=4 * EPS)


def test_many_results_written_dense_and_past_the_caches(monkeypatch):
    from polybody.kernels import kernel as kernel_module

    monkeypatch.setattr(kernel_module, "STREAMED_FROM", 1 << 16)
    x = ca.SX.sym("x", 9)
    function = ca.Function("many", [x], [ca.vec((x @ x.T).T), x])
    kernel = of_function(function, dtype=SINGLE)
    values = np.random.default_rng(0).normal(size=(5003, 9)).astype(SINGLE)
    squares, same = kernel(values)
    np.testing.assert_allclose(squares.reshape(-1, 9, 9), values[:, :, None] * values[:, None], rtol=2 * EPS)
    np.testing.assert_array_equal(same, values)


def test_memory_is_handed_out_again_across_precisions():
    memory.release()
    first = memory.empty((200_000,), np.dtype(SINGLE))
    where = first.ctypes.data
    again = memory.empty((200_000,), np.dtype(SINGLE))
    assert again.ctypes.data != where
    del first
    assert memory.empty((90_000,), np.dtype(np.float64)).ctypes.data == where


def test_rolled_kernels():
    n = 37
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(n, 1))
    parents = [-1, *(int(rng.integers(0, i)) for i in range(1, n))]
    w, x, path = ca.SX.sym("w"), ca.SX.sym("x"), ca.SX.sym("path")
    step = ca.Function("step", [w, x, path], [path + w * ca.sin(x), path + w * ca.sin(x)])
    tree = scan.Scan(
        parents, ["any"] * n, {"w": weights}, {"path": 1}, {"x": range(n), "y": range(n)},
        [scan.Pass("p", scan.OUTWARD, lambda kind: step, ["w"], ["x"], (), ["path"], ["path"], (), ["y"])],
        root={"path": [0.5]},
    )  # fmt: skip
    ports = [("x", n)], [("y", (n,))]
    single = scan.build("paths", *ports, tree, "paths", dtype=SINGLE)
    double = scan.build("paths", *ports, tree, "paths")
    values = rng.normal(size=(21, n))
    found = single(values.astype(SINGLE))
    assert found.dtype == SINGLE
    np.testing.assert_allclose(found, double(values), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("every", [True, False])
def test_iterated_kernels(every):
    x, p, u = ca.SX.sym("x", 3), ca.SX.sym("p", 1), ca.SX.sym("u", 2)
    step = ca.Function("f", [x, p, u], [ca.vertcat(x[1] + u[0], ca.sin(x[2]) * p, 0.3 * x[0] * u[1])])
    rng = np.random.default_rng(3)
    values = rng.normal(size=(21, 3)), rng.normal(size=(21, 1)), rng.normal(size=(21, 100))
    options = {"every": every}
    single = iterate.build("single", (3, 1, 2), 50, lambda: step, "s", dtype=SINGLE, **options)
    double = iterate.build("double", (3, 1, 2), 50, lambda: step, "d", **options)
    found = single(*(v.astype(SINGLE) for v in values))
    assert found.dtype == SINGLE
    np.testing.assert_allclose(found, double(*values), rtol=1e-4, atol=1e-4)


def test_other_precisions_are_refused():
    with pytest.raises(InputError, match="float64 or float32"):
        product_kernel(dtype=np.float16)
