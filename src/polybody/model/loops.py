"""Dynamics of models with loops. Every answer honours them; a state that breaks them is refused.

Accelerations and joint forces have the tree's nv numbers, whether joints are independent or not; matrices and forces of
`mass_matrix` and its like are those of independent coordinates u (`model.independent`, or named), v = G u̇:

    M* ü + C* u̇ + g* = Gᵀ (tau + passive + Σ Jᵀ w),     M* = Gᵀ M G
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from polybody.analysis.answering import actuated, velocity_names
from polybody.analysis.constraints.actuation import actuator_loads, internal_load_basis
from polybody.analysis.constraints.minimal import Transfer, solve_minimal, transfer_to
from polybody.analysis.constraints.multipliers import Solved, solve_multipliers
from polybody.analysis.coordinates.conditioning import direction_text
from polybody.errors import InputError, PolybodyError
from polybody.mechanism.mechanism import Mechanism
from polybody.model.arguments import state_array
from polybody.model.assembly import STATE_TOLERANCE, AssemblyAnswers
from polybody.model.batches import each_state
from polybody.model.dynamics import DynamicAnswers, Wrenches, _into
from polybody.model.loop_kernels import LoopKernels, doubtful

Array = np.ndarray
ROUTES = ("multipliers", "minimal", "network")


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
        if route == "minimal":
            transfer = self._transfer(J, gamma, self._independent)
            a = solve_minimal(M, transfer, force)
            net = (M @ a[..., None])[..., 0] - force
            from polybody.analysis.constraints.ranks import pseudo_inverse

            multipliers = (pseudo_inverse(np.swapaxes(J, -1, -2)) @ net[..., None])[..., 0]
            solved = Solved(a, multipliers, solved.rank, solved.singular_values)
        borne = (np.swapaxes(J, -1, -2) @ solved.multipliers[..., None])[..., 0]
        gap = (M @ solved.a[..., None])[..., 0] - force - borne
        size = np.abs(force).max(initial=0.0) + np.abs(borne).max(initial=0.0)
        if not np.abs(gap).max(initial=0.0) <= 1e-6 * (1e-3 + size) and np.isfinite(force).all():
            raise PolybodyError(
                f"{self.mechanism.name!r}: a motion that the loops let pass moves no mass, so no force determines its "
                "acceleration; give its bodies mass or its joints armature"
            )
        return solved

    def closure_loads(
        self, q: Any, v: Any, tau: Any, *, wrenches: Wrenches | None = None, route: str = "multipliers"
    ) -> dict[str, Array]:
        """{constraint: loads} of the motion under tau.

        A loop's is the wrench (..., 6) [moment; force] of its cut joint on body b at b's frame origin, world axes; a
        rod's its force (..., 1), positive where it pushes; a coupling's the joint force (..., 1) on its follower; the
        others' their multipliers.
        """
        q = state_array("q", q, self.nq)
        found = self.loop_solution(q, v, tau, wrenches=wrenches, route=route).multipliers
        return self._loads(q, found)

    def _loads(self, q: Array, multipliers: Array) -> dict[str, Array]:
        system = self.constraint_kernels.constraints
        loads = {name: multipliers[..., part] for name, part in system.slices.items()}
        if system.pairs:
            borne, _ = self.constraint_kernels.wrenches(q, multipliers)
            loops = {closure.name for closure in self.mechanism.closures}
            loads |= {pair.name: borne[..., k, :] for k, pair in enumerate(system.pairs) if pair.name in loops}
        return loads

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
            return _into(out, self.loop_solution(q, v, tau, wrenches=wrenches, formulation=formulation).a)
        q, v, tau = self._states(("q", q), ("v", v), ("tau", tau))
        loads = self.tree.body_wrenches(q, wrenches) if wrenches else None
        self._plan_ready(q)
        a, trust = self.loop_kernels.forward(q, v, tau, loads)
        self._require_trusted(q, v, trust)
        again = doubtful(trust)
        if np.any(again):
            picked = None if not wrenches else {k: _rows(np.asarray(w), again) for k, w in wrenches.items()}
            a = np.array(a)
            a[again] = self.loop_solution(
                _rows(q, again), _rows(v, again), _rows(tau, again), wrenches=picked
            ).a
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
            picked = None if not wrenches else {k: _rows(np.asarray(w), again) for k, w in wrenches.items()}
            tau = np.array(tau)
            tau[again] = self._inverse_by_ranks(
                _rows(q, again), _rows(v, again), _rows(a, again), picked, None, None
            )
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

    def internal_loads(self, q: Any) -> tuple[list[str], Array]:
        """(active coordinates, basis (active, k)): actuator loads that move nothing at q, orthonormal."""
        (q,) = self._states(("q", q))
        self.require_closed(q)
        driven = actuated(self.mechanism)
        names = velocity_names(self.mechanism)
        return [names[k] for k in driven], internal_load_basis(self.constraint_kernels.jacobian(q), driven)

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
        from polybody.analysis.constraints.ranks import pseudo_inverse

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
        if wrenches or m.couplings or m.rods or m.guides or m.relations:
            raise PolybodyError("the network takes loops by cut joints, without external wrenches or other constraints")
        q, v, tau = self._states(("q", q), ("v", v), ("tau", tau))
        self.require_closed(q, v)
        net = self.network()  # type: ignore[attr-defined]

        def one(q: Array, v: Array, tau: Array) -> Array:
            parts = {j.name: (q[j.q], v[j.v], tau[j.v]) for j in self.mechanism.joints}
            answer = net.solve(*({n: p[k] for n, p in parts.items()} for k in range(2)),
                               forces={n: p[2] for n, p in parts.items()})
            return np.concatenate([np.atleast_1d(answer.accelerations[j.name]) for j in self.mechanism.joints])

        return each_state(one, (q, v, tau), (self.nv,))

    def _motion(self, q: Array, independent: Sequence[str] | None, gamma: Array | None = None) -> Transfer:
        self.require_closed(q)
        chosen = self._independent if independent is None else self.velocity_indices(independent)
        J = self.constraint_kernels.jacobian(q)
        return self._transfer(J, np.zeros(J.shape[:-1]) if gamma is None else gamma, chosen)

    def _transfer(self, J: Array, gamma: Array, chosen: tuple[int, ...]) -> Transfer:
        transfer = transfer_to(J, gamma, chosen)
        bad = ~(transfer.condition < 1e7)
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

    def constraint_wrenches(self, q: Array, multipliers: Array) -> Mapping[str, Array]:
        """{link: (..., 6)}: loads of loops, rods and guides as wrenches on links, at their frames, world axes."""
        system = self.constraint_kernels.constraints
        if not system.pairs:
            return {}
        _, totals = self.constraint_kernels.wrenches(q, multipliers)
        return {link: totals[..., k, :] for k, link in enumerate(system.loaded_links)}


def _rows(x: Array, again: Array) -> Array:
    """The states of x that are marked, x broadcast over the batch."""
    return np.broadcast_to(x, (*again.shape, x.shape[-1]))[again]


def _cut(mechanism: Mechanism) -> Mechanism:
    return mechanism.cut()


def _back(G: Array, forces: Array) -> Array:
    return (np.swapaxes(G, -1, -2) @ forces[..., None])[..., 0]


def _refuse_choice(independent: Sequence[str] | None) -> None:
    if independent is not None:
        raise InputError("independent coordinates are chosen in models with loops or couplings; this one has neither")


__all__ = ["LoopDynamics"]
