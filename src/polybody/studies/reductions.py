"""What is kept of each case: results as they are, single numbers of them, or one number that says something of all.

    tau, tau[1], pose[0][3]                      a result, an entry of it
    max(tau), min, mean, norm, peak = max |τ|    of all its numbers; NaN where one of them is

Of up to `COMPILED_UP_TO` numbers a reduction is a kernel: NumPy's along short rows costs more than most quantities.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.names import nearest

Array = np.ndarray
COMPILED_UP_TO = 64
_KEPT = re.compile(r"(?:(?P<op>\w+)\()?(?P<key>[A-Za-z_]\w*)(?P<index>(?:\[\d+\])*)(?P<end>\))?")


def _casadi() -> Any:
    import casadi

    return casadi


def _sum(x: Any) -> Any:
    return _casadi().sum1(x)


def _extreme(x: Any, better: Callable[[Any, Any], Any]) -> Any:
    """By `fmax` or `fmin`, which are NaN in kernels where one of their arguments is."""
    return functools.reduce(better, (x[k] for k in range(x.numel())))


#: name: (of an array along its last axis, of a CasADi column)
REDUCTIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Any], Any]]] = {
    "max": (lambda x: x.max(axis=-1), lambda x: _extreme(x, _casadi().fmax)),
    "min": (lambda x: x.min(axis=-1), lambda x: _extreme(x, _casadi().fmin)),
    "mean": (lambda x: x.mean(axis=-1), lambda x: _sum(x) / x.numel()),
    "norm": (lambda x: np.sqrt((x * x).sum(axis=-1)), lambda x: _sum(x * x) ** 0.5),
    "peak": (lambda x: np.abs(x).max(axis=-1), lambda x: _extreme(abs(x), _casadi().fmax)),
}


@functools.cache
def _kernel(name: str, size: int) -> Any:
    from polybody.kernels import build

    def trace() -> Any:
        ca = _casadi()
        x = ca.SX.sym("x", size)
        return ca.Function(name, [x], [REDUCTIONS[name][1](x)])

    return build(name, [("x", size)], [("y", ())], trace, f"reduction of studies {name} {size}")


def reduced(name: str, x: Array) -> Array:
    """One number for each row of x (n, …)."""
    flat = x.reshape(len(x), -1)
    if 1 < flat.shape[1] <= COMPILED_UP_TO:
        return np.atleast_1d(_kernel(name, flat.shape[1])(np.asarray(flat, dtype=float)))
    return REDUCTIONS[name][0](flat)


def check_keep(keep: Sequence[str]) -> None:
    for item in keep:
        match = _KEPT.fullmatch(item) if isinstance(item, str) else None
        if match is None or bool(match["op"]) != bool(match["end"]) or (match["op"] and match["op"] not in REDUCTIONS):
            raise InputError(f"keep has {item!r}; expected a result ('tau'), a number of it ('tau[1]'), or one of "
                             f"{', '.join(REDUCTIONS)} of it ('peak(tau)')")


def key_of(item: str) -> str:
    """The result that an item of `keep` is about."""
    match = _KEPT.fullmatch(item)
    return match["key"] if match else item


def kept(keep: Sequence[str], found: Mapping[str, Array]) -> dict[str, Array]:
    """What of the results (count, …) is kept, by name."""
    if not keep:
        return dict(found)
    result = {}
    for item in keep:
        match = _KEPT.fullmatch(item)
        assert match is not None
        if match["key"] not in found:
            raise InputError(f"keep has {item!r}, but there is no result {match['key']!r}"
                             f"{nearest(match['key'], found)}; available: {', '.join(found)}")
        array = found[match["key"]]
        for number in re.findall(r"\d+", match["index"]):
            if array.ndim < 2 or int(number) >= array.shape[1]:
                raise InputError(f"keep has {item!r}, but {match['key']} has shape {found[match['key']].shape[1:]}")
            array = array[:, int(number)]
        result[item] = reduced(match["op"], array) if match["op"] else array
    return result


def text_of(keep: Sequence[str], shapes: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[list[Any], Any] | None:
    """([(item, shape), …], text) of what is kept: of CasADi columns of the results, columns of the items.

    None where an item is a reduction of more numbers than are worth compiling.
    """
    numbers = {name: np.arange(int(np.prod(shape))).reshape(1, *shape) for name, shape in shapes}
    places: list[tuple[str, str | None, list[int]]] = []
    items: list[tuple[str, tuple[int, ...]]] = []
    for item in dict.fromkeys(keep) or numbers:
        match = _KEPT.fullmatch(item)
        assert match is not None
        some = kept([match["key"] + match["index"]], numbers)[match["key"] + match["index"]]
        if match["op"] and some.size > COMPILED_UP_TO:
            return None
        places.append((match["key"], match["op"], some.ravel().tolist()))
        items.append((item, () if match["op"] else some.shape[1:]))

    def text(columns: Sequence[Any]) -> list[Any]:
        of = {name: column for (name, _), column in zip(shapes, columns, strict=True)}
        return [REDUCTIONS[op][1](of[key][some]) if op else of[key][some] for key, op, some in places]

    return items, text


__all__ = ["REDUCTIONS", "check_keep", "kept", "key_of", "reduced", "text_of"]
