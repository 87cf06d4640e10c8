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
sample, and so does a box that a frame must not leave. With loops the independent coordinates carry the series and the
others follow, in gradients too (`series`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.errors import InputError, PolybodyError
from polybody.identification.base_parameters import BaseParameters, base_parameters
from polybody.identification.descent import descend
from polybody.identification.row_space import reach
from polybody.identification.series import Series
from polybody.interrupts import interruptible
from polybody.late import dataclass
from polybody.mechanism.columns import plain_columns, velocity_names
from polybody.model.arguments import positive, random_generator
from polybody.model.model import Model
from polybody.model.sets import one_set
from polybody.properties import cached_property
from polybody.quantities.derivatives import graph_domain, tangent_map

Array = np.ndarray
CRITERIA = ("condition", "determinant")
#: the criterion where loops cannot be closed
UNREACHABLE = 1e3


@dataclass(frozen=True, eq=False)
class Excitation:
    """The motion that was found, sampled at t; `coefficients` (joints, 1 + 2·harmonics) are c, a_1 …, b_1 …."""

    t: Array
    q: Array  # (n, nq)
    v: Array  # (n, nv)
    a: Array  # (n, nv)
    tau: Array  # (n, nv), of the model
    coefficients: Array
    names: tuple[str, ...]  # of the coordinates with series
    period: float  # s
    condition: float  # number of the stacked regressor
    start_condition: float  # that of the starting point
    base: BaseParameters  # parameters that the motion excites

    def save(self, path: Any) -> None:
        """Write t, q, v, a as .csv."""
        n, m = self.q.shape[1], self.v.shape[1]
        header = ["t", *(f"{kind}{k + 1}" for kind, size in (("q", n), ("v", m), ("a", m)) for k in range(size))]
        rows = np.column_stack([self.t, self.q, self.v, self.a])
        np.savetxt(path, rows, delimiter=",", header=",".join(header), comments="")


@interruptible
@one_set
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
    parameters: ArrayLike | None = None,
) -> Excitation:
    """Find a periodic motion within limits along which the base parameters are well conditioned.

    Positions stay within the model's joint limits (±π if there are none), speeds and efforts within the model's or the
    given limits (one number or one per velocity), accelerations within `acceleration` (default: 20 times the speed
    limit per period). `workspace` maps frame names to boxes ((x0, y0, z0), (x1, y1, z1)) that contain their origins.
    The motion does not start at rest: a ramp to its first state is left to the user. `parameters`, (k,),
    are values of the parameters of `model.with_parameters`.
    """
    if criterion not in CRITERIA:
        raise InputError(f"criterion is {criterion!r}; expected {' or '.join(map(repr, CRITERIA))}")
    period, rate = positive("period", period), positive("rate", rate)
    least = {"harmonics": (harmonics, 1), "samples": (samples, 2), "tries": (tries, 1), "iterations": (iterations, 0)}
    for name, (count, fewest) in least.items():
        if not isinstance(count, int | np.integer) or count < fewest:
            raise InputError(f"{name} is {count!r}; expected a whole number, {fewest} or more")
    if not model.nv:
        raise InputError(f"{model.name!r} has no joint that moves: parameters show in motions only")
    if plain_columns(model.mechanism, model.engine.independent) is None:
        raise InputError("exciting motions need coordinates that are plain numbers, no quaternions")
    if len(model.parameters):  # the motion is one of these numbers, which are constants of its code
        model = Model(model.mechanism)
    series = Series(model, period, harmonics, samples)
    limits = _Limits(model, series, speed, acceleration, effort, workspace or {}, period)
    base = base_parameters(model)
    goal = _Goal(model, series, base, criterion)
    rng = random_generator("seed", seed)
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
    whole = Series(model, period, harmonics, max(int(period * rate), 20))
    x = _shrunk(_Limits(model, whole, speed, acceleration, effort, workspace or {}, period), best[1])
    q, v, a = whole.motion(x)
    names = [velocity_names(model.mechanism)[k] for k in series.own]
    return Excitation(
        whole.t, q, v, a, model.inverse_dynamics(q, v, a), x.reshape(len(series.own), -1), tuple(names), period,
        goal.condition(x), first, base,
    )  # fmt: skip


class _Goal:
    """The criterion over coefficients, and its gradient."""

    def __init__(self, model: Model, series: Series, base: BaseParameters, criterion: str) -> None:
        self.model, self.series, self.base, self.criterion = model, series, base, criterion
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
        """∂σ = uᵀ dW v for each singular value σ."""
        if not self.series.reachable(x):
            return np.zeros(len(x))
        U, s, Vt = np.linalg.svd(self._matrix(x), full_matrices=False)
        s = np.maximum(s, 1e-12)
        if self.criterion == "condition":
            weight = np.outer(U[:, 0], Vt[0]) / s[0] - np.outer(U[:, -1], Vt[-1]) / s[-1]
        else:
            weight = -(U / s) @ Vt
        n = len(self.series.t)
        seeds = weight.reshape(n, len(self.series.own), -1) * self.units / np.sqrt(n)
        return self._pulled_back(x, seeds)

    def _pulled_back(self, x: Array, seeds: Array) -> Array:
        """Σ over states of seedsᵀ dY_B, by one reverse sweep of the tree's regressor per state.

        With loops Y_B = Gᵀ Y_tree: the tree's rows have the seeds G seeds, and G changes by H.
        """
        series, turning = self.series, None
        q, v, a = series.motion(x)
        if self.model.mechanism.constrained:
            G, H, _ = series.influence(x)
            Y = self.model.tree.regressor(q, v, a)[..., self.base.pivots]
            turning = np.einsum("tilm,tmk,tik->tl", H, seeds, Y)
            seeds = G @ seeds
        dq, dv, da = (np.asarray(part).T for part in self._sweep(q.T, v.T, a.T, seeds.reshape(len(q), -1).T))
        by_u, by_du, by_ddu = series.pulled_back(x, dq, dv, da)
        return series.coefficients(by_u if turning is None else by_u + turning, by_du, by_ddu)

    @cached_property
    def _sweep(self) -> Any:
        """casadi.Function (q, v, a, seeds) -> gradients of seeds · Y_B of the tree by q in tangent space, v and a."""
        import casadi

        tree = self.model.tree
        f = tree.casadi("regressor")
        q, v, a = f.sx_in()
        seed = casadi.SX.sym("seed", tree.nv * len(self.base.pivots))
        columns = 10 * len(tree.mechanism.bodies)
        kept = [r * columns + int(k) for r in range(tree.nv) for k in self.base.pivots]
        total = casadi.dot(f(q, v, a)[kept], seed)
        by_q, by_v, by_a = (casadi.gradient(total, y) for y in (q, v, a))
        by_q = tangent_map(tree.mechanism, graph_domain().scalars(q)).T @ by_q
        return casadi.Function("sweep", [q, v, a, seed], [by_q, by_v, by_a])


