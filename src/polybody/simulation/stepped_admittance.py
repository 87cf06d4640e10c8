"""Admittance over the steps of a motion: z = [x_c − x_d, its velocity, the load], as text (`stepped_control`).

The deviation is stepped exactly from step to step with the load held, E(h) x + P(h) f, and to the stages of a step
likewise; at the controller's instants the load is measured anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.model.model import Model
from polybody.simulation.compiled.frame_texts import FrameText
from polybody.simulation.compiled.own_numbers import numbers_of
from polybody.simulation.compiled.own_state import Own, shape_of
from polybody.simulation.compiled.task_laws import measured_text
from polybody.simulation.controllers import Admittance
from polybody.simulation.stepped_control import (
    FIRST,
    INSTANT,
    Control,
    chosen,
    flags_of,
    require_constant_loops,
    stage_weights,
)

Array = np.ndarray


def admitting(model: Model, law: Admittance, times: Array, h: float) -> Control:
    """The texts of an admittance controller."""
    require_constant_loops(model)
    known, n = numbers_of(law.model), law.motion.size
    own, frame = Own(known), FrameText(known, law.motion)
    shape = shape_of([own.actuated(known.jacobian(q, law.motion.name)[-n:], q) for q in own.places])
    measured, key = measured_text(known, law.force)
    m, count = known.engine.traced_mechanism, len(frame.constants)
    matrices = [*law._held(h / 2), *law._held(h), law.A, law.B]
    sizes = np.cumsum([x.size for x in matrices])

    def parts(c: Array) -> tuple[Array, list[Array]]:
        """(gains, matrices)."""
        flat = np.split(c[count + 3 :], sizes[:-1])
        return c[count : count + 3], [x.reshape(y.shape) for x, y in zip(flat, matrices, strict=True)]

    def update(t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        _, (_, _, E, P, _, _) = parts(c)
        x, load = z[: 2 * n], z[2 * n :]
        assert measured is not None
        return np.concatenate([
            chosen(domain, row[FIRST], domain.zeros(2 * n), E @ x + P @ load),
            chosen(domain, row[INSTANT], measured(t, q, v, domain)[-n:], load),
        ])  # fmt: skip

    def text(t: Any, q: Array, v: Array, z: Array, c: Array, row: Array, domain: Domain) -> Array:
        (kp, kd, slow), (E_half, P_half, E, P, A, B) = parts(c)
        x, load = z[: 2 * n], z[2 * n :]
        begin, middle, end = stage_weights((t - row[4]) * row[5], domain)
        x = x * begin + (E_half @ x + P_half @ load) * middle + (E @ x + P @ load) * end
        s = own.at(m, q, v, [], domain)
        J, drift = frame.jacobian(m, q, s.v, domain)
        error, speed, acceleration = frame.wanted(m, t, q, c[:count], row[6:], domain)
        wanted = acceleration + (A @ x + B @ load)[n:] + (speed + x[n:] - J @ s.v) * kd + (error + x[:n]) * kp
        return s.task_forces(shape, J, drift, wanted, s.u * -slow, J.T @ load)

    signals = np.array([frame.signals.row(t + h / 2) for t in times]).reshape(len(times), -1)
    rows = np.column_stack([flags_of(law.clock, times), times, np.full(len(times), 1 / h), signals])
    numbers = [frame.constants, np.array([law.kp, law.kd, law.null_damping]), *(x.ravel() for x in matrices)]
    label = f"admittance {key} {own.key} {frame.key} {shape.key} of {m.digest[:24]}"
    return Control(label, text, rows, np.concatenate(numbers), 3 * n, update)


__all__ = ["admitting"]
