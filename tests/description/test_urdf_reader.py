"""What URDF says, and what is said about URDF that is wrong."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest

from polybody.description.records import Description
from polybody.description.urdf.reader import read_urdf
from polybody.errors import InputError, PolybodyWarning

ARM = """<?xml version="1.0"?>
<!-- an arm -->
<robot name="arm" xmlns:xacro="http://wiki.ros.org/xacro">
  <material name="steel"><color rgba=".1 .2 .3 1"/></material>
  <link name="base"/>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0.2 0.3" rpy="0 0 1.5707963267948966"/>
      <mass value="2.5"/>
      <inertia ixx="1" iyy="2" izz="2.5" ixy="0.1" ixz="0.2" iyz="0.3"/>
    </inertial>
    <visual><origin xyz="1 2 3"/><geometry><mesh filename="package://nowhere/upper.stl" scale="2 2 2"/></geometry>
      <material name="steel"/></visual>
    <visual><geometry><cylinder radius=".1" length=".5"/></geometry></visual>
    <collision><geometry><box size="oops"/></geometry></collision>
  </link>
  <link name="hand"/>
  <link name="finger"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.5" rpy="0.1 0.2 0.3"/>
    <axis xyz="0 1.0005 0"/>
    <limit lower="-1" upper="2" effort="10" velocity="3"/>
    <dynamics damping="0.7" friction="0.2"/>
  </joint>
  <joint name="wrist" type="fixed"><parent link="upper"/><child link="hand"/><axis xyz="0 0 0"/></joint>
  <joint name="grip" type="prismatic"><parent link="hand"/><child link="finger"/>
    <mimic joint="shoulder" multiplier="-0.5" offset="0.1"/></joint>
  <gazebo reference="hand"><mu1>0.2</mu1></gazebo>
  <transmission name="t"><joint name="shoulder"/></transmission>
