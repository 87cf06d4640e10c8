"""Random consistent states of a model, to sample what its motions show."""

from __future__ import annotations

import numpy as np

from polybody.constraints.assembly import AssemblyError
from polybody.constraints.ranks import null_space
from polybody.model.model import Model

Array = np.ndarray


def sample_states(model: Model, count: int, seed: int = 0, *, speed: float = 2.0) -> tuple[Array, Array, Array]:
    """(q, v, a) of `count` states, on the loops where there are any."""
    rng = np.random.default_rng(seed)
    v, a = speed * rng.normal(size=(2, count, model.nv))
    if not model.mechanism.constrained:
        return model.random_configuration(rng, count), v, 5 * a
    q = _walk(model, count, rng)
    v = model.assemble_velocity(q, v)
    return q, v, model.assemble_acceleration(q, v, 5 * a)


def _walk(model: Model, count: int, rng: np.random.Generator) -> Array:
    """Configurations reached by steps along the loops, starting anew now and then: no jump to another assembly."""
    start = q = model.assemble()
    found = []
    for k in range(count):
        if k % 12 == 0:
            q = start
        Z = null_space(model.constraints.jacobian(q))
        step = Z @ rng.normal(size=Z.shape[1])
        size = float(np.abs(step).max(initial=0.0))
        try:
            q = model.assemble(model.integrate(q, step * (0.25 / size if size else 0.0)), restarts=0)
        except AssemblyError:  # a step over the edge of the workspace
            q = start
        found.append(q)
    return np.array(found)


__all__ = ["sample_states"]
