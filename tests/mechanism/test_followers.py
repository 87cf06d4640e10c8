"""Linear couplings in the mechanism: who follows whom, slots, limits, springs, and what cannot be eliminated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mechanisms import random_body, random_pose, random_tree, with_followers
from polybody.constraints.assembly import bounded_problem, descend
from polybody.constraints.system import constraints_of
from polybody.description.records import (
    Coupling,
    Description,
    Guide,
    Joint,
    Limits,
    Loop,
    Motor,
    Relation,
    Rod,
    Transmission,
    frozen_array,
)
from polybody.errors import InputError
from polybody.mechanism import kinematics, mechanism_from
from polybody.mechanism.columns import actuated, velocity_names
from polybody.mechanism.couplings import joint_positions, joint_velocities, transmitted_efforts
from polybody.mechanism.energy import energy
from polybody.mechanism.forces import joint_passive_forces
from trees import coupled_state, expanded, scale


def arm(*couplings: tuple, kinds: tuple[str, ...] = ("revolute",) * 4, **joints: dict) -> Description:
    """A chain of joints a, b, c, … from the ground, with couplings (follower, leader, factor, offset)."""
    names, rng = "abcdefgh"[: len(kinds)], np.random.default_rng(3)
    records = []
    for k, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        parent = "world" if k == 0 else f"link {names[k - 1]}"
        place = frozen_array(random_pose(rng))
        records.append(Joint(name, kind, parent, f"link {name}", place, **joints.get(name, {})))
    bodies = tuple(random_body(rng, f"link {name}") for name in names)
    return Description("arm", bodies=bodies, joints=tuple(records), couplings=tuple(Coupling(*c) for c in couplings))


def limits(lower: float, upper: float, velocity: float = np.inf, effort: float = np.inf) -> Limits:
    return Limits(*(frozen_array([x]) for x in (lower, upper, velocity, effort)))


def test_chains_of_followers_resolve_to_their_leader_in_whatever_order_they_are_declared() -> None:
    chain = ("a", "b", 2.0, 1.0), ("b", "d", -3.0, 0.5)
    for couplings in (chain, chain[::-1]):
        m = mechanism_from(arm(*couplings))
        assert m.followers == {"a": ("d", -6.0, 2.0), "b": ("d", -3.0, 0.5)}
        assert (m.nq, m.nv) == (2, 2)
        assert [j.name for j in m.independent_joints] == ["c", "d"] == velocity_names(m)
        assert [(j.name, j.v.start, j.follows) for j in m.joints] == [
            ("a", 1, True), ("b", 1, True), ("c", 0, False), ("d", 1, False)
        ]
        assert not m.constrained
        q = np.array([[0.3, -0.2], [1.0, 2.0]])
        positions = joint_positions(m, q)
        np.testing.assert_array_equal(positions["b"], -3 * q[:, 1:] + 0.5)
        np.testing.assert_array_equal(positions["a"], 2 * positions["b"] + 1)
        np.testing.assert_array_equal(joint_velocities(m, q)["a"], -6 * q[:, 1:])


def test_without_couplings_followers_are_free_joints() -> None:
    d = arm(("a", "b", 2.0, 1.0))
    m = mechanism_from(d, couplings=False)
    assert (m.nv, m.followers, m.constrained) == (4, {}, False)
    assert m.digest != mechanism_from(d).digest


def test_poses_of_followers_are_those_of_the_free_tree() -> None:
    for seed in range(8):
        m, q, v, _, _ = coupled_state(seed)
        q_all, E, _v_all = expanded(m, q, v)
        poses, free = kinematics.body_poses(m, q), kinematics.body_poses(m.uncoupled, q_all)
        np.testing.assert_allclose([p for _, p in poses], [p for _, p in free], atol=1e-13 * scale(free[-1][1]))
        for frame in m.frames:
            J = kinematics.frame_jacobian(m.uncoupled, q_all, frame) @ E
            np.testing.assert_allclose(kinematics.frame_jacobian(m, q, frame), J, atol=1e-12 * scale(J))


def test_springs_dampers_and_energy_are_those_of_the_followers_own_coordinate() -> None:
    for seed in range(8):
        m, q, v, _, _ = coupled_state(seed, stiffness=1.0, damping=1.0, armature=1.0)
        q_all, E, v_all = expanded(m, q, v)
        forces = E.T @ joint_passive_forces(m.uncoupled, q_all, v_all)
        np.testing.assert_allclose(joint_passive_forces(m, q, v), forces, atol=1e-11 * scale(forces))
        np.testing.assert_allclose(energy(m, q, v), energy(m.uncoupled, q_all, v_all), rtol=1e-12)
        np.testing.assert_allclose(m.armature, E.T @ m.uncoupled.armature @ E, atol=1e-14)


def test_integrate_difference_and_rate_go_over_independent_joints() -> None:
    m, q, v, _, _rng = coupled_state(5)
    there = kinematics.integrate(m, q, v)
    assert len(there) == m.nq
    np.testing.assert_allclose(kinematics.difference(m, q, there), v, atol=1e-9)
    assert len(kinematics.rate(m, q, v)) == m.nq


def test_a_leaders_limits_are_intersected_with_its_followers() -> None:
    d = arm(
        ("b", "a", -2.0, 0.5),
        a={"limits": limits(-1, 1, 3, 10)},
        b={"limits": limits(-1.0, 1.5, 4, 8)},  # a in (−0.5, 0.75)
    )
    own = mechanism_from(d).joints[0].limits
    np.testing.assert_allclose([own.lower[0], own.upper[0], own.velocity[0], own.effort[0]], [-0.5, 0.75, 2, 10])
    weak = mechanism_from(arm(("b", "a", 0.5), b={"limits": limits(-1, 1, 4, 8)})).joints[0].limits
    np.testing.assert_allclose([weak.lower[0], weak.upper[0], weak.velocity[0], weak.effort[0]], [-2, 2, 8, 4])
    # no effort says that a follower has no motor of its own
    idle = mechanism_from(arm(("b", "a"), a={"limits": limits(-1, 1, 3, 10)}, b={"limits": limits(-1, 1, 3, 0)}))
    assert idle.joints[0].limits.effort[0] == 10


def test_limits_that_leave_no_position_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"'b' follows 'a' by 1 q \+ 5, .* leave no position within those of 'a'"):
        mechanism_from(arm(("b", "a", 1.0, 5.0), a={"limits": limits(-1, 1)}, b={"limits": limits(-1, 1)}))
    with pytest.raises(InputError, match=r"'b' follows 'a' by 0 q \+ 2, .* do not hold 2"):
        mechanism_from(arm(("b", "a", 0.0, 2.0), b={"limits": limits(-1, 1)}))
    assert mechanism_from(arm(("b", "a", 0.0, 0.5), b={"limits": limits(-1, 1)})).nv == 3


def test_joints_of_several_coordinates_neither_lead_nor_follow() -> None:
    for pair in (("a", "b"), ("b", "a")):
        with pytest.raises(InputError, match=r"\(cylindrical\) does not have exactly one coordinate; write a relation"):
            mechanism_from(arm(pair, kinds=("cylindrical", "revolute")))


def test_a_velocity_is_active_where_its_joint_or_a_follower_is() -> None:
    d = arm(("b", "a"), a={"active": (False,)}, b={"active": (True,)}, c={"active": (False,)})
    assert actuated(mechanism_from(d)).tolist() == [0, 2]


def test_what_acts_on_a_follower_acts_on_its_leader() -> None:
    m = mechanism_from(arm(("b", "a", -2.0, 0.5)))
    np.testing.assert_array_equal(transmitted_efforts(m, {"b": 3.0, "a": 1.0, "d": 5.0}), [-5, 0, 5])
    np.testing.assert_array_equal(transmitted_efforts(m, {"b": [[1.0], [2.0]]}), [[-2, 0, 0], [-4, 0, 0]])
    with pytest.raises(InputError, match="no joint 'x'"):
        transmitted_efforts(m, {"x": 1.0})


def test_motors_and_transmissions_of_followers_turn_with_their_leader() -> None:
    d = arm(("b", "a", -2.0, 0.5))
    motors = tuple(Motor(f"m{name}", name, 1.0, 0.1, 0.3, 0.2, 0.05, 0.01) for name in "abc")
    gears = Transmission("gears", ("b", "c"), frozen_array([[1.0, 0.5], [0.25, -1.0]]))
    m = mechanism_from(replace(d, motors=motors, transmissions=(gears,)))
    E = np.array([[1.0, 0, 0], [-2, 0, 0], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(m.motors.speeds, m.uncoupled.motors.speeds @ E)
    np.testing.assert_allclose(m.armature, E.T @ m.uncoupled.armature @ E)
    np.testing.assert_allclose(m.motor_damping, E.T @ m.uncoupled.motor_damping @ E)
    assert m.motors.driven.tolist() == [0, 0, 1]


@pytest.mark.parametrize(("couplings", "relation"), [
    ((("b", "a", 0.5, 0.0), ("a", "b", 0.5, 0.3)), "coupling of a"),  # a cycle: one configuration meets it
    ((("c", "a", 0.5, 0.1), ("c", "b", 2.0, 0.0)), "coupling of c"),  # two leaders
])
def test_cycles_and_second_leaders_stay_as_relations_and_are_met(couplings, relation) -> None:
    m = mechanism_from(arm(*couplings))
    assert [r.name for r in m.relations] == [relation]
    assert m.constrained
    assert m.nv == 3
    system = constraints_of(m)
    assert [str(row) for row in system.rows] == [f"{relation}: value"]

    def functions(q):
        return system.residual(q), system.jacobian(q)

    problem = bounded_problem(m, functions, lambda q, d: kinematics.integrate(m, q, d), [], False)
    q, gap = descend(problem, np.array([0.4, -0.3, 0.2]))
    assert gap < 1e-12
    positions = {name: float(x[0]) for name, x in joint_positions(m, q).items()}
    for follower, leader, factor, offset in couplings:
        assert positions[follower] == pytest.approx(factor * positions[leader] + offset)


def test_a_coupling_said_twice_around_a_cycle_is_a_redundant_row() -> None:
    m = mechanism_from(arm(("b", "a", 2.0, 1.0), ("a", "b", 0.5, -0.5)))
    system, q = constraints_of(m), np.array([0.3, 0.1, 0.2])
    np.testing.assert_allclose(system.residual(q), 0, atol=1e-15)
    np.testing.assert_allclose(system.jacobian(q), 0, atol=1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_constraints_across_followers_are_those_of_the_free_tree(seed: int) -> None:
    """φ, J, J v and γ of loops, rods, guides and relations, by projection."""
    rng = np.random.default_rng(seed)
    d = with_followers(rng, random_tree(rng, 7, ("revolute", "prismatic", "spherical", "screw"), loops=2))
    named = [j.name for j in d.joints if j.kind == "revolute"]
    ends = d.bodies[0].name, d.bodies[-1].name
    point = frozen_array([0.1, 0.2, -0.1])
    d = replace(
        d,
        rods=(Rod("rod", ends[0], point, ends[1], point, 0.7),),
        guides=(Guide("guide", "plane", ends[0], point, frozen_array([0.0, 0.0, 1.0]), ends[1], point),),
        relations=(Relation("relation", f'q["{named[0]}"] - 2*sin(q["{named[-1]}"])'),),
    )
    m = mechanism_from(d)
    q = np.concatenate([joint.model.random(rng) for joint in m.independent_joints])
    v = rng.normal(size=m.nv)
    q_all, E, v_all = expanded(m, q, v)
    own, free = constraints_of(m), constraints_of(m.uncoupled)
    np.testing.assert_allclose(own.residual(q), free.residual(q_all), atol=1e-12)
    J = free.jacobian(q_all) @ E
    np.testing.assert_allclose(own.jacobian(q), J, atol=1e-11 * scale(J))
    np.testing.assert_allclose(own.spread(own.entries(q)), J, atol=1e-11 * scale(J))
    np.testing.assert_allclose(own.velocity(q, v), J @ v, atol=1e-11 * scale(J))
    gamma = free.bias(q_all, v_all)
    np.testing.assert_allclose(own.bias(q, v), gamma, atol=1e-9 * scale(gamma))


def test_loops_may_join_leader_and_follower() -> None:
    """A loop between two fingers that close on each other: the joint on either side is the same coordinate."""
    d = arm(("c", "b", -1.0))
    d = replace(d, loops=(Loop("pin", "spherical", "link c", "world"),))
    m = mechanism_from(d)
    q, v = np.random.default_rng(0).normal(size=(2, m.nv))
    q_all, E, _ = expanded(m, q, v)
    J = constraints_of(m.uncoupled).jacobian(q_all) @ E
    np.testing.assert_allclose(constraints_of(m).jacobian(q), J, atol=1e-12)
