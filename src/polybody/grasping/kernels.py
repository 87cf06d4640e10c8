"""Compiled answers of a grasp: closure, Table I, the inverse problem, the way back to the grips.

Kernels that need no wrenches are traced from the grasp of the reduced mechanism. The inverse problem and the way back
use rows that are independent in general position; every state's trust is looked at, and states in which they are not
are solved again, rank-revealing, one by one. Arms with more joints than straight-line code can hold are answered by the
texts themselves, state by state.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np

from polybody import grasping as cooperation
from polybody.algebra.domains import FLOAT, Domain
from polybody.grasping import Holding
from polybody.grasping.consistency import closure_terms, least_step, strains, way_back
from polybody.grasping.inverse import Asked, Ranked, closed_inverse, plan_inverse, ranked_inverse
from polybody.grasping.nearest import GROWTH, Order
from polybody.mechanism.mechanism import Mechanism
from polybody.model.batches import batch_shape
from polybody.model.model import Model
from polybody.model.operators import tips_key
from polybody.model.tracing import compiled
from polybody.quantities.table import Quantity

Array = np.ndarray

#: residuals above this part of what stands in the equations are looked at again, state by state
RESIDUAL = 1e-10


class GraspKernels:
    """The kernels of one grasp, built when first asked for."""

    def __init__(self, model: Model, held: Holding) -> None:
        self.model, self.held = model, held
        places = tips_key(tuple(frame for grip in held.grips for frame in (grip.tip, grip.hold)))
        # Independent rows are chosen on samples; kernels of another choice must not be taken from the cache.
        chosen = [(own.grip, own.at, own.K.round(9).tolist()) for own in held.rows]
        self._key = f"{held.object} {places} {_digest(chosen, held.closing)}"
        self._plans: dict[Asked, Order] = {}
        self._kernels: dict[str, Any] = {}

    @cached_property
    def lean(self) -> Holding:
        """The grasp that kernels without wrenches are traced from."""
        lean = self.model.engine.reduced_mechanism
        return self.held if lean is self.model.mechanism else cooperation.lean_holding(self.held, lean)

    def gaps(self, q: Array) -> tuple[Array, Array]:
        """(openings (..., m, 6), misalignment (..., m))."""

        def text(_: Mechanism, q: Array, *, domain: Domain) -> Any:
            return cooperation.openings(held, q, domain=domain), cooperation.misalignment(held, q, domain=domain)

        held, m = self.lean, self.held.m
        shapes = lambda _: (("gap", (m, 6)), ("versine", (m,)))  # noqa: E731
        return self.model.answer(Quantity(f"grasp gaps {self._key}", ("q",), shapes, text), q)

    def closure(self, q: Array, v: Array) -> tuple[Array, Array]:
        """(A (..., 6m, nv), γ (..., 6m))."""

        def text(_: Mechanism, q: Array, v: Array, *, domain: Domain) -> Any:
            return closure_terms(self.lean, q, v, domain=domain)

        rows = 6 * self.held.m
        shapes = lambda m: (("A", (rows, m.nv)), ("gamma", (rows,)))  # noqa: E731
        return self.model.answer(Quantity(f"grasp closure {self._key}", ("q", "v"), shapes, text), q, v)

    # Forward

    def forward(self, *arrays: Array) -> tuple[Array, ...]:
        """(a, f_e (..., m, 6), V̇° (..., 6), strains (..., m, 4)) from q, v, tau and perhaps wrenches."""
        if self.model.is_long:
            return self.read_forward(*arrays)
        loaded = len(arrays) == 4

        def text(_: Mechanism, q: Array, v: Array, tau: Array, *more: Array, domain: Domain) -> Any:
            return self._forward_text(self.held if more else self.lean, q, v, tau, *more, domain=domain)

        arguments = ("q", "v", "tau", "wrenches") if loaded else ("q", "v", "tau")
        name = f"grasp forward{' wrenches' if loaded else ''} {self._key}"
        return self.model.kernel(Quantity(name, arguments, lambda _: self._forward_shapes, text))(*arrays)

    @property
    def _forward_shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        m = self.held.m
        return ("a", (self.model.nv,)), ("f_e", (m, 6)), ("moved", (6,)), ("strains", (m, 4))

    def _forward_text(self, traced: Holding, q: Array, v: Array, tau: Array, *more: Array, domain: Domain) -> Any:
        wrenches = more[0].reshape(-1, 6) if more else None
        a, f_e, apart = cooperation.closed_forward_dynamics(traced, q, v, tau, wrenches, domain=domain)
        moved = cooperation.object_acceleration(self.held, q, v, a, domain=domain)
        return a, f_e, moved, strains(traced, q, v, apart, domain=domain)

    def read_forward(self, *arrays: Array) -> tuple[Array, ...]:
        """What the kernel of `forward` gives, by the text itself; a singular state stays NaN."""
        lead = batch_shape(arrays)
        wide = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in arrays]
        found = tuple(np.full((*lead, *shape), np.nan) for _, shape in self._forward_shapes)
        for index in np.ndindex(lead):
            try:
                parts = self._forward_text(self.held, *(x[index] for x in wide), domain=FLOAT)
            except np.linalg.LinAlgError:
                continue
            for store, part in zip(found, parts, strict=True):
                store[index] = part
        return found

    # Inverse

    def is_planned(self, wants: Asked) -> bool:
        """True once `inverse` has chosen its rows, which takes a state that honours the grasp."""
        return wants in self._plans

    def inverse(self, wants: Asked, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """(tau, a, f_e (..., m, 6), strains, states not to be believed) from q, v, a, internal loads and tau."""
        if wants not in self._plans:
            q = arrays[0].reshape(-1, self.model.nq)
            self._plans[wants] = plan_inverse(self.held, wants, q[0])
        rows, held, m = self._plans[wants], self.held, self.held.m
        if self.model.is_long:
            return self._all_doubtful(batch_shape(arrays))

        def text(q: Array, v: Array, a: Array, tau: Array, *internal: Array, domain: Domain) -> Any:
            loads = internal[0] if internal else domain.zeros(0)
            found = closed_inverse(held, self.lean, wants, rows, q, v, a, loads, tau, domain=domain)
            return *found, strains(self.lean, q, v, domain.zeros(m, 6), domain=domain)

        q, v, a, internal, tau = arrays
        extra = 6 * (m - 1)
        inputs = ["q", "v", "a", "tau", *([("internal", extra)] if extra else [])]
        nv = self.model.nv
        shapes = [("tau", (nv,)), ("a", (nv,)), ("f_e", (m, 6)), ("trust", (3,)), ("strains", (m, 4))]
        kernel = self._compiled(f"grasp inverse {_digest(wants, rows)}", inputs, shapes, text)
        found, moved, f_e, trust, strained = kernel(q, v, a, tau, *([internal] if extra else []))
        growth, residual, size = np.moveaxis(trust, -1, 0)
        return found, moved, f_e, strained, ~((growth < GROWTH) & (residual <= RESIDUAL**2 * (1.0 + size)))

    def _all_doubtful(self, lead: tuple[int, ...]) -> tuple[Array, ...]:
        """What `inverse` gives where nothing is compiled: every state is left to `ranked_inverse`."""
        nv, m = self.model.nv, self.held.m
        loads, open_unknown = np.empty((*lead, m, 6)), np.full((*lead, m, 4), np.nan)
        return np.empty((*lead, nv)), np.empty((*lead, nv)), loads, open_unknown, np.ones(lead, dtype=bool)

    def ranked_inverse(self, wants: Asked, state: tuple[Array, ...]) -> Ranked:
        """The answer of one state, whatever its rank."""
        return ranked_inverse(self.held, wants, *state)

    def loses_rank(self, wants: Asked, found: Ranked) -> bool:
        """Whether the rank is lower than in general position."""
        return found.rank < len(self._plans[wants])

    # The way back

    def close(self, q: Array) -> tuple[Array, Array]:
        """(configurations (k, nq) in which the grips meet, what is left open (k,)).

        Far from them the rows that repeat others when closed do not; where the compiled steps miss, steps that look at
        the rank of all rows may still find a way.
        """
        step = self._ranked_step if self.model.is_long else self._compiled_step
        closed, left = cooperation.close(q, step, self._move)
        missed = ~(left < 1e-10)
        if missed.any():
            closed[missed], left[missed] = cooperation.close(q[missed], self._ranked_step, self._move)
        return closed, left

    def _move(self, q: Array, step: Array) -> Array:
        return self.model.integrate(q, step, 1.0)

    def _compiled_step(self, q: Array) -> tuple[Array, Array]:
        def text(q: Array, *, domain: Domain) -> Any:
            return way_back(self.lean, q, domain=domain)

        shapes = [("step", (self.model.nv,)), ("measures", (2,))]
        step, measures = self._compiled("grasp way back", ["q"], shapes, text)(q)
        doubtful = ~(measures[:, 1] < GROWTH)
        if doubtful.any():
            step[doubtful] = self._ranked_step(q[doubtful])[1]
        return np.sqrt(measures[:, 0]), step

    def _ranked_step(self, q: Array) -> tuple[Array, Array]:
        gap = self.gaps(q)[0].reshape(len(q), -1)
        A, _ = self.closure(q, np.zeros(self.model.nv))
        return np.linalg.norm(gap, axis=-1), least_step(A, gap)

    def _compiled(self, name: str, inputs: Any, shapes: Any, text: Any) -> Any:
        if name not in self._kernels:
            self._kernels[name] = compiled(self.model.mechanism, f"{name} {self._key}", inputs, shapes, text)
        return self._kernels[name]


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


__all__ = ["GraspKernels"]
