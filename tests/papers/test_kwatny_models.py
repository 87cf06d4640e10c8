"""Kwatny & Blankenship 1995, sections III and IV: the disk and the arm, as ERRATA corrects them, for all values."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import sympy as sp
from sympy import Rational, cos, sin, tan

import polybody as pb
from polybody.description.records import Body, Description, Joint, frozen_array
from polybody.mechanism import mechanism_from
from polybody.mechanism.joints import MapJoint
from polybody.mechanism.maps import JointMap
from polybody.symbolic import SymbolicModel
from symbolic_checks import assert_same

s1, s2, e, t1, t2, t3 = q = sp.symbols("s1 s2 e t1 t2 t3")
A = Rational(931, 9600)  # .09697917: I_xx + m a² of the gripper
STATE = (0.3, 0.7, -0.4, 0.5, 0.25, -0.9, 0.2, -0.5, 0.8, 1.1, -0.7, 0.4)
ARM = {"q": [x.name for x in q], "p": ["w1", "w2", "u1", "v1", "v2", "v3"]}


def disk(joints: str | None = None) -> SymbolicModel:
    """m1 = 5, R1 = 2: a thin disk on a spherical joint at its mass centre."""
    body = Body("disk", 5.0, inertia=frozen_array(np.diag([5.0, 5.0, 10.0])))
    ball = Joint("ball", "spherical", "world", "disk")
    mechanism = mechanism_from(Description("disk", frozen_array(np.zeros(3)), (body,), (ball,)))
    return SymbolicModel(mechanism, symbols="none", joints=joints, q=["t1", "t2", "t3"], p=["w1", "w2", "w3"])


def test_disk_on_a_simple_spherical_joint_obeys_eulers_equations():
    """(54), the sign of F by the errata."""
    sym = disk()
    w1, w2, w3 = sym.p
    assert sym.mass_matrix() == sp.diag(5, 5, 10)
    assert_same(sym.velocity_forces(), [5 * w2 * w3, -5 * w1 * w3, 0])
    gamma = [[1, sin(t1) * tan(t2), cos(t1) * tan(t2)], [0, cos(t1), -sin(t1)],
             [0, sin(t1) / cos(t2), cos(t1) / cos(t2)]]  # (54a)
    assert sym.kinematic_matrix("ball") == sp.Matrix(gamma)


def test_disk_on_a_compound_universal_joint_obeys_lagranges_equations():
    """(55), with 5 sin²t2 in the last entry and the other sign of F."""
    sym = disk("compound")
    _, u2, u3 = sym.p
    M = sp.Matrix([
        [5, 0, -5 * sin(t2)],
        [0, Rational(5, 2) * (3 - cos(2 * t1)), -Rational(5, 2) * cos(t2) * sin(2 * t1)],
        [-5 * sin(t2), -Rational(5, 2) * cos(t2) * sin(2 * t1),
         10 * cos(t1) ** 2 * cos(t2) ** 2 + 5 * cos(t2) ** 2 * sin(t1) ** 2 + 5 * sin(t2) ** 2],
    ])  # fmt: skip
    assert_same(sym.mass_matrix(), M)
    assert sym.kinematic_matrix() == sp.eye(3)
    H = [[1, 0, -sin(t2)], [0, cos(t1), cos(t2) * sin(t1)], [0, -sin(t1), cos(t1) * cos(t2)], *[[0, 0, 0]] * 3]
    assert_same(sym.joint_map("ball"), H)  # (35a)
    F = lagrange_forces(M, sym.q, sym.p)
    assert_same(sym.velocity_forces(), F)
    printed = (
        u3 * (-5 * u2 * cos(2 * t1) * cos(t2) - 5 * u3 * cos(t2) ** 2 * sin(2 * t1)) / 2
        + u2 * (5 * u3 * cos(t2) + (-5 * u3 * cos(2 * t1) * cos(t2) + 5 * u2 * sin(2 * t1)) / 2)
    )
    assert_same([sym.velocity_forces()[0]], [-printed])  # F_1 of (55b), sign reversed


def lagrange_forces(M: sp.Matrix, q, rates) -> list[sp.Expr]:
    """d/dt(M q̇) − ∂T/∂q without the accelerations, from M alone."""
    v = sp.Matrix(rates)
    T = (v.T * M * v)[0] / 2
    momentum = M * v
    return [sum(sp.diff(momentum[k], x) * r for x, r in zip(q, rates, strict=True)) - sp.diff(T, q[k])
            for k in range(len(q))]


@pytest.fixture(scope="module")
def arm() -> SymbolicModel:
    return pb.load("six-dof-arm").symbolic("gravity", **ARM)


@pytest.fixture(scope="module")
def compound_arm() -> SymbolicModel:
    return pb.load("six-dof-arm").symbolic("none", joints={"wrist": "compound"}, **ARM)


def test_last_inertia_row_of_the_arm_in_the_papers_simple_joints():
    """The true row of the errata, for r1 = {2} too: the map of that shoulder is no joint, but it has an inertia row."""
    mechanism = pb.load("six-dof-arm").mechanism
    shoulder = mechanism.joints[0]
    forbidden = MapJoint("custom", JointMap(shoulder.model.map.H, (2,)))
    joints = (dataclasses.replace(shoulder, model=forbidden), *mechanism.joints[1:])
    row = SymbolicModel(dataclasses.replace(mechanism, joints=joints), symbols="none", **ARM).mass_matrix()[5, :]
    reach = Rational(21, 40)  # .525 = m3 · L · L3/2
    turning = A * (sin(t1) * sin(t3) + sin(t2) * cos(t1) * cos(t3))
    entry1 = turning + reach * sin(t2) * (1 + cos(e)) - reach * sin(e) * sin(t3) * cos(t2)
    entry2 = (-A * cos(e) * (sin(t1) * cos(t3) - sin(t2) * sin(t3) * cos(t1)) - A * sin(e) * cos(t1) * cos(t2)
              - reach * sin(e) * cos(t2) * cos(t3))
    assert_same(row, [[entry1, entry2, turning + reach * sin(t2), 0, 0, A]])


def test_simple_wrist_row_with_the_true_shoulder(arm):
    """With the compound shoulder only entry 2 differs: its axis z is seen from the turned upper arm."""
    row = arm.mass_matrix()[5, :]
    reach = Rational(21, 40)
    turning = A * (sin(t1) * sin(t3) + sin(t2) * cos(t1) * cos(t3))
    entry1 = turning + reach * sin(t2) * (1 + cos(e)) - reach * sin(e) * sin(t3) * cos(t2)
    entry2 = (-A * cos(e + s1) * (sin(t1) * cos(t3) - sin(t2) * sin(t3) * cos(t1))
              - A * sin(e + s1) * cos(t1) * cos(t2) - reach * (sin(s1) + sin(e + s1)) * cos(t2) * cos(t3))
    assert_same(row, [[entry1, entry2, turning + reach * sin(t2), 0, 0, A]])


def test_last_inertia_row_of_the_arm_with_a_compound_wrist(compound_arm):
    point = dict(zip(q, (0.3, 0.7, -0.4, 0.5, 0.25, -0.9), strict=True))
    row = np.array(compound_arm.mass_matrix()[5, :].subs(point), dtype=float).ravel()
    printed = (-0.18810085, -0.05801538, -0.03248489, -0.02399303, -0.03745338, 0.07715437)
    np.testing.assert_allclose(row, printed, atol=5e-9)


def test_end_effector_and_gravity_potential_of_the_arm(arm):
    """The printed XEnd (its column 4, and the .35-bracket Z of the potential), 6 cos s1 by the errata."""
    x = cos(s2) * sin(s1 + e)
    height = 3 * cos(s1) + 3 * cos(e + s1)
    Z = -cos(t2) * sin(e + s1) * sin(t1) + cos(e + s1) * (cos(t1) * cos(t3) + sin(t1) * sin(t2) * sin(t3))
    pose = arm.end_effector("tip").subs(sp.Symbol("tip_z"), Rational(7, 10))
    assert_same([pose[2, 3]], [height + Rational(7, 10) * Z])
    g = sp.Symbol("g")
    assert_same([arm.potential_energy()], [g * (6 * cos(s1) + 3 * cos(e + s1) + Rational(175, 1000) * Z)])
    third = (cos(t2) * cos(e + s1) * cos(s2) * sin(t1) - sin(s2) * (cos(t3) * sin(t1) * sin(t2) - cos(t1) * sin(t3))
             + x * (cos(t1) * cos(t3) + sin(t1) * sin(t2) * sin(t3)))
    assert_same([pose[0, 2]], [third])
    assert_same([pose[0, 3]], [3 * cos(s2) * sin(s1) + 3 * x + Rational(7, 10) * third])
    first = (cos(t1) * cos(t2) * cos(e + s1) * cos(s2) - sin(s2) * (cos(t1) * cos(t3) * sin(t2) + sin(t1) * sin(t3))
             + x * (-cos(t3) * sin(t1) + cos(t1) * sin(t2) * sin(t3)))
    assert_same([pose[0, 0]], [first])


def test_arms_equations_with_compound_wrist_are_lagranges(compound_arm):
    M = compound_arm.mass_matrix()
    wanted, found = (
        sp.lambdify([*q, *compound_arm.p], expression, cse=True)(*STATE)
        for expression in (lagrange_forces(M, q, compound_arm.p), list(compound_arm.velocity_forces()))
    )
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_simple_wrist_makes_the_inertia_matrix_smaller(arm, compound_arm):
    """The paper claims 25 %; the true ratio for the wrist alone is between one half and one (ERRATA)."""
    ratio = arm.size("mass_matrix").characters / compound_arm.size("mass_matrix").characters
    assert 0.5 < ratio < 1
    assert arm.size("velocity_forces").characters < compound_arm.size("velocity_forces").characters


def test_the_shoulder_cannot_be_simple():
    with pytest.raises(pb.InputError, match=r"'shoulder' cannot be simple.*bracket.*not holonomic"):
        pb.load("six-dof-arm").symbolic(joints={"shoulder": "simple"})
