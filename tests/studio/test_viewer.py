"""The page in a real headless Chromium: every control is operated, and the page itself is asked what it shows."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable

import numpy as np
import pytest

import polybody as pb
from browser import Browser
from pinocchio_bridge import robot_files
from polybody.errors import PolybodyWarning

pytest.importorskip("websockets", reason="the viewer's packages are an extra: pip install polybody[viewer]")
pytest.importorskip("trimesh", reason="the viewer's packages are an extra: pip install polybody[viewer]")

from polybody.studio.stage.shapes import body_shapes, inertia_ellipsoid
from polybody.studio.stage.stage import Stage
from polybody.studio.viewer.serve import Viewer, listening
from viewer_page import page_poses, pixels, report, wait_for


def test_page_shows_the_arm_a_slider_moves_it_and_the_bodies_are_where_the_model_says(
    browser: Browser, show: Callable[..., Viewer]
) -> None:
    model = pb.load("stanford-arm")
    viewer = show(model)
    before = pixels(browser)
    colored = (before.max(axis=2) - before.min(axis=2)) > 0.3
    assert colored.sum() > 300, "the arm's coloured parts are seen"
    assert (
        browser.script(
            'document.querySelectorAll(\'#panel input[aria-label$=", m"], #panel input[aria-label$=", rad"]\').length'
        )
        == 6
    )
    labels = browser.script("[...document.querySelectorAll('.range')].map(e => e.textContent)")
    assert labels[2].endswith(" m"), "the prismatic joint's range is in metres"
    assert labels[1].endswith(" rad")
    x, y, width, height = browser.place("document.querySelectorAll('[data-coordinate] input')[1]")
    browser.drag((x + width / 2, y + height / 2), (x + width / 2 + 30, y + height / 2))
    wait_for(lambda: abs(viewer.q[1]) > 0.3)
    wait_for(lambda: np.allclose(page_poses(browser), Stage(model).poses(viewer.q), atol=1e-5))
    after = pixels(browser)
    assert (np.abs(after - before).max(axis=2) > 0.2).sum() > 200, "and the picture followed"
    browser.press("#reset")
    wait_for(lambda: np.allclose(viewer.q, viewer.posing.start))


def test_loops_stay_closed_under_the_sliders_and_what_cannot_be_reached_is_told(
    browser: Browser, show: Callable[..., Viewer]
) -> None:
    model = pb.load("stewart")
    viewer = show(model)
    kinds = browser.script("polybody.data.coordinates.map(c => [c.key, c.kind])")
    assert [key for key, kind in kinds if kind == "independent"] == [f"leg{k}" for k in range(1, 7)]
    browser.slide("[data-coordinate=leg1] input", 0.2)
    wait_for(lambda: viewer.q[model.joint_slices()["leg1"][0]] == pytest.approx(0.2))
    assert np.abs(model.constraints.residual(viewer.q)).max() < 1e-9
    wait_for(lambda: np.allclose(page_poses(browser), viewer.stage.poses(viewer.q), atol=1e-5))
    assert browser.script(
        "document.querySelector('[data-coordinate=\"platform_joint.z\"] output').textContent"
    ).endswith(" m")

    viewer.close()
    planar = pb.load("3-rrr")
    viewer = show(planar)
    browser.slide("[data-coordinate=phi1_1] input", 3.0)
    text = browser.wait("(t => t.includes('cannot be reached') && t)(document.getElementById('notice').textContent)")
    assert "phi1_1 = 3" in text
    assert browser.script("document.querySelector('[data-coordinate=phi1_1]').classList.contains('bad')")
    assert np.abs(planar.constraints.residual(viewer.q)).max() < 1e-9
    assert viewer.q[0] < 1.0, "it stays where it last closed"


def test_dragging_a_frame_is_followed_by_inverse_kinematics_and_loops_assemble(
    browser: Browser, show: Callable[..., Viewer]
) -> None:
    model = pb.load("stewart")
    viewer = show(model)
    before = model.pose(viewer.q, "tool")
    browser.choose("#drag-frame", "tool")
    at = browser.wait(
        "polybody.scene.handle.hidden ? null : polybody.project([...polybody.scene.handle.matrix].slice(12, 15))"
    )
    browser.drag((at[0], at[1]), (at[0] + 40, at[1] - 25))
    wait_for(lambda: np.linalg.norm(model.pose(viewer.q, "tool")[:3, 3] - before[:3, 3]) > 0.03)
    time.sleep(0.5)
    assert np.abs(model.constraints.residual(viewer.q)).max() < 1e-9
    target = browser.script("(() => { const m = polybody.scene.handle.matrix; return [m[12], m[13], m[14]]; })()")
    wait_for(lambda: np.allclose(model.pose(viewer.q, "tool")[:3, 3], target, atol=1e-3))
    q = viewer.q.copy()
    browser.script("document.querySelector('#configuration-name').value = 'lifted'")
    browser.press("#save-configuration")
    browser.wait("[...document.querySelectorAll('#configuration option')].some(o => o.value === 'lifted')")
    browser.press("#reset")
    wait_for(lambda: not np.allclose(viewer.q, q))
    browser.choose("#configuration", "lifted")
    wait_for(lambda: np.allclose(viewer.q, q, atol=1e-7))
    browser.press("#random")
    wait_for(lambda: not np.allclose(viewer.q, q, atol=1e-3))
    browser.press("#mobility")
    browser.wait("document.querySelectorAll('[data-motion]').length >= 6")
    browser.press("[data-motion='0']")
    first = browser.wait("polybody.motion && [...polybody.state.poses]")
    browser.wait(f"polybody.state.poses.some((x, k) => Math.abs(x - {json.dumps(first)}[k]) > 0.01)")
    browser.press("#stop-motion")


def test_internal_loads_of_two_arms_with_an_object_are_shown(browser: Browser, show: Callable[..., Viewer]) -> None:
    model = pb.load("two-arms")
    viewer = show(model)
    browser.press("#internal")
    browser.wait("document.querySelectorAll('[data-motion]').length === 3")
    browser.press("[data-motion='1']")
    browser.wait("polybody.report().arrows > 0 && polybody.report().layers['internal loads'] > 0")
    arrows = np.array(browser.script("[...polybody.analyses.motions[1].layer.values]")).reshape(-1, 6)
    names, basis = model.actuation.internal_loads(viewer.q)
    sizes = np.sort(np.linalg.norm(arrows[:, 3:], axis=1))[-len(names) :]
    np.testing.assert_allclose(sizes, np.sort(np.abs(basis[:, 1])) / np.abs(basis[:, 1]).max(), atol=1e-6)
    browser.press("#stop-motion")


def test_everything_that_can_be_shown_is_shown_with_its_scale(browser: Browser, show: Callable[..., Viewer]) -> None:
    model = pb.load("stewart")
    viewer = show(model)
    for key in browser.script("[...document.querySelectorAll('[data-show]')].map(e => e.dataset.show)"):
        browser.script(f"document.querySelector('[data-show=\"{key}\"]').click()")
    browser.wait("Object.keys(polybody.report().layers).length === 6")
    state = report(browser)
    assert state["layers"] == {"joint torques": 15, "joint forces": 9, "reaction forces": 12, "reaction moments": 12,
                               "closure forces": 6, "closure moments": 6}  # fmt: skip
    assert state["arrows"] > 40
    browser.wait("document.querySelector('[data-scale=\"closure forces\"]')  !== null")
    legends = browser.script(
        "Object.fromEntries([...document.querySelectorAll('[data-scale]')].map("
        "e => [e.dataset.scale, e.innerText.trim()]))"
    )
    assert legends["closure forces"].endswith("N · closure forces")
    assert "1 : " in legends["ellipsoids"]
    assert " m" in legends["length"]
    layer = np.array(browser.script("[...polybody.state.layers['closure forces']]")).reshape(-1, 6)
    held = model.reactions(viewer.q, np.zeros(model.nv), np.zeros(model.nv))
    np.testing.assert_allclose(layer[:, 3:], [held[f"ball{k}"][3:] for k in range(1, 7)], atol=1e-3)
    forces = [np.array(browser.script(f"[...polybody.state.layers['{key}']]")).reshape(-1, 6)[:, 3:]
              for key in ("joint forces", "reaction forces", "closure forces")]  # fmt: skip
    most = [np.linalg.norm(one, axis=1).max() for one in forces]
    assert min(most) > 0.1 * max(most), "kinds of one unit within a factor of ten"
    assert 0.74 * max(most) <= state["scales"]["closure forces"] <= 1.9 * max(most), "share a round scale near it"
    assert state["scales"]["closure forces"] == state["scales"]["reaction forces"] == state["scales"]["joint forces"]
    for control in ("#arrow-length", "#ellipsoid-scale"):
        browser.slide(control, -0.5)
    browser.choose("#coloring", "body")
    for key in "dgtajmil":  # theme, grid, transparent, frames, axes, mass centre, inertias, labels
        browser.key(key)
    assert report(browser)["theme"] != state["theme"]
    browser.key("?")
    assert not browser.script("document.getElementById('help').hidden")
    browser.key("Escape")
    browser.key("c")
    assert browser.script("document.getElementById('panel').classList.contains('away')")
    browser.key("c")
    browser.press("#picture")
    browser.wait("pb.lastDownload && pb.lastDownload.type === 'image/png' && pb.lastDownload.size > 5000")


def test_picked_things_tell_their_parameters_and_live_values(browser: Browser, show: Callable[..., Viewer]) -> None:
    model = pb.load("stanford-arm")
    viewer = show(model)
    at = browser.script("polybody.project(pb.math.point(polybody.scene.bodies[2], polybody.data.bodies[2].com))")
    browser.click(at[0], at[1])
    picked = browser.wait("polybody.report().selected")
    assert picked["kind"] in ("body", "joint")
    joint = model.mechanism.joints[2]
    browser.script(f"document.querySelector('[data-pick=\"joint {joint.name}\"]').click()")
    browser.slide(f"[data-coordinate={joint.name}] input", 0.12)
    wait_for(lambda: viewer.q[2] == pytest.approx(0.12))
    text = browser.wait("(t => t.includes('0.12') && t)(document.getElementById('card').innerText)")
    for words in ("prismatic", "position", "reaction force", " N", " m"):
        assert words in text
    tau = float(pb.Model.inverse_dynamics(model, viewer.q, np.zeros(6), np.zeros(6))[2])
    shown = browser.script("polybody.state.values.forces[2]")
    assert shown == pytest.approx(tau, rel=1e-5)
    browser.script("document.querySelector('[data-pick^=\"body\"]').click()")
    assert "mass" in browser.script("document.getElementById('card').innerText")
    browser.key("Escape")
    assert browser.script("document.getElementById('card').hidden")


def test_robot_stands_on_the_floor_and_missing_meshes_are_labelled_boxes_with_one_warning(
    browser: Browser, show: Callable[..., Viewer]
) -> None:
    files = [path for path in robot_files() if path.name == "finger_edu.urdf"]
    if not files:
        pytest.skip("example-robot-data is not installed")
    import dataclasses

    model = pb.load(files[0])
    shapes = body_shapes(model, 1.0)
    assert any(shape.kind == "mesh" for own in shapes for shape in own)
    bodies = tuple(
        dataclasses.replace(b, visuals=tuple(dataclasses.replace(v, mesh="/nowhere/x.stl") for v in b.visuals[:1]))
        if k == 2 else b for k, b in enumerate(model.description.bodies)
    )  # fmt: skip
    from polybody.mechanism import mechanism_from

    bare = pb.Model(mechanism_from(dataclasses.replace(model.description, bodies=bodies)))
    with pytest.warns(PolybodyWarning, match="labelled boxes") as caught:
        viewer = show(bare)
    assert len(caught) == 1
    assert "x.stl is missing" in browser.wait("document.getElementById('labels').innerText")
    lowest = min(
        float((f.hull @ T[:3, :3].T + T[:3, 3])[:, 2].min())
        for f, T in zip(viewer.stage.figures, viewer.stage.matrices(viewer.q), strict=False)
        if len(f.hull)
    )
    base = viewer.stage.figures[-1].hull
    lowest = min(lowest, float(base[:, 2].min())) if len(base) else lowest
    assert report(browser)["floor"] == pytest.approx(lowest, abs=1e-6)


def test_port_in_use_is_said_and_another_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with listening(port) as another:
            assert another.getsockname()[1] != port
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
