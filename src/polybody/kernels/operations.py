"""Every operation of an expression graph that kernels know: once as LLVM text, once as C text.

LLVM text is one instruction a line, with results 0, 1, … that later lines name. In it

    {v} {m}      types: a vector of numbers, a vector of truths        {s}   the vector's suffix in names of intrinsics
    {a} {b}      arguments as numbers                                  {one} {nan}  numbers in every lane
    {p} {q}      arguments as truths (not zero)                        {zero} zeros of any type

Operations that are not a few instructions are functions of libm, evaluated over memory (`tape`); sine and cosine share
a function of our own (`sincos`).

No instruction carries a fast-math flag, so that NaN and infinity go their way; which products and sums are one
instruction is decided in the tape (`tape.fused`). `fmin` and `fmax` return NaN where an argument is NaN (C's would drop
it): a wrong input must not come out as a number.
"""

from __future__ import annotations

import casadi as ca

from polybody.late import dataclass

SINCOS = "sincos"


@dataclass(frozen=True)
class Operation:
    """One operation; `libm` names the function that computes it where `llvm` is empty."""

    c: str
    llvm: tuple[str, ...] = ()
    libm: str = ""
    is_truth: bool = False

    @property
    def arity(self) -> int:
        return 2 if "{b}" in self.c else 1


def _call(name: str) -> Operation:
    return Operation(f"{name}({{a}})", (f"call {{v}} @llvm.{name}.{{s}}({{v}} {{a}})",))


def _truth(c: str, llvm: str) -> Operation:
    return Operation(f"{c} ? 1.0 : 0.0", (llvm,), is_truth=True)


def _extremum(name: str, order: str) -> Operation:
    return Operation(
        f"{name}({{a}}, {{b}})",
        (
            f"fcmp {order} {{v}} {{a}}, {{b}}",
            "select {m} {0}, {v} {a}, {v} {b}",
            "fcmp uno {v} {a}, {b}",
            "select {m} {2}, {v} {nan}, {v} {1}",
        ),
    )


OPERATIONS: dict[int, Operation] = {
    ca.OP_ADD: Operation("{a} + {b}", ("fadd {v} {a}, {b}",)),
    ca.OP_SUB: Operation("{a} - {b}", ("fsub {v} {a}, {b}",)),
    ca.OP_MUL: Operation("{a} * {b}", ("fmul {v} {a}, {b}",)),
    ca.OP_DIV: Operation("{a} / {b}", ("fdiv {v} {a}, {b}",)),
    ca.OP_NEG: Operation("-({a})", ("fneg {v} {a}",)),
    ca.OP_TWICE: Operation("{a} + {a}", ("fadd {v} {a}, {a}",)),
    ca.OP_INV: Operation("1.0 / {a}", ("fdiv {v} {one}, {a}",)),
    ca.OP_SQRT: _call("sqrt"),
    ca.OP_FABS: _call("fabs"),
    ca.OP_FLOOR: _call("floor"),
    ca.OP_CEIL: _call("ceil"),
    ca.OP_COPYSIGN: Operation("copysign({a}, {b})", ("call {v} @llvm.copysign.{s}({v} {a}, {v} {b})",)),
    ca.OP_SIGN: Operation(  # −1, 1, or the argument itself where it is zero or NaN
        "sign({a})",
        (
            "call {v} @llvm.copysign.{s}({v} {one}, {v} {a})",
            "fcmp one {v} {a}, {zero}",
            "select {m} {1}, {v} {0}, {v} {a}",
        ),
    ),
    ca.OP_FMIN: _extremum("least", "olt"),
    ca.OP_FMAX: _extremum("most", "ogt"),
    ca.OP_LT: _truth("{a} < {b}", "fcmp olt {v} {a}, {b}"),
    ca.OP_LE: _truth("{a} <= {b}", "fcmp ole {v} {a}, {b}"),
    ca.OP_EQ: _truth("{a} == {b}", "fcmp oeq {v} {a}, {b}"),
    ca.OP_NE: _truth("{a} != {b}", "fcmp une {v} {a}, {b}"),
    ca.OP_NOT: _truth("{a} == 0.0", "fcmp oeq {v} {a}, {zero}"),
    ca.OP_AND: _truth("{a} != 0.0 && {b} != 0.0", "and {m} {p}, {q}"),
    ca.OP_OR: _truth("{a} != 0.0 || {b} != 0.0", "or {m} {p}, {q}"),
    ca.OP_IF_ELSE_ZERO: Operation("{a} != 0.0 ? {b} : 0.0", ("select {m} {p}, {v} {b}, {v} {zero}",)),
    ca.OP_SIN: Operation("sin({a})", libm=SINCOS),
    ca.OP_COS: Operation("cos({a})", libm=SINCOS),
    ca.OP_CONSTPOW: Operation("pow({a}, {b})", libm="pow"),
}
_UNARY = (
    "tan", "asin", "acos", "atan", "exp", "log", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "expm1", "log1p",
    "erf",
)  # fmt: skip
_BINARY = ("pow", "fmod", "remainder", "atan2", "hypot")
for _name in (*_UNARY, *_BINARY):
    _arguments = "{a}" if _name in _UNARY else "{a}, {b}"
    OPERATIONS[getattr(ca, f"OP_{_name.upper()}")] = Operation(f"{_name}({_arguments})", libm=_name)

ARITY = {op: operation.arity for op, operation in OPERATIONS.items()}
# Functions called through a table of addresses, so that object code holds no external symbol. The order is the ABI.
LIBM = ("sin", "cos", *_UNARY, *_BINARY)
SLOT = {name: k for k, name in enumerate(LIBM)}
COMMUTATIVE = frozenset({ca.OP_ADD, ca.OP_MUL, ca.OP_EQ, ca.OP_NE, ca.OP_AND, ca.OP_OR, ca.OP_FMIN, ca.OP_FMAX})

__all__ = ["ARITY", "COMMUTATIVE", "LIBM", "OPERATIONS", "SINCOS", "SLOT", "Operation"]
