"""Films and pictures without a screen: what is drawn is where the model says, and files hold what was asked for."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.studio.record import Record, along_path

pytest.importorskip("vtkmodules", reason="the renderer's packages are an extra: pip install polybody[render]")
pytest.importorskip("trimesh", reason="the renderer's packages are an extra: pip install polybody[render]")

from polybody.studio.render import render
from polybody.studio.render.raster import Raster
from polybody.studio.stage.collada import Corners
from polybody.studio.stage.meshes import ball, box, creased, cylinder, reduced
from polybody.studio.stage.stage import Stage


@pytest.fixture(scope="module")
def swing() -> Record:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pb.load("two-link")
    path = pb.paths.cycloidal(model, [0.0, 0.0], [1.2, -0.8], 1.0)
    return along_path(model, path, np.linspace(0, 1, 21), {})


def opened(path: Path) -> Any:
    from PIL import Image

    return Image.open(path)


def test_a_ball_is_seen_where_the_camera_projects_it() -> None:
    build = pb.Builder("balls")
    build.body("ball", mass=1.0, inertia=(0.01, 0.01, 0.01))
    build.joint("slide", "prismatic", "world", "ball", axis=(1, 0, 0), limits=(-0.5, 0.5))
    build.frame("end", "ball")
    model = build.model()
    states = np.array([[-0.5], [0.0], [0.5]])
    raster = Raster(Stage(model, states), 160, 120, view=(-np.pi / 2, 0.0), floor=False)
    try:
        columns = []
        for q in states:
            picture = raster.picture(q).astype(int)
            blue = picture[..., 2] - picture[..., 0] > 60
            columns.append(np.flatnonzero(blue.any(axis=0)).mean())
        assert columns[0] < columns[1] < columns[2]
        assert columns[1] == pytest.approx((columns[0] + columns[2]) / 2, abs=2.0)
        assert columns[1] == pytest.approx(79.5, abs=2.0), "the middle of the way is in the middle of the picture"
    finally:
        raster.close()


@pytest.mark.parametrize("suffix", [".gif", ".webp"])
def test_film_has_the_pictures_and_the_pace_asked_for(swing: Record, tmp_path: Path, suffix: str) -> None:
    both = [swing, swing]
    path = render(swing.model, tmp_path / f"swing{suffix}", both, size=(120, 90), fps=5, speed=0.5, trail="tip")
    film = opened(path)
    assert film.n_frames == 11
    assert film.size == (120, 90)
    first = np.asarray(film.convert("RGB")).astype(int)
    film.seek(10)
    last = np.asarray(film.convert("RGB")).astype(int)
    if suffix == ".gif":
        assert film.info["duration"] == 200
    assert (np.abs(first - last).max(axis=2) > 60).sum() > 40, "it moves"


def test_mp4_is_written_by_the_wheel_s_ffmpeg_and_reads_back(swing: Record, tmp_path: Path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = render(swing.model, tmp_path / "swing.mp4", [swing], size=(128, 96), fps=10)
    frames = ffmpeg.read_frames(str(path))
    facts = next(frames)
    assert tuple(facts["size"]) == (128, 96)
    assert sum(1 for _ in frames) == 11


def test_picture_of_a_time_is_the_picture_of_its_configuration(swing: Record, tmp_path: Path) -> None:
    at = render(swing.model, tmp_path / "at.png", [swing], size=(120, 90), at=0.5, theme="dark")
    stage = Stage(swing.model, swing.q)
    raster = Raster(stage, 120, 90, theme="dark")
    try:
        np.testing.assert_array_equal(np.asarray(opened(at).convert("RGB")), raster.picture(swing.q[10]))
    finally:
        raster.close()


def test_what_cannot_be_rendered_is_told(swing: Record, tmp_path: Path) -> None:
    for options, words in (
        ({"path": "x.avi"}, "videos in"), ({"path": "x.mp4", "records": []}, "a video shows a run"),
        ({"path": "no/x.mp4"}, "does not exist"), ({"size": (0, 5)}, "width and height"),
        ({"fps": np.nan}, "fps is nan"),
        ({"theme": "blue"}, "light, dark"), ({"speed": 1e-9}, "more than 36000"), ({"size": (101, 99)}, "even numbers"),
    ):  # fmt: skip
        given = {"path": "x.mp4", "records": [swing], **options}
        path = tmp_path / given.pop("path")
        with pytest.raises(pb.InputError, match=words):
            render(swing.model, path, given.pop("records"), **given)


def test_normals_are_sharp_at_a_box_and_smooth_on_a_cylinder_and_a_ball() -> None:
    assert len(np.unique(np.round(box((1, 2, 3)).normals, 6), axis=0)) == 6
    side = cylinder(1.0, 2.0)
    radial = np.abs(side.normals[:, 2]) < 0.5
    outward = side.positions[radial, :2] / np.linalg.norm(side.positions[radial, :2], axis=1, keepdims=True)
    np.testing.assert_allclose(side.normals[radial, :2], outward, atol=1e-5)
    sphere = ball(2.0)
    again = creased(sphere.positions.astype(float), sphere.faces)
    assert (np.einsum("ij,ij->i", again.normals, again.positions) > 1.9).all()


def test_reduced_mesh_keeps_its_box_and_its_area_nearly() -> None:
    fine = ball(1.0, rings=60)
    small = reduced(Corners(fine.positions, fine.faces), 1500)
    assert 500 < len(small.faces) <= 1500
    np.testing.assert_allclose(np.ptp(small.vertices, axis=0), np.ptp(fine.positions, axis=0), rtol=0.03)

    def area(mesh: Corners) -> float:
        a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
        return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2)

    assert area(small) == pytest.approx(4 * np.pi, rel=0.05)


def test_lines_of_the_floor_are_at_whole_cells_within_its_disc_and_each_fifth_is_thicker(swing: Record) -> None:
    stage = Stage(swing.model, swing.q)
    raster = Raster(stage, 64, 48)
    middle, radius, cell = np.array([0.2, -0.1, 0.05]), 2.0, 0.25
    places = cell * np.arange(-9, 10)
    try:
        quads, shades, seen = raster._grid_lines(raster.across, raster.ahead, places, middle, radius, cell)
    finally:
        raster.close()
    assert quads.shape == (19, 24, 4, 3)
    assert shades.shape == (19, 24, 4)
    np.testing.assert_array_equal(seen, np.abs(places - middle @ raster.across) < 0.9 * radius)
    across = (quads @ raster.across)[seen]
    np.testing.assert_allclose(across.mean(axis=(1, 2)), places[seen], atol=1e-12)
    thick = np.ptp(across, axis=(1, 2))
    fifth = np.arange(-9, 10)[seen] % 5 == 0
    assert thick[fifth].min() > 2 * thick[~fifth].max() > 0
    far = np.linalg.norm((quads - middle)[seen] @ np.column_stack([raster.across, raster.ahead]), axis=-1)
    assert 0.8 * radius < far.max() <= 0.9 * radius + thick.max()
    np.testing.assert_allclose((quads - middle) @ stage.up, -0.8e-3 * stage.size, atol=1e-12)
    wanted = 230 * np.maximum(0, 1 - (far / (0.9 * radius)) ** 1.5)
    np.testing.assert_allclose(shades[seen], wanted, atol=2.0)  # of the line's middle
    ends = quads[seen][:, :, 1] - quads[seen][:, :, 0]
    assert (ends @ raster.ahead > 0).all()  # pieces follow each other


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".jpeg"])
def test_a_picture_is_what_the_raster_drew_and_is_put_in_place_whole(
    swing: Record, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = render(swing.model, tmp_path / f"swing{suffix}", [swing], size=(120, 90), at=0.5)
    stage = Stage(swing.model, swing.q)
    raster = Raster(stage, 120, 90)
    try:
        wanted = raster.picture(swing.q[10]).astype(int)
    finally:
        raster.close()
    assert np.abs(np.asarray(opened(path).convert("RGB")).astype(int) - wanted).mean() <= 3 * (suffix != ".png")
    before = path.read_bytes()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        render(swing.model, path, [swing], size=(60, 40), at=0.0)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
