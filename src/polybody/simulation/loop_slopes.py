"""What loops add to derivatives of a run's right side (`slopes` (1) and (2)), and how dependent joints follow.

Rows J of the plan's pivots have full rank, J_d their dependent columns, G = [1; −J_d⁻¹J_u]. With the change of joint
forces f and the changes r of J a + γ at fixed a

    δa = β + G (GᵀMG)⁻¹ Gᵀ (f − M β),         β_d = −J_d⁻¹ r,  β_u = 0                                      (3)

where f has (Jᵀλ)_q of λ = J_d⁻ᵀ (ID − tau)_d among its terms. After each step a run goes back to its loops with
independent coordinates and velocities held. So the others of S = ∂[q; v]/∂p follow from J δq = 0 and J v = 0,

    δq_d = −J_d⁻¹J_u δq_u,          δv_d = −J_d⁻¹ (J_u δv_u + (J v)_q δq)                                   (4)

whatever they were before. Rows without a position (rolling) and parameters that change loops are not described here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.algebra.jets import along
from polybody.constraints.system import Constraints
from polybody.mechanism.kinematics import rate
from polybody.mechanism.mechanism import Mechanism
from polybody.model.model import Model
from polybody.model.tracing import compiled, trace
from polybody.properties import cached_property

Array = np.ndarray
#: numbers of bodies and joints that change forces only
UNMOVING = ("mass", "com", "inertia", "stiffness", "damping", "armature")


def are_described(model: Model) -> bool:
    """Whether (3) and (4) are all: positions determine the rows, and no parameter changes them."""
    m, system = model.mechanism, model.engine.constraints.constraints
    if m.rolling or m.velocity_relations or system.iterates:
        return False
    return move_nothing(model)


def move_nothing(model: Model) -> bool:
    """Whether no parameter changes how things move: neither loops nor joints."""
    return all(p.place[0] in ("gravity", "motors") or p.place[2] in UNMOVING for p in model.parameters)


@dataclass(frozen=True, eq=False)
class Followers:
    """How dependent joints follow at states of a batch: −J_d⁻¹ (states, r, r), J and (J v)_q (states, r, nv)."""

    free: list[int]
    bound: list[int]
    inverse: Array
    J: Array
    Jv_q: Array

    def __call__(self, b: int, d: Array, v: Array) -> tuple[Array, Array]:
        """(δq in tangent space, δv) with dependent rows by (4)."""
        d, v, J, inverse = d.copy(), v.copy(), self.J[b], self.inverse[b]
        d[self.bound] = inverse @ (J[:, self.free] @ d[self.free])
        v[self.bound] = inverse @ (J[:, self.free] @ v[self.free] + self.Jv_q[b] @ d)
        return d, v


class Loops:
    """The loops of a model along a plan."""

    def __init__(self, model: Model, plan: Any) -> None:
        self.model, self.plan, self.rows = model, plan, [i for i, _ in plan.pivots]
        self.free, self.bound = list(plan.independent), list(plan.dependent)

    def solved(self, q: Array, v: Array, a: Array, load: Array, M: Array, right: Array, places: Any) -> Array:
        """δa by (3), (states, nv, w): right (states, nv, w) are changes of joint forces, load = ID − tau.

        `places` puts derivatives in tangent space (states, …, nv) at columns of q: (of q, of v) -> (states, …, w).
        """
        J = self.model.engine.constraints.jacobian(q)[:, self.rows]
        inverse = np.linalg.inv(J[:, :, self.bound])
        multipliers = (load[:, None, self.bound] @ inverse)[:, 0]
        _, force_q, gap_q, gap_v = self._changes(q, v, a, multipliers)
        G = np.zeros((len(q), self.model.nv, len(self.free)))
        G[:, self.free, range(len(self.free))] = 1.0
        G[:, self.bound] = -inverse @ J[:, :, self.free]
        beta = np.zeros_like(right)
        beta[:, self.bound] = -inverse @ places(gap_q, gap_v)
        f = right + places(force_q, None) - M @ beta
        across = np.swapaxes(G, 1, 2)
        return beta + G @ np.linalg.solve(across @ M @ G, across @ f)

    def closed(self, q: Array, v: Array) -> tuple[Array, Array, Followers]:
        """(q, v) on the loops, and how their dependent joints follow."""
        kernels = self.model.engine.constraints
        for _ in range(2):
            J = kernels.jacobian(q)[:, self.rows]
            inverse = -np.linalg.inv(J[:, :, self.bound])
            step, change = np.zeros_like(v), np.zeros_like(v)
            step[:, self.bound] = (inverse @ kernels.residual(q)[:, self.rows, None])[..., 0]
            change[:, self.bound] = (inverse @ (J @ v[..., None]))[..., 0]
            q, v = self.model.tree.integrate(q, step), v + change
        J, _, Jv_q, _ = self._changes(q, np.zeros_like(v), v, np.zeros((len(q), len(self.rows))))
        return q, v, Followers(self.free, self.bound, -np.linalg.inv(J[:, :, self.bound]), J, Jv_q)

    @cached_property
    def _changes(self) -> Any:
        """(q, v, a, λ) -> J, (Jᵀλ)_q, (J a + γ)_q, (J a + γ)_v, in tangent space."""
        engine = self.model.engine
        m, system, nv, r = engine.traced_mechanism, engine.constraints.traced, self.model.nv, len(self.rows)
        inputs = [("q", m.nq), ("v", nv), ("a", nv), ("multipliers", r)]
        outputs = [("J", (r, nv)), ("force_q", (nv, nv)), ("gap_q", (r, nv)), ("gap_v", (r, nv))]

        changes = row_changes(m, system, self.rows)

        def make() -> Any:
            return trace("changes", inputs, changes, m.symbols, engine.constraints.graph)

        source = engine.constraints.source
        kernel = compiled(
            "sensitivities loops", [*inputs, *source.inputs], outputs, make, f"{source.digest} {self.plan.label}"
        )
        return lambda *arrays: kernel(*arrays, *source.given())


def row_changes(m: Mechanism, system: Constraints, rows: Sequence[int], back: float = 0.0) -> Callable[..., Any]:
    """The text (q, v, a, λ) -> J, (Jᵀλ)_q, g_q, g_v of some rows, in tangent space, g = J a + γ + 2α J v + α² φ where
    Baumgarte's α is `back`."""
    nv, r = m.nv, len(rows)

    def text(q: Array, v: Array, a: Array, multipliers: Array, *, domain: Domain) -> Array:
        J = system.jacobian(q, domain=domain)[rows]
        gap = J @ a + system.bias(q, v, domain=domain)[rows]
        if back:
            speed, off = system.velocity(q, v, domain=domain)[rows], system.residual(q, domain=domain)[rows]
            gap = gap + speed * domain.const(2 * back) + off * domain.const(back**2)
        return np.concatenate([J.T @ multipliers, gap])

    def changes(q: Array, v: Array, a: Array, multipliers: Array, *, domain: Domain) -> tuple[Array, ...]:
        still, none = domain.zeros(nv), domain.zeros(r)
        ways = [(rate(m, q, e, domain=domain), still, still, none) for e in domain.eye(nv)]
        ways += [(domain.zeros(m.nq), e, still, none) for e in domain.eye(nv)]
        found = np.array(along(text, (q, v, a, multipliers), ways, domain), dtype=domain.dtype).T
        J = system.jacobian(q, domain=domain)[rows]
        return J, found[:nv, :nv], found[nv:, :nv], found[nv:, nv:]

    return changes


__all__ = ["Followers", "Loops", "are_described", "move_nothing", "row_changes"]
