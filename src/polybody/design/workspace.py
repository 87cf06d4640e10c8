"""Measures over many configurations: where a frame goes, and how well it moves there.

`sampled` takes configurations at random within limits, `gridded` all pairs of values of two coordinates. A machine with
loops stays in the assembly mode it starts in: samples are random walks along its motions, and on a grid the other
coordinates follow from those of neighbours, by Newton's method over the whole batch. What does not close, or leaves its
limits, is not reachable: a walk stays where it was, a node of the grid is NaN. Averages of 1/κ over what is reachable
are the global conditioning index (Gosselin & Angeles).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.design import ellipsoids
from polybody.design.task import Task
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.mechanism.columns import velocity_names
from polybody.model.arguments import float_array, random_generator
from polybody.model.model import Model

Array = np.ndarray
#: m, rad: loops within this are closed
CLOSED = 1e-9
STEPS = 40
#: of the normal equations' trace
DAMPED = 1e-11
#: steps of a random walk, and their greatest size, rad or m
WALK, STRIDE = 30, 0.6
#: the frame is singular where σ_min/σ_max is below this
SINGULAR = 1e-3
#: states at once, and at most
PIECE, MOST = 4096, 10_000_000
MEASURES = ("manipulability", "condition", "isotropy", "least", "greatest", "regularity", "closure")


@dataclass(frozen=True, eq=False)
class Workspace:
    """Configurations q (n, nq), positions of the frame (n, 3), measures by name (n,); NaN where loops do not close.

    `shape` is that of the grid, `coordinates` its two names and values; a sample has neither.
    """

    task: Task  # the frame and the rows of its motion
    q: Array
    positions: Array
    values: dict[str, Array]
    shape: tuple[int, ...] = ()
    coordinates: tuple[tuple[str, Array], ...] = ()

    @property
    def reachable(self) -> Array:
        """Configurations that close and respect the limits."""
        return np.asarray(np.isfinite(self.positions).all(axis=-1))

    @property
    def singular(self) -> Array:
        """Configurations close to a singularity of the frame, of the actuators or of the loops."""
        near = [1 / self.values["condition"], self.values["regularity"], self.values["closure"]]
        return self.reachable & (np.min(near, axis=0) < SINGULAR)

    @property
    def conditioning_index(self) -> float:
        """Mean of 1/κ over the reachable samples: 1 if every configuration is isotropic."""
        inverse = 1 / self.values["condition"][self.reachable]
        return float(np.mean(inverse)) if len(inverse) else float("nan")

    @property
    def extent(self) -> tuple[Array, Array]:
        """Corners of the bounding box of the frame's positions, m."""
        places = self.positions[self.reachable]
        if not len(places):
            raise InputError("no sample of this workspace is reachable")
        return places.min(axis=0), places.max(axis=0)

    def summary(self) -> dict[str, Any]:
        """Reachable fraction, extent, and the configuration with the best condition number."""
        low, high = self.extent
        best = int(np.nanargmin(np.where(self.reachable, self.values["condition"], np.nan)))
        return {
            "configurations": len(self.q),
            "reachable": int(self.reachable.sum()),
            "singular": int(self.singular.sum()),
            "lowest": low,
            "highest": high,
            "conditioning_index": self.conditioning_index,
            "least_condition": float(self.values["condition"][best]),
            "best_configuration": self.q[best],
            "largest_manipulability": float(np.nanmax(self.values["manipulability"])),
        }


def measures(task: Task, q: Array, rates: Array) -> dict[str, Array]:
    """Measures of the velocity ellipsoid at configurations (..., nq); NaN where q is."""
    lead, flat = q.shape[:-1], q.reshape(-1, q.shape[-1])
    found = {name: np.full(len(flat), np.nan) for name in MEASURES}
    good = np.flatnonzero(np.isfinite(flat).all(axis=-1))
    for start in range(0, len(good), PIECE):
        piece = good[start : start + PIECE]
        maps = task.maps(flat[piece])
        ball = ellipsoids.velocity(task, maps, rates)
        for name, values in (
            ("manipulability", ball.volume), ("condition", ball.condition), ("isotropy", ball.isotropy),
            ("least", ball.proper[..., -1]), ("greatest", ball.proper[..., 0]), ("regularity", maps.regularity),
            ("closure", maps.closure),
        ):  # fmt: skip
            found[name][piece] = values
    return {name: values.reshape(lead) for name, values in found.items()}


