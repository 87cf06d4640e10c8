"""Jacobians of expression graphs, made node by node: what CasADi would differentiate is there without being read back.

With x = op(a, b), every ∂x/∂u_k follows from ∂a/∂u_k and ∂b/∂u_k (`graph.RULES`). Only those that are not zero by
structure are kept, so that the work grows with the numbers of the result, not with outputs times variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polybody.algebra.graph import ADD, LEAF, MUL, NEG, RULES, SUB, Node, operands

Array = np.ndarray
_NONE: dict[int, Any] = {}


def jacobian(outputs: Sequence[Any], variables: Sequence[Node]) -> Array | None:
    """∂outputs/∂variables, of which the latter are leaves; None where the graph has what cannot be differentiated here:
    an operation without a rule, or a leaf that is an expression of its own."""
    known: dict[int, dict[int, Any]] = {}
    place = {x: k for k, x in enumerate(variables)}
    for x in operands(outputs):
        op, a, b = x.op, x.a, x.b
        if op is LEAF:
            if not x.sx.is_symbolic():
                return None
            if x in place:
                known[x.serial] = {place[x]: 1.0}
            continue
        da = known.get(a.serial, _NONE) if type(a) is Node else _NONE
        db = known.get(b.serial, _NONE) if type(b) is Node else _NONE
        if not da and not db:
            continue
        if op is NEG:
            found = {k: -d for k, d in da.items()}
        elif op is MUL:
            found = {k: d * b for k, d in da.items()}
            for k, d in db.items():
                found[k] = found[k] + a * d if k in found else a * d
        elif op is ADD or op is SUB:
            found = dict(da)
            for k, d in db.items():
                d = d if op is ADD else -d
                found[k] = found[k] + d if k in found else d
        elif op in RULES:
            found = {k: RULES[op](x, a, b, da.get(k, 0.0), db.get(k, 0.0)) for k in sorted({*da, *db})}
        else:
            return None
        known[x.serial] = {k: d for k, d in found.items() if type(d) is Node or d != 0.0}
    result = np.zeros((len(outputs), len(variables)), dtype=object)
    for i, y in enumerate(outputs):
        for k, d in known.get(y.serial, _NONE).items() if type(y) is Node else ():
            result[i, k] = d
    return result


__all__ = ["jacobian"]
