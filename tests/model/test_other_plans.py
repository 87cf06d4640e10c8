"""States of batches that the first plan does not serve: answered along other plans as by singular values."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import polybody as pb
from polybody.model import constrained_engine, other_plans
from polybody.model.engine import Request
from polybody.model.ranked import Ranked
from polybody.quantities.frames import reactions
from polybody.quantities.table import QUANTITIES


@pytest.fixture
def soon(monkeypatch):
    """Other plans are made as soon as a state is left, not only when it pays."""
    monkeypatch.setattr(other_plans, "WORTH", 1)


@pytest.fixture
def poor(monkeypatch):
    """The first plan is believed at hardly a third of all states."""
    monkeypatch.setattr(constrained_engine, "growth_limit", lambda quantity, plan: 60.0)


@pytest.fixture
def ranked(monkeypatch):
    """How many states are asked for by singular values, call by call."""
    counts, answer = [], Ranked.answer

    def counting(self, request, columns):
        counts.append(int(np.prod(np.broadcast_shapes(*(x.shape[:-1] for x in request.all_arrays)), dtype=int)))
        return answer(self, request, columns)

    monkeypatch.setattr(Ranked, "answer", counting)
    return counts


def states(model, count, seed=0):
    rng = np.random.default_rng(seed)
    q = model.random_configuration(rng, size=count)
    v = model.assemble_velocity(q, 0.3 * rng.normal(size=(count, model.nv)))
    return q, v, rng.normal(size=(count, model.nv))


def by_singular_values(model, name, arrays, columns=(), **options):
    request = Request(QUANTITIES[name], tuple(arrays), **options)
    found = model.engine.ranked.answer(request, columns)
    return found if isinstance(found, tuple) else (found,)


def assert_near(found, wanted, part):
    """Within a part of each state's largest entry, or of the one in the middle where that is larger."""
    for x, y in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        x, y = x.reshape(len(y), -1), y.reshape(len(y), -1)
        size = np.abs(y).max(axis=1)
        assert np.all(np.abs(x - y).max(axis=1) <= part * np.maximum(size, np.median(size)))


@pytest.mark.parametrize("name", ["delta", "hybrid"])
def test_few_states_are_left_to_singular_values_and_all_agree_with_them(name, soon, ranked):
    model = pb.load(name)
    given = states(model, 1500)
    first = model.engine._plan(QUANTITIES["forward_dynamics"], (), given[0])
    J = model.engine.constraints.jacobian(given[0])
    limit = constrained_engine.growth_limit(QUANTITIES["forward_dynamics"], first)
    failing = int(other_plans.doubtful(other_plans._told(J, first), limit).sum())
    assert failing > 50
    ranked.clear()
    found = model.forward_dynamics(*given)
    assert sum(ranked) < 0.2 * failing
    assert 0 < len(model.engine.others.known("forward_dynamics", first, ())) <= other_plans.MOST
    assert_near(found, by_singular_values(model, "forward_dynamics", given), 1e-9)


def test_a_batch_in_another_order_or_in_parts_has_the_same_answers(soon):
    model = pb.load("delta")
    given = states(model, 1200)
    found = model.forward_dynamics(*given)
    order = np.random.default_rng(1).permutation(1200)
    assert_near(model.forward_dynamics(*(x[order] for x in given)), (found[order],), 1e-10)
    parts = [model.forward_dynamics(*(x[k : k + 7] for x in given)) for k in range(0, 70, 7)]
    assert_near(np.concatenate(parts), (found[:70],), 1e-10)
    alone = np.array([model.forward_dynamics(*(x[k] for x in given)) for k in range(60)])
    assert_near(alone, (found[:60],), 1e-10)
    shaped = model.forward_dynamics(*(x.reshape(30, 40, -1) for x in given))
    assert_near(shaped.reshape(1200, -1), (found,), 1e-10)


