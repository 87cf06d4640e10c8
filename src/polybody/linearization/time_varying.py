"""Linear models along a motion: A(t), B(t), E(t) about the states that a run or a path passes (Freeman (2-241)).

    δẋ = A(t) δx + B(t) δu + E(t) δw

Between the times they are splines. Over an interval h the exact solution with held inputs is that of
Ẋ = [A B E; 0 0 0] X; it is found by Magnus' series of order 4 with the two Gauss points t ± h√3/6,

    X(t + h) = exp(½h(N₁ + N₂) + (√3/12)h²[N₂, N₁]) X(t)

The regulator along the motion keeps Σ δxᵀQδx + δuᵀRδu least, by Riccati's recursion backwards over the intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from polybody.errors import InputError
from polybody.interrupts import interruptible
from polybody.late import dataclass
from polybody.linearization.state_space import StateSpace, linearize
from polybody.model.arguments import float_array, require_model
from polybody.model.model import Model
from polybody.model.sets import one_set
from polybody.names import counted
from polybody.properties import cached_property

Array = np.ndarray
GAUSS = np.sqrt(3.0) / 6.0
#: accelerations of a run and of the model under what is said to act may differ by this part of the largest
MATCH = 1e-5


@runtime_checkable
class Recorded(Protocol):
    """What a run has: times, states, joint forces and accelerations."""

    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array


@dataclass(frozen=True, eq=False)
class TimeVarying:
    """One linear model for each time: t (n,), and `system` with arrays of n rows. q, v, tau are the nominal motion."""

    t: Array
    system: StateSpace
    q: Array
    v: Array
    tau: Array

    def __len__(self) -> int:
        return len(self.t)

    def at(self, t: float) -> StateSpace:
        """The model at any time between the first and the last, by splines."""
        if not self.t[0] <= t <= self.t[-1]:
            raise InputError(f"t is {t:g}, outside the motion, which goes from {self.t[0]:g} to {self.t[-1]:g} s")
        parts = {name: self._splines[name](t) for name in self._splines}
        return replace(self.system, **parts)

    def discretize(self) -> tuple[Array, Array, Array]:
        """(A_d, B_d, E_d), each (n − 1, …): δx_(k+1) = A_d δx_k + B_d δu_k + E_d δw_k with inputs held in between."""
        from scipy.linalg import expm

        h, mid = np.diff(self.t), (self.t[:-1] + self.t[1:]) / 2
        first, second = (self._generator(mid + sign * GAUSS * h) for sign in (-1, 1))
        h = h[:, None, None]
        X = expm(h / 2 * (first + second) + np.sqrt(3) / 12 * h**2 * (second @ first - first @ second))
        n, m = self.system.B.shape[-2:]
        return X[:, :n, :n], X[:, :n, n : n + m], X[:, :n, n + m :]

    def transition(self) -> Array:
        """Φ(t_k, t_0), (n, states, states): a displacement at the start becomes Φ δx at each time."""
        steps, _, _ = self.discretize()
        found = [np.eye(self.system.A.shape[-1])]
        for step in steps:
            found.append(step @ found[-1])
        return np.array(found)

    def lqr(self, Q: ArrayLike, R: ArrayLike, final: ArrayLike | None = None) -> Array:
        """Gains K (n − 1, inputs, states), δu = −K δx, that keep Σ h(δxᵀQδx + δuᵀRδu) + δxᵀ final δx least."""
        Q, R = _square("Q", Q, self.system.A.shape[-1]), _square("R", R, self.system.B.shape[-1])
        if np.linalg.eigvalsh((R + R.T) / 2).min() <= 0:
            raise InputError("R must be positive definite: every input must cost something")
        P = Q if final is None else _square("final", final, len(Q))
        A, B, _ = self.discretize()
        gains = np.zeros((len(A), B.shape[-1], A.shape[-1]))
        for k in range(len(A) - 1, -1, -1):
            h = self.t[k + 1] - self.t[k]
            PA, PB = P @ A[k], P @ B[k]
            gains[k] = np.linalg.solve(h * R + B[k].T @ PB, B[k].T @ PA)
            P = h * Q + A[k].T @ PA - PA.T @ B[k] @ gains[k]
            P = (P + P.T) / 2
        return gains

    @cached_property
    def _splines(self) -> dict[str, Any]:
        from scipy.interpolate import make_interp_spline

        order = min(3, len(self.t) - 1)
        arrays = [f.name for f in fields(self.system) if isinstance(getattr(self.system, f.name), np.ndarray)]
        return {name: make_interp_spline(self.t, getattr(self.system, name), order) for name in arrays}

    def _generator(self, t: Array) -> Array:
        """[A B E; 0 0 0] at times."""
        A, B, E = (self._splines[name](t) for name in "ABE")
        top = np.concatenate([A, B, E], axis=-1)
        size = top.shape[-1]
        return np.concatenate([top, np.zeros((len(t), size - top.shape[-2], size))], axis=-2)


@interruptible
@one_set
def linearize_along(
    model: Model, motion: Any, times: ArrayLike | None = None, *, inputs: str = "torque",
    outputs: Sequence[str] | None = None, independent: Sequence[str] | None = None,
    wrenches: Mapping[str, Any] | None = None, disturbances: Sequence[str] = (), parameters: ArrayLike | None = None,
) -> TimeVarying:  # fmt: skip
    """Linearise along a motion: a run of `pb.simulate` at its own times, or a path (q, v, a)(t) at `times`.

    Options are those of `pb.linearize`. `wrenches` maps a frame to a nominal wrench or to a function of time that
    returns one. Wrenches that acted in a run must be passed again; the run's accelerations are checked against them.
    Along a path the joint forces are those of inverse dynamics. `parameters`, (k,), are values of the parameters of
    `model.with_parameters`.
    """
    require_model("linearize_along", model)
    t: Array
    if isinstance(motion, Recorded):
        if times is not None:
            raise InputError("a run has times of its own: simulate(…, times=…), and give linearize_along the run only")
        keep = np.concatenate([[True], np.diff(motion.t) > 0])
        t, q, v, tau = (np.asarray(x)[keep] for x in (motion.t, motion.q, motion.v, motion.tau))
        loads = _loads(wrenches, t)
        _check_run(model, t, q, v, tau, np.asarray(motion.a)[keep], loads)
    elif callable(motion):
        t = _grown("times", times)
        follow: Callable[..., Any] = motion
        q, v, a = follow(t)
        loads = _loads(wrenches, t)
        tau = model.inverse_dynamics(q, v, a, wrenches=loads)
    else:
        raise InputError(f"motion is a {type(motion).__name__}, expected a run of pb.simulate or a path (q, v, a)(t)")
    if len(t) < 2:
        raise InputError("a motion needs at least two times")
    system = linearize(
        model, q, v, tau, inputs=inputs, outputs=outputs, independent=independent, wrenches=loads,
        disturbances=disturbances,
    )  # fmt: skip
    wide = {
        f.name: np.broadcast_to(x, (len(t), *x.shape[-2:]))
        for f in fields(system)
        if isinstance(x := getattr(system, f.name), np.ndarray)
    }
    return TimeVarying(t, replace(system, **wide), q, v, tau)


def _grown(name: str, times: Any) -> Array:
    if times is None:
        raise InputError(f"{name} must be given along a path")
    t = float_array(name, times)
    if t.ndim != 1 or len(t) < 2 or not np.isfinite(t).all() or (np.diff(t) <= 0).any():
        raise InputError(f"{name} must be at least two finite increasing numbers")
    return t


def _loads(wrenches: Mapping[str, Any] | None, t: Array) -> dict[str, Array] | None:
    """Nominal wrenches always."""

    def rows(given: Any) -> Array:
        function: Callable[[float], Any] = given if callable(given) else lambda _: given
        return np.array([np.asarray(function(float(s)), dtype=float) for s in t])

    return {frame: rows(given) for frame, given in wrenches.items()} if wrenches else None


def _check_run(model: Model, t: Array, q: Array, v: Array, tau: Array, a: Array, loads: Any) -> None:
    found = model.forward_dynamics(q, v, tau, wrenches=loads)
    off = np.abs(found - a).max(axis=-1)
    bad = np.flatnonzero(~(off <= MATCH * (1 + np.abs(a).max())))
    if len(bad):
        k = int(bad[0])
        raise InputError(
            f"at t = {t[k]:.9g} s the run's accelerations deviate by {off[k]:.3g} from what its joint forces and these "
            "wrenches give: other forces acted; pass the run's wrenches, and leave out intervals at joint stops"
        )


def _square(name: str, values: ArrayLike, n: int) -> Array:
    matrix = float_array(name, values)
    matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
    if matrix.shape != (n, n) or not np.isfinite(matrix).all():
        raise InputError(f"{name} has shape {matrix.shape}, expected ({n}, {n}) or {counted(n, 'number')}, finite")
    return matrix


__all__ = ["Recorded", "TimeVarying", "linearize_along"]
