"""Configurations, velocities and accelerations that meet the constraints; how mobile the mechanism is there.

Written for any number of constraint rows: a mechanism without any is assembled wherever it is, and moves in every way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from polybody.constraints.assembly import (
    CLOSED,
    EXACT,
    AssemblyError,
    Problem,
    bounded_problem,
    descend,
    starts,
    within_limits,
)
from polybody.constraints.mobility import (
    Mobility,
    actuator_singularities,
    choose_independent,
    independence,
    redundancies,
)
from polybody.constraints.ranks import newton_step, null_space, pseudo_inverse, ranked_svd
from polybody.constraints.rolling import VelocityRelationConstraint
from polybody.errors import InputError, PolybodyError
from polybody.mechanism import kinematics
from polybody.mechanism.columns import actuated, state_text, velocity_names
from polybody.model import configurations
from polybody.model.batch_assembly import BatchAssembly
from polybody.model.batches import batch_shape, in_pieces
from polybody.model.constraint_kernels import ConstraintKernels
from polybody.model.engine import Request
from polybody.model.general_places import GeneralPlaces, along_branches, is_back
from polybody.model.tree_engine import TreeEngine
from polybody.names import counted, listed, nearest
from polybody.properties import cached_property
from polybody.quantities.table import QUANTITIES

Array = np.ndarray

#: a state whose constraints are off by more (m, rad, and per second) breaks them
STATE_TOLERANCE = 1e-6
#: residuals (m, rad) that Newton's method aims at, and how often it tries
SETTLED, NEWTON = 1e-13, 25
#: configurations from which on they are assembled together
FEW = 8
#: single steps that are taken by the text on numbers, as long as there is no kernel for them
READ = 100
#: matrices like J that correcting velocities, or finding ranks, needs on its way
MATRICES = 8


class Assembly:
    """Puts one mechanism together; `tree` moves along its manifold, `kernels` are its constraints."""

    def __init__(self, tree: TreeEngine, kernels: ConstraintKernels) -> None:
        self.mechanism, self.tree, self.kernels = kernels.mechanism, tree, kernels
        self._together = BatchAssembly(tree, kernels)
        self._by_text = 0
        self._neutral: Array | None = None
        self._general = GeneralPlaces(kernels, self.integrate, self._general_problem)

    def integrate(self, q: Array, d: Array) -> Array:
        from polybody.kernels import background

        few = q.ndim == d.ndim == 1 and self._by_text < READ and not background.is_repeatable()
        if few and not self.tree.has_kernel(QUANTITIES["integrate"]):
            self._by_text += 1
            return kinematics.integrate(self.mechanism, q, d)
        return self.tree.answer(Request(QUANTITIES["integrate"], (q, d)))

    def difference(self, q0: Array, q1: Array) -> Array:
        return self.tree.answer(Request(QUANTITIES["difference"], (q0, q1)))

    # Positions.

    def assembled(
        self, q: Array, hold: Iterable[str] = (), limits: bool = True, restarts: int = 30,
        parameters: Array | None = None, *, together: bool = False,
    ) -> Array:  # fmt: skip
        """The configurations near q that meet all constraints; parameters (..., k) broadcast with q.

        `together` are those that belong to a larger batch, however few they are.
        """
        hold = self._held(hold)
        problem, given = self._problem(hold, limits), [q, *(() if parameters is None else (parameters,))]
        lead, nq = batch_shape(given), self.mechanism.nq
        if not len(self.kernels.constraints):
            return q if q.shape[:-1] == lead else np.broadcast_to(q, (*lead, nq)).copy()

        def some(parts: Sequence[Array]) -> Array:
            own = batch_shape(parts)
            flat, *values = (np.broadcast_to(x, (*own, x.shape[-1])).reshape(-1, x.shape[-1]) for x in parts)
            result, done = np.empty(flat.shape), np.zeros(len(flat), dtype=bool)
            if together or len(flat) >= FEW:
                result, done = self._together(problem, flat, *values)
            for k in np.flatnonzero(~done):
                try:
                    result[k] = self._one(flat[k], hold, limits, restarts, *(x[k] for x in values))
                except PolybodyError as error:
                    where = state_text([int(i) for i in np.unravel_index(k, own)]) if own else ""
                    error.args = (f"{error}{where}", *error.args[1:])
                    raise
            return result.reshape(*own, nq)

        return in_pieces(some, given, 8 * self._together.numbers)

    def from_neutral(self) -> Array:
        if self._neutral is None:
            self._neutral = self.assembled(configurations.neutral(self.mechanism))
        return self._neutral.copy()

    def modes(self, q: Array, hold: Iterable[str], limits: bool, restarts: int) -> Array:
        """The different assembled configurations that many starts lead to, the nearest first."""
        problem, found = self._problem(hold, limits), []
        for there in self._together.led_to(problem, np.array(list(starts(problem, q, self._anywhere, restarts)))):
            there = self._unwound(there, q)
            if not found or np.abs(self.difference(there, np.array(found))).max(axis=-1).min() > 1e-6:
                found.append(there)
        found = [descend(problem, there)[0] for there in found]  # to the last digit
        found.sort(key=lambda mode: float(np.linalg.norm(self.difference(q, mode))))
        return np.array(found).reshape(-1, self.mechanism.nq)

    def dependent(self, q: Array, columns: tuple[int, ...], parameters: Array | None = None) -> Array:
        """The assembled configuration near q with these columns where they are, by Newton's method, many at once."""
        rest = [k for k in range(self.mechanism.nv) if k not in set(columns)]
        if parameters is not None:
            q = np.broadcast_to(q, (*batch_shape([q, parameters]), q.shape[-1]))
        phi, step = self.kernels.residual(q, parameters), np.zeros((*q.shape[:-1], self.mechanism.nv))
        for _ in range(NEWTON):
            if not np.abs(phi).max(initial=0.0) > SETTLED:
                break
            J = self.kernels.jacobian(q, parameters)
            step[..., rest] = newton_step(J[..., rest], phi)
            q = self.integrate(q, step)
            phi = self.kernels.residual(q, parameters)
        what = "no q with these independent coordinates is near that meets"
        self.require_small(what, phi, 1e-9, "see model.assemble")
        return q

    def general_place(self, q: Array) -> Array:
        """An assembled configuration in general position near q: singular ones are left."""
        return self._general(q)

    def branches(self, starts: int) -> Array:
        """Assembled configurations that so many starts anywhere lead to, (n, nq): some on every usual branch."""
        rng = np.random.default_rng(3)
        return self._together.led_to(
            self._problem((), False), np.array([self._anywhere(rng) for _ in range(starts)])
        )

    def mobile(self, q: Array) -> int:
        """How many motions pass at one configuration, to first order."""
        return null_space(self.kernels.jacobian(q)).shape[1]

    # Velocities and accelerations.

    def velocity(self, q: Array, v: Array, hold: Iterable[str], parameters: Array | None = None) -> Array:
        def gap(q: Array, v: Array, values: Array | None, J: Array) -> Array:
            return (J @ v[..., None])[..., 0] if self._is_homogeneous else self.kernels.velocity(q, v, values)

        return self._corrected("velocity", gap, (q, v), hold, parameters)

    def acceleration(
        self, q: Array, v: Array, a: Array, hold: Iterable[str], parameters: Array | None = None
    ) -> Array:
        def gap(q: Array, v: Array, a: Array, values: Array | None, J: Array) -> Array:
            return self.kernels.acceleration(q, v, a, values)

        return self._corrected("acceleration", gap, (q, v, a), hold, parameters)

    # What must hold.

    def require_closed(self, q: Array, v: Array | None = None, parameters: Array | None = None) -> None:
        """Raise where a state breaks the constraints: which, how far, and what to do."""
        given = () if parameters is None else (parameters,)
        self._require("q breaks", lambda q, *p: (self.kernels.residual(q, *p), STATE_TOLERANCE), (q, *given),
                      "model.assemble(q) corrects it")  # fmt: skip
        if v is not None:
            gap = lambda q, v, *p: (self._speed(q, v, *p), STATE_TOLERANCE * (1 + _largest(v)))  # noqa: E731
            self._require("v breaks", gap, (q, v, *given), "model.assemble_velocity(q, v) corrects it")

    def _speed(self, q: Array, v: Array, *parameters: Array) -> Array:
        """J v − b, to compare with a tolerance: of a single state by J, whose kernel every first answer has anyway."""
        if q.ndim > 1 or v.ndim > 1 or parameters or not self._is_homogeneous:
            return self.kernels.velocity(q, v, *parameters)
        return self.kernels.jacobian(q) @ v

    @cached_property
    def _is_homogeneous(self) -> bool:
        """Whether velocities are constrained by J v = 0, without right sides, and J needs no iteration."""
        system = self.kernels.constraints
        return not system.iterates and not any(isinstance(e, VelocityRelationConstraint) for e in system.elements)

    def require_acceleration(self, q: Array, v: Array, a: Array, parameters: Array | None = None) -> None:
        """Raise where an acceleration would break the constraints."""

        def gap(q: Array, v: Array, a: Array, *p: Array) -> tuple[Array, Array]:
            return self.kernels.acceleration(q, v, a, *p), STATE_TOLERANCE * (1 + _largest(a) + _largest(v) ** 2)

        given = () if parameters is None else (parameters,)
        self._require("a breaks", gap, (q, v, a, *given), "model.assemble_acceleration(q, v, a) corrects it")

    def _require(self, what: str, gap: Callable[..., tuple[Array, Any]], arrays: Sequence[Array], remedy: str) -> None:
        """`require_small` of gap(*arrays) -> (gaps, slack), piece by piece."""

        def answer(some: Sequence[Array]) -> Array:
            gaps, slack = gap(*some)
            self.require_small(what, gaps, slack, remedy)
            return np.zeros(gaps.shape[:-1], dtype=bool)

        in_pieces(answer, arrays, 8 * (4 * self.kernels.rows + self.mechanism.nv))

    def require_small(self, what: str, gaps: Array, slack: Any, remedy: str) -> None:
        """Raise where gaps (..., rows) are not below the slack, naming the constraints that are open most."""
        bad = (np.abs(gaps) > slack) | ~np.isfinite(gaps)
        if not np.any(bad):
            return
        index = tuple(int(i) for i in np.argwhere(np.any(bad, axis=-1))[0])
        gap, slices = np.abs(gaps[index]), self.kernels.constraints.slices
        sizes = {name: float(np.linalg.norm(gap[part])) for name, part in slices.items()}
        names = sorted(sizes, key=lambda name: -sizes[name])
        told = ", ".join(f"{name!r} by {sizes[name]:.3g}" for name in names[:4] if sizes[name] > 0 or len(names) == 1)
        raise InputError(f"{what} the constraints{state_text(index)}: {told or 'not finite'}; {remedy}")

    def require_independent(self, J: Array, chosen: tuple[int, ...], index: tuple[int, ...] = ()) -> None:
        """Raise where these velocities are not independent at one state, naming some that are."""
        quality = independence(J, chosen)
        if quality > 1e-7:
            return
        names, Z = velocity_names(self.mechanism), null_space(J)
        others = choose_independent(Z, actuated(self.mechanism), Z.shape[1])
        offered, where = ", ".join(names[k] for k in others) or "none", state_text(index)
        asked = ", ".join(names[k] for k in chosen)
        if quality < 0:
            raise PolybodyError(
                f"{asked or 'no coordinates'}: {counted(len(chosen), 'coordinate')} for a mobility of "
                f"{Z.shape[1]}{where}; "
                f"independent here are {offered}"
            )
        raise PolybodyError(f"{asked} are not independent at this configuration{where}; independent here are {offered}")

    # What the mechanism is.

    def mobility(self, q: Array, independent: tuple[int, ...] | None) -> Mobility:
        """Counts, redundancies, singularities and coordinates at one configuration."""
        self.require_closed(q)
        m, names = self.mechanism, tuple(velocity_names(self.mechanism))
        J = self.kernels.jacobian(q)
        _, s, _, kept = ranked_svd(J)
        Z, driven = null_space(J), actuated(m)
        uncontrolled, dead = actuator_singularities(Z, driven)
        if independent is None:
            independent = choose_independent(Z, driven, Z.shape[1])
        else:
            self.require_independent(J, independent)
        return Mobility(
            velocities=m.nv,
            constraints=len(J),
            rank=int(kept.sum()),
            nearby=self._nearby(q, Z),
            redundant=redundancies(J, self.kernels.constraints.rows),
            independent=tuple(names[k] for k in independent),
            motions=Z,
            names=names,
            actuators=tuple(names[k] for k in driven),
            uncontrolled=uncontrolled,
            dead=dead,
            smallest=float(s[kept][-1] / s[0]) if kept.any() else 1.0,
        )

    def _nearby(self, q: Array, Z: Array) -> int:
        """The least mobility a small motion away."""
        least, rng, problem = Z.shape[1], np.random.default_rng(1), self._near_problem(False)
        beside: list[Array] = []
        back: list[Array] = []
        for size in (3e-3, 3e-2, 3e-2, 1e-1) if least and len(self.kernels.constraints) else ():
            direction = Z @ rng.normal(size=Z.shape[1])
            there, gap = descend(problem, self.integrate(q, size * direction / np.linalg.norm(direction)))
            if gap < CLOSED:
                (back if is_back(q, there, size) else beside).append(there)
        if back and not beside:  # at q itself, where only rounding makes the rank higher, or it is rigid
            beside = [*along_branches(problem, self.integrate, q, Z, 3e-2)] or back
        return min([least, *(self.mobile(there) for there in beside)])

    # Inside.

    def _problem(self, hold: Iterable[str], limits: bool) -> Problem:
        return bounded_problem(self.mechanism, self.kernels.far, self.integrate, self._held(hold), limits)

    def _general_problem(self, redundant: bool) -> Problem:
        # Where constraints are redundant, J alone leads to places where their plan of elimination is poor (Bricard).
        return self._problem((), True) if redundant else self._near_problem(True)

    def _near_problem(self, limits: bool) -> Problem:
        """For starts that are nearly closed, from which the far residual is not needed."""

        def functions(q: Array) -> tuple[Array, Array]:
            return self.kernels.residual(q), self.kernels.jacobian(q)

        return bounded_problem(self.mechanism, functions, self.integrate, [], limits)

    def _held(self, hold: Iterable[str]) -> list[str]:
        held = [hold] if isinstance(hold, str) else list(hold)
        known = {joint.name: None for joint in self.mechanism.joints}
        for name in held:
            if name not in known:
                near = nearest(str(name), known)
                raise InputError(f"hold names {name!r}, which is not a joint{near}; available: {listed(known)}")
        return held

    def _anywhere(self, rng: np.random.Generator) -> Array:
        return configurations.draw(self.mechanism, rng)

    def _one(
        self, q: Array, hold: Iterable[str], limits: bool, restarts: int, values: Array | None = None
    ) -> Array:
        """One configuration, with many more starts, at values of the parameters."""
        if values is not None:
            source = self.kernels.source.at(values)
            return Assembly(self.tree.at(values), self.kernels.at(source))._one(q, hold, limits, restarts)
        problem = self._problem(hold, limits)
        if not self.kernels.has_kernel("far") and self._is_assembled(problem, q):
            return q.copy()
        best, least = q, np.inf
        for start in starts(problem, q, self._anywhere, restarts):
            found, size = descend(problem, start)
            if size < CLOSED and not self.kernels.constraints.mirrored(found):
                return found
            if size < least:
                best, least = found, size
        raise self._error(best, problem, restarts)

    def _is_assembled(self, problem: Problem, q: Array) -> bool:
        """Whether q is left as it is, by the text on numbers: many files place their bodies so."""
        system = self.kernels.constraints
        closed = float(np.abs(system.residual(q)).max(initial=0.0)) < EXACT  # also where it is not a number
        return closed and np.array_equal(within_limits(problem, q), q) and not system.mirrored(q)

    def _error(self, best: Array, problem: Problem, restarts: int) -> AssemblyError:
        phi = self.kernels.far(best)[0]
        sizes = {name: float(np.linalg.norm(phi[part])) for name, part in self.kernels.constraints.slices.items()}
        failing = sorted((name for name in sizes if sizes[name] > CLOSED), key=lambda name: -sizes[name])
        told = ", ".join(f"{name!r} by {sizes[name]:.3g}" for name in failing[:5]) or "an axis points backwards"
        held = [j.name for j in self.mechanism.independent_joints if j.v.start not in problem.free]
        hint = f" with {', '.join(map(repr, held))} held" if held else ""
        return AssemblyError(
            f"the constraints cannot be met{hint}: at the best of {restarts + 1} starts open are {told} (m or rad); "
            "give another guess, hold less, or look at lengths and limits", best, sizes,
        )

    def _unwound(self, q: Array, near: Array) -> Array:
        """Angles that turn without limit, brought within half a turn of `near`, so that equal poses look equal."""
        q = q.copy()
        bound = {leader for leader, _, _ in self.mechanism.followers.values()}  # a turn of theirs moves followers
        for joint in self.mechanism.independent_joints:
            if joint.kind in ("revolute", "continuous", "universal") and joint.name not in bound:
                turns = np.round((q[joint.q] - near[joint.q]) / (2 * np.pi)) * 2 * np.pi
                inside = (q[joint.q] - turns >= joint.limits.lower) & (q[joint.q] - turns <= joint.limits.upper)
                q[joint.q] -= np.where(inside, turns, 0.0)
            elif joint.nq != joint.nv:
                part = q[joint.q][-4:]
                q[joint.q.stop - 4 : joint.q.stop] = -part if part @ near[joint.q][-4:] < 0 else part
        return q if np.abs(self.kernels.far(q)[0]).max(initial=0) < 10 * CLOSED else near

    def _corrected(
        self, what: str, gap: Callable[..., Array], arrays: Sequence[Array], hold: Iterable[str],
        parameters: Array | None,
    ) -> Array:  # fmt: skip
        """x − J_f⁺ gap(…, x, parameters, J) over the columns f that are not held; x is the last of the arrays."""
        held, nv, count = self._held(hold), self.mechanism.nv, len(arrays)
        free = np.ones(nv, dtype=bool)
        for joint in self.mechanism.joints:
            free[joint.v] &= joint.name not in held
        remedy = f"release some of {', '.join(held)}" if held else "the constraints contradict each other"
        given = [*arrays, *(() if parameters is None else (parameters,))]
        if not self.kernels.rows:
            return np.broadcast_to(arrays[-1], (*batch_shape(given), nv)).copy()

        def some(parts: Sequence[Array]) -> Array:
            states, values = parts[:count], parts[count] if len(parts) > count else None
            x, J = states[-1], self.kernels.jacobian(states[0], values)
            off = gap(*states, values, J)
            result = np.broadcast_to(x, (*batch_shape([off, x]), nv)).copy()
            result[..., free] -= (pseudo_inverse(J[..., free]) @ off[..., None])[..., 0]
            left = off + (J @ (result - x)[..., None])[..., 0]
            self.require_small(f"no such {what} keeps", left, 1e-9 * (1 + _largest(x) + _largest(off)), remedy)
            return result

        return in_pieces(some, given, 8 * MATRICES * self.kernels.rows * nv)


def _largest(x: Array) -> Array:
    return np.abs(x).max(axis=-1, keepdims=True, initial=0.0)


def column_indices(mechanism: Any, names: Sequence[str]) -> tuple[int, ...]:
    """Indices in v of velocities by name: "joint", or "joint_k" of a joint with several."""
    table = {name: k for k, name in enumerate(velocity_names(mechanism))}
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if name not in table:
            raise InputError(f"no velocity coordinate {name!r}{nearest(str(name), table)}; available: {listed(table)}")
    if len(set(names)) != len(names):
        raise InputError(f"a coordinate is named twice in {', '.join(names)}")
    return tuple(table[name] for name in names)


__all__ = ["FEW", "MATRICES", "STATE_TOLERANCE", "Assembly", "column_indices"]
