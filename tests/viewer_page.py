"""Questions to the page that its tests share; the browser itself is a fixture of tests/studio."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import polybody as pb
from browser import Browser
from polybody.studio.record import Record, along_path

READY = (
    "!!window.polybody && polybody.renderer.drawn > 0 && (!polybody.online || polybody.link.socket.readyState === 1)"
)

#: what stands out of the page at the sides
OUTSIDE = """[...document.querySelectorAll('#bar *, #line *, #scales *, #panel select, #panel button, .row output')]
    .filter(e => { const r = e.getBoundingClientRect(); return r.width > 0 && (r.right > innerWidth + 1 || r.x < -1); })
    .map(e => e.outerHTML.slice(0, 80))"""


def report(browser: Browser) -> dict[str, Any]:
    return json.loads(browser.script("JSON.stringify(polybody.report())"))


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come about in time")


def pixels(browser: Browser) -> np.ndarray:
    """The picture left of the controls, above the time line."""
    import io

    from matplotlib.image import imread

    return imread(io.BytesIO(browser.picture()), format="png")[60:560, :600, :3]


def page_poses(browser: Browser) -> np.ndarray:
    return np.array(report(browser)["poses"]).reshape(-1, 7)


def arm_run() -> Record:
    model = pb.load("stanford-arm")
    start = np.array([0, np.pi / 2, 0, 0, 0, 0])
    path = pb.paths.cycloidal(model, start, [np.pi / 3, np.pi / 3, 0.1, np.pi / 3, np.pi / 3, np.pi / 3], 4.0)
    return along_path(model, path, np.linspace(0, 4, 101), {"path": "cycloidal"})
