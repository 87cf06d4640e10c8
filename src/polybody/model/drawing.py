"""Random configurations of mechanisms with loops.

A random configuration is assembled by descent (`assembly`), which ends in singular configurations more often than
chance: of a delta robot one in seventeen, where the rank of J was 15 instead of 18. These are drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.model import configurations
from polybody.model.arguments import random_generator
from polybody.model.assembly import FEW
from polybody.model.batches import batch_shape

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray
AGAIN = 10  # draws, where mechanisms are singular on a whole branch


def assembled(model: Model, rng: Any, size: Any, parameters: Array | None = None) -> Array:
    """Assembled configurations, (nq,) or (*size, nq), with the rank that J has at a general place where possible."""
    mechanism, rng = model.mechanism, random_generator("rng", rng)

    def closed(size: Any, values: Array | None, together: bool = False) -> Array:
        drawn = configurations.draw(mechanism, rng, size)
        return model._assembly.assembled(drawn, parameters=values, together=together)

    if not len(model.constraints):
        return closed(size, parameters)
    from polybody.kernels import background

    with background.answering():
        found = closed(size, parameters)
        return _regular(model, found, parameters, closed) if found.size else found


def _regular(model: Model, found: Array, parameters: Array | None, closed: Callable[..., Array]) -> Array:
    """The configurations, with those drawn again by `closed(size, parameters, together)` that are singular."""
    mechanism = model.mechanism
    lead = found.shape[:-1]
    flat, left = found.reshape(-1, mechanism.nq), np.arange(len(found.reshape(-1, mechanism.nq)))
    values = None
    if parameters is not None:
        values = np.broadcast_to(parameters, (*batch_shape([found, parameters]), parameters.shape[-1]))
        values = values.reshape(-1, parameters.shape[-1])
    for draw in range(AGAIN + 1):
        own = None if values is None else values[left]
        left = left[_lacking(model, model.constraints.rank(flat[left], parameters=own))]
        if not len(left) or draw == AGAIN:
            break
        flat[left] = closed(len(left), None if values is None else values[left], len(flat) >= FEW)
    return flat.reshape(*lead, mechanism.nq)


def _lacking(model: Model, ranks: Array) -> Array:
    """Which ranks are below the usual one. That need not be looked for where all are as large as can be."""
    if np.all(ranks >= min(len(model.constraints), model.nv)):
        return np.zeros(ranks.shape, dtype=bool)
    return ranks < model.nv - len(model.engine.independent)


__all__ = ["assembled"]
