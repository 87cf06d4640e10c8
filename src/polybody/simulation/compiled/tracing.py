"""Users' functions as expressions: a controller, an event or a wrench that is a CasADi function or plain NumPy code.

A Python function is run once on symbols, if it does nothing but compute (`purity`). What was traced is compared with
the function itself at a few states, and called instead if they differ. What it read from outside is a number of the
expression: as long as that is as it was, the expression is kept for whoever asks again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from polybody.kernels.locks import tracing
from polybody.mechanism.general_position import Draws
from polybody.mechanism.mechanism import Mechanism
from polybody.model.configurations import drawn
from polybody.model.model import Model
from polybody.simulation.compiled.purity import Knowledge, impure, reading
from polybody.simulation.compiled.symbols import expression, symbol_array
from polybody.simulation.failures import NotCompiled

Array = np.ndarray


def traced(
    function: Any, sizes: Sequence[int], result: int, samples: Sequence[Sequence[Any]],
    flat: Callable[[Any], Any] = lambda answer: answer, alone: bool = False,
) -> Any:  # fmt: skip
    """The casadi.Function of function(*arguments) -> `result` numbers; size 0 is a number. `NotCompiled` if it is none.

    `samples` are arguments at which function and expression are compared; `flat` makes an array of an answer, `alone`
    is that of `impure`.
    """
    import casadi

    if isinstance(function, casadi.Function):
        return _checked_casadi(function, sizes, result)
    asked = (tuple(sizes), result, alone)
    known = _kept.get(function) if isinstance(function, FunctionType) else None
    if known is not None and known[0] == asked and known[1].is_as_it_was():
        return known[2]
    reason = impure(function, entries=True, alone=alone)
    if reason:
        raise NotCompiled(reason)
    knowledge = Knowledge(function)
    try:
        with tracing, reading(function):
            columns = [casadi.SX.sym(f"x{k}", max(size, 1)) for k, size in enumerate(sizes)]
            given = [symbol_array(c) if size else symbol_array(c)[0] for c, size in zip(columns, sizes, strict=True)]
            made = casadi.Function("traced", columns, [expression(flat(function(*given)), result)])
            del given
        for sample in samples:
            mine = np.array(made(*(np.asarray(x, dtype=float) for x in sample))).ravel()
            theirs = np.asarray(flat(function(*(np.copy(x) if np.ndim(x) else x for x in sample))), dtype=float).ravel()
            if not np.allclose(mine, theirs, rtol=1e-10, atol=1e-12 * (1 + np.abs(theirs).max(initial=0.0))):
                raise NotCompiled("it does not compute with symbols what it computes with numbers")
    except NotCompiled:
        raise
    except Exception as error:  # whatever code does with symbols that it cannot do with them
        raise NotCompiled(f"it is not an expression of its arguments ({type(error).__name__}: {error})") from None
    if knowledge.is_whole:
        _kept[function] = asked, knowledge, made
    return made


#: expressions of users' functions that can be asked whether they still hold
_kept: WeakKeyDictionary[FunctionType, tuple[Any, Knowledge, Any]] = WeakKeyDictionary()


def still_holds(function: Any) -> bool:
    """Whether a function that may have been traced reads what it read then."""
    known = _kept.get(function) if isinstance(function, FunctionType) else None
    return known is None or known[1].is_as_it_was()


def require_whole(function: Any) -> None:
    """Raise `NotCompiled` where a function reads what may change without anybody being told."""
    if not Knowledge(function).is_whole:
        raise NotCompiled("it reads objects that the controller, which is called, may change")


def traced_action(action: Any, model: Model) -> Any:
    """The casadi.Function (t, q, v) -> [q; v] of an event's action."""
    import casadi

    sizes, result = (0, model.nq, model.nv), model.nq + model.nv
    if isinstance(action, casadi.Function):
        if action.n_out() != 2 or (action.numel_out(0), action.numel_out(1)) != sizes[1:]:
            raise NotCompiled("the casadi.Function does not give q and v")
        columns = [casadi.SX.sym(f"x{k}", action.numel_in(k)) for k in range(action.n_in())]
        shaped = [casadi.reshape(c, *action.size_in(k)) for k, c in enumerate(columns)]
        both = casadi.vertcat(*(casadi.vec(x) for x in action.expand()(*shaped)))
        return _checked_casadi(casadi.Function("action", columns, [both]), sizes, result)

    def flat(answer: Any) -> Any:
        if not isinstance(answer, tuple | list) or [len(x) for x in answer] != [model.nq, model.nv]:
            raise NotCompiled("it returns no pair of q and v")
        return np.concatenate([np.asarray(x, dtype=object) for x in answer])

    return traced(action, sizes, result, samples_of(model), flat, alone=True)


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
    return _samples(model.mechanism)


@lru_cache(maxsize=32)
def _samples(mechanism: Mechanism) -> list[tuple[float, Array, Array]]:
    rng = Draws(11)
    q, v = drawn(mechanism, rng, (3,)), rng.normal((3, mechanism.nv))
    return [(0.37 * k, q[k].copy(), v[k].copy()) for k in range(3)]


def key_of(function: Any) -> str:
    """What distinguishes a traced function from others."""
    key = _keys.get(function)
    if key is None:
        key = _keys[function] = hashlib.sha256(function.serialize().encode()).hexdigest()[:24]
    return key


#: of expressions that somebody has
_keys: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


__all__ = ["key_of", "require_whole", "samples_of", "still_holds", "traced", "traced_action"]
