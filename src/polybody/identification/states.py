"""Random consistent states of a model, to sample what its motions show."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.constraints.assembly import CLOSED
from polybody.constraints.ranks import pseudo_inverse, ranked_svd, ranks
from polybody.model.model import Model

Array = np.ndarray
#: walks turn back where the least singular value of the constraints falls to this part of that at the start
NEARNESS = 0.15
#: steps of a walk; Newton's steps back to the loops, and their length at most
STEPS, NEWTON, LONGEST = 12, 12, 0.6
MANY_WAYS = 3  # to go from the start: from so many on, more walks of half as many steps show as much
FRESH = (0, 1, 4, 8)  # Newton's steps with inverses of their own: those of others hardly differ
NEARLY = 1e-13  # residuals from which one more step leaves rounding alone


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
    """Configurations reached by walks of a few steps along the loops, all from one start: no jump to another assembly.

    Every other walk goes on in the direction it began in, and so farther. None goes through singular configurations,
    behind which motions may be of another kind: there, and over the edge of the workspace, it starts anew. States
    with an axis of a loop that points backwards are replaced by the start.
    """
    engine: Any = model.engine
    start = _regular(model, rng)
    Z, least = _motions(model, start[None])
    steps = STEPS if Z.shape[2] < MANY_WAYS else STEPS // 2
    walks = -(-count // steps)
    straight = np.arange(walks) % 2 == 1
    Z, least = (np.repeat(x, walks, axis=0) for x in (Z, least))
    q, along, heading = np.repeat(start[None], walks, axis=0), Z, np.zeros((walks, model.nv))
    found = np.empty((walks, steps, model.nq))
    for k in range(steps):
        onward = (along.swapaxes(1, 2) @ heading[..., None])[..., 0]
        chosen = np.where(straight[:, None] & (k > 0), onward, rng.normal(size=onward.shape))
        step = (along @ chosen[..., None])[..., 0]
        size = np.abs(step).max(axis=1, initial=0.0, keepdims=True)
        heading = step * np.where(size > 0, 0.25 / np.where(size > 0, size, 1.0), 0.0)
        q, kept = _closed(model, model.integrate(q, heading))
        q[~kept] = start
        rank = model.nv - Z.shape[2]
        along, room, ranks = _motions_of_rank(model, q, rank)
        lost = (ranks != rank) | (room < NEARNESS * least)
        q[lost], along[lost] = start, Z[lost]
        found[:, k] = q
    reached = found.reshape(-1, model.nq)[:count]
    reached[(engine.constraints.uprightness(reached) < 0).any(axis=1)] = start
    return reached


def _closed(model: Model, q: Array) -> tuple[Array, Array]:
    """(q put back on the loops by Newton's method, where that was possible), many at once; limits are not looked at."""
    engine: Any = model.engine
    kernels, off = engine.constraints, np.ones(len(q), dtype=bool)
    back = np.zeros((len(q), model.nv, 0))
    for k in range(NEWTON):
        phi = kernels.residual(q)
        off &= np.isfinite(phi).all(axis=1)
        if not off.any():
            break
        if k in FRESH:
            back = np.zeros((len(q), model.nv, phi.shape[1]))
            back[off] = pseudo_inverse(kernels.jacobian(q[off]))
        step = -(back[off] @ phi[off][..., None])[..., 0]
        longest = np.abs(step).max(axis=1, initial=0.0, keepdims=True)
        q[off] = model.integrate(q[off], step * np.minimum(1.0, LONGEST / np.maximum(longest, LONGEST)))
        off &= np.abs(phi).max(axis=1, initial=0.0) > NEARLY  # the step from there leaves rounding
    return q, np.abs(kernels.residual(q)).max(axis=1, initial=0.0) < CLOSED  # not where it is not a number


def _regular(model: Model, rng: np.random.Generator) -> Array:
    """The neutral assembly, or one beside it where that is singular: where it can move in more ways."""
    start = model.assemble()
    Z = _motions(model, start[None])[0][0]
    beside = model.assemble(model.integrate(start, Z @ (0.3 * rng.normal(size=Z.shape[1]))))
    return beside if mobility_at(model, beside) < Z.shape[1] else start


def mobility_at(model: Model, q: Array) -> int:
    """How many directions keep the loops at a configuration."""
    return _motions(model, q[None])[0].shape[2]


def _motions(model: Model, q: Array) -> tuple[Array, Array]:
    """Directions that keep the loops, (1, nv, m) of one configuration, and the least singular value of the others."""
    rank = int(ranks(model.constraints.jacobian(q))[0])
    return _motions_of_rank(model, q, rank)[:2]


def _motions_of_rank(model: Model, q: Array, rank: int) -> tuple[Array, Array, Array]:
    """(directions (N, nv, nv − rank), the least singular value of the others, the rank that each has)."""
    _, s, Vt, kept = ranked_svd(model.constraints.jacobian(q))
    return Vt[:, rank:].swapaxes(1, 2).copy(), s[:, rank - 1] if rank else np.ones(len(q)), kept.sum(axis=-1)


__all__ = ["mobility_at", "sample_states"]
