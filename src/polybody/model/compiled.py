"""Kernels of a model by name, built when first asked for."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import FLOAT
from polybody.mechanism.mechanism import Mechanism
from polybody.mechanism.reduction import reduced
from polybody.model import long_chains
from polybody.model.batches import each_state
from polybody.model.tracing import compiled, source_digest
from polybody.quantities.table import QUANTITIES, Quantity

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray

#: Quantities that have a rolled kernel for long chains.
ROLLED = frozenset({"inverse_dynamics", "forward_dynamics"})

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

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self._kernels = {}

    def kernel(self, quantity: str | Quantity) -> Kernel:
        """The compiled kernel of a quantity."""
        chosen = QUANTITIES[quantity] if isinstance(quantity, str) else quantity
        if chosen.name not in self._kernels and chosen.name in ROLLED and self.is_rolled:
            made = long_chains.kernel(self.mechanism, chosen.name)
            if made is not None:
                self._kernels[chosen.name] = made
                self._shorten(chosen.name)
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

    @cached_property
    def is_rolled(self) -> bool:
        """True when inverse and forward dynamics run as recursions over the tree rather than as straight lines."""
        return long_chains.worth_rolling(self.lean_mechanism)

    @cached_property
    def is_long(self) -> bool:
        """Too many joints for straight-line code of any quantity."""
        return len(self.mechanism.joints) > 2 * long_chains.ANY_FROM

    def answer(self, quantity: str | Quantity, *arrays: Array) -> Any:
        """A quantity by its kernel, or for long chains by its text, state by state."""
        if not self.is_long:
            return self.kernel(quantity)(*arrays)
        chosen = QUANTITIES[quantity] if isinstance(quantity, str) else quantity
        shapes = [shape for _, shape in chosen.shapes(self.mechanism)]

        def flat(*state: Array) -> Array:
            values = chosen.text(self.mechanism, *state, domain=FLOAT)
            return np.concatenate([np.ravel(x) for x in (values if isinstance(values, tuple) else (values,))])

        sizes = [int(np.prod(shape, dtype=int)) for shape in shapes]
        rows = each_state(flat, arrays, (sum(sizes),))
        parts = np.split(rows, np.cumsum(sizes)[:-1], axis=-1)
        results = tuple(part.reshape((*rows.shape[:-1], *shape)) for part, shape in zip(parts, shapes, strict=True))
        return results[0] if len(results) == 1 else results

    def compile(
        self,
        name: str,
        inputs: Sequence[tuple[str, int]],
        outputs: Sequence[tuple[str, tuple[int, ...]]],
        function: Callable[[], Any],
    ) -> Kernel:
        """The kernel of a casadi.Function that `function()` makes of this model's mechanism, kept under `name`."""
        if name not in self._kernels:
            self._kernels[name] = compiled(self.mechanism, name, inputs, outputs, _untraced, function=function)
        return self._kernels[name]

    def iterate(
        self, name: str, sizes: tuple[int, int, int], steps: int, function: Callable[[], Any], every: bool
    ) -> Kernel:
        """The kernel that iterates the step function `function()` makes of this model's mechanism (kernels.iterate)."""
        from polybody.kernels import iterate

        key = f"{name}:{self.mechanism.digest}:{source_digest()}"
        return iterate.build(name.replace(" ", "_"), sizes, steps, function, key, every=every)

    def _shorten(self, name: str) -> None:
        """Let a lone state of plain arrays go straight from `model.name(...)` to machine code.

        The builtin stands in the instance, in front of the method of that name, and hands every other call to it.
        """
        method = getattr(type(self), name, None)
        if name not in SHORTENED or method is None:
            return
        owner, kind, mechanism = weakref.ref(self), type(self), self.mechanism

        def fallback(*args: Any, **options: Any) -> Any:
            # A weak reference, or the model would hold itself; `f = model.name` may outlive its model all the same.
            return method(owner() or kind(mechanism), *args, **options)

        self.__dict__[name] = self._kernels[name].fast(fallback, name, method.__doc__ or "")

    def __reduce__(self) -> Any:
        return type(self), (self.mechanism,)


def _untraced(*_: Any, **__: Any) -> Any:
    raise AssertionError("this kernel is made from its own function")


__all__ = ["CompiledAnswers"]
