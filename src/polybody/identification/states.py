"""Random consistent states of a model, to sample what its motions show."""

from __future__ import annotations

import numpy as np

from polybody.constraints.assembly import AssemblyError
from polybody.constraints.ranks import null_space
from polybody.model.model import Model

Array = np.ndarray
#: walks turn back where the least singular value of the constraints falls to this part of that at the start
NEARNESS = 0.15


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
    """Configurations reached by steps along the loops, starting anew now and then: no jump to another assembly.

    Every other walk goes on in the direction it began in, and so farther. None goes through singular configurations,
    behind which motions may be of another kind.
    """
    start = q = _regular(model, rng)
    Z, least = _motions(model, start)
    along, heading, found = Z, np.zeros(model.nv), list[Array]()
    for k in range(count):
        if k % 12 == 0:
            q, along = start, Z
        step = along @ rng.normal(size=along.shape[1])
        if k % 24 > 12:
            step = along @ (along.T @ heading)
        size = float(np.abs(step).max(initial=0.0))
        heading = step * (0.25 / size if size else 0.0)
        try:
            q = model.assemble(model.integrate(q, heading), restarts=0)
        except AssemblyError:  # a step over the edge of the workspace
            q = start
        along, room = _motions(model, q)
        if along.shape != Z.shape or room < NEARNESS * least:
            q, along = start, Z
        found.append(q)
    return np.array(found)


def _regular(model: Model, rng: np.random.Generator) -> Array:
    """The neutral assembly, or one beside it where that is singular: where it can move in more ways."""
    start = model.assemble()
    Z, _ = _motions(model, start)
    beside = model.assemble(model.integrate(start, Z @ (0.3 * rng.normal(size=Z.shape[1]))))
    return beside if _motions(model, beside)[0].shape[1] < Z.shape[1] else start


def mobility_at(model: Model, q: Array) -> int:
    """How many directions keep the loops at a configuration."""
    return _motions(model, q)[0].shape[1]


def _motions(model: Model, q: Array) -> tuple[Array, float]:
    """Directions that keep the loops, and the least singular value of the others: zero at singular configurations."""
    J = model.constraints.jacobian(q)
    Z = null_space(J)
    s = np.linalg.svd(J, compute_uv=False)
    rank = J.shape[1] - Z.shape[1]
    return Z, float(s[rank - 1]) if rank else 1.0


__all__ = ["mobility_at", "sample_states"]
