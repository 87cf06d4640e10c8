"""Derivatives of inverse and forward dynamics in tangent space, from the expression graph.

With Γ(q) the nq×nv matrix of q̇ = Γ(q) v, the tangent derivative of a function of q is its Jacobian times Γ: one
column for each number of v, also where q has more numbers than v. External wrenches stay constant in world axes.

    dtau/dq = (∂ID/∂q) Γ,   dtau/dv = ∂ID/∂v,   dtau/da = M
    da/dtau = M⁻¹,          da/dq = −M⁻¹ dtau/dq,   da/dv = −M⁻¹ dtau/dv        at a = FD(q, v, tau)
"""

from __future__ import annotations

from typing import Any

from polybody.formulations import denoc
from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import Mechanism
from polybody.model.tracing import argument_size, graph_domain


def tangent_map(mechanism: Mechanism, q: Any) -> Any:
    """Γ(q) as a CasADi matrix, from nodes q."""
    import casadi

    graph = graph_domain()
    columns = []
    for k in range(mechanism.nv):
        direction = graph.zeros(mechanism.nv)
        direction[k] = 1.0
        columns.append(graph.column(kinematics.rate(mechanism, q, direction, domain=graph)))
    return casadi.sparsify(casadi.horzcat(*columns))


def inverse_derivatives(mechanism: Mechanism, with_wrenches: bool) -> Any:
    """casadi.Function (q, v, a[, wrenches]) -> dtau/dq, dtau/dv, dtau/da, row by row."""
    import casadi

    graph = graph_domain()
    names = ["q", "v", "a", *(["wrenches"] if with_wrenches else [])]
    columns, arrays = zip(*(graph.variables(n, argument_size(mechanism, n)) for n in names), strict=True)
    q, v, a = arrays[:3]
    wrenches = arrays[3].reshape(-1, 6) if with_wrenches else None
    tau = graph.column(denoc.inverse_dynamics(mechanism, q, v, a, wrenches, domain=graph))
    dq = casadi.jacobian(tau, columns[0]) @ tangent_map(mechanism, q)
    dv = casadi.jacobian(tau, columns[1])
    M = graph.column(denoc.mass_matrix(mechanism, q, domain=graph))
    return casadi.Function("inverse_derivatives", list(columns), [_rows(dq), _rows(dv), M])


def forward_derivatives(mechanism: Mechanism) -> Any:
    """casadi.Function (q, v, tau) -> da/dq, da/dv, da/dtau, row by row, in one straight line."""
    import casadi

    graph = graph_domain()
    names = ("q", "v", "tau")
    columns, arrays = zip(*(graph.variables(n, argument_size(mechanism, n)) for n in names), strict=True)
    q, v, tau = arrays
    a = graph.column(denoc.forward_dynamics(mechanism, q, v, tau, domain=graph))
    inverse = inverse_derivatives(mechanism, False)
    dq, dv, _ = inverse(columns[0], columns[1], a)
    n = mechanism.nv
    M_inverse = casadi.reshape(graph.column(denoc.inverse_mass_matrix(mechanism, q, domain=graph)), n, n).T
    da_dq = -(M_inverse @ casadi.reshape(dq, n, n).T)
    da_dv = -(M_inverse @ casadi.reshape(dv, n, n).T)
    return casadi.Function("forward_derivatives", list(columns), [_rows(da_dq), _rows(da_dv), _rows(M_inverse)])


def _rows(matrix: Any) -> Any:
    """A dense column of the matrix's entries, row by row."""
    import casadi

    return casadi.densify(casadi.vec(matrix.T))


__all__ = ["forward_derivatives", "inverse_derivatives", "tangent_map"]
