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

    def character(self, port: Port) -> str:
        """across driver, across state, plain, through state, or through driver: where its edge belongs."""
        ...


@dataclass(frozen=True, eq=False)
class PartComponent:
    """An entry of the part library, connected and with numbers."""

    name: str
    part: Part
    nodes: dict[str, tuple[str, str]]
    values: dict[str, Any]
    source: str = ""
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

    def character(self, port: Port) -> str:
        part, own = self.part, port.own
        across, through = part.uses(own, "across"), part.uses(own, "through")
        if across and not through:
            return "across driver" if not part.derived(own, "across") else "across state"
        if through and not across:
            return "through driver" if not part.derived(own, "through") else "through state"
        if part.derived(own, "across"):
            return "across state"
        if part.derived(own, "through") or any(own == "" and v for v in part.variables):
            return "through state"
        return "plain"


__all__ = ["GROUND", "Component", "Lookup", "PartComponent", "Port", "Variable"]
