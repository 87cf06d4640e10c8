"""What compiled loops decide by at events, as texts: inertias, motions that pass, levels of friction that depends on
loads (`kernels.stepping_decisions`), and what actions of users make of a state (`kernels.stepping_actions`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.formulations import denoc
from polybody.mechanism import kinematics
from polybody.mechanism.energy import energy, potential_energy
from polybody.quantities import constrained
from polybody.quantities.constrained import Closed, along_plan
from polybody.simulation.compiled import bearing

if TYPE_CHECKING:
    from polybody.simulation.compiled.field import Acting

Array = np.ndarray


def inertia(acting: Acting) -> Any:
    """[M; with loops G and M* = GᵀMG; the potential energy], matrices row by row."""
    graph, m = acting.graph, acting.mechanism
    columns, x, _, _ = acting.columns(graph)
    q = acting.state(x, graph)[0]
    found = [denoc.mass_matrix(m, q, domain=graph).ravel()]
    if acting.plan is not None:
        closed = Closed(m, acting.model.engine.constraints.traced, along_plan(acting.plan), ())
        found += [closed.motions(q, graph).G.ravel(), constrained.mass_matrix(closed, q, domain=graph).ravel()]
    potential = potential_energy(m, q, kinematics.body_poses(m, q, domain=graph), domain=graph)
    result = np.concatenate([*found, np.array([potential], dtype=object)])
    return acting.made("inertia", columns[:2], columns[1], [result], graph)


def bearing_levels(acting: Acting) -> Any:
    """(accelerations with nothing held, levels of friction by what joints bear while some are held and `extra` acts on
    those that rub, [growth, narrow]); friction of joints that slide is that under what is held."""
    m, holding = acting.motion(), acting.holding
    graph, (q, v, _, _) = m.graph, m.state
    column, extra = graph.variables("extra", len(holding.rubbing))
    pushed = m.whole.copy()
    for slot, force in zip(holding.rubbing, extra, strict=True):
        pushed[slot] = pushed[slot] + force
    borne = bearing.sizes(bearing.forces(acting, q, v, pushed, m.loads, m.c, graph), graph)
    levels = np.array([holding.level(slot, v, graph, borne) for slot in holding.rubbing], dtype=object)
    free = acting.renumbered(holding=replace(holding, loose=True))
    a = free.motion_under(q, v, m.whole, m.loads, m.c, graph)[0]
    return acting.made("bearing", [*m.columns, column], m.columns[1], [a, levels, m.told], graph)


def whole_energy(acting: Acting) -> Any:
    """(x, constants, v) -> [kinetic and potential energy]."""
    graph, m = acting.graph, acting.mechanism
    columns, x, _, _ = acting.columns(graph)
    column, v = graph.variables("given", m.nv)
    total = sum(energy(m, acting.state(x, graph)[0], v, domain=graph))
    return acting.made("energy", [*columns[:2], column], columns[1], [np.array([total], dtype=object)], graph)


def actions(acting: Acting, given: Sequence[Any]) -> Any:
    """(x, constants) -> [q with unit quaternions; v] after each of the actions, casadi.Functions of (t, q, v)."""
    from polybody.simulation.compiled.field import unit

    graph: Any = acting.graph
    columns, x, _, _ = acting.columns(graph)
    q, v, _, t = acting.state(x, graph)
    found = []
    for action in given:
        new = np.asarray(graph.scalars(action(*(graph.column(part) for part in ([t], q, v)))), dtype=object)
        found += [unit(acting.mechanism, new[: len(q)], graph) if acting.curved else new[: len(q)], new[len(q) :]]
    return acting.made("actions", columns[:2], columns[1], [np.concatenate(found)], graph)


__all__ = ["actions", "bearing_levels", "inertia", "whole_energy"]
