"""Arms that hold a common object: the paper's Table I with (47)-(49) corrected, for one state.

f_e is on the object, in the axes of the end effectors; V° is the object's twist, Φ_o what its own joint lets it do (1
for a free object, V̇° = Φ_o a_o + ζ_o), V^e = W V° (34). The arms move by (28), the object by (33):

    1.  V̇_open = J_a v̇_a + J_p v̇_p + c_e      the end effectors with the object let go: f_e = 0 in step 4      (46)
    2.  (M_o + WᵀH⁻¹W) V̇° = WᵀH⁻¹ V̇_open − b_o                                                               (49)
    3.  f_e = H⁻¹ (V̇_open − W V̇°)                                                                             (47)
    4.  v̇_a = M⁻¹ (T̂ − C − Jᵀf_e),   v̇_p = M_p⁻¹ (T_p − C_p − J_pᵀf_e) − J_D v̇_a                        (28), (38)

The paper takes H for nonsingular. Of arms that cannot move their end effectors in all six directions, planar ones, say,
only `rows` of V^e are looked at, and loads along the others are zero. It is here to be read, and as a witness: a grasp
is answered by the engine of models with loops.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.formulations.operators.named import coefficients, frame_crossing
from polybody.formulations.operators.split import Split, active_mask, base_link
from polybody.formulations.operators.sweeps import causal, state
from polybody.late import dataclass
from polybody.mechanism.forces import joint_passive_forces
from polybody.mechanism.mechanism import BodyFrame, Mechanism


@dataclass(frozen=True, eq=False)
class HeldMotion:
    """a of all columns, f_e (6m) on the object, V̇° of the object (6)."""

    a: Array
    f_e: Array
    object_acceleration: Array


def arms_alone(mechanism: Mechanism, body: int, tips: tuple[BodyFrame, ...]) -> Split:
    """Active and passive columns of the arms, those of the object left out."""
    mask, own = active_mask(mechanism), mechanism.joints[body].v
    arms = [k for k in range(mechanism.nv) if not own.start <= k < own.stop]
    active = np.array([k for k in arms if mask[k]], dtype=int)
    passive = np.array([k for k in arms if not mask[k]], dtype=int)
    return Split(active, passive, base_link(mechanism, mask, tips), tips)


def table_one(
    mechanism: Mechanism, q: Array, v: Array, tau: Array, body: int, grips: Sequence[tuple[BodyFrame, BodyFrame]],
    rows: Sequence[int] | None = None, *, domain: Domain = FLOAT,
) -> HeldMotion:  # fmt: skip
    """The motion of arms whose end effectors (first of each pair in `grips`) hold a body at its frames (second)."""
    tips = tuple(tip for tip, _ in grips)
    chosen = arms_alone(mechanism, body, tips)
    o = coefficients(mechanism, q, v, tau, chosen, domain=domain)
    at = state(mechanism, q, v, domain=domain)
    kept = list(range(6 * len(tips))) if rows is None else list(rows)

    def arms(f_e: Array) -> tuple[Array, Array]:
        """Step 4: (v̇_a, v̇_p)."""
        a = domain.solve(o.M, o.T_hat - o.C - o.J.T @ f_e) if len(chosen.active) else domain.zeros(0)
        if not len(chosen.passive):
            return a, domain.zeros(0)
        return a, domain.solve(o.M_p, o.T_p - o.C_p - o.J_p.T @ f_e) - o.J_D @ a

    v_a, v_p = arms(domain.zeros(6 * len(tips)))
    c = causal(mechanism, at.across, at.zeta)
    c_e = np.concatenate([frame_crossing(tip, domain=domain).carry(c[tip.body]) for tip in tips])
    V_open = o.J_a @ v_a + o.J_p @ v_p + c_e
    W = np.concatenate([frame_crossing(hold, domain=domain).matrix() for _, hold in grips])

    # Steps 2 and 3. The weight acts by the ground's acceleration, which V̇° of (33) has in it.
    joint, Phi = mechanism.joints[body], at.across[body].Phi
    H_inverse = domain.solve(o.H[np.ix_(kept, kept)], domain.eye(len(kept)))
    W, V_open = W[kept], V_open[kept]
    felt = at.M[body] + W.T @ H_inverse @ W
    zeta, weight = at.zeta[body], at.M[body] @ at.across[body].carry(at.ground)
    force = (tau + joint_passive_forces(mechanism, q, v, domain=domain))[joint.v]
    pushed = W.T @ H_inverse @ V_open - at.b[body] - weight - felt @ zeta
    inertia = Phi.T @ felt @ Phi + domain.array(mechanism.armature[joint.v, joint.v])
    a_o = domain.solve(inertia, force + Phi.T @ pushed)
    V_o = Phi @ a_o + zeta
    f_e = domain.zeros(6 * len(tips))
    f_e[kept] = H_inverse @ (V_open - W @ V_o)

    a = domain.zeros(mechanism.nv)
    a[chosen.active], a[chosen.passive] = arms(f_e)
    a[joint.v] = a_o
    return HeldMotion(a, f_e, V_o)


__all__ = ["HeldMotion", "arms_alone", "table_one"]
