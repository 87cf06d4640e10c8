"""Derivatives of the steps of a run: what each does to sensitivities (`step_methods`), for many steps at once.

Steps are taken anew from their recorded beginnings, in the mode and along the plan of elimination that the run had, so
that Φ_x and Φ_p are exact for the steps that were taken. What is computed anew must end where the run did: otherwise an
error says where it does not. Methods with an interpolant answer wanted times within their steps by its derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from polybody.algebra.domains import domain
from polybody.errors import PolybodyError
from polybody.model.tracing import compiled
from polybody.properties import cached_property
from polybody.simulation.compiled.field import Acting
from polybody.simulation.compiled.given import acting_of, possible_holding
from polybody.simulation.compiled.law import Law, Signals
from polybody.simulation.integrators.tableaux import TABLEAUX, interpolating
from polybody.simulation.problem import Problem
from polybody.simulation.recording import Mode, Stretch
from polybody.simulation.stage_control import Control
from polybody.simulation.step_methods import Batch, Carrying, Field, Taken, Weighted

Array = np.ndarray
#: steps in one batch, and numbers of their derivatives
MOST, NUMBERS = 512, 1 << 23
#: how far a step that is computed anew may end from the run's own, over 1 + |x|
OFF, ROUGH = 1e-5, 1e-2


class Look(NamedTuple):
    """A wanted time within a step, its state, and what leads there as parts one after the other."""

    t: float
    x: Array
    maps: list[Carrying]
    number: int

    def carried(self, S: Array, S_z: Array) -> Array:
        """S there."""
        return _through(self.maps, self.number, S, S_z)


class Step(NamedTuple):
    """One step of a batch, as what its parts do one after the other; the wanted times within it."""

    maps: list[Carrying]
    number: int
    looks: list[Look]
    errors: tuple[Carrying, ...] = ()

    def carried(self, S: Array, S_z: Array) -> Array:
        """S after it."""
        return _through(self.maps, self.number, S, S_z)

    def error(self, S: Array, S_z: Array, after: Array, least: Array) -> float:
        """What the two estimates of the method say of the error of S (`dop853`), over the largest number of its column
        or the `least` that counts."""
        size = np.maximum(np.abs(after).max(axis=0, initial=0.0), least)
        fifth, third = (((x(self.number, S, S_z) / size) ** 2).sum(axis=0) for x in self.errors)
        return float((fifth / np.sqrt(np.maximum(fifth + 0.01 * third, 1e-300) * len(S))).max(initial=0.0))


def _through(maps: list[Carrying], number: int, S: Array, S_z: Array) -> Array:
    for part in maps:
        S = part(number, S, S_z)
    return S


def nearly(t: Any) -> Any:
    """How far from a time another counts as the same."""
    return 1e-9 * (1 + abs(t))


class StepDerivatives:
    """The derivatives of a problem's steps."""

    def __init__(self, problem: Problem, control: Control, method: str) -> None:
        self.problem, self.control, self.method = problem, control, method
        self.n, self.k, self.m = problem.size - 1, len(problem.model.parameters), control.memory
        self._fields: dict[tuple[str, bool], Field] = {}

    @cached_property
    def acting(self) -> Acting:
        if self.problem.controller is None:  # what the run itself has
            return acting_of(self.problem)
        width, text = self.control.width, self.control.text

        def read(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Any) -> Array:
            return text(t, q, v, row[width:], c, row[:width], domain)

        rows = np.zeros((1, width + self.m))
        return acting_of(self.problem, Law(self.control.key, read, self.control.constants, Signals(np.zeros(1), rows)))

    def field(self, mode: Mode, plan: Any) -> Field:
        """The field in a mode, along a plan of elimination."""
        key = ("" if plan is None else plan.label, mode.frozen)
        if key not in self._fields:
            holding = replace(possible_holding(self.problem), frozen=mode.frozen)
            self._fields[key] = Field(self, replace(self.acting, plan=plan, holding=holding, held=mode.numbers))
        return self._fields[key]

    def constants(self, mode: Mode) -> Array:
        holding = replace(possible_holding(self.problem), frozen=mode.frozen)
        return replace(self.acting, holding=holding, held=mode.numbers).constants

    def rate(self, t: float, y: Array, z: Array, mode: Mode, plan: Any) -> Array:
        """ẋ of one state, (n,)."""
        c = self.constants(mode)
        return self.field(mode, plan).slopes.rate(t, y[: self.n], c, z)

    @property
    def interpolates(self) -> bool:
        """Whether wanted times within steps can be answered."""
        return getattr(self._tableau, "dense", None) is not None

    def derivatives(self, parts: list[Stretch], z: list[Array], times: Array) -> list[list[Step]]:
        """What the steps of each stretch do; z is what is remembered in each, `times` are wanted."""
        found: list[Any] = [None] * len(parts)
        alike: dict[tuple[int, str], list[int]] = {}
        for k, part in enumerate(parts):
            alike.setdefault((id(part.mode), "" if part.plan is None else part.plan.label), []).append(k)
        for places in alike.values():
            whole = self._together([parts[k] for k in places], [z[k] for k in places], times)
            ends = np.cumsum([len(parts[k].t) - 1 for k in places])
            for k, end in zip(places, ends.tolist(), strict=True):
                found[k] = whole[end - len(parts[k].t) + 1 : end]
        return found

    def _together(self, parts: list[Stretch], z: list[Array], times: Array) -> list[Step]:
        """Those of stretches in one mode along one plan."""
        mode = parts[0].mode
        field, c = self.field(mode, parts[0].plan), self.constants(mode)
        take, off = self._method(mode)
        t, h = (np.concatenate(x) for x in ([p.t[:-1] for p in parts], [np.diff(p.t) for p in parts]))
        y0, y1 = (np.concatenate(x) for x in ([p.y[:-1] for p in parts], [p.y[1:] for p in parts]))
        kept = np.concatenate([np.broadcast_to(x, (len(p.t) - 1, self.m)) for p, x in zip(parts, z, strict=True)])
        inside = np.concatenate([np.arange(2, len(p.t) + 1) == len(p.t) if p.inside else np.zeros(len(p.t) - 1, bool)
                                 for p in parts])  # fmt: skip
        found: list[Any] = [None] * len(t)
        most = max(8, min(MOST, NUMBERS // (self.n * field.width)))
        first, last = np.searchsorted(times, t + nearly(t), "right"), np.searchsorted(times, t + h - nearly(t + h))
        looked = (first < last) & self.interpolates
        if 4 * looked.sum() >= len(t):  # one batch: further ones compile what the first reads from the equations
            looked[:] = self.interpolates
        for places in (np.flatnonzero(~looked), np.flatnonzero(looked)):
            for a in range(0, len(places), most):
                b = places[a : a + most]
                steps = Batch(t[b], h[b], y0[b], y1[b], np.broadcast_to(c, (len(b), len(c))), kept[b])
                taken = take(field, steps, bool(looked[b[0]]))
                x, maps = field.returned(steps.t + steps.h, steps.c, taken.x, taken.does)
                self._compare(steps, x, inside[b], off)
                within = [times[i:j] if looked[k] else times[:0] for k, i, j in zip(b, first[b], last[b], strict=True)]
                looks = self._looks(field, steps, taken, within)
                for k, place in enumerate(b.tolist()):
                    found[place] = Step(maps, k, looks[k], taken.errors)
        return found

    def _looks(self, field: Field, steps: Batch, taken: Taken, times: list[Array]) -> list[list[Look]]:
        """Wanted times within each step, by its interpolant."""
        of, t = np.repeat(np.arange(len(steps)), [len(x) for x in times]), np.concatenate(times)
        if taken.explicit is None or not len(t):
            return [[] for _ in times]
        weights = interpolating(self._tableau, (t - steps.t[of]) / steps.h[of])
        does = Weighted(taken.explicit, weights, of)
        x, maps = field.returned(t, steps.c[of], taken.explicit.states(weights, of), does)
        found: list[list[Look]] = [[] for _ in times]
        for k, step in enumerate(of.tolist()):
            found[step].append(Look(float(t[k]), x[k], maps, k))
        return found

    def _compare(self, steps: Batch, x: Array, inside: Array, allowed: float) -> None:
        """Refuse where steps taken anew end elsewhere; those that an event cut short have ended on an interpolant."""
        y1 = steps.y1[:, : self.n]
        off = np.where(inside, 0.0, (np.abs(x - y1) / (1 + np.abs(y1))).max(axis=1, initial=0.0))
        if not (off <= allowed).all():
            k = int(np.argmax(~(off <= allowed)))
            raise PolybodyError(
                f"the step of {steps.h[k]:.3g} s from t = {steps.t[k]:.9g} s has no derivative here: taken anew it "
                f"ends {off[k]:.3g} away. The run came near a singular configuration or a force that jumps; smaller "
                "steps may help"
            )

    @cached_property
    def _tableau(self) -> Any:
        return TABLEAUX[self.method if self.method in TABLEAUX else "rk4"]()

    def _method(self, mode: Mode) -> tuple[Callable[[Field, Batch, bool], Taken], float]:
        """(how steps are differentiated, how far what they compute may be from the run's own steps)."""
        name = self.method
        if name == "semi-implicit":
            return (lambda field, steps, inside: field.leap(steps)), OFF
        if name == "midpoint" and not mode.frozen and not self.problem.circuits.size:
            return (lambda field, steps, inside: field.middle(steps)), OFF
        if name == "radau":
            return (lambda field, steps, inside: field.implicit(steps)), OFF
        # midpoint steps with currents or held joints: those of the motion, to the order of the method
        take = lambda field, steps, inside: field.explicit(self._tableau, steps, inside)  # noqa: E731
        return take, OFF if name in TABLEAUX else ROUGH


class Instants:
    """z at the instants of a controller, and its derivatives ∂z/∂[q, v, z before]."""

    def __init__(self, of: StepDerivatives, times: Array, start: float) -> None:
        self.of, self.times = of, times
        self.told, self.row = of.control.found.told(times, start), of.control.rows(times)

    def __call__(self, k: int, y: Array, z: Array) -> tuple[Array, Array]:
        """(z, its derivatives) after instant k at the state y."""
        kernel = self._first if k == 0 else self._later
        problem = self.of.problem
        x = np.append(np.concatenate(problem.split(y)), self.times[k])
        return kernel(x, z, self.told[k], self.of.control.constants, self.row[k])

    @cached_property
    def _first(self) -> Any:
        return self._kernel(True)

    @cached_property
    def _later(self) -> Any:
        return self._kernel(False)

    def _kernel(self, first: bool) -> Any:
        control, problem = self.of.control, self.of.problem
        n, m = problem.nq + problem.nv, control.memory
        inputs = [("x", n + 1), ("z", m), ("told", self.told.shape[1]), ("c", len(control.constants)),
                  ("row", control.width)]  # fmt: skip

        def make() -> Any:
            import casadi

            graph: Any = domain("casadi")
            made = [graph.variables(name, size) for name, size in inputs]
            (x, z, *_), (at, kept, *rest) = [column for column, _ in made], [nodes for _, nodes in made]
            told, c, row = rest
            new = control.instant(first, at[-1], at[: problem.nq], at[problem.nq : n], kept, told, c, row, graph)
            column = graph.column(new)
            by = casadi.horzcat(casadi.jacobian(column, x[:n]), casadi.jacobian(column, z))
            return casadi.Function("instant", [c for c, _ in made], [column, casadi.densify(casadi.vec(by.T))])

        outputs = [("z", (m,)), ("slopes", (m, n + m))]
        return compiled(f"sensitivities instant {first}", inputs, outputs, make, control.key)


__all__ = ["Instants", "StepDerivatives", "nearly"]
