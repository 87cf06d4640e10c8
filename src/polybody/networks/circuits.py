"""Circuits that are closed, in and between pieces of a network: which motions pass, by the pieces' own equations.

Inside piece k its own rows J_k(q_k) v̇_k + γ_k = 0 (loops, rods, guides, relations) leave ẇ_k of v̇_k free, x_B always:

    v̇_k = G_k ẇ_k + β_k                                                                            (a)

Between pieces, a joint, rod or guide that closes a circuit is a relation of the twists at the two ports it connects,
R(q) ċ + ρ = 0 in the motions c that (a) leaves of all joints, v̇ = E ċ + ε. Eliminated along a plan,

    ċ = N ü + ν,        v̇ = E (N ü + ν) + ε                                                        (b)

A piece with a joint inside its circuits that follows one outside is no part of its own: its rows are among R.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, domain
from polybody.algebra.rotations import cross
from polybody.constraints.constraint import Constraint
from polybody.constraints.elimination import Elimination
from polybody.constraints.map_closure import closure_constraint
from polybody.constraints.place import Place
from polybody.constraints.plan import Plan, plan_elimination
from polybody.constraints.points import GuideConstraint, RodConstraint
from polybody.constraints.relations import RelationConstraint
from polybody.constraints.system import Constraints
from polybody.mechanism.closure_springs import ClosureSpring, closure_spring, on_bodies
from polybody.mechanism.mechanism import GROUND, BodyFrame, Closure
from polybody.model.model import Model
from polybody.networks.ports import Piece, State


@dataclass(eq=False)
class Between:
    """Rows and springs between ports of pieces: frames name a link by its index in `links`."""

    links: list[tuple[int, str]] = field(default_factory=list)  # (piece, body)
    rows: list[Constraint] = field(default_factory=list)
    springs: dict[str, ClosureSpring] = field(default_factory=dict)  # in joints among the rows
    inside: set[str] = field(default_factory=set)  # those of them that a piece counts in its own forces


def between(whole: Model, owner: dict[str, int], inside: set[str], sprung: set[str]) -> Between:
    """What closes circuits between pieces: constraints of the expanded model whose names are not `inside` pieces.

    Springs in the joints `sprung` act inside of them.
    """
    found, mechanism = Between(inside=sprung), whole.mechanism
    records = {r.name: r for kind in ("loops", "rods", "guides") for r in getattr(mechanism.description, kind)}
    models = {closure.name: closure.model for closure in mechanism.closures}

    def frame(name: str, body: str, R: Array, p: Array) -> BodyFrame:
        if body == "world":
            return BodyFrame(name, GROUND, R, p)
        link = owner[body], body
        if link not in found.links:
            found.links.append(link)
        return BodyFrame(name, found.links.index(link), R, p)

    engine: Any = whole.engine
    for element in engine.constraints.traced.elements if mechanism.constrained else ():
        if element.name in inside:
            continue
        if isinstance(element, RelationConstraint):
            found.rows.append(element)
            continue
        record = records[element.name]
        if isinstance(element, (RodConstraint, GuideConstraint)):
            a, b = (frame(record.name, body, np.eye(3), np.asarray(point, dtype=float))
                    for body, point in ((record.body_a, record.point_a), (record.body_b, record.point_b)))
            axis = getattr(record, "axis", None)
            found.rows.append(RodConstraint(record.name, a, b, record.length) if axis is None
                              else GuideConstraint(record.name, record.kind, a, b, axis / np.linalg.norm(axis)))
            continue
        a, b = (frame(record.name, body, T[:3, :3], T[:3, 3])
                for body, T in ((record.body_a, record.origin_a), (record.body_b, record.origin_b)))
        made = closure_constraint(Closure(record.name, models[record.name], a, b), record)
        assert made is not None  # the expanded model has it
        found.rows.append(made)
        spring = closure_spring(record, a, b)
        if spring is not None:
            found.springs[record.name] = spring
    return found


@dataclass(eq=False)
class Seen:
    """The ports between pieces at a state: poses, twists in the bodies' own axes, and as a `Place`."""

    poses: list[tuple[Array, Array]]
    twists: list[Any]  # columns
    place: Place

    @staticmethod
    def of(links: Sequence[tuple[int, str]], states: Sequence[State], whole: Model, q: Any, v: Any) -> Seen:
        graph: Any = domain("casadi")
        poses, twists, moving = [], [], []
        for k, body in links:
            R, p = states[k].pose(body)
            R, p = entries(R), graph.scalars(p)
            x = states[k].twist(body)
            poses.append((R, p))
            twists.append(x)
            own = graph.scalars(x)
            w = R @ own[:3]
            moving.append(np.concatenate([w, R @ own[3:] + cross(p, w)]))
        place = Place.given(whole.mechanism, graph.scalars(q), graph.scalars(v), poses, moving, domain=graph)
        return Seen(poses, twists, place)

    def velocity(self, rows: Sequence[Constraint]) -> Any:
        """R c of all rows."""
        graph: Any = domain("casadi")
        parts = [element.velocity(self.place) for element in rows]
        return graph.column(np.concatenate(parts) if parts else graph.zeros(0))

    def taken(self, between: Between, motions: Any) -> Any:
        """Forces along `motions` (the symbols of all velocities) that balance springs in joints between pieces."""
        import casadi as ca

        graph: Any = domain("casadi")
        total = ca.SX.zeros(motions.shape[0])
        own = [graph.scalars(x) for x in self.twists]
        for spring in (spring for name, spring in between.springs.items() if name not in between.inside):
            for body, wrench in on_bodies(spring, self.poses, own, domain=graph):
                R = self.poses[body][0]
                acting = graph.column(np.concatenate([R.T @ wrench[:3], R.T @ wrench[3:]]))
                total -= ca.jacobian(self.twists[body], motions).T @ acting
        return total


