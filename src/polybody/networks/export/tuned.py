"""Numbers of parts and models that stay free in what is exported, and which values they may have.

A tunable number is an input that does not change in time. Of a part it must not be zero: zero may take a state away
(an inductance), so the structure of the equations would be another. A model's number is one of `with_parameters`, with
the bounds that it has there; several together (inertias, axes) are looked at by the model's own margins.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polybody.description.parameters import Parameter, matching, parameters_of
from polybody.errors import InputError
from polybody.model.parameters import NEVER_ZERO
from polybody.names import listed, nearest
from polybody.networks.component import Component, PartComponent
from polybody.networks.joint_laws import changes_sticking
from polybody.networks.models import ModelComponent
from polybody.networks.system import System
from polybody.simulation.friction import rubbing


@dataclass(frozen=True)
class Tunable:
    """Bounds of a number; `beyond`: the lower one itself is not possible; `nonzero`: zero is not."""

    unit: str
    lower: float = -np.inf
    upper: float = np.inf
    beyond: bool = False
    nonzero: bool = False


def tunable_names(components: Sequence[Component], patterns: Sequence[str], sticking: bool) -> dict[str, Tunable]:
    """{"R1.resistance": its bounds} of the numbers that patterns name, and of parameters that models have."""
    known: dict[str, tuple[Component, Any]] = {}
    found: dict[str, Tunable] = {}
    for part in components:
        if isinstance(part, PartComponent) and not part.law:
            known |= {f"{part.name}.{key}": (part, key) for key, said in part.part.parameters.items() if not said.input}
        elif isinstance(part, ModelComponent) and part.reduced is None:
            known |= {f"{part.prefix}{p.name}": (part, p) for p in _numbers(part, sticking)}
            found |= {f"{part.prefix}{p.name}": _of_model(part, p) for p in part.model.parameters}
    for pattern in patterns:
        chosen = matching(pattern, known)
        if not chosen:
            raise InputError(f"parameters: no number of a part or model is {pattern!r}{nearest(pattern, known)}; "
                             f"available: {listed(list(known)) or 'none'}{_why_not(components, pattern, sticking)}")
        for name in chosen:
            part, key = known[name]
            if isinstance(part, ModelComponent):
                if not _takes_a_state(part, key):
                    found[name] = _of_model(part, key)
                    continue
            elif isinstance(part, PartComponent) and part.values[key] != 0:
                said = part.part.parameters[key]
                found[name] = Tunable(said.unit, 0.0 if said.positive else -np.inf, np.inf, said.positive, True)
                continue
            if name == pattern:
                raise InputError(f"parameters: {name!r} is 0, and with another value the network may have other "
                                 "states; give it a value that is not zero before exporting")
    return found


def _numbers(part: ModelComponent, sticking: bool) -> list[Parameter]:
    rubs = bool(rubbing(part.model.mechanism))
    return [p for p in parameters_of(part.model.description) if not sticking or not changes_sticking(p, rubs)]


def _why_not(components: Sequence[Component], pattern: str, sticking: bool) -> str:
    names = {f"{part.prefix}{p.name}": p for part in components if isinstance(part, ModelComponent)
             for p in parameters_of(part.model.description)}
    hidden = matching(pattern, names)
    if not hidden:
        return ""
    if sticking and any(".friction." in name for name in hidden):
        return f". {hidden[0]!r} is one of those by which joints stick; friction='smooth' lets it be a parameter"
    return f". {hidden[0]!r} is a number of a reduced sub-network, which are constants"


def _takes_a_state(part: ModelComponent, p: Parameter) -> bool:
    return p.place[0] == "motors" and p.place[2] == "inductance" and p.nominal == 0


def _of_model(part: ModelComponent, p: Parameter) -> Tunable:
    state = p.place[0] == "motors" and p.place[2] == "inductance"
    return Tunable(p.unit, p.lower, p.upper, p.positive or state, p.place[2] in NEVER_ZERO)


def tunable(part: Component, names: Mapping[str, Tunable]) -> Component:
    """The component with these numbers as inputs."""
    if isinstance(part, ModelComponent):
        own = [p.name for p in parameters_of(part.model.description) if f"{part.prefix}{p.name}" in names]
        same = part.reduced is not None or set(own) == set(part.model.parameters.names)
        return part if same else replace(part, model=part.model.with_parameters(*own))
    if not isinstance(part, PartComponent):
        return part
    own = {key for key in part.part.parameters if f"{part.name}.{key}" in names}
    if not own:
        return part
    kind = copy.copy(part.part)
    object.__setattr__(kind, "parameters", {key: replace(said, input=said.input or key in own)
                                            for key, said in part.part.parameters.items()})
    return replace(part, part=kind)


def may_become_poor(system: System) -> bool:
    """Whether the choice of states depends on the configuration, not on parameters alone."""
    import casadi as ca

    pivots = system.equations.reduced.pivots
    if pivots is None:
        return False
    constant = {system.assembly.inputs[name].element_hash() for name in system.assembly.constant}
    return any(s.element_hash() not in constant for level in pivots.levels for s in ca.symvar(level.slopes))


def margins(models: Sequence[ModelComponent], names: Sequence[str]) -> list[Any]:
    """Functions p -> negative where several numbers of a model together are not possible."""
    import casadi as ca

    made = []
    for part in models:
        if part.inputs:
            p = ca.SX.sym("p", len(names))
            own = ca.vertcat(*(p[names.index(name)] for name in part.inputs))
            worst = part.model.parameters.margin_function().call([own])[0]
            made.append(ca.Function(f"margin_{len(made)}", [p], [worst], ["p"], ["margin"]))
    return made


__all__ = ["Tunable", "margins", "may_become_poor", "tunable", "tunable_names"]
