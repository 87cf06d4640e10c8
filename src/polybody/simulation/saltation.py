"""Sensitivities across events: the time of an event depends on the parameters too (saltation).

An event at g(t, x) = 0 takes the state from x⁻ to x⁺ = R(x⁻, t, p) and the field from f⁻ to f⁺. With S = ∂x/∂p,

    t' = −(g_x S⁻) / (g_t + g_x f⁻),      S⁺ = R_x (S⁻ + f⁻ t') + R_t t' + R_p − f⁺ t'                     (1)

R is the impact of stops (`stops` (1)), pass by pass over the stops that push, N their rows and e the restitution,

    v ← v − (1 + e) P Nᵀ (N P Nᵀ)⁻¹ N v,      P = M⁻¹, or G (GᵀMG)⁻¹ Gᵀ with loops,                        (2)

a user's action, or nothing: a joint that comes to rest has g = v. Where joints leave their stops or begin to slide, the
field is continuous and S does not change. Events that happen together have no derivative unless they stay together.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain, domain
from polybody.errors import PolybodyError
from polybody.formulations import denoc
from polybody.quantities import constrained
from polybody.quantities.constrained import Closed, along_plan
from polybody.simulation.bounds import bounded
from polybody.simulation.compiled.tracing import samples_of, traced, traced_action
from polybody.simulation.events import Event
from polybody.simulation.failures import NotCompiled
from polybody.simulation.friction import Overload, SlidingSpeed
from polybody.simulation.recording import Crossing
from polybody.simulation.step_derivatives import StepDerivatives
from polybody.simulation.stops import AT, MOST_HITS, REST, Excess, Pull, Stop, Stops, inward
from polybody.simulation.switches import EventValue

Array = np.ndarray
#: (active slots of v, 1 + e) of every pass of an impact
Passes = tuple[tuple[tuple[int, ...], float], ...]
TOGETHER = 1e-6


class Saltation:
    """What events of a run do to sensitivities."""

    def __init__(self, of: StepDerivatives, stops: Stops) -> None:
        self.of, self.stops = of, stops

    def __call__(self, event: Crossing, S: Array, z: Array) -> tuple[Array, Array]:
        """(S⁺, t' (k,)): NaN where the time is not differentiated, as of joints that leave their stops."""
        slopes = [(function, self._slope(function, event)) for function in event.functions]
        known = [(function, slope) for function, slope in slopes if slope is not None]
        if not known:
            return S, np.full(S.shape[1], np.nan)
        n, of = self.of.n, self.of
        before = of.rate(event.t, event.before, z, event.mode, event.plan)
        rates = [self._rate(function, slope, before, event.t) for function, slope in known]
        # Functions that cross zero at the same time must shift alike, or the state has no derivative.
        shifts = np.array([-(g_x @ S) / speed for speed, g_x in rates])
        if np.abs(shifts - shifts[0]).max() > TOGETHER * (1 + np.abs(shifts).max()):
            names = ", ".join(_name(function) for function, _ in known)
            raise PolybodyError(
                f"{names} happen together at t = {event.t:.9g} s, but depend on the parameters in different ways: the "
                "motion after it has no derivative"
            )
        shift = shifts[0]
        changed = event.mode.frozen != event.then.frozen or not np.array_equal(event.mode.numbers, event.then.numbers)
        if not changed and np.array_equal(event.before[:n], event.after[:n]):
            return S, shift
        moved = S + np.outer(before, shift)
        moved = self._reset(event, moved, shift)
        after = of.rate(event.t, event.after, z, event.then, event.plan)
        return moved - np.outer(after, shift), shift

    def _rate(self, function: Any, slope: tuple[Array, float], f: Array, t: float) -> tuple[float, Array]:
        """(ġ, g_x)."""
        g_x, g_t = slope
        speed = float(g_x @ f) + g_t
        if not abs(speed) > 1e-9 * (1 + np.abs(g_x).max() * np.abs(f).max()):
            raise PolybodyError(f"{_name(function)} is only touched at t = {t:.9g} s: its time has no derivative")
        return speed, g_x

    def _slope(self, function: Any, event: Crossing) -> tuple[Array, float] | None:
        """(g_x, g_t); None where the state does not depend on when it happens."""
        g_x = np.zeros(self.of.n)
        if isinstance(function, Excess):
            g_x[function.stop.q] = function.stop.side
            return g_x, 0.0
        if isinstance(function, SlidingSpeed):
            g_x[function.place] = function.direction
            return g_x, 0.0
        if isinstance(function, EventValue):
            return self._of_user(function.event, event)
        return None

    def _of_user(self, event: Event, at: Crossing) -> tuple[Array, float]:
        import casadi

        model = self.of.problem.model
        try:
            made = traced(event.function, (0, model.nq, model.nv), 1, samples_of(model))
        except NotCompiled as reason:
            raise PolybodyError(f"event {event.name!r} cannot be differentiated: {reason}") from None
        t, q, v = made.sx_in()
        value = made(t, q, v)
        by = casadi.Function("by", [t, q, v], [casadi.jacobian(value, casadi.vertcat(t, q, v))])
        found = np.array(by(at.t, *self.of.problem.split(at.before))).ravel()
        g_x = np.zeros(self.of.n)
        g_x[: model.nq + model.nv] = found[1:]
        return g_x, float(found[0])

    # R.

    def _reset(self, event: Crossing, S: Array, shift: Array) -> Array:
        """R_x S + R_t t' + R_p, one action after the other."""
        problem, state = self.of.problem, event.before.copy()
        nq, n = problem.nq, problem.nq + problem.nv
        for function in event.functions:
            if isinstance(function, EventValue) and function.event.action is not None:
                state, S = self._acted(function.event, event.t, state, S, shift)
        q, v = problem.split(state)
        struck = [stop for stop in self.stops.all if stop.excess(state) >= -AT]
        if self.stops.pressing and any(stop.side * v[stop.v] > 0 for stop in struck):
            if not problem.loops:
                for stop in struck:
                    q[stop.q] = stop.limit
            by_q, by_v, by_p = self._impact(passes_of(self.stops, struck, q, v), event.plan, q, v)
            S = S.copy()
            S[nq:n] = by_q @ S[:nq] + by_v @ S[nq:n] + by_p
        for function in event.functions:
            if isinstance(function, SlidingSpeed):
                S = S.copy()
                S[function.place] = 0.0
        return S

    def _acted(self, event: Event, t: float, state: Array, S: Array, shift: Array) -> tuple[Array, Array]:
        import casadi

        problem = self.of.problem
        model, (q, v) = problem.model, problem.split(state)
        action = event.action
        assert action is not None
        changed = action(t, q.copy(), v.copy())
        if changed is None:
            return state, S
        try:
            made = traced_action(action, model)
        except NotCompiled as reason:
            raise PolybodyError(f"the action of event {event.name!r} cannot be differentiated: {reason}") from None
        columns = made.sx_in()
        by = casadi.jacobian(made(*columns), casadi.vertcat(*columns))
        J = np.array(casadi.Function("by", columns, [by])(t, q, v))
        n = model.nq + model.nv
        S, state = S.copy(), state.copy()
        S[:n] = J[:, 1:] @ S[:n] + np.outer(J[:, 0], shift)
        state[:n] = np.concatenate([np.asarray(x, dtype=float).ravel() for x in changed])
        return state, S

    def _impact(self, passes: Passes, plan: Any, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """(∂v⁺/∂q, ∂v⁺/∂v, ∂v⁺/∂p)."""
        model = self.of.problem.model
        found = _impact_function(model, passes, plan)(q, v, model.engine.tree.source.values)
        by_q, by_v, by_p = (np.array(x) for x in found)
        return by_q, by_v, by_p


def passes_of(stops: Stops, struck: list[Stop], q: Array, v: Array) -> Passes:
    """The passes of `Stops.impact`: which stops push in each, and 1 + e."""
    B = stops.motions(q)
    N, after, found = inward(B, struck), v.copy(), []
    sides, rows = np.array([-stop.side for stop in struck]), [stop.v for stop in struck]
    while len(found) < MOST_HITS:
        speeds = sides * after[rows]
        if np.max(-speeds, initial=0.0) <= 1e-12 * (1 + np.abs(v).max()):
            break
        e = stops.restitution if stops.restitution * np.max(-speeds) >= REST else 0.0
        impulse = bounded(N, (1 + e) * speeds)
        after = after + B @ (N.T @ impulse)
        found.append((_independent(N, impulse > 0, rows), 1 + e))
    return tuple(found)


def _independent(N: Array, pushing: Array, slots: list[int]) -> tuple[int, ...]:
    """Slots of stops that push, without those whose rows are combinations of others'."""
    chosen: list[int] = []
    for k in np.flatnonzero(pushing):
        if np.linalg.matrix_rank(N[[*chosen, k]], tol=1e-9 * np.linalg.norm(N[k])) > len(chosen):
            chosen.append(int(k))
    return tuple(slots[k] for k in chosen)


@lru_cache(maxsize=64)
def _impact_function(model: Any, passes: Passes, plan: Any) -> Any:
    """casadi.Function (q, v, p) -> the derivatives of v after (2)."""
    import casadi

    graph: Any = domain("casadi")
    m = model.engine.tree.traced_mechanism
    (place, q), (speed, v) = graph.variables("q", m.nq), graph.variables("v", m.nv)
    (p,) = m.symbols
    P = _answer(model, m, q, plan, graph)
    for slots, factor in passes:
        rows = list(slots)
        push = graph.solve(P[np.ix_(rows, rows)], v[rows] * graph.const(factor))
        v = v - P[:, rows] @ push
    after = graph.column(v)
    by = [casadi.densify(casadi.jacobian(after, x)) for x in (place, speed, p)]
    return casadi.Function("impact", [place, speed, p], by)


def _answer(model: Any, m: Any, q: Array, plan: Any, graph: Domain) -> Array:
    """P: velocities that unit impulses at the joints give."""
    if plan is None:
        return graph.solve(denoc.mass_matrix(m, q, domain=graph), graph.eye(m.nv))
    closed = Closed(m, model.engine.constraints.traced, along_plan(plan), ())
    G = closed.motions(q, graph).G
    return G @ graph.solve(constrained.mass_matrix(closed, q, domain=graph), G.T)


def names_of(event: Crossing) -> tuple[str, ...]:
    """What happened."""
    return tuple(_name(function) for function in event.functions)


def _name(function: Any) -> str:
    """Of what crossed zero, as runs list it."""
    function = getattr(function, "func", function)
    if isinstance(function, Excess | Pull):
        return f"{function.stop.name} {'reached' if isinstance(function, Excess) else 'left'}"
    if isinstance(function, EventValue):
        return function.event.name
    return "a joint begins to slide" if isinstance(function, Overload) else "a joint comes to rest"


__all__ = ["Saltation", "names_of", "passes_of"]
