"""Paths as tables of polynomials, where their motion is no expression: with loops, and through rotations.

Between its corners a path's (q, v, a) are smooth functions of time. Each piece of time is halved until polynomials of
order 11 through Chebyshev's points meet them elsewhere too, to 3e-12 of their sizes: the dependent joints of loops are
assembled at these points only, before the run.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from polybody.algebra.domains import Domain
from polybody.model.model import Model
from polybody.paths.path import PointToPoint, Spline
from polybody.simulation.compiled.law import Signals
from polybody.simulation.compiled.laws import Motion
from polybody.simulation.failures import NotCompiled

Array = np.ndarray
ORDER = 11
SAME = 3e-12
MOST_PIECES = 1000
MOST_KEPT = 8
_POINTS = np.cos(np.pi * (np.arange(ORDER + 1) + 0.5) / (ORDER + 1))
_BETWEEN = np.array([-0.995, -0.7, -0.31, 0.12, 0.55, 0.93])  # where they are compared
_ALL = np.concatenate([_POINTS, _BETWEEN])


def tabulated(model: Model, path: Any) -> tuple[str, Motion, Signals]:
    """(name, motion, table) of a path of this library, whatever its joints."""
    known = model._notes.setdefault("paths", {})
    if id(path) not in known:
        while len(known) >= MOST_KEPT:
            known.pop(next(iter(known)))
        known[id(path)] = (path, _table(model, path))  # the path too, so that no other takes its place
    return "a table", _motion(model), known[id(path)][1]


def _table(model: Model, path: Any) -> Signals:
    corners = _corners(path)
    pieces = [piece for low, high in pairwise(corners.tolist()) for piece in _pieces(path, low, high)]
    if len(pieces) > MOST_PIECES:
        raise NotCompiled("the path is not smooth enough for a table of polynomials")
    rows = [_still(path, corners[0] - 1.0), *(_row(*piece) for piece in pieces), _still(path, corners[-1] + 1.0)]
    breaks = [-np.inf, *(low for low, _, _ in pieces), np.nextafter(corners[-1], np.inf)]
    return Signals(np.array(breaks), np.array(rows))


def _corners(path: Any) -> Array:
    """Times between which the motion is smooth."""
    if isinstance(path, PointToPoint) and hasattr(path.law, "corners"):
        return path.duration * np.array([0.0, *path.law.corners, 1.0])  # type: ignore[attr-defined]
    if isinstance(path, Spline):
        return np.unique(np.clip(path._spline.t, path.start, path.end))
    raise NotCompiled("the path is a function in Python")


def _values(path: Any, times: Array) -> Array:
    """[q; v; a] at times, (n, …)."""
    return np.concatenate(path(times), axis=-1)


def _still(path: Any, t: float) -> Array:
    here = _values(path, np.array([t]))[0]
    return np.concatenate([[t, 1.0], np.zeros(ORDER * len(here)), here])


def _pieces(path: Any, low: float, high: float) -> list[tuple[float, float, Array]]:
    """(begin, end, coefficients (ORDER + 1, …), the highest power first)."""
    todo, done = [(low, high)], []
    while todo:
        halves, where = [], np.array([(a + b) / 2 + (b - a) / 2 * _ALL for a, b in todo])
        found = _values(path, where.ravel()).reshape(*where.shape, -1)
        size = SAME * (1 + np.abs(found).max(axis=(0, 1)))
        for (a, b), values in zip(todo, found, strict=True):
            fit = chebyshev.chebfit(_POINTS, values[: len(_POINTS)], ORDER)
            off = np.abs(chebyshev.chebval(_BETWEEN, fit).T - values[len(_POINTS) :])
            if (off <= size).all():
                powers = np.array([chebyshev.cheb2poly(column) for column in _padded(fit).T]).T
                done.append((a, b, powers[::-1]))
            else:
                halves += [(a, (a + b) / 2), ((a + b) / 2, b)]
        todo = halves
        if len(todo) + len(done) > MOST_PIECES:
            raise NotCompiled("the path is not smooth enough for a table of polynomials")
    return sorted(done, key=lambda piece: piece[0])


def _padded(fit: Array) -> Array:
    """Coefficients none of which `cheb2poly` drops for being zero."""
    fit = fit.copy()
    fit[-1] = np.where(fit[-1] == 0, 1e-300, fit[-1])
    return fit


def _row(low: float, high: float, powers: Array) -> Array:
    return np.concatenate([[(low + high) / 2, 2 / (high - low)], powers.ravel()])


def _motion(model: Model) -> Motion:
    nq, nv = model.nq, model.nv

    def motion(t: Any, row: Array, domain: Domain) -> tuple[Array, Array, Array]:
        x, powers = (t - row[0]) * row[1], row[2:].reshape(ORDER + 1, nq + 2 * nv)
        total = powers[0]
        for power in powers[1:]:
            total = total * x + power
        return total[:nq], total[nq : nq + nv], total[nq + nv :]

    return motion


__all__ = ["tabulated"]
