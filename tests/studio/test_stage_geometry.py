"""Geometry of the page and of pictures against SciPy and trimesh, whose imports a first view does without."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import polybody as pb
from pinocchio_bridge import robot_file
from polybody.errors import InputError
from polybody.mechanism.kinematics import body_poses
from polybody.studio.stage import collada
from polybody.studio.stage.meshes import CREASE, ball, creased, hull_points, reduced, triangles, welded
from polybody.studio.stage.shapes import Shape, find_mesh, hull, load_mesh, read_stl
from polybody.studio.stage.stage import Stage, quaternions
from polybody.studio.stage.welding import distinct, equal, keys
from polybody.studio.viewer.posing import _angles, _quaternion


def test_quaternions_turn_as_their_matrices_do() -> None:
    rng = np.random.default_rng(1)
    whole, half = Rotation.from_quat(rng.normal(size=(500, 4))), Rotation.from_rotvec(np.pi * np.eye(3))
    turns = Rotation.concatenate([whole, half, Rotation.identity(1)])
    found = quaternions(turns.as_matrix().reshape(4, 126, 3, 3))
    assert found.shape == (4, 126, 4)
    np.testing.assert_allclose(Rotation.from_quat(found.reshape(-1, 4)).as_matrix(), turns.as_matrix(), atol=1e-14)
    assert quaternions(np.zeros((0, 3, 3))).shape == (0, 4)


def test_angles_of_the_page_are_turns_about_fixed_axes() -> None:
    angles = np.random.default_rng(2).uniform(-1.5, 1.5, (200, 3))
    wanted = Rotation.from_euler("xyz", angles)
    np.testing.assert_allclose(Rotation.from_quat(_quaternion(angles)).as_matrix(), wanted.as_matrix(), atol=1e-14)
    np.testing.assert_allclose(_angles(_quaternion(angles)), angles, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_hulls_are_those_of_qhull(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(4 + 5 * seed, 2))
    found, wanted = hull(points), points[ConvexHull(points).vertices]
    start = int(np.argmin(np.linalg.norm(wanted - found[0], axis=1)))
    np.testing.assert_array_equal(found, np.roll(wanted, -start, axis=0))  # counter-clockwise, both


def test_hull_of_a_line_and_of_squares_with_points_on_edges() -> None:
    assert len(hull(np.array([[0.0, 0], [1, 1], [2, 2], [3, 3]]))) < 3
    grid = np.array([[x, y] for x in range(3) for y in range(3)], dtype=float)
    np.testing.assert_array_equal(hull(grid), [[0, 0], [2, 0], [2, 2], [0, 2]])


def test_binary_stl_is_what_trimesh_reads(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    made = trimesh.creation.icosphere(2, radius=0.3)
    made.export(tmp_path / "ball.STL")
    found, wanted = read_stl(str(tmp_path / "ball.STL")), trimesh.load(tmp_path / "ball.STL", process=False)
    assert found is not None
    np.testing.assert_array_equal(found.vertices[found.faces], np.asarray(wanted.vertices)[wanted.faces])
    (tmp_path / "text.stl").write_text(trimesh.exchange.stl.export_stl_ascii(made))
    assert read_stl(str(tmp_path / "text.stl")) is None
    assert len(load_mesh(str(tmp_path / "text.stl")).faces) == len(made.faces)
    data = (tmp_path / "ball.STL").read_bytes()
    (tmp_path / "cut.stl").write_bytes(data[:-7])
    assert read_stl(str(tmp_path / "cut.stl")) is None


def test_a_page_without_meshes_needs_neither_trimesh_nor_scipy(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    text = ("import sys, polybody as pb; page = pb.view(pb.load('stewart'), port=23456, browser=False); page.close(); "
            "print(*(x in sys.modules for x in ('trimesh', 'scipy.spatial')))")  # fmt: skip
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, check=True,
                          cwd=tmp_path)  # fmt: skip
    assert told.stdout.splitlines()[-1] == "False False"


DAE = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><unit name="centimeter" meter="0.01"/><up_axis>Z_UP</up_axis></asset>
  <library_effects><effect id="red"><profile_COMMON><technique sid="common"><phong><diffuse><color>1 0.2 0 1</color>
    </diffuse></phong></technique></profile_COMMON></effect></library_effects>
  <library_materials><material id="paint"><instance_effect url="#red"/></material></library_materials>
  <library_geometries><geometry id="sheet" name="sheet"><mesh>
    <source id="places"><float_array id="numbers" count="18">0 0 0 1 0 0 1 2 0 0 2 0 -1 1 0 9 9 9</float_array>
      <technique_common><accessor source="#numbers" count="6" stride="3"><param name="X" type="float"/>
      <param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
    <vertices id="corners"><input semantic="POSITION" source="#places"/></vertices>
    <polylist material="m" count="1"><input semantic="VERTEX" source="#corners" offset="0"/>
      <input semantic="NORMAL" source="#places" offset="1"/><vcount>5</vcount><p>0 0 1 0 2 0 3 0 4 0</p></polylist>
  </mesh></geometry></library_geometries>
  <library_visual_scenes><visual_scene id="scene" name="scene">
    <node><translate>0 0 3</translate><rotate>0 0 1 90</rotate><node><scale>2 1 1</scale>
      <instance_geometry url="#sheet"><bind_material><technique_common><instance_material symbol="m" target="#paint"/>
      </technique_common></bind_material></instance_geometry></node></node>
    <node><matrix>-1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</matrix><instance_geometry url="#sheet"/></node>
  </visual_scene></library_visual_scenes>
  <scene><instance_visual_scene url="#scene"/></scene>
</COLLADA>"""


