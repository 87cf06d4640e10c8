"""`model.coefficients`: Freeman's influence coefficients and dynamic arrays, Swain & Morris' operators.

    v = G u̇,    a = G ü + u̇ᵀHu̇,    I* ü + u̇ᵀP*u̇ − load = Gᵀ tau
    I*_uu = Gᵀ I* G,    P*_uuu = Gᵀ•(Gᵀ P* G) + (Gᵀ I*)•H                                           (4-26)-(4-32)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.algebra.domains import Domain
from polybody.constraints.coefficients import carried, combine, sandwich
from polybody.errors import InputError, PolybodyError
from polybody.formulations import influence as freeman
from polybody.formulations import operators as formulation
from polybody.formulations.influence.batched import CARRIED, PAIR, PAIR_LOADS
from polybody.formulations.influence.coefficients import Influence, check_order, higher_center_orders, higher_orders
from polybody.late import dataclass
from polybody.mechanism.columns import state_text, velocity_names
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism
from polybody.model.arguments import into, state_array
from polybody.model.engine import Request
from polybody.model.operators import Operators
from polybody.model.sets import large, one_set
from polybody.model.tracing import trace
from polybody.names import counted
from polybody.quantities import frames
from polybody.quantities.quantity import Quantity
from polybody.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray
FLOAT64 = np.dtype(np.float64)

#: Above this many results straight-line code takes too long to compile; numpy then works over the whole batch.
COMPILED_UP_TO = 3000
#: States from which on a kernel of D is worth compiling: numpy takes 50 us a state of a 7-dof arm, the kernel one.
THIRD_ORDER_FROM = 1000
#: Velocities up to which I* and P* are one kernel: every entry of P* sums over bodies. Above, numpy multiplies
#: what kernels of the screws and of their pairs give.
COMPILED_ARRAYS_UP_TO = 9


@dataclass(frozen=True, eq=False)
class ReducedDynamics:
    """I* ü + u̇ᵀP*u̇ − load = Gᵀtau at assembled configurations (...); v = G u̇, a = G ü + u̇ᵀHu̇."""

    names: tuple[str, ...]  # of the independent coordinates u
    G: Array  # (..., nv, m)
    H: Array  # (..., nv, m, m)
    I: Array  # (..., m, m), the paper's name
    P: Array  # (..., m, m, m)
    load: Array  # (..., m): −gravity + springs at rest


class Coefficients:
    """Kinematics and dynamics as arrays of influence coefficients."""

    def __init__(self, model: Model) -> None:
        self._model, self._mechanism, self._tree = model, model.mechanism, model.engine.tree
        #: compiled coefficients by frame and order, for calls that need no preparation: they count in small batches
        self._ready: dict[tuple[str, int], Callable[..., Any]] = {}
        self._known: set[str] = set()

    @large
    def influence(
        self, q: ArrayLike, frame: str, order: int = 3, *, point: Any = None, independent: Sequence[str] | None = None,
        parameters: ArrayLike | None = None,
    ) -> Influence:  # fmt: skip
        """Influence coefficients G (..., 6, nv), H (..., 6, nv, nv), D (..., 6, nv, nv, nv) of a frame, world axes.

        Rows are [angular; linear]; H[:, m, n] is the derivative of G[:, n] along v_m, D[:, l, m, n] that of H[:, m, n]
        along v_l. `order` is the highest order computed. `point` moves the reference point away from the frame's
        origin: three numbers in the frame's axes, or "com" for the mass centre of the rigid body that carries the
        frame. With loops the coefficients refer to all velocities of the tree, which v = G u̇ relates; with
        `independent` coordinates they refer to u instead (m columns), loops included.
        """
        if point is None and independent is None and isinstance(q, np.ndarray) and q.dtype is FLOAT64:
            ready = self._ready.get((frame, order)) if isinstance(frame, str) and isinstance(order, int) else None
            if ready is not None:  # asked before: the kernel itself checks what is left to check
                return Influence(*ready(q))
        order, place, q = check_order(order), self._placed(frame, point), self._model._q(q)
        name = f"{place.name} {place.position.tolist()}"
        compiled, values = self._compiled_order(order, name, q), self._model._parameters(parameters)
        whole = compiled == order
        chosen = None if point is None else point if isinstance(point, str) else state_array("point", point, 3)
        quantity = _influence_quantity(self._mechanism, frame, compiled, place, whole, chosen)
        found = _influence(self._tree.answer(Request(quantity, (q,), parameters=values)))
        self._known.add(f"{compiled} {name}")
        plain = self._mechanism.nq == self._mechanism.nv and self._tree.source.variation is None
        if point is None and whole and order > 1 and plain:
            self._ready[frame, order] = self._tree.kernel(quantity).call
        found = found if whole else higher_orders(self._mechanism, found, order)
        return self._over(q, order, found, independent, values)

    def centroidal_momentum_matrix(
        self, q: ArrayLike, *, parameters: ArrayLike | None = None, out: Array | None = None
    ) -> Array:
        """Centroidal momentum matrix A(q), (..., 6, nv): momentum = A v, rows [angular; linear], world axes."""
        self._model._require_mass("momentum about a centre of mass")
        return self._model._ask("centroidal_momentum_matrix", (q,), parameters=parameters, out=out)

    def task_space_inertia(
        self, q: ArrayLike, frame: str, *, parameters: ArrayLike | None = None, out: Array | None = None
    ) -> Array:
        """Task-space inertia (J M⁻¹ Jᵀ)⁻¹ of a frame, (..., 6, 6), in world axes.

        The frame must be able to move in all six directions.
        """
        if self._model.nv < 6:
            few = f"{self._model.name!r} has {counted(self._model.nv, 'velocity', 'velocities')}"
            raise InputError(f"{few}: no frame of it moves in all six directions")
        try:
            found = self._model._ask(frames.task_space_inertia(self._mechanism, frame), (q,), parameters=parameters)
        except ZeroDivisionError:  # known while the text is read: no state can do it
            raise InputError(f"frame {frame!r} cannot move in all six directions, so it has no 6×6 inertia") from None
        bad = ~np.isfinite(found).all(axis=(-1, -2)) & np.isfinite(self._model._q(q)).all(axis=-1)
        if np.any(bad):
            index = tuple(int(i) for i in np.argwhere(bad)[0]) if found.ndim > 2 else ()
            raise PolybodyError(
                f"frame {frame!r} cannot move in all six directions{state_text(index)}: the configuration is singular"
            )
        return into(out, found)

    @large
    def center_of_mass(
        self, q: ArrayLike, order: int = 3, *, independent: Sequence[str] | None = None,
        parameters: ArrayLike | None = None,
    ) -> Influence:  # fmt: skip
        """Influence coefficients of the centre of mass of the moving bodies; the angular rows are zero."""
        self._model._require_mass("centre of mass")
        order, q, values = check_order(order), self._model._q(q), self._model._parameters(parameters)
        if 6 * self._mechanism.nv**order <= COMPILED_UP_TO:
            whole = frames.center_of_mass_influence(self._mechanism, order)
            found = _influence(self._tree.answer(Request(whole, (q,), parameters=values)))
        else:
            columns = self._tree.answer(Request(_CENTER_COLUMNS, (q,), parameters=values))
            found = higher_center_orders(self._mechanism, columns, order)
        return self._over(q, order, found, independent, values)

    @large
    def dynamic_arrays(
        self, q: ArrayLike, *, independent: Sequence[str] | None = None, parameters: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """(I*, P*) of tau = I* a + vᵀP*v − loads: (..., m, m) and (..., m, m, m); P*[i] belongs to tau_i.

        With loops they refer to the independent coordinates.
        """
        q, values = self._model._q(q), self._model._parameters(parameters)
        if not len(self._model.constraints):
            self._refuse_choice(independent)
            return self._tree_arrays(q, values)
        return self._arrays(q, self._model.constraints.joint_influence(q, 2, independent, parameters=values), values)

    @large
    def reduced_dynamics(
        self, q: ArrayLike, independent: Sequence[str] | None = None, *, parameters: ArrayLike | None = None
    ) -> ReducedDynamics:
        """Freeman's reduced model at assembled configurations: G and H of all joints, I*, P* and load."""
        q, constraints, values = self._model._q(q), self._model.constraints, self._model._parameters(parameters)
        joints = constraints.joint_influence(q, 2, independent, parameters=values)
        assert joints.H is not None
        I, P = self._arrays(q, joints, values)
        rest = np.zeros(self._mechanism.nv)
        passive = self._tree.answer(Request(QUANTITIES["passive_forces"], (q, rest), parameters=values))
        load = passive - self._tree.answer(Request(QUANTITIES["gravity_forces"], (q,), parameters=values))
        names = velocity_names(self._mechanism)
        chosen = tuple(names[k] for k in constraints._columns(independent))
        carried_back = (np.swapaxes(joints.G, -1, -2) @ load[..., None])[..., 0]
        return ReducedDynamics(chosen, joints.G, joints.H, I, P, carried_back)

    @one_set
    def operators(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, frames: Sequence[str] | None = None,
        active: Any = None, parameters: ArrayLike | None = None,
    ) -> Operators:  # fmt: skip
        """Spatial operators and the coefficients of the unified model at (q, v), under the paper's names.

        `frames` are the end effectors (default: the outermost links), `active` the driven columns (default: the model's
        own). tau (default 0) enters T_a, T_p and T_hat only. `parameters` is one set, (k,).
        Defined for trees; a model with loops raises an error.
        """
        from polybody.quantities.frames import find_frame

        if len(self._model.constraints):
            raise PolybodyError(
                "operators: the paper's operators are those of a tree, and this model has loops; "
                "model.tree.coefficients.operators gives the tree's, actuation.hybrid_dynamics splits active and "
                "passive columns with loops, mass_matrix, dynamic_arrays and influence(…, independent=…) give what "
                "moves in independent coordinates"
            )
        m = self._mechanism
        values = (q, v, np.zeros(m.nv) if tau is None else tau)
        q, v, tau = self._model._arrays(QUANTITIES["forward_dynamics"], values)
        tips = None if frames is None else tuple(find_frame(m, name) for name in frames)
        split = formulation.split(m, self._model.actuation.mask(active), tips)
        return Operators(self._tree, q, v, tau, split)

    # Inside.

    def _compiled_order(self, order: int, name: str, q: Array) -> int:
        """How many orders the kernel gives. D takes seconds to compile, so few states get it from numpy, by G and H."""
        if order == 3 and f"3 {name}" not in self._known and q.size < THIRD_ORDER_FROM * q.shape[-1]:
            order = 2
        while order > 1 and 6 * self._mechanism.nv**order > COMPILED_UP_TO:
            order -= 1
        return order

    def _placed(self, frame: str, point: Any) -> BodyFrame:
        place = frames.find_frame(self._mechanism, frame)
        if isinstance(point, str) and (point != "com" or place.body == GROUND):
            raise InputError(f"point is {point!r} of {frame!r}, expected three numbers, or 'com' of a moving body")
        given = point is None or isinstance(point, str)
        return _place(self._mechanism, frame, point if given else state_array("point", point, 3))

    def _over(
        self, q: Array, order: int, found: Influence, independent: Sequence[str] | None, values: Array | None = None
    ) -> Influence:
        if independent is None:
            return found
        if not len(self._model.constraints):
            self._refuse_choice(independent)
        joints = self._model.constraints.joint_influence(q, order, independent, parameters=values)
        orders = [[x for x in (part.G, part.H, part.D) if x is not None] for part in (found, joints)]
        return Influence(*carried(*orders))

    def _refuse_choice(self, independent: Sequence[str] | None) -> None:
        if independent is not None:
            raise InputError("independent coordinates are chosen in models with loops; this one has none")

    def _tree_arrays(self, q: Array, values: Array | None = None) -> tuple[Array, Array]:
        n = self._mechanism.nv
        if n <= COMPILED_ARRAYS_UP_TO:
            results = (("I", ("nv", "nv")), ("P", ("nv", "nv", "nv")))
            quantity = Quantity("dynamic_arrays", ("q",), results, freeman.dynamic_arrays, group="dynamics")
            return self._tree.answer(Request(quantity, (q,), parameters=values))
        S, borne, armature = self._tree.answer(Request(_COMPOSITES, (q,), parameters=values))
        pairs = self._tree.compile("pair loads", PAIR, PAIR_LOADS, lambda: trace("pairs", PAIR, freeman.pair_loads))
        return freeman.arrays_of_composites(self._mechanism, S, borne, armature, pairs)

    def _arrays(self, q: Array, joints: Influence, values: Array | None = None) -> tuple[Array, Array]:
        I, P = self._tree_arrays(q, values)
        assert joints.H is not None
        G, back = joints.G, np.swapaxes(joints.G, -1, -2)
        return back @ I @ G, combine(back, sandwich(G, P)) + combine(back @ I, joints.H)


