"""Models with loops: putting them together, and what they are."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from polybody.constraints.assembly import CLOSED, AssemblyError, Problem, bounded_problem, descend, starts
from polybody.constraints.mobility import (
    Mobility,
    actuator_singularities,
    choose_independent,
    independence,
    redundancies,
)
from polybody.constraints.ranks import null_space, pseudo_inverse, ranked_svd
from polybody.errors import InputError, PolybodyError, PolybodyWarning
from polybody.mechanism.columns import actuated, velocity_names
from polybody.model.arguments import state_array
from polybody.model.batches import batch_shape
from polybody.model.constraint_kernels import ConstraintKernels
from polybody.model.shape import ShapeAnswers
from polybody.names import listed, nearest

Array = np.ndarray

#: a state whose constraints are off by more (m, rad, and per second) breaks them
STATE_TOLERANCE = 1e-6


class AssemblyAnswers(ShapeAnswers):
    """Closed configurations, mobility, independent coordinates."""

    @cached_property
    def constraint_kernels(self) -> ConstraintKernels:
        """φ, J and γ of the model's loops, rods, guides and relations, over batches."""
        return ConstraintKernels(self.mechanism)

    @property
    def constraint_names(self) -> list[str]:
        """The constrained directions: "loop: direction", in the order of residuals and multipliers."""
        return [str(row) for row in self.constraint_kernels.constraints.rows]

    def constraint_residual(self, q: Any) -> Array:
        """How far q is from closed, (..., rows): metres and radians, in the order of `constraint_names`."""
        return self.constraint_kernels.residual(state_array("q", q, self.nq))

    def constraint_jacobian(self, q: Any) -> Array:
        """J, (..., rows, nv): J v = 0 for motions that the constraints let pass."""
        return self.constraint_kernels.jacobian(state_array("q", q, self.nq))

    def constraint_bias(self, q: Any, v: Any) -> Array:
        """γ = J̇ v, (..., rows): J a + γ = 0 for accelerations that keep the constraints."""
        return self.constraint_kernels.bias(state_array("q", q, self.nq), state_array("v", v, self.nv))

    def constraint_rank(self, q: Any) -> Array:
        """The rank of J, (...), state by state: nv less it are the motions that pass. Where it drops, q is singular."""
        return ranked_svd(self.constraint_kernels.jacobian(state_array("q", q, self.nq)))[3].sum(axis=-1)

    def flag_ranks(self, ranks: Array, states: Array) -> None:
        """Warn where the marked states (...) of a batch, which have these ranks, are not of the rank of the others."""
        usual = self.nv - len(self._independent)
        odd = ranks != usual
        if not np.any(odd):
            return
        first = tuple(int(i) for i in np.argwhere(states)[np.flatnonzero(odd)[0]])
        where = f"; the first is {', '.join(map(str, first))}" if first else ""
        told = ", ".join(map(str, np.unique(ranks[odd])))
        warnings.warn(
            f"{int(np.sum(odd))} of {states.size} states are singular{where}: the constraints have rank {told} there, "
            f"{usual} in general. Each state is solved with its own rank; model.constraint_rank(q) tells which are so",
            PolybodyWarning, stacklevel=3,
        )

    def close(
        self, q: Any = None, hold: Iterable[str] = (), *, limits: bool = True, restarts: int = 30
    ) -> Array:
        """A configuration, (..., nq), that meets all loops, near the guess q (default: neutral).

        Joints in `hold` keep their q. Limits are kept unless `limits` is False. Where the guess leads nowhere, up to
        `restarts` others are tried; if none closes, `AssemblyError` says which loop fails, and by how much.
        """
        q = self.neutral() if q is None else self.normalize(state_array("q", q, self.nq))
        problem = self._assembly(hold, limits)
        result = np.empty(q.shape)
        for index in np.ndindex(q.shape[:-1]):
            result[index] = self._closed(problem, q[index], restarts)
        return result

    def assembly_modes(
        self, q: Any = None, hold: Iterable[str] = (), *, limits: bool = True, restarts: int = 60
    ) -> Array:
        """The different closed configurations, (modes, nq), that many starts lead to; the one nearest to q first.

        Hold as many coordinates as the mechanism is mobile: then modes are isolated, and each is told once.
        """
        q = self.neutral() if q is None else self.normalize(state_array("q", q, self.nq))
        if q.ndim != 1:
            raise InputError(f"assembly_modes takes one configuration, got shape {q.shape}")
        problem = self._assembly(hold, limits)
        modes: list[Array] = []
        for start in starts(problem, q, self._anywhere, restarts):
            found, size = descend(problem, start)
            if size < CLOSED and not self.constraint_kernels.constraints.mirrored(found):
                found = self._unwound(found, q)
                if all(np.abs(self.difference(found, mode)).max() > 1e-6 for mode in modes):
                    modes.append(found)
        modes.sort(key=lambda mode: float(np.linalg.norm(self.difference(q, mode))))
        return np.array(modes).reshape(-1, self.nq)

    def close_velocity(self, q: Any, v: Any, hold: Iterable[str] = ()) -> Array:
        """The velocity nearest to v, (..., nv), that keeps the loops closed at q; joints in `hold` keep theirs."""
        q, v = state_array("q", q, self.nq), state_array("v", v, self.nv)
        J = self.constraint_kernels.jacobian(q)
        return self._corrected("velocity", J, (J @ v[..., None])[..., 0], v, hold)

    def close_acceleration(self, q: Any, v: Any, a: Any, hold: Iterable[str] = ()) -> Array:
        """The acceleration nearest to a, (..., nv), that keeps the loops closed at (q, v)."""
        q, v, a = state_array("q", q, self.nq), state_array("v", v, self.nv), state_array("a", a, self.nv)
        J = self.constraint_kernels.jacobian(q)
        return self._corrected(
            "acceleration", J, (J @ a[..., None])[..., 0] + self.constraint_kernels.bias(q, v), a, hold
        )

    def random_configuration(self, rng: np.random.Generator | int | None = None, size: Any = None) -> Array:
        """Configurations drawn within finite joint limits, quaternions uniformly; shape (nq,) or (*size, nq).

        Where the model has loops, each is closed from there.
        """
        drawn = super().random_configuration(rng, size)
        return self.close(drawn) if self.mechanism.constrained else drawn

    def mobility(self, q: Any = None, independent: Sequence[str] | None = None) -> Mobility:
        """What the mechanism is at the closed configuration q (default: closed from neutral). Printable.

        Gruebler's count and the true mobility, redundant constraints by name, singularities of constraints and
        actuators with their directions, and independent coordinates (checked, where they are given).
        """
        q = self.close() if q is None else state_array("q", q, self.nq)
        if q.ndim != 1:
            raise InputError(f"mobility takes one configuration, got shape {q.shape}")
        self.require_closed(q)
        m, names = self.mechanism, tuple(velocity_names(self.mechanism))
        J = self.constraint_kernels.jacobian(q)
        _, s, _, kept = ranked_svd(J)
        Z = null_space(J)
        nearby = self._mobility_nearby(q, Z.shape[1])
        driven = actuated(m)
        uncontrolled, dead = actuator_singularities(Z, driven)
        if independent is None:
            chosen = choose_independent(Z, driven, Z.shape[1])
        else:
            chosen = self.velocity_indices(independent)
            self._check_independent(J, chosen, ())
        return Mobility(
            velocities=m.nv,
            constraints=len(J),
            rank=int(kept.sum()),
            nearby=nearby,
            redundant=redundancies(J, self.constraint_kernels.constraints.rows),
            independent=tuple(names[k] for k in chosen),
            motions=Z,
            names=names,
            actuators=tuple(names[k] for k in driven),
            uncontrolled=uncontrolled,
            dead=dead,
            smallest=float(s[kept][-1] / s[0]) if kept.any() else 1.0,
        )

    @cached_property
    def _independent(self) -> tuple[int, ...]:
        """Independent velocities chosen once for the model: driven ones where they serve well at a general place."""
        if not self.mechanism.constrained:
            return tuple(range(self.nv))
        q = self.general_place(self.close())
        Z = null_space(self.constraint_kernels.jacobian(q))
        return choose_independent(Z, actuated(self.mechanism), Z.shape[1])

    @property
    def independent(self) -> list[str]:
        """The coordinates in which `mass_matrix` and its like answer for a model with loops."""
        names = velocity_names(self.mechanism)
        return [names[k] for k in self._independent]

    def velocity_indices(self, names: Sequence[str]) -> tuple[int, ...]:
        """Indices of velocities by name: "joint", or "joint_k" of a joint with several."""
        table = {name: k for k, name in enumerate(velocity_names(self.mechanism))}
        for name in names:
            if name not in table:
                raise InputError(f"no velocity coordinate {name!r}{nearest(name, table)}; there are {listed(table)}")
        if len(set(names)) != len(names):
            raise InputError(f"a coordinate is named twice in {', '.join(names)}")
        return tuple(table[name] for name in names)

    def require_closed(self, q: Array, v: Array | None = None) -> None:
        """Raise where a state breaks the constraints: which, how far, and what to do."""
        if not self.mechanism.constrained:
            return
        phi = self.constraint_kernels.residual(q)
        self._require_small("q breaks", phi, STATE_TOLERANCE, "model.close(q) would mend it")
        if v is not None:
            gap = self.constraint_kernels.velocity(q, v)
            slack = STATE_TOLERANCE * (1 + np.abs(v).max(axis=-1, keepdims=True, initial=0.0))
            self._require_small("v breaks", gap, slack, "model.close_velocity(q, v) would mend it")

    # Inside.

    def _assembly(self, hold: Iterable[str], limits: bool) -> Problem:
        held = self._held(hold)

        def functions(q: Array) -> tuple[Array, Array]:
            return self.constraint_kernels.far(q)

        return bounded_problem(self.mechanism, functions, lambda q, d: self.integrate(q, d), held, limits)

    def _held(self, hold: Iterable[str]) -> list[str]:
        held = [hold] if isinstance(hold, str) else list(hold)
        known = {joint.name: None for joint in self.mechanism.joints}
        for name in held:
            if name not in known:
                near = nearest(name, known)
                raise InputError(f"hold names {name!r}, which is no joint{near}; there are {listed(known)}")
        return held

    def _anywhere(self, rng: np.random.Generator) -> Array:
        return ShapeAnswers.random_configuration(self, rng)

    def _closed(self, problem: Problem, q: Array, restarts: int) -> Array:
        if not self.mechanism.constrained:
            return q
        best, least = q, np.inf
        for start in starts(problem, q, self._anywhere, restarts):
            found, size = descend(problem, start)
            if size < CLOSED and not self.constraint_kernels.constraints.mirrored(found):
                return found
            if size < least:
                best, least = found, size
        raise self._assembly_error(best, problem, restarts)

    def _assembly_error(self, best: Array, problem: Problem, restarts: int) -> AssemblyError:
        system = self.constraint_kernels.constraints
        phi = self.constraint_kernels.far(best)[0]
        sizes = {name: float(np.linalg.norm(phi[part])) for name, part in system.slices.items()}
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
        return q if np.abs(self.constraint_kernels.far(q)[0]).max(initial=0) < 10 * CLOSED else near

    def _corrected(self, what: str, J: Array, gap: Array, given: Array, hold: Iterable[str]) -> Array:
        """given − J_f⁺ gap over the columns that are not held."""
        held = self._held(hold)
        free = np.ones(self.nv, dtype=bool)
        for joint in self.mechanism.joints:
            free[joint.v] &= joint.name not in held
        lead = batch_shape([gap, given])
        result = np.broadcast_to(given, (*lead, self.nv)).copy()
        result[..., free] -= (pseudo_inverse(J[..., free]) @ gap[..., None])[..., 0]
        left = gap + (J @ (result - given)[..., None])[..., 0]
        slack = 1e-9 * (1 + np.abs(given).max(axis=-1, keepdims=True, initial=0.0)
                        + np.abs(gap).max(axis=-1, keepdims=True, initial=0.0))
        remedy = f"let some of {', '.join(held)} go" if held else "the constraints contradict each other"
        self._require_small(f"no such {what} keeps", left, slack, remedy)
        return result

    def _require_small(self, what: str, gaps: Array, slack: Any, remedy: str) -> None:
        bad = np.abs(gaps) > slack
        if not np.any(bad | ~np.isfinite(gaps)):
            return
        index = tuple(int(i) for i in np.argwhere(np.any(bad | ~np.isfinite(gaps), axis=-1))[0])
        gap = np.abs(gaps[index])
        system = self.constraint_kernels.constraints
        sizes = {name: float(np.linalg.norm(gap[part])) for name, part in system.slices.items()}
        names = sorted(sizes, key=lambda name: -sizes[name])
        told = ", ".join(f"{name!r} by {sizes[name]:.3g}" for name in names[:4] if sizes[name] > 0 or len(names) == 1)
        where = f" (state {', '.join(map(str, index))} of the batch)" if index else ""
        raise InputError(f"{what} the constraints{where}: {told or 'not finite'}; {remedy}")

    def _mobility_nearby(self, q: Array, here: int) -> int:
        """The least mobility a small motion away."""
        least, rng = here, np.random.default_rng(1)
        Z = null_space(self.constraint_kernels.jacobian(q))
        if not here:
            return 0
        problem = self._assembly((), False)
        for size in (3e-3, 3e-2, 3e-2, 1e-1):
            direction = Z @ rng.normal(size=here)
            there, gap = descend(problem, self.integrate(q, size * direction / np.linalg.norm(direction)))
            if gap < CLOSED:
                least = min(least, null_space(self.constraint_kernels.jacobian(there)).shape[1])
        return least

    def general_place(self, q: Array) -> Array:
        """A closed configuration in general position near q: singular ones are left."""
        rng, problem = np.random.default_rng(2), self._assembly((), True)
        best, least = q, null_space(self.constraint_kernels.jacobian(q)).shape[1]
        quality = -1.0
        for size in (0.05, 0.1, 0.2, 0.3):
            Z = null_space(self.constraint_kernels.jacobian(q))
            if not Z.shape[1]:
                break
            direction = Z @ rng.normal(size=Z.shape[1])
            there, gap = descend(problem, self.integrate(q, size * direction / np.linalg.norm(direction)))
            if gap > CLOSED:
                continue
            s = np.linalg.svd(self.constraint_kernels.jacobian(there), compute_uv=False)
            mobile = null_space(self.constraint_kernels.jacobian(there)).shape[1]
            smallest = float(s[self.nv - mobile - 1] / s[0]) if mobile < self.nv and len(s) else 1.0
            if (mobile, -smallest) < (least, -quality):
                best, least, quality = there, mobile, smallest
        return best

    def _check_independent(self, J: Array, chosen: tuple[int, ...], index: tuple[int, ...]) -> None:
        """Raise where these velocities are not independent at one state, naming some that are."""
        names = velocity_names(self.mechanism)
        Z = null_space(J)
        quality = independence(J, chosen)
        if quality > 1e-7:
            return
        others = choose_independent(Z, actuated(self.mechanism), Z.shape[1])
        offered = ", ".join(names[k] for k in others) or "none"
        where = f" (state {', '.join(map(str, index))} of the batch)" if index else ""
        asked = ", ".join(names[k] for k in chosen)
        if quality < 0:
            raise PolybodyError(
                f"{asked or 'no coordinates'}: {len(chosen)} coordinates for a mobility of {Z.shape[1]}{where}; "
                f"independent here are {offered}"
            )
        raise PolybodyError(f"{asked} are not independent at this configuration{where}; independent here are {offered}")


__all__ = ["STATE_TOLERANCE", "AssemblyAnswers"]
