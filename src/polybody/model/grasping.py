"""`Grasp`: arms of a model that hold a common object. `grasp_making` makes it.

Loads f_e act on the object, in the axes of each end effector, at its origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.analysis import cooperation
from polybody.analysis.cooperation import Holding
from polybody.analysis.cooperation.consistency import closure_terms
from polybody.analysis.cooperation.dense import row_matrix
from polybody.analysis.cooperation.loads import demand, nearest
from polybody.errors import InputError
from polybody.mechanism.mechanism import Mechanism
from polybody.model.arguments import state_array
from polybody.model.batches import batch_shape
from polybody.model.dynamics import Wrenches
from polybody.model.model import Model
from polybody.model.operators import Operators, tips_key
from polybody.model.quantities import Quantity

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class GraspMotion:
    """What the arms and the object do: a of all columns, loads f_e (..., m, 6) on the object, V̇° of the object."""

    a: Array
    f_e: Array
    object_acceleration: Array


@dataclass(frozen=True, eq=False)
class GraspForces:
    """Joint forces tau (..., nv) of a held motion, its accelerations a, loads f_e (..., m, 6), internal loads λ."""

    tau: Array
    a: Array
    f_e: Array
    internal: Array


@dataclass(frozen=True, eq=False)
class Capture:
    """v right after taking hold, impulses (..., m, 6) on the object in grip axes, kinetic energy lost."""

    v: Array
    impulses: Array
    energy_lost: Array


class Grasp:
    """A model whose arms hold one of its bodies rigidly. Made by `pb.grasp`."""

    def __init__(self, model: Model, held: Holding) -> None:
        self.model, self.held = model, held
        places = tips_key(tuple(frame for grip in held.grips for frame in (grip.tip, grip.hold)))
        self._key = f"{held.object} {places}"

    @cached_property
    def lean(self) -> Holding:
        """The grasp that kernels without wrenches are traced from."""
        lean = self.model.lean_mechanism
        return self.held if lean is self.model.mechanism else cooperation.lean_holding(self.held, lean)

    @property
    def object(self) -> str:
        """The held body."""
        return self.model.body_names[self.held.object]

    @property
    def frames(self) -> list[str]:
        """The end effectors, in the order of f_e."""
        return [grip.tip.name for grip in self.held.grips]

    @property
    def W(self) -> Array:
        """The grasp matrix, 6m×6: twists of the grips from the object's, V^e = W V° (34)."""
        return self.held.W

    @property
    def internal_basis(self) -> Array:
        """N, 6m×6(m−1): unit internal loads; WᵀN = 0. Its columns are `internal_names`."""
        return cooperation.internal_basis(self.held)

    @property
    def internal_names(self) -> list[str]:
        """What each internal load is: wrenches in object axes at the object's origin."""
        return cooperation.internal_names(self.held)

    def operators(self, q: Any, v: Any, tau: Any = None, *, active: Any = None) -> Operators:
        """`model.operators` with the grips as end effectors."""
        return self.model.operators(q, v, tau, frames=self.frames, active=active)

    # Consistency

    def openings(self, q: Any) -> tuple[Array, Array]:
        """(angles, distances), each (..., m): how far every end effector is from its place on the object."""
        gap, versine = self._kernel_gaps()(state_array("q", q, self.model.nq))
        angles = np.arctan2(np.linalg.norm(gap[..., :3], axis=-1), 1 - versine / 2)
        return angles, np.linalg.norm(gap[..., 3:], axis=-1)

    def check(self, q: Any, v: Any = None, *, tolerance: float = 1e-6) -> None:
        """Refuse states in which the grips do not meet or come apart, with the arm and how far it is off."""
        angles, distances = self.openings(q)
        worst = np.maximum(angles, distances)
        if not np.all(worst <= tolerance):
            at = np.unravel_index(int(np.nanargmax(np.nan_to_num(worst, nan=np.inf))), worst.shape)
            raise InputError(
                f"end effector {self.frames[at[-1]]!r} does not meet the object {self.object!r}{_of_batch(at[:-1])}: "
                f"it is {distances[at]:.6g} m and {angles[at]:.6g} rad off its grip; put it there, or use project()"
            )
        if v is not None:
            self._check_velocity(q, v, tolerance)

    def _check_velocity(self, q: Any, v: Any, tolerance: float) -> None:
        q, v = state_array("q", q, self.model.nq), state_array("v", v, self.model.nv)
        apart = (self.closure_matrix(q) @ v[..., None])[..., 0]
        speed = np.abs(apart.reshape(*apart.shape[:-1], self.held.m, 6)).max(axis=-1)
        if not np.all(speed <= tolerance * (1 + np.abs(v).max(initial=0))):
            at = np.unravel_index(int(np.nanargmax(np.nan_to_num(speed, nan=np.inf))), speed.shape)
            raise InputError(
                f"end effector {self.frames[at[-1]]!r} moves against the object {self.object!r}{_of_batch(at[:-1])} at "
                f"{speed[at]:.6g} (m/s or rad/s); use project(), or capture() if it is just taking hold"
            )

    def closure_matrix(self, q: Any) -> Array:
        """A = [J −WΦ_o], (..., 6m, nv): A v is how fast the grips come apart."""
        return self._kernel_closure()(state_array("q", q, self.model.nq), np.zeros(self.model.nv))[0]

    def project(self, q: Any, v: Any = None, *, tolerance: float = 1e-10) -> Any:
        """The nearest state that honours the grasp: q, or (q, v). The velocity is nearest in kinetic energy."""
        q = state_array("q", q, self.model.nq)
        closed = np.empty_like(q)
        for index in np.ndindex(q.shape[:-1]):
            closed[index], left = cooperation.closed_configuration(self.held, q[index])
            if left > tolerance:
                raise InputError(
                    f"no configuration near q{_of_batch(index)} closes the grasp of {self.object!r}: {left:.3g} stays "
                    "open; start nearer, or check that the arms reach their grips"
                )
        self.check(closed)
        if v is None:
            return closed
        return closed, self.capture(closed, v).v

    # Motion

    def forward_dynamics(
        self,
        q: Any,
        v: Any,
        tau: Any,
        *,
        wrenches: Wrenches | None = None,
        tolerance: float = 1e-6,
        compiled: bool = True,
    ) -> GraspMotion:
        """Table I: accelerations, end-effector loads and the object's acceleration under the joint forces tau.

        The state must honour the grasp to `tolerance` (see `project`). tau covers all columns, the base's and the
        object's too: what acts on them from outside. The first call compiles a kernel, which takes seconds for many
        arms; `compiled=False` answers without one, state by state.
        """
        self.check(q, v, tolerance=tolerance)
        q, v, tau = self._states(("q", q), ("v", v), ("tau", tau))
        loads = () if not wrenches else (self.model.body_wrenches(q, wrenches),)
        answer = self._kernel_forward(bool(loads)) if compiled else self._read_forward
        a, f_e, apart, moved = answer(q, v, tau, *loads)
        size = 1.0 + np.abs(a).max(axis=-1, initial=0.0)
        off = np.abs(apart).max(axis=(-1, -2))
        if not np.all(off <= 1e-6 * size):
            index = np.unravel_index(int(np.argmax(np.nan_to_num(off / size, nan=np.inf))), off.shape)
            raise InputError(self._singular(np.broadcast_to(q, (*off.shape, self.model.nq))[index], index))
        return GraspMotion(a, f_e, moved)

    def mobility(self, q: Any) -> Array:
        """H of (48), (..., 6m, 6m): accelerations of the end effectors by unit loads on them, the object let go."""
        q = state_array("q", q, self.model.nq)
        J = self.closure_matrix(q).copy()
        J[..., self.model.mechanism.joints[self.held.object].v] = 0.0
        return J @ np.linalg.solve(self.model.mass_matrix(q), np.swapaxes(J, -1, -2))

    def _singular(self, q: Array, index: tuple[Any, ...]) -> str:
        """The rank and the direction that a singular configuration lost."""
        K = row_matrix(self.held)
        U, values, _ = np.linalg.svd(K @ self.closure_matrix(q))
        rank = int(np.sum(values > 1e-8 * values[0]))
        lost = (U[:, -1] @ K).reshape(-1, 6)
        arm = int(np.argmax(np.linalg.norm(lost, axis=1)))
        H = self.mobility(q)
        rank_H = int(np.linalg.matrix_rank(H, tol=1e-8 * np.abs(H).max(initial=1e-300), hermitian=True))
        direction = np.array2string(lost[arm] / np.linalg.norm(lost[arm]), precision=4, suppress_small=True)
        return (
            f"H is singular{_of_batch(index)}: its rank is {rank_H}, and of {len(K)} rows of the grasp of "
            f"{self.object!r} only {rank} are independent; end effector {self.frames[arm]!r} cannot be accelerated "
            f"along [ω; v] = {direction} (its axes), so the loads there are not determined"
        )

    def inverse_dynamics(
        self,
        q: Any,
        v: Any,
        object_acceleration: Any = None,
        *,
        a: Any = None,
        internal: Any = None,
        tau: Any = None,
        active: Any = None,
        tolerance: float = 1e-6,
    ) -> GraspForces:
        """Joint forces that give the object its acceleration, with the wanted internal loads.

        `object_acceleration` (..., nv of the object's joint) is the rate of the object's own velocity numbers; instead
        `a` may give all columns. `internal` is λ (..., 6(m−1)), see `internal_names`, default 0. Passive columns (the
        base's) and the object's get by with the given tau (default 0). Arms with more joints than the motion needs take
        the accelerations nearest to those of `a` (default 0).
        """
        self.check(q, v, tolerance=tolerance)
        m, columns = self.model.mechanism, self.model.mechanism.joints[self.held.object].v
        if (object_acceleration is None) == (a is None):
            raise InputError("give either object_acceleration or a, the accelerations of all columns")
        whole = a is not None
        wanted = state_array("a", a, m.nv) if whole else np.zeros(m.nv)
        moved = (
            wanted[..., columns]
            if object_acceleration is None
            else state_array("object_acceleration", object_acceleration, columns.stop - columns.start)
        )
        extra = 6 * (self.held.m - 1)
        arrays = [
            *self._states(("q", q), ("v", v)),
            wanted,
            moved,
            np.zeros(extra) if internal is None else state_array("internal", internal, extra),
            *self._states(("tau", np.zeros(m.nv) if tau is None else tau)),
        ]
        lead = batch_shape(arrays)
        wide = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in arrays]
        found = [np.empty((*lead, m.nv)), np.empty((*lead, m.nv)), np.empty((*lead, self.held.m, 6))]
        passive = np.flatnonzero(~self.model.active_mask(active))
        for index in np.ndindex(lead):
            q, v, a, moved, internal, tau = (x[index] for x in wide)
            parts = self._inverse(q, v, a, moved, internal, tau, passive, whole, index)
            for store, part in zip(found, parts, strict=True):
                store[index] = part
        return GraspForces(found[0], found[1], found[2], cooperation.internal_part(self.held, found[2]))

    def _inverse(
        self, q: Array, v: Array, a: Array, moved: Array, internal: Array, tau: Array, passive: Array, whole: bool,
        index: tuple[int, ...],
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        model, held = self.model, self.held
        columns = model.mechanism.joints[held.object].v
        of_object = np.arange(columns.start, columns.stop)
        a = a.copy()
        a[columns] = moved
        fixed = np.full(model.nv, whole)
        fixed[columns] = True
        A, gamma = self._kernel_closure()(q, v)
        M = model.mass_matrix(q)
        bias = model.bias_forces(q, v) - model.passive_forces(q, v)
        # The object's own columns say what it needs; W⁻ᵀ of equal shares supplies it, whatever joint it moves by.
        needed = M[columns] @ a + bias[columns] - tau[columns]
        wrench = np.linalg.pinv(model.mechanism.joints[held.object].model.velocity_map(q[self._object_q]).T) @ needed
        f = cooperation.equal_shares(held) @ wrench + self.internal_basis @ internal
        equations = demand(A, M, bias, gamma, a, fixed, tau, passive, f, of_object)
        x, residual = nearest(equations)
        size = 1.0 + np.abs(equations.right).max() + np.abs(equations.E).max() * np.abs(x).max()
        worst = int(np.argmax(np.abs(residual)))
        if abs(residual[worst]) > 1e-8 * size:
            raise InputError(self._cannot(equations.rows[worst], residual[worst], index))
        a[~fixed] = x[: int((~fixed).sum())]
        f = x[int((~fixed).sum()) :]
        result = M @ a + bias + A.T @ f
        result[passive], result[columns] = tau[passive], tau[columns]
        return result, a, f.reshape(-1, 6)

    @property
    def _object_q(self) -> slice:
        return self.model.mechanism.joints[self.held.object].q

    def _cannot(self, row: tuple[str, int], residual: float, index: tuple[int, ...]) -> str:
        kind, k = row
        if kind == "closure":
            axis = ("angular x", "angular y", "angular z", "linear x", "linear y", "linear z")[k % 6]
            return (
                f"the wanted motion{_of_batch(index)} tears grip {self.frames[k // 6]!r} apart: {axis} acceleration "
                f"{abs(residual):.6g} cannot be followed; ask for a motion that the arms can make"
            )
        return (
            f"{self.model.column_name(k)} {'is passive' if kind == 'passive' else 'belongs to the object'}: the wanted "
            f"motion{_of_batch(index)} needs the force {abs(residual):.6g} there beyond what is given; no loads of the "
            "arms supply it"
        )

    def capture(self, q: Any, v: Any) -> Capture:
        """The velocities right after the end effectors take hold, and the impulses on the object (v need not agree)."""
        self.check(q)
        q, v = self._states(("q", q), ("v", v))
        after, impulses, lost = cooperation.captured(self.model.mass_matrix(q), self.closure_matrix(q), v)
        return Capture(after, impulses.reshape(*impulses.shape[:-1], self.held.m, 6), lost)

    # Kernels

    def _states(self, *named: tuple[str, Any]) -> list[Array]:
        return [state_array(n, x, self.model.nq if n == "q" else self.model.nv) for n, x in named]

    def _read_forward(self, *arrays: Array) -> tuple[Array, ...]:
        """What the kernel of `forward_dynamics` gives, by the text itself."""
        lead, m, nv = batch_shape(arrays), self.held.m, self.model.nv
        wide = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in arrays]
        found = np.empty((*lead, nv)), np.empty((*lead, m, 6)), np.empty((*lead, m, 6)), np.empty((*lead, 6))
        for index in np.ndindex(lead):
            q, v, tau, *more = (x[index] for x in wide)
            wrenches = more[0].reshape(-1, 6) if more else None
            for store, part in zip(found, self._one_forward(q, v, tau, wrenches), strict=True):
                store[index] = part
        return found

    def _one_forward(self, q: Array, v: Array, tau: Array, wrenches: Array | None) -> tuple[Array, ...]:
        try:
            a, f_e, apart = cooperation.closed_forward_dynamics(self.held, q, v, tau, wrenches)
        except np.linalg.LinAlgError:
            raise InputError(self._singular(q, ())) from None
        return a, f_e, apart, cooperation.object_acceleration(self.held, q, v, a)

    def _kernel_gaps(self) -> Any:
        def text(_: Mechanism, q: Array, *, domain: Domain) -> Any:
            return cooperation.openings(held, q, domain=domain), cooperation.misalignment(held, q, domain=domain)

        held = self.held
        return self.model.kernel(
            Quantity(f"grasp gaps {self._key}", ("q",), lambda _: (("gap", (held.m, 6)), ("versine", (held.m,))), text)
        )

    def _kernel_closure(self) -> Any:
        def text(_: Mechanism, q: Array, v: Array, *, domain: Domain) -> Any:
            return closure_terms(held, q, v, domain=domain)

        held = self.held
        return self.model.kernel(
            Quantity(
                f"grasp closure {self._key}",
                ("q", "v"),
                lambda m: (("A", (6 * held.m, m.nv)), ("gamma", (6 * held.m,))),
                text,
            )
        )

    def _kernel_forward(self, loaded: bool) -> Any:
        def text(_: Mechanism, q: Array, v: Array, tau: Array, *more: Array, domain: Domain) -> Any:
            wrenches = more[0].reshape(-1, 6) if more else None
            traced = self.lean if wrenches is None else held
            a, f_e, apart = cooperation.closed_forward_dynamics(traced, q, v, tau, wrenches, domain=domain)
            return a, f_e, apart, cooperation.object_acceleration(held, q, v, a, domain=domain)

        held = self.held
        name = f"grasp forward{' wrenches' if loaded else ''} {self._key}"
        arguments = ("q", "v", "tau", "wrenches") if loaded else ("q", "v", "tau")
        shapes = lambda m: (("a", (m.nv,)), ("f_e", (held.m, 6)), ("apart", (held.m, 6)), ("moved", (6,)))  # noqa: E731
        return self.model.kernel(Quantity(name, arguments, shapes, text))

    def __repr__(self) -> str:
        return f"<Grasp of {self.object!r} by {', '.join(self.frames)}>"


def _of_batch(index: tuple[Any, ...]) -> str:
    return f" in state {tuple(int(i) for i in index)}" if index else ""


__all__ = ["Capture", "Grasp", "GraspForces", "GraspMotion"]
