"""Paths: a motion to be followed, `path(t) -> (q, v, a)` for a number or an array of times.

Where a model has loops or couplings, paths are those of its independent coordinates; the other joints follow.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from polybody.algebra.jets import JetDomain
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.model.arguments import float_array, positive, require_model
from polybody.model.model import Model
from polybody.model.tracing import trace
from polybody.names import counted
from polybody.paths import profiles

Array = np.ndarray
Motion = tuple[Array, Array, Array]


class Path(Protocol):
    """A path: q (..., nq), v and a (..., nv) at times (...); `duration` seconds long, at rest or extrapolated outside.
    """

    duration: float

    def __call__(self, t: Any) -> Motion: ...


@dataclass(frozen=True)
class PointToPoint:
    """Path along the geodesic q₀ ∘ exp(s d) of the configuration manifold, for all joint types.

    Velocities are v = ṡ d, accelerations a = s̈ d.
    """

    model: Model  # whose configurations these are
    q0: Array  # first configuration
    direction: Array  # d, to the last configuration
    law: profiles.Law  # s, ṡ, s̈ as functions of t
    duration: float  # s

    def __call__(self, t: Any) -> Motion:
        s, ds, dds = self.law(float_array("t", t))
        d = self.direction
        q = self.model.integrate(self.q0, s[..., None] * d)
        return _on_loops(self.model, q, ds[..., None] * d, dds[..., None] * d)


def _on_loops(model: Model, q: Array, v: Array, a: Array) -> Motion:
    """The motion with dependent joints where the independent ones put them."""
    if not model.mechanism.constrained:
        return q, v, a
    u = list(model.engine.independent)
    q = model.constraints.assemble_dependent(q)
    return q, *model.constraints.joint_motion(q, v[..., u], a[..., u])


def _ends(model: Model, q0: Any, q1: Any) -> tuple[Array, Array]:
    require_model("paths", model)
    ends = []
    for name, values in (("q0", q0), ("q1", q1)):
        array = float_array(name, values)
        if array.shape != (model.nq,) or not np.isfinite(array).all():
            raise InputError(f"{name} must be {counted(model.nq, 'finite number')}, got shape {array.shape}")
        ends.append(model.normalize(array))
        if model.mechanism.constrained:
            model.engine.require_closed(ends[-1])
    return ends[0], model.difference(*ends)


def cycloidal(model: Model, q0: Any, q1: Any, duration: float) -> PointToPoint:
    """Cycloidal motion from q0 to q1 (Saha (39))."""
    T = positive("duration", duration)
    return PointToPoint(model, *_ends(model, q0, q1), profiles.cycloidal(T), T)


def quintic(model: Model, q0: Any, q1: Any, duration: float) -> PointToPoint:
    """Quintic polynomial from rest at q0 to rest at q1."""
    T = positive("duration", duration)
    return PointToPoint(model, *_ends(model, q0, q1), profiles.quintic(T), T)


def trapezoidal(model: Model, q0: Any, q1: Any, duration: float, ramp: float = 0.25) -> PointToPoint:
    """Trapezoidal velocity profile from q0 to q1; `ramp` is the fraction of the time spent accelerating."""
    T = positive("duration", duration)
    return PointToPoint(model, *_ends(model, q0, q1), profiles.trapezoidal(T, ramp), T)


class Spline:
    """C² (cubic) or C⁴ (quintic) spline through configurations, with v and a from q̇ = Γ(q) v.

    Quaternions are interpolated as four numbers with consistent signs and then normalised: with s the spline and q =
    s/|s|, the derivatives are exact. After the last time the path stays at its final configuration.
    """

    def __init__(self, model: Model, times: Any, q: Any, order: int = 3, rest: bool = True) -> None:
        from scipy.interpolate import make_interp_spline

        times, q = float_array("times", times), float_array("q", q)
        if order not in (3, 5):
            raise InputError(f"order is {order!r}; expected 3 (cubic) or 5 (quintic)")
        if times.ndim != 1 or len(times) < 2 or (np.diff(times) <= 0).any() or not np.isfinite(times).all():
            raise InputError("times must be at least two finite increasing numbers")
        require_model("paths", model)
        if q.shape != (len(times), model.nq) or not np.isfinite(q).all():
            raise InputError(f"q has shape {q.shape}; expected ({len(times)}, {model.nq}), finite, one row a time")
        q = model.normalize(q)
        for joint in model.mechanism.independent_joints:
            if joint.nq != joint.nv:
                _align(q[:, joint.q.stop - 4 : joint.q.stop])
        if len(times) <= order and not rest:
            raise InputError(f"{len(times)} times are too few for order {order}; expected more than {order}")
        ends = [(k, np.zeros(model.nq)) for k in range(1, order // 2 + 1)]
        self._spline = make_interp_spline(times, q, order, bc_type=(ends, ends) if rest else None)
        self.model, self.start, self.end = model, float(times[0]), float(times[-1])
        self.duration = self.end - self.start

    def __call__(self, t: Any) -> Motion:
        t = float_array("t", t)
        inside = np.clip(t, self.start, self.end)
        moving = ((t >= self.start) & (t <= self.end))[..., None]
        raw, first, second = (self._spline(inside, k) for k in range(3))
        return _on_loops(self.model, *coordinates(self.model, raw, first * moving, second * moving))


def _align(quaternions: Array) -> None:
    for k in range(1, len(quaternions)):
        if quaternions[k] @ quaternions[k - 1] < 0:
            quaternions[k] *= -1


def coordinates(model: Model, raw: Array, first: Array, second: Array) -> Motion:
    """(q, v, a) from numbers of a configuration and their first two derivatives; quaternions need not be unit."""
    q, dq, ddq = raw.copy(), first.copy(), second.copy()
    v = np.empty((*q.shape[:-1], model.nv))
    a = np.empty_like(v)
    for joint in model.mechanism.independent_joints:
        if joint.nq != joint.nv:
            _unit(q, dq, ddq, slice(joint.q.stop - 4, joint.q.stop))
        if joint.model.rates_are_velocities:
            v[..., joint.v], a[..., joint.v] = dq[..., joint.q], ddq[..., joint.q]
            continue
        v[..., joint.v], a[..., joint.v] = _velocities(model, joint, q, dq, ddq)
    return q, v, a


def _unit(q: Array, dq: Array, ddq: Array, part: slice) -> None:
    """q = s/|s| and its derivatives, in place."""
    s, ds, dds = q[..., part].copy(), dq[..., part].copy(), ddq[..., part].copy()
    n = np.linalg.norm(s, axis=-1, keepdims=True)

    def dot(x: Array, y: Array) -> Array:
        return np.sum(x * y, axis=-1, keepdims=True)

    dn = dot(s, ds) / n
    ddn = (dot(ds, ds) + dot(s, dds) - dn * dn) / n
    u = s / n
    du = (ds - u * dn) / n
    q[..., part], dq[..., part] = u, du
    ddq[..., part] = (dds - 2 * du * dn - u * ddn) / n


def _velocities(model: Model, joint: Any, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array]:
    """q̇ = Γ(q) v gives v; q̈ = Γ v̇ + Γ̇ v gives a: one compiled kernel of Γ, and one of Γ̇ v by a jet along q̇."""
    gamma, turning = _rate_kernels(model, joint)
    part = joint.q
    left = np.linalg.pinv(gamma(np.ascontiguousarray(q[..., part])))
    v = (left @ dq[..., part, None])[..., 0]
    turned = turning(*(np.ascontiguousarray(x) for x in (q[..., part], dq[..., part], v)))
    return v, (left @ (ddq[..., part] - turned)[..., None])[..., 0]


def _rate_kernels(model: Model, joint: Any) -> tuple[Any, Any]:
    """(Γ of one joint, Γ̇ v along q̇), compiled."""
    nq, nv, kind = joint.nq, joint.nv, joint.model

    def gamma(q: Array, *, domain: Any) -> Array:
        return np.array([kind.rate(q, e, domain=domain) for e in domain.eye(nv)], dtype=domain.dtype).T

    def turning(q: Array, dq: Array, v: Array, *, domain: Any) -> Array:
        jets = JetDomain(domain)
        return jets.rates(kind.rate(jets.lift(q, dq), jets.lift(v), domain=jets))

    compile, name = model.engine.tree.compile, f"of {joint.name}"
    inputs = [("q", nq), ("dq", nq), ("v", nv)]
    return (
        compile(f"rates {name}", inputs[:1], [("gamma", (nq, nv))], lambda: trace("gamma", inputs[:1], gamma)),
        compile(f"turning {name}", inputs, [("turning", (nq,))], lambda: trace("turning", inputs, turning)),
    )


def spline(model: Model, times: Any, q: Any, order: int = 3) -> Spline:
    """Spline through waypoints q (n, nq) at `times`, at rest at both ends."""
    return Spline(model, times, q, order)


def recorded(model: Model, times: Any, q: Any) -> Spline:
    """Path through a recorded motion: a quintic (for few samples cubic) spline with free ends."""
    return Spline(model, times, q, 5 if len(np.asarray(times)) > 5 else 3, rest=False)


__all__ = ["Path", "PointToPoint", "Spline", "coordinates", "cycloidal", "quintic", "recorded", "spline", "trapezoidal"]
