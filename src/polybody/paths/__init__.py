"""Motions to be followed: from point to point, through waypoints, or as recorded."""

from __future__ import annotations

from polybody.paths.path import Path, PointToPoint, Spline, cycloidal, quintic, recorded, spline, trapezoidal

__all__ = ["Path", "PointToPoint", "Spline", "cycloidal", "quintic", "recorded", "spline", "trapezoidal"]
