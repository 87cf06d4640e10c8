"""Sub-networks of bodies as (m+1)-ports that move: each by its own terminal equations, joined at their ports.

Seen from its ports, piece k (`ports`) is (18)-(39) at each state: with g the gravity,

    y_k = M_k(q_k) v̇_k + h_k(q_k, v_k),      v̇_k with the acceleration of its entry less g                     (20)

h_k has the forces of springs, dampers, friction and rotors inside. Its own closed circuits are eliminated, (a) of
`circuits`, which leaves M*_k = G_kᵀ M_k G_k and G_kᵀ y_k for ẇ_k = [ẋ_B; the motions it leaves inside]. With
ẇ_k = W_k ċ + …, the through variables that the cut-sets add up are

    tau = Σ_k W_kᵀ y*_k + Σ_j T_jᵀ (I v̇_j − passive_j(q_j, v_j)) + Σ_s J_sᵀ f_s                                  (42)

with passive_j of joints between pieces (rotors of motors there likewise), f_s springs between ports (in joints that
close circuits too), J_s their rates.
Circuits that are closed between pieces leave ċ = N ü + ν, (b), so that with M_c = Σ W_kᵀ M*_k W_k + Σ T_jᵀ I T_j

    NᵀM_c N ü = Nᵀ (tau − h_c − M_c ν)                                                                          (c)

is solved by elimination in the order of the pieces, the outermost first: what is taken off the others as its motions are
eliminated is its Schur complement, the inertia with which it is felt at its entry. The reactions of joints between
pieces follow from (42) with the joint opened, and from the loads that circuits between ports bear.

Plans of (a) and (b) are made in general position. Where the mechanism has another branch (a plane in which all of it
lies), their pivots may vanish there though the machine is not singular: `at` then makes plans at the state itself, and
refuses a state at which rows are lost whatever the plan.

Nothing of a sub-network is used but its terminal equations. The motion is that of the network with all sub-networks
expanded (`Network.use` without `reduced`), whose model names the coordinates and counts the energy of a run.
"""  # noqa: E501

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.algebra.domains import domain
from polybody.constraints.constraint import PairConstraint
from polybody.constraints.elimination import Elimination
from polybody.constraints.plan import Plan
from polybody.constraints.sparse import carried_back, carried_out, product, sandwiched
from polybody.errors import InputError, PolybodyError
from polybody.formulations.network.parts import MotorPart
from polybody.mechanism.closure_springs import wrench_on_b
from polybody.model.diagnosed import GROWTH
from polybody.model.model import Model
from polybody.networks.circuits import Between, Inner, Passing, Seen, between, entries, inner, passing, planned
from polybody.networks.ports import Coordinates, Entry, Piece, State, Strut
from polybody.properties import cached_property

Array = np.ndarray
#: (row over pivot)² above which plans are made at the state itself
DOUBTFUL = 1e6


