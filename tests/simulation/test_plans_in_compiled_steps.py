"""Compiled steps of loops choose among plans of elimination by themselves; Python is for singular configurations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from simulation_cases import shipped

import polybody as pb
from machines import four_bar_chain, parallelogram
from polybody.simulation.bridge import collocate
from polybody.simulation.compiled.bridging import Bridging
from polybody.simulation.compiled.engine import Compiled
from polybody.simulation.loop_batches import rates_at, returned
from polybody.simulation.problem import Problem


@pytest.fixture
def steps_in_python(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times at which the method took steps itself."""
    seen: list[float] = []
    own = Compiled._own_steps

    def counted(self: Compiled, *given: Any) -> Iterator[Any]:
        for step in own(self, *given):
            seen.append(step.t0)
            yield step

    monkeypatch.setattr(Compiled, "_own_steps", counted)
    return seen


def test_motion_of_a_3_rrr_stays_in_compiled_code_and_is_that_of_python(steps_in_python: list[float]) -> None:
    model = shipped("3-rrr")
    run = pb.simulate(model, 0.4, sample=0.05, limits="ignore")
    # The start is symmetric: rounding of the BLAS decides between plans alike. With that of AVX2 no step is taken in
    # Python, with that of AVX-512 four at each of two changes of plan.
    assert len(steps_in_python) <= 0.06 * run.audit.steps
    slow = pb.simulate(model, 0.4, sample=0.05, limits="ignore", compiled=False)
    assert np.abs(run.q - slow.q).max() < 1e-7
    assert run.trusted
    assert run.audit.singular_evaluations == slow.audit.singular_evaluations == 0


def test_fixed_steps_of_bricards_mechanism_stay_in_compiled_code(steps_in_python: list[float]) -> None:
    model = shipped("bricard")
    run = pb.simulate(model, 1.0, method="rk4", dt=1e-3, sample=0.1)
    assert len(steps_in_python) <= 0.01 * run.audit.steps
    assert run.audit.energy_error_relative < 1e-6
    assert run.audit.loop_error is not None
    assert run.audit.loop_error < 1e-11


def test_chain_through_its_flat_position_is_taken_across_in_python(steps_in_python: list[float]) -> None:
    """Two four-bars fall through the position in which they could fold: compiled code must not step over it."""
    model = four_bar_chain(2)
    v = np.array([-1.0 if joint.name.startswith("base") else 1.0 for joint in model.mechanism.joints])
    with pytest.warns(pb.PolybodyWarning, match="singular configurations"):
        run = pb.simulate(model, 2.0, None, v, sample=0.1)
    assert run.audit.singular_passages > 0
    assert len(steps_in_python) > 0
    assert run.audit.energy_error_relative < 1e-7
    assert run.trusted


