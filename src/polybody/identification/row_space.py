"""Which combinations of parameters the joint forces of a tree depend on: exact, joint by joint.

Y p vanishes at every state exactly where the mass matrix and the gravity forces do. Gravity is the ground's
acceleration, so both are values of one kind of bilinear form, with x and y twists of body k in its own axes:

    M_jk = S_jᵀ I_k^c S_k,       I_k^c = p_k + Σ_children T_c(q_c) I_c^c                                     (1)

Here S_k is a column of the joint's own map, S_j one of a joint above it or the ground's direction of gravity, and I_k^c
the ten numbers of the composite body. T_c(q_c), 10×10, carries them across joint c. A bilinear form of twists is a
functional π of those ten numbers, and what varies independently may be taken by spans:

    V_k  = span over q_k of X_k(q_k) V_parent and of the joint's own map: the twists that body k can have
    P_k  = span over q_k of the pairs (own map, X_k V_parent) and (own map, own map)                           (2)

A functional π of I_k^c goes on to the children as π T_c(q_c). Its part that is constant in q_c belongs to the same
functional of all parameters; every part that varies with q_c is one of the child's composite body alone. So each body
has functionals of its own, and what arrives from above unchanged:

    Q_c = P_c + span over q_c of π (T_c(q_c) − T_c(q_0)),    π ∈ A_parent,     A_c = Q_c + A_parent T_c(q_0)     (3)

The rows π at c, π T_d(q_0) at its children d, and so on, one for each π of a basis of Q_c, are independent (each begins
at its own body) and span all that joint forces depend on: Σ dim Q_c base parameters. For a revolute joint T is a
trigonometric polynomial of degree 2 in q_c, five functions; prismatic joints have three, others more. More samples of
one joint's coordinate than that give the exact span: nothing here depends on chance or on long products of functions.

Armature adds to the pair of an own map with itself, an offset to the pair with constant gravity; they are further
numbers of the body's block. Friction depends on v in other ways and is always seen apart.

The rules of Gautier & Khalil (1990) and Mayeda (1990) for revolute and prismatic joints are special cases of (3), and
the spans V are those of Wensing, Niemeyer & Slotine (2017).
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.spatial import bracket_matrix
from polybody.formulations.denoc.regressor import ENTRIES
from polybody.identification.crossings import Across, crossings
from polybody.late import dataclass
from polybody.mechanism.mechanism import GROUND, Mechanism, TreeJoint

Array = np.ndarray

#: singular values below this part of the largest are rounding
TOLERANCE = 1e-9


def bilinear(x: Array, y: Array) -> Array:
    """The functionals (..., 10) of inertial parameters that are xᵀ I y, x and y twists [ω; u], (..., 6)."""
    x, y = np.broadcast_arrays(x, y)
    w, u, s, t = x[..., :3], x[..., 3:], y[..., :3], y[..., 3:]
    found = np.empty((*x.shape[:-1], 10))
    found[..., 0] = np.sum(u * t, axis=-1)
    for k in range(3):  # u × s + t × w
        i, j = (k + 1) % 3, (k + 2) % 3
        found[..., 1 + k] = u[..., i] * s[..., j] - u[..., j] * s[..., i]
        found[..., 1 + k] += t[..., i] * w[..., j] - t[..., j] * w[..., i]
    for k, (r, c) in enumerate(ENTRIES):
        found[..., 4 + k] = w[..., r] * s[..., c] + (w[..., c] * s[..., r] if r != c else 0.0)
    return found


def span(rows: Array, tolerance: float = TOLERANCE) -> Array:
    """An orthonormal basis, as rows, of what the rows span."""
    rows = np.atleast_2d(np.asarray(rows, dtype=float))
    if not rows.size:
        return np.zeros((0, rows.shape[1]))
    if len(rows) > rows.shape[1]:  # of the same singular values and right vectors
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
    _, s, vt = np.linalg.svd(rows, full_matrices=False)
    return vt[: int(np.sum(s > tolerance * max(s[0], 1.0)))]


def reach(mechanism: Mechanism) -> float:
    """A length of the mechanism, to measure lengths with."""
    lengths = [float(np.linalg.norm(joint.position)) for joint in mechanism.joints if joint.parent != GROUND]
    return max(lengths, default=0.0) or 1.0


@dataclass(eq=False)
class _Body:
    """What is known at a body: twists it can have, gravity carried without turning, functionals that arrive."""

    V: Array  # twists by joints above and by varying gravity
    gravity: Array  # (0 or 1, 6)
    arriving: Array  # A of (3)


def joint_crossings(mechanism: Mechanism) -> list[Across]:
    """Of all joints of a tree."""
    length = reach(mechanism)
    return [crossings(j.model, (j.rotation, j.position), None, length) for j in mechanism.joints]


def row_space(
    mechanism: Mechanism, steps_of: list[Across], armature: bool = False, offset: bool = False
) -> tuple[Array, Array]:
    """(W, units): rows that span what joint forces depend on, and the units of the columns, p_column/unit enter W.

    Columns: ten for each body, then armature and offset of each velocity where asked. For trees without followers;
    `steps_of` are their `joint_crossings`.
    """
    length, n, nv = reach(mechanism), len(mechanism.bodies), mechanism.nv
    columns = 10 * n + nv * (armature + offset)
    direction = np.concatenate([np.zeros(3), -mechanism.gravity])[None]
    size = float(np.linalg.norm(direction))
    # Twists are [ω; u/length], gravity has length one: an offset is in units of size · length, whatever its joint.
    body, joints = [1.0] + [length] * 3 + [length**2] * 6, [length**2] * armature + [(size or 1.0) * length] * offset
    units = np.concatenate([np.tile(body, n), np.repeat(joints, nv)])
    ground = _Body(np.zeros((0, 6)), direction / size if size else np.zeros((0, 6)), np.zeros((0, 10)))
    bodies: list[_Body] = []
    through: list[list[tuple[int, Array]]] = [[] for _ in range(n)]  # rows that reach a body: (row number, functional)
    rows: list[Array] = []
    for joint in mechanism.joints:
        above = ground if joint.parent == GROUND else bodies[joint.parent]
        steps = steps_of[joint.index]
        own, T = _own_pairs(above, joint, steps, armature, offset), steps.T[0]
        changing = (above.arriving @ (steps.T - T)).reshape(-1, 10)
        Q = span(np.concatenate([own, np.pad(changing, ((0, 0), (0, own.shape[1] - 10)))]))
        inherited = [] if joint.parent == GROUND else [(k, x @ T) for k, x in through[joint.parent]]
        for k, x in inherited:
            rows[k][10 * joint.index : 10 * joint.index + 10] += x
        at = [10 * n + np.arange(joint.v.start, joint.v.stop)] if armature else []
        at += [10 * n + nv * armature + np.arange(joint.v.start, joint.v.stop)] if offset else []
        places = np.concatenate([10 * joint.index + np.arange(10), *at])
        for functional in Q:
            row = np.zeros(columns)
            row[places] = functional
            through[joint.index].append((len(rows), functional[:10]))
            rows.append(row)
        through[joint.index] += inherited
        X = steps.X.swapaxes(1, 2)
        moved = (above.V @ X, steps.H.swapaxes(1, 2), above.gravity @ (X - X[0]))
        V = span(np.concatenate([x.reshape(-1, 6) for x in moved]))
        arriving = span(np.concatenate([Q[:, :10], (above.arriving @ steps.T).reshape(-1, 10)]))
        bodies.append(_Body(V, above.gravity @ X[0], arriving))
    return np.array(rows).reshape(len(rows), columns), units


def _own_pairs(above: _Body, joint: TreeJoint, steps: Across, armature: bool, offset: bool) -> Array:
    """P_k of (2), with the armature and the offset of the joint's velocities as further numbers."""
    r, eye = joint.nv, np.eye(joint.nv)
    H, X = steps.H.swapaxes(1, 2), steps.X
    own_alone = H[:1] if joint.model.constant_map is not None else H  # what repeats is counted once
    found: list[Array] = []

    def add(functionals: Array, inertia: Array | None = None, force: Array | None = None) -> None:
        rows = functionals.reshape(-1, 10)
        more = [x for x, wanted in ((inertia, armature), (force, offset)) if wanted]
        beside = [np.zeros((len(rows), r)) if x is None else np.tile(x, (len(rows), 1)) for x in more]
        found.append(np.concatenate([rows, *beside], axis=1))

    for i in range(r):
        own = H[:, None, i]
        add(bilinear(own, above.V @ X.swapaxes(1, 2)))
        add(bilinear(own, above.gravity @ X.swapaxes(1, 2)), None, eye[i])
        for j in range(i, r):
            add(bilinear(own_alone[:, None, i], own_alone[:, None, j]), eye[i] * (i == j))
    if not joint.model.rates_are_velocities:
        add(_gyroscopic(H[0]))
    if not len(above.gravity):
        for unit in eye:
            add(np.zeros((1, 10)), None, unit)
    return np.concatenate(found)


def _gyroscopic(H: Array) -> Array:
    """Quasi-velocities (ω × I ω): forces quadratic in v show inertias without armature, [H_i, H_j] paired with H_k."""
    brackets = np.array([[bracket_matrix(x) @ y for y in H] for x in H])  # i, j
    pairs = bilinear(brackets[:, :, None], H)  # i, j, k: [H_i, H_j] with H_k
    return pairs + pairs.transpose(2, 1, 0, 3)


__all__ = ["TOLERANCE", "bilinear", "joint_crossings", "reach", "row_space", "span"]
