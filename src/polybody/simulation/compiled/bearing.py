"""Friction that grows with the load of a joint, as text: what it exerts, and what a joint bears.

The force R_j in joint j, less what is along directions in which it slides, follows from the accelerations, and these
from the friction f of the joints that slide. Both are linear while the same joints are held:

    R_j = R_j⁰ + Σ_s R_js f_s,    f_s = −way_s (level_s + k_s |R_j|)                                              (1)

R⁰ is found without what depends on loads, R_js with f_s = 1. Newton's iterations solve (1), a fixed number of them, as
straight-line code has no loops; what is left reports whether they may be believed, and Python takes the step otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.formulations.network.reactions import reaction_names
from polybody.formulations.network.reactions import reactions as tree_reactions
from polybody.simulation.compiled.rolled import MOST_STRAIGHT
from polybody.simulation.failures import NotCompiled

if TYPE_CHECKING:
    from polybody.simulation.compiled.field import Acting
    from polybody.simulation.problem import Problem

Array = np.ndarray
ITERATIONS = 7
ENOUGH = 1e-10  # of the forces


def require_known(problem: Problem) -> None:
    """Raise `NotCompiled` where loads of joints are no such text."""
    friction, m = problem.friction, problem.model.mechanism
    if friction is None or not friction.loaded:
        return
    if problem.model.nv > MOST_STRAIGHT:
        raise NotCompiled(f"friction by load among {problem.model.nv} velocities is solved in Python")
    if problem.loops:
        raise NotCompiled("friction by load in loops is solved in Python; friction='smooth' is compiled")
    for part in friction.parts:
        if part.bears and m.joints[m.joint_index[part.joint]].model.constant_map is None:
            raise NotCompiled(f"friction by load in joint {part.joint!r} is solved in Python: it slides in directions "
                              "that change; friction='smooth' is compiled")


def forces(
    acting: Acting, q: Array, v: Array, tau: Array, wrenches: list[Array], c: Array, graph: Domain
) -> dict[str, Array]:
    """{joint: R} of joints whose friction depends on it, under joint forces tau, friction among them."""
    m, names = acting.mechanism, reaction_names(acting.mechanism)
    a = acting.accelerate(q, v, tau, wrenches, c, graph)[0]
    table = graph.zeros(len(m.frames), 6) if wrenches else None
    for frame, wrench in zip(acting.frames, wrenches, strict=True):
        place = m.frame_index[frame.name]
        table[place] = table[place] + wrench  # type: ignore[index]
    every, found = tree_reactions(m, q, v, a, table, axes="joint", domain=graph), {}
    for name in acting.holding.bearing:
        slide = np.asarray(m.joints[m.joint_index[name]].model.constant_map, dtype=float)[3:]
        across = np.eye(3) - slide @ np.linalg.pinv(slide)
        found[name] = graph.array(across) @ every[names.index(name), 3:]
    return found


def sizes(found: dict[str, Array], graph: Domain) -> dict[str, Any]:
    """{joint: |R|}."""
    return {name: graph.sqrt(R @ R + graph.const(1e-30)) for name, R in found.items()}


def rubbed(
    acting: Acting, q: Array, v: Array, tau: Array, wrenches: list[Array], c: Array, graph: Domain
) -> tuple[Array, Any]:
    """(tau with what friction exerts, by (1); how little it may be believed, 1 and more: not at all)."""
    holding, numbers = acting.holding, acting.split_constants(c)[3]
    base = tau + holding.friction(v, numbers, graph)
    slots = sorted({rub.v for rub in holding.rubs if rub.bears})
    ways = dict(zip(holding.rubbing, holding.apart(numbers)[0], strict=True))
    R0 = forces(acting, q, v, base, wrenches, c, graph)
    by: dict[int, dict[str, Array]] = {}
    for slot in slots:
        more = base.copy()
        more[slot] = more[slot] + graph.const(1)
        by[slot] = {name: R - R0[name] for name, R in forces(acting, q, v, more, wrenches, c, graph).items()}
    f, left = graph.zeros(len(slots)), graph.const(0)
    for _ in range(ITERATIONS):
        R = {name: R0[name] + sum(x * by[slot][name] for slot, x in zip(slots, f, strict=True)) for name in R0}
        norms, g, G = sizes(R, graph), f.copy(), graph.eye(len(slots))
        for row, slot in enumerate(slots):
            for rub in holding.rubs:
                if rub.v != slot or not rub.bears:
                    continue
                weight = ways[slot] * graph.array(rub.law.load[rub.k : rub.k + 1])[0] * graph.const(abs(rub.factor))
                g[row] = g[row] + weight * norms[rub.joint]
                for column, other in enumerate(slots):
                    turn = (R[rub.joint] @ by[other][rub.joint]) / norms[rub.joint]
                    G[row, column] = G[row, column] + weight * turn
        step = graph.solve(G, g)
        f = f - step
        left = (step @ step) / (graph.const(1) + f @ f)
    result = base.copy()
    for slot, x in zip(slots, f, strict=True):
        result[slot] = result[slot] + x
    return result, left * graph.const(ENOUGH**-2)


__all__ = ["forces", "require_known", "rubbed", "sizes"]
