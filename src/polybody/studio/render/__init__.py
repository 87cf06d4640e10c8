"""Images and videos of models and runs without a screen: VTK draws, ffmpeg (of a wheel) or Pillow writes."""

from __future__ import annotations

from polybody.studio.render.film import FORMATS, render

__all__ = ["FORMATS", "render"]
