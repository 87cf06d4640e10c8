"""Dynamics in maximal coordinates, for comparison: nothing of polybody but the description's records is read.

Every body i has six velocities (ω_i, v_i at its mass centre), world axes, and obeys Newton and Euler alone. A joint, of
the tree or cut, is rows between a frame a of one body and a frame b of another, made of three kinds (Haug):

    point      p_a − p_b = 0
    dot        a·b = 0                vectors fixed to either side
    slide      a·(p_b − p_a) = 0      a vector fixed to side a

    [ M  Jᵀ ] [ V̇  ]   [ f ]
    [ J  0  ] [ −λ ] = [ −γ ]          solved by least squares: redundant rows give least multipliers

Joint coordinates are read from the bodies' motion afterwards. Kinds: revolute, prismatic, universal, spherical, planar,
cylindrical, floating, fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq
from scipy.spatial.transform import Rotation

Array = np.ndarray
GROUND = -1


@dataclass
class Side:
    """A frame on a body: its place in the body's own frame, whose origin is `link` and whose mass centre is `com`."""

    body: int
    T: Array


@dataclass
class Pair:
    """A joint of the tree or a cut one."""

    name: str
    kind: str
    a: Side
    b: Side
    axis: Array
    armature: float = 0.0


class Maximal:
    """The machine of a description, one state at a time."""

    def __init__(self, description) -> None:
        self.d = description
        self.index = {body.name: k for k, body in enumerate(description.bodies)} | {"world": GROUND}
        self.tree = [
            Pair(j.name, j.kind, Side(self.index[j.parent], np.array(j.origin)), Side(self.index[j.child], np.eye(4)),
                 np.array(j.axis), 0.0 if j.armature is None else float(np.asarray(j.armature).ravel()[0]))
            for j in description.joints
        ]
        self.cut = [
            Pair(c.name, c.kind, Side(self.index[c.body_a], np.array(c.origin_a)),
                 Side(self.index[c.body_b], np.array(c.origin_b)), np.array(c.axis))
            for c in description.loops
        ]
        self.pairs = [*self.tree, *self.cut]
        self.n = 6 * len(description.bodies)

    # Where everything is.

    def place(self, q: dict[str, Array], v: dict[str, Array]) -> None:
        """Poses and twists of all bodies from the joints' coordinates, walked from the ground."""
        self.T, self.w, self.u = {GROUND: np.eye(4)}, {GROUND: np.zeros(3)}, {GROUND: np.zeros(3)}
        open_joints = list(self.tree)
        while open_joints:
            ready = [pair for pair in open_joints if pair.a.body in self.T]
            assert ready, "the joints are no tree"
            for pair in ready:
                self._step(pair, np.atleast_1d(q[pair.name]), np.atleast_1d(v[pair.name]))
                open_joints.remove(pair)
        self.com = {k: self.T[k][:3, :3] @ body.com + self.T[k][:3, 3] for k, body in enumerate(self.d.bodies)}
        self.com[GROUND] = np.zeros(3)
        # u was the velocity of the link's origin: now of the mass centre
        self.c_dot = {k: self.u[k] + np.cross(self.w[k], self.com[k] - self.T[k][:3, 3]) for k in self.T}

    def _step(self, pair: Pair, q: Array, v: Array) -> None:
        A = self.T[pair.a.body] @ pair.a.T
        X, spin, shift = np.eye(4), np.zeros(3), np.zeros(3)  # spin and shift of b in a, a's axes
        kind, axis = pair.kind, pair.axis
        if kind in ("revolute", "continuous"):
            X[:3, :3], spin = Rotation.from_rotvec(axis * q[0]).as_matrix(), axis * v[0]
        elif kind == "prismatic":
            X[:3, 3], shift = axis * q[0], axis * v[0]
        elif kind == "cylindrical":
            X[:3, :3], spin = Rotation.from_rotvec(axis * q[0]).as_matrix(), axis * v[0]
            X[:3, 3], shift = axis * q[1], axis * v[1]
        elif kind == "universal":  # about y next to the child, about z next to the parent
            Z = Rotation.from_euler("z", q[1]).as_matrix()
            X[:3, :3] = Z @ Rotation.from_euler("y", q[0]).as_matrix()
            spin = np.array([0, 0, v[1]]) + Z @ [0, v[0], 0]
        elif kind == "spherical":
            X[:3, :3] = Rotation.from_quat(q).as_matrix()
            spin = X[:3, :3] @ v
        elif kind == "floating":
            X[:3, :3], X[:3, 3] = Rotation.from_quat(q[3:]).as_matrix(), q[:3]
            spin, shift = X[:3, :3] @ v[:3], X[:3, :3] @ v[3:]
        elif kind == "planar":
            assert np.allclose(axis, [0, 0, 1])
            X[:3, :3], X[:2, 3] = Rotation.from_euler("z", q[0]).as_matrix(), q[1:]
            spin, shift = axis * v[0], X[:3, :3] @ [v[1], v[2], 0]
        else:
            raise AssertionError(kind)
        B = A @ X
        child = B @ np.linalg.inv(pair.b.T)
        k, parent = pair.b.body, pair.a.body
        w = self.w[parent] + A[:3, :3] @ spin
        at_b = self.u[parent] + np.cross(self.w[parent], B[:3, 3] - self.T[parent][:3, 3]) + A[:3, :3] @ shift
        self.T[k], self.w[k] = child, w
        self.u[k] = at_b - np.cross(w, B[:3, 3] - child[:3, 3])

    def frame(self, side: Side) -> tuple[Array, Array]:
        T = self.T[side.body] @ side.T
        return T[:3, :3], T[:3, 3]

    # Rows: (J over all bodies, γ) each.

    def _row(self) -> Array:
        return np.zeros(self.n)

    def _add(self, row: Array, body: int, angular: Array, linear: Array) -> None:
        if body != GROUND:
            row[6 * body : 6 * body + 3] += angular
            row[6 * body + 3 : 6 * body + 6] += linear

    def _point_velocity(self, body: int, p: Array) -> Array:
        return self.c_dot[body] + np.cross(self.w[body], p - self.com[body])

    def _along(self, row: Array, body: int, p: Array, n: Array, sign: float) -> float:
        """n·(acceleration of the body's point at p): its row, and what of it the velocities make."""
        r, w = p - self.com[body], self.w[body]
        self._add(row, body, sign * np.cross(r, n), sign * n)
        return sign * float(n @ np.cross(w, np.cross(w, r)))

    def point(self, pair: Pair) -> list[tuple[Array, float]]:
        (_, pa), (_, pb) = self.frame(pair.a), self.frame(pair.b)
        rows = []
        for n in np.eye(3):
            row = self._row()
            gamma = self._along(row, pair.b.body, pb, n, 1.0) + self._along(row, pair.a.body, pa, n, -1.0)
            rows.append((row, gamma))
        return rows

    def dot(self, pair: Pair, a: Array, b: Array) -> tuple[Array, float]:
        """a·b = 0 for a fixed to side a and b to side b, both in world axes."""
        wa, wb, row = self.w[pair.a.body], self.w[pair.b.body], self._row()
        self._add(row, pair.a.body, np.cross(a, b), np.zeros(3))
        self._add(row, pair.b.body, np.cross(b, a), np.zeros(3))
        gamma = b @ np.cross(wa, np.cross(wa, a)) + 2 * np.cross(wa, a) @ np.cross(wb, b)
        return row, float(gamma + a @ np.cross(wb, np.cross(wb, b)))

    def slide(self, pair: Pair, a: Array) -> tuple[Array, float]:
        (_, pa), (_, pb) = self.frame(pair.a), self.frame(pair.b)
        wa, row, d = self.w[pair.a.body], self._row(), pb - pa
        gamma = self._along(row, pair.b.body, pb, a, 1.0) + self._along(row, pair.a.body, pa, a, -1.0)
        self._add(row, pair.a.body, np.cross(a, d), np.zeros(3))
        apart = self._point_velocity(pair.b.body, pb) - self._point_velocity(pair.a.body, pa)
        return row, float(gamma + d @ np.cross(wa, np.cross(wa, a)) + 2 * np.cross(wa, a) @ apart)

    def rows(self, pair: Pair) -> list[tuple[Array, float]]:
        (Ra, _), (Rb, _) = self.frame(pair.a), self.frame(pair.b)
        across = np.linalg.svd(pair.axis[None])[2][1:]
        tilt = [(Ra @ pair.axis, Rb @ e) for e in across]
        lock = [(Ra[:, i], Rb[:, j]) for i, j in ((0, 1), (1, 2), (2, 0))]
        kind = pair.kind
        if kind == "floating":
            return []
        if kind == "spherical":
            return self.point(pair)
        if kind == "universal":
            return [*self.point(pair), self.dot(pair, Ra[:, 2], Rb[:, 1])]
        if kind in ("revolute", "continuous"):
            return [*self.point(pair), *(self.dot(pair, a, b) for a, b in tilt)]
        if kind == "fixed":
            return [*self.point(pair), *(self.dot(pair, a, b) for a, b in lock)]
        if kind == "prismatic":
            return [*(self.slide(pair, Ra @ e) for e in across), *(self.dot(pair, a, b) for a, b in lock)]
        if kind == "cylindrical":
            return [*(self.slide(pair, Ra @ e) for e in across), *(self.dot(pair, a, b) for a, b in tilt)]
        if kind == "planar":
            return [self.slide(pair, Ra @ pair.axis), *(self.dot(pair, a, b) for a, b in tilt)]
        raise AssertionError(kind)

    # Forces.

    def _free(self, pair: Pair) -> list[tuple[Array, Array]]:
        """(moment, force) on b at b's origin of unit joint forces, one for each velocity."""
        (Ra, _), (Rb, _) = self.frame(pair.a), self.frame(pair.b)
        z, none = Ra @ pair.axis, np.zeros(3)
        return {
            "revolute": [(z, none)], "continuous": [(z, none)], "prismatic": [(none, z)],
            "cylindrical": [(z, none), (none, z)], "universal": [(Rb[:, 1], none), (Ra[:, 2], none)],
            "spherical": [(e, none) for e in Rb.T], "fixed": [],
            "planar": [(z, none), (none, Rb[:, 0]), (none, Rb[:, 1])],
            "floating": [*((e, none) for e in Rb.T), *((none, e) for e in Rb.T)],
        }[pair.kind]

    def driving_wrench(self, pair: Pair, tau: Array) -> Array:
        """The wrench [moment; force] of joint forces on b at b's origin."""
        return sum((np.concatenate(w) * t for w, t in zip(self._free(pair), tau, strict=True)), np.zeros(6))

    def drive(self, pair: Pair) -> Array:
        """n×nv: what unit joint forces do to the bodies."""
        _, pb = self.frame(pair.b)
        columns = []
        for moment, force in self._free(pair):
            column = self._row()
            for body, sign in ((pair.b.body, 1.0), (pair.a.body, -1.0)):
                self._add(column, body, sign * (moment + np.cross(pb - self.com[body], force)), sign * force)
            columns.append(column)
        return np.array(columns).reshape(-1, self.n).T

    def mass(self) -> tuple[Array, Array]:
        """(M with the joints' armatures, Newton's and Euler's right hand sides)."""
        M, f = np.zeros((self.n, self.n)), np.zeros(self.n)
        for k, body in enumerate(self.d.bodies):
            R, w, at = self.T[k][:3, :3], self.w[k], 6 * k
            I = R @ body.inertia @ R.T
            M[at : at + 3, at : at + 3], M[at + 3 : at + 6, at + 3 : at + 6] = I, body.mass * np.eye(3)
            f[at : at + 3], f[at + 3 : at + 6] = -np.cross(w, I @ w), body.mass * np.asarray(self.d.gravity)
        for pair in self.tree:
            if pair.armature:  # a hinge's: the axis turns with both bodies, so that q̈ = axis·(α_b − α_a)
                d = self.drive(pair)[:, 0]
                M += pair.armature * np.outer(d, d)
        return M, f

    # Answers.

    def constraints(self) -> tuple[Array, Array, dict[str, slice]]:
        J, gamma, parts = [], [], {}
        for pair in self.pairs:
            found = self.rows(pair)
            parts[pair.name] = slice(len(J), len(J) + len(found))
            J += [row for row, _ in found]
            gamma += [g for _, g in found]
        return np.array(J).reshape(-1, self.n), np.array(gamma), parts

    def forward(self, tau: dict[str, Array], wrenches: dict[str, Array] | None = None) -> tuple[Array, Array]:
        """(V̇ of all bodies, multipliers) under joint forces and wrenches {body: on it at its origin, world axes}."""
        M, f = self.mass()
        for body, wrench in (wrenches or {}).items():
            k = self.index[body]
            self._add(f, k, wrench[:3] + np.cross(self.T[k][:3, 3] - self.com[k], wrench[3:]), wrench[3:])
        J, gamma, _ = self.constraints()
        f = f + sum(self.drive(pair) @ np.atleast_1d(tau[pair.name]) for pair in self.tree)
        m = len(J)
        K = np.block([[M, -J.T], [J, np.zeros((m, m))]])
        x = _least(K, np.concatenate([f, -gamma]))
        return x[: self.n], x[self.n :]

    def efforts(self, acceleration: Array, driven: dict[str, Array]) -> tuple[Array, float]:
        """(forces of the driven coordinates for these accelerations, what they and the joints cannot give)."""
        M, f = self.mass()
        J, _, _ = self.constraints()
        B = np.hstack([self.drive(pair)[:, driven[pair.name]] for pair in self.tree])
        A = np.hstack([B, J.T])
        needed = M @ acceleration - f
        x = _least(A, needed)
        return x[: B.shape[1]], float(np.abs(A @ x - needed).max())

    def joint_accelerations(self, acceleration: Array) -> dict[str, Array]:
        """Rates of the numbers in v of every tree joint."""
        result = {}
        for pair in self.tree:
            (Ra, _), (Rb, pb) = self.frame(pair.a), self.frame(pair.b)
            wa, wb = self.w[pair.a.body], self.w[pair.b.body]
            alpha = {s: self._part(acceleration, side.body)[:3] for s, side in (("a", pair.a), ("b", pair.b))}
            turn, rel = alpha["b"] - alpha["a"], wb - wa
            z = Ra @ pair.axis
            if pair.kind in ("revolute", "continuous"):
                value = [z @ turn]
            elif pair.kind == "prismatic":
                value = [self._sliding(pair, acceleration, z)]
            elif pair.kind == "cylindrical":
                value = [z @ turn, self._sliding(pair, acceleration, z)]
            elif pair.kind == "universal":
                y, z = Rb[:, 1], Ra[:, 2]
                left = turn - (rel @ z) * np.cross(wa, z) - (rel @ y) * np.cross(wb, y)
                value = [y @ left, z @ left]
            elif pair.kind == "spherical":
                value = Rb.T @ (turn - np.cross(wb, rel))
            else:  # floating and planar from the ground
                assert pair.a.body == GROUND
                u = self._point_velocity(pair.b.body, pb)
                whole = np.concatenate([Rb.T @ turn, Rb.T @ (self._point_acceleration(pair.b.body, pb, acceleration)
                                                             - np.cross(wb, u))])
                value = whole if pair.kind == "floating" else whole[[2, 3, 4]]
            result[pair.name] = np.array(value)
        return result

    def _sliding(self, pair: Pair, acceleration: Array, z: Array) -> float:
        """d²/dt² of z·(p_b − p_a)."""
        row, gamma = self.slide(pair, z)
        return float(row @ acceleration + gamma)

    def _part(self, x: Array, body: int) -> Array:
        return np.zeros(6) if body == GROUND else x[6 * body : 6 * body + 6]

    def _point_acceleration(self, body: int, p: Array, acceleration: Array) -> Array:
        part, r, w = self._part(acceleration, body), p - self.com[body], self.w[body]
        return part[3:] + np.cross(part[:3], r) + np.cross(w, np.cross(w, r))

    def wrench_map(self, pair: Pair) -> Array:
        """6×rows: the bearing's wrench [moment; force] on b at b's origin, world axes, of its multipliers."""
        (_, pb), rows = self.frame(pair.b), self.rows(pair)
        columns = []
        for row, _ in rows:
            if pair.b.body == GROUND:
                part, sign, com = self._part(row, pair.a.body), -1.0, self.com[pair.a.body]
            else:
                part, sign, com = self._part(row, pair.b.body), 1.0, self.com[pair.b.body]
            columns.append(sign * np.concatenate([part[:3] + np.cross(com - pb, part[3:]), part[3:]]))
        return np.array(columns).reshape(-1, 6).T

    def balance(self, acceleration: Array, wrenches: dict[str, Array]) -> Array:
        """(bodies, 6): what the joints' whole wrenches (on b at b's origin) leave of every body's Newton and Euler."""
        M = np.zeros(self.n)
        for k, body in enumerate(self.d.bodies):
            R, w, part = self.T[k][:3, :3], self.w[k], self._part(acceleration, k)
            I = R @ body.inertia @ R.T
            M[6 * k : 6 * k + 3] = I @ part[:3] + np.cross(w, I @ w)
            M[6 * k + 3 : 6 * k + 6] = body.mass * (part[3:] - np.asarray(self.d.gravity))
        for pair in self.pairs:
            wrench, (_, pb) = wrenches[pair.name], self.frame(pair.b)
            for body, sign in ((pair.b.body, 1.0), (pair.a.body, -1.0)):
                if body != GROUND:
                    M[6 * body : 6 * body + 3] -= sign * (wrench[:3] + np.cross(pb - self.com[body], wrench[3:]))
                    M[6 * body + 3 : 6 * body + 6] -= sign * wrench[3:]
        return M.reshape(-1, 6)


def _least(A: Array, b: Array) -> Array:
    """Least-norm least-squares solution, once refined."""
    x = lstsq(A, b, cond=1e-12, lapack_driver="gelsy")[0]
    return x + lstsq(A, b - A @ x, cond=1e-12, lapack_driver="gelsy")[0]


__all__ = ["Maximal"]
