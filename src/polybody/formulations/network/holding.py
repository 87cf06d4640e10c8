"""Rods, guides and relations as components: they hold k directions, and exert a load λ along each.

Between ports a and b, with d = p_b − p_a, world axes, and port a of a guide where b is now (Ξ of (29)):

    rod      w = d/‖d‖                   ẇ = (ḋ − w wᵀḋ)/‖d‖
    guide    w = R_a n, n fixed in a     ẇ = ω_a × w             two directions hold a line, one holds a plane
    wᵀ ẋ_lin + ẇᵀ x_lin = 0,             y = −[w λ; 0]: λ w acts on b, its opposite on a

A relation f(q) = 0 between joints has no edge: it ties accelerations as a gear does,

    J a + J̇ v = 0,                       Jᵀ λ along the joints it names,    J_k = df along q̇ = Γ e_k, by jets
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.jets import JetDomain
from polybody.algebra.rotations import cross
from polybody.formulations.network.parts import HoldPart, RelationPart
from polybody.mechanism.kinds import plane_axes

if TYPE_CHECKING:
    from polybody.formulations.network.builder import NetworkBuilder
    from polybody.formulations.network.situation import Situation


def held_directions(net: NetworkBuilder, part: HoldPart, state: Situation) -> tuple[Array, Array]:
    """(w, ẇ), each 3×k in world axes."""
    domain = state.domain
    a, b = state.port(net, part.a), state.port(net, part.b)
    if part.kind == "rod":
        d, speed = b.p - a.p, b.x[:3] - a.x[:3]
        length = domain.sqrt(d @ d)
        w = d / length
        return w.reshape(3, 1), ((speed - w * (w @ speed)) / length).reshape(3, 1)
    w = a.R @ domain.array(_guide_rows(part).T)
    turning = [cross(a.x[3:], w[:, k]) for k in range(part.size)]
    return w, np.array(turning, dtype=domain.dtype).T


def held_gap(net: NetworkBuilder, part: HoldPart, state: Situation) -> tuple[Array, Array]:
    """(gap, slip), k numbers each: how far off the held directions are, and how fast."""
    domain = state.domain
    a, b = state.port(net, part.a), state.port(net, part.b)
    w, _ = held_directions(net, part, state)
    d, speed = b.p - a.p, b.x[:3] - a.x[:3]
    if part.kind == "rod":
        return np.array([domain.sqrt(d @ d) - domain.array([part.length])[0]], dtype=domain.dtype), w.T @ speed
    return w.T @ d, w.T @ (speed - cross(a.x[3:], d))  # the point of a that is where b is


def _guide_rows(part: HoldPart) -> Array:
    axis = np.asarray(part.axis, dtype=float)
    return np.array(plane_axes(axis) if part.kind == "line" else (axis,))


def relation_row(net: NetworkBuilder, part: RelationPart, state: Situation) -> dict[str, Array]:
    """J: {joint: nv numbers}."""
    return _row(net, part, {name: state.joints[name].q for name in part.joints}, state.domain)


def relation_gap(net: NetworkBuilder, part: RelationPart, state: Situation) -> tuple[Any, Any]:
    """(f, J v)."""
    value = part.expression.value({name: state.joints[name].q for name in part.joints}, state.domain)
    J = relation_row(net, part, state)
    return value, sum((J[name] @ state.joints[name].v for name in part.joints), state.domain.const(0))


def relation_drift(net: NetworkBuilder, part: RelationPart, state: Situation) -> Any:
    """J̇ v, by a jet along q̇ = Γ v."""
    jets = JetDomain(state.domain)
    moving = {name: jets.lift(state.joints[name].q, _rate(net, name, state.joints[name].q, state.joints[name].v,
                                                          state.domain)) for name in part.joints}
    rates = {name: jets.rates(row) for name, row in _row(net, part, moving, jets).items()}
    return sum((rates[name] @ state.joints[name].v for name in part.joints), state.domain.const(0))


def _rate(net: NetworkBuilder, name: str, q: Array, v: Array, domain: Domain) -> Array:
    model = net.parts.joints[name].model
    assert model is not None
    return model.rate(q, v, domain=domain)


def _row(net: NetworkBuilder, part: RelationPart, q: dict[str, Array], domain: Domain) -> dict[str, Array]:
    jets, row = JetDomain(domain), {}
    for name in part.joints:
        nv = net.parts.joints[name].nv
        entries = domain.zeros(nv)
        for k in range(nv):
            unit = domain.zeros(nv)
            unit[k] = domain.const(1)
            moving = {other: jets.lift(x, domain.zeros(len(x))) for other, x in q.items()}
            moving[name] = jets.lift(q[name], _rate(net, name, q[name], unit, domain))
            entries[k] = jets.rates(jets.array([part.expression.value(moving, jets)]))[0]
        row[name] = entries
    return row


__all__ = ["held_directions", "held_gap", "relation_drift", "relation_gap", "relation_row"]
