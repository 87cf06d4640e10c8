"""Bases of every kind, another body as base, momentum and base motion of free-floating systems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import polybody as pb
from mechanisms import random_tree
from polybody.description.reading import write_description
from polybody.mechanism import mechanism_from
from polybody.model import Model
from polybody.model.engine import Request
from polybody.quantities.table import QUANTITIES


def arm(**options) -> pb.Builder:
    build = pb.Builder("arm", **options)
    build.body("platform", 12.0, com=(0.1, 0, 0), inertia=(1.0, 1.2, 0.8))
    build.joint("stand", "fixed", "world", "platform", (0, 0, 0.5))
    parent = "platform"
    for k, axis in enumerate(((0, 0, 1), (0, 1, 0), (0, 1, 0))):
        build.body(f"link{k}", 2.0, com=(0, 0, 0.2), inertia=(0.05, 0.05, 0.01))
        build.joint(f"joint{k}", "revolute", parent, f"link{k}", (0, 0, 0.4), axis)
        parent = f"link{k}"
    build.frame("hand", parent, (0, 0, 0.4))
    return build


@pytest.mark.parametrize(("base", "columns"), [("fixed", 0), ("planar", 3), ("floating", 6), ("flying", 6)])
def test_base_is_chosen_when_building_and_its_columns_are_passive(base, columns):
    model = arm().model(base=base)
    assert model.nv == 3 + columns
    assert model.actuation.active.sum() == 3
    if columns:
        o = model.coefficients.operators(model.neutral(), np.zeros(model.nv), frames=["hand"])
        assert o.base == "platform"
        assert len(o.passive) == columns
    else:
        assert "root_joint" not in model.joint_names


URDF = """<robot name="cart">
<link name="cart"><inertial><origin xyz="0.1 0 0.2"/><mass value="9"/>
  <inertia ixx="0.4" iyy="0.5" izz="0.6" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="pole"><inertial><origin xyz="0 0 0.4"/><mass value="2"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="cart"/><child link="pole"/><axis xyz="0 1 0"/></joint>
</robot>"""


@pytest.mark.parametrize(("base", "plane"), [("planar", [2, 3, 4, 6]), ("floating", list(range(7)))])
def test_base_is_chosen_when_loading(base, plane, tmp_path):
    """A mobile base is a floating one that keeps to the plane: its mass matrix is that part of the other's."""
    write_description(arm().description(), tmp_path / "arm.yaml")
    (tmp_path / "cart.urdf").write_text(URDF, encoding="utf-8")
    free, model = (pb.load(tmp_path / "cart.urdf", base=x) for x in ("floating", base))
    assert model.joint_names == ["root_joint", "hinge"]
    np.testing.assert_array_equal(model.actuation.active, [False] * (model.nv - 1) + [True])
    q, q_free = model.neutral(), free.neutral()
    q[-1] = q_free[-1] = 0.7
    np.testing.assert_allclose(model.mass_matrix(q), free.mass_matrix(q_free)[np.ix_(plane, plane)], atol=1e-12)
    wanted = arm().model(base=base)
    q = wanted.random_configuration(0)
    np.testing.assert_allclose(pb.load(tmp_path / "arm.yaml", base=base).mass_matrix(q), wanted.mass_matrix(q))


