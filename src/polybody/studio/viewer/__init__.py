"""The web page: a mechanism or a run in the browser, served to this machine alone."""

from __future__ import annotations

from polybody.studio.viewer.serve import Viewer, serve

__all__ = ["Viewer", "serve"]
