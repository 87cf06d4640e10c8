"""Graphs read operation by operation give the numbers of their texts, for one state and for many."""

import math

import numpy as np
import pytest

from polybody.algebra.domains import GraphDomain
from polybody.model.tracing import trace


def text(x, y, domain):
    """Every operation that a graph may have."""
    a, b, c = x
    turned = domain.atan2(domain.sin(a), domain.cos(b)) + domain.tanh(c) * domain.exp(-a)
    chosen = domain.where(domain.less(a, b), domain.sqrt(a * a + domain.const(1)), domain.log(b * b + domain.const(2)))
    powers = [a * a - b / (c * c + domain.const(3)), (a * a + domain.const(1)) ** 1.5, -a, domain.const(2.5), y[0] - a]
    return np.array([turned, chosen, *powers], dtype=object), np.array([[y[0] * c, domain.const(0)]], dtype=object)


def by_numpy(x, y):
    a, b, c = x
    turned = math.atan2(math.sin(a), math.cos(b)) + math.tanh(c) * math.exp(-a)
    chosen = math.sqrt(a * a + 1) if a < b else math.log(b * b + 2)
    return np.array([turned, chosen, a * a - b / (c * c + 3), (a * a + 1) ** 1.5, -a, 2.5, y[0] - a]), [[y[0] * c, 0.0]]


@pytest.fixture(scope="module")
def evaluation():
    found = trace("text", [("x", 3), ("y", 1)], text, graph=GraphDomain()).evaluation([(7,), (1, 2)])
    assert found is not None
    return found


@pytest.mark.parametrize("lead", [(), (5,), (2, 3), (0,), (4, 0)])
def test_a_graph_read_in_python_has_the_numbers_of_its_text(evaluation, lead):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(*lead, 3)), rng.normal(size=(*lead, 1))
    first, second = evaluation(x, y)
    assert (first.shape, second.shape) == ((*lead, 7), (*lead, 1, 2))
    for index in np.ndindex(lead):
        wanted = by_numpy(x[index].tolist(), y[index].tolist())
        np.testing.assert_allclose(first[index], wanted[0], rtol=4e-15, atol=1e-15)
        np.testing.assert_allclose(second[index], wanted[1], rtol=4e-15, atol=1e-15)


def test_inputs_of_a_graph_broadcast(evaluation):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(4, 3)), rng.normal(size=1)
    for one, other in zip(evaluation(x, y), evaluation(x, np.tile(y, (4, 1))), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_has_no_value_is_not_finite_as_in_kernels():
    text = lambda x, domain: np.array([domain.const(1) / x[0], domain.sqrt(x[1])], dtype=object)  # noqa: E731
    made = trace("inverse", [("x", 2)], text, graph=GraphDomain())
    found = made.evaluation([(2,)])
    assert found is not None
    one = found(np.array([0.0, -1.0]))[0]
    assert np.isinf(one[0])
    assert np.isnan(one[1])
    np.testing.assert_array_equal(found(np.array([[0.0, -1.0], [2.0, 4.0]]))[0], [[np.inf, np.nan], [0.5, 2.0]])


def test_a_leaf_that_is_an_expression_is_left_to_kernels():
    graph = GraphDomain()
    column, _ = graph.variables("z", 1)
    made = trace("own", [("x", 1)], lambda x, domain: np.array([x[0] * graph.scalars(column * column)[0]]), graph=graph)
    assert made.evaluation([(1,)]) is None
