"""Residuals, Jacobians and biases of every constraint are each other's derivatives, where loops are closed."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.algebra.domains import FLOAT, domain
from polybody.constraints.system import constraints_of
from polybody.description.expressions import parse
from polybody.description.mechanism_file.reader import read_mechanism
from polybody.description.mechanism_file.writer import mechanism_text
from polybody.description.records import same_description
from polybody.mechanism.kinds import joint_model
from polybody.mechanism.kinematics import body_poses, frame_pose, integrate

SIZES = {
    "fixed": 6, "revolute": 5, "continuous": 5, "prismatic": 5, "screw": 5, "cylindrical": 4, "universal": 4,
    "spherical": 3, "planar": 3,
}
MAPS = {
    "simple": (np.array([[0, 0, 1, 0.3, -0.2, 0.1], [0, 0, 0, 0, 0, 1]]).T, (2,)),
    "compound": (np.array([[1, 0, 0, 0, 0.2, 0], [0, 1, 0, 0.1, 0, 0], [0, 0, 0, 1, 0, 0]]).T, (1, 1, 1)),
}


def pose(rng):
    T = np.eye(4)
    T[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    T[:3, :3] *= np.sign(np.linalg.det(T[:3, :3]))
    T[:3, 3] = rng.normal(size=3)
    return T


def closed_pair(kind, seed=0):
    """Two floating bodies with a loop of this kind between them, in a state that closes it."""
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    options = {"axis": axis}
    name = kind
    if kind == "screw":
        options["pitch"] = 0.3
    if kind in MAPS:
        name, options["map"], options["stages"] = "custom", *MAPS[kind]
    build = pb.Builder(kind)
    for body in "ab":
        build.body(body, 1.0, (0.1, 0.2, 0.3), (0.3, 0.4, 0.5))
        build.joint(f"free {body}", "floating", "world", body)
    Ta, Tb = pose(rng), pose(rng)
    build.loop("cut", name, "a", "b", Ta, Tb, **options)
    mechanism = build.model().mechanism
    (loop,) = mechanism.description.loops
    X = np.eye(4)
    if kind != "fixed":
        model = joint_model(loop)
        X[:3, :3], X[:3, 3] = model.configuration(model.random(rng))
    A = pose(rng)
    B = A @ Ta @ X @ np.linalg.inv(Tb)
    from polybody.algebra.rotations import matrix_quaternion

    q = np.concatenate([np.concatenate([T[:3, 3], matrix_quaternion(T[:3, :3])]) for T in (A, B)])
    return mechanism, q, rng


@pytest.mark.parametrize("kind", [*SIZES, *MAPS])
def test_residual_vanishes_on_the_joints_own_motion_and_jacobian_is_its_derivative(kind):
    mechanism, q, rng = closed_pair(kind)
    loops = constraints_of(mechanism)
    assert len(loops) == (SIZES[kind] if kind in SIZES else 6 - MAPS[kind][0].shape[1])
    assert np.abs(loops.residual(q)).max() < 1e-13
    assert np.abs(loops.residual(q, far=True)).max() < 1e-13
    assert loops.mirrored(q) == []
    J = loops.jacobian(q)
    for far in (False, True):
        for k in range(mechanism.nv):
            d = np.eye(mechanism.nv)[k] * 1e-6
            plus, minus = (loops.residual(integrate(mechanism, q, s * d), far=far) for s in (1, -1))
            np.testing.assert_allclose((plus - minus) / 2e-6, J[:, k], atol=3e-8)
    v = rng.normal(size=mechanism.nv)
    np.testing.assert_allclose(loops.velocity(q, v), J @ v, atol=1e-13)


@pytest.mark.parametrize("kind", [*SIZES, *MAPS])
def test_bias_is_the_second_derivative_of_the_residual_along_admissible_motion(kind):
    mechanism, q, rng = closed_pair(kind, 3)
    loops = constraints_of(mechanism)
    J = loops.jacobian(q)
    v = rng.normal(size=mechanism.nv)
    v -= np.linalg.pinv(J) @ (J @ v)
    a = -np.linalg.pinv(J) @ loops.bias(q, v)
    # along q(t) = q ⊕ (v t + a t²/2) the residual is of third order: halving t divides it by eight
    gaps = [np.abs(loops.residual(integrate(mechanism, q, v * t + a * t * t / 2))).max() for t in (4e-3, 2e-3)]
    assert gaps[1] < 1e-6
    assert gaps[0] / max(gaps[1], 1e-15) > 6.5 or gaps[0] < 1e-11


def test_far_residual_grows_where_the_plain_one_forgets_an_axis_that_points_backwards():
    mechanism, q, _ = closed_pair("revolute")
    loops = constraints_of(mechanism)
    flip = np.zeros(mechanism.nv)
    (closure,) = mechanism.closures
    R, _ = frame_pose(closure.b, body_poses(mechanism, q))
    Rb = body_poses(mechanism, q)[1][0]
    axis = np.asarray(mechanism.description.loops[0].axis)
    across = np.cross(axis, [1, 0, 0])
    w = Rb.T @ R @ across / np.linalg.norm(across) * 3.1
    p = closure.b.position
    flip[6:9], flip[9:] = w, -np.cross(w, p)
    turned = integrate(mechanism, q, flip)
    plain, far = loops.residual(turned), loops.residual(turned, far=True)
    assert np.abs(plain[:2]).max() < 0.1 < 10 < np.abs(far[:2]).max()
    assert loops.mirrored(turned) == ["cut"]


def crank_model():
    build = pb.Builder("all", gravity=(0, -9.81, 0))
    for name in ("crank", "bar", "slide", "ball"):
        build.body(name, 1.0, (0.1, 0.05, 0), (0.01, 0.02, 0.03))
    build.joint("a", "revolute", "world", "crank")
    build.joint("b", "revolute", "crank", "bar", (1, 0, 0))
    build.joint("c", "prismatic", "world", "slide", axis=(1, 0, 0))
    build.joint("d", "spherical", "bar", "ball", (0.5, 0, 0))
    build.rod("rod", "bar", (0.2, 0.1, 0.3), "slide", (0, 0.2, 0), 1.4)
    build.point_on_line("line", "world", (0, 0, 0.2), (1, 2, 0), "ball", (0.1, 0.2, 0.3))
    build.point_in_plane("plane", "crank", (0, 0.1, 0.2), (0, 0, 2), "ball", (0.3, 0.2, 0.3))
    build.couple("b", "a", -2.0, 0.3)
    build.relation("cam", 'c - 0.2*sin(q["a"])**2 / (2 + cos(b)) + atan2(q["d"][1], 3)')
    return build


def test_rods_guides_and_relations_across_a_follower_have_exact_jacobians_and_biases():
    model = crank_model().model()
    mechanism, loops = model.mechanism, constraints_of(model.mechanism)
    assert [str(r) for r in loops.rows] == [
        "rod: length", "line: across 1", "line: across 2", "plane: off plane", "cam: value"]
    rng = np.random.default_rng(5)
    q, v = model.tree.random_configuration(rng), rng.normal(size=model.nv)
    J = loops.jacobian(q)
    np.testing.assert_allclose(loops.velocity(q, v), J @ v, atol=1e-13)
    for k in range(model.nv):
        d = np.eye(model.nv)[k] * 1e-6
        plus, minus = (loops.residual(integrate(mechanism, q, s * d)) for s in (1, -1))
        np.testing.assert_allclose((plus - minus) / 2e-6, J[:, k], atol=1e-8)
    plus, minus = (loops.velocity(integrate(mechanism, q, s * v * 1e-6), v) for s in (1, -1))
    np.testing.assert_allclose((plus - minus) / 2e-6, loops.bias(q, v), atol=1e-6)


def test_one_text_answers_in_the_casadi_and_mpmath_domains():
    import casadi

    mechanism, q, rng = closed_pair("universal", 2)
    loops = constraints_of(mechanism)
    v = rng.normal(size=mechanism.nv)
    graph = domain("casadi")
    (qs, qn), (vs, vn) = graph.variables("q", mechanism.nq), graph.variables("v", mechanism.nv)
    f = casadi.Function("f", [qs, vs], [graph.column(loops.jacobian(qn, domain=graph)),
                                        graph.column(loops.bias(qn, vn, domain=graph)),
                                        graph.column(loops.residual(qn, domain=graph, far=True))])
    J, bias, far = (np.array(x).ravel() for x in f(q, v))
    np.testing.assert_allclose(J.reshape(len(loops), -1), loops.jacobian(q), atol=1e-13)
    np.testing.assert_allclose(bias, loops.bias(q, v), atol=1e-12)
    np.testing.assert_allclose(far, loops.residual(q, far=True, domain=FLOAT), atol=1e-13)
    mp = domain("mpmath")
    exact = loops.jacobian(mp.array(q), domain=mp).astype(float)
    np.testing.assert_allclose(exact, loops.jacobian(q), atol=1e-13)


def test_constraints_survive_the_mechanism_file_bit_by_bit():
    description = crank_model().description()
    text = mechanism_text(description)
    assert same_description(read_mechanism(text, "all.yaml"), description)


@pytest.mark.parametrize("text", ["sin(", "import os", "a.b", "f(a)", "a**b", "__import__('os')", "2*pi",
                                  "a if b else c", "q[0]", "a < b", "[a]", "a**99", "True"])
def test_expressions_that_are_not_arithmetic_are_refused(text):
    with pytest.raises(pb.InputError):
        parse(text)


def test_bad_constraints_say_what_is_wrong():
    build = crank_model()
    with pytest.raises(pb.InputError, match="must be positive"):
        build.rod("r2", "bar", (0, 0, 0), "slide", (0, 0, 0), 0)
    with pytest.raises(pb.InputError, match="itself"):
        build.point_on_line("l2", "bar", (0, 0, 0), (1, 0, 0), "bar", (0, 0, 0))
    with pytest.raises(pb.InputError, match="spherical\\) does not have exactly one coordinate"):
        build.couple("a", "d")
    with pytest.raises(pb.InputError, match="the axis is zero"):
        build.point_in_plane("p2", "bar", (0, 0, 0), (0, 0, 0), "slide", (0, 0, 0))
    build.relation("bad", "crnk - 1")
    with pytest.raises(pb.InputError, match="'crnk', which is not a joint"):
        build.model()


@pytest.mark.parametrize("kind", ["revolute", "universal", "screw", "planar"])
def test_next_rate_is_the_derivative_of_constraint_accelerations_along_the_motion(kind):
    mechanism, q, rng = closed_pair(kind, 5)
    loops = constraints_of(mechanism)
    v, a = rng.normal(size=(2, mechanism.nv))

    def pushed(t):
        there = integrate(mechanism, q, v * t)  # to first order along q̇ = Γ v
        return loops.jacobian(there) @ a + loops.bias(there, v + a * t)

    h = 1e-3
    rate = (8 * (pushed(h) - pushed(-h)) - (pushed(2 * h) - pushed(-2 * h))) / (12 * h)
    np.testing.assert_allclose(loops.next_rate(q, v, a), rate, atol=1e-8 * (1 + np.abs(rate).max()))


def test_joints_below_both_bodies_of_a_loop_have_no_columns():
    build = pb.Builder("carried four-bar")
    for name in ("cart", "crank", "bar", "rocker"):
        build.body(name, 1.0, (0.1, 0, 0), (0.01, 0.01, 0.01))
    build.joint("move", "floating", "world", "cart")
    build.joint("a", "revolute", "cart", "crank")
    build.joint("b", "revolute", "crank", "bar", (1, 0, 0))
    build.joint("c", "revolute", "cart", "rocker", (1, 0, 0))
    build.loop("d", "revolute", "bar", "rocker", (1, 0, 0), (1, 0, 0))
    loops = constraints_of(build.model().mechanism)
    assert set(loops.filled[1].tolist()) == {6, 7, 8}
    q = np.random.default_rng(0).normal(size=10)
    q[3:7] /= np.linalg.norm(q[3:7])
    np.testing.assert_allclose(loops.jacobian(q), loops.spread(loops.entries(q)), atol=0)
