"""Scalars of a CasADi expression graph that live well inside numpy arrays.

A bare `casadi.SX` claims every numpy operation it meets and answers with a CasADi matrix. `Node` wraps one scalar of
the graph so that numpy treats it as an opaque object, and folds what is known: a product with zero is the float 0.0,
a product with one is the other factor, and so on. Constants stay Python floats; only real operations reach CasADi,
and they do so by `SX.binary` and `SX.unary`: the overloaded operators spend eight times as long choosing an overload.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_NUMBERS = (int, float, np.number)


@functools.cache
def _casadi() -> Any:
    import casadi

    return casadi


@functools.cache
def _code(operation: str) -> int:
    return getattr(_casadi(), operation)


def _binary(operation: str, a: Any, b: Any) -> Any:
    return _casadi().SX.binary(_code(operation), a, b)


def unary(operation: str, a: Any) -> Any:
    """Apply a CasADi unary operation by its opcode's name, such as "OP_SIN"."""
    return _casadi().SX.unary(_code(operation), a)


@functools.lru_cache(maxsize=4096)
def number(value: Any) -> Any:
    """A constant as a 1×1 casadi.SX, which is never changed."""
    return _casadi().SX(float(value))


class Node:
    """One scalar of an expression graph; `sx` is its 1×1 casadi.SX."""

    __slots__ = ("sx",)

    def __init__(self, sx: Any) -> None:
        self.sx = sx

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Node):
            return folded(_binary("OP_ADD", self.sx, other.sx))
        if isinstance(other, _NUMBERS):
            return self if other == 0 else Node(_binary("OP_ADD", self.sx, number(other)))
        return NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Any:
        return Node(unary("OP_NEG", self.sx))

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Node):
            return folded(_binary("OP_SUB", self.sx, other.sx))
        if isinstance(other, _NUMBERS):
            return self if other == 0 else Node(_binary("OP_SUB", self.sx, number(other)))
        return NotImplemented

    def __rsub__(self, other: Any) -> Any:
        if isinstance(other, _NUMBERS):
            return -self if other == 0 else Node(_binary("OP_SUB", number(other), self.sx))
        return NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Node):
            return Node(_binary("OP_MUL", self.sx, other.sx))
        if isinstance(other, _NUMBERS):
            if other == 0:
                return 0.0
            if other == 1:
                return self
            return -self if other == -1 else Node(_binary("OP_MUL", self.sx, number(other)))
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Node):
            return folded(_binary("OP_DIV", self.sx, other.sx))
        if isinstance(other, _NUMBERS):
            return self if other == 1 else Node(_binary("OP_MUL", self.sx, number(1.0 / float(other))))
        return NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        if isinstance(other, _NUMBERS):
            return 0.0 if other == 0 else Node(_binary("OP_DIV", number(other), self.sx))
        return NotImplemented

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 2:
            return self * self
        return Node(_binary("OP_POW", self.sx, other.sx if isinstance(other, Node) else number(other)))

    def __lt__(self, other: Any) -> Any:
        return self.sx < (other.sx if isinstance(other, Node) else float(other))

    def __gt__(self, other: Any) -> Any:
        return self.sx > (other.sx if isinstance(other, Node) else float(other))

    def __eq__(self, other: object) -> bool:
        """Structural: the same node, or a constant node of that value. Never a symbolic condition."""
        if isinstance(other, Node):
            return self.sx.__hash__() == other.sx.__hash__()
        return False

    def __hash__(self) -> int:
        return int(self.sx.__hash__())

    def __repr__(self) -> str:
        return f"Node({self.sx})"


def folded(sx: Any) -> Any:
    """The scalar as a float where CasADi has found it constant, else as a node."""
    return float(sx) if sx.is_constant() else Node(sx)


__all__ = ["Node", "folded", "number", "unary"]
