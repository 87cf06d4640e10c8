"""A controller at the stages of steps, as text that can be differentiated, with the numbers it reads there.

    tau = text(t, q, v, z, c, row, domain)                  at every time
    z ← instant(first, t, q, v, z, told, c, row, domain)    at the controller's instants (`compiled.remembered`)

A row holds what depends on time alone: the piece of a table, or the motion of a path at that time, whatever computes
it. A controller knows the numbers of its own model; the machine's may vary. Where parameters change the loops, a state
of the machine is off those of the controller's model, which puts it onto them first, and so does the text: Newton's
iterations along the elimination that the controller computes with.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.constraints.elimination import Elimination
from polybody.late import dataclass
from polybody.mechanism import kinematics
from polybody.model.configurations import draw
from polybody.model.model import Model
from polybody.paths.path import PointToPoint, Spline
from polybody.simulation.compiled.law import Signals
from polybody.simulation.compiled.laws import is_held
from polybody.simulation.compiled.own_numbers import numbers_of
from polybody.simulation.compiled.own_state import steered
from polybody.simulation.compiled.remembered import Remembered, remembered
from polybody.simulation.controllers import PD, Admittance, Given, GravityCompensation, Noisy, Quantised
from polybody.simulation.failures import NotCompiled

Array = np.ndarray
#: controllers that take a state as it is, on the loops of their own model or not
AS_IT_IS = (PD, GravityCompensation)
#: those that compute with no model of their own, or pass on what they are given
PASSING = (Given, Noisy, Quantised)
#: Newton's iterations onto loops of the same lengths, and of others
ITERATIONS, MORE_ITERATIONS = 2, 6


@dataclass(frozen=True, eq=False)
class Control:
    """The texts of a controller (`compiled.remembered`) with all numbers of its own model as constants."""

    found: Remembered
    m: Any  # the mechanism that its texts are read with
    onto: Callable[[Array, Domain], Array] | None  # q put onto the loops of its model
    table: Tabulated | Forces | None
    onto_at_instants: Callable[[Array, Domain], Array] | None = None

    @property
    def key(self) -> str:
        return f"{self.found.key} of {self.m.digest[:24]}{'' if self.onto is None else ' onto its loops'}"

    @property
    def width(self) -> int:
        return self.found.signals.rows.shape[1]

    @property
    def constants(self) -> Array:
        return self.found.constants

    @property
    def memory(self) -> int:
        return self.found.size

    def rows(self, t: Array) -> Array:
        """What depends on time alone, (n, width)."""
        return _pieces(self.found.signals, t) if self.table is None else self.table.rows(t)

    def text(self, t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        """tau."""
        q = q if self.onto is None else self.onto(q, domain)
        return self.found.text(self.m, t, q, v, z, c, row, domain)

    def instant(
        self, first: bool, t: Any, q: Array, v: Array, z: Array, told: Array, c: Array, row: Array, domain: Domain
    ) -> Array:
        """z after an instant."""
        q = q if self.onto_at_instants is None else self.onto_at_instants(q, domain)
        if first:
            return self.found.begun(self.m, t, q, v, told, c, row, domain)
        return self.found.updated(self.m, t, q, v, z, told, c, row, domain)


class Tabulated:
    """A path by its motion at the time of each row."""

    def __init__(self, model: Model, path: Any) -> None:
        self.model, self.path, self.duration = model, path, getattr(path, "duration", np.inf)
        self.signals = Signals(np.zeros(1), np.zeros((1, model.nq + 2 * model.nv)))

    def __call__(self, t: float) -> Any:
        return self.path(t)

    def motion(self, t: Any, row: Array, domain: Domain) -> tuple[Array, Array, Array]:
        """(q, v, a)."""
        nq, nv = self.model.nq, self.model.nv
        return row[:nq], row[nq : nq + nv], row[nq + nv :]

    def rows(self, t: Array) -> Array:
        times, back = np.unique(t, return_inverse=True)
        if isinstance(self.path, PointToPoint | Spline) and not self.model.mechanism.constrained:
            return np.concatenate(self.path(times), axis=1)[back]
        found = [np.concatenate([np.asarray(x, dtype=float) for x in self.path(float(s))]) for s in times]
        return np.array(found)[back]


class Forces:
    """Joint forces of a function of time, by their values at the time of each row."""

    def __init__(self, model: Model, law: Given) -> None:
        self.law, self.signals = law, Signals(np.zeros(1), np.zeros((1, model.nv)))

    def rows(self, t: Array) -> Array:
        return np.array([self.law(float(s), t[:0], t[:0]) for s in t])


def control_of(model: Model, controller: Any) -> Control:
    """The texts of a controller of a machine; `NotCompiled` with the reason if there are none."""
    if controller is None:
        return Control(remembered(model, None), model.engine.tree.traced_mechanism, None, None)
    owner = _owner(controller)
    known = numbers_of(model if owner is None else owner)
    controller, table = _as_table(known, controller)
    if isinstance(table, Forces):
        given = Remembered("given", lambda m, t, q, v, z, c, row, domain: row, signals=table.signals)
        return Control(given, known.engine.tree.traced_mechanism, None, table)
    found = remembered(known, controller)
    if not found.continuous:
        raise NotCompiled("the controller answers at its instants only")
    if not found.smooth and not is_held(controller):
        raise NotCompiled("rounded forces jump within steps; inside Sampled(law, period) they change at its instants")
    onto, chain = None, _chain(controller)
    steering = [x for x in chain if isinstance(_model(x), Model) and not isinstance(x, (*AS_IT_IS, *PASSING))]
    if steering:
        onto = onto_loops(model, known)
        mixed = any(isinstance(x, AS_IT_IS) for x in chain) or (isinstance(steering[0], Admittance) and len(chain) > 1)
        if onto is not None and mixed:
            raise NotCompiled("parameters change the loops, and only a part of the controller puts states onto its own")
    measures = bool(steering) and isinstance(steering[0], Admittance)  # the machine's own state, as it is
    return Control(found, known.engine.tree.traced_mechanism, onto, table, None if measures else onto)


def _chain(controller: Any) -> list[Any]:
    """A controller, and the laws inside it from the outside inwards."""
    found = [controller]
    while getattr(found[-1], "law", None) is not None:
        found.append(found[-1].law)
    return found


def _owner(controller: Any) -> Model | None:
    """The model that a controller computes with."""
    owners = [x.model for x in _chain(controller) if not isinstance(x, Given) and isinstance(_model(x), Model)]
    return owners[0] if owners else None


def _model(law: Any) -> Any:
    return getattr(law, "model", None)


def _as_table(known: Model, controller: Any) -> tuple[Any, Tabulated | Forces | None]:
    """(the controller with numbers of its model as constants and its path as a table, that table)."""
    if isinstance(controller, Given) and controller.table is None:
        return controller, Forces(known, controller)
    if getattr(controller, "law", None) is not None:
        controller = copy(controller)
        controller.law, table = _as_table(known, controller.law)
        if isinstance(table, Forces):
            raise NotCompiled("forces as a function of time inside another controller are called in Python")
    elif isinstance(_model(controller), Model):
        controller, table = _tabulated(known, copy(controller))
    else:
        return controller, None
    if isinstance(_model(controller), Model):
        controller.model = known if isinstance(controller, Given) else numbers_of(controller.model)
    return controller, table


def _pieces(signals: Signals, t: Array) -> Array:
    return np.array([signals.row(float(s)) for s in t]).reshape(len(t), signals.rows.shape[1])


def _tabulated(known: Model, controller: Any) -> tuple[Any, Tabulated | None]:
    """(the controller with its path, or its frame's, as a table, that table)."""
    if getattr(controller, "path", None) is not None:
        controller.path = Tabulated(known, controller.path)
        return controller, controller.path
    holder = getattr(controller, "resolving", controller)
    motion = getattr(holder, "motion", None)
    if not getattr(motion, "is_path", False):
        return controller, None
    motion = copy(motion)
    motion.target = table = Tabulated(known, motion.target)  # type: ignore[union-attr]
    if holder is controller:
        controller.motion = motion
    else:
        controller.resolving = copy(holder)
        controller.resolving.motion = motion
    return controller, table


def onto_loops(model: Model, known: Model) -> Callable[[Array, Domain], Array] | None:
    """q put onto the loops of the controller's own model as text; None where the machine never leaves them."""
    if not model.mechanism.constrained:
        return None
    rng, values = np.random.default_rng(3), model.parameters.nominal
    q = draw(model.mechanism, rng, 3)
    theirs = known.engine.constraints.residual(q)
    ours = model.engine.constraints.residual(q, values)
    moved = model.engine.constraints.residual(q, values * (1 + 1e-3 * rng.random(len(values))) + 1e-4)
    same = ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    if same and np.allclose(ours, moved, rtol=1e-12, atol=1e-12):
        return None
    _, plan, _ = steered(known)
    m, system = known.engine.traced_mechanism, known.engine.constraints.traced
    count = ITERATIONS if same else MORE_ITERATIONS

    def text(q: Array, domain: Domain) -> Array:
        for _ in range(count):
            found = Elimination(system.jacobian(q, domain=domain), plan, domain)
            q = kinematics.integrate(m, q, found.follow(system.residual(q, domain=domain)), domain=domain)
        return q

    return text


__all__ = ["Control", "Tabulated", "control_of", "onto_loops"]
