"""Compiled closed-loop dynamics: a fixed elimination, with every state's trust looked at.

The plan of elimination is chosen from the first states that are asked for, disturbed into general position. States
where it does badly (coordinates not independent, a rank unlike that of its neighbours) are not believed: the caller
solves them again, rank-revealing, one by one.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.constraints import elimination
from polybody.constraints.plan import Plan, growth, plan_elimination, resized
from polybody.mechanism.columns import actuated
from polybody.model.tracing import compiled

if TYPE_CHECKING:
    from polybody.kernels import Kernel
    from polybody.model.loops import LoopDynamics

Array = np.ndarray

#: (row over pivot)² above this: ten digits of the answer would be lost
GROWTH = 1e10
#: a redundant row that is not, squared
LEFTOVER = 1e-14
#: growth for each pivot above which simulation looks for better coordinates
SWITCH = 100.0
MOST_PLANS = 8
#: states for which no better plan is looked for after none was found
RESTS = 50
#: above this many velocities straight-line code takes too long to compile
COMPILED_UP_TO = 300


class LoopKernels:
    """Forward and inverse dynamics kernels of one model with loops."""

    def __init__(self, model: LoopDynamics) -> None:
        self.model = model
        self.driven = tuple(int(k) for k in actuated(model.mechanism))
        self._plan: Plan | None = None
        self._rests = 0
        self._shares: Plan | None = None
        self._kernels: dict[str, Kernel] = {}
        self._others: list[tuple[Plan, Plan | None, dict[str, Kernel]]] = []

    @property
    def available(self) -> bool:
        m = self.model.mechanism
        return 0 < m.nv <= COMPILED_UP_TO

    def switch(self, q: Array, rank: int, always: bool = True) -> None:
        """Take the plan that does best at q: one of those known, or a new one made for it.

        Where none was better, as near singular configurations, it is not looked for at every state, unless `always`.
        """
        self._rests -= 1
        if self._rests > 0 and not always:
            return
        J = self.model.constraint_kernels.jacobian(q)
        assert self._plan is not None

        def cost(plan: Plan) -> float:
            return growth(J, plan)

        known = [plan for plan, _, _ in self._others] + [self._plan]
        best = min(known, key=cost)
        if cost(best) > SWITCH * len(best.pivots) and len(known) < MOST_PLANS:
            fresh = resized(plan_elimination(J[None], rank=rank), self._plan)
            whole = len(fresh.pivots) == len(best.pivots)  # at a singular place there are fewer
            best = fresh if whole and cost(fresh) < 0.1 * cost(best) else best
        if best is self._plan:
            self._rests = RESTS
            return
        self._others.append((self._plan, self._shares, self._kernels))
        found = next((entry for entry in self._others if entry[0] is best), None)
        if found is None:
            self._plan, self._shares, self._kernels = best, None, {}
        else:
            self._others.remove(found)
            self._plan, self._shares, self._kernels = found

    @property
    def is_planned(self) -> bool:
        return self._plan is not None

    def plan(self, q: Array) -> Plan:
        """The plan of elimination, from the first states asked for."""
        if self._plan is None:
            samples = self._samples(q)
            self._plan = plan_elimination(samples)
            self._shares = self._share_plan(samples, self._plan)
        return self._plan

    def _share_plan(self, samples: Array, plan: Plan) -> Plan | None:
        GA = self._driven_motions(samples, plan)
        return plan_elimination(np.swapaxes(GA, -1, -2)) if GA.shape[1] == GA.shape[2] else None

    def _samples(self, q: Array) -> Array:
        """J at up to four of the states, and near them in general position."""
        states = q.reshape(-1, q.shape[-1])
        picked = states[np.unique(np.linspace(0, len(states) - 1, 4).astype(int))]
        places = [self.model.general_place(state) for state in picked]
        return self.model.constraint_kernels.jacobian(np.array(places))

    def _driven_motions(self, samples: Array, plan: Plan) -> Array:
        from polybody.constraints.minimal import transfer_to

        zero = np.zeros(samples.shape[:-1])
        return transfer_to(samples, zero, plan.independent).G[:, list(self.driven)]

    def forward(self, q: Array, v: Array, tau: Array, loads: Array | None) -> tuple[Array, Array]:
        """(a, trust) of states; trust is ‖φ‖², ‖J v‖², growth, leftover, narrow."""
        plan, tree = self.plan(q), self.model.tree

        def text(q: Array, v: Array, tau: Array, *w: Array, domain: Any) -> Any:
            mechanism = tree.mechanism if w else tree.lean_mechanism
            wrenches = w[0].reshape(-1, 6) if w else None
            system = self.model.constraint_kernels.constraints
            return elimination.forward(mechanism, system, plan, q, v, tau, wrenches, domain=domain)

        shapes = [("a", (self.model.nv,)), ("trust", (5,))]
        kernel = self._kernel("loop forward", "tau", loads is not None, shapes, text, str(plan))
        return kernel(q, v, tau) if loads is None else kernel(q, v, tau, loads)

    @property
    def can_invert(self) -> bool:
        """True where the driven velocities can hold every motion."""
        if self._plan is None:
            return False
        if self._shares is None and len(self.driven) == len(self._plan.independent):
            q = self.model.general_place(self.model.close())
            self._shares = self._share_plan(self.model.constraint_kernels.jacobian(q)[None], self._plan)
        if len(self.driven) == len(self._plan.independent):
            return self._shares is not None and len(self._shares.pivots) == len(self.driven)
        return len(self.driven) > len(self._plan.independent)

    def inverse(self, q: Array, v: Array, a: Array, loads: Array | None) -> tuple[Array, Array]:
        """(tau, trust) of states; trust has ‖J a + γ‖² as its last number."""
        plan, tree = self.plan(q), self.model.tree
        shares = self._shares or Plan((), (), (), ())

        def text(q: Array, v: Array, a: Array, *w: Array, domain: Any) -> Any:
            mechanism = tree.mechanism if w else tree.lean_mechanism
            wrenches = w[0].reshape(-1, 6) if w else None
            system = self.model.constraint_kernels.constraints
            return elimination.inverse(
                mechanism, system, plan, shares, self.driven, q, v, a, wrenches, domain=domain
            )

        shapes = [("tau", (self.model.nv,)), ("trust", (6,))]
        kernel = self._kernel("loop inverse", "a", loads is not None, shapes, text, f"{plan}|{shares}")
        return kernel(q, v, a) if loads is None else kernel(q, v, a, loads)

    def way_back(self, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
        """(step of q, change of v, [‖φ‖², growth, narrow], turns): how dependent coordinates go back to the loops."""
        plan = self.plan(q)
        if "way back" not in self._kernels:
            def text(q: Array, v: Array, *, domain: Any) -> Any:
                return elimination.way_back(self.model.constraint_kernels.constraints, plan, q, v, domain=domain)

            n = self.model.nv
            label = hashlib.sha256(str(plan).encode()).hexdigest()[:16]
            shapes = [("step", (n,)), ("speed", (n,)), ("trust", (3,)), ("turns", (2, len(plan.pivots)))]
            self._kernels["way back"] = compiled(
                self.model.mechanism, f"loop way back {label}", ["q", "v"], shapes, text
            )
        return self._kernels["way back"](q, v)

    def _kernel(self, name: str, third: str, loaded: bool, shapes: Any, text: Any, plan: str) -> Kernel:
        key = f"{name}{' wrenches' if loaded else ''}"
        if key not in self._kernels:
            inputs: list[Any] = ["q", "v", third, *(["wrenches"] if loaded else [])]
            label = hashlib.sha256(plan.encode()).hexdigest()[:16]
            self._kernels[key] = compiled(self.model.mechanism, f"{key} {label}", inputs, shapes, text)
        return self._kernels[key]


def doubtful(trust: Array) -> Array:
    """States whose elimination is not to be believed."""
    return ~((trust[..., 2] < GROWTH) & (trust[..., 4] < GROWTH) & (trust[..., 3] < LEFTOVER))


__all__ = ["LoopKernels", "doubtful"]
