"""The page in a real headless Chromium: it loads, shows the arm, a slider moves it, a run plays."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator

import numpy as np
import pytest

import polybody as pb
from browser import Browser, find_chromium
from pinocchio_bridge import robot_files
from polybody.errors import PolybodyWarning
from polybody.studio.record import Record, along_path

viser = pytest.importorskip("viser", reason="the viewer's packages are an extra: pip install polybody[viewer]")

from polybody.studio.viewer import Viewer  # noqa: E402
from polybody.studio.viewer.serve import free_port  # noqa: E402
from polybody.studio.viewer.shapes import body_shapes, inertia_ellipsoid  # noqa: E402

READY = "document.querySelectorAll('canvas').length > 0 && document.body.innerText.includes('Joints')"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine (POLYBODY_CHROMIUM may name one)")
    opened = Browser(program)
    yield opened
    opened.close()


def arm_run() -> Record:
    model = pb.load("stanford-arm")
    start = np.array([0, np.pi / 2, 0, 0, 0, 0])
    path = pb.paths.cycloidal(model, start, [np.pi / 3, np.pi / 3, 0.1, np.pi / 3, np.pi / 3, np.pi / 3], 4.0)
    return along_path(model, path, np.linspace(0, 4, 101), {"path": "cycloidal"})


def painted(browser: Browser) -> np.ndarray:
    """Pixels of the picture left of the controls."""
    import io

    from matplotlib.image import imread

    return imread(io.BytesIO(browser.picture()), format="png")[100:, :880, :3]


def settled(browser: Browser, looks: int = 5) -> np.ndarray:
    """The picture once it has stopped changing, or after so many looks: software rendering can take seconds each."""
    before = painted(browser)
    for _ in range(looks):
        time.sleep(0.5)
        now = painted(browser)
        if (np.abs(now - before).max(axis=2) > 0.05).mean() < 1e-4 and np.ptp(now) > 0.5:
            return now
        before = now
    return before


def test_page_shows_the_arm_and_a_slider_moves_it(browser: Browser) -> None:
    viewer = Viewer(pb.load("stanford-arm"), port=8130)
    try:
        browser.open(viewer.url)
        browser.wait(READY)
        before = settled(browser)
        colored = (before.max(axis=2) - before.min(axis=2)) > 0.3
        assert colored.sum() > 300, "the arm's red and blue parts are seen"
        sliders = browser.script("document.querySelectorAll('[role=slider]').length")
        assert sliders == 6
        element = "document.querySelectorAll('[role=slider]')[1]"
        x, y, width, height = browser.place(element)
        browser.drag((x + width / 2, y + height / 2), (x + width / 2 + 45, y + height / 2))
        for _ in range(50):
            if viewer.panel.q[1] > 0.3:
                break
            time.sleep(0.1)
        assert viewer.panel.q[1] > 0.3, "the second joint followed its slider"
        after = settled(browser)
        assert (np.abs(after - before).max(axis=2) > 0.2).sum() > 200, "and the picture followed"
        assert browser.logs == []
    finally:
        viewer.close()


def test_run_plays_and_scrubs(browser: Browser) -> None:
    record = arm_run()
    viewer = Viewer(record.model, record, port=8140)
    try:
        browser.open(viewer.url)
        browser.wait(READY)
        first = settled(browser)
        button = "[...document.querySelectorAll('button')].find(e => e.innerText.trim() === 'Play')"
        x, y, width, height = browser.place(button)
        browser.click(x + width / 2, y + height / 2)
        for _ in range(150):
            if viewer.panel.time > 1.0:
                break
            time.sleep(0.1)
        assert viewer.panel.time > 1.0, "it plays"
        viewer.panel.playing = False
        viewer.panel.go(4.0)
        np.testing.assert_allclose(viewer.panel.q, record.q[-1], atol=1e-12)
        last = settled(browser)
        assert (np.abs(last - first).max(axis=2) > 0.2).sum() > 300
        assert browser.script("document.body.innerText.includes('Torques')")
        for handle in (viewer.scene.com, viewer.scene.torques, viewer.scene.reactions, *viewer.scene.frames):
            handle.visible = True
        viewer.panel.go(2.0)
        marked = settled(browser)
        assert (np.abs(marked - last).max(axis=2) > 0.2).sum() > 300, "arrows, frames and mass centre appear"
        assert np.linalg.norm(viewer.scene.torques.points[1, 1] - viewer.scene.torques.points[1, 0]) > 0.01
        assert browser.logs == []
    finally:
        viewer.close()


def test_urdf_robot_is_shown_with_its_meshes(browser: Browser) -> None:
    files = [path for path in robot_files() if path.name == "finger_edu.urdf"]
    if not files:
        pytest.skip("example-robot-data is not installed")
    model = pb.load(files[0])
    shapes = body_shapes(model, 1.0)
    assert any(shape.kind == "mesh" for own in shapes for shape in own)
    viewer = Viewer(model, port=8150)
    try:
        browser.open(viewer.url)
        browser.wait(READY)
        picture = settled(browser, 2)
        assert (picture.min(axis=2) < 0.6).sum() > 2000, "meshes are seen"
        assert browser.logs == []
    finally:
        viewer.close()


def test_missing_mesh_is_drawn_as_a_shape_with_one_warning() -> None:
    files = [path for path in robot_files() if path.name == "finger_edu.urdf"]
    if not files:
        pytest.skip("example-robot-data is not installed")
    import dataclasses

    model = pb.load(files[0])
    bodies = tuple(
        dataclasses.replace(b, visuals=tuple(dataclasses.replace(v, mesh="/nowhere/x.stl") for v in b.visuals))
        for b in model.description.bodies
    )
    from polybody.mechanism import mechanism_from

    bare = pb.Model(mechanism_from(dataclasses.replace(model.description, bodies=bodies)))
    with pytest.warns(PolybodyWarning, match="drawn as shapes") as caught:
        shapes = body_shapes(bare, 1.0)
    assert len(caught) == 1
    assert all(own for own in shapes[:-1]), "every body has something to see"


def test_port_in_use_is_said_and_another_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) != port
        viewer = Viewer(pb.load("two-link"), port=port)
        try:
            assert viewer.moved
            assert viewer.port != port
        finally:
            viewer.close()
    with pytest.raises(pb.InputError, match="1 to 65535"):
        Viewer(pb.load("two-link"), port=0)


def test_page_is_served_to_this_machine_only() -> None:
    viewer = Viewer(pb.load("two-link"), port=8160)
    try:
        others = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
        for address in others:
            if ":" in address:
                continue
            with socket.socket() as probe:
                probe.settimeout(2)
                with pytest.raises(OSError):
                    probe.connect((address, viewer.port))
        with socket.socket() as probe:
            probe.connect(("127.0.0.1", viewer.port))
    finally:
        viewer.close()


def test_inertia_ellipsoid_has_the_bodys_moments() -> None:
    """I = m/5 (b² + c²) of a solid ellipsoid with half axes a, b, c."""
    build = pb.Builder("body")
    build.body("box", mass=2.0, com=(0.1, 0.2, 0.3), inertia=(0.3, 0.5, 0.7, 0.05, -0.02, 0.01))
    build.joint("root_joint", "floating", "world", "box")
    body = build.model().mechanism.bodies[0]
    found = inertia_ellipsoid(body)
    assert found is not None
    (a, b, c), pose = found
    moments = 2.0 / 5 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    R = pose[:3, :3]
    np.testing.assert_allclose(R @ np.diag(moments) @ R.T, body.inertia, atol=1e-12)
    assert abs(np.linalg.det(R) - 1) < 1e-12
