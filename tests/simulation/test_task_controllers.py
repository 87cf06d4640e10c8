"""Controllers of a frame: error equations, closed-loop eigenvalues, forces; on trees, loops, free bases and grasps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import polybody as pb

Q = np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5])


def space_arm():
    """A three-link arm on a free base without gravity."""
    build = pb.Builder("space arm", gravity=(0, 0, 0))
    build.body("base", 20.0, inertia=(2.0, 2.0, 2.0))
    build.joint("root_joint", "floating", "world", "base")
    last = "base"
    for k, axis in enumerate(((0, 0, 1), (0, 1, 0), (0, 1, 0))):
        build.body(f"link{k}", 2.0, (0.25, 0, 0), (0.01, 0.05, 0.05))
        build.joint(f"j{k}", "revolute", last, f"link{k}", (0.5, 0, 0), axis)
        last = f"link{k}"
    build.frame("hand", last, (0.5, 0, 0))
    return build.model()


def machine(name):
    """(model, q, frame, rows, a goal nearby)."""
    if name == "puma560":
        model = pb.load(name)
        goal = model.pose(Q + 0.1, "dh_6")
        return model, Q, "dh_6", "pose", goal
    if name == "3-rrr":
        model = pb.load(name)
        q = model.neutral()
        return model, q, "hand", "position", model.pose(q, "hand")[:3, 3] + [0.01, -0.005, 0]
    model = space_arm()
    q = model.integrate(model.neutral(), [0, 0, 0, 0, 0, 0, 0.3, 0.8, -1.2])
    return model, q, "hand", "position", model.pose(q, "hand")[:3, 3] + [0.05, 0.1, -0.08]


@pytest.mark.parametrize("name", ["puma560", "3-rrr", "space arm"])
def test_resolved_acceleration_makes_the_error_obey_its_equation(name):
    model, q, frame, rows, goal = machine(name)
    law = pb.controllers.ResolvedAcceleration(model, frame, goal, kp=100.0, kd=20.0, rows=rows)
    run = pb.simulate(model, 0.3, q, np.zeros(model.nv), law, sample=0.1, limits="ignore")
    assert not run.tau[:, ~model.actuation.active].any()
    error = law.resolving.motion.error
    for t, at in zip(run.t, run.q, strict=True):
        wanted = error(0.0, q)[-3:] * (1 + 10 * t) * np.exp(-10 * t)
        np.testing.assert_allclose(error(t, at)[-3:], wanted, atol=2e-5)


def closed_loop(model, law, q):
    """Eigenvalues of [δ; v] ↦ rates, by central differences about a state of rest."""
    n, eps = model.nv, 1e-5

    def rate(x):
        at = model.integrate(q, x[:n])
        return np.concatenate([x[n:], model.forward_dynamics(at, x[n:], law(0.0, at, x[n:]))])

    A = np.column_stack([(rate(eps * e) - rate(-eps * e)) / (2 * eps) for e in np.eye(2 * n)])
    return np.linalg.eigvals(A)


def test_resolved_rate_has_the_poles_of_its_two_gains():
    model = pb.load("puma560")
    law = pb.controllers.ResolvedRate(model, "dh_6", model.pose(Q, "dh_6"), gain=4.0, rate_gain=40.0)
    wanted = np.roots([1, 40.0, 160.0])
    found = closed_loop(model, law, Q)
    np.testing.assert_allclose(np.sort(found.real), np.sort(np.repeat(wanted, 6)), atol=2e-3)
    both = pb.controllers.ResolvedAcceleration(model, "dh_6", model.pose(Q, "dh_6"), kp=30.0, kd=11.0)
    found = closed_loop(model, both, Q)
    np.testing.assert_allclose(np.sort(found.real), np.sort(np.repeat(np.roots([1, 11.0, 30.0]), 6)), atol=2e-3)


@pytest.mark.parametrize("name", ["3-rrr", "space arm"])
def test_resolved_rate_converges_on_loops_and_free_bases(name):
    model, q, frame, rows, goal = machine(name)
    law = pb.controllers.ResolvedRate(model, frame, goal, gain=5.0, rate_gain=60.0, rows=rows, damping=1e-3)
    run = pb.simulate(model, 1.5, q, np.zeros(model.nv), law, sample=0.5, method="rk4", dt=5e-3, limits="ignore")
    errors = [np.linalg.norm(law.resolving.motion.error(t, at)) for t, at in zip(run.t, run.q, strict=True)]
    assert errors[-1] < 2e-3 * errors[0]


def test_redundant_arms_take_their_posture_without_moving_the_hand():
    model = pb.load("puma560")
    goal = model.pose(Q, "dh_6")[:3, 3]
    posture = Q + np.array([0.0, 0.0, 0.0, 0.5, -0.3, 0.4])
    law = pb.controllers.ResolvedAcceleration(model, "dh_6", goal, rows="position", posture=posture, null_gain=4.0)
    run = pb.simulate(model, 2.0, Q, np.zeros(6), law, sample=0.5, method="rk4", dt=5e-3, limits="ignore")
    places = model.pose(run.q, "dh_6")[:, :3, 3]
    assert np.abs(places - goal).max() < 1e-5
    assert np.linalg.norm(run.q[-1] - posture) < 0.6 * np.linalg.norm(Q - posture)


def test_impedance_gives_way_as_its_spring_says_and_answers_as_a_chosen_mass():
    model = pb.load("puma560")
    place = model.pose(Q, "dh_6")
    push = np.array([0, 0, 0, 8.0, -5.0, 3.0])
    K, D = 2000.0, 500.0
    law = pb.controllers.Impedance(model, "dh_6", place[:3, 3], K, D, rows="position")
    run = pb.simulate(model, 2.5, Q, np.zeros(6), law, wrenches={"dh_6": push}, sample=2.5, method="rk4", dt=5e-3,
                      limits="ignore")
    np.testing.assert_allclose(model.pose(run.q[-1], "dh_6")[:3, 3] - place[:3, 3], push[3:] / K, atol=2e-5)
    mass = 4.0
    chosen = pb.controllers.Impedance(model, "dh_6", place[:3, 3], K, D, inertia=mass, force=lambda t, q, v: push,
                                      rows="position")
    run = pb.simulate(model, 0.2, Q, np.zeros(6), chosen, wrenches={"dh_6": push}, sample=0.05, limits="ignore")
    A = np.array([[0, 1], [-K / mass, -D / mass]])
    for t, q in zip(run.t, run.q, strict=True):
        answer = expm(t * np.block([[A, np.array([[0], [1 / mass]])], [np.zeros((1, 3))]]))[0, 2]
        np.testing.assert_allclose(model.pose(q, "dh_6")[:3, 3] - place[:3, 3], answer * push[3:], atol=1e-6)
    with pytest.raises(pb.InputError, match="give inertia and force, or neither"):
        pb.controllers.Impedance(model, "dh_6", place, K, D, inertia=1.0)
    with pytest.raises(pb.InputError, match="positive semidefinite"):
        pb.controllers.Impedance(model, "dh_6", place, -1.0, D)


@pytest.mark.parametrize("name", ["puma560", "3-rrr"])
def test_admittance_moves_aside_as_a_mass_spring_and_damper(name):
    model, q, frame, _, _ = machine(name)
    place = model.pose(q, frame)[:3, 3]
    mass, K, D = 2.0, 200.0, 40.0
    push = np.array([0, 0, 0, 0.6, -0.4, 0.0]) * (1.0 if name == "puma560" else 0.5)
    law = pb.controllers.Admittance(model, frame, place, K, D, mass, lambda t, q, v: push, rows="position", period=5e-3)
    run = pb.simulate(model, 0.2, q, np.zeros(model.nv), law, wrenches={frame: push}, sample=0.05, method="rk4",
                      dt=2.5e-3, limits="ignore")
    A = np.array([[0, 1], [-K / mass, -D / mass]])
    for t, at in zip(run.t, run.q, strict=True):
        answer = expm(t * np.block([[A, np.array([[0], [1 / mass]])], [np.zeros((1, 3))]]))[0, 2]
        np.testing.assert_allclose(model.pose(at, frame)[:3, 3] - place, answer * push[3:], atol=1e-5)


def test_hybrid_control_presses_on_a_plane_and_moves_along_it():
    """The plant has the plane as a guide; the controller knows the free arm only."""

    def arm(plane):
        build = pb.Builder("arm", gravity=(0, -9.81, 0))
        for k, length in enumerate((0.5, 0.4, 0.2)):
            build.body(f"b{k}", 1.0, (length / 2, 0, 0), (1e-3, 0.01, 0.01))
        build.joint("j0", "revolute", "world", "b0")
        build.joint("j1", "revolute", "b0", "b1", (0.5, 0, 0))
        build.joint("j2", "revolute", "b1", "b2", (0.4, 0, 0))
        build.frame("tip", "b2", (0.2, 0, 0))
        if plane:
            build.point_in_plane("wall", "world", (0, -0.1, 0), (0, 1, 0), "b2", (0.2, 0, 0))
        return build.model()

    free, plant = arm(False), arm(True)
    q = plant.assemble([0.6, -1.6, 0.4])
    start = free.pose(q, "tip")
    goal = start.copy()
    goal[0, 3] += 0.08
    push = np.array([0, 0, 0, 0, -12.0, 0])
    law = pb.controllers.HybridForcePosition(free, "tip", goal, push, "y", kp=100.0, kd=20.0)
    run = pb.simulate(plant, 0.4, q, np.zeros(3), law, sample=0.1)
    for t, at in zip(run.t, run.q, strict=True):
        gap = goal[0, 3] - free.pose(at, "tip")[0, 3]
        assert gap == pytest.approx(0.08 * (1 + 10 * t) * np.exp(-10 * t), abs=2e-4)
    # the plane pushes back with what was asked for, all the way
    loads = [plant.constraints.loads(at, v, tau)["wall"] for at, v, tau in zip(run.q, run.v, run.tau, strict=True)]
    np.testing.assert_allclose(np.abs(np.ravel(loads)[np.abs(np.ravel(loads)) > 1]), 12.0, rtol=2e-2)
    with pytest.raises(pb.InputError, match="kf needs the measured wrench"):
        pb.controllers.HybridForcePosition(free, "tip", goal, push, "y", kf=1.0)


@pytest.mark.parametrize("name", ["3-rrr", "space arm"])
def test_forces_are_answered_by_platforms_and_on_free_bases_too(name):
    """Impedance with an inertia of choice: the frame answers as that mass, spring and damper, wherever it stands."""
    model, q, frame, rows, _ = machine(name)
    place = model.pose(q, frame)[:3, 3]
    push = np.array([0, 0, 0, 0.6, -0.4, 0.0]) * (1.0 if name == "space arm" else 0.05)
    mass, K, D = (3.0, 80.0, 25.0) if name == "space arm" else (0.3, 40.0, 5.0)
    law = pb.controllers.Impedance(model, frame, place, K, D, inertia=mass, force=lambda t, q, v: push, rows=rows)
    run = pb.simulate(model, 0.2, q, np.zeros(model.nv), law, wrenches={frame: push}, sample=0.1, limits="ignore")
    assert not run.tau[:, ~model.actuation.active].any()
    A = np.array([[0, 1], [-K / mass, -D / mass]])
    for t, at in zip(run.t, run.q, strict=True):
        answer = expm(t * np.block([[A, np.array([[0], [1 / mass]])], [np.zeros((1, 3))]]))[0, 2]
        np.testing.assert_allclose(model.pose(at, frame)[:3, 3] - place, answer * push[3:], atol=1e-6)


@pytest.mark.parametrize("name", ["3-rrr", "space arm"])
def test_hybrid_control_steers_free_directions_and_pushes_along_the_others(name):
    """With nothing to touch, the wanted force accelerates the frame as it would by itself: by the frame's mobility."""
    model, q, frame, _, goal = machine(name)
    place = model.pose(q, frame)[:3, 3]
    target = np.array([goal[0], place[1], place[2]])
    push = np.zeros(6)
    push[4] = 1e-3 if name == "3-rrr" else 0.3
    law = pb.controllers.HybridForcePosition(model, frame, target, push, "y", rows="position", contact_damping=0.0)
    still = np.zeros(model.nv)
    tau = law(0.0, q, still)
    assert not tau[~model.actuation.active].any()
    a = model.frame_acceleration(q, still, model.forward_dynamics(q, still, tau), frame)[3:]
    joints = model.constraints.joint_influence(q, 1).G if len(model.constraints) else np.eye(model.nv)
    J = model.jacobian(q, frame)[3:] @ joints
    free = J @ np.linalg.solve(model.mass_matrix(q), J.T) @ push[3:]
    free[0] += 100 * (target[0] - place[0])
    np.testing.assert_allclose(a, free, atol=1e-8 * np.abs(a).max())
    with pytest.raises(pb.InputError, match="expected some of 'x y z'"):
        pb.controllers.HybridForcePosition(model, frame, target, push, "rx", rows="position")


