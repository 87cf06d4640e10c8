"""Fixed steps of models with loops: the text of one compiled step, and the same step by numbers.

Accelerations come from the fixed elimination of `constraints.elimination`; after the step the dependent coordinates go
back to the loops by two Newton iterations, and then the dependent velocities. The state carries one more number, the
largest `growth` and `narrow` of pivots on its way: where that is large the elimination is not to be believed, and such
states are stepped again one by one, rank-revealing (`constrained_motion`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.algebra.graph import replayed
from polybody.algebra.shared import SharedGraph
from polybody.mechanism import kinematics
from polybody.model.model import Model
from polybody.quantities import constrained
from polybody.quantities.constrained import Closed, along_plan
from polybody.simulation.constrained_motion import ConstrainedMotion, constrained_engine

Array = np.ndarray
#: growth for each pivot above which a step is not believed
BELIEVED = 1e4
NEWTON = 2


class LoopSteps:
    """What a compiled step needs of a model with loops, for states like q."""

    def __init__(self, model: Model, q: Array) -> None:
        self.model = model
        engine = constrained_engine(model)
        self.plan = engine.plans.free(q) if engine.is_compiled else None
        self.system = model.engine.constraints.traced

    @property
    def label(self) -> str:
        """What distinguishes the kernels of two plans."""
        return self.plan.label if self.plan else ""

    @property
    def limit(self) -> float:
        return BELIEVED * max(len(self.plan.pivots) if self.plan else 0, 1)

    def acceleration(self, q: Array, v: Array, tau: Array, domain: Any) -> Array:
        """a under tau."""
        assert self.plan is not None
        closed = Closed(self.model.engine.reduced_mechanism, self.system, along_plan(self.plan), ())
        return constrained.forward_dynamics(closed, q, v, tau, domain=domain)

    def returned(self, q: Array, v: Array, worst: Any, graph: SharedGraph) -> tuple[Array, Array, Array]:
        """(q, v, growth): the state put back on the loops; the growth is this one, or `worst` where that is larger."""
        m, growth = self.model.engine.traced_mechanism, graph.const(0)
        for _ in range(NEWTON):
            step, grown = self._newton(q, None, graph)
            q = kinematics.integrate(m, q, step, domain=graph)
            growth = growth + grown
        back, grown = self._newton(q, v, graph)
        growth = growth + grown
        return q, v + back, np.array([graph.where(graph.less(worst, growth), growth, worst)], dtype=object)

    def _newton(self, q: Array, v: Array | None, graph: SharedGraph) -> tuple[Array, Any]:
        """(step of q, or change of v where that is given; growth): the text at the graph's variables, replayed."""
        own = [graph.variables("q", len(q))[1], *([] if v is None else [graph.variables("v", len(v))[1]])]
        text = self._newton_text(own[0], None if v is None else own[1], graph)
        given = [*q, *(() if v is None else v)]
        pairs = zip((x for array in own for x in array), given, strict=True)
        found = replayed([*text[0], text[1]], {x.serial: y for x, y in pairs})
        if found is None:
            return self._newton_text(q, v, graph)
        return np.array(found[:-1], dtype=object), found[-1]

    def _newton_text(self, q: Array, v: Array | None, graph: SharedGraph) -> tuple[Array, Any]:
        assert self.plan is not None
        found = along_plan(self.plan)(self.system.jacobian(q, domain=graph), graph)
        system = self.system
        off = system.residual(q, domain=graph) if v is None else system.velocity(q, v, domain=graph)
        return found.follow(off), found.growth + found.narrow


def numeric_step(
    model: Model, motion: ConstrainedMotion, method: str, q: Array, v: Array, h: float,
    tau: Callable[[Array, Array], Array],
) -> tuple[Array, Array]:  # fmt: skip
    """One step of one state along a motion of the model, rank-revealing where it must be."""

    def accelerated(q: Array, v: Array) -> Array:
        return motion.acceleration(q, v, tau(q, v))[0]

    def rate(q: Array, v: Array) -> tuple[Array, Array]:
        q = model.normalize(q)
        return kinematics.rate(model.mechanism, q, v), accelerated(q, v)

    if not (np.isfinite(q).all() and np.isfinite(v).all()):
        return q, v
    if method == "rk4":
        k1 = rate(q, v)
        k2 = rate(q + h / 2 * k1[0], v + h / 2 * k1[1])
        k3 = rate(q + h / 2 * k2[0], v + h / 2 * k2[1])
        k4 = rate(q + h * k3[0], v + h * k3[1])
        q, v = (y + h / 6 * (a + 2 * (b + c) + d) for y, a, b, c, d in zip((q, v), k1, k2, k3, k4, strict=True))
        q = model.normalize(q)
    else:
        v = v + h * accelerated(q, v)
        q = model.integrate(q, v, h)
    if not (np.isfinite(q).all() and np.isfinite(v).all() and np.isfinite(motion.kernels.jacobian(q)).all()):
        return np.full_like(q, np.nan), np.full_like(v, np.nan)  # as compiled steps answer, which carry NaN on
    q, v, _ = motion.projection(q, v)
    return q, v


__all__ = ["LoopSteps", "numeric_step"]
