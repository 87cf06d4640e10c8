"""Numbers of parts that stay free in what is exported, and whether a choice of states depends on the configuration.

A tunable number is an input of its part that does not change in time. It must not be zero: zero may take a state away
(an inductance), so the structure of the equations would be another.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from polybody.errors import InputError
from polybody.names import listed, nearest
from polybody.networks.component import Component, PartComponent
from polybody.networks.part import Parameter
from polybody.networks.system import System


def tunable_names(components: Sequence[Component], patterns: Sequence[str]) -> dict[str, Parameter]:
    """{"R1.resistance": its parameter} of the numbers that patterns name."""
    known = {f"{part.name}.{key}": (part, key) for part in components if isinstance(part, PartComponent)
             for key, said in part.part.parameters.items() if not said.input}
    found: dict[str, Parameter] = {}
    for pattern in patterns:
        chosen = [name for name in known if fnmatchcase(name, pattern)]
        if not chosen:
            raise InputError(f"parameters: no number of a part is {pattern!r}{nearest(pattern, known)}; available: "
                             f"{listed(list(known)) or 'none'}. Numbers of models are constants of what is exported")
        for name in chosen:
            part, key = known[name]
            if part.values[key] != 0:
                found[name] = part.part.parameters[key]
            elif name == pattern:
                raise InputError(f"parameters: {name!r} is 0, and with another value the network may have other "
                                 "states; give it a value that is not zero before exporting")
    return found


def tunable(part: Component, names: Mapping[str, Parameter]) -> Component:
    """The component with these numbers as inputs."""
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


__all__ = ["may_become_poor", "tunable", "tunable_names"]
