"""What people write, as what records hold: short forms become arrays of one fixed shape.

An inertia may be 3 numbers, 6 numbers or a matrix; a stiffness one number, nv numbers or a matrix; limits a pair. Each
function takes `what`, the argument's name, and raises an `InputError` that says the size found and the size wanted.
Values (signs, NaN, lengths of axes) are judged by `checks`, not here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from polybody.algebra.spatial import pose
from polybody.description.records import FRICTION_DEFAULTS, UNLIMITED, Array, Friction, Limits, frozen_array
from polybody.errors import InputError
from polybody.names import listed, nearest

#: An axis this close to unit length is normalised; farther, it is an error.
AXIS_SLACK = 1e-3


def number(what: str, value: Any) -> float:
    """One float."""
    array = _floats(what, value)
    if array.ndim:
        raise InputError(f"{what} has shape {array.shape}, expected one number")
    return float(array)


def numbers(what: str, values: Any, *shape: int) -> Array:
    """A read-only float array of exactly this shape."""
    array = _floats(what, values)
    if array.shape != shape:
        raise InputError(f"{what} has shape {array.shape}, expected {shape}")
    return frozen_array(array)


def _floats(what: str, values: Any) -> Array:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "iuf":
            raise TypeError
        return array.astype(float)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers in a regular array, got {values!r:.80}") from None


def inertia_matrix(what: str, values: Any) -> Array:
    """3×3 from (xx, yy, zz), (xx, yy, zz, xy, xz, yz) or a matrix."""
    array = _floats(what, values)
    if array.shape == (3,):
        return frozen_array(np.diag(array))
    if array.shape == (6,):
        xx, yy, zz, xy, xz, yz = array
        return frozen_array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if array.shape == (3, 3):
        return frozen_array(array)
    raise InputError(
        f"{what} has shape {array.shape}, expected (3,): xx, yy, zz; (6,): xx, yy, zz, xy, xz, yz; or (3, 3)"
    )


def velocity_name(text: str) -> tuple[str, int]:
    """("joint", 0), or ("joint", k) of "joint[k]"."""
    found = re.fullmatch(r"(.*)\[(\d{1,2})\]", text)
    return (found.group(1), int(found.group(2))) if found else (text, 0)


def points(what: str, values: Any) -> Array:
    """(n, 3) from one point or several."""
    array = _floats(what, values)
    if array.ndim in (1, 2) and array.shape[-1:] == (3,):
        return frozen_array(array.reshape(-1, 3))
    raise InputError(f"{what} has shape {array.shape}, expected (3,) or (n, 3)")


def table(what: str, values: Any) -> Array:
    """Rows of numbers, all of one length."""
    array = _floats(what, values)
    if array.ndim != 2:
        raise InputError(f"{what} has shape {array.shape}, expected rows of numbers")
    return frozen_array(array)


def square_matrix(what: str, values: Any, nv: int) -> Array:
    """nv×nv from one number (times the identity), nv numbers (a diagonal) or a matrix."""
    array = _floats(what, values)
    if array.ndim == 0:
        return frozen_array(float(array) * np.eye(nv))
    if array.shape == (nv,):
        return frozen_array(np.diag(array))
    if array.shape == (nv, nv):
        return frozen_array(array)
    raise InputError(f"{what} has shape {array.shape}, expected one number, ({nv},) or ({nv}, {nv})")


def vector(what: str, values: Any, size: int) -> Array:
    """`size` numbers, from as many or from one that holds for all."""
    array = _floats(what, values)
    if array.ndim == 0:
        return frozen_array(np.full(size, float(array)))
    if array.shape == (size,):
        return frozen_array(array)
    raise InputError(f"{what} has shape {array.shape}, expected one number or ({size},)")


def rest_configuration(what: str, values: Any, nq: int) -> Array | None:
    """nq numbers; one number only where nq is 1; zero alone means neutral."""
    array = _floats(what, values)
    if array.ndim == 0:
        if nq == 1:
            return frozen_array([float(array)])
        if float(array) == 0.0:
            return None
    if array.shape == (nq,):
        return frozen_array(array)
    raise InputError(f"{what} has shape {array.shape}, expected the joint's configuration, ({nq},)")


def pose_matrix(what: str, values: Any) -> Array:
    """A 4×4 pose, or three numbers: a shift."""
    array = _floats(what, values)
    if array.shape == (3,):
        return frozen_array(pose(np.eye(3), array))
    if array.shape == (4, 4):
        return frozen_array(array)
    raise InputError(f"{what} has shape {array.shape}, expected a (4, 4) pose or (3,), a shift")


def joint_limits(what: str, values: Any, nv: int) -> Limits:
    """Limits from a (lower, upper) pair, a mapping of the record's fields, or a record; each nv numbers."""
    if isinstance(values, Limits):
        values = {name: getattr(values, name) for name in UNLIMITED}
    elif not isinstance(values, Mapping):
        try:
            lower, upper = values
        except (TypeError, ValueError):
            raise InputError(f"{what} must be (lower, upper) or a mapping, got {values!r:.80}") from None
        values = {"lower": lower, "upper": upper}
    for key in values:
        if key not in UNLIMITED:
            raise InputError(f"{what} has no {key!r}{nearest(str(key), UNLIMITED)}; available: {listed(UNLIMITED, 9)}")
    given: dict[str, Any] = dict(UNLIMITED) | {key: value for key, value in values.items() if value is not None}
    made: dict[str, Any] = {k: None if x is None else vector(f"{what}.{k}", x, nv) for k, x in given.items()}
    return Limits(**made)


