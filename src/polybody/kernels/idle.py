"""What a call has made ready and the next one of the same kind can use: loops and fields with their working memory.

Making a loop ready (finding its code by digests, allocating what it works in) takes longer than twenty steps of a small
arm. Whoever is done with one gives it back; whoever needs one of the same key takes it, and nobody else has it
meanwhile. What is given must hold nothing of its last user's.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from polybody.kernels.locks import Lock

T = TypeVar("T")


class Idle(Generic[T]):
    """At most `most` things, few enough to look through; those that waited longest go first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: list[tuple[Hashable, T]] = []
        self._lock = Lock()

    def take(self, key: Hashable) -> T | None:
        """One of this key, which is the caller's now: the one that was given last."""
        with self._lock:
            for k in range(len(self._waiting) - 1, -1, -1):
                if self._waiting[k][0] == key:
                    return self._waiting.pop(k)[1]
        return None

    def give(self, key: Hashable, thing: T) -> None:
        """Let others have it."""
        with self._lock:
            self._waiting.append((key, thing))
            del self._waiting[: -self._most]


__all__ = ["Idle"]
