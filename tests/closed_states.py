"""Closed states of the shipped machines, and neighbours of a closed state, for tests of models with loops."""

from __future__ import annotations

import numpy as np

import polybody as pb

Array = np.ndarray


def closed_state(name: str, seed: int = 0, size: float = 0.1) -> tuple[pb.Model, Array, Array]:
    """(model, q, v): some way from the neutral configuration, moving."""
    model, rng = pb.load(name), np.random.default_rng(seed)
    q = model.assemble(model.integrate(model.neutral(), size * rng.normal(size=model.nv)))
    return model, q, model.assemble_velocity(q, rng.normal(size=model.nv))


def neighbour(model: pb.Model, q: Array, d: Array, speeds: Array, columns: list[int]) -> tuple[Array, Array]:
    """The closed state that is displaced by d (nv) to first order, with velocities `speeds` in these columns.

    Newton's method over the other columns, by the constraint functions alone.
    """
    rest = [k for k in range(model.nv) if k not in columns]
    system = model.engine.constraints.constraints
    q = model.integrate(q, d)
    for _ in range(4):
        step = np.zeros(model.nv)
        step[rest] = -np.linalg.lstsq(system.jacobian(q)[:, rest], system.residual(q), rcond=1e-9)[0]
        q = model.integrate(q, step)
    J, v = system.jacobian(q), np.zeros(model.nv)
    v[columns] = speeds
    v[rest] = -np.linalg.lstsq(J[:, rest], J[:, columns] @ speeds, rcond=1e-9)[0]
    return q, v


__all__ = ["closed_state", "neighbour"]
