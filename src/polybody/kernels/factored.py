"""Results that are products of tables: a tape computes A, B₁, B₂, … and C₁, C₂, …, loops multiply them.

    P_k = C_k − A B_k,    results P₁, P₂, …, A           A is n × n, B_k and C_k are n × m_k

Written as straight-line code the products of a humanoid's derivatives are 41,000 operations after 31,000 others: three
quarters of a megabyte of code that is fetched for every block of states. As products of whole arrays, state by state,
they took three quarters of the time. Here they are loops over vectors of `lanes` states, while the tables are in the
cache.

Most entries of B_k are zero in every state: column j has others only in the rows of its *support* S_j, and

    P_ij = C_ij − Σ_{l ∈ S_j} A_il B_lj

Columns with the same support are computed together, some at a time, for some rows of A (`factored_rows`). Terms are
added in ascending order of l, each in one rounding where the processor has that, and the few entries of C that are not
zero at last, so that the fast tier (`interpret`) gets the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from polybody.errors import InputError
from polybody.kernels.tape import CONST, Tape, divided_once
from polybody.late import dataclass
from polybody.properties import cached_property


@dataclass(frozen=True)
class Factored:
    """A tape whose outputs are A, B₁, B₂, …, C₁, C₂, …, row-major."""

    tape: Tape

    @cached_property
    def order(self) -> int:
        """n"""
        first, *others = (len(x) for x in self.tape.outputs)
        n, half = math.isqrt(first), len(others) // 2
        if n * n != first or n == 0 or others[:half] != others[half:] or any(size % n for size in others):
            raise InputError(f"tables of {[first, *others]} numbers cannot be multiplied; expected n n, n m, …, n m, …")
        return n

    @cached_property
    def right(self) -> list[list[int]]:
        """The nodes of B₁, B₂, …"""
        return self.tape.outputs[1 : 1 + len(self.tape.outputs) // 2]

    def added(self, k: int) -> dict[int, int]:
        """The nodes of those entries of C_k that are not zero."""
        table = self.tape.outputs[1 + len(self.right) + k]
        return {at: node for at, node in enumerate(table) if not self._is_zero(node)}

    @cached_property
    def widths(self) -> list[int]:
        """m₁, m₂, …"""
        return [len(B) // self.order for B in self.right]

    @property
    def result_sizes(self) -> list[int]:
        return [len(x) for x in (*self.right, self.tape.outputs[0])]

    def supports(self, k: int) -> list[tuple[int, ...]]:
        """S_j of every column of B_k."""
        m, B = self.widths[k], self.right[k]
        return [tuple(l for l in range(self.order) if not self._is_zero(B[l * m + j])) for j in range(m)]

    def _is_zero(self, node: int) -> bool:
        op, value, _ = self.tape.nodes[node]
        return op == CONST and value == 0

    def terms(self) -> int:
        """Products of two numbers."""
        return self.order * sum(len(support) for k in range(len(self.right)) for support in self.supports(k))

    def operations(self) -> int:
        return self.tape.operations() + self.terms()

    def work(self) -> int:
        return self.tape.work() + self.terms()

    @property
    def input_sizes(self) -> Sequence[int]:
        return self.tape.input_sizes

    def prepared(self) -> Factored:
        """As it is computed."""
        return replace(self, tape=divided_once(self.tape))


__all__ = ["Factored"]
