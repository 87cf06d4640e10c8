"""The symbolic model of a mechanism with loops: equations with multipliers, and minimal ones.

    𝓜 ṗ + 𝓒 p + 𝓕 = Q_p + passive + Jᵀλ,    φ(q) = 0,    J p = 0,    J ṗ + γ = 0,    q̇ = V p

𝓜, 𝓒p, 𝓕 are those of the tree that is left when loops are cut; φ, J, γ come from the same text as the numbers'
(`constraints`), read over trigonometric polynomials, and rows that vanish identically are left out (a planar
loop holds three directions that nothing moves in). `minimal` eliminates: with u independent, d the others and as many
rows that determine them,

    p = G p_u,   ṗ = G ṗ_u + β,    G_d = −J_d⁻¹J_u,  β_d = −J_d⁻¹γ
    Gᵀ𝓜G ṗ_u + Gᵀ(𝓒p + 𝓕 − passive + 𝓜β) = Gᵀ Q_p

The dependent q of loops stay, bound by φ = 0; followers of linear couplings have no q at all. Lengths of
joints are symbols as ever; the places of cut joints, rods and guides on their links are numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy

from polybody.algebra.domains import domain
from polybody.constraints.elimination import Elimination
from polybody.constraints.plan import Plan
from polybody.constraints.system import Constraints, constraints_of
from polybody.errors import PolybodyError
from polybody.mechanism.columns import velocity_names
from polybody.mechanism.mechanism import Mechanism
from polybody.properties import cached_property
from polybody.symbolic.equations import Equations
from polybody.symbolic.model import SymbolicModel
from polybody.symbolic.printing import to_matrix
from polybody.symbolic.program import Program
from polybody.symbolic.quasi import QuasiEquations, quasi_equations
from polybody.symbolic.sections import Section

Array = np.ndarray
#: dependent coordinates that are solved for by cofactors; more are eliminated one by one
SOLVED_UP_TO = 2
REFUSED = ("inverse_dynamics", "forward_dynamics")


@dataclass(frozen=True, eq=False)
class ConstrainedEquations(Equations):
    """𝓜 ṗ + 𝓒 p + 𝓕 = Q + passive + Jᵀλ with φ(q) = 0 and J ṗ + γ = 0."""

    residual: Any  # φ
    jacobian: Any  # J
    constraint_bias: Any  # γ
    multipliers: Any  # λ

    def dynamics(self) -> list[Any]:
        left = self.mass_matrix * self.p_dot + self.bias()
        right = self.Q + self.jacobian.T * self.multipliers
        return [sympy.Eq(left[k], right[k], evaluate=False) for k in range(len(self.Q))]

    def constraints(self) -> list[Any]:
        """φ = 0, then J ṗ + γ = 0."""
        rates = self.jacobian * self.p_dot + self.constraint_bias
        return [sympy.Eq(x, 0, evaluate=False) for x in (*self.residual, *rates)]


@dataclass(frozen=True, eq=False)
class MinimalEquations:
    """M ṗ_u + bias = Gᵀ Q;  p = G p_u,  ṗ = G ṗ_u + β. `names` are the independent coordinates."""

    names: tuple[str, ...]
    p: Any
    G: Any
    beta: Any
    mass_matrix: Any
    bias: Any


class SymbolicLoops(SymbolicModel):
    """The symbolic face of a mechanism with loops. Get it by `model.symbolic(...)`."""

    honours_loops = True

    def __init__(self, mechanism: Mechanism, *, plan: Plan, **options: Any) -> None:
        super().__init__(mechanism, **options)
        self._plan = plan
        self._options["plan"] = plan

    @cached_property
    def _system(self) -> Constraints:
        """The constraints over the symbolic tree; frames on links stay numbers."""
        return constraints_of(replace(self._closed.mechanism, frames=self.mechanism.frames))

    @cached_property
    def _J(self) -> Array:
        return self._system.jacobian(self._closed.q, domain=self._closed.domain)

    @cached_property
    def _gamma(self) -> Array:
        return self._system.bias(self._closed.q, self._closed.p, domain=self._closed.domain)

    @cached_property
    def _phi(self) -> Array:
        return self._system.residual(self._closed.q, domain=self._closed.domain)

    @cached_property
    def rows(self) -> list[int]:
        """Indices of the constraints that do not vanish identically."""
        domain = self._closed.domain
        return [i for i in range(len(self._system)) if not all(domain.is_zero(x) for x in (*self._J[i], self._phi[i]))]

    @property
    def constraint_names(self) -> list[str]:
        """"loop: direction" of each row that is kept."""
        return [str(self._system.rows[i]) for i in self.rows]

    @property
    def multipliers(self) -> tuple[Any, ...]:
        """λ1 …, one for each row."""
        return tuple(sympy.Symbol(f"lambda{k + 1}") for k in range(len(self.rows)))

    def residual(self) -> Any:
        """φ(q), zero where the loops are closed."""
        return to_matrix(self._phi[self.rows])

    def jacobian(self) -> Any:
        """J(q): φ̇ = J p where the loops are closed."""
        return to_matrix(self._J[self.rows])

    def constraint_bias(self) -> Any:
        """γ(q, p): φ̈ = J ṗ + γ."""
        return to_matrix(self._gamma[self.rows])

    def equations(self) -> ConstrainedEquations:
        """𝓜 ṗ + 𝓒 p + 𝓕 − passive = Q_p + Jᵀλ, φ = 0, J ṗ + γ = 0 and q̇ = V p."""
        tree = super().equations()
        return ConstrainedEquations(
            **vars(tree), residual=self.residual(), jacobian=self.jacobian(), constraint_bias=self.constraint_bias(),
            multipliers=sympy.Matrix(self.multipliers),
        )

    def minimal(self) -> MinimalEquations:
        """The equations in the model's independent coordinates: readable where few are dependent, else as quotients."""
        G, beta = self._motions()
        M = self.mass_matrix()
        h = self.velocity_forces() + self.potential_forces() - self.passive_forces()
        u, names = self._plan.independent, velocity_names(self.mechanism)
        own = tuple(names[k] for k in u), sympy.Matrix([self.p[k] for k in u])
        return MinimalEquations(*own, G, beta, G.T * M * G, G.T * (h + M * beta))

    def quasi(self, B: Any = None, names: Sequence[str] | None = None) -> QuasiEquations:
        """Poincaré's equations in quasi-velocities that keep every constraint identically, J B = 0; G by default."""
        G = self._motions()[0]
        rows = [row for row, _ in self._plan.pivots]  # all others follow from them where the loops are closed
        return quasi_equations(self, G if B is None else B, names, to_matrix(self._J[rows]))

    def _motions(self) -> tuple[Any, Any]:
        """(G, β) of p = G p_u, ṗ = G ṗ_u + β."""
        if self.mechanism.paced:
            raise PolybodyError("velocity relations with right sides have p = G w + b', not p = G w; use equations()")
        return self._solved() if len(self._plan.pivots) <= SOLVED_UP_TO else self._eliminated()

    def _solved(self) -> tuple[Any, Any]:
        """G and β by cofactors of J_d, in which angle sums collect."""
        domain, n = self._closed.domain, len(self.p)
        u, d = list(self._plan.independent), list(self._plan.dependent)
        rows = [row for row, _ in self._plan.pivots]
        J = self._J[rows]
        right = np.concatenate([J[:, u], self._gamma[rows][:, None]], axis=1)
        solved = domain.solve(J[:, d], right)
        G, beta = domain.zeros(n, len(u)), domain.zeros(n)
        for k, column in enumerate(u):
            G[column, k] = domain.const(1)
        for row, column in enumerate(d):
            G[column] = solved[row, : len(u)] * domain.const(-1)
            beta[column] = solved[row, len(u)] * domain.const(-1)
        return to_matrix(G), to_matrix(beta)

    def _eliminated(self) -> tuple[Any, Any]:
        """G and β by the elimination that kernels use, its quotients nested."""
        J, gamma = (np.array(to_matrix(x), dtype=object) for x in (self._J, self._gamma))
        found = Elimination(J, self._plan, domain("sympy"))
        return sympy.Matrix(found.G), sympy.Matrix(found.follow(gamma[:, 0]))

    def linearize(self, *_: Any, **__: Any) -> Any:
        """Refused: closed states are linearised by numbers, `pb.linearize`."""
        raise PolybodyError(
            "the symbolic linearisation is that of a tree; pb.linearize(model, q, v) linearises about a closed state, "
            "and minimal() gives the equations in independent coordinates"
        )

    def program(self, *quantities: str) -> Program:
        """As of a tree: the terms of the equations with multipliers; the tree's own motion raises an error."""
        for name in quantities:
            if name in REFUSED:
                raise PolybodyError(
                    f"program: {name} of the cut tree does not honour the loops; equations() and minimal() do, and "
                    "pb.export_c(model, …) writes it as C"
                )
        return super().program(*quantities)

    def python_source(self, *quantities: str) -> str:
        """A Python module of the terms of the equations: 𝓜 and 𝓒p + 𝓕 − passive by default."""
        return super().python_source(*(quantities or ("mass_matrix", "bias")))

    def constraint_sections(self) -> list[Section]:
        """What a printed model says of its constraints."""
        count = len(self.rows)
        J, gamma, phi = self.jacobian(), self.constraint_bias(), self.residual()
        named = "; ".join(f"{k + 1}: {name}" for k, name in enumerate(self.constraint_names))
        entries = [("J", f"{i + 1},{j + 1}", J[i, j]) for i in range(count) for j in range(J.cols) if J[i, j] != 0]
        return [
            Section("Constraints", f"They hold where every phi is zero ({named}).",
                    [("phi", str(k + 1), phi[k]) for k in range(count)]),
            Section("Constraint Jacobian", "J(q), whose transpose brings the multipliers' loads; zeros are left out.",
                    entries),
            Section("Constraint accelerations", "gamma(q, p) of J p_dot + gamma = 0.",
                    [("gamma", str(k + 1), gamma[k]) for k in range(count)]),
        ]  # fmt: skip


__all__ = ["ConstrainedEquations", "MinimalEquations", "SymbolicLoops"]
