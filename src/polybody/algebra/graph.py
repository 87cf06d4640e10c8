"""Scalars of an expression graph that live well inside numpy arrays.

A `Node` is one operation on other nodes and floats, or a leaf: a scalar `casadi.SX`. It folds what is known: a product
with zero is the float 0.0, a product with one is the other factor, and so on; signs are pulled out of products and
become differences in sums. Constants stay Python floats.

Nodes are plain Python objects, because tracing a robot makes tens of thousands of them and nobody looks at most:
`Node.sx` makes the CasADi expression where one is requested (to differentiate, to export), and `operands` lists the
graph for who reads it without CasADi.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

_NUMBERS = (float, int, np.number)
_serial = itertools.count().__next__

LEAF = ""
ADD, SUB, MUL, DIV, NEG, SQ = "OP_ADD", "OP_SUB", "OP_MUL", "OP_DIV", "OP_NEG", "OP_SQ"
LT, NOT, IF_ELSE_ZERO = "OP_LT", "OP_NOT", "OP_IF_ELSE_ZERO"


@functools.cache
def _casadi() -> Any:
    import casadi

    return casadi


@functools.lru_cache(maxsize=4096)
def number(value: Any) -> Any:
    """A constant as a 1×1 casadi.SX, which is never changed."""
    return _casadi().SX(float(value))


class Node:
    """One scalar of an expression graph: `op` by the name of CasADi's code on `a` (and `b`), or a leaf.

    `serial` grows with every node: those of operands are smaller than a result's.
    """

    __slots__ = ("_sx", "a", "b", "op", "serial")

    def __init__(self, op: str, a: Any = None, b: Any = None, sx: Any = None) -> None:
        self.op = op  # one by one: four at once go through a tuple
        self.a = a
        self.b = b
        self._sx = sx
        self.serial = _serial()

    @property
    def sx(self) -> Any:
        """The 1×1 casadi.SX."""
        if self._sx is None:
            express((self,))
        return self._sx

    def __add__(self, other: Any) -> Any:
        if type(other) is Node:
            op, others = self.op, other.op
            if others is NEG:
                return self - other.a
            if op is NEG:
                return other - self.a
            if op is SUB and same(self.b, other):
                return self.a
            if others is SUB and same(other.b, self):
                return other.a
            if op is others:
                if op is SQ and _are_sine_and_cosine(self.a, other.a):
                    return 1.0
                if same(self, other):
                    return self * 2.0
            return Node(ADD, self, other)
        if type(other) is float or isinstance(other, _NUMBERS):
            return self._plus(float(other))
        return NotImplemented

    __radd__ = __add__

    def _plus(self, c: float) -> Any:
        if c == 0:
            return self
        if self.op is ADD and type(self.b) is float:
            return self.a._plus(self.b + c)
        if self.op is SUB and type(self.a) is float:
            return (self.a + c) - self.b
        return c - self.a if self.op is NEG else Node(ADD, self, c)

    def __neg__(self) -> Any:
        return self.a if self.op is NEG else self.b - self.a if self.op is SUB else Node(NEG, self)

    def __sub__(self, other: Any) -> Any:
        if type(other) is Node:
            op = self.op
            if other.op is NEG:
                return self + other.a
            if op is other.op and same(self, other):
                return 0.0
            if op is NEG:
                return -(self.a + other)
            if op is ADD:
                if same(self.b, other):
                    return self.a
                if same(self.a, other):
                    return self.b
            if other.op is ADD:
                if same(other.b, self):
                    return -other.a
                if same(other.a, self):
                    return -other.b
            return Node(SUB, self, other)
        if type(other) is float or isinstance(other, _NUMBERS):
            return self._plus(-float(other))
        return NotImplemented

    def __rsub__(self, other: Any) -> Any:
        if type(other) is float or isinstance(other, _NUMBERS):
            if other == 0:
                return -self
            if self.op is NEG:
                return self.a._plus(float(other))
            if self.op is SUB and type(self.a) is float:
                return self.b._plus(float(other) - self.a)
            if self.op is ADD and type(self.b) is float:
                return (float(other) - self.b) - self.a
            return Node(SUB, float(other), self)
        return NotImplemented

    def __mul__(self, other: Any) -> Any:
        if type(other) is Node:
            op, others = self.op, other.op
            if op is NEG:
                return -(self.a * other)
            if others is NEG:
                return -(self * other.a)
            return Node(SQ, self) if op is others and same(self, other) else Node(MUL, self, other)
        if type(other) is float or isinstance(other, _NUMBERS):
            if other == 0:
                return 0.0
            if other == 1:
                return self
            if other < 0:  # one product for both signs
                return -(self * -other)
            if self.op is NEG:
                return -(self.a * other)
            if self.op is MUL and type(self.b) is float:
                return self.a * (self.b * float(other))
            return Node(MUL, self, float(other))
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if type(other) is Node:
            if same(self, other):
                return 1.0
            if self.op is NEG:
                return -(self.a / other)
            return -(self / other.a) if other.op is NEG else Node(DIV, self, other)
        if isinstance(other, _NUMBERS):
            return self if other == 1 else self * (1.0 / float(other))
        return NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        if isinstance(other, _NUMBERS):
            return 0.0 if other == 0 else Node(DIV, float(other), self)
        return NotImplemented

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, int) and other == 2:
            return self * self
        return Node("OP_POW", self, other if isinstance(other, Node) else float(other))

    def __lt__(self, other: Any) -> Any:
        return Node(LT, self, other if isinstance(other, Node) else float(other))

    def __gt__(self, other: Any) -> Any:
        return Node(LT, other if isinstance(other, Node) else float(other), self)

    def __eq__(self, other: object) -> bool:
        """Structural: the same node. Never a symbolic condition."""
        if self is other:
            return True
        if isinstance(other, Node) and self.op is LEAF and other.op is LEAF:
            # not `__hash__`, in which CasADi catches everything, interrupts too
            return self._sx.element_hash() == other._sx.element_hash()
        return False

    def __hash__(self) -> int:
        return int(self._sx.element_hash()) if self.op is LEAF else id(self) >> 4

    def __repr__(self) -> str:
        return f"Node({self.sx})"


def same(x: Any, y: Any) -> bool:
    """Whether two nodes are one, or the same operation on the same operands."""
    if x is y:
        return True
    if type(x) is not Node or type(y) is not Node or x.op is not y.op:
        return False
    return x == y if x.op is LEAF else _one(x.a, y.a) and _one(x.b, y.b)


def _one(x: Any, y: Any) -> bool:
    return x is y or (type(x) is float and type(y) is float and x == y)


def _are_sine_and_cosine(x: Node, y: Node) -> bool:
    return {x.op, y.op} == {"OP_SIN", "OP_COS"} and same(x.a, y.a)


def unary(op: str, x: Node) -> Node:
    """A function of one scalar by the name of its code, such as "OP_SIN"."""
    return Node(op, x)


def binary(op: str, x: Any, y: Any) -> Node:
    """A function of two scalars, of which one may be a float."""
    return Node(op, x, y)


def choice(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where the condition is not zero, else `no`."""
    taken = 0.0 if _is_number(yes, 0.0) else Node(IF_ELSE_ZERO, condition, yes)
    left = 0.0 if _is_number(no, 0.0) else Node(IF_ELSE_ZERO, Node(NOT, condition), no)
    return taken + left


