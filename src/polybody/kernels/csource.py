"""CasADi functions as C99 source that needs nothing but a compiler and <math.h>.

Each function becomes

    void prefix_name(const double input[n], …, double output[m], …);

with the names CasADi has for its inputs and outputs. No allocation, no static data, only `double`: safe to call from
several threads and on small computers. Every input is read before the first output is written, so they may overlap.
`fmin` and `fmax` return NaN where an argument is NaN, as kernels do.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca

from polybody.errors import InputError
from polybody.interrupts import interruptible
from polybody.kernels.operations import OPERATIONS
from polybody.kernels.tape import CONST, INPUT, Tape, from_function, reachable
from polybody.late import dataclass

HELPERS = {
    "least": "static double least(double a, double b) { return a != a || a < b ? a : b; }",
    "most": "static double most(double a, double b) { return a != a || a > b ? a : b; }",
    "sign": "static double sign(double a) { return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a; }",
}
KEYWORDS = frozenset(
    {
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
        "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
        "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while",
    }
)  # fmt: skip
CALLED = frozenset(re.findall(r"[a-z]\w*(?=\()", " ".join(operation.c for operation in OPERATIONS.values())))
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class CSource:
    """The text of a .c file and of the .h file it includes."""

    source: str
    header: str


@dataclass(frozen=True)
class Written:
    """C text made elsewhere that calls the functions: what goes into the header, and into the source."""

    header: str
    source: str


@interruptible
def generate(
    name: str, functions: Sequence[Any], *, comment: str = "", more: Sequence[Written] = ()
) -> CSource:
    """C source of SX functions, or of what has their names and sizes and a `tape`.

    `name` is the file's name without extension and the prefix of every function.

    `more` follows the functions, in its order.
    """
    _check_identifier("the file's name", name)
    labels = [function.name() for function in functions]
    if len(set(labels)) != len(labels):
        raise InputError(f"{name}: two functions have the same name: {sorted(labels)}")
    bodies, declarations, helpers = [], [], set()
    for function in functions:
        traced = from_function(function) if isinstance(function, ca.Function) else function.tape()
        head = _head(name, function)
        lines, used = _body(function, traced)
        helpers |= used
        bodies.append("\n".join([f"{head} {{", *lines, "}"]))
        declarations.append(_described(function) + f"\n{head};")
    bodies += [text.source for text in more if text.source]
    declarations += [text.header for text in more if text.header]
    note = [f"/* {line.replace('*/', '* /').replace('/*', '/ *')} */" for line in comment.splitlines()]
    guard = f"{name.upper()}_H"
    opening = ["#ifdef __cplusplus", 'extern "C" {', "#endif"]
    closing = ["#ifdef __cplusplus", "}", "#endif"]
    header = "\n".join(
        [*note, f"#ifndef {guard}", f"#define {guard}", "", *opening, "", "\n\n".join(declarations), "", *closing, "",
         f"#endif /* {guard} */", ""]
    )  # fmt: skip
    texts = [HELPERS[helper] for helper in sorted(helpers)]
    source = "\n".join(
        [*note, f'#include "{name}.h"', "", "#include <math.h>", "", *texts, "", "\n\n".join(bodies), ""]
    )
    return CSource(source, header)


def _check_identifier(what: str, word: str) -> None:
    if not IDENTIFIER.match(word) or word in KEYWORDS:
        raise InputError(f"{what} is {word!r}; C wants letters, digits and _, a letter first, and none of its keywords")


def _ports(function: Any) -> tuple[list[str], list[str]]:
    """Names of inputs and outputs, distinct from each other and from the temporaries t0, t1, …"""
    inputs = [function.name_in(k) for k in range(function.n_in())]
    outputs = [function.name_out(k) for k in range(function.n_out())]
    for word in (*inputs, *outputs):
        _check_identifier(f"a port of {function.name()}", word)
        if re.fullmatch(r"t\d+", word) or word in CALLED:
            raise InputError(f"{function.name()}: the port name {word!r} is taken; name it otherwise")
    outputs = [f"{word}_out" if word in inputs else word for word in outputs]
    return inputs, outputs


def _head(prefix: str, function: Any) -> str:
    _check_identifier("a function's name", function.name())
    inputs, outputs = _ports(function)
    # C has no arrays of length zero, and a pointer says the same
    parameters = [f"const double *{word}" for word in inputs] + [f"double *{word}" for word in outputs]
    return f"void {prefix}_{function.name()}({', '.join(parameters) or 'void'})"


def _described(function: Any) -> str:
    inputs, outputs = _ports(function)
    sizes_in = [f"{word}[{function.numel_in(k)}]" for k, word in enumerate(inputs)]
    sizes_out = [f"{word}[{function.numel_out(k)}]" for k, word in enumerate(outputs)]
    return f"/* {function.name()}: {', '.join(sizes_in) or 'nothing'} -> {', '.join(sizes_out) or 'nothing'} */"


def _body(function: Any, traced: Tape) -> tuple[list[str], set[str]]:
    """(lines, helpers used)."""
    inputs, outputs = _ports(function)
    helpers: set[str] = set()
    lines: list[str] = []
    read: set[int] = set()

    def value(node: int) -> str:
        op, a, b = traced.nodes[node]
        if op == CONST:
            return _number(a)
        if op == INPUT:
            read.add(int(a))
            return f"{inputs[int(a)]}[{int(b)}]"
        return f"t{node}"

    for node in reachable(traced):  # as traced: compilers have an order of their own (`schedule` is for ours)
        if traced.nodes[node][0] >= 0:
            lines.append(f"    const double t{node} = {_expression(traced, node, value, helpers)};")
    for word, nodes in zip(outputs, traced.outputs, strict=True):
        # A passed-through input may be overwritten by an earlier output: take it aside.
        for i, node in enumerate(nodes):
            if traced.nodes[node][0] == INPUT:
                lines.append(f"    const double {word}_{i}_ = {value(node)};")
    for word, nodes in zip(outputs, traced.outputs, strict=True):
        for i, node in enumerate(nodes):
            taken = f"{word}_{i}_" if traced.nodes[node][0] == INPUT else value(node)
            lines.append(f"    {word}[{i}] = {taken};")
    unused = [f"    (void){word};" for k, word in enumerate(inputs) if k not in read]
    unused += [f"    (void){word};" for word, nodes in zip(outputs, traced.outputs, strict=True) if not nodes]
    return lines + unused, helpers


def _expression(traced: Tape, node: int, value: Callable[[int], str], helpers: set[str]) -> str:
    text, helper = _written(traced.nodes[node][0])
    helpers.update(helper)
    return text.format(**dict(zip("ab", map(value, traced.arguments(node)), strict=False)))


@functools.cache
def _written(op: int) -> tuple[str, tuple[str, ...]]:
    """(an operation in C, the helpers that it calls)."""
    text = OPERATIONS[op].c
    return text, tuple(helper for helper in HELPERS if text.startswith(helper + "("))


def _number(value: float) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = repr(float(value))
    return f"({text})" if text.startswith("-") else text
