"""Where arms hold an object: grips and the grasp matrix.

The object is a body of the mechanism, moved from the ground by a joint of its own. Grip j is an end-effector frame e_j
of an arm that coincides with a frame g_j of the object. With twists of grips in the grip's own axes,

    V^e = W V^o,     W_j = X(g_j, object), 6×6,  W is 6m×6        (29), (30) corrected for [η; f], (34)

A rigid grasp seen from the body frames has Ẇ = 0. Inside, every grip is looked at where it would carry the object's own
frame, at `Grip.carried`: there W_j = 1, and a load y_j is a wrench at the object's origin, f_j = W_j⁻ᵀ y_j.

Which rows of the closure count is found by `planning`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polybody.algebra.domains import FLOAT, Domain
from polybody.formulations.operators.links import crossings
from polybody.formulations.operators.named import frame_crossing, tip_jacobian
from polybody.grasping.nearest import Order
from polybody.mechanism.mechanism import BodyFrame, Mechanism, tidy_rotation
from polybody.mechanism.reduction import reduced_frames

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Grip:
    """End-effector frame `tip` of an arm holds the object at its frame `hold`."""

    tip: BodyFrame
    hold: BodyFrame

    @property
    def carried(self) -> BodyFrame:
        """The object's own frame as the arm carries it: fixed to the arm's last body."""
        R = tidy_rotation(self.tip.rotation @ self.hold.rotation.T)
        return BodyFrame(f"object at {self.tip.name}", self.tip.body, R, self.tip.position - R @ self.hold.position)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of grip j that are closed together: K (r×6), eliminated at body `at`, or at the end where `at` is None.

    K is in the object's axes, at its origin: K (V^c − V^o) = 0 with V^c the twist of `Grip.carried`.
    """

    grip: int
    K: Array
    at: int | None


@dataclass(frozen=True, eq=False)
class Holding:
    """A mechanism whose body `object` is held by m grips."""

    mechanism: Mechanism
    object: int
    grips: tuple[Grip, ...]
    rows: tuple[Rows, ...]
    workless: Array  # 6m×k, orthonormal columns: loads that do no work in any motion (N_0)
    closing: Order  # rows of A that are independent where the grips are closed

    @property
    def m(self) -> int:
        return len(self.grips)

    @property
    def W(self) -> Array:
        """The grasp matrix, 6m×6."""
        return np.vstack([hold_matrix(grip) for grip in self.grips])


def hold_matrix(grip: Grip, *, domain: Domain = FLOAT) -> Array:
    """W_j: twist of the object to twist of the grip."""
    return frame_crossing(grip.hold, domain=domain).matrix()


def closure_matrix(
    mechanism: Mechanism, q: Array, grips: tuple[Grip, ...], body: int, *, domain: Domain = FLOAT
) -> Array:
    """A = [J −WΦ_o], 6m×nv: A v is how fast the grips come apart, in the axes of the grips."""
    across = crossings(mechanism, q, domain=domain)
    A = tip_jacobian(mechanism, across, tuple(g.tip for g in grips), domain=domain)
    columns = mechanism.joints[body].v
    for j, grip in enumerate(grips):
        A[6 * j : 6 * j + 6, columns] = -(hold_matrix(grip, domain=domain) @ across[body].Phi)
    return A


def carried_grips(grips: tuple[Grip, ...], body: int) -> tuple[Grip, ...]:
    """The same grips at the object's origin, where W_j = 1."""
    own = BodyFrame("object", body, np.eye(3), np.zeros(3))
    return tuple(Grip(grip.carried, own) for grip in grips)


def lean_holding(grasp: Holding, lean: Mechanism) -> Holding:
    """The same grasp of the mechanism's reduced twin: the same a and f_e from fewer numbers."""
    frames = reduced_frames(grasp.mechanism, (frame for grip in grasp.grips for frame in (grip.tip, grip.hold)))
    grips = tuple(Grip(tip, hold) for tip, hold in zip(frames[::2], frames[1::2], strict=True))
    back = np.linalg.solve(hold_matrix(grasp.grips[0]), hold_matrix(grips[0]))
    rows = grasp.rows  # in the object's frame, which a joint of one oblique axis turns
    if not np.allclose(back, np.eye(6), rtol=0, atol=1e-13):
        rows = tuple(replace(own, K=own.K @ back) for own in rows)
    return replace(grasp, mechanism=lean, grips=grips, rows=rows)


__all__ = ["Grip", "Holding", "Rows", "carried_grips", "closure_matrix", "hold_matrix", "lean_holding"]