def test_collada_polygons_are_fans_moved_by_their_nodes_in_the_unit_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "sheet.dae").write_text(DAE)
    found = collada.read(str(tmp_path / "sheet.dae"))
    assert found is not None
    assert found.colors is not None
    outline = np.array([[0.0, 0, 0], [1, 0, 0], [1, 2, 0], [0, 2, 0], [-1, 1, 0]])
    fans = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4]])
    turned = np.column_stack([-outline[:, 1], 2 * outline[:, 0], outline[:, 2] + 3]) / 100
    mirrored = outline * [-1, 1, 1] / 100
    corner = found.vertices[found.faces]
    halves = sorted((corner[:3], corner[3:]), key=lambda half: -half[0, 0, 2])
    np.testing.assert_allclose(halves[0], turned[fans], atol=1e-15)
    np.testing.assert_allclose(halves[1], mirrored[fans][:, ::-1], atol=1e-15)  # its outer side is still +z
    told = found.colors[found.faces][:, 0]
    assert {tuple(int(x) for x in row) for row in told} == {(255, 51, 0), (102, 102, 102)}


@pytest.mark.parametrize(("old", "new", "told"), [
    ("<p>0 0 1 0", "<p>0 0 77 0", "beyond the 6"),
    ("<p>0 0 1 0", "<p>0 0 -1 0", "beyond the 6"),
    ("<p>0 0 1 0", "<p>0 0 one 0", "could not be read"),
    ("<vcount>5", "<vcount>4", "counts 4 corners of 5"),
    ('target="#paint"', 'target="#nothing"', "'#nothing', which is not in the file"),
    ("18\">0 0 0", "18\">0 nan 0", "not finite"),
    ('meter="0.01"', 'meter="-1"', "expected a length"),
    ("<translate>0 0 3", "<translate>0 3", "of 2 numbers; expected 3"),
    ('stride="3"', 'stride="x"', "stride='x'; expected a whole number"),
    ('stride="3"', 'stride="99999999999999999999"', "expected a whole number"),
    ('offset="1"', 'offset="-1"', "offset='-1'; expected a whole number"),
    ('"POSITION" source="#places"', '"POSITION" source="#corners"', "without <accessor>"),
    ("<vcount>5", f"<vcount>{4 * f'{2**62} '}5", "counts more corners than"),  # their sum leaves 64 bits
    ("<scale>2 1 1", "<scale>1e300 1e300 1</scale><scale>1e300 1 1", "farther away"),
    ("<instance_geometry url=\"#sheet\"/>", "<instance_geometry url=\"#sheet\"/>" * 40, "more than 100 triangles"),
    ("<COLLADA", "<!DOCTYPE x [<!ENTITY e \"e\">]><COLLADA", "document type declaration"),
    ("</COLLADA>", "", "not well-formed XML"),
])  # fmt: skip
def test_damaged_collada_says_where(tmp_path: Path, old: str, new: str, told: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(collada, "MESH_FACES", 100)
    path = tmp_path / "sheet.dae"
    assert old in DAE
    path.write_text(DAE.replace(old, new))
    with pytest.raises(InputError, match=f"sheet.dae.*{told}"):
        collada.read(str(path))
    with pytest.warns(UserWarning, match=told):
        assert load_mesh(str(path)) is None


def test_meshes_of_robots_are_what_trimesh_reads() -> None:
    trimesh = pytest.importorskip("trimesh")
    files = sorted((robot_file("ur5_robot.urdf").parents[1] / "meshes" / "ur5" / "visual").glob("*.dae"))
    assert len(files) == 7
    for file in files[:2]:
        found, wanted = collada.read(str(file)), trimesh.load(file, process=False).to_geometry()
        assert found is not None
        mine, other = (np.asarray(x.vertices)[x.faces].reshape(-1, 9) for x in (found, wanted))
        np.testing.assert_allclose(np.sort(mine, axis=0), np.sort(other, axis=0), atol=2e-7)  # which has float32


def test_a_textured_file_without_its_picture_has_one_colour_per_vertex_and_its_unit(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    pictured = DAE.replace("<color>1 0.2 0 1</color>", '<texture texture="s" texcoord="t"/>')
    (tmp_path / "sheet.dae").write_text(pictured)
    assert collada.read(str(tmp_path / "sheet.dae")) is None
    mesh = load_mesh(str(tmp_path / "sheet.dae"))
    np.testing.assert_allclose(np.ptp(mesh.bounds, axis=0), [0.03, 0.04, 0.03], atol=1e-7)  # in metres all the same
    shown = triangles(Shape("mesh", (), np.eye(4), mesh=mesh))
    assert shown.colors is None or shown.colors.shape == shown.positions.shape


def test_normals_are_means_of_the_faces_within_the_crease_angle_on_a_rough_ball() -> None:
    trimesh = pytest.importorskip("trimesh")
    made = trimesh.creation.icosphere(2)
    rough = np.asarray(made.vertices) * np.random.default_rng(3).uniform(0.8, 1.2, (len(made.vertices), 1))
    faces = np.vstack([made.faces[:150], made.faces[150:]])
    found = creased(rough, faces)
    np.testing.assert_array_equal(found.positions[found.faces], rough[faces].astype(np.float32))
    corner = rough[faces]
    unit = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    wanted = np.zeros((len(faces), 3, 3))
    for f, face in enumerate(faces):
        for k, point in enumerate(face):
            for g in np.flatnonzero((faces == point).any(axis=1)):
                at = int(np.flatnonzero(faces[g] == point)[0])
                a, b = (corner[g, (at + s) % 3] - corner[g, at] for s in (1, 2))
                angle = np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
                wanted[f, k] += angle * unit[g] * (unit[f] @ unit[g] >= CREASE)
    wanted /= np.linalg.norm(wanted, axis=2)[..., None]
    np.testing.assert_allclose(found.normals[found.faces], wanted, atol=0.02)  # corners within 1/64 share a normal
    smooth = creased(np.asarray(made.vertices), faces)
    assert len(smooth.positions) == len(made.vertices)


def test_a_mesh_that_repeats_every_corner_is_reduced_and_shaded_as_one_that_does_not() -> None:
    made = ball(1.0, rings=40)
    rng = np.random.default_rng(7)
    faces = rng.permutation(made.faces.astype(np.int64))
    once = collada.Corners(made.positions.astype(float), faces)
    again = collada.Corners(once.vertices[faces].reshape(-1, 3), np.arange(faces.size).reshape(-1, 3))
    assert len(welded(again).vertices) == len(welded(once).vertices) < len(again.vertices) / 5
    few, other = reduced(once, 900), reduced(again, 900)
    np.testing.assert_allclose(few.vertices[few.faces], other.vertices[other.faces], atol=1e-12)
    for one, two in ((few, other), (once, again)):
        smooth, same = creased(*one), creased(*two)
        np.testing.assert_allclose(smooth.positions[smooth.faces], same.positions[same.faces], atol=1e-6)
        np.testing.assert_allclose(smooth.normals[smooth.faces], same.normals[same.faces], atol=0.02)
        outward = smooth.positions / np.linalg.norm(smooth.positions, axis=1)[:, None]
        assert np.einsum("ij,ij->i", smooth.normals, outward).min() > 0.97


def test_numbers_are_told_apart_and_come_in_the_order_of_their_first_rows() -> None:
    rng = np.random.default_rng(11)
    for count, values in ((0, 1), (1, 1), (5, 1), (20_000, 7), (20_000, 6_000), (20_000, 2**40)):
        key = rng.integers(0, values, count).astype(np.uint64) * np.uint64(2**23)  # alike in their last bits
        first, place = equal(key)
        np.testing.assert_array_equal(key[first][place], key)
        assert len(np.unique(key[first])) == len(first)
        assert key[first].tolist() == list(dict.fromkeys(key.tolist()))
        np.testing.assert_array_equal(distinct(key), np.unique(key))
    rows = rng.integers(-3, 3, (5_000, 3))
    labels = equal(keys(*rows.T))[1]
    np.testing.assert_array_equal(labels, equal(keys(*(0.1 * rows).T))[1])
    np.testing.assert_array_equal(labels, equal(keys(*np.copysign(0.1 * rows, rows - 0.5).T))[1])  # −0.0 is 0.0
    pairs = set(zip(labels.tolist(), map(tuple, rows), strict=True))
    assert len(set(map(tuple, rows))) == labels.max() + 1 == len(pairs)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e13, 1e30])
