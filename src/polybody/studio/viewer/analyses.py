"""Analyses to look at: free motions of a mechanism, singular directions, and loads that move nothing, as things to
animate.

A free motion z (a column of the motions that the constraints allow) is shown as the path q(s), s from −1 to 1,
along z, closed again at every step; a motion that exists to first order only is shown uncorrected, and said to be so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.errors import PolybodyError
from polybody.mechanism.columns import direction_text
from polybody.studio.stage.stage import Stage, as_poses

Array = np.ndarray
STEPS = 12
SWING = 0.35  # rad, or this part of the size, of the largest coordinate
MOST = 12  # motions offered


def mobility_motions(stage: Stage, q: Array) -> dict[str, Any]:
    """Text and motions: the free ones, those that no actuator holds, those that actuators cannot make."""
    model = stage.model
    found = model.mobility(q)
    text = f"mobility {found.true}"
    if model.mechanism.constrained:
        text += f" (Gruebler's count {found.gruebler}); independent: {', '.join(found.independent) or 'none'}"
        if found.singular:
            text += f". Singular here: {found.here} motions to first order"
        if found.redundant:
            text += f". Redundant constraints: {len(found.redundant)}"
    motions = []
    groups = [("free motion", _readable(found.motions)), ("not held by the actuators", np.array(found.uncontrolled).T),
              ("actuators cannot move it", np.array(found.dead).T)]  # fmt: skip
    for title, directions in groups:
        if not directions.size:
            continue
        for k in range(min(MOST, directions.shape[1])):
            z = directions[:, k]
            if len(z) != model.nv or not np.any(z):
                continue
            poses, closed = _swing(stage, q, z)
            detail = direction_text(z, found.names) + ("" if closed else " (to first order only)")
            motions.append({"name": f"{title} {k + 1}", "detail": detail, "poses": poses})
    return {"text": text, "motions": motions}


def _readable(Z: Array) -> Array:
    """The same space with columns that each move few coordinates: reduced by elimination, largest entries first."""
    Z = Z.copy()
    taken: list[int] = []
    for k in range(Z.shape[1]):
        sizes = np.abs(Z[:, k:]).max(axis=1)
        sizes[taken] = 0
        row = int(np.argmax(sizes))
        column = k + int(np.argmax(np.abs(Z[row, k:])))
        Z[:, [k, column]] = Z[:, [column, k]]
        if abs(Z[row, k]) < 1e-9:
            break
        taken.append(row)
        Z[:, k] /= Z[row, k]
        for other in range(Z.shape[1]):
            if other != k:
                Z[:, other] -= Z[row, other] * Z[:, k]
    return Z


def _swing(stage: Stage, q: Array, z: Array) -> tuple[Array, bool]:
    """(poses along the motion, whether the loops stay closed along it)."""
    model = stage.model
    z = z / np.abs(z).max() * SWING * min(1.0, stage.size if np.abs(z[_sliding(stage)]).max(initial=0.0) > 0.5 else 1.0)
    halves, closed = [], True
    for sign in (-1.0, 1.0):
        path, here = [], q
        for _ in range(STEPS):
            ahead = model.integrate(here, sign * z / STEPS)
            if model.mechanism.constrained:
                try:
                    back = model.assemble(ahead, restarts=0, limits=False)
                    ahead = back if np.abs(model.difference(ahead, back)).max() < 0.2 else ahead
                except PolybodyError:
                    closed = False
            path.append(ahead)
            here = ahead
        halves.append(path)
    every = np.array([*halves[0][::-1], q, *halves[1]])
    return as_poses(stage.matrices(every)).ravel(), closed


def _sliding(stage: Stage) -> Array:
    from polybody.studio.channels import turning

    return ~turning(stage.model)


def internal_loads(stage: Stage, q: Array) -> dict[str, Any]:
    """Loads of the actuators that move nothing: each as arrows at the joints, per unit of the load."""
    model = stage.model
    names, basis = model.actuation.internal_loads(q)
    if not basis.shape[1]:
        return {"text": "no internal loads: the active joints are as many as the mechanism is mobile", "motions": []}
    columns = np.flatnonzero(model.actuation.active)
    motions = []
    T = stage.matrices(q)[None]
    for k in range(min(MOST, basis.shape[1])):
        tau = np.zeros(model.nv)
        tau[columns] = basis[:, k] / np.abs(basis[:, k]).max()
        arrows = np.concatenate([stage.loads.drives(key, T, q[None], tau[None])[0] for key in stage.loads.columns])
        layer = {"key": "internal loads", "values": arrows.astype(np.float32).ravel(), "largest": 1.0}
        detail = direction_text(basis[:, k], names)
        motions.append({"name": f"internal load {k + 1}", "detail": detail, "poses": np.zeros(0), "layer": layer})
    return {
        "text": f"{basis.shape[1]} internal loads of the active joints; arrows are per unit of the load",
        "motions": motions,
    }


__all__ = ["internal_loads", "mobility_motions"]
