"""`cvodes` and `idas` with right sides that are graphs: the motions of dop853, and of functions called back."""

from __future__ import annotations

import _thread
import threading
import time
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from simulation_cases import shipped

import polybody as pb
from polybody.simulation.compiled import sundials_graphs
from polybody.simulation.compiled.given import acting_of
from polybody.simulation.compiled.graph_blocks import Blocks
from polybody.simulation.compiled.sundials_graphs import field_of
from polybody.simulation.integrators import method_named
from polybody.simulation.problem import Problem
from polybody.simulation.switches import Switches

METHODS = ["cvodes", "idas"]
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def arm() -> pb.Model:
    """Three joints with limits, springs and dampers."""
    build = pb.Builder("arm")
    origin = np.eye(4)
    for k, axis in enumerate([(0, 0, 1), (0, 1, 0), (0, 1, 0)]):
        build.body(f"b{k}", 2.0 - 0.4 * k, com=(0.1, 0.02, 0.15), inertia=(0.02, 0.03, 0.01))
        build.joint(f"j{k}", "revolute", "world" if k == 0 else f"b{k - 1}", f"b{k}", origin, axis, damping=0.2,
                    stiffness=3.0 * k, limits=(-1.2, 0.9))  # fmt: skip
        origin = np.eye(4)
        origin[2, 3] = 0.3
    build.frame("tip", "b2", origin)
    return build.model()


def floater() -> pb.Model:
    """A floating body with an arm and a spherical joint."""
    build = pb.Builder("floater", gravity=(0, 0, -1.0))
    build.body("hull", 3.0, com=(0.05, 0, 0.02), inertia=(0.1, 0.15, 0.12))
    build.joint("root_joint", "floating", "world", "hull")
    build.body("ball", 1.0, com=(0, 0.1, 0.2), inertia=(0.02, 0.02, 0.01))
    build.joint("socket", "spherical", "hull", "ball", damping=0.1)
    build.body("rod", 0.7, com=(0.2, 0, 0), inertia=(0.001, 0.01, 0.01))
    build.joint("hinge", "revolute", "ball", "rod", axis=(0, 1, 0), stiffness=2.0)
    return build.model()


def both(model: pb.Model, seconds: float, *state: object, **options: object) -> tuple[pb.Trajectory, pb.Trajectory]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = pb.simulate(model, seconds, *state, **options)  # type: ignore[arg-type]
        called = pb.simulate(model, seconds, *state, compiled=False, **options)  # type: ignore[arg-type]
    assert graph.audit.path == "compiled"
    assert called.audit.path.startswith("python")
    return graph, called


def apart(one: pb.Trajectory, other: pb.Trajectory) -> float:
    assert np.array_equal(one.t, other.t)
    return max(float(np.abs(getattr(one, name) - getattr(other, name)).max()) for name in ("q", "v", "work"))


@pytest.mark.parametrize("method", METHODS)
def test_floating_tree_moves_as_by_dop853(method: str) -> None:
    model, rng = floater(), np.random.default_rng(3)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    exact = pb.simulate(model, 0.5, q, v, sample=0.05, rtol=1e-12, atol=1e-13)
    graph, called = both(model, 0.5, q, v, method=method, sample=0.05, **TIGHT)
    assert apart(graph, exact) < 20 * max(apart(called, exact), 1e-8)
    assert apart(graph, exact) < 1e-5
    assert np.abs(graph.a - exact.a).max() < 1e-4
    assert graph.audit.energy_error_relative < 1e-7


@pytest.mark.parametrize("method", METHODS)
def test_controllers_wrenches_and_paths_act_as_by_dop853(method: str) -> None:
    model = arm()
    points = np.array([[0, 0, 0], [0.2, -0.3, 0.1], [0.4, 0.1, -0.2], [0.3, 0.2, 0.0]])
    path = pb.paths.spline(model, [0.0, 0.15, 0.3, 0.4], points)
    law = pb.controllers.ComputedTorque(model, path, 200.0, 20.0)
    wrenches = {"tip": lambda t: np.array([0.1, 0, 0, 1.0, 2.0 * np.sin(5.0 * t), -1.0])}
    options = {"controller": law, "wrenches": wrenches, "sample": 0.04}
    exact = pb.simulate(model, 0.4, [0.1, 0, 0], **options, rtol=1e-12, atol=1e-13)
    graph, called = both(model, 0.4, [0.1, 0, 0], **options, method=method, **TIGHT)
    assert apart(graph, exact) < 20 * max(apart(called, exact), 1e-8)
    assert np.abs(graph.tau - exact.tau).max() < 1e-4 * (1 + np.abs(exact.tau).max())