@dataclass(eq=False)
class ReducedDynamics:
    """tau(q, v, a) of a network without closed circuits, and a(q, v, tau), by the terminal equations of its pieces."""

    whole: Model
    gravity: Array
    coordinates: Coordinates
    pieces: list[Piece]
    struts: list[Strut]
    rotors: list[MotorPart]  # that turn with joints between pieces, or with several pieces
    between: Between = field(default_factory=Between)

    def __call__(self, q: Any, v: Any, a: Any) -> Any:
        """(42) of a network without closed circuits."""
        return self._needed.call([q, v, a])[0][: self.whole.nv]

    def accelerations(self, q: Any, v: Any, tau: Any) -> Any:
        """a under tau, (c)."""
        return self._solved.call([q, v, tau])[0]

    def at(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> tuple[Array, dict[str, Array]]:
        """(a, {name: wrench [moment; force] on its port b, there, in world axes}) of what is between pieces.

        The whole wrench, as of `Network.solve`.
        """
        sizes = {"q": self.whole.nq, "v": self.whole.nv, "forces": self.whole.nv}
        given = [np.asarray(x, dtype=float) for x in (q, v, tau)]
        for (name, size), x in zip(sizes.items(), given, strict=True):
            if x.shape != (size,):
                raise InputError(f"{name} has shape {x.shape}, expected ({size},), in the order of Network.model()")
            if not np.isfinite(x).all():
                raise InputError(f"{name} has entries that are not finite numbers")
        *values, told = (np.array(x, dtype=float).ravel() for x in self._solved(*given))
        count = told[-1]
        if not told[:-1].max() < DOUBTFUL:
            *values, told = (np.array(x, dtype=float).ravel() for x in self._planned_at(given[0])._solved(*given))
        if not told[:-1].max() < GROWTH or told[-1] < count:
            raise PolybodyError("port_wrenches: the loops are singular at this configuration, so that accelerations "
                                "and wrenches are not determined; move it by a little")
        a, entered, borne = values
        found = dict(zip((entry.joint.name for entry in self._entries), entered.reshape(-1, 6), strict=True))
        for element, wrench in zip(self._bearing, borne.reshape(-1, 6), strict=True):
            joint = element.name.removesuffix("_weld")  # which bears what the joint before it does
            found[joint if joint in self.coordinates.slices else element.name] = wrench
        return a, found

    def _planned_at(self, q: Array) -> ReducedDynamics:
        """The same with plans of elimination made at q."""
        other = replace(self)
        other.__dict__["_sample"] = q
        return other

    @property
    def _entries(self) -> list[Entry]:
        return [piece.entry for piece in self.pieces if piece.entry is not None]

    @cached_property
    def _bearing(self) -> list[PairConstraint]:
        return [element for element in self.between.rows if isinstance(element, PairConstraint)]

    # What is read of the pieces at a state, with δ of all entries.

    def _states(self, q: Any, v: Any, shift: Any) -> list[State]:
        states: list[State] = []
        entered = 0
        for piece in self.pieces:
            end = entered + (0 if piece.entry is None else 6)
            states.append(self.coordinates.state(piece, states, q, v, shift[entered:end]))
            entered = end
        return states

    @cached_property
    def _symbols(self) -> tuple[Any, Any, Any]:
        import casadi as ca

        sizes = ("q", self.whole.nq), ("v", self.whole.nv), ("delta", 6 * len(self._entries))
        q, v, shift = (ca.SX.sym(name, size) for name, size in sizes)
        return q, v, shift

    @cached_property
    def _read(self) -> list[State]:
        return self._states(*self._symbols)

    @cached_property
    def _seen(self) -> Seen:
        q, v, _ = self._symbols
        return Seen.of(self.between.links, self._read, self.whole, q, v)

    def _at_rest(self, expressions: list[Any], *more: Any) -> Any:
        """Function (q, v, …) of expressions at δ = 0."""
        import casadi as ca

        q, v, shift = self._symbols
        still = ca.DM.zeros(*shift.shape)
        found = ca.Function("open", [q, v, shift, *more], expressions).call([q, v, still, *more])
        return ca.Function("reduced", [q, v, *more], found, {"cse": True})

    @cached_property
    def _needed(self) -> Any:
        """(q, v, a) -> forces along [v; δ] that balance all but the reactions of closed circuits, (42)."""
        import casadi as ca

        q, v, shift = self._symbols
        a = ca.SX.sym("a", self.whole.nv)
        motions = ca.vertcat(v, shift)
        rate = self.whole.casadi("rate").call([q, v])[0]
        along = ca.vertcat(q, v), ca.vertcat(rate, a)
        force = ca.SX.zeros(motions.shape[0])
        for state in self._read:
            piece, a_k = state.piece, ca.jtimes(state.v, *along)
            if piece.entry is not None:  # gravity as an acceleration of the entry: the linear part of its numbers
                a_k[piece.free.start + 3 : piece.free.stop] -= state.R.T @ ca.DM(self.gravity)
                own_q, own_v = self.coordinates.own(piece.entry.joint, q, v)
                taken = self.coordinates.exerted(piece.entry, own_q, own_v)
                taken += ca.DM(self.coordinates.inertia(piece.entry)) @ ca.jtimes(own_v, *along)
                force += ca.jacobian(own_v, motions).T @ taken
            y = piece.tree.casadi("inverse_dynamics").call([state.q, state.v, a_k])[0]
            force += ca.jacobian(state.v, motions).T @ y
        for strut in self.struts:
            force += _sprung(strut, self._read, motions)
        for motor in self.rotors:
            speed = self.coordinates.speed(motor, q, v)
            taken = float(motor.inertia) * ca.jtimes(speed, *along) + float(motor.damping) * speed
            force += ca.jacobian(speed, motions).T @ taken
        return self._at_rest([force + self._seen.taken(self.between, motions)], a)

    # Closed circuits.

    @cached_property
    def _sample(self) -> Array:
        """A configuration in general position: plans of elimination are made there."""
        engine: Any = self.whole.engine
        if not self.whole.mechanism.constrained:
            return self.whole.neutral()
        return engine.assembly.general_place(engine.assembly.from_neutral())

    @cached_property
    def _wanted(self) -> set[int]:
        """Velocities that stay independent where they can: those of the expanded model."""
        engine: Any = self.whole.engine
        return set(engine.coordinates(self._sample) if self.whole.mechanism.constrained else range(self.whole.nv))

    @cached_property
    def _inners(self) -> dict[int, Inner]:
        import casadi as ca

        q, v, shift = self._symbols
        slices, found = self.coordinates.slices, {}
        for k, state in enumerate(self._read):
            piece = state.piece
            columns = [-1] * piece.model.nv
            for name, (_, own) in piece.model.joint_slices().items():
                if name in slices:
                    columns[own] = list(range(slices[name][1].start, slices[name][1].stop))
            if not piece.model.mechanism.constrained:
                continue
            here = ca.Function("q", [q, v, shift], [state.q])(self._sample, 0, 0)
            part = inner(piece, columns, np.array(here, dtype=float).reshape(1, -1), self._wanted)
            if part is not None:
                found[k] = part
        return found

    def close(self, owner: dict[str, int]) -> None:
        """Find what closes circuits between pieces: all that pieces do not close for themselves."""
        inside = {element.name for part in self._inners.values() for element in part.system.elements}
        held = {spring.name for piece in self.pieces for spring in piece.model.mechanism.closure_springs}
        self.between = between(self.whole, owner, inside, held)

    @cached_property
    def _solved(self) -> Any:
        """(q, v, tau) -> (a, wrenches at entries' ports b, wrenches that circuits between pieces bear, doubts), (c).

        Doubts are growth and narrowness of all eliminations, large where their plans do not suit the state, and the
        number of pivots.
        """
        import casadi as ca

        graph: Any = domain("casadi")
        q, v, shift = self._symbols
        tau = ca.SX.sym("tau", self.whole.nv)
        nv, motions = self.whole.nv, ca.vertcat(v, shift)
        rate = self.whole.casadi("rate").call([q, v])[0]
        own = passing(self._inners, self._read, nv)
        slip = self._seen.velocity(self.between.rows)
        R = entries(ca.jacobian(slip, motions))
        gamma = graph.scalars(ca.densify(ca.jtimes(slip, q, rate)))
        R_c = product(R[:, :nv], own.E, graph)
        rho = carried_out(R[:, :nv], own.drift, gamma, graph)
        found = Elimination(R_c, self._plan(R_c, own), graph)
        beta = carried_out(own.E, found.follow(rho), own.drift, graph)
        needed = self._needed.call([q, v, graph.column(beta)])[0]
        missing = graph.scalars(ca.densify(tau - needed[:nv]))
        force = carried_back(found.G, carried_back(own.E, missing, graph), graph)
        M = sandwiched(found.G, self._inertia(own), graph)
        order = self._order(own, found.plan)
        u = graph.zeros(len(order))
        u[order] = graph.solve(M[np.ix_(order, order)], force[order]) if order else force
        a = carried_out(own.E, carried_out(found.G, u, found.follow(rho), graph), own.drift, graph)
        spent = self._needed.call([q, v, graph.column(a)])[0]
        load = carried_back(own.E, graph.scalars(ca.densify(spent[:nv] - tau)), graph)
        multipliers = found.least(found.bear(load))
        opened = graph.scalars(ca.densify(spent[nv:])) - carried_back(R[:, nv:], multipliers, graph)
        eliminations = [found, *own.own.values()]
        doubts = [x for part in eliminations for x in (part.growth, part.narrow)]
        doubts.append(graph.const(sum(len(part.plan.pivots) for part in eliminations)))
        told = [graph.column(a), self._at_ports(graph.column(opened)), self._borne(multipliers), graph.column(doubts)]
        return self._at_rest(told, tau)

    def _plan(self, R_c: Array, own: Passing) -> Plan:
        import casadi as ca

        graph: Any = domain("casadi")
        q, v, shift = self._symbols
        numbers = ca.Function("rows", [q, v, shift], [graph.column(R_c)])(self._sample, 0, 0) if R_c.size else []
        sample = np.array(numbers, dtype=float).reshape(1, *R_c.shape)
        return planned(sample, {k for k, i in enumerate(own.chosen) if i in self._wanted}, set())

    def _inertia(self, own: Passing) -> Array:
        """M_c = Σ W_kᵀ M*_k W_k + Σ T_jᵀ I T_j."""
        import casadi as ca

        graph: Any = domain("casadi")
        q, v, _ = self._symbols
        total = graph.zeros(len(own.chosen), len(own.chosen))
        for k, state in enumerate(self._read):
            W = product(entries(ca.jacobian(state.v, v)), own.E, graph)
            tree = state.piece.tree
            M = entries(ca.reshape(tree.casadi("mass_matrix").call([state.q])[0], tree.nv, tree.nv))
            if k in own.own:
                M, W = sandwiched(own.own[k].G, M, graph), W[list(own.own[k].plan.independent)]
            total = total + sandwiched(W, M, graph)
            if state.piece.entry is not None:
                _, own_v = self.coordinates.own(state.piece.entry.joint, q, v)
                T = product(entries(ca.jacobian(own_v, v)), own.E, graph)
                total = total + sandwiched(T, graph.array(self.coordinates.inertia(state.piece.entry)), graph)
        for motor in self.rotors:
            T = product(entries(ca.jacobian(self.coordinates.speed(motor, q, v), v)), own.E, graph)
            total = total + sandwiched(T, graph.array([[float(motor.inertia)]]), graph)
        return total

    def _order(self, own: Passing, plan: Plan) -> list[int]:
        """Independent motions, those of the outermost pieces first, and the entry of each after what is inside."""
        slices = self.coordinates.slices
        names = [name for piece in reversed(self.pieces)
                 for name in (*piece.model.joint_slices(), *([piece.entry.joint.name] if piece.entry else []))]
        places = {i: k for k, i in enumerate(own.chosen[c] for c in plan.independent)}
        ordered = [i for name in dict.fromkeys(names) if name in slices
                   for i in range(slices[name][1].start, slices[name][1].stop) if i in places]
        return [places[i] for i in dict.fromkeys([*ordered, *places])]

    # Reactions.

    def _at_ports(self, opened: Any) -> Any:
        """Wrenches on port b of each entry's joint, from those on the entry's body at its frame in its own axes."""
        import casadi as ca

        found = [ca.SX(0, 1)]
        for k, state in enumerate(state for state in self._read if state.piece.entry is not None):
            entry = state.piece.entry
            assert entry is not None
            moment, force = state.R @ opened[6 * k : 6 * k + 3], state.R @ opened[6 * k + 3 : 6 * k + 6]
            place, (R, p) = entry.place_b, (state.R, state.p)
            if entry.reverse:  # port b of the joint is on the carrier
                place, (R, p) = entry.place_a, (ca.DM.eye(3), ca.DM.zeros(3))
                if entry.before is not None:
                    R, p = self._read[entry.before].pose(entry.a)
            lever = state.p - (p + R @ ca.DM(place[0]))
            sign = -1.0 if entry.reverse else 1.0
            found += [sign * (moment + ca.cross(lever, force)), sign * force]
        return ca.vertcat(*found)

    def _borne(self, multipliers: Array) -> Any:
        """Wrenches of circuits between pieces on their b, springs in their joints counted in."""
        graph: Any = domain("casadi")
        twists = [graph.scalars(x) for x in self._seen.twists]
        springs, found, row = self.between.springs, [graph.zeros(0)], 0
        for element in self.between.rows:
            if isinstance(element, PairConstraint):
                wrench = element.wrench_map(self._seen.place) @ multipliers[row : row + element.size]
                if element.name in springs:
                    wrench = wrench + wrench_on_b(springs[element.name], self._seen.poses, twists, domain=graph)[0]
                found.append(wrench)
            row += element.size
        return graph.column(np.concatenate(found))


def _sprung(strut: Strut, states: list[State], motions: Any) -> Any:
    """Forces that balance a spring; one of zero length pulls with k·line, with no division by its length."""
    import casadi as ca

    def point(where: tuple[int | None, str, Array]) -> tuple[Any, Any]:
        """(place, velocity) in the world."""
        k, body, place = where
        if k is None:
            return ca.SX(ca.DM(place)), ca.SX.zeros(3)
        (R, p), x = states[k].pose(body), states[k].twist(body)
        return p + R @ ca.DM(place), R @ (x[3:] + ca.cross(x[:3], ca.DM(place)))

    part, (a, b) = strut.part, (point(strut.a), point(strut.b))
    line, change = b[0] - a[0], b[1] - a[1]
    stiffness, length, damping = float(part.stiffness), float(part.length), float(part.damping)
    force = stiffness * line
    if length or damping:
        u = line / ca.norm_2(line)
        force += (damping * ca.dot(u, change) - stiffness * length) * u
    return ca.jacobian(change, motions).T @ force


__all__ = ["ReducedDynamics"]