def friction(what: str, values: Any, nv: int) -> Friction | None:
    """Friction from a Coulomb level (one number or nv), a mapping of the record's fields, or a record."""
    if isinstance(values, Friction):
        values = {key: getattr(values, key) for key in FRICTION_DEFAULTS}
    elif not isinstance(values, Mapping):
        values = {"coulomb": values}
    for key in values:
        if key not in FRICTION_DEFAULTS:
            known = listed(FRICTION_DEFAULTS, len(FRICTION_DEFAULTS))
            raise InputError(f"{what} has no {key!r}{nearest(str(key), FRICTION_DEFAULTS)}; available: {known}")
    given = dict(FRICTION_DEFAULTS) | {key: value for key, value in values.items() if value is not None}
    static = given.pop("static")
    made: dict[str, Any] = {key: vector(f"{what}.{key}", value, nv) for key, value in given.items()}
    made["static"] = made["coulomb"] if static is None else vector(f"{what}.static", static, nv)
    acts = any(np.any(made[key]) for key in ("coulomb", "viscous", "static", "load"))
    return Friction(**made) if acts else None


def active_flags(what: str, values: Any, nv: int) -> tuple[bool, ...]:
    """nv booleans, from as many or from one."""
    flags = np.asarray(values)
    if flags.dtype != bool:
        raise InputError(f"{what} must be true or false, got {values!r:.80}")
    if flags.ndim == 0:
        return (bool(flags),) * nv
    if flags.shape != (nv,):
        raise InputError(f"{what} has shape {flags.shape}, expected true, false or ({nv},)")
    return tuple(bool(flag) for flag in flags)


def unit_axis(axis: Array) -> Array:
    """The axis divided by its length if that is within 1e-3 of one; an exact unit axis keeps its bits."""
    length = float(np.linalg.norm(axis))
    if abs(length - 1) <= 1e-15 or not abs(length - 1) <= AXIS_SLACK:
        return axis
    return frozen_array(np.asarray(axis) / length)


__all__ = [
    "AXIS_SLACK",
    "active_flags",
    "friction",
    "inertia_matrix",
    "joint_limits",
    "number",
    "numbers",
    "points",
    "pose_matrix",
    "rest_configuration",
    "square_matrix",
    "table",
    "unit_axis",
    "vector",
    "velocity_name",
]