def sampled(task: Task, rates: Array, samples: int, rng: Any, start: Array) -> Workspace:
    """Random configurations within limits; with loops by walks from `start`, where a free base stays too."""
    count_of("samples", samples, 1, MOST)
    model = task.model
    if len(model.constraints):
        q = walked(task, start, samples, random_generator("rng", rng))
    else:
        q = model.random_configuration(rng, samples)
        for joint in model.mechanism.independent_joints:
            if joint.nv == 6 and not model.actuation.active[joint.v].any():  # no actuator moves it
                q[:, joint.q] = start[joint.q]
    return _workspace(task, q, rates)


def walked(task: Task, start: Array, count: int, rng: np.random.Generator) -> Array:
    """Configurations (count, nq) at the ends of as many random walks along the motions that pass."""
    q = np.repeat(start[None], count, axis=0)
    for _ in range(WALK):
        for piece in (slice(k, k + PIECE) for k in range(0, count, PIECE)):
            here = q[piece]
            d = rng.normal(size=(len(here), task.model.nv))
            rows = task.model.constraints.jacobian(here)
            d = d + _least_step(rows, np.einsum("nij,nj->ni", rows, d))  # what the loops allow of it
            largest = np.maximum(np.abs(d).max(axis=-1, keepdims=True), 1e-300)
            size = rng.uniform(0, STRIDE, size=(len(here), 1)) / largest
            there = closed(task.model, task.model.integrate(here, size * d), ())
            q[piece] = np.where(np.isfinite(there).all(axis=-1, keepdims=True), there, here)
    return q


def gridded(task: Task, rates: Array, names: tuple[str, str], points: Any, start: Array) -> Workspace:
    """All pairs of values of two coordinates, the others as at `start`, or as loops make them."""
    model = task.model
    every = velocity_names(model.mechanism)
    limits = model.joint_limits()
    values = []
    if names[0] == names[1]:
        raise InputError(f"a grid has two coordinates, got {names[0]!r} twice")
    for name, given in zip(names, _pairs(points), strict=True):
        if name not in every:
            raise InputError(f"no coordinate {name!r}; available: {', '.join(every)}")
        if not _plain(model, every.index(name)):
            raise InputError(f"{name!r} belongs to a joint with a quaternion, which has no axis of a grid")
        k = every.index(name)
        if np.ndim(given):
            chosen = float_array("points", given)
            if chosen.ndim != 1 or not np.isfinite(chosen).all() or not len(chosen):
                raise InputError(f"points of {name!r} must be a list of finite numbers, got shape {chosen.shape}")
            values.append(chosen)
            continue
        low, high = limits["lower"][k], limits["upper"][k]
        bounded = np.isfinite(low) and np.isfinite(high)
        count = count_of("points", given, 2, MOST)
        values.append(np.linspace(*((low, high) if bounded else (-np.pi, np.pi)), count))
    count_of("the number of nodes", len(values[0]) * len(values[1]), 1, MOST)
    a, b = np.meshgrid(*values, indexing="ij")
    d = np.zeros((a.size, model.nv))
    at = model.difference(model.neutral(), start)
    for name, grid in zip(names, (a, b), strict=True):
        k = every.index(name)
        d[:, k] = grid.ravel() - at[k]
    q = model.integrate(np.broadcast_to(start, (a.size, model.nq)), d)
    if len(model.constraints):
        q = spread(model, q.reshape(*a.shape, -1), names, start).reshape(-1, model.nq)
    return _workspace(task, q, rates, a.shape, tuple(zip(names, values, strict=True)))


