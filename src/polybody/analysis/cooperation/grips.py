"""Where arms hold an object: grips, the grasp matrix, and which rows of the grasp are independent.

The object is a body of the mechanism, moved from the ground by a joint of its own. Grip j is an end-effector frame e_j
of an arm that coincides with a frame g_j of the object. With twists of grips in the grip's own axes,

    V^e = W V^o,     W_j = X(g_j, object), 6×6,  W is 6m×6        (29), (30) corrected for [η; f], (34)

A rigid grasp seen from the body frames has Ẇ = 0. Inside, every grip is looked at where it would carry the object's own
frame, at `Grip.carried`: there W_j = 1, and a load y_j is a wrench at the object's origin, f_j = W_j⁻ᵀ y_j.

The paper takes H for nonsingular; planar arms never make it so. Which rows count is found once, from configurations
drawn at random, and kept:

- the rows U_j in which arm j alone, from the body it shares with other arms outwards, can move its end effector (all
  six for a spatial arm of six joints, three for a planar arm); where those joints reach all of U_j at once, the
  arm's load is eliminated there, arm by arm, at a cost proportional to the number of arms;
- of the other rows those that are independent of them; their loads are found together, at the end;
- loads that do no work in any motion (the space N_0) stay at the value of least norm: zero for planar arms with a
  planar object.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polybody.algebra.domains import FLOAT, Domain
from polybody.errors import InputError
from polybody.formulations.operators.links import crossings
from polybody.formulations.operators.named import frame_crossing, tip_jacobian
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism, tidy_rotation
from polybody.mechanism.reduction import reduced_frames

Array = np.ndarray

#: Relative size below which a singular value of a generic Jacobian counts as zero.
RANK_TOLERANCE = 1e-9
SAMPLES = 6


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


def plan_holding(mechanism: Mechanism, body: int, grips: tuple[Grip, ...]) -> Holding:
    """The grasp with its independent rows, from random configurations of the arms."""
    _check(mechanism, body, grips)
    rng = np.random.default_rng(20030619)
    samples = []
    for _ in range(SAMPLES):
        q = np.concatenate([joint.model.random(rng) for joint in mechanism.joints])
        samples.append(closure_matrix(mechanism, q, carried_grips(grips, body), body))
    rows, spare = _arm_rows(mechanism, grips, samples)
    wide = np.hstack(samples)
    rows += _independent(rows, spare, wide)
    at_grips = np.vstack([hold_matrix(grip) @ wide[6 * j : 6 * j + 6] for j, grip in enumerate(grips)])
    return Holding(mechanism, body, grips, tuple(rows), _left_null(at_grips))


def lean_holding(grasp: Holding, lean: Mechanism) -> Holding:
    """The same grasp of the mechanism's reduced twin: the same a and f_e from fewer numbers."""
    frames = reduced_frames(grasp.mechanism, (frame for grip in grasp.grips for frame in (grip.tip, grip.hold)))
    grips = tuple(Grip(tip, hold) for tip, hold in zip(frames[::2], frames[1::2], strict=True))
    back = np.linalg.solve(hold_matrix(grasp.grips[0]), hold_matrix(grips[0]))  # the object's old frame from its new one
    rows = grasp.rows
    if not np.allclose(back, np.eye(6), rtol=0, atol=1e-13):
        rows = tuple(replace(own, K=own.K @ back) for own in rows)
    return replace(grasp, mechanism=lean, grips=grips, rows=rows)


def _check(mechanism: Mechanism, body: int, grips: tuple[Grip, ...]) -> None:
    name = mechanism.bodies[body].name
    if mechanism.joints[body].parent != GROUND:
        raise InputError(
            f"object {name!r} is carried by joint {mechanism.joints[body].name!r} of another body; an object to grasp "
            "moves from the ground by a joint of its own (floating, or planar)"
        )
    if not grips:
        raise InputError(f"a grasp of {name!r} needs at least one end effector")
    for grip in grips:
        if grip.tip.body == GROUND:
            raise InputError(f"end effector {grip.tip.name!r} is fixed to the ground, so it cannot hold {name!r}")
        if body in mechanism.supports[grip.tip.body]:
            raise InputError(f"end effector {grip.tip.name!r} is part of the object {name!r} that it should hold")
        if grip.hold.body != body:
            raise InputError(f"frame {grip.hold.name!r} is not fixed to the object {name!r}")


