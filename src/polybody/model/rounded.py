"""States in float32 that rounding has taken off their loops, moved back to them in float64.

A joint's number q in float32 is off by up to ε|q|/2, ε = 1.2e-7: a point some metres away by more than a state may be
off its constraints, and where rows repeat others only as long as loops are closed, they seem independent. So where
float64 refuses such states, each is closed again by Newton's method, and its v and a corrected by as little as closes
them. A state is taken for a rounded one where that moves no number of q by more than

    2 ε √n (1 + max |q|)                                                                                      (1)

for n of them: the closed state that was rounded is nearer. v and a are constrained by J, which turns with q, by more
the nearer it is to a singular one: `TURNED` times as much. What is further off is left as it is, and refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from polybody.constraints.ranks import pseudo_inverse
from polybody.errors import PolybodyError
from polybody.model.batches import batch_shape
from polybody.model.engine import Request

if TYPE_CHECKING:
    from polybody.model.constrained_engine import ConstrainedEngine

Array = np.ndarray
EPS = float(np.finfo(np.float32).eps)
TURNED = 100.0
#: steps, of which one or two are needed, and residuals (m, rad) that they aim at
STEPS, SETTLED = 4, 1e-13


def closed_again(engine: ConstrainedEngine, request: Request) -> Request | None:
    """The request in float64 with its rounded states closed; None where it has none that can be moved back."""
    names, assembly, values = request.quantity.arguments, engine.assembly, request.parameters
    given = dict(zip(names, (x.astype(np.float64) for x in request.arrays), strict=True))
    try:
        q = _closed(engine, given["q"], values)
        near = _near(given["q"], q, 1.0)
        if not near.any():
            return None
        given["q"] = np.where(near[..., None], q, given["q"])
        if "v" in given:
            v = assembly.velocity(given["q"], given["v"], (), values)
            given["v"] = np.where((near & _near(given["v"], v, TURNED))[..., None], v, given["v"])
        if "a" in given:
            a = assembly.acceleration(given["q"], given["v"], given["a"], (), values)
            drift = 1 + np.square(given["v"]).max(axis=-1, initial=0.0)
            given["a"] = np.where((near & _near(given["a"], a, TURNED * drift))[..., None], a, given["a"])
    except PolybodyError:
        return None  # a state of them is far from any closed one: the refusal that float64 gave says which
    return replace(request, arrays=tuple(given[name] for name in names))


def _closed(engine: ConstrainedEngine, q: Array, values: Array | None) -> Array:
    """The closed configurations next to these, by Newton's method with the least steps."""
    kernels = engine.constraints
    if values is not None:
        q = np.broadcast_to(q, (*batch_shape([q, values]), q.shape[-1]))
    for _ in range(STEPS):
        phi = kernels.residual(q, values)
        if not np.abs(phi).max(initial=0.0) > SETTLED:
            break
        # rows that repeat others seem independent as long as loops are open
        back = pseudo_inverse(kernels.jacobian(q, values), most=engine.rank)
        q = engine.assembly.integrate(q, -(back @ phi[..., None])[..., 0])
    return q


def _near(x: Array, moved: Array, more: float | Array) -> Array:
    """Where numbers have moved by no more than (1), `more` times."""
    size = 1 + np.abs(x).max(axis=-1, initial=0.0)
    return np.abs(moved - x).max(axis=-1, initial=0.0) <= 2 * EPS * np.sqrt(x.shape[-1]) * size * more


__all__ = ["closed_again"]
