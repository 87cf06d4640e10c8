"""Small kernels to test with."""

from __future__ import annotations

import casadi as ca
import numpy as np

from polybody.kernels import Kernel, build
from polybody.kernels.target import Target


def elementwise(expression, arity: int = 1, **options) -> Kernel:
    """A kernel of `arity` inputs of size 1 and one output ()."""
    symbols = [ca.SX.sym(f"x{k}") for k in range(arity)]
    function = ca.Function("f", symbols, [expression(*symbols)])
    return of_function(function, outputs=[("y", ())], **options)


def of_function(
    function: ca.Function, outputs=None, lanes: int | None = None, target: Target | None = None, dtype=np.float64,
    key: str = "",
) -> Kernel:  # fmt: skip
    """A kernel of any SX function, its outputs flat unless told."""
    inputs = [(f"x{k}", function.numel_in(k)) for k in range(function.n_in())]
    if outputs is None:
        outputs = [(f"y{k}", (function.numel_out(k),)) for k in range(function.n_out())]
    key += function.serialize()
    return build(function.name(), inputs, outputs, lambda: function, key, lanes=lanes, target=target, dtype=dtype)


def product_kernel(n: int = 5, m: int = 3, dtype=np.float64) -> Kernel:
    """Two inputs of different sizes, two outputs, one of them a matrix: outer product, and a mixed sum."""
    a, b = ca.SX.sym("a", n), ca.SX.sym("b", m)
    outer = ca.vec((a @ b.T).T)
    function = ca.Function("outer", [a, b], [outer, ca.sin(a) + ca.sum1(b)])
    ports = [("a", n), ("b", m)], [("ab", (n, m)), ("s", (n,))]
    return build("outer", *ports, lambda: function, f"outer {n} {m}", dtype=dtype)


def product_oracle(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return a[..., :, None] * b[..., None, :], np.sin(a) + b.sum(-1)[..., None]
