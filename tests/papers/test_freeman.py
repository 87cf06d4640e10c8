"""Freeman 1985: appendices B, C and E, entry by entry as printed, except what papers/ERRATA.md corrects.

Printed numbers are compared within one unit of their last digit (the dissertation truncates some of them).
"""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.coordinates.arrays import Dynamics, reversed_coefficients
from polybody.coordinates.constraining import (
    actuator_coefficients,
    augmented,
    constrained,
    driven,
    end_motion,
    platform,
    sum_of_legs,
    transferred_chain,
)

pytestmark = pytest.mark.filterwarnings("ignore::polybody.PolybodyWarning")

PLANAR = [3, 4, 2]  # rows x, y, θ of [angular; linear]


def printed(found, text: str, unit: float) -> None:
    """Every entry of `found` is the printed one within one unit of the last digit."""
    rows = [[float(x) for x in line.split()] for line in text.strip().splitlines()]
    np.testing.assert_allclose(np.atleast_2d(found), rows, rtol=0, atol=1.0001 * unit)


# Appendix B: the wrist-partitioned manipulator


@pytest.fixture(scope="module")
def wrist():
    build = pb.Builder("wrist-partitioned")
    for name in ("turret", "upper", "fore"):
        build.body(name, 1, inertia=(1, 1, 1))
    build.joint("1", "revolute", "world", "turret", (0, 0, 0.7))
    build.joint("2", "revolute", "turret", "upper", axis=(0, -1, 0))
    build.joint("3", "revolute", "upper", "fore", (0.5, 0, 0), axis=(0, -1, 0))
    build.frame("P", "fore", (0.4, 0, 0))
    return build.model()


THETA = np.array([0.6, 0.4, 0.9])


def test_table_b1_influence_coefficients_of_the_wrist_point(wrist):
    (s1, c1), s23, c23 = (np.sin(0.6), np.cos(0.6)), np.sin(1.3), np.cos(1.3)
    a23, a34 = 0.5, 0.4
    r, Pz = a23 * np.cos(0.4) + a34 * c23, a23 * np.sin(0.4) + a34 * s23
    found = wrist.coefficients.influence(THETA, "P", 2)
    G = [[-r * s1, -Pz * c1, -a34 * s23 * c1], [r * c1, -Pz * s1, -a34 * s23 * s1], [0, r, a34 * c23]]
    H1 = [[-r * c1, Pz * s1, a34 * s23 * s1], [Pz * s1, -r * c1, -a34 * c23 * c1],
          [a34 * s23 * s1, -a34 * c23 * c1, -a34 * c23 * c1]]
    H2 = [[-r * s1, -Pz * c1, -a34 * s23 * c1], [-Pz * c1, -r * s1, -a34 * c23 * s1],
          [-a34 * s23 * c1, -a34 * c23 * s1, -a34 * c23 * s1]]
    H3 = [[0, 0, 0], [0, -Pz, -a34 * s23], [0, -a34 * s23, -a34 * s23]]
    np.testing.assert_allclose(found.G[3:], G, atol=1e-14)
    np.testing.assert_allclose(found.H[3:], [H1, H2, H3], atol=1e-14)