def swinging() -> tuple[pb.Model, np.ndarray, np.ndarray]:
    """A parallelogram in gravity that swings through the positions in which it lies flat."""
    model = parallelogram(gravity=9.81)
    return model, model.assemble(np.array([0.5, -0.5, 0.5]), hold=["a"]), np.array([1.0, -1.0, 1.0])


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("method", ["dop853", "radau", "cvodes"])
def test_a_parallelogram_let_go_where_it_lies_flat_falls_as_a_pendulum(method: str, compiled: bool | None) -> None:
    """Both uprights of 0.35 kg m² about their pivots and a bar of 1 kg that is carried: 1.7 θ̈ = −2 g cos θ."""
    model = swinging()[0]
    with pytest.warns(pb.PolybodyWarning, match="singular"):
        run = pb.simulate(model, 0.3, method=method, compiled=compiled, sample=0.1)
    exact = solve_ivp(lambda t, y: [y[1], -2 * 9.81 / 1.7 * np.cos(y[0])], (0, 0.3), [0, 0], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(run.q[-1], np.array([1, -1, 1]) * exact.y[0, -1], atol=1e-6)
    assert run.trusted


@pytest.mark.parametrize("method", ["rk4", "semi-implicit"])
def test_fixed_steps_pass_flat_positions_in_compiled_code(method: str, steps_in_python: list[float]) -> None:
    model, q, v = swinging()
    options: dict[str, Any] = {"method": method, "dt": 1e-3, "sample": 0.05, "limits": "ignore"}
    runs = []
    for compiled in (None, False):
        with pytest.warns(pb.PolybodyWarning, match="singular configurations"):
            runs.append(pb.simulate(model, 2.0, q, v, compiled=compiled, **options))
    fast, slow = runs
    assert not steps_in_python
    assert fast.audit.path == "compiled"
    assert fast.audit.singular_passages == slow.audit.singular_passages > 1
    assert slow.audit.singular_evaluations / 2 < fast.audit.singular_evaluations < 2 * slow.audit.singular_evaluations
    assert np.abs(fast.q - slow.q).max() < 1e-6
    assert fast.audit.loop_error is not None
    assert fast.audit.loop_error < 1e-13
    assert fast.audit.energy_error_relative < 1.01 * slow.audit.energy_error_relative + 1e-7


@pytest.mark.parametrize(("method", "most"), [("dop853", 2), ("radau", 2), ("cvodes", 0), ("idas", 0)])
def test_adaptive_steps_before_and_behind_flat_positions_are_compiled(
    method: str, most: int, steps_in_python: list[float]
) -> None:
    model, q, v = swinging()
    with pytest.warns(pb.PolybodyWarning, match="singular configurations"):
        run = pb.simulate(model, 2.0, q, v, method=method, sample=0.05)
    assert run.audit.singular_passages > 1
    assert len(steps_in_python) <= most * run.audit.singular_passages
    with pytest.warns(pb.PolybodyWarning, match="singular configurations"):
        exact = pb.simulate(model, 2.0, q, v, method="rk4", dt=2.5e-4, sample=0.05)
    assert np.abs(run.q - exact.q).max() < 1e-6
    assert run.trusted


def test_many_states_are_put_back_and_accelerated_as_one_by_one() -> None:
    model, rng = shipped("stewart"), np.random.default_rng(2)
    problem = Problem(model, pb.PD(model, model.neutral(), 3.0, 0.5))
    model.forward_dynamics(model.neutral(), np.zeros(model.nv), np.zeros(model.nv))
    states = []
    for _ in range(5):
        q = model.random_configuration(rng)
        v = model.assemble_velocity(q, rng.normal(size=model.nv))
        states.append(problem.state(model.tree.integrate(q, 1e-5 * rng.normal(size=model.nv)), v + 1e-5))
    raw = np.array(states)
    back, off = returned(problem, raw)
    one_by_one = np.array([problem.project(y) for y in raw])
    assert np.abs(back - one_by_one).max() < 1e-11
    assert off == pytest.approx(problem.off_loops, rel=1e-6)
    times = np.linspace(0.0, 0.4, 5)
    wanted = np.array([problem.rate(t, y) for t, y in zip(times, back, strict=True)])
    assert np.abs(rates_at(problem, times, back) - wanted).max() < 1e-8 * np.abs(wanted).max()


def test_collocation_over_a_regular_stretch_is_the_motion() -> None:
    model = shipped("four-bar")
    q = model.assemble(model.neutral())
    problem = Problem(model)
    model.forward_dynamics(q, np.zeros(model.nv), np.zeros(model.nv))
    y = problem.state(q, np.zeros(model.nv))
    found = collocate(problem, 0.0, y, problem.rate(0.0, y), np.zeros(model.nv), 0.05)
    assert found is not None
    exact = pb.simulate(model, 0.05, q, sample=0.05, rtol=1e-12, atol=1e-13, limits="ignore")
    assert np.abs(found[1][: model.nq] - exact.q[-1]).max() < 1e-9


@pytest.mark.parametrize("method", ["dop853", "radau", "cvodes", "idas"])
def test_steps_across_are_found_by_compiled_code_as_by_python(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a law of state and time, and a wrench that turns."""
    model, q, v = swinging()
    found: list[tuple[np.ndarray, np.ndarray]] = []
    own = Bridging.__call__

    def both(self: Bridging, t: float, y: np.ndarray, *given: Any) -> Any:
        answer, problem = own(self, t, y, *given), self._of.problem
        assert answer is not None
        rate, h = problem.rate(t, y), given[-1] - t
        with monkeypatch.context() as m:
            m.setattr(problem, "collocated", None)
            slow = collocate(problem, t, y, rate, np.zeros(model.nv), h)
        if slow is not None:  # a step that is too long has no stages that are determined
            found.append((answer[0], slow[0]))
            found.append((answer[1], slow[1]))
        return answer

    monkeypatch.setattr(Bridging, "__call__", both)
    law = lambda t, q, v: np.array([np.sin(3 * t) - 0.1 * v[0], 0.0, 0.0])  # noqa: E731
    push = {"top": lambda t: np.array([0, 0, 0.1, np.cos(2 * t), 0.2, 0])}
    with pytest.warns(pb.PolybodyWarning, match="singular configurations"):
        run = pb.simulate(model, 2.0, q, v, law, wrenches=push, method=method, sample=0.05)
    assert len(found) >= 2 * run.audit.singular_passages > 2
    for fast, slow in found:
        assert np.abs(fast - slow).max() < 1e-7 * (1 + np.abs(slow).max())
    assert run.trusted


@pytest.mark.parametrize("compiled", [None, False])
def test_a_leap_to_the_edge_of_a_singular_configuration_is_taken_back(compiled) -> None:
    """The first step would end 0.0015 rad before the bars lie flat: too near for a step across, from where sixty more
    crept up to it."""
    model = parallelogram()
    q, v = model.assemble(np.array([0.5, -0.5, 0.5]), hold=["a"]), np.array([1.0, -1.0, 1.0])
    with pytest.warns(pb.PolybodyWarning, match="singular configurations"):
        run = pb.simulate(model, 4.0, q, v, first_step=np.pi - 0.5015, compiled=compiled)
    assert run.audit.singular_passages == 1
    assert run.audit.steps < 12
    np.testing.assert_allclose(run.q, q + np.outer(run.t, v), atol=1e-8)
    assert np.abs(model.constraints.residual(run.q)).max() < 1e-12


def test_states_recorded_within_steps_of_python_have_their_own_accelerations_and_forces(
    steps_in_python: list[float],
) -> None:
    model = four_bar_chain(2)
    v = np.array([-1.0 if joint.name.startswith("base") else 1.0 for joint in model.mechanism.joints])
    law = pb.PD(model, model.neutral() + 0.1, 0.5, 0.2)
    with pytest.warns(pb.PolybodyWarning, match="singular configurations"):
        run = pb.simulate(model, 2.0, None, v, law, sample=0.002, efforts="ignore")
    assert run.audit.path == "compiled"
    np.testing.assert_array_equal(run.t, np.linspace(0, 2, 1001))
    inside = [k for k, t in enumerate(run.t) if any(a < t < a + 0.02 for a in steps_in_python)]
    assert len(inside) > 20
    widths = [np.linalg.svd(model.constraints.jacobian(run.q[k]), compute_uv=False) for k in inside]
    sound = [k for k, s in zip(inside, widths, strict=True) if s[model.engine.rank - 1] > 0.05 * s[0]]  # type: ignore[attr-defined]
    assert len(sound) > 20
    for k in sound:
        np.testing.assert_allclose(run.tau[k], law(run.t[k], run.q[k], run.v[k]), atol=1e-12)
        wanted = model.forward_dynamics(run.q[k], run.v[k], run.tau[k])
        np.testing.assert_allclose(run.a[k], wanted, atol=1e-6 * (1 + np.abs(wanted).max()))
