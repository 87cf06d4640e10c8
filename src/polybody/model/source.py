"""What kernels are traced from: a mechanism of numbers, or one some of whose numbers are inputs, and their values.

Kernels of the second kind take the inputs, `parameters`, after all other arguments. Engines at other values share
compiled code: nothing is compiled when values change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.late import dataclass
from polybody.mechanism.mechanism import Mechanism
from polybody.mechanism.variation import Variation
from polybody.properties import cached_property

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Source:
    """A mechanism as numbers and, where some of them are inputs, which (`variation`) and at what `values`."""

    mechanism: Mechanism
    variation: Variation | None = None
    values: Array | None = None

    @cached_property
    def traced(self) -> Mechanism:
        """The mechanism that texts are read with: the one of numbers, or that of symbols."""
        if self.variation is None:
            return self.mechanism
        symbolic = self.variation.symbolic
        return symbolic if self.mechanism.constrained else symbolic.cut()

    @property
    def digest(self) -> str:
        return self.mechanism.digest if self.variation is None else self.variation.digest

    @property
    def inputs(self) -> list[tuple[str, int]]:
        """(name, size) of what kernels take beside a state's arrays."""
        return [] if self.variation is None else [("parameters", len(self.variation))]

    def given(self, parameters: Array | None = None) -> tuple[Array, ...]:
        """The arrays of `inputs`: these values, or its own."""
        if self.variation is None:
            return ()
        return (parameters,) if parameters is not None else (self.values,)  # type: ignore[return-value]

    def cut(self) -> Source:
        """That of the tree alone."""
        return Source(self.mechanism.cut(), self.variation, self.values)

    def at(self, values: Array) -> Source:
        """The same at other values."""
        assert self.variation is not None
        mechanism = self.variation.mechanism(values)
        return Source(mechanism if self.mechanism.constrained else mechanism.cut(), self.variation, values)


@dataclass(frozen=True, eq=False)
class Supplied:
    """A kernel with the parameters it is given after all other arguments."""

    kernel: Any
    source: Source

    def __call__(self, *arrays: Any, parameters: Array | None = None, **options: Any) -> Any:
        return self.kernel(*arrays, *self.source.given(parameters), **options)


__all__ = ["Source", "Supplied"]
