"""A kind of part: its terminal graph and its equations, as data.

    pb.Part("resistor", ports="electrical", parameters={"resistance": "ohm"}, equations=["v = resistance*i"])

A port is an edge of the system graph between two terminals; its across variable is that of its first terminal over its
second, its through variable flows into the part at the first. Power into the part is their product. With p ports and
n variables a part has p + n equations. Letters are those of `energy.DOMAINS`: v and i, w and t, v and f, p and q, x.

A part with several modes (a diode, a clutch) has equations for each, and conditions that lead to others:

    modes={"off": {"equations": ["i = 0"], "to": {"on": "v > 0"}},
           "on": {"equations": ["v = 0"], "to": {"off": "i < 0"}}}

`energy` is what it stores and `loss` what it turns into heat, for the energy audit: d energy/dt = power in − loss. A
part without them counts with its power as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polybody.errors import InputError, warn
from polybody.names import counted, nearest
from polybody.networks.energy import EnergyDomain, domain_named
from polybody.networks.expressions import Text, parse, parse_condition, parse_equation
from polybody.networks.units import unit_of, value_of

Equation = tuple[Text, Text]


@dataclass(frozen=True)
class Parameter:
    """Its unit, its default (None: it must be given), whether it may change in time, whether it must be positive."""

    unit: str
    default: float | str | None = None
    input: bool = False
    positive: bool = False


#: parameters that no passive part has below zero; a negative resistance may stand for an active circuit
PASSIVE = frozenset({
    "resistance", "conductance", "damping", "capacity", "inductance", "inertance", "mass", "inertia", "rotor_inertia",
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class Mode:
    """Equations that hold in a mode, and the conditions (positive: leave) under which others follow."""

    equations: tuple[Equation, ...]
    to: dict[str, Text]


@dataclass(frozen=True, eq=False)
class Part:
    """A type of part. `ports` is a domain for a single unnamed port, or {port: domain}.

    `parameters` is {name: unit} or {name: (unit, default)}, the default a number or the name of an earlier parameter; a
    unit that ends in "!" requires a positive number. `equations` are the terminal equations. `inputs` names parameters
    that may be functions of time. `variables` is {name: unit or (unit, start)}.
    """

    name: str
    ports: Any
    parameters: Any = field(default_factory=dict)
    equations: Sequence[str] = ()
    variables: Any = field(default_factory=dict)
    inputs: Sequence[str] = ()
    modes: Mapping[str, Any] | None = None  # {mode: equations and conditions} of parts that switch
    energy: str | None = None  # expression of the stored energy
    loss: str | None = None  # expression of the dissipated power
    doc: str = ""  # one line for lists of parts

    def __post_init__(self) -> None:
        put: Callable[[str, Any], None] = lambda key, value: object.__setattr__(self, key, value)  # noqa: E731
        ports = {"": self.ports} if isinstance(self.ports, str) else dict(self.ports)
        put("ports", {name: domain_named(domain) for name, domain in ports.items()})
        put("parameters", {name: _parameter(name, said, name in self.inputs) for name, said in
                           dict(self.parameters).items()})
        put("variables", {name: _variable(said) for name, said in dict(self.variables).items()})
        put("common", tuple(parse_equation(text) for text in self.equations))
        put("alternatives", {name: _mode(self.name, name, said) for name, said in (self.modes or {}).items()})
        put("stored", None if self.energy is None else parse(self.energy))
        put("heat", None if self.loss is None else parse(self.loss))
        self._check()

    common: tuple[Equation, ...] = field(init=False, default=())  # equations that hold in every mode
    alternatives: dict[str, Mode] = field(init=False, default_factory=dict)  # equations by mode
    stored: Text | None = field(init=False, default=None)  # `energy`, parsed
    heat: Text | None = field(init=False, default=None)  # `loss`, parsed

    @property
    def domains(self) -> dict[str, EnergyDomain]:
        """Energy domain of each port, by the port's name."""
        return self.ports

    def first_mode(self) -> str | None:
        """Mode in which the part starts; None for a part without modes."""
        return next(iter(self.alternatives), None)

    def equations_in(self, mode: str | None) -> tuple[Equation, ...]:
        """Equations of a mode."""
        return self.common + (() if mode is None else self.alternatives[mode].equations)

    def letters(self) -> dict[str, tuple[str, str]]:
        """{name in equations: (port, "across" or "through")}."""
        names: dict[str, tuple[str, str]] = {}
        for port, domain in self.domains.items():
            lead = f"{port}." if port else ""
            names[f"{lead}{domain.across}"] = (port, "across")
            names[f"{lead}{domain.through}"] = (port, "through")
        return names

    def _check(self) -> None:
        known = {*self.parameters, *self.variables, *self.letters(), "time"}
        clash = [n for n in self.parameters if n in self.variables or n in self.letters() or n in self.ports]
        if clash:
            raise InputError(f"part {self.name!r}: {clash[0]!r} is a parameter and something else too")
        for name in self.inputs:
            if name not in self.parameters:
                raise InputError(f"part {self.name!r}: the input {name!r} is none of its parameters")
        texts = [side for mode in [None, *self.alternatives] for e in self.equations_in(mode) for side in e]
        texts += [condition for mode in self.alternatives.values() for condition in mode.to.values()]
        texts += [text for text in (self.stored, self.heat) if text is not None]
        for text in texts:
            for name in text.names():
                if name not in known:
                    raise InputError(f"part {self.name!r}: {text.text!r} uses {name!r}, which is none of "
                                     f"{', '.join(sorted(known))}{nearest(name, known)}")
        wanted = len(self.ports) + len(self.variables)
        for mode in self.alternatives or {None: None}:
            count = len(self.equations_in(mode))
            where = "" if mode is None else f" in mode {mode!r}"
            if count != wanted:
                raise InputError(f"part {self.name!r} has {counted(count, 'equation')}{where}; "
                                 f"{counted(len(self.ports), 'port')} and {counted(len(self.variables), 'variable')} "
                                 f"need {wanted}")
        for mode, said in self.alternatives.items():
            for other in said.to:
                if other not in self.alternatives:
                    raise InputError(f"part {self.name!r}: mode {mode!r} leads to {other!r}, which is not a mode of it")

    def values(self, owner: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Parameter values by name: numbers in SI units; inputs may also be functions of time or expressions."""
        for name in given:
            if name not in self.parameters:
                has = ", ".join(self.parameters) or "none"
                raise InputError(f"{owner}: {self.name!r} has no parameter {name!r}{nearest(name, self.parameters)}; "
                                 f"it has {has}")
        result: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if name not in given and parameter.default is None:
                unit = f", in {parameter.unit}" if parameter.unit else ""
                raise InputError(f"{owner}: {self.name!r} needs its {name}{unit}")
            said = given.get(name, parameter.default)
            if name not in given and isinstance(said, str):
                if said not in result:
                    raise InputError(f"part {self.name!r}: the default of {name!r} is {said!r}; expected a number, or "
                                     "the name of a parameter before it")
                said = result[said]
            result[name] = value = _given(f"{owner}: {name}", parameter, said)
            if name in PASSIVE and isinstance(value, float) and value < 0:
                warn(f"{owner}: {name} is {value:g} {parameter.unit}; a part with a negative one supplies energy")
        return result


def _given(what: str, parameter: Parameter, said: Any) -> Any:
    if parameter.input and callable(said):
        return said
    if parameter.input and isinstance(said, str):
        try:
            return value_of(said, parameter.unit, what)
        except InputError as failure:
            if "time" not in said:  # no expression in time: what the number lacks is more to the point
                raise failure from None
            text = parse(said)
            others = [name for name in text.names() if name != "time"]
            if others:
                raise InputError(f"{what} is {said!r}, which uses {others[0]!r}; an input is an expression in `time`") \
                    from None
            return text
    if isinstance(said, str) and "time" in said and not parameter.input:
        raise InputError(f"{what} is {said!r}, but it cannot change in time; expected a number")
    value = value_of(said, parameter.unit, what)
    if parameter.positive and not value > 0:
        raise InputError(f"{what} is {value:g}, expected a number above zero")
    return value


def _parameter(name: str, said: Any, is_input: bool) -> Parameter:
    unit, default = (said, None) if isinstance(said, str) else said
    positive = unit.endswith("!")
    unit = unit.removesuffix("!")
    unit_of(unit)  # says what is wrong with it
    named = default is None or (isinstance(default, str) and default.isidentifier())  # another's value
    return Parameter(unit, default if named else value_of(default, unit, name), is_input, positive)


def _variable(said: Any) -> tuple[str, float]:
    unit, start = (said, 0.0) if isinstance(said, str) else said
    unit_of(unit)
    return unit, float(start)


def _mode(part: str, name: str, said: Any) -> Mode:
    if not isinstance(said, Mapping) or set(said) - {"equations", "to"}:
        raise InputError(f"part {part!r}: mode {name!r} wants `equations` and `to`, and nothing else")
    equations = tuple(parse_equation(text) for text in said.get("equations", ()))
    return Mode(equations, {other: parse_condition(text) for other, text in said.get("to", {}).items()})


__all__ = ["Equation", "Mode", "Parameter", "Part"]
