"""What there is to look at: bodies with their shapes, joints, frames, loads; for the page, the renderer and reports."""

from __future__ import annotations

from polybody.studio.stage.stage import Stage

__all__ = ["Stage"]
