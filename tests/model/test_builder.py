"""`Builder`, and everything that can be wrong with a mechanism: each message is read."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from mechanisms import random_pose, random_tree
from polybody.description.checks import check_description
from polybody.description.records import Body, Description, Frame, Joint, Limits, Loop, frozen_array, same_description
from polybody.mechanism import mechanism_from
from polybody.model.validation import description_problems


def pendulum() -> pb.Builder:
    build = pb.Builder("pendulum")
    build.body("bob", mass=1.0, com=(0, 0, -0.5), inertia=(0.02, 0.02, 0.001))
    build.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))
    return build


def test_short_forms_become_records() -> None:
    build = pendulum()
    build.body("ball", 2, inertia=(1, 2, 3, 0.1, 0.2, 0.3))
    build.joint("socket", "spherical", "bob", "ball", (0, 0, -1), stiffness=3, damping=(1, 2, 3), rest=(0, 0, 0, 1),
                armature=0.5, limits={"effort": 4}, active=(True, False, True))  # fmt: skip
    description = build.description()
    ball, socket = description.bodies[1], description.joints[1]
    np.testing.assert_array_equal(ball.inertia, [[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 3]])
    np.testing.assert_array_equal(socket.origin[:3, 3], (0, 0, -1))
    np.testing.assert_array_equal(socket.stiffness, 3 * np.eye(3))
    np.testing.assert_array_equal(socket.damping, np.diag([1, 2, 3]))
    np.testing.assert_array_equal(socket.armature, [0.5] * 3)
    np.testing.assert_array_equal(socket.limits.effort, [4] * 3)
    assert socket.active == (True, False, True)
    hinge = description.joints[0]
    assert hinge.stiffness is hinge.damping is hinge.rest is hinge.armature is hinge.limits is hinge.active is None


def test_builder_says_whatever_a_random_description_says() -> None:
    for seed in range(10):
        wanted = random_tree(seed, 6, loops=2, limits=0.5)
        build = pb.Builder(wanted.name, wanted.gravity)
        for b in wanted.bodies:
            build.body(b.name, b.mass, b.com, b.inertia)
        for j in wanted.joints:
            build.joint(j.name, j.kind, j.parent, j.child, j.origin, j.axis, pitch=j.pitch, map=j.map, stages=j.stages,
                        stiffness=0 if j.stiffness is None else j.stiffness, rest=0 if j.rest is None else j.rest,
                        damping=0 if j.damping is None else j.damping, limits=j.limits,
                        armature=0 if j.armature is None else j.armature,
                        friction=0 if j.friction is None else j.friction,
                        active=True if j.active is None else j.active)  # fmt: skip
        for f in wanted.frames:
            build.frame(f.name, f.body, f.origin)
        for k in wanted.loops:
            build.loop(k.name, k.kind, k.body_a, k.body_b, k.origin_a, k.origin_b, k.axis, pitch=k.pitch, map=k.map,
                       stages=k.stages)  # fmt: skip
        for s in wanted.springs:
            build.spring(s.name, s.body_a, s.point_a, s.body_b, s.point_b, s.stiffness, s.length, s.damping)
        assert same_description(build.description(), wanted)
        assert len(build.model().mechanism.closures) == 2


def test_axis_within_a_thousandth_of_unit_length_is_normalised() -> None:
    build = pb.Builder("p")
    build.body("b", 1, inertia=(1, 1, 1))
    build.joint("j", "revolute", "world", "b", axis=(0, 0.6004, 0.8))
    assert abs(np.linalg.norm(build.description().joints[0].axis) - 1) < 1e-15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mass": -1}, "body 'x': mass is -1 kg; it must not be negative"),
        ({"mass": np.nan}, "body 'x': mass is nan, expected a finite number"),
        ({"mass": np.inf}, "body 'x': mass is inf, expected a finite number"),
        ({"mass": "heavy"}, "body 'x': mass must be numbers"),
        ({"mass": 1, "com": (0, 0)}, r"body 'x': com has shape \(2,\), expected \(3,\)"),
        ({"mass": 1, "com": (0, np.nan, 0)}, r"body 'x': com\[1\] is nan, expected a finite number"),
        ({"mass": 1, "inertia": (1, 2)}, r"inertia has shape \(2,\), expected \(3,\): xx, yy, zz; \(6,\)"),
        ({"mass": 1, "inertia": [[1, 2, 0], [0, 1, 0], [0, 0, 1]]}, "inertia is not symmetric"),
    ],
)
def test_wrong_body_is_refused_at_its_call(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(pb.InputError, match=message):
        pendulum().body("x", **arguments)  # type: ignore[arg-type]


TWO_TURNS = np.zeros((6, 2))
TWO_TURNS[1, 0] = TWO_TURNS[2, 1] = 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "revolut"}, r"joint 'x': no kind 'revolut' \(did you mean 'revolute'\?\)"),
        ({"axis": (0, 0, 0)}, "joint 'x': the axis is zero"),
        ({"axis": (0, 0, 2)}, r"joint 'x': the axis has length 2, expected 1: write \(0, 0, 1\)"),
        ({"axis": (0, np.nan, 0)}, r"joint 'x': axis\[1\] is nan"),
        ({"axis": (0, 1)}, r"axis has shape \(2,\), expected \(3,\)"),
        ({"origin": np.eye(3)}, r"origin has shape \(3, 3\), expected a \(4, 4\) pose or \(3,\), a shift"),
        ({"origin": np.diag([1, 1, -1, 1])}, "origin is not a rotation"),
        ({"kind": "screw"}, "a screw needs its pitch, in metres per radian"),
        ({"pitch": 0.1}, "only a screw has a pitch"),
        ({"kind": "custom"}, "a custom joint needs its map"),
        ({"kind": "custom", "map": np.eye(3)}, r"map has shape \(3, 3\), expected \(6, r\)"),
        ({"kind": "custom", "map": np.ones((6, 2))}, "depend on each other"),
        ({"kind": "custom", "map": TWO_TURNS}, r"not holonomic; make it a compound joint, stages=\(1, 1\)"),
        ({"kind": "custom", "map": TWO_TURNS, "stages": (1, 2)}, "sum to the map's 2 columns"),
        (
            {"kind": "spherical", "stiffness": (1, 2)},
            r"stiffness has shape \(2,\), expected one number, \(3,\) or \(3, 3\)",
        ),
        ({"stiffness": [[np.nan]]}, r"stiffness\[0, 0\] is nan"),
        ({"kind": "spherical", "rest": 1}, r"rest has shape \(\), expected the joint's configuration, \(4,\)"),
        ({"kind": "spherical", "rest": (0, 0, 0, 2)}, "quaternion of rest has length 2"),
        ({"limits": 3}, r"limits must be \(lower, upper\) or a mapping"),
        ({"limits": {"low": 3}}, r"limits has no 'low' \(did you mean 'lower'\?\)"),
        ({"limits": (0, (1, 2))}, r"limits.upper has shape \(2,\), expected one number or \(1,\)"),
        ({"armature": -1}, "armature is -1; it must not be negative"),
        ({"active": "yes"}, "active must be true or false"),
        ({"kind": "spherical", "active": (True,)}, r"active has shape \(1,\), expected true, false or \(3,\)"),
        ({"child": "bob", "parent": "bob"}, "its parent and its child are both 'bob'"),
    ],
)
def test_wrong_joint_is_refused_at_its_call(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(pb.InputError, match=message):
        pendulum().joint("x", **{"kind": "revolute", "parent": "bob", "child": "tip", **arguments})  # type: ignore[arg-type]


def test_compound_alternative_of_a_joint_that_is_not_holonomic_is_accepted() -> None:
    build = pendulum()
    build.body("tip", 1, inertia=(1, 1, 1))
    build.joint("x", "custom", "bob", "tip", map=TWO_TURNS, stages=(1, 1))
    assert build.model().nv == 3


def test_names_may_be_used_once_and_world_is_taken() -> None:
    build = pendulum()
    with pytest.raises(pb.InputError, match="body 'bob': a body of that name exists already"):
        build.body("bob", 1)
    with pytest.raises(pb.InputError, match="frame 'bob': a body of that name exists already"):
        build.frame("bob", "bob")
    with pytest.raises(pb.InputError, match="spring 'hinge': a joint of that name exists already"):
        build.spring("hinge", "bob", (0, 0, 0), "world", (0, 0, 0), 1)
    with pytest.raises(pb.InputError, match="named 'world', which is the name of the ground"):
        build.body("world", 1)
    with pytest.raises(pb.InputError, match=r"spring 's': stiffness is -1; it must not be negative"):
        build.spring("s", "bob", (0, 0, 0), "world", (0, 0, 0), -1)
    with pytest.raises(pb.InputError, match=r"frame 'f': origin has shape"):
        build.frame("f", "bob", np.eye(2))
    with pytest.raises(pb.InputError, match="it joins 'bob' to itself"):
        build.loop("l", "revolute", "bob", "bob")
    with pytest.raises(pb.InputError, match=r"gravity has shape \(2,\), expected \(3,\)"):
        pb.Builder("x", gravity=(0, 1))


def test_unknown_names_are_reported_together_with_the_nearest() -> None:
    build = pendulum()
    build.joint("elbow", "revolute", "bobb", "bob2")
    build.frame("tool", "bop")
    with pytest.raises(pb.InputError) as caught:
        build.model()
    message = str(caught.value)
    assert "'pendulum' has 3 problems" in message
    assert "joint 'elbow': its parent 'bobb' is not a body (did you mean 'bob'?)" in message
    assert "joint 'elbow': its child 'bob2' is not a body (did you mean 'bob'?)" in message
    assert "frame 'tool': its body 'bop' is not a body (did you mean 'bob'?)" in message


def test_cycle_names_its_path_and_the_way_out() -> None:
    build = pendulum()
    for name, parent in (("b", "bob"), ("c", "b")):
        build.body(name, 1, inertia=(1, 1, 1))
        build.joint(f"to_{name}", "revolute", parent, name)
    build.joint("closing", "revolute", "c", "bob")
    with pytest.raises(pb.InputError) as caught:
        build.model()
    assert str(caught.value) == (
        "joints form a cycle: bob - b - c - bob, closed by joint 'closing'; make one of them a loop"
    )


def test_second_root_and_unreached_body_are_named() -> None:
    build = pendulum()
    build.body("alone", 1, inertia=(1, 1, 1))
    build.body("base2", 1, inertia=(1, 1, 1))
    build.body("arm2", 1, inertia=(1, 1, 1))
    build.joint("j2", "revolute", "base2", "arm2")
    with pytest.raises(pb.InputError) as caught:
        build.model()
    message = str(caught.value)
    assert "body 'alone': no joint reaches it; join it to 'world' or to another body" in message
    assert "2 bodies (base2, arm2) are attached to a second root, 'base2', beside 'world'" in message


def test_unphysical_inertia_is_a_warning_that_names_the_body() -> None:
    build = pb.Builder("p")
    build.body("brick", 1, inertia=(1, 1, 3))
    build.joint("j", "revolute", "world", "brick")
    with pytest.warns(pb.PolybodyWarning, match="body 'brick': its inertia breaks the triangle inequality"):
        build.model()


def test_massless_moving_leaf_is_a_warning_that_names_it() -> None:
    build = pendulum()
    build.body("ghost", 0)
    build.joint("ghost_joint", "revolute", "bob", "ghost")
    with pytest.warns(pb.PolybodyWarning, match="body 'ghost': it moves and has no mass, and nothing is attached"):
        build.model()


def test_massless_link_that_is_welded_to_mass_is_no_concern() -> None:
    build = pendulum()
    build.body("flange", 0)
    build.joint("weld", "fixed", "bob", "flange")
    assert description_problems(build.description()) == []


def test_slender_bar_is_a_warning_not_an_error() -> None:
    build = pb.Builder("p")
    build.body("bar", 1, inertia=(1, 1, 0))
    build.joint("j", "revolute", "world", "bar")
    with pytest.warns(pb.PolybodyWarning, match="body 'bar': its inertia is only semidefinite"):
        build.model()


def test_every_problem_of_hand_made_records_is_found_at_once() -> None:
    description = Description(
        "bad",
        bodies=(
            Body("a", -1.0, source="f:1"),
            Body("a", 1.0, source="f:2"),
            Body("world", 1.0),
            Body("b", float("nan")),
        ),
        joints=(
            Joint("j", "revolute", "world", "a", axis=frozen_array((0, 0, 0)), source="f:5"),
            Joint(
                "k", "revolute", "a", "b", damping=frozen_array(np.eye(2)), limits=Limits(*[frozen_array([1, 2])] * 4)
            ),
        ),
        frames=(Frame("", "a"),),
        loops=(Loop("l", "floating", "a", "c"),),
    )
    messages = [str(problem) for problem in check_description(description)]
    for wanted in (
        "f:1: body 'a': mass is -1 kg; it must not be negative",
        "f:2: body 'a': a body of that name exists already at f:1",
        "a body is named 'world', which is the name of the ground",
        "body 'b': mass is nan, expected a finite number",
        "f:5: joint 'j': the axis is zero; expected a unit vector",
        "joint 'k': damping has shape (2, 2), expected (1, 1)",
        "joint 'k': limits.lower has shape (2,), expected (1,)",
        "a frame has an empty name",
        "loop 'l': its body_b 'c' is not a body",
        "loop 'l': a floating joint constrains nothing, so the loop is not closed",
    ):
        assert wanted in messages, wanted


def test_loop_inside_one_rigid_body_is_refused() -> None:
    build = pendulum()
    build.body("flange", 0)
    build.joint("weld", "fixed", "bob", "flange")
    build.loop("l", "revolute", "bob", "flange")
    with pytest.raises(pb.InputError, match="which are one rigid body"):
        build.model()


def test_a_model_added_as_a_part_moves_as_it_did_alone_under_the_gravity_it_feels() -> None:
    rng = np.random.default_rng(8)
    alone = pb.Model(mechanism_from(random_tree(rng, 5, ("revolute", "prismatic", "spherical"), springs=2, motors=0.5)))
    T = random_pose(rng, 1.0)
    build = pb.Builder("pair", gravity=T[:3, :3] @ alone.gravity)
    build.add(alone, "a_", origin=T)
    build.body("cart", 4.0, inertia=(1, 1, 1))
    build.joint("rail", "prismatic", "world", "cart")
    build.add(alone, "b_", "cart", (0.3, 0, 0))
    both = build.model()
    n, (q, v, a) = alone.nv, (alone.random_configuration(rng), *rng.normal(size=(2, alone.nv)))
    slices = both.joint_slices()
    Q, V, A = both.neutral(), np.zeros(both.nv), np.zeros(both.nv)
    for name, (at_q, at_v) in alone.joint_slices().items():
        Q[slices[f"a_{name}"][0]], V[slices[f"a_{name}"][1]], A[slices[f"a_{name}"][1]] = q[at_q], v[at_v], a[at_v]
    tau = both.inverse_dynamics(Q, V, A)
    found = np.concatenate([tau[slices[f"a_{name}"][1]] for name in alone.joint_names])
    wanted = alone.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(found, wanted, atol=1e-9 * (1 + np.abs(wanted).max()))
    assert both.nv == 2 * n + 1
    np.testing.assert_allclose(both.pose(Q, "a_" + alone.body_names[-1]), T @ alone.pose(q, alone.body_names[-1]))


def test_parts_under_taken_names_and_without_prefix_are_refused() -> None:
    build, part = pendulum(), pendulum().model()
    build.add(part, "other_")
    with pytest.raises(pb.InputError, match="'other_origin': a body of that name exists already"):
        build.add(part, "other_")
    with pytest.raises(pb.InputError, match="needs a prefix"):
        build.add(part, "")
    bound = pendulum()
    bound.relation("stop", "hinge - 1")
    with pytest.raises(pb.InputError, match=r"has relations \(stop\)"):
        build.add(bound.model(), "bound_")
