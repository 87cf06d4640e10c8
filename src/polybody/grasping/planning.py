"""Which rows of a grasp are independent.

The paper takes H for nonsingular; planar arms never make it so. Which rows count is found once, from configurations
drawn at random, and kept:

- the rows U_j in which arm j alone, from the body it shares with other arms outwards, can move its end effector (all
  six for a spatial arm of six joints, three for a planar arm); where those joints reach all of U_j at once, the
  arm's load is eliminated there, arm by arm, at a cost proportional to the number of arms;
- of the other rows those that are independent of them; their loads are found together, at the end;
- loads that do no work in any motion (the space N_0) stay at the value of least norm: zero for planar arms with a
  planar object.

All of it at closed states, where there are such within reach: two planar arms on a free base hold an object against
each other out of their plane, and rows that are independent while the grips are apart then repeat each other.
"""

from __future__ import annotations

import numpy as np

from polybody.errors import InputError
from polybody.grasping.consistency import closed_configuration
from polybody.grasping.grips import Grip, Holding, Rows, carried_grips, closure_matrix, hold_matrix
from polybody.grasping.nearest import Order, plan_rows
from polybody.mechanism.kinematics import integrate
from polybody.mechanism.mechanism import GROUND, Mechanism

Array = np.ndarray

#: Relative size below which a singular value of a generic Jacobian counts as zero.
RANK_TOLERANCE = 1e-9
SAMPLES = 6
CLOSED_SAMPLES = 3


def plan_holding(mechanism: Mechanism, body: int, grips: tuple[Grip, ...], near: Array | None = None) -> Holding:
    """The grasp with its independent rows, from random configurations; `near` is one in which the grips are closed."""
    _check(mechanism, body, grips)
    rng, at_object = np.random.default_rng(20030619), carried_grips(grips, body)
    loose = Holding(mechanism, body, grips, (), np.zeros((6 * len(grips), 0)), Order((), ()))
    anywhere = [_random(mechanism, rng) for _ in range(SAMPLES)]
    samples = [closure_matrix(mechanism, q, at_object, body) for q in anywhere]
    rows, spare = _arm_rows(mechanism, grips, samples)
    closed = [closure_matrix(mechanism, q, at_object, body) for q in _closed(loose, anywhere, near, rng)] or samples
    # A state that happens to be singular shows fewer independent rows than the others.
    rows += max((_independent(rows, spare, A) for A in closed), key=len)
    wide = np.hstack(closed)
    turned = np.vstack([hold_matrix(grip) @ wide[6 * j : 6 * j + 6] for j, grip in enumerate(grips)])
    arms = [range(6 * j, 6 * j + 6) for j in range(len(grips))]
    closing = max((plan_rows(A, arms) for A in np.split(turned, len(closed), axis=1)), key=len)
    return Holding(mechanism, body, grips, tuple(rows), _left_null(turned), closing)


def _random(mechanism: Mechanism, rng: np.random.Generator) -> Array:
    return np.concatenate([joint.model.random(rng) for joint in mechanism.independent_joints])


def _closed(grasp: Holding, anywhere: list[Array], near: Array | None, rng: np.random.Generator) -> list[Array]:
    """Some configurations in which the grips are closed, as far as they are found."""
    m, found = grasp.mechanism, []
    starts = anywhere
    if near is not None:
        starts = [integrate(m, near, reach * rng.normal(size=m.nv)) for reach in (0.3, 0.1, 0.3, 0.0)] + anywhere
    for start in starts:
        q, left = closed_configuration(grasp, start)
        if left < 1e-10:
            found.append(q)
        if len(found) == CLOSED_SAMPLES:
            break
    return found


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


__all__ = ["own_joints", "plan_holding"]
