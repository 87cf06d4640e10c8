"""The engine of trees: every quantity by a compiled kernel, straight-line or rolled, or composed of such.

A formulation's own text answers where one is named. Texts are interpreted for manifolds without closed forms only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import FLOAT, Domain
from polybody.errors import InputError, PolybodyError
from polybody.formulations.protocol import formulation as formulation_named
from polybody.garbage import uncollected
from polybody.mechanism.general_position import general_configuration
from polybody.mechanism.joints import closed_manifold
from polybody.mechanism.mechanism import Mechanism
from polybody.mechanism.reduction import reduced
from polybody.model import long_chains
from polybody.model.arguments import finite, into
from polybody.model.batches import batch_shape, each_state
from polybody.model.charts import Charts
from polybody.model.compositions import Composition, composition
from polybody.model.configurations import unit_places
from polybody.model.constraint_kernels import ConstraintKernels
from polybody.model.engine import Request, by_double, in_parts
from polybody.model.source import Source, Supplied
from polybody.model.together import joint_kernel
from polybody.model.tracing import Outputs, Recorded, as_traced, compiled, is_on_disk, plain_name, trace
from polybody.properties import cached_property
from polybody.quantities.quantity import Quantity, sizes_of
from polybody.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray

#: Degrees of freedom above which products of tables are loops over them: straight-line code would be too long.
FACTORED_FROM = 16
#: Joints that straight-line code eliminates together.
GROUP_UP_TO = 16
#: Entries of a regressor above which straight-line code takes minutes to compile.
COMPILED_ENTRIES_UP_TO = 20_000
#: States from which on a formulation's text is traced, as that takes as long as so many states on numbers (measured),
#: for up to so many velocities. Influence coefficients are arrays that NumPy computes at once: of n velocities tracing
#: takes as long as n²/2 states, and of more than 40 they are millions of operations.
FORMULATED_FROM, INFLUENCE_UP_TO, FORMULATED_UP_TO = 12, 40, 100
#: Whether quantities are asked for at a single state that no other follows (`sparing`).
SPARING: ContextVar[bool] = ContextVar("sparing", default=False)
#: States of a batch that are answered so at most.
MOST_SPARED = 2048
_ONCE: dict[tuple[str, str], int] = {}  # how often, by (digest of the mechanism, name), something was answered so
MOST_ONCE = 4096
#: Answers at single states that are read from the text: a kernel takes as long to be traced (measured: five to six).
#: At a few states one reading takes half to two thirds of that, and no compilation follows: the energies of one run are
#: asked for by its audit and by what is shown of it.
TIMES, FEW_TIMES = 5, 3
#: What the five formulations answer themselves.
OF_FORMULATIONS = frozenset({"inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_forces"})


class sparing:
    """Within it the first answer comes from a quantity's text on numbers, unless code is at hand: whoever looks at the
    first state of a run, users' controllers too, or once at its results waits for no kernel to be traced."""

    def __enter__(self) -> None:
        self._token = SPARING.set(True)

    def __exit__(self, *_: object) -> None:
        SPARING.reset(self._token)


