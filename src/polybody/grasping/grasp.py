"""`Grasp`: arms of a model that hold a common object. `grasp_making` makes it.

Loads f_e act on the object, in the axes of each end effector, at its origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody import grasping as cooperation
from polybody.errors import InputError
from polybody.grasping import Holding
from polybody.grasping.dense import row_matrix
from polybody.grasping.inverse import asked
from polybody.grasping.kernels import GraspKernels
from polybody.model.arguments import finite, state_array
from polybody.model.batches import batch_shape
from polybody.model.dynamics import Wrenches
from polybody.model.model import Model
from polybody.model.operators import Operators

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class GraspMotion:
    """What the arms and the object do: a of all columns, loads f_e (..., m, 6) on the object, V̇° of the object."""

    a: Array
    f_e: Array
    object_acceleration: Array


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
    """v right after taking hold, impulses (..., m, 6) on the object in grip axes, kinetic energy lost."""

    v: Array
    impulses: Array
    energy_lost: Array


class Grasp:
    """A model whose arms hold one of its bodies rigidly. Made by `pb.grasp`."""

    def __init__(self, model: Model, held: Holding) -> None:
        self.model, self.held = model, held
        self._kernels = GraspKernels(model, held)

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
        """`model.coefficients.operators` with the grips as end effectors."""
        return self.model.coefficients.operators(q, v, tau, frames=self.frames, active=active)

    # Consistency

    def openings(self, q: Any) -> tuple[Array, Array]:
        """(angles, distances), each (..., m): how far every end effector is from its place on the object."""
        gap, versine = self._kernels.gaps(state_array("q", q, self.model.nq))
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
        if not np.all(speed <= tolerance * (1 + np.abs(v).max(axis=-1, keepdims=True))):
            at = np.unravel_index(int(np.nanargmax(np.nan_to_num(speed, nan=np.inf))), speed.shape)
            raise InputError(
                f"end effector {self.frames[at[-1]]!r} moves against the object {self.object!r}{_of_batch(at[:-1])} at "
                f"{speed[at]:.6g} (m/s or rad/s); use project(), or capture() if it is just taking hold"
            )

    def _check_strains(self, q: Array, v: Array, strains: Array, tolerance: float) -> None:
        """The same from what a kernel found on its way; what seems wrong is looked at by `check`, which says it."""
        turned, shifted, speed = np.moveaxis(strains[..., :3], -1, 0)
        fast = tolerance * (1.0 + np.abs(v).max(axis=-1, keepdims=True))
        open_by = (2 * np.sin(min(tolerance, np.pi) / 2)) ** 2
        if not (np.all(turned <= open_by) and np.all(shifted <= tolerance**2) and np.all(speed <= fast**2)):
            self.check(q, v, tolerance=tolerance)

    def closure_matrix(self, q: Any) -> Array:
        """A = [J −WΦ_o], (..., 6m, nv): A v is how fast the grips come apart."""
        return self._kernels.closure(state_array("q", q, self.model.nq), np.zeros(self.model.nv))[0]

    def project(self, q: Any, v: Any = None, *, tolerance: float = 1e-10) -> Any:
        """The nearest state that honours the grasp: q, or (q, v). The velocity is nearest in kinetic energy."""
        q = finite("q", state_array("q", q, self.model.nq))
        closed, left = self._kernels.close(q.reshape(-1, self.model.nq))
        if not np.all(left <= tolerance):
            worst = int(np.argmax(left))
            index = np.unravel_index(worst, q.shape[:-1])
            raise InputError(
                f"no configuration near q{_of_batch(index)} closes the grasp of {self.object!r}: {left[worst]:.3g} "
                "stays open; start nearer, or check that the arms reach their grips"
            )
        closed = closed.reshape(q.shape)
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
        object's too: what acts on them from outside. The first call compiles a kernel, in a second or two for arms in
        general position; `compiled=False` answers without one, state by state.
        """
        q, v, tau = self._states(("q", q), ("v", v), ("tau", tau))
        loads = () if not wrenches else (self.model.body_wrenches(q, wrenches),)
        answer = self._kernels.forward if compiled else self._kernels.read_forward
        a, f_e, moved, strains = answer(q, v, tau, *loads)
        self._check_strains(q, v, strains, tolerance)
        size, off = 1.0 + np.abs(a).max(axis=-1, initial=0.0), np.sqrt(strains[..., 3].max(axis=-1))
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

        `object_acceleration` (..., nv of the object's joint) is the rate of the object's own velocity numbers; arms
        with more joints than that needs take the accelerations nearest to those of `a` (..., nv; default 0). Without
        it, `a` is the whole motion. `internal` is λ (..., 6(m−1)), see `internal_names`, default 0. Passive columns
        (the base's) and the object's get by with the given tau (default 0).
        """
        m, columns = self.model.mechanism, self.model.mechanism.joints[self.held.object].v
        if object_acceleration is None and a is None:
            raise InputError("give object_acceleration, or a, the accelerations of all columns, or both")
        whole = object_acceleration is None
        wanted = np.zeros(m.nv) if a is None else state_array("a", a, m.nv)
        moved = (
            wanted[..., columns]
            if whole
            else state_array("object_acceleration", object_acceleration, columns.stop - columns.start)
        )
        extra = 6 * (self.held.m - 1)
        internal = np.zeros(extra) if internal is None else state_array("internal", internal, extra)
        full = np.zeros((*batch_shape([wanted, moved]), m.nv))
        full[...] = wanted
        full[..., columns] = moved
        wants = asked(self.held, whole, self.model.actuation.mask(active))
        q, v, tau = self._states(("q", q), ("v", v), ("tau", np.zeros(m.nv) if tau is None else tau))
        states = (q, v, full, internal, tau)
        if not self._kernels.is_planned(wants):
            self.check(q, v, tolerance=tolerance)
            if not q.size:
                return self._no_forces(batch_shape(states))
        forces, followed, f_e, strains, doubtful = self._kernels.inverse(wants, states)
        self._check_strains(q, v, strains, tolerance)
        deficient = np.zeros(doubtful.shape, dtype=bool)
        if np.any(doubtful):
            for name, x in (("accelerations", full), ("internal", internal), ("tau", tau)):
                finite(name, x)
        wide = [np.broadcast_to(x, (*doubtful.shape, x.shape[-1])) for x in states]
        for at in zip(*np.nonzero(doubtful), strict=True) if doubtful.ndim else [()] * int(doubtful):
            found = self._kernels.ranked_inverse(wants, tuple(x[at] for x in wide))
            if found.failed is not None:
                raise InputError(self._cannot(*found.failed, at))
            forces[at], followed[at], f_e[at] = found.tau, found.a, found.f_e
            deficient[at] = self._kernels.loses_rank(wants, found)
        return GraspForces(forces, followed, f_e, cooperation.internal_part(self.held, f_e), deficient)

    def _no_forces(self, lead: tuple[int, ...]) -> GraspForces:
        m, vectors = self.held.m, np.empty((*lead, self.model.nv))
        loads, internal = np.empty((*lead, m, 6)), np.empty((*lead, 6 * (m - 1)))
        return GraspForces(vectors, vectors.copy(), loads, internal, np.zeros(lead, dtype=bool))

    def _cannot(self, kind: str, k: int, residual: float, index: tuple[int, ...]) -> str:
        if kind == "closure":
            axis = ("angular x", "angular y", "angular z", "linear x", "linear y", "linear z")[k % 6]
            return (
                f"the wanted motion{_of_batch(index)} tears grip {self.frames[k // 6]!r} apart: {axis} acceleration "
                f"{abs(residual):.6g} cannot be followed; ask for a motion that the arms can make"
            )
        return (
            f"{self.model.actuation.column_name(k)} {'is passive' if kind == 'passive' else 'belongs to the object'}: the wanted "
            f"motion{_of_batch(index)} needs the force {abs(residual):.6g} there beyond what is given; no loads of the "
            "arms supply it"
        )

    def capture(self, q: Any, v: Any) -> Capture:
        """The velocities right after the end effectors take hold, and the impulses on the object (v need not agree)."""
        self.check(q)
        q, v = self._states(("q", q), ("v", v))
        after, impulses, lost = cooperation.captured(self.model.mass_matrix(q), self.closure_matrix(q), v)
        return Capture(after, impulses.reshape(*impulses.shape[:-1], self.held.m, 6), lost)

    def _states(self, *named: tuple[str, Any]) -> list[Array]:
        return [state_array(n, x, self.model.nq if n == "q" else self.model.nv) for n, x in named]

    def __reduce__(self) -> Any:
        return type(self), (self.model, self.held)

    def __repr__(self) -> str:
        return f"<Grasp of {self.object!r} by {', '.join(self.frames)}>"


def _of_batch(index: tuple[Any, ...]) -> str:
    return f" in state {tuple(int(i) for i in index)}" if index else ""


__all__ = ["Capture", "Grasp", "GraspForces", "GraspMotion"]
