"""Matchings and blocks of equations, against SciPy's and networkx' searches."""

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from polybody.networks.structure import blocks, matching


@pytest.mark.parametrize("seed", range(40))
def test_as_many_rows_have_a_column_as_scipy_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pattern = rng.random(rng.integers(1, 15, 2)) < 0.4 * rng.random()
    rows = [set(np.flatnonzero(row).tolist()) for row in pattern]
    found = matching(rows, pattern.shape[1])
    taken = [j for j in found if j >= 0]
    assert len(set(taken)) == len(taken)
    assert all(j < 0 or j in row for row, j in zip(rows, found, strict=True))
    assert len(taken) == int((maximum_bipartite_matching(csr_matrix(pattern), perm_type="column") >= 0).sum())


@pytest.mark.parametrize("seed", range(40))
def test_blocks_are_the_strong_components_in_topological_order(seed: int) -> None:
    """Of those that can be solved next the one with the first row, as networkx' sort has it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 13))
    pattern = (rng.random((n, n)) < 0.12) | np.eye(n, dtype=bool)[rng.permutation(n)]
    rows = [set(np.flatnonzero(row).tolist()) for row in pattern]
    assigned = matching(rows, n)
    owner = {j: i for i, j in enumerate(assigned)}
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    for i, row in enumerate(rows):
        graph.add_edges_from((owner[j], i) for j in row if owner[j] != i)
    condensed = nx.condensation(graph)
    order = nx.lexicographical_topological_sort(condensed, key=lambda c: min(condensed.nodes[c]["members"]))
    wanted = [sorted(condensed.nodes[c]["members"]) for c in order]
    assert blocks(rows, n) == [(members, [assigned[i] for i in members]) for members in wanted]
