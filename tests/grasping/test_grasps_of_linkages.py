"""Grasps by arms that are no plain chains: loops of their own, joints that follow others; and grasps as models."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from cooperation import JETS, kkt, world_closure
from mechanisms import random_pose
from polybody.formulations import denoc
from polybody.grasping.grasp import Grasp
from polybody.mechanism import kinematics
from polybody.model.arguments import as_model


def near(actual, wanted, tolerance):
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=tolerance * (1 + np.abs(wanted).max()))


def parallelogram() -> tuple[pb.Model, np.ndarray]:
    """(model, q): an arm whose elbow is driven from the ground by a parallelogram, and a planar load at its hand."""
    build = pb.Builder("parallelogram", gravity=(0, -9.81, 0))
    for name, length in (("upper", 1.0), ("fore", 0.8), ("crank", 0.3), ("rod", 1.0)):
        build.body(name, 2.0 * length, com=(length / 2, 0, 0), inertia=(0.01, 0.1, 0.1))
    build.joint("shoulder", "revolute", "world", "upper")
    build.joint("elbow", "revolute", "upper", "fore", (1.0, 0, 0), active=False)
    build.joint("drive", "revolute", "world", "crank")
    build.joint("rod_joint", "revolute", "crank", "rod", (0.3, 0, 0), active=False)
    build.loop("knee", "revolute", "rod", "fore", (1.0, 0, 0), (0.3, 0, 0))
    build.frame("hand", "fore", (0.8, 0, 0))
    build.body("load", 3.0, inertia=(0.2, 0.2, 0.2))
    build.joint("load_joint", "planar", "world", "load", active=False)
    model = build.model()
    q = np.array([0.9, -1.3, -0.4, 1.3, 0.0, 0.0, 0.0])
    q = model.assemble(q, hold=["shoulder", "drive"])
    T = model.pose(q, "hand")
    q[4:] = np.arctan2(T[1, 0], T[0, 0]), *T[:2, 3]
    return model, q


def saddle(held: Grasp, q, v, tau):
    """(a, f_e in world axes) of tree, grips and the model's own loops as one saddle system."""
    m, own = held.model.mechanism, held.model.constraints
    J = np.vstack([world_closure(held, q), own.jacobian(q)])
    A_dot = JETS.rates(world_closure(held, JETS.lift(q, kinematics.rate(m, q, v)), JETS))
    right = tau - denoc.bias_forces(m, q, v) + denoc.passive_forces(m, q, v)
    K = np.block([[denoc.mass_matrix(m, q), J.T], [J, np.zeros((len(J), len(J)))]])
    x = np.linalg.lstsq(K, np.concatenate([right, -A_dot @ v, -own.bias(q, v)]), rcond=1e-12)[0]
    return x[: len(v)], x[len(v) : len(v) + 6 * held.held.m].reshape(-1, 6)


def test_an_arm_with_a_loop_of_its_own_holds_a_load():
    model, q = parallelogram()
    held = pb.grasp(model, "load", {"hand": "load"})
    assert len(model.constraints)
    assert held.model is model
    assert held.closed.nv == model.nv
    rng = np.random.default_rng(0)
    q = held.project(model.integrate(q, 0.02 * rng.normal(size=model.nv)))
    v, tau = held.capture(q, rng.normal(size=model.nv)).v, rng.normal(size=model.nv)
    near(held.closure_matrix(q) @ v, np.zeros(6), 1e-10)
    near(model.constraints.jacobian(q) @ v, np.zeros(len(model.constraints)), 1e-10)
    found, (a, f_e) = held.forward_dynamics(q, v, tau), saddle(held, q, v, tau)
    near(found.a, a, 1e-9)
    R = model.pose(q, "hand")[:3, :3]
    near(found.f_e[0], np.concatenate([R.T @ f_e[0, :3], R.T @ f_e[0, 3:]]), 1e-9)
    # Two drives for two motions: the whole motion takes forces at these alone.
    drives = held.inverse_dynamics(q, v, a=a)
    np.testing.assert_array_equal(drives.tau[~model.actuation.active], 0.0)
    near(held.forward_dynamics(q, v, drives.tau).a, a, 1e-8)
    with pytest.raises(pb.PolybodyError, match="'knee'"):
        held.check(model.integrate(q, np.eye(model.nv)[2] * 0.1))


def coupled_arms() -> tuple[pb.Model, np.ndarray]:
    """(model, q): two arms of seven joints whose last but one follows the third, and a body."""
    rng = np.random.default_rng(2)
    build = pb.Builder("coupled", gravity=(0.2, -0.1, -9.81))
    for side in ("left", "right"):
        parent = "world"
        for k in range(7):
            build.body(f"{side}{k}", 1.0, com=rng.normal(size=3) * 0.1, inertia=(0.02, 0.03, 0.04))
            axis = rng.normal(size=3)
            build.joint(f"{side}_joint{k}", "revolute", parent, f"{side}{k}", random_pose(rng, 0.4),
                        axis=axis / np.linalg.norm(axis))  # fmt: skip
            parent = f"{side}{k}"
        build.couple(f"{side}_joint5", f"{side}_joint2", -0.7, 0.2)
        build.frame(f"{side}_hand", parent, random_pose(rng, 0.2))
    build.body("load", 3.0, com=(0.1, 0, 0.05), inertia=(0.2, 0.3, 0.4))
    build.joint("load_joint", "floating", "world", "load", active=False)
    model = build.model()
    return model, model.random_configuration(rng)


def test_followers_in_arms_move_with_their_leaders():
    model, q = coupled_arms()
    assert (model.nv, len(model.followers)) == (18, 2)
    held, rng = pb.grasp(model, "load", ["left_hand", "right_hand"], q), np.random.default_rng(0)
    v, tau = held.capture(q, rng.normal(size=18)).v, rng.normal(size=18)
    found, (a, f_e) = held.forward_dynamics(q, v, tau), kkt(held, q, v, tau)
    near(found.a, a, 1e-9)
    near(found.f_e, f_e, 1e-9)
    wanted, internal = rng.normal(size=6), rng.normal(size=6)
    driven = held.inverse_dynamics(q, v, wanted, internal=internal)
    near(driven.internal, internal, 1e-9)
    near(held.forward_dynamics(q, v, driven.tau).object_acceleration, wanted, 1e-8)


def test_a_grasp_stands_for_its_closed_model():
    model, q = parallelogram()
    held = pb.grasp(model, "load", {"hand": "load"})
    assert as_model("simulate", held) is held.closed
    assert as_model("simulate", model) is model
    assert held.closed.constraints.names[-6:-4] == ["grip hand: turn x", "grip hand: turn y"]
    v = np.zeros(model.nv)
    near(as_model("simulate", held).forward_dynamics(q, v, v), held.forward_dynamics(q, v, v).a, 1e-12)
    with pytest.raises(pb.PolybodyError, match="expected a Model"):
        as_model("simulate", q)
