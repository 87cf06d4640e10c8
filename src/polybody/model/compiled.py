"""Kernels of a model by name, built when first asked for."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.mechanism.mechanism import Mechanism
from polybody.mechanism.reduction import reduced
from polybody.model.quantities import QUANTITIES, Quantity
from polybody.model.tracing import compiled

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray

#: Methods whose positional arguments are exactly their kernel's.
SHORTENED = frozenset(
    {
        "inverse_dynamics",
        "forward_dynamics",
        "mass_matrix",
        "coriolis_matrix",
        "bias_forces",
        "gravity_forces",
        "passive_forces",
        "energy",
        "momentum",
        "center_of_mass",
        "difference",
    }
)


class CompiledAnswers:
    """Kernels by name, built when first asked for."""

    mechanism: Mechanism
    _kernels: dict[str, Kernel]

    def kernel(self, quantity: str | Quantity) -> Kernel:
        """The compiled kernel of a quantity."""
        chosen = QUANTITIES[quantity] if isinstance(quantity, str) else quantity
        if chosen.name not in self._kernels:
            m = self.mechanism

            def body(*arrays: Array, domain: Any) -> Any:
                return chosen.text(self.lean_mechanism if chosen.lean else m, *arrays, domain=domain)

            self._kernels[chosen.name] = compiled(m, chosen.name, chosen.arguments, chosen.shapes(m), body)
            self._shorten(chosen.name)
        return self._kernels[chosen.name]

    @cached_property
    def lean_mechanism(self) -> Mechanism:
        """The mechanism that joint-space kernels are traced from: the same motion from fewer numbers."""
        return self.mechanism if self.mechanism.springs else reduced(self.mechanism)

    def _shorten(self, name: str) -> None:
        """Let a lone state of plain arrays go straight from `model.name(...)` to machine code.

        The builtin stands in the instance, in front of the method of that name, and hands every other call to it.
        """
        method = getattr(type(self), name, None)
        if name not in SHORTENED or method is None:
            return
        owner = weakref.ref(self)

        def fallback(*args: Any, **options: Any) -> Any:
            return method(owner(), *args, **options)

        self.__dict__[name] = self._kernels[name].fast(fallback, name, method.__doc__ or "")

    def __reduce__(self) -> Any:
        return type(self), (self.mechanism,)


__all__ = ["CompiledAnswers"]
