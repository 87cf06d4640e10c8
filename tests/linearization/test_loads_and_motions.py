"""Nominal loads (2-208), disturbances (2-227) and linear models along motions, against differences of real motions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import polybody as pb
from polybody.cli import app


def scale(*arrays) -> float:
    return 1.0 + max(float(np.abs(x).max(initial=0.0)) for x in arrays)


def tumbling():
    build = pb.Builder("tumbling", gravity=(0, 0, -9.81))
    build.body("trunk", 2.0, com=(0.1, 0, 0.05), inertia=(0.02, 0.05, 0.04))
    build.body("arm", 0.7, com=(0, 0, -0.2), inertia=(0.01, 0.012, 0.003))
    build.joint("root_joint", "floating", "world", "trunk")
    build.joint("shoulder", "revolute", "trunk", "arm", origin=(0.2, 0, 0), axis=(0, 1, 0), damping=0.1)
    build.frame("hand", "arm", (0, 0.1, -0.4))
    return build.model()


def loaded_state(name):
    """(model, q, v, tau, frame) with a consistent state."""
    rng = np.random.default_rng(7)
    model = tumbling() if name == "tumbling" else pb.load(name)
    q = model.random_configuration(rng) if name == "tumbling" else model.assemble()
    v = model.assemble_velocity(q, 0.4 * rng.normal(size=model.nv))
    frame = {"tumbling": "hand", "four-bar": model.frame_names[-1], "puma560": model.frame_names[-1]}[name]
    size = 0.2 if name == "four-bar" else 1.0
    return model, q, v, size * rng.normal(size=model.nv), frame, size * rng.normal(size=6)


@pytest.mark.parametrize("name", ["tumbling", "puma560", "four-bar"])
def test_nominal_load_is_what_a_wrench_adds_to_a_beside_its_joint_forces(name):
    """The wrench, or the same joint forces at independent coordinates, held: A differs by M⁻¹ K (2-208)."""
    model, q, v, tau, frame, w = loaded_state(name)
    u = list(model.constraints.indices(model.constraints.independent))
    with_load = pb.linearize(model, q, v, tau, wrenches={frame: w})
    G = model.constraints.motion_derivatives(q, v, tau)[3]
    same = tau.copy()
    same[u] += G.T @ model.jacobian(q, frame).T @ w
    without = pb.linearize(model, q, v, same)
    m = len(u)
    added = np.linalg.solve(model.mass_matrix(q), with_load.nominal_load)
    wanted = np.zeros_like(with_load.A)
    wanted[m:, :m] = added
    assert np.abs(added).max() > 1e-2
    np.testing.assert_allclose(with_load.A - without.A, wanted, atol=1e-8 * scale(with_load.A))
    assert not without.nominal_load.any()


@pytest.mark.parametrize("name", ["tumbling", "puma560", "four-bar"])
def test_disturbances_are_the_accelerations_that_wrenches_add(name):
    model, q, v, tau, frame, w = loaded_state(name)
    u = list(model.constraints.indices(model.constraints.independent))
    system = pb.linearize(model, q, v, tau, disturbances=[frame])
    change = model.forward_dynamics(q, v, tau, wrenches={frame: w}) - model.forward_dynamics(q, v, tau)
    m = len(u)
    np.testing.assert_allclose(system.E[m : 2 * m] @ w, change[u], atol=1e-9 * scale(change))
    assert not system.E[:m].any()
    assert system.disturbances[0] == f"{frame}_mx"
    assert system.disturbances[-1] == f"{frame}_fz"


@pytest.mark.parametrize("name", ["stewart", "two-arms"])
def test_linear_model_and_nominal_load_of_parallel_machines_are_differences_of_their_motion(name):
    """(2-208) through loops: A by differences of accelerations under the load, K by those of its generalised force."""
    model = pb.load(name)
    rng = np.random.default_rng(3)
    q, frame = model.assemble(), model.frame_names[-1]
    v, tau = model.assemble_velocity(q, 0.3 * rng.normal(size=model.nv)), rng.normal(size=model.nv)
    w = rng.normal(size=6)
    u = list(model.constraints.indices(model.constraints.independent))
    m, G = len(u), model.constraints.joint_influence(q, 1).G
    system = pb.linearize(model, q, v, tau, wrenches={frame: w})

    def at(x):
        place = model.constraints.assemble_dependent(model.integrate(q, G @ x[:m]))
        return place, model.constraints.joint_motion(place, v[u] + x[m:], np.zeros(m))[0]

    def load(x):
        place, _ = at(x)
        return model.constraints.joint_influence(place, 1).G.T @ model.jacobian(place, frame).T @ w

    eps, steps = 1e-5, np.eye(2 * m)
    ahead = [model.forward_dynamics(*at(eps * e), tau, wrenches={frame: w})[u] for e in steps]
    behind = [model.forward_dynamics(*at(-eps * e), tau, wrenches={frame: w})[u] for e in steps]
    A = (np.array(ahead) - np.array(behind)).T / (2 * eps)
    np.testing.assert_allclose(system.A[m:], A, atol=1e-7 * scale(A))
    K = np.column_stack([(load(eps * e) - load(-eps * e)) / (2 * eps) for e in steps[:m]])
    np.testing.assert_allclose(system.nominal_load, K, atol=1e-7 * scale(K))


def test_numbers_that_are_none_and_frames_named_twice_are_refused():
    model = pb.load("two-link")
    still = np.zeros(2)
    with pytest.raises(pb.InputError, match=r"q\[0\] is nan"):
        pb.linearize(model, [np.nan, 0], still)
    with pytest.raises(pb.InputError, match=r"v\[1, 1\] is inf"):
        pb.linearize(model, still, [[0, 0], [0, np.inf]])
    with pytest.raises(pb.InputError, match="wrenches"):
        pb.linearize(model, still, still, wrenches={"tip": [np.nan] * 6})
    with pytest.raises(pb.InputError, match="'tip' twice"):
        pb.linearize(model, still, still, disturbances=["tip", "tip"])
    with pytest.raises(pb.InputError, match="'tip' twice"):
        pb.linearize(model, still, still, outputs=["tip", "tip"])
    arm = pb.load("six-dof-arm")  # its first two bodies have no inertia about their axes: singular at neutral
    q = np.stack([arm.neutral() + 0.3, arm.neutral()])
    with pytest.raises(pb.PolybodyError, match=r"not determined \(state 1 of the batch\)"):
        pb.linearize(arm, q, np.zeros(6))
    with pytest.raises(pb.PolybodyError, match="mass matrix is singular"):
        pb.performance(arm).modes(arm.neutral(), 100.0)


def test_disturbances_and_loads_go_through_motors_and_transfers():
    build = pb.Builder("arm")
    build.body("upper", 2.0, (0.2, 0, 0), (0.002, 0.03, 0.03))
    build.body("lower", 1.0, (0.15, 0, 0), (0.001, 0.01, 0.01))
    build.joint("shoulder", "revolute", "world", "upper", axis=(0, 1, 0), damping=0.05)
    build.joint("elbow", "revolute", "upper", "lower", (0.4, 0, 0), (0, 1, 0), damping=0.05)
    build.frame("tip", "lower", (0.3, 0, 0))
    build.motor("shoulder", 1.2, 2e-3, 0.06, 0.06, 3e-5, 1e-5, 50)
    build.motor("elbow", 2.0, 0.0, 0.04, 0.04, 1e-5, 1e-5, 50)
    model = build.model()
    q, v, load = np.array([-0.4, 0.8]), np.array([0.3, -0.2]), {"tip": [0, 0.5, 0, 3.0, 0, -8.0]}
    tau = model.inverse_dynamics(q, v, np.zeros(2), wrenches=load)
    system = pb.linearize(model, q, v, tau, inputs="voltage", wrenches=load, disturbances=["tip"])
    assert system.E.shape == (5, 6)
    plain = pb.linearize(model, q, v, tau, wrenches=load, disturbances=["tip"])
    np.testing.assert_allclose(system.E[:4], plain.E, atol=1e-12)
    assert not system.E[4:].any()
    task = pb.transfer(model, pb.Position("tip", "xz"))
    u_dot = model.jacobian(q, "tip")[[3, 5]] @ v
    moved = task.linearize(q, u_dot, tau, wrenches=load, disturbances=["tip"])
    G = model.jacobian(q, "tip")[[3, 5]]
    np.testing.assert_allclose(moved.E[2:], G @ plain.E[2:], atol=1e-10)
    control = pytest.importorskip("control")
    both = system.to_control(disturbances=True)
    assert isinstance(both, control.StateSpace)
    assert both.input_labels[-1] == "tip_fz"


@pytest.mark.parametrize("inductance", [0.0, 5e-3])
def test_loads_and_disturbances_go_through_loops_and_motors_together(inductance):
    """A four-bar whose crank has a motor: E and the nominal load against differences of its own motion."""
    build = pb.Builder("driven four-bar", gravity=(0, -9.81, 0))
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        build.body(name, 1, com=(length / 2, 0, 0), inertia=(0.001, 0.02, 0.02))
    build.joint("a", "revolute", "world", "crank", damping=0.05)
    build.joint("b", "revolute", "crank", "coupler", (0.2, 0, 0), active=False)
    build.joint("d", "revolute", "world", "rocker", (0.5, 0, 0), active=False)
    build.loop("c", "revolute", "coupler", "rocker", (0.5, 0, 0), (0.4, 0, 0))
    build.frame("point", "coupler", (0.3, 0.1, 0))
    build.motor("a", 1.2, inductance, 0.06, 0.06, 3e-5, 1e-5, 30)
    model = build.model()
    q = model.assemble([0.8, 0.4, 1.4])
    still, load = np.zeros(3), {"point": np.array([0, 0, 0.2, 4.0, -7.0, 0])}
    tau = model.inverse_dynamics(q, still, still, wrenches=load)
    system = pb.linearize(model, q, still, tau, inputs="voltage", independent=["a"], wrenches=load,
                          disturbances=["point"])  # fmt: skip
    assert len(system.states) == (3 if inductance else 2)
    push = np.array([0, 0, 0.3, 1.0, 2.0, 0])
    both = {"point": load["point"] + push}
    change = model.forward_dynamics(q, still, tau, wrenches=both) - model.forward_dynamics(q, still, tau, wrenches=load)
    np.testing.assert_allclose(system.E[1] @ push, change[0], atol=1e-9 * scale(change))
    eps, u = 1e-6, 0
    ends = []
    for sign in (1, -1):
        at = q.copy()
        at[u] += sign * eps
        at = model.constraints.assemble_dependent(at, ["a"])
        ends.append(model.forward_dynamics(at, still, tau, wrenches=load)[u])
    np.testing.assert_allclose(system.A[1, 0], (ends[0] - ends[1]) / (2 * eps), atol=1e-5 * scale(system.A))
    assert np.abs(system.nominal_load).max() > 1e-2


def ended(model, t, q, v, forces, wrenches=None):
    run = pb.simulate(model, t, q, v, lambda s, q, v: forces(s), wrenches=wrenches, rtol=1e-11, atol=1e-13,
                      limits="ignore")
    return run.q[-1], run.v[-1]


@pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
@pytest.mark.parametrize("name", ["tumbling", "puma560", "four-bar"])
def test_transition_along_a_run_is_how_neighbouring_runs_part(name):
    model, q, v, tau, frame, w = loaded_state(name)
    T, eps, push = 0.12, 1e-5, {frame: 0.3 * w}

    def forces(s):
        return tau * (1 + np.sin(5 * s))

    times = np.linspace(0, T, 41)
    run = pb.simulate(model, T, q, v, lambda s, q, v: forces(s), wrenches=push, times=times, rtol=1e-11, atol=1e-13,
                      limits="ignore")
    along = pb.linearize_along(model, run, wrenches=push, disturbances=[frame])
    Phi = along.transition()[-1]
    u = list(model.constraints.indices(model.constraints.independent))
    m = len(u)

    def reached(du, dv):
        """The state after T from a neighbouring one, as differences in independent coordinates."""
        G = model.constraints.motion_derivatives(q, v, tau)[3]
        at = model.integrate(q, G @ du)
        if len(model.constraints):
            at = model.constraints.assemble_dependent(at)
        rate = v.copy()
        rate[u] += dv
        if len(model.constraints):
            rate = model.constraints.joint_motion(at, rate[u], np.zeros(m))[0]
        end_q, end_v = ended(model, T, at, rate, forces, push)
        return np.concatenate([model.difference(run.q[-1], end_q)[u], (end_v - run.v[-1])[u]])

    for k in range(2 * m):
        step = eps * np.eye(2 * m)[k]
        column = (reached(step[:m], step[m:]) - reached(-step[:m], -step[m:])) / (2 * eps)
        np.testing.assert_allclose(column, Phi[:, k], atol=3e-5 * scale(Phi))
    # a disturbance that is held all the time
    A, _, E = along.discretize()
    x = np.zeros(2 * m)
    for a, e in zip(A, E, strict=True):
        x = a @ x + e @ w
    ends = [ended(model, T, q, v, forces, {frame: 0.3 * w + s * eps * w}) for s in (1, -1)]
    wanted = np.concatenate([
        (model.difference(run.q[-1], ends[0][0]) - model.difference(run.q[-1], ends[1][0]))[u],
        (ends[0][1] - ends[1][1])[u],
    ]) / (2 * eps)
    np.testing.assert_allclose(x, wanted, atol=1e-4 * scale(wanted))


def test_what_acted_in_a_run_must_be_told_and_paths_are_taken():
    model = pb.load("two-link")
    run = pb.simulate(model, 0.2, [0.3, 0.4], wrenches={"tip": [0, 0, 0, 1.0, 2.0, 0]}, sample=0.01)
    with pytest.raises(pb.InputError, match="other forces acted"):
        pb.linearize_along(model, run)
    assert len(pb.linearize_along(model, run, wrenches={"tip": [0, 0, 0, 1.0, 2.0, 0]})) == len(run.t)
    path = pb.paths.quintic(model, [0.0, 0.0], [1.0, -0.5], 0.5)
    along = pb.linearize_along(model, path, np.linspace(0, 0.5, 51))
    gains = along.lqr([100, 100, 1, 1], [0.1, 0.1])
    times = along.t

    def feedback(t, q, v):
        k = min(int(np.searchsorted(times, t, side="right")) - 1, len(gains) - 1)
        want_q, want_v, want_a = path(t)
        x = np.concatenate([model.difference(want_q, q), v - want_v])
        return model.inverse_dynamics(want_q, want_v, want_a) - gains[k] @ x

    start = np.array([0.2, -0.2])
    followed = pb.simulate(model, 0.5, start, controller=feedback, method="rk4", dt=1e-3)
    left = pb.simulate(model, 0.5, start, controller=lambda t, q, v: model.inverse_dynamics(*path(t)), method="rk4")
    assert np.abs(followed.q[-1] - path(0.5)[0]).max() < 0.03 < np.abs(left.q[-1] - path(0.5)[0]).max()
    with pytest.raises(pb.InputError, match="times must be given along a path"):
        pb.linearize_along(model, path)
    with pytest.raises(pb.InputError, match="outside the motion"):
        along.at(0.6)
    np.testing.assert_allclose(along.at(times[7]).A, along.system.A[7], atol=1e-9)


def test_command_line_prints_loads_and_disturbances():
    done = CliRunner().invoke(app, [
        "linearize", "two-link", "--wrench", "tip=0,0,0,1,2,0", "--disturbance", "tip", "--json",
    ])  # fmt: skip
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert np.shape(told["E"]) == (4, 6)
    assert np.abs(told["nominal_load"]).max() > 0
    shown = CliRunner().invoke(app, ["linearize", "two-link", "--disturbance", "tip"])
    assert "tip_fx" in shown.stdout
    bad = CliRunner().invoke(app, ["linearize", "two-link", "--wrench", "tip=1,2"])
    assert bad.exit_code == 1
    assert "mx,my,mz" in bad.output