@pytest.mark.parametrize("name", ["mass_matrix", "coriolis_matrix", "bias_forces", "gravity_forces"])
def test_given_coordinates_keep_their_meaning(name, soon, poor, ranked):
    model = pb.load("five-bar")
    q, v, _ = states(model, 400)
    q, v = (np.ascontiguousarray(x[well_chosen(model, q)]) for x in (q, v))
    arrays = (q, v)[: len(QUANTITIES[name].arguments)]
    columns = (3, 1)
    wanted = by_singular_values(model, name, arrays, columns, independent=columns)
    ranked.clear()
    found = model.engine.answer(Request(QUANTITIES[name], arrays, independent=columns))
    assert model.engine.others._known, "the first plan served them all"
    assert sum(ranked) < len(q) / 4
    assert all(k[2] == columns and p.independent == columns for k, v in model.engine.others._known.items() for p in v)
    assert_near(found, wanted, 1e-9)


def well_chosen(model, q):
    """Where columns 3 and 1 are far from dependent."""
    J = model.engine.constraints.jacobian(q)
    rest = [k for k in range(model.nv) if k not in (3, 1)]
    return np.linalg.svd(J[..., rest], compute_uv=False)[..., len(rest) - 1] > 0.1


@pytest.mark.parametrize("name", ["forward_dynamics", "constraint_loads", "inverse_dynamics", "reactions:world"])
def test_every_answer_of_all_joints_is_that_of_singular_values(name, soon, poor, ranked):
    model = pb.load("five-bar")
    q, v, tau = states(model, 400)
    quantity = QUANTITIES[name] if name in QUANTITIES else reactions(model.mechanism, name.split(":")[1])
    third = model.forward_dynamics(q, v, tau) if "a" in quantity.arguments else tau
    request = Request(quantity, (q, v, third))
    wanted = model.engine.ranked.answer(request, ())
    ranked.clear()
    found = model.engine.answer(request)
    assert any(key[0] == quantity.name for key in model.engine.others._known)
    assert sum(ranked) < 300
    assert_near(found, wanted if isinstance(wanted, tuple) else (wanted,), 1e-8)


def test_states_each_with_its_own_parameters(soon, poor, ranked):
    model = pb.load("five-bar").with_parameters("*.mass")
    given = states(model, 300)
    values = model.parameters.values({}) * np.random.default_rng(3).uniform(0.5, 2, size=(300, 1))
    ranked.clear()
    found = model.forward_dynamics(*given, parameters=values)
    assert model.engine.others._known
    assert sum(ranked) < 200
    wanted = np.array([model.forward_dynamics(*(x[k] for x in given), parameters=values[k]) for k in range(0, 300, 29)])
    assert_near(found[::29], (wanted,), 1e-9)
    assert_near(found, by_singular_values(model, "forward_dynamics", given, parameters=values), 1e-9)


def test_wrenches_go_with_their_states(soon, poor):
    model = pb.load("five-bar")
    given = states(model, 300)
    frame = model.body_names[-1]
    wrenches = {frame: np.random.default_rng(4).normal(size=(300, 6))}
    found = model.forward_dynamics(*given, wrenches=wrenches)
    assert model.engine.others._known
    alone = [model.forward_dynamics(*(x[k] for x in given), wrenches={frame: wrenches[frame][k]}) for k in range(40)]
    assert_near(found[:40], (np.array(alone),), 1e-9)
    without = model.forward_dynamics(*given)
    assert np.abs(found - without).max() > 1e-3


def test_answers_are_written_where_they_are_wanted(soon):
    model = pb.load("delta")
    given = states(model, 800)
    out = np.empty((800, 2 * model.nv))[:, ::2]
    model.forward_dynamics(*given, out=out)
    assert_near(out, (model.forward_dynamics(*given),), 1e-12)


