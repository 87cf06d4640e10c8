"""`pb.identify_payload`: what an arm holds, from a recording without it and one with it.

The bodies and the joints are the same in both, so all rows are solved together, x the base parameters and joint terms,
π the ten parameters of the payload about the frame that holds it:

    A_1 x = b_1,        A_2 x + Y_i T π = b_2

Y_i are the columns of the body that carries the frame, T places the frame in it. What the first recording says of x
need not be said again by the second, so all ten numbers can be seen although the arm's own last body shows fewer. The
estimate is then made one that can exist (`consistent`): J(π) ⪰ 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.formulations.denoc.regressor import BODY_PARAMETERS, ENTRIES
from polybody.identification import semidefinite
from polybody.identification.crossings import inertia_map
from polybody.identification.identify import identify, stacked_rows
from polybody.identification.least_squares import Fit, solve
from polybody.identification.recording import recordings
from polybody.identification.semidefinite import is_consistent, units
from polybody.identification.signals import states_of
from polybody.late import dataclass
from polybody.mechanism.columns import actuated, velocity_names
from polybody.mechanism.mechanism import GROUND
from polybody.model.model import Model
from polybody.quantities.frames import find_frame

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Payload:
    """Payload at a frame: mass, centre of mass in the frame's axes, inertia about it."""

    frame: str
    mass: float
    com: Array  # in the frame's axes, m
    inertia: Array
    parameters: Array  # mass, first moments, inertia about the frame's origin: ten numbers
    deviations: Array  # standard deviations of the parameters
    consistent: bool  # whether a body can have these parameters
    error: float  # ‖τ − τ̂‖/‖τ‖ of the recording with the payload

    def __str__(self) -> str:
        rows = [f"  {n:4} {x:10.4g} ± {s:.2g}" for n, x, s in
                zip(BODY_PARAMETERS, self.parameters, self.deviations, strict=True)]  # fmt: skip
        return "\n".join([f"payload at {self.frame}: {self.mass:.4g} kg, centre {np.round(self.com, 4)}", *rows])


