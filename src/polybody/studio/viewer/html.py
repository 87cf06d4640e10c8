"""The page as one file: markup, style, scripts and, for pages that are kept, the data."""

from __future__ import annotations

import base64
import html
from functools import cache
from importlib import resources

#: in the order in which they need each other
SCRIPTS = (
    "math", "dom", "pack", "renderer", "camera", "scene", "chart", "link", "player", "panel", "live", "plots", "card",
    "overlay", "hand", "motions", "keys", "app", "begin",
)  # fmt: skip


@cache
def web(name: str) -> str:
    """A file of the folder web/."""
    return resources.files("polybody.studio.viewer").joinpath("web").joinpath(name).read_text(encoding="utf-8")


def page(title: str, data: bytes = b"") -> str:
    """The page; without data it asks the address it came from."""
    script = "\n".join(web(f"{name}.js") for name in SCRIPTS)
    text = web("page.html").replace("@TITLE@", html.escape(title)).replace("@STYLE@", web("style.css"))
    return text.replace("@DATA@", base64.b64encode(data).decode()).replace("@SCRIPT@", script)


__all__ = ["page", "web"]
