"""Planar linkages by Lagrange multipliers in absolute coordinates: an oracle that knows no joints, ports or trees.

A body is (mass, inertia, mass centre); a pin is (body, point, body, point), −1 the ground, points in body frames. With
q = (x, y, θ) of every body's frame at its mass centre, pins demand r_i + A(θ_i) s_i = r_j + A(θ_j) s_j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Linkage:
    bodies: list[tuple[float, float, np.ndarray]]  # mass, inertia about com, com in the body frame
    pins: list[tuple[int, np.ndarray, int, np.ndarray]]
    gravity: np.ndarray

    def frames(self, angles):
        """Origin of each body frame for given absolute angles, by least squares on the pins."""
        n = len(self.bodies)
        rows, right = [], []
        for i, s, j, t in self.pins:
            row, value = np.zeros((2, 2 * n)), np.zeros(2)
            for body, point, sign in ((i, s, 1), (j, t, -1)):
                if body < 0:
                    value -= sign * point
                else:
                    row[:, 2 * body : 2 * body + 2] += sign * np.eye(2)
                    value -= sign * turn(angles[body]) @ point
            rows.append(row)
            right.append(value)
        A, b = np.vstack(rows), np.concatenate(right)
        x, *_ = np.linalg.lstsq(A, b, rcond=None)
        return x.reshape(n, 2), A @ x - b

    def assemble(self, angles, fixed):
        """Newton on the free absolute angles until all pins close."""
        angles = np.array(angles, dtype=float)
        free = [k for k in range(len(angles)) if k not in fixed]
        for _ in range(60):
            _, gap = self.frames(angles)
            if np.linalg.norm(gap) < 1e-15:
                break
            J = np.column_stack([(self.frames(angles + 1e-7 * np.eye(len(angles))[k])[1] - gap) / 1e-7 for k in free])
            angles[free] -= np.linalg.lstsq(J, gap, rcond=None)[0]
        return angles

    def jacobian(self, angles):
        """∂(pins)/∂(x_G, y_G, θ) and, with rates, what is quadratic in them."""
        n = len(self.bodies)
        C = np.zeros((2 * len(self.pins), 3 * n))
        for k, (i, s, j, t) in enumerate(self.pins):
            for body, point, sign in ((i, s, 1), (j, t, -1)):
                if body >= 0:
                    lever = turn(angles[body]) @ (point - self.bodies[body][2])
                    C[2 * k : 2 * k + 2, 3 * body : 3 * body + 2] += sign * np.eye(2)
                    C[2 * k : 2 * k + 2, 3 * body + 2] += sign * np.array([-lever[1], lever[0]])
        return C

    def rates(self, angles, given):
        """Angular rates of all bodies from given ones {body: rate}."""
        C = self.jacobian(angles)
        n = len(self.bodies)
        known = sorted(given)
        unknown = [k for k in range(3 * n) if k not in {3 * b + 2 for b in known}]
        right = -sum(C[:, 3 * b + 2] * given[b] for b in known)
        x, *_ = np.linalg.lstsq(C[:, unknown], right, rcond=None)
        full = np.zeros(3 * n)
        full[unknown] = x
        for b in known:
            full[3 * b + 2] = given[b]
        assert np.abs(C @ full).max() < 1e-12
        return full

    def solve(self, angles, rates, torques):
        """(accelerations of (x_G, y_G, θ), force of each pin on its second body); torques {pin: moment on second}."""
        n = len(self.bodies)
        M, Q = np.zeros((3 * n, 3 * n)), np.zeros(3 * n)
        for b, (mass, inertia, _) in enumerate(self.bodies):
            M[3 * b : 3 * b + 3, 3 * b : 3 * b + 3] = np.diag([mass, mass, inertia])
            Q[3 * b : 3 * b + 2] = mass * self.gravity
        for pin, moment in torques.items():
            i, _, j, _ = self.pins[pin]
            for body, sign in ((i, -1), (j, 1)):
                if body >= 0:
                    Q[3 * body + 2] += sign * moment
        C = self.jacobian(angles)
        gamma = np.zeros(len(C))
        for k, (i, s, j, t) in enumerate(self.pins):
            for body, point, sign in ((i, s, 1), (j, t, -1)):
                if body >= 0:
                    lever = turn(angles[body]) @ (point - self.bodies[body][2])
                    gamma[2 * k : 2 * k + 2] += sign * rates[3 * body + 2] ** 2 * lever
        K = np.block([[M, C.T], [C, np.zeros((len(C), len(C)))]])
        z = np.linalg.solve(K, np.concatenate([Q, gamma]))
        return z[: 3 * n], z[3 * n :].reshape(-1, 2)


def turn(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def four_bar():
    """Crank, coupler, rocker on ground pivots 1 m apart; link mass centres off their lines."""
    lengths = (0.3, 0.9, 0.7)
    bodies = [(1.0 + k, 0.02 * (k + 1), np.array([0.45 * L, 0.03 * (k + 1)])) for k, L in enumerate(lengths)]
    e = [np.array([L, 0.0]) for L in lengths]
    zero = np.zeros(2)
    pins = [(-1, zero, 0, zero), (0, e[0], 1, zero), (1, e[1], 2, e[2]), (-1, np.array([1.0, 0.0]), 2, zero)]
    return Linkage(bodies, pins, np.array([0.0, -9.81])), (0.7, 0.6, 1.4), {0: 0.7}


def five_bar():
    """Two driven arms that meet: world - l1 - l2 - r2 - r1 - world."""
    lengths = (0.3, 0.5, 0.5, 0.3)
    bodies = [(1.0 + 0.3 * k, 0.015 * (k + 1), np.array([0.5 * L, -0.02 * k])) for k, L in enumerate(lengths)]
    e = [np.array([L, 0.0]) for L in lengths]
    zero = np.zeros(2)
    pins = [
        (-1, np.array([-0.15, 0.0]), 0, zero), (0, e[0], 1, zero), (1, e[1], 2, e[2]), (3, e[3], 2, zero),
        (-1, np.array([0.15, 0.0]), 3, zero),
    ]
    return Linkage(bodies, pins, np.array([0.0, -9.81])), (2.2, 1.0, 2.1, 0.9), {0: 2.2, 3: 0.9}


__all__ = ["Linkage", "five_bar", "four_bar", "turn"]
