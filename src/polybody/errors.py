"""The errors and warnings that polybody raises on purpose.

Every deliberate error derives from `PolybodyError`. Where the input is at fault it is an `InputError`, which is a
`ValueError` too. A message says what is wrong, where (file, line, element, index) and what would be right.
"""

from __future__ import annotations


class PolybodyError(Exception):
    """Base of every error polybody raises deliberately."""


class InputError(PolybodyError, ValueError):
    """Something the caller or a file supplied is wrong."""


class PolybodyWarning(UserWarning):
    """Something is unusual but was accepted."""


__all__ = ["InputError", "PolybodyError", "PolybodyWarning"]
