"""Friction that grows with the load of a joint, as text: what it exerts, and what a joint bears.

The force R_j in joint j, less what is along directions in which it slides, follows from the accelerations, and these
from the friction f of the joints that slide. Both are linear while the same joints are held:

    R_j = R_j⁰ + Σ_s R_js f_s,    f_s = −way_s (level_s + k_s |R_j|)                                              (1)

R⁰ is found without what depends on loads, R_js with f_s = 1. Newton's iterations solve (1), a fixed number of them, as
straight-line code has no loops; what is left reports whether they may be believed, and Python takes the step otherwise.

Of many joints each R_js would be a motion of its own: there (1) is taken as f = g(f) and iterated, each point less what
the last few changes of f and of g − f tell (Anderson's acceleration, J. ACM 12 (1965) 547),

    f ← g(f) − Σ γ_i Δg_i,    γ = argmin |g(f) − f − Σ γ_i Δ(g − f)_i|                                          (2)

With loops the cut joints' loads act on the tree's links: those that bear ID(q, v, a) less the joint forces and less
what holds joints that are held, the least of them where rows are redundant.

Where accelerations and the loops' multipliers are unknowns beside the state (`idas`), or derivatives are asked for, R
is known from these and (1) is one of the equations: nothing is solved (`exerted`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.constraints.elimination import Elimination
from polybody.formulations import denoc
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
MOST_EXACT = 12  # velocities that rub by load up to which each has a motion of its own
POINTS, DEPTH = 12, 3  # of (2)
NARROW = 1e-20  # squared, of directions that are no longer independent


def require_known(problem: Problem) -> None:
    """Raise `NotCompiled` where loads of joints are no such text."""
    friction = problem.friction
    if friction is None or not friction.loaded:
        return
    if problem.model.nv > MOST_STRAIGHT:
        raise NotCompiled(f"friction by load is solved in Python in models with more than {MOST_STRAIGHT} velocities")


def forces(
    acting: Acting, q: Array, v: Array, tau: Array, wrenches: list[Array], c: Array, graph: Domain
) -> dict[str, Array]:
    """{joint: R} of joints whose friction depends on it, under joint forces tau, friction among them."""
    a, _, held = acting.motion_under(q, v, tau, wrenches, c, graph)
    borne = None
    if acting.plan is not None:
        from polybody.simulation.compiled.field import on_bodies_text

        m = acting.mechanism
        on_bodies = on_bodies_text(m, q, acting.frames, wrenches, graph) if wrenches else None
        borne = denoc.inverse_dynamics(m, q, v, a, on_bodies, domain=graph) - (tau if held is None else tau + held)
    return _carried(acting, q, v, a, borne, wrenches, graph)


def _carried(
    acting: Acting, q: Array, v: Array, a: Array, borne: Array | None, wrenches: list[Array], graph: Domain
) -> dict[str, Array]:
    """The same in a motion with accelerations a; `borne` are the joint forces that loops bear."""
    m, names = acting.mechanism, reaction_names(acting.mechanism)
    table = graph.zeros(len(m.frames), 6) if wrenches or acting.plan is not None else None
    for frame, wrench in zip(acting.frames, wrenches, strict=True):
        place = m.frame_index[frame.name]
        table[place] = table[place] + wrench  # type: ignore[index]
    if acting.plan is not None:
        system = acting.model.engine.constraints.traced
        assert borne is not None
        found = Elimination(system.jacobian(q, domain=graph), acting.plan, graph)
        on_links = system.wrenches(q, found.least(found.bear(borne)), domain=graph)[1]
        for link, total in zip(system.loaded_links, on_links, strict=True):
            table[m.frame_index[link]] = table[m.frame_index[link]] + total  # type: ignore[index]
    every, result = tree_reactions(m, q, v, a, table, axes="joint", domain=graph), {}
    for name in acting.holding.bearing:
        joint = m.joints[m.joint_index[name]]
        slide = joint.model.velocity_map(q[joint.q], domain=graph)[3:]
        result[name] = _across(slide, every[names.index(name), 3:], graph)
    return result


def _across(slide: Array, force: Array, graph: Domain) -> Array:
    """The force less what is along the columns of `slide`, by Gram and Schmidt; columns that depend on others are
    left out."""
    zero, one, directions = graph.const(0), graph.const(1), []
    for column in slide.T:
        if all(graph.is_zero(x) for x in column):
            continue
        rest = column
        for u in directions:
            rest = rest - u * (u @ rest)
        length = rest @ rest
        counts = graph.less(graph.const(NARROW) * (column @ column), length)
        inverse = graph.where(counts, one / graph.sqrt(graph.where(counts, length, one)), zero)
        directions.append(rest * inverse)
        force = force - directions[-1] * (directions[-1] @ force)
    return force


def sizes(found: dict[str, Array], graph: Domain) -> dict[str, Any]:
    """{joint: |R|}."""
    return {name: graph.sqrt(R @ R + graph.const(1e-30)) for name, R in found.items()}


def exerted(
    acting: Acting, q: Array, v: Array, a: Array, borne: Array | None, wrenches: list[Array], c: Array, graph: Domain
) -> Array:
    """What friction exerts on each velocity because of loads, in a motion with accelerations a whose loops bear the
    joint forces `borne`."""
    norms = sizes(_carried(acting, q, v, a, borne, wrenches, graph), graph)
    f = graph.zeros(acting.model.nv)
    for slot, terms in _weights(acting, c, graph).items():
        for name, weight in terms:
            f[slot] = f[slot] - weight * norms[name]
    return f


def _weights(acting: Acting, c: Array, graph: Domain) -> dict[int, list[tuple[str, Any]]]:
    """For each velocity that rubs by load: (joint, −∂f/∂|R|)."""
    holding, found = acting.holding, dict[int, list[tuple[str, Any]]]()
    ways = dict(zip(holding.rubbing, holding.apart(acting.split_constants(c)[3])[0], strict=True))
    for rub in sorted((rub for rub in holding.rubs if rub.bears), key=lambda rub: rub.v):
        weight = ways[rub.v] * graph.array(rub.law.load[rub.k : rub.k + 1])[0] * graph.const(abs(rub.factor))
        found.setdefault(rub.v, []).append((rub.joint, weight))
    return found


def rubbed(
    acting: Acting, q: Array, v: Array, tau: Array, wrenches: list[Array], c: Array, graph: Domain
) -> tuple[Array, Any]:
    """(tau with what friction exerts, by (1); how little it may be believed, 1 and more: not at all)."""
    base = tau + acting.holding.friction(v, acting.split_constants(c)[3], graph)
    weights = _weights(acting, c, graph)

    def pushed(f: Array) -> Array:
        result = base.copy()
        for slot, x in zip(weights, f, strict=True):
            result[slot] = result[slot] + x
        return result

    borne = lambda f: forces(acting, q, v, pushed(f), wrenches, c, graph)  # noqa: E731
    solve = _newton if len(weights) <= MOST_EXACT else _accelerated
    f, left = solve(borne, list(weights.values()), graph)
    return pushed(f), left * graph.const(ENOUGH**-2)


def _newton(
    borne: Callable[[Array], dict[str, Array]], weights: list[list[tuple[str, Any]]], graph: Domain
) -> tuple[Array, Any]:
    """(f of (1), the square of the last step) by Newton's iterations."""
    count = len(weights)
    f, left, unit = graph.zeros(count), graph.const(0), graph.eye(count)
    R0 = borne(f)
    by = [{name: R - R0[name] for name, R in borne(row).items()} for row in unit]
    for _ in range(ITERATIONS):
        R = {name: R0[name] + sum(x * part[name] for part, x in zip(by, f, strict=True)) for name in R0}
        norms, g, G = sizes(R, graph), f.copy(), unit.copy()
        for row, terms in enumerate(weights):
            for name, weight in terms:
                g[row] = g[row] + weight * norms[name]
                for column, part in enumerate(by):
                    G[row, column] = G[row, column] + weight * ((R[name] @ part[name]) / norms[name])
        step = graph.solve(G, g)
        f = f - step
        left = (step @ step) / (graph.const(1) + f @ f)
    return f, left


