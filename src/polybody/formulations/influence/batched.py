"""I* and P* of many states at once, for trees whose P* is too large to be compiled as straight lines.

Whatever (2-196) and (2-197) sum over bodies is linear in what a body weighs: its mass m, first moment m c, second
moment m c cᵀ and inertia II about the mass centre. The bodies that feel velocities i, m and n are those carried by the
outermost of the three joints, so one *composite* of these numbers for each joint (M, h, E, K, sums over the bodies it
carries) replaces the sum: P*_imn has k² terms for each velocity instead of k³ for each body, k velocities being on the
way to the ground. With ω, x the columns of G at a point of the outermost joint's body, and h, E about it, the load

    F_mn = moment  ω_m × Kω_n + σ (K(ω_m × ω_n) + h × (ω_m × x_n) + (Eω_m) × ω_n)
                              + (1 − σ) (h × (ω_n × x_m) + (Eω_n) × ω_m)
           force   σ ω_m × y_n + (1 − σ) ω_n × y_m,      y = M x + ω × h,      σ = σ_mn

is what (2-197) projects: P*_imn = ω_i · moment + x_i · force. Screws and composites come from one compiled kernel
(`composites`), what belongs to a pair of velocities from another (`pair_loads`); what is left are products of matrices
over all states. Equal to the text, `arrays.inertia_power`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.rotations import cross
from polybody.formulations.influence.arrays import world_center, world_inertia
from polybody.formulations.influence.coefficients import configured
from polybody.formulations.influence.incidence import folded, incidence, support
from polybody.mechanism.mechanism import GROUND, Mechanism

#: States worked on at once: enough to hide numpy's cost of a call, few enough to stay in a cache.
PIECE = 128
#: Numbers of what a joint carries: the body's origin (3), then M, h (3), E (9), K (9).
CARRIED = 25
#: What `pair_loads` takes and gives, by name.
PAIR = (("m", 6), ("j", 6), ("carried", CARRIED), ("sigma", 2))
PAIR_LOADS = (("screw", (6,)), ("momentum", (6,)), ("jm", (6,)), ("mj", (6,)), ("own", (9,)))


def composites(mechanism: Mechanism, q: Array, *, domain: Domain = FLOAT) -> tuple[Array, Array]:
    """(screws of all joints' columns at the world's origin, columns×6, what each joint carries nb×25), world axes."""
    at = configured(mechanism, q, domain=domain)
    origins = [p for _, p in at.poses]
    found = []
    for body, p in zip(mechanism.bodies, origins, strict=True):
        c, m = world_center(at, body.index) - p, domain.const(body.mass)
        found.append((m, c * m, np.multiply.outer(c, c) * m, world_inertia(at, body.index)))
    for joint in reversed(mechanism.joints):
        if joint.parent != GROUND:
            M, h, E, K = found[joint.index]
            d = origins[joint.index] - origins[joint.parent]
            lever = np.multiply.outer(h, d)
            moved = M, h + d * M, E + lever + lever.T + np.multiply.outer(d, d) * M, K
            found[joint.parent] = tuple(a + b for a, b in zip(found[joint.parent], moved, strict=True))
    rows = [
        np.concatenate([p, domain.array([M]), h, E.ravel(), K.ravel()])
        for p, (M, h, E, K) in zip(origins, found, strict=True)
    ]
    return np.concatenate([domain.zeros(6, 0), *at.maps], axis=1).T, np.array(rows, dtype=domain.dtype)


def pair_loads(m: Array, j: Array, carried: Array, sigma: Array, *, domain: Domain = FLOAT) -> tuple[Array, ...]:
    """What velocities m and j, j of the outermost joint, bring about together; `sigma` is (σ_jm, σ_mj).

    The screw of m at the outermost body's origin, the momentum that j gives to what is carried, F_jm, F_mj, and three
    vectors a, b, c with P*_jnm = ω_n · (c_m + σ_nm (a_m + b_m)) + (1 − σ_nm) ω_m · a_n (triple products turned round).
    """
    p, M, h, E, K = carried[:3], carried[3], carried[4:7], carried[7:16].reshape(3, 3), carried[16:].reshape(3, 3)
    wm, wj = m[:3], j[:3]
    xm, xj = m[3:] + cross(wm, p), j[3:] + cross(wj, p)
    ym, yj = xm * M + cross(wm, h), xj * M + cross(wj, h)
    Em, Ej, Km, Kj = E @ wm, E @ wj, K @ wm, K @ wj
    trace = E[0, 0] + E[1, 1] + E[2, 2]
    momentum = np.concatenate([Kj + cross(h, xj) + wj * trace - Ej, yj])

    def load(first: tuple[Array, ...], second: tuple[Array, ...], s: Array) -> Array:
        """F of two velocities (ω, x, y, Eω, Kω), s = σ."""
        w1, x1, y1, E1, _ = first
        w2, x2, y2, E2, K2 = second
        rest = domain.const(1) - s
        carries = K @ cross(w1, w2) + cross(h, cross(w1, x2)) + cross(E1, w2)
        carried_on = cross(h, cross(w2, x1)) + cross(E2, w1)
        force = cross(w1, y2) * s + cross(w2, y1) * rest
        return np.concatenate([cross(w1, K2) + carries * s + carried_on * rest, force])

    of_m, of_j = (wm, xm, ym, Em, Km), (wj, xj, yj, Ej, Kj)
    a = cross(xm, cross(wj, h)) + E @ cross(wm, wj) + cross(ym, xj)
    own = np.concatenate([a, cross(wm, Kj), cross(Km, wj)])
    return np.concatenate([wm, xm]), momentum, load(of_j, of_m, sigma[0]), load(of_m, of_j, sigma[1]), own


def arrays_of_composites(
    mechanism: Mechanism, S: Array, carried: Array, armature: Array, pairs: Callable[..., tuple[Array, ...]]
) -> tuple[Array, Array]:
    """(I*, P*) of states (..., columns, 6), (..., nb, 25), (..., nv, nv) as numbers; `pairs` is `pair_loads` over
    batches. Of the mechanism only its structure is read: numbers of it may differ from state to state."""
    lead, n = S.shape[:-2], len(mechanism.slots)
    S, carried = S.reshape(-1, n, 6), carried.reshape(-1, *carried.shape[-2:])
    inertia, power = np.zeros((len(S), n, n)), np.zeros((len(S), n, n, n))
    sigma = incidence(mechanism).astype(float)
    ways = [(own, support(mechanism, i)) for i, columns in enumerate(mechanism.columns) for own in range(n)[columns]]
    at_m = np.concatenate([index for _, index in ways])
    at_j = np.concatenate([np.full(len(index), own) for own, index in ways])
    outermost = _joint_of_column(mechanism)[at_j]
    both = np.stack([sigma[at_j, at_m], sigma[at_m, at_j]], axis=-1)
    for first in range(0, len(S), PIECE):
        piece = slice(first, first + PIECE)
        found = pairs(S[piece][:, at_m], S[piece][:, at_j], carried[piece][:, outermost], both)
        end = 0
        for own, index in ways:
            start, end = end, end + len(index)
            part = [x[:, start:end] for x in found]
            _fill(inertia[piece], power[piece], index, own, sigma[index[:, None], index], part)
    if mechanism.followers:
        inertia, power = (folded(x, mechanism.slots, mechanism.nv, x.ndim - 1) for x in (inertia, power))
    n = mechanism.nv
    return inertia.reshape(*lead, n, n) + armature, power.reshape(*lead, n, n, n)


def _joint_of_column(mechanism: Mechanism) -> Array:
    return np.concatenate([np.full(joint.nv, joint.index) for joint in mechanism.joints])


def _fill(inertia: Array, power: Array, index: Array, own: int, sigma: Array, found: list[Array]) -> None:
    """Every entry of I* and P* that has velocity `own` of the outermost joint among its indices."""
    screw, momentum, jm, mj, three = found
    w, rows = screw[..., :3], index[:, None]
    inertia[:, index, own] = inertia[:, own, index] = np.sum(screw * momentum, axis=-1)
    power[:, rows, own, index] = screw @ np.swapaxes(jm, -1, -2)
    power[:, rows, index, own] = screw @ np.swapaxes(mj, -1, -2)
    a, b, c = (w @ np.swapaxes(x, -1, -2) for x in (three[..., :3], three[..., 3:6], three[..., 6:]))
    power[:, own, rows, index] = c + sigma * (a + b) + (1 - sigma) * np.swapaxes(a, -1, -2)


__all__ = ["CARRIED", "PAIR", "PAIR_LOADS", "arrays_of_composites", "composites", "pair_loads"]
