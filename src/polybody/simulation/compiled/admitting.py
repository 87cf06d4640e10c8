"""Admittance as text: `controllers.admittance` over any domain. z = [x_c − x_d, its velocity, load, time of measuring].

Between instants the deviation moves freely under the load that is held, ẍ = M⁻¹(f − D ẋ − K x). Straight-line code has
no matrix exponential: Taylor's series in the time since the last instant is, of so many terms that the rest is below
rounding over a whole period, whose bound is (ρ h)ⁿ/n! with ρ = √‖M⁻¹K‖ + ‖M⁻¹D‖. For stiff ones the series gives the
map over 2⁻ˢ h, x ← Φ x + φ, which is applied to itself s times: Φ ← Φ Φ, φ ← Φ φ + φ.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.model.model import Model
from polybody.simulation.compiled.frame_texts import FrameText
from polybody.simulation.compiled.law import Planned
from polybody.simulation.compiled.own_state import Own
from polybody.simulation.compiled.remembered import Knowing, Remembered, chosen, strikes
from polybody.simulation.compiled.task_laws import measured_text
from polybody.simulation.controllers.admittance import Admittance
from polybody.simulation.failures import NotCompiled

Array = np.ndarray
REST = 1e-18
WIDE = 2.0  # ρ h of one series
MOST_DOUBLINGS = 30


class Deviation:
    """x(h) of ẍ = M⁻¹ f − M⁻¹K x − M⁻¹D ẋ as a series; `numbers` are the three matrices, diagonals where they are."""

    def __init__(self, law: Admittance) -> None:
        n = law.motion.size
        matrices = [-law.A[n:, :n], -law.A[n:, n:], law.B[n:]]
        self.diagonal = all(not (x - np.diag(np.diag(x))).any() for x in matrices)
        self.numbers = np.concatenate([np.diag(x) if self.diagonal else x.ravel() for x in matrices])
        self.n, self.period = n, law.clock.period
        rate = np.sqrt(np.linalg.norm(matrices[0], 2)) + np.linalg.norm(matrices[1], 2)
        reach = float(rate * self.period)
        self.doublings = max(0, int(np.ceil(np.log2(max(reach, WIDE) / WIDE))))
        if self.doublings > MOST_DOUBLINGS:
            raise NotCompiled("the controller's deviation moves much faster than it measures: it is stepped in Python")
        self.terms = next(k for k in range(4, 60) if (reach / 2**self.doublings) ** k / factorial(k) < REST)

    @property
    def key(self) -> str:
        return f"{self.n} {self.diagonal} {self.doublings} {self.terms}"

    def _times(self, c: Array, which: int, x: Array) -> Array:
        size = self.n if self.diagonal else self.n**2
        matrix = c[which * size : (which + 1) * size]
        return matrix * x if self.diagonal else matrix.reshape(self.n, self.n) @ x

    def at(self, h: Any, x: Array, load: Array, c: Array, domain: Domain) -> tuple[Array, Array]:
        """[x; ẋ] after h seconds, at most a period, and ẍ there."""
        n, push = self.n, self._times(c, 2, load)
        if not self.doublings:
            place, speed = self._series(h, x[:n], x[n:], push, c, domain)
        else:
            place, speed = self._doubled(h / domain.const(2**self.doublings), x[:n], x[n:], push, c, domain)
        return np.concatenate([place, speed]), push - self._times(c, 0, place) - self._times(c, 1, speed)

    def _series(self, h: Any, here: Array, rate: Array, push: Array, c: Array, domain: Domain) -> tuple[Array, Array]:
        """(x, ẋ) after h; of several motions at once where they are columns."""
        place, speed, power = here, rate, domain.const(1)
        for k in range(1, self.terms):
            power = power * h / domain.const(k)
            after = (push if k == 1 else push * domain.const(0)) - self._times(c, 0, here) - self._times(c, 1, rate)
            place, speed = place + rate * power, speed + after * power
            here, rate = rate, after
        return place, speed

    def _doubled(self, h: Any, here: Array, rate: Array, push: Array, c: Array, domain: Domain) -> tuple[Array, Array]:
        """The same after 2ˢ h. Φ is four blocks: numbers for each row where matrices are diagonal."""
        one = domain.zeros(self.n) + domain.const(1) if self.diagonal else domain.eye(self.n)
        none = one * domain.const(0)
        times = np.multiply if self.diagonal else np.matmul
        (a, c_), (b, d) = (self._series(h, *start, none, c, domain) for start in ((one, none), (none, one)))
        still = domain.zeros(self.n)
        x, y = self._series(h, still, still, push, c, domain)  # φ
        for _ in range(self.doublings):
            x, y = times(a, x) + times(b, y) + x, times(c_, x) + times(d, y) + y
            a, b, c_, d = (times(a, a) + times(b, c_), times(a, b) + times(b, d),
                           times(c_, a) + times(d, c_), times(c_, b) + times(d, d))  # fmt: skip
        return times(a, here) + times(b, rate) + x, times(c_, here) + times(d, rate) + y


def _admitting(model: Model, law: Admittance, plan: Planned | None) -> Remembered:
    knowing, n = Knowing(model, law.model), law.motion.size
    known = knowing.model
    own, frame, moving = Own(known), FrameText(known, law.motion), Deviation(law)
    shape = own.frame_shape(law.motion.name, n)
    measured, key = measured_text(known, law.force)
    count, doubts = len(frame.constants), list[Any]()

    def stepped(t: Any, z: Array, c: Array, domain: Domain) -> tuple[Array, Array]:
        since, none, whole = t - z[3 * n], domain.const(0), domain.const(law.clock.period)
        since = domain.where(domain.less(since, none), none, since)
        since = domain.where(domain.less(whole, since), whole, since)
        return moving.at(since, z[: 2 * n], z[2 * n : 3 * n], c[count + 3 :], domain)

    def update(
        m: Any, t: Any, q: Array, v: Array, z: Array, told: Array, c: Array, row: Array, domain: Domain
    ) -> Array:
        load = measured(t, q, v, domain)[-n:]
        return chosen(domain, told[0], np.concatenate([stepped(t, z, c, domain)[0], load, [t]]), z)

    def begin(m: Any, t: Any, q: Array, v: Array, told: Array, c: Array, row: Array, domain: Domain) -> Array:
        return np.concatenate([domain.zeros(2 * n), measured(t, q, v, domain)[-n:], domain.zeros(1) + t])

    def text(m: Any, t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        doubts.clear()
        m, load, (kp, kd, slow) = knowing.mechanism(m), z[2 * n : 3 * n], c[count : count + 3]
        x, bend = stepped(t, z, c, domain)
        s = own.at(m, q, v, doubts, domain)
        J, drift = frame.jacobian(m, q, s.v, domain)
        error, speed, acceleration = frame.wanted(m, t, q, c[:count], row, domain)
        wanted = acceleration + bend + (speed + x[n:] - J @ s.v) * kd + (error + x[:n]) * kp
        return s.task_forces(shape, J, drift, wanted, s.u * -slow, J.T @ load)

    def give(times: Array, told: Array, rows: Array) -> None:
        new = np.flatnonzero(told[:, 0] > 0.5)
        if len(new):
            z = rows[new[-1]].copy()
            law.state, law.load, law.at = z[: 2 * n], z[2 * n : 3 * n], float(z[3 * n])

    label = f"admittance {key} {own.key} {frame.key} {shape.key} {moving.key}{knowing.key} {law.clock.period.hex()}"
    return Remembered(
        label, text, np.concatenate([frame.constants, [law.kp, law.kd, law.null_damping], moving.numbers]),
        frame.signals, doubts, True, 3 * n + 1, 1, (law.clock,),
        lambda times, start: strikes(law.clock, times)[:, None].astype(float), begin, update,
        take=lambda: np.concatenate([law.state, law.load, [law.at]]), give=give,
    )  # fmt: skip


MAKERS: dict[type, Callable[..., Remembered]] = {Admittance: _admitting}

__all__ = ["MAKERS"]
