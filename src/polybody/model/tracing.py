"""From a quantity's text to a CasADi function, and its compiled kernel.

A quantity is a function of named arguments over any domain. Traced over CasADi nodes of a concrete mechanism it becomes
an expression graph in which the mechanism's zeros and ones are folded away; `kernels` compiles that graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.quantities.derivatives import graph_domain

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Inputs = Sequence[tuple[str, int]]
Outputs = Sequence[tuple[str, tuple[int, ...]]]


@cache
def source_digest() -> str:
    """A hash of the code that expression graphs come from: kernels of other code must not be taken from the cache."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):  # all of it: a list of folders could be incomplete
        digest.update(path.read_bytes())
    return digest.hexdigest()


def plain_name(name: str) -> str:
    """A name that CasADi and C take."""
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in name).split()
    text = "_".join(words)
    return text if text[:1].isalpha() else f"f_{text}"


def trace(name: str, inputs: Inputs, body: Callable[..., Any], symbols: Sequence[Any] = ()) -> Any:
    """The casadi.Function of body(*arrays, domain=...), which returns an array or a tuple of arrays.

    `symbols` are columns that the body reads beside its arguments (`Mechanism.symbols`): its last inputs.
    """
    import casadi

    from polybody.interrupts import passed_on

    def traced() -> Any:
        graph = graph_domain()
        pairs = [graph.variables(key, size) for key, size in inputs]
        outputs = body(*(array for _, array in pairs), domain=graph)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        columns = [*(column for column, _ in pairs), *symbols]
        return casadi.Function(plain_name(name), columns, [graph.column(x) for x in outputs])

    return passed_on(traced)


def compiled(
    name: str, inputs: Inputs, outputs: Outputs, make: Callable[[], Any], key: str, dtype: Any = np.float64
) -> Kernel:
    """The kernel of the casadi.Function that `make()` traces; `key` tells it from all others of this code."""
    from polybody import kernels

    title = f"{name}:{key}:{source_digest()}"
    return kernels.build(plain_name(name), list(inputs), list(outputs), make, title, dtype=dtype)


__all__ = ["compiled", "plain_name", "source_digest", "trace"]