@dataclass(eq=False)
class Inner:
    """A piece with closed circuits of its own, (a): its system, plan, and columns in v of the whole (−1: elsewhere)."""

    system: Constraints
    plan: Plan
    columns: list[int]


def inner(piece: Piece, columns: list[int], configurations: Array, kept: set[int]) -> Inner | None:
    """None where it has no closed circuits, or they are not its own."""
    if not piece.model.mechanism.constrained:
        return None
    engine: Any = piece.model.engine
    system = engine.constraints.traced
    outside = [k for k, column in enumerate(columns) if column < 0 and k not in piece.free]
    if set(system.filled[1]) & set(outside):
        return None
    J = np.array([system.jacobian(q) for q in configurations])
    wanted = {k for k, column in enumerate(columns) if column in kept}
    return Inner(system, planned(J, wanted, set(piece.free)), columns)


def planned(samples: Array, wanted: set[int], kept: set[int]) -> Plan:
    """A plan in which `wanted` columns stay independent where they can, and those `kept` do."""
    free = plan_elimination(samples, kept=kept)
    found = plan_elimination(samples, kept=wanted | kept)
    return found if len(found.pivots) == len(free.pivots) else free


@dataclass(eq=False)
class Passing:
    """E and ε of v̇ = E ċ + ε, with G_k of each piece."""

    E: Array
    drift: Array
    chosen: list[int]  # columns of v that are c
    own: dict[int, Elimination]


def passing(inners: dict[int, Inner], states: Sequence[State], nv: int) -> Passing:
    """The motions that pieces leave each for itself, (a)."""
    graph: Any = domain("casadi")
    full, drift, own = graph.eye(nv), graph.zeros(nv), {}
    dependent: set[int] = set()
    for k, part in inners.items():
        state = states[k]
        q, v = graph.scalars(state.q), graph.scalars(state.v)
        for column in state.piece.free:
            v[column] = graph.const(0)  # a piece's circuits do not depend on how it moves as a whole
        found = own[k] = Elimination(part.system.jacobian(q, domain=graph), part.plan, graph)
        beta = found.follow(part.system.bias(q, v, domain=graph))
        for column in part.plan.dependent:
            i = part.columns[column]
            dependent.add(i)
            full[i, i], drift[i] = graph.const(0), beta[column]
            for m, other in enumerate(part.plan.independent):
                if not graph.is_zero(found.G[column, m]):
                    full[i, part.columns[other]] = found.G[column, m]
    chosen = [i for i in range(nv) if i not in dependent]
    return Passing(full[:, chosen], drift, chosen, own)


def entries(matrix: Any) -> Array:
    """A CasADi matrix as an array of nodes."""
    import casadi as ca

    graph: Any = domain("casadi")
    return graph.scalars(ca.vec(ca.densify(ca.SX(matrix)).T)).reshape(matrix.shape)


__all__ = ["Between", "Inner", "Passing", "Seen", "between", "entries", "inner", "passing", "planned"]
