"""Controllers in a computer, and those with a memory of the user's, as text: `controllers.sampling` and `stateful`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.mechanism import kinematics
from polybody.model.model import Model
from polybody.simulation.compiled.law import Planned
from polybody.simulation.compiled.remembered import Knowing, Remembered, chosen, remembered, strikes
from polybody.simulation.compiled.tracing import key_of, samples_of, traced
from polybody.simulation.controllers.sampling import SAME, Inner, Noisy, Quantised, Sampled, holds
from polybody.simulation.controllers.stateful import Stateful
from polybody.simulation.failures import NotCompiled

Array = np.ndarray


def tell_inner(inner: Inner, found: Remembered, times: Array, told: Array, rows: Array) -> None:
    """What has happened at instants, to the law inside a wrapper."""
    found.give(times, told, rows)
    if found.size and len(times):
        inner.passed(float(times[-1]))


def _sampled(model: Model, law: Sampled, plan: Planned | None) -> Remembered:
    """z = [forces that act, the last ones computed, those before …, z of the law]."""
    inner, nv = remembered(model, law.law, plan), model.nv
    before = int(law.delay / law.clock.period + SAME)
    kept = 1 if law.delay == 0 else 2 + before  # forces that may still act
    own, width, doubts = (1 + kept) * nv, 1 + kept, list[Any]()

    def told(times: Array, start: float) -> Array:
        measures = strikes(law.clock, times) | (times == start)
        late, first = _counted(law, times - law.delay), _counted(law, np.array([start]))[0]
        since = np.where(times - law.delay > start - SAME * law.clock.period, 0, -1)
        acting = np.where(late > first, late - first, since)
        ago = np.where(acting >= 0, _counted(law, times) - first - acting, -1)
        return np.column_stack([measures, ago[:, None] == np.arange(kept), inner.told(times, start)])

    def begin(m: Any, t: Any, q: Array, v: Array, told: Array, c: Array, row: Array, domain: Domain) -> Array:
        z = inner.begun(m, t, q, v, told[width:], c, row, domain)
        tau, z = inner.measured(m, t, q, v, z, told[width:], c, row, domain)
        acting = domain.zeros(nv) if law.delay else tau
        return np.concatenate([acting, tau, domain.zeros((kept - 1) * nv), z])

    def update(
        m: Any, t: Any, q: Array, v: Array, z: Array, told: Array, c: Array, row: Array, domain: Domain
    ) -> Array:
        known = inner.updated(m, t, q, v, z[own:], told[width:], c, row, domain)
        tau, after = inner.measured(m, t, q, v, known, told[width:], c, row, domain)
        doubts[:] = inner.doubts
        queue = chosen(domain, told[0], np.concatenate([tau, z[nv : own - nv]]), z[nv:own])
        acting = z[:nv]
        for k in range(kept):
            acting = chosen(domain, told[1 + k], queue[k * nv : (k + 1) * nv], acting)
        return np.concatenate([acting, queue, chosen(domain, told[0], after, known)])

    def text(m: Any, t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        doubts.clear()
        return z[:nv]

    def take() -> Array:
        assert law.acting is not None
        forces = [*law.forces[: -1 - kept : -1], *[np.zeros(nv)] * kept][:kept]
        return np.concatenate([law.acting, *forces, inner.take()])

    def give(times: Array, told: Array, rows: Array) -> None:
        tell_inner(law.inner, inner, times, told[:, width:], rows[:, own:])
        new = told[:, 0] > 0.5
        law.times.extend((times[new] + law.delay).tolist())
        law.forces.extend(rows[new, nv : 2 * nv].copy())
        if len(rows):
            law.acting = rows[-1, :nv].copy()

    clocks = (law.clock, law.effects) if law.delay else (law.clock,)
    return Remembered(
        f"sampled {kept} {inner.key}", text, inner.constants, inner.signals, doubts, False, own + inner.size,
        width + inner.width, (*clocks, *inner.clocks), told, begin, update, None, take, give, True, inner.smooth,
    )  # fmt: skip


def _counted(law: Sampled, times: Array) -> Array:
    """How many instants of its clock there are up to each time, from a common origin."""
    return np.floor((times - law.clock.offset) / law.clock.period + SAME).astype(int)


def _stateful(model: Model, law: Stateful, plan: Planned | None) -> Remembered:
    n, nq, nv = len(law.start), model.nq, model.nv
    samples = [(*state, law.start + 0.1 * k) for k, state in enumerate(samples_of(model))]
    try:
        force = traced(law.force, (0, nq, nv, n), nv, samples)
        step = traced(law.update, (0, nq, nv, n), n, samples)
    except NotCompiled as reason:
        raise NotCompiled(f"the controller is called in Python: {reason}") from None

    def called(function: Any, t: Any, q: Array, v: Array, z: Array, domain: Any) -> Array:
        return domain.scalars(function(*(domain.column(x) for x in ([t], q, v, z))))

    def update(
        m: Any, t: Any, q: Array, v: Array, z: Array, told: Array, c: Array, row: Array, domain: Domain
    ) -> Array:
        return chosen(domain, told[0], called(step, t, q, v, z, domain), z)

    def give(times: Array, told: Array, rows: Array) -> None:
        new = np.flatnonzero(told[:, 0] > 0.5)
        if len(new):
            law.resume(float(times[new[-1]]), rows[new[-1]].copy())

    return Remembered(
        f"stateful {key_of(force)} {key_of(step)}",
        lambda m, t, q, v, z, c, row, domain: called(force, t, q, v, z, domain), law.start, size=n, width=1,
        clocks=(law.clock,), told=lambda times, start: strikes(law.clock, times)[:, None].astype(float),
        begin=lambda m, t, q, v, told, c, row, domain: called(step, t, q, v, c, domain), update=update,
        take=lambda: law.state, give=give,
    )  # fmt: skip


def _around(
    inner: Remembered, seen: Callable[..., tuple[Array, Array]], answer: Callable[..., Array], width: int
) -> Any:
    """Texts of a wrapper without a memory of its own: `seen(m, t, q, v, told, domain)` is what sensors show, and
    `answer(tau, domain)` what actuators do; `width` numbers of told are its own."""

    def begin(m: Any, t: Any, q: Array, v: Array, told: Array, c: Array, row: Array, domain: Domain) -> Array:
        return inner.begun(m, t, *seen(m, q, v, told, domain), told[width:], c, row, domain)

    def update(
        m: Any, t: Any, q: Array, v: Array, z: Array, told: Array, c: Array, row: Array, domain: Domain
    ) -> Array:
        return inner.updated(m, t, *seen(m, q, v, told, domain), z, told[width:], c, row, domain)

    def measure(
        m: Any, t: Any, q: Array, v: Array, z: Array, told: Array, c: Array, row: Array, domain: Domain
    ) -> tuple[Array, Array]:
        tau, z = inner.measured(m, t, *seen(m, q, v, told, domain), z, told[width:], c, row, domain)
        return answer(tau, domain), z

    return begin, update, measure


def _quantised(model: Model, law: Quantised, plan: Planned | None) -> Remembered:
    inner = remembered(model, law.law, plan)
    at_q, at_v = law._q_of

    def seen(m: Any, q: Array, v: Array, told: Any, domain: Domain) -> tuple[Array, Array]:
        q = q.copy()
        q[at_q] = rounded(q[at_q], law.position[at_v], domain)
        return q, rounded(v, law.velocity, domain)

    def text(m: Any, t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        return rounded(inner.text(m, t, *seen(m, q, v, None, domain), z, c, row, domain), law.effort, domain)

    begin, update, measure = _around(inner, seen, lambda tau, domain: rounded(tau, law.effort, domain), 0)
    steps = [x.tolist() for x in (law.position, law.velocity, law.effort)]
    return replace(
        inner, key=f"quantised {steps} {inner.key}", text=text, begin=begin, update=update, measure=measure,
        give=lambda times, told, rows: tell_inner(law.inner, inner, times, told, rows), smooth=False,
    )  # fmt: skip


def rounded(x: Array, step: Array, domain: Any) -> Array:
    """x to the nearest multiple of the step, halves to the even one; as it is where the step is zero."""
    import casadi

    found, half, one = x.copy(), domain.const(0.5), domain.const(1)
    for k in np.flatnonzero(step > 0):
        size = domain.const(float(step[k]))
        part = x[k] / size
        below = domain.scalars(casadi.floor(domain.column([part])))[0]
        lower = domain.scalars(casadi.floor(domain.column([below * half])))[0]
        above = part - below
        up = domain.where(domain.less(half, above), one, domain.const(0))
        odd = below - lower * domain.const(2)
        halfway = (one - up) * (one - domain.where(domain.less(above, half), one, domain.const(0)))
        found[k] = (below + up + halfway * odd) * size
    return found


def _noisy(model: Model, law: Noisy, plan: Planned | None) -> Remembered:
    inner, known, nv = remembered(model, law.law, plan), Knowing(model, law.model), model.nv
    width = 2 * nv

    def seen(m: Any, q: Array, v: Array, told: Array, domain: Domain) -> tuple[Array, Array]:
        if law.position.any():
            q = kinematics.integrate(known.mechanism(m), q, told[:nv], domain=domain)
        return q, v + told[nv:width]

    def told(times: Array, start: float) -> Array:
        noise = np.array([law.noise(float(t)) for t in times]).reshape(-1, width)
        return np.column_stack([noise, inner.told(times, start)])

    begin, update, measure = _around(inner, seen, lambda tau, domain: tau, width)
    return replace(
        inner, key=f"noisy {bool(law.position.any())} {known.key} {inner.key}", width=width + inner.width, told=told,
        begin=begin, update=update, measure=measure, continuous=holds(law.law),
        give=lambda times, told, rows: tell_inner(law.inner, inner, times, told[:, width:], rows),
    )  # fmt: skip


MAKERS: dict[type, Callable[..., Remembered]] = {
    Sampled: _sampled, Stateful: _stateful, Quantised: _quantised, Noisy: _noisy,
}

__all__ = ["MAKERS", "tell_inner"]
