"""MJCF written from descriptions: MuJoCo reads it and has our mass matrix and bias."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polybody as pb
from mechanisms import random_tree
from mujoco_bridge import MujocoModel, mujoco
from polybody.algebra.rotations import matrix_quaternion, quaternion_matrix
from polybody.description.mjcf.sayable import without_losses
from polybody.description.mjcf.writer import mjcf_text, write_mjcf
from polybody.description.records import (
    Body,
    Configuration,
    Description,
    Frame,
    Friction,
    Joint,
    Limits,
    Loop,
    Visual,
)
from polybody.mechanism import mechanism_from
from polybody.model import Model

KINDS = ("revolute", "continuous", "prismatic", "spherical", "cylindrical", "universal")
pytestmark = pytest.mark.filterwarnings("ignore::polybody.PolybodyWarning")


def tree(seed: int, **options: object) -> Description:
    plain = {"reversed_joints": 0.0, "springs": 0, "stiffness": 0.0, "damping": 0.0, "armature": 0.6}
    return random_tree(seed, 7, KINDS, **{**plain, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("floating", [False, True])
def test_mujoco_has_the_mass_matrix_and_bias_of_random_trees(seed: int, floating: bool, tmp_path: Path) -> None:
    description = tree(seed, floating_base=floating, armature=0.0)
    path = tmp_path / "tree.xml"
    assert write_mjcf(description, path, lossy=True) == []
    both, ours = MujocoModel(path), Model(mechanism_from(description))
    # the file's joints of several numbers come back as compound ones, whose coordinates are the same numbers
    assert both.ours.nv == ours.nv
    for k in range(3):
        rng = np.random.default_rng(k)
        q, v = ours.random_configuration(rng), rng.normal(size=ours.nv)
        there = q.copy()
        if floating:  # MuJoCo's free joint is placed in the world, ours in the joint's origin
            there[:7] = placed(description.joints[0].origin, q)
        both.move(there, v)
        M = ours.mass_matrix(q)
        assert_allclose(both.mass_matrix(there), M, rtol=0, atol=1e-10 * np.abs(M).max())
        bias = ours.inverse_dynamics(q, v, np.zeros(ours.nv))
        tau = both.v_map(there).T @ _inverse(both, both.a(there, v, np.zeros(ours.nv)))
        assert_allclose(tau, bias, rtol=0, atol=1e-10 * max(1.0, np.abs(bias).max()))


def placed(origin: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The place in the world of a free joint's child, at q in the joint's origin."""
    R = origin[:3, :3]
    turned = matrix_quaternion(R @ quaternion_matrix(q[3:7]))
    return np.concatenate([R @ q[:3] + origin[:3, 3], turned])


def _inverse(both: MujocoModel, a: np.ndarray) -> np.ndarray:
    both.data.qacc[:] = a
    result = np.zeros(both.model.nv)
    mujoco.mj_rne(both.model, both.data, 1, result)
    return result


@pytest.mark.parametrize("name", ["stanford-arm", "humanoid", "double-pendulum", "two-link"])
def test_reading_back_gives_the_same_dynamics(name: str, tmp_path: Path) -> None:
    model = pb.load(name)
    again = pb.load(model.save(tmp_path / "again.xml", lossy=True))
    assert again.nv == model.nv
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng, size=20)
    v, a = rng.normal(size=(2, 20, model.nv))
    M = model.mass_matrix(q)
    assert_allclose(again.mass_matrix(q), M, rtol=0, atol=1e-10 * np.abs(M).max())
    tau = model.inverse_dynamics(q, v, a)
    assert_allclose(again.inverse_dynamics(q, v, a), tau, rtol=0, atol=1e-9 * np.abs(tau).max())
    assert_allclose(again.passive_forces(q, v), model.passive_forces(q, v), atol=1e-12)


@pytest.mark.parametrize("name", ["four-bar", "stewart", "delta", "slider-crank"])
def test_loops_become_equalities_that_close_where_ours_do(name: str, tmp_path: Path) -> None:
    model = pb.load(name)
    path = model.save(tmp_path / "loops.xml", lossy=True)
    reference, q = mujoco.MjModel.from_xml_path(str(path)), model.assemble()
    again = pb.load(path)
    there = q.copy()  # free joints of ours are placed in their origins, MuJoCo's in the world
    for joint in model.mechanism.joints:
        if joint.kind == "floating":
            there[joint.q] = placed(joint.record.origin, q[joint.q])
    assert again.mobility(there).true == model.mobility(q).true
    data = mujoco.MjData(reference)
    both = MujocoModel(path)
    data.qpos[:] = both.q(there)
    mujoco.mj_forward(reference, data)
    rows = data.efc_pos[: data.ne]
    assert len(rows) > 0
    assert_allclose(rows, 0, atol=1e-9)
    free = model.constraints.independent
    M = model.mass_matrix(q, independent=free)
    assert_allclose(again.mass_matrix(there, independent=free), M, rtol=0, atol=1e-8 * np.abs(M).max())


