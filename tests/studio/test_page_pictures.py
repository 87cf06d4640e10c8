"""Pictures of the page against approved ones (tests/studio/approved), at a quarter of their size and with a tolerance.

Fonts and drivers differ from machine to machine, so small differences pass; what is missing, elsewhere or of another
colour does not. POLYBODY_APPROVE=1 writes the pictures anew: look at each before committing it, and ask whether you
would print it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polybody as pb
from browser import Browser, find_chromium
from polybody.studio.record import Record, along_path

pytest.importorskip("websockets", reason="the viewer's packages are an extra: pip install polybody[viewer]")
pytest.importorskip("trimesh", reason="the viewer's packages are an extra: pip install polybody[viewer]")

from polybody.studio.sharing import page_text

APPROVED = Path(__file__).parent / "approved"
SMALL = 4  # how many pixels a side are taken together
MEAN, FAR, MOST_FAR = 0.02, 0.25, 0.02  # mean difference; differences that count as far; how many may be


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine (POLYBODY_CHROMIUM may name one)")
    opened = Browser(program)
    yield opened
    opened.close()


def arm_runs() -> list[Record]:
    model = pb.load("stanford-arm")
    start = np.array([0, np.pi / 2, 0.1, 0, 0, 0])
    found = []
    for end in (np.pi / 3, np.pi / 4):
        path = pb.paths.cycloidal(model, start, [end, end, 0.25, end, end, end], 4.0)
        found.append(along_path(model, path, np.linspace(0, 4, 81), {"path": "cycloidal"}))
    return found


def stewart(act: str) -> tuple[str, tuple[int, int], str]:
    model = pb.load("stewart")
    home = model.assemble()
    goal = model.pose(home, "tool")
    goal[:3, 3] += [0.1, -0.05, 0.05]
    return page_text(model, q=pb.inverse_kinematics(model, {"tool": goal}, home).q), (1280, 800), act


def runs(size: tuple[int, int], act: str) -> tuple[str, tuple[int, int], str]:
    records = arm_runs()
    return page_text(records[0].model, records, ["fast", "slow"]), size, act


PAGES: dict[str, Callable[[], tuple[str, tuple[int, int], str]]] = {
    "stewart": lambda: stewart("polybody.toggle('closure forces'); polybody.select({kind: 'joint', index: 2})"),
    "stewart-dark": lambda: stewart(
        "polybody.setTheme('dark'); polybody.toggle('inertia ellipsoids'); polybody.toggle('centre of mass')"
    ),
    "runs": lambda: runs(
        (1280, 800), "polybody.player.go(2.6); polybody.toggle('joint torques'); polybody.plots.path.value = 'tip'; "
        "polybody.plots.choice.value = 'forces'; polybody.plots.items = null; polybody.plots.rebuild()"),
    "phone": lambda: runs((390, 844), "polybody.player.go(2.6)"),
}  # fmt: skip


def small(picture: Any) -> np.ndarray:
    """The picture as numbers from 0 to 1, blocks of pixels taken together."""
    pixels = np.asarray(picture.convert("RGB"), dtype=float) / 255
    high, wide = (n // SMALL * SMALL for n in pixels.shape[:2])
    return pixels[:high, :wide].reshape(high // SMALL, SMALL, wide // SMALL, SMALL, 3).mean(axis=(1, 3))


@pytest.mark.parametrize("name", PAGES)
def test_page_looks_as_approved(browser: Browser, tmp_path: Path, name: str) -> None:
    from PIL import Image

    text, size, act = PAGES[name]()
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    browser.size(*size)
    browser.open((tmp_path / "page.html").as_uri())
    browser.wait("!!window.polybody && polybody.renderer.drawn > 0")
    browser.script("polybody.setTheme('light')")
    browser.script(f"(() => {{ {act} }})()")
    browser.script("polybody.draw()")
    picture = Image.open(io.BytesIO(browser.picture()))
    place = APPROVED / f"{name}.webp"
    if os.environ.get("POLYBODY_APPROVE") == "1":
        picture.convert("RGB").save(place, quality=80, method=6)
    off = np.abs(small(picture) - small(Image.open(place))).max(axis=2)
    assert off.mean() < MEAN, f"differs by {off.mean():.3f} in the mean"
    assert (off > FAR).mean() < MOST_FAR, f"{(off > FAR).mean():.1%} of the page look different"
    other = small(picture)[::-1]
    assert np.abs(other - small(Image.open(place))).max(axis=2).mean() > MEAN, "a different picture would be noticed"
