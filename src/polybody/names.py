"""Names in messages: which one was meant, and which ones there are. Every layer may import this."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: Comparing names letter by letter is slow: so many of them are compared, and none that is longer.
_COMPARED, _LONGEST = 200, 80


def nearest(name: str, names: Iterable[str]) -> str:
    """ " (did you mean 'x'?)", or nothing where no name is near.

    Of many names only those that begin or end as the wanted one are compared: the answer is a help, and must not take
    longer than the work it is given in.
    """
    every = list(names)
    if len(every) > _COMPARED:
        every = [other for other in every if other[:3] == name[:3] or other[-3:] == name[-3:]]
        every = sorted(every, key=lambda other: abs(len(other) - len(name)))[:_COMPARED]
    if len(name) > _LONGEST:
        return ""
    found = difflib.get_close_matches(name, [other for other in every if len(other) <= _LONGEST], n=1, cutoff=0.5)
    return f" (did you mean {found[0]!r}?)" if found else ""


def listed(names: Iterable[str], most: int = 12) -> str:
    """The names, comma-separated; only the first `most` of many."""
    every = list(names)
    text = ", ".join(every[:most])
    return f"{text} and {len(every) - most} more" if len(every) > most else text


def counted(number: int, one: str, several: str | None = None) -> str:
    """ "1 loop", "2 loops": a number with its noun, whose plural is `one` and an s where none is given."""
    return f"{number} {one if number == 1 else several or one + 's'}"


__all__ = ["counted", "listed", "nearest"]
