"""Nodes of expression graphs: what they fold, what tapes and CasADi read of them, and their derivatives."""

from __future__ import annotations

import casadi
import numpy as np
import pytest

from polybody.algebra.domains import FLOAT, GraphDomain, domain
from polybody.algebra.graph import distinct, leaf, rates, replayed
from polybody.algebra.jets import along
from polybody.algebra.slopes import jacobian
from polybody.kernels import build
from polybody.model.tracing import Recorded, trace


def _text(x, y, *, domain):
    """Every operation that a text may use, with signs and constants that fold."""
    c, s = domain.cos(x[0]), domain.sin(x[0])
    versed = domain.const(1) - (domain.const(1) - c)
    small = domain.less(x[1], y[0])
    chosen = domain.where(small, x[1] * y[0], -y[1] / x[2])
    root = domain.sqrt(y[2] * y[2] + domain.const(2))
    return domain.array(
        [
            versed * domain.const(-3) + (s * domain.const(2)) * domain.const(-0.5),
            -(x[0] - y[0]) * (-y[1]) - (x[1] + y[1]) + y[1],
            (x[0] + domain.const(2)) + domain.const(3) - (domain.const(7) - x[1]),
            chosen + domain.atan2(x[1], y[1]) - domain.tanh(x[2]) * domain.exp(x[0] * domain.const(0.1)),
            domain.log(root) / root + x[2] * x[2] - (c * c + s * s) * y[0],
            y[0] * y[1] - y[0] * y[1] + x[0] * y[2] + x[0] * y[2],
        ]
    )


