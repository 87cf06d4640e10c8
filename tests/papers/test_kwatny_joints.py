"""Kwatny & Blankenship 1995: the joints the paper prints, symbolically equal; its claim on holonomy corrected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import cos, sec, sin, tan

from polybody.algebra import domain
from polybody.errors import InputError
from polybody.mechanism import joint_kinematics

SYMPY = domain("sympy")
SPHERICAL = np.vstack([np.eye(3), np.zeros((3, 3))])
t1, t2, t3 = t = np.array(sp.symbols("t1 t2 t3", real=True), dtype=object)


def column(*entries: Any) -> np.ndarray:
    """A 6×1 map matrix."""
    return np.array(entries, dtype=object).reshape(6, 1)


def rational(expression: Any) -> Any:
    """sin x = 2u/(1 + u²), cos x = (1 − u²)/(1 + u²): rational functions, whose equality `cancel` decides."""
    angles = {f.args[0] for f in expression.atoms(sp.sin, sp.cos)}
    for k, angle in enumerate(sorted(angles, key=str)):
        u = sp.Symbol(f"half_{k}")
        values = {sin(angle): 2 * u / (1 + u**2), cos(angle): (1 - u**2) / (1 + u**2)}
        expression = expression.xreplace(values)
    return sp.cancel(sp.together(expression))


def assert_equal(found: np.ndarray, wanted: Any) -> None:
    """Symbolically equal, for all values of all symbols."""
    difference = sp.Matrix(found) - sp.Matrix(wanted)
    difference = difference.replace(tan, lambda x: sin(x) / cos(x)).replace(sec, lambda x: 1 / cos(x))
    assert difference.applyfunc(rational).is_zero_matrix, sp.Matrix(found)


#: (35b), also the rotation of (36c)
def x_321(a: Any, b: Any, c: Any) -> list[list[Any]]:
    return [
        [cos(b) * cos(c), cos(c) * sin(a) * sin(b) - cos(a) * sin(c), cos(a) * cos(c) * sin(b) + sin(a) * sin(c)],
        [cos(b) * sin(c), cos(a) * cos(c) + sin(a) * sin(b) * sin(c), -cos(c) * sin(a) + cos(a) * sin(b) * sin(c)],
        [-sin(b), cos(b) * sin(a), cos(a) * cos(b)],
    ]


#: Table II spherical, (36b)
def gamma_321(a: Any, b: Any) -> list[list[Any]]:
    return [
        [1, sin(a) * tan(b), cos(a) * tan(b)],
        [0, cos(a), -sin(a)],
        [0, sec(b) * sin(a), cos(a) * sec(b)],
    ]


def test_equation_35a_joint_map_of_the_compound_universal_joint() -> None:
    joint = joint_kinematics(SPHERICAL, (1, 1, 1))
    wanted = [
        [1, 0, -sin(t2)],
        [0, cos(t1), cos(t2) * sin(t1)],
        [0, -sin(t1), cos(t1) * cos(t2)],
        *([0, 0, 0] for _ in range(3)),
    ]
    assert_equal(joint.joint_map(t, domain=SYMPY), wanted)


@pytest.mark.parametrize("stages", [(1, 1, 1), (3,), (2, 1), None])
def test_equation_35b_configuration_of_simple_and_compound_joints_alike(stages: tuple[int, ...] | None) -> None:
    X = joint_kinematics(SPHERICAL, stages, check=False).matrix(t, domain=SYMPY)
    assert_equal(X[:3, :3], x_321(*t))
    assert_equal(X[:, 3], [0, 0, 0, 1])
    assert_equal(X[3, :], [0, 0, 0, 1])


def test_equation_35c_kinematic_matrix_of_the_compound_universal_joint() -> None:
    assert_equal(joint_kinematics(SPHERICAL, (1, 1, 1)).kinematic_matrix(t, domain=SYMPY), sp.eye(3))


def test_equations_36_free_motion_has_euler_angles_321_and_position_in_space() -> None:
    q = np.array(sp.symbols("ax ay az x y z", real=True), dtype=object)
    joint = joint_kinematics(np.eye(6))
    gamma = joint.kinematic_matrix(q, domain=SYMPY)
    assert_equal(gamma[:3, 3:], sp.zeros(3))
    assert_equal(gamma[3:, :3], sp.zeros(3))
    assert_equal(gamma[:3, :3], gamma_321(q[0], q[1]))  # (36b)
    assert_equal(gamma[3:, 3:], x_321(*q[:3]))  # (36c)
    assert_equal(joint.matrix(q, domain=SYMPY)[:3, 3], q[3:])


s = sp.Symbol("s", real=True)
z1, z2 = sp.symbols("z1 z2", real=True)
TABLE_2 = {
    "revolute": (column(0, 0, 1, 0, 0, 0), [[1]]),
    "prismatic": (column(0, 0, 0, 1, 0, 0), [[1]]),
    "screw": (column(1, 0, 0, s, 0, 0), [[1]]),
    "simple universal-screw": (
        np.array([[0, 1], [0, 0], [1, 0], [0, s], [0, 0], [0, 0]], dtype=object),
        [[1, 0], [0, cos(z1)]],
    ),
    "simple universal": (np.array([[0, 0], [1, 0], [0, 1], [0, 0], [0, 0], [0, 0]]), [[1, 0], [0, cos(z1)]]),
}


@pytest.mark.parametrize("name", TABLE_2)
def test_table_2_kinematic_matrices(name: str) -> None:
    H, wanted = TABLE_2[name]
    joint = joint_kinematics(H, check=False)
    assert_equal(joint.kinematic_matrix(np.array([z1, z2])[: joint.r], domain=SYMPY), wanted)


def test_table_2_spherical() -> None:
    assert_equal(joint_kinematics(SPHERICAL).kinematic_matrix(t, domain=SYMPY), gamma_321(t1, t2))


def test_a_screw_of_symbolic_pitch_advances_by_it() -> None:
    X = joint_kinematics(column(0, 0, 1, 0, 0, s)).matrix(t[:1], domain=SYMPY)
    assert_equal(X, [[cos(t1), -sin(t1), 0, 0], [sin(t1), cos(t1), 0, 0], [0, 0, 1, s * t1], [0, 0, 0, 1]])


@pytest.mark.parametrize("name", ["simple universal", "simple universal-screw"])
def test_a_simple_universal_joint_is_refused_and_the_compound_one_is_named(name: str) -> None:
    """The paper calls every simple joint holonomic; these two are not."""
    H = TABLE_2[name][0]
    with pytest.raises(InputError, match=r"not closed under the bracket.*not holonomic.*stages=\(1, 1\)"):
        joint_kinematics(H)
    joint_kinematics(H, (1, 1))


def test_no_parameter_rates_give_what_the_simple_universal_joint_promises() -> None:
    """B ε̇ = H β has no solution where rank [B H] > 2: the reason for the refusal, seen directly."""
    joint = joint_kinematics(TABLE_2["simple universal"][0], check=False)
    B = joint.rate_matrix(np.array([0.4, -0.3]), slice(0, 2))
    assert np.linalg.matrix_rank(np.column_stack([B, joint.H])) == 3
    ball = joint_kinematics(SPHERICAL)
    B = ball.rate_matrix(np.array([0.4, -0.3, 0.9]), slice(0, 3))
    assert np.linalg.matrix_rank(np.column_stack([B, ball.H])) == 3  # = r: always solvable


@pytest.mark.parametrize("name", ["planar", "spherical", "compound", "screw"])
def test_the_velocity_of_the_configuration_is_h_beta(name: str) -> None:
    """X⁻¹Ẋ = [H β] with ε̇ = Γ β: Propositions 2 and 3 against differentiation."""
    H, stages = {
        "planar": (np.eye(6)[:, [2, 3, 4]], None),
        "spherical": (SPHERICAL, None),
        "compound": (np.column_stack([SPHERICAL[:, 1:], [0, 0, 0, 1, 0, 2]]), (1, 1, 1)),
        "screw": (column(1, 0, 0, s, 0, 0), None),
    }[name]
    joint = joint_kinematics(H, stages)
    epsilon = np.array(sp.symbols(f"e1:{joint.r + 1}", real=True), dtype=object)
    beta = np.array(sp.symbols(f"b1:{joint.r + 1}", real=True), dtype=object)
    rates = joint.kinematic_matrix(epsilon, domain=SYMPY) @ beta
    X = sp.Matrix(joint.matrix(epsilon, domain=SYMPY))
    X_dot = sum((X.diff(e) * rate for e, rate in zip(epsilon, rates, strict=True)), sp.zeros(4))
    p = sp.Matrix(joint.joint_map(epsilon, domain=SYMPY) @ beta)
    w = p[:3]
    wanted = sp.Matrix([[0, -w[2], w[1], p[3]], [w[2], 0, -w[0], p[4]], [-w[1], w[0], 0, p[5]], [0, 0, 0, 0]])
    values = {x: sp.Rational(k + 3, 7) for k, x in enumerate([*epsilon, *beta, s])}
    assert np.abs(np.array((X_dot - X * wanted).subs(values).evalf(30), dtype=float)).max() < 1e-25
