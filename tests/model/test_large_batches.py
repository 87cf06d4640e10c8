"""Large batches are answered piece by piece, and batches of any kind without Python per state."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import polybody as pb
from machines import four_bar_chain, parallelogram
from mechanisms import random_tree
from polybody.kernels import arrays
from polybody.mechanism import mechanism_from
from polybody.model import batch_assembly, ranked, sets, tree_engine
from polybody.model.assembly import Assembly
from polybody.model.engine import Request
from polybody.quantities.table import QUANTITIES


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "PIECE", 1 << 14)


def motion(model: pb.Model, size: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    q = model.random_configuration(rng, size)
    v = model.assemble_velocity(q, rng.normal(size=(size, model.nv)))
    return q, v, model.assemble_acceleration(q, v, rng.normal(size=(size, model.nv)))


@pytest.mark.parametrize("name", pb.formulations())
def test_a_formulation_compiled_for_a_batch_equals_its_text_on_numbers(name: str) -> None:
    model = pb.Model(mechanism_from(random_tree(3, 5)))
    q, v, a = motion(model, tree_engine.FORMULATED_FROM)
    loads = {model.frame_names[-1]: np.arange(6.0)}
    for call, given in ((model.inverse_dynamics, (q, v, a)), (model.forward_dynamics, (q, v, a))):
        found = call(*given, wrenches=loads, formulation=name)
        for k in (0, len(q) - 1):
            one = call(*(x[k] for x in given), wrenches=loads, formulation=name)
            assert np.abs(found[k] - one).max() < 1e-11 * (1 + np.abs(one).max())


def test_a_formulation_takes_parameters_of_each_state_of_a_batch() -> None:
    model = pb.load("stanford-arm").with_parameters("*.mass")
    q, v, a = motion(model, tree_engine.FORMULATED_FROM)
    values = model.parameters.nominal * np.random.default_rng(1).uniform(0.5, 2, (len(q), len(model.parameters)))
    found = model.inverse_dynamics(q, v, a, formulation="network", parameters=values)
    default = model.inverse_dynamics(q, v, a, parameters=values)
    assert np.abs(found - default).max() < 1e-11 * np.abs(default).max()
    few = model.inverse_dynamics(q[:3], v[:3], a[:3], formulation="network", parameters=values[:3])
    assert np.abs(few - found[:3]).max() < 1e-11 * np.abs(default).max()


def test_states_with_parameters_of_their_own_are_assembled_together_as_each_by_itself() -> None:
    model = pb.load("four-bar").with_parameters("*.origin.x")
    rng = np.random.default_rng(2)
    values = model.parameters.nominal + 1e-2 * rng.normal(size=(40, len(model.parameters)))
    q = model.random_configuration(rng, 40, parameters=values)
    assert np.abs(model.constraints.residual(q, parameters=values)).max() < 1e-11
    v = model.assemble_velocity(q, rng.normal(size=(40, model.nv)), parameters=values)
    a = model.assemble_acceleration(q, v, rng.normal(size=(40, model.nv)), parameters=values)
    for k in (0, 39):
        own = model.parameters.at(values[k])
        assert np.abs(own.assemble(q[k]) - q[k]).max() < 1e-9
        assert np.abs(own.assemble_velocity(q[k], v[k]) - v[k]).max() < 1e-12
        assert np.abs(own.assemble_acceleration(q[k], v[k], a[k]) - a[k]).max() < 1e-10


def test_pieces_of_a_batch_give_what_the_whole_gives(small_pieces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    model = pb.load("four-bar")
    q, v, a = motion(model, 600)
    single = [x.astype(np.float32) for x in (q, v, a)]
    calls = [
        lambda: model.inverse_dynamics(*single),
        lambda: model.inverse_dynamics(q, v, a, weights=[1.0] * len(model.actuation.names)),
        lambda: model.mass_matrix(q, formulation="denoc"),
        lambda: model.assemble_velocity(q, v + 1),
        lambda: model.assemble(q + 1e-3),
    ]
    found = [call() for call in calls]
    monkeypatch.setattr(arrays, "PIECE", 1 << 30)
    for part, call in zip(found, calls, strict=True):
        whole = call()
        assert (part.dtype, part.shape) == (whole.dtype, whole.shape)
        assert np.abs(part - whole).max() <= 1e-9 * np.abs(whole).max()


def test_errors_of_a_piece_count_the_states_of_the_batch(small_pieces: None) -> None:
    model = pb.load("four-bar")
    q, v, a = (x.reshape(300, 2, -1) for x in motion(model, 600))
    q[257, 1] += 0.1
    for call in (
        lambda: model.inverse_dynamics(q, v, a, weights=[1.0] * len(model.actuation.names)),
        lambda: model.inverse_dynamics(q, v, a),
        lambda: model.mass_matrix(q.astype(np.float32)),
    ):
        with pytest.raises(pb.PolybodyError, match=r"breaks the constraints.*state 257, 1 of the batch"):
            call()


SINGULAR = ("mass_matrix", "bias_forces", "inverse_dynamics_derivatives", "motion_derivatives", "projection_step")


def test_singular_states_are_answered_together_as_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    model = pb.load("four-bar").with_parameters("*.mass")
    q, v, a = motion(model, ranked.FEW)
    solver, columns = model.engine.ranked, model.engine.coordinates(q)
    given = {"q": q, "v": v, "a": a, "tau": a}
    values = model.parameters.nominal * np.random.default_rng(1).uniform(0.5, 2, (len(q), len(model.parameters)))
    for name in SINGULAR:
        wanted = QUANTITIES[name]
        arrays = tuple(given[key] for key in wanted.arguments)
        for parameters in (None, values):
            request = Request(wanted, arrays, parameters=parameters)
            together = solver.answer(request, columns)
            monkeypatch.setattr(ranked, "LARGE", 0)  # on numbers, state by state
            alone = solver.answer(request, columns)
            monkeypatch.undo()
            pairs = zip(together, alone, strict=True) if isinstance(alone, tuple) else [(together, alone)]
            for x, y in pairs:
                assert np.abs(x - y).max() < 1e-10 * (1 + np.abs(y).max())


def test_singular_states_with_parameters_of_their_own_are_solved_with_their_own_rank() -> None:
    """A parallelogram lies flat at q = 0 whatever its masses are."""
    model = parallelogram().with_parameters("*.mass")
    q = np.zeros((20, model.nq))
    values = model.parameters.nominal * np.random.default_rng(1).uniform(0.5, 2, (20, len(model.parameters)))
    with pytest.warns(pb.PolybodyWarning, match="20 of 20 states are singular"):
        found = model.forward_dynamics(q, 0 * q, q + 1, parameters=values)
    for k in (0, 19):
        with pytest.warns(pb.PolybodyWarning, match="singular"):
            own = model.parameters.at(values[k]).forward_dynamics(q[k], 0 * q[k], q[k] + 1)
        assert np.abs(found[k] - own).max() < 1e-9 * (1 + np.abs(own).max())


@pytest.mark.parametrize("name", ["puma560", "four-bar"])
def test_calls_with_parameters_of_each_state_equal_those_of_each_sets_own_model(name: str) -> None:
    model = pb.load(name).with_parameters("*.mass", "*.origin.x")
    rng = np.random.default_rng(3)
    values = model.parameters.nominal * rng.uniform(0.99, 1.01, (5, len(model.parameters)))
    q = model.random_configuration(rng, 5, parameters=values)
    v = model.assemble_velocity(q, rng.normal(size=(5, model.nv)), parameters=values)
    a = model.assemble_acceleration(q, v, rng.normal(size=(5, model.nv)), parameters=values)
    frame, w = model.frame_names[-1], rng.normal(size=(5, 6))

    def answers(m: pb.Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, w: np.ndarray, **more: np.ndarray) -> list:
        felt = {frame: w}
        space = pb.linearize(m, q, v, a, wrenches=felt, outputs=[frame], disturbances=[frame], **more)
        still = pb.linearize(m, q, v, **more)
        return [
            space.A, space.B, space.C, space.E, space.nominal_load, still.A,
            *m.actuation.hybrid_dynamics(q, v, a, wrenches=felt, **more), m.actuation.holding_forces(q, **more),
            *m.constraints.loads(q, v, a, wrenches=felt, **more).values(),
            *m.constraints.loads(q, v, a, route="minimal", **more).values(),
            m.constraints.joint_influence(q, 2, **more).H, m.coefficients.influence(q, frame, 2, **more).H,
            *m.forward_dynamics_derivatives(q, v, a, wrenches=felt, **more),
            *m.inverse_dynamics_derivatives(q, v, a, wrenches=felt, **more),
            *m.reactions(q, v, a, felt, **more).values(),
        ]  # fmt: skip

    together = answers(model, q, v, a, w, parameters=values)
    for k in range(5):
        own = answers(model.parameters.at(values[k]), q[k], v[k], a[k], w[k])
        for x, y in zip(together, own, strict=True):
            np.testing.assert_allclose(x[k], y, atol=1e-9 * (1 + np.abs(y).max(initial=0)), rtol=0)


def test_large_batches_of_namespaces_run_in_pieces(small_pieces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "FEW", 100)
    model = pb.load("four-bar")
    q, v, a = (x.reshape(150, 2, -1) for x in motion(model, 300))
    w = {model.frame_names[-1]: np.random.default_rng(0).normal(size=(2, 6))}
    calls = [
        lambda: model.actuation.hybrid_dynamics(q, v, a, wrenches=w),
        lambda: tuple(model.constraints.loads(q, v, a, wrenches=w).values()),
        lambda: (model.constraints.solution(q, v, a, wrenches=w).a, model.constraints.joint_influence(q).H),
        lambda: model.forward_dynamics_derivatives(q, v, a, wrenches=w),
        lambda: (model.inverse_dynamics(q, v, a, wrenches=w, out=np.empty(v.shape)),),
    ]
    found = [call() for call in calls]
    monkeypatch.setattr(arrays, "PIECE", 1 << 30)
    for parts, call in zip(found, calls, strict=True):
        for x, y in zip(parts, call(), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-9 * np.abs(y).max(), rtol=0)
    q[77, 1] += 0.1
    monkeypatch.setattr(arrays, "PIECE", 1 << 14)
    with pytest.raises(pb.PolybodyError, match=r"breaks the constraints.*state 77, 1 of the batch"):
        model.actuation.hybrid_dynamics(q, v, a)


def test_many_rows_are_assembled_together_with_joints_held_and_limits_kept() -> None:
    """50 rows: above what straight-line code of a step is made for."""
    model = four_bar_chain(10)
    assert len(model.constraints) > batch_assembly.MOST_ROWS
    guess = model.assemble() + 0.05 * np.random.default_rng(0).normal(size=(12, model.nq))
    with mock.patch.object(Assembly, "_one", side_effect=AssertionError):  # none is left to the loop over states
        found = model.assemble(guess, hold=["base0"])
    assert np.abs(model.constraints.residual(found)).max() < 1e-11
    np.testing.assert_array_equal(found[:, 0], guess[:, 0])
    assert np.abs(found - guess).max() < 0.5


@pytest.mark.parametrize("name", ["stanford-arm", "four-bar"])
def test_arrays_of_states_with_parameters_of_their_own_equal_those_of_each_set(name: str) -> None:
    model = pb.load(name).with_parameters("*.mass", "*.com", "*.origin.x")
    rng, count = np.random.default_rng(3), 5
    values = model.parameters.nominal + 1e-3 * rng.normal(size=(count, len(model.parameters)))
    q = model.random_configuration(rng, count, parameters=values)
    frame = model.frame_names[-1]
    calls = {
        "dynamic_arrays": lambda m, q, **p: m.coefficients.dynamic_arrays(q, **p),
        "reduced_dynamics": lambda m, q, **p: vars(m.coefficients.reduced_dynamics(q, **p)),
        "center_of_mass": lambda m, q, **p: m.coefficients.center_of_mass(q, 2, **p),
        "point": lambda m, q, **p: m.coefficients.influence(q, frame, 2, point=(0.1, 0.2, 0.3), **p),
        "com": lambda m, q, **p: m.coefficients.influence(q, frame, 2, point="com", **p),
        "assemble_dependent": lambda m, q, **p: m.constraints.assemble_dependent(q + 1e-3, **p),
    }
    for call in calls.values():
        with mock.patch.object(type(model.parameters), "at", side_effect=AssertionError("a model for each state")):
            whole = list(sets._leaves(call(model, q, parameters=values)))
        for k in range(count):
            own = list(sets._leaves(call(model.parameters.at(values[k]), q[k])))
            assert len(own) == len(whole) > 0
            for one, all_ in zip(own, whole, strict=True):
                assert np.abs(all_[k] - one).max() < 1e-10 * (1 + np.abs(one).max())


def test_random_configurations_of_a_delta_are_not_singular() -> None:
    model = pb.load("delta")
    q = model.random_configuration(0, 200)
    assert set(model.constraints.rank(q)) == {model.nv - 3}
    assert np.abs(model.constraints.residual(q)).max() < 1e-9
    assert model.constraints.rank(model.random_configuration(1)) == model.nv - 3
