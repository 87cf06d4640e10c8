"""All constraints of a mechanism as one system φ(q) = 0 with its J and γ, row by row under names.

Rows come in the order loops, rods, guides, relations, rolling, velocity relations; each has the name of its constraint
and the direction it holds ("d: tilt 1"). A loop whose joint leaves all motion free has no rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.jets import JetDomain, along
from polybody.algebra.rotations import cross
from polybody.algebra.scalars import domain_of, numbers
from polybody.constraints.constraint import Constraint, PairConstraint
from polybody.constraints.map_closure import closure_constraint
from polybody.constraints.place import Place
from polybody.constraints.points import GuideConstraint, RodConstraint
from polybody.constraints.relations import RelationConstraint
from polybody.constraints.rolling import velocity_constraints
from polybody.description.expressions import parse
from polybody.late import dataclass
from polybody.mechanism.kinematics import rate, tangent_columns
from polybody.mechanism.mechanism import Mechanism
from polybody.properties import cached_property


@dataclass(frozen=True)
class Row:
    """One constrained direction."""

    name: str
    label: str
    unit: str

    def __str__(self) -> str:
        return f"{self.name}: {self.label}"


class Constraints:
    """The constraint functions of a mechanism. Made by `constraints_of`."""

    def __init__(self, mechanism: Mechanism, elements: tuple[Constraint, ...]) -> None:
        self.mechanism, self.elements = mechanism, elements
        self.rows = tuple(
            Row(e.name, label, unit) for e in elements for label, unit in zip(e.labels, e.units, strict=True)
        )
        ends = np.cumsum([0, *(e.size for e in elements)])
        self.slices = {e.name: slice(int(a), int(b)) for e, a, b in zip(elements, ends[:-1], ends[1:], strict=True)}

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def iterates(self) -> bool:
        """True where a traced function may fail: J and γ are then not numbers, and the text on numbers knows better."""
        return any(e.iterates for e in self.elements)

    def residual(self, q: Array, *, domain: Domain = FLOAT, far: bool = False) -> Array:
        """φ(q)."""

        def make() -> Array:
            place = self.place(q, domain=domain)
            return self._stacked([e.residual(place, far) for e in self.elements], domain)

        return domain.once(("residual", far), (self, q), make)

    def place(self, q: Array, v: Array | None = None, *, domain: Domain) -> Place:
        """The geometry at q, and where v is given how it moves."""
        still = domain.once("place", (self, q), lambda: Place(self.mechanism, q, domain=domain))
        return still if v is None else domain.once("moving", (self, q, v), lambda: still.moving(v))

    def jacobian(self, q: Array, *, domain: Domain = FLOAT) -> Array:
        """J(q), rows×nv."""

        def make() -> Array:
            J = domain.zeros(len(self), self.mechanism.nv)
            for e, columns in zip(self.elements, self._columns(q, domain), strict=True):
                J[self.slices[e.name], e.support(self.mechanism)] = columns
            return J

        return domain.once("jacobian", (self, q), make)

    def _columns(self, q: Array, domain: Domain) -> list[Array]:
        """J(q) of every element over its support."""
        place = self.place(q, domain=domain)
        return domain.once("columns", (self, q), lambda: [e.columns(place) for e in self.elements])

    @cached_property
    def filled(self) -> tuple[Array, Array]:
        """(rows, columns) of the entries of J that are not zero everywhere, in the order of `entries`."""
        rows, columns = [np.zeros(0, dtype=int)], [np.zeros(0, dtype=int)]
        for e in self.elements:
            part, support = self.slices[e.name], e.support(self.mechanism)
            rows.append(np.repeat(np.arange(part.start, part.stop), len(support)))
            columns.append(np.tile(np.array(support, dtype=int), e.size))
        return np.concatenate(rows), np.concatenate(columns)

    def entries(self, q: Array, *, domain: Domain = FLOAT) -> Array:
        """J(q) at its `filled` places: what compiled code writes, for J of a long chain is nearly empty."""
        return self._stacked([columns.ravel() for columns in self._columns(q, domain)], domain)

    def far(self, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
        """The far residual and its derivative at the `filled` places: unlike J it is exact where loops are open."""
        directions = [(column,) for column in tangent_columns(self.mechanism, q, domain=domain)]
        changes = along(partial(self.residual, far=True), (q,), directions, domain)
        places = zip(*(index.tolist() for index in self.filled), strict=True)
        return self.residual(q, domain=domain, far=True), np.array([changes[j][i] for i, j in places])

    def spread(self, entries: Array) -> Array:
        """J (..., rows, nv) from its entries."""
        J = np.zeros((*entries.shape[:-1], len(self), self.mechanism.nv))
        J[..., self.filled[0], self.filled[1]] = entries
        return J

    def velocity(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        """J v − b, zero where the constraints hold; only velocity relations may have a right side b."""

        def make() -> Array:
            place = self.place(q, v, domain=domain)
            return self._stacked([e.velocity(place) for e in self.elements], domain)

        return domain.once("velocity", (self, q, v), make)

    def bias(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        """γ = J̇ v − ḃ."""
        return domain.once("bias", (self, q, v), lambda: self._bias(q, v, domain))

    def _bias(self, q: Array, v: Array, domain: Domain) -> Array:
        if all(e.drifts_as_read for e in self.elements):
            return self.velocity_change(q, v, v, domain=domain)
        place = self.place(q, v, domain=domain)

        @cache
        def moving() -> Place:
            jets = JetDomain(domain)
            along = jets.lift(q, rate(self.mechanism, q, v, domain=domain))
            return Place(self.mechanism, along, jets.lift(v), domain=jets)

        return self._stacked([e.bias(place, moving) for e in self.elements], domain)

    def acceleration(self, q: Array, v: Array, a: Array, *, domain: Domain = FLOAT) -> Array:
        """J a + γ, zero where an acceleration keeps the constraints."""
        return self._pushed(self._columns(q, domain), a, domain) + self.bias(q, v, domain=domain)

    def _pushed(self, columns: list[Array], a: Array, domain: Domain) -> Array:
        """J a."""
        parts = zip(self.elements, columns, strict=True)
        return self._stacked([own @ a[e.support(self.mechanism)] for e, own in parts], domain)

    def velocity_change(self, q: Array, v: Array, d: Array, *, domain: Domain = FLOAT) -> Array:
        """d(J v − b) along d with v held."""
        still = domain.zeros(len(v))
        return along(self.velocity, (q, v), [(rate(self.mechanism, q, d, domain=domain), still)], domain)[0]

    def entry_rates(self, q: Array, v: Array, *, domain: Domain = FLOAT) -> Array:
        """J̇ along v at the `filled` places."""
        return self.entry_changes(q, [v], domain=domain)[0]

    def entry_changes(self, q: Array, directions: Sequence[Array], *, domain: Domain = FLOAT) -> list[Array]:
        """The derivatives of J at the `filled` places along each of the directions."""
        ways = [(rate(self.mechanism, q, d, domain=domain),) for d in directions]
        return along(self.entries, (q,), ways, domain)

    def bias_change(self, q: Array, v: Array, d: Array, w: Array, *, domain: Domain = FLOAT) -> Array:
        """dγ with q moving along d and v along w."""
        return self.bias_changes(q, v, [(d, w)], domain=domain)[0]

    def bias_changes(
        self, q: Array, v: Array, directions: Sequence[tuple[Array, Array]], *, domain: Domain = FLOAT
    ) -> list[Array]:
        """dγ along each of the directions (d of q, w of v)."""
        ways = [(rate(self.mechanism, q, d, domain=domain), w) for d, w in directions]
        return along(self.bias, (q, v), ways, domain)

    def entry_seconds(self, q: Array, x: Array, y: Array, *, domain: Domain = FLOAT) -> Array:
        """d²J[x, y] at the `filled` places: the derivative along x of the derivative of J along y."""
        jets = JetDomain(domain)
        moving = jets.lift(q, rate(self.mechanism, q, x, domain=domain))
        return jets.rates(self.entry_rates(moving, jets.lift(y), domain=jets))

    def next_rate(self, q: Array, v: Array, a: Array, *, domain: Domain = FLOAT) -> Array:
        """d/dt (J a + γ) along v and a, a held."""
        jets = JetDomain(domain)
        moved = jets.lift(q, rate(self.mechanism, q, v, domain=domain))
        pushed = self._pushed(self._columns(moved, jets), jets.lift(a), jets)
        return jets.rates(pushed) + self.bias_change(q, v, v, a, domain=domain)

    @cached_property
    def pairs(self) -> tuple[PairConstraint, ...]:
        """Loops, rods and guides: what bears wrenches."""
        return tuple(e for e in self.elements if isinstance(e, PairConstraint))

    @cached_property
    def loaded_links(self) -> tuple[str, ...]:
        """The links between which `pairs` are, each once."""
        return tuple(dict.fromkeys(link for pair in self.pairs for link in self._ends[pair.name]))

    @cached_property
    def _ends(self) -> dict[str, tuple[str, str]]:
        d = self.mechanism.description
        ends = {r.name: (r.body_a, r.body_b) for r in (*d.loops, *d.rods, *d.guides)}
        return ends | {r.name: ("world", r.body) for r in d.rolling}

    def wrenches(self, q: Array, multipliers: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
        """([moment; force] of each of `pairs` on b at b's origin, what all do to each of `loaded_links` at its frame).

        World axes, (pairs, 6) and (links, 6).
        """
        place = self.place(q, domain=domain)
        index = {link: k for k, link in enumerate(self.loaded_links)}
        borne, totals = domain.zeros(len(self.pairs), 6), domain.zeros(len(index), 6)
        for k, pair in enumerate(self.pairs):
            borne[k] = pair.wrench_map(place) @ multipliers[self.slices[pair.name]]
            _, point = place.frame(pair.b)
            for link, sign in zip(self._ends[pair.name], (domain.const(-1), domain.const(1)), strict=True):
                _, origin = place.frame(self.mechanism.frames[self.mechanism.frame_index[link]])
                moment = borne[k, :3] + cross(point - origin, borne[k, 3:])
                totals[index[link]] = totals[index[link]] + np.concatenate([moment, borne[k, 3:]]) * sign
        return borne, totals

    def uprightness(self, q: Array, *, domain: Domain = FLOAT) -> Array:
        """Numbers that are negative where a residual vanishes for a pose that is not the loop's."""
        place = self.place(q, domain=domain)
        return np.array([x for e in self.elements for x in e.uprightness(place)], dtype=domain.dtype)

    def mirrored(self, q: Array) -> list[str]:
        """Loops whose residual vanishes for a pose that is not theirs: an axis that points backwards."""
        place = Place(self.mechanism, q, domain=FLOAT)
        return [e.name for e in self.elements if e.mirrored(place)]

    @staticmethod
    def _stacked(parts: list[Array], domain: Domain) -> Array:
        return np.concatenate(parts) if parts else domain.zeros(0)


def constraints_of(mechanism: Mechanism) -> Constraints:
    """The constraints of a mechanism's loops, rods, guides and relations, and those on its velocities."""
    records = {loop.name: loop for loop in mechanism.description.loops}
    elements: list[Constraint] = []
    for closure in mechanism.closures:
        constraint = closure_constraint(closure, records[closure.name])
        if constraint is not None:
            elements.append(constraint)
    for rod in mechanism.rods:
        ends = mechanism.point(rod.body_a, rod.point_a), mechanism.point(rod.body_b, rod.point_b)
        elements.append(RodConstraint(rod.name, *ends, rod.length))
    for guide in mechanism.guides:
        ends = mechanism.point(guide.body_a, guide.point_a), mechanism.point(guide.body_b, guide.point_b)
        axis = numbers(guide.axis)
        elements.append(GuideConstraint(guide.name, guide.kind, *ends, axis / domain_of(axis).sqrt(axis @ axis)))
    for relation in mechanism.relations:
        elements.append(RelationConstraint(relation.name, parse(relation.expression), mechanism))
    elements += velocity_constraints(mechanism)
    return Constraints(mechanism, tuple(elements))


__all__ = ["Constraints", "Row", "constraints_of"]
