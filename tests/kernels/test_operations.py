"""Every operation a CasADi SX graph can hold, against CasADi's own evaluation."""

import casadi as ca
import mpmath
import numpy as np
import pytest
from helpers import elementwise, of_function
from hypothesis import given, settings
from hypothesis import strategies as st

from polybody.errors import InputError

VALUES = np.array([-3.7, -2.0, -1.0, -0.5, -1e-9, -0.0, 0.0, 1e-9, 0.3, 0.5, 1.0, 2.0, 2.5, 17.0, 1e4])
UNARY = {
    "negative": lambda x: -x, "square": lambda x: x * x, "twice": lambda x: 2 * x, "inverse": lambda x: 1 / x,
    "sqrt": ca.sqrt, "exp": ca.exp, "log": ca.log, "sin": ca.sin, "cos": ca.cos, "tan": ca.tan, "asin": ca.asin,
    "acos": ca.acos, "atan": ca.atan, "sinh": ca.sinh, "cosh": ca.cosh, "tanh": ca.tanh, "asinh": ca.asinh,
    "acosh": ca.acosh, "atanh": ca.atanh, "floor": ca.floor, "ceil": ca.ceil, "fabs": ca.fabs, "sign": ca.sign,
    "erf": ca.erf, "expm1": ca.expm1, "log1p": ca.log1p, "not": ca.logic_not, "cube": lambda x: x**3,
    "fourth": lambda x: x**4, "root": lambda x: x**0.5, "odd power": lambda x: x**2.7, "minus two": lambda x: x**-2,
}  # fmt: skip
BINARY = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y, "fmin": ca.fmin, "fmax": ca.fmax, "fmod": ca.fmod, "remainder": ca.remainder,
    "atan2": ca.atan2, "hypot": ca.hypot, "copysign": ca.copysign, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y,
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "and": ca.logic_and, "or": ca.logic_or,
    "if_else": lambda x, y: ca.if_else(x < y, x + 1, y * 2), "if_else_zero": lambda x, y: ca.if_else(x, y, 0),
    "number as truth": lambda x, y: (x < y) * 3 + ca.logic_and(x, y),
}  # fmt: skip


def compare(found, expected, ulps=4):
    np.testing.assert_allclose(found, expected, rtol=ulps * 2.3e-16, atol=1e-300)


@pytest.mark.parametrize("name", UNARY)
def test_unary_operation_equals_casadi(name):
    x = ca.SX.sym("x")
    reference = ca.Function("f", [x], [UNARY[name](x)])
    found = elementwise(UNARY[name])(VALUES[:, None])
    compare(found, [float(reference(v)) for v in VALUES])


def test_inverse_error_function_is_better_than_casadis():
    """CasADi's own stops at eleven digits, so the truth is mpmath's."""
    x = np.array([-0.999, -0.5, -1e-9, 0.0, 1e-300, 0.3, 0.5, 0.9, 0.99999])
    wanted = [float(mpmath.erfinv(mpmath.mpf(float(v)))) for v in x]
    found = elementwise(ca.erfinv)(x[:, None])
    np.testing.assert_allclose(found[:-1], wanted[:-1], rtol=1e-14)
    np.testing.assert_allclose(found[-1], wanted[-1], rtol=1e-10)  # 1 - erf has few digits left there
    np.testing.assert_array_equal(elementwise(ca.erfinv)(np.array([[1.0], [-1.0], [2.0]])), [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("name", BINARY)
def test_binary_operation_equals_casadi(name):
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    reference = ca.Function("f", [x, y], [BINARY[name](x, y)])
    a, b = (g.ravel() for g in np.meshgrid(VALUES, VALUES))
    found = elementwise(BINARY[name], 2)(a[:, None], b[:, None])
    compare(found, [float(reference(u, v)) for u, v in zip(a, b, strict=True)])


@pytest.mark.parametrize("pick", [ca.fmin, ca.fmax, lambda x, y: x + y, lambda x, y: x * y, ca.atan2, ca.hypot])
def test_nan_in_one_argument_comes_out_as_nan(pick):
    kernel = elementwise(pick, 2)
    a = np.array([np.nan, 1.0, 2.0])
    b = np.array([1.0, np.nan, 3.0])
    assert np.isnan(kernel(a[:, None], b[:, None])).tolist() == [True, True, False]


# Continuous ones only: where a function jumps, a last digit may rightly decide otherwise. The tables above test jumps.
SAFE_UNARY = (
    lambda x: -x, lambda x: x * x, ca.sin, ca.cos, ca.tanh, ca.atan, ca.fabs, lambda x: x * ca.sign(x),
    lambda x: ca.sqrt(1 + x * x), lambda x: ca.log(1 + x * x), lambda x: 1 / (2 + ca.sin(x)), lambda x: 2 * x,
)  # fmt: skip
SAFE_BINARY = (
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / (1 + y * y), ca.fmin, ca.fmax,
    lambda x, y: ca.atan2(x, 2 + y * y), lambda x, y: ca.if_else(x < y, x, y), lambda x, y: (x <= y) * (y - x),
)  # fmt: skip


@st.composite
def graphs(draw):
    """A random SX graph of two inputs and two outputs, with shared subexpressions."""
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y", 2)
    nodes = [*ca.vertsplit(x), *ca.vertsplit(y), ca.SX(0.7), ca.SX(-1.3)]
    for _ in range(draw(st.integers(1, 60))):
        if draw(st.booleans()):
            nodes.append(draw(st.sampled_from(SAFE_UNARY))(draw(st.sampled_from(nodes))))
        else:
            nodes.append(draw(st.sampled_from(SAFE_BINARY))(draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))))
    first = ca.densify(ca.vertcat(*nodes[-3:]))
    second = ca.densify(ca.vertcat(*[nodes[draw(st.integers(0, len(nodes) - 1))] for _ in range(5)]))
    return ca.Function("graph", [x, y], [first, second])


