"""A part whose modes differ in the right sides of its equations only: its mode becomes a number in the equations.

    free: t = 0        high: t = k (φ − φ_max)        →        t = select(mode; 0, k (φ − φ_max))

Six joints with stops would have 3⁶ combinations of modes; so they have one. Parts whose modes differ otherwise (of a
diode: i = g v or v = r i; of a clutch: t = c or ẇ = 0) can be `whole`: the residual is selected, and its block of
equations is solved with pivots chosen at each state, since no coefficient is sure to be there in every mode. States
are then those of all modes: a clutch between inertias slips and sticks with the same ones. `regular` says whether that
is so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.networks.component import Lookup, PartComponent, Port, Variable
from polybody.networks.expressions import casadi_functions

if TYPE_CHECKING:
    from polybody.networks.system import System

#: the name of the mode among a component's inputs
MODE = "(mode)"


@dataclass(frozen=True, eq=False)
class SelectedComponent:
    """A `PartComponent` with its mode as an input."""

    inner: PartComponent
    whole: bool = False  # residuals are selected, not right sides

    @property
    def numeric(self) -> bool:
        """Whether its equations are solved by numbers at each state."""
        return self.whole

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def ports(self) -> tuple[Port, ...]:
        return self.inner.ports

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.inner.variables

    @property
    def inputs(self) -> dict[str, Any]:
        return {**self.inner.inputs, self.selector: 0.0}

    @property
    def selector(self) -> str:
        return f"{self.name}.{MODE}"

    @property
    def links(self) -> dict[str, str]:
        return self.inner.links

    @property
    def modes(self) -> list[str]:
        return list(self.inner.part.alternatives)

    def equations(self, mode: str | None, lookup: Lookup, der: Callable[[Any], Any]) -> list[Any]:
        table = casadi_functions(der)
        read = lambda text: self.inner._read(text, lookup, table)  # noqa: E731
        part = self.inner.part
        residuals = [read(left) - read(right) for left, right in part.common]
        for rows in zip(*(said.equations for said in part.alternatives.values()), strict=True):
            if self.whole:
                residuals.append(chosen(lookup(MODE), [read(left) - read(right) for left, right in rows]))
                continue
            rights = [read(right) for _, right in rows]
            residuals.append(read(rows[0][0]) - chosen(lookup(MODE), rights))
        return residuals

    def conditions(self, lookup: Lookup) -> list[tuple[int, Any]]:
        """[(mode to enter, SX that is positive where it must be)]; those of other modes are far from it."""
        import casadi as ca

        found = []
        for at, mode in enumerate(self.modes):
            for other, expression in self.inner.conditions(mode, lookup).items():
                found.append((self.modes.index(other), ca.if_else(lookup(MODE) == at, expression, -1.0)))
        return found

    def power(self, lookup: Lookup) -> tuple[Any, Any]:
        return self.inner.power(lookup)

    def reads(self, port: Port) -> bool:
        return self.inner.reads(port)

    def character(self, port: Port) -> str:
        return self.inner.character(port)


def chosen(selector: Any, values: list[Any]) -> Any:
    """values[selector] as an expression."""
    import casadi as ca

    result = ca.SX(values[0])
    for k, value in enumerate(values[1:], start=1):
        result = ca.if_else(selector == k, value, result)
    return result


def selectable(part: PartComponent) -> bool:
    """Whether the modes of a part differ in right sides only: x = …, the same x in each, and no derivatives."""
    modes = list(part.part.alternatives.values())
    if not modes:
        return False
    for rows in zip(*(mode.equations for mode in modes), strict=True):
        names = {left.text for left, _ in rows}
        if len(names) != 1 or not next(iter(names)).replace(".", "").isidentifier():
            return False
        if any("der(" in right.text or names & set(right.names()) for _, right in rows):
            return False
    return True


def derives(part: PartComponent) -> bool:
    """Whether derivatives stand in the equations of a part's modes."""
    return any("der(" in side.text for mode in part.part.alternatives.values() for e in mode.equations for side in e)


def regular(system: System, part: SelectedComponent) -> bool:
    """Whether the iterated unknowns follow from the states in every mode of a part, at a point in general position."""
    import casadi as ca

    g = ca.vertcat(*system.algebraic_expressions, ca.SX(0, 1))
    slopes = system.function("slopes", [ca.vec(ca.densify(ca.jacobian(g, system.a)))])
    s = np.random.default_rng(1).uniform(0.4, 1.6, size=slopes.size1_in(0))
    for name in system.called:
        if name.endswith(f".{MODE}"):
            s[system.n + system.m + list(system.called).index(name)] = 0.0
    place = system.n + system.m + list(system.called).index(part.selector)
    for mode in range(len(part.modes)):
        s[place] = float(mode)
        A = np.asarray(slopes(s)).reshape(system.m, system.m)
        A = A / np.maximum(np.abs(A).max(axis=1, keepdims=True), 1e-300)
        A = A / np.maximum(np.abs(A).max(axis=0, keepdims=True), 1e-300)
        if not np.isfinite(A).all() or (system.m and np.linalg.svd(A, compute_uv=False)[-1] < 1e-13):
            return False
    return True


__all__ = ["MODE", "SelectedComponent", "chosen", "derives", "regular", "selectable"]
