"""Swain & Morris 2003 against the reference of ERRATA.md: two planar 3R arms on a free base hold an object."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.formulations.operators import table_one

LENGTHS, MASSES = (0.6, 0.6, 0.4), (2.0, 2.0, 1.0)
Q = ((2.2, -1.0, -0.5), (0.9, 1.1, 0.4))
TAU = (1, -0.5, 0.2, -0.8, 0.4, 0.1)
QDOT = (1.200458, -2.091595, 1.391136, 0.074339, -0.010769, 0.436429)
QDDOT = (1.32531447, -2.09855471, 1.95005272, -0.36585806, 0.96358176, 0.57908877)
BASE = (-0.30523164, -0.00985088, 0.27021110)
OBJECT = (0.87158083, -0.10167052, -0.83221401)
LOADS = ((0.63596701, -0.83791088, -0.62124271), (-0.34058402, -1.02531101, 0.94811299))
PLANE = (2, 3, 4)  # (ω_z, v_x, v_y) of a twist, (n_z, f_x, f_y) of a wrench


def shifted(x: float, y: float = 0.0):
    T = np.eye(4)
    T[:2, 3] = x, y
    return T


def two_arms(base: str, held: str) -> pb.Model:
    build = pb.Builder("two planar arms", gravity=(0, 0, 0))
    build.body("base", 20.0, inertia=(2, 2, 2))
    build.joint("root_joint", base, "world", "base", active=False)
    for side, x in (("left", -0.5), ("right", 0.5)):
        parent, origin = "base", shifted(x)
        for k, (length, mass) in enumerate(zip(LENGTHS, MASSES, strict=True)):
            name, inertia = f"{side}{k}", mass * length**2 / 12
            build.body(name, mass, com=(length / 2, 0, 0), inertia=(inertia, inertia, inertia))
            build.joint(f"{side}_joint{k}", "revolute", parent, name, origin)
            parent, origin = name, shifted(length)
        build.frame(f"{side}_hand", parent, origin)
    build.body("load", 3.0, inertia=(0.2, 0.2, 0.2))
    build.joint("load_joint", held, "world", "load", active=False)
    return build.model()


def reference(base: str = "planar", held: str = "planar"):
    """(grasp, q, v, tau) of ERRATA's state."""
    model = two_arms(base, held)
    slices = model.joint_slices()
    q, v, tau = model.neutral(), np.zeros(model.nv), np.zeros(model.nv)
    plane = (0, 1, 2)
    for i, side in enumerate(("left", "right")):
        for k in range(3):
            q[slices[f"{side}_joint{k}"][0]] = Q[i][k]
            tau[slices[f"{side}_joint{k}"][1]] = TAU[3 * i + k]
    middle = (model.pose(q, "left_hand")[:2, 3] + model.pose(q, "right_hand")[:2, 3]) / 2
    columns = {"planar": plane, "floating": PLANE}
    start = slices["load_joint"][0].start + (1 if held == "planar" else 0)
    q[start : start + 2] = middle
    v[slices["root_joint"][1]][list(columns[base])] = (-0.2, 0.05, 0.1)
    v[slices["load_joint"][1]][list(columns[held])] = (0.3, 0.1, -0.2)
    tau[slices["root_joint"][1]][list(columns[base])] = (0.5, 1, -1)
    grasp = pb.grasp(model, "load", ["left_hand", "right_hand"], q)
    arms = model.actuation.active
    A = grasp.closure_matrix(q)
    v[arms] = np.linalg.lstsq(A[:, arms], -A[:, ~arms] @ v[~arms], rcond=None)[0]
    return grasp, q, v, tau


