"""Inverse kinematics of several frames at once: priorities, joint limits and collision spheres.

`reaching` takes the steps, all states of a batch side by side. Where no place fits, the nearest one found is returned
and its errors are reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.coordinates.inverse_kinematics import checked_steps, checked_target
from polybody.coordinates.reaching import Task, reached
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.mechanism.columns import state_text
from polybody.model.arguments import as_model, float_array, positive
from polybody.model.batches import batch_shape
from polybody.model.model import Model
from polybody.quantities.frames import find_frame

Array = np.ndarray
#: states that are moved side by side: more would not fit the caches
AT_ONCE = 1024


@dataclass(frozen=True)
class Goal:
    """Target of a frame: a pose (..., 4, 4) or a point (..., 3), in world axes. Priority 0 is the highest."""

    frame: str
    target: Any  # pose or point
    priority: int = 0  # 0 is the highest
    weight: float = 1.0  # relative to goals of the same priority


@dataclass(frozen=True)
class Sphere:
    """Collision sphere on a frame: centre in the frame's axes and radius, m. On "world" it is an obstacle."""

    frame: str
    radius: float
    center: tuple[float, float, float] = (0.0, 0.0, 0.0)  # in the frame's axes, m


@dataclass(frozen=True, eq=False)
class Reached:
    """q (..., nq); `errors` (..., goals, 2) [rotation, position] in rad and m; `distance` (...) between the nearest
    spheres, m; `steps` and `converged` (...). Numbers where a single configuration was asked for.
    """

    q: Array
    goals: tuple[Goal, ...]
    errors: Array
    distance: Any
    steps: Any
    converged: Any

    def __str__(self) -> str:
        worst = self.errors.reshape(-1, *self.errors.shape[-2:]).max(axis=0)
        rows = [f"{g.frame} (priority {g.priority}): off by {e[1]:.3g} m, {e[0]:.3g} rad"
                for g, e in zip(self.goals, worst, strict=True)]  # fmt: skip
        lines = [*rows, f"nearest spheres: {np.min(self.distance):.4g} m apart"]
        if self.q.ndim > 1:
            lines.insert(0, f"{int(np.sum(self.converged))} of {np.size(self.converged)} converged; the worst of all:")
        return "\n".join(lines)


def reach(
    model: Model, goals: Sequence[Goal], q0: ArrayLike | None = None, *, spheres: Sequence[Sphere] = (),
    pairs: Sequence[tuple[int, int]] | None = None, margin: float = 0.0, limits: bool = True, posture: Any = None,
    steps: int = 200, tolerance: float = 1e-8, parameters: ArrayLike | None = None,
) -> Reached:  # fmt: skip
    """Prioritised inverse kinematics for several frames, within joint limits and with collision spheres.

    Starts at q0 (default: assembled neutral), where spheres must not overlap. `pairs` of spheres, by index, keep a
    distance of at least `margin` metres; by default all pairs on different bodies. `posture` is pursued with the lowest
    priority. Loops stay closed. The solver has converged when every goal of the highest priority is met to `tolerance`
    and the steps have vanished. q0, targets, posture and `parameters` (k values of `model.with_parameters`) may have
    leading dimensions, which broadcast with each other.
    """
    model = as_model("reach", model)
    checked_steps(steps, tolerance)
    wanted, balls = _checked_goals(model, goals), _checked_spheres(model, spheres)
    values = None if parameters is None else model.parameters.checked(parameters)
    q = model.assemble(parameters=values) if q0 is None else model._q(q0)
    rest = None if posture is None else model._q(posture, "posture")
    targets = [np.asarray(goal.target, dtype=float) for goal in wanted]
    flat = [x.reshape(*x.shape[: -_rank(x)], -1) for x in targets]
    lead = batch_shape([q, *flat, *(x for x in (rest, values) if x is not None)])

    def rows(x: Array) -> Array:
        return np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1])

    task = Task(
        model=model, goals=wanted, targets=tuple(rows(x) for x in flat), spheres=balls,
        pairs=_checked_pairs(model, balls, pairs), margin=float(margin), limits=limits,
        posture=None if rest is None else rows(rest), parameters=None if values is None else rows(values),
    )  # fmt: skip
    states = rows(q)
    _check_start(task, states, lead)
    parts = [slice(k, k + AT_ONCE) for k in range(0, len(states), AT_ONCE)] or [slice(0, 0)]
    found = [reached(task.part(part), states[part], steps, tolerance) for part in parts]
    there, *others = (np.concatenate(x).reshape((*lead, *x[0].shape[1:])) for x in zip(*found, strict=True))
    if lead:
        return Reached(there, wanted, *others)
    errors, distance, count, converged = others
    return Reached(there, wanted, errors, float(distance), int(count), bool(converged))


