"""Every controller of a frame on a tree, a linkage, a grasp, a free base, and a grasp on a free base.

The closed loop is linearised in the model's own coordinates (differences about rest). The wanted poles are in its
spectrum; all others are at most neutral: a free base keeps its momentum.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from test_task_controllers import space_arm

import polybody as pb
from polybody.model.arguments import as_model
from polybody.simulation.controllers.own_motion import joint_map, on_loops, own_columns

NAMES = ("puma560", "3-rrr", "two arms", "space arm", "two arms on a free base")
STILL = np.zeros(6)


def two_arms(*, floating):
    """Two planar arms that hold a box, on the ground or on a free base without gravity."""
    build = pb.Builder("two arms", gravity=(0, 0, 0) if floating else (0, -9.81, 0))
    if floating:
        build.body("base", 20.0, inertia=(2.0, 2.0, 2.0))
        build.joint("root_joint", "planar", "world", "base", active=False)
    for side, x in (("left", -0.5), ("right", 0.5)):
        parent, place = "base" if floating else "world", (x, 0, 0)
        for k, length in enumerate((0.6, 0.6, 0.4)):
            build.body(f"{side}{k}", 2.0, com=(length / 2, 0, 0), inertia=(0.01, 0.06, 0.06))
            build.joint(f"{side}_joint{k}", "revolute", parent, f"{side}{k}", place)
            parent, place = f"{side}{k}", (length, 0, 0)
        build.frame(f"{side}_hand", parent, place)
    build.body("box", 3.0, inertia=(0.2, 0.2, 0.2))
    build.joint("box_joint", "planar", "world", "box", active=False)
    model = build.model()
    q = np.zeros(model.nq)
    q[-9:-3] = 2.2, -1.0, -0.5, 0.9, 1.1, 0.4
    q[-2:] = (model.pose(q, "left_hand")[:2, 3] + model.pose(q, "right_hand")[:2, 3]) / 2
    held = pb.grasp(model, "box", ["left_hand", "right_hand"], q)
    return held, held.project(q)


@cache
def machine(name):
    """(model or grasp, closed model, q, frame, outputs of one's own)."""
    if name == "puma560":
        given, q, frame = pb.load(name), np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5]), "dh_6"
    elif name == "3-rrr":
        given, frame = pb.load(name), "hand"
        q = given.neutral()
    elif name == "space arm":
        given, frame = space_arm(), "hand"
        q = given.integrate(given.neutral(), [0, 0, 0, 0, 0, 0, 0.3, 0.8, -1.2])
    else:
        given, q = two_arms(floating="free" in name)
        frame = "box"
    model = as_model("test", given)
    k = len(q) - 2
    outputs = pb.Function(lambda q, domain: [q[k] + domain.sin(q[k + 1]), q[k + 1]], 2)
    return given, model, q, frame, outputs


def law_of(kind, name):
    """(controller about the machine's place, the poles that it is to have)."""
    given, model, q, frame, outputs = machine(name)
    pb_c, point = pb.controllers, model.pose(q, frame)[:3, 3]
    second = np.roots([1, 11.0, 30.0])
    none = lambda t, q, v: STILL  # noqa: E731
    if kind == "resolved rate":
        return pb_c.ResolvedRate(given, frame, point, 4.0, 40.0, rows="position"), np.roots([1, 40.0, 160.0])
    if kind == "resolved acceleration":
        return pb_c.ResolvedAcceleration(given, frame, point, 30.0, 11.0, rows="position"), second
    if kind == "operational space":
        return pb_c.OperationalSpace(given, frame, point, 30.0, 11.0, rows="position"), second
    if kind == "impedance":
        law = pb_c.Impedance(given, frame, point, 60.0, 22.0, inertia=2.0, force=none, rows="position")
        return law, second
    if kind == "admittance":
        law = pb_c.Admittance(given, frame, point, 60.0, 22.0, 2.0, none, kp=30.0, kd=11.0, rows="position")
        return law, second
    if kind == "hybrid":
        law = pb_c.HybridForcePosition(given, frame, point, STILL, "y", kp=30.0, kd=11.0, rows="position")
        return law, second
    y = np.array([q[-2] + np.sin(q[-1]), q[-1]])
    return pb_c.FeedbackLinearisation(given, outputs, y, 30.0, 11.0), second