def identify_payload(
    model: Model, empty: Any, loaded: Any, frame: str, *, drive_gains: Sequence[float] | None = None, **options: Any
) -> Payload:
    """Identify the payload held at a frame in the recording `loaded` but not in `empty`.

    Other options are those of `pb.identify`.
    """
    if model.mechanism.constrained:
        raise InputError("payloads are identified on arms without loops")
    place = find_frame(model.mechanism, frame)
    if place.body == GROUND:
        raise InputError(f"frame {frame!r} is fixed to the ground")
    arm = identify(model, empty, drive_gains=drive_gains, **{**options, "consistent": False})
    problem, choices = arm.problem, arm.choices
    T = inertia_map(place.rotation, place.position)
    own = slice(10 * place.body, 10 * place.body + 10)
    step = max(1, round(choices["rate_hz"] / choices["thinned_to_hz"]))
    blocks, right, without = [], [], 0  # samples without the payload
    for data, held in ((empty, False), (loaded, True)):
        without = sum(map(len, right))
        for record in recordings(model, data, drive_gains=drive_gains, units=options.get("units")):
            states = states_of(problem.model, record, choices["cutoff_hz"], choices["rate_hz"])
            rows = problem.rows(states)
            A, b = stacked_rows(problem, [rows], [problem.load(rows, arm.base)])
            beside = np.zeros((*A.shape[:2], 10))
            if held:
                Y = problem.model.regressor(states.q, states.v, states.a)
                beside = states.filtered(Y[..., own] @ T)[states.inner][::step]
            blocks.append(np.concatenate([A, beside], axis=-1))
            right.append(b)
    A, b = np.concatenate(blocks), np.concatenate(right)
    fit = solve(A, b, choices["method"])
    found = _existing(fit) if not is_consistent(fit.x[-10:]) else fit.x[-10:]
    mass, com = float(found[0]), found[1:4] / found[0]
    inertia = np.zeros((3, 3))
    for value, (r, c) in zip(found[4:], ENTRIES, strict=True):
        inertia[r, c] = inertia[c, r] = value
    inertia -= mass * (com @ com * np.eye(3) - np.outer(com, com))
    left = b[without:] - A[without:] @ np.concatenate([fit.x[:-10], found])
    return Payload(
        frame, mass, com, inertia, found, np.sqrt(np.diag(fit.covariance))[-10:], is_consistent(found),
        float(np.linalg.norm(left) / np.linalg.norm(b[without:])),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Joint force per current of each driven velocity, with standard deviations."""

    names: tuple[str, ...]  # of the driven velocities
    gains: Array  # N·m/A or N/A
    deviations: Array
    error: float  # ‖K i − τ̂‖/‖K i‖ over both recordings


def identify_drive_gains(
    model: Model, empty: Any, loaded: Any, frame: str, mass: float, com: Any = (0.0, 0.0, 0.0),
    inertia: Any = (0.0, 0.0, 0.0), **options: Any,
) -> DriveGains:  # fmt: skip
    """Identify drive gains from currents: one recording without, and one with a known payload at a frame.

    A_1 x − i_1 K = 0 and A_2 x − i_2 K = −(forces of the payload): the known weight determines the scale. Every joint
    must be loaded by the payload. Other options are those of `pb.identify`.
    """
    driven = [int(k) for k in actuated(model.mechanism)]
    ones = [1.0] * len(driven)
    arm = identify(model, empty, drive_gains=ones, **{**options, "consistent": False})
    problem, choices = arm.problem, arm.choices
    if "load" in problem.terms:
        raise InputError("drive gains and load-dependent friction cannot be distinguished; give terms= without load")
    held = model.with_payload(frame, mass, com, inertia)
    blocks, right, sizes = [], [], []
    for record, known in [
        (x, known) for data, known in ((empty, False), (loaded, True))
        for x in recordings(model, data, drive_gains=ones, units=options.get("units"))
    ]:  # fmt: skip
        states = states_of(problem.model, record, choices["cutoff_hz"], choices["rate_hz"])
        rows = problem.rows(states)
        A, currents = stacked_rows(problem, [rows], [states.tau])
        more = np.zeros((len(states.t), model.nv))
        if known:
            motion = (states.q, states.v, states.a)
            with_it, without = (x.regressor(*motion) @ x.regressor.parameters() for x in (held, model))
            more = states.filtered(with_it - without)
        step = max(1, round(choices["rate_hz"] / choices["thinned_to_hz"]))
        beside = np.zeros((*A.shape[:2], len(driven)))
        beside[:, driven, range(len(driven))] = -currents[:, driven]
        blocks.append(np.concatenate([A, beside], axis=-1))
        right.append(-more[states.inner][::step])
        sizes.append(currents[:, driven])
    A, b = np.concatenate(blocks), np.concatenate(right)
    fit = solve(A, b, choices["method"])
    K = fit.x[-len(driven) :]
    left = (b - A @ fit.x)[:, driven]
    names = velocity_names(model.mechanism)
    return DriveGains(
        tuple(names[k] for k in driven), K, np.sqrt(np.diag(fit.covariance))[-len(driven) :],
        float(np.linalg.norm(left) / np.linalg.norm(np.concatenate(sizes) * K)),
    )  # fmt: skip


def _existing(fit: Fit) -> Array:
    """The payload nearest to the fit, in its own uncertainty, that can exist; the arm's parameters follow."""
    first, weight = len(fit.x) - 10, 1 / np.sqrt(max(fit.residual, 1e-12))
    scale = np.concatenate([np.ones(first), units(1.0, 0.1)])
    margin = 1e-6 * abs(float(fit.x[first]))
    return (scale * semidefinite.solve(weight * fit.R * scale, weight * fit.z, [first], margin))[first:]


__all__ = ["DriveGains", "Payload", "identify_drive_gains", "identify_payload"]