def _is_number(x: Any, value: float) -> bool:
    return not isinstance(x, Node) and float(x) == value and math.copysign(1.0, float(x)) == 1.0


def leaf(sx: Any) -> Any:
    """A scalar casadi.SX as a node, or as a float where it is a constant."""
    return float(sx) if sx.is_constant() else Node(LEAF, sx=sx)


def operands(roots: Iterable[Any], stop: Container[int] = ()) -> list[Node]:
    """Every node that the roots need, operands before results; not what those with serials in `stop` need."""
    found = {x.serial: x for x in roots if type(x) is Node}
    stack = list(found.values())
    pop, push, kind = stack.pop, stack.append, Node
    while stack:
        x = pop()
        while not stop or x.serial not in stop:  # on the way of every first answer: inwards along a, b is for later
            y = x.b
            if type(y) is kind and (serial := y.serial) not in found:
                found[serial] = y
                push(y)
            y = x.a  # a leaf has none
            if type(y) is not kind or (serial := y.serial) in found:
                break
            found[serial] = x = y
    return [found[serial] for serial in sorted(found)]


def inwards(roots: Iterable[Any]) -> list[Node]:
    """Every node that the roots need, operands before results, each shortly before its first use."""
    seen: set[int] = set()
    found: list[Node] = []
    for root in roots:
        stack = [root] if type(root) is Node else []
        while stack:
            x = stack[-1]
            if x.serial in seen:
                stack.pop()
                continue
            a, b = (x.a, x.b) if x.op is not LEAF else (None, None)
            if type(a) is Node and a.serial not in seen:
                stack.append(a)
            elif type(b) is Node and b.serial not in seen:
                stack.append(b)
            else:
                seen.add(x.serial)
                found.append(x)
                stack.pop()
    return found