def test_flexible_base_pushes_back_with_its_full_matrix():
    """(C5): f_b = −δ ẋ − s Δx near equilibrium, all 36 numbers."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=(6, 6))
    K, D = root @ root.T + 6 * np.eye(6), 0.1 * np.eye(6)
    model = arm(gravity=(0, 0, 0)).model(base=pb.Base("flexible", stiffness=K, damping=D))
    d, v = 1e-6 * rng.normal(size=6), rng.normal(size=model.nv)
    q = model.integrate(model.neutral(), np.concatenate([d, np.zeros(3)]))
    force = model.passive_forces(q, v)[:6]
    np.testing.assert_allclose(force, -K @ d - D @ v[:6], atol=1e-9)
    o = model.coefficients.operators(q, v)
    np.testing.assert_allclose(o.T_p, force, atol=1e-12)


def test_stiff_base_moves_the_arm_like_a_fixed_one():
    fixed, flexible = arm().model(), arm().model(base=pb.Base("flexible", stiffness=1e9, damping=1e6))
    q, tau = np.array([0.3, 0.7, -0.4]), np.array([1.0, -2.0, 0.5])
    wanted = fixed.forward_dynamics(q, np.zeros(3), tau)
    # with the base held in place its acceleration is zero: hybrid dynamics with the base's columns given
    whole = np.concatenate([flexible.neutral()[:7], q])
    given = [True] * 6 + [False] * 3
    a, _ = flexible.actuation.hybrid_dynamics(
        whole, np.zeros(9), np.zeros(9), np.concatenate([np.zeros(6), tau]), active=given
    )
    np.testing.assert_allclose(a[6:], wanted, atol=1e-9)


def test_an_arm_that_stands_on_the_ground_gets_a_base_of_its_own():
    model = pb.load("two-link", base=pb.Base("floating", mass=5.0, inertia=(0.2, 0.2, 0.2), name="hull"))
    assert model.body_names[0] == "hull"
    assert model.nv == 8


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("flexible", "positive definite 6×6"),
        ("floatin", r"did you mean 'floating'"),
        (pb.Base("planar", stiffness=3.0), "planar base has no stiffness"),
        (pb.Base("flexible", stiffness=-1.0), "positive definite"),
        (pb.Base("flexible", stiffness=0.0), "positive definite"),
    ],
)
def test_impossible_bases_are_refused(base, message):
    with pytest.raises(pb.InputError, match=message):
        arm().model(base=base)


def free_floating(seed: int = 0, n: int = 6) -> tuple[Model, np.random.Generator]:
    rng = np.random.default_rng(seed)
    tree = random_tree(
        rng, n, ("revolute", "universal", "prismatic", "spherical"), floating_base=True, gravity=(0, 0, 0), springs=0,
        stiffness=0, damping=0, armature=0,
    )  # fmt: skip
    return Model(mechanism_from(tree)), rng


def test_another_base_keeps_the_motion():
    model, rng = free_floating(0, 3)
    body = model.body_names[-1]
    rebased = model.base.rebase(body)
    other = rebased.model
    q, v, tau = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    tau[:6] = 0.0
    q2, v2 = rebased.forward(q, v)
    for name in model.body_names[1:2]:
        np.testing.assert_allclose(other.pose(q2, name), model.pose(q, name), atol=1e-12)
        np.testing.assert_allclose(other.jacobian(q2, name) @ v2, model.jacobian(q, name) @ v, atol=1e-11)
    np.testing.assert_allclose(other.energy(q2, v2)[0], model.energy(q, v)[0], rtol=1e-12)
    np.testing.assert_allclose(other.momentum(q2, v2), model.momentum(q, v), atol=1e-11)
    q1, v1 = rebased.backward(q2, v2)
    np.testing.assert_allclose(model.difference(q, q1), 0, atol=1e-12)
    np.testing.assert_allclose(v1, v, atol=1e-11)
    # The same joint forces give the same joint accelerations, whichever body is called the base.
    slices, ours = model.joint_slices(), other.joint_slices()
    tau2 = np.zeros(other.nv)
    for name in model.joint_names[1:]:
        tau2[ours[name][1]] = tau[slices[name][1]]
    a, a2 = model.forward_dynamics(q, v, tau), other.forward_dynamics(q2, v2, tau2)
    for name in model.joint_names[1:]:
        np.testing.assert_allclose(a2[ours[name][1]], a[slices[name][1]], atol=1e-9 * (1 + np.abs(a).max()))
    np.testing.assert_allclose(rebased.matrix(q).T @ tau2, tau, atol=1e-11)


def test_only_a_free_system_takes_another_base():
    with pytest.raises(pb.InputError, match="only a free"):
        arm().model(base="planar").base.rebase("link2")
    with pytest.raises(pb.InputError, match="flexible base cannot be exchanged"):
        arm().model(base=pb.Base("flexible", stiffness=1.0)).base.rebase("link2")
    with pytest.raises(pb.InputError, match=r"no body 'link9' \(did you mean"):
        arm().model(base="floating").base.rebase("link9")


def test_initial_velocities_have_the_momentum_asked_for():
    model, rng = free_floating(1, 5)
    q, v, wanted = model.random_configuration(rng, size=4), rng.normal(size=(4, model.nv)), rng.normal(size=(4, 6))
    still, moving = model.base.zero_momentum_velocity(q, v), model.base.zero_momentum_velocity(q, v, wanted)
    np.testing.assert_allclose(model.momentum(q, still), 0, atol=1e-11)
    np.testing.assert_allclose(model.momentum(q, moving), wanted, atol=1e-10)
    np.testing.assert_array_equal(still[:, 6:], v[:, 6:])


@pytest.mark.parametrize("momentum", [None, [0, 0, 0.7, 0.4, -0.3, 0]])
def test_planar_bases_move_with_the_momentum_asked_for_too(momentum):
    """Their three numbers of momentum are met: in the plane, and about its normal."""
    build = pb.Builder("puck", gravity=(0, 0, 0))
    build.body("base", 2.0, com=(0.1, -0.2, 0), inertia=(0.1, 0.2, 0.3))
    build.joint("root", "planar", "world", "base")
    build.body("arm", 1.0, com=(0.4, 0.1, 0), inertia=(0.01, 0.05, 0.05))
    build.joint("shoulder", "revolute", "base", "arm", (0.3, 0, 0))
    model, rng = build.model(), np.random.default_rng(3)
    q, v = rng.normal(size=(5, model.nq)), rng.normal(size=(5, model.nv))
    found = model.base.zero_momentum_velocity(q, v, momentum)
    wanted = np.zeros(6) if momentum is None else np.array(momentum)
    np.testing.assert_allclose(model.momentum(q, found), np.broadcast_to(wanted, (5, 6)), atol=1e-12)
    np.testing.assert_array_equal(found[:, 3:], v[:, 3:])


def test_momentum_is_kept_over_ten_seconds_of_free_floating_motion():
    model, rng = free_floating(2, 4)
    q, v, tau = model.neutral(), rng.normal(size=model.nv), np.zeros(model.nv)
    drive = 0.2 * rng.normal(size=model.nv - 6)

    def rate(t, x):
        q, v = x[: model.nq], x[model.nq :]
        tau[6:] = drive * np.cos(t)  # internal forces of the joints; none on the base
        moved = model.engine.answer(Request(QUANTITIES["rate"], (q, v)))
        return np.concatenate([moved, model.forward_dynamics(model.normalize(q), v, tau)])

    path = solve_ivp(rate, (0, 10), np.concatenate([q, v]), method="DOP853", rtol=1e-13, atol=1e-14, max_step=0.01)
    ends = path.y[:, [0, path.y.shape[1] // 2, -1]].T
    found = model.momentum(model.normalize(ends[:, : model.nq]), ends[:, model.nq :])
    np.testing.assert_allclose(found, np.broadcast_to(found[0], found.shape), rtol=0, atol=1e-10)


def test_base_follows_planned_joints_and_returns_with_them_only_in_position():
    """Momentum stays zero, the centre of mass stays put; the attitude does not return: the system is nonholonomic."""
    model = arm(gravity=(0, 0, 0)).model(base="floating")
    times = np.linspace(0, 2 * np.pi, 401)

    def plan(t):
        return np.array([0.6 * np.cos(t), 0.9 * np.sin(t), -0.5 * np.sin(t)])

    q0 = model.neutral()
    q, v = model.base.motion(q0, times, plan)
    np.testing.assert_allclose(model.momentum(q, v), 0, atol=1e-10)
    np.testing.assert_allclose(model.center_of_mass(q), np.broadcast_to(model.center_of_mass(q0), (401, 3)), atol=1e-8)
    np.testing.assert_allclose(q[-1, 7:], q0[7:], atol=1e-8)
    assert np.abs(model.difference(q0, q[-1])[:3]).max() > 1e-3


def test_base_reaction_is_what_a_held_base_must_bear():
    model, fixed = arm().model(base="floating"), arm().model()
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 3))
    whole = np.concatenate([model.neutral()[:7], q])
    padded = [np.concatenate([rng.normal(size=6), x]) for x in (v, a)]
    wrench = model.base.reaction(whole, *padded)
    # The rate of momentum of the arm about the base, less its weight, comes from the base.
    h = 1e-5

    def momentum(s):
        moved, speed = q + s * v + s * s / 2 * a, v + s * a
        about = fixed.momentum(moved, speed)
        arm_at = fixed.center_of_mass(moved) - (0, 0, 0.5)
        return np.concatenate([about[:3] + np.cross(arm_at, about[3:]), about[3:]])

    masses = 6.0
    rate = (momentum(h) - momentum(-h)) / (2 * h)
    weight = masses * np.array([0, 0, -9.81])
    lever = fixed.center_of_mass(q) - (0, 0, 0.5)
    platform = np.concatenate([np.cross((0.1, 0, 0), 12 * weight / masses), 12 * weight / masses])
    wanted = -(rate - np.concatenate([np.cross(lever, weight), weight])) + platform
    np.testing.assert_allclose(wrench, wanted, atol=1e-6)
    with pytest.raises(pb.InputError, match="free-floating"):
        fixed.base.reaction(q, v, a)
