"""Dynamics of models with loops. Every answer honours them; a state that breaks them is refused.

Accelerations and joint forces have the tree's nv numbers, whether joints are independent or not; matrices and forces of
`mass_matrix` and its like are those of independent coordinates u (`model.independent`, or named), v = G u̇:

    M* ü + C* u̇ + g* = Gᵀ (tau + passive + Σ Jᵀ w),     M* = Gᵀ M G
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from polybody.constraints.actuation import actuator_loads
from polybody.constraints.minimal import Transfer, solve_minimal, transfer_to
from polybody.constraints.mobility import choose_independent
from polybody.constraints.multipliers import Solved, solve_multipliers
from polybody.constraints.ranks import null_space, pseudo_inverse
from polybody.coordinates.conditioning import direction_text
from polybody.errors import InputError, PolybodyError
from polybody.mechanism.columns import actuated, velocity_names
from polybody.mechanism.mechanism import Mechanism
from polybody.model.arguments import state_array
from polybody.model.assembly import STATE_TOLERANCE, AssemblyAnswers
from polybody.model.batches import each_state
from polybody.model.dynamics import DynamicAnswers, Wrenches, _into
from polybody.model.loop_kernels import LoopKernels, doubtful

Array = np.ndarray
Pick = Callable[[Array], Array]
ROUTES = ("multipliers", "minimal", "network")
#: a motion whose inertia is this part of the largest, or less, moves no mass
MASSLESS = 1e-14


class LoopDynamics(DynamicAnswers, AssemblyAnswers):
    """Dynamics with the loops honoured."""

    @cached_property
    def tree(self) -> Any:
        """The model of the tree alone, as if every loop were cut and every coupling loosened."""
        return type(self)(_cut(self.mechanism))  # type: ignore[call-arg]

    @property
    def independent_columns(self) -> tuple[int, ...]:
        """Indices in v of the independent coordinates: all of them where there are no loops."""
        return self._independent

    def loop_solution(
        self, q: Any, v: Any, tau: Any, *, wrenches: Wrenches | None = None, route: str = "multipliers",
        formulation: str | None = None,
    ) -> Solved:
        """Accelerations (..., nv), multipliers (..., rows) and the rank of the constraints, under joint forces tau.

        Multipliers are loads on the mechanism in the order of `constraint_names`; where constraints are redundant they
        are the least. `route` "multipliers" or "minimal" (transfer to independent coordinates); both give the same.
        """
        if route not in ROUTES[:2]:
            raise InputError(f"route is {route!r}, wanted 'multipliers' or 'minimal'")
        q, v, tau = self._states(("q", q), ("v", v), ("tau", tau))
        self.require_closed(q, v)
        M, force = self._tree_terms(q, v, tau, wrenches, formulation)
        J, gamma = self.constraint_kernels.jacobian(q), self.constraint_kernels.bias(q, v)
        solved = solve_multipliers(M, J, gamma, force)
        for index in np.argwhere(solved.inertia < MASSLESS)[:1]:
            wide = np.broadcast_to(M, (*solved.inertia.shape, *M.shape[-2:]))
            self._refuse_massless(wide[tuple(index)], J[tuple(index)], tuple(int(i) for i in index))
        gap = (J @ solved.a[..., None])[..., 0] + gamma
        slack = 1e-6 * (1 + np.square(v).max(axis=-1, keepdims=True, initial=0.0))
        self._require_small("no acceleration keeps", gap, slack, "at singular states v must lead along a branch")
        if route == "minimal":
            transfer = self._transfer(J, gamma, self._independent)
            a = solve_minimal(M, transfer, force)
            net = (M @ a[..., None])[..., 0] - force
            multipliers = (pseudo_inverse(np.swapaxes(J, -1, -2)) @ net[..., None])[..., 0]
            solved = replace(solved, a=a, multipliers=multipliers)
        return solved

    def _refuse_massless(self, M: Array, J: Array, index: tuple[int, ...]) -> None:
        """Raise where a motion that the constraints let pass at one state has no inertia, naming what leads it."""
        Z = null_space(J)
        values, vectors = np.linalg.eigh(Z.T @ M @ Z)
        idle = Z @ vectors[:, values < MASSLESS * max(values[-1:].sum(), 1e-300)]
        if not idle.shape[1]:
            return
        names = velocity_names(self.mechanism)
        leaders = [names[k] for k in choose_independent(idle, np.arange(self.nv), idle.shape[1])]
        where = f" (state {', '.join(map(str, index))} of the batch)" if index else ""
        raise PolybodyError(
            f"{self.mechanism.name!r}: nothing that moves with {' or '.join(leaders)} has mass{where}, so no force "
            "determines the acceleration; give the bodies mass, or one of the joints armature"
        )

    def require_mass(self, q: Array) -> None:
        """Raise where a mechanism has motions without inertia; asked once, of the first state."""
        if not self._mass_was_asked and q.size:
            first = q.reshape(-1, self.nq)[0]
            self._refuse_massless(self.tree.mass_matrix(first), self.constraint_kernels.jacobian(first), ())
            self._mass_was_asked = True

    _mass_was_asked = False

    # The public calls of every model, honouring loops.

    def forward_dynamics(
        self, q: Any, v: Any, tau: Any, *, wrenches: Wrenches | None = None, formulation: str | None = None,
        out: Array | None = None, check: bool = False,
    ) -> Array:
        """a, (..., nv): the accelerations under the joint forces tau. `wrenches` as in `inverse_dynamics`.

        `check` refuses non-finite input, which otherwise comes out non-finite.
        """
        if not self.mechanism.constrained:
            return super().forward_dynamics(
                q, v, tau, wrenches=wrenches, formulation=formulation, out=out, check=check
            )
        if formulation == "network":
            return _into(out, self._by_network(q, v, tau, wrenches))
        if formulation is not None or not self.loop_kernels.available:
            solved = self.loop_solution(q, v, tau, wrenches=wrenches, formulation=formulation)
            self.flag_ranks(solved.rank.ravel(), np.ones(solved.rank.shape, dtype=bool))
            return _into(out, solved.a)
        q, v, tau = self._states(("q", q), ("v", v), ("tau", tau))
        loads = self.tree.body_wrenches(q, wrenches) if wrenches else None
        self._plan_ready(q)
        self.require_mass(q)
        a, trust = self.loop_kernels.forward(q, v, tau, loads)
        self._require_trusted(q, v, trust)
        again = doubtful(trust)
        if np.any(again):
            def solve(pick: Pick) -> Solved:
                return self.loop_solution(pick(q), pick(v), pick(tau), wrenches=_picked(wrenches, pick))

            solved = _of_some(solve, again)
            a = np.array(a)
            a[again] = solved.a
            self.flag_ranks(solved.rank, again)
        return _into(out, a)

    def inverse_dynamics(
        self, q: Any, v: Any, a: Any, *, wrenches: Wrenches | None = None, formulation: str | None = None,
        out: Array | None = None, check: bool = False, weights: Any = None,
    ) -> Array:
        """tau, (..., nv): the joint forces for the accelerations a.

        `wrenches` maps a frame's name to a wrench [moment; force] on its body, at the frame's origin, in world axes.
        `check` refuses non-finite input, which otherwise comes out non-finite. With loops, forces are found at active
        joints only: where there are more than the mobility, the least ones (`weights`, one for each active coordinate:
        the least Σ w τ²); where they cannot do it, an error names the motion they do not hold.
        """
        if not self.mechanism.constrained:
            if weights is not None:
                raise InputError("weights share loads among the actuators of loops; this model has none")
            return super().inverse_dynamics(q, v, a, wrenches=wrenches, formulation=formulation, out=out, check=check)
        q, v, a = self._states(("q", q), ("v", v), ("a", a))
        if formulation is None and weights is None and self.loop_kernels.available:
            self._plan_ready(q)
            if self.loop_kernels.can_invert:
                return _into(out, self._inverse_by_kernel(q, v, a, wrenches))
        return _into(out, self._inverse_by_ranks(q, v, a, wrenches, formulation, weights))

    def _inverse_by_kernel(self, q: Array, v: Array, a: Array, wrenches: Wrenches | None) -> Array:
        loads = self.tree.body_wrenches(q, wrenches) if wrenches else None
        tau, trust = self.loop_kernels.inverse(q, v, a, loads)
        self._require_trusted(q, v, trust)
        if np.any(trust[..., -1] > 1e-12):
            self._require_acceleration(self.constraint_kernels.jacobian(q), q, v, a)
        again = doubtful(trust)
        if np.any(again):
            def solve(pick: Pick) -> Array:
                return self._inverse_by_ranks(pick(q), pick(v), pick(a), _picked(wrenches, pick), None, None)

            tau = np.array(tau)
            tau[again] = _of_some(solve, again)
            self.flag_ranks(self.constraint_rank(_rows(q, again)), again)
        return tau

    def _inverse_by_ranks(
        self, q: Array, v: Array, a: Array, wrenches: Wrenches | None, formulation: str | None, weights: Any
    ) -> Array:
        self.require_closed(q, v)
        J = self.constraint_kernels.jacobian(q)
        self._require_acceleration(J, q, v, a)
        required = self.tree.inverse_dynamics(q, v, a, wrenches=wrenches, formulation=formulation)
        driven = actuated(self.mechanism)
        shares = None if weights is None else self._weights(weights, driven)
        tau, unmet = actuator_loads(J, required, driven, shares)
        self._refuse_unheld(unmet, required)
        return tau

    def mass_matrix(
        self, q: Any, *, formulation: str | None = None, independent: Sequence[str] | None = None
    ) -> Array:
        """M(q), (..., nv, nv), with armature and reflected rotors; with loops M* of the independent coordinates."""
        if not self.mechanism.constrained:
            _refuse_choice(independent)
            return super().mass_matrix(q, formulation=formulation)
        (q,) = self._states(("q", q))
        G = self._motion(q, independent).G
        return np.swapaxes(G, -1, -2) @ self.tree.mass_matrix(q, formulation=formulation) @ G

    def coriolis_matrix(self, q: Any, v: Any, *, independent: Sequence[str] | None = None) -> Array:
        """Saha's C(q, v), (..., nv, nv), such that Ṁ − 2C is skew; with loops C* = Gᵀ(C G + M Ġ)."""
        if not self.mechanism.constrained:
            _refuse_choice(independent)
            return super().coriolis_matrix(q, v)
        q, v = self._states(("q", q), ("v", v))
        self.require_closed(q, v)
        transfer = self._motion(q, independent)
        G, d = transfer.G, list(transfer.dependent)
        J, J_rate = self.constraint_kernels.jacobian(q), self.constraint_kernels.jacobian_rate(q, v)
        G_rate = np.zeros(np.broadcast_shapes(G.shape, (*v.shape[:-1], *G.shape[-2:])))
        G_rate[..., d, :] = -(pseudo_inverse(J[..., d]) @ (J_rate @ G))
        inner = self.tree.coriolis_matrix(q, v) @ G + self.tree.mass_matrix(q) @ G_rate
        return np.swapaxes(G, -1, -2) @ inner

    def bias_forces(
        self, q: Any, v: Any, *, formulation: str | None = None, independent: Sequence[str] | None = None
    ) -> Array:
        """C v + gravity_forces, (..., nv); with loops C* u̇ + g* of the independent coordinates."""
        if not self.mechanism.constrained:
            _refuse_choice(independent)
            return super().bias_forces(q, v, formulation=formulation)
        q, v = self._states(("q", q), ("v", v))
        self.require_closed(q, v)
        transfer = self._motion(q, independent, self.constraint_kernels.bias(q, v))
        whole = self.tree.bias_forces(q, v, formulation=formulation)
        drift = (self.tree.mass_matrix(q) @ transfer.beta[..., None])[..., 0]
        return _back(transfer.G, whole + drift)

    def gravity_forces(self, q: Any, *, independent: Sequence[str] | None = None) -> Array:
        """What the joints must exert to hold the mechanism against gravity, (..., nv); springs not counted.

        With loops: what the independent coordinates must exert.
        """
        if not self.mechanism.constrained:
            _refuse_choice(independent)
            return super().gravity_forces(q)
        (q,) = self._states(("q", q))
        return _back(self._motion(q, independent).G, self.tree.gravity_forces(q))

    def passive_forces(self, q: Any, v: Any, *, independent: Sequence[str] | None = None) -> Array:
        """What springs and dampers exert, (..., nv); with loops on the independent coordinates."""
        if not self.mechanism.constrained:
            _refuse_choice(independent)
            return super().passive_forces(q, v)
        q, v = self._states(("q", q), ("v", v))
        self.require_closed(q, v)
        return _back(self._motion(q, independent).G, self.tree.passive_forces(q, v))

    # Inside.

    @cached_property
    def loop_kernels(self) -> LoopKernels:
        """Compiled forward and inverse dynamics."""
        return LoopKernels(self)

    def _plan_ready(self, q: Array) -> None:
        """The plan is made from states that are closed."""
        if self.loop_kernels.is_planned or not q.size:
            return
        self.require_closed(q)
        self.loop_kernels.plan(q)

    def _require_trusted(self, q: Array, v: Array, trust: Array) -> None:
        if not np.all((trust[..., 0] < STATE_TOLERANCE**2) & (trust[..., 1] < STATE_TOLERANCE**2)):
            self.require_closed(q, v)

    def _tree_terms(
        self, q: Array, v: Array, tau: Array, wrenches: Wrenches | None, formulation: str | None
    ) -> tuple[Array, Array]:
        """(M, f) of the cut tree, f = tau + passive + Σ Jᵀw − C v − g."""
        rest = np.zeros(self.nv)
        needed = self.tree.inverse_dynamics(q, v, rest, wrenches=wrenches, formulation=formulation)
        return self.tree.mass_matrix(q, formulation=formulation), tau - needed

    def _by_network(self, q: Any, v: Any, tau: Any, wrenches: Wrenches | None) -> Array:
        m = self.mechanism
        if wrenches or m.rods or m.guides or m.relations:
            raise PolybodyError("the network takes loops by cut joints, without external wrenches or other constraints")
        q, v, tau = self._states(("q", q), ("v", v), ("tau", tau))
        self.require_closed(q, v)
        net = self.network()  # type: ignore[attr-defined]

        def one(q: Array, v: Array, tau: Array) -> Array:
            parts = {j.name: (q[j.q], v[j.v], tau[j.v]) for j in m.independent_joints}
            answer = net.solve(*({n: p[k] for n, p in parts.items()} for k in range(2)),
                               forces={n: p[2] for n, p in parts.items()})
            return np.concatenate([np.atleast_1d(answer.accelerations[j.name]) for j in m.independent_joints])

        return each_state(one, (q, v, tau), (self.nv,))

    def _motion(self, q: Array, independent: Sequence[str] | None, gamma: Array | None = None) -> Transfer:
        self.require_closed(q)
        chosen = self._independent if independent is None else self.velocity_indices(independent)
        J = self.constraint_kernels.jacobian(q)
        return self._transfer(J, np.zeros(J.shape[:-1]) if gamma is None else gamma, chosen)

    def _transfer(self, J: Array, gamma: Array, chosen: tuple[int, ...]) -> Transfer:
        transfer = transfer_to(J, gamma, chosen)
        broken = np.abs(J @ transfer.G).max(axis=(-1, -2), initial=0.0)  # by columns that are too many
        bad = ~((transfer.condition < 1e7) & (broken < 1e-6 * (1 + np.abs(J).max(axis=(-1, -2), initial=0.0))))
        for index in np.argwhere(bad)[:1] if np.any(bad) else ():
            place = tuple(int(i) for i in index)
            self._check_independent(J[place], chosen, place)
        return transfer

    def _require_acceleration(self, J: Array, q: Array, v: Array, a: Array) -> None:
        gap = (J @ a[..., None])[..., 0] + self.constraint_kernels.bias(q, v)
        slack = 1e-6 * (1 + np.abs(a).max(axis=-1, keepdims=True, initial=0.0)
                        + np.square(v).max(axis=-1, keepdims=True, initial=0.0))
        self._require_small("a breaks", gap, slack, "model.close_acceleration(q, v, a) would mend it")

    def _weights(self, weights: Any, driven: Array) -> Array:
        W = state_array("weights", weights, len(driven))
        if W.ndim != 1 or not np.all(W > 0):
            raise InputError(f"weights must be {len(driven)} positive numbers, one for each active coordinate")
        return W

    def _refuse_unheld(self, unmet: Array, required: Array) -> None:
        bad = np.abs(unmet).max(axis=-1, initial=0.0) > 1e-8 * (1e-3 + np.abs(required).max(axis=-1, initial=0.0))
        if not np.any(bad):
            return
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f" (state {', '.join(map(str, index))} of the batch)" if index else ""
        motion = unmet[index] / np.linalg.norm(unmet[index])
        names = velocity_names(self.mechanism)
        driven = ", ".join(names[k] for k in actuated(self.mechanism)) or "none"
        raise PolybodyError(
            f"the active joints ({driven}) cannot give this motion{where}: no force of theirs acts on "
            f"{direction_text(motion, names)}, where {np.linalg.norm(unmet[index]):.3g} is wanted; make another joint "
            "active, or take the motion that forward_dynamics gives"
        )


def _rows(x: Array, again: Array) -> Array:
    """The states of x that are marked, x broadcast over the batch."""
    return np.broadcast_to(x, (*again.shape, x.shape[-1]))[again]


def _picked(wrenches: Wrenches | None, pick: Pick) -> Wrenches | None:
    return None if not wrenches else {name: pick(np.asarray(wrench)) for name, wrench in wrenches.items()}


def _of_some(solve: Callable[[Pick], Any], some: Array) -> Any:
    """solve of the marked states; where it fails it is asked of all, so that its error counts the batch's states."""
    try:
        return solve(lambda x: _rows(x, some))
    except PolybodyError:
        solve(lambda x: x)
        raise


def _cut(mechanism: Mechanism) -> Mechanism:
    return mechanism.cut()


def _back(G: Array, forces: Array) -> Array:
    return (np.swapaxes(G, -1, -2) @ forces[..., None])[..., 0]


def _refuse_choice(independent: Sequence[str] | None) -> None:
    if independent is not None:
        raise InputError("independent coordinates are chosen in models with loops or couplings; this one has neither")


__all__ = ["LoopDynamics"]
