"""Numbers as files write them: `0.3`, `1e-3`, `90deg`, `10cm`, `1/12`, `pi/2`, `-2*pi/3`, `.inf`.

A number may carry a unit of the dimension its place allows. Inside there are only SI units and radians.
"""

from __future__ import annotations

import math
import re

from polybody.description.limits import NUMBER_CHARACTERS
from polybody.errors import InputError

ANGLE, LENGTH, MASS = "angle", "length", "mass"

#: unit: (dimension, numerator, denominator); a division by 100 is exact where a product with 0.01 is not
UNITS: dict[str, tuple[str, float, float]] = {
    "rad": (ANGLE, 1, 1),
    "deg": (ANGLE, math.pi, 180),
    "turn": (ANGLE, 2 * math.pi, 1),
    "m": (LENGTH, 1, 1),
    "cm": (LENGTH, 1, 100),
    "mm": (LENGTH, 1, 1000),
    "in": (LENGTH, 0.0254, 1),
    "kg": (MASS, 1, 1),
    "g": (MASS, 1, 1000),
}

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_QUANTITY = re.compile(
    rf"(?P<sign>[-+]?)\s*(?:(?P<number>{_NUMBER})(?:\s*\*\s*(?P<pi>pi))?|(?P<only_pi>pi))"
    rf"(?:\s*/\s*(?P<divisor>{_NUMBER}))?\s*(?P<unit>[A-Za-z]*)"
)
_SPECIAL = {".inf": math.inf, "inf": math.inf, ".nan": math.nan, "nan": math.nan}


def quantity(text: str, dimensions: tuple[str, ...] = ()) -> float:
    """The number a text says, in SI units; a unit must be of one of the dimensions its place allows."""
    text = text.strip()
    if len(text) > NUMBER_CHARACTERS:
        raise InputError(f"{text!r:.40}… has {len(text)} characters; a number has at most {NUMBER_CHARACTERS}")
    bare = text.lstrip("+-").lower()
    if bare in _SPECIAL and len(text) - len(bare) <= 1:
        return -_SPECIAL[bare] if text[0] == "-" else _SPECIAL[bare]
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r:.60} is not a number{_examples(dimensions)}")
    value = float(match["number"]) if match["number"] else 1.0
    if match["pi"] or match["only_pi"]:
        value *= math.pi
    if match["divisor"]:
        divisor = float(match["divisor"])
        if divisor == 0:
            raise InputError(f"{text!r:.60} divides by zero")
        value /= divisor
    if match["unit"]:
        value = _converted(value, match["unit"], text, dimensions)
    return -value if match["sign"] == "-" else value


def dimension_of(text: str) -> str | None:
    """The dimension of the unit that a number is written with; None without a unit, or for what is not a number."""
    text = text.strip()
    match = _QUANTITY.fullmatch(text) if len(text) <= NUMBER_CHARACTERS else None
    return UNITS[match["unit"]][0] if match is not None and match["unit"] in UNITS else None


def _converted(value: float, unit: str, text: str, dimensions: tuple[str, ...]) -> float:
    if unit not in UNITS:
        raise InputError(f"{text!r:.60} has an unknown unit {unit!r}; available: {', '.join(UNITS)}")
    dimension, numerator, denominator = UNITS[unit]
    if dimension not in dimensions:
        known = [f"an {x}" if x[0] in "aeiou" else f"a {x}" for x in dimensions]
        wanted = " or ".join(known) if known else "a number without unit"
        raise InputError(f"{text!r:.60} is of the dimension {dimension}, expected {wanted}")
    return math.radians(value) if unit == "deg" else value * numerator / denominator


def _examples(dimensions: tuple[str, ...]) -> str:
    shown = {ANGLE: "90deg", LENGTH: "25cm", MASS: "300g"}
    return f" (as 0.3, 1/12 or {' or '.join(shown[d] for d in dimensions)})" if dimensions else " (as 0.3 or 1/12)"


__all__ = ["ANGLE", "LENGTH", "MASS", "UNITS", "dimension_of", "quantity"]
