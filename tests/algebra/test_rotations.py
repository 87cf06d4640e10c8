"""Rotations in every scalar domain: definitions, inverses, homomorphisms, and the ends 0 and π."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from readings import DOMAINS, reading

from polybody.algebra import COMPLEX, domain
from polybody.algebra.graph import operands
from polybody.algebra.rotations import (
    axis_angle_matrix,
    cross,
    exp_coefficients,
    is_rotation,
    left_jacobian,
    left_jacobian_inverse,
    matrix_quaternion,
    matrix_rpy,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_product,
    quaternion_rate,
    rotation_exp,
    rotation_log,
    rpy_matrix,
    skew,
)

Array = np.ndarray

every_domain = pytest.mark.parametrize("name", DOMAINS)
#: rotation vectors: tiny, around the switch to series (0.2), ordinary, near π, beyond it
VECTORS = [scale * np.array([0.6, -0.64, 0.48]) for scale in (0.0, 1e-9, 1e-4, 0.1999, 0.2001, 1.0, 3.1415, 4.0)]
angles = st.floats(-3.1, 3.1)
vectors = st.tuples(*[st.floats(-2, 2)] * 3).map(np.array)


def long_exp(phi: Array) -> Array:
    """exp of [φ] by mpmath's matrix exponential, 40 digits."""
    k = skew(phi)
    return np.array(mpmath.expm(mpmath.matrix(k.tolist()), method="taylor").tolist(), dtype=float)


def unit(values: Array) -> Array:
    return values / np.linalg.norm(values)


@every_domain
@pytest.mark.parametrize("phi", VECTORS, ids=lambda phi: f"{np.linalg.norm(phi):g}")
def test_rotation_exp_is_the_matrix_exponential(name: str, phi: Array) -> None:
    np.testing.assert_allclose(reading(name, rotation_exp, phi), long_exp(phi), atol=2e-15)


@every_domain
@pytest.mark.parametrize("phi", VECTORS, ids=lambda phi: f"{np.linalg.norm(phi):g}")
def test_quaternion_exp_is_the_same_rotation_and_unit(name: str, phi: Array) -> None:
    q = reading(name, quaternion_exp, phi)
    assert abs(np.linalg.norm(q) - 1) < 4e-16
    np.testing.assert_allclose(quaternion_matrix(q), long_exp(phi), atol=2e-15)


@every_domain
@pytest.mark.parametrize("phi", VECTORS, ids=lambda phi: f"{np.linalg.norm(phi):g}")
def test_left_jacobian_and_its_inverse(name: str, phi: Array) -> None:
    J, inverse = reading(name, left_jacobian, phi), reading(name, left_jacobian_inverse, phi)
    np.testing.assert_allclose(J @ inverse, np.eye(3), atol=4e-15)
    steps = np.polynomial.legendre.leggauss(24)  # J = ∫₀¹ exp(s φ) ds
    integral = sum(w / 2 * long_exp((x + 1) / 2 * phi) for x, w in zip(*steps, strict=True))
    np.testing.assert_allclose(J, integral, atol=1e-14)


@every_domain
@pytest.mark.parametrize("square", [0.0, 1e-12, 0.0399999, 0.0400001, 2.0])
def test_exp_coefficients_do_not_jump_at_the_switch_to_series(name: str, square: float) -> None:
    a, b, c = (float(x) for x in reading(name, lambda x, domain: exp_coefficients(x[0], domain=domain), [square]))
    x = mpmath.mpf(square)
    if square == 0:
        wanted = [1, mpmath.mpf(1) / 2, mpmath.mpf(1) / 6]
    else:
        theta = mpmath.sqrt(x)
        wanted = [mpmath.sin(theta) / theta, (1 - mpmath.cos(theta)) / x, (theta - mpmath.sin(theta)) / (x * theta)]
    np.testing.assert_allclose([a, b, c], [float(w) for w in wanted], rtol=2e-14)


LOGS = [1e-300, 1e-12, 1e-5, 9e-5, 1.1e-4, 0.3, 1.5, 3.0, np.pi - 1e-6, np.pi - 1e-12]


@every_domain
@pytest.mark.parametrize("angle", LOGS)
def test_quaternion_log_inverts_exp_near_zero_and_pi(name: str, angle: float) -> None:
    phi = angle * np.array([0.6, -0.64, 0.48])
    back = reading(name, quaternion_log, quaternion_exp(phi))
    np.testing.assert_allclose(back, phi, rtol=4e-15, atol=1e-15 if angle > 1e-3 else 0)
    np.testing.assert_allclose(reading(name, quaternion_log, -quaternion_exp(phi)), phi, rtol=4e-15, atol=1e-15)


@pytest.mark.parametrize("angle", [1e-12, 0.3, 3.0, np.pi - 1e-9, np.pi])
@pytest.mark.parametrize("axis", [(0.6, -0.64, 0.48), (1, 0, 0), (0, -1, 0), (0, 0, 1), (0.8, 0.6, 0), (0, 0.8, -0.6)])
def test_rotation_log_inverts_exp_up_to_pi(angle: float, axis: tuple[float, ...]) -> None:
    phi = angle * np.array(axis)
    back = rotation_log(rotation_exp(phi))
    if angle == np.pi and back @ phi < 0:  # both signs are the same rotation
        back = -back
    np.testing.assert_allclose(back, phi, atol=1e-15 if angle < 1 else 4e-15)