def _rank(target: Array) -> int:
    """Dimensions of one target: two of a pose, one of a point."""
    return 2 if target.shape[-2:] == (4, 4) else 1


def _check_start(task: Task, q: Array, lead: tuple[int, ...]) -> None:
    """Loops must be closed and spheres apart; the first state where they are not is named."""
    model = task.model
    if task.parameters is None:
        model.engine.require_closed(q.reshape(*lead, -1))
    elif len(model.constraints):
        open_by = np.abs(model.constraints.residual(q, parameters=task.parameters)).max(axis=-1)
        worst = int(np.argmax(open_by)) if len(q) else 0
        if len(q):
            model.parameters.at(task.parameters[worst]).engine.require_closed(q[worst])
    near = np.flatnonzero(task.distance(q) < task.margin) if task.pairs else []
    if len(near):
        first = int(near[0])
        gaps = task.part(slice(first, first + 1)).gaps(q[first : first + 1])[0][0]
        i, j = task.pairs[int(np.argmin(gaps))]
        at = tuple(int(k) for k in np.unravel_index(first, lead)) if lead else ()
        raise InputError(
            f"spheres {i} ({task.spheres[i].frame!r}) and {j} ({task.spheres[j].frame!r}) are {gaps.min():.4g} m "
            f"apart at the start{state_text(at)}, expected at least {task.margin:g}: start elsewhere"
        )


def _checked_pairs(model: Model, spheres: Sequence[Sphere], pairs: Any) -> tuple[tuple[int, int], ...]:
    if pairs is None:
        body = [find_frame(model.mechanism, s.frame).body for s in spheres]
        return tuple((i, j) for i, j in combinations(range(len(body)), 2) if body[i] != body[j])
    found = tuple((pair[0], pair[1]) for pair in pairs)
    for i, j in found:
        if not (0 <= i < len(spheres) and 0 <= j < len(spheres)) or i == j:
            raise InputError(f"pairs holds ({i}, {j}); there are spheres 0 to {len(spheres) - 1}")
    return found


def _checked_goals(model: Model, goals: Sequence[Goal]) -> tuple[Goal, ...]:
    if not goals:
        raise InputError("reach needs at least one goal")
    for goal in goals:
        find_frame(model.mechanism, goal.frame)
        checked_target(goal.frame, goal.target)
        positive(f"the weight of {goal.frame!r}", goal.weight)
        if isinstance(goal.priority, bool) or not isinstance(goal.priority, int | np.integer) or goal.priority < 0:
            raise InputError(f"the priority of {goal.frame!r} is {goal.priority!r}, expected 0 (the highest), 1, …")
    return tuple(goals)


def _checked_spheres(model: Model, spheres: Sequence[Sphere]) -> tuple[Sphere, ...]:
    for sphere in spheres:
        find_frame(model.mechanism, sphere.frame)
        center = float_array("center", sphere.center)
        if not 0 < sphere.radius < np.inf or center.shape != (3,) or not np.isfinite(center).all():
            raise InputError(f"a sphere of {sphere.frame!r} needs a positive radius and a centre of three numbers")
    return tuple(spheres)


__all__ = ["Goal", "Reached", "Sphere", "reach"]
