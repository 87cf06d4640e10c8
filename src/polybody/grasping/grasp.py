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

from polybody.algebra.domains import FLOAT
from polybody.constraints.assembly import AssemblyError
from polybody.constraints.multipliers import solve_multipliers
from polybody.constraints.ranks import RANK_TOLERANCE, ranked_svd
from polybody.errors import InputError
from polybody.grasping.grips import Holding
from polybody.grasping.inverse import SAMPLES, planned, ranked_inverse
from polybody.model import wrenches as loads
from polybody.model.arguments import finite, state_array
from polybody.model.batches import batch_shape
from polybody.model.constrained_engine import ConstrainedEngine, doubtful
from polybody.model.engine import Request
from polybody.model.model import Model
from polybody.model.operators import Operators
from polybody.model.plans import label
from polybody.model.tracing import trace
from polybody.model.wrenches import Wrenches
from polybody.quantities import holding
from polybody.quantities.holding import CAPTURED, NEAREST_STEP, Held, Wanted
from polybody.quantities.table import QUANTITIES

Array = np.ndarray

#: residuals above this part of what stands in the inverse problem's equations are looked at again, state by state
RESIDUAL = 1e-10
#: what Newton's method aims at (m, rad), and how often it tries
SETTLED, NEWTON = 1e-13, 50
DIRECTIONS = ("angular x", "angular y", "angular z", "linear x", "linear y", "linear z")


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
    """A model whose arms hold one of its bodies rigidly. Made by `pb.grasp`.

    `model` is the model without the grips, `closed` the one with them: whatever takes a model with loops takes that.
    """

    def __init__(self, model: Model, held: Holding, closed: Model) -> None:
        self.model, self.held, self.closed = model, held, closed
        assert isinstance(closed.engine, ConstrainedEngine)
        self._engine = closed.engine
        self._names = Held(held.object, tuple(grip.name for grip in held.grips))
        slices = self._engine.constraints.constraints.slices
        self._rows = np.concatenate([np.arange(slices[name].start, slices[name].stop) for name in self._names.grips])
        self._wants: dict[Wanted, Wanted] = {}
        self._is_ready = False

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
        return self.held.internal_basis

    @property
    def internal_names(self) -> list[str]:
        """What each internal load is: wrenches in object axes at the object's origin."""
        return self.held.internal_names

    def operators(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, active: Any = None) -> Operators:
        """`model.coefficients.operators` with the grips as end effectors."""
        return self.model.coefficients.operators(q, v, tau, frames=self.frames, active=active)

    # Consistency

    def openings(self, q: ArrayLike) -> tuple[Array, Array]:
        """(angles, distances), each (..., m): how far every end effector is from its place on the object."""
        quantity = holding.grip_openings(self._engine.constraints.constraints, self._names)
        found = self._engine.tree.answer(Request(quantity, (self.model._q(q),)))
        sine, versine, squared = np.moveaxis(found, -1, 0)
        return np.arctan2(np.sqrt(sine), 1.0 - versine), np.sqrt(squared)

    def check(self, q: ArrayLike, v: ArrayLike | None = None, *, tolerance: float = 1e-6) -> None:
        """Refuse states in which the grips do not meet or come apart, with the arm and how far it is off."""
        angles, distances = self.openings(q)
        worst = np.maximum(angles, distances)
        if not np.all(worst <= tolerance):
            at = _worst(worst)
            raise InputError(
                f"end effector {self.frames[at[-1]]!r} does not meet the object {self.object!r}{_of_batch(at[:-1])}: "
                f"it is {distances[at]:.6g} m and {angles[at]:.6g} rad off its grip; put it there, or use project()"
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
                    f"{_of_batch(at[:-1])} at {speed[at]:.6g} (m/s or rad/s); use project(), or capture() if it is "
                    "just taking hold"
                )
        self.model.engine.require_closed(q, v)

    def closure_matrix(self, q: ArrayLike) -> Array:
        """A = [J −WΦ_o], (..., 6m, nv): A v is how fast the grips come apart, in the axes of the end effectors."""
        return -self.closed.constraints.jacobian(q)[..., self._rows, :]

    def project(self, q: ArrayLike, v: ArrayLike | None = None, *, tolerance: float = 1e-10) -> Any:
        """The nearest state that honours the grasp: q, or (q, v). The velocity is nearest in kinetic energy."""
        q = finite("q", state_array("q", q, self.model.nq))
        closed, left = self._closed_near(q.reshape(-1, self.model.nq))
        if not np.all(left <= tolerance):
            worst = int(np.argmax(left))
            index = _of_batch(tuple(int(i) for i in np.unravel_index(worst, q.shape[:-1])))
            raise InputError(
                f"no configuration near q{index} closes the grasp of {self.object!r}: {left[worst]:.3g} stays open; "
                "start nearer, or check that the arms reach their grips"
            )
        closed = closed.reshape(q.shape)
        self.check(closed)
        return closed if v is None else (closed, self.capture(closed, v).v)

    def _closed_near(self, q: Array) -> tuple[Array, Array]:
        """(configurations (k, nq) in which the grips meet, what is left open (k,)).

        By compiled steps of Newton's method where an elimination is planned, all states together; those that miss, by
        `assemble`, which looks at the rank of all rows.
        """
        engine, found, left = self._engine, q.copy(), np.full(len(q), np.inf)
        going = np.arange(len(q)) if self._ready(q) and self._compiled else np.zeros(0, dtype=int)
        for _ in range(NEWTON if len(going) else 0):
            step, told = engine.eliminated(NEAREST_STEP, found[going])
            size = np.sqrt(told[..., 0])
            rounding = (size < 1e-11) & (size > 0.3 * left[going])
            left[going] = size
            ahead = ~((size < SETTLED) | rounding) & np.isfinite(step).all(axis=-1)
            going, step = going[ahead], step[ahead]
            if not len(going):
                break
            longest = np.abs(step).max(axis=-1, keepdims=True)
            found[going] = engine.assembly.integrate(found[going], step / np.maximum(longest, 1.0))
        for k in np.flatnonzero(~(left < 1e-10)):
            try:
                found[k], left[k] = engine.assembly.assembled(q[k], (), False, 0), 0.0
            except AssemblyError as error:
                left[k] = max(error.residuals.values())
        return found, left

    # Motion

    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, wrenches: Wrenches | None = None, tolerance: float = 1e-6
    ) -> GraspMotion:
        """Accelerations, end-effector loads and the object's acceleration under the joint forces tau.

        The state must honour the grasp to `tolerance` (see `project`). tau covers all columns, the base's and the
        object's too: what acts on them from outside. The first call compiles a kernel, in a second or two for arms in
        general position.
        """
        arrays = q, v, tau = self._states(("q", q), ("v", v), ("tau", tau))
        given = loads.checked(self.closed.mechanism, wrenches)
        on_bodies = loads.on_bodies(self._engine.tree, q, given) if given else None
        quantity = holding.motion(self._names)
        lead = batch_shape(arrays if on_bodies is None else (*arrays, on_bodies))
        if not np.prod(lead, dtype=int):
            return GraspMotion(np.empty((*lead, self.model.nv)), np.empty((*lead, self.held.m, 6)), np.empty((*lead, 6)))
        if not self._ready(q):
            self.check(q, v, tolerance=tolerance)
        if self._compiled:
            whole = quantity if on_bodies is None else quantity.with_wrenches()
            parts = self._engine.eliminated(whole, *arrays, *(() if on_bodies is None else (on_bodies,)))
            a, multipliers, moved, opening, told = parts
            self._check_told(q, v, opening, told, tolerance)
            again = doubtful(told)
        else:
            self.check(q, v, tolerance=tolerance)
            a, multipliers = np.empty((*lead, self.model.nv)), np.empty((*lead, len(self._engine.constraints.constraints)))
            moved, again = np.empty((*lead, 6)), np.ones(lead, dtype=bool)
        if np.any(again):
            self._solve_ranked(again, arrays, on_bodies, (a, multipliers, moved))
        return GraspMotion(a, self._f_e(multipliers), moved)

    def _solve_ranked(
        self, again: Array, arrays: tuple[Array, ...], on_bodies: Array | None, into: tuple[Array, ...]
    ) -> None:
        """The motion of the marked states by singular values; states that lose rank are refused."""
        engine = self._engine
        wide = [np.broadcast_to(x, (*again.shape, x.shape[-1]))[again] for x in arrays]
        more = None if on_bodies is None else np.broadcast_to(on_bodies, (*again.shape, on_bodies.shape[-1]))[again]
        q, v, tau = wide
        M, force = engine.ranked.tree_terms(q, v, tau, more)
        J, gamma = engine.constraints.jacobian(q), engine.constraints.bias(q, v)
        # Off the grips by a little, rows that repeat others there seem to be independent.
        solved = solve_multipliers(M, J, gamma, force, most=engine.rank)
        for k in np.flatnonzero(~(solved.rank >= engine.rank))[:1]:
            raise InputError(self._singular(q[k], tuple(int(i) for i in np.argwhere(again)[k])))
        m = self.closed.mechanism
        into[0][again], into[1][again] = solved.a, solved.multipliers
        into[2][again] = [
            holding.object_acceleration(m, self.held.object, *x, domain=FLOAT) for x in zip(q, v, solved.a, strict=True)
        ]

    def mobility(self, q: ArrayLike) -> Array:
        """H of (48), (..., 6m, 6m): accelerations of the end effectors by unit loads on them, the object let go."""
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
        idle, general = U[:, int(kept.sum()) :], self._idle(q)
        left = idle - general @ (general.T @ idle)
        lost = (np.linalg.svd(left)[0][:, 0])[self._rows].reshape(-1, 6)
        arm = int(np.argmax(np.linalg.norm(lost, axis=1)))
        H = self.mobility(q)
        rank_H = int(np.linalg.matrix_rank(H, tol=RANK_TOLERANCE * np.abs(H).max(initial=1e-300), hermitian=True))
        direction = np.array2string(lost[arm] / np.linalg.norm(lost[arm]), precision=4, suppress_small=True)
        return (
            f"H is singular{_of_batch(index)}: its rank is {rank_H}, and of {self._engine.rank} rows of the grasp of "
            f"{self.object!r} only {int(kept.sum())} are independent; end effector {self.frames[arm]!r} cannot be "
            f"accelerated along [ω; v] = {direction} (its axes), so the loads there are not determined"
        )

    def _idle(self, q: Array) -> Array:
        """Loads that do no work in general position near q, as columns."""
        U, _, _, kept = ranked_svd(self._engine.constraints.jacobian(self._engine.assembly.general_place(q)))
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
        """Joint forces that give the object its acceleration, with the wanted internal loads.

        `object_acceleration` (..., nv of the object's joint) is the rate of the object's own velocity numbers; arms
        with more joints than that needs take the accelerations nearest to those of `a` (..., nv; default 0). Without
        it, `a` is the whole motion. `internal` is λ (..., 6(m−1)), see `internal_names`, default 0. Passive columns
        (the base's) and the object's get by with the given tau (default 0).
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
        beside = np.zeros((*internal.shape[:-1], len(self._engine.constraints.constraints)))
        beside[..., self._rows] = internal @ self.internal_basis.T
        states = (q, v, full, tau, beside)
        lead = batch_shape(states)
        if not np.prod(lead, dtype=int):
            return self._no_forces(lead)
        wants = self._planned(self._asked(whole, self.model.actuation.mask(active)), q, v, tolerance)
        forces, followed, multipliers, again = self._inverse(wants, states, lead, tolerance)
        deficient = np.zeros(lead, dtype=bool)
        if np.any(again) or not np.isfinite(multipliers).all():
            for name, x in (("accelerations", full), ("internal", internal), ("tau", tau)):
                finite(name, x)
        wide = [np.broadcast_to(x, (*lead, x.shape[-1])) for x in states]
        for at in map(tuple, np.argwhere(again)):
            found = ranked_inverse(self._engine, wants, self._shares, *(x[at] for x in wide))
            if found.failed is not None:
                raise InputError(self._cannot(*found.failed, tuple(int(i) for i in at)))
            forces[at], followed[at], multipliers[at] = found.tau, found.a, found.multipliers
            deficient[at] = found.rank < wants.rank
        f_e = self._f_e(multipliers)
        return GraspForces(forces, followed, f_e, self.held.internal_part(f_e), deficient)

    def _inverse(
        self, wants: Wanted, states: tuple[Array, ...], lead: tuple[int, ...], tolerance: float
    ) -> tuple[Array, ...]:
        """(tau, a, multipliers, states not to be believed), compiled; of long arms every state is left to ranks."""
        q, v, *_ = states
        nv, rows = self.model.nv, len(self._engine.constraints.constraints)
        if not self._compiled:
            self.check(q, v, tolerance=tolerance)
            return np.empty((*lead, nv)), np.empty((*lead, nv)), np.empty((*lead, rows)), np.ones(lead, dtype=bool)
        inputs = [("q", self.model.nq), ("v", nv), ("a", nv), ("tau", nv), ("multipliers", rows)]
        outputs = [("tau", (nv,)), ("a", (nv,)), ("multipliers", (rows,)), ("opening", ()), ("diagnostics", (6,))]
        tree, system = self._engine.reduced_mechanism, self._engine.constraints.constraints

        def text(*arrays: Array, domain: Any) -> tuple[Array, ...]:
            return holding.forces(tree, system, wants, self._shares, *arrays, domain=domain)

        asked = f"{wants.held} {wants.of_object} {wants.passive} {wants.fixed} {wants.settled}"
        name = f"held forces {asked} {label(wants.plan)}"
        kernel = self._engine.compile(name, inputs, outputs, lambda: trace("held forces", inputs, text))
        forces, followed, multipliers, opening, told = kernel(*states)
        self._check_told(q, v, opening, told, tolerance)
        return forces, followed, multipliers, doubtful(told) | ~(told[..., 5] <= RESIDUAL**2)

    def _asked(self, whole: bool, active: Array) -> Wanted:
        of_object, nv = range(self._object_columns.start, self._object_columns.stop), self.model.nv
        passive = tuple(k for k in range(nv) if not active[k] and k not in of_object)
        return Wanted(self._names, tuple(of_object), passive, tuple(whole or k in of_object for k in range(nv)))

    def _planned(self, wants: Wanted, q: Array, v: Array, tolerance: float) -> Wanted:
        if wants not in self._wants:
            self.check(q, v, tolerance=tolerance)
            self._wants[wants] = planned(self._engine, wants, q.reshape(-1, self.model.nq))
        return self._wants[wants]

    @property
    def _shares(self) -> Array:
        """Loads of all rows by a unit wrench on the object, shared equally."""
        shares = np.zeros((len(self._engine.constraints.constraints), 6))
        shares[self._rows] = self.held.equal_shares
        return shares

    def _no_forces(self, lead: tuple[int, ...]) -> GraspForces:
        m, vectors = self.held.m, np.empty((*lead, self.model.nv))
        found, internal = np.empty((*lead, m, 6)), np.empty((*lead, 6 * (m - 1)))
        return GraspForces(vectors, vectors.copy(), found, internal, np.zeros(lead, dtype=bool))

    def _cannot(self, kind: str, k: int, residual: float, index: tuple[int, ...]) -> str:
        if kind == "closure":
            row = self._engine.constraints.constraints.rows[k]
            part, axis = f"opens {row.name!r}", row.label
            if k in self._rows:
                j, direction = divmod(int(np.flatnonzero(self._rows == k)[0]), 6)
                part, axis = f"tears grip {self.frames[j]!r} apart", DIRECTIONS[direction]
            return (
                f"the wanted motion{_of_batch(index)} {part}: {axis} acceleration {abs(residual):.6g} cannot be "
                "followed; ask for a motion that the arms can make"
            )
        what = "is passive" if kind == "passive" else "belongs to the object"
        return (
            f"{self.model.actuation.column_name(k)} {what}: the wanted motion{_of_batch(index)} needs the force "
            f"{abs(residual):.6g} there beyond what is given; no loads of the arms supply it"
        )

    def capture(self, q: ArrayLike, v: ArrayLike) -> Capture:
        """The velocities right after the end effectors take hold, and the impulses on the object (v need not agree)."""
        self.check(q)
        q, v = self._states(("q", q), ("v", v))
        lead = batch_shape((q, v))
        if not np.prod(lead, dtype=int):
            return Capture(np.empty((*lead, self.model.nv)), np.empty((*lead, self.held.m, 6)), np.empty(lead))
        self._ready(q)
        if self._compiled:
            after, impulses, lost, told = self._engine.eliminated(CAPTURED, q, v)
            again = doubtful(told)
        else:
            after, impulses = np.empty((*lead, self.model.nv)), np.empty((*lead, len(self._engine.constraints.constraints)))
            lost, again = np.empty(lead), np.ones(lead, dtype=bool)
        if np.any(again):
            x, y = (np.broadcast_to(array, (*lead, array.shape[-1]))[again] for array in (q, v))
            M, J = self._engine.tree.answer(Request(QUANTITIES["mass_matrix"], (x,))), self._engine.constraints.jacobian(x)
            # v⁺ and the impulses stand where accelerations and loads do: M v⁺ = M v + Jᵀ I, J v⁺ = 0.
            solved = solve_multipliers(M, J, np.zeros(J.shape[:-1]), (M @ y[..., None])[..., 0])
            after[again], impulses[again] = solved.a, solved.multipliers
            lost[again] = -0.5 * np.sum(solved.multipliers * (J @ y[..., None])[..., 0], axis=-1)
        return Capture(after, self._f_e(impulses), lost)

    # Inside

    @property
    def _object_columns(self) -> slice:
        return self.model.mechanism.joints[self.held.object].v

    @property
    def _compiled(self) -> bool:
        """Whether kernels answer; the numbers of a long arm are solved for by LAPACK."""
        return self._engine.is_compiled and not self._engine.tree.is_long

    def _ready(self, q: Array) -> bool:
        """Whether rank and order of elimination are chosen: at closed configurations near some of the states q."""
        if not self._is_ready:
            states, places = q.reshape(-1, self.model.nq), []
            for k in np.unique(np.linspace(0, len(states) - 1, SAMPLES).astype(int)) if len(states) else ():
                try:
                    places.append(self._engine.assembly.assembled(states[k], (), False, 0))
                except AssemblyError:
                    continue  # one that is out of reach says nothing of the others
            if places:
                self._engine.coordinates(places[0])
                if self._compiled:
                    self._engine.plans.free(np.array(places))
                self._is_ready = True
        return self._is_ready

    def _f_e(self, multipliers: Array) -> Array:
        return multipliers[..., self._rows].reshape(*multipliers.shape[:-1], self.held.m, 6)

    def _check_told(self, q: Array, v: Array, opening: Array, told: Array, tolerance: float) -> None:
        """Closure from what a kernel found on its way; what seems wrong is looked at by `check`, which says it."""
        fast = tolerance * (1.0 + np.abs(v).max(axis=-1))
        off = np.maximum(opening, told[..., 0])
        if not (np.all(off <= tolerance**2) and np.all(told[..., 1] <= fast**2)):
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