@settings(max_examples=40, deadline=None)
@given(function=graphs(), lanes=st.sampled_from([1, 2, 4, 8]), seed=st.integers(0, 10**6))
def test_random_graph_equals_casadi(function, lanes, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-2, 2, (7, 3)), rng.uniform(-2, 2, (7, 2))
    # tanh and sine tame growth only where they occur: scale to the size of what is compared
    found = of_function(function, lanes=lanes)(x, y)
    for k in range(7):
        for output, expected in zip(found, function(x[k], y[k]), strict=True):
            reference = np.array(expected).ravel()
            sane = np.abs(reference) < 1e3  # beyond it, a sine further down would have lost its digits
            np.testing.assert_allclose(output[k][sane], reference[sane], rtol=1e-7, atol=1e-7)


def test_large_random_graph_equals_casadi():
    rng = np.random.default_rng(0)
    x = ca.SX.sym("x", 40)
    nodes = ca.vertsplit(x)
    for _ in range(6000):
        a, b = rng.integers(max(0, len(nodes) - 400), len(nodes), 2)
        choices = [nodes[a] + 0.5 * nodes[b], nodes[a] * nodes[b] * 0.3, ca.sin(nodes[a])]
        nodes.append(choices[rng.choice(3, p=[0.5, 0.45, 0.05])])
    function = ca.Function("large", [x], [ca.vertcat(*nodes[-50:]), ca.vertcat(*nodes[::97])])
    values = rng.uniform(-1, 1, (5, 40))
    found = of_function(function)(values)
    for k in range(5):
        for output, expected in zip(found, function(values[k]), strict=True):
            np.testing.assert_allclose(output[k], np.array(expected).ravel(), rtol=1e-10, atol=1e-12)


def test_matrix_functions_that_are_not_sx_are_refused():
    x = ca.MX.sym("x", 2)
    with pytest.raises(InputError, match="SX functions only"):
        of_function(ca.Function("mx", [x], [2 * x]))


def test_function_of_other_sizes_than_declared_is_refused():
    from polybody.kernels import build

    x = ca.SX.sym("x", 2)
    with pytest.raises(InputError, match=r"expected \[3\] and \[2\]"):
        build("f", [("x", 3)], [("y", (2,))], lambda: ca.Function("f", [x], [2 * x]), "sizes")


def test_several_divisions_by_one_number_are_products_with_its_reciprocal():
    from polybody.kernels import tape

    x = ca.SX.sym("x", 4)
    function = ca.Function("f", [x], [ca.vertcat(x[:3] / x[3], 1 / x[3], x[0] / x[1])])
    found = tape.prepared(function)
    codes = [op for op, _, _ in found.nodes]
    assert codes.count(ca.OP_INV) == 1
    assert codes.count(ca.OP_MUL) == 3
    assert codes.count(ca.OP_DIV) == 1
    values = np.random.default_rng(0).normal(size=(50, 4))
    wanted = np.concatenate([values[:, :3] / values[:, 3:], 1 / values[:, 3:], values[:, :1] / values[:, 1:2]], axis=1)
    np.testing.assert_allclose(of_function(function)(values), wanted, rtol=4e-16)
    special = np.array([[0.0, 1.0, -1.0, 0.0], [1.0, 2.0, 3.0, np.inf], [1.0, 2.0, 3.0, np.nan]])
    with np.errstate(divide="ignore", invalid="ignore"):
        np.testing.assert_array_equal(of_function(function)(special)[:, :3], special[:, :3] / special[:, 3:])
