"""Arguments of the façade: arrays of the right size, frames by name, errors that say what would be right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.errors import InputError, refuse_masked
from polybody.names import counted, listed, nearest

Array = np.ndarray


def precision(values: Sequence[Any]) -> type[np.floating]:
    """float32 where every one of the values is an array of float32, else float64: what answers are computed in."""
    single = len(values) > 0 and all(isinstance(x, np.ndarray) and x.dtype == np.float32 for x in values)
    return np.float32 if single else np.float64


def state_array(name: str, values: Any, size: int, dtype: type[np.floating] = np.float64) -> Array:
    """`values` as a float array of shape (..., size)."""
    array = float_array(name, values, dtype)
    if array.ndim == 0 or array.shape[-1] != size:
        raise InputError(f"{name} has shape {array.shape}, expected ({size},) or (..., {size})")
    return array


def float_array(name: str, values: Any, dtype: type[np.floating] = np.float64) -> Array:
    """`values` as a float array of any shape. Text, dates, None and complex numbers raise an error."""
    if type(values) is np.ndarray and values.dtype == dtype:
        return values
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers in a regular array, got {type(values).__name__}") from None
    refuse_masked(name, values)
    if array.dtype.kind not in "biuf":
        what = "real numbers" if array.dtype.kind == "c" else "numbers in a regular array"
        raise InputError(f"{name} must be {what}, got {array.dtype}")
    return np.asarray(array, dtype=dtype)


def into(out: Any, result: Any) -> Any:
    """The result, put into `out` where that is given: an array, or a tuple of them for several results."""
    if out is None:
        return result
    results, outs = (x if isinstance(x, tuple) else (x,) for x in (result, out))
    if len(results) != len(outs):
        raise InputError(f"out holds {counted(len(outs), 'array')}; expected {len(results)}, one for each result")
    for x, y in zip(results, outs, strict=True):
        if not isinstance(y, np.ndarray):
            raise InputError(f"out is of type {type(y).__name__}; expected an array of shape {np.shape(x)}")
        if y.shape != np.shape(x):
            raise InputError(f"out has shape {y.shape}; expected {np.shape(x)}")
        if not np.issubdtype(y.dtype, np.floating):
            raise InputError(f"out has dtype {y.dtype}; expected float64 (or another float) of shape {np.shape(x)}")
        if not y.flags.writeable:
            raise InputError("out is read-only; expected an array that can be written")
    for x, y in zip(results, outs, strict=True):
        if x is not y:
            y[...] = x
    return out


def finite(name: str, array: Array) -> Array:
    """The array, or an error that names its first entry which is no finite number."""
    if not np.isfinite(array).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        place = f"[{', '.join(map(str, index))}]" if index else ""
        raise InputError(f"{name}{place} is {array[index]}; expected a finite number")
    return array


def random_generator(name: str, rng: Any) -> np.random.Generator:
    """The generator of random numbers for a seed, a generator or None."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {rng!r}, expected a numpy.random.Generator, a whole number or None") from None


def positive(name: str, value: Any, *, infinite: bool = False) -> float:
    """A positive number; infinity only where it is allowed."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}; expected a positive number") from None
    if not number > 0 or (number == math.inf and not infinite):
        raise InputError(f"{name} is {number:g}; expected a positive number")
    return number


def choose(kind: str, name: str, table: dict[str, int]) -> int:
    """The index of a name, or an error that offers the nearest one."""
    if not isinstance(name, str):
        raise InputError(f"a {kind} is chosen by its name, not by {name!r}; available: {listed(table)}")
    if name in table:
        return table[name]
    raise InputError(f"no {kind} {name!r}{nearest(name, table)}; available: {listed(table)}")


def require_model(what: str, model: Any) -> None:
    """Refuse anything that is not a model, by name."""
    from polybody.model.model import Model

    if not isinstance(model, Model):
        given = repr(model)
        shown = given if len(given) < 60 else f"{given[:57]}..."
        raise InputError(
            f"{what}: model is {shown} ({type(model).__name__}); expected a Model, from pb.load(...) or "
            "pb.Builder(...).model()"
        )


def as_model(what: str, given: Any) -> Any:
    """The model itself, or the one that a grasp is with its grips closed (`Grasp.closed`)."""
    found = getattr(given, "closed", given)
    require_model(what, found)
    return found


__all__ = [
    "as_model", "choose", "finite", "float_array", "into", "positive", "precision", "random_generator", "require_model",
    "state_array",
]  # fmt: skip
