"""The engine of mechanisms with loops, rods, guides and relations: a tree engine, a constraint system, and plans.

Every quantity is compiled along a plan of elimination (`model.plans`), and reports beside its answer how far it may be
believed. States off the constraints raise an error. States at which the plan does badly (coordinates that are not
independent there, a rank unlike that of the neighbours) are answered again by singular values (`model.ranked`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.constraints.branches import along_plans, covering
from polybody.constraints.plan import Plan
from polybody.constraints.ranks import ranks
from polybody.errors import InputError, PolybodyError, warn
from polybody.formulations import denoc
from polybody.mechanism.columns import actuated, state_text
from polybody.mechanism.mechanism import Mechanism
from polybody.model import configurations, single
from polybody.model.arguments import finite, into
from polybody.model.assembly import Assembly
from polybody.model.batches import batch_shape, first_state, raise_by_state
from polybody.model.code_length import is_short, is_short_for, motions_somewhere
from polybody.model.constraint_kernels import ConstraintKernels
from polybody.model.diagnosed import diagnosed, growth_limit
from polybody.model.drives import Drives
from polybody.model.engine import Request, in_parts
from polybody.model.other_plans import OtherPlans, answered, part_of, places_of
from polybody.model.own_coordinates import OwnCoordinates
from polybody.model.plans import Plans
from polybody.model.ranked import Ranked, refers_to_coordinates
from polybody.model.source import Source, Supplied
from polybody.model.tracing import Recorded, trace
from polybody.model.tree_engine import TreeEngine
from polybody.properties import cached_property
from polybody.quantities.constrained import DIAGNOSTICS, DOUBT, DRIVEN, Closed
from polybody.quantities.quantity import Quantity, sizes_of
from polybody.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray

#: up to so many velocities a matrix of one state is read from the text on numbers where there is no kernel yet
READ_UP_TO = 60
#: matrices of all velocities and constraint rows that singular values need per state on their way
RANKED = 8
#: numbers that a network's equations need per state and velocity or row: entries of its tableau, and on their way
NETWORK = 240
#: starts anywhere from which branches of motion are looked for
BRANCHES = 16
#: quantities that decide no rank: they hold at any state, and have no diagnostics
PLAIN = ("implicit_residual", "augmented_system")


class ConstrainedEngine:
    """Answers that honour the constraints."""

    def __init__(self, source: Source, kin: ConstrainedEngine | None = None) -> None:
        """`kin` is an engine of the same mechanism at other values of its parameters: code and plans are shared."""
        self.source, self.mechanism, self._kin = source, source.mechanism, kin
        self.tree = TreeEngine(source.cut(), None if kin is None else kin.tree._kernels)
        self.constraints = ConstraintKernels(source) if kin is None else kin.constraints.at(source)
        self.assembly = Assembly(self.tree, self.constraints)
        self.ranked = Ranked(self.tree, self.assembly)
        self.plans = Plans(self.constraints.jacobian, self.assembly.general_place, None if kin is None else kin.plans)
        self.others = OtherPlans(None if kin is None else kin.others)
        driven = tuple(int(k) for k in actuated(self.mechanism))
        self.drives = Drives(driven, self.plans.samples, None if kin is None else kin.drives)
        self.own = OwnCoordinates(self.assembly, self.constraints.jacobian, None if kin is None else kin.own)
        self._kernels: dict[str, Kernel] = {} if kin is None else kin._kernels
        self._others: dict[str, tuple[Plan, ...]] = {} if kin is None else kin._others
        self._has_mass = False

    def at(self, values: Array) -> ConstrainedEngine:
        return ConstrainedEngine(self.source.at(values), self)

    @property
    def traced_mechanism(self) -> Mechanism:
        return self.source.traced

    @property
    def reduced_mechanism(self) -> Mechanism:
        return self.tree.reduced_mechanism

    @property
    def independent(self) -> tuple[int, ...]:
        """Columns chosen once for the model (`model.own_coordinates`)."""
        return self.coordinates()

    def coordinates(self, q: Array | None = None) -> tuple[int, ...]:
        return self.own.columns(q)

    @property
    def rank(self) -> int:
        """The rank of the constraints in general position."""
        return self.mechanism.nv - len(self.independent)

    @property
    def is_compiled(self) -> bool:
        return self._is_short if self._kin is None else self._kin.is_compiled

    @cached_property
    def _is_short(self) -> bool:
        q, nv, assembly = configurations.neutral(self.mechanism), self.mechanism.nv, self.assembly
        return is_short(nv, lambda: motions_somewhere(self.constraints.jacobian, assembly.integrate, q, nv))

    def sizes(self) -> dict[str, int]:
        return self._sizes(self.independent)

    def _sizes(self, columns: tuple[int, ...]) -> dict[str, int]:
        rows, pairs = len(self.constraints.constraints), len(self.constraints.constraints.pairs)
        return sizes_of(self.mechanism, independent=len(columns), rows=rows, pairs=pairs)

    # Answers.

    def answer(self, request: Request) -> Any:
        if request.quantity.constrained is None:
            _refuse_choice(request)
            return self.tree.answer(request)
        if request.is_single:
            return single.answer(self, request)
        if request.parameters is not None:
            return into(request.out, self._varied(request, request.parameters))
        if request.check:
            for name, array in zip(request.whole.arguments, request.all_arrays, strict=True):
                finite(name, array)
        q = request.arrays[0]
        lead = batch_shape(request.all_arrays)
        columns = request.independent or ()
        if request.independent is None and refers_to_coordinates(request.quantity):
            columns = self.coordinates(q)
        if not math.prod(lead):
            shapes = request.quantity.shapes(self._sizes(columns))
            return into(request.out, _alone(tuple(np.empty((*lead, *shape)) for _, shape in shapes)))
        if request.formulation is not None:
            return self._by_formulation(request, columns)
        plan = None if request.weights is not None else self._plan(request.quantity, columns, q)
        if plan is None and request.independent is None and self.is_compiled and self._chosen_anew(first_state(q)):
            return self.answer(request)
        if plan is None or not self._can_drive(request.quantity, plan, q):
            return self._by_rank(request, lambda some: self.ranked.answer(some, columns))
        return into(request.out, self._by_plan(request, plan, columns))

    def _by_plan(self, request: Request, plan: Plan, columns: tuple[int, ...], limit: float | None = None) -> Any:
        """The answer along a plan; `limit` is the growth up to which it is believed, where that is not float64's."""
        quantity, q = request.whole, request.arrays[0]
        if quantity.name in PLAIN:
            return self._kernel(quantity, plan)(*request.all_arrays, *self.source.given())
        self._require_mass(request.quantity, q)
        kernel = self._kernel(quantity, plan)
        most = growth_limit(quantity, plan) if limit is None else limit
        values, again, bad = diagnosed(kernel, request, self.source.given(), most)
        if bad is not None:
            self._require_on_constraints(request, bad)
        if np.any(again):
            values, again = _writable(values), np.asarray(again)
            answered(self, request, plan, values, again, self.source.given())
        if np.any(again):
            first = np.broadcast_to(q, (*again.shape, q.shape[-1]))[again][0]
            if request.independent is None and self.own.may_lose_motions(plan, first) and self._chosen_anew(first):
                found = self.answer(replace(request, out=None))
                return found
            values = self._mended(request, values, again, columns)
        return _alone(tuple(values))

    def _varied(self, request: Request, parameters: Array) -> Any:
        """States each with its own parameters: by one plan together, those for which it does badly by singular values.
        """
        arrays = (*request.all_arrays, parameters)
        lead = batch_shape(arrays)
        if not math.prod(lead):
            return self.answer(replace(request, parameters=None, out=None))
        q, kin = first_state(request.arrays[0]), self.at(first_state(parameters))
        columns = request.independent or ()
        if request.independent is None and refers_to_coordinates(request.quantity):
            columns = kin.coordinates(q)
        plan = kin._plan_like(request, q, columns)
        if plan is None:
            return self._by_rank(request, lambda some: self._ranked(some, columns))
        kernel = self._kernel(request.whole, plan)
        if request.whole.name in PLAIN:
            return kernel(*arrays)
        found, again, bad = diagnosed(kernel, request, (parameters,), growth_limit(request.quantity, plan))
        if bad is not None:
            self._require_on_constraints(request, bad)
        if np.any(again):
            found, again = _writable(found), np.asarray(again)
            answered(kin, request, plan, found, again, (parameters,))
        if np.any(again):
            found = self._mended(request, found, again, columns)
        return _alone(tuple(found))

    def _ranked(self, request: Request, columns: tuple[int, ...]) -> Any:
        if request.formulation is not None:
            return self.ranked.by_formulation(request, columns)
        return self.ranked.answer(request, columns)

    def _plan_like(self, request: Request, q: Array, columns: tuple[int, ...]) -> Plan | None:
        """The plan by which a request would be answered at q; None where each state is solved for itself."""
        if request.formulation is not None or request.weights is not None:
            return None
        plan = self._plan(request.quantity, columns, q)
        return plan if plan is not None and self._can_drive(request.quantity, plan, q) else None

    def _mended(self, request: Request, values: list[Array], again: Array, columns: tuple[int, ...]) -> list[Array]:
        """The values with those of doubtful states found anew by singular values."""

        def solve(places: tuple[Any, ...]) -> Any:
            return self.ranked.answer(part_of(request, again.shape, places), columns)

        for places in places_of(again, self._at_once()):
            try:
                found = solve(places)
            except PolybodyError:
                # asked anew, so that its error counts the batch's states: of all where that is little, or one by one
                if again.size <= self._at_once():
                    self.ranked.answer(replace(request, out=None), columns)
                for index in zip(*places, strict=True):
                    try:
                        solve(index)
                    except PolybodyError as error:
                        raise type(error)(f"{error}{state_text(index)}") from None
                raise
            for value, part in zip(values, found if isinstance(found, tuple) else (found,), strict=True):
                value[places] = part
        self._flag(request, again)
        return values

    def plain(self, quantity: Quantity, dtype: type[np.floating] = np.float64) -> Kernel | None:
        """Answers that may have to be mended cannot go without more."""
        return self.tree.plain(quantity, dtype) if quantity.constrained is None else None

    def results(self, quantity: Quantity) -> list[tuple[str, tuple[int, ...]]]:
        found = quantity.shapes(self.sizes())
        told = quantity.constrained is not None and quantity.name not in PLAIN
        return [*found, DIAGNOSTICS] if told else found

    def function(self, quantity: Quantity) -> Any:
        """The casadi.Function of `recorded`."""
        if quantity.constrained is None:
            return self.tree.function(quantity)
        made, arguments, names = self.recorded(quantity)
        return made.named(arguments, names)

    def recorded(self, quantity: Quantity) -> tuple[Recorded, list[str], list[str]]:
        """(the graph, names of its inputs, and of its results): by elimination along the plan of the model's own
        coordinates, diagnostics last.

        What does not refer to coordinates holds on other branches of motion, too: of several plans the one that does
        best at the state is taken, where one would not do.
        """
        if quantity.constrained is None:
            return self.tree.recorded(quantity)
        q, plan = self._own_plan()
        if not self._can_drive(quantity, plan, q):
            raise InputError(f"{quantity.name}: the active joints cannot hold every motion, so it has no function")
        own = refers_to_coordinates(quantity) or quantity.name.startswith(DRIVEN) or quantity.name in PLAIN
        made = self._traced(quantity, plan, () if own else self._other_plans(plan))
        names = [name for name, _ in self.results(quantity)]
        return made, [*quantity.arguments, *(name for name, _ in self.source.inputs)], names

    def _other_plans(self, plan: Plan) -> tuple[Plan, ...]:
        """Plans for branches of motion on which this one does badly."""
        if plan.label not in self._others:
            places = self.assembly.branches(BRANCHES)
            self._others[plan.label] = covering(plan, self.constraints.jacobian(places))[1:] if len(places) else ()
        return self._others[plan.label]

    def _own_plan(self) -> tuple[Array, Plan]:
        """(a place in general position, the plan of the model's own coordinates there)."""
        q = self.assembly.general_place(self.assembly.from_neutral())
        plan = self.plans.of_columns(self.coordinates(q), q, is_general=True)
        if plan is None:
            raise PolybodyError(
                f"{self.mechanism.name!r} has no configuration at which its coordinates are independent"
            )
        return q, plan

    def compile(
        self, name: str, inputs: Sequence[tuple[str, int]], outputs: Sequence[tuple[str, tuple[int, ...]]],
        make: Callable[[], Any],
    ) -> Supplied:
        return self.tree.compile(f"{name} {self.source.digest}", inputs, outputs, make)

    def iterate(
        self, name: str, sizes: tuple[int, int, int], steps: int, make: Callable[[], Any], every: bool,
        dtype: type[np.floating] = np.float64,
    ) -> Callable[..., Array]:  # fmt: skip
        return self.tree.iterate(f"{name} {self.source.digest}", sizes, steps, make, every, dtype)

    def kernel(self, quantity: Quantity) -> Kernel:
        """The tree's kernel of what constraints do not change."""
        return self.tree.kernel(quantity)

    def together(self, asked: Sequence[Quantity], dtype: type[np.floating] = np.float64) -> Kernel | None:
        """The tree's, for what constraints do not change; anything else has diagnostics of its own."""
        return self.tree.together(asked, dtype) if all(x.constrained is None for x in asked) else None

    def derived(
        self, quantity: Quantity, label: str, results: Sequence[tuple[str, tuple[int, ...]]], text: Callable[..., Any],
    ) -> Supplied | None:  # fmt: skip
        """The tree's, as with `together`."""
        return self.tree.derived(quantity, label, results, text) if quantity.constrained is None else None

    def require_closed(self, q: Array, v: Array | None = None, parameters: Array | None = None) -> None:
        self.assembly.require_closed(q, v, parameters)

    def require_dynamics(self, q: Array, v: Array) -> None:
        """The state must be on the constraints, every motion that they allow must have mass."""
        self.assembly.require_closed(q, v)
        self._require_mass(QUANTITIES["forward_dynamics"], q)
        if self.is_compiled:
            self.plans.free(q)

    def require_acceleration(self, q: Array, v: Array, a: Array, parameters: Array | None = None) -> None:
        self.assembly.require_acceleration(q, v, a, parameters)

    def constraint_rank(self, q: Array, parameters: Array | None = None) -> Array:
        """The rank of J, (...), state by state."""
        return ranks(self.constraints.jacobian(q, parameters))

    def eliminated(self, quantity: Quantity, *arrays: Array, plan: Plan | None = None) -> tuple[Array, ...]:
        """A quantity by one plan alone (by default the free one), with its diagnostics: for who decides himself what to
        believe."""
        return self._kernel(quantity, plan or self.plans.free(arrays[0]))(*arrays, *self.source.given())

    # Inside.

    def _chosen_anew(self, q: Array) -> bool:
        """Whether fewer motions pass near q than were chosen, so that coordinates and plans are made anew."""
        if not self.own.chosen_anew(q):
            return False
        self.plans.forget()
        return True

    def _plan(self, quantity: Quantity, columns: tuple[int, ...], q: Array) -> Plan | None:
        if not self.is_compiled or not is_short_for(quantity.name, self.mechanism.nv):
            return None
        if not refers_to_coordinates(quantity):
            if not self.plans.is_made:
                self.assembly.require_closed(q)
            return self.plans.blocked(self.plans.free(q), q)
        if not self.plans.has_columns(columns):
            self.assembly.require_closed(q)
        plan = self.plans.of_columns(columns, q)
        return None if plan is None else self.plans.blocked(plan, q, columns)

    def _can_drive(self, quantity: Quantity, plan: Plan, q: Array) -> bool:
        """Whether the drives can hold every motion, where the text asks them to."""
        return not quantity.name.startswith(DRIVEN) or self.drives.can_hold(plan, q)

    def can_hold(self, plan: Plan) -> bool:
        """Whether the drives can hold every motion, along a plan."""
        return self.drives.can_hold(plan, self.assembly.from_neutral())

    def shares_of(self, plan: Plan) -> Plan | None:
        """How as many drives as motions share a load, along a plan."""
        return self.drives.shares(plan, self.assembly.from_neutral())

    def _kernel(self, quantity: Quantity, plan: Plan, dtype: type[np.floating] = np.float64) -> Kernel:
        """The kernel along a plan; the last of its results is its diagnostics, or in float32 its doubt."""
        shares = self.drives.known_shares(plan) if quantity.name.startswith(DRIVEN) else None
        is_double = dtype is np.float64
        name = f"{quantity.name} along {plan.label}{shares.label if shares else ''}{'' if is_double else ' float32'}"
        if name not in self._kernels:
            told = [] if quantity.name in PLAIN else [DIAGNOSTICS if is_double else DOUBT]
            sizes = self._sizes(plan.independent)
            self._kernels[name] = self.tree.compile(
                f"{name} {self.source.digest}", quantity.inputs(sizes), [*quantity.shapes(sizes), *told],
                lambda: self._traced(quantity, plan, is_double=is_double), dtype,
            ).kernel  # fmt: skip
        return self._kernels[name]

    def _traced(self, quantity: Quantity, plan: Plan, others: tuple[Plan, ...] = (), is_double: bool = True) -> Any:
        mechanism = self.tree.reduced_mechanism if quantity.reduced else self.tree.traced_mechanism
        text, names = quantity.constrained, quantity.arguments
        assert text is not None

        def body(*arrays: Array, domain: Any) -> tuple[Array, ...]:
            passing, drives = along_plans((plan, *others)), self.drives
            closed = Closed(mechanism, self.constraints.traced, passing, drives.columns, drives.known_shares(plan))
            values = text(closed, *arrays, domain=domain)
            values = values if isinstance(values, tuple) else (values,)
            if quantity.name in PLAIN:
                return values
            given = dict(zip(names, arrays, strict=True))
            if not is_double:
                return (*values, closed.doubt(given["q"], given.get("v"), given.get("a"), domain))
            return (*values, closed.diagnostics(given["q"], given.get("v"), domain))

        inputs = quantity.inputs(self._sizes(plan.independent))
        return trace(quantity.name, inputs, body, mechanism.symbols, self.constraints.graph)

    def _by_formulation(self, request: Request, columns: tuple[int, ...]) -> Array:
        if request.formulation == "network" and request.quantity.name == "forward_dynamics":
            return self._by_network(request)
        return self._by_rank(request, lambda some: self.ranked.by_formulation(some, columns))

    def _by_rank(self, request: Request, answer: Callable[[Request], Any]) -> Any:
        """Every state by singular values, as many at a time as take some megabytes."""

        def some(part: Request) -> Any:
            assert part.singular is not None
            part.singular[...] = True
            return answer(part)

        size = (self.mechanism.nv + len(self.constraints.constraints)) ** 2
        return in_parts(self, request, some, RANKED * size)

    def _by_network(self, request: Request) -> Array:
        from polybody.formulations.network import forward_accelerations, network_of

        if request.wrenches is not None:
            raise PolybodyError("with loops the network takes no wrenches; pb.network(model).force puts them in")
        net, joints = network_of(self.mechanism), self.mechanism.independent_joints
        names = [joint.name for joint in joints]
        self.assembly.require_closed(*request.arrays[:2])

        def accelerations(arrays: Sequence[Array]) -> Array:
            lead = batch_shape(arrays)
            wide = [np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]) for x in arrays]
            q = {joint.name: wide[0][:, joint.q] for joint in joints}
            v, tau = ({joint.name: x[:, joint.v] for joint in joints} for x in wide[1:])
            if lead:
                return forward_accelerations(net, q, v, tau, names).reshape(*lead, -1)
            found = net.solve({n: x[0] for n, x in q.items()}, {n: x[0] for n, x in v.items()},
                              forces={n: x[0] for n, x in tau.items()})  # fmt: skip
            return np.concatenate([np.atleast_1d(found.accelerations[n]) for n in names])

        def some(part: Request) -> Array:
            try:
                return accelerations(part.arrays)
            except PolybodyError:  # of a batch without names and places: the first such state says them
                lead = batch_shape(part.arrays)
                if lead:
                    raise_by_state(accelerations, part.arrays, [0] * len(lead))
                raise

        rows = self.mechanism.nv + len(self.constraints.constraints)
        return in_parts(self, request, some, NETWORK * rows)

    def _require_on_constraints(self, request: Request, bad: tuple[bool, bool]) -> None:
        """Raise where states (and velocities), or accelerations, seem to break the constraints."""
        given = dict(zip(request.quantity.arguments, request.arrays, strict=True))
        if bad[0]:
            self.assembly.require_closed(given["q"], given.get("v"), request.parameters)
        if bad[1]:
            self.assembly.require_acceleration(given["q"], given["v"], given["a"], request.parameters)

    def _require_mass(self, quantity: Quantity, q: Array) -> None:
        """Raise where a mechanism has motions without inertia; asked once, of the first state."""
        if not self._has_mass and "tau" in quantity.arguments:
            first = first_state(q)
            if self.mechanism.nv > READ_UP_TO or self.tree.has_kernel(QUANTITIES["mass_matrix"]):
                M = self.tree.answer(Request(QUANTITIES["mass_matrix"], (first,)))
            else:
                M = denoc.mass_matrix(self.tree.mechanism, first)
            self.ranked.refuse_massless(M, self.constraints.jacobian(first), ())
            self._has_mass = True

    def _at_once(self) -> int:
        """States whose matrices and their singular values together take some megabytes."""
        from polybody.kernels import arrays

        size = self.mechanism.nv + len(self.constraints.constraints)
        return max(1, int(arrays.PIECE // (RANKED * 8 * size**2)))

    def _flag(self, request: Request, states: Array) -> None:
        if request.singular is None:
            self.report(request, states)
        else:
            request.singular[...] |= states

    def report(self, request: Request, singular: Array) -> None:
        """Warn where the marked states of a batch have not the rank that the others have."""
        states = singular
        if not np.any(states) or refers_to_coordinates(request.quantity) or request.quantity.name == "projection_step":
            return
        q, values = request.arrays[0], () if request.parameters is None else (request.parameters,)
        wide = [np.broadcast_to(x, (*states.shape, x.shape[-1])) for x in (q, *values)]
        parts = places_of(states, self._at_once())
        ranks = np.concatenate([np.atleast_1d(self.constraint_rank(*(x[at] for x in wide))) for at in parts])
        kin = self if not values else self.at(first_state(values[0]))
        kin.coordinates(q)
        odd = ranks != kin.rank
        if not np.any(odd):
            return
        first = tuple(int(i) for i in np.argwhere(states)[np.flatnonzero(odd)[0]])
        where = f"; the first is {', '.join(map(str, first))}" if first else ""
        told = ", ".join(map(str, np.unique(ranks[odd])))
        warn(
            f"{int(np.sum(odd))} of {states.size} states are singular{where}: the constraints have rank {told} there, "
            f"{kin.rank} in general. Each state is solved with its own rank; model.constraints.rank(q) reports "
            "the rank of each"
        )


def _writable(values: list[Array]) -> list[Array]:
    """Results as arrays, which those of one state may not be: the kernel's own otherwise, written in place."""
    return [x if isinstance(x, np.ndarray) else np.array(x) for x in values]


def _alone(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else values


def _refuse_choice(request: Request) -> None:
    if request.independent is not None:
        raise InputError(f"{request.quantity.name} does not depend on the choice of independent coordinates")


__all__ = ["ConstrainedEngine"]