def _accelerated(
    borne: Callable[[Array], dict[str, Array]], weights: list[list[tuple[str, Any]]], graph: Domain
) -> tuple[Array, Any]:
    """The same by (2), whose text grows with the number of joints and not with its square."""
    one, f = graph.const(1), graph.zeros(len(weights))
    before: list[tuple[Array, Array]] = []  # (g, g − f)
    for k in range(POINTS):
        norms = sizes(borne(f), graph)
        g = np.array([-sum((weight * norms[name] for name, weight in terms), graph.const(0)) for terms in weights])
        before = [*before, (g, g - f)][-DEPTH - 1 :]
        if k == POINTS - 1:
            break
        changes = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(before)]
        f = g
        if changes:
            A = np.array([[x @ y for _, y in changes] for _, x in changes])
            total = sum((A[i, i] for i in range(len(A))), graph.const(0))
            for i in range(len(A)):
                A[i, i] = A[i, i] + total * graph.const(1e-12) + (one + f @ f) * graph.const(1e-30)
            shares = graph.solve(A, np.array([x @ before[-1][1] for _, x in changes]))
            f = g - sum(share * x for share, (x, _) in zip(shares, changes, strict=True))
    g, gap = before[-1]
    return g, (gap @ gap) / (one + g @ g)


__all__ = ["exerted", "forces", "require_known", "rubbed", "sizes"]
