"""Users' functions as expressions: a controller, an event or a wrench that is a CasADi function or plain NumPy code.

A Python function is run once on symbols. It must be a pure function of its arguments for that to be allowed: one that
writes to anything outside itself (an attribute, a global name, a list) or prints is not traced but called, as it always
was. What was traced is compared with the function itself at a few states, and called instead if they differ.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.kernels.locks import tracing
from polybody.model.configurations import draw
from polybody.model.model import Model
from polybody.simulation.compiled.symbols import expression, symbol_array
from polybody.simulation.failures import NotCompiled

Array = np.ndarray
#: instructions that change something which outlives the call
WRITING = frozenset({"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "YIELD_VALUE", "STORE_SUBSCR",
                     "DELETE_SUBSCR"})
#: names of functions and methods that do
NAMES = frozenset({
    "append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add", "discard", "write", "print",
    "open", "input", "send", "put", "next", "random", "time", "perf_counter", "monotonic", "sleep", "exit", "setattr",
    "appendleft", "popleft", "fill", "sort",
})  # fmt: skip
DEPTH = 4


def traced(function: Any, sizes: Sequence[int], result: int, samples: Sequence[Sequence[Any]]) -> Any:
    """The casadi.Function of function(*arguments) -> `result` numbers; size 0 is a number. `NotCompiled` if it is none.

    `samples` are arguments at which function and expression are compared.
    """
    import casadi

    if isinstance(function, casadi.Function):
        return _checked_casadi(function, sizes, result)
    reason = impure(function)
    if reason:
        raise NotCompiled(reason)
    try:
        with tracing:
            columns = [casadi.SX.sym(f"x{k}", max(size, 1)) for k, size in enumerate(sizes)]
            given = [symbol_array(c) if size else symbol_array(c)[0] for c, size in zip(columns, sizes, strict=True)]
            made = casadi.Function("traced", columns, [expression(function(*given), result)])
            del given
        for sample in samples:
            mine = np.array(made(*(np.asarray(x, dtype=float) for x in sample))).ravel()
            theirs = np.asarray(function(*sample), dtype=float).ravel()
            if not np.allclose(mine, theirs, rtol=1e-10, atol=1e-12 * (1 + np.abs(theirs).max(initial=0.0))):
                raise NotCompiled("it does not compute with symbols what it computes with numbers")
    except NotCompiled:
        raise
    except Exception as error:  # whatever code does with symbols that it cannot do with them
        raise NotCompiled(f"it is not an expression of its arguments ({type(error).__name__}: {error})") from None
    return made


def _checked_casadi(function: Any, sizes: Sequence[int], result: int) -> Any:
    wanted = [max(size, 1) for size in sizes]
    found = [function.numel_in(k) for k in range(function.n_in())]
    if found != wanted or function.n_out() < 1 or function.numel_out(0) != result:
        raise NotCompiled(f"the casadi.Function takes {found} numbers; expected {wanted}, and {result} out")
    import casadi

    with tracing:
        columns = [casadi.SX.sym(f"x{k}", size) for k, size in enumerate(wanted)]
        shaped = [casadi.reshape(c, *function.size_in(k)) for k, c in enumerate(columns)]
        answer = function.expand()(*shaped) if function.n_out() == 1 else function.expand()(*shaped)[0]
        return casadi.Function("traced", columns, [casadi.densify(casadi.vec(answer))])


def samples_of(model: Model) -> list[tuple[float, Array, Array]]:
    """(t, q, v) at a few states; loops may be open there."""
    rng = np.random.default_rng(11)
    return [(0.37 * k, draw(model.mechanism, rng), rng.normal(size=model.nv)) for k in range(3)]


def key_of(function: Any) -> str:
    """What distinguishes a traced function from others."""
    return hashlib.sha256(function.serialize().encode()).hexdigest()[:24]


def impure(function: Any, depth: int = 0) -> str:
    """Why a function is not run on symbols; empty if nothing speaks against it."""
    if isinstance(function, functools.partial):
        return impure(function.func, depth)
    if isinstance(function, types.MethodType):
        return impure(function.__func__, depth)
    if isinstance(function, types.FunctionType):
        return _impure_code(function.__code__, function.__globals__, depth)
    kind = type(function)
    call = getattr(kind, "__call__", None)  # noqa: B004
    if not isinstance(call, types.FunctionType) or kind.__module__.partition(".")[0] == "polybody":
        return f"a {kind.__name__} is called as it is"
    methods = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    return _impure_code(call.__code__, {**call.__globals__, **methods}, depth)


def _impure_code(code: types.CodeType, scope: dict[str, Any], depth: int) -> str:
    for step in dis.get_instructions(code):
        outer = step.opname == "STORE_DEREF" and step.argval in code.co_freevars
        if step.opname in WRITING or outer:
            return f"{code.co_name} changes something outside itself (line {code.co_firstlineno})"
    used = NAMES.intersection(code.co_names)
    if used:
        return f"{code.co_name} uses {sorted(used)[0]!r}, which may do more than compute"
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            reason = _impure_code(inner, scope, depth)
            if reason:
                return reason
    for name in code.co_names if depth < DEPTH else ():
        other = scope.get(name)
        if isinstance(other, types.FunctionType) and not str(other.__module__).startswith(("numpy", "scipy")):
            reason = _impure_code(other.__code__, {**scope, **other.__globals__}, depth + 1)
            if reason:
                return reason
    return ""


__all__ = ["impure", "key_of", "samples_of", "traced"]