def _states(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return tuple(rng.uniform(0.2, 1.5, size=(2, count, 3)))  # type: ignore[return-value]


def test_nodes_fold_what_is_known():
    graph = domain("casadi")
    _, (x, y) = graph.variables("x", 2)
    for found, expected in (
        (x - x, 0.0), (x * 0, 0.0), (x * 1, x), (-(x * -1), x), ((x - y) + y, x), (x * y - x * y, 0.0),
        (1.0 - (1.0 - x), x), ((x * 4.0) * 0.25, x),
    ):  # fmt: skip
        assert found is expected or found == expected
    assert [found.op for found in (x + (-y), (-x) * y, x * -2.0)] == ["OP_SUB", "OP_NEG", "OP_NEG"]


def test_a_replayed_graph_is_the_text_at_other_values():
    graph = domain("casadi")
    (cx, x), (cy, y), (cz, z) = (graph.variables(name, 3) for name in "xyz")
    found = replayed(list(_text(x, y, domain=graph)), dict(zip([a.serial for a in x], z * y, strict=True)))
    wanted = _text(z * y, y, domain=graph)
    values = np.random.default_rng(2).uniform(0.2, 1.5, size=(3, 3))
    for column in (found, wanted):
        column[:] = [float(casadi.Function("f", [cx, cy, cz], [entry.sx])(*values)) for entry in column]
    np.testing.assert_allclose(found, wanted.astype(float), rtol=1e-14)
    hidden = leaf(casadi.sin(x[0].sx))  # an expression that a replay cannot see into
    assert replayed([hidden * y[0]], {x[0].serial: z[0]}) is None


@pytest.mark.parametrize("tier", ["fast", "optimised"])
def test_tape_and_casadi_function_of_a_graph_equal_the_text_on_numbers(monkeypatch, tier):
    monkeypatch.setenv("POLYBODY_TIER", tier)
    recorded = trace("every operation", [("x", 3), ("y", 3)], _text)
    kernel = build("every", [("x", 3), ("y", 3)], [("r", (6,))], recorded.tape, f"test_graph {tier}")
    x, y = _states(9)
    expected = np.array([_text(a, b, domain=FLOAT) for a, b in zip(x, y, strict=True)])
    np.testing.assert_allclose(kernel(x, y), expected, rtol=0, atol=1e-14)
    by_casadi = np.array([np.array(recorded(a, b)).ravel() for a, b in zip(x, y, strict=True)])
    np.testing.assert_allclose(by_casadi, expected, rtol=0, atol=1e-14)


def test_rates_of_nodes_equal_jets():
    graph = domain("casadi")
    (xs, x), (ys, y) = graph.variables("x", 3), graph.variables("y", 3)
    rng = np.random.default_rng(6)
    ways = [tuple(rng.normal(size=(2, 3))) for _ in range(3)]
    nodes = along(_text, (x, y), ways, graph)
    function = casadi.Function("rates", [xs, ys], [graph.column(array) for array in nodes])
    for a, b in zip(*_states(4), strict=True):
        found = [np.array(column).ravel() for column in function(a, b)]
        np.testing.assert_allclose(found, along(_text, (a, b), ways, FLOAT), rtol=0, atol=1e-14)


def test_rates_hold_expressions_that_are_named_as_inputs():
    graph = domain("casadi")
    _, (x, y) = graph.variables("x", 2)
    inner = x * y
    point = np.array([x, inner], dtype=object)
    text = lambda p, *, domain: np.array([p[0] * p[1]], dtype=object)  # noqa: E731
    (found,) = along(text, (point,), [(np.array([0.0, 1.0]),)], graph)
    assert found[0] is x


def test_jacobian_by_nodes_is_casadis():
    graph = domain("casadi")
    (x, x_nodes), (y, y_nodes) = graph.variables("x", 3), graph.variables("y", 3)
    values = _text(x_nodes, y_nodes, domain=graph)
    found = jacobian(values, [*x_nodes, *y_nodes])
    assert found is not None
    theirs = casadi.jacobian(graph.column(values), casadi.vertcat(x, y))
    both = casadi.Function("both", [x, y], [casadi.reshape(graph.column(found), 6, 6).T, theirs])
    for at in zip(*_states(20), strict=True):
        ours, wanted = (np.array(part) for part in both(*at))
        np.testing.assert_allclose(ours, wanted, rtol=1e-13, atol=1e-14)


def test_jacobian_by_nodes_refuses_what_it_cannot_see_into():
    graph = domain("casadi")
    column, (x, y) = graph.variables("x", 2)
    assert jacobian([leaf(column[0] * column[1])], [x, y]) is None
    known = jacobian([x * x + 3.0, y * 0.0, 2.0], [x, y])
    assert known is not None
    assert [d == 0 for d in known.ravel()] == [False, True, True, True, True, True]


def test_a_tape_takes_leaves_that_are_expressions_of_their_own_from_casadi():
    graph = domain("casadi")
    x, nodes = graph.variables("x", 2)
    text = casadi.sin(x[0]) / x[1]
    recorded = Recorded("mixed", [x], [[leaf(text) * nodes[0] + leaf(text + 1.0), nodes[1], 3.0]])
    kernel = build("mixed", [("x", 2)], [("y", (3,))], recorded.tape, "leaves of their own")
    at = np.array([[0.3, 1.7], [-2.0, 0.4]])
    y = np.sin(at[:, 0]) / at[:, 1]
    expected = np.stack([y * at[:, 0] + y + 1.0, at[:, 1], np.full(2, 3.0)], axis=1)
    np.testing.assert_allclose(kernel(at), expected, rtol=1e-15)


def test_symmetric_equations_are_solved_from_their_upper_triangle_in_fewer_operations():
    graph, rng, n = GraphDomain(), np.random.default_rng(8), 14
    column, entries = graph.variables("m", n * n)
    right, b = graph.variables("b", n)
    M = entries.reshape(n, n)
    upper = np.where(np.triu(np.ones((n, n))) > 0, M, 0.0)
    found, plain = graph.solve_symmetric(upper, b), graph.solve(M, b)
    factor = rng.normal(size=(n, n))
    matrix, load = factor @ factor.T + np.eye(n), rng.normal(size=n)
    function = casadi.Function("x", [column, right], [graph.column(found)])
    solved = np.array(function(matrix.ravel(), load)).ravel()
    np.testing.assert_allclose(matrix @ solved, load, rtol=1e-12, atol=1e-12)
    assert distinct(found) < 0.75 * distinct(plain)


def test_rates_along_many_directions_are_those_along_each():
    graph = GraphDomain()
    _, x = graph.variables("x", 5)
    outputs = [graph.sin(x[0]) * x[1], x[2] / (x[3] * x[3] + 1.0), x[4] * 2.0, graph.const(3)]
    directions = [{y.serial: float(k == j) for j, y in enumerate(x)} for k in range(5)]
    together = rates(outputs, directions)
    for direction, row in zip(directions, together, strict=True):
        for one, other in zip(row, rates(outputs, [direction])[0], strict=True):
            assert str(graph.column([one])) == str(graph.column([other]))
