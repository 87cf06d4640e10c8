"""Shipped models against published numbers and the papers' data; no dynamics: energies are built from Jacobians."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import polybody as pb
from polybody.description.reading import shipped_models

Array = np.ndarray


def com_jacobians(model: pb.Model, q: Array) -> list[tuple[float, Array, Array, Array]]:
    """(mass, Jacobian of the mass centre, angular Jacobian, inertia in world axes) of each body."""
    result = []
    for body in model.mechanism.bodies:
        J, R = model.jacobian(q, body.name), model.pose(q, body.name)[:3, :3]
        lever = R @ body.com
        result.append((body.mass, J[3:] + np.cross(J[:3].T, lever).T, J[:3], R @ body.inertia @ R.T))
    return result


def holding_forces(model: pb.Model, q: Array) -> Array:
    return -sum(Jc.T @ (m * model.gravity) for m, Jc, _, _ in com_jacobians(model, q))


def mass_matrix(model: pb.Model, q: Array) -> Array:
    parts = [m * Jc.T @ Jc + Jw.T @ I @ Jw for m, Jc, Jw, I in com_jacobians(model, q)]
    return sum(parts) + model.mechanism.armature


def test_all_models_load_without_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sizes = {name: pb.load(name).nv for name in shipped_models()}
    assert sizes == {
        "four-bar": 3, "five-bar": 4, "slider-crank": 5, "bricard": 5, "3-rrr": 9, "stewart": 24, "delta": 21,
        "hybrid": 10, "walking-machine": 7, "two-fingered-hand": 7, "two-arms": 9,
        "double-pendulum": 2, "humanoid": 29, "planar-3r": 3, "puma560": 6, "six-dof-arm": 6, "stanford-arm": 6,
        "three-link": 3, "two-link": 2,
    }  # fmt: skip


def test_puma560_agrees_with_the_published_gravity_load_and_inertia() -> None:
    """P. Corke, Robotics, Vision and Control: gravload and inertia at the nominal pose, to four digits."""
    model = pb.load("puma560")
    q = np.array([0, np.pi / 4, np.pi, 0, np.pi / 4, 0])
    np.testing.assert_allclose(holding_forces(model, q), [0, 31.6399, 6.0351, 0, 0.0283, 0], atol=6e-5)
    M = mass_matrix(model, q)
    np.testing.assert_allclose(np.diag(M), [3.6594, 4.4137, 0.9378, 0.1925, 0.1713, 0.1941], atol=6e-5)
    np.testing.assert_allclose([M[0, 1], M[0, 2], M[1, 2]], [-0.4044, 0.1006, 0.3509], atol=6e-5)
    np.testing.assert_allclose(model.pose(q, "dh_6")[:3, 3], [0.5963, -0.1501, -0.01435], atol=6e-5)


def test_stanford_arm_holds_itself_as_in_errata() -> None:
    """ERRATA 003: the rows t = 0 and t = 10 of the table, where nothing moves."""
    model = pb.load("stanford-arm")
    start, end = np.array([0, np.pi / 2, 0, 0, 0, 0]), np.array([1, 1, 0.1 * 3 / np.pi, 1, 1, 1]) * np.pi / 3
    np.testing.assert_allclose(holding_forces(model, start), [0, 13.3416, 0, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(holding_forces(model, end), [0, 16.7365471459, -29.9205, 0, 0, 0], atol=1e-10)


def test_planar_3r_holds_itself_as_in_errata() -> None:
    np.testing.assert_allclose(holding_forces(pb.load("planar-3r"), np.zeros(3)), [44.145, 19.62, 4.905], atol=1e-12)


def test_three_link_has_tokads_gravity_torques() -> None:
    """ERRATA 000: β at θ = (.3, −.5, .9) is what gravity asks of the joints."""
    torques = holding_forces(pb.load("three-link"), np.array([0.3, -0.5, 0.9]))
    np.testing.assert_allclose(torques, [48.512643291, 15.711164937, 2.250930557], atol=1e-9)


def test_six_dof_arm_has_the_corrected_last_inertia_row() -> None:
    """ERRATA 004, the row of the simple wrist; its second entry depends on the shoulder's kind and is left out."""
    model = pb.load("six-dof-arm")
    _, _, e, t1, t2, t3 = q = np.array([0.3, 0.7, -0.4, 0.5, 0.25, -0.9])
    s, c, A = np.sin, np.cos, 0.09697917
    turned = A * (s(t1) * s(t3) + s(t2) * c(t1) * c(t3))
    first = turned + 0.525 * s(t2) * (1 + c(e)) - 0.525 * s(e) * s(t3) * c(t2)
    row = mass_matrix(model, q)[5]
    np.testing.assert_allclose(row[[0, 2, 3, 4, 5]], [first, turned + 0.525 * s(t2), 0, 0, A], atol=2e-9)


def test_humanoid_stands_on_its_soles() -> None:
    model = pb.load("humanoid")
    q = model.neutral()
    for sole in ("left_sole", "right_sole"):
        assert abs(model.pose(q, sole)[2, 3]) < 1e-12
    assert model.joint_names[0] == "root_joint"
    assert sum(body.mass for body in model.mechanism.bodies) == pytest.approx(48.2)
