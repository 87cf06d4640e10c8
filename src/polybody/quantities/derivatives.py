"""Derivatives of forward dynamics of trees in tangent space, from those of inverse dynamics (`denoc.derivatives`).

    da/dtau = M⁻¹,          da/dq = −M⁻¹ dtau/dq,   da/dv = −M⁻¹ dtau/dv        at a = FD(q, v, tau)

With Γ(q) the nq×nv matrix of q̇ = Γ(q) v, the tangent derivative of a function of q is its Jacobian times Γ: one
column for each number of v, also where q has more numbers than v. External wrenches stay constant in world axes.
"""

from __future__ import annotations

from typing import Any

from polybody.algebra.domains import Array, Domain, GraphDomain, domain
from polybody.formulations import denoc
from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import Mechanism
from polybody.quantities.free_base import falling, falling_changes, free_base


def graph_domain() -> GraphDomain:
    """The domain of expression graphs."""
    result = domain("casadi")
    assert isinstance(result, GraphDomain)
    return result


def tangent_map(mechanism: Mechanism, q: Any) -> Any:
    """Γ(q) as a CasADi matrix, from nodes q."""
    import casadi

    graph = graph_domain()
    columns = [graph.column(x) for x in kinematics.tangent_columns(mechanism, q, domain=graph)]
    return casadi.sparsify(casadi.horzcat(*columns)) if columns else casadi.SX(mechanism.nq, 0)


def forward_derivatives(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain
) -> tuple[Array, Array, Array]:
    """(da/dq, da/dv, da/dtau)."""
    M_inverse, dq, dv = _forward_factors(mechanism, q, v, tau, wrenches, domain=domain)
    return -(M_inverse @ dq), -(M_inverse @ dv), M_inverse


def _forward_factors(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None, *, domain: Domain
) -> tuple[Array, Array, Array]:
    """(M⁻¹, dtau/dq, dtau/dv)."""
    a = denoc.forward_dynamics(mechanism, q, v, tau, wrenches, domain=domain)
    dq, dv, _ = denoc.inverse_dynamics_derivatives(mechanism, q, v, a, wrenches, domain=domain)
    return denoc.inverse_mass_matrix(mechanism, q, domain=domain), dq, dv


def forward_factors(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain
) -> tuple[Array, ...]:
    """A = M⁻¹, B_q, B_v, C_q, C_v with da/dq = C_q − A B_q and da/dv = C_v − A B_v.

    C is zero, B_q and B_v derivatives of inverse dynamics, except where the base is free (`free_base`).
    """
    base = free_base(mechanism) if wrenches is None else None
    if base is None:
        none = domain.zeros(mechanism.nv, mechanism.nv)
        return *_forward_factors(mechanism, q, v, tau, wrenches, domain=domain), none, none
    lighter, still = falling(mechanism, base, v, domain=domain)
    M_inverse, dq, dv = _forward_factors(lighter, q, still, tau, None, domain=domain)
    dq, dv = dq.copy(), dv.copy()
    dq[:, base.v] = domain.zeros(mechanism.nv, base.nv)
    dv[:, base.v.start + 3 : base.v.stop] = domain.zeros(mechanism.nv, 3)
    return M_inverse, dq, dv, *falling_changes(mechanism, base, q, v, domain=domain)


def motion_derivatives(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, wrenches: Array | None = None, *, domain: Domain
) -> tuple[Array, ...]:
    """The same with G = 1 and V = 0: joints that follow nothing."""
    n = mechanism.nv
    return *forward_derivatives(mechanism, q, v, tau, wrenches, domain=domain), domain.eye(n), domain.zeros(n, n)


__all__ = ["forward_derivatives", "forward_factors", "graph_domain", "motion_derivatives", "tangent_map"]