class TreeEngine:
    """Answers for a mechanism without constraints."""

    def __init__(self, source: Source, kernels: dict[str, Kernel] | None = None) -> None:
        self.source, self.mechanism = source, source.mechanism
        self.constraints = ConstraintKernels(source)  # no rows
        self._reduced: Mechanism | None = None
        self._kernels: dict[str, Kernel] = {} if kernels is None else kernels
        self._regular = False

    def at(self, values: Array) -> TreeEngine:
        """The engine at other values of the parameters, by the same compiled code."""
        return TreeEngine(self.source.at(values), self._kernels)

    @property
    def tree(self) -> TreeEngine:
        return self

    @property
    def independent(self) -> tuple[int, ...]:
        return tuple(range(self.mechanism.nv))

    def coordinates(self, q: Array | None = None) -> tuple[int, ...]:
        return self.independent

    def sizes(self) -> dict[str, int]:
        return sizes_of(self.mechanism)

    @property
    def reduced_mechanism(self) -> Mechanism:
        """The same joint-space dynamics from fewer numbers; springs between bodies need their own frames."""
        if self._reduced is None:
            traced = self.source.traced
            self._reduced = traced if traced.sprung else reduced(traced)
        return self._reduced

    @property
    def traced_mechanism(self) -> Mechanism:
        return self.source.traced

    @cached_property
    def is_rolled(self) -> bool:
        """True when inverse and forward dynamics run as recursions over the tree rather than as straight lines."""
        return self.source.variation is None and long_chains.worth_rolling(self.reduced_mechanism)

    @cached_property
    def is_long(self) -> bool:
        """True when every recursion runs over the tree rather than as a straight line."""
        return self.source.variation is None and long_chains.is_long(self.mechanism)

    @cached_property
    def _rolls_coriolis(self) -> bool:
        return self.source.variation is None and long_chains.coriolis_early(self.mechanism)

    @cached_property
    def has_large_group(self) -> bool:
        """Rotors or followers make one pivot of so many joints that eliminating it in straight lines is too long."""
        return max((len(group.joints) for group in self.mechanism.groups), default=0) > GROUP_UP_TO

    # Answers.

    def answer(self, request: Request) -> Any:
        _refuse_choices(request)
        if request.is_single and not self._has_single(request):
            return by_double(self, request, self.answer)
        name = request.quantity.name
        if name.startswith("forward_dynamics"):
            self._refuse_singular()
        if request.formulation is not None:
            return self._by_formulation(request)
        composed = composition(self, request.quantity)
        if composed is not None:
            _check_finite(request)
            return self._composed(composed, request)
        if self._by_text(request.whole):
            return into(request.out, self._interpreted(request))
        if SPARING.get() and (found := self._spared(request)) is not None:
            return found
        return self._by_kernel(request)

    def _spared(self, request: Request) -> Any:
        """The answer by `once` to a plain request for one state or a few; None where a kernel is to answer."""
        quantity, arrays = request.quantity, request.arrays
        plain = request.out is None and request.wrenches is None and request.parameters is None
        leading = arrays[0].shape[:-1] if arrays and arrays[0].ndim else (0,)
        sizes = [(*leading, size) for _, size in quantity.inputs(self.sizes())]
        few = len(leading) == 0 or (len(leading) == 1 and 0 < leading[0] <= MOST_SPARED)
        if not plain or not few or request.is_single or [x.shape for x in arrays] != sizes:
            return None
        _check_finite(request)
        return self.once(quantity, *arrays)

    def once(self, quantity: Quantity, *arrays: Array) -> Any:
        """The answer at one state (n,), or at a few (states, n), where no second one may be asked for: by its text on
        numbers, unless code is at hand.

        None where it has been asked for `TIMES` times, or `FEW_TIMES` at a few states: a kernel is worth its
        compilation by then.
        """
        results = self.results(quantity)
        times = TIMES if arrays[0].ndim == 1 else FEW_TIMES
        if not self.spares(quantity.name, quantity.inputs(self.sizes()), results, times):
            return None
        if self.is_long or composition(self, quantity) is not None or self._by_text(quantity):
            return None
        mechanism = self.reduced_numbers if quantity.reduced else self.mechanism
        if arrays[0].ndim == 1:
            found = quantity.tree(mechanism, *arrays, domain=FLOAT)
            parts = found if isinstance(found, tuple) else (found,)
            told = [np.reshape(x, shape)[()] for x, (_, shape) in zip(parts, results, strict=True)]
        else:
            from polybody.algebra import many

            def text(*x: Array, domain: Domain) -> Any:
                return quantity.tree(mechanism, *x, domain=domain)

            with uncollected():
                told = many.read(text, arrays, [shape for _, shape in results])
        return told[0] if len(told) == 1 else tuple(told)

    def spares(self, name: str, inputs: Sequence[tuple[str, int]], results: Outputs, times: int = 1) -> bool:
        """Whether what is named so has been asked for less than so many times, and no code is at hand."""
        from polybody.kernels import background

        if name in self._kernels or self._asked(name) >= times:
            return False
        ports = [*inputs, *self.source.inputs]
        return not background.is_repeatable() and not is_on_disk(name, ports, results, self.source.digest)

    def _asked(self, name: str) -> int:
        """How often this was asked before of the mechanism, at any values of its parameters."""
        key = self.source.digest, name
        if len(_ONCE) >= MOST_ONCE:
            _ONCE.clear()
        count = _ONCE.get(key, 0)
        _ONCE[key] = count + 1
        return count

    @cached_property
    def reduced_numbers(self) -> Mechanism:
        """`reduced_mechanism` with numbers in the place of parameters."""
        if self.source.variation is None:
            return self.reduced_mechanism
        return self.mechanism if self.mechanism.sprung else reduced(self.mechanism)

    def plain(self, quantity: Quantity, dtype: type[np.floating] = np.float64) -> Kernel | None:
        varied = self.source.variation is not None
        if varied or composition(self, quantity) is not None or self._by_text(quantity):
            return None
        kernel = self.kernel(quantity, dtype)
        kernel.guard(unit_places(self.mechanism, quantity.arguments))
        return kernel

    def kernel(self, quantity: Quantity, dtype: type[np.floating] = np.float64) -> Kernel:
        """The compiled kernel of a quantity, built when first asked for."""
        name, key = quantity.name, _key(quantity.name, dtype)
        if key not in self._kernels and not (self._is_rolled(quantity) and self.rolled(name, dtype)):
            inputs, results = [*quantity.inputs(self.sizes()), *self.source.inputs], self.results(quantity)
            make = (lambda: self._factored(quantity)) if self.is_factored(quantity) else lambda: self.traced(quantity)
            self._kernels[key] = compiled(name, inputs, results, make, self.source.digest, dtype)
        return self._kernels[key]

    def has_kernel(self, quantity: Quantity) -> bool:
        """Whether its kernel has been asked for."""
        return _key(quantity.name, np.float64) in self._kernels

    def together(self, asked: Sequence[Quantity], dtype: type[np.floating] = np.float64) -> Kernel | None:
        """One kernel for several quantities (`model.together`); None unless all of them have straight-line code."""
        if not all(self._is_straight(x) for x in asked):
            return None
        if any(x.name.startswith("forward_dynamics") for x in asked):
            self._refuse_singular()
        key = _key("together " + " ".join(x.name for x in asked), dtype)
        if key not in self._kernels:
            if SPARING.get() and not self._asked(key):  # each by its text
                return None
            self._kernels[key] = joint_kernel(self, asked, dtype)
        return self._kernels[key]

    def derived(
        self, quantity: Quantity, label: str, results: Sequence[tuple[str, tuple[int, ...]]], text: Callable[..., Any],
    ) -> Supplied | None:  # fmt: skip
        """One kernel for what `text(results, parameters)`, lists of columns, computes; `label` names it."""
        if not self._is_straight(quantity):
            return None
        if quantity.name.startswith("forward_dynamics"):
            self._refuse_singular()

        def make() -> Any:
            import casadi

            whole = self.traced(quantity)
            columns = whole.sx_in()
            parameters = columns[len(quantity.arguments) :]
            return casadi.Function(plain_name(quantity.name), columns, text(whole.call(columns), parameters))

        return self.compile(f"{quantity.name} {label}", quantity.inputs(self.sizes()), results, make)

    def _is_straight(self, quantity: Quantity) -> bool:
        """Whether it has straight-line code of its own."""
        made = composition(self, quantity) is not None or self._by_text(quantity) or self._is_rolled(quantity)
        return not made and not self.is_factored(quantity)

    def is_factored(self, quantity: Quantity) -> bool:
        """Whether its kernel multiplies tables."""
        return quantity.factors is not None and self.mechanism.nv > FACTORED_FROM

    def rolled(self, name: str, dtype: type[np.floating] = np.float64) -> Kernel | None:
        """The rolled kernel of that name (`long_chains.names`); None where this mechanism has none."""
        if self.source.variation is not None:
            return None
        key = _key(name, dtype)
        if key not in self._kernels:
            made = long_chains.kernel(self.mechanism, name, dtype)
            if made is None:
                return None
            self._kernels[key] = made
        return self._kernels[key]

    def results(self, quantity: Quantity) -> list[tuple[str, tuple[int, ...]]]:
        return quantity.shapes(self.sizes())

    def function(self, quantity: Quantity) -> Any:
        """The casadi.Function with the names of its arguments and results."""
        import casadi

        made, arguments, names = self.recorded(quantity)
        columns = made.sx_in()
        return casadi.Function(plain_name(quantity.name), columns, made.call(columns), arguments, names)

    def recorded(self, quantity: Quantity) -> tuple[Any, list[str], list[str]]:
        """(the graph, names of its inputs, and of its results)."""
        names = [name for name, _ in self.results(quantity)]
        return self.traced(quantity), [*quantity.arguments, *(name for name, _ in self.source.inputs)], names

    def compile(
        self,
        name: str,
        inputs: Sequence[tuple[str, int]],
        outputs: Sequence[tuple[str, tuple[int, ...]]],
        make: Callable[[], Any],
        dtype: type[np.floating] = np.float64,
    ) -> Supplied:
        """The kernel of a casadi.Function that `make()` makes of `traced_mechanism`, kept under `name`."""
        key = _key(name, dtype)
        if key not in self._kernels:
            ports = [*inputs, *self.source.inputs]
            self._kernels[key] = compiled(
                name, ports, outputs, lambda: _widened(make(), ports), self.source.digest, dtype
            )
        return Supplied(self._kernels[key], self.source)

    def iterate(
        self, name: str, sizes: tuple[int, int, int], steps: int, make: Callable[[], Any], every: bool,
        dtype: type[np.floating] = np.float64,
    ) -> Callable[..., Array]:  # fmt: skip
        """The kernel that iterates the step function `make()` makes of this mechanism (kernels.iterate)."""
        from polybody.kernels import iterate

        key = f"{name}:{self.source.digest}"
        read = lambda: as_traced(make)  # noqa: E731
        return iterate.build(name.replace(" ", "_"), sizes, steps, read, key, every=every, dtype=dtype)

    def report(self, request: Request, singular: Array) -> None:
        """A tree has no ranks."""

    def require_closed(self, q: Array, v: Array | None = None, parameters: Array | None = None) -> None:
        """A tree has nothing to close."""

    def require_dynamics(self, q: Array, v: Array) -> None:
        """Every state will do; every motion must have mass."""
        self._refuse_singular()

    def require_acceleration(self, q: Array, v: Array, a: Array, parameters: Array | None = None) -> None:
        """A tree allows every acceleration."""

    # Inside.

    def traced(self, quantity: Quantity) -> Any:
        """The casadi.Function of a quantity's text, and of the parameters where there are such."""
        return self._read(quantity, quantity.tree)

    def _read(self, quantity: Quantity, text: Callable[..., Any]) -> Any:
        mechanism = self.reduced_mechanism if quantity.reduced else self.source.traced
        read = lambda *x, domain: text(mechanism, *x, domain=domain)  # noqa: E731
        return trace(quantity.name, quantity.inputs(self.sizes()), read, mechanism.symbols)

    def _factored(self, quantity: Quantity) -> Any:
        """The tape of its factors."""
        from polybody.kernels.factored import Factored

        assert quantity.factors is not None
        return Factored(as_traced(self._read, quantity, quantity.factors))

    def _is_rolled(self, quantity: Quantity) -> bool:
        """Inverse and forward dynamics and the Coriolis matrix are rolled early, all that can be on long chains."""
        if self.is_long:
            return True
        if quantity.name == "coriolis_matrix":
            return self._rolls_coriolis
        early = quantity.name.removesuffix("_wrenches") in ("inverse_dynamics", "forward_dynamics")
        return early and long_chains.early(self.mechanism) and self.is_rolled  # the last takes longest

    def _has_single(self, request: Request) -> bool:
        """True where kernels answer: what is interpreted or solved by LAPACK is computed in float64."""
        if request.formulation is not None:
            return False
        if composition(self, request.quantity) is not None:
            return False
        return not self._by_text(request.whole)

    def _composed(self, composed: Composition, request: Request) -> Any:
        """In pieces: composing takes several arrays as large as the results."""
        return in_parts(self, request, lambda some: composed.answer(self, some))

    def _by_text(self, quantity: Quantity) -> bool:
        """True where no code is compiled: manifolds without a closed form, regressors of very many entries."""
        if quantity.name.startswith("regressor_nonzeros"):
            return self.results(quantity)[0][1][0] > COMPILED_ENTRIES_UP_TO
        if quantity.name != "integrate":
            return False
        return not all(closed_manifold(joint.model) for joint in self.mechanism.independent_joints)

    @cached_property
    def _charts(self) -> Charts:
        return Charts(self.source)

    def _interpreted(self, request: Request) -> Any:
        """A quantity by its text, state by state; along charts all states together."""
        quantity, shapes = request.whole, [shape for _, shape in self.results(request.whole)]
        _check_finite(request)
        if quantity.name == "integrate" and np.prod(batch_shape(request.arrays), dtype=int) > 1:
            return in_parts(self, request, lambda some: self._charts.integrate(some.arrays, some.parameters))
        text, count = quantity.tree, len(request.all_arrays)
        arrays = (*request.all_arrays, *(() if request.parameters is None else (request.parameters,)))

        def flat(*state: Array) -> Array:
            mechanism = self.mechanism if len(state) == count else self.source.at(state[-1]).mechanism
            values = text(mechanism, *state[:count], domain=FLOAT)
            return np.concatenate([np.ravel(x) for x in (values if isinstance(values, tuple) else (values,))])

        sizes = [int(np.prod(shape, dtype=int)) for shape in shapes]
        rows = each_state(flat, arrays, (sum(sizes),))
        parts = np.split(rows, np.cumsum(sizes)[:-1], axis=-1)
        results = tuple(part.reshape((*rows.shape[:-1], *shape)) for part, shape in zip(parts, shapes, strict=True))
        return results[0] if len(results) == 1 else results

    def _by_formulation(self, request: Request) -> Array:
        """By a formulation's own text: compiled for many states, on numbers for few."""
        name, quantity = request.formulation, request.quantity
        if quantity.name not in OF_FORMULATIONS:
            raise InputError(f"{quantity.name} has one text; formulations answer {', '.join(sorted(OF_FORMULATIONS))}")
        text = getattr(formulation_named(str(name)), quantity.name)
        own = replace(quantity, name=f"{quantity.name}_by_{name}", tree=text, reduced=False)
        some = replace(request, quantity=own, formulation=None)
        count = np.prod(batch_shape((*request.all_arrays, *self.source.given(request.parameters))), dtype=int)
        there = _key(some.whole.name, np.float32 if request.is_single else np.float64) in self._kernels
        if there or self._is_worth_tracing(str(name), int(count)):
            return self._by_kernel(some)
        return into(request.out, self._interpreted(some))

    def _is_worth_tracing(self, formulation: str, states: int) -> bool:
        """Whether a formulation's text is compiled for so many states."""
        nv = self.mechanism.nv
        least = max(FORMULATED_FROM, nv * nv // 2) if formulation == "influence" else FORMULATED_FROM
        return states >= least and nv <= (INFLUENCE_UP_TO if formulation == "influence" else FORMULATED_UP_TO)

    def _by_kernel(self, request: Request) -> Any:
        given = self.source.given(request.parameters)
        dtype = np.float32 if request.is_single else np.float64
        return self.kernel(request.whole, dtype)(*request.all_arrays, *given, out=request.out, check=request.check)

    def well_conditioned(self, parameters: Array | None = None) -> Array:
        """Whether the mass matrix of a configuration in general position shows that no pivot vanishes, (...): quicker
        than to look at the pivots, for many sets of parameters (..., k)."""
        q = general_configuration(self.mechanism)
        M = self.answer(Request(QUANTITIES["mass_matrix"], (q,), parameters=parameters))
        values = np.linalg.eigvalsh(M)
        return values[..., 0] > 1e-9 * values[..., -1]

    def _refuse_singular(self) -> None:
        """Name the joint whose pivot vanishes, once per model, instead of dividing by zero."""
        if not self._regular and self.source.values is not None and self._asked("singular"):
            self._regular = bool(self.well_conditioned())  # for many values a kernel is worth its compilation
        if not self._regular:
            from polybody.formulations.denoc.articulated import singular_joint, singular_message

            joint = singular_joint(self.mechanism)
            if joint is not None:
                raise PolybodyError(singular_message(joint))
            self._regular = True


def _widened(function: Any, inputs: Sequence[tuple[str, int]]) -> Any:
    """The function with inputs that it does not read, after its own."""
    import casadi

    missing = inputs[function.n_in() :]
    if not missing:
        return function
    more = [casadi.SX.sym(name, size) for name, size in missing]
    if isinstance(function, Recorded):
        return function.widened(more)
    columns = function.sx_in()
    return casadi.Function(function.name(), [*columns, *more], function.call(columns))


def _key(name: str, dtype: type[np.floating]) -> str:
    return name if dtype is np.float64 else f"{name} {np.dtype(dtype).name}"


def _refuse_choices(request: Request) -> None:
    if request.independent is not None:
        raise InputError("independent coordinates are chosen in models with loops; this one has none")
    if request.weights is not None:
        raise InputError("weights share loads among the actuators of loops; this model has none")


def _check_finite(request: Request) -> None:
    if request.check:
        for name, array in zip(request.whole.arguments, request.all_arrays, strict=True):
            finite(name, array)


__all__ = ["TreeEngine"]
