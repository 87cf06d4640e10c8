"""How a model answers: the protocol of the tree engine and the constrained engine, and what they are asked.

`Model` turns what a user gives into a `Request` of arrays; an engine answers it. Nothing above asks which engine it is:
a tree is a mechanism without constraint rows, and whatever is said of rows, independent coordinates and projections
holds for none of them too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from polybody.late import dataclass
from polybody.mechanism.mechanism import Mechanism
from polybody.model.batches import batch_shape, in_pieces
from polybody.quantities.quantity import Quantity, sizes_of

if TYPE_CHECKING:
    from polybody.kernels import Kernel
    from polybody.model.constraint_kernels import ConstraintKernels
    from polybody.model.source import Source, Supplied
    from polybody.model.tree_engine import TreeEngine

Array = np.ndarray
#: arrays as large as those of a request that answers in pieces may need on their way
ON_THE_WAY = 3


@dataclass(frozen=True, eq=False)
class Request:
    """A quantity at states: checked arrays in the order of its arguments, and how the results are requested."""

    quantity: Quantity
    arrays: tuple[Array, ...]
    wrenches: Array | None = None  # (..., 6·bodies): on bodies at their origins, world axes
    formulation: str | None = None  # None: the compiled default
    independent: tuple[int, ...] | None = None  # columns of v that matrices and forces refer to
    weights: Array | None = None  # of the drives' loads
    out: Any = None
    check: bool = False
    parameters: Array | None = None  # (..., k): values of the model's parameters; None: the engine's own
    singular: Array | None = None  # where given, doubtful states are marked in it instead of being reported

    @property
    def whole(self) -> Quantity:
        """The quantity with wrenches among its arguments where they are given."""
        return self.quantity if self.wrenches is None else self.quantity.with_wrenches()

    @property
    def is_single(self) -> bool:
        """Whether the answer is requested in float32."""
        return bool(self.arrays) and self.arrays[0].dtype == np.float32

    @property
    def all_arrays(self) -> tuple[Array, ...]:
        return self.arrays if self.wrenches is None else (*self.arrays, self.wrenches)


def by_double(engine: Engine, request: Request, answer: Callable[[Request], Any]) -> Any:
    """A float32 answer from one in float64: where there is no float32 code, or rank decisions need the digits."""

    def narrow(some: Request) -> Any:
        return _narrowed(answer(replace(some, arrays=tuple(x.astype(np.float64) for x in some.arrays))))

    return in_parts(engine, request, narrow)


def in_parts(
    engine: Engine, request: Request, answer: Callable[..., Any], more: int = 0, beside: Sequence[Array] = ()
) -> Any:
    """answer(request without `out`, *beside), of a large batch piece by piece; singular states are reported once.

    On the way are some arrays like those of the request and `more` numbers per state. `beside` are other arrays of it.
    """
    sizes, count = sizes_of(engine.mechanism), len(request.arrays)
    shapes = [shape for _, shape in request.quantity.shapes(sizes)]
    arrays = [*request.arrays, *beside, *(x for x in (request.wrenches, request.parameters) if x is not None)]
    last = count + len(beside)
    numbers = sum(math.prod(x) for x in shapes) + sum(x.shape[-1] for x in arrays)
    cost = 8 * (ON_THE_WAY * numbers + more)
    marks = np.zeros((*batch_shape(arrays), 1), dtype=bool)

    def some(parts: Sequence[Array]) -> Any:
        own = replace(
            request, arrays=tuple(parts[:count]), out=None, singular=parts[-1][..., 0],
            wrenches=None if request.wrenches is None else parts[last],
            parameters=None if request.parameters is None else parts[-2],
        )  # fmt: skip
        return answer(own, *parts[count:last])

    found = in_pieces(some, [*arrays, marks], cost, request.out)
    if request.singular is None:
        engine.report(request, marks[..., 0])
    else:
        request.singular[...] |= marks[..., 0]
    return found


def _narrowed(found: Any) -> Any:
    if isinstance(found, tuple):
        return tuple(_narrowed(x) for x in found)
    return found.astype(np.float32) if isinstance(found, np.ndarray | np.generic) else found


class Engine(Protocol):
    """One of the two engines."""

    @property
    def mechanism(self) -> Mechanism: ...

    @property
    def tree(self) -> TreeEngine:
        """The engine of the tree alone, every loop cut."""
        ...

    @property
    def constraints(self) -> ConstraintKernels:
        """φ, J, γ over batches; without constraints they have no rows."""
        ...

    @property
    def independent(self) -> tuple[int, ...]:
        """Columns of v that the others follow."""
        ...

    def coordinates(self, q: Array | None = None) -> tuple[int, ...]:
        """The same, chosen at states like q where they are not chosen yet."""
        ...

    @property
    def source(self) -> Source:
        """The mechanism's numbers, and which of them are inputs of kernels."""
        ...

    def at(self, values: Array) -> Engine:
        """The engine at other values of the parameters, by the same compiled code."""
        ...

    @property
    def traced_mechanism(self) -> Mechanism:
        """The mechanism that kernels are traced from; where it has parameters, with symbols for them."""
        ...

    @property
    def reduced_mechanism(self) -> Mechanism:
        """The mechanism that joint-space kernels are traced from: the same motion from fewer numbers."""
        ...

    def require_dynamics(self, q: Array, v: Array) -> None:
        """Raise where forces do not determine accelerations: a state off the constraints, motions without mass."""
        ...

    def sizes(self) -> dict[str, int]: ...
    def answer(self, request: Request) -> Any: ...
    def together(self, asked: Sequence[Quantity], dtype: type[np.floating] = np.float64) -> Kernel | None:
        """One kernel for several quantities; None where each has to be asked for by itself."""
        ...

    def derived(
        self, quantity: Quantity, label: str, results: Sequence[tuple[str, tuple[int, ...]]], text: Callable[..., Any],
    ) -> Supplied | None:  # fmt: skip
        """One kernel for what `text(results, parameters)` computes; None where results have to be asked for first."""
        ...

    def plain(self, quantity: Quantity, dtype: type[np.floating] = np.float64) -> Kernel | None:
        """The kernel that answers with nothing before or after it, where there is one; it looks at quaternions."""
        ...

    def function(self, quantity: Quantity) -> Any:
        """The casadi.Function of a quantity, with named inputs and outputs."""
        ...

    def recorded(self, quantity: Quantity) -> tuple[Any, list[str], list[str]]:
        """(its graph as a `Recorded`, names of its inputs, names of its results)."""
        ...

    def results(self, quantity: Quantity) -> list[tuple[str, tuple[int, ...]]]: ...
    def compile(
        self, name: str, inputs: Sequence[tuple[str, int]], outputs: Sequence[tuple[str, tuple[int, ...]]],
        make: Callable[[], Any],
    ) -> Supplied:
        """The kernel of a casadi.Function made of `traced_mechanism`, kept under `name`."""
        ...

    def iterate(
        self, name: str, sizes: tuple[int, int, int], steps: int, make: Callable[[], Any], every: bool,
        dtype: type[np.floating] = np.float64,
    ) -> Callable[..., Array]:  # fmt: skip
        """The kernel that iterates a step function made of this mechanism (`kernels.iterate`)."""
        ...

    def report(self, request: Request, singular: Array) -> None:
        """Warn where the marked states of a request have another rank than the others."""
        ...

    def require_closed(self, q: Array, v: Array | None = None, parameters: Array | None = None) -> None: ...
    def require_acceleration(self, q: Array, v: Array, a: Array, parameters: Array | None = None) -> None: ...


__all__ = ["Engine", "Request", "by_double", "in_parts"]
