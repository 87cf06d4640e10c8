"""Expression graphs to SIMD machine code, called on batches of states.

Knows CasADi functions and arrays, nothing of robots. `build` compiles a straight-line kernel; `threads` says how many
threads batches use.
"""

from __future__ import annotations

from polybody.kernels.kernel import Kernel, build
from polybody.kernels.pool import thread_count, threads

__all__ = ["Kernel", "build", "thread_count", "threads"]
