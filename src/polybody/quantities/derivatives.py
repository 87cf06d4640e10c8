"""Derivatives of inverse and forward dynamics of trees in tangent space, from the expression graph.

With Γ(q) the nq×nv matrix of q̇ = Γ(q) v, the tangent derivative of a function of q is its Jacobian times Γ: one
column for each number of v, also where q has more numbers than v. External wrenches stay constant in world axes.

    dtau/dq = (∂ID/∂q) Γ,   dtau/dv = ∂ID/∂v,   dtau/da = M
    da/dtau = M⁻¹,          da/dq = −M⁻¹ dtau/dq,   da/dv = −M⁻¹ dtau/dv        at a = FD(q, v, tau)
"""

from __future__ import annotations

from typing import Any

from polybody.algebra.domains import GraphDomain, domain
from polybody.formulations import denoc
from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import Mechanism
from polybody.quantities.quantity import ARGUMENTS, sized, sizes_of


def graph_domain() -> GraphDomain:
    """The domain of expression graphs."""
    result = domain("casadi")
    assert isinstance(result, GraphDomain)
    return result


def tangent_map(mechanism: Mechanism, q: Any) -> Any:
    """Γ(q) as a CasADi matrix, from nodes q."""
    import casadi

    graph = graph_domain()
    columns = []
    for k in range(mechanism.nv):
        direction = graph.zeros(mechanism.nv)
        direction[k] = 1.0
        columns.append(graph.column(kinematics.rate(mechanism, q, direction, domain=graph)))
    return casadi.sparsify(casadi.horzcat(*columns)) if columns else casadi.SX(mechanism.nq, 0)


def inverse_derivatives(mechanism: Mechanism, wrenches: bool = False) -> Any:
    """casadi.Function (q, v, a[, wrenches]) -> dtau/dq, dtau/dv, dtau/da, row by row."""
    import casadi

    graph, (columns, (q, v, a, *loads)) = graph_domain(), _variables(mechanism, "a", wrenches)
    on_bodies = loads[0].reshape(-1, 6) if loads else None
    tau = graph.column(denoc.inverse_dynamics(mechanism, q, v, a, on_bodies, domain=graph))
    dq = casadi.jacobian(tau, columns[0]) @ tangent_map(mechanism, q)
    dv = casadi.jacobian(tau, columns[1])
    M = graph.column(denoc.mass_matrix(mechanism, q, domain=graph))
    return casadi.Function("inverse_derivatives", [*columns, *mechanism.symbols], [_rows(dq), _rows(dv), M])


def forward_derivatives(mechanism: Mechanism, wrenches: bool = False) -> Any:
    """casadi.Function (q, v, tau[, wrenches]) -> da/dq, da/dv, da/dtau, row by row, in one straight line."""
    import casadi

    graph, (columns, (q, v, tau, *loads)) = graph_domain(), _variables(mechanism, "tau", wrenches)
    on_bodies = loads[0].reshape(-1, 6) if loads else None
    a = graph.column(denoc.forward_dynamics(mechanism, q, v, tau, on_bodies, domain=graph))
    dq, dv, _ = inverse_derivatives(mechanism, wrenches)(columns[0], columns[1], a, *columns[3:], *mechanism.symbols)
    n = mechanism.nv
    M_inverse = casadi.reshape(graph.column(denoc.inverse_mass_matrix(mechanism, q, domain=graph)), n, n).T
    da_dq = -(M_inverse @ casadi.reshape(dq, n, n).T)
    da_dv = -(M_inverse @ casadi.reshape(dv, n, n).T)
    found = [_rows(da_dq), _rows(da_dv), _rows(M_inverse)]
    return casadi.Function("forward_derivatives", [*columns, *mechanism.symbols], found)


def motion_derivatives(mechanism: Mechanism, wrenches: bool = False) -> Any:
    """The same with G = 1 and V = 0: joints that follow nothing."""
    import casadi

    found = forward_derivatives(mechanism, wrenches)
    n = mechanism.nv
    columns = found.sx_in()
    more = [_rows(casadi.SX.eye(n)), _rows(casadi.SX.zeros(n, n))]
    return casadi.Function("motion_derivatives", columns, [*found.call(columns), *more])


def _variables(mechanism: Mechanism, third: str, wrenches: bool) -> tuple[list[Any], list[Any]]:
    names = ["q", "v", third, *(["wrenches"] if wrenches else [])]
    graph, sizes = graph_domain(), sizes_of(mechanism)
    pairs = [graph.variables(name, sized(ARGUMENTS[name], sizes)) for name in names]
    return [column for column, _ in pairs], [array for _, array in pairs]


def _rows(matrix: Any) -> Any:
    """A dense column of the matrix's entries, row by row."""
    import casadi

    return casadi.densify(casadi.vec(matrix.T))


__all__ = ["forward_derivatives", "graph_domain", "inverse_derivatives", "motion_derivatives", "tangent_map"]
