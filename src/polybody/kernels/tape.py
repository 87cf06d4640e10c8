"""A CasADi function's instruction list as static single assignments.

CasADi's list reuses work registers. Here every instruction becomes one node `(op, a, b)` that is assigned once; equal
nodes are shared (value numbering), so that a repeated sine is computed once; nodes that no output needs vanish.

Where the processor fuses a product and a sum into one instruction, `fused` says which: an addition or subtraction takes
the product that nothing else uses. It is said here, not left to a compiler, so that all code made of a tape rounds
alike, whoever runs it (`interpret`, `emit`) and however many states there are side by side.

Sine, cosine and the other functions that are not a few machine instructions are *mapped*: all those whose arguments are
known at the same time form a `Wave`, are evaluated by one small loop over memory, and are read back where they are
used. In which order the rest is computed is decided in `schedule`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import Any

import casadi as ca
import numpy as np

from polybody.errors import InputError
from polybody.kernels.operations import ARITY, COMMUTATIVE, OPERATIONS, SINCOS
from polybody.late import dataclass, field

INPUT = -1  # a = argument index, b = element
CONST = -2  # a = the number

LONG = frozenset(op for op, operation in OPERATIONS.items() if operation.libm)  # not a few machine instructions
_SQ, _MUL = ca.OP_SQ, ca.OP_MUL
PASS_THROUGH = frozenset({ca.OP_ASSIGN, ca.OP_LIFT, ca.OP_PRINTME, ca.OP_MONITOR})
_OUTPUT = ca.OP_OUTPUT
#: CasADi's operations that are nodes as they stand
_COMPUTED = frozenset({*OPERATIONS, ca.OP_SQ}) - PASS_THROUGH - {ca.OP_INPUT, ca.OP_CONST, ca.OP_ERFINV}


# Functions evaluated together: name -> argument nodes -> the nodes that are their results (sine and cosine share a
# call).
Wave = dict[str, dict[tuple[int, ...], list[int]]]


#: how a product a b and a number c become one number: a b + c, a b − c, c − a b
KINDS = PLUS, MINUS, FROM = "plus", "minus", "from"


@dataclass
class Tape:
    """Nodes assigned once. `outputs[j][i]` is the node of element i of output j.

    `products[n]` = (kind, a, b, c) where node n is computed in one rounding from the factors of a product.
    """

    nodes: list[tuple[int, float, float]]
    outputs: list[list[int]]
    input_sizes: list[int]
    products: dict[int, tuple[str, int, int, int]] = field(default_factory=dict)
    _table: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False, compare=False)

    def arguments(self, node: int) -> tuple[int, ...]:
        op, a, b = self.nodes[node]
        if op < 0:
            return ()
        if node in self.products:
            return self.products[node][1:]
        return (int(a),) if ARITY[op] == 1 else (int(a), int(b))

    def mapped(self, node: int) -> str | None:
        """The name of the mapped function this node is a result of, if it is one."""
        op, _, b = self.nodes[node]
        if op in (ca.OP_POW, ca.OP_CONSTPOW) and self.small_power(int(b)) is not None:
            return None
        return OPERATIONS[op].libm or None if op >= 0 else None

    @property
    def result_sizes(self) -> list[int]:
        """Numbers of each output."""
        return [len(nodes) for nodes in self.outputs]

    def operations(self) -> int:
        """How many nodes compute something."""
        return int((self.columns()[0] >= 0).sum())

    def work(self) -> int:
        """The same weighted by time: a sine costs as much as 30 additions, a function of libm as much as 300."""
        named = [self.mapped(n) for n in np.flatnonzero(is_one_of(self.columns()[0], LONG)).tolist()]
        extra = sum(0 if name is None else 29 if name == SINCOS else 299 for name in named)
        return self.operations() + extra

    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """(op, arguments) of all nodes as arrays; arguments (nodes, 3), −1 where there is none, products as fused."""
        if self._table is None or len(self._table[0]) != len(self.nodes):
            self._table = table_of(self.nodes)
        op, given = self._table
        if self.products:
            given = given.copy()
            given[list(self.products)] = [product[1:] for product in self.products.values()]
        return op, given

    def asked(self) -> np.ndarray:
        """How often outputs are each node."""
        outputs = np.array([n for nodes in self.outputs for n in nodes], dtype=np.int64)
        return np.bincount(outputs, minlength=len(self.nodes))

    def small_power(self, node: int) -> float | None:
        """The exponent, if this node is a constant for which a few multiplications or a root are exact enough."""
        op, value, _ = self.nodes[node]
        if op == CONST and (value == 0.5 or (float(value).is_integer() and 0 <= value <= 4)):
            return value
        return None


class Builder:
    """Value numbering: asks for a node by its content, gets the one that exists."""

    def __init__(self) -> None:
        self.nodes: list[tuple[int, float, float]] = []
        self.numbers: dict[tuple[int, float | str, float], int] = {}

    def node(self, op: int, a: float, b: float = 0) -> int:
        if a > b and op in COMMUTATIVE:
            a, b = b, a
        elif op == _SQ:
            op, b = _MUL, a
        # float.hex tells 0.0 from -0.0 and one NaN equals another, neither of which == does.
        key = (op, float(a).hex(), 0) if op == CONST else (op, a, b)
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = len(self.nodes)
            self.nodes.append((op, a, b))
        return found


def from_function(function: ca.Function | Tape) -> Tape:
    """The tape of an SX function. Inputs and outputs must be dense columns. A tape is returned as it is."""
    if isinstance(function, Tape):
        return function
    if not function.is_a("SXFunction"):
        raise InputError(f"{function.name()} is a {function.class_name()}; kernels compile SX functions only")
    for k in range(function.n_in()):
        if not function.sparsity_in(k).is_dense():
            raise InputError(f"input {function.name_in(k)} of {function.name()} is sparse; it must be dense")
    for k in range(function.n_out()):
        if not function.sparsity_out(k).is_dense():
            raise InputError(f"output {function.name_out(k)} of {function.name()} is sparse; it must be dense")
    build = Builder()
    inputs = [[build.node(INPUT, k, i) for i in range(function.nnz_in(k))] for k in range(function.n_in())]
    outputs = inlined(build, function, inputs)
    return Tape(build.nodes, outputs, [function.nnz_in(k) for k in range(function.n_in())])


def inlined(build: Builder, function: ca.Function, inputs: list[list[int]]) -> list[list[int]]:
    """The nodes of a function's outputs, given those of its inputs."""
    registers: dict[int, int] = {}
    # CasADi emits no instruction for a result that is structurally zero
    outputs = [[build.node(CONST, 0.0)] * function.nnz_out(k) for k in range(function.n_out())]
    ops, inputs_of, outputs_of = _instructions(function)
    for k, (op, reads, writes) in enumerate(zip(ops, inputs_of, outputs_of, strict=True)):
        if op == _OUTPUT:
            out, element = writes
            outputs[out][element] = registers[reads[0]]
            continue
        (target,) = writes
        if op in _COMPUTED:
            registers[target] = build.node(op, *[registers[read] for read in reads[: ARITY.get(op, 1)]])
        elif op == ca.OP_INPUT:
            registers[target] = inputs[reads[0]][reads[1]]
        elif op == ca.OP_CONST:
            registers[target] = build.node(CONST, float(function.instruction_constant(k)))
        elif op in PASS_THROUGH:
            registers[target] = registers[reads[0]]
        elif op == ca.OP_ERFINV:
            registers[target] = inlined(build, _inverse_error_function(), [[registers[reads[0]]]])[0][0]
        else:
            raise InputError(f"{function.name()}: CasADi operation {op} is not one a kernel can compile")
    return outputs


