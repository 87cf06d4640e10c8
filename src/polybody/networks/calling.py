"""Functions of a network at one state after the other: by CasADi at first, by a kernel once calls have paid for it.

What a run evaluates is one expression of all its parts; with a large robot among them it has 20,000 operations. CasADi
evaluates it in 3 ns per operation as it stands. To read it for a kernel takes some 7,000 ns per operation, as much as
2,000 evaluations: a run of fewer is over before a kernel would be there. A small function is read at once, and so is
one whose kernel is on the disk. Many columns count as so many evaluations: those of a run's audit alone bring no
kernel. CasADi does not fuse products with sums, so that the last digit of a run may differ from that of a later one,
which has the kernel; with POLYBODY_TIER=optimised all have it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from polybody.model.tracing import compiled, is_on_disk
from polybody.properties import cached_property

Array = np.ndarray
SMALL = 1_000  # operations up to which a kernel is made at once
PAID = 2_000  # evaluations by CasADi that take as long as making a kernel


class Called:
    """s -> the values of a casadi.Function of one column, as an array of a shape; many columns at once as rows of s."""

    def __init__(self, name: str, function: Any, shape: tuple[int, ...]) -> None:
        from polybody.kernels import background

        self.name, self.function, self.shape = name, function, shape
        at_once = background.tier() == "optimised" or function.n_instructions() <= SMALL or is_on_disk(*self._kept)
        self.left = 0 if at_once else PAID
        self._buffers: list[Any] = []

    def __call__(self, s: Array) -> Array:
        if self.left <= 0:
            return self._kernel.call(s)
        self.left -= s.size // s.shape[-1]
        if s.ndim > 1:
            columns = np.asarray(self.function(s.reshape(-1, s.shape[-1]).T)).T
            return np.ascontiguousarray(columns).reshape(*s.shape[:-1], *self.shape)
        try:  # a thread that comes meanwhile gets one of its own
            buffer, evaluate = self._buffers.pop()
        except IndexError:
            buffer, evaluate = self.function.buffer()
        given, found = np.array(s, dtype=float), np.zeros(self.shape)
        buffer.set_arg(0, given.data)
        buffer.set_res(0, found.data)
        evaluate()
        self._buffers.append((buffer, evaluate))
        return found

    @cached_property
    def _kept(self) -> tuple[Any, ...]:
        key = hashlib.sha256(self.function.serialize().encode()).hexdigest()
        return self.name, [("s", self.function.size1_in(0))], [("r", self.shape)], key

    @cached_property
    def _kernel(self) -> Any:
        name, inputs, outputs, key = self._kept
        return compiled(name, inputs, outputs, lambda: self.function, key)


__all__ = ["Called"]
