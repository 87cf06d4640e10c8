"""What a printed model consists of, the same for every language: titles, and named expressions under them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

if TYPE_CHECKING:
    from polybody.symbolic.model import SymbolicModel


@dataclass(frozen=True)
class Section:
    """A title, a sentence, and (letter, indices, expression) for each formula."""

    title: str
    text: str
    formulas: list[tuple[str, str, Any]]


def sections(model: SymbolicModel) -> list[Section]:
    """Kinematics, inertia, velocity terms, potential and its forces, springs and dampers."""
    n = len(model.q)
    rates = model.kinematic_matrix() * sympy.Matrix(model.p)
    M, velocity, potential = model.mass_matrix(), model.velocity_forces(), model.potential_forces()
    passive = model.passive_forces()
    result = [
        Section("Kinematics", "The coordinates' rates in terms of the quasi-velocities, q̇ = V(q) p.",
                [(f"{x.name}_dot", "", rates[k]) for k, x in enumerate(model.q)]),
        Section("Inertia", "The matrix M(q), symmetric: entries on and above the diagonal; zeros are left out.",
                [("M", f"{i + 1}{j + 1}" if n < 10 else f"{i + 1},{j + 1}", M[i, j])
                 for i in range(n) for j in range(i, n) if M[i, j] != 0]),
        Section("Velocity forces", "h = C(q, p) p.", [("h", str(k + 1), velocity[k]) for k in range(n)]),
        Section("Gravity", "The potential U(q) of gravity and springs, and the forces F(q) that gravity needs held.",
                [("U", "", model.potential_energy()), *(("F", str(k + 1), potential[k]) for k in range(n))]),
    ]  # fmt: skip
    if any(x != 0 for x in passive):
        result.append(Section("Springs and dampers", "What they exert, f(q, p).",
                              [("f", str(k + 1), passive[k]) for k in range(n) if passive[k] != 0]))  # fmt: skip
    return result + model.constraint_sections()


def parameter_rows(model: SymbolicModel) -> list[tuple[Any, str, str]]:
    """(symbol, number, meaning) of every parameter."""
    meanings = model.meanings()
    return [(s, "" if value != value else f"{value:.7g}", meanings.get(s, "")) for s, value in model.parameters.items()]


__all__ = ["Section", "parameter_rows", "sections"]