def count_of(name: str, value: Any, least: int, most: int) -> int:
    """A whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise InputError(f"{name} is {value!r}, expected a whole number from {least} to {most}")
    return int(value)


def _plain(model: Model, column: int) -> bool:
    """Whether a velocity belongs to a joint whose positions are plain numbers."""
    joint = next(j for j in model.mechanism.independent_joints if j.v.start <= column < j.v.stop)
    return joint.nq == joint.nv


def _pairs(points: Any) -> tuple[Any, Any]:
    if isinstance(points, tuple | list) and len(points) == 2:
        return points[0], points[1]
    return points, points


def _workspace(
    task: Task, q: Array, rates: Array, shape: tuple[int, ...] = (), coordinates: tuple[tuple[str, Array], ...] = ()
) -> Workspace:
    positions = np.full((len(q), 3), np.nan)
    good = np.isfinite(q).all(axis=-1)
    if good.any():
        positions[good] = task.model.pose(q[good], task.frame)[..., :3, 3]
    return Workspace(task, q, positions, measures(task, q, rates), shape, coordinates)


def closed(model: Model, q: Array, hold: tuple[str, ...]) -> Array:
    """q (n, nq) moved until its loops close, coordinates of `hold` kept; NaN where they do not, or leave limits."""
    every = velocity_names(model.mechanism)
    free = [k for k in range(model.nv) if every[k] not in hold]
    q, limits = q.copy(), model.joint_limits()
    active = np.isfinite(q).all(axis=-1)
    for _ in range(STEPS):
        at = np.flatnonzero(active)
        phi = model.constraints.residual(q[at])
        at, phi = at[(off := np.abs(phi).max(axis=-1) > CLOSED / 10)], phi[off]
        if not len(at):
            break
        rows = model.constraints.jacobian(q[at])[..., free]
        step = np.zeros((len(at), model.nv))
        step[:, free] = _least_step(rows, phi)
        size = np.abs(step).max(axis=-1, keepdims=True)
        q[at] = model.integrate(q[at], step * np.minimum(1.0, 0.3 / np.maximum(size, 1e-300)))
    result = np.full(q.shape, np.nan)
    at = np.flatnonzero(active)
    good = at[np.abs(model.constraints.residual(q[at])).max(axis=-1) < CLOSED]
    inside = np.ones(len(good), dtype=bool)
    for joint in model.mechanism.independent_joints:
        if joint.nq == joint.nv:
            values, low, high = q[good][:, joint.q], limits["lower"][joint.v], limits["upper"][joint.v]
            inside &= ((values >= low - CLOSED) & (values <= high + CLOSED)).all(axis=-1)
    result[good[inside]] = q[good[inside]]
    return result


def _least_step(J: Array, phi: Array) -> Array:
    """The least d with J d = −φ, (n, k), by normal equations: rows that repeat others are damped away.

    Singular values would take ten times as long; what damping leaves is taken by the next step.
    """
    squared = J @ np.swapaxes(J, -1, -2)
    size = DAMPED * np.maximum(np.trace(squared, axis1=-2, axis2=-1), 1e-300)
    inner = squared + size[:, None, None] * np.eye(squared.shape[-1])
    return -np.einsum("nij,ni->nj", J, np.linalg.solve(inner, phi[..., None])[..., 0])


def spread(model: Model, q: Array, hold: tuple[str, str], start: Array) -> Array:
    """A grid (a, b, nq) closed ring by ring from where it is nearest to `start`, each node from a closed neighbour."""
    every = velocity_names(model.mechanism)
    columns = [every.index(name) for name in hold]
    wanted = model.difference(np.broadcast_to(model.neutral(), q.shape), q)[..., columns]
    origin = model.difference(model.neutral(), start)[columns]
    seed = np.unravel_index(int(np.argmin(np.abs(wanted - origin).max(axis=-1))), q.shape[:2])
    result = np.full(q.shape, np.nan)
    guess = np.full(q.shape, np.nan)
    guess[seed] = start
    rings = max(max(seed[0], q.shape[0] - 1 - seed[0]), max(seed[1], q.shape[1] - 1 - seed[1]))
    tried = np.zeros(q.shape[:2], dtype=bool)
    for _ in range(4 * (rings + 1)):
        todo = np.isfinite(guess).all(axis=-1) & ~tried
        if not todo.any():
            break
        at = np.argwhere(todo)
        here = guess[todo]
        d = np.zeros((len(at), model.nv))
        now = model.difference(np.broadcast_to(model.neutral(), here.shape), here)[:, columns]
        d[:, columns] = wanted[todo] - now
        result[todo] = closed(model, model.integrate(here, d), hold)
        tried |= todo
        for i, j in at:
            if np.isfinite(result[i, j]).all():
                for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                    if 0 <= a < q.shape[0] and 0 <= b < q.shape[1] and not tried[a, b]:
                        guess[a, b] = result[i, j]
    return result


__all__ = ["MEASURES", "Workspace", "closed", "gridded", "measures", "sampled"]
