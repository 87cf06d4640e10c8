"""The equations of motion as one object, and their linearisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from polybody.errors import InputError
from polybody.names import counted


@dataclass(frozen=True, eq=False)
class Equations:
    """𝓜(q) ṗ + 𝓒(q, p) p + 𝓕(q) = Q + passive(q, p),   q̇ = V(q) p."""

    q: Any
    p: Any
    p_dot: Any
    Q: Any
    kinematic_matrix: Any
    mass_matrix: Any
    velocity_forces: Any
    potential_forces: Any
    passive_forces: Any

    def bias(self) -> Any:
        """𝓒p + 𝓕 − passive."""
        return self.velocity_forces + self.potential_forces - self.passive_forces

    def dynamics(self) -> list[Any]:
        """One SymPy equation a degree of freedom."""
        left = self.mass_matrix * self.p_dot + self.bias()
        return [sympy.Eq(left[k], self.Q[k], evaluate=False) for k in range(len(self.Q))]

    def kinematics(self) -> list[Any]:
        """q̇ = V p, the rates as symbols `<q>_dot`."""
        rates = self.kinematic_matrix * self.p
        return [sympy.Eq(sympy.Symbol(f"{x.name}_dot"), rate, evaluate=False)
                for x, rate in zip(self.q, rates, strict=True)]


@dataclass(frozen=True, eq=False)
class Linearization:
    """About a motion (q₀, p₀, ṗ₀):   E δṗ + D δp + K δq = δQ,   δq̇ = V δp + N δq."""

    E: Any
    D: Any
    K: Any
    V: Any
    N: Any
    Q: Any  # the forces that the motion itself needs

    def state_space(self) -> tuple[Any, Any]:
        """(A, B) of δẋ = A δx + B δQ with x = (q, p)."""
        n = self.E.rows
        solved = self.E.LUsolve(sympy.Matrix.hstack(self.K, self.D, sympy.eye(n)))
        top = sympy.Matrix.hstack(self.N, self.V)
        bottom = -solved[:, : 2 * n]
        return sympy.Matrix.vstack(top, bottom), sympy.Matrix.vstack(sympy.zeros(n, n), solved[:, 2 * n :])


def linearized(equations: Equations, q: Any, p: Any, p_dot: Any) -> Linearization:
    """Derivatives of the equations at a motion, given as values in order or by symbol; p and ṗ are zero by default."""
    n = len(equations.q)
    point = (
        _values("q", equations.q, q, n)
        | _values("p", equations.p, p, n)
        | _values("p_dot", equations.p_dot, p_dot, n)
    )
    force = equations.mass_matrix * equations.p_dot + equations.bias()
    rates = equations.kinematic_matrix * equations.p

    def at(matrix: Any) -> Any:
        return matrix.subs(point)

    return Linearization(
        E=at(equations.mass_matrix),
        D=at(force.jacobian(equations.p)),
        K=at(force.jacobian(equations.q)),
        V=at(equations.kinematic_matrix),
        N=at(rates.jacobian(equations.q)),
        Q=at(force),
    )


def _values(what: str, symbols: Any, given: Mapping[Any, Any] | Sequence[Any] | None, n: int) -> dict[Any, Any]:
    if given is None:
        return dict.fromkeys(symbols, sympy.Integer(0))
    if isinstance(given, Mapping):
        by_name = {s.name: s for s in symbols}
        unknown = [str(key) for key in given if str(key) not in by_name]
        if unknown:
            raise InputError(f"linearize: {unknown[0]!r} is not one of {', '.join(by_name)}")
        rest = dict.fromkeys(symbols, sympy.Integer(0))
        return rest | {by_name[str(key)]: sympy.nsimplify(value, rational=True) for key, value in given.items()}
    values = list(given)
    if len(values) != n:
        raise InputError(f"linearize: {what} has {counted(len(values), 'value')}, expected {n}")
    return {s: sympy.nsimplify(x, rational=True) for s, x in zip(symbols, values, strict=True)}


__all__ = ["Equations", "Linearization", "linearized"]
