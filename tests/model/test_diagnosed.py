"""Large batches of models with loops: looked at in pieces, answered and refused as small ones are."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.kernels import arrays


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(arrays, "PIECE", 1000)


def test_pieces_of_a_batch_give_the_same_bits(small_pieces, monkeypatch):
    model = pb.load("five-bar")
    q = model.random_configuration(0, size=(7, 30))
    v = model.assemble_velocity(q, np.ones((7, 30, model.nv)))
    given = q, v, np.zeros(model.nv)
    found = model.forward_dynamics(*given), *model.forward_dynamics_derivatives(*given)
    monkeypatch.setattr(arrays, "PIECE", 1 << 24)
    for x, y in zip(found, (model.forward_dynamics(*given), *model.forward_dynamics_derivatives(*given)), strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_state_off_its_loops_is_counted_in_the_whole_batch(small_pieces):
    model = pb.load("five-bar")
    q = model.random_configuration(0, size=300)
    q[271] += 0.01
    with pytest.raises(pb.PolybodyError, match="271"):
        model.mass_matrix(q)


def test_singular_states_of_pieces_are_found_anew(small_pieces, monkeypatch):
    """With a bound that about half of them pass; the answers do not depend on who found them."""
    model = pb.load("four-bar")
    q = model.random_configuration(1, size=200)
    v = model.assemble_velocity(q, np.ones((200, model.nv)))
    engine = model.engine
    marked = []
    monkeypatch.setattr(engine, "_flag", lambda request, states: marked.append(int(states.sum())))
    monkeypatch.setattr("polybody.model.diagnosed.GROWTH", 4.0)
    found = model.forward_dynamics(q, v, np.zeros(model.nv))
    assert marked
    assert 0 < marked[0] < 200
    monkeypatch.undo()
    np.testing.assert_allclose(found, model.forward_dynamics(q, v, np.zeros(model.nv)), rtol=1e-8, atol=1e-8)
