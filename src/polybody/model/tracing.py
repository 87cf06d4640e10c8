"""From a formulation's text to a CasADi function, and its compiled kernel.

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

from polybody.algebra.domains import GraphDomain, domain
from polybody.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray
Body = Callable[..., Any]


def argument_size(mechanism: Mechanism, name: str) -> int:
    """How many numbers the argument of that name has."""
    sizes = {"q": mechanism.nq, "q0": mechanism.nq, "q1": mechanism.nq, "wrenches": 6 * len(mechanism.bodies)}
    return sizes.get(name, mechanism.nv)


@cache
def source_digest() -> str:
    """A hash of the code that expression graphs come from: kernels of other code must not be taken from the cache."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):  # all of it: a list of folders could be incomplete
        digest.update(path.read_bytes())
    return digest.hexdigest()


def graph_domain() -> GraphDomain:
    result = domain("casadi")
    assert isinstance(result, GraphDomain)
    return result


def trace(name: str, inputs: Sequence[tuple[str, int]], body: Body) -> Any:
    """The casadi.Function of body(*arrays, domain=...), which returns an array or a tuple of arrays."""
    import casadi

    graph = graph_domain()
    columns, arrays = zip(*(graph.variables(key, size) for key, size in inputs), strict=True)
    outputs = body(*arrays, domain=graph)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return casadi.Function(name, list(columns), [graph.column(output) for output in outputs])


def compiled(
    mechanism: Mechanism,
    name: str,
    inputs: Sequence[str | tuple[str, int]],
    outputs: Sequence[tuple[str, tuple[int, ...]]],
    body: Body,
    *,
    function: Callable[[], Any] | None = None,
) -> Kernel:
    """The kernel of a quantity of this mechanism. `function` overrides how the casadi.Function is made."""
    from polybody import kernels

    sized = [(x, argument_size(mechanism, x)) if isinstance(x, str) else x for x in inputs]
    key = f"{name}:{mechanism.digest}:{source_digest()}"
    plain = "_".join("".join(c if c.isascii() and c.isalnum() else " " for c in name).split())
    return kernels.build(plain, sized, list(outputs), function or (lambda: trace(plain, sized, body)), key)


__all__ = ["argument_size", "compiled", "graph_domain", "source_digest", "trace"]
