"""Large batches of models with loops: looked at in pieces, answered and refused as small ones are."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.kernels import arrays
from polybody.quantities.table import QUANTITIES

ASKED = QUANTITIES["forward_dynamics"]


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


@pytest.mark.parametrize("name", ["four-bar", "five-bar"])
def test_inverse_dynamics_of_many_states_is_that_of_few(name):
    """Pieces of the size that users meet, each with the accelerations of its own states; none passes unseen."""
    model, rng = pb.load(name), np.random.default_rng(1)
    q = model.random_configuration(rng, size=500)
    v = model.assemble_velocity(q, rng.normal(size=(500, model.nv)))
    a = model.forward_dynamics(q, v, rng.normal(size=(500, model.nv)))
    pick = rng.integers(500, size=200_000)
    wanted = model.inverse_dynamics(q, v, a)
    many = [x[pick] for x in (q, v, a)]
    np.testing.assert_array_equal(model.inverse_dynamics(*many), wanted[pick])
    out = np.empty_like(many[2])
    model.inverse_dynamics(*many, out=out)
    np.testing.assert_array_equal(out, wanted[pick])
    many[2][171_234] += 1.0
    with pytest.raises(pb.PolybodyError, match="171234"):
        model.inverse_dynamics(*many)


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
    told = engine.eliminated(ASKED, q, v, np.zeros(model.nv), plan=engine._plan(ASKED, (), q))[-1]
    monkeypatch.setattr("polybody.model.diagnosed.GROWTH_BLOCKS", float(np.median(told[:, 2])))
    found = model.forward_dynamics(q, v, np.zeros(model.nv))
    assert marked
    assert 0 < marked[0] < 200
    monkeypatch.undo()
    np.testing.assert_allclose(found, model.forward_dynamics(q, v, np.zeros(model.nv)), rtol=1e-8, atol=1e-8)


def test_singular_states_are_solved_in_pieces_and_results_go_where_they_are_asked(small_pieces, monkeypatch):
    """Memory does not grow with the number of doubtful states, nor by another copy of the results."""
    model = pb.load("four-bar")
    q = model.random_configuration(1, size=200)
    v, tau = model.assemble_velocity(q, np.ones((200, model.nv))), np.zeros(model.nv)
    wanted = model.forward_dynamics(q, v, tau)
    most, answer = [], model.engine.ranked.answer

    def counted(request, columns):
        most.append(len(request.arrays[0]))
        return answer(request, columns)

    monkeypatch.setattr(model.engine.ranked, "answer", counted)
    monkeypatch.setattr("polybody.model.diagnosed.GROWTH_BLOCKS", 4.0)
    out = np.empty((200, model.nv))
    assert model.forward_dynamics(q, v, tau, out=out) is out
    assert len(most) > 10
    assert max(most) < 10
    np.testing.assert_allclose(out, wanted, rtol=1e-8, atol=1e-8)
    inside = q.copy()  # results over an argument
    model.forward_dynamics(inside, v, tau, out=inside)
    np.testing.assert_allclose(inside, wanted, rtol=1e-8, atol=1e-8)


def test_an_error_of_a_doubtful_state_names_it(small_pieces, monkeypatch):
    model = pb.load("four-bar")
    q = model.random_configuration(1, size=200)
    v = model.assemble_velocity(q, np.ones((200, model.nv)))
    answer = model.engine.ranked.answer

    def refuses(request, columns):
        if np.any(np.all(request.arrays[0] == q[171], axis=-1)):
            raise pb.PolybodyError("refused")
        return answer(request, columns)

    monkeypatch.setattr(model.engine.ranked, "answer", refuses)
    monkeypatch.setattr("polybody.model.diagnosed.GROWTH_BLOCKS", 0.0)
    with pytest.raises(pb.PolybodyError, match=r"refused .state 171 of the batch"):
        model.forward_dynamics(q, v, np.zeros(model.nv))


@pytest.mark.filterwarnings("ignore:.*states are singular")
@pytest.mark.parametrize("name", ["3-rrr", "stewart"])
def test_answers_at_the_worst_states_have_the_digits_of_singular_values(name):
    """States at which single pivots, or blocks, of the plan nearly vanish, and are believed all the same."""
    model, rng = pb.load(name), np.random.default_rng(0)
    q = model.random_configuration(rng, size=4000)
    v = model.assemble_velocity(q, 0.3 * rng.normal(size=(4000, model.nv)))
    tau = rng.normal(size=(4000, model.nv))
    told = model.engine.eliminated(ASKED, q, v, tau, plan=model.engine._plan(ASKED, (), q))[-1]
    worst = np.argsort(told[:, 2])[-150:]
    wanted = model.forward_dynamics(q[worst], v[worst], tau[worst], formulation="denoc")
    answered = model.forward_dynamics(q, v, tau)[worst]
    assert np.max(np.abs(answered - wanted).max(axis=1) / np.abs(wanted).max(axis=1)) < 1e-9
