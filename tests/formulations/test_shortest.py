"""Two eliminations of one inertia matrix: the same accelerations on random trees, and the shorter one is compiled."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.algebra.domains import FLOAT
from polybody.formulations import denoc
from polybody.formulations.denoc.elements import Eliminated, eliminated
from polybody.kernels.counts import operation_counts
from polybody.model.counting import GIVEN, general_chain, general_counts
from polybody.quantities.derivatives import graph_domain
from polybody.quantities.shortest import shorter
from polybody.quantities.table import QUANTITIES
from trees import random_state


@pytest.mark.parametrize("seed", range(6))
def test_elements_and_articulated_bodies_give_the_same_accelerations(seed):
    m, q, v, tau, rng = random_state(seed)
    wrenches = rng.normal(size=(len(m.bodies), 6))
    wanted = denoc.forward_dynamics(m, q, v, tau, wrenches)
    found = denoc.forward_dynamics_by_elements(m, q, v, tau, wrenches)
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())
    solved = denoc.solve_by_elements(m, q, tau)
    np.testing.assert_allclose(denoc.mass_matrix(m, q) @ solved, tau, atol=1e-9 * np.abs(tau).max())


@pytest.mark.parametrize("seed", range(3))
def test_one_elimination_answers_vectors_and_columns(seed):
    m, q, _, tau, rng = random_state(seed)
    M, columns = denoc.mass_matrix(m, q), rng.normal(size=(m.nv, 3))
    factors = Eliminated(M, FLOAT)
    for right in (tau, columns):
        before = right.copy()
        np.testing.assert_allclose(M @ factors.solve(right), right, atol=1e-9 * np.abs(right).max())
        np.testing.assert_array_equal(right, before)


def test_zeros_between_branches_stay_zeros():
    """Two arms on one trunk: no element couples them, and elimination does not fill it in."""
    graph = graph_domain()
    M = np.array([[9.0, 1, 1, 1, 1], [1, 5, 1, 0, 0], [1, 1, 4, 0, 0], [1, 0, 0, 5, 1], [1, 0, 0, 1, 4]])
    _, nodes = graph.variables("M", 25)
    symbols = np.where(M == 0, 0.0, nodes.reshape(5, 5))
    symbols = np.array([[symbols[min(i, j), max(i, j)] for j in range(5)] for i in range(5)], dtype=object)
    phi = graph.variables("phi", 5)[1]
    filled = np.array([[nodes[5 * min(i, j) + max(i, j)] for j in range(5)] for i in range(5)], dtype=object)
    sparse, dense = eliminated(symbols, phi, domain=graph), eliminated(filled, phi, domain=graph)
    assert shorter(dense, sparse) is sparse
    rhs = np.arange(1.0, 6.0)
    np.testing.assert_allclose(eliminated(M, rhs, domain=FLOAT), np.linalg.solve(M, rhs), rtol=1e-12)


def test_the_shorter_elimination_is_compiled():
    general = general_chain(6)
    by_bodies = general.mechanism
    counts = general_counts(6)
    assert (counts[GIVEN].multiplications, counts[GIVEN].additions) == (466, 344)
    assert (counts["forward_dynamics"].multiplications, counts["forward_dynamics"].additions) == (878, 664)
    far = general_counts(15)[GIVEN]
    assert (far.multiplications, far.additions) == (178 * 15 - 314, 131 * 15 - 247)
    rng = np.random.default_rng(0)
    q, v, tau = general.random_configuration(rng, 4), *rng.normal(size=(2, 4, 6))
    wanted = np.array([denoc.forward_dynamics(by_bodies, *x) for x in zip(q, v, tau, strict=True)])
    np.testing.assert_allclose(general.forward_dynamics(q, v, tau), wanted, rtol=1e-10)
    # of an arm with a spherical wrist and a slide articulated bodies are shorter
    stanford = pb.load("stanford-arm")
    taken = operation_counts(stanford.engine.function(QUANTITIES["forward_dynamics"]))
    assert taken.multiplications < 200
