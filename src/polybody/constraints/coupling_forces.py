"""What linear couplings exert: the force that makes a follower follow, eliminated with its coordinate.

Set free, every joint of the tree would need its own force for the motion that the followers make,

    r = M_all a_all + C v_all + g − passive − Σ Jᵀw,      q_all = E q + c,  v_all = E v,  a_all = E a.

A follower gets r_f from its coupling and from a motor of its own, u_f; its leader bears k times the coupling's part:

    λ_f = r_f − u_f,      r_l = u_l − Σ_f k_f λ_f,      tau_l = u_l + Σ_f k_f u_f.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.formulations.denoc import inverse_dynamics
from polybody.mechanism.couplings import joint_positions, joint_velocities
from polybody.mechanism.mechanism import Mechanism


def coupling_forces(
    mechanism: Mechanism,
    q: Array,
    v: Array,
    a: Array,
    wrenches: Array | None = None,
    own: Array | None = None,
    *,
    domain: Domain = FLOAT,
) -> Array:
    """λ of every follower, in the order of `mechanism.followers`, on the follower's own coordinate.

    `wrenches` are those on the bodies (bodies, 6), world axes at their origins, loads of loops included; `own` are the
    efforts u of motors on the followers' own joints, none by default.
    """
    if not mechanism.followers:
        return domain.zeros(0)
    free = mechanism.uncoupled
    q_all = np.concatenate(list(joint_positions(mechanism, q, domain=domain).values()))
    v_all, a_all = (np.concatenate(list(joint_velocities(mechanism, x, domain=domain).values())) for x in (v, a))
    needed = inverse_dynamics(free, q_all, v_all, a_all, wrenches, domain=domain)
    at = [free.joints[free.joint_index[name]].v.start for name in mechanism.followers]
    return needed[at] if own is None else needed[at] - own


__all__ = ["coupling_forces"]
