"""Controllers in a computer: sample time, delay, quantisation and sensor noise.

A controller with `next_sample(t)` and `sample(t, q, v)` receives the state at its sample instants, exactly: the run
ends a step there, whatever the method, and goes on. Between them `controller(t, q, v)` answers from what it has
sampled.

    Sampled      u_k = law(t_k, q_k, v_k) from t_k + delay on, held until the next
    Quantised    measured positions and speeds, and forces, are rounded to multiples of a resolution
    Noisy        normal noise on what is measured, drawn anew at every sample: within Sampled only

They wrap laws and each other in any order (`Inner`): the instants of what is inside are instants of the whole, and it
receives the state as the wrapper sees it, with its noise and its resolution. Noise without any sampling raises an
error.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Protocol, TypeGuard

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.model.arguments import as_model, float_array
from polybody.model.model import Model
from polybody.simulation.arguments import positive
from polybody.simulation.controllers.gains import gains

Array = np.ndarray
#: instants nearer than this part of a period are one
SAME = 1e-9


class Sampling(Protocol):
    """A controller with sample instants of its own."""

    def next_sample(self, t: float) -> float:
        """The first instant after t."""
        ...

    def sample(self, t: float, q: Array, v: Array) -> None:
        """The state at an instant; the first one of a run starts anew."""
        ...

    def __call__(self, t: float, q: Array, v: Array) -> Array: ...


def is_sampling(law: Any) -> TypeGuard[Sampling]:
    """Whether it has instants of its own; asked at each of them, where `isinstance` of a protocol takes ten times as
    long as a step."""
    return callable(law) and hasattr(law, "next_sample") and hasattr(law, "sample")


class Clock:
    """Instants k·period + offset."""

    def __init__(self, period: Any, offset: float = 0.0) -> None:
        self.period, self.offset = positive("period", period), offset

    def next(self, t: float) -> float:
        """The first instant after t."""
        k = np.floor((t - self.offset) / self.period + SAME) + 1
        return float(k * self.period + self.offset)

    def strikes(self, t: float) -> bool:
        """Whether t is an instant."""
        x = (t - self.offset) / self.period
        return bool(abs(x - round(x)) < 10 * SAME)


def ask(law: Any, t: float, q: Array, v: Array) -> Array:
    """What a law answers to one measurement."""
    measured = getattr(law, "measured", None)
    # a copy: a law may fill the same array again before its forces act
    return float_array("tau", law(t, q, v) if measured is None else measured(t, q, v)).copy()


class Inner:
    """The law inside a wrapper; its own sample instants, where it has any, are kept."""

    def __init__(self, law: Any) -> None:
        if not callable(law):
            raise InputError(f"law is a {type(law).__name__}; expected a controller, a function of (t, q, v)")
        self.law = law
        self._last, self._due = np.inf, -np.inf

    def next_sample(self, t: float) -> float:
        """Its first instant after t, infinite where it has none."""
        return self.law.next_sample(t) if is_sampling(self.law) else np.inf

    def sample(self, t: float, q: Array, v: Array) -> None:
        """Tell it the state, if t is an instant of its own or the first of a run."""
        if not is_sampling(self.law):
            return
        if t <= self._last or t >= self._due:
            self.law.sample(t, q, v)
            self._due = self.law.next_sample(t)
        self._last = t

    def passed(self, t: float) -> None:
        """It has been told of everything up to t, its last instant."""
        self._last, self._due = t, self.next_sample(t)


class Sampled:
    """A controller that runs every `period` seconds.

    Its forces act `delay` seconds later and are held; before that none act.
    """

    def __init__(self, law: Any, period: float, delay: float = 0.0) -> None:
        self.inner, self.law, self.clock = Inner(law), law, Clock(period)
        self.delay = 0.0 if delay == 0 else positive("delay", delay)
        self.effects = Clock(period, self.delay % self.clock.period)
        self.times: list[float] = []  # from when on the forces act
        self.forces: list[Array] = []
        self.acting: Array | None = None

    def next_sample(self, t: float) -> float:
        """The next instant at which it measures, or at which forces change."""
        return min(self.clock.next(t), self.effects.next(t), self.inner.next_sample(t))

    def sample(self, t: float, q: Array, v: Array) -> None:
        """Measure, where t is an instant of the law, and let the forces act whose time has come.

        They change here and nowhere else: an integrator's last stage lies at the instant too, and belongs before it.
        """
        if self.times and t <= self.times[-1] - self.delay:
            self.times, self.forces = [], []  # another run
        self.inner.sample(t, q, v)
        if self.clock.strikes(t) or not self.times:
            self.forces.append(ask(self.law, t, q, v))
            self.times.append(t + self.delay)
        k = bisect_right(self.times, t + SAME * self.clock.period) - 1
        self.acting = self.forces[k] if k >= 0 else np.zeros(len(v))

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        if self.acting is None:
            raise PolybodyError(
                "this controller has sampled nothing yet: pb.simulate calls sample(t, q, v) at its instants, also "
                "inside other controllers of pb.controllers; a function of one's own around it must pass that on"
            )
        return self.acting.copy()


def not_negative(name: str, value: Any, nv: int) -> Array:
    """One number per velocity, none below zero: resolutions and standard deviations."""
    found = gains(name, value, nv)
    if (found < 0).any():
        raise InputError(f"{name} must not be negative, got {found.min():g}")
    return found


def _coordinates(name: str, value: Any, model: Model) -> Array:
    """One number per velocity, zero for joints whose positions are no plain numbers."""
    found = not_negative(name, value, model.nv)
    plain = np.concatenate([np.full(j.nv, j.nq == j.nv) for j in model.mechanism.independent_joints] or [np.zeros(0)])
    if float_array(name, value).ndim == 1 and (found[plain == 0] > 0).any():
        raise InputError(f"{name}: joints with quaternions have no such number; give 0 there")
    return np.where(plain == 1, found, 0.0)


class Quantised:
    """A controller with quantised measurements and forces: resolutions, one number or one per velocity.

    Positions of joints with quaternions are not quantised. A resolution of 0 disables quantisation.
    """

    def __init__(self, model: Model, law: Any, position: Any = 0.0, velocity: Any = 0.0, effort: Any = 0.0) -> None:
        self.model: Model = as_model("controllers", model)
        self.inner, self.law = Inner(law), law
        self.position = _coordinates("position", position, self.model)
        self.velocity = not_negative("velocity", velocity, self.model.nv)
        self.effort = not_negative("effort", effort, self.model.nv)
        self._q_of = _plain_places(self.model)

    def seen(self, q: Array, v: Array) -> tuple[Array, Array]:
        """What quantised sensors show of a state."""
        q, (at_q, at_v) = np.array(q, dtype=float), self._q_of
        q[at_q] = _rounded(q[at_q], self.position[at_v])
        return q, _rounded(v, self.velocity)

    def next_sample(self, t: float) -> float:
        """The next instant of the law inside."""
        return self.inner.next_sample(t)

    def sample(self, t: float, q: Array, v: Array) -> None:
        """Tell the law inside the quantised state at its instant."""
        self.inner.sample(t, *self.seen(q, v))

    def measured(self, t: float, q: Array, v: Array) -> Array:
        """The forces for one measurement, quantised."""
        return _rounded(ask(self.law, t, *self.seen(q, v)), self.effort)

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        return _rounded(float_array("tau", self.law(t, *self.seen(q, v))), self.effort)


def _plain_places(model: Model) -> tuple[Array, Array]:
    """(indices in q, indices in v) of coordinates that are plain numbers."""
    joints = [j for j in model.mechanism.independent_joints if j.nq == j.nv]
    def places(slices: list[slice]) -> Array:
        return np.array([k for s in slices for k in range(s.start, s.stop)], dtype=int)

    return places([j.q for j in joints]), places([j.v for j in joints])


def _rounded(x: Array, step: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(step > 0, np.round(x / np.where(step > 0, step, 1.0)) * step, x)


def _seed(value: Any) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
        raise InputError(f"seed must be a whole number, 0 or more, got {value!r}")
    return int(value)


class Noisy:
    """A controller with Gaussian sensor noise.

    Standard deviations are one number or one per velocity; `seed` makes runs repeatable. Positions are perturbed on the
    manifold, so that quaternions keep unit length. Use it within `Sampled`, or around it: noise that changes between
    the stages of an integration step has no meaning.
    """

    def __init__(self, model: Model, law: Any, position: Any = 0.0, velocity: Any = 0.0, seed: int = 0) -> None:
        self.model: Model = as_model("controllers", model)
        self.inner, self.law, self.seed = Inner(law), law, _seed(seed)
        self.position, self.velocity = (
            not_negative(n, x, self.model.nv) for n, x in (("position", position), ("velocity", velocity))
        )

    def seen(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """What the sensors show of the state at t."""
        noise, nv = self.noise(t), self.model.nv
        return self.model.integrate(q, noise[:nv]) if self.position.any() else q, v + noise[nv:]

    def noise(self, t: float) -> Array:
        """[of positions, of velocities] at t: the same at the same instant."""
        rng = np.random.default_rng([self.seed, int(np.float64(t).view(np.uint64))])
        return np.concatenate([self.position, self.velocity]) * rng.normal(size=2 * self.model.nv)

    def next_sample(self, t: float) -> float:
        """The next instant of the law inside."""
        return self.inner.next_sample(t)

    def sample(self, t: float, q: Array, v: Array) -> None:
        """Tell the law inside the measured state at its instant."""
        self.inner.sample(t, *self.seen(t, q, v))

    def measured(self, t: float, q: Array, v: Array) -> Array:
        """The law's answer to what the sensors show at t."""
        return ask(self.law, t, *self.seen(t, q, v))

    def __call__(self, t: float, q: Array, v: Array) -> Array:
        if holds(self.law):  # it has measured at its own instants, with this noise
            return self.law(t, q, v)
        raise PolybodyError("sensor noise is drawn at sample instants: put Noisy inside Sampled(law, period)")


def holds(law: Any) -> bool:
    """Whether a law answers from what it has sampled, whatever the state between."""
    return isinstance(law, Sampled) or (isinstance(law, Quantised | Noisy) and holds(law.law))


__all__ = ["Clock", "Inner", "Noisy", "Quantised", "Sampled", "Sampling", "ask", "holds", "not_negative"]
