"""The disturbance observer as text: `controllers.disturbance_observer` over any domain, on trees, loops and free bases.

    z = [r, ∫, p₀, Cᵀu̇ − g + passive, Aᵀτ_a, time; held?, since, its force, its integral; z of the law inside]

The second group is the time integral of forces that a computer around the observer holds (`Held` there).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.formulations import denoc
from polybody.model.model import Model
from polybody.quantities import constrained
from polybody.simulation.compiled.law import Planned
from polybody.simulation.compiled.own_state import Own, OwnState
from polybody.simulation.compiled.remembered import Knowing, Remembered, chosen, remembered, strikes
from polybody.simulation.compiled.sampled_laws import tell_inner
from polybody.simulation.controllers.disturbance_observer import DisturbanceObserver, Held

Array = np.ndarray


class _Observing:
    """The texts, with what they share."""

    def __init__(self, model: Model, law: DisturbanceObserver, plan: Planned | None) -> None:
        self.law, self.inner, self.knowing = law, remembered(model, law.law, plan), Knowing(model, law.model)
        self.own, self.n = Own(self.knowing.model), len(law.gain)
        self.doubts: list[Any] = []
        n = self.n
        parts = {"r": n, "total": n, "start": n, "bend": n, "force": n, "at": 1, "is_held": 1, "since": 1, "held": n,
                 "integral": n, "inner": self.inner.size}  # fmt: skip
        ends = np.cumsum([0, *parts.values()])
        self.slices = {name: slice(int(a), int(b)) for name, a, b in zip(parts, ends[:-1], ends[1:], strict=True)}
        self.size = int(ends[-1])

    def split(self, z: Array) -> dict[str, Array]:
        return {name: z[part] for name, part in self.slices.items()}

    # What is known of a state.

    def at(self, m: Any, q: Array, v: Array, domain: Domain) -> OwnState:
        return self.own.at(self.knowing.mechanism(m), q, v, self.doubts, domain)

    def known(self, s: OwnState) -> tuple[Array, Array]:
        """(p, Cᵀu̇ − g + passive)."""
        q, v, domain = s.q, s.v, s.domain
        if s.closed is not None:
            C = constrained.coriolis_matrix(s.closed, q, v, domain=domain)
            rest = constrained.passive_forces(s.closed, q, v, domain=domain)
            return s.inertia @ s.u, C.T @ s.u - constrained.gravity_forces(s.closed, q, domain=domain) + rest
        p, drift = denoc.momentum_and_drift(s.reduced, q, v, domain=domain)
        rest = denoc.passive_forces(s.reduced, q, v, domain=domain)
        return p, drift - denoc.gravity_forces(s.reduced, q, domain=domain) + rest

    def generalised(self, s: OwnState, tau: Array) -> Array:
        """Aᵀτ_a."""
        pushed = s.domain.zeros(len(tau))
        pushed[self.own.active] = tau[self.own.active]
        return pushed if s.G is None else s.G.T @ pushed

    def compensated(self, s: OwnState, r: Array, tau: Array) -> Array:
        if not self.law.compensate:
            return tau
        if not self.own.driven:
            return tau - s.exerted(s.borne(r))
        if s.closed is None:
            return tau - r
        away, count = s.domain.zeros(s.m.nv), len(s.closed.growth)
        away[self.own.u] = r
        found = constrained.drive_forces(s.closed, s.q, away, s.domain)
        self.doubts.extend(s.closed.growth[count:])
        return tau - found

    # Texts.

    def text(self, m: Any, t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        known = self.split(z)
        tau = self.inner.text(m, t, q, v, known["inner"], c[self.n :], row, domain)
        self.doubts[:] = self.inner.doubts
        if not self.law.compensate:
            return tau
        return self.compensated(self.at(m, q, v, domain), known["r"], tau)

    def begin(self, m: Any, t: Any, q: Array, v: Array, told: Array, c: Array, row: Array, domain: Domain) -> Array:
        inner = self.inner.begun(m, t, q, v, told[1:], c[self.n :], row, domain)
        tau, _ = self.inner.measured(m, t, q, v, inner, told[1:], c[self.n :], row, domain)
        s, none, one = self.at(m, q, v, domain), domain.zeros(self.n), domain.zeros(1)
        parts = [none, none, *self.known(s), self.generalised(s, tau), one + t, one, one, none, none]
        return np.concatenate([*parts, inner])

    def update(
        self, m: Any, t: Any, q: Array, v: Array, z: Array, told: Array, c: Array, row: Array, domain: Domain
    ) -> Array:
        self.doubts.clear()
        k, inner_c, s = self.split(z), c[self.n :], self.at(m, q, v, domain)
        gain, half = c[: self.n], (t - k["at"][0]) * domain.const(0.5)

        def acting(r: Array, inner: Array) -> Array:
            tau, _ = self.inner.measured(m, t, q, v, inner, told[1:], inner_c, row, domain)
            return self.generalised(s, self.compensated(s, r, tau))

        held = k["integral"] + k["held"] * (t - k["since"][0])
        pushed = chosen(domain, k["is_held"][0], held, (k["force"] + acting(k["r"], k["inner"])) * half)
        p, bend = self.known(s)
        so_far = k["total"] + pushed + (k["bend"] + bend + k["r"]) * half
        r = gain * (p - k["start"] - so_far) / (gain * half + domain.const(1))
        inner = self.inner.updated(m, t, q, v, k["inner"], told[1:], inner_c, row, domain)
        force = chosen(domain, k["is_held"][0], k["force"], acting(r, inner))
        none, now = domain.zeros(self.n), domain.zeros(1) + t
        parts = [r, so_far + r * half, k["start"], bend, force, now, k["is_held"], now, k["held"], none, inner]
        self.doubts.extend(self.inner.doubts)
        return chosen(domain, told[0], np.concatenate(parts), z)

    def measure(
        self, m: Any, t: Any, q: Array, v: Array, z: Array, told: Array, c: Array, row: Array, domain: Domain
    ) -> tuple[Array, Array]:
        """What a computer around it measures is what it holds from now on."""
        k, s = self.split(z), self.at(m, q, v, domain)
        tau, inner = self.inner.measured(m, t, q, v, k["inner"], told[1:], c[self.n :], row, domain)
        tau = self.compensated(s, k["r"], tau)
        so_far = k["integral"] + k["held"] * (t - k["since"][0])
        integral = chosen(domain, k["is_held"][0], so_far, domain.zeros(self.n))
        one = domain.zeros(1)
        after = {**k, "is_held": one + domain.const(1), "since": one + t, "held": self.generalised(s, tau),
                 "integral": integral, "inner": inner}  # fmt: skip
        self.doubts.extend(self.inner.doubts)
        return tau, np.concatenate(list(after.values()))

    # The Python object.

    def told(self, times: Array, start: float) -> Array:
        due = strikes(self.law.clock, times) | (times == start)
        for clock in self.inner.clocks:
            due = due | strikes(clock, times)
        return np.column_stack([due, self.inner.told(times, start)])

    def take(self) -> Array:
        law, none = self.law, np.zeros(self.n)
        held = law._held
        hold = [[0.0], [0.0], none, none] if held is None else [[1.0], [held.t], held.force, held.integral]
        known = [law.estimate, law._integral, law._start, law._bend, law._force, [law.times[-1]]]
        return np.concatenate([*known, *hold, self.inner.take()])

    def give(self, times: Array, told: Array, rows: Array) -> None:
        law = self.law
        tell_inner(law.inner, self.inner, times, told[:, 1:], rows[:, self.slices["inner"]])
        if not len(rows):
            return
        new, k = told[:, 0] > 0.5, {name: x.copy() for name, x in self.split(rows[-1]).items()}
        law.times.extend(times[new].tolist())
        law.estimates.extend(rows[new, self.slices["r"]].copy())
        law.estimate, law._integral, law._start, law._bend, law._force = (
            k[name] for name in ("r", "total", "start", "bend", "force"))  # fmt: skip
        law._held = None
        if k["is_held"][0]:
            law._held = Held(float(k["since"][0]), k["held"])
            law._held.integral = k["integral"]


def _observing(model: Model, law: DisturbanceObserver, plan: Planned | None) -> Remembered:
    o = _Observing(model, law, plan)
    inner = o.inner
    return Remembered(
        f"observer {law.compensate} {o.own.key}{o.knowing.key} {inner.key}", o.text,
        np.concatenate([law.gain, inner.constants]), inner.signals, o.doubts,
        inner.doubtful or (law.compensate and not o.own.driven), o.size, 1 + inner.width, (law.clock, *inner.clocks),
        o.told, o.begin, o.update, o.measure, o.take, o.give, inner.continuous, inner.smooth,
    )  # fmt: skip


MAKERS: dict[type, Callable[..., Remembered]] = {DisturbanceObserver: _observing}

__all__ = ["MAKERS"]