def test_points_of_any_size_are_told_apart_and_one_that_no_face_spans_does_not_spoil_the_grid(scale: float) -> None:
    made = ball(1.0, rings=40)
    once = collada.Corners(scale * made.positions.astype(float), made.faces.astype(np.int64))
    few = reduced(once, 900)
    assert 300 < len(few.faces) <= 900
    np.testing.assert_allclose(np.ptp(few.vertices, axis=0), 2 * scale, rtol=0.1)
    far = np.vstack([once.vertices, np.full((1, 3), 1e6 * scale)])
    for corner in ([len(far) - 1] * 3, [0, len(far) - 1, 0]):  # without area, far away
        faces = np.vstack([once.faces, [corner]])
        for colors in (None, np.full((len(far), 3), 7, np.uint8)):
            other = reduced(collada.Corners(far, faces, colors), 900)
            np.testing.assert_allclose(np.ptp(other.vertices, axis=0), 2 * scale, rtol=0.1)
            assert 300 < len(other.faces) <= 900
    nothing = reduced(collada.Corners(np.zeros((3_000, 3)), np.arange(3_000).reshape(-1, 3)), 900)
    assert nothing.faces.shape == (0, 3)
    assert triangles(Shape("mesh", (), np.eye(4), mesh=nothing)).faces.shape == (0, 3)


