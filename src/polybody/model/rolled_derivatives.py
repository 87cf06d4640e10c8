"""Directional derivatives of inverse dynamics of long chains, as a rolled kernel.

Every step of `rolled` is a function y = f(x); its tangent ẏ = f'(x) ẋ is a step of the same shape with twice the
fields. One pass over the tree then gives dτ along one direction (δq, δv, δa), and the columns of the derivative
matrices are a batch of directions, one for each degree of freedom: O(n²) work for the n² numbers asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polybody.mechanism.mechanism import Mechanism
from polybody.model.rolled import Kind, Roller
from polybody.model.tracing import source_digest

if TYPE_CHECKING:
    from polybody.kernels import Kernel


def _tangent(function: Any, roles: list[str], kept: list[int]) -> Any:
    """The step with, after each variable input, its rate; outputs are doubled, but for `kept`: those are rates only."""
    import casadi

    values = function.sx_in()
    rates = [casadi.SX.sym(f"d{k}", x.shape[0]) for k, x in enumerate(values)]
    outputs = function.call(values)
    moving = [k for k, role in enumerate(roles) if role != "constant"]
    x, dx = casadi.vertcat(*(values[k] for k in moving)), casadi.vertcat(*(rates[k] for k in moving))
    slopes = [casadi.densify(casadi.jtimes(y, x, dx)) for y in outputs]
    inputs = [item for k, role in enumerate(roles) for item in ([values[k]] if role == "constant" else
                                                                [values[k], rates[k]])]
    results = [item for k, y in enumerate(outputs) for item in ([slopes[k]] if k in kept else [y, slopes[k]])]
    return casadi.Function("tangent", inputs, results)


class TangentRoller(Roller):
    """Steps of inverse dynamics and their tangents; δq is a tangent vector, so q̇ = Γ(q) δq is formed in the step."""

    def _with_manifold(self, kind: Kind, function: Any, place: int) -> Any:
        """Replace the rate of q's numbers, input `place` + 1, by the tangent vector δq."""
        import casadi

        joint = self.sample[kind]
        inputs = list(function.sx_in())
        direction = casadi.SX.sym("dq", joint.nv)
        q = self.graph.scalars(inputs[place])
        moved = joint.model.rate(q, self.graph.scalars(direction), domain=self.graph)
        call = [*inputs[: place + 1], self.graph.column(moved), *inputs[place + 2 :]]
        outer = [*inputs[: place + 1], direction, *inputs[place + 2 :]]
        return casadi.Function("tangent", outer, function.call(call))

    def outward_tangent(self, kind: Kind) -> Any:
        roles = ["constant", "q", "v", "a", "parent"]
        return self._with_manifold(kind, _tangent(self.outward(kind, True), roles, []), 1)

    def project_tangent(self, kind: Kind) -> Any:
        roles = ["constant", "q", "v", "a", "gamma", "stored"]
        return self._with_manifold(kind, _tangent(self.project(kind), roles, [1]), 1)


def rolled_directional(mechanism: Mechanism) -> Kernel:
    """The kernel (q, δq, v, δv, a, δa) -> δτ."""
    from polybody.kernels import scan

    roller = TangentRoller(mechanism)
    twice = ("q", "dq", "v", "dv", "a", "da")
    starts = [j.v.start for j in mechanism.joints]
    slices = {name: starts for name in twice[1:]} | {"q": [j.q.start for j in mechanism.joints], "dtau": starts}
    fields = {"motion": 9, "gamma": 6, "stored": roller.stored_width}
    fields |= {f"d{name}": width for name, width in fields.items()}
    doubled = [name for field in ("motion", "gamma", "stored") for name in (field, f"d{field}")]
    passes = [
        scan.Pass("motion", scan.OUTWARD, roller.outward_tangent, constants=["c"], inputs=twice,
                  parent=["motion", "dmotion"], writes=doubled),
        scan.Pass("project", scan.INWARD, roller.project_tangent, constants=["c"], inputs=twice,
                  own=["gamma", "dgamma", "stored", "dstored"], adds=["gamma", "dgamma"], outputs=["dtau"]),
    ]  # fmt: skip
    recursion = scan.Scan(
        parents=[j.parent for j in mechanism.joints],
        kinds=roller.kinds,
        constants={"c": roller.table},
        fields=fields,
        slices=slices,
        passes=passes,
        root={"motion": [0.0] * 6 + [float(-g) for g in mechanism.gravity]},
    )
    sizes = [(name, mechanism.nq if name == "q" else mechanism.nv) for name in twice]
    key = f"rolled directional:{source_digest()}"
    return scan.build("inverse_directional_rolled", sizes, [("dtau", (mechanism.nv,))], recursion, key)


__all__ = ["rolled_directional"]
