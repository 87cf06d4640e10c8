"""Names in messages: which one was meant, and which ones there are. Every layer may import this."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str:
    """ " (did you mean 'x'?)", or nothing where no name is near."""
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f" (did you mean {found[0]!r}?)" if found else ""


def listed(names: Iterable[str], most: int = 12) -> str:
    """The names, comma-separated; only the first `most` of many."""
    every = list(names)
    text = ", ".join(every[:most])
    return f"{text} and {len(every) - most} more" if len(every) > most else text


__all__ = ["listed", "nearest"]
