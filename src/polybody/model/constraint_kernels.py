"""Constraint functions of a model over batches, compiled.

Of the first few states the graph itself is read (`algebra.evaluation`): most mechanisms are asked for their constraints
some dozen times, to choose a plan of elimination, and a kernel would come later than its answers.

Text that iterates (a loop by map matrix) may fail in compiled code, which takes a fixed number of steps: it says so by
NaN, or by a residual that is not small. Such states are then answered by the text on numbers, one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import FLOAT, Domain
from polybody.algebra.evaluation import Evaluation
from polybody.algebra.shared import SharedGraph
from polybody.constraints.system import Constraints, constraints_of
from polybody.late import dataclass
from polybody.model.batches import batch_shape
from polybody.model.source import Source
from polybody.model.tracing import Recorded, compiled, is_on_disk, trace
from polybody.properties import cached_property

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray

#: calls, and states of a call, that are read from the graph where there is no kernel on disk
READ_CALLS, READ_STATES = 64, 256
MANY_LIKE = 8  # calls of one state take as long as one call of several
#: a loop by map matrix that is open by less was settled
SETTLED = 1e-6


@dataclass
class Reading:
    """A graph that Python reads, if it can, and how often it was."""

    graph: Evaluation | None
    asked: int = 0


class ConstraintKernels:
    """φ, J, γ and their like of one mechanism, (..., n) arrays in, (..., rows) arrays out."""

    def __init__(self, source: Source, kin: ConstraintKernels | None = None) -> None:
        """`kin` is of the same mechanism at other values of its parameters: code is shared."""
        self.source, self.mechanism = source, source.mechanism
        self.constraints: Constraints = constraints_of(self.mechanism)
        self._kernels: dict[str, Kernel] = {} if kin is None else kin._kernels
        self._readings: dict[str, Reading] = {} if kin is None else kin._readings

    def at(self, source: Source) -> ConstraintKernels:
        """The same of other values of the parameters, by the same compiled code."""
        found = ConstraintKernels(source, self)
        if source.variation is not None:
            found.__dict__ |= {"traced": self.traced, "graph": self.graph}
        return found

    @cached_property
    def graph(self) -> SharedGraph:
        """What kernels of the mechanism are traced over: they have the geometry and J in common."""
        return SharedGraph()

    @cached_property
    def traced(self) -> Constraints:
        """The constraints that kernels are traced from."""
        return self.constraints if self.source.variation is None else constraints_of(self.source.traced)

    def residual(self, q: Array, parameters: Array | None = None) -> Array:
        """φ(q), (..., rows)."""
        return self._answer("residual", (q,), ((self.rows,),), Constraints.residual, parameters)[0]

    def jacobian(self, q: Array, parameters: Array | None = None) -> Array:
        """J(q), (..., rows, nv)."""
        return self.constraints.spread(
            self._answer("entries", (q,), ((self.entries,),), Constraints.entries, parameters)[0]
        )

    def uprightness(self, q: Array, parameters: Array | None = None) -> Array:
        """Numbers (..., k) that are negative where an axis of a loop points backwards."""
        if not self._upright:
            return np.zeros((*q.shape[:-1], 0))
        return self._answer("uprightness", (q,), ((self._upright,),), Constraints.uprightness, parameters)[0]

    @cached_property
    def _upright(self) -> int:
        """How many numbers these are."""
        neutral = np.concatenate([np.zeros(0), *(j.model.neutral() for j in self.mechanism.independent_joints)])
        return len(self.constraints.uprightness(neutral))

    def velocity(self, q: Array, v: Array, parameters: Array | None = None) -> Array:
        """J v, (..., rows)."""
        return self._answer("velocity", (q, v), ((self.rows,),), Constraints.velocity, parameters)[0]

    def acceleration(self, q: Array, v: Array, a: Array, parameters: Array | None = None) -> Array:
        """J a + γ, (..., rows)."""
        return self._answer("acceleration", (q, v, a), ((self.rows,),), Constraints.acceleration, parameters)[0]

    def bias(self, q: Array, v: Array, parameters: Array | None = None) -> Array:
        """γ = J̇ v, (..., rows)."""
        return self._answer("bias", (q, v), ((self.rows,),), Constraints.bias, parameters)[0]

    def jacobian_rate(self, q: Array, v: Array, parameters: Array | None = None) -> Array:
        """J̇ along v, (..., rows, nv)."""
        shape = ((self.entries,),)
        return self.constraints.spread(
            self._answer("entry rates", (q, v), shape, Constraints.entry_rates, parameters)[0]
        )

    def wrenches(self, q: Array, multipliers: Array, parameters: Array | None = None) -> tuple[Array, Array]:
        """What `constraints.pairs` bear, (..., pairs, 6), and all do to `loaded_links`, (..., links, 6)."""
        shapes = ((len(self.constraints.pairs), 6), (len(self.constraints.loaded_links), 6))
        borne, totals = self._answer("wrenches", (q, multipliers), shapes, Constraints.wrenches, parameters)
        return borne, totals

    def next_rate(self, q: Array, v: Array, a: Array) -> Array:
        """d/dt (J a + γ) with a held, (..., rows)."""
        return self._answer("next rate", (q, v, a), ((self.rows,),), Constraints.next_rate)[0]

    def far(self, q: Array, parameters: Array | None = None) -> tuple[Array, Array]:
        """The far residual and its derivative, for assembly."""
        if self.constraints.iterates:  # the derivative of all steps would be long; where the gap closes it is J
            phi = self._answer("far residual", (q,), ((self.rows,),), _far_residual, parameters)[0]
            return phi, self.jacobian(q, parameters)
        shapes = ((self.rows,), (self.entries,))
        if not self.rows:
            return np.zeros((*q.shape[:-1], 0)), np.zeros((*q.shape[:-1], 0, self.mechanism.nv))
        phi, entries = self._asked("far", ("q",), shapes, Constraints.far, (q, *self.source.given(parameters)))
        return phi, self.constraints.spread(entries)

    def bias_change(self, q: Array, v: Array, d: Array, w: Array) -> Array:
        """The change of γ, (..., rows), with q moving along d and v along w."""
        return self._answer("bias change", (q, v, d, w), ((self.rows,),), Constraints.bias_change)[0]

    def jacobian_seconds(self, q: Array, X: Array, Y: Array, parameters: Array | None = None) -> Array:
        """d²J along each pair of columns of X and Y (..., nv, k): (..., k, rows, nv)."""
        arguments = (q[..., None, :], np.swapaxes(X, -1, -2), np.swapaxes(Y, -1, -2))
        text, shape = Constraints.entry_seconds, ((self.entries,),)
        values = None if parameters is None else parameters[..., None, :]
        return self.constraints.spread(self._answer("entry seconds", arguments, shape, text, values)[0])

    def jacobian_changes(self, q: Array, G: Array, parameters: Array | None = None) -> Array:
        """dJ along each column of G (..., nv, m): (..., m, rows, nv)."""
        values = None if parameters is None else parameters[..., None, :]
        return self.jacobian_rate(q[..., None, :], np.swapaxes(G, -1, -2), values)

    def bias_changes(self, q: Array, v: Array, D: Array, W: Array) -> Array:
        """The change of γ along each pair of columns of D and W (..., nv, m): (..., rows, m)."""
        D, W = np.swapaxes(D, -1, -2), np.swapaxes(W, -1, -2)
        return np.swapaxes(self.bias_change(q[..., None, :], v[..., None, :], D, W), -1, -2)

    @property
    def rows(self) -> int:
        return len(self.constraints)

    @property
    def entries(self) -> int:
        return len(self.constraints.filled[0])

    def _answer(
        self, name: str, arrays: tuple[Array, ...], shapes: tuple[tuple[int, ...], ...], text: Callable[..., Any],
        parameters: Array | None = None,
    ) -> tuple[Array, ...]:  # fmt: skip
        given = () if parameters is None else (parameters,)
        if not self.rows:
            lead = batch_shape((*arrays, *given))
            return tuple(np.zeros((*lead, *shape)) for shape in shapes)
        others = (("multipliers", self.rows),) if name == "wrenches" else ("v", "d", "w")
        all_arrays = (*arrays, *self.source.given(parameters))
        found = self._asked(name, ("q", *others)[: len(arrays)], shapes, text, all_arrays)
        return self._mended(name, (*arrays, *given), found, text, len(arrays)) if self.constraints.iterates else found

    def _mended(
        self, name: str, arrays: tuple[Array, ...], found: tuple[Array, ...], text: Callable[..., Any], count: int
    ) -> tuple[Array, ...]:
        """Answers with those of failed iterations replaced; what follows `count` arrays are parameters."""
        lead = batch_shape(arrays)
        flat = [x.reshape(*lead, -1) for x in found]
        bad = ~np.all([np.isfinite(x).all(axis=-1) for x in flat], axis=0)
        if "residual" in name:
            for part in (self.constraints.slices[e.name] for e in self.constraints.elements if e.iterates):
                bad = bad | np.any(np.abs(flat[0][..., part]) > SETTLED, axis=-1)
        wide = [np.broadcast_to(a, (*lead, a.shape[-1])) for a in arrays]
        bad &= np.all([np.isfinite(a).all(axis=-1) for a in wide], axis=0)
        if not np.any(bad):
            return found
        found = tuple(np.array(x) for x in found)
        for index in map(tuple, np.argwhere(bad)):
            own = [a[index] for a in wide]
            system = self.constraints if len(own) == count else constraints_of(self.source.at(own[-1]).mechanism)
            values = text(system, *own[:count])
            for result, value in zip(found, values if isinstance(values, tuple) else (values,), strict=True):
                result[index] = value
        return found

    def has_kernel(self, name: str) -> bool:
        """Whether a kernel has been asked for."""
        return name in self._kernels or name in self._readings

    def _asked(
        self, name: str, arguments: tuple[Any, ...], shapes: Any, text: Any, arrays: tuple[Array, ...]
    ) -> tuple[Array, ...]:
        """By the kernel, or as long as only a few states have been asked for, by the graph itself."""
        if name not in self._kernels:
            from polybody.kernels import background

            with background.building():  # whoever asks so will want a kernel soon
                reading = self._reading(name, arguments, shapes, text, arrays)
                if reading is not None:
                    return reading(*arrays)
        found = self._kernel(name, arguments, shapes, text)(*arrays)
        return found if isinstance(found, tuple) else (found,)

    def _kernel(self, name: str, arguments: tuple[Any, ...], shapes: Any, text: Any) -> Kernel:
        if name not in self._kernels:
            ports, outputs = self._ports(arguments, shapes)
            make = lambda: self._recorded(name, arguments, text)  # noqa: E731
            self._kernels[name] = compiled(f"constraint {name}", ports, outputs, make, self.source.digest)
        return self._kernels[name]

    def _reading(
        self, name: str, arguments: tuple[Any, ...], shapes: Any, text: Any, arrays: tuple[Array, ...]
    ) -> Evaluation | None:
        """The graph as Python reads it; None where a kernel is better."""
        from polybody.kernels import background, prepare

        if background.is_repeatable():
            return None
        known, states = self._readings.get(name), math.prod(batch_shape(arrays))
        if known is None:
            ports = self._ports(arguments, shapes)
            many = background.tier() != "auto" or states > READ_STATES
            if many or is_on_disk(f"constraint {name}", *ports, self.source.digest):
                return None
            prepare()  # most who ask for this will want a kernel of something else
            known = self._readings[name] = Reading(self._recorded(name, arguments, text).evaluation(shapes))
        known.asked += 1 if states == 1 else MANY_LIKE
        return known.graph if known.asked <= READ_CALLS and states <= READ_STATES else None

    def _ports(self, arguments: tuple[Any, ...], shapes: Any) -> tuple[list[tuple[str, int]], list[Any]]:
        """Inputs and outputs of a kernel."""
        inputs = [*self._inputs(arguments), *self.source.inputs]
        return inputs, [(f"r{k}", shape) for k, shape in enumerate(shapes)]

    def _inputs(self, arguments: tuple[Any, ...]) -> list[tuple[str, int]]:
        m = self.mechanism
        return [x if isinstance(x, tuple) else (x, m.nq if x == "q" else m.nv) for x in arguments]

    def _recorded(self, name: str, arguments: tuple[Any, ...], text: Any) -> Recorded:
        read = lambda *x, domain: text(self.traced, *x, domain=domain)  # noqa: E731
        return trace(name, self._inputs(arguments), read, self.source.traced.symbols, self.graph)


def _far_residual(constraints: Constraints, q: Array, domain: Domain = FLOAT) -> Array:
    return constraints.residual(q, domain=domain, far=True)


__all__ = ["ConstraintKernels"]
