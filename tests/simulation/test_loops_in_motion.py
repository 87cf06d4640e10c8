"""Loops hold in long motions, through singular positions too."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import polybody as pb
from machines import four_bar_chain
from polybody.errors import PolybodyWarning
from polybody.kernels.counts import operation_counts
from polybody.model.tracing import trace
from polybody.quantities import constrained
from polybody.quantities.constrained import Closed, along_plan
from polybody.simulation.constrained_motion import ConstrainedMotion


def swung(model, rate):
    """Neutral, with all uprights turning alike."""
    return np.array([rate if joint.name.startswith("base") else -rate for joint in model.mechanism.joints])


def pendulum(count, rate, times):
    """The angle of the uprights: a chain on its parallelogram branch is a pendulum of (count+1)/3 + count kg m²."""
    inertia, moment = (count + 1) / 3 + count, 9.81 * ((count + 1) / 2 + count)
    found = solve_ivp(
        lambda t, y: [y[1], moment / inertia * np.sin(y[0])], (0, times[-1]), [0.0, rate], "DOP853", times,
        rtol=1e-13, atol=1e-13,
    )
    return found.y[0]


def flat(model):
    """All bars in line: every loop has a second motion."""
    q = model.neutral()
    for joint in model.mechanism.joints:
        q[joint.q] = -np.pi / 2 if joint.name.startswith("base") else np.pi / 2
    return q


def uprights(model, q):
    return q[:, [joint.q.start for joint in model.mechanism.joints if joint.name.startswith("base")]]


@pytest.mark.parametrize("options", [{"method": "rk4", "dt": 5e-3}, {"method": "dop853"}], ids=lambda o: o["method"])
def test_chain_of_forty_four_bars_turns_for_ten_seconds_through_its_singular_position(options):
    model = four_bar_chain(40)
    assert np.linalg.matrix_rank(model.constraints.jacobian(flat(model)), 1e-9) == model.nv - 41
    with pytest.warns(PolybodyWarning, match="near singular configurations of its loops"):
        motion = pb.simulate(model, 10.0, None, swung(model, -1.0), sample=0.1, **options)
    assert motion.stopped is None
    assert motion.t[-1] == 10.0
    assert motion.audit.singular_passages >= 8
    assert motion.audit.loop_error < 1e-10
    assert motion.audit.energy_error_relative < 1e-6
    angles, off = uprights(model, motion.q), {"rk4": 1e-4, "dop853": 1e-6}[options["method"]]
    np.testing.assert_allclose(angles, np.tile(pendulum(40, -1.0, motion.t)[:, None], (1, 41)), atol=off)


@pytest.mark.parametrize("count", [1, 3])
def test_adaptive_steps_pass_singular_positions_on_the_branch_they_came_on(count):
    model = four_bar_chain(count)
    with pytest.warns(PolybodyWarning, match=r"\d passed"):
        motion = pb.simulate(model, 6.0, None, swung(model, -1.0), sample=0.1)
    expected = np.tile(pendulum(count, -1.0, motion.t)[:, None], (1, count + 1))
    np.testing.assert_allclose(uprights(model, motion.q), expected, atol=1e-6)
    assert motion.audit.loop_error < 1e-10


def chain_from_one_end(count):
    """The same chain on another spanning tree: bars in a row from the first upright, every other foot is a loop."""
    build, thin = pb.Builder(f"row-of-{count}-four-bars", gravity=(0, -9.81, 0)), (0.01**2 / 2, 1 / 12, 1 / 12)
    across = (thin[1], thin[0], thin[2])
    build.body("upright0", 1.0, (0, 0.5, 0), across)
    build.joint("base0", "revolute", "world", "upright0")
    for k in range(1, count + 1):
        build.body(f"top{k}", 1.0, (0.5, 0, 0), thin)
        build.body(f"upright{k}", 1.0, (0, -0.5, 0), across)
        build.joint(f"pin{k}", "revolute", f"upright{k - 1}", f"top{k}", (0, 1.0 * (k == 1), 0), active=False)
        build.joint(f"base pin{k}", "revolute", f"top{k}", f"upright{k}", (1, 0, 0), active=False)
        build.loop(f"foot{k}", "revolute", "world", f"upright{k}", (k, 0, 0), (0, -1, 0))
    return build.model()


@pytest.mark.parametrize("make", [four_bar_chain, chain_from_one_end])
def test_error_through_singular_positions_falls_with_the_tolerance_on_every_spanning_tree(make):
    model, errors = make(3), []
    for rtol in (1e-7, 1e-9, 1e-12):
        with pytest.warns(PolybodyWarning, match="10 passed"):
            run = pb.simulate(model, 10.0, None, swung(model, -1.0), sample=0.5, rtol=rtol, atol=0.01 * rtol)
        errors.append(np.abs(run.q[:, model.joint_slices()["base0"][0].start] - pendulum(3, -1.0, run.t)).max())
    assert errors[0] < 1e-3
    assert errors[1] < 1e-6
    assert errors[2] < 2e-8


def test_idas_stays_on_its_branch_through_singular_positions():
    model = four_bar_chain(1)
    with pytest.warns(PolybodyWarning, match="passed"):
        run = pb.simulate(model, 2.0, None, swung(model, -1.0), sample=0.1, method="idas")
    assert run.stopped is None
    expected = np.tile(pendulum(1, -1.0, run.t)[:, None], (1, 2))
    np.testing.assert_allclose(uprights(model, run.q), expected, atol=1e-5)


@pytest.mark.parametrize("off", [0.0, 1e-7, 1e-5])
def test_accelerations_at_a_singular_position_are_those_of_the_branch(off):
    """Beside the position dividing by the lost row gives rounding; on it, nothing at all."""
    model = four_bar_chain(3)
    v = swung(model, -2.0)
    q = model.integrate(flat(model), v, off)
    a, near = ConstrainedMotion(model.engine).acceleration(q, v, np.zeros(model.nv))
    moment, inertia = 9.81 * (4 / 2 + 3), 4 / 3 + 3
    expected = -moment / inertia * swung(model, 1.0)
    assert near
    np.testing.assert_allclose(a, expected, atol=1e-3 * moment)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_acceleration_at_a_node_bends_with_the_branch_that_the_velocity_is_along(side):
    """y² = x² (1 − x) crosses itself at 0; along y = side·x √(1 − x) the third derivative says ÿ = side (ẍ − ẋ²)."""
    build = pb.Builder("node", gravity=(0, 0, 0))
    build.body("cart", 2.0)
    build.body("rider", 1.0)
    build.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    build.joint("y", "prismatic", "cart", "rider", axis=(0, 1, 0))
    build.relation("curve", "y**2 - x**2 + x**3")
    speed = 0.7
    motion = ConstrainedMotion(build.model().engine)
    a, near = motion.acceleration(np.zeros(2), np.array([speed, side * speed]), np.zeros(2))
    assert near
    np.testing.assert_allclose(a, [speed**2 / 4, -side * speed**2 * 3 / 4], atol=1e-9)  # masses 3 and 1


def test_a_motion_from_rest_at_a_singular_position_goes_on_with_its_loops_closed():
    model = four_bar_chain(2)
    with pytest.warns(PolybodyWarning, match="near singular"):
        motion = pb.simulate(model, 0.3, flat(model), method="rk4", dt=5e-3)
    assert motion.stopped is None
    assert motion.audit.loop_error < 1e-9
    assert np.ptp(motion.q[:, 0]) > 0.1


def test_a_motion_far_from_singular_positions_is_not_warned_of():
    model = four_bar_chain(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motion = pb.simulate(model, 0.4, None, swung(model, -1.0))
    assert (motion.audit.singular_evaluations, motion.audit.singular_passages) == (0, 0)


def forward_operations(count):
    model = four_bar_chain(count)
    q = model.engine.assembly.general_place(model.neutral())
    passing = along_plan(model.engine.plans.free(q))

    def text(q, v, tau, *, domain):
        closed = Closed(model.engine.reduced_mechanism, model.engine.constraints.constraints, passing, ())
        return constrained.forward_dynamics(closed, q, v, tau, domain=domain)

    return operation_counts(trace("forward", [(x, model.nv) for x in ("q", "v", "tau")], text)).total


def test_operations_of_forward_dynamics_are_linear_in_the_number_of_loops():
    four, eight, sixteen = (forward_operations(count) for count in (4, 8, 16))
    assert abs((sixteen - eight) - 2 * (eight - four)) < 0.02 * (eight - four)


def test_entries_of_constraint_jacobians_are_linear_in_the_number_of_loops():
    sizes = [four_bar_chain(count).engine.constraints.entries for count in (2, 4, 8)]
    assert sizes == [5 * 3 * count for count in (2, 4, 8)]


def test_slider_crank_keeps_its_energy_while_its_coupler_spins_idly():
    model = pb.load("slider-crank")
    slices = model.joint_slices()
    v = np.zeros(model.nv)
    v[slices["crank_joint"][1]], v[slices["crank_ball"][1].start] = 3.0, 5.0
    v = model.assemble_velocity(model.neutral(), v, hold=["crank_joint"])
    motion = pb.simulate(model, 5.0, None, v, rtol=1e-11, atol=1e-12)
    assert np.ptp(motion.q[:, slices["crank_joint"][0]]) > 1.0
    assert np.abs(motion.v[:, slices["crank_ball"][1].start]).mean() > 2.0
    assert motion.audit.energy_error_relative < 1e-8
    assert motion.audit.loop_error < 1e-10


def test_loops_that_are_not_kept_show_in_the_audit(monkeypatch):
    """The residual and the energy of Bricard's mechanism are told by the states themselves."""
    model = pb.load("bricard")
    monkeypatch.setattr(ConstrainedMotion, "projection", lambda self, q, v, held=None: (q, v, 0.0))
    motion = pb.simulate(model, 1.0, method="rk4", dt=0.02, compiled=False)  # compiled steps project by themselves
    assert motion.audit.loop_error > 1e-10
    assert motion.audit.energy_error_relative > 1e-8


def test_midpoint_rule_refuses_loops_and_names_other_methods():
    with pytest.raises(pb.InputError, match="with loops take dop853, radau, cvodes, idas, rk4 or semi-implicit"):
        pb.simulate(pb.load("four-bar"), 0.1, method="midpoint")


@pytest.mark.parametrize(("name", "between"), [("slider-crank", 2.0), ("3-rrr", 0.2)])
@pytest.mark.parametrize("method", ["semi-implicit", "rk4"])
def test_a_run_does_not_depend_on_runs_before_it(name: str, between: float, method: str) -> None:
    model = pb.load(name)
    q = model.assemble()
    v = model.assemble_velocity(q, np.random.default_rng(1).normal(size=model.nv))

    def run(duration: float) -> np.ndarray:
        return pb.simulate(model, duration, q, v, method=method, limits="ignore", dt=2e-3).q[-1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of singular configurations on the way
        before = run(0.1)
        run(between)  # ends with coordinates that it had to change to
        assert np.array_equal(run(0.1), before)