def _instructions(function: ca.Function) -> list[list[Any]]:
    """(operations, what they read, what they write) of all instructions, by what CasADi's methods call: the methods
    themselves, in Python, take a third of the time of reading a function."""
    native: Any = getattr(ca.casadi, "_casadi")  # noqa: B009  not in its stubs
    count = function.n_instructions()
    names = ("Function_instruction_id", "Function_instruction_input", "Function_instruction_output")
    return [list(map(getattr(native, name), repeat(function), range(count))) for name in names]


@functools.cache
def _inverse_error_function() -> ca.Function:
    """erfinv by Winitzki's estimate and four Newton steps on erf, the sign restored last."""
    signed = ca.SX.sym("x")
    x = ca.fabs(signed)
    a = 0.147
    logarithm = ca.log((1 - x) * (1 + x))
    centre = 2 / (math.pi * a) + logarithm / 2
    y = ca.sqrt(ca.sqrt(centre * centre - logarithm / a) - centre)
    for _ in range(4):
        y = y - (ca.erf(y) - x) * ca.exp(y * y) * (math.sqrt(math.pi) / 2)
    y = ca.if_else(x == 1, math.inf, y)
    return ca.Function("erfinv", [signed], [ca.copysign(y, signed)])


def prepared(function: ca.Function | Tape) -> Tape:
    """The tape of a function as it is computed."""
    return divided_once(from_function(function))


