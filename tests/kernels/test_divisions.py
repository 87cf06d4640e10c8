"""Divisions by one number share its reciprocal: the tape stays in order, and computes the same."""

import casadi as ca
import numpy as np

from polybody.kernels import build
from polybody.kernels.tape import Tape, divided_once, from_function


def test_shared_divisors_are_inverted_once_and_results_stay():
    x = ca.SX.sym("x", 5)
    c, d = x[3] * x[4] + 2, ca.sin(x[0]) + 3
    results = [x[0] / c, x[1] / d, (x[0] / c + x[2]) / c, x[2] / d, 1 / c, x[0] / x[1], x[4]]
    function = ca.Function("f", [x], [ca.vertcat(*results)])
    plain = from_function(function)
    shared = divided_once(Tape(list(plain.nodes), plain.outputs, plain.input_sizes))
    codes = [op for op, _, _ in shared.nodes]
    assert codes.count(ca.OP_INV) == 2
    assert codes.count(ca.OP_DIV) == 1
    assert all(a < n for n in range(len(codes)) for a in shared.arguments(n))
    fresh = Tape(shared.nodes, shared.outputs, shared.input_sizes).columns()
    for kept, computed in zip(shared.columns(), fresh, strict=True):  # the table that it was made with
        np.testing.assert_array_equal(kept, computed)
    states = np.random.default_rng(0).normal(size=(9, 5))
    kernel = build("divisions", [("x", 5)], [("y", (7,))], lambda: function, "test_divisions")
    wanted = np.array([np.asarray(function(state)).ravel() for state in states])
    np.testing.assert_allclose(kernel(states), wanted, rtol=1e-14)
