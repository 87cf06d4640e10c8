"""The reverse position problem: configurations that put frames at their targets.

Levenberg-Marquardt on the manifold. With e the stacked errors of all targets (rotation vector of R* Rᵀ, then p* − p, in
world axes), J their Jacobian, E = ½ eᵀe and g a wish of one's own in joint space,

    δ = g + Jᵀ(J Jᵀ + λ)⁻¹(e − J g),     λ = E + ε           (or the form with JᵀJ, where targets outnumber velocities)
    q ← clip(q ⊞ δ)

Columns of J whose joints are at a limit, and which Jᵀe drives against it, are left out of the step: the others take
over, where clipping alone would stay there.

The damping vanishes with the error (Sugihara's choice), so that convergence ends quadratic, and no step needs to be
taken back. The whole step is one compiled kernel. A start that has not converged after some steps is drawn anew; every
state of a batch keeps its own count. Half of the restarts look beyond the limits: whole turns bring some of what they
find back within, and a basin that limits have cut to a corner is entered from outside. Loops and couplings are one more
target: e has the rows −φ(q), J those of the constraints, and an answer is on them to the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.constraints.system import constraints_of
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.mechanism import kinematics
from polybody.mechanism.joints import MapJoint, ReversedJoint
from polybody.mechanism.mechanism import Mechanism
from polybody.model.arguments import finite, float_array, positive, random_generator, require_model, state_array
from polybody.model.model import Model
from polybody.model.tracing import trace
from polybody.quantities.frames import find_frame

#: the least damping: it decides how slowly the last digits come near singular configurations
LEAST_DAMPING = 1e-12
STEPS = 30
TOGETHER = 2**15  # states searched for together: what they need on the way is some 25 MB


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """Solution q (..., nq), whether it converged, and the remaining error of each target.

    `position_error` (m) and `rotation_error` (rad) have one number for each target, in the order given; the rotation
    of a target that is only a point is not asked for, and its error is zero. `steps` and `restarts` count the work.
    """

    q: Array
    converged: Array
    position_error: Array
    rotation_error: Array
    steps: Array
    restarts: Array

    def __bool__(self) -> bool:
        return bool(np.all(self.converged))


@dataclass(frozen=True)
class _Target:
    frame: str
    whole: bool  # a pose, not only a point

    @property
    def size(self) -> int:
        return 12 if self.whole else 3


def rotation_error(wanted: Array, found: Array, domain: Domain) -> Array:
    """The rotation vector of R* Rᵀ, world axes; its length is the angle, up to π."""
    c = domain.const
    Q = wanted @ found.T
    vee = np.array([Q[2, 1] - Q[1, 2], Q[0, 2] - Q[2, 0], Q[1, 0] - Q[0, 1]], dtype=domain.dtype) / c(2)
    cosine = (Q[0, 0] + Q[1, 1] + Q[2, 2] - c(1)) / c(2)
    square = vee @ vee
    small = domain.less(square, c(1e-16))
    sine = domain.sqrt(domain.where(small, c(1), square))
    factor = domain.where(small, c(1), domain.atan2(sine, cosine) / sine)
    return vee * factor


def _pressed(q: Array, J: Array, e: Array, box: _Box, domain: Domain) -> Array:
    """J without the columns that would press a joint against its limit."""
    J, zero = J.copy(), domain.const(0)
    pull = J.T @ e
    for k, (place, low, high) in box.bounds.items():
        free = domain.const(1)
        if np.isfinite(low):
            out = domain.where(domain.less(pull[k], zero), zero, domain.const(1))
            free = domain.where(domain.less(domain.const(low), q[place]), free, out)
        if np.isfinite(high):
            out = domain.where(domain.less(zero, pull[k]), zero, domain.const(1))
            free = free * domain.where(domain.less(q[place], domain.const(high)), domain.const(1), out)
        J[:, k] = J[:, k] * free
    return J


def _step_kernel(model: Model, targets: tuple[_Target, ...], wish: bool, box: _Box | None) -> Any:
    """(q, targets, wish) -> next q, squared errors [rotation, position] of each target at q."""
    m = model.engine.traced_mechanism
    frames = [find_frame(m, t.frame) for t in targets]
    inputs = [("q", m.nq), ("targets", sum(t.size for t in targets)), *([("wish", m.nv)] if wish else [])]

    def text(q: Array, goals: Array, g: Array | None = None, *, domain: Domain) -> tuple[Array, Array]:
        e, J, squares = _errors(m, q, goals, targets, frames, domain)
        J = J if box is None else _pressed(q, J, e, box, domain)
        damping = (e @ e) / domain.const(2) + domain.const(LEAST_DAMPING)
        residual = e if g is None else e - J @ g
        if len(e) <= m.nv:
            A = J @ J.T + domain.eye(len(e)) * damping
            delta = J.T @ domain.solve(A, residual)
        else:
            A = J.T @ J + domain.eye(m.nv) * damping
            delta = domain.solve(A, J.T @ residual)
        delta = delta if g is None else delta + g
        return kinematics.integrate(m, q, delta, domain=domain), squares

    closed = 1 if m.constrained else 0
    label = "inverse kinematics " + " ".join(f"{t.frame}:{t.size}" for t in targets) + (" wish" if wish else "")
    label += "" if box is None else " limits"
    outputs = [("q", (m.nq,)), ("errors", (len(targets) + closed, 2))]
    return model.engine.compile(label, inputs, outputs, lambda: trace(label, inputs, text, m.symbols))


def _errors(
    m: Mechanism, q: Array, goals: Array, targets: tuple[_Target, ...], frames: list[Any], domain: Domain
) -> tuple[Array, Array, Array]:
    poses = kinematics.body_poses(m, q, domain=domain)
    maps = kinematics.world_maps(m, q, poses, domain=domain)
    rows, errors, start = [], [], 0
    squares = domain.zeros(len(targets) + (1 if m.constrained else 0), 2)
    for k, (target, frame) in enumerate(zip(targets, frames, strict=True)):
        R, p = kinematics.frame_pose(frame, poses, domain=domain)
        J = kinematics.point_jacobian(m, frame.body, p, maps, domain=domain)
        goal = goals[start : start + target.size]
        start += target.size
        shift = goal[-3:] - p
        squares[k, 1] = shift @ shift
        if target.whole:
            turn = rotation_error(goal[:9].reshape(3, 3), R, domain)
            squares[k, 0] = turn @ turn
            errors.append(turn)
            rows.append(J[:3])
        errors.append(shift)
        rows.append(J[3:])
    if m.constrained:
        system = constraints_of(m)
        phi = system.residual(q, domain=domain, far=True)
        squares[-1, 1] = phi @ phi
        errors.append(-phi)
        rows.append(system.jacobian(q, domain=domain))
    return np.concatenate(errors), np.concatenate(rows), squares


def checked_target(frame: str, target: Any) -> tuple[Array, bool]:
    """(array, whether it is a pose) of a pose (..., 4, 4) or a point (..., 3): finite, every pose with a rotation."""
    array = float_array(f"target of {frame!r}", target)
    whole = array.ndim >= 2 and array.shape[-2:] == (4, 4)
    if not whole and (array.ndim == 0 or array.shape[-1] != 3):
        raise InputError(
            f"target of {frame!r} has shape {array.shape}, expected a pose (..., 4, 4) or a point (..., 3)"
        )
    lead = array.shape[:-2] if whole else array.shape[:-1]
    flat = array.reshape(-1, *array.shape[len(lead) :])
    for start in range(0, len(flat), TOGETHER):
        some = flat[start : start + TOGETHER]
        if not np.isfinite(some).all():
            raise InputError(f"target of {frame!r} is not finite")
        wrong = np.flatnonzero(_no_rotations(some[:, :3, :3])) if whole else np.zeros(0, dtype=int)
        if wrong.size:
            at = np.unravel_index(start + int(wrong[0]), lead) if lead else ()
            where = f" number {', '.join(str(int(k)) for k in at)}" if lead else ""
            raise InputError(f"target{where} of {frame!r}: its upper left 3×3 is not a rotation")
    return array, whole


def _no_rotations(R: Array) -> Array:
    """Which of the matrices (n, 3, 3) are no rotations."""
    off = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(axis=(-2, -1))
    return (off > 1e-6) | (np.linalg.det(R) < 0)


def checked_steps(steps: Any, tolerance: Any) -> None:
    """How long and how closely to search."""
    positive("tolerance", tolerance)
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        raise InputError(f"steps is {steps!r}; expected a whole number, 0 or more")


def _read_targets(model: Model, targets: Mapping[str, Any]) -> tuple[tuple[_Target, ...], list[Array]]:
    """The kinds of targets, and their poses (..., 4, 4) or points (..., 3)."""
    if not isinstance(targets, Mapping) or not targets:
        raise InputError("inverse kinematics needs at least one target, {frame: pose or point}")
    kinds, goals = [], []
    for frame, goal in targets.items():
        find_frame(model.mechanism, frame)
        array, whole = checked_target(frame, goal)
        kinds.append(_Target(frame, whole))
        goals.append(array)
    return tuple(kinds), goals


def _numbers(goals: list[Array]) -> Array:
    """Targets (n, 4, 4) or (n, 3) as rows (n, sizes): rotations, then points."""
    parts = []
    for goal in goals:
        parts += [goal] if goal.ndim == 2 else [goal[:, :3, :3].reshape(-1, 9), goal[:, :3, 3]]
    return np.concatenate(parts, axis=-1)


class _Box:
    """Bounds of q, and configurations drawn within them, many at a time."""

    def __init__(self, model: Model) -> None:
        m = model.mechanism
        self.low, self.high = np.full(m.nq, -np.inf), np.full(m.nq, np.inf)
        self.start, self.end = np.full(m.nq, -1.0), np.full(m.nq, 1.0)
        self.turns = np.zeros(m.nq, dtype=bool)  # coordinates whose whole turns change no pose
        self.spheres: list[slice] = []
        for joint in m.independent_joints:
            forward = joint.model.joint if isinstance(joint.model, ReversedJoint) else joint.model
            if joint.nq != joint.nv:
                self.spheres.append(slice(joint.q.stop - 4, joint.q.stop))
                continue
            self.low[joint.q], self.high[joint.q] = joint.limits.lower, joint.limits.upper
            turning = np.linalg.norm(forward.map.H[:3], axis=0) > 0 if isinstance(forward, MapJoint) else False
            reach = np.where(turning, np.pi if joint.model.rates_are_velocities else 1.2, 1.0)
            bounded = np.isfinite(self.low[joint.q]) & np.isfinite(self.high[joint.q])
            if isinstance(forward, MapJoint) and joint.model.rates_are_velocities:
                self.turns[joint.q] = turning & ~forward.map.H[3:].any(axis=0)
            self.start[joint.q] = np.where(bounded, self.low[joint.q], -reach)
            self.end[joint.q] = np.where(bounded, self.high[joint.q], reach)
        #: {index of v: (index of q, lower, upper)}
        self.bounds: dict[int, tuple[int, float, float]] = {}
        for joint in m.independent_joints:
            for k in range(joint.nv if joint.nq == joint.nv else 0):
                place = joint.q.start + k
                if np.isfinite(self.low[place]) or np.isfinite(self.high[place]):
                    self.bounds[joint.v.start + k] = (place, float(self.low[place]), float(self.high[place]))
        self.bounded = bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    def clip(self, q: Array) -> Array:
        return np.clip(q, self.low, self.high) if self.bounded else q

    def turned(self, q: Array) -> tuple[Array, Array]:
        """q (n, nq) brought within the limits by whole turns where these do, and which of them are within, (n,)."""
        low = np.where(self.turns & np.isfinite(self.low), self.low, q)
        high = np.where(self.turns & np.isfinite(self.high), self.high, q)
        turns = np.ceil(np.maximum(low - q, 0) / (2 * np.pi)) - np.ceil(np.maximum(q - high, 0) / (2 * np.pi))
        q = q + 2 * np.pi * turns
        return q, np.all((q >= self.low) & (q <= self.high), axis=1)

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        q = rng.uniform(self.start, self.end, size=(count, len(self.low)))
        for sphere in self.spheres:
            x = rng.normal(size=(count, 4))
            q[:, sphere] = x / np.linalg.norm(x, axis=1, keepdims=True)
        return q


def inverse_kinematics(
    model: Model,
    targets: Mapping[str, Any],
    q0: Any = None,
    *,
    tolerance: float = 1e-9,
    restarts: int = 200,
    steps: int = STEPS,
    limits: bool = True,
    prefer: Any = None,
    gain: float = 0.2,
    rng: Any = 0,
    parameters: Any = None,
) -> InverseKinematics:
    """Find q such that each frame of `targets` reaches its pose (..., 4, 4) or point (..., 3), in world axes.

    The solver starts at q0 (default: neutral), then at up to `restarts` random configurations, with at most `steps`
    iterations from each start. It has converged when all positions are within `tolerance` metres and all rotations
    within `tolerance` radians. `limits` keeps q within the joint limits. `prefer` selects among the solutions of a
    redundant mechanism: a configuration to stay close to, or a function of q (batch, nq) that returns a desired joint
    velocity (batch, nv), such as the negative gradient of a criterion; each iteration adds the fraction `gain` of it as
    self-motion. Targets that did not converge return the closest configuration found, with its errors. With loops,
    solutions satisfy them. `parameters`, (k,) or (..., k), are values of the parameters of `model.with_parameters`;
    they broadcast with the targets.
    """
    require_model("inverse_kinematics", model)
    checked_steps(steps, tolerance)
    kinds, goals = _read_targets(model, targets)
    start = model.neutral() if q0 is None else finite("q0", model._q(q0, "q0"))
    values = None if parameters is None else model.parameters.checked(parameters)
    sizes = [1 if kind.size == 3 else 2 for kind in kinds]  # axes of a target's own
    leads = [goal.shape[: goal.ndim - own] for goal, own in zip(goals, sizes, strict=True)]
    lead = np.broadcast_shapes(*leads, start.shape[:-1], () if values is None else values.shape[:-1])
    wide = [_flat(goal, lead, own) for goal, own in zip(goals, sizes, strict=True)]
    starts, values = _flat(start, lead, 1), None if values is None else _flat(values, lead, 1)
    generator, found = random_generator("rng", rng), _Found(len(starts), model.nq, len(kinds))
    for first in range(0, len(starts), TOGETHER):
        part = slice(first, first + TOGETHER)
        rows, own = _numbers([goal[part] for goal in wide]), None if values is None else values[part]
        search = _Search(model, kinds, rows, starts[part], limits, prefer, gain, tolerance, generator, own)
        beyond = restarts // 2 if search.may_look_beyond else 0
        search.run(restarts - beyond, steps)
        search.run_beyond(beyond, steps)
        found.take(part, search)
    return found.result(lead)


def _flat(values: Array, lead: tuple[int, ...], own: int) -> Array:
    """One row after the other for all states, each with its `own` axes."""
    shape = values.shape[values.ndim - own :]
    return np.broadcast_to(values, (*lead, *shape)).reshape(math.prod(lead), *shape)


class _Found:
    """Results of all states, filled piece by piece."""

    def __init__(self, count: int, nq: int, targets: int) -> None:
        self.q, self.done = np.empty((count, nq)), np.empty(count, dtype=bool)
        self.rotation, self.position = np.empty((2, count, targets))
        self.steps, self.tries = np.empty((2, count), dtype=int)

    def take(self, part: slice, search: _Search) -> None:
        self.q[part], self.done[part] = search.best, search.done
        self.steps[part], self.tries[part] = search.steps, search.tries
        errors = np.sqrt(search.errors[:, : search.targets])
        self.rotation[part], self.position[part] = errors[..., 0], errors[..., 1]

    def result(self, lead: tuple[int, ...]) -> InverseKinematics:
        return InverseKinematics(
            q=self.q.reshape(*lead, self.q.shape[1]),
            converged=self.done.reshape(lead),
            position_error=self.position.reshape(*lead, self.position.shape[1]),
            rotation_error=self.rotation.reshape(*lead, self.rotation.shape[1]),
            steps=self.steps.reshape(lead),
            restarts=self.tries.reshape(lead),
        )


class _Search:
    """All states of a batch on their way; those that are done leave the active set."""

    def __init__(
        self, model: Model, kinds: tuple[_Target, ...], goals: Array, starts: Array, limits: bool, prefer: Any,
        gain: float, tolerance: float, rng: np.random.Generator, parameters: Array | None = None,
    ) -> None:
        self.parameters, self.kinds = parameters, kinds
        self.model, self.goals, self.rng = model, np.ascontiguousarray(goals), rng
        self.box, self.limits = _Box(model), limits
        self.square = tolerance**2
        self.prefer = prefer if prefer is None or callable(prefer) else model._q(prefer, "prefer")
        self.gain = gain
        self.kernel = _step_kernel(model, kinds, self.prefer is not None, self.box if limits else None)
        count = len(starts)
        self.q = self._clip(np.array(starts))
        self.best = self.q.copy()
        self.targets, loops = len(kinds), bool(model.mechanism.constrained)
        self.errors = np.full((count, self.targets + loops, 2), np.inf)
        self.hard = loops
        self.done = np.zeros(count, dtype=bool)
        self.steps = np.zeros(count, dtype=int)
        self.tries = np.zeros(count, dtype=int)

    def _clip(self, q: Array) -> Array:
        return self.box.clip(q) if self.limits else q

    def run(self, restarts: int, steps: int) -> None:
        active = np.arange(len(self.q))
        age = np.zeros(len(self.q), dtype=int)
        while len(active):
            q = self.q[active]
            following, errors = self._step(q, self.goals[active], active)
            worst = errors.reshape(len(active), -1).max(axis=1)
            nearer = worst < self.errors[active].reshape(len(active), -1).max(axis=1)
            if self.prefer is not None:
                nearer |= worst <= self.square  # among exact answers the latest has settled most
            kept = active[nearer]
            self.best[kept], self.errors[kept] = q[nearer], errors[nearer]
            arrived = worst <= self.square
            if self.prefer is not None:  # let the self-motion settle, as long as steps remain
                arrived &= (np.abs(following - q).max(axis=1) < 1e-7) | (age[active] >= steps)
            self.steps[active] += 1
            age[active] += 1
            self.done[active[worst <= self.square]] = True
            tired = ~arrived & (age[active] > steps)
            given_up = tired & ((self.tries[active] >= restarts) | self.done[active])
            again = tired & ~given_up
            following = self._clip(following)
            if again.any():
                following[again] = self._drawn(int(again.sum()))
                self.tries[active[again]] += 1
                age[active[again]] = 0
            self.q[active] = following
            active = active[~(arrived | given_up)]

    @property
    def may_look_beyond(self) -> bool:
        """Whether limits hold that whole turns could keep; a preference and loops choose among what is within."""
        return self.limits and self.box.bounded and self.prefer is None and not self.hard

    def run_beyond(self, restarts: int, steps: int) -> None:
        """Restarts of what is not done, without limits; only what is within them, after whole turns, counts."""
        active = np.flatnonzero(~self.done)
        if not len(active) or not restarts:
            return
        kernel = _step_kernel(self.model, self.kinds, False, None)
        for _ in range(restarts):
            moving, q = active, self._drawn(len(active))
            self.tries[active] += 1
            for _ in range(steps + 1):
                values = None if self.parameters is None else self.parameters[moving]
                following, errors = kernel(q, self.goals[moving], parameters=values)
                worst = errors.reshape(len(moving), -1).max(axis=1)
                inside, within = self.box.turned(q)
                nearer = within & (worst < self.errors[moving].reshape(len(moving), -1).max(axis=1))
                self.best[moving[nearer]], self.errors[moving[nearer]] = inside[nearer], errors[nearer]
                arrived = worst <= self.square
                self.done[moving[arrived & within]] = True
                self.steps[moving] += 1
                moving, q = moving[~arrived], following[~arrived]
                if not len(moving):
                    break
            active = active[~self.done[active]]
            if not len(active):
                return

    def _drawn(self, count: int) -> Array:
        """New starts; with loops they are closed, or most would lead nowhere."""
        return self.model.random_configuration(self.rng, count) if self.hard else self.box.draw(self.rng, count)

    def _step(self, q: Array, goals: Array, active: Array) -> tuple[Array, Array]:
        values = None if self.parameters is None else self.parameters[active]
        if self.prefer is None:
            return self.kernel(q, goals, parameters=values)
        wish = self.prefer(q) if callable(self.prefer) else self.model.difference(q, self.prefer)
        wish = self.gain * state_array("what prefer returned", wish, self.model.nv)
        return self.kernel(q, goals, wish, parameters=values)


__all__ = ["InverseKinematics", "checked_steps", "checked_target", "inverse_kinematics"]
