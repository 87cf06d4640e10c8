"""MJCF read by us and by MuJoCo: the same kinematics, mass matrix, accelerations and loops."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from mujoco_bridge import MujocoModel, mujoco
from polybody.description.mjcf.reader import read_mjcf
from polybody.errors import InputError, PolybodyWarning
from polybody.mechanism import kinematics, mechanism_from
from polybody.quantities.frames import find_frame

ARM = """<mujoco model="arm"><compiler angle="radian"/>
<default><joint damping=".3" armature=".02"/></default>
<worldbody>
 <body name="base" pos=".1 .2 .3" euler=".1 .2 .3">
  <geom type="box" size=".1 .2 .3"/>
  <body name="upper" pos="0 0 .3">
   <joint name="shoulder" axis="0 1 0" range="-1 2" stiffness="4" springref=".3" frictionloss=".1"/>
   <geom type="capsule" fromto="0 0 0 .4 0 .1" size=".05"/>
   <site name="mark" pos=".1 0 0" euler=".3 0 0"/>
   <body name="lower" pos=".4 0 .1" quat=".9 .1 .2 .3">
    <joint name="elbow" axis=".6 .8 0" pos=".02 .03 -.04" ref=".5" stiffness="2"/>
    <inertial pos=".1 .02 .03" quat=".7 .1 .2 .6" mass="1.5" diaginertia=".02 .03 .04"/>
    <body name="slider" pos=".3 0 0"><joint name="slide" type="slide" axis="0 0 1" range="-.1 .1"/>
     <geom type="sphere" size=".1" pos=".1 0 0"/><site name="upper"/></body>
   </body></body></body>