def test_equations_b6_to_b9_second_order_transfer(wrist):
    t1, t2, t3 = THETA
    a23, a34 = 0.5, 0.4
    s1, c1, s23, c23 = np.sin(t1), np.cos(t1), np.sin(t2 + t3), np.cos(t2 + t3)
    r, Pz = a23 * np.cos(t2) + a34 * c23, a23 * np.sin(t2) + a34 * s23
    task = pb.transfer(wrist, pb.Position("P"))
    G, H = task.coefficients(THETA, 2)
    inverse, bent = reversed_coefficients(np.linalg.inv(G), H)
    s3 = np.sin(t3)
    b6 = [[-s1 / r, c1 / r, 0], np.array([c1 * c23, s1 * c23, s23]) / (a23 * s3),
          np.array([-r * c1, -r * s1, -Pz]) / (a23 * a34 * s3)]
    np.testing.assert_allclose(inverse, b6, atol=1e-13)
    b7 = -np.array([[0, Pz, a34 * s23], [Pz, 0, 0], [a34 * s23, 0, 0]]) / r
    np.testing.assert_allclose(np.tensordot(inverse, H, 1)[0], b7, atol=1e-13)
    b8 = np.array([[np.sin(2 * t1), -np.cos(2 * t1), 0], [-np.cos(2 * t1), -np.sin(2 * t1), 0], [0, 0, 0]]) / r**2
    np.testing.assert_allclose(bent[0], b8, atol=1e-13)
    # (B-10) and, independently of any coefficient, (B-15) with its sign corrected
    np.testing.assert_allclose(Pz * c23 - r * s23, -a23 * s3, atol=1e-14)
    p_dot, p_ddot = np.array([0.3, -0.7, 0.2]), np.array([1.1, 0.4, -0.5])
    direct = (p_ddot[1] * c1 - p_ddot[0] * s1) / r - 2 / r**2 * (p_dot[0] * c1 + p_dot[1] * s1) * (
        p_dot[1] * c1 - p_dot[0] * s1)
    np.testing.assert_allclose(task.acceleration(THETA, p_dot, p_ddot)[0], direct, atol=1e-12)


# Appendix C: the planar five-bar (inches, pounds-force)

FIVE_BAR = np.deg2rad([70, -35, -100, -25])
W_DOT, W_DDOT = np.array([2.0, 0, 0, 3]), np.array([1.0, 0, 0, 0.5])


@pytest.fixture(scope="module")
def five_bar():
    build = pb.Builder("five-bar", gravity=(0, 0, 0))
    lengths = (12, 24, 24, 12)
    for k in range(4):
        mass, J = (0.00517563, 0.062194) if k == 1 else (0, 0)
        build.body(f"link{k + 1}", mass, (12, 0, 0) if k == 1 else (0, 0, 0), (0, 0, J))
        build.joint(f"phi{k + 1}", "revolute", f"link{k}" if k else "world", f"link{k + 1}",
                    (lengths[k - 1] if k else 0, 0, 0), armature=0.000237 if k == 0 else 0)
    build.frame("A", "link1", (12, 0, 0))
    build.frame("B", "link3", (24, 0, 0))
    build.frame("h", "link4", (12, 0, 0))
    return build.model()


def five_bar_chain(model):
    found = model.coefficients.influence(FIVE_BAR, "h", 2)
    inertia, power = model.coefficients.dynamic_arrays(FIVE_BAR)
    w = augmented(found.G[PLANAR], found.H[PLANAR], [0])
    return Dynamics(inertia, power, np.zeros(4)), w


def test_table_c2_open_chain(five_bar):
    dynamics, w = five_bar_chain(five_bar)
    np.testing.assert_allclose(five_bar.pose(FIVE_BAR, "h")[:2, 3], [33.90673, -8.70924], atol=1e-5)
    printed(w.G, "1 0 0 0\n8.71 19.98 33.75 12\n33.91 29.80 10.14 0\n1 1 1 1", 0.01)
    printed(-w.H[1], "33.91 29.80 10.14 0\n29.80 29.80 10.14 0\n10.14 10.14 10.14 0\n0 0 0 0", 0.01)
    printed(w.H[2], "8.71 19.98 33.75 12\n19.98 19.98 33.75 12\n33.75 33.75 33.75 12\n12 12 12 12", 0.01)
    assert not w.H[0].any()
    np.testing.assert_allclose(w.H[3], 0, atol=1e-12)
    printed(dynamics.I, "2.774 1.418 0 0\n1.418 0.808 0 0\n0 0 0 0\n0 0 0 0", 0.001)
    printed(dynamics.P[0], "0 0.428 0 0\n0.428 0.428 0 0\n0 0 0 0\n0 0 0 0", 0.001)
    printed(dynamics.P[1], "-0.428 0 0 0\n0 0 0 0\n0 0 0 0\n0 0 0 0", 0.001)
    np.testing.assert_allclose(dynamics.P[2:], 0, atol=1e-12)


