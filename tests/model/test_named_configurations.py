"""Configurations with names come from files and go into files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polybody as pb

MJCF = """<mujoco><worldbody><body name="b"><freejoint name="f"/><geom size="0.1"/>
  <body name="c"><joint name="h" ref="0.2"/><joint name="s" type="slide"/><geom size="0.1" pos="1 0 0"/>
  <body name="d"><joint name="ball" type="ball"/><geom size="0.1" pos="0 0 1"/></body></body></body></worldbody>
  <keyframe><key name="home" qpos="1 2 3 0 1 0 0  0.5 0.7  0.6 0 0.8 0"/></keyframe></mujoco>"""


@pytest.mark.filterwarnings("ignore::polybody.PolybodyWarning")
def test_keyframes_place_every_body_where_mujoco_does(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text(MJCF)
    model, reference = pb.load(path), mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(reference)
    mujoco.mj_resetDataKeyframe(reference, data, 0)
    mujoco.mj_forward(reference, data)
    q = pb.configurations(model)["home"]
    for name in ("b", "c", "d"):
        assert_allclose(model.pose(q, name)[:3, 3], data.body(name).xpos, atol=1e-12)
        assert_allclose(model.pose(q, name)[:3, :3], data.body(name).xmat.reshape(3, 3), atol=1e-12)
    again = pb.load(model.save(tmp_path / "again.yaml"))
    assert_allclose(pb.configurations(again)["home"], q, atol=0)


def test_mechanism_files_name_configurations(tmp_path: Path) -> None:
    model = pb.load("two-link")
    path = model.save(tmp_path / "arm.yaml")
    first, second = model.joint_names
    path.write_text(path.read_text() + f"configurations: {{up: {{{first}: 90deg}}, out: {{{second}: 0.5}}}}\n")
    found = pb.configurations(pb.load(path))
    assert_allclose(found["up"], [np.pi / 2, 0])
    assert_allclose(found["out"], [0, 0.5])
    assert_allclose(found["neutral"], [0, 0])
    path.write_text(path.read_text().replace(f"up: {{{first}:", "up: {joint_x:"))
    with pytest.raises(pb.InputError, match="configuration 'up': no key 'joint_x'"):
        pb.load(path)


@pytest.mark.parametrize(("said", "word"), [
    ("a: 1cm", "expected an angle"), ("a: [1, 2]", "has 2 numbers, expected 1")])
def test_numbers_of_configurations_have_the_units_of_their_joints(said: str, word: str, tmp_path: Path) -> None:
    path = pb.load("two-link").save(tmp_path / "arm.yaml")
    text = said.replace("a:", f"{pb.load('two-link').joint_names[0]}:")
    path.write_text(path.read_text() + f"configurations: {{up: {{{text}}}}}\n")
    with pytest.raises(pb.InputError, match=word):
        pb.load(path)


def test_sdf_keeps_the_pose_of_what_floats(tmp_path: Path) -> None:
    inertia = "<inertial><mass>1</mass></inertial>"
    path = tmp_path / "r.sdf"
    link = f'<link name="a">{inertia}</link>'
    path.write_text(f'<sdf version="1.9"><model name="r"><pose>1 2 3 0 0 0.5</pose>{link}</model></sdf>')
    model = pb.load(path)
    pose = model.pose(pb.configurations(model)["initial"], "a")
    assert_allclose(pose[:3, 3], [1, 2, 3])
    assert_allclose(pose[0, 0], np.cos(0.5))