def test_turning_about_a_coordinate_axis_takes_its_sine_and_its_cosine_and_nothing_else() -> None:
    """Tracing reads every joint so: what is folded here no first answer waits for."""
    graph: Any = domain("casadi")
    _, (angle,) = graph.variables("angle", 1)
    for axis in (*np.eye(3), *-np.eye(3)):
        R = axis_angle_matrix(graph.array(axis), angle, domain=graph)
        assert len(operands(R.ravel())) <= 4  # the angle, sine and cosine, and a sign
        np.testing.assert_array_equal(axis_angle_matrix(axis, 0.7)[axis == 0][:, axis == 0].diagonal(), np.cos(0.7))
        np.testing.assert_allclose(axis_angle_matrix(axis, 0.7), rotation_exp(0.7 * axis), rtol=0, atol=2e-16)


@pytest.mark.parametrize("name", [name for name in DOMAINS if name.startswith("jet") or name == "casadi"])
def test_the_derivative_of_the_logarithm_is_finite_at_the_identity(name: str) -> None:
    assert np.isfinite(reading(name, quaternion_log, np.array([0, 0, 0, 1.0]))).all()
    if name == "jet(float64)":
        d = DOMAINS[name]
        jets = d.lift(np.array([0, 0, 0, 1.0]), np.array([0.5, 0, 0, 0]))  # type: ignore[attr-defined]
        np.testing.assert_allclose(d.rates(quaternion_log(jets, domain=d)), [1, 0, 0], atol=1e-15)  # type: ignore[attr-defined]


@every_domain
def test_quaternion_product_composes_matrices(name: str) -> None:
    rng = np.random.default_rng(1)
    a, b = unit(rng.normal(size=4)), unit(rng.normal(size=4))
    ab = reading(name, lambda a, b, domain: quaternion_product(a, b), a, b)
    Ra, Rb = reading(name, quaternion_matrix, a), reading(name, quaternion_matrix, b)
    np.testing.assert_allclose(quaternion_matrix(ab), Ra @ Rb, atol=1e-15)
    assert is_rotation(Ra)


@every_domain
def test_rpy_is_three_turns_about_fixed_axes(name: str) -> None:
    rpy = np.array([0.3, -1.2, 2.5])
    x, y, z = np.eye(3)
    wanted = axis_angle_matrix(z, 2.5) @ axis_angle_matrix(y, -1.2) @ axis_angle_matrix(x, 0.3)
    np.testing.assert_allclose(reading(name, rpy_matrix, rpy), wanted, atol=1e-15)


@every_domain
def test_axis_angle_is_the_exponential_of_axis_times_angle(name: str) -> None:
    for axis in (unit(np.array([1.0, 2, -3])), *np.eye(3), *-np.eye(3)):
        R = reading(name, lambda a, t, domain: axis_angle_matrix(a, t[0], domain=domain), axis, [0.7])
        np.testing.assert_allclose(R, long_exp(0.7 * axis), atol=1e-15)


@every_domain
def test_cross_products_and_skew_matrices_agree(name: str) -> None:
    a, b = np.array([1.0, -2, 0.5]), np.array([0.25, 3, -1])
    np.testing.assert_array_equal(reading(name, lambda a, b, domain: cross(a, b), a, b), np.cross(a, b))
    np.testing.assert_array_equal(reading(name, lambda a, b, domain: skew(a, domain=domain) @ b, a, b), np.cross(a, b))


@settings(max_examples=200, deadline=None)
@given(angles, st.one_of(angles.map(lambda a: a / 2), st.sampled_from([np.pi / 2, -np.pi / 2, 1.57079632]), ), angles)
def test_rpy_gives_its_rotation_back(roll: float, pitch: float, yaw: float) -> None:
    R = rpy_matrix(np.array([roll, pitch, yaw]))
    np.testing.assert_allclose(rpy_matrix(matrix_rpy(R)), R, atol=2e-15)


@settings(max_examples=200, deadline=None)
@given(st.tuples(*[st.floats(-1, 1)] * 4).map(np.array).filter(lambda q: np.linalg.norm(q) > 1e-3))
def test_matrix_quaternion_inverts_quaternion_matrix(q: Array) -> None:
    q = unit(q)
    back = matrix_quaternion(quaternion_matrix(q))
    assert back[3] >= 0
    np.testing.assert_allclose(back * np.sign(back @ q), q, atol=2e-15)


@settings(max_examples=100, deadline=None)
@given(vectors, vectors)
def test_left_jacobian_is_the_derivative_of_exp(phi: Array, d: Array) -> None:
    """d(exp φ) exp(−φ) = [J dφ], by complex step."""
    h = 1e-30
    stepped = rotation_exp(phi + 1j * h * d, domain=COMPLEX)
    spin = (stepped.imag / h) @ rotation_exp(phi).T
    np.testing.assert_allclose(spin, skew(left_jacobian(phi) @ d), atol=1e-13)


def test_quaternion_rate_is_the_derivative_of_the_rotation() -> None:
    """R(q) with q̇ = ½ q ⊗ ω turns with Rᵀ Ṙ = [ω], symbolically."""
    sympy_domain = domain("sympy")
    q = np.array(sp.symbols("x y z w"), dtype=object)
    omega = np.array(sp.symbols("a b c"), dtype=object)
    rates = quaternion_rate(q, omega, domain=sympy_domain)
    R = sp.Matrix(quaternion_matrix(q, domain=sympy_domain))
    R_dot = sum((R.diff(x) * dx for x, dx in zip(q, rates, strict=True)), sp.zeros(3))
    wanted = R * sp.Matrix(skew(omega, domain=sympy_domain))
    off_sphere = sum(x**2 for x in q) - 1
    assert (R_dot - wanted).applyfunc(lambda e: sp.rem(sp.expand(e), off_sphere, q[3])).is_zero_matrix
