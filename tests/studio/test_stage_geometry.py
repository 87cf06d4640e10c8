"""Geometry of the page and of pictures against SciPy and trimesh, whose imports a first view does without."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from polybody.studio.stage.shapes import hull, load_mesh, read_stl
from polybody.studio.stage.stage import quaternions
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
