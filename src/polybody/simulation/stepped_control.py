"""A controller over the steps of a motion, as text that can be differentiated, with what it remembers.

    z_k = update(t_k, q_k, v_k, z_{k−1}, row_k)       at the beginning of step k
    tau = text(t, q, v, z_k, row_k)                   at the stages of step k

z is a controller's memory: forces that a computer holds, the integral of an observer, adapted parameters. A row holds
what depends on time alone, among it whether the step begins at an instant of the controller. Paths are functions of
time: their motion at the stages of a step (its beginning, middle and end) is part of the row, whatever computes them,

    q_d(t) = (1−s)(1−2s) q_d(t_k) + 4s(1−s) q_d(t_k + h/2) + s(2s−1) q_d(t_k + h),       s = (t − t_k)/h

which is exact at the stages s = 0, ½, 1. A controller knows the numbers of its own model; the machine's may vary.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.algebra.domains import domain as domain_of_name
from polybody.errors import InputError
from polybody.formulations import denoc
from polybody.model.model import Model
from polybody.quantities.regressors import ordered_terms, regressor
from polybody.simulation.compiled.laws import NotCompiled, Signals, law_of
from polybody.simulation.compiled.own_numbers import numbers_of
from polybody.simulation.compiled.tracing import key_of, samples_of, traced
from polybody.simulation.controllers import (
    PD,
    Adaptive,
    Admittance,
    DisturbanceObserver,
    Given,
    GravityCompensation,
    Sampled,
    Sampling,
    Stateful,
)

Array = np.ndarray
#: columns of a row before those of the law: whether the step begins a run, at an instant, at an effect; time since one
FIRST, INSTANT, EFFECT, SINCE = range(4)
#: controllers that take a state as it is, on the loops of their own model or not
AS_IT_IS = (PD, GravityCompensation)
SAME = 1e-9


@dataclass(frozen=True)
class Control:
    """The texts of a controller, with the constants c and the rows (steps, …) they read."""

    key: str
    text: Callable[..., Array]  # (t, q, v, z, c, row, domain) -> tau
    rows: Array
    constants: Array = field(default_factory=lambda: np.zeros(0))
    memory: int = 0  # numbers in z, all zero before the first step
    update: Callable[..., Array] | None = None  # (t, q, v, z, c, row, domain) -> z


class Tabulated:
    """A path by its motion at the stages of steps of h seconds from `times` on."""

    def __init__(self, model: Model, path: Any, times: Array, h: float) -> None:
        self.model = model
        stages = [_motion(path, times + part * h) for part in (0.0, 0.5, 1.0)]
        self.rows = np.column_stack([times, np.full(len(times), 1 / h), *(x for stage in stages for x in stage)])

    @property
    def signals(self) -> Signals:
        return Signals(self.rows[:, 0], self.rows)

    def motion(self, t: Any, row: Array, domain: Domain) -> tuple[Array, Array, Array]:
        """(q, v, a) at a stage."""
        nq, nv = self.model.nq, self.model.nv
        weights = stage_weights((t - row[0]) * row[1], domain)
        parts = row[2:].reshape(3, nq + 2 * nv)
        whole = parts[0] * weights[0] + parts[1] * weights[1] + parts[2] * weights[2]
        return whole[:nq], whole[nq : nq + nv], whole[nq + nv :]


def stage_weights(s: Any, domain: Domain) -> tuple[Any, Any, Any]:
    """Weights of a step's beginning, middle and end at its part s: exact at 0, ½ and 1."""
    one, two = domain.const(1), domain.const(2)
    return (one - s) * (one - two * s), domain.const(4) * s * (one - s), s * (two * s - one)


def _motion(path: Any, times: Array) -> tuple[Array, ...]:
    found = [path(float(t)) for t in times]
    return tuple(np.array([np.asarray(x[k], dtype=float) for x in found]) for k in range(3))


def control_of(model: Model, controller: Any, times: Array, h: float) -> Control:
    """The texts of a controller for steps of h seconds that begin at `times`; `NotCompiled` with the reason if none."""
    for kind, make in MAKERS.items():
        if type(controller) is kind:
            return make(model, controller, times, h)
    if isinstance(controller, Admittance):
        from polybody.simulation.stepped_admittance import admitting

        return admitting(model, controller, times, h)
    if isinstance(controller, Sampling):
        raise NotCompiled(f"a {type(controller).__name__} has a memory that is not an expression")
    return _plain(model, controller, times, h)


def steps_of(controller: Any, start: float, spacing: float, dt: float) -> int:
    """Steps of at most dt in each sample of a run, such that every instant of the controller begins one."""
    unit, clocks = spacing, [c for c in (getattr(controller, "clock", None), getattr(controller, "effects", None)) if c]
    for clock in clocks:
        for length in (clock.period, abs(start - clock.offset)):
            ratio = Fraction(length / unit).limit_denominator(10_000)
            if abs(float(ratio) - length / unit) > SAME * (1 + length / unit):
                raise InputError(
                    f"the controller acts every {clock.period:g} s and the states are {spacing:g} s apart; take a "
                    "sample that is a multiple of its period"
                )
            unit /= ratio.denominator
    each = int(np.ceil(unit / dt * (1 - 1e-12)))
    if unit < 1e-3 * dt:
        raise InputError(f"steps would take {unit:g} s, for each of the controller's instants to begin one")
    return max(1, each) * round(spacing / unit)


