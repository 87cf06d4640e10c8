"""Units of parameters: "2.2 kohm" is 2200 where ohms are expected, and an error where newtons are.

A unit is a product of named units with SI prefixes and whole powers: `N m/rad`, `kg m^2`, `V s`, `mm`, `uF`. Its
dimension is a vector of powers of (metre, kilogram, second, ampere); angles have none.
"""

from __future__ import annotations

import math
import re
from typing import Any

from polybody.errors import InputError

Dimension = tuple[int, int, int, int]

#: unit: (factor to SI, powers of m, kg, s, A)
UNITS: dict[str, tuple[float, Dimension]] = {
    "m": (1.0, (1, 0, 0, 0)), "g": (1e-3, (0, 1, 0, 0)), "s": (1.0, (0, 0, 1, 0)), "A": (1.0, (0, 0, 0, 1)),
    "rad": (1.0, (0, 0, 0, 0)), "deg": (math.pi / 180, (0, 0, 0, 0)), "turn": (2 * math.pi, (0, 0, 0, 0)),
    "rpm": (math.pi / 30, (0, 0, -1, 0)), "Hz": (1.0, (0, 0, -1, 0)), "min": (60.0, (0, 0, 1, 0)),
    "N": (1.0, (1, 1, -2, 0)), "Nm": (1.0, (2, 1, -2, 0)), "J": (1.0, (2, 1, -2, 0)), "W": (1.0, (2, 1, -3, 0)),
    "Pa": (1.0, (-1, 1, -2, 0)), "bar": (1e5, (-1, 1, -2, 0)), "l": (1e-3, (3, 0, 0, 0)),
    "V": (1.0, (2, 1, -3, -1)), "ohm": (1.0, (2, 1, -3, -2)), "Ω": (1.0, (2, 1, -3, -2)),
    "S": (1.0, (-2, -1, 3, 2)), "H": (1.0, (2, 1, -2, -2)), "F": (1.0, (-2, -1, 4, 2)), "Wb": (1.0, (2, 1, -2, -1)),
    "C": (1.0, (0, 0, 1, 1)), "%": (0.01, (0, 0, 0, 0)),
}  # fmt: skip
PREFIXES = {"p": 1e-12, "n": 1e-9, "u": 1e-6, "µ": 1e-6, "m": 1e-3, "c": 1e-2, "k": 1e3, "M": 1e6, "G": 1e9}
_NUMBER = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*)", re.DOTALL)
_FACTOR = re.compile(r"([A-Za-zΩµ%]+)(?:\^(-?\d)|([²³]))?")


def unit_of(text: str) -> tuple[float, Dimension]:
    """(factor to SI, dimension) of a unit's text; "" is a plain number."""
    factor, powers, sign = 1.0, [0, 0, 0, 0], 1
    rest = text.strip()
    while rest:
        if rest[0] in " *·":
            rest = rest[1:]
            continue
        if rest[0] == "/":
            sign, rest = -1, rest[1:].lstrip()
            continue
        if rest[0] == "1" and sign == 1:
            rest = rest[1:]
            continue
        match = _FACTOR.match(rest)
        if match is None:
            raise InputError(f"the unit {text!r} is not understood at {rest!r}")
        size, dimension = _named(match[1], text)
        power = sign * (int(match[2]) if match[2] else {"²": 2, "³": 3}.get(match[3], 1))
        factor *= size**power
        powers = [a + power * b for a, b in zip(powers, dimension, strict=True)]
        rest = rest[match.end() :]
    return factor, (powers[0], powers[1], powers[2], powers[3])


def _named(name: str, text: str) -> tuple[float, Dimension]:
    if name in UNITS:
        return UNITS[name]
    if name[:1] in PREFIXES and name[1:] in UNITS:
        size, dimension = UNITS[name[1:]]
        return PREFIXES[name[0]] * size, dimension
    raise InputError(f"there is no unit {name!r} in {text!r}; units are {', '.join(UNITS)}, with prefixes "
                     f"{', '.join(PREFIXES)}")


def value_of(given: Any, unit: str, what: str) -> float:
    """A finite number in SI units from a number or a text with a unit of the wanted dimension."""
    if isinstance(given, str):
        match = _NUMBER.fullmatch(given)
        if match is None:
            raise InputError(f"{what} is {given!r}, expected a number{f' in {unit}' if unit else ''}")
        value = float(match[1])
        if match[2].strip():
            try:
                factor, dimension = unit_of(match[2])
            except InputError as error:
                raise InputError(f"{what} is {given!r}: {error}") from None
            if dimension != unit_of(unit)[1]:
                wanted = f"in {unit}" if unit else "without a unit"
                raise InputError(f"{what} is {given!r}; expected a number {wanted}, not in {match[2].strip()}")
            value *= factor
    elif isinstance(given, bool) or (not isinstance(given, (int, float)) and not hasattr(given, "__float__")):
        raise InputError(f"{what} is {given!r}, expected a number{f' in {unit}' if unit else ''}")
    else:
        value = float(given)
    if not math.isfinite(value):
        raise InputError(f"{what} is {given!r}, expected a finite number{f' in {unit}' if unit else ''}")
    return value


__all__ = ["UNITS", "Dimension", "unit_of", "value_of"]
