"""Kernels of a model by name, built when first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.mechanism.mechanism import Mechanism
from polybody.model.quantities import QUANTITIES, Quantity
from polybody.model.tracing import compiled

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray


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
                return chosen.text(m, *arrays, domain=domain)

            self._kernels[chosen.name] = compiled(m, chosen.name, chosen.arguments, chosen.shapes(m), body)
        return self._kernels[chosen.name]


__all__ = ["CompiledAnswers"]
