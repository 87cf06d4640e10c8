"""Two arms that hold one object: motion and loads against Pinocchio's constraintDynamics with 6-D contacts."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb

pytest.importorskip("pinocchio")

from test_loops_against_pinocchio import Twin


def arm() -> pb.Model:
    """Six joints, axes z, y, y, x, y, x."""
    build, parent, place = pb.Builder("arm"), "world", (0, 0, 0.3)
    for k, (axis, length) in enumerate(zip("zyyxyx", (0.2, 0.5, 0.4, 0.1, 0.1, 0.1), strict=True)):
        build.body(f"link{k}", 4.0 - 0.5 * k, com=(0.02, 0.01, length / 2), inertia=(0.05, 0.06, 0.03))
        build.joint(f"joint{k}", "revolute", parent, f"link{k}", place, axis=np.eye(3)["xyz".index(axis)])
        parent, place = f"link{k}", (0.01, 0.02, length)
    build.frame("hand", parent, place)
    return build.model()


def two_arms(one: pb.Model, apart: float, posture: list[float]) -> tuple[pb.Model, np.ndarray]:
    """(model, a configuration): the same arm twice, face to face, and an object between the hands."""
    turned = np.diag([-1.0, -1.0, 1.0, 1.0])
    turned[0, 3] = apart
    build = pb.Builder("two arms")
    build.add(one, "left_")
    build.add(one, "right_", origin=turned)
    build.body("load", 3.0, com=(0.01, 0.02, 0.03), inertia=(0.1, 0.2, 0.15))
    build.joint("load_joint", "floating", "world", "load", active=False)
    return build.model(), np.array([*posture, *posture, apart / 2, 0.0, 0.4, 0, 0, 0, 1])


def test_motion_and_loads_of_two_arms_equal_pinocchios():
    model, q = two_arms(arm(), 1.1, [0.4, 0.7, 0.6, 0.3, 0.8, -0.2])
    grasp = pb.grasp(model, "load", ["left_hand", "right_hand"], q)
    rng = np.random.default_rng(0)
    moved, v, tau = rng.normal(size=(3, 5, model.nv))
    q, v = grasp.project(model.integrate(q, 0.2 * moved), v)
    motion = grasp.forward_dynamics(q, v, 10 * tau)
    twin = Twin(model, [(grip.tip, grip.hold) for grip in grasp.held.grips])
    for k in range(5):
        a = twin.accelerations(q[k], v[k], 10 * tau[k])
        np.testing.assert_allclose(motion.a[k], a, atol=1e-8 * np.abs(a).max())
        # Pinocchio's contact forces act on the first frame, the hand, in its axes.
        wanted = [-np.concatenate([f.contact_force.angular, f.contact_force.linear]) for f in twin.contact_data]
        np.testing.assert_allclose(motion.f_e[k], wanted, atol=1e-8 * np.abs(wanted).max())
