"""Conveniences of lower objects whose work is done in higher folders: `run.plot()`, a model in a notebook.

A `Trajectory` must not know the page, and the page must know trajectories. So the lower object only says what it wants,
`outlet("run", "plot")(self, …)`, and the package's root, which stands above all folders, says once which module offers
it (`offer`). Nothing is imported before it is asked for; no folder imports upwards.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from polybody.errors import PolybodyError

_offered: dict[str, str] = {}


def offer(kind: str, module: str) -> None:
    """Functions `KIND_NAME(thing, …)` of this module serve things of a kind."""
    _offered[kind] = module


def outlet(kind: str, name: str) -> Callable[..., Any]:
    """The function that does something with things of a kind."""
    if kind not in _offered:
        raise PolybodyError(f"nothing offers {name!r} of a {kind}: import polybody, not only a part of it")
    return getattr(import_module(_offered[kind]), f"{kind}_{name}")


__all__ = ["offer", "outlet"]