def test_laws_refuse_gains_targets_and_directions_that_mean_nothing():
    model, q = pb.load("puma560"), np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5])
    c, pose, none = pb.controllers, model.pose(q, "dh_6"), lambda t, q, v: np.zeros(6)
    make = {
        "rate": lambda target=pose, **k: c.ResolvedRate(model, "dh_6", target, **{"gain": 4.0, "rate_gain": 40.0, **k}),
        "acceleration": lambda target=pose, **k: c.ResolvedAcceleration(model, "dh_6", target, **k),
        "operational": lambda target=pose, **k: c.OperationalSpace(model, "dh_6", target, **k),
        "impedance": lambda target=pose, **k: c.Impedance(model, "dh_6", target, 60.0, 22.0, **k),
        "admittance": lambda target=pose, **k: c.Admittance(model, "dh_6", target, 60.0, 22.0, 2.0, none, **k),
        "hybrid": lambda target=pose, **k: c.HybridForcePosition(model, "dh_6", target, **{
            "wrench": np.zeros(6), "contact": "z", **k}),
    }  # fmt: skip
    stretched = pose.copy()
    stretched[:3, :3] *= 2
    for law in make.values():
        for target in (stretched, pose * np.nan, lambda t: pose * np.nan, lambda t: stretched, [1.0, 2.0]):
            with pytest.raises(pb.InputError, match="target"):
                law(target)
    moves_on = make["acceleration"](lambda t: pose if t < 0.5 else pose * np.nan)
    with pytest.raises(pb.InputError, match=r"target is .* at t = 0\.9999"):
        moves_on(1.0, q, np.zeros(6))
    for name, wrong in (
        ("rate", {"gain": np.nan}), ("rate", {"rate_gain": "x"}), ("rate", {"damping": -1.0}),
        ("rate", {"posture": q * np.nan}), ("acceleration", {"kp": -5.0}), ("acceleration", {"kd": [1.0, 2.0]}),
        ("operational", {"kd": np.inf}), ("impedance", {"null_damping": np.nan}), ("admittance", {"kp": np.nan}),
        ("hybrid", {"kf": np.nan}), ("hybrid", {"wrench": [np.nan] * 6}), ("hybrid", {"contact": "z z"}),
        ("hybrid", {"contact": [[0, 0, np.nan, 0, 0, 0]]}), ("impedance", {"force": 3, "inertia": 2.0}),
    ):  # fmt: skip
        with pytest.raises(pb.InputError, match=next(iter(wrong))):
            make[name](**wrong)
    with pytest.raises(pb.InputError, match="target"):
        c.FeedbackLinearisation(model, pb.Function(lambda q, domain: [q[0]], 1), [np.nan])
