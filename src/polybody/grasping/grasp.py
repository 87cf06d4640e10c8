"""`Grasp`: arms of a model that hold a common object. `making.grasp` makes it.

A grasp is a model with loops, `closed`: each grip is a cut joint of kind "fixed" between a hand and its place on the
object, and all that follows comes from the engine of models with loops. Its answers here are in the words of Swain &
Morris (sections 5.4 to 9): loads f_e act on the object, in the axes of each end effector, at its origin. They are the
multipliers of the grips' rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.constraints.ranks import RANK_TOLERANCE, ranked_svd
from polybody.errors import InputError
from polybody.grasping.engine import HeldEngine
from polybody.grasping.grips import Holding
from polybody.grasping.inverse import ranked_inverse
from polybody.model import wrenches as loads
from polybody.model.arguments import finite, state_array
from polybody.model.batches import batch_shape
from polybody.model.constrained_engine import ConstrainedEngine
from polybody.model.model import Model
from polybody.model.operators import Operators
from polybody.model.wrenches import Wrenches
from polybody.quantities.holding import Wanted

Array = np.ndarray

DIRECTIONS = ("angular x", "angular y", "angular z", "linear x", "linear y", "linear z")


@dataclass(frozen=True, eq=False)
class GraspMotion:
    """Accelerations a of all columns, loads f_e (..., m, 6) on the object, acceleration V̇° of the object."""

    a: Array
    f_e: Array
    object_acceleration: Array  # V̇°, (..., 6)


@dataclass(frozen=True, eq=False)
class GraspForces:
    """Joint forces tau (..., nv) of a held motion, its accelerations a, loads f_e (..., m, 6), internal loads λ.

    `deficient` (...) marks states in which closure and balance lose rank (an arm stretched out, say) and the motion can
    be made all the same: of all answers there the nearest to what was wanted is given.
    """

    tau: Array
    a: Array
    f_e: Array
    internal: Array
    deficient: Array


@dataclass(frozen=True, eq=False)
class Capture:
    """Velocity v right after the capture, impulses (..., m, 6) on the object in grip axes, kinetic energy lost."""

    v: Array
    impulses: Array
    energy_lost: Array  # (...), J


class Grasp:
    """A model whose end effectors hold one of its bodies rigidly; made by `pb.grasp`.

    `model` is the model without the grips, `closed` the model with them, accepted wherever a model with loops is.
    """

    def __init__(self, model: Model, held: Holding, closed: Model) -> None:
        self.model, self.held, self.closed = model, held, closed
        assert isinstance(closed.engine, ConstrainedEngine)
        self._engine = HeldEngine(held, closed.engine)

    @property
    def object(self) -> str:
        """Name of the held body."""
        return self.model.body_names[self.held.object]

    @property
    def frames(self) -> list[str]:
        """End-effector frames, in the order of f_e."""
        return [grip.tip.name for grip in self.held.grips]

    @property
    def W(self) -> Array:
        """Grasp matrix, 6m×6: twists of the grips from that of the object, V^e = W V° (34)."""
        return self.held.W

    @property
    def internal_basis(self) -> Array:
        """Basis N of the internal loads, 6m×6(m−1), WᵀN = 0; its columns are `internal_names`."""
        return self.held.internal_basis

    @property
    def internal_names(self) -> list[str]:
        """Names of the internal loads: wrenches in object axes at the object's origin."""
        return self.held.internal_names

    def operators(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, active: Any = None) -> Operators:
        """`model.coefficients.operators` with the grips as end effectors."""
        return self.model.coefficients.operators(q, v, tau, frames=self.frames, active=active)

    # Consistency

    def openings(self, q: ArrayLike) -> tuple[Array, Array]:
        """(angles, distances), each (..., m): deviation of every end effector from its place on the object."""
        sine, versine, squared = np.moveaxis(self._engine.openings(self.model._q(q)), -1, 0)
        return np.arctan2(np.sqrt(sine), 1.0 - versine), np.sqrt(squared)

    def check(self, q: ArrayLike, v: ArrayLike | None = None, *, tolerance: float = 1e-6) -> None:
        """Raise an error if grips are open or separating at a state; it names the arm and the deviation."""
        angles, distances = self.openings(q)
        worst = np.maximum(angles, distances)
        if not np.all(worst <= tolerance):
            at = _worst(worst)
            raise InputError(
                f"end effector {self.frames[at[-1]]!r} does not meet the object {self.object!r}{_of_batch(at[:-1])}: "
                f"it is {distances[at]:.6g} m and {angles[at]:.6g} rad from its grip; put it there, or use project()"
            )
        q = state_array("q", q, self.model.nq)
        if v is not None:
            v = state_array("v", v, self.model.nv)
            apart = (self.closure_matrix(q) @ v[..., None])[..., 0]
            speed = np.abs(apart.reshape(*apart.shape[:-1], self.held.m, 6)).max(axis=-1)
            if not np.all(speed <= tolerance * (1 + np.abs(v).max(axis=-1, keepdims=True))):
                at = _worst(speed)
                raise InputError(
                    f"end effector {self.frames[at[-1]]!r} moves against the object {self.object!r}"
                    f"{_of_batch(at[:-1])} at {speed[at]:.6g} (m/s or rad/s); use project(), or capture() at the "
                    "moment of grasping"
                )
        self.model.engine.require_closed(q, v)

    def closure_matrix(self, q: ArrayLike) -> Array:
        """A = [J −WΦ_o], (..., 6m, nv): A v are the separation velocities of the grips, in end-effector axes."""
        return -self.closed.constraints.jacobian(q)[..., self._engine.rows, :]

    def project(self, q: ArrayLike, v: ArrayLike | None = None, *, tolerance: float = 1e-10) -> Any:
        """Nearest state that satisfies the grasp: q, or (q, v). The velocity is nearest in kinetic energy."""
        q = finite("q", state_array("q", q, self.model.nq))
        closed, left = self._engine.closed_near(q.reshape(-1, self.model.nq))
        if not np.all(left <= tolerance):
            worst = int(np.argmax(left))
            index = _of_batch(tuple(int(i) for i in np.unravel_index(worst, q.shape[:-1])))
            raise InputError(
                f"no configuration near q{index} closes the grasp of {self.object!r}: {left[worst]:.3g} stays open; "
                "start nearer, or check that the arms reach their grips"
            )
        closed = closed.reshape(q.shape)
        if np.any(self._engine.openings(closed)[..., 1] > 1.0):  # a half turn, whose sine vanishes
            self.check(closed)
        return closed if v is None else (closed, self.capture(closed, v).v)

    # Motion

    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None, tolerance: float = 1e-6
    ) -> GraspMotion:
        """Accelerations, end-effector loads and the object's acceleration under the joint forces tau.

        The state must satisfy the grasp to `tolerance` (see `project`). tau covers all columns; those of the base and
        of the object are external forces on them. The first call compiles a kernel, which takes a second or two for
        arms in general position.
        """
        arrays = q, v, tau = self._states(("q", q), ("v", v), ("tau", tau))
        given = loads.checked(self.closed.mechanism, wrenches)
        on_bodies = loads.on_bodies(self._engine.closed.tree, q, given) if given else None
        if not (self._engine.ready(q) and self._engine.is_compiled):
            self.check(q, v, tolerance=tolerance)
        a, multipliers, moved, opening, told, again = self._engine.motion(arrays, on_bodies)
        self._check_told(q, v, opening, told, tolerance)
        if np.any(again):
            states = arrays if on_bodies is None else (*arrays, on_bodies)
            some = [np.broadcast_to(x, (*again.shape, x.shape[-1]))[again] for x in states]
            *found, rank = self._engine.ranked_motion(*some)
            for k in np.flatnonzero(rank < self._engine.closed.rank)[:1]:
                raise InputError(self._singular(some[0][k], tuple(np.argwhere(again)[k])))
            a[again], multipliers[again], moved[again] = found
        return GraspMotion(a, self._f_e(multipliers), moved)

    def mobility(self, q: ArrayLike) -> Array:
        """H of (48), (..., 6m, 6m): end-effector accelerations per unit load on them, with the object released."""
        J = self.closure_matrix(q).copy()
        J[..., self._object_columns] = 0.0
        if len(self.model.constraints):
            J = J @ self.model.constraints.joint_influence(q, 1).G
        return J @ np.linalg.solve(self.model.mass_matrix(q), np.swapaxes(J, -1, -2))

    def _singular(self, q: Array, index: tuple[int, ...]) -> str:
        """The rank and the direction that a singular configuration lost."""
        J = self.closed.constraints.jacobian(q)
        U, _, _, kept = ranked_svd(J)
        # Of the loads that do nothing here, what is not idle in general position too.
        idle, general = U[:, int(kept.sum()) :], self._idle_nearby(q)
        left = idle - general @ (general.T @ idle)
        lost = (np.linalg.svd(left)[0][:, 0])[self._engine.rows].reshape(-1, 6)
        arm = int(np.argmax(np.linalg.norm(lost, axis=1)))
        H = self.mobility(q)
        rank_H = int(np.linalg.matrix_rank(H, tol=RANK_TOLERANCE * np.abs(H).max(initial=1e-300), hermitian=True))
        direction = np.array2string(lost[arm] / np.linalg.norm(lost[arm]), precision=4, suppress_small=True)
        return (
            f"H is singular{_of_batch(index)}: its rank is {rank_H}, and of {self._engine.closed.rank} rows of the "
            f"grasp of {self.object!r} only {int(kept.sum())} are independent; end effector {self.frames[arm]!r} "
            f"cannot be accelerated along [ω; v] = {direction} (its axes), so the loads there are not determined"
        )

    def _idle_nearby(self, q: Array) -> Array:
        """Loads that do no work in general position near q, as columns."""
        closed = self._engine.closed
        U, _, _, kept = ranked_svd(closed.constraints.jacobian(closed.assembly.general_place(q)))
        return U[:, int(kept.sum()) :]

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        object_acceleration: ArrayLike | None = None,
        *,
        a: ArrayLike | None = None,
        internal: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        active: Any = None,
        tolerance: float = 1e-6,
    ) -> GraspForces:
        """Joint forces that produce the object's acceleration, with the desired internal loads.

        `object_acceleration`, (..., nv of the object's joint), is the rate of the object's own velocity coordinates;
        redundant arms take the accelerations nearest to `a` (..., nv; default 0). Without it, `a` is the complete
        motion. `internal` is λ (..., 6(m−1)), see `internal_names`, default 0. Passive columns (those of the base) and
        the object's columns have the given tau (default 0).
        """
        if object_acceleration is None and a is None:
            raise InputError("give object_acceleration, or a, the accelerations of all columns, or both")
        whole, nv, columns = object_acceleration is None, self.model.nv, self._object_columns
        wanted = np.zeros(nv) if a is None else state_array("a", a, nv)
        moved = wanted[..., columns]
        if not whole:
            moved = state_array("object_acceleration", object_acceleration, columns.stop - columns.start)
        extra = 6 * (self.held.m - 1)
        internal = np.zeros(extra) if internal is None else state_array("internal", internal, extra)
        full = np.zeros((*batch_shape([wanted, moved]), nv))
        full[...] = wanted
        full[..., columns] = moved
        q, v, tau = self._states(("q", q), ("v", v), ("tau", np.zeros(nv) if tau is None else tau))
        beside = np.zeros((*internal.shape[:-1], len(self._engine.system)))
        beside[..., self._engine.rows] = internal @ self.internal_basis.T
        states = (q, v, full, tau, beside)
        wants = self._asked(whole, self.model.actuation.mask(active))
        if not self._engine.is_planned(wants) or not self._engine.is_compiled:
            self.check(q, v, tolerance=tolerance)
        wants = self._engine.planned(wants, q)
        forces, followed, multipliers, opening, told, again = self._engine.inverse(wants, states)
        self._check_told(q, v, opening, told, tolerance)
        deficient = np.zeros(again.shape, dtype=bool)
        if np.any(again) or not np.isfinite(multipliers).all():
            for name, x in (("accelerations", full), ("internal", internal), ("tau", tau)):
                finite(name, x)
        for at in map(tuple, np.argwhere(again)):
            state = (np.broadcast_to(x, (*again.shape, x.shape[-1]))[at] for x in states)
            found = ranked_inverse(self._engine.closed, wants, self._engine.shares, *state)
            if found.failed is not None:
                raise InputError(self._cannot(*found.failed, at))
            forces[at], followed[at], multipliers[at] = found.tau, found.a, found.multipliers
            deficient[at] = found.rank < wants.rank
        f_e = self._f_e(multipliers)
        return GraspForces(forces, followed, f_e, self.held.internal_part(f_e), deficient)

    def _asked(self, whole: bool, active: Array) -> Wanted:
        of_object, nv = range(self._object_columns.start, self._object_columns.stop), self.model.nv
        passive = tuple(k for k in range(nv) if not active[k] and k not in of_object)
        return Wanted(self._engine.names, tuple(of_object), passive, tuple(whole or k in of_object for k in range(nv)))

    def _cannot(self, kind: str, k: int, residual: float, index: tuple[int, ...]) -> str:
        if kind == "closure":
            row = self._engine.system.rows[k]
            part, axis = f"opens {row.name!r}", row.label
            if self._engine.rows.start <= k < self._engine.rows.stop:
                j, direction = divmod(k - self._engine.rows.start, 6)
                part, axis = f"opens grip {self.frames[j]!r}", DIRECTIONS[direction]
            return (
                f"the desired motion{_of_batch(index)} {part}: {axis} acceleration {abs(residual):.6g} cannot be "
                "followed; ask for a motion that the arms can make"
            )
        what = "is passive" if kind == "passive" else "belongs to the object"
        return (
            f"{self.model.actuation.column_name(k)} {what}: the desired motion{_of_batch(index)} needs the force "
            f"{abs(residual):.6g} there beyond what is given; no loads of the arms supply it"
        )

    def capture(self, q: ArrayLike, v: ArrayLike, restitution: float = 0.0) -> Capture:
        """Velocities right after the end effectors make contact with the object, and the impulses on it.

        v need not be consistent with the grasp. With `restitution` e = 0 the end effectors grip; otherwise the relative
        velocities at the grips become −e times their previous values (Newton's law, all six directions), the impulses
        grow by 1 + e, and the energy loss is reduced to (1 − e²) of that for e = 0.
        """
        e = float(restitution)
        if not 0 <= e <= 1:
            raise InputError(f"restitution is {restitution!r}; expected a number from 0 to 1")
        self.check(q)
        q, v = self._states(("q", q), ("v", v))
        after, impulses, lost = self._engine.capture(q, v)
        if not e:
            return Capture(after, self._f_e(impulses), lost)
        return Capture(v + (1 + e) * (after - v), self._f_e(impulses) * (1 + e), lost * (1 - e**2))

    # Inside

    @property
    def _object_columns(self) -> slice:
        return self.model.mechanism.joints[self.held.object].v

    def _f_e(self, multipliers: Array) -> Array:
        return multipliers[..., self._engine.rows].reshape(*multipliers.shape[:-1], self.held.m, 6)

    def _check_told(self, q: Array, v: Array, opening: Array, told: Array, tolerance: float) -> None:
        """Closure from what a kernel found on its way; what seems wrong is looked at by `check`, which says it."""
        if not (np.all(opening <= tolerance**2) and np.all(told[..., :2] <= tolerance**2)):
            self.check(q, v, tolerance=tolerance)

    def _states(self, *named: tuple[str, Any]) -> tuple[Array, ...]:
        sizes = {"q": self.model.nq}
        return tuple(state_array(name, values, sizes.get(name, self.model.nv)) for name, values in named)

    def __reduce__(self) -> Any:
        return type(self), (self.model, self.held, self.closed)

    def __repr__(self) -> str:
        return f"<Grasp of {self.object!r} by {', '.join(self.frames)}>"


def _of_batch(index: Sequence[int]) -> str:
    return f" in state {tuple(int(i) for i in index)}" if len(index) else ""


def _worst(sizes: Array) -> tuple[int, ...]:
    at = np.unravel_index(int(np.nanargmax(np.nan_to_num(sizes, nan=np.inf))), sizes.shape)
    return tuple(int(i) for i in at)


__all__ = ["Capture", "Grasp", "GraspForces", "GraspMotion"]
