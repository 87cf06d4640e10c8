"""What the columns of a recording are: kind, joint and unit, from their names.

`q1`, `q_shoulder`, `tau1 [mN·m]`, `t (ms)`, `velocity_elbow`: a kind, a number or the name of a joint, and a unit in
brackets where it is not that of SI. Numbers count from one, or all from zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from polybody.errors import InputError
from polybody.late import dataclass
from polybody.names import listed, nearest

#: kind: what columns of it may be called
WORDS = {
    "t": ("t", "time", "timestamp"),
    "q": ("q", "pos", "position"),
    "v": ("v", "qd", "dq", "vel", "velocity"),
    "tau": ("tau", "torque", "effort", "force"),
    "i": ("i", "current"),
}
KINDS = {word: kind for kind, words in WORDS.items() for word in words}
#: kind: {unit: its value in SI units}
UNITS: dict[str, dict[str, float]] = {
    "t": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    "q": {"rad": 1.0, "m": 1.0, "deg": math.pi / 180, "turn": 2 * math.pi, "mm": 1e-3, "cm": 1e-2},
    "v": {
        "rad/s": 1.0, "m/s": 1.0, "deg/s": math.pi / 180, "rpm": 2 * math.pi / 60, "mm/s": 1e-3, "cm/s": 1e-2,
    },
    "tau": {"Nm": 1.0, "N": 1.0, "mNm": 1e-3, "Nmm": 1e-3, "Ncm": 1e-2, "kNm": 1e3, "mN": 1e-3, "kN": 1e3},
    "i": {"A": 1.0, "mA": 1e-3},
}  # fmt: skip
_WORDS = "|".join(sorted(KINDS, key=len, reverse=True))
_COLUMN = re.compile(rf"(?P<word>{_WORDS})(?:_?(?P<number>\d+)|_(?P<name>.+))?", re.IGNORECASE)
_WITH_UNIT = re.compile(r"(?P<column>.*?)\s*(?:\[(?P<square>[^\]]*)\]|\((?P<round>[^)]*)\))")


@dataclass(frozen=True)
class Column:
    """A column of a recording."""

    kind: str  # t, q, v, tau or i
    key: str  # name or number of its joint; empty for times
    unit: str | None  # as it is written


def column(text: str) -> Column | None:
    """What a column's name says; None where it is none of a recording."""
    found = _WITH_UNIT.fullmatch(text.strip())
    name, unit = (text.strip(), None) if found is None else (found["column"], found["square"] or found["round"] or None)
    match = _COLUMN.fullmatch(name)
    if match is None:
        return None
    return Column(KINDS[match["word"].lower()], match["name"] or match["number"] or "", unit)


def factor(kind: str, unit: str, where: str) -> float:
    """The value of a unit in SI units."""
    plain = re.sub(r"[\s·*⋅.]", "", unit).replace("°", "deg").replace("µ", "u").replace("μ", "u")
    if plain not in UNITS[kind]:
        raise InputError(f"{where}: no unit {unit!r}{nearest(plain, UNITS[kind])}; available: {listed(UNITS[kind])}")
    return UNITS[kind][plain]


def factors(units: Mapping[str, str] | None) -> dict[str, float]:
    """{kind: factor} of units that are given for whole kinds."""
    for kind in units or {}:
        if kind not in UNITS:
            raise InputError(f"units: no quantity {kind!r}; available: {', '.join(UNITS)}")
    return {kind: factor(kind, unit, f"units of {kind}") for kind, unit in (units or {}).items()}


__all__ = ["UNITS", "WORDS", "Column", "column", "factor", "factors"]
