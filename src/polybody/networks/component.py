"""What a network is put together from, seen by the assembly: edges, variables and equations over CasADi.

`PartComponent` is an entry of the library at its nodes; `models.ModelComponent` is a whole `Model`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from polybody.networks.energy import GROUND, EnergyDomain
from polybody.networks.expressions import Text, casadi_functions
from polybody.networks.part import Part
from polybody.properties import cached_property

#: name in the component's own words ("winding.i", "angle") -> SX
Lookup = Callable[[str], Any]


@dataclass(frozen=True)
class Port:
    """An edge of the graph: `own` is its name within the component ("" for a lone one)."""

    name: str
    own: str
    head: str
    tail: str
    domain: EnergyDomain
    keep: int = 0  # how much its unknown should stay a state where one of several may


@dataclass(frozen=True)
class Variable:
    """An unknown of a component besides its ports' variables."""

    name: str
    own: str
    unit: str
    start: float
    keep: int = 1  # how much it should stay a state where one of several may


class Component(Protocol):
    """A part, a model: anything with edges and equations."""

    @property
    def name(self) -> str: ...

    @property
    def ports(self) -> tuple[Port, ...]: ...

    @property
    def variables(self) -> tuple[Variable, ...]: ...

    @property
    def inputs(self) -> Mapping[str, Any]:
        """{name: number, expression in time, or function of time} that may change in time."""
        ...

    def equations(self, mode: str | None, lookup: Lookup, der: Callable[[Any], Any]) -> list[Any]:
        """Residuals that are zero."""
        ...

    def power(self, lookup: Lookup) -> tuple[Any, Any]:
        """(stored energy or None, loss): SX."""
        ...

    def reads(self, port: Port) -> bool:
        """Whether it only reads the signal at a port."""
        ...

    def character(self, port: Port) -> str:
        """across driver, across state, plain, through state, or through driver: where its edge belongs."""
        ...


@dataclass(frozen=True)
class Occurrence:
    """Whether equations have a variable, and its derivative."""

    used: bool
    derived: bool


@dataclass(frozen=True, eq=False)
class PartComponent:
    """An entry of the part library, connected and with numbers."""

    name: str
    part: Part
    nodes: dict[str, tuple[str, str]]
    values: dict[str, Any]
    source: str = ""
    links: dict[str, str] = field(default_factory=dict)  # parameters that are variables of other components
    impacts: frozenset[str] = frozenset()  # modes that are entered with an impact
    range: tuple[float, float] | None = None  # of what `place` is linked to: limits of a joint
    law: bool = False  # limits or friction of a model's joint, by `joint_laws`: its inputs are no sources
    ports: tuple[Port, ...] = field(init=False)
    variables: tuple[Variable, ...] = field(init=False)

    def __post_init__(self) -> None:
        ports = tuple(
            Port(f"{self.name}.{own}" if own else self.name, own, *self.nodes[own], domain)
            for own, domain in self.part.domains.items()
        )
        object.__setattr__(self, "ports", ports)
        variables = tuple(Variable(f"{self.name}.{own}", own, unit, start)
                          for own, (unit, start) in self.part.variables.items())
        object.__setattr__(self, "variables", variables)

    @property
    def inputs(self) -> dict[str, Any]:
        return {f"{self.name}.{key}": self.values[key] for key, said in self.part.parameters.items() if said.input}

    def _read(self, text: Text, lookup: Lookup, functions: dict[str, Any]) -> Any:
        def find(name: str) -> Any:
            if name in self.links:
                return lookup(name)
            if name in self.part.parameters and not self.part.parameters[name].input:
                return self.values[name]
            return lookup(name)

        return text.value(find, functions)

    def equations(self, mode: str | None, lookup: Lookup, der: Callable[[Any], Any]) -> list[Any]:
        table = casadi_functions(der)
        return [self._read(left, lookup, table) - self._read(right, lookup, table)
                for left, right in self.part.equations_in(mode)]

    def conditions(self, mode: str, lookup: Lookup) -> dict[str, Any]:
        """{other mode: SX that is positive where it must be entered}."""
        table = casadi_functions()
        return {other: self._read(text, lookup, table) for other, text in self.part.alternatives[mode].to.items()}

    def power(self, lookup: Lookup) -> tuple[Any, Any]:
        stored, heat = self.part.stored, self.part.heat
        table = casadi_functions()
        return (None if stored is None else self._read(stored, lookup, table),
                0.0 if heat is None else self._read(heat, lookup, table))

    @property
    def audited(self) -> bool:
        """Whether it says what it stores or loses; else its power counts as supplied."""
        return self.part.stored is not None or self.part.heat is not None

    def reads(self, port: Port) -> bool:
        name = f"{port.own}.{port.domain.through}" if port.own else port.domain.through
        equations = [e for mode in self.part.alternatives or [None] for e in self.part.equations_in(mode)]
        return any(left.text == name and right.text == "0" for left, right in equations)

    def character(self, port: Port) -> str:
        across, through = (self._occurs[(port.own, kind)] for kind in ("across", "through"))
        if across.used and not through.used:
            return "across state" if across.derived else "across driver"
        if through.used and not across.used:
            return "through state" if through.derived else "through driver"
        if across.derived:
            return "across state"
        # a spring: its own variable is a state, and its through variable follows from it
        return "through state" if through.derived or (port.own == "" and self.part.variables) else "plain"

    @cached_property
    def _occurs(self) -> dict[tuple[str, str], Occurrence]:
        """Whether equations have each across and through variable, and its derivative, with the numbers as they are."""
        import casadi as ca

        letters = self.part.letters()
        names = [*letters, *self.part.variables, "time", *self.part.parameters]
        symbols = {name: ca.SX.sym(name) for name in names}
        rates = {name: ca.SX.sym(f"der {name}") for name in names}
        column, changes = ca.vertcat(*symbols.values()), ca.vertcat(*rates.values())

        def der(x: Any) -> Any:
            return ca.jtimes(x, column, changes) if isinstance(x, ca.SX) else 0.0

        residuals = [ca.SX(r) for mode in self.part.alternatives or [None]
                     for r in self.equations(mode, symbols.__getitem__, der)]
        every = ca.vertcat(*residuals)
        return {where: Occurrence(ca.depends_on(every, ca.vertcat(symbols[name], rates[name])),
                                  ca.depends_on(every, rates[name])) for name, where in letters.items()}


__all__ = ["GROUND", "Component", "Lookup", "PartComponent", "Port", "Variable"]
