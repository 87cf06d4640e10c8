"""Adaptive control as text: `controllers.adaptive` over any domain, on trees and loops. z = [p̂, time of learning]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.formulations import denoc
from polybody.model.model import Model
from polybody.quantities import constrained
from polybody.quantities.constrained import Closed, along_plan
from polybody.quantities.regressors import ordered_terms, regressor
from polybody.simulation.compiled.law import Planned
from polybody.simulation.compiled.laws import motion_of
from polybody.simulation.compiled.own_state import own_plan
from polybody.simulation.compiled.remembered import Knowing, Remembered, chosen, strikes
from polybody.simulation.controllers.adaptive import Adaptive
from polybody.simulation.controllers.own_motion import own_columns

Array = np.ndarray
#: columns that are linear in what the joint does itself, not quadratic in speeds
OWN = ("viscous", "coulomb", "stribeck")


def _adapting(model: Model, law: Adaptive, plan: Planned | None) -> Remembered:
    knowing = Knowing(model, law.model)
    known = knowing.model
    name, motion, signals = motion_of(known, law.path)
    loops, engine = bool(known.mechanism.constrained), known.engine
    u, own = own_plan(known) if loops else (own_columns(known), None)
    asked, names = regressor(known.mechanism, "+".join(ordered_terms(law.terms))), known.regressor.columns(law.terms)
    n, k, doubts = len(names), len(u), list[Any]()
    linear = [i for i, x in enumerate(names) if x.rpartition(".")[2] in OWN]

    def closed_of(m: Any) -> Closed | None:
        return None if own is None else Closed(m, engine.constraints.traced, along_plan(own), engine.drives.columns)  # type: ignore[attr-defined]

    def wanted(
        m: Any, closed: Closed | None, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Domain
    ) -> tuple[Array, Array]:
        """(Y of (1), s)."""
        goal, speed, acceleration = motion(t, row, domain)
        slope, none, rate = c[k : 2 * k], domain.zeros(k), v[u]
        reference = speed[u] - (q - goal)[u] * slope
        onward = acceleration[u] - (rate - speed[u]) * slope
        found = None if closed is None else closed.motions(q, domain)
        doubts[:] = [] if found is None else [found.growth]

        def at(speeds: Array, onwards: Array) -> Array:
            if closed is None or found is None:
                return asked.tree(m, q, speeds, onwards, domain=domain)
            moved = found.G @ speeds
            bend = found.follow(closed.system.bias(q, moved, domain=domain))
            return found.G.T @ asked.tree(m, q, moved, found.G @ onwards + bend, domain=domain)

        Y = [at(x, none) for x in (rate + reference, rate, reference, none)]
        quadratic = (Y[0] - Y[1] - Y[2] + Y[3]) * domain.const(0.5)
        quadratic[:, linear] = Y[1][:, linear]
        return at(none, onward) + quadratic, rate - reference

    def text(m: Any, t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        m, still = knowing.mechanism(m), domain.zeros(len(v))
        closed = closed_of(m)
        Y, s = wanted(m, closed, t, q, v, c, row, domain)
        springs = denoc.passive_forces(m, q, still, domain=domain) if closed is None else (
            constrained.passive_forces(closed, q, still, domain=domain))  # fmt: skip
        tau = domain.zeros(len(v))
        tau[u] = Y @ z[:n] - s * c[:k] - springs
        return tau

    def update(
        m: Any, t: Any, q: Array, v: Array, z: Array, told: Array, c: Array, row: Array, domain: Domain
    ) -> Array:
        m = knowing.mechanism(m)
        Y, s = wanted(m, closed_of(m), t, q, v, c, row, domain)
        learnt = z[:n] - (Y.T @ s) * c[2 * k : 2 * k + n] * (t - z[n])
        return chosen(domain, told[0], np.concatenate([learnt, [t]]), z)

    def begin(m: Any, t: Any, q: Array, v: Array, told: Array, c: Array, row: Array, domain: Domain) -> Array:
        return np.concatenate([c[2 * k + n :], domain.zeros(1) + t])

    def give(times: Array, told: Array, rows: Array) -> None:
        new = told[:, 0] > 0.5
        law.times.extend(times[new].tolist())
        law.history.extend(rows[new, :n].copy())
        law.parameters = law.history[-1].copy()

    label = own.label if own is not None else None
    return Remembered(
        f"adaptive {ordered_terms(law.terms)} {u} along {label}{knowing.key} {name}", text,
        np.concatenate([law.kd, law.slope, law.rate, law.start]), signals, doubts, size=n + 1, width=1,
        clocks=(law.clock,), told=lambda times, start: strikes(law.clock, times)[:, None].astype(float), begin=begin,
        update=update, take=lambda: np.append(law.parameters, law.times[-1]), give=give,
    )  # fmt: skip


MAKERS: dict[type, Callable[..., Remembered]] = {Adaptive: _adapting}

__all__ = ["MAKERS"]