def test_springs_friction_limits_and_motors_are_written(tmp_path: Path) -> None:
    build = pb.Builder("arm")
    build.body("a", 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
    build.joint("j", "revolute", "world", "a", stiffness=3.0, rest=0.2, damping=0.5, armature=0.1, friction=0.4,
                limits={"lower": -1, "upper": 2, "effort": 7})
    build.frame("tool", "a", np.eye(4))
    model = build.model()
    again = pb.load(model.save(tmp_path / "arm.xml"))
    assert "tool" in again.frame_names
    assert {key: float(x[0]) for key, x in again.joint_limits().items() if key in ("lower", "upper", "effort")} == {
        "lower": -1.0, "upper": 2.0, "effort": 7.0}  # fmt: skip
    for q, v in ((0.5, 0.3), (-0.4, -2.0)):
        assert_allclose(again.passive_forces([q], [v]), model.passive_forces([q], [v]), rtol=1e-12)
    assert '<motor name="j_motor" joint="j" ctrlrange="-7.0 7.0"/>' in (tmp_path / "arm.xml").read_text()


def test_what_mjcf_cannot_express_is_refused_or_listed(tmp_path: Path) -> None:
    build = pb.Builder("arm")
    for name in "ab":
        build.body(name, 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
    build.joint("j", "revolute", "world", "a", limits={"velocity": 3})
    build.joint("k", "revolute", "a", "b")
    build.spring("s", "a", (0, 0, 0), "world", (0, 0, 1), 5.0)
    description = build.model().description
    with pytest.raises(pb.InputError, match=r"spring 's'(?s:.*)joint 'j': its velocity limit(?s:.*)lossy"):
        mjcf_text(description)
    assert not (tmp_path / "x.xml").exists()
    assert write_mjcf(description, tmp_path / "x.xml", lossy=True) == ["spring 's'", "joint 'j': its velocity limit"]
    screw = pb.Builder("screw")
    screw.body("a", 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
    screw.joint("j", "screw", "world", "a", pitch=0.01)
    with pytest.raises(pb.InputError, match="joint 'j': its kind 'screw'"):
        write_mjcf(screw.model().description, tmp_path / "y.xml", lossy=True)


def _one(joint: Joint, *bodies: Body, **more: Any) -> Description:
    return Description(name="one", bodies=bodies or (Body("a", 1.0, inertia=np.eye(3)),), joints=(joint,), **more)


def test_joint_forces_that_mjcf_cannot_express_are_named() -> None:
    def rubbing(count: int, viscous: list[float]) -> Friction:
        one = np.ones(count)
        return Friction(one, np.array(viscous), one, one, 2 * one, 1e-3 * one, 0 * one)

    bounds = [np.array([x]) for x in (-1.0, 1.0, np.inf, 5.0)]
    limits = Limits(*bounds, power=np.array([3.0]), stiffness=np.array([9.0]))
    both = Joint("s", "floating", "world", "a", armature=np.ones(6), friction=rubbing(6, [0] * 6))
    for joint, words in (
        (Joint("s", "spherical", "world", "a", armature=np.array([1.0, 2, 3])), ["armature"]),
        (Joint("s", "spherical", "world", "a", friction=rubbing(3, [1, 2, 3])), ["friction"]),
        (both, ["armature", "friction"]),
        (Joint("s", "revolute", "world", "a", limits=limits), ["power", "stops"]),
    ):
        with pytest.raises(pb.InputError) as caught:
            mjcf_text(_one(joint))
        assert all(word in str(caught.value) for word in words)
        kept, lost = without_losses(_one(joint))
        assert len(lost) == len(words)
        assert mujoco.MjModel.from_xml_string(mjcf_text(kept)).nbody == 2
    even = mjcf_text(_one(Joint("s", "spherical", "world", "a", friction=rubbing(3, [2, 2, 2]))))
    assert_allclose(mujoco.MjModel.from_xml_string(even).dof_damping, 2)


def test_what_mujoco_would_refuse_is_refused_or_named_otherwise() -> None:
    with pytest.raises(pb.InputError, match="has no mass"):
        mjcf_text(_one(Joint("s", "revolute", "world", "a"), Body("a")))
    two = (Joint("s", "cylindrical", "world", "a"), Joint("s_0", "revolute", "a", "b"))
    bodies = (Body("a", 1.0, inertia=np.eye(3)), Body("b", 1.0, inertia=np.eye(3)))
    with pytest.raises(pb.InputError, match="two joints would be named 's_0'"):
        mjcf_text(Description(name="m", bodies=bodies, joints=two))
    flat = Visual("box", np.array([0.0, 1, 1]))
    loop = Loop("L", "spherical", "a", "world")
    text = mjcf_text(_one(Joint("s", "revolute", "world", "a"), Body("a", 1.0, inertia=np.eye(3), visuals=(flat,)),
                          frames=(Frame("L_a", "a"),), loops=(loop,)))
    assert mujoco.MjModel.from_xml_string(text).nsite == 3


def test_configurations_are_written_as_keyframes(tmp_path: Path) -> None:
    path = tmp_path / "tree.xml"
    for seed in range(3):
        description = tree(seed, floating_base=True)
        ours = Model(mechanism_from(description))
        q = ours.random_configuration(np.random.default_rng(seed))
        home = tuple((name, tuple(q[at].tolist())) for name, (at, _) in ours.joint_slices().items())
        write_mjcf(replace(description, configurations=(Configuration("home", home),)), path, lossy=True)
        theirs = mujoco.MjModel.from_xml_path(str(path))
        data = mujoco.MjData(theirs)
        mujoco.mj_resetDataKeyframe(theirs, data, 0)
        mujoco.mj_forward(theirs, data)
        for name in ours.body_names:
            assert_allclose(data.body(name).xpos, ours.pose(q, name)[:3, 3], atol=1e-12)


BALLS = """<mujoco><worldbody><body name="a" pos="0.1 0.2 0.3" quat="0.9 0.1 0.2 0.3">
<joint name="h" type="hinge" axis="0 1 0" pos="0.1 0 0"/><joint name="b" type="ball" pos="0 0.2 0.1" damping="0.1"/>
<joint name="s" type="slide" axis="1 0 0" damping="2"/>
<inertial pos="0.1 0.2 0.3" mass="2" fullinertia="0.1 0.2 0.25 0.01 0.02 0.03"/>
<body name="c" pos="0.5 0 0"><joint name="h2" type="hinge" axis="0 0 1" pos="0.2 0 0" frictionloss="0.3"/>
<joint name="b2" type="ball"/><inertial pos="0.1 0 0" mass="1" diaginertia="0.1 0.1 0.1"/></body></body>
</worldbody></mujoco>"""


def test_a_ball_among_other_joints_is_written_back_as_joints_of_one_body(tmp_path: Path) -> None:
    (tmp_path / "balls.xml").write_text(BALLS)
    model = pb.load(tmp_path / "balls.xml")
    write_mjcf(model.description, tmp_path / "again.xml")
    again = pb.load(tmp_path / "again.xml")
    assert again.joint_names == model.joint_names
    assert again.body_names == model.body_names
    rng = np.random.default_rng(3)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    assert_allclose(again.mass_matrix(q), model.mass_matrix(q), rtol=1e-10, atol=1e-12)
    assert_allclose(again.bias_forces(q, v), model.bias_forces(q, v), rtol=1e-10, atol=1e-12)
    first, second = (mujoco.MjModel.from_xml_path(str(tmp_path / name)) for name in ("balls.xml", "again.xml"))
    forces = []
    for one in (first, second):
        data = mujoco.MjData(one)
        draw = np.random.default_rng(5)
        data.qpos[:], data.qvel[:] = draw.normal(size=one.nq), draw.normal(size=one.nv)
        mujoco.mj_normalizeQuat(one, data.qpos)
        mujoco.mj_forward(one, data)
        forces.append(np.concatenate([data.qfrc_bias, data.qfrc_passive]))
    assert_allclose(forces[1], forces[0], rtol=1e-9, atol=1e-11)


def test_lossy_writing_keeps_coulomb_and_viscous_friction_and_says_what_else_is_lost(tmp_path: Path) -> None:
    build = pb.Builder("one")
    build.body("b", 1.0, inertia=(1, 1, 1))
    build.joint("j", "revolute", "world", "b", friction={"coulomb": 0.5, "viscous": 0.25, "static": 0.9})
    lost = write_mjcf(build.model().description, tmp_path / "one.xml", lossy=True)
    assert lost == ["joint 'j': its static friction and Stribeck curve; Coulomb and viscous friction are written"]
    read = pb.load(tmp_path / "one.xml").description.joints[0]
    assert read.friction is not None
    assert read.friction.coulomb[0] == 0.5
    assert np.ravel(read.damping)[0] == 0.25
    ball = pb.Builder("ball")
    ball.body("b", 1.0, inertia=(1, 1, 1))
    ball.joint("j", "spherical", "world", "b", friction={"coulomb": 0.0, "viscous": [0.1, 0.2, 0.3]})
    lost = write_mjcf(ball.model().description, tmp_path / "ball.xml", lossy=True)
    assert lost == ["joint 'j': its viscous friction, which differs between its axes or is that of a free body"]
