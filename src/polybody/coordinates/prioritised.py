"""Inverse kinematics of several frames at once: priorities, joint limits and collision spheres.

Every step solves, priority by priority, for a displacement d along the manifold,

    least ‖w(J_k d − e_k)‖² + λ²‖d‖²   within   J_j d as found for every priority j before k,
    loops       J d = −φ
    limits      low − q ≤ d ≤ high − q,   |d| ≤ stride
    spheres     nᵀ(J_a − J_b) d ≥ −γ (distance − margin),   n from b to a

each a quadratic program (Clarabel). Higher priorities are held by writing d = d_(k−1) + N z, N a basis of what they do
not feel, so that a lower one does not disturb them but for curvature. That is mended within the step, and the lowest
priority's part is halved until its error falls all the same. So is a step whose curvature would bring spheres together.
Where no place fits, the nearest one found is returned and its errors are reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from polybody.coordinates.inverse_kinematics import checked_steps, checked_target
from polybody.coordinates.programs import require_clarabel
from polybody.errors import InputError
from polybody.mechanism.columns import state_text
from polybody.model.arguments import as_model, float_array, positive
from polybody.model.batches import batch_shape
from polybody.model.model import Model
from polybody.quantities.frames import find_frame

Array = np.ndarray
#: largest displacement of a coordinate in one step, rad or m
STRIDE = 0.3
#: part of the room between spheres that one step may take
ROOM = 0.7
DAMPING = 1e-4
#: and beside it, per m or rad that is left of a goal
SOFT = 0.5
#: how often a step is halved at most, and steps that put higher priorities right within one
HALVINGS, MENDING = 12, 4
#: parts of a step below which halving ends
SMALL = 1e-7
#: last steps for the highest priority alone
SETTLE = 20
#: a level's rows that others have taken, over the largest
RANK = 1e-7


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
    if values is None:
        model.engine.require_closed(q)
    rest = None if posture is None else model._q(posture, "posture")
    targets = [np.asarray(goal.target, dtype=float) for goal in wanted]
    flat = [x.reshape(*x.shape[: -_rank(x)], -1) for x in targets]
    lead = batch_shape([q, *flat, *(x for x in (rest, values) if x is not None)])
    found = []
    for at in np.ndindex(lead):
        here = tuple(
            replace(goal, target=_state(x, lead, at).reshape((4, 4) if x.shape[-1] == 16 else (3,)))
            for goal, x in zip(wanted, flat, strict=True)
        ) if lead else wanted
        own = None if rest is None else _state(rest, lead, at)
        machine = model if values is None else model.parameters.at(_state(values, lead, at))
        if values is not None:
            machine.engine.require_closed(_state(q, lead, at))
        task = _Problem(machine, here, balls, pairs, margin, limits, own)
        found.append(_reached(task, _state(q, lead, at), steps, tolerance, at))
    if not lead:
        return Reached(found[0].q, wanted, *found[0][1:])
    whole, *rest_of = (np.array(x) for x in zip(*found, strict=True))
    there, *others = (x.reshape(*lead, *x.shape[1:]) for x in (whole, *rest_of))
    return Reached(there, wanted, *others)


def _rank(target: Array) -> int:
    """Dimensions of one target: two of a pose, one of a point."""
    return 2 if target.shape[-2:] == (4, 4) else 1


def _state(x: Array, lead: tuple[int, ...], at: tuple[int, ...]) -> Array:
    return np.broadcast_to(x, (*lead, x.shape[-1]))[at]


class _Found(NamedTuple):
    q: Array
    errors: Array
    distance: float
    steps: int
    converged: bool


def _reached(task: _Problem, q: Array, steps: int, tolerance: float, at: tuple[int, ...]) -> _Found:
    task.check_start(q, at)
    count, size = 0, np.inf
    for count in range(1, steps + 1):  # noqa: B007  how many steps were taken is told
        there = task.moved(q, task.step(q))
        size = float(np.abs(task.model.difference(q, there)).max(initial=0.0))
        q = there
        if size < tolerance:
            break
    for _ in range(SETTLE):  # lower priorities have had their say
        parts = task.step(q, 1)
        if np.abs(parts[0]).max(initial=0.0) < tolerance:
            break
        q = task.moved(q, parts)
    errors = task.errors(q)
    first = [k for k, goal in enumerate(task.goals) if goal.priority == task.levels[0]]
    return _Found(q, errors, task.distance(q), count, bool((errors[first] <= 10 * tolerance).all()))


class _Problem:
    def __init__(
        self, model: Model, goals: tuple[Goal, ...], spheres: tuple[Sphere, ...], pairs: Any, margin: float,
        limits: bool, posture: Any,
    ) -> None:  # fmt: skip
        self.model, self.goals, self.spheres, self.margin = model, goals, spheres, float(margin)
        self.levels = sorted({goal.priority for goal in goals})
        self.pairs = self._pairs(pairs)
        self.posture: Array | None = posture
        bounds = model.joint_limits()
        free = np.full(model.nv, np.inf)
        self.low, self.high = (bounds["lower"], bounds["upper"]) if limits else (-free, free)
        self.neutral = model.neutral()

    def _pairs(self, pairs: Any) -> list[tuple[int, int]]:
        if pairs is None:
            body = [find_frame(self.model.mechanism, s.frame).body for s in self.spheres]
            return [(i, j) for i, j in combinations(range(len(body)), 2) if body[i] != body[j]]
        found = [tuple(pair) for pair in pairs]
        for i, j in found:
            if not (0 <= i < len(self.spheres) and 0 <= j < len(self.spheres)) or i == j:
                raise InputError(f"pairs holds ({i}, {j}); there are spheres 0 to {len(self.spheres) - 1}")
        return found  # type: ignore[return-value]

    def check_start(self, q: Array, at: tuple[int, ...] = ()) -> None:
        if self.pairs and self.distance(q) < self.margin:
            gaps = self.gaps(q)[0]
            i, j = self.pairs[int(np.argmin(gaps))]
            raise InputError(
                f"spheres {i} ({self.spheres[i].frame!r}) and {j} ({self.spheres[j].frame!r}) are {gaps.min():.4g} m "
                f"apart at the start{state_text(at)}, expected at least {self.margin:g}: start elsewhere"
            )

    def step(self, q: Array, count: int | None = None) -> list[Array]:
        """The displacements of one step, one for each of the first `count` priorities, and one for the posture."""
        model, n = self.model, self.model.nv
        d, N = np.zeros(n), np.eye(n)
        if len(model.constraints):
            J, phi = model.constraints.jacobian(q), model.constraints.residual(q)
            d = -np.linalg.pinv(J, rcond=1e-10) @ phi
            N = _null(J)
        A, b = self.inequalities(q)
        parts: list[Array] = []
        for priority in self.levels[:count]:
            rows, gap = self.level(q, priority)
            # damped by what is left (Sugihara): goals out of reach are approached without swinging about them
            own = N @ _least(rows @ N, gap - rows @ d, A @ N, b - A @ d, DAMPING + SOFT * float(np.linalg.norm(gap)))
            parts.append(own + d if not parts else own)
            d = d + own
            N = N @ _null(rows @ N)
        if self.posture is not None and N.shape[1] and count is None:
            wish = np.clip(model.difference(q, self.posture), -STRIDE, STRIDE)
            parts.append(N @ _least(N, wish - d, A @ N, b - A @ d, DAMPING))
        return parts

    def moved(self, q: Array, parts: list[Array]) -> Array:
        """Along the parts; the last one as far as its error falls once the priorities above it are put right again."""
        before, scale = self.level_errors(q), 1.0
        upper = len(parts) - 1
        for _ in range(HALVINGS):
            there = self._there(q, sum(parts[:upper], np.zeros(self.model.nv)) + scale * parts[-1])
            after, kept = self.level_errors(there), False
            for _ in range(MENDING):
                kept = bool((after[:upper] <= np.maximum(before[:upper], 1e-9)).all())
                if kept:
                    break
                there = self._there(there, sum(self.step(there, upper), np.zeros(self.model.nv)))
                after = self.level_errors(there)
            apart = not self.pairs or self.distance(there) >= self.margin - 1e-12
            if apart and kept and after[upper] <= before[upper]:
                return there
            if scale * np.abs(parts[-1]).max(initial=0.0) < SMALL:
                break
            scale /= 2
        plain = self._there(q, sum(parts[:upper], np.zeros(self.model.nv))) if upper else q
        return plain if not self.pairs or self.distance(plain) >= self.margin - 1e-12 else q

    def _there(self, q: Array, d: Array) -> Array:
        there = self.model.integrate(q, d)
        return _closed(self.model, there) if len(self.model.constraints) else there

    def level_errors(self, q: Array) -> Array:
        """The error of every priority, weighted, and of the posture."""
        found = np.zeros(len(self.levels) + 1)
        for goal in self.goals:
            error = goal.weight * self._goal(q, goal)[1]
            found[self.levels.index(goal.priority)] += float(error @ error)
        if self.posture is not None:
            found[-1] = np.linalg.norm(self.model.difference(q, self.posture)) ** 2
        return np.sqrt(found)

    def level(self, q: Array, priority: int) -> tuple[Array, Array]:
        """(J, e) of all goals of one priority, weighted."""
        rows, gaps = [], []
        for goal in self.goals:
            if goal.priority == priority:
                J, error = self._goal(q, goal)
                size = np.linalg.norm(error)
                rows.append(goal.weight * J)
                gaps.append(goal.weight * error * min(1.0, STRIDE / max(size, 1e-300)))
        return np.concatenate(rows), np.concatenate(gaps)

    def _goal(self, q: Array, goal: Goal) -> tuple[Array, Array]:
        from scipy.spatial.transform import Rotation

        J, pose, target = self.model.jacobian(q, goal.frame), self.model.pose(q, goal.frame), np.asarray(goal.target)
        if target.shape == (3,):
            return J[3:], target - pose[:3, 3]
        turn = Rotation.from_matrix(target[:3, :3] @ pose[:3, :3].T).as_rotvec()
        return J, np.concatenate([turn, target[:3, 3] - pose[:3, 3]])

    def inequalities(self, q: Array) -> tuple[Array, Array]:
        """A d ≤ b: limits, stride, spheres."""
        n = self.model.nv
        place = self.model.difference(self.neutral, q) + self._origin()
        high = np.minimum(np.maximum(self.high - place, 0.0), STRIDE)
        low = np.maximum(np.minimum(self.low - place, 0.0), -STRIDE)
        A, b = [np.eye(n), -np.eye(n)], [high, -low]
        if self.pairs:
            gaps, normals = self.gaps(q)
            J = [self._sphere_jacobian(q, s) for s in self.spheres]
            for (i, k), gap, normal in zip(self.pairs, gaps, normals, strict=True):
                A.append(-(normal @ (J[i] - J[k]))[None])
                b.append(np.array([ROOM * max(gap - self.margin, 0.0)]))
        return np.concatenate(A), np.concatenate(b)

    def _origin(self) -> Array:
        """q of one-number joints at neutral: limits are those of q, and difference counts from neutral."""
        origin = np.zeros(self.model.nv)
        for joint in self.model.mechanism.independent_joints:
            if joint.nq == joint.nv:
                origin[joint.v] = self.neutral[joint.q]
        return origin

    def centers(self, q: Array) -> Array:
        poses = {s.frame: self.model.pose(q, s.frame) for s in self.spheres}
        return np.array([poses[s.frame][:3, :3] @ s.center + poses[s.frame][:3, 3] for s in self.spheres])

    def gaps(self, q: Array) -> tuple[Array, Array]:
        """(distances between surfaces, unit vectors from the second to the first) of all pairs."""
        c = self.centers(q)
        i, j = (np.array(x, dtype=int) for x in zip(*self.pairs, strict=True))
        apart = c[i] - c[j]
        length = np.linalg.norm(apart, axis=-1)
        radii = np.array([s.radius for s in self.spheres])
        return length - radii[i] - radii[j], apart / np.maximum(length, 1e-300)[:, None]

    def _sphere_jacobian(self, q: Array, sphere: Sphere) -> Array:
        J = self.model.jacobian(q, sphere.frame)
        arm = self.model.pose(q, sphere.frame)[:3, :3] @ np.asarray(sphere.center)
        return J[3:] + np.cross(J[:3], arm, axisa=0, axisb=0, axisc=0)

    def distance(self, q: Array) -> float:
        return float(self.gaps(q)[0].min()) if self.pairs else np.inf

    def errors(self, q: Array) -> Array:
        found = []
        for goal in self.goals:
            error = self._goal(q, goal)[1]
            found.append([np.linalg.norm(error[:-3]), np.linalg.norm(error[-3:])])
        return np.array(found)


def _null(J: Array) -> Array:
    """An orthonormal basis of what J does not feel."""
    if not J.size:
        return np.eye(J.shape[1])
    _, s, vh = np.linalg.svd(J)
    return vh[int((s > RANK * max(float(s[0]), 1e-300)).sum()) :].T


def _least(J: Array, e: Array, A: Array, b: Array, damping: float) -> Array:
    """z with the least ‖J z − e‖² + damping²‖z‖² and A z ≤ b; b ≥ 0 up to rounding, so that z = 0 is possible."""
    from scipy.sparse import csc_matrix

    k = J.shape[1]
    if not k:
        return np.zeros(0)
    b = np.maximum(b, 0.0)
    P, linear = J.T @ J + damping**2 * np.eye(k), -J.T @ e
    free = np.linalg.solve(P, -linear)
    if (A @ free <= b + 1e-14).all():
        return free
    clarabel = require_clarabel()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    kept = np.abs(A).max(axis=1) > 0
    cones = [clarabel.NonnegativeConeT(int(kept.sum()))]
    upper = csc_matrix(np.triu(P))
    answer = clarabel.DefaultSolver(upper, linear, csc_matrix(A[kept]), b[kept], cones, settings).solve()
    return np.array(answer.x) if str(answer.status) in ("Solved", "AlmostSolved") else np.zeros(k)


def _closed(model: Model, q: Array) -> Array:
    """q led back to its loops by least steps."""
    for _ in range(20):
        phi = model.constraints.residual(q)
        if np.abs(phi).max(initial=0.0) < 1e-12:
            break
        q = model.integrate(q, -np.linalg.pinv(model.constraints.jacobian(q), rcond=1e-10) @ phi)
    return q


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
