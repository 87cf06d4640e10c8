"""A mechanism some of whose numbers are inputs: one set of equations for all their values.

`symbolic` is the mechanism built from the description with symbols of an expression graph for those numbers: what is
traced from it has them as further inputs. `mechanism(values)` is the same mechanism with numbers, for everything that
is not compiled. Both come from `mechanism_from`, so that merged links, springs, loops and motors follow.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from polybody.algebra.domains import domain
from polybody.description.parameters import Parameter
from polybody.description.records import Description
from polybody.description.substitution import substituted
from polybody.late import dataclass
from polybody.mechanism.friction import smoothed
from polybody.mechanism.mechanism import Mechanism, mechanism_from
from polybody.properties import cached_property

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Variation:
    """Which numbers of a description are inputs; `couplings` as in `mechanism_from`.

    `smooth` are joints whose dry friction is left out: numbers of it are then inputs that nothing reads.
    """

    description: Description
    parameters: tuple[Parameter, ...]
    couplings: bool = True
    smooth: tuple[str, ...] = ()

    def __reduce__(self) -> Any:
        return type(self), (self.description, self.parameters, self.couplings, self.smooth)  # symbols are made anew

    def __len__(self) -> int:
        return len(self.parameters)

    @cached_property
    def nominal(self) -> Array:
        return np.array([p.nominal for p in self.parameters])

    @cached_property
    def digest(self) -> str:
        """What the compiled code depends on: all other numbers, and which are inputs."""
        bare = substituted(self.description, self.parameters, np.ones(len(self)))
        text = "\n".join([bare.digest(), *(p.name for p in self.parameters), str(self.couplings), *self.smooth])
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def symbolic(self) -> Mechanism:
        """The mechanism with symbols for the inputs."""
        graph: Any = domain("casadi")
        column, scalars = graph.variables("parameters", len(self))
        return replace(self._built(scalars), symbols=(column,))

    def mechanism(self, values: Array) -> Mechanism:
        """The mechanism at some values of the inputs."""
        return self._built(values)

    def _built(self, values: Any) -> Mechanism:
        described = substituted(self.description, self.parameters, values)
        if self.smooth:
            joints = (smoothed(x) if x.name in self.smooth else x for x in described.joints)
            described = replace(described, joints=tuple(joints))
        return mechanism_from(described, couplings=self.couplings)


__all__ = ["Variation"]