def test_singular_states_stay_with_singular_values_and_are_reported(soon, ranked):
    """Flat positions of a parallelogram, where two branches cross: the rank is lower, whatever the plan."""
    model = parallelogram()
    q = np.repeat(model.neutral()[None], 40, axis=0)
    ranked.clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = model.forward_dynamics(q, np.zeros(model.nv), np.zeros(model.nv))
    assert sum(ranked) == 40
    assert any("40 of 40 states are singular" in str(x.message) for x in told)
    assert_near(found, by_singular_values(model, "forward_dynamics", (q, 0 * q, 0 * q)), 1e-12)


def parallelogram():
    build = pb.Builder("parallelogram", gravity=(0, -9.81, 0))
    for name, length in (("crank", 1.0), ("coupler", 2.0), ("rocker", 1.0)):
        build.body(name, 1.0, (0.5 * length, 0, 0), (1e-3, 0.1, 0.1))
    place = np.eye(4)
    build.joint("a", "revolute", "world", "crank", axis=(0, 0, 1))
    place[0, 3] = 1.0
    build.joint("b", "revolute", "crank", "coupler", place.copy(), axis=(0, 0, 1))
    place[0, 3] = 2.0
    build.joint("d", "revolute", "world", "rocker", place.copy(), axis=(0, 0, 1))
    end = np.eye(4)
    end[0, 3] = 1.0
    build.loop("c", "revolute", "coupler", "rocker", origin_a=place.copy(), origin_b=end, axis=(0, 0, 1))
    return build.model()


def test_plans_are_made_once_singular_values_have_taken_as_long(ranked):
    model = pb.load("delta")
    given = states(model, 1200)
    ranked.clear()
    model.forward_dynamics(*given)
    assert 0 < sum(ranked) < other_plans.WORTH
    assert not model.engine.others._known
    for _ in range(60):
        model.forward_dynamics(*given)
    assert model.engine.others._known


def test_a_plan_is_not_looked_for_again_and_again_where_none_serves(soon, monkeypatch):
    model, looks = parallelogram(), []
    serving = other_plans.serving
    monkeypatch.setattr(other_plans, "serving", lambda *given: looks.append(1) or serving(*given))
    q = np.repeat(model.neutral()[None], 3, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(60):
            model.forward_dynamics(q, 0 * q, 0 * q)
    assert 0 < len(looks) <= 7  # after 1, 2, 4, … times as many


def test_a_row_that_nearly_vanishes_at_a_sample_keeps_its_usual_size(soon):
    """A plan made of a state at which a whole row is 1e-7 of its usual size must not be believed there."""
    model = pb.load("hybrid")
    q = states(model, 200)[0]
    engine = model.engine
    first = engine._plan(QUANTITIES["forward_dynamics"], (), q)
    J = engine.constraints.jacobian(q[:1]).copy()
    pattern = engine.constraints.constraints.spread(np.ones(engine.constraints.entries)) != 0
    J[:, first.pivots[0][0]] *= 1e-7
    plan = other_plans._made_at(J, pattern, first, ())
    assert plan is None or other_plans.doubtful(other_plans._told(J, plan), other_plans.believed(plan)).all()


def test_threads_that_meet_the_same_states_agree(soon):
    model = pb.load("delta")
    given = states(model, 1000)
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda _: model.forward_dynamics(*given), range(8))]
    for x in found[1:]:
        assert_near(x, (found[0],), 1e-10)


def test_float32_takes_the_other_plans_that_are_known(soon, monkeypatch):
    monkeypatch.setattr(other_plans, "WORTH_SINGLE", 1)
    model = pb.load("delta")
    narrow = tuple(x.astype(np.float32) for x in states(model, 1500))
    wide = tuple(x.astype(np.float64) for x in narrow)
    wanted = model.forward_dynamics(*wide)
    for _ in range(2):  # the first meets none, or some of them
        found = model.forward_dynamics(*narrow)
        assert found.dtype == np.float32
        assert_near(found.astype(np.float64), (wanted,), 1e-3)
    assert any("float32" in name and name.split(" along ")[1][:16] in
               {p.label for v in model.engine.others._known.values() for p in v}
               for name in model.engine._kernels)  # fmt: skip
