"""Fourier series of the independent coordinates: the motion of all joints along them, and gradients back to them.

With loops the other joints follow. G, H and D being the influence coefficients of all joints over the independent
coordinates u (`model.constraints.joint_influence`; H[:, m, n] is the derivative of G[:, n] along u_m, D likewise of H),

    δq = G δu                                                     in tangent space
    δv = G δu̇ + H[m, n] δu_m u̇_n
    δa = G δü + H[m, n] (δu_m ü_n + δu̇_m u̇_n + u̇_m δu̇_n) + D[l, m, n] δu_l u̇_m u̇_n

so that a gradient by (q, v, a) is pulled back to (u, u̇, ü), exactly, and from there to the coefficients.
"""

from __future__ import annotations

import numpy as np

from polybody.errors import InputError
from polybody.mechanism.columns import plain_columns
from polybody.model.model import Model

Array = np.ndarray
#: rad, m: independent coordinates that moved by less are followed by Newton's method from where the others were
NEAR = 0.1
#: how far apart marks may be: the line between two is then off by this squared over eight radii of curvature
CLOSE = 0.025


class Series:
    """Coefficients to motion, and gradients back."""

    def __init__(self, model: Model, period: float, harmonics: int, samples: int) -> None:
        self.model, self.own = model, list(model.engine.independent)
        self.places = plain_columns(model.mechanism, self.own) or []
        self.t = np.arange(samples) * period / samples
        w = 2 * np.pi / period * np.arange(1, harmonics + 1)
        phase = np.outer(self.t, w)
        one, none = np.ones((samples, 1)), np.zeros((samples, 1))
        self.B = np.concatenate([one, np.sin(phase), np.cos(phase)], axis=1)
        self.dB = np.concatenate([none, w * np.cos(phase), -w * np.sin(phase)], axis=1)
        self.ddB = np.concatenate([none, -(w**2) * np.sin(phase), -(w**2) * np.cos(phase)], axis=1)
        self._last: tuple[Array, tuple[Array, Array, Array]] | None = None
        self._influence: tuple[Array, tuple[Array, Array, Array]] | None = None

    def own_motion(self, x: Array) -> tuple[Array, Array, Array]:
        c = x.reshape(len(self.own), -1).T
        return self.B @ c, self.dB @ c, self.ddB @ c

    def reachable(self, x: Array) -> bool:
        """Whether loops can be closed all along the motion."""
        if not self.model.mechanism.constrained:
            return True
        try:
            self.motion(x)
        except InputError:
            return False
        return True

    def motion(self, x: Array) -> tuple[Array, Array, Array]:
        """(q, v, a) of all joints."""
        u, du, ddu = self.own_motion(x)
        if not self.model.mechanism.constrained:
            return u, du, ddu
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1]
        q = self._followed(u)
        v, a = self.model.constraints.joint_motion(q, du, ddu)
        self._last = (x.copy(), (q, v, a))
        return q, v, a

    def _followed(self, u: Array) -> Array:
        """Positions of all joints: from those of the last motion where it was near, else one after the other.

        Dense samples are followed from mark to mark, and those between begin on the line between their marks.
        """
        if self._last is not None:
            q = self._last[1][0]
            if np.abs(u - q[:, self.places]).max() < NEAR:
                return self._closed(q, u)
        guess, found = self.model.assemble(), np.empty((len(u), self.model.nq))
        approach = guess[self.places] + np.linspace(0, 1, 9)[1:-1, None] * (u[0] - guess[self.places])
        for row in approach:
            guess = self._closed(guess, row)
        marks = _marks(u)
        for k in marks:
            found[k] = guess = self._closed(guess, u[k])
        between = np.setdiff1d(np.arange(len(u)), marks)
        if len(between):
            lines = np.array([np.interp(between, marks, found[marks, j]) for j in range(self.model.nq)]).T
            found[between] = self._closed(self.model.normalize(lines), u[between])
        return found

    def _closed(self, guess: Array, u: Array) -> Array:
        """Positions near a guess with the independent coordinates u."""
        q = np.array(guess)
        q[..., self.places] = u
        return self.model.constraints.assemble_dependent(q)

    def influence(self, x: Array) -> tuple[Array, Array, Array]:
        """(G, H, D) along the motion."""
        if self._influence is None or not np.array_equal(self._influence[0], x):
            found = self.model.constraints.joint_influence(self.motion(x)[0], 3)
            assert found.H is not None
            assert found.D is not None
            self._influence = x.copy(), (found.G, found.H, found.D)
        return self._influence[1]

    def pulled_back(self, x: Array, dq: Array, dv: Array, da: Array) -> tuple[Array, Array, Array]:
        """Gradients (N, nv) by q (in tangent space), v and a as gradients (N, m) by u, its rate and its second rate."""
        if not self.model.mechanism.constrained:
            return dq, dv, da
        _, du, ddu = self.own_motion(x)
        G, H, D = self.influence(x)
        turned = np.einsum("ti,timn->tmn", da, H)
        by_u = np.einsum("ti,tim->tm", dq, G) + np.einsum("ti,timn,tn->tm", dv, H, du)
        by_u += np.einsum("tmn,tn->tm", turned, ddu) + np.einsum("ti,tilmn,tm,tn->tl", da, D, du, du)
        by_du = np.einsum("ti,tim->tm", dv, G) + np.einsum("tmn,tn->tm", turned + turned.swapaxes(1, 2), du)
        return by_u, by_du, np.einsum("ti,tim->tm", da, G)

    def coefficients(self, by_u: Array, by_du: Array, by_ddu: Array) -> Array:
        """Gradients by u and its rates as one by the coefficients."""
        return (by_u.T @ self.B + by_du.T @ self.dB + by_ddu.T @ self.ddB).ravel()


def _marks(u: Array) -> Array:
    """Rows of u, from the first to the last: each the last of those that, like all before them, are close to the one
    before, or else the next."""
    marks, k = [0], 0
    while k < len(u) - 1:
        far = np.abs(u[k + 1 :] - u[k]).max(axis=1) > CLOSE
        k = max(k + 1, k + int(far.argmax()) if far.any() else len(u) - 1)
        marks.append(k)
    return np.array(marks)


__all__ = ["Series"]
