"""`pb.excitation`: motions that show the parameters well.

Each driven coordinate moves along a finite Fourier series about a centre,

    u_j(t) = c_j + Σ_k a_jk sin(kωt) + b_jk cos(kωt),      ω = 2π/period

and its coefficients are chosen so that the base parameters follow surely from joint forces along it: the columns of
Y_B, in units of the machine's size, shall be far from dependent. Either criterion is minimised over the coefficients,

    "condition"   log of the condition number of W = Y_B along the motion
    "determinant" −½ log det(WᵀW): the volume of the confidence ellipsoid

by quasi-Newton steps with exact gradients: dW = Σ ∂W/∂(q, v, a) · d(q, v, a) from the expression graph of the
regressor, contracted with the criterion's own derivative (of singular values) before it is formed: one reverse sweep
a state. Limits of position, velocity, acceleration and effort (inverse dynamics of the model as it is) hold at every
sample, and so does a box that a frame must not leave. With loops the independent coordinates carry the series, the
others follow; gradients there are differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.identification.base_parameters import BaseParameters, base_parameters
from polybody.identification.row_space import reach
from polybody.mechanism.columns import plain_columns, velocity_names
from polybody.model.model import Model

Array = np.ndarray
CRITERIA = ("condition", "determinant")
#: the criterion where loops cannot be closed
UNREACHABLE = 1e3


@dataclass(frozen=True, eq=False)
class Excitation:
    """A motion found: sampled at t; `coefficients` (joints, 1 + 2·harmonics) are c, a_1 …, b_1 …."""

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    coefficients: Array
    names: tuple[str, ...]  # of the coordinates with series
    period: float
    condition: float
    start_condition: float
    base: BaseParameters

    def save(self, path: Any) -> None:
        """Write t, q, v, a as .csv."""
        n, m = self.q.shape[1], self.v.shape[1]
        header = ["t", *(f"{kind}{k + 1}" for kind, size in (("q", n), ("v", m), ("a", m)) for k in range(size))]
        rows = np.column_stack([self.t, self.q, self.v, self.a])
        np.savetxt(path, rows, delimiter=",", header=",".join(header), comments="")


def excitation(
    model: Model,
    *,
    period: float = 10.0,
    harmonics: int = 5,
    criterion: str = "condition",
    samples: int = 80,
    speed: Any = None,
    acceleration: Any = None,
    effort: Any = None,
    workspace: Mapping[str, Any] | None = None,
    iterations: int = 60,
    tries: int = 3,
    rate: float = 100.0,
    seed: int = 0,
) -> Excitation:
    """Find a periodic motion within limits along which the base parameters are well conditioned.

    Positions stay within the model's joint limits (±π if there are none), speeds and efforts within the model's or the
    given limits (one number or one per velocity), accelerations within `acceleration` (default: 20 times the speed
    limit per period). `workspace` maps frame names to boxes ((x0, y0, z0), (x1, y1, z1)) that contain their origins.
    The motion does not start at rest: a ramp to its first state is left to the user.
    """
    if criterion not in CRITERIA:
        raise InputError(f"criterion is {criterion!r}; expected {' or '.join(map(repr, CRITERIA))}")
    if plain_columns(model.mechanism, model.engine.independent) is None:
        raise InputError("exciting motions need coordinates that are plain numbers, no quaternions")
    series = _Series(model, period, harmonics, samples)
    limits = _Limits(model, series, speed, acceleration, effort, workspace or {}, period)
    base = base_parameters(model)
    goal = _Goal(model, series, base, criterion)
    rng = np.random.default_rng(seed)
    best: tuple[float, Array] | None = None
    first = float("nan")
    for k in range(tries):
        start = limits.start(rng)
        if k == 0:
            first = goal.condition(start)
        found = _improved(goal, limits, start, iterations)
        if limits.excess(found) < 1e-3 and (best is None or goal.value(found) < best[0]):
            best = goal.value(found), found
    if best is None:
        raise PolybodyError("no motion within all limits was found; widen them, or give more tries")
    whole = _Series(model, period, harmonics, max(int(period * rate), 20))
    x = _shrunk(_Limits(model, whole, speed, acceleration, effort, workspace or {}, period), best[1])
    q, v, a = whole.motion(x)
    names = [velocity_names(model.mechanism)[k] for k in series.own]
    return Excitation(
        whole.t, q, v, a, model.inverse_dynamics(q, v, a), x.reshape(len(series.own), -1), tuple(names), period,
        goal.condition(x), first, base,
    )  # fmt: skip


class _Series:
    """Coefficients to motion."""

    def __init__(self, model: Model, period: float, harmonics: int, samples: int) -> None:
        self.model, self.own = model, list(model.engine.independent)
        self.places = plain_columns(model.mechanism, self.own) or []
        self.t = np.arange(samples) * period / samples
        w = 2 * np.pi / period * np.arange(1, harmonics + 1)
        phase = np.outer(self.t, w)
        one, none = np.ones((samples, 1)), np.zeros((samples, 1))
        self.B = np.concatenate([one, np.sin(phase), np.cos(phase)], axis=1)
        self.dB = np.concatenate([none, w * np.cos(phase), -w * np.sin(phase)], axis=1)
        self.ddB = np.concatenate([none, -(w**2) * np.sin(phase), -(w**2) * np.cos(phase)], axis=1)
        self._last: tuple[Array, Any] | None = None

    def own_motion(self, x: Array) -> tuple[Array, Array, Array]:
        c = x.reshape(len(self.own), -1).T
        return self.B @ c, self.dB @ c, self.ddB @ c

    def reachable(self, x: Array) -> bool:
        """Whether loops can be closed all along the motion."""
        if not self.model.mechanism.constrained:
            return True
        try:
            self.motion(x)
        except InputError:
            return False
        return True

    def motion(self, x: Array) -> tuple[Array, Array, Array]:
        """(q, v, a) of all joints."""
        u, du, ddu = self.own_motion(x)
        if not self.model.mechanism.constrained:
            return u, du, ddu
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1]
        guess, rows = self.model.assemble(), []
        approach = guess[self.places] + np.linspace(0, 1, 9)[1:-1, None] * (u[0] - guess[self.places])
        for row in (*approach, *u):
            guess = guess.copy()
            guess[self.places] = row
            guess = self.model.constraints.assemble_dependent(guess)
            rows.append(guess)
        q = np.array(rows)[len(approach):]
        v, a = self.model.constraints.joint_motion(q, du, ddu)
        self._last = (x.copy(), (q, v, a))
        return q, v, a


class _Goal:
    """The criterion over coefficients, and its gradient."""

    def __init__(self, model: Model, series: _Series, base: BaseParameters, criterion: str) -> None:
        self.model, self.series, self.base, self.criterion = model, series, base, criterion
        self.exact = not model.mechanism.constrained
        self._sweep: Any = None
        length = reach(model.mechanism)
        units = np.tile([1.0] + [length] * 3 + [length**2] * 6, len(model.mechanism.bodies))
        self.units = units[base.pivots]

    def _matrix(self, x: Array) -> Array:
        Y = self.model.regressor(*self.series.motion(x))[..., self.base.pivots] * self.units
        return Y.reshape(-1, Y.shape[-1]) / np.sqrt(len(self.series.t))

    def condition(self, x: Array) -> float:
        return float(np.linalg.cond(self._matrix(x)))

    def value(self, x: Array) -> float:
        if not self.series.reachable(x):
            return UNREACHABLE
        s = np.linalg.svd(self._matrix(x), compute_uv=False)
        s = np.maximum(s, 1e-12)
        return float(np.log(s[0] / s[-1]) if self.criterion == "condition" else -np.sum(np.log(s)))

    def gradient(self, x: Array) -> Array:
        """Exact for trees: ∂σ = uᵀ dW v for each singular value."""
        if not self.exact:
            step = 1e-6
            moved = [(self.value(x + step * e), self.value(x - step * e)) for e in np.eye(len(x))]
            return np.array([(more - less) / (2 * step) for more, less in moved])
        U, s, Vt = np.linalg.svd(self._matrix(x), full_matrices=False)
        s = np.maximum(s, 1e-12)
        if self.criterion == "condition":
            weight = np.outer(U[:, 0], Vt[0]) / s[0] - np.outer(U[:, -1], Vt[-1]) / s[-1]
        else:
            weight = -(U / s) @ Vt
        n = len(self.series.t)
        seeds = weight.reshape(n, self.model.nv, -1) * self.units / np.sqrt(n)
        return self._pulled_back(x, seeds)

    def _pulled_back(self, x: Array, seeds: Array) -> Array:
        """Σ over states of seedsᵀ dY_B, by one reverse sweep of the regressor a state."""
        if self._sweep is None:
            import casadi

            f = self.model.casadi("regressor")
            q, v, a = f.sx_in()
            seed = casadi.SX.sym("seed", self.model.nv * len(self.base.pivots))
            columns = 10 * len(self.model.mechanism.bodies)
            kept = [r * columns + int(k) for r in range(self.model.nv) for k in self.base.pivots]
            total = casadi.dot(f(q, v, a)[kept], seed)
            parts = [casadi.gradient(total, y) for y in (q, v, a)]
            self._sweep = casadi.Function("sweep", [q, v, a, seed], parts)
        q, v, a = self.series.motion(x)
        dq, dv, da = (np.asarray(part) for part in self._sweep(q.T, v.T, a.T, seeds.reshape(len(q), -1).T))
        s = self.series
        return (dq @ s.B + dv @ s.dB + da @ s.ddB).ravel()


class _Limits:
    """Every limit as a number that must not be negative, in parts of the limit."""

    def __init__(
        self, model: Model, series: _Series, speed: Any, acceleration: Any, effort: Any, workspace: Mapping[str, Any],
        period: float,
    ) -> None:  # fmt: skip
        self.model, self.series, self.workspace = model, series, workspace
        known = model.joint_limits()
        own = series.own
        lower, upper = known["lower"], known["upper"]
        self.lower = np.where(np.isfinite(lower), lower, -np.pi)
        self.upper = np.where(np.isfinite(upper), upper, np.pi)
        self.speed = _limit("speed", speed, np.where(np.isfinite(known["velocity"]), known["velocity"], np.pi))
        self.acceleration = _limit("acceleration", acceleration, 10 * self.speed / period * 2)
        self.effort = _limit("effort", effort, known["effort"])
        for name in workspace:
            if name not in model.frame_names:
                raise InputError(f"workspace: no frame {name!r}")
        middle = (self.lower + self.upper)[own] / 2
        if model.mechanism.constrained:
            middle = model.assemble()[series.places]
        self.middle = np.clip(middle, self.lower[own], self.upper[own])

    def start(self, rng: np.random.Generator) -> Array:
        """Coefficients of a small random motion about the middle."""
        own, count = self.series.own, self.series.B.shape[1]
        c = np.zeros((len(own), count))
        c[:, 0] = self.middle
        c[:, 1:] = rng.normal(size=(len(own), count - 1))
        u, du, ddu = self.series.B[:, 1:] @ c[:, 1:].T, self.series.dB @ c.T, self.series.ddB @ c.T
        room = np.minimum(self.upper[own] - self.middle, self.middle - self.lower[own])
        tight = [np.abs(u).max(axis=0) / np.maximum(room, 1e-6), np.abs(du).max(axis=0) / self.speed[own],
                 np.abs(ddu).max(axis=0) / self.acceleration[own]]  # fmt: skip
        c[:, 1:] *= 0.6 / np.max(tight, axis=0)[:, None]
        for _ in range(8):
            if self.series.reachable(c.ravel()):
                return c.ravel()
            c[:, 1:] *= 0.6
        raise PolybodyError(f"{self.model.name!r}: its loops do not close along even small motions about neutral")

    def values(self, x: Array) -> Array:
        """≥ 0 within all limits."""
        if not self.series.reachable(x):
            return np.array([-1.0])
        q, v, a = self.series.motion(x)
        width, own = self.upper - self.lower, slice(None)
        if self.model.nq != self.model.nv:  # positions of joints with quaternions are not limited
            own = self.series.own
            q, width = q[:, self.series.places], width[own]
        parts = [(q - self.lower[own]) / width, (self.upper[own] - q) / width, 1 - (v / self.speed) ** 2]
        parts.append(1 - (a / self.acceleration) ** 2)
        if np.isfinite(self.effort).any():
            tau = self.model.inverse_dynamics(q, v, a)
            parts.append(1 - (tau / self.effort) ** 2)
        for name, (low, high) in self.workspace.items():
            p = self.model.pose(q, name)[..., :3, 3]
            size = np.asarray(high, dtype=float) - np.asarray(low, dtype=float)
            parts += [(p - low) / size, (high - p) / size]
        return np.concatenate([part.ravel() for part in parts])

    def penalty_gradient(self, x: Array) -> Array:
        """Of Σ min(values, 0)²: exact for trees, by differences with loops."""
        if self.model.mechanism.constrained:
            step = 1e-6

            def penalty(y: Array) -> float:
                return float(np.sum(np.minimum(self.values(y), 0.0) ** 2))

            return np.array([(penalty(x + step * e) - penalty(x - step * e)) / (2 * step) for e in np.eye(len(x))])
        q, v, a = self.series.motion(x)
        width = self.upper - self.lower
        dq = 2 * (np.minimum(q - self.lower, 0.0) - np.minimum(self.upper - q, 0.0)) / width**2
        dv = -4 * np.minimum(1 - (v / self.speed) ** 2, 0.0) * v / self.speed**2
        da = -4 * np.minimum(1 - (a / self.acceleration) ** 2, 0.0) * a / self.acceleration**2
        if np.isfinite(self.effort).any():
            tau = self.model.inverse_dynamics(q, v, a)
            pull = -4 * np.minimum(1 - (tau / self.effort) ** 2, 0.0) * tau / self.effort**2
            for part, D in zip((dq, dv, da), self.model.inverse_dynamics_derivatives(q, v, a), strict=True):
                part += np.einsum("tij,ti->tj", D, pull)
        for name, (low, high) in self.workspace.items():
            p, size = self.model.pose(q, name)[..., :3, 3], np.asarray(high, dtype=float) - np.asarray(low, dtype=float)
            pull = 2 * (np.minimum(p - low, 0.0) - np.minimum(high - p, 0.0)) / size**2
            dq += np.einsum("tij,ti->tj", self.model.jacobian(q, name)[..., 3:, :], pull)
        s = self.series
        return (dq.T @ s.B + dv.T @ s.dB + da.T @ s.ddB).ravel()

    def excess(self, x: Array) -> float:
        return float(max(0.0, -self.values(x).min()))


def _limit(name: str, given: Any, default: Array) -> Array:
    if given is None:
        return np.asarray(default, dtype=float)
    value = np.broadcast_to(np.asarray(given, dtype=float), default.shape).copy()
    if not (np.all(value > 0)):
        raise InputError(f"{name} must be positive")
    return value


def _improved(goal: _Goal, limits: _Limits, start: Array, iterations: int) -> Array:
    """The criterion plus a price for leaving the limits, lowered by quasi-Newton steps, then shrunk into the limits."""
    from scipy.optimize import minimize

    best = start
    for sharpness in (30.0, 300.0):

        def cost(x: Array, sharpness: float = sharpness) -> float:
            over = np.minimum(limits.values(x), 0.0)
            return goal.value(x) + sharpness * float(np.sum(over**2))

        def slope(x: Array, sharpness: float = sharpness) -> Array:
            return goal.gradient(x) + sharpness * limits.penalty_gradient(x)

        best = minimize(cost, best, jac=slope, method="L-BFGS-B", options={"maxiter": iterations}).x
    return _shrunk(limits, best)


def _shrunk(limits: _Limits, x: Array) -> Array:
    """The motion made smaller about its centre until it is within every limit."""
    c = x.reshape(len(limits.series.own), -1)
    for size in np.linspace(1.0, 0.3, 29):
        trial = c.copy()
        trial[:, 1:] *= size
        if limits.excess(trial.ravel()) == 0:
            return trial.ravel()
    return x


__all__ = ["Excitation", "excitation"]