def test_table_c3_constrained_system(five_bar):
    dynamics, w = five_bar_chain(five_bar)
    whole, _, _ = transferred_chain(dynamics, w)
    milli = 1e3
    printed(milli * whole.I, """411.24 -5.73 12.29 68.79
        -5.73 0.26 -0.55 -3.10\n12.29 -0.55 1.19 6.64\n68.79 -3.10 6.64 37.17""", 0.01)
    printed(milli * whole.P[0], """303.35 -0.18 -8.96 2.15
        -0.18 -0.24 -0.61 2.84\n-8.96 -0.61 0.52 7.27\n2.15 2.84 7.27 -181.56""", 0.01)
    printed(milli * whole.P[1], """3.38 0.13 0.14 -1.58
        0.13 0.02 0.01 -0.20\n0.14 0.01 0.005 -0.17\n-1.58 -0.20 -0.17 9.06""", 0.01)
    np.testing.assert_allclose(milli * whole.P[1, 2, 2], 0.005, atol=0.001)
    printed(milli * whole.P[2], """-7.24 -0.28 -0.29 3.38
        -0.28 -0.04 -0.03 0.43\n-0.29 -0.03 -0.01 0.36\n3.38 0.43 0.36 -19.43""", 0.01)
    printed(milli * whole.P[3], """-40.50 -1.58 -1.66 18.95
        -1.58 -0.20 -0.17 2.42\n-1.66 -0.17 -0.06 2.03\n18.95 2.42 2.03 -108.75""", 0.01)
    printed(milli * whole.effort(W_DOT, W_DDOT), "50.77 68.83 -147.60 -825.92", 0.01)
    held = constrained(whole, [1, 2])
    free = held.free.effort(W_DOT[[0, 3]], W_DDOT[[0, 3]])
    printed(milli * free, "50.77 -825.92", 0.01)
    printed(milli * held.constraint_loads(W_DOT[[0, 3]], W_DDOT[[0, 3]]), "68.83 -147.60", 0.01)


def test_table_c1_dyad_analysis(five_bar):
    dynamics, w = five_bar_chain(five_bar)
    whole, back, bend = transferred_chain(dynamics, w)
    v, a = end_motion(back, bend, W_DOT, W_DDOT)
    A = five_bar.coefficients.influence(FIVE_BAR, "A", 2)
    printed(five_bar.pose(FIVE_BAR, "A")[:2, 3], "4.10 11.28", 0.01)
    printed(A.velocity(v)[3:5], "-22.55 8.21", 0.01)
    printed(A.acceleration(v, a)[3], "-27.69", 0.01)
    printed(A.acceleration(v, a)[4], "-41.0", 0.1)
    B = five_bar.coefficients.influence(FIVE_BAR, "B", 2)
    printed(five_bar.pose(FIVE_BAR, "B")[0, 3], "33.9", 0.1)
    printed(five_bar.pose(FIVE_BAR, "B")[1, 3], "3.29", 0.01)
    printed(B.velocity(v)[3:5], "-36.0 0.0", 0.1)
    printed(B.acceleration(v, a)[3:5], "-6.0 -108.0", 0.1)
    coupler = five_bar.coefficients.influence(FIVE_BAR, "link2", 2, point="com")
    np.testing.assert_allclose(FIVE_BAR[:2].sum(), 7 * np.pi / 36)
    printed(coupler.velocity(v)[2], "-0.074", 0.001)
    printed(coupler.acceleration(v, a)[2], "-3.405", 0.001)
    centre = five_bar.pose(FIVE_BAR, "link2") @ np.array([12.0, 0, 0, 1])
    printed(centre[:2], "13.93 18.16", 0.01)
    c_ddot = coupler.acceleration(v, a)[3:5]
    printed(c_ddot, "-4.31 -74.51", 0.01)
    loads = whole.effort(W_DOT, W_DDOT)
    F_H = loads[1:3]
    printed(F_H, "0.07 -0.15", 0.01)
    F_A = 0.00517563 * c_ddot - F_H
    printed(F_A[0], "-0.091", 0.001)
    printed(F_A[1], "-0.24", 0.01)
    printed(loads[0], "0.05", 0.01)
    printed(loads[3], "-0.83", 0.01)


