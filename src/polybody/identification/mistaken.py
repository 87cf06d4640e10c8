"""Columns of a recording that may be mistaken for others: exchanged joints, signs, degrees.

Columns that are exchanged throughout are consistent in themselves, and least squares finds parameters that explain
much of them: 26 % error for two joints of a UR10e. Where an identified model leaves more than `SUSPECT` unexplained, it
is tried on some of the states what the columns might be instead, each by ordinary least squares with the same terms.
What fits far better is reported, and nothing is changed. Mistakes come together (three joints in a circle, two signs),
so that others are tried on top of the best one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np

from polybody.identification.problem import Problem
from polybody.identification.signals import States
from polybody.late import dataclass
from polybody.mechanism.columns import actuated, velocity_names

Array = np.ndarray
#: part of the forces left unexplained above which columns are doubted, and what another reading must leave of it
SUSPECT, BETTER = 0.05, 0.5
#: what each of several mistakes must leave of the error before it
EACH = 0.8
MISTAKES = 3
#: states that are tried, and pairs of joints up to which all are; of more, neighbours
STATES, PAIRS = 400, 100


@dataclass(frozen=True)
class Reading:
    """What the columns of one or two joints might be instead."""

    text: str
    change: Callable[[States], States]


def mistaken(problem: Problem, states: Sequence[States]) -> str | None:
    """What the columns seem to be instead, in words with the errors; None where nothing fits far better."""
    model = problem.model
    if model.mechanism.constrained or model.nq != model.nv:  # a joint has one column of each kind
        return None
    tried = [_some(s, max(STATES // len(states), 20)) for s in states]
    first = least = _error(problem, tried)
    readings, found = list(_readings(problem)), []
    for _ in range(MISTAKES):
        errors = [_error(problem, [r.change(s) for s in tried]) for r in readings]
        best = int(np.argmin(errors))
        if not errors[best] < EACH * least:
            break
        found.append(readings[best].text)
        tried, least = [readings[best].change(s) for s in tried], errors[best]
    if not found or least > BETTER * first:
        return None
    told = ", and ".join(found)
    return f"with {told}, {least:.1%} of the joint forces would be left unexplained instead of {first:.1%}"


def _some(states: States, count: int) -> States:
    """States at even distances, far enough from the ends, that are not filtered any more."""
    inner = range(len(states.t))[states.inner]
    at = np.unique(np.linspace(inner[0], inner[-1], min(count, len(inner))).astype(int))
    some = {key: getattr(states, key)[at] for key in ("t", "q", "v", "a", "tau", "raw")}
    return replace(states, cutoff=np.inf, **some)


def _error(problem: Problem, states: Sequence[States]) -> float:
    parts = [(problem.columns(rows, rows.states.tau), rows.b) for rows in map(problem.rows, states)]
    A = np.concatenate([A.reshape(-1, A.shape[-1]) for A, _ in parts])
    b = np.concatenate([b.ravel() for _, b in parts])
    size = np.maximum(np.sqrt(np.mean(A**2, axis=0)), 1e-300)
    if not np.isfinite(A).all():
        return np.inf
    x = np.linalg.lstsq(A / size, b, rcond=1e-10)[0]
    return float(np.linalg.norm(b - A / size @ x) / max(float(np.linalg.norm(b)), 1e-300))


def _readings(problem: Problem) -> Iterator[Reading]:
    mechanism = problem.model.mechanism
    names, driven = velocity_names(mechanism), [int(k) for k in actuated(mechanism)]
    pairs = list(combinations(driven, 2))
    for i, j in pairs if len(pairs) <= PAIRS else pairwise(driven):
        order = np.arange(len(names))
        order[[i, j]] = j, i
        who = f"of {names[i]!r} and {names[j]!r} exchanged"
        yield Reading(f"the columns {who}", _with(order, motion=True, force=True))
        yield Reading(f"the columns of joint forces {who}", _with(order, force=True))
        yield Reading(f"the columns of positions {who}", _with(order, motion=True))
    whole = np.arange(len(names))
    for i, j, k in combinations(driven, 3) if len(pairs) <= PAIRS else ():
        for a, b, c in ((i, j, k), (i, k, j)):
            order = whole.copy()
            order[[a, b, c]] = b, c, a
            old, new = (", ".join(repr(names[x]) for x in row) for row in ((b, c, a), (a, b, c)))
            text = f"the columns of {old} as those of {new}"
            yield Reading(text, _with(order, motion=True, force=True))
    for k in driven:
        sign = np.ones(len(names))
        sign[k] = -1.0
        who = f"of {names[k]!r} with the other sign"
        yield Reading(f"joint forces {who}", _with(whole, sign, force=True))
        yield Reading(f"positions {who}", _with(whole, sign, motion=True))
        yield Reading(f"positions and joint forces {who}", _with(whole, sign, motion=True, force=True))
        for text, factor in (("in degrees", np.pi / 180), ("in radians where degrees are stated", 180 / np.pi)):
            scale = np.ones(len(names))
            scale[k] = factor
            yield Reading(f"positions of {names[k]!r} {text}", _with(whole, scale, motion=True))
    for text, factor in (("in degrees", np.pi / 180), ("in radians where degrees are stated", 180 / np.pi)):
        yield Reading(f"all positions {text}", _with(whole, np.full(len(names), factor), motion=True))


def _with(
    order: Array, factor: Array | float = 1.0, *, motion: bool = False, force: bool = False
) -> Callable[[States], States]:
    """Columns in another order and times a factor: those of positions and their rates, of forces, or both."""
    keys = (("q", "v", "a") if motion else ()) + (("tau", "raw") if force else ())
    return lambda states: replace(states, **{key: getattr(states, key)[:, order] * factor for key in keys})


__all__ = ["SUSPECT", "mistaken"]