</worldbody></mujoco>"""

HIPS = """<mujoco model="hips"><option gravity="1 2 -3"/><worldbody>
 <body name="torso" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3"/>
  <body name="thigh" pos="0 .1 -.3">
   <joint name="hip_x" axis="1 0 0" pos="0 0 .02" damping="1"/>
   <joint name="hip_y" axis="0 1 0" damping="2" armature=".1"/>
   <joint name="hip_z" axis="0 0 1" stiffness="7" springref="20"/>
   <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".04"/>
   <body name="shin" pos="0 0 -.4"><joint name="knee" axis="0 1 0"/>
    <geom type="cylinder" size=".03 .2" pos="0 0 -.2"/></body>
  </body>
  <body name="head" pos="0 0 .4"><joint name="neck" type="ball" stiffness="3" damping=".5"/>
    <geom type="sphere" size=".1" pos="0 .02 .1"/></body>
  <body name="tail" pos="-.1 0 0"><joint name="root" type="ball" pos=".05 0 .01"/>
    <geom type="capsule" fromto="0 0 0 -.4 0 0" size=".02"/></body>
 </body></worldbody></mujoco>"""

MIXED = """<mujoco><worldbody><body name="a"><joint name="s" type="slide" axis="1 0 0"/><joint name="b" type="ball"/>
  <geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>
  <body name="c"><joint name="x" axis="0 0 1"/><joint name="y" axis="0 0 1"/><geom type="box" size=".1 .2 .3"/></body>
 </worldbody></mujoco>"""


def pair(folder: Path, text: str) -> MujocoModel:
    path = folder / "model.xml"
    path.write_text(text)
    return MujocoModel(path)


@pytest.mark.parametrize("text", [ARM, HIPS, MIXED], ids=["arm", "hips", "mixed"])
def test_poses_jacobians_and_centres_of_mass_agree(tmp_path: Path, text: str) -> None:
    both = pair(tmp_path, text)
    q = both.ours.random_configuration(3)
    both.place(q)
    names = [both.model.body(i).name for i in range(1, both.model.nbody)]
    poses = kinematics.body_poses(both.ours.mechanism, q)
    for name in names:
        frame = find_frame(both.ours.mechanism, name)
        R, p = kinematics.frame_pose(frame, poses)
        np.testing.assert_allclose(R, both.body_pose(name)[:3, :3], atol=1e-13)
        np.testing.assert_allclose(p, both.body_pose(name)[:3, 3], atol=1e-13)
        J = kinematics.frame_jacobian(both.ours.mechanism, q, frame)
        np.testing.assert_allclose(J, both.body_jacobian(q, name), atol=1e-13)


@pytest.mark.parametrize("text", [ARM, HIPS], ids=["arm", "hips"])
def test_mass_matrices_and_accelerations_agree(tmp_path: Path, text: str) -> None:
    """Springs, dampers, armature, rest positions and gravity all enter the acceleration."""
    both = pair(tmp_path, text)
    rng = np.random.default_rng(4)
    q, v, tau = both.ours.random_configuration(rng), rng.normal(size=both.ours.nv), rng.normal(size=both.ours.nv)
    both.data.qfrc_applied[:] = both.v_map(q) @ tau
    both.move(q, v)
    M = both.mass_matrix(q)
    np.testing.assert_allclose(both.ours.mass_matrix(q), M, atol=1e-12 * np.abs(M).max())
    a = both.ours.forward_dynamics(q, v, tau)
    wanted = both.data.qacc_smooth
    np.testing.assert_allclose(both.a(q, v, a), wanted, atol=1e-9 * np.abs(wanted).max())


def test_joints_are_read_as_kinds_with_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(ARM)
    d = read_mjcf(tmp_path / "arm.xml")
    assert d.name == "arm"
    assert [(j.name, j.kind) for j in d.joints] == [
        ("root_joint", "fixed"),
        ("shoulder", "revolute"),
        ("elbow", "custom"),
        ("slide", "prismatic"),
    ]
    shoulder, elbow = d.joints[1], d.joints[2]
    assert shoulder.limits is not None
    assert (shoulder.limits.lower[0], shoulder.limits.upper[0]) == (-1, 2)
    assert shoulder.stiffness is not None
    assert shoulder.rest is not None
    assert (shoulder.stiffness.item(), shoulder.rest.item()) == (4, 0.3)
    assert shoulder.friction is not None
    assert shoulder.friction.coulomb.item() == 0.1
    assert elbow.rest is not None
    assert elbow.rest.item() == -0.5  # springref 0 seen from ref 0.5
    assert shoulder.source == "arm.xml:7"
    assert [(f.name, f.body) for f in d.frames] == [("mark", "upper"), ("upper_site", "slider")]
    assert [v.shape for v in d.bodies[1].visuals] == ["cylinder", "sphere", "sphere"]


def test_several_joints_of_a_body_are_one_compound_joint_from_the_child_outwards(tmp_path: Path) -> None:
    both = pair(tmp_path, HIPS)
    assert both.ours.joint_names == ["root_joint", "hip_z+hip_y+hip_x", "knee", "neck", "root"]
    assert both.ours.gravity.tolist() == [1, 2, -3]


def test_where_no_compound_joint_can_be_there_is_a_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.xml").write_text(MIXED)
    with pytest.warns(PolybodyWarning, match=r"model\.xml: MuJoCo says: Inertia matrix is too close to singular"):
        d = read_mjcf("model.xml")
    assert [joint.name for joint in d.joints] == ["s", "b", "x", "y"]
    assert [path.name for path in tmp_path.iterdir()] == ["model.xml"]  # MuJoCo's log is not written


@pytest.mark.parametrize(
    ("base", "kind", "nv"), [(None, "floating", 16), ("floating", "floating", 16), ("fixed", "fixed", 10)]
)
def test_base_of_a_free_robot(tmp_path: Path, base: str | None, kind: str, nv: int) -> None:
    path = tmp_path / "hips.xml"
    path.write_text(HIPS)
    d = read_mjcf(path, base=base)
    assert (d.joints[0].name, d.joints[0].kind) == ("root_joint", kind)
    assert mechanism_from(d).nv == nv
    if kind == "fixed":
        assert d.joints[0].origin[:3, 3].tolist() == [0, 0, 1]


def test_base_floating_frees_a_fixed_robot_and_refuses_several(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(ARM)
    assert mechanism_from(read_mjcf(tmp_path / "arm.xml", base="floating")).nv == 9
    (tmp_path / "two.xml").write_text(MIXED)
    with pytest.raises(InputError, match="needs one body on the ground, fixed or free; on the ground are 'a', 'c'"):
        read_mjcf(tmp_path / "two.xml", base="floating")


LOOPS = """<mujoco><worldbody>
 <body name="a" pos="0 0 0"><joint name="ja" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 1 0 0" size=".05"/>
  <body name="b" pos="1 0 0"><joint name="jb" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 1" size=".05"/>
   <site name="sb" pos="0 0 1" euler="10 20 30"/></body></body>
 <body name="c" pos="2 .1 1" euler="10 0 40"><joint name="jc" axis="0 1 0"/><geom size=".1"/>
   <site name="sc" pos=".3 .2 .1"/></body>
 </worldbody><equality><connect name="pin" body1="b" body2="c" anchor="0 .1 .9"/>
 <weld name="glue" body1="b" body2="c" anchor=".1 .2 .3"/>
 <weld name="here" body1="a" relpose="1 2 3 1 0 0 0" anchor=".1 0 0"/>
 <weld name="sites" site1="sb" site2="sc"/><joint joint1="ja" joint2="jc" polycoef=".1 2 0 0 0"/>
 <joint joint1="jb" joint2="jc" polycoef="0 1 1 0 0"/></equality></mujoco>"""


def test_equalities_become_loops_that_are_violated_as_mujoco_says(tmp_path: Path) -> None:
    """MuJoCo's own residual of each equality is the distance between our loop's two frames."""
    path = tmp_path / "loops.xml"
    path.write_text(LOOPS)
    with pytest.warns(PolybodyWarning, match=r"left out.*'equality5'"):
        both = MujocoModel(path)
    (coupling,) = both.description.couplings
    assert (coupling.joint, coupling.source_joint, coupling.ratio, coupling.offset) == ("ja", "jc", 2, 0.1)
    assert [(c.name, c.model is None) for c in both.ours.mechanism.closures] == [
        ("pin", False), ("glue", True), ("here", True), ("sites", True)
    ]
    q = np.array([0.3, -0.4, 0.7])
    both.move(q)
    poses = kinematics.body_poses(both.ours.mechanism, q)
    residuals = both.data.efc_pos
    start = 0
    for closure in both.ours.mechanism.closures:
        (Ra, pa), (Rb, pb) = (kinematics.frame_pose(f, poses) for f in (closure.a, closure.b))
        np.testing.assert_allclose(residuals[start : start + 3], pa - pb, atol=1e-12)
        if closure.model is None:
            angle = np.arccos((np.trace(Ra.T @ Rb) - 1) / 2)
            assert np.linalg.norm(residuals[start + 3 : start + 6]) == pytest.approx(np.sin(angle / 2), abs=1e-9)
        start += 6 if closure.model is None else 3


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('<mujoco>\n<include file="../secret.xml"/></mujoco>', r"model\.xml:2: <include file=.* leaves the"),
        ('<mujoco>\n<include file="/etc/passwd"/></mujoco>', "a path relative to the file's folder is expected"),
        ('<mujoco><asset>\n<mesh file="../../m.stl"/></asset></mujoco>', r"model\.xml:2: <mesh .* leaves the folder"),
        ('<mujoco><compiler meshdir=".."/></mujoco>', "<compiler meshdir='..'> leaves the folder"),
        ('<mujoco><compiler meshdir="a"/><asset><mesh file="../../m.stl"/></asset></mujoco>', "leaves the folder"),
        ('<mujoco><asset><texture fileup="http://x/y.png"/></asset></mujoco>', "a path relative to the file's folder"),
        ('<!DOCTYPE m [<!ENTITY a "b">]><mujoco/>', "document type declaration"),
        ("<robot/>", "an MJCF file has <mujoco>"),
        ("<mujoco><worldbody><body></mujoco>", "not well-formed XML"),
        ("<mujoco><worldbody><bdy/></worldbody></mujoco>", "MuJoCo rejects the file: .*bdy"),
        ('<mujoco><worldbody><body name="world"><geom size="1"/></body></worldbody></mujoco>', "world"),
    ],
)
def test_hostile_and_broken_files_are_refused(tmp_path: Path, text: str, wanted: str) -> None:
    path = tmp_path / "model.xml"
    path.write_text(text)
    with pytest.raises(InputError, match=wanted):
        read_mjcf(path)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "robot"
    inside.mkdir()
    (tmp_path / "secret.xml").write_text("<mujoco/>")
    (inside / "part.xml").symlink_to(tmp_path / "secret.xml")
    (inside / "model.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    with pytest.raises(InputError, match="leaves the folder"):
        read_mjcf(inside / "model.xml")


def test_includes_below_the_folder_are_followed(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.xml").write_text(
        '<mujoco><worldbody><body name="a"><joint name="j"/><geom size=".1"/></body></worldbody></mujoco>'
    )
    (tmp_path / "model.xml").write_text('<mujoco><include file="parts/arm.xml"/></mujoco>')
    d = read_mjcf(tmp_path / "model.xml")
    assert [j.name for j in d.joints] == ["j"]
    assert d.bodies[0].source == "arm.xml:1"


def test_without_mujoco_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.xml"
    path.write_text("<mujoco/>")
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(InputError, match=r"pip install 'polybody\[mjcf\]'"):
        read_mjcf(path)
    assert mujoco is not None