def own_joints(mechanism: Mechanism, grips: tuple[Grip, ...], j: int) -> tuple[list[int], int]:
    """The joints that move end effector j and no other, and the body they start from (GROUND for the ground)."""
    others = {i for k, g in enumerate(grips) if k != j for i in mechanism.supports[g.tip.body]}
    own = [i for i in mechanism.supports[grips[j].tip.body] if i not in others]
    # The base is left to the end even when one arm alone stands on it: it is no part of the arm.
    if own and mechanism.joints[own[0]].parent == GROUND and not mechanism.joints[own[0]].active.any():
        return own[1:], own[0]
    start = mechanism.joints[own[0]].parent if own else grips[j].tip.body
    return own, start


def _arm_rows(mechanism: Mechanism, grips: tuple[Grip, ...], samples: list[Array]) -> tuple[list[Rows], list[Rows]]:
    """(rows that each arm closes by itself, rows left over)."""
    closed, spare = [], []
    for j in range(len(grips)):
        own, start = own_joints(mechanism, grips, j)
        columns = [k for i in own for k in range(*mechanism.joints[i].v.indices(mechanism.nv))]
        blocks = [A[6 * j : 6 * j + 6, columns] for A in samples]
        U, N = _range_and_null(np.hstack(blocks))
        reach = max((_rank(block) for block in blocks), default=0)
        if U.shape[1] and reach == U.shape[1]:
            closed.append(Rows(j, U.T, start))
            spare += [Rows(j, row[None], None) for row in N.T]
        else:
            spare += [Rows(j, row[None], None) for row in np.eye(6)]
    return closed, spare


def _rank(A: Array) -> int:
    values = np.linalg.svd(A, compute_uv=False) if A.size else np.zeros(0)
    return int(np.sum(values > RANK_TOLERANCE * max(values.max(initial=0.0), 1e-300)))


def _range_and_null(A: Array) -> tuple[Array, Array]:
    """Orthonormal bases of the columns' space and of its complement; unit vectors where all six are reached."""
    if not A.size or not A.any():
        return np.zeros((6, 0)), np.eye(6)
    U, values, _ = np.linalg.svd(A)
    rank = int(np.sum(values > RANK_TOLERANCE * values[0]))
    if rank == 6:
        return np.eye(6), np.zeros((6, 0))
    return _tidy(U[:, :rank]), _tidy(U[:, rank:])


def _tidy(basis: Array) -> Array:
    """The basis as unit vectors where its space is one of coordinate directions, so that graphs stay sparse."""
    projector = basis @ basis.T
    axes = [k for k in range(6) if abs(projector[k, k] - 1) < 1e-9]
    return np.eye(6)[:, axes] if len(axes) == basis.shape[1] else basis


def _independent(chosen: list[Rows], spare: list[Rows], wide: Array) -> list[Rows]:
    """The spare rows that no chosen row and no earlier spare row implies in every configuration."""
    basis: list[Array] = []

    def rest(row: Array) -> Array:
        for _ in range(2):  # twice is enough to be orthogonal to rounding
            for b in basis:
                row = row - (b @ row) * b
        return row

    def take(row: Array) -> bool:
        size, left = float(np.linalg.norm(row)), rest(row)
        norm = float(np.linalg.norm(left))
        if norm <= RANK_TOLERANCE * max(size, 1.0):
            return False
        basis.append(left / norm)
        return True

    for rows in chosen:
        for K in rows.K:
            take(K @ wide[6 * rows.grip : 6 * rows.grip + 6])
    return [rows for rows in spare if take(rows.K[0] @ wide[6 * rows.grip : 6 * rows.grip + 6])]


def _left_null(wide: Array) -> Array:
    U, values, _ = np.linalg.svd(wide)
    rank = int(np.sum(values > RANK_TOLERANCE * values.max(initial=1e-300)))
    return U[:, rank:]


__all__ = [
    "Grip",
    "Holding",
    "Rows",
    "carried_grips",
    "closure_matrix",
    "hold_matrix",
    "lean_holding",
    "own_joints",
    "plan_holding",
]
