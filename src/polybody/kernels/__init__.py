"""Expression graphs to SIMD machine code, called on batches of states.

Knows CasADi functions and arrays, nothing of robots. `build` compiles a straight-line kernel, `scan.build` a rolled one
over a tree; `threads` says how many threads batches use; `cache` is where compiled code is kept; `csource` writes the
same functions as C; `methods.fast_method` lets methods of a class run kernels without Python code in between.
"""

from __future__ import annotations

from polybody.garbage import uncollected

with uncollected():
    from polybody.kernels import cache
    from polybody.kernels.kernel import Kernel, build, is_on_disk, prepare
    from polybody.kernels.pool import thread_count, threads

__all__ = ["Kernel", "build", "cache", "is_on_disk", "prepare", "thread_count", "threads"]