def _place(m: Mechanism, frame: str, point: Any) -> BodyFrame:
    """The frame, moved to a point of its body: a mechanism with parameters places it by them."""
    place = frames.find_frame(m, frame)
    if point is None:
        return place
    position = m.bodies[place.body].com if isinstance(point, str) else place.position + place.rotation @ point
    return BodyFrame(place.name, place.body, place.rotation, position)


def _influence_quantity(
    m: Mechanism, frame: str, order: int, place: BodyFrame, whole: bool, point: Any
) -> Quantity:
    if not whole:
        return _column_influence(frame, order, place, point)
    if point is None:
        return frames.influence(m, frame, order)
    label = point if isinstance(point, str) else np.asarray(point).tolist()
    return frames.influence(m, frame, order, lambda m: _place(m, frame, point), f"{label}")


def _column_influence(frame: str, order: int, place: BodyFrame, point: Any) -> Quantity:
    """G, H with an index for each column of all joints, followers too: what `higher_orders` starts from."""

    def text(m: Mechanism, q: Array, *, domain: Domain) -> tuple[Array, ...]:
        found = freeman.column_influence(m, q, _place(m, frame, point), order, domain=domain)
        return tuple(x for x in (found.G, found.H, found.D) if x is not None)

    results = tuple((name, (6, *("slots",) * (k + 1))) for k, name in enumerate("GHD"[:order]))
    return Quantity(f"column_influence:{frame}:{order}:{place.position.tolist()}", ("q",), results, text)


def _center_columns(m: Mechanism, q: Array, *, domain: Domain) -> Array:
    return freeman.center_columns(freeman.configured(m, q, domain=domain), sum(body.mass for body in m.bodies))


def _composites(m: Mechanism, q: Array, *, domain: Domain) -> tuple[Array, Array, Array]:
    return (*freeman.composites(m, q, domain=domain), domain.array(m.armature))


#: what the centre of mass's coefficients of higher order, and I* and P* of large trees, are made of over batches
_CENTER_COLUMNS = Quantity("center_columns", ("q",), (("columns", (6, "slots")),), _center_columns)
_COMPOSITES = Quantity(
    "composites", ("q",), (("S", ("slots", 6)), ("carried", ("bodies", CARRIED)), ("armature", ("nv", "nv"))),
    _composites,
)  # fmt: skip


def _influence(found: Any) -> Influence:
    return Influence(*(found if isinstance(found, tuple) else (found,)))


__all__ = ["Coefficients", "ReducedDynamics"]
