"""A quantity of a model as the C writer takes it: its tape, and names of what goes in and out.

It answers to the questions that a casadi.Function answers, without being made one: to write a graph into CasADi and to
read it back instruction by instruction takes longer than all the rest of a C library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.model.model import Model
from polybody.properties import cached_property
from polybody.quantities.table import quantity

if TYPE_CHECKING:
    from polybody.kernels.tape import Tape

Array = np.ndarray


class NamedText:
    """What a text computes of its inputs, under a C name."""

    def __init__(self, name: str, recorded: Any, arguments: Sequence[str], results: Sequence[str]) -> None:
        self._name, self._recorded = name, recorded
        self._arguments, self._results = list(arguments), list(results)

    def name(self) -> str:
        return self._name

    def n_in(self) -> int:
        return len(self._arguments)

    def n_out(self) -> int:
        return len(self._results)

    def name_in(self, k: int | None = None) -> Any:
        return list(self._arguments) if k is None else self._arguments[k]

    def name_out(self, k: int | None = None) -> Any:
        return list(self._results) if k is None else self._results[k]

    def numel_in(self, k: int) -> int:
        return self._recorded.columns[k].shape[0]

    def numel_out(self, k: int) -> int:
        return int(np.size(self._recorded.results[k]))

    def tape(self) -> Tape:
        return self._recorded.tape()

    def call(self, arrays: Sequence[Any]) -> list[Array]:
        """The results of one state, flat, by reading the graph operation by operation."""
        given = [np.asarray(x, dtype=float).ravel() for x in arrays]
        if self._evaluation is None:
            return [np.asarray(x, dtype=float).ravel() for x in self._recorded.function.call(given)]
        return list(self._evaluation(*given))

    @cached_property
    def _evaluation(self) -> Any:
        return self._recorded.evaluation([(np.size(x),) for x in self._recorded.results])


def named_text(model: Model, wanted: str, name: str) -> NamedText:
    """A quantity, by a name that `model.casadi` accepts."""
    from polybody.kernels.locks import tracing

    with tracing:
        return NamedText(name, *model.engine.recorded(quantity(model.mechanism, wanted)))


__all__ = ["NamedText", "named_text"]