def pruned(tape: Tape) -> Tape:
    """The same tape without the nodes that no output needs; inputs stay."""
    op, given = tape.columns()
    kept = op == INPUT
    kept[needed_of(given, tape.asked())] = True
    rows = np.flatnonzero(kept)
    new = np.append(np.cumsum(kept) - 1, -1)  # the last of arguments that are not there
    op, given = op[rows], new[given[rows]]
    nodes = list(zip(op.tolist(), given[:, 0].tolist(), np.maximum(given[:, 1], 0).tolist(), strict=True))
    for n in np.flatnonzero(op < 0).tolist():
        nodes[n] = tape.nodes[rows[n]]
    outputs = [new[np.array(own, dtype=np.int64)].tolist() for own in tape.outputs]
    return Tape(nodes, outputs, tape.input_sizes, _table=(op, given))


def divided_once(tape: Tape) -> Tape:
    """The same tape, with several divisions by one number made products with its reciprocal.

    CasADi does the opposite to every product with a reciprocal that a text writes. A division takes a processor as long
    as ten products: of the forward dynamics of a long chain, six of a joint's by its pivot, a tenth of the time.
    """
    op, given = tape.columns()
    divisions, inverses = np.flatnonzero(op == ca.OP_DIV), np.flatnonzero(op == ca.OP_INV)
    counts = np.bincount(np.concatenate([given[divisions, 1], given[inverses, 0]]), minlength=len(op))
    divisions = divisions[counts[given[divisions, 1]] > 1]
    if not len(divisions):
        return tape
    there = {b: n for n, b in zip(inverses.tolist(), given[inverses, 0].tolist(), strict=True)}
    made: dict[int, int] = {}  # {divisor: the division before which its reciprocal is put}
    for n, b in zip(divisions.tolist(), given[divisions, 1].tolist(), strict=True):
        if not there.get(b, n) < n:
            made.setdefault(b, n)
    late = np.array(sorted(there.pop(b) for b in list(made) if b in there), dtype=np.int64)  # these move forwards
    places = np.array(list(made.values()), dtype=np.int64)
    every = np.arange(len(op) + 1)
    new = every + np.searchsorted(places, every, side="right") - np.searchsorted(late, every)
    new[-1] = -1  # of arguments that are not there
    reciprocal = {b: int(new[n]) - 1 for b, n in made.items()}
    new[late] = [reciprocal[b] for b in given[late, 0].tolist()]
    op, given = op.copy(), new[given]
    op[divisions] = ca.OP_MUL
    for n, b in zip(divisions.tolist(), tape.columns()[1][divisions, 1].tolist(), strict=True):
        factor = reciprocal[b] if b in reciprocal else int(new[there[b]])
        given[n, :2] = sorted((int(given[n, 0]), factor))
    op, given, places = np.delete(op, late), np.delete(given, late, axis=0), places - np.searchsorted(late, places)
    op = np.insert(op, places, ca.OP_INV)
    rows = np.full((len(places), 3), -1)
    rows[:, 0] = new[list(made)]
    given = np.insert(given, places, rows, axis=0)
    nodes = list(zip(op.tolist(), given[:, 0].tolist(), np.maximum(given[:, 1], 0).tolist(), strict=True))
    for n in np.flatnonzero(tape.columns()[0] < 0).tolist():
        nodes[new[n]] = tape.nodes[n]
    outputs = [new[np.array(own, dtype=np.int64)].tolist() for own in tape.outputs]
    return Tape(nodes, outputs, tape.input_sizes, _table=(op, given))


