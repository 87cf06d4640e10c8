"""Answers by a quantity's text on the numbers of many states: those of kernels, to rounding, and asked for once."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms import random_tree
from polybody import Model
from polybody.kernels import background
from polybody.mechanism.mechanism import mechanism_from
from polybody.model.engine import Request
from polybody.model.tree_engine import FEW_TIMES, TIMES, sparing
from polybody.quantities.table import QUANTITIES

NAMES = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "gravity_forces", "coriolis_matrix", "energy",
         "momentum", "passive_forces", "inverse_dynamics_derivatives", "forward_dynamics_derivatives")  # fmt: skip


def asked(model: Model, name: str, states: int | None) -> Request:
    rng = np.random.default_rng(3)
    q = model.random_configuration(rng, size=states)
    shape = (model.nv,) if states is None else (states, model.nv)
    known = {"q": q, "v": rng.normal(size=shape), "a": rng.normal(size=shape), "tau": rng.normal(size=shape)}
    return Request(QUANTITIES[name], tuple(known[x] for x in QUANTITIES[name].arguments))


def arrays(answer) -> tuple[np.ndarray, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


@pytest.mark.parametrize("states", [None, 5])
@pytest.mark.parametrize("seed", range(3))
def test_texts_on_numbers_answer_what_kernels_answer(seed, states, monkeypatch, tmp_path):
    """On random branched trees with spherical, screw and floating joints: equal to rounding, in shape too."""
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    monkeypatch.setenv("POLYBODY_TIER", "fast")  # nothing is compiled in the background for a few states
    monkeypatch.setattr("polybody.model.tree_engine._ONCE", {})
    model = Model(mechanism_from(random_tree(np.random.default_rng(seed), 6)))
    for name in NAMES:
        request = asked(model, name, states)
        with sparing():
            first = arrays(model.engine.answer(request))
        assert not model.engine.has_kernel(request.quantity)
        for found, wanted in zip(first, arrays(model.engine.answer(request)), strict=True):
            assert np.shape(found) == np.shape(wanted)
            assert np.abs(found - wanted).max() <= 1e-10 * (1 + np.abs(wanted).max()), name


def test_so_many_answers_for_a_few_states_come_before_a_kernel(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    monkeypatch.setenv("POLYBODY_TIER", "auto")
    monkeypatch.setattr("polybody.model.tree_engine._ONCE", {})
    model = Model(mechanism_from(random_tree(np.random.default_rng(7), 5)))
    request = asked(model, "energy", 4)
    with sparing():
        for _ in range(FEW_TIMES):
            model.engine.answer(request)
            assert not model.engine.has_kernel(request.quantity)
        model.engine.answer(request)
    assert model.engine.has_kernel(request.quantity)


def test_several_quantities_together_are_read_from_their_texts_once_and_then_share_a_kernel(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    monkeypatch.setenv("POLYBODY_TIER", "fast")
    monkeypatch.setattr("polybody.model.tree_engine._ONCE", {})
    model = Model(mechanism_from(random_tree(np.random.default_rng(5), 6)))
    rng = np.random.default_rng(1)
    q, v = model.random_configuration(rng, size=4), rng.normal(size=(4, model.nv))
    names = ["energy", "momentum"]
    told = [QUANTITIES[name] for name in names]
    with sparing():
        first = model.compute(q, v, quantities=names)
        assert not any(model.engine.has_kernel(quantity) for quantity in told)
        second = model.compute(q, v, quantities=names)
        assert not any(model.engine.has_kernel(quantity) for quantity in told)  # one kernel answered for both
    for name in names:
        for found, wanted in zip(arrays(first[name]), arrays(second[name]), strict=True):
            assert found.shape == wanted.shape
            assert np.abs(found - wanted).max() <= 1e-10 * (1 + np.abs(wanted).max())


def test_so_many_single_answers_come_before_a_kernel(monkeypatch, tmp_path):
    """Also of calls that go straight to kernels from the second on."""
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    monkeypatch.setenv("POLYBODY_TIER", "fast")
    monkeypatch.setattr("polybody.model.tree_engine._ONCE", {})
    model = Model(mechanism_from(random_tree(np.random.default_rng(9), 5)))
    q, quantity = model.random_configuration(2), QUANTITIES["mass_matrix"]
    with sparing():
        found = [model.mass_matrix(q) for _ in range(TIMES)]
        assert not model.engine.has_kernel(quantity)
        found.append(model.mass_matrix(q))
    assert model.engine.has_kernel(quantity)
    assert np.abs(np.array(found) - found[-1]).max() <= 1e-10 * np.abs(found[-1]).max()


def test_who_waits_for_optimised_code_gets_no_texts(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    monkeypatch.setenv("POLYBODY_TIER", "optimised")
    assert background.tier() == "optimised"
    model = Model(mechanism_from(random_tree(np.random.default_rng(8), 4)))
    request = asked(model, "mass_matrix", None)
    with sparing():
        model.engine.answer(request)
    assert model.engine.has_kernel(request.quantity)


def test_sparing_calls_go_straight_to_a_kernel_that_is_there_and_make_none(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    monkeypatch.setenv("POLYBODY_TIER", "auto")
    monkeypatch.setattr("polybody.model.tree_engine._ONCE", {})
    model = Model(mechanism_from(random_tree(np.random.default_rng(7), 5)))
    q, v = asked(model, "energy", 4).arrays
    with sparing():
        told = [model.energy(q, v) for _ in range(2)]
        assert not model._plain
        assert not model.engine.has_kernel(QUANTITIES["energy"])
    wanted = model.energy(q, v)
    with sparing():
        told += [model.energy(q, v) for _ in range(2)]
        assert model._plain.keys() == {("energy", "d")}
        told.append(model.energy(q, v))
    for found in told:
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
