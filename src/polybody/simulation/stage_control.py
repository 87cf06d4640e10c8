"""A controller at the stages of steps, as text that can be differentiated, with the numbers it reads there.

    tau = text(t, q, v, z, c, row, domain)

A row holds what depends on time alone: the piece of a table, or the motion of a path at that time, whatever computes
it. A controller knows the numbers of its own model; the machine's may vary. Where parameters change the loops, a state
of the machine is off those of the controller's model, which puts it onto them first, and so does the text: Newton's
iterations along the elimination that the controller computes with.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.constraints.elimination import Elimination
from polybody.mechanism import kinematics
from polybody.model.configurations import draw
from polybody.model.model import Model
from polybody.paths.path import PointToPoint, Spline
from polybody.simulation.compiled.laws import NotCompiled, Signals, law_of
from polybody.simulation.compiled.own_numbers import numbers_of
from polybody.simulation.compiled.own_state import steered
from polybody.simulation.controllers import PD, Given, GravityCompensation, Sampling

Array = np.ndarray
#: controllers that take a state as it is, on the loops of their own model or not
AS_IT_IS = (PD, GravityCompensation)
#: Newton's iterations onto loops of the same lengths, and of others
ITERATIONS, MORE_ITERATIONS = 2, 6


def _nothing(t: Array, within: Array) -> Array:
    return np.zeros((len(t), 0))


@dataclass(frozen=True)
class Control:
    """The text of a controller, with the constants c and the rows it reads; `memory` numbers in z."""

    key: str
    text: Callable[..., Array]  # (t, q, v, z, c, row, domain) -> tau
    width: int = 0
    rows: Callable[[Array, Array], Array] = _nothing  # (times, times inside the steps) -> (n, width)
    constants: Array = field(default_factory=lambda: np.zeros(0))
    memory: int = 0


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

    def rows(self, t: Array, within: Array) -> Array:
        times, back = np.unique(t, return_inverse=True)
        if isinstance(self.path, PointToPoint | Spline) and not self.model.mechanism.constrained:
            return np.concatenate(self.path(times), axis=1)[back]
        found = [np.concatenate([np.asarray(x, dtype=float) for x in self.path(float(s))]) for s in times]
        return np.array(found)[back]


def control_of(model: Model, controller: Any) -> Control:
    """The text of a controller of a machine; `NotCompiled` with the reason if there is none."""
    if isinstance(controller, Sampling):
        raise NotCompiled(f"a {type(controller).__name__} has a memory that is not an expression")
    if controller is not None and not callable(controller):
        controller = Given(model, controller)
    if isinstance(controller, Given) and controller.table is None:
        given = controller
        return Control("given", lambda t, q, v, z, c, row, domain: row, model.nv,
                       lambda t, within: np.array([given(float(s), t[:0], t[:0]) for s in t]))  # fmt: skip
    owner = None if isinstance(controller, Given) else getattr(controller, "model", None)
    known = numbers_of(owner) if isinstance(owner, Model) else model
    controller, path = _tabulated(known, controller)
    if known is not model or isinstance(controller, Given):
        controller = copy(controller)
        controller.model = known  # its numbers, as constants
    law = law_of(known, controller)
    mechanism = known.engine.reduced_mechanism if isinstance(owner, Model) else model.mechanism
    onto = None
    if isinstance(owner, Model) and type(controller) not in AS_IT_IS:
        onto = onto_loops(model, known)

    def text(t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        q = q if onto is None else onto(q, domain)
        return law.text(mechanism, t, q, v, c, row, domain)

    digest = f" of {mechanism.digest[:24]}" if isinstance(owner, Model) else ""
    key = f"{law.key}{digest}{'' if onto is None else ' onto its loops'}"
    rows = path.rows if path is not None else lambda t, within: _pieces(law.signals, t)
    return Control(key, text, law.signals.rows.shape[1], rows, law.constants)


def _pieces(signals: Signals, t: Array) -> Array:
    return np.array([signals.row(float(s)) for s in t]).reshape(len(t), signals.rows.shape[1])


def _tabulated(known: Model, controller: Any) -> tuple[Any, Tabulated | None]:
    """(the controller with its path, or its frame's, as a table, that table)."""
    if getattr(controller, "path", None) is not None:
        controller = copy(controller)
        controller.path = Tabulated(known, controller.path)
        return controller, controller.path
    holder = getattr(controller, "resolving", controller)
    motion = getattr(holder, "motion", None)
    if not getattr(motion, "is_path", False):
        return controller, None
    controller, motion = copy(controller), copy(motion)
    motion.target = table = Tabulated(known, motion.target)  # type: ignore[union-attr]
    if holder is controller or not hasattr(controller, "resolving"):
        controller.motion = motion
    else:
        controller.resolving = copy(controller.resolving)
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
