"""Random configurations of mechanisms with loops.

A random configuration is assembled by descent (`assembly`), which ends in singular configurations more often than
chance: of a delta robot one in seventeen, where the rank of J was 15 instead of 18. These are drawn again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.model import configurations
from polybody.model.arguments import random_generator
from polybody.model.batches import batch_shape

if TYPE_CHECKING:
    from polybody.model.model import Model

Array = np.ndarray
AGAIN = 10  # draws, where mechanisms are singular on a whole branch


def assembled(model: Model, rng: Any, size: Any, parameters: Array | None = None) -> Array:
    """Assembled configurations, (nq,) or (*size, nq), with the rank that J has at a general place where possible."""
    mechanism, rng = model.mechanism, random_generator("rng", rng)

    def closed(size: Any, values: Array | None) -> Array:
        return model._assembly.assembled(configurations.draw(mechanism, rng, size), parameters=values)

    found = closed(size, parameters)
    if not len(model.constraints) or not found.size:
        return found
    lead = found.shape[:-1]
    flat, left = found.reshape(-1, mechanism.nq), np.arange(len(found.reshape(-1, mechanism.nq)))
    values = None
    if parameters is not None:
        values = np.broadcast_to(parameters, (*batch_shape([found, parameters]), parameters.shape[-1]))
        values = values.reshape(-1, parameters.shape[-1])
    usual = mechanism.nv - len(model.engine.independent)
    for draw in range(AGAIN + 1):
        own = None if values is None else values[left]
        left = left[model.constraints.rank(flat[left], parameters=own) < usual]
        if not len(left) or draw == AGAIN:
            break
        flat[left] = closed(len(left), None if values is None else values[left])
    return flat.reshape(*lead, mechanism.nq)


__all__ = ["assembled"]