@dataclass(frozen=True)
class Products:
    """Sums and differences that take a product into them: nodes, (kind, x, y, rest) of each as arrays."""

    nodes: np.ndarray
    kinds: np.ndarray  # numbers in `KINDS`
    given: np.ndarray  # (count, 3): the factors, and what the product is added to or taken from


def products(tape: Tape) -> Products:
    """Every product that only one sum or difference uses, with that one."""
    op, given = tape.columns()
    needed = np.zeros(len(op), dtype=bool)
    needed[needed_of(given, tape.asked())] = True
    used = given[needed].ravel()
    uses = np.bincount(used[used >= 0], minlength=len(op)) + tape.asked()
    alone = (op == ca.OP_MUL) & (uses == 1)
    sums = np.flatnonzero(needed & ((op == ca.OP_ADD) | (op == ca.OP_SUB)))
    a, b = given[sums, 0], given[sums, 1]
    second, first = alone[b], alone[a] & ~alone[b]
    is_second = second[second | first]
    sums, a, b = (column[second | first] for column in (sums, a, b))
    product, rest = np.where(is_second, b, a), np.where(is_second, a, b)
    plus, minus, taken = (KINDS.index(kind) for kind in (PLUS, MINUS, FROM))
    kinds = np.where(op[sums] == ca.OP_ADD, plus, np.where(is_second, taken, minus))
    return Products(sums, kinds, np.stack([*given[product, :2].T, rest], axis=1))


def fused(tape: Tape) -> Tape:
    """The same tape, with every product that only one sum or difference uses made part of it."""
    found = products(tape)
    rows = zip(found.nodes.tolist(), found.kinds.tolist(), found.given.tolist(), strict=True)
    return replace(tape, products={n: (KINDS[kind], *given) for n, kind, given in rows})


def results_of(step: int | Wave) -> list[int]:
    """The nodes that one step of a schedule computes."""
    return (
        [n for calls in step.values() for nodes in calls.values() for n in nodes] if isinstance(step, dict) else [step]
    )


def reachable(tape: Tape) -> list[int]:
    """The nodes that outputs need, arguments before results."""
    return needed_of(tape.columns()[1], tape.asked()).tolist()


def needed_of(given: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Numbers of the nodes that outputs need, from the arguments of all and how often outputs ask for each.

    A tape has few others. Those without a use go first, then what only they used, and so on.
    """
    alive = np.ones(len(given), dtype=bool)
    used = given.ravel()
    uses = np.bincount(used[used >= 0], minlength=len(given)) + asked
    last = np.zeros(len(given), dtype=np.int64)
    dead = np.flatnonzero(uses == 0)
    while len(dead):
        alive[dead] = False
        below = given[dead].ravel()
        below = below[below >= 0]
        np.subtract.at(uses, below, 1)
        below = below[uses[below] == 0]
        last[below] = places = np.arange(len(below))
        dead = below[last[below] == places]  # each once: `np.unique` imports more than a first answer has time for
    return np.flatnonzero(alive)


def table_of(nodes: Sequence[tuple[int, float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """(op, arguments) of nodes, as `Tape.columns` has them."""
    flat = chain.from_iterable(nodes)  # a third of the time of np.array
    table = np.fromiter(flat, dtype=float, count=3 * len(nodes)).reshape(-1, 3)
    op = table[:, 0].astype(np.int64)
    given = np.full((len(op), 3), -1, dtype=np.int64)
    for k, least in ((0, 1), (1, 2)):
        has = is_one_of(op, [code for code, arity in ARITY.items() if arity >= least])
        given[has, k] = table[has, 1 + k].astype(np.int64)
    return op, given


def is_one_of(codes: np.ndarray, some: Iterable[int]) -> np.ndarray:
    """Which codes of operations are among these: `np.isin` in less time."""
    chosen = np.zeros(max(OPERATIONS) + 2, dtype=bool)  # the last for codes below zero
    chosen[list(some)] = True
    return chosen[np.maximum(codes, -1)]
