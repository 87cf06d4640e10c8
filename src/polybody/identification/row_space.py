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
from polybody.late import dataclass
from polybody.mechanism.joints import JointModel
from polybody.mechanism.kinematics import Pose
from polybody.mechanism.mechanism import GROUND, Mechanism, TreeJoint

Array = np.ndarray

#: singular values below this part of the largest are rounding
TOLERANCE = 1e-9
#: rotations are taken as turns by right angles where they differ by no more: files write 1.5708
RIGHT_ANGLES = 1e-5
#: samples of one joint's coordinates: more than the functions in (3) of a joint with one coordinate (a screw has
#: fifteen), and more than the dimension of what any other joint's matrices T can span
FEW, MANY = 18, 128


@dataclass(frozen=True, eq=False)
class Across:
    """A joint at one sample of its coordinates: X carries twists to the child, T inertias to the parent; H its map."""

    X: Array  # 6×6
    T: Array  # 10×10
    H: Array  # 6×r


def bilinear(x: Array, y: Array) -> Array:
    """The functionals (..., 10) of inertial parameters that are xᵀ I y, x and y twists [ω; u], (..., 6)."""
    x, y = np.broadcast_arrays(x, y)
    w, u, s, t = x[..., :3], x[..., 3:], y[..., :3], y[..., 3:]
    inertia = [w[..., r] * s[..., c] + (w[..., c] * s[..., r] if r != c else 0.0) for r, c in ENTRIES]
    first = np.cross(u, s) + np.cross(t, w)
    return np.concatenate([np.sum(u * t, axis=-1)[..., None], first, np.stack(inertia, axis=-1)], axis=-1)


def inertia_map(R: Array, r: Array) -> Array:
    """T, (..., 10, 10): the parameters of a body about its own frame, as those about a frame it is placed in by (R, r).
    """
    mass, h, inertia = np.eye(10)[0], np.eye(10)[:, 1:4], np.zeros((10, 3, 3))
    for k, (i, j) in enumerate(ENTRIES):
        inertia[4 + k, i, j] = inertia[4 + k, j, i] = 1.0
    turned = np.einsum("...ij,kj->...ki", R, h)  # first moments of the ten units, k
    arm, moment = skews(r)[..., None, :, :], skews(turned)
    moved = np.einsum("...ij,kjl,...ml->...kim", R, inertia, R) - arm @ moment - moment @ arm
    moved -= mass[:, None, None] * (arm @ arm)
    first = turned + mass[:, None] * r[..., None, :]
    about = np.stack([moved[..., i, j] for i, j in ENTRIES], axis=-1)
    weight = np.broadcast_to(mass[:, None], (*first.shape[:-1], 1))
    return np.concatenate([weight, first, about], axis=-1).swapaxes(-1, -2)


def skews(x: Array) -> Array:
    """The matrices (..., 3, 3) of x ×."""
    return np.cross(np.eye(3), x[..., None, :]).swapaxes(-1, -2) * -1.0


def span(rows: Array, tolerance: float = TOLERANCE) -> Array:
    """An orthonormal basis, as rows, of what the rows span."""
    rows = np.atleast_2d(np.asarray(rows, dtype=float))
    if not rows.size:
        return np.zeros((0, rows.shape[1]))
    _, s, vt = np.linalg.svd(rows, full_matrices=False)
    return vt[: int(np.sum(s > tolerance * max(s[0], 1.0)))]


def squared_up(R: Array) -> Array:
    """The rotation with entries near 0 and ±1 made so, and orthogonal again."""
    whole = np.rint(R)
    near = np.where(np.abs(R - whole) < RIGHT_ANGLES, whole, R)
    u, _, vt = np.linalg.svd(near)
    return u @ vt


def crossings(model: JointModel | None, near: Pose, far: Pose | None, length: float) -> list[Across]:
    """A joint between body frames at samples of its coordinates; lengths are in units of `length`.

    The joint's frames are placed in the parent body at `near`, in the child body at `far` (none: they are the body's).
    Without a model the frames are welded.
    """
    rng, scale = np.random.default_rng(20), np.diag([1.0] * 3 + [1.0 / length] * 3)
    turned, place = squared_up(near[0]), near[1]
    steps: list[tuple[Array, Array, Array]] = []  # placement of the child body, and the joint's map there
    for k in range(1 if model is None else FEW if model.nq == 1 else MANY):
        R, r, H = turned, place, np.zeros((6, 0))
        if model is not None:
            q = np.array([-1.45 + 3.1 * k / FEW]) if model.nq == 1 else np.asarray(model.random(rng))
            turning, slide = model.configuration(q)
            R, r, H = turned @ turning, place + turned @ slide, np.asarray(model.velocity_map(q))
        if far is not None:
            back = squared_up(far[0]).T
            H = twist_map(back, -back @ far[1]) @ H
            R, r = R @ back, r - R @ back @ far[1]
        steps.append((R, r / length, scale @ H))
    T = inertia_map(np.array([R for R, _, _ in steps]), np.array([r for _, r, _ in steps]))
    return [Across(twist_map(R, r), T[k], H) for k, (R, r, H) in enumerate(steps)]


def twist_map(R: Array, r: Array) -> Array:
    """X, 6×6: a twist about a frame, as one about a frame that is placed in it by (R, r)."""
    X = np.zeros((6, 6))
    X[:3, :3] = X[3:, 3:] = R.T
    X[3:, :3] = -R.T @ skews(r)
    return X


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


def row_space(mechanism: Mechanism, armature: bool = False, offset: bool = False) -> tuple[Array, Array]:
    """(W, units): rows that span what joint forces depend on, and the units of the columns, p_column/unit enter W.

    Columns: ten for each body, then armature and offset of each velocity where asked. For trees without followers.
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
        steps = crossings(joint.model, (joint.rotation, joint.position), None, length)
        first, own = steps[0], _own_pairs(above, joint, steps, armature, offset)
        carried = [above.arriving @ (step.T - first.T) for step in steps]
        changing = np.concatenate([*carried, np.zeros((0, 10))])
        Q = span(np.concatenate([own, np.pad(changing, ((0, 0), (0, own.shape[1] - 10)))]))
        inherited = [] if joint.parent == GROUND else [(k, x @ first.T) for k, x in through[joint.parent]]
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
        V = span(np.concatenate([*(above.V @ s.X.T for s in steps), *(s.H.T for s in steps),
                                 *(above.gravity @ (s.X - first.X).T for s in steps)]))  # fmt: skip
        arriving = span(np.concatenate([Q[:, :10], *(above.arriving @ s.T for s in steps)]))
        bodies.append(_Body(V, above.gravity @ first.X.T, arriving))
    return np.array(rows).reshape(len(rows), columns), units


def _own_pairs(above: _Body, joint: TreeJoint, steps: list[Across], armature: bool, offset: bool) -> Array:
    """P_k of (2), with the armature and the offset of the joint's velocities as further numbers."""
    r, eye = joint.nv, np.eye(joint.nv)
    H, X = np.array([step.H.T for step in steps]), np.array([step.X for step in steps])
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
            add(bilinear(own, H[:, None, j]), eye[i] * (i == j))
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


__all__ = ["TOLERANCE", "Across", "bilinear", "crossings", "inertia_map", "reach", "row_space", "span"]