def test_transferring_the_five_bar_to_its_actuators_gives_its_power(five_bar):
    """(4-39)-(4-41) with q = (φ1, φ4): the loads at the actuators do the same work as those at (φ1, θ_h)."""
    dynamics, w = five_bar_chain(five_bar)
    whole, back, bend = transferred_chain(dynamics, w)
    held = constrained(whole, [1, 2])
    G_y, H_y = held.coefficients(back, bend)
    G, H = G_y[[0, 3]], H_y[[0, 3]]
    at_actuators, _, _ = driven(held.free, G, H)
    y_dot, y_ddot = W_DOT[[0, 3]], W_DDOT[[0, 3]]
    q_dot, q_ddot = end_motion(G, H, y_dot, y_ddot)
    T_q, T_y = at_actuators.effort(q_dot, q_ddot), held.free.effort(y_dot, y_ddot)
    np.testing.assert_allclose(T_q @ q_dot, T_y @ y_dot, rtol=1e-10)
    np.testing.assert_allclose(G.T @ T_q, T_y, atol=1e-12)


# Appendix E: three legs and a platform, in the plane

HAND = np.array([2.55, 1.475])
LEGS = (
    ((2.55, 1.475), (2.28, 0), (0.866, 0.5)),
    ((-2.55, 1.475), (-1.14, 1.975), (-0.866, 0.5)),
    ((0, -2.95), (-1.14, -1.975), (0, -1)),
)


def leg(number: int):
    """(dynamics in w, [G_φ^w], [H_φφ^w], [G_w^φ], [H_ww^φ]) of one leg: only its base link has inertia."""
    build = pb.Builder(f"leg{number}", gravity=(0, 0, 0))
    places = [HAND - np.array(lever) for lever in LEGS[number]]
    for k, place in enumerate(places):
        before = places[k - 1] if k else np.zeros(2)
        build.body(f"link{k}", 0, inertia=(0, 0, number + 1 if k == 0 else 0))
        build.joint(f"phi{k}", "revolute", f"link{k - 1}" if k else "world", f"link{k}", (*(place - before), 0))
    build.frame("hand", "link2", (*(HAND - places[2]), 0))
    model = build.model()
    q = np.zeros(3)
    found = model.coefficients.influence(q, "hand", 2)
    inertia, power = model.coefficients.dynamic_arrays(q)
    w = augmented(found.G[PLANAR], found.H[PLANAR])
    return (*transferred_chain(Dynamics(inertia, power, np.zeros(3)), w), w, inertia, power)


def test_table_e1_first_leg():
    in_w, back, bend, w, inertia, power = leg(0)
    printed(w.G, "-1.475 0 -0.5\n2.55 2.28 0.866\n1 1 1", 0.001)
    printed(inertia, "1 0 0\n0 0 0\n0 0 0", 1e-9)
    printed(w.H[0], "-2.55 -2.28 -0.866\n-2.28 -2.28 -0.866\n-0.866 -0.866 -0.866", 0.001)
    printed(w.H[1], "-1.475 0 -0.5\n0 0 -0.5\n-0.5 -0.5 -0.5", 0.001)
    np.testing.assert_allclose(w.H[2], 0, atol=1e-12)
    np.testing.assert_allclose(power, 0, atol=1e-12)
    printed(back, "-0.637 0.225 -0.513\n0.758 0.439 -0.001\n-0.122 -0.664 1.514", 0.001)
    printed(in_w.I, "0.405 -0.143 0.327\n-0.143 0.051 -0.116\n0.327 -0.116 0.264", 0.001)
    printed(bend[0], "0.050 -0.105 0.116\n-0.105 -0.439 0.328\n0.116 0.328 -0.665", 0.001)
    printed(bend[1], "0.358 -0.053 0.225\n-0.053 0.419 -0.390\n0.225 -0.390 1.327", 0.001)
    printed(bend[2], "-0.408 0.158 -0.341\n0.158 0.019 0.062\n-0.341 0.062 -0.662", 0.001)
    printed(in_w.P[0], "-0.032 0.067 -0.074\n0.067 0.279 -0.209\n-0.074 -0.209 0.423", 0.001)
    printed(in_w.P[1], "0.011 -0.024 0.026\n-0.024 -0.099 0.074\n0.026 0.074 -0.150", 0.001)
    printed(in_w.P[2], "-0.026 0.054 -0.059\n0.054 0.225 -0.168\n-0.059 -0.168 0.341", 0.001)


