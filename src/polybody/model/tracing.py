"""From a quantity's text to an expression graph, and its compiled kernel.

A quantity is a function of named arguments over any domain. Traced over nodes of a concrete mechanism it becomes an
expression graph in which the mechanism's zeros and ones are folded away; `kernels` compiles that graph. A
casadi.Function is made of it for who wants one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import GraphDomain
from polybody.algebra.evaluation import Evaluation
from polybody.garbage import uncollected
from polybody.model.numbering import Numbering
from polybody.properties import cached_property
from polybody.quantities.derivatives import graph_domain

if TYPE_CHECKING:
    from polybody.kernels import Kernel
    from polybody.kernels.tape import Tape

Inputs = Sequence[tuple[str, int]]
Outputs = Sequence[tuple[str, tuple[int, ...]]]


def plain_name(name: str) -> str:
    """A name that CasADi and C take."""
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in name).split()
    text = "_".join(words)
    return text if text[:1].isalpha() else f"f_{text}"


class Recorded:
    """What a text computes of its inputs, as nodes: a casadi.Function to whoever asks for one, a tape for kernels.

    `known` are pairs of columns: symbols that the text reads, and the elements of its inputs that they are.
    """

    def __init__(
        self, name: str, columns: Sequence[Any], outputs: Sequence[Any], known: Sequence[tuple[Any, Any]] = ()
    ) -> None:
        self.name_of, self.columns, self.results = plain_name(name), list(columns), list(outputs)
        self.known = list(known)
        self.numbering: Numbering | None = None  # that of others with the same columns, where they have nodes in common

    @cached_property
    def function(self) -> Any:
        import casadi

        from polybody.kernels.locks import tracing

        graph = graph_domain()
        with tracing:
            return casadi.Function(self.name_of, self.columns, [self._of_inputs(graph.column(x)) for x in self.results])

    def _of_inputs(self, column: Any) -> Any:
        """An expression without symbols that are known."""
        import casadi

        for symbols, elements in self.known:
            column = casadi.substitute(column, symbols, elements)
        return column

    def named(self, arguments: Sequence[str], names: Sequence[str]) -> Any:
        """The casadi.Function with names of its inputs and outputs."""
        import casadi

        from polybody.kernels.locks import tracing

        graph = graph_domain()
        with tracing:
            results = [self._of_inputs(graph.column(x)) for x in self.results]
            return casadi.Function(self.name_of, self.columns, results, list(arguments), list(names))

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        return getattr(self.function, key)

    def n_in(self) -> int:
        return len(self.columns)

    def widened(self, more: Sequence[Any]) -> Recorded:
        """The same with more columns, which are not read."""
        return Recorded(self.name_of, [*self.columns, *more], self.results, self.known)

    def evaluation(self, shapes: Sequence[tuple[int, ...]]) -> Evaluation | None:
        """The graph as Python reads it; None where a leaf is an expression of its own or an operation unknown."""
        from polybody.kernels.locks import tracing

        with tracing:
            return self._evaluation(shapes)

    def _evaluation(self, shapes: Sequence[tuple[int, ...]]) -> Evaluation | None:
        elements = [x.element_hash() for column in self.columns for x in column.elements()]
        inputs = {key: k for k, key in enumerate(elements)}
        for symbols, same in self.known:
            pairs = zip(symbols.elements(), same.elements(), strict=True)
            inputs |= {symbol.element_hash(): inputs[x.element_hash()] for symbol, x in pairs}
        try:
            return Evaluation(lambda leaf: inputs[leaf.sx.element_hash()], len(elements), self.results, shapes)
        except KeyError:
            return None

    def tape(self) -> Tape:
        """The graph as kernels read it; of CasADi are only leaves that are expressions of their own."""
        numbering = self.numbering or Numbering(self.columns, self.known)
        return numbering.tape(self.results, self._of_inputs)


def trace(
    name: str, inputs: Inputs, body: Callable[..., Any], symbols: Sequence[Any] = (), graph: GraphDomain | None = None
) -> Any:
    """The function of body(*arrays, domain=...), which returns an array or a tuple of arrays: see `Recorded`.

    `symbols` are columns that the body reads beside its arguments (`Mechanism.symbols`): its last inputs. `graph` is
    one that several functions share.
    """
    from polybody.interrupts import passed_on
    from polybody.kernels.locks import tracing

    def traced() -> Recorded:
        domain = graph_domain() if graph is None else graph
        pairs = [domain.variables(key, size) for key, size in inputs]
        with uncollected():
            outputs = body(*(array for _, array in pairs), domain=domain)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return Recorded(name, [*(column for column, _ in pairs), *symbols], outputs)

    with tracing:
        return passed_on(traced)


def as_traced(make: Callable[..., Any], *arguments: Any) -> Any:
    """What kernels compile of `make(*arguments)`: the tape of nodes, or a casadi.Function as it is."""
    with uncollected():
        found = make(*arguments)
        return found.tape() if isinstance(found, Recorded) else found


def compiled(
    name: str, inputs: Inputs, outputs: Outputs, make: Callable[[], Any], key: str, dtype: Any = np.float64
) -> Kernel:
    """The kernel of what `make()` traces; `key` distinguishes it from all others of this code."""
    from polybody import kernels

    kernels.prepare(dtype)
    title = _title(name, key)
    return kernels.build(plain_name(name), list(inputs), list(outputs), lambda: as_traced(make), title, dtype=dtype)


def is_on_disk(name: str, inputs: Inputs, outputs: Outputs, key: str) -> bool:
    """Whether `compiled` would find it in the cache."""
    from polybody import kernels

    return kernels.is_on_disk(plain_name(name), list(inputs), list(outputs), _title(name, key))


def _title(name: str, key: str) -> str:
    return f"{name}:{key}"


__all__ = ["Recorded", "as_traced", "compiled", "is_on_disk", "plain_name", "trace"]
