"""A tape that runs others computes what they compute, one after the other."""

import casadi as ca
import numpy as np
import pytest

from polybody.kernels import build, composing
from polybody.kernels.composing import Composition
from polybody.kernels.tape import from_function


def field():
    """(x, p) → ẋ with a part of p alone, and an input as it is."""
    x, p = ca.SX.sym("x", 3), ca.SX.sym("p", 2)
    gain = ca.exp(p[1]) * ca.sin(p[0]) + 3
    rates = ca.vertcat(x[1] / gain + ca.sin(x[0]), p[0], gain * x[2] / x[1])
    return ca.Function("f", [x, p], [ca.densify(rates)])


@pytest.mark.parametrize("long", [0, 10_000])  # copies in the order of the text, and inwards
def test_runs_of_a_tape_on_its_own_results_are_those_of_the_function(long, monkeypatch):
    monkeypatch.setattr(composing, "LONG", long)
    function, make = field(), Composition([3, 2])
    one = from_function(function)
    x, p = make.inputs
    y = [make.sum(a, make.product(b, p[0])) for a, b in zip(x, make.run(one, [x, p])[0], strict=True)]
    z = make.run(one, [y, p])[0]
    tape = make.tape([make.run(one, [z, [p[1], p[0]]])[0], x])
    assert all(a < n for n in range(len(tape.nodes)) for a in tape.arguments(n))
    rng = np.random.default_rng(0)
    states, parameters = 1 + rng.random((7, 3)), 1 + rng.random((7, 2))
    kernel = build("runs", [("x", 3), ("p", 2)], [("y", (3,)), ("x", (3,))], lambda: tape, f"test_composing {long}")
    found, kept = kernel(states, parameters)
    for state, numbers, answer in zip(states, parameters, found, strict=True):
        moved = state + np.asarray(function(state, numbers)).ravel() * numbers[0]
        wanted = function(function(moved, numbers), numbers[::-1])
        np.testing.assert_allclose(answer, np.asarray(wanted).ravel(), rtol=1e-13)
    np.testing.assert_array_equal(kept, states)


def test_what_depends_on_the_same_inputs_is_computed_once():
    make, one = Composition([3, 2]), from_function(field())
    x, p = make.inputs
    y = make.run(one, [x, p])[0]
    tape = make.tape([make.run(one, [y, p])[0]])
    assert [op for op, _, _ in tape.nodes].count(ca.OP_EXP) == 1
    other = Composition([3, 2])
    again = other.run(one, [other.run(one, other.inputs)[0], other.inputs[1][::-1]])[0]
    assert [op for op, _, _ in other.tape([again]).nodes].count(ca.OP_EXP) == 2
