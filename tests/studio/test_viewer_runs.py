"""Runs, live simulations and shared pages in a real headless Chromium."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polybody as pb
from browser import Browser
from polybody.studio.record import Record, from_trajectory

pytest.importorskip("websockets", reason="the viewer's packages are an extra: pip install polybody[viewer]")
pytest.importorskip("trimesh", reason="the viewer's packages are an extra: pip install polybody[viewer]")

from polybody.studio.stage.stage import Stage
from polybody.studio.viewer.serve import Viewer
from viewer_page import OUTSIDE, READY, arm_run, page_poses, report, wait_for


def test_run_plays_scrubs_and_its_curves_follow(browser: Browser, show: Callable[..., Viewer]) -> None:
    record = arm_run()
    show(record.model, record)
    browser.press("#play")
    browser.wait("polybody.player.time > 0.6", 60)
    browser.press("#play")
    assert not report(browser)["playing"]
    browser.slide("#time", 4.0)
    np.testing.assert_allclose(page_poses(browser), Stage(record.model).poses(record.q[-1]), atol=1e-5)
    browser.key("Home")
    assert report(browser)["t"] == 0
    browser.key("ArrowRight")
    assert report(browser)["t"] == pytest.approx(record.t[1], rel=1e-5)
    browser.choose("#speed", "0.25")
    browser.press("#loop")
    browser.choose("#quantity", "forces")
    browser.slide("#time", 2.0)
    charts = report(browser)["charts"]
    assert {chart["unit"] for chart in charts} == {"N m", "N"}
    assert sorted(label for chart in charts for label in chart["curves"]) == sorted(record.model.joint_names)
    for chart in charts:
        assert np.isfinite([chart["low"], chart["high"]]).all()
        assert chart["at"] == 2.0
    drawn = browser.script(
        "[...document.querySelectorAll('.chart .curve')].map(e => e.getAttribute('d').split('L').length)"
    )
    assert min(drawn) > 50, "no curve is blank"
    boxes = browser.script(
        "[...document.querySelectorAll('.chart')].map(e => [e.querySelector('svg').getBoundingClientRect().bottom, "
        "e.querySelector('.legend').getBoundingClientRect().top])"
    )
    assert all(top >= bottom - 1 for bottom, top in boxes), "legends are below the drawings"
    browser.choose("#quantity", "frame position")
    assert report(browser)["charts"][0]["unit"] == "m"
    browser.choose("#path-frame", record.model.frame_names[-1])
    assert len(report(browser)["paths"]) == 1
    for kind, start in (("csv", "t [s],"), ("svg", "<svg")):
        browser.press(f"[data-export={kind}]")
        assert browser.wait("pb.lastDownload && pb.lastDownload.blob.text()").startswith(start)
    browser.press("[data-export=png]")
    browser.wait("pb.lastDownload.type === 'image/png' && pb.lastDownload.size > 2000")


def test_torques_of_all_legs_are_plotted_events_are_marked_and_runs_are_overlaid(
    browser: Browser, show: Callable[..., Viewer]
) -> None:
    model = pb.load("stewart")
    q0 = model.assemble()
    active = model.actuation.active

    def shaken(size: float) -> Record:
        forces = pb.simulate(
            model, 0.1, q0, None, lambda t, q, v: size * np.sin(20 * t) * active, sample=0.01, method="rk4", dt=2e-3
        )
        return from_trajectory(forces)

    runs = [shaken(20.0), shaken(30.0)]
    runs[0].happenings = [{"time": 0.05, "name": "touched", "detail": "leg1"}]
    viewer = show(model, runs, names=["soft", "hard"])
    browser.choose("#quantity", "forces")
    charts = report(browser)["charts"]
    assert [c["unit"] for c in charts] == ["N"]
    assert charts[0]["curves"] == [f"leg{k}" for k in range(1, 7)] * 2
    assert "zero throughout: " in browser.script("document.querySelector('[data-section=Plots]').innerText")
    assert report(browser)["ghosts"] == sum(len(f.parts) for f in viewer.stage.figures)
    assert browser.script("document.querySelectorAll('#line .mark').length") == 1
    browser.script("document.querySelector('#line .mark').click()")
    assert report(browser)["t"] == pytest.approx(0.05)
    browser.press("[data-run='1']")
    assert report(browser)["ghosts"] == 0
    with pytest.raises(pb.InputError, match="of one model"):
        Viewer(model, [runs[0], arm_run()], port=8140)


def test_live_simulation_runs_pauses_steps_is_pulled_and_controlled(
    browser: Browser, show: Callable[..., Viewer]
) -> None:
    model = pb.load("double-pendulum")
    viewer = show(model, live=True, q=[0.7, 0.2])
    live = viewer.live
    assert live is not None
    browser.press("#step")
    wait_for(lambda: live.t == pytest.approx(0.001))
    browser.press("#run")
    wait_for(lambda: live.t > 0.2)
    assert " ×" in browser.wait("(t => t.includes('×') && t)(document.getElementById('live-factor').textContent)")
    browser.key(" ")
    wait_for(lambda: not live.running)
    kinetic, potential = model.energy(live.q, live.v)
    start = sum(model.energy(np.array([0.7, 0.2]), np.zeros(2)))
    assert kinetic + potential == pytest.approx(start, rel=1e-6), "nothing acts: energy is kept"
    browser.wait("document.getElementById('live-total').textContent.endsWith(' J')")
    browser.press("#restart")
    wait_for(lambda: live.t == 0)
    browser.choose("#controller", "hold")
    for control, value in (("#kp", 2.5), ("#kd", 1.5), ("#gravity", 5.0), ("#speed", 0.3), ("#stiffness", 1.0)):
        browser.slide(control, value)
    wait_for(lambda: live.options["stiffness"] == pytest.approx(10))
    assert live.options["gravity"] == pytest.approx(5.0)
    browser.choose("#method", "semi-implicit")
    browser.choose("#step_size", "0.002")
    browser.press("#run")
    wait_for(lambda: live.t > 0.3)
    np.testing.assert_allclose(live.q, [0.7, 0.2], atol=0.02)
    at = browser.script("polybody.project(pb.math.point(polybody.scene.bodies[1], polybody.data.bodies[1].com))")
    browser.drag((at[0], at[1]), (at[0] + 120, at[1]), modifiers=2, release=False)
    wait_for(lambda: live.pulled is not None)
    wait_for(lambda: np.abs(live.q - [0.7, 0.2]).max() > 1e-3)
    browser.drop((at[0] + 120, at[1]))
    wait_for(lambda: live.pulled is None)
    browser.choose("#controller", "computed torque")
    browser.choose("#drag-frame", "tip")
    target = model.pose(np.array([0.9, 0.5]), "tip")[:3, 3]
    browser.script(f"polybody.command({{do: 'drag', frame: 'tip', target: {target.tolist()}, turn: false}})")
    wait_for(lambda: np.linalg.norm(model.pose(live.q, "tip")[:3, 3] - target) < 0.01, 60)
    assert report(browser)["ghosts"] > 0, "the goal is shown"
    browser.press("#goal-here")
    browser.slide("[id='parameter rod2.mass']", 1.25)
    wait_for(lambda: live.model.total_mass == pytest.approx(2.25), 60)


def test_page_on_a_phone_has_nothing_outside_it(browser: Browser, show: Callable[..., Viewer]) -> None:
    record = arm_run()
    browser.size(390, 844, mobile=True)
    try:
        show(record.model, record)
        for size in ((390, 844, True), (1280, 800, False)):
            browser.size(*size)
            time.sleep(0.3)
            outside = browser.script(OUTSIDE)
            assert outside == []
            assert browser.script("document.documentElement.scrollWidth <= innerWidth")
            bar, line = (
                browser.place("document.getElementById('bar')"),
                browser.place("document.getElementById('line')"),
            )
            scales = browser.place("document.getElementById('scales')")
            assert scales[1] + scales[3] <= line[1] + 1, "scales are above the time line"
            assert bar[1] + bar[3] < scales[1]
    finally:
        browser.size(960, 640)


def test_several_visitors_see_one_state_and_a_lost_connection_resumes(
    browser: Browser, show: Callable[..., Viewer]
) -> None:
    from urllib.parse import urlsplit

    from websockets.sync.client import connect

    viewer = show(pb.load("two-link"))
    place = urlsplit(viewer.url)
    with connect(f"ws://{place.netloc}{place.path}socket", proxy=None) as other:
        other.send(json.dumps({"do": "set", "key": viewer.posing.coordinates[0].key, "value": 0.4, "n": 1}))
        browser.wait("Math.abs(polybody.report().coordinates[0] - 0.4) < 1e-6")
    browser.script("polybody.link.socket.close()")
    browser.wait("polybody.messages.some(t => t.includes('lost'))")
    browser.wait("polybody.messages.some(t => t.includes('reconnected'))")
    browser.slide("[data-coordinate] input", 0.9)
    wait_for(lambda: viewer.q[0] == pytest.approx(0.9))


def test_shared_page_plays_without_a_program_or_a_network(browser: Browser, tmp_path: Any) -> None:
    from polybody.studio.sharing import write_page

    record = arm_run()
    path = write_page(tmp_path / "arm.html", record.model, [record], ["arm"])
    assert "http://" not in path.read_text().replace("http://www.w3.org", "")
    browser.logs.clear()
    browser.send("Network.enable")
    browser.send("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
    try:
        browser.open(path.as_uri())
        browser.wait(READY)
        browser.press("#play")
        browser.wait("polybody.player.time > 0.3")
        browser.slide("#time", 4.0)
        np.testing.assert_allclose(page_poses(browser), Stage(record.model).poses(record.q[-1]), atol=1e-5)
        assert len(report(browser)["charts"]) == 2
    finally:
        browser.send(
            "Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1
        )
    assert browser.logs == []