@pytest.mark.parametrize("method", METHODS)
def test_hits_rests_and_events_come_at_the_same_times_as_by_dop853(method: str) -> None:
    model = arm()
    event = pb.Event("level", lambda t, q, v: q[2] + 0.3)
    options = {"v0": [1.0, 3.0, -2.0], "restitution": 0.3, "events": [event], "sample": 0.05}
    exact = pb.simulate(model, 1.0, **options, rtol=1e-12, atol=1e-13)
    graph, called = both(model, 1.0, **options, method=method, **TIGHT)
    for run in (graph, called):
        assert [(h.name, h.detail.split(" ")[0]) for h in run.happenings] == [
            (h.name, h.detail.split(" ")[0]) for h in exact.happenings
        ]
        assert np.allclose([h.time for h in run.happenings], [h.time for h in exact.happenings], rtol=0, atol=1e-6)
    assert len(exact.happenings) > 3
    assert np.abs(graph.q - exact.q).max() < 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_rebounds_that_follow_each_other_ever_faster_do_not_end_a_run(method: str) -> None:
    """Each cuts off a call of SUNDIALS that went half a second farther: its steps there are none of the run. They were
    counted, and runs were aborted because steps seemed to shrink to nothing."""
    model = arm()
    law = pb.PD(model, [0.0, 1.5, -0.3], 80.0, 1.0)
    options = {"restitution": 0.6, "sample": 0.05, **TIGHT}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = {name: pb.simulate(model, 0.6, [0.0, 0.5, 0.0], None, law, method=name, **options)
                for name in (method, "dop853")}  # fmt: skip
    hits = {name: [h for h in run.happenings if h.detail.startswith("hit")] for name, run in runs.items()}
    assert len(hits["dop853"]) > 10
    for one, other in zip(hits[method][:8], hits["dop853"][:8], strict=True):
        assert one.name == other.name
        assert one.time == pytest.approx(other.time, abs=1e-6)
    assert runs[method].stopped is None
    assert apart(runs[method], runs["dop853"]) < 2e-4  # hits are located in polynomials over 0.05 s


