"""Loops in float32: kernels of float32, and float64 for states at which these have too few digits."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

import polybody as pb
from polybody.errors import InputError
from polybody.model import single
from polybody.model.diagnosed import doubtful
from polybody.model.engine import Request
from polybody.quantities.table import QUANTITIES

SINGLE = np.float32
#: of a state's largest entry, or of that of the state in the middle where its own is smaller: the worst of 16,384
#: random states of Stewart, delta and 3-RRR was 2e-3
WORST = 5e-3
NAMES = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "coriolis_matrix", "bias_forces",
    "gravity_forces", "passive_forces",
)  # fmt: skip
DERIVATIVES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")


@functools.cache
def numbers(name, count=400):
    """(the model, arrays of numbers that float32 has): states on the constraints, and motions under random forces."""
    model, rng = pb.load(name), np.random.default_rng(3)
    q = model.random_configuration(rng, size=count)
    v = model.assemble_velocity(q, 0.3 * rng.normal(size=(count, model.nv)))
    tau = rng.normal(size=(count, model.nv))
    given = {"q": q, "v": v, "tau": tau, "a": model.forward_dynamics(q, v, tau)}
    return model, {key: x.astype(SINGLE) for key, x in given.items()}


def asked(model, given, name):
    """(answer in float32, in float64, marks of the states that float64 had to compute)."""
    narrow = [given[key] for key in QUANTITIES[name].arguments]
    call = getattr(model, name)
    found, wanted = call(*narrow), call(*(x.astype(float) for x in narrow))
    kernels = {key: k for key, k in model.engine._kernels.items() if key.startswith(f"{name} ") and "float32" in key}
    assert len(kernels) == 1
    *_, doubt = next(iter(kernels.values()))(*narrow)
    several = [x if isinstance(x, tuple) else (x,) for x in (found, wanted)]
    return several[0], several[1], ~(doubt[..., 0] < 1)


def errors(found, wanted):
    rest = tuple(range(1, wanted.ndim))
    sizes = np.abs(wanted).max(axis=rest)
    return np.abs(found - wanted).max(axis=rest) / np.maximum(sizes, np.median(sizes))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", ["four-bar", "3-rrr", "stewart"])
def test_float32_answers_are_near_float64_at_every_random_state(model, name):
    model, given = numbers(model)
    for found, wanted in zip(*asked(model, given, name)[:2], strict=True):
        assert found.dtype == SINGLE
        if np.any(wanted):
            assert errors(found, wanted).max() < WORST
            assert np.median(errors(found, wanted)) < 1e-5


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_too(name):
    model, given = numbers("3-rrr")
    for found, wanted in zip(*asked(model, given, name)[:2], strict=True):
        assert found.dtype == SINGLE
        assert errors(found, wanted).max() < WORST


def test_doubtful_states_have_the_digits_of_float64_and_others_are_few_of_them():
    model, given = numbers("stewart")
    (found,), (wanted,), doubtful = asked(model, given, "forward_dynamics")
    assert 0 < doubtful.sum() < 0.2 * len(doubtful)
    np.testing.assert_array_equal(found[doubtful], wanted[doubtful].astype(SINGLE))
    assert np.any(found[~doubtful] != wanted[~doubtful].astype(SINGLE))  # by code of float32


def test_a_state_has_the_same_bits_alone_and_in_any_batch():
    model, given = numbers("stewart")
    (found,), _, doubtful = asked(model, given, "forward_dynamics")
    q, v, tau = (given[key] for key in ("q", "v", "tau"))
    for k in (0, int(np.flatnonzero(doubtful)[0])):
        np.testing.assert_array_equal(model.forward_dynamics(q[k], v[k], tau[k]), found[k])
    square = model.forward_dynamics(*(x.reshape(20, 20, -1) for x in (q, v, tau)))
    np.testing.assert_array_equal(square.reshape(found.shape), found)
    out = np.empty(found.shape)
    assert model.forward_dynamics(q, v, tau, out=out) is out
    np.testing.assert_array_equal(out, found)


def test_doubtful_states_are_computed_in_parts_with_the_same_bits(monkeypatch):
    model, given = numbers("stewart")
    narrow = [given[key] for key in ("q", "v")]
    wanted, marked = model.bias_forces(*narrow), asked(model, given, "bias_forces")[2]
    monkeypatch.setattr(single, "AT_ONCE", 3)
    assert marked.sum() > 2 * single.AT_ONCE
    np.testing.assert_array_equal(model.bias_forces(*narrow), wanted)


def test_states_near_singular_ones_have_answers_of_elimination_that_singular_values_confirm(monkeypatch):
    """Between the growth that float64 believes for itself and the one that it believes for float32."""
    model, rng = pb.load("3-rrr"), np.random.default_rng(5)
    q = model.random_configuration(rng, size=20_000).astype(SINGLE)
    q, zero = q.astype(float), np.zeros((20_000, model.nv))
    quantity, engine = QUANTITIES["forward_dynamics"], model.engine
    plan = engine._plan(quantity, (), q)
    assert plan.blocks
    told = engine.eliminated(quantity, q, zero, zero, plan=plan)[-1]
    near = doubtful(told, 1e8) & ~doubtful(told, single.GROWTH_SINGLE)
    assert near.sum() > 3
    state = q[near], zero[near], zero[near]
    wanted = engine.ranked.answer(Request(quantity, state), ())
    monkeypatch.setattr(engine.ranked, "answer", lambda *_: pytest.fail("by singular values"))
    found = model.forward_dynamics(*(x.astype(SINGLE) for x in state))
    assert errors(found, wanted).max() < 2e-4


def test_errors_count_the_states_of_the_batch():
    model, given = numbers("3-rrr")
    q, v, a = (given[key].copy() for key in ("q", "v", "a"))
    q[7, 0] += 0.01
    with pytest.raises(InputError, match=r"q breaks the constraints \(state 7 of the batch\)"):
        model.mass_matrix(q)
    a[9, 0] += 0.01 * np.abs(a[9]).max()
    with pytest.raises(InputError, match=r"a breaks the constraints \(state 9 of the batch\)"):
        model.inverse_dynamics(given["q"], v, a)
    v[5, 0] += 0.01
    with pytest.raises(InputError, match=r"v breaks the constraints \(state 5 of the batch\)"):
        model.bias_forces(given["q"], v)
    v[5, 0] = np.nan
    with pytest.raises(InputError, match="v breaks the constraints"):
        model.bias_forces(given["q"], v)


def test_wrenches_of_loops():
    model, given = numbers("3-rrr")
    wrenches = {model.body_names[-1]: np.array([0.1, 0.2, 0.3, 4.0, 5.0, 6.0])}
    narrow = [given[key] for key in ("q", "v", "tau")]
    found = model.forward_dynamics(*narrow, wrenches=wrenches)
    wanted = model.forward_dynamics(*(x.astype(float) for x in narrow), wrenches=wrenches)
    assert found.dtype == SINGLE
    assert errors(found, wanted).max() < WORST


def rhombus():
    """Four equal bars: where all lie on one line, motions of two branches pass."""
    build = pb.Builder("rhombus", gravity=(0, -9.81, 0))
    for k, parent in enumerate(("world", "b0", "b1")):
        build.body(f"b{k}", 1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
        origin = np.eye(4)
        origin[0, 3] = float(k > 0)
        build.joint(f"j{k}", "revolute", parent, f"b{k}", origin=origin)
    end, ground = np.eye(4), np.eye(4)
    end[0, 3] = ground[0, 3] = 1.0
    build.loop("closed", "revolute", "b2", "world", end, ground)
    return build.model()


def test_a_singular_state_is_reported_once_and_counted_in_the_batch():
    model = rhombus()
    angle = np.array([0.7, 1.1, 0.0, 0.9])
    q = np.stack([angle, -angle, angle + np.pi], axis=-1)
    zero = np.zeros((4, model.nv))
    for dtype in (SINGLE, np.float64):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = model.forward_dynamics(*(x.astype(dtype) for x in (q, zero, zero)))
        assert found.dtype == dtype
        said = [str(x.message) for x in told if "singular" in str(x.message)]
        assert len(said) == 1
        assert said[0].startswith("1 of 4 states are singular; the first is 2")


@pytest.mark.filterwarnings("ignore:.*states are singular")  # rounded states of Bricard's mechanism have more rank
def test_rows_that_only_their_numbers_make_redundant_are_left_to_float64():
    model, given = numbers("bricard", 20)
    narrow = [given[key] for key in ("q", "v", "tau")]
    found = model.forward_dynamics(*narrow)
    np.testing.assert_array_equal(found, model.forward_dynamics(*(x.astype(float) for x in narrow)).astype(SINGLE))
    assert not any("float32" in name for name in model.engine._kernels)
