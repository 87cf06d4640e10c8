"""Identities that every kind of joint must satisfy, forwards and walked from child to parent."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms import ALL_KINDS, random_joint
from polybody.algebra import COMPLEX, FLOAT, JetDomain, domain
from polybody.algebra.rotations import skew
from polybody.algebra.spatial import adjoint, pose, twist_exp
from polybody.mechanism.joints import JointModel, ReversedJoint
from polybody.mechanism.kinds import joint_model

Array = np.ndarray
JETS = JetDomain(FLOAT)
SEEDS = range(3)


def joint_of(kind: str, seed: int) -> JointModel:
    return joint_model(random_joint(np.random.default_rng(seed), "j", kind, "a", "b"))


def draw(model: JointModel, seed: int, reach: float = 1.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(100 + seed)
    return model.random(rng), rng.uniform(-reach, reach, size=model.nv)


def moved(model: JointModel, q: Array, v: Array) -> Array:
    """q as jets whose rates are q̇ = Γ v."""
    return JETS.lift(q, model.rate(q, v))


def twist_of(R: Array, p: Array, R_rate: Array, p_rate: Array) -> Array:
    """[ω; v] in the moved frame from a pose and its rate."""
    W = R.T @ R_rate
    np.testing.assert_allclose(W, -W.T, atol=1e-12)  # the rotation stays a rotation
    return np.concatenate([[W[2, 1], W[0, 2], W[1, 0]], R.T @ p_rate])


every_joint = pytest.mark.parametrize(
    ("kind", "reverse"), [(kind, reverse) for kind in ALL_KINDS for reverse in (False, True)]
)
every_kind = pytest.mark.parametrize("kind", ALL_KINDS)
every_seed = pytest.mark.parametrize("seed", SEEDS)


def model_of(kind: str, seed: int, reverse: bool) -> JointModel:
    model = joint_of(kind, seed)
    return ReversedJoint(model) if reverse else model


@every_joint
@every_seed
def test_pose_derivative_is_the_map_times_velocity(kind: str, reverse: bool, seed: int) -> None:
    model = model_of(kind, seed, reverse)
    q, v = draw(model, seed)
    R, p = model.configuration(q)
    Rj, pj = model.configuration(moved(model, q, v), domain=JETS)
    V = twist_of(R, p, JETS.rates(Rj), JETS.rates(pj))
    np.testing.assert_allclose(V, model.velocity_map(q) @ v, atol=1e-12)


@every_joint
@every_seed
def test_velocity_map_rate_is_the_derivative_of_the_map(kind: str, reverse: bool, seed: int) -> None:
    model = model_of(kind, seed, reverse)
    q, v = draw(model, seed)
    rate = JETS.rates(model.velocity_map(moved(model, q, v), domain=JETS))
    np.testing.assert_allclose(model.velocity_map_rate(q, v), rate, atol=1e-12)


@every_kind
@every_seed
def test_pose_derivative_by_complex_step(kind: str, seed: int) -> None:
    """The same identity by another route: the complex domain."""
    model, h = joint_of(kind, seed), 1e-30
    q, v = draw(model, seed)
    R, p = model.configuration(q)
    Rc, pc = model.configuration(q + 1j * h * model.rate(q, v), domain=COMPLEX)
    V = twist_of(R, p, Rc.imag / h, pc.imag / h)
    np.testing.assert_allclose(V, model.velocity_map(q) @ v, atol=1e-12)


@every_joint
def test_neutral_is_the_identity_and_a_constant_map_is_the_map(kind: str, reverse: bool) -> None:
    model = model_of(kind, 0, reverse)
    R, p = model.configuration(model.neutral())
    np.testing.assert_allclose(pose(R, p), np.eye(4), atol=1e-15)
    if model.constant_map is not None:
        q, v = draw(model, 1)
        np.testing.assert_allclose(model.velocity_map(q), model.constant_map, atol=1e-15)
        assert not model.velocity_map_rate(q, v).any()


@every_kind
@every_seed
def test_difference_inverts_integrate(kind: str, seed: int) -> None:
    model = joint_of(kind, seed)
    q, d = draw(model, seed, 0.3)
    there = model.integrate(q, d)
    np.testing.assert_allclose(model.difference(q, there), d, atol=1e-12)
    np.testing.assert_allclose(model.difference(there, q), -d, atol=1e-12)
    np.testing.assert_allclose(model.integrate(q, np.zeros(model.nv)), q, atol=1e-15)


@every_kind
@every_seed
def test_integrate_inverts_difference(kind: str, seed: int) -> None:
    """To the same pose: a quaternion may come back with the other sign."""
    model, rng = joint_of(kind, seed), np.random.default_rng(seed)
    a, b = model.random(rng), model.random(rng)
    if kind in ("custom", "compound"):  # charts: stay well inside them
        a, b = a / 3, b / 3
    back = model.integrate(a, model.difference(a, b))
    for found, wanted in zip(model.configuration(back), model.configuration(b), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-11)


@every_kind
@every_seed
def test_integrate_starts_along_the_velocity(kind: str, seed: int) -> None:
    """d/dt integrate(q, v t) at t = 0 is q̇ = Γ v."""
    model = joint_of(kind, seed)
    q, v = draw(model, seed)
    step = JETS.lift(np.zeros(model.nv), v)
    reached = model.integrate(JETS.lift(q), step, domain=JETS)
    np.testing.assert_allclose(JETS.values(reached), q, atol=1e-14)
    np.testing.assert_allclose(JETS.rates(reached), model.rate(q, v), atol=1e-13)


@pytest.mark.parametrize(
    "kind", ["revolute", "prismatic", "screw", "cylindrical", "spherical", "planar", "floating", "custom"]
)
@every_seed
def test_a_simple_joint_moves_along_a_one_parameter_group(kind: str, seed: int) -> None:
    """X(integrate(q, d)) = X(q) exp(H d)."""
    model = joint_of(kind, seed)
    q, d = draw(model, seed, 0.4)
    if kind == "custom":
        q = q / 3
    (R, p), (Rd, pd) = model.configuration(q), twist_exp(model.velocity_map(q) @ d)
    wanted = pose(R, p) @ pose(Rd, pd)
    np.testing.assert_allclose(pose(*model.configuration(model.integrate(q, d))), wanted, atol=1e-12)


@pytest.mark.parametrize("kind", ["spherical", "floating"])
def test_quaternions_stay_unit_over_many_steps(kind: str) -> None:
    model, rng = joint_of(kind, 0), np.random.default_rng(7)
    q = model.random(rng)
    worst = 0.0
    for _ in range(5_000):
        q = model.integrate(q, rng.uniform(-0.3, 0.3, size=model.nv))
        worst = max(worst, abs(np.linalg.norm(q[-4:]) - 1))
    assert worst < 1e-15


@pytest.mark.parametrize("kind", ["spherical", "floating"])
def test_random_rotations_are_uniform(kind: str) -> None:
    """Each quaternion component has zero mean and variance 1/4 on the sphere."""
    model, rng = joint_of(kind, 0), np.random.default_rng(8)
    quaternions = np.array([model.random(rng)[-4:] for _ in range(4000)])
    np.testing.assert_allclose(np.linalg.norm(quaternions, axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(quaternions.mean(axis=0), 0, atol=0.04)
    np.testing.assert_allclose(quaternions.T @ quaternions / 4000, np.eye(4) / 4, atol=0.02)


@every_kind
@every_seed
def test_a_reversed_joint_keeps_the_meaning_of_q_and_v(kind: str, seed: int) -> None:
    """Its pose is the inverse; its twist is that of the parent seen from the child: −Ad(X) H v."""
    forward = joint_of(kind, seed)
    backward = ReversedJoint(forward)
    q, v = draw(forward, seed)
    X, Y = pose(*forward.configuration(q)), pose(*backward.configuration(q))
    np.testing.assert_allclose(X @ Y, np.eye(4), atol=1e-13)
    wanted = -(adjoint(X[:3, :3], X[:3, 3]) @ forward.velocity_map(q) @ v)
    np.testing.assert_allclose(backward.velocity_map(q) @ v, wanted, atol=1e-12)
    np.testing.assert_array_equal(backward.rate(q, v), forward.rate(q, v))
    np.testing.assert_array_equal(backward.integrate(q, v), forward.integrate(q, v))


@every_kind
def test_every_joint_is_the_same_in_the_expression_graph(kind: str) -> None:
    casadi = pytest.importorskip("casadi")
    graph = domain("casadi")
    model = joint_of(kind, 1)
    q, v = draw(model, 1)
    (q_column, qs), (v_column, vs) = graph.variables("q", model.nq), graph.variables("v", model.nv)  # type: ignore[attr-defined]
    R, p = model.configuration(qs, domain=graph)
    outputs = [R, p, model.velocity_map(qs, domain=graph), model.velocity_map_rate(qs, vs, domain=graph),
               model.rate(qs, vs, domain=graph)]
    function = casadi.Function("f", [q_column, v_column], [graph.column(x) for x in outputs])  # type: ignore[attr-defined]
    R, p = model.configuration(q)
    wanted = [R, p, model.velocity_map(q), model.velocity_map_rate(q, v), model.rate(q, v)]
    for found, want in zip(function(q, v), wanted, strict=True):
        np.testing.assert_allclose(np.array(found).ravel(), np.ravel(want), atol=1e-13)


def test_the_kinds_move_as_they_are_named() -> None:
    """One look at each named kind, against numbers worked out by hand."""
    def at(kind: str, q: list[float], **more: object) -> Array:
        from polybody.description.records import Joint, frozen_array

        axis = frozen_array(more.pop("axis", (0, 0, 1)))
        return pose(*joint_model(Joint("j", kind, "a", "b", axis=axis, **more)).configuration(np.array(q)))  # type: ignore[arg-type]

    c, s = np.cos(0.3), np.sin(0.3)
    Rz = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    Ry = np.array([[np.cos(0.5), 0, np.sin(0.5)], [0, 1, 0], [-np.sin(0.5), 0, np.cos(0.5)]])
    np.testing.assert_allclose(at("revolute", [0.3])[:3, :3], Rz, atol=1e-15)
    np.testing.assert_allclose(at("prismatic", [0.3], axis=(0, 1, 0))[:3, 3], [0, 0.3, 0], atol=1e-15)
    np.testing.assert_allclose(at("screw", [0.3], pitch=2.0)[:3, 3], [0, 0, 0.6], atol=1e-15)
    np.testing.assert_allclose(at("cylindrical", [0.3, 0.7]), pose(Rz, np.array([0, 0, 0.7])), atol=1e-15)
    np.testing.assert_allclose(at("universal", [0.5, 0.3])[:3, :3], Rz @ Ry, atol=1e-15)
    np.testing.assert_allclose(at("planar", [0.3, 1.0, 2.0]), pose(Rz, np.array([1, 2, 0])), atol=1e-15)
    turned = at("spherical", [0, 0, np.sin(0.15), np.cos(0.15)])
    np.testing.assert_allclose(turned[:3, :3], Rz, atol=1e-15)
    floating = at("floating", [1, 2, 3, 0, 0, np.sin(0.15), np.cos(0.15)])
    np.testing.assert_allclose(floating, pose(Rz, np.array([1, 2, 3])), atol=1e-15)


def test_skew_of_the_floating_rate_is_consistent_with_its_quaternion() -> None:
    model = joint_of("floating", 0)
    q, v = draw(model, 0)
    R, _ = model.configuration(q)
    Rj, _ = model.configuration(moved(model, q, v), domain=JETS)
    np.testing.assert_allclose(JETS.rates(Rj), R @ skew(v[:3]), atol=1e-14)
