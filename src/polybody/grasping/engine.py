"""How a grasp is answered: the engine of models with loops, asked for held motions over batches of states.

Quantities of `quantities.holding` run along the engine's plan of elimination, or, the inverse problem, along one of its
own. States whose diagnostics are not to be believed, and all states of arms too long for straight-line code, are solved
by singular values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT
from polybody.constraints.assembly import AssemblyError
from polybody.constraints.multipliers import solve_multipliers
from polybody.grasping.grips import Holding
from polybody.grasping.inverse import SAMPLES, planned
from polybody.model.batches import batch_shape, spread
from polybody.model.constrained_engine import ConstrainedEngine
from polybody.model.diagnosed import doubtful
from polybody.model.engine import Request
from polybody.model.tracing import trace
from polybody.quantities import holding
from polybody.quantities.holding import CAPTURED, NEAREST_STEP, Held, Wanted
from polybody.quantities.quantity import Quantity, sizes_of
from polybody.quantities.table import QUANTITIES

Array = np.ndarray

#: residuals above this part of what stands in the inverse problem's equations are looked at again, state by state
RESIDUAL = 1e-10
#: what Newton's method aims at (m, rad), and how often it tries
SETTLED, NEWTON = 1e-13, 50


class HeldEngine:
    """The answers of one grasp on arrays; nothing is checked here."""

    def __init__(self, held: Holding, closed: ConstrainedEngine) -> None:
        self.closed, self.mechanism = closed, closed.mechanism
        self.system = closed.constraints.constraints
        self.names = Held(held.object, tuple(grip.name for grip in held.grips))
        first = self.system.slices[self.names.grips[0]].start
        self.rows = slice(first, first + 6 * held.m)  # loops come in the order of the description, the grips' last
        self.shares = np.zeros((len(self.system), 6))
        self.shares[self.rows] = held.equal_shares
        self._sizes = sizes_of(self.mechanism, rows=len(self.system))
        self._wants: dict[Wanted, Wanted] = {}
        self._is_ready = False

    @property
    def is_compiled(self) -> bool:
        """Whether kernels answer; the numbers of a long arm are solved for by LAPACK."""
        return self.closed.is_compiled and not self.closed.tree.is_long

    def ready(self, q: Array) -> bool:
        """Whether rank and order of elimination are chosen: at closed configurations near some of the states q."""
        if not self._is_ready:
            states, places = q.reshape(-1, self.mechanism.nq), []
            for k in spread(len(states), SAMPLES):
                try:
                    places.append(self.closed.assembly.assembled(states[k], (), False, 0))
                except AssemblyError:
                    continue  # one that is out of reach says nothing of the others
            if places:
                self.closed.own.choose_at(places[0])
                if self.is_compiled:
                    self.closed.plans.free(np.array(places))
                self._is_ready = True
        return self._is_ready

    def openings(self, q: Array) -> Array:
        return self.closed.tree.answer(Request(holding.grip_openings(self.system, self.names), (q,)))

    def closed_near(self, q: Array) -> tuple[Array, Array]:
        """(configurations (k, nq) near q in which the grips meet, what is left open (k,)).

        By compiled steps of Newton's method, all states together; those that miss, by `assemble`, which looks at the
        rank of all rows.
        """
        assembly, found, left = self.closed.assembly, q.copy(), np.full(len(q), np.inf)
        going = np.arange(len(q)) if self.ready(q) and self.is_compiled else np.zeros(0, dtype=int)
        for _ in range(NEWTON):
            if not len(going):
                break
            step, told = self.closed.eliminated(NEAREST_STEP, found[going])
            size = np.sqrt(told[..., 0])
            rounding = (size < 1e-11) & (size > 0.3 * left[going])
            left[going] = size
            ahead = ~((size < SETTLED) | rounding) & (size < np.inf)
            if not ahead.all():
                going, step = going[ahead], step[ahead]
            longest = np.maximum(step.max(axis=-1, keepdims=True), -step.min(axis=-1, keepdims=True))
            if longest.max(initial=0.0) > 1.0:
                step = step / np.maximum(longest, 1.0)
            found[going] = assembly.integrate(found[going], step)
        for k in np.flatnonzero(~(left < 1e-10)):
            try:
                found[k], left[k] = assembly.assembled(q[k], (), False, 0), 0.0
            except AssemblyError as error:
                left[k] = max(error.residuals.values())
        return found, left

    def motion(self, arrays: tuple[Array, ...], on_bodies: Array | None) -> tuple[Array, ...]:
        """(a, multipliers, V̇°, opening, diagnostics, states that must be solved by `ranked_motion`)."""
        quantity = holding.motion(self.names)
        if on_bodies is not None:
            quantity, arrays = quantity.with_wrenches(), (*arrays, on_bodies)
        *found, told = self._answered(quantity, arrays)
        return *found, told, doubtful(told)

    def ranked_motion(self, q: Array, v: Array, tau: Array, on_bodies: Array | None = None) -> tuple[Array, ...]:
        """(a, multipliers, V̇°, rank) of states (k, …) by singular values."""
        M, force = self.closed.ranked.tree_terms(q, v, tau, on_bodies)
        J, gamma = self.closed.constraints.jacobian(q), self.closed.constraints.bias(q, v)
        # Off the grips by a little, rows that repeat others there seem to be independent.
        solved = solve_multipliers(M, J, gamma, force, most=self.closed.rank)
        moved = [
            holding.object_acceleration(self.mechanism, self.names.object, *x, domain=FLOAT)
            for x in zip(q, v, solved.a, strict=True)
        ]
        return solved.a, solved.multipliers, np.array(moved), solved.rank

    def capture(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """(v⁺, impulses of all rows, energy lost)."""
        self.ready(q)
        after, impulses, lost, told = self._answered(CAPTURED, (q, v))
        again = doubtful(told)
        if np.any(again):
            q, v = (np.broadcast_to(x, (*again.shape, x.shape[-1]))[again] for x in (q, v))
            M = self.closed.tree.answer(Request(QUANTITIES["mass_matrix"], (q,)))
            J = self.closed.constraints.jacobian(q)
            # v⁺ and the impulses stand where accelerations and loads do: M v⁺ = M v + Jᵀ I, J v⁺ = 0.
            solved = solve_multipliers(M, J, np.zeros(J.shape[:-1]), (M @ v[..., None])[..., 0])
            after[again], impulses[again] = solved.a, solved.multipliers
            lost[again] = -0.5 * np.sum(solved.multipliers * (J @ v[..., None])[..., 0], axis=-1)
        return after, impulses, lost

    # The inverse problem.

    def is_planned(self, wants: Wanted) -> bool:
        return wants in self._wants

    def planned(self, wants: Wanted, q: Array) -> Wanted:
        """The problem with its plan, made at the first states asked for."""
        if wants not in self._wants and q.size:
            self._wants[wants] = planned(self.closed, wants, q.reshape(-1, self.mechanism.nq))
        return self._wants.get(wants, wants)

    def inverse(self, wants: Wanted, states: tuple[Array, ...]) -> tuple[Array, ...]:
        """(tau, a, multipliers, opening, diagnostics, states not to be believed) from q, v, a, tau, loads beside."""
        compiled = self.is_compiled and np.prod(batch_shape(states), dtype=int)
        *found, told = self._forces(wants)(*states) if compiled else self._empty(_FORCES, states)
        return *found, told, doubtful(told) | ~(told[..., 5] <= RESIDUAL**2)

    def _forces(self, wants: Wanted) -> Any:
        sizes, tree = self._sizes, self.closed.reduced_mechanism
        inputs = _FORCES.inputs(sizes)

        def text(*arrays: Array, domain: Any) -> tuple[Array, ...]:
            return holding.forces(tree, self.system, wants, self.shares, *arrays, domain=domain)

        asked = f"{wants.held} {wants.of_object} {wants.passive} {wants.fixed} {wants.settled}"
        name = f"held forces {asked} {wants.plan.label if wants.plan else ''}"
        outputs = [*_FORCES.shapes(sizes), ("diagnostics", (6,))]
        return self.closed.compile(name, inputs, outputs, lambda: trace("held forces", inputs, text))

    # Inside.

    def _answered(self, quantity: Quantity, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """The results of a quantity and its diagnostics."""
        if self.is_compiled and np.prod(batch_shape(arrays), dtype=int):
            return self.closed.eliminated(quantity, *arrays)
        return self._empty(quantity, arrays)

    def _empty(self, quantity: Quantity, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """Room for results, with diagnostics that nobody believes."""
        lead = batch_shape(arrays)
        found = [np.zeros((*lead, *shape)) for _, shape in quantity.shapes(self._sizes)]
        return *found, np.broadcast_to([0.0, 0.0, np.inf, 0.0, 0.0, 0.0], (*lead, 6))


#: the shape of `holding.forces`; its text depends on what is wanted
_FORCES = Quantity(
    "held_forces", ("q", "v", "a", "tau", "multipliers"),
    (("tau", ("nv",)), ("a", ("nv",)), ("multipliers", ("rows",)), ("opening", ())), holding.forces,
)  # fmt: skip

__all__ = ["HeldEngine"]