def test_table_e2_whole_mechanism_and_its_return_to_the_actuators():
    legs = [leg(k) for k in range(3)]
    total = sum_of_legs([one[0] for one in legs])
    G, H = actuator_coefficients([(one[1], one[2]) for one in legs], [(0, 0), (1, 0), (2, 0)])
    printed(G, "-0.637 0.225 -0.513\n0.124 -0.665 -0.514\n0.513 0.439 -0.513", 0.001)
    printed(total.I, "1.225 0.367 -0.589\n0.367 1.513 -0.106\n-0.589 -0.106 1.582", 0.001)
    printed(H[0], "0.050 -0.105 0.116\n-0.105 -0.439 0.328\n0.116 0.328 -0.665", 0.001)
    printed(H[1], "-0.408 -0.159 -0.342\n-0.159 0.018 -0.063\n-0.342 -0.063 -0.665", 0.001)
    printed(H[2], "-0.225 0.263 0.225\n0.263 -0.165 -0.263\n0.225 -0.263 -0.664", 0.001)
    printed(total.P[0], "-0.479 0.432 0.188\n0.432 0.031 -0.629\n0.188 -0.629 -0.762", 0.001)
    printed(total.P[1], "0.259 0.534 0.777\n0.534 -0.340 -0.188\n0.777 -0.188 -0.137", 0.001)
    printed(total.P[2], "0.741 -0.188 -0.054\n-0.188 0.459 0.302\n-0.054 0.302 2.047", 0.001)
    at_actuators, _, _ = driven(total, G, H)
    np.testing.assert_allclose(at_actuators.I, np.diag([1, 2, 3]), atol=1e-13)
    np.testing.assert_allclose(at_actuators.P, 0, atol=1e-13)


def test_equations_4_50_to_4_54_a_platform_obeys_euler():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    J = root @ root.T
    body = platform(2.5, J, load=np.arange(6.0))
    omega, c_dot, alpha, c_ddot = rng.normal(size=(4, 3))
    effort = body.effort(np.concatenate([omega, c_dot]), np.concatenate([alpha, c_ddot]))
    expected = np.concatenate([J @ alpha + np.cross(omega, J @ omega), 2.5 * c_ddot]) - np.arange(6.0)
    np.testing.assert_allclose(effort, expected, atol=1e-12)


def test_operations_on_states_refuse_what_does_not_fit(five_bar):
    dynamics, w = five_bar_chain(five_bar)
    found = five_bar.coefficients.influence(FIVE_BAR, "h", 2)
    with pytest.raises(pb.InputError, match="1 must be kept, got 2"):
        augmented(found.G[PLANAR], found.H[PLANAR], [0, 1])
    with pytest.raises(pb.InputError, match="different indices"):
        constrained(dynamics, [7])
    with pytest.raises(pb.InputError, match="no joint 9 of leg 0"):
        actuator_coefficients([(w.G, w.H)], [(0, 9)])
    with pytest.raises(pb.InputError, match="at least one leg"):
        sum_of_legs([])
