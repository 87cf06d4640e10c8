"""Every URDF of example-robot-data: poses and Jacobians of every frame, against Pinocchio."""

from __future__ import annotations

import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

from pinocchio_bridge import PinModel, pin, robot_file, robot_files
from polybody.description.urdf.reader import read_urdf
from polybody.errors import InputError, PolybodyWarning
from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import mechanism_from
from polybody.quantities.frames import find_frame

TOLERANCE = 1e-12
TRUNCATED = "ur3.urdf"
FILES = [path for path in robot_files() if path.name != TRUNCATED]


def test_all_robots_are_there() -> None:
    if not robot_files():
        pytest.skip("example-robot-data is not installed")
    assert len(FILES) >= 60


@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_poses_and_jacobians_of_every_frame_agree(path: Path, floating: bool) -> None:
    both = PinModel(path, floating)
    mechanism = both.ours.mechanism
    q = both.ours.random_configuration(np.random.default_rng(zlib.crc32(path.stem.encode())))
    poses = kinematics.body_poses(mechanism, q)
    maps = kinematics.world_maps(mechanism, q, poses)
    their_poses, their_jacobians = both.frame_poses(q), both.frame_jacobians(q)
    assert len(their_poses) >= len(both.ours.frame_names) - 1
    for name, pose in their_poses.items():
        frame = find_frame(both.ours.mechanism, name)
        R, p = kinematics.frame_pose(frame, poses)
        scale = 1 + np.abs(pose[:3, 3]).max()
        assert np.abs(R - pose[:3, :3]).max() < TOLERANCE, name
        assert np.abs(p - pose[:3, 3]).max() < TOLERANCE * scale, name
        J = kinematics.point_jacobian(mechanism, frame.body, p, maps)
        assert np.abs(J - their_jacobians[name]).max(initial=0) < TOLERANCE * scale, name


@pytest.mark.parametrize("name", ["ur5_robot.urdf", "tiago_pro.urdf", "talos_reduced.urdf"])
def test_model_answers_agree_over_a_batch(name: str) -> None:
    """The façade (pose, jacobian in world and frame axes, centre of mass) rather than the functions beneath it."""
    both = PinModel(robot_file(name), floating=True)
    rng = np.random.default_rng(5)
    qs = both.ours.random_configuration(rng, size=2)
    frame = both.ours.frame_names[-1]
    poses, J, J_frame, com = (
        both.ours.pose(qs, frame),
        both.ours.jacobian(qs, frame),
        both.ours.jacobian(qs, frame, axes="frame"),
        both.ours.center_of_mass(qs),
    )
    for k, q in enumerate(qs):
        wanted = both.frame_poses(q)[frame]
        np.testing.assert_allclose(poses[k], wanted, atol=1e-12)
        np.testing.assert_allclose(J[k], both.frame_jacobians(q)[frame], atol=1e-12)
        turn = np.kron(np.eye(2), wanted[:3, :3].T)
        np.testing.assert_allclose(J_frame[k], turn @ both.frame_jacobians(q)[frame], atol=1e-12)
        np.testing.assert_allclose(com[k], pin.centerOfMass(both.model, both.data, both.q(q)), atol=1e-12)


def test_integrate_and_difference_agree_with_pinocchio_on_a_floating_robot() -> None:
    both = PinModel(robot_file("tiago.urdf"), floating=True)
    rng = np.random.default_rng(6)
    q0, v = both.ours.random_configuration(rng), rng.normal(size=both.ours.nv)
    q1 = both.ours.integrate(q0, v)
    np.testing.assert_allclose(both.q(q1), pin.integrate(both.model, both.q(q0), both.v(v)), atol=1e-13)
    free = [j for j in both.ours.mechanism.joints if j.kind != "continuous"]  # Pinocchio's circles forget full turns
    back = both.v_back(pin.difference(both.model, both.q(q0), both.q(q1)))
    for joint in free:
        np.testing.assert_allclose(both.ours.difference(q0, q1)[joint.v], back[joint.v], atol=1e-12)


def test_masses_and_mass_centres_of_bodies_agree() -> None:
    both = PinModel(robot_file("talos_full_v2.urdf"), floating=True)
    for body, joint in zip(both.ours.mechanism.bodies, both.ours.mechanism.joints, strict=True):
        theirs = both.model.inertias[both.model.getJointId(joint.name)]
        assert body.mass == pytest.approx(theirs.mass, rel=1e-13)
        np.testing.assert_allclose(body.com, theirs.lever, atol=1e-13)
        np.testing.assert_allclose(body.inertia, theirs.inertia, atol=1e-12 * (1 + np.abs(theirs.inertia).max()))


def test_planar_continuous_prismatic_and_floating_joints_agree(tmp_path: Path) -> None:
    text = """<robot name="kinds"><link name="a"/><link name="b"/><link name="c"/><link name="d"/><link name="e"/>
      <joint name="p" type="planar"><parent link="a"/><child link="b"/><origin xyz=".1 .2 .3" rpy=".4 .5 .6"/>
        <axis xyz="0 0 1"/></joint>
      <joint name="k" type="continuous"><parent link="b"/><child link="c"/><origin xyz="1 0 0"/>
        <axis xyz="0 1 0"/></joint>
      <joint name="s" type="prismatic"><parent link="c"/><child link="d"/><axis xyz="0.6 0 0.8"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
      <joint name="f" type="floating"><parent link="d"/><child link="e"/><origin rpy="1 2 3"/></joint></robot>"""
    path = tmp_path / "kinds.urdf"
    path.write_text(text)
    both = PinModel(path)
    q = both.ours.random_configuration(np.random.default_rng(1))
    np.testing.assert_allclose(both.q_back(both.q(q)), q, atol=1e-15)
    poses = kinematics.body_poses(both.ours.mechanism, q)
    for name, wanted in both.frame_poses(q).items():
        R, p = kinematics.frame_pose(find_frame(both.ours.mechanism, name), poses)
        np.testing.assert_allclose(R, wanted[:3, :3], atol=1e-14)
        np.testing.assert_allclose(p, wanted[:3, 3], atol=1e-14)
        J = kinematics.frame_jacobian(both.ours.mechanism, q, find_frame(both.ours.mechanism, name))
        np.testing.assert_allclose(J, both.frame_jacobians(q)[name], atol=1e-14)
    v = np.random.default_rng(2).normal(size=both.ours.nv)
    moved = both.ours.integrate(q, v, 0.3)
    np.testing.assert_allclose(both.q(moved), pin.integrate(both.model, both.q(q), both.v(0.3 * v)), atol=1e-14)


def test_the_truncated_file_gets_a_clear_error() -> None:
    with pytest.raises(InputError, match=r"ur3\.urdf:6: <robot> has no <link>; the file is truncated"):
        read_urdf(robot_file(TRUNCATED))


@pytest.mark.parametrize(("name", "base"), [("xarm7.urdf", "base"), ("ur5_robot.urdf", "base_")])
def test_floating_base_of_a_robot_whose_root_is_world_renames_it(name: str, base: str) -> None:
    path = robot_file(name)  # the UR5 has a link named "base" already
    with pytest.warns(PolybodyWarning, match=f"renamed '{base}'"):
        mechanism = mechanism_from(read_urdf(path, base="floating"))
    assert (mechanism.joints[0].name, mechanism.bodies[0].name) == ("root_joint", base)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fixed = mechanism_from(read_urdf(path))
    assert [frame.name for frame in fixed.frames].count("world") == 1