@pytest.mark.parametrize("base", ["planar", "floating"])
@pytest.mark.parametrize("held", ["planar", "floating"])
def test_planar_two_arm_reference(base, held):
    grasp, q, v, tau = reference(base, held)
    model = grasp.model
    arms = model.actuation.active
    np.testing.assert_allclose(v[arms], QDOT, atol=1e-6)
    motion = grasp.forward_dynamics(q, v, tau)
    columns = {"planar": [0, 1, 2], "floating": list(PLANE)}
    a_base = motion.a[model.joint_slices()["root_joint"][1]][columns[base]]
    np.testing.assert_allclose(motion.a[arms], QDDOT, atol=1e-8)
    np.testing.assert_allclose(a_base, BASE, atol=1e-8)
    np.testing.assert_allclose(motion.object_acceleration[list(PLANE)], OBJECT, atol=1e-8)
    np.testing.assert_allclose(motion.f_e[:, PLANE], LOADS, atol=1e-8)
    np.testing.assert_allclose(np.delete(motion.f_e, PLANE, axis=1), 0, atol=1e-12)


def test_table_one_with_three_rows_an_arm_gives_the_same():
    """(49), (47) and step 4 as corrected, with dense H of the arms alone and V̇_open from the arms let go."""
    grasp, q, v, tau = reference()
    model, o = grasp.model, grasp.operators(q, v, tau)
    rows = [6 * j + k for j in range(2) for k in PLANE]
    J, J_p, H = o.J[rows], o.J_p[rows], o.H[np.ix_(rows, rows)]
    a_open = model.forward_dynamics(q, v, tau)
    A = grasp.closure_matrix(q)
    gamma = grasp.closed.constraints.bias(q, v)
    held = model.joint_slices()["load_joint"][1]
    W = -A[np.ix_(rows, range(held.start, held.stop))]
    arms_only = A[rows].copy()
    arms_only[:, held] = 0
    # −γ holds the velocity products of the grips less the object's, which vanish for the object's planar joint.
    V_open = arms_only @ a_open - gamma[rows]
    H_inverse = np.linalg.inv(H)
    M_o = np.diag([0.2, 3.0, 3.0])
    w, vx, vy = v[held]
    b_o = np.array([0.0, -3.0 * w * vy, 3.0 * w * vx])
    V_o = np.linalg.solve(M_o + W.T @ H_inverse @ W, W.T @ H_inverse @ V_open - b_o)
    f_e = H_inverse @ (V_open - W @ V_o)
    np.testing.assert_allclose(V_o, OBJECT, atol=1e-8)
    np.testing.assert_allclose(f_e.reshape(2, 3), LOADS, atol=1e-8)
    q_dd = np.linalg.solve(o.M, o.T_hat - J.T @ f_e - o.C)
    np.testing.assert_allclose(q_dd, QDDOT, atol=1e-8)
    base = np.linalg.solve(o.M_p, o.T_p - o.C_p - J_p.T @ f_e) - o.J_D @ q_dd
    np.testing.assert_allclose(base[:3], BASE, atol=1e-8)


@pytest.mark.parametrize("base", ["planar", "floating"])
@pytest.mark.parametrize("held", ["planar", "floating"])
def test_table_one_as_the_paper_has_it_gives_the_reference(base, held):
    grasp, q, v, tau = reference(base, held)
    grips = [(grip.tip, grip.hold) for grip in grasp.held.grips]
    rows = [6 * j + k for j in range(2) for k in PLANE]
    found = table_one(grasp.model.mechanism, q, v, tau, grasp.held.object, grips, rows)
    np.testing.assert_allclose(found.a[grasp.model.actuation.active], QDDOT, atol=1e-8)
    np.testing.assert_allclose(found.object_acceleration[list(PLANE)], OBJECT, atol=1e-8)
    np.testing.assert_allclose(found.f_e.reshape(2, 6)[:, PLANE], LOADS, atol=1e-8)
    motion = grasp.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(found.a, motion.a, atol=1e-9)
    np.testing.assert_allclose(found.f_e.reshape(2, 6), motion.f_e, atol=1e-9)


def test_grasp_matrix_maps_the_object_s_twist_to_the_end_effectors():
    grasp, q, v, _ = reference()
    twist = np.zeros(6)
    twist[list(PLANE)] = (0.3, 0.1, -0.2)
    tips = np.concatenate([grasp.model.jacobian(q, name, axes="frame") @ v for name in grasp.frames])
    np.testing.assert_allclose(grasp.W @ twist, tips, atol=1e-12)
    np.testing.assert_allclose(grasp.W.T @ grasp.internal_basis, 0, atol=1e-14)
