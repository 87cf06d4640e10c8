"""The errors and warnings that polybody raises on purpose.

Every deliberate error derives from `PolybodyError`. Where the input is at fault it is an `InputError`, which is a
`ValueError` too. A message says what is wrong, where (file, line, element, index) and what would be right.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).resolve().parent)


class PolybodyError(Exception):
    """Base class of all errors that polybody raises deliberately."""


class InputError(PolybodyError, ValueError):
    """Invalid input from the caller or from a file."""


class PolybodyWarning(UserWarning):
    """Unusual input that was accepted."""


def warn(message: str) -> None:
    """Warn at the line of the caller: the innermost one that is not polybody's own."""
    level, frame = 2, sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, PolybodyWarning, stacklevel=level)


def refuse_masked(name: str, value: Any) -> None:
    """Raise an error about a masked array some of whose entries are masked: what is below a mask is no number."""
    if type(value).__module__.startswith("numpy.ma") and value.mask.any():
        raise InputError(f"{name} is a masked array with masked entries; expected numbers, e.g. of {name}.compressed()")


__all__ = ["InputError", "PolybodyError", "PolybodyWarning", "refuse_masked", "warn"]
