"""Impacts of joints with their limits, for what is exported: tables, and slopes by the impulses.

As `joint_laws.impact`: in modes in which nothing sticks, an impulse at the node of a joint moves the states by ∂ẋ/∂push
and its speed by N = ∂w/∂x; impulses solve 0 ≤ λ ⊥ N x⁺ + e N x⁻ ≥ 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polybody.networks.export.selected import SelectedComponent
from polybody.networks.joint_laws import released
from polybody.networks.system import System


@dataclass(frozen=True)
class Limit:
    """A joint that has limits: its place among the parts whose mode is data, the numbers of its modes (−1: none)."""

    selector: int
    upper: int
    lower: int
    across: str  # its speed
    push: str  # the input that is its impulse


def limits_of(selected: Sequence[SelectedComponent]) -> list[Limit]:
    """Joints whose limits act."""
    found = []
    for k, part in enumerate(selected):
        if part.inner.impacts:
            port = part.ports[0]
            upper, lower = (part.modes.index(m) if m in part.inner.impacts else -1 for m in ("upper", "lower"))
            found.append(Limit(k, upper, lower, f"{port.name}.{port.domain.across}", f"{part.name}.push"))
    return found


def released_values(selected: Sequence[SelectedComponent]) -> list[list[int]]:
    """Of each part and mode, the mode in which it gives no impulse."""
    return [[part.modes.index(released(part.inner, mode)) for mode in part.modes] for part in selected]


def strike(
    system: System, limits: Sequence[Limit], read: Callable[[list[Any]], list[Any]], f: Any, g: Any, pushes: Any,
    x: Any, own_a: Any, rows: Callable[[Any, Any], Any],
) -> list[Any]:  # fmt: skip
    """[∂ẋ/∂push, ∂g/∂push, ∂w/∂x, ∂w/∂a, w]."""
    import casadi as ca

    table = system.assembly.observables()
    w = ca.densify(ca.vertcat(*read(system.closed([table[limit.across] for limit in limits]))))
    return [rows(f, pushes), rows(g, pushes), rows(w, x), rows(w, own_a), w]


__all__ = ["Limit", "limits_of", "released_values", "strike"]