def distinct(roots: Iterable[Any]) -> int:
    """How many different operations the roots need: equal ones are counted once."""
    numbers: dict[tuple[Any, ...], int] = {}
    place: dict[int, int] = {}
    for x in operands(roots):
        if x.op is LEAF:
            key: tuple[Any, ...] = (x.op, hash(x))
        else:
            key = (x.op, *(place[y.serial] if type(y) is Node else (y,) for y in (x.a, x.b)))
        place[x.serial] = numbers.setdefault(key, len(numbers))
    return sum(key[0] is not LEAF for key in numbers)


def rates(outputs: Iterable[Any], directions: Iterable[dict[int, Any]]) -> list[list[Any]]:
    """The rates of scalars where nodes change at rates given by their serials and no other leaf does.

    The directions, for each of which the rates are returned, are of the same nodes.
    """
    outputs, directions = list(outputs), list(directions)
    given = directions[0] if directions else {}
    order = [
        (x.serial, x.a.serial if type(x.a) is Node else -1, x.b.serial if type(x.b) is Node else -1, x)
        for x in operands(outputs, stop=given) if x.op is not LEAF and x.serial not in given
    ]  # fmt: skip
    users = _users(order) if len(directions) > SEVERAL else None
    found = []
    for seeds in directions:
        known = {serial: rate for serial, rate in seeds.items() if not _is_still(rate)}  # all others are zero
        rate_of = known.get
        for serial, left, right, x in order if users is None else _reached(known, order, users):
            da, db = rate_of(left, STILL), rate_of(right, STILL)
            if da is STILL and db is STILL:
                continue
            rule = RULES.get(x.op)
            if rule is None:
                raise TypeError(f"the graph's operation {x.op} has no derivative here")
            rate = rule(x, x.a, x.b, da, db)
            if not _is_still(rate):
                known[serial] = rate
        found.append([rate_of(x.serial, STILL) if type(x) is Node else STILL for x in outputs])
    return found


SEVERAL = 3  # directions from which on it pays to look for what each of them changes
Step = tuple[int, int, int, Node]  # the serials of a node and of its operands, and the node


def _users(order: Sequence[Step]) -> dict[int, list[int]]:
    """Where in the order the users of each node stand."""
    users: dict[int, list[int]] = {}
    for k, (_, left, right, _) in enumerate(order):
        users.setdefault(left, []).append(k)
        users.setdefault(right, []).append(k)
    return users


