"""Tapes that share the numbers of their nodes are those that each would have had by itself."""

import numpy as np
import pytest

from polybody.kernels import build
from polybody.kernels.tape import table_of
from polybody.model.numbering import Numbering
from polybody.model.tracing import Recorded
from polybody.quantities.derivatives import graph_domain


def random_graph(rng, nodes, count):
    """Sums, products, quotients and sines of nodes, each of any two before it."""
    graph, nodes = graph_domain(), list(nodes)
    for _ in range(count):
        x, y = (nodes[k] for k in rng.integers(0, len(nodes), 2))
        kind = rng.integers(0, 5)
        made = [x + y, x - y * 0.5, x * y, graph.sin(x) + 1.5, x / (graph.sin(y) + 2.0)][kind]
        nodes.append(made)
    return nodes


@pytest.mark.parametrize("seed", range(5))
def test_tapes_of_one_numbering_are_those_of_their_own(seed):
    rng = np.random.default_rng(seed)
    (column, x), (other, c) = (graph_domain().variables(name, 4) for name in "xc")
    nodes = random_graph(rng, [*x, *c], 60)
    first = np.array([*rng.choice(np.array(nodes, dtype=object), 5), 2.0, -0.0], dtype=object)
    more = random_graph(rng, nodes, 40)
    second = np.array([*rng.choice(np.array(more, dtype=object), 7), 0.0], dtype=object)
    shared = Numbering([column, other], ())
    states = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    for k, results in enumerate((first, second, first)):
        alone, beside = (Recorded("f", [column, other], [results]) for _ in range(2))
        beside.numbering = shared
        tapes = alone.tape(), beside.tape()
        assert len(tapes[0].nodes) == len(tapes[1].nodes)
        assert all(a < n for n in range(len(tapes[1].nodes)) for a in tapes[1].arguments(n))
        for own, wanted in zip(tapes[1].columns(), table_of(tapes[1].nodes), strict=True):
            assert np.array_equal(own, wanted)  # a later tape has the arrays of earlier ones, and its own
        ports = [("x", 4), ("c", 4)], [("y", (len(results),))]
        found = [build("f", *ports, lambda t=t: t, f"numbering {seed} {k} {j}")(*states) for j, t in enumerate(tapes)]
        np.testing.assert_allclose(found[1], found[0], rtol=1e-14, atol=1e-14)
        assert np.array_equal(np.signbit(found[1][:, -1]), np.signbit(found[0][:, -1]))  # −0.0 is not 0.0
