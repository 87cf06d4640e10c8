"""No search for garbage while a first answer is being made.

A first call imports packages and traces expression graphs: some hundred thousand objects, which stay. CPython would
look at all of them again and again meanwhile, and once more as soon as it may: 25 to 40 ms of a first simulation. So
what was made counts as old when it is over, and is looked at when old objects are. Of a process's later traces, of
which some are garbage, young objects are searched as usual.
"""

from __future__ import annotations

import gc

_first = 64  # times that what was made counts as old


class uncollected:
    """No search for garbage inside."""

    def __enter__(self) -> None:
        self._was = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was:
            _age()
            gc.enable()


def _age() -> None:
    """Let all objects count as old. Who has frozen some (for forks) keeps them so."""
    global _first
    if _first > 0 and hasattr(gc, "freeze") and not gc.get_freeze_count():
        _first -= 1
        gc.freeze()
        gc.unfreeze()


__all__ = ["uncollected"]