def _reached(known: Iterable[int], order: Sequence[Step], users: Mapping[int, list[int]]) -> list[Step]:
    """The part of the order that nodes change: of a joint of one leg, that leg."""
    seen: set[int] = set()
    stack = list(known)
    while stack:
        for k in users.get(stack.pop(), ()):
            if k not in seen:
                seen.add(k)
                stack.append(order[k][0])
    return [order[k] for k in sorted(seen)]


STILL = 0.0  # the rate of what does not change: products with it and sums cost nothing


def _is_still(rate: Any) -> bool:
    return type(rate) is float and rate == 0.0


def replayed(
    outputs: Sequence[Any], given: Mapping[int, Any], order: Iterable[Node] | None = None
) -> list[Any] | None:
    """The same graph with other values in the place of some leaves, by serial, in a fraction of the time of its text.

    `order` is `inwards(outputs)`, where it is known. None where a leaf is an expression of its own, which may hold such
    a leaf inside.
    """
    known: dict[int, Any] = dict(given)
    for x in inwards(outputs) if order is None else order:
        if x.serial in known:
            continue
        if x.op is LEAF:
            if not x.sx.is_symbolic():
                return None
            known[x.serial] = x
            continue
        a = known[x.a.serial] if type(x.a) is Node else x.a
        b = known[x.b.serial] if type(x.b) is Node else x.b
        known[x.serial] = x if a is x.a and b is x.b else Node(x.op, a, b)
    return [known[x.serial] if type(x) is Node else x for x in outputs]


RULES: dict[str, Any] = {
    ADD: lambda x, a, b, da, db: da + db,
    SUB: lambda x, a, b, da, db: da - db,
    NEG: lambda x, a, b, da, db: -da,
    MUL: lambda x, a, b, da, db: da * b + a * db,
    DIV: lambda x, a, b, da, db: (da - x * db) / b,
    SQ: lambda x, a, b, da, db: a * da * 2.0,
    "OP_SIN": lambda x, a, b, da, db: Node("OP_COS", a) * da,
    "OP_COS": lambda x, a, b, da, db: -(Node("OP_SIN", a) * da),
    "OP_SQRT": lambda x, a, b, da, db: da / (x * 2.0),
    "OP_TANH": lambda x, a, b, da, db: da - x * x * da,
    "OP_EXP": lambda x, a, b, da, db: x * da,
    "OP_LOG": lambda x, a, b, da, db: da / a,
    "OP_ATAN2": lambda x, a, b, da, db: (da * b - a * db) / (a * a + b * b),
    LT: lambda x, a, b, da, db: 0.0,
    NOT: lambda x, a, b, da, db: 0.0,
    IF_ELSE_ZERO: lambda x, a, b, da, db: 0.0 if _is_still(db) else Node(IF_ELSE_ZERO, a, db),
}


def express(roots: Iterable[Any]) -> None:
    """Give nodes and all that they need their CasADi expressions."""
    stack = [x for x in roots if type(x) is Node and x._sx is None]
    found = {x.serial: x for x in stack}
    while stack:
        x = stack.pop()
        for y in (x.a, x.b):
            if type(y) is Node and y._sx is None and y.serial not in found:
                found[y.serial] = y
                stack.append(y)
    ca = _casadi()
    unary, binary = ca._casadi.SX_unary, ca._casadi.SX_binary  # `SX.binary` calls nothing else
    codes: dict[str, int] = {}
    for serial in sorted(found):  # operands before results
        x = found[serial]
        a, b, code = x.a, x.b, codes.get(x.op)
        if code is None:
            code = codes[x.op] = getattr(ca, x.op)
        one = a._sx if type(a) is Node else number(a)
        if b is None:
            x._sx = unary(code, one)
        else:
            x._sx = binary(code, one, b._sx if type(b) is Node else number(b))


__all__ = ["ADD", "DIV", "LEAF", "MUL", "NEG", "RULES", "SQ", "SUB", "Node", "binary", "choice", "distinct", "express",
           "inwards", "leaf", "number", "operands", "rates", "replayed", "unary"]
