"""How many operations a CasADi function takes, by kind."""

from __future__ import annotations

from typing import Any

from polybody.late import dataclass


@dataclass(frozen=True)
class Counts:
    """Operations of one evaluation: multiplications and divisions, additions and subtractions, sines and cosines."""

    multiplications: int
    additions: int
    sines: int
    others: int

    @property
    def total(self) -> int:
        return self.multiplications + self.additions + self.sines + self.others


def operation_counts(function: Any) -> Counts:
    """Counts of a casadi.Function over SX, after common subexpressions are shared. A negation is not counted."""
    import casadi as ca

    inputs = function.sx_in()
    shared = ca.Function("shared", inputs, ca.cse(function.call(inputs)))
    kinds = {
        ca.OP_MUL: "m",
        ca.OP_DIV: "m",
        ca.OP_SQ: "m",
        ca.OP_INV: "m",
        ca.OP_ADD: "a",
        ca.OP_SUB: "a",
        ca.OP_TWICE: "a",
        ca.OP_SIN: "s",
        ca.OP_COS: "s",
    }
    free = {ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_NEG, ca.OP_PARAMETER, ca.OP_ASSIGN}
    found = {"m": 0, "a": 0, "s": 0, "o": 0}
    for k in range(shared.n_instructions()):
        operation = shared.instruction_id(k)
        if operation not in free:
            found[kinds.get(operation, "o")] += 1
    return Counts(found["m"], found["a"], found["s"], found["o"])


__all__ = ["Counts", "operation_counts"]