def test_the_farthest_vertex_is_found_in_whichever_block_it_is() -> None:
    rng = np.random.default_rng(13)
    points = rng.uniform(-1, 1, (3_000, 3))
    directions = rng.normal(size=(7, 3))
    for at in (0, 1023, 1024, 2999):
        moved = points.copy()
        moved[at] = [5.0, -6.0, 7.0]
        found = hull_points(collada.Corners(moved, np.arange(3_000).reshape(-1, 3)), np.eye(4), directions)
        np.testing.assert_allclose((found @ directions.T).max(axis=0), (moved @ directions.T).max(axis=0), rtol=1e-6)


def test_points_of_the_hull_bound_a_moved_shape_along_the_axes() -> None:
    rng = np.random.default_rng(5)
    points = rng.normal(size=(40, 3))
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = Rotation.from_rotvec([0.4, 1.0, -0.3]).as_matrix() @ np.diag([1, 2, 3]), [1, 2, 3]
    faces = rng.integers(0, 30, (60, 3))  # nobody uses the last ten
    found = hull_points(collada.Corners(points, faces), pose, np.vstack([np.eye(3), -np.eye(3)]))
    moved = points[np.unique(faces)] @ pose[:3, :3].T + pose[:3, 3]
    np.testing.assert_allclose(found.min(axis=0), moved.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.max(axis=0), moved.max(axis=0), atol=1e-12)


def test_meshes_are_found_in_the_folders_above_and_in_those_of_ros(tmp_path: Path, monkeypatch: Any) -> None:
    package = tmp_path / "ws" / "arm"
    for place in (package / "urdf", package / "meshes", tmp_path / "ros" / "hand"):
        place.mkdir(parents=True)
    source, upper = package / "urdf" / "arm.urdf", package / "meshes" / "upper.stl"
    palm = tmp_path / "ros" / "hand" / "palm.stl"
    for file in (source, upper, palm):
        file.touch()
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "ros"))
    link = tmp_path / "linked.urdf"
    link.symlink_to(source)
    wanted = {"package://arm/meshes/upper.stl": upper, "../meshes/upper.stl": upper, upper.as_uri(): upper,
              str(upper): upper, "package://hand/palm.stl": palm, "package://meshes/upper.stl": upper,
              "package://arm/none.stl": None, "upper.stl": None, "": None}  # fmt: skip
    for name, file in wanted.items():
        for given in (source, link):
            found = find_mesh(name, str(given))
            assert (found is None) == (file is None), name
            assert file is None or Path(str(found)).samefile(file), name
    assert find_mesh("package://palm.stl", None) is None
    monkeypatch.chdir(package / "meshes")
    assert find_mesh("upper.stl", None) == "upper.stl"


def test_stage_bounds_hold_every_configuration_shown() -> None:
    for name in ("stewart", "stanford-arm", "humanoid"):
        model = pb.load(name)
        rng = np.random.default_rng(3)
        shown = np.array([model.random_configuration(rng) for _ in range(4)])
        stage, points = Stage(model, shown), [Stage(model, shown).figures[-1].hull]
        for q in shown:
            for figure, (R, p) in zip(stage.figures, body_poses(model.mechanism, q), strict=False):
                points.append(figure.hull @ R.T + p)
        every = np.concatenate(points)
        np.testing.assert_allclose(stage.low, every.min(axis=0), atol=1e-12)
        np.testing.assert_allclose(stage.high, every.max(axis=0), atol=1e-12)