def spectrum(model, law, q):
    """Eigenvalues of the closed loop over (u, u̇), the model's own coordinates."""
    u, eps = own_columns(model), 1e-5
    n = len(u)

    def rate(x):
        moved, v = np.zeros(model.nv), np.zeros(model.nv)
        moved[u], v[u] = x[:n], x[n:]
        at, v = on_loops(model, model.integrate(q, moved), v)
        return np.concatenate([x[n:], model.forward_dynamics(at, v, law(0.0, at, v))[u]])

    return np.linalg.eigvals(np.column_stack([(rate(eps * e) - rate(-eps * e)) / (2 * eps) for e in np.eye(2 * n)]))


KINDS = ("resolved rate", "resolved acceleration", "operational space", "impedance", "admittance", "hybrid",
         "feedback linearisation")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_closed_loop_has_the_poles_of_its_law(kind, name):
    _, model, q, _, _ = machine(name)
    law, poles = law_of(kind, name)
    assert not law(0.0, q, np.zeros(model.nv))[~model.actuation.active].any()
    found = list(spectrum(model, law, q))
    axes = 3 if name in ("puma560", "space arm") else 2  # planar machines steer a point along two
    times = 2 if kind == "feedback linearisation" else axes - (kind == "hybrid")
    for pole in np.repeat(poles, times):
        nearest = min(found, key=lambda x: abs(x - pole))
        assert abs(nearest - pole) < 2e-3 * abs(pole)
        found.remove(nearest)
    # a double pole at zero, of a coordinate that keeps its rate, is found to the root of the differences' error
    assert max(x.real for x in found) < 2e-2


@pytest.mark.parametrize("name", NAMES)
def test_observer_sees_a_disturbance_through_its_filter(name):
    """ṙ = K (d − r), d = Gᵀ Jᵀ w of the wrench on the frame; the law is one of the above."""
    given, model, q, frame, _ = machine(name)
    law, _ = law_of("resolved acceleration", name)
    size = 2e-3 if name == "3-rrr" else 1.0
    w = size * np.array([0, 0, 0.2, 1.5, -1.0, 0])
    K, h = 20.0, 4e-3
    observer = pb.controllers.DisturbanceObserver(given, law, gain=K, period=h)
    run = pb.simulate(given, 0.2, q, controller=observer, wrenches={frame: w}, method="rk4", dt=h, sample=h,
                      limits="ignore")
    d = np.array([(model.jacobian(at, frame) @ joint_map(model, at)).T @ w for at in run.q])
    r = np.zeros_like(d)
    for k in range(1, len(d)):  # the filter's exact step for d that changes linearly
        decay = np.exp(-K * h)
        slope = (d[k] - d[k - 1]) / h
        r[k] = d[k] - slope / K + decay * (r[k - 1] - d[k - 1] + slope / K)
    scale = np.abs(d).max()
    np.testing.assert_allclose(observer.estimate, r[-1], atol=3e-3 * scale)
    assert np.abs(r[-1]).max() > 0.5 * scale


def test_compensation_keeps_the_active_joints_from_feeling_the_disturbance_on_a_free_base():
    given, model, q, frame, _ = machine("two arms on a free base")
    observer = pb.controllers.DisturbanceObserver(given, lambda t, q, v: np.zeros(model.nv))
    w = np.array([0, 0, 0.2, 1.5, -1.0, 0])
    observer.estimate = (model.jacobian(q, frame) @ joint_map(model, q)).T @ w
    still = np.zeros(model.nv)
    a = model.forward_dynamics(q, still, observer(0.0, q, still), wrenches={frame: w})
    active = model.actuation.active
    assert np.abs(a[active]).max() < 1e-9
    assert np.abs(a[~active]).max() > 1e-2
