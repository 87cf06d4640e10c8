"""Fixtures of the tests of the page: a headless Chromium, and a page that is served and opened in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from browser import Browser, find_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine (POLYBODY_CHROMIUM may name one)")
    opened = Browser(program)
    opened.size(960, 640)  # software rendering costs by the pixel
    yield opened
    opened.close()


@pytest.fixture
def show(browser: Browser) -> Iterator[Callable[..., Any]]:
    """Serve something and open it."""
    from polybody.studio.viewer.serve import Viewer
    from viewer_page import READY

    served: list[Viewer] = []

    def open_page(*arguments: Any, **options: Any) -> Any:
        viewer = Viewer(*arguments, port=8130, **options)
        served.append(viewer)
        browser.logs.clear()
        browser.open(viewer.url)
        browser.wait(READY)
        return viewer

    yield open_page
    for viewer in served:
        viewer.close()
    assert browser.logs == []