class _Limits:
    """Every limit as a number that must not be negative, in parts of the limit."""

    def __init__(
        self, model: Model, series: Series, speed: Any, acceleration: Any, effort: Any, workspace: Mapping[str, Any],
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
        for name, box in workspace.items():
            corners = np.asarray(box, dtype=float)
            if corners.shape != (2, 3) or not np.all(corners[0] < corners[1]):
                raise InputError(
                    f"workspace: the box of {name!r} is {box}; expected ((x0, y0, z0), (x1, y1, z1)) with x0 < x1 …"
                )
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
        at, lower, upper = self._limited(q)
        width = upper - lower
        parts = [(at - lower) / width, (upper - at) / width, 1 - (v / self.speed) ** 2]
        parts.append(1 - (a / self.acceleration) ** 2)
        if np.isfinite(self.effort).any():
            tau = self.model.inverse_dynamics(q, v, a)
            parts.append(1 - (tau / self.effort) ** 2)
        for name, (low, high) in self.workspace.items():
            p = self.model.pose(q, name)[..., :3, 3]
            size = np.asarray(high, dtype=float) - np.asarray(low, dtype=float)
            parts += [(p - low) / size, (high - p) / size]
        return np.concatenate([part.ravel() for part in parts])

    def _limited(self, q: Array) -> tuple[Array, Array, Array]:
        """Positions with limits, and these: all, or the independent ones where joints have quaternions."""
        if self.model.nq == self.model.nv:
            return q, self.lower, self.upper
        own = self.series.own
        return q[:, self.series.places], self.lower[own], self.upper[own]

    def penalty_gradient(self, x: Array) -> Array:
        """Of Σ min(values, 0)²."""
        if not self.series.reachable(x):
            return np.zeros(len(x))
        series, (q, v, a) = self.series, self.series.motion(x)
        dq, dv, da = np.zeros((3, len(q), self.model.nv))
        at, lower, upper = self._limited(q)
        out = 2 * (np.minimum(at - lower, 0.0) - np.minimum(upper - at, 0.0)) / (upper - lower) ** 2
        dq[:, slice(None) if at.shape == dq.shape else series.own] = out
        dv += -4 * np.minimum(1 - (v / self.speed) ** 2, 0.0) * v / self.speed**2
        da += -4 * np.minimum(1 - (a / self.acceleration) ** 2, 0.0) * a / self.acceleration**2
        for name, (low, high) in self.workspace.items():
            p, size = self.model.pose(q, name)[..., :3, 3], np.asarray(high, dtype=float) - np.asarray(low, dtype=float)
            pull = 2 * (np.minimum(p - low, 0.0) - np.minimum(high - p, 0.0)) / size**2
            dq += np.einsum("tij,ti->tj", self.model.tree.jacobian(q, name)[..., 3:, :], pull)
        total = series.pulled_back(x, dq, dv, da)
        if np.isfinite(self.effort).any():
            tau = self.model.inverse_dynamics(q, v, a)
            pull = -4 * np.minimum(1 - (tau / self.effort) ** 2, 0.0) * tau / self.effort**2
            # with loops these are derivatives by the independent coordinates already
            for part, D in zip(total, self.model.inverse_dynamics_derivatives(q, v, a), strict=True):
                part += np.einsum("tij,ti->tj", D, pull)
        return series.coefficients(*total)

    def excess(self, x: Array) -> float:
        return float(max(0.0, -self.values(x).min()))


def _limit(name: str, given: Any, default: Array) -> Array:
    if given is None:
        return np.asarray(default, dtype=float)
    value = np.asarray(given, dtype=float)
    if value.shape not in ((), default.shape):
        raise InputError(f"{name} has the shape {value.shape}; expected one number, or {default.size}")
    if not (np.all(value > 0)):
        raise InputError(f"{name} must be positive")
    return np.broadcast_to(value, default.shape).copy()


def _improved(goal: _Goal, limits: _Limits, start: Array, iterations: int) -> Array:
    """The criterion plus a price for leaving the limits, lowered by quasi-Newton steps, then shrunk into the limits."""
    best = start
    for sharpness in (30.0, 300.0):

        def cost(x: Array, sharpness: float = sharpness) -> float:
            over = np.minimum(limits.values(x), 0.0)
            return goal.value(x) + sharpness * float(np.sum(over**2))

        def slope(x: Array, sharpness: float = sharpness) -> Array:
            return goal.gradient(x) + sharpness * limits.penalty_gradient(x)

        best = descend(cost, slope, best, iterations)
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
