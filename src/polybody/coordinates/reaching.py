"""Steps of prioritised inverse kinematics, all states of a batch side by side.

Every step solves, priority by priority, for a displacement d along the manifold,

    least ‖w(J_k d − e_k)‖² + λ²‖d‖²   within   J_j d as found for every priority j before k,
    loops       J d = −φ
    limits      low − q ≤ d ≤ high − q,   |d| ≤ stride
    spheres     nᵀ(J_a − J_b) d ≥ −γ (distance − margin),   n from b to a

each a quadratic program (`quadratic`). Higher priorities are held by writing d = d_(k−1) + N z, N the projector on what
they do not feel, so that a lower one does not disturb them but for curvature. That is mended within the step, and the
lowest priority's part is halved until its error falls all the same. So is a step whose curvature would bring spheres
together. States that have arrived are left as they are while the others go on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.coordinates import quadratic
from polybody.late import dataclass
from polybody.model.model import Model
from polybody.model.rotation_vectors import rotation_vectors
from polybody.properties import cached_property

if TYPE_CHECKING:
    from polybody.coordinates.prioritised import Goal, Sphere

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
#: loops are led back so near, by at most so many steps
CLOSED, RETURNS = 1e-12, 20


@dataclass(frozen=True, eq=False)
class Task:
    """What is asked of s states: `targets` (s, 16 or 3) of each goal, `posture` (s, nq), `parameters` (s, k)."""

    model: Model
    goals: tuple[Goal, ...]
    targets: tuple[Array, ...]
    spheres: tuple[Sphere, ...]
    pairs: tuple[tuple[int, int], ...]
    margin: float
    limits: bool
    posture: Array | None
    parameters: Array | None

    def part(self, states: Any) -> Task:
        """The task of some states."""
        some = lambda x: None if x is None else x[states]  # noqa: E731
        return replace(
            self, targets=tuple(x[states] for x in self.targets), posture=some(self.posture),
            parameters=some(self.parameters),
        )  # fmt: skip

    @cached_property
    def levels(self) -> list[int]:
        """Priorities, the highest first."""
        return sorted({goal.priority for goal in self.goals})

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """(low, high) of displacements from neutral: limits are those of q."""
        model = self.model
        found = model.joint_limits()
        free = np.full(model.nv, np.inf)
        low, high = (found["lower"], found["upper"]) if self.limits else (-free, free)
        origin = np.zeros(model.nv)
        neutral = model.neutral()
        for joint in model.mechanism.independent_joints:
            if joint.nq == joint.nv:
                origin[joint.v] = neutral[joint.q]
        return low - origin, high - origin

    # Frames.

    def goal(self, q: Array, k: int) -> tuple[Array, Array]:
        """(J, error) of a goal, (s, r, nv) and (s, r)."""
        frame, target = self.goals[k].frame, self.targets[k]
        J, pose = self.jacobian(q, frame), self.pose(q, frame)
        if target.shape[-1] == 3:
            return J[:, 3:], target - pose[:, :3, 3]
        wanted = target.reshape(-1, 4, 4)
        turn = rotation_vectors(wanted[:, :3, :3] @ np.swapaxes(pose[:, :3, :3], -1, -2))
        return J, np.concatenate([turn, wanted[:, :3, 3] - pose[:, :3, 3]], axis=-1)

    def jacobian(self, q: Array, frame: str) -> Array:
        return self.model.jacobian(q, frame, parameters=self.parameters)

    def pose(self, q: Array, frame: str) -> Array:
        return self.model.pose(q, frame, parameters=self.parameters)

    def errors(self, q: Array) -> Array:
        """[rotation, position] of every goal, (s, goals, 2)."""
        found = [self.goal(q, k)[1] for k in range(len(self.goals))]
        return np.stack([np.stack([_norm(e[:, :-3]), _norm(e[:, -3:])], axis=-1) for e in found], axis=1)

    def level_errors(self, q: Array) -> Array:
        """The error of every priority, weighted, and of the posture, (s, levels + 1)."""
        found = np.zeros((len(q), len(self.levels) + 1))
        for k, goal in enumerate(self.goals):
            found[:, self.levels.index(goal.priority)] += _norm(goal.weight * self.goal(q, k)[1]) ** 2
        if self.posture is not None:
            found[:, -1] = _norm(self.model.difference(q, self.posture)) ** 2
        return np.sqrt(found)

    def level(self, q: Array, priority: int) -> tuple[Array, Array]:
        """(J, e) of all goals of one priority, weighted."""
        rows, gaps = [], []
        for k, goal in enumerate(self.goals):
            if goal.priority == priority:
                J, error = self.goal(q, k)
                rows.append(goal.weight * J)
                gaps.append(goal.weight * error * np.minimum(1.0, STRIDE / np.maximum(_norm(error), 1e-300))[:, None])
        return np.concatenate(rows, axis=1), np.concatenate(gaps, axis=1)

    # Spheres.

    def gaps(self, q: Array) -> tuple[Array, Array]:
        """(distances between surfaces (s, p), unit vectors from the second to the first (s, p, 3)) of all pairs."""
        poses = {s.frame: self.pose(q, s.frame) for s in self.spheres}
        c = np.stack(
            [poses[s.frame][:, :3, :3] @ np.asarray(s.center, dtype=float) + poses[s.frame][:, :3, 3]
             for s in self.spheres], axis=1,
        )  # fmt: skip
        i, j = np.array(self.pairs, dtype=int).T
        apart = c[:, i] - c[:, j]
        length, radii = _norm(apart), np.array([s.radius for s in self.spheres])
        return length - radii[i] - radii[j], apart / np.maximum(length, 1e-300)[..., None]

    def distance(self, q: Array) -> Array:
        """Between the nearest spheres, (s,)."""
        return self.gaps(q)[0].min(axis=-1) if self.pairs else np.full(len(q), np.inf)

    def is_apart(self, q: Array) -> Array:
        return self.distance(q) >= self.margin - 1e-12

    def _sphere_jacobian(self, q: Array, sphere: Sphere) -> Array:
        J = self.jacobian(q, sphere.frame)
        arm = self.pose(q, sphere.frame)[:, :3, :3] @ np.asarray(sphere.center, dtype=float)
        return J[:, 3:] + np.cross(J[:, :3], arm[:, :, None], axisa=1, axisb=1, axisc=1)

    def inequalities(self, q: Array) -> tuple[Array, Array, Array]:
        """low ≤ A d ≤ high: limits, stride, spheres; (s, m, nv) and (s, m)."""
        n = self.model.nv
        place = self.model.difference(self.model.neutral(), q)
        low, high = self.bounds
        high = np.minimum(np.maximum(high - place, 0.0), STRIDE)
        low = np.maximum(np.minimum(low - place, 0.0), -STRIDE)
        A = np.broadcast_to(np.eye(n), (len(q), n, n))
        if not self.pairs:
            return A, low, high
        gaps, normals = self.gaps(q)
        J = np.stack([self._sphere_jacobian(q, s) for s in self.spheres], axis=1)
        i, j = np.array(self.pairs, dtype=int).T
        rows = -(normals[:, :, None, :] @ (J[:, i] - J[:, j]))[:, :, 0]
        room = ROOM * np.maximum(gaps - self.margin, 0.0)
        never = -1.0 - STRIDE * np.abs(rows).sum(axis=-1)  # spheres may go apart as the stride allows
        low, high = np.concatenate([low, never], axis=1), np.concatenate([high, room], axis=1)
        return np.concatenate([A, rows], axis=1), low, high

    # Steps.

    def step(self, q: Array, count: int | None = None) -> tuple[Array, Array]:
        """(parts (s, k, nv), which is the last of each state (s,)): the displacements of one step.

        One part for each of the first `count` priorities. Without `count`, of all, and one for the posture: it is the
        last of states that priorities leave free for it.
        """
        model, n = self.model, self.model.nv
        d, N = np.zeros((len(q), n)), np.broadcast_to(np.eye(n), (len(q), n, n))
        if len(model.constraints):
            J = model.constraints.jacobian(q, parameters=self.parameters)
            phi = model.constraints.residual(q, parameters=self.parameters)
            d = -_times(np.linalg.pinv(J, rcond=1e-10), phi)
            N = N - _felt(J)
        A, low, high = self.inequalities(q)
        parts: list[Array] = []
        for priority in self.levels[:count]:
            rows, gap = self.level(q, priority)
            # damped by what is left (Sugihara): goals out of reach are approached without swinging about them
            own = _least(rows, gap - _times(rows, d), A, low, high, d, N, DAMPING + SOFT * _norm(gap))
            parts.append(own if parts else own + d)
            d = d + own
            N = N - _felt(rows @ N)
        last = np.full(len(q), len(parts) - 1)
        if self.posture is not None and count is None:
            wish = np.clip(model.difference(q, self.posture), -STRIDE, STRIDE)
            own = _least(N, wish - d, A, low, high, d, N, np.full(len(q), DAMPING))
            free = np.trace(N, axis1=-2, axis2=-1) > 0.5
            parts.append(np.where(free[:, None], own, 0.0))
            last = last + free
        return np.stack(parts, axis=1), last

    def moved(self, q: Array, parts: Array, last: Array) -> Array:
        """Along the parts; the last one as far as its error falls once the priorities above it are put right again."""
        states = np.arange(len(q))
        final = parts[states, last]
        before = self.level_errors(q)
        earlier = np.arange(parts.shape[1])[None, :] < last[:, None]
        fixed = np.where(earlier[..., None], parts, 0.0).sum(axis=1)
        result, scale, at = q.copy(), np.ones(len(q)), states
        failed = np.zeros(len(q), dtype=bool)
        for _ in range(HALVINGS):
            some = self.part(at)
            there = some.there(q[at], fixed[at] + scale[at, None] * final[at])
            there, after, kept = some.mended(there, before[at], last[at])
            rows = np.arange(len(at))
            good = kept & (after[rows, last[at]] <= before[at, last[at]])
            good &= some.is_apart(there) if self.pairs else True
            result[at[good]] = there[good]
            at = at[~good]
            small = scale[at] * np.abs(final[at]).max(axis=-1, initial=0.0) < SMALL
            failed[at[small]] = True
            at = at[~small]
            scale[at] /= 2
            if not len(at):
                break
        failed[at] = True
        if failed.any():
            bad = np.flatnonzero(failed)
            some = self.part(bad)
            plain = np.where((last[bad] > 0)[:, None], some.there(q[bad], fixed[bad]), q[bad])
            fits = some.is_apart(plain) if self.pairs else np.ones(len(bad), dtype=bool)
            result[bad] = np.where(fits[:, None], plain, q[bad])
        return result

    def mended(self, there: Array, before: Array, last: Array) -> tuple[Array, Array, Array]:
        """(states, their errors, whether priorities above the last are as near as before): put right a few times."""
        after = self.level_errors(there)
        above = np.arange(after.shape[1])[None, :] < last[:, None]
        allowed = np.where(above, np.maximum(before, 1e-9), np.inf)
        kept = np.zeros(len(there), dtype=bool)
        for _ in range(MENDING):
            kept = np.asarray((after <= allowed).all(axis=-1))
            bad = np.flatnonzero(~kept)
            if not len(bad):
                break
            for count in {int(k) for k in last[bad]}:  # two at most: with a part for the posture and without
                own = bad[last[bad] == count]
                some = self.part(own)
                back = some.step(there[own], count)[0].sum(axis=1)
                there[own] = some.there(there[own], back)
            after[bad] = self.part(bad).level_errors(there[bad])
        return there, after, kept

    def there(self, q: Array, d: Array) -> Array:
        """q moved by d, with its loops closed."""
        model = self.model
        q = model.integrate(q, d)
        if not len(model.constraints):
            return q
        at = np.arange(len(q))
        for _ in range(RETURNS):
            values = None if self.parameters is None else self.parameters[at]
            phi = model.constraints.residual(q[at], parameters=values)
            still = ~(np.abs(phi).max(axis=-1, initial=0.0) < CLOSED)
            at, phi, values = at[still], phi[still], None if values is None else values[still]
            if not len(at):
                break
            J = model.constraints.jacobian(q[at], parameters=values)
            q[at] = model.integrate(q[at], -_times(np.linalg.pinv(J, rcond=1e-10), phi))
        return q


def reached(task: Task, q: Array, steps: int, tolerance: float) -> tuple[Array, Array, Array, Array, Array]:
    """(q, errors, distance, steps, converged) of every state of a task."""
    q, counts, at = q.copy(), np.zeros(len(q), dtype=int), np.arange(len(q))
    for count in range(1, steps + 1):
        if not len(at):
            break
        some = task.part(at)
        there = some.moved(q[at], *some.step(q[at]))
        size = np.abs(task.model.difference(q[at], there)).max(axis=-1, initial=0.0)
        q[at], counts[at] = there, count
        at = at[size >= tolerance]
    at = np.arange(len(q))
    for _ in range(SETTLE):  # lower priorities have had their say
        if not len(at):
            break
        some = task.part(at)
        parts, last = some.step(q[at], 1)
        far = np.abs(parts[:, 0]).max(axis=-1, initial=0.0) >= tolerance
        at, parts, last = at[far], parts[far], last[far]
        q[at] = task.part(at).moved(q[at], parts, last)
    errors = task.errors(q)
    first = [k for k, goal in enumerate(task.goals) if goal.priority == task.levels[0]]
    converged = np.asarray((errors[:, first] <= 10 * tolerance).all(axis=(1, 2)))
    return q, errors, task.distance(q), counts, converged


def _norm(x: Array) -> Array:
    return np.sqrt((x * x).sum(axis=-1))


def _times(A: Array, x: Array) -> Array:
    return (A @ x[..., None])[..., 0]


def _felt(J: Array) -> Array:
    """The projector on what J feels."""
    if not J.shape[1]:
        return np.zeros((len(J), J.shape[-1], J.shape[-1]))
    _, s, vh = np.linalg.svd(J, full_matrices=False)
    felt = np.where((s > RANK * np.maximum(s[:, :1], 1e-300))[..., None], vh, 0.0)
    return np.swapaxes(felt, -1, -2) @ felt


def _least(J: Array, e: Array, A: Array, low: Array, high: Array, d: Array, N: Array, damping: Array) -> Array:
    """N z with the least ‖J N z − e‖² + damping²‖z‖² and low ≤ A (d + N z) ≤ high.

    d keeps the bounds up to rounding, so that z = 0 does. What N does not reach costs more than anything: z has nothing
    of it.
    """
    n = J.shape[-1]
    rows, T = J @ N, np.swapaxes(J @ N, -1, -2)
    P = T @ rows + (damping**2)[:, None, None] * np.eye(n) + (np.eye(n) - N)
    there = _times(A, d)
    z = quadratic.least(P, -_times(T, e), A @ N, np.minimum(low - there, 0.0), np.maximum(high - there, 0.0))
    return _times(N, z)


__all__ = ["Task", "reached"]
