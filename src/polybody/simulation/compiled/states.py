"""What compiled code reports of states outside its loops: the first of a run, and those recorded within steps that
Python takes. They are the field's own answers, without a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.kernels.stepping import FIELDS, Field
from polybody.model.plans import SWITCH
from polybody.simulation.compiled.watch import NOTHING
from polybody.simulation.constrained_motion import MENDED, NEAR
from polybody.simulation.kept import Rows

if TYPE_CHECKING:
    from polybody.simulation.compiled.engine import Compiled
    from polybody.simulation.compiled.field import Acting

Array = np.ndarray
Answer = tuple[Array, Array, Array, Array]  # (ẏ, a, tau, all currents)


class States:
    """States of one run."""

    def __init__(self, compiled: Compiled) -> None:
        self._of = compiled
        self._fields: dict[str, Field] = {}
        self._first: tuple[float, Array, Answer | None] = (np.nan, np.zeros(0), None)

    def forget(self) -> None:
        """The fields are another run's now."""
        self._fields = {}

    def is_regular(self, t: float, y: Array) -> bool:
        """Whether the field may be believed at a state from which a run is to begin.

        Trees have no singular states, and a law that is in doubt is called in Python where the state is recorded.
        Asking for their fields would trace one that is not used where joints rest at their stops from the start.
        """
        if not self._of.problem.loops:
            return True
        found = self.answer(t, y)
        self._first = (t, y.copy(), found)
        return found is not None

    def recorded(self, t: float, y: Array) -> Answer | None:
        """The field's answer where a state is recorded; None where Python is to be asked."""
        of = self._of
        (t0, y0, found), self._first = self._first, (np.nan, y, None)
        of._hold()
        if t0 == t and not of.acting.holding.size and np.array_equal(y, y0) and not self._changes:
            return found  # asked for when the run began
        of._hold_sampled(t, y)
        return self.answer(t, y)

    def recorded_rows(self, times: Array, states: Array) -> tuple[Rows, Array] | None:
        """(many states on their manifold with what is recorded of them, which of them may be believed); None where what
        acts changes with each."""
        if self._changes:
            return None
        self._of._hold()
        rates, told, believed = self._answers(times, states, are_closed=True)
        acting, nq, nv = self._of.acting, self._of.problem.nq, self._of.problem.nv
        a, tau, currents = rates[:, nq : nq + nv], told[:, :nv], told[:, nv : acting.recorded]
        return Rows(times, states, a, tau, currents), believed

    @property
    def _changes(self) -> bool:
        """Whether forces are constants that Python sets, instant by instant."""
        return self._of.acting.law.held or self._of.instants is not None

    def closed_answer(self, t: float, y: Array) -> Answer | None:
        """The same at a state that is on its loops: narrow rows have nothing to amplify there."""
        return self.answer(t, y, is_closed=True)

    def answer(self, t: float, y: Array, is_closed: bool = False) -> Answer | None:
        """The field at a state; None where it is not to be believed."""
        rates, told, believed = self._answers(np.array([t]), y[None], is_closed)
        if not believed[0]:
            return None
        nq, nv, count = self._of.problem.nq, self._of.problem.nv, self._of.acting.recorded
        return rates[0, :-1], rates[0, nq : nq + nv], told[0, :nv], told[0, nv:count]

    def told(self, t: float, q: Array, v: Array, i: Array) -> tuple[Array, Array | None] | None:
        """(joint forces of controller and motors of a tree at a state, its acceleration as if nothing were held), where
        the field of what acts now is at hand and may be believed; else None. Friction that depends on loads is found
        by Python: then there is no acceleration."""
        return None if self._changes else self._told(t, q, v, i)

    def _told(self, t: float, q: Array, v: Array, i: Array) -> tuple[Array, Array | None] | None:
        of, (nq, nv) = self._of, (self._of.problem.nq, self._of.problem.nv)
        acting = of.acting
        field = self._fields.get(acting.key)
        if field is None:
            return None
        if acting.holding.size:
            acting = acting.renumbered(held=acting.holding.numbers(None, of.problem.friction))
        x = np.concatenate([q, v, i, [0.0, t]])
        rates, told = field(x[None], acting.constants, acting.law.signals.row(t)[None])
        finite = bool(np.isfinite(told).all() and np.isfinite(rates).all())
        sure = finite and (not acting.doubtful or told[0, acting.recorded] < SWITCH)
        return (told[0, :nv], None if acting.holding.bearing else rates[0, nq : nq + nv]) if sure else None

    def foretold(self, functions: list[tuple[Any, int]], t: float, q: Array, v: Array, i: Array) -> Any:
        """The same where a run begins with joints that may come to be held: the field that knows of them is traced,
        which is the run's from here on. `functions` are those that are watched."""
        of = self._of
        ready = not of.acting.law.held and (of.instants is None or of.instants.begun)  # its first sample was taken
        if not ready or not (self._fields or of.freeze(functions)):
            return None
        self._field(of.acting)
        return self._told(t, q, v, i)

    def _answers(self, times: Array, states: Array, are_closed: bool = False) -> tuple[Array, Array, Array]:
        """(ẋ, what is recorded beside it, which may be believed), of each state."""
        of, problem = self._of, self._of.problem
        if problem.loops:
            of._follow_plan()
        acting, signals = of.acting, of.acting.law.signals
        row = np.array([signals.row(t) for t in times.tolist()])
        rates, told = self._field(acting)(np.column_stack([states, times]), acting.constants, row)
        problem.evaluations += len(times)
        believed: Array = np.logical_and.reduce(np.isfinite(rates), axis=1)
        count = acting.recorded
        if acting.plan is not None:
            growth, narrow = of._believing.limits()
            rank = max(problem.motion._rank, 1)
            narrow = float(NEAR * rank) if are_closed else min(narrow, MENDED * rank)
            believed &= (told[:, count] < growth) & (told[:, count + 1] < narrow)
        elif acting.doubtful:
            believed &= told[:, count] < SWITCH
        return rates, told, believed

    def _field(self, acting: Acting) -> Field:
        if acting.key not in self._fields:
            of, key = self._of, self._of._made_of(acting)
            field = FIELDS.take(key) or Field("simulate", of._parts(acting, NOTHING))
            of._taken.append((FIELDS, key, field))
            self._fields[acting.key] = field
        return self._fields[acting.key]


__all__ = ["States"]