</robot>
"""


def written(folder: Path, text: str | bytes, name: str = "robot.urdf") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def arm(folder: Path, base: str = "fixed") -> Description:
    return read_urdf(written(folder, ARM), base=base)


def test_an_arm_is_read_as_it_was_said(tmp_path: Path) -> None:
    d = arm(tmp_path)
    assert d.name == "arm"
    assert [b.name for b in d.bodies] == ["base", "upper", "hand", "finger"]
    assert [(j.name, j.kind, j.parent, j.child) for j in d.joints] == [
        ("root_joint", "fixed", "world", "base"),
        ("shoulder", "revolute", "base", "upper"),
        ("wrist", "fixed", "upper", "hand"),
        ("grip", "prismatic", "hand", "finger"),
    ]
    shoulder = d.joints[1]
    np.testing.assert_array_equal(shoulder.axis, (0, 1, 0))
    assert shoulder.damping is not None
    assert shoulder.friction is not None
    assert shoulder.limits is not None
    assert shoulder.damping.tolist() == [[0.7]]
    assert shoulder.friction.coulomb.tolist() == [0.2]
    assert [x.item() for x in vars(shoulder.limits).values() if x is not None] == [-1, 2, 3, 10]
    assert (shoulder.source, d.bodies[1].source) == ("robot.urdf:19", "robot.urdf:6")
    np.testing.assert_array_equal(d.joints[3].axis, (1, 0, 0))  # URDF's default axis is x
    assert d.bodies[0].mass == 0


def test_an_inertia_is_turned_into_link_axes(tmp_path: Path) -> None:
    upper = arm(tmp_path).bodies[1]
    np.testing.assert_array_equal(upper.com, (0.1, 0.2, 0.3))
    # a quarter turn about z: x' = y, y' = −x
    np.testing.assert_allclose(upper.inertia, [[2, -0.1, -0.3], [-0.1, 1, 0.2], [-0.3, 0.2, 2.5]], atol=1e-15)


def test_visuals_are_recorded_with_their_meshes_unresolved(tmp_path: Path) -> None:
    mesh, cylinder = arm(tmp_path).bodies[1].visuals
    assert (mesh.shape, mesh.mesh, mesh.color) == ("mesh", "package://nowhere/upper.stl", (0.1, 0.2, 0.3, 1.0))
    assert mesh.origin[:3, 3].tolist() == [1, 2, 3]
    assert (cylinder.shape, cylinder.size.tolist(), cylinder.color) == ("cylinder", [0.1, 0.5], None)


def test_mimic_is_recorded(tmp_path: Path) -> None:
    (coupling,) = arm(tmp_path).couplings
    assert (coupling.joint, coupling.source_joint, coupling.ratio, coupling.offset) == ("grip", "shoulder", -0.5, 0.1)


def test_a_floating_base_is_joined_by_root_joint(tmp_path: Path) -> None:
    first = arm(tmp_path, "floating").joints[0]
    assert (first.name, first.kind, first.parent, first.child) == ("root_joint", "floating", "world", "base")


def test_a_root_named_world_is_the_ground_or_is_renamed(tmp_path: Path) -> None:
    text = """<robot name="r"><link name="world"/><link name="a"/>
      <joint name="j" type="continuous"><parent link="world"/><child link="a"/></joint></robot>"""
    path = written(tmp_path, text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fixed = read_urdf(path)
    assert [b.name for b in fixed.bodies] == ["a"]
    assert [j.name for j in fixed.joints] == ["j"]
    with pytest.warns(PolybodyWarning, match="renamed 'base'"):
        floating = read_urdf(path, base="floating")
    assert [b.name for b in floating.bodies] == ["base", "a"]
    assert [(j.name, j.parent) for j in floating.joints] == [("root_joint", "world"), ("j", "base")]


@pytest.mark.parametrize("kind", ["planar", "floating"])
def test_damping_of_joints_with_several_numbers_is_a_multiple_of_one(tmp_path: Path, kind: str) -> None:
    text = f"""<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="{kind}"><parent link="a"/>
      <child link="b"/><dynamics damping="2"/></joint></robot>"""
    damping = read_urdf(written(tmp_path, text)).joints[1].damping
    np.testing.assert_array_equal(damping, 2 * np.eye(3 if kind == "planar" else 6))


@pytest.mark.parametrize(
    ("limit", "wanted"),
    [
        ("", None),
        ('<limit effort="5" velocity="6"/>', (-math.inf, math.inf, 6, 5)),
        ('<limit upper="2" effort="5" velocity="6"/>', (0, 2, 6, 5)),
        ('<limit lower="-inf" upper="1.7976931348623157e308" effort="1"/>', (-math.inf, math.inf, math.inf, 1)),
        ('<limit lower="-inf" upper="inf"/>', None),
    ],
)
def test_limits_that_are_not_given_are_unbounded(tmp_path: Path, limit: str, wanted: tuple | None) -> None:
    text = f"""<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="revolute"><parent link="a"/>
      <child link="b"/>{limit}</joint></robot>"""
    limits = read_urdf(written(tmp_path, text)).joints[1].limits
    assert wanted == (None if limits is None else tuple(x.item() for x in vars(limits).values() if x is not None))


def test_all_problems_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    text = """<robot name="r">
<link name="a"><inertial><mass value="heavy"/><inertia ixx="1" iyy="1" izz="nan"/></inertial></link>
<link name="a"/>
<link name="b"><visual><geometry><sphere/></geometry></visual></link>
<joint name="j" type="revolute"><parent link="aa"/><child link="b"/><axis xyz="0 0 3"/></joint>
<joint name="k" type="hinge"><parent link="a"/><child link="c"/><origin xyz="1 2"/></joint>
<joint name="l" type="fixed"><parent link="a"/><origin rpy="0 0 ${pi/2}"/></joint>
</robot>"""
    with pytest.raises(InputError) as caught:
        read_urdf(written(tmp_path, text))
    message = str(caught.value)
    for line in (
        "robot.urdf:2: inertial of link 'a': <mass value='heavy'> is not a number",
        "robot.urdf:2: inertial of link 'a': <inertia izz='nan'> must be finite",
        "robot.urdf:3: two links are named 'a'; the first is at line 2",
        "robot.urdf:4: visual of link 'b': <sphere> needs the attribute 'radius', a number",
        "robot.urdf:5: joint 'j': no parent link 'aa' (did you mean 'a'?)",
        "robot.urdf:5: joint 'j': the axis '0 0 3' has length 3, expected 1",
        "robot.urdf:6: joint 'k' has type 'hinge'; URDF knows fixed, revolute",
        "robot.urdf:6: joint 'k': <origin xyz='1 2'> has 2 numbers, expected 3 numbers",
        "robot.urdf:6: joint 'k': no child link 'c'",
        "robot.urdf:7: joint 'l' needs a <child link=…>",
        "declare xmlns:xacro on <robot> to have it expanded",
    ):
        assert line in message, message


@pytest.mark.parametrize(
    ("joints", "wanted"),
    [
        (
            [("o", "a", "b"), ("p", "b", "c"), ("q", "c", "b")],
            r"link 'b' is the child of joint 'o' .* cycle: b - c - b, make one of them a loop",
        ),
        ([("p", "a", "b"), ("q", "b", "a")], r"robot\.urdf:2: joints form a cycle: a - b - a; a URDF is a tree"),
        ([("p", "a", "b")], r"robot\.urdf:4: 2 root links, .*: 'a' \(line 2\), 'c' \(line 4\); expected one"),
        ([("p", "a", "b"), ("q", "a", "b")], r"link 'b' is the child of joint 'p' \(line 5\) and of joint 'q'"),
    ],
)
def test_what_is_no_tree_is_refused(tmp_path: Path, joints: list[tuple[str, str, str]], wanted: str) -> None:
    third = "" if "cycle" in wanted else '<link name="c"/>'
    lines = [f'<joint name="{n}" type="fixed"><parent link="{p}"/><child link="{c}"/></joint>' for n, p, c in joints]
    text = "\n".join(['<robot name="r">', '<link name="a"/>', '<link name="b"/>', third, *lines, "</robot>"])
    with pytest.raises(InputError, match=wanted):
        read_urdf(written(tmp_path, text))


BOMB = """<?xml version="1.0"?><!-- innocent --><!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">
  <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>
  <robot name="&c;"><link name="a"/></robot>"""
THIEF = '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"><link name="a"/></robot>'


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (BOMB, "document type declaration"),
        (THIEF, "document type declaration"),
        (b"", "the file is empty"),
        (b"\x7fELF\x00\x00\x01", "this is a binary file, not text"),
        ("name: arm\n", r"robot\.urdf:1: not XML"),
        (ARM[:600], r"robot\.urdf:\d+: not well-formed XML .* truncated"),
        ("<mujoco/>", "the root element is <mujoco>, a URDF has <robot>"),
        ("<robot name='r'/>", "<robot> has no <link>"),
        ("<robot/>".encode("utf-16"), "UTF-16; save it as UTF-8"),
        ('<?xml version="1.0" encoding="UTF-7"?><robot/>', "encoding 'UTF-7' is not read"),
        ("<robot>" + "<a>" * 5000, "not well-formed XML"),
        ("<robot name='r'><link name='&undefined;'/></robot>", r"robot\.urdf:1: not well-formed XML"),
    ],
    ids=["bomb", "thief", "empty", "binary", "yaml", "truncated", "mjcf", "nothing", "utf16", "utf7", "deep", "entity"],
)
def test_hostile_and_broken_files_are_refused(tmp_path: Path, content: str | bytes, wanted: str) -> None:
    with pytest.raises(InputError, match=wanted):
        read_urdf(written(tmp_path, content))


def test_a_file_of_a_hundred_megabytes_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.urdf"
    with path.open("wb") as stream:
        stream.truncate(100_000_000)
    with pytest.raises(InputError, match=r"the file has 100 MB; of a URDF file at most 20 MB are read"):
        read_urdf(path)


def test_missing_files_folders_and_bases_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_urdf(tmp_path / "none.urdf")
    with pytest.raises(InputError, match="not a file"):
        read_urdf(tmp_path)
    with pytest.raises(InputError, match="base is 'flying', expected 'fixed' or 'floating'"):
        read_urdf(written(tmp_path, ARM), base="flying")


def test_blank_lines_before_the_declaration_keep_line_numbers(tmp_path: Path) -> None:
    text = "\n\n<?xml version='1.0'?>\n<robot name='r'>\n<link name='a'/>\n</robot>"
    assert read_urdf(written(tmp_path, text)).bodies[0].source == "robot.urdf:5"
