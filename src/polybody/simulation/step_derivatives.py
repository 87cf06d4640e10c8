"""Derivatives of the steps of a run: what each does to sensitivities (`step_methods`), for many steps at once.

Steps are taken anew from their recorded beginnings, in the mode and along the plan of elimination that the run had, so
that Φ_x and Φ_p are exact for the steps that were taken. What is computed anew must end where the run did: otherwise an
error says where it does not.
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
from polybody.simulation.integrators.tableaux import TABLEAUX
from polybody.simulation.problem import Problem
from polybody.simulation.recording import Mode, Stretch
from polybody.simulation.stage_control import Control
from polybody.simulation.step_methods import Batch, Carrying, Field

Array = np.ndarray
#: steps in one batch, and numbers of their derivatives
MOST, NUMBERS = 512, 1 << 23
#: how far a step that is computed anew may end from the run's own, over 1 + |x|
OFF, ROUGH = 1e-5, 1e-2
class Step(NamedTuple):
    """One step of a batch, as what its parts do one after the other."""

    maps: list[Carrying]
    number: int

    def carried(self, S: Array, S_z: Array) -> Array:
        """S after it."""
        for part in self.maps:
            S = part(self.number, S, S_z)
        return S


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

    def derivatives(self, parts: list[Stretch], z: list[Array]) -> list[list[Step]]:
        """What the steps of each stretch do; z is what is remembered in each."""
        found: list[Any] = [None] * len(parts)
        alike: dict[tuple[int, str], list[int]] = {}
        for k, part in enumerate(parts):
            alike.setdefault((id(part.mode), "" if part.plan is None else part.plan.label), []).append(k)
        for places in alike.values():
            whole = self._together([parts[k] for k in places], [z[k] for k in places])
            ends = np.cumsum([len(parts[k].t) - 1 for k in places])
            for k, end in zip(places, ends.tolist(), strict=True):
                found[k] = whole[end - len(parts[k].t) + 1 : end]
        return found

    def _together(self, parts: list[Stretch], z: list[Array]) -> list[Step]:
        """Those of stretches in one mode along one plan."""
        mode = parts[0].mode
        field, c = self.field(mode, parts[0].plan), self.constants(mode)
        take, off = self._method(field, mode)
        t, h = (np.concatenate(x) for x in ([p.t[:-1] for p in parts], [np.diff(p.t) for p in parts]))
        y0, y1 = (np.concatenate(x) for x in ([p.y[:-1] for p in parts], [p.y[1:] for p in parts]))
        kept = np.concatenate([np.broadcast_to(x, (len(p.t) - 1, self.m)) for p, x in zip(parts, z, strict=True)])
        inside = np.concatenate([np.arange(2, len(p.t) + 1) == len(p.t) if p.inside else np.zeros(len(p.t) - 1, bool)
                                 for p in parts])  # fmt: skip
        found: list[Step] = []
        most = max(8, min(MOST, NUMBERS // (self.n * field.width)))
        for a in range(0, len(t), most):
            b = slice(a, a + most)
            steps = Batch(t[b], h[b], y0[b], y1[b], np.broadcast_to(c, (len(t[b]), len(c))), kept[b])
            x, maps = field.returned(steps, *take(steps))
            self._compare(steps, x, inside[b], off)
            found += [Step(maps, k) for k in range(len(steps))]
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

    def _method(self, field: Field, mode: Mode) -> tuple[Callable[[Batch], tuple[Array, Carrying]], float]:
        """(how a step is differentiated, how far what it computes may be from the run's own step)."""
        name = self.method
        if name == "semi-implicit":
            return field.leap, OFF
        if name == "midpoint" and not mode.frozen and not self.problem.circuits.size:
            return field.middle, OFF
        if name == "radau":
            return field.implicit, OFF
        # midpoint steps with currents or held joints: those of the motion, to the order of the method
        tableau = TABLEAUX[name if name in TABLEAUX else "rk4"]()
        return (lambda steps: field.explicit(tableau.A, tableau.b, steps)), OFF if name in TABLEAUX else ROUGH


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


__all__ = ["Instants", "StepDerivatives"]