@pytest.mark.parametrize("method", METHODS)
def test_compiled_code_decides_at_events_what_python_decides(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Joints that hit, rest at and leave their stops, stick and slip; Python is asked for the first few only."""
    build = pb.Builder("rubbing", gravity=(0, 0, -9.81))
    for k in range(2):
        build.body(f"b{k}", 1.0, com=(0, 0, -0.2), inertia=(0.02, 0.02, 0.01))
        origin = np.eye(4)
        origin[2, 3] = -0.4 * k
        build.joint(f"j{k}", "revolute", f"b{k - 1}" if k else "world", f"b{k}", origin, axis=(0, 1, 0),
                    limits=(-0.4, 0.5), friction=0.15 * k)  # fmt: skip
    model, decided, act = build.model(), [0], Switches.act

    def counted(self: Switches, *given: object) -> object:
        decided[0] += 1
        return act(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Switches, "act", counted)
    law = lambda t, q, v: np.array([3.0 * np.sin(3.0 * t), np.cos(2.0 * t)])  # noqa: E731
    options = {"method": method, "restitution": 0.4, "sample": 0.05, **TIGHT}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = pb.simulate(model, 2.0, [0.3, -0.2], None, law, **options)
        by_python, decided[0] = decided[0], 0
        called = pb.simulate(model, 2.0, [0.3, -0.2], None, law, compiled=False, **options)
    assert [(h.name, h.detail.split(" ")[0]) for h in graph.happenings] == [
        (h.name, h.detail.split(" ")[0]) for h in called.happenings
    ]
    assert np.allclose([h.time for h in graph.happenings], [h.time for h in called.happenings], rtol=0, atol=1e-6)
    assert apart(graph, called) < 1e-5
    assert decided[0] > 10
    assert by_python <= 4


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["four-bar", "stewart"])
def test_loops_move_as_by_dop853(name: str, method: str) -> None:
    model = shipped(name)
    q = model.assemble(model.neutral())
    exact = pb.simulate(model, 0.2, q, sample=0.02, rtol=1e-12, atol=1e-13, limits="ignore")
    graph, called = both(model, 0.2, q, method=method, sample=0.02, limits="ignore", **TIGHT)
    assert apart(graph, exact) < 20 * max(apart(called, exact), 1e-8)
    assert graph.audit.loop_error is not None
    assert graph.audit.loop_error < 1e-10
    assert graph.trusted


@pytest.mark.parametrize("make", [floater, arm])
def test_blocks_are_the_jacobian_of_the_rates(make: Callable[[], pb.Model]) -> None:
    """Central differences of the graph itself, along tangents of its manifold."""
    model, rng = make(), np.random.default_rng(5)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    problem = Problem(model, pb.PD(model, q, 5.0, 0.5))
    acting = acting_of(problem)
    field, slopes = field_of(acting), Blocks(acting).rate_slopes("rates")
    x, c, row = np.append(problem.state(q, v), 0.0), acting.constants, acting.law.signals.row(0.0)

    def rates(x: np.ndarray) -> np.ndarray:
        return np.asarray(field(x, c, row)[0]).ravel()[:-2]

    found = np.asarray(slopes(x, c, row, rates(x))[0])
    for _ in range(5):
        d, w = rng.normal(size=model.nv), rng.normal(size=model.nv)
        ends = [np.concatenate([model.integrate(q, h * d), v + h * w, [0.0, 0.0]]) for h in (-1e-6, 1e-6)]
        change, wanted = (ends[1] - ends[0]) / 2e-6, (rates(ends[1]) - rates(ends[0])) / 2e-6
        assert np.allclose(found @ change, wanted, rtol=0, atol=1e-6 * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("method", METHODS)
def test_interrupt_ends_a_long_call_at_once(method: str) -> None:
    """One call of the solver would take minutes; Ctrl-C comes during it."""
    model, q = arm(), [0.2, 0.2, 0.2]
    pb.simulate(model, 0.01, q, method=method)
    asked: list[float] = []

    def interrupt() -> None:
        asked.append(time.perf_counter())
        _thread.interrupt_main()

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    with pytest.warns(pb.PolybodyWarning, match="interrupted"):
        run = pb.simulate(model, 1e4, q, method=method, sample=10.0, limits="ignore", max_steps=10**9)
    assert run.stopped is not None
    assert run.stopped.startswith("interrupted")
    assert time.perf_counter() - asked[0] < 10.0


@pytest.mark.parametrize("method", METHODS)
def test_controller_that_is_no_expression_is_called(method: str) -> None:
    model, seen = arm(), []

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        seen.append(float(q[0]))
        return -v if q[0] > 0 else -2 * v

    run = pb.simulate(model, 0.05, [0.1, 0.2, 0.3], controller=controller, method=method)
    assert run.audit.path.startswith("python: the controller is called in Python")
    assert len(seen) > 10
    with pytest.raises(pb.InputError, match="compiled=True"):
        pb.simulate(model, 0.05, controller=controller, method=method, compiled=True)


@pytest.mark.parametrize("method", METHODS)
def test_traced_controller_that_is_no_number_is_said_as_when_it_is_called(method: str) -> None:
    model = arm()
    texts = []
    for compiled in (None, False):
        with pytest.raises(pb.PolybodyError) as error:
            pb.simulate(model, 0.5, [0.1, 0.2, 0.3], controller=lambda t, q, v: np.sqrt(0.1 - t) * np.ones(3),
                        method=method, compiled=compiled)  # fmt: skip
        texts.append(str(error.value).split(" at t = ")[0])
    assert texts[0] == texts[1]
    assert "the controller returned tau[0] = nan" in texts[0]


@pytest.mark.parametrize("method", METHODS)
def test_numbers_of_parameters_reach_the_graph(method: str) -> None:
    model = arm().with_parameters("b2.mass")
    runs = pb.simulate(model, 0.2, [0.3, 0.2, 0.1], parameters=np.array([[1.2], [4.0]]), method=method, sample=0.05)
    for k, mass in enumerate((1.2, 4.0)):
        exact = pb.simulate(model, 0.2, [0.3, 0.2, 0.1], parameters=[mass], sample=0.05, rtol=1e-11)
        assert runs[k].audit.path == "compiled"
        assert np.abs(runs[k].q - exact.q).max() < 1e-6
    assert np.abs(runs[0].q - runs[1].q).max() > 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_dry_friction_of_a_loop_sticks_and_slips_as_when_called_back(method: str) -> None:
    build = pb.Builder("crank", gravity=(0, 0, 0))
    place = lambda x, y: np.array([[1, 0, 0, x], [0, 1, 0, y], [0, 0, 1, 0], [0, 0, 0, 1.0]])  # noqa: E731
    build.body("a", 1.0, com=(0.1, 0, 0), inertia=(0.001, 0.004, 0.004))
    build.body("b", 2.0, com=(0.3, 0, 0), inertia=(0.001, 0.06, 0.06))
    build.body("c", 1.0, com=(0, -0.2, 0), inertia=(0.02, 0.001, 0.02))
    build.joint("p", "revolute", "world", "a", place(0, 0), friction=1.5)
    build.joint("r", "revolute", "a", "b", place(0.2, 0))
    build.joint("s", "revolute", "world", "c", place(0.8, 0.4))
    build.loop("cut", "revolute", "b", "c", place(0.6, 0), place(0, -0.4))
    model = build.model()
    q = model.assemble(model.neutral())
    law = lambda t, q, v: np.array([3.0 * np.sin(4.0 * t), 0.0, 0.0])  # noqa: E731
    graph, called = both(model, 1.2, q, None, law, method=method, sample=0.05, **TIGHT)
    assert [h.detail for h in graph.happenings] == [h.detail for h in called.happenings]
    assert any(h.detail == "slips" for h in graph.happenings)
    assert apart(graph, called) < 1e-5


@pytest.mark.parametrize(("method", "compiled"), [("cvodes", None), ("cvodes", False), ("idas", None), ("idas", False)])
def test_work_is_as_accurate_as_the_motion(method: str, compiled: bool | None) -> None:
    """A smooth motion in long steps, in which the work grows and shrinks."""
    arm, start = shipped("stanford-arm"), np.array([0, np.pi / 2, 0, 0, 0, 0])
    law = pb.controllers.ComputedTorque(arm, pb.paths.quintic(arm, start, start + 0.3, 1.0))
    run = pb.simulate(arm, 1.2, start, controller=law, method=method, compiled=compiled)
    wanted = pb.simulate(arm, 1.2, start, controller=law, rtol=1e-12, atol=1e-13)
    assert np.abs(wanted.work).max() > 1.0
    np.testing.assert_allclose(run.work, wanted.work, rtol=0, atol=1e-7 * np.abs(wanted.work).max())
    assert run.audit.trusted, run.audit.doubts


def test_equations_of_idas_are_traced_once_whichever_joints_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    build = pb.Builder("fingers")
    for k in range(3):
        build.body(f"finger {k}", 0.1, (0.05, 0, 0), (1e-5, 1e-4, 1e-4))
        build.joint(f"knuckle {k}", "revolute", "world", f"finger {k}", (0, 0.03 * k, 0), (0, 1, 0), friction=0.03)
    made, traced = [], sundials_graphs.Balance._text
    monkeypatch.setattr(sundials_graphs, "_KEPT", {})
    monkeypatch.setattr(sundials_graphs.Balance, "_text", lambda *given: made.append(given) or traced(*given))
    run = pb.simulate(build.model(), 0.4, np.full(3, np.pi / 2), [1.0, 2.0, 3.0], method="idas")
    rests = [key for key in sundials_graphs._KEPT if "at rest" in key]
    assert run.audit.path == "compiled"
    assert len(rests) > 2, "each finger comes to rest at a time of its own"
    assert len(made) == 1


@pytest.mark.parametrize("method", METHODS)
def test_one_joint_needs_no_step_with_functions_called_back(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one joint nothing is left of z after its acceleration; 1 kg under 1 N."""
    build = pb.Builder("block", gravity=(0, 0, 0))
    build.body("mass", 1.0, inertia=(1, 1, 1))
    build.joint("slide", "prismatic", "world", "mass", axis=(1, 0, 0))
    monkeypatch.setattr(type(method_named(method)), "steps", lambda *given: pytest.fail("steps by Python"))
    run = pb.simulate(build.model(), 2.0, wrenches={"mass": np.array([0, 0, 0, 1.0, 0, 0])}, method=method)
    assert run.q[-1] == pytest.approx([2.0], abs=1e-7)