def _plain(model: Model, controller: Any, times: Array, h: float) -> Control:
    """Of a controller without memory: any that steps of simulations are compiled with, and any path."""
    if controller is not None and not callable(controller):
        controller = Given(model, controller)
    owner = None if isinstance(controller, Given) else getattr(controller, "model", None)
    known = numbers_of(owner) if isinstance(owner, Model) else model
    if isinstance(owner, Model) and type(controller) not in AS_IT_IS:
        require_constant_loops(model)
    if getattr(controller, "path", None) is not None:
        controller = copy(controller)
        controller.path = Tabulated(known, controller.path, times, h)
    if known is not model or isinstance(controller, Given):
        controller = copy(controller)
        controller.model = known  # its numbers, as constants
    law = law_of(known, controller)
    mechanism = known.engine.reduced_mechanism if isinstance(owner, Model) else model.mechanism

    def text(t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        return law.text(mechanism, t, q, v, c, row, domain)

    rows = np.array([law.signals.row(t + h / 2) for t in times]).reshape(len(times), -1)
    digest = f" of {mechanism.digest[:24]}" if isinstance(owner, Model) else ""
    return Control(f"{law.key}{digest}", text, rows, law.constants)


def require_constant_loops(model: Model) -> None:
    """Refuse where constraints depend on the parameters: a state is then off the loops of the controller's model."""
    if not model.mechanism.constrained:
        return
    import casadi

    graph: Any = domain_of_name("casadi")
    system = model.engine.constraints.traced
    (_, q), (_, v) = graph.variables("q", model.nq), graph.variables("v", model.nv)
    equations = graph.column(np.concatenate([system.residual(q, domain=graph), system.velocity(q, v, domain=graph)]))
    if any(casadi.depends_on(equations, symbols) for symbols in system.mechanism.symbols):
        raise NotCompiled("it puts the state onto the loops of its own model, and the parameters change the loops")


def flags_of(clock: Any, times: Array) -> Array:
    """Columns FIRST, INSTANT, EFFECT (none) and SINCE."""
    instant = np.array([clock.strikes(float(t)) for t in times])
    if not instant[0]:
        raise NotCompiled(f"the run begins at {times[0]:g} s, between two of its instants")
    last = times[np.maximum.accumulate(np.where(instant, np.arange(len(times)), 0))]
    since = np.concatenate([[0.0], times[1:] - last[:-1]])
    first = np.arange(len(times)) == 0
    return np.column_stack([first, instant, np.zeros(len(times)), since])


def chosen(domain: Domain, flag: Any, yes: Array, no: Array) -> Array:
    """`yes` where the flag is one, `no` where it is zero."""
    on = domain.less(domain.const(0.5), flag)
    return np.array([domain.where(on, a, b) for a, b in zip(yes, no, strict=True)], dtype=domain.dtype)


def _sampled(model: Model, law: Sampled, times: Array, h: float) -> Control:
    """z = [forces that act, the last ones computed, those before …]."""
    inner, nv = _inside(model, law.law, times, h), model.nv
    flags, before = flags_of(law.clock, times), int(law.delay / law.clock.period + SAME)
    flags[:, EFFECT] = [law.effects.strikes(float(t)) and t - law.delay > times[0] - SAME for t in times]

    def update(t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        tau = inner.text(t, q, v, z, c, row[4:], domain)
        queue = chosen(domain, row[INSTANT], np.concatenate([tau, z[nv:-nv]]), z[nv:])
        return np.concatenate([chosen(domain, row[EFFECT], queue[-nv:], z[:nv]), queue])

    return Control(
        f"sampled {before} {inner.key}", lambda t, q, v, z, c, row, domain: z[:nv],
        np.column_stack([flags, inner.rows]), inner.constants, (2 + before) * nv, update,
    )  # fmt: skip


def _inside(model: Model, law: Any, times: Array, h: float) -> Control:
    found = control_of(model, law, times, h)
    if found.memory:
        raise NotCompiled("a controller with a memory inside another one is not an expression")
    return found


def _stateful(model: Model, law: Stateful, times: Array, h: float) -> Control:
    n, nq, nv = len(law.start), model.nq, model.nv
    samples = [(*state, law.start + 0.1 * k) for k, state in enumerate(samples_of(model))]
    force = traced(law.force, (0, nq, nv, n), nv, samples)
    step = traced(law.update, (0, nq, nv, n), n, samples)

    def called(function: Any, t: Any, q: Array, v: Array, z: Array, domain: Any) -> Array:
        return domain.scalars(function(*(domain.column(x) for x in ([t], q, v, z))))

    def update(t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Any) -> Array:
        z = chosen(domain, row[FIRST], c, z)
        return chosen(domain, row[INSTANT], called(step, t, q, v, z, domain), z)

    return Control(
        f"stateful {key_of(force)} {key_of(step)}",
        lambda t, q, v, z, c, row, domain: called(force, t, q, v, z, domain), flags_of(law.clock, times), law.start, n,
        update,
    )  # fmt: skip


def _observed(model: Model, law: DisturbanceObserver, times: Array, h: float) -> Control:
    """z = [r, ∫, p₀, Cᵀu̇ − g + passive, τ] of `controllers.disturbance_observer`."""
    inner, known, nv = _inside(model, law.law, times, h), numbers_of(law.model), model.nv
    if known.mechanism.constrained or not known.actuation.active.all():
        raise NotCompiled("observers of loops and free bases are not expressions")
    m = known.engine.traced_mechanism

    def drawn(r: Array, tau: Array) -> Array:
        return tau - r if law.compensate else tau

    def update(t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        r, total, p0, bend0, force0 = z.reshape(5, nv)
        p = denoc.mass_matrix(m, q, domain=domain) @ v
        bend = denoc.coriolis_matrix(m, q, v, domain=domain).T @ v - denoc.gravity_forces(m, q, domain=domain)
        bend = bend + denoc.passive_forces(m, q, v, domain=domain)
        tau, half = inner.text(t, q, v, z, c[nv:], row[4:], domain), row[SINCE] * domain.const(0.5)
        so_far = total + (force0 + drawn(r, tau) + bend0 + bend + r) * half
        seen = (p - p0 - so_far) * c[:nv] / (c[:nv] * half + domain.const(1))
        none = domain.zeros(nv)
        later = np.concatenate([seen, so_far + seen * half, p0, bend, drawn(seen, tau)])
        begun = np.concatenate([none, none, p, bend, tau])
        return chosen(domain, row[INSTANT], chosen(domain, row[FIRST], begun, later), z)

    return Control(
        f"observer {law.compensate} of {m.digest[:24]} {inner.key}",
        lambda t, q, v, z, c, row, domain: drawn(z[:nv], inner.text(t, q, v, z, c[nv:], row[4:], domain)),
        np.column_stack([flags_of(law.clock, times), inner.rows]), np.concatenate([law.gain, inner.constants]), 5 * nv,
        update,
    )  # fmt: skip


def _adaptive(model: Model, law: Adaptive, times: Array, h: float) -> Control:
    """z = p̂ of `controllers.adaptive`."""
    known, nv = numbers_of(law.model), model.nv
    if known.mechanism.constrained:
        raise NotCompiled("adaptive control of loops is not an expression")
    m, path = known.engine.traced_mechanism, Tabulated(known, law.path, times, h)
    asked, names = regressor(m, "+".join(ordered_terms(law.terms))), known.regressor.columns(law.terms)
    n, own = len(names), [k for k, x in enumerate(names) if x.rpartition(".")[2] in ("viscous", "coulomb", "stribeck")]

    def wanted(t: Any, q: Array, v: Array, c: Array, row: Array, domain: Domain) -> tuple[Array, Array]:
        goal, speed, acceleration = path.motion(t, row[4:], domain)
        slope, none = c[nv : 2 * nv], domain.zeros(nv)
        reference, onward = speed - (q - goal) * slope, acceleration - (v - speed) * slope
        Y = [asked.tree(m, q, x, none, domain=domain) for x in (v + reference, v, reference, none)]
        quadratic = (Y[0] - Y[1] - Y[2] + Y[3]) * domain.const(0.5)
        quadratic[:, own] = Y[1][:, own]
        return asked.tree(m, q, none, onward, domain=domain) + quadratic, v - reference

    def text(t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        Y, s = wanted(t, q, v, c, row, domain)
        return Y @ z - s * c[:nv] - denoc.passive_forces(m, q, domain.zeros(nv), domain=domain)

    def update(t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        Y, s = wanted(t, q, v, c, row, domain)
        learnt = z - (Y.T @ s) * c[2 * nv : 2 * nv + n] * row[SINCE]
        return chosen(domain, row[FIRST], c[2 * nv + n :], chosen(domain, row[INSTANT], learnt, z))

    return Control(
        f"adaptive {law.terms} of {m.digest[:24]}", text, np.column_stack([flags_of(law.clock, times), path.rows]),
        np.concatenate([law.kd, law.slope, law.rate, law.start]), n, update,
    )  # fmt: skip


MAKERS: dict[type, Callable[..., Control]] = {
    Sampled: _sampled, Stateful: _stateful, DisturbanceObserver: _observed, Adaptive: _adaptive,
}

__all__ = ["FIRST", "INSTANT", "Control", "Tabulated", "chosen", "control_of", "flags_of",
           "require_constant_loops", "stage_weights", "steps_of"]  # fmt: skip
