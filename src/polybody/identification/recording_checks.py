"""Signs that a recording is not what it should be: other units, another order of joints, drives at their limits.

Each is a warning: the numbers themselves do not say whether they are wrong.
"""

from __future__ import annotations

import numpy as np

from polybody.errors import warn
from polybody.mechanism.columns import actuated, plain_columns, velocity_names
from polybody.model.model import Model
from polybody.names import listed

Array = np.ndarray
#: seconds between samples, parts of a joint's range beyond it, times the effort
SLOWEST, FAR, STRONG = 0.5, 0.5, 5.0
#: a drive is at its limit where its largest force lasts for so many samples in a row, and this part of all
LASTING, SHARE = 5, 0.01
#: forces are compared with the model's own where they are alike, and reported where they are so many times larger
ALIKE, TIMES = 0.7, 30.0


def check_rates(model: Model, t: Array, q: Array, v: Array, source: str) -> None:
    """Warn where velocities are not the rates of positions: of other units, or of another joint."""
    columns = plain_columns(model.mechanism, range(model.nv)) if model.nq == model.nv else None
    if columns is None:
        return
    rates = np.gradient(q[:, columns], t, axis=0)
    size = np.linalg.norm(rates, axis=0)
    slope = np.sum(rates * v, axis=0) / np.maximum(size**2, 1e-300)
    names = velocity_names(model.mechanism)
    wrong = [k for k in range(model.nv) if size[k] > 1e-3 * size.max() and not 0.5 < slope[k] < 2.0]
    if wrong:
        told = ", ".join(f"{names[k]} {slope[k]:.3g}" for k in wrong[:4])
        warn(f"{source}: velocities are not the rates of positions (their ratio: {told}); expected s, rad and rad/s, "
             "columns in the order of the model's joints")


def check_limits(model: Model, t: Array, q: Array, tau: Array, source: str) -> None:
    """Warn where numbers are far beyond what the model's joints can do, as in degrees, milliseconds or N·mm."""
    limits, names = model.joint_limits(), velocity_names(model.mechanism)
    spacing = float(np.median(np.diff(t)))
    if spacing > SLOWEST:
        warn(f"{source}: samples are {spacing:g} s apart; expected t in seconds")
    if model.nq == model.nv:
        room = FAR * np.maximum(limits["upper"] - limits["lower"], 1e-3)
        out = np.flatnonzero((q.min(axis=0) < limits["lower"] - room) | (q.max(axis=0) > limits["upper"] + room))
        if len(out):
            k = out[0]
            warn(f"{source}: positions of {listed([names[k] for k in out])} are far beyond the joint limits "
                 f"({names[k]}: {q[:, k].min():.4g} to {q[:, k].max():.4g}, limits {limits['lower'][k]:.4g} to "
                 f"{limits['upper'][k]:.4g}); expected rad or m, columns in the order of the model's joints")
    largest = np.sqrt(np.mean(tau**2, axis=0))
    strong = np.flatnonzero((largest > STRONG * limits["effort"]) & (limits["effort"] > 0))
    if len(strong):
        k = strong[0]
        warn(f"{source}: joint forces of {listed([names[k] for k in strong])} are far beyond the effort limits "
             f"({names[k]}: rms {largest[k]:.4g}, limit {limits['effort'][k]:.4g}); expected N·m or N")


def check_forces(model: Model, q: Array, tau: Array, source: str) -> None:
    """Warn of drives without any force, and of those that stay at their largest."""
    names = velocity_names(model.mechanism)
    driven = actuated(model.mechanism)
    columns = plain_columns(model.mechanism, driven)
    silent, cut = [], []
    for place, k in enumerate(driven):
        force = tau[:, k]
        top = float(np.abs(force).max())
        moving = columns is None or np.ptp(q[:, columns[place]]) > 0
        if top == 0 and moving:
            silent.append(names[k])
        elif top > 0 and any(_lasts(np.abs(force - side * top) <= 1e-9 * top) for side in (1, -1)):
            cut.append(names[k])
    if silent:
        warn(f"{source}: joint forces of {listed(silent)} are zero although the joint moves; is the column right?")
    if cut:
        warn(f"{source}: joint forces of {listed(cut)} stay at their largest value for {LASTING} samples and more; "
             "a drive at its limit, or a signal that was cut off, spoils estimates")


def _lasts(at: Array) -> bool:
    if np.mean(at) < SHARE or np.all(at):
        return False
    edges = np.flatnonzero(np.diff(np.concatenate([[0], at.astype(int), [0]])))
    return int((edges[1::2] - edges[::2]).max(initial=0)) >= LASTING


def check_scale(measured: Array, own: Array, source: str) -> None:
    """Warn where measured forces are like the model's own but of another size or sign: mN·m, or a gain's sign."""
    size = float(np.linalg.norm(own)) * float(np.linalg.norm(measured))
    if not size:
        return
    alike, ratio = float(np.sum(own * measured)) / size, float(np.sum(own * measured)) / float(np.sum(own**2))
    if alike < -ALIKE:
        warn(f"{source}: joint forces are opposite to those of the model with its own masses; is their sign right?")
    elif alike > ALIKE and not 1 / TIMES < ratio < TIMES:
        warn(f"{source}: joint forces are {ratio:.3g} times those of the model with its own masses; expected N·m and "
             "N, positions in rad and m")


__all__ = ["check_forces", "check_limits", "check_rates", "check_scale"]
