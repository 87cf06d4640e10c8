"""URDF written and read back is the same mechanism."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mechanisms import descriptions, random_tree
from pinocchio_bridge import PinModel
from polybody.algebra.rotations import rpy_matrix
from polybody.description import shapes
from polybody.description.records import Description, Joint, Limits, Loop, Spring, Visual, as_data, frozen_array
from polybody.description.urdf.reader import read_urdf
from polybody.description.urdf.writer import urdf_text, write_urdf
from polybody.errors import InputError
from polybody.mechanism import Mechanism, kinematics, mechanism_from
from polybody.model import Model

KINDS = ("revolute", "continuous", "prismatic", "planar", "floating")
GRAVITY = (0.0, 0.0, -9.81)
SAYABLE = {"gravity": GRAVITY, "reversed_joints": 0, "stiffness": 0, "damping": 0, "armature": 0, "limits": 0,
           "loops": 0, "springs": 0}


@st.composite
def sayable(draw: st.DrawFn) -> Description:
    """Trees that URDF can say, with what it can say of each joint and body."""
    description = draw(descriptions(kinds=KINDS, **SAYABLE))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    joints = tuple(_dressed(joint, rng) for joint in description.joints)
    bodies = tuple(replace(body, visuals=_shapes(rng)) for body in description.bodies)
    return replace(description, joints=joints, bodies=bodies)


def _dressed(joint: Joint, rng: np.random.Generator) -> Joint:
    nv = {"fixed": 0, "planar": 3, "floating": 6}.get(joint.kind, 1)
    if nv == 0 or rng.random() < 0.3:
        return joint
    joint = replace(
        joint, damping=frozen_array(rng.uniform() * np.eye(nv)), friction=shapes.friction("friction", rng.uniform(), nv)
    )
    if nv > 1:
        return joint
    lower, upper = (-np.inf, np.inf) if joint.kind == "continuous" else (rng.choice([-np.inf, -rng.uniform()]), 1.5)
    return replace(joint, limits=Limits(*(frozen_array([x]) for x in (lower, upper, rng.uniform(), np.inf))))


def _shapes(rng: np.random.Generator) -> tuple[Visual, ...]:
    mesh = Visual("mesh", frozen_array((1, 2, 3)), mesh="package://a/b.stl", color=(0.1, 0.2, 0.3, 0.4))
    others = [Visual("box", frozen_array(rng.uniform(size=3))), Visual("cylinder", frozen_array(rng.uniform(size=2))),
              Visual("sphere", frozen_array(rng.uniform(size=1)))]
    return tuple([mesh, *others][: rng.integers(5)])


def places(mechanism: Mechanism, q: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """(R, p) of every frame, without compiling anything."""
    poses = kinematics.body_poses(mechanism, q)
    return {frame.name: kinematics.frame_pose(frame, poses) for frame in mechanism.frames}


def round_trip(description: Description, folder: Path) -> Description:
    path = folder / "robot.urdf"
    write_urdf(description, path)
    return read_urdf(path)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sayable())
def test_random_mechanisms_survive_the_round_trip(tmp_path: Path, description: Description) -> None:
    back = round_trip(description, tmp_path)
    own = len(description.joints)  # frames come back as links on fixed joints, after the others
    for before, after in zip(description.joints, back.joints[:own], strict=True):
        assert np.abs(before.origin - after.origin).max() < 1e-14
        assert as_data(replace(before, origin=after.origin)) == as_data(after)
    assert as_data(description.bodies) == as_data(back.bodies[: len(description.bodies)])
    assert as_data(description.couplings) == as_data(back.couplings)
    assert [f.name for f in description.frames] == [b.name for b in back.bodies[len(description.bodies) :]]
    first, second = mechanism_from(description), mechanism_from(back)
    q = Model(first).tree.random_configuration(1)
    before, after = places(first, q), places(second, q)
    assert list(before) == list(after)
    for frame, (R, p) in before.items():
        assert np.abs(R - after[frame][0]).max() < 1e-13
        assert np.abs(p - after[frame][1]).max() < 1e-13


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_a_read_robot_is_written_so_that_pinocchio_reads_the_same(tmp_path: Path, base: str) -> None:
    description = random_tree(3, 6, KINDS[:3], floating_base=base == "floating", frames=1, **SAYABLE)
    path = tmp_path / "robot.urdf"
    write_urdf(description, path)
    both, ours = PinModel(path), mechanism_from(description)
    q = Model(ours).tree.random_configuration(2)
    for name, pose in both.frame_poses(q).items():
        R, p = places(ours, q)[name]
        np.testing.assert_allclose(R, pose[:3, :3], atol=1e-13)
        np.testing.assert_allclose(p, pose[:3, 3], atol=1e-13)


def test_a_robot_on_a_plain_root_is_written_without_a_world_link(tmp_path: Path) -> None:
    text = '<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/>' \
           '<child link="b"/></joint></robot>'
    source = tmp_path / "in.urdf"
    source.write_text(text)
    description = read_urdf(source)
    assert "world" not in urdf_text(description)
    assert as_data(round_trip(description, tmp_path)) == as_data(description)


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, 1e-7 - np.pi / 2, np.pi / 2 - 1e-13])
def test_rotations_near_gimbal_lock_survive(tmp_path: Path, pitch: float) -> None:
    origin = np.eye(4)
    origin[:3, :3] = rpy_matrix(np.array([0.3, pitch, -1.1]))
    tree = random_tree(0, 1, ("revolute",), fixed=0, frames=0, **SAYABLE)
    tree = replace(tree, joints=(replace(tree.joints[0], origin=frozen_array(origin)),))
    assert np.abs(round_trip(tree, tmp_path).joints[0].origin - origin).max() < 1e-14


def test_everything_urdf_cannot_say_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    tree = random_tree(0, 3, ("revolute", "universal", "planar"), fixed=0, frames=0, **(SAYABLE | {"stiffness": 1}))
    reversed_joint = replace(tree.joints[2], parent=tree.joints[2].child, child=tree.joints[2].parent)
    tree = replace(
        tree,
        gravity=frozen_array((0, -9.81, 0)),
        joints=(*tree.joints[:2], reversed_joint),
        loops=(Loop("shut", "revolute", "body0", "body2"),),
        springs=(Spring("coil", "body0", np.zeros(3), "body2", np.ones(3), 1.0),),
    )
    path = tmp_path / "robot.urdf"
    path.write_text("what stood here")
    with pytest.raises(InputError, match="cannot be written as URDF") as caught:
        write_urdf(tree, path)
    for words in ("loop 'shut'", "spring 'coil'", "gravity (0.0, -9.81, 0.0)", "its kind 'universal'", "its stiffness"):
        assert words in str(caught.value)
    assert f"body {reversed_joint.parent!r}, which is not a joint's child" in str(caught.value) or (
        "points towards the ground" in str(caught.value)
    )
    assert path.read_text() == "what stood here"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_into_a_folder_that_is_not_there_is_explained(tmp_path: Path) -> None:
    tree = random_tree(0, 1, ("revolute",), **SAYABLE)
    with pytest.raises(InputError, match=r"the folder .* does not exist"):
        write_urdf(tree, tmp_path / "none" / "robot.urdf")


def test_power_limits_and_yielding_stops_are_named() -> None:
    from polybody.description.records import Body, Description, Joint, Limits
    from polybody.description.urdf.writer import urdf_text, without_losses

    bounds = [np.array([x]) for x in (-1.0, 1.0, 2.0, 5.0)]
    limits = Limits(*bounds, power=np.array([3.0]), stiffness=np.array([9.0]))
    given = Description(name="one", bodies=(Body("a", 1.0, inertia=np.eye(3)),), network={"nodes": []},
                        joints=(Joint("s", "revolute", "world", "a", limits=limits),))
    kept, lost = without_losses(given)
    assert lost == ["the network", "joint 's': its power limit", "joint 's': stiffness and damping of its stops"]
    assert 'upper="1.0"' in urdf_text(kept)
    with pytest.raises(InputError, match="power"):
        urdf_text(given)
