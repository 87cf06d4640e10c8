"""Rigid motions, twists, wrenches and inertias in every scalar domain."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readings import DOMAINS, reading

from polybody.algebra.inertia_checks import inertia_problem
from polybody.algebra.rotations import rotation_exp, skew
from polybody.algebra.spatial import (
    adjoint,
    body_inertia,
    bracket_matrix,
    inverse_pose,
    joined_inertia,
    pose,
    twist_exp,
    twist_log,
)

Array = np.ndarray
every_domain = pytest.mark.parametrize("name", DOMAINS)
twists = st.tuples(*[st.floats(-2, 2)] * 6).map(np.array)
XI = [scale * np.array([0.6, -0.64, 0.48, 1.0, -2.0, 0.5]) for scale in (0.0, 1e-9, 0.1999, 0.2001, 1.0, 3.1)]


def motion(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rotation_exp(rng.normal(size=3)), rng.normal(size=3)


def hat(xi: Array) -> Array:
    result = np.zeros((4, 4))
    result[:3, :3], result[:3, 3] = skew(xi[:3]), xi[3:]
    return result


@every_domain
@pytest.mark.parametrize("xi", XI, ids=lambda xi: f"{np.linalg.norm(xi[:3]):g}")
def test_twist_exp_is_the_matrix_exponential(name: str, xi: Array) -> None:
    R, p = reading(name, twist_exp, xi)
    wanted = np.array(mpmath.expm(mpmath.matrix(hat(xi).tolist()), method="taylor").tolist(), dtype=float)
    np.testing.assert_allclose(pose(R, p), wanted, atol=4e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-5, 0.19, 0.21, 1.5, 3.0, np.pi - 1e-9])
def test_twist_log_inverts_exp_near_zero_and_pi(angle: float) -> None:
    xi = np.array([*(angle * np.array([0.6, -0.64, 0.48])), 1.0, -2.0, 0.5])
    np.testing.assert_allclose(twist_log(*twist_exp(xi)), xi, atol=1e-14)


@settings(max_examples=100, deadline=None)
@given(twists)
def test_exp_of_the_log_is_the_motion(xi: Array) -> None:
    """Also where the rotation exceeds π and the logarithm finds another vector."""
    R, p = twist_exp(xi)
    R2, p2 = twist_exp(twist_log(R, p))
    np.testing.assert_allclose(pose(R2, p2), pose(R, p), atol=1e-11)


@every_domain
def test_adjoint_is_a_homomorphism(name: str) -> None:
    (Ra, pa), (Rb, pb) = motion(1), motion(2)
    a, b = reading(name, adjoint, Ra, pa), reading(name, adjoint, Rb, pb)
    ab = pose(Ra, pa) @ pose(Rb, pb)
    np.testing.assert_allclose(a @ b, adjoint(ab[:3, :3], ab[:3, 3]), atol=1e-14)
    inverse = inverse_pose(pose(Ra, pa))
    np.testing.assert_allclose(adjoint(inverse[:3, :3], inverse[:3, 3]) @ a, np.eye(6), atol=1e-14)


@every_domain
def test_adjoint_carries_twists_as_conjugation_does(name: str) -> None:
    R, p = motion(3)
    T, xi = pose(R, p), np.arange(1.0, 7)
    carried = reading(name, lambda R, p, x, domain: adjoint(R, p, domain=domain) @ x, R, p, xi)
    np.testing.assert_allclose(hat(carried), T @ hat(xi) @ np.linalg.inv(T), atol=1e-13)


@every_domain
def test_power_does_not_depend_on_the_frame(name: str) -> None:
    R, p = motion(4)
    rng = np.random.default_rng(5)
    V_b, w_a = rng.normal(size=6), rng.normal(size=6)
    Ad = reading(name, adjoint, R, p)
    V_a, w_b = Ad @ V_b, Ad.T @ w_a
    assert w_a @ V_a == pytest.approx(w_b @ V_b, rel=1e-14)
    # the carried wrench is the same force with the moment about the other origin
    np.testing.assert_allclose(R @ w_b[3:], w_a[3:], atol=1e-14)
    np.testing.assert_allclose(R @ w_b[:3], w_a[:3] - np.cross(p, w_a[3:]), atol=1e-14)


@every_domain
def test_the_bracket_is_the_commutator(name: str) -> None:
    rng = np.random.default_rng(6)
    a, b = rng.normal(size=6), rng.normal(size=6)
    found = reading(name, lambda a, b, domain: bracket_matrix(a, domain=domain) @ b, a, b)
    np.testing.assert_allclose(hat(found), hat(a) @ hat(b) - hat(b) @ hat(a), atol=1e-14)


@settings(max_examples=50, deadline=None)
@given(twists, twists)
def test_exp_of_the_bracket_matrix_is_the_adjoint_of_exp(xi: Array, eta: Array) -> None:
    from scipy.linalg import expm

    np.testing.assert_allclose(expm(bracket_matrix(xi)) @ eta, adjoint(*twist_exp(xi)) @ eta, atol=1e-10)


@every_domain
def test_inverse_pose_inverts(name: str) -> None:
    T = pose(*motion(7))
    np.testing.assert_allclose(reading(name, inverse_pose, T) @ T, np.eye(4), atol=1e-15)


def points(seed: int, n: int = 6) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.2, 1, size=n), rng.normal(size=(n, 3))


def of_points(masses: Array, places: Array) -> tuple[float, Array, Array]:
    """(mass, com, inertia about it) of points of mass, by definition."""
    com = masses @ places / masses.sum()
    arms = places - com
    return masses.sum(), com, sum(m * ((r @ r) * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, arms, strict=True))


@every_domain
def test_spatial_inertia_gives_the_kinetic_energy_of_its_points(name: str) -> None:
    masses, places = points(8)
    mass, com, inertia = of_points(masses, places)
    found = reading(name, lambda m, c, i, domain: body_inertia(m[0], c, i, domain=domain), [mass], com, inertia)
    V = np.random.default_rng(9).normal(size=6)
    speeds = V[3:] + np.cross(V[:3], places)
    assert V @ found @ V / 2 == pytest.approx((masses * (speeds**2).sum(axis=1)).sum() / 2, rel=1e-13)
    np.testing.assert_allclose(found, found.T, atol=1e-15)


@every_domain
def test_spatial_inertia_about_any_point_is_a_congruence(name: str) -> None:
    masses, places = points(10)
    R, p = motion(11)
    about_b = body_inertia(*of_points(masses, places))
    about_a = body_inertia(*of_points(masses, places @ R.T + p))
    back = inverse_pose(pose(R, p))
    X = reading(name, adjoint, back[:3, :3], back[:3, 3])
    np.testing.assert_allclose(X.T @ about_b @ X, about_a, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_joined_inertia_is_that_of_all_points_together(seed: int) -> None:
    masses, places = points(seed, 9)
    parts = [of_points(masses[s], places[s]) for s in (slice(0, 4), slice(4, 5), slice(5, 9))]
    mass, com, inertia = joined_inertia(parts)
    wanted = of_points(masses, places)
    assert mass == pytest.approx(wanted[0], rel=1e-15)
    np.testing.assert_allclose(com, wanted[1], atol=1e-14)
    np.testing.assert_allclose(inertia, wanted[2], atol=1e-13)


def test_joined_parts_without_mass_keep_their_inertia() -> None:
    mass, com, inertia = joined_inertia([(0.0, np.ones(3), np.eye(3)), (0.0, np.zeros(3), 2 * np.eye(3))])
    assert mass == 0
    np.testing.assert_array_equal(com, np.zeros(3))
    np.testing.assert_array_equal(inertia, 3 * np.eye(3))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_the_inertia_of_any_real_body_is_accepted(seed: int, n: int) -> None:
    assert inertia_problem(of_points(*points(seed, n))[2]) is None  # two points: a slender bar, with a zero moment


@pytest.mark.parametrize(
    ("moments", "words"),
    [((1, 1, 2.1), "breaks the triangle inequality"), ((-1, 1, 1), "not positive semidefinite")],
)
def test_inertias_that_no_body_has_are_named(moments: tuple[float, ...], words: str) -> None:
    R, _ = motion(12)
    problem = inertia_problem(R @ np.diag(moments) @ R.T)
    assert problem is not None
    assert words in problem
