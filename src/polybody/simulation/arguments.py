"""What a user may pass to a run, checked before anything is computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.model.arguments import finite, float_array, positive, require_model
from polybody.model.configurations import with_quaternions
from polybody.model.model import Model
from polybody.names import counted
from polybody.simulation.moments import moment

Array = np.ndarray


#: states a run may keep, and memory they may take
MOST_STATES = 5_000_000
MOST_BYTES = 8e9


def require_motion(model: Model) -> None:
    """Refuse a model of which nothing moves."""
    if not model.nv:
        raise InputError(f"{model.name!r} has no joint that moves (nv = 0): there is no motion to simulate")


def number(name: str, value: Any) -> float:
    """A finite number."""
    try:
        given = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}; expected a number") from None
    if not math.isfinite(given):
        raise InputError(f"{name} is {given}; expected a finite number")
    return given


def whole(name: str, value: Any) -> int:
    """A whole number of at least 1."""
    given = number(name, value)
    if given < 1 or given != int(given):
        raise InputError(f"{name} is {value!r}; expected a whole number of at least 1")
    return int(given)


def lone_state(model: Model, q0: Any, v0: Any) -> tuple[Array, Array]:
    """(q0, v0) as one state, neutral and at rest where not given; quaternions made unit if nearly so.

    Where rates are prescribed (velocity relations with right sides), at rest means the nearest velocities that have
    them.
    """
    q = model.neutral() if q0 is None else _vector("q0", q0, model.nq)
    v = np.zeros(model.nv) if v0 is None else _vector("v0", v0, model.nv)
    curved = with_quaternions(model.mechanism)
    for joint in curved:
        length = float(np.linalg.norm(q[joint.q][-4:]))
        if abs(length - 1) > 1e-3:
            raise InputError(
                f"q0 of joint {joint.name!r}: the quaternion (x, y, z, w) has length {length:.6g}; expected 1"
            )
    q = model.normalize(q) if curved else q.copy()
    if v0 is None and model.mechanism.paced:
        v = model.assemble_velocity(q, v)
    return q, v


def _vector(name: str, values: Any, size: int) -> Array:
    array = float_array(name, values)
    if array.shape != (size,):
        hint = "; for many states at once use pb.rollout" if array.ndim > 1 else ""
        raise InputError(f"{name} has shape {array.shape}, expected ({size},){hint}")
    return array if math.isfinite(sum(array.tolist())) else finite(name, array)  # sums may overflow too


def refuse_many(count: float, size: int, what: str) -> None:
    """Raise where more states would be kept than memory is for; `size` is how many numbers each has."""
    if count > min(MOST_STATES, MOST_BYTES / (8 * size)):
        raise InputError(
            f"{what} would keep {count:.3g} states of {counted(size, 'number')} ({8 * count * size / 2**30:.3g} GiB); "
            "give a "
            "larger sample (seconds between states), times=[...], or a shorter duration"
        )


def usual_spacing(duration: float) -> float:
    """Of recorded states, where nothing is said of them."""
    return min(0.01, duration / 100)


def sample_times(start: float, end: float, sample: Any, times: Any, adaptive: bool, size: int) -> Array | None:
    """When states of `size` numbers are kept; None for every step."""
    if times is not None:
        if sample is not None:
            raise InputError("give either sample (a spacing) or times, not both")
        wanted = float_array("times", times)
        if wanted.ndim != 1 or not len(wanted) or (len(wanted) > 1 and not (wanted[1:] > wanted[:-1]).all()):
            raise InputError("times must be finite increasing numbers")
        first, last = float(wanted[0]), float(wanted[-1])
        if not (math.isfinite(first) and math.isfinite(last)):  # then those between them are
            raise InputError("times must be finite increasing numbers")
        if first < start or last > end + moment(end):
            raise InputError(f"times must lie between {start:g} and {end:g} s, got {first:g} to {last:g}")
        return wanted
    if sample is None and not adaptive:
        return None
    spacing = usual_spacing(end - start) if sample is None else positive("sample", sample)
    refuse_many((end - start) / spacing, size, f"a state every {spacing:g} s")
    count = max(1, round((end - start) / spacing))
    if abs(count * spacing - (end - start)) > 1e-9 * (end - start):
        count = int((end - start) / spacing)
        return np.append(start + spacing * np.arange(count + 1), end)
    found = start + ((end - start) / count) * np.arange(count + 1)  # np.linspace takes longer than ten steps
    found[-1] = end
    return found


__all__ = [
    "lone_state", "number", "positive", "refuse_many", "require_model", "require_motion", "sample_times",
    "usual_spacing", "whole",
]  # fmt: skip
