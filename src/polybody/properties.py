"""Properties that are computed once, without a lock.

Up to Python 3.11 `functools.cached_property` holds a lock of its class while it computes: two threads that compute two
such properties of any two objects in opposite order wait for each other for ever, and a child forked meanwhile finds
the lock taken by a thread that it does not have. Here two threads may both compute, as from Python 3.12 on.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    cached_property = functools.cached_property
else:
    from contextlib import nullcontext

    class cached_property(functools.cached_property):
        """`functools.cached_property` as it is from Python 3.12 on."""

        def __init__(self, func):
            super().__init__(func)
            self.lock = nullcontext()


__all__ = ["cached_property"]
