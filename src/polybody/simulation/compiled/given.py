"""What acts in a problem, read as texts and numbers for compiled steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.quantities.frames import find_frame
from polybody.simulation.compiled.bearing import require_known
from polybody.simulation.compiled.field import Acting
from polybody.simulation.compiled.holding import Holding, holding_of
from polybody.simulation.compiled.law import Law, free
from polybody.simulation.compiled.tracing import require_whole, traced
from polybody.simulation.failures import NotCompiled
from polybody.simulation.problem import Problem


def possible_holding(problem: Problem) -> Holding:
    """The joints that may be held; `NotCompiled` where friction holds them in ways that compiled code does not know."""
    require_known(problem)
    stops = problem.stops
    return Holding() if stops is None else holding_of(stops, problem.friction, stops.pressing)


def acting_of(problem: Problem, law: Law | None = None) -> Acting:
    """What acts in a problem, as text, with another law instead of its controller's where one is given; or
    `NotCompiled`."""
    model = problem.model
    if law is None and not problem.driven:  # its texts are those of every such run: their keys are written once
        kept = model._notes.get("free motion")
        if kept is None:
            kept = model._notes["free motion"] = Acting(model, free(), dissipates=problem._dissipates, whole=model)
        return kept
    law = _law(problem) if law is None else law
    frames, values, changing = [], [np.zeros(0)], []
    for name, given in problem.wrenches.items():
        fixed = getattr(given, "value", None)
        frames.append(find_frame(model.engine.tree.traced_mechanism, name))
        values.append(np.zeros(6) if fixed is None else fixed)
        changing.append(None if fixed is not None else _of_time(f"the wrench on {name!r}", given, law.held))
    if problem.circuits.closed and callable(problem.circuits.voltages):
        raise NotCompiled("the voltages are called in Python")
    circuits = problem.circuits if problem.circuits.closed else None
    return Acting(
        model, law, tuple(frames), np.concatenate(values), circuits, problem._dissipates, changing=tuple(changing),
        drives=problem.drives, whole=problem.whole,
    )


def _law(problem: Problem) -> Law:
    """The text of the controller."""
    if problem.controller is None:
        return free()
    from polybody.simulation.compiled.laws import law_of

    plan = (lambda: problem.motion.plans.free(None)) if problem.loops else None
    return law_of(problem.whole, problem.controller, plan)


def _of_time(what: str, given: Any, alone: bool) -> Any:
    """A function of time that gives a wrench, as a casadi.Function; `alone` where nobody may change what it reads."""
    try:
        if alone:
            require_whole(given)
        return traced(given, (0,), 6, [(0.0,), (0.3,), (1.7,)])
    except NotCompiled as reason:
        raise NotCompiled(f"{what} is called in Python: {reason}") from None


__all__ = ["acting_of", "possible_holding"]
