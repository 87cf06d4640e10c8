"""External wrenches as users give them, {frame: [moment; force]}, and as kernels take them.

Kernels take one wrench for every body at its origin, or one for every frame at its own, so that one kernel serves all
sets of frames. A wrench at a frame with the lever R r from its body's origin adds the moment (R r) × f there; along v_k
the lever turns, by ω_k × (R r), which derivatives by q must add:

    ∂tau_j/∂φ_k  −=  J_ω,jᵀ ((ω_k × R r) × f)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism
from polybody.model.arguments import finite, state_array
from polybody.model.batches import batch_shape
from polybody.model.engine import Request
from polybody.model.tree_engine import TreeEngine
from polybody.names import listed
from polybody.quantities.frames import find_frame, jacobian
from polybody.quantities.frames import lever as lever_quantity
from polybody.quantities.table import QUANTITIES

Array = np.ndarray
Wrenches = Mapping[str, Any]
Given = Sequence[tuple[BodyFrame, Array]]


def checked(mechanism: Mechanism, wrenches: Wrenches | None, check: bool = False) -> list[tuple[BodyFrame, Array]]:
    """The frames and their wrenches (..., 6), or an error that says which is wrong."""
    if wrenches is None:
        return []
    if not isinstance(wrenches, Mapping):
        raise InputError(
            f"wrenches must map a frame's name to its wrench [moment; force], got {type(wrenches).__name__}; "
            f"the frames are {listed(mechanism.frame_index)}"
        )
    found = []
    for name, wrench in wrenches.items():
        array = state_array(f"wrenches[{name!r}]", wrench, 6)
        found.append((find_frame(mechanism, name), finite(f"wrenches[{name!r}]", array) if check else array))
    return found


def on_bodies(tree: TreeEngine, q: Array, given: Given, parameters: Array | None = None) -> Array:
    """(..., 6·bodies): at the bodies' origins, world axes."""
    lead = batch_shape([q, *(w for _, w in given), *([] if parameters is None else [parameters])])
    loads = np.zeros((*lead, len(tree.mechanism.bodies), 6))
    levers = _levers(tree, q, given, parameters)
    for (frame, wrench), lever in zip(given, levers, strict=True):
        if frame.body != GROUND:
            loads[..., frame.body, :] += wrench
            if lever is not None:
                loads[..., frame.body, :3] += np.cross(lever, wrench[..., 3:])
    return loads.reshape(*lead, 6 * len(tree.mechanism.bodies))


def on_frames(mechanism: Mechanism, arrays: Sequence[Array], given: Given) -> Array:
    """(..., 6·frames): one slot for every frame."""
    loads = np.zeros((*batch_shape([*arrays, *(w for _, w in given)]), len(mechanism.frames), 6))
    for frame, wrench in given:
        loads[..., mechanism.frame_index[frame.name], :] += wrench
    return loads.reshape(*loads.shape[:-2], 6 * len(mechanism.frames))


def lever_shifts(tree: TreeEngine, q: Array, given: Given, parameters: Array | None = None) -> Array | None:
    """What dtau/dq misses where wrenches are not at their bodies' origins, (..., nv, nv); None for nothing."""
    shifts: Any = None
    for (frame, wrench), lever in zip(given, _levers(tree, q, given, parameters), strict=True):
        if frame.body == GROUND or lever is None:
            continue
        J = tree.answer(Request(jacobian(tree.mechanism, frame.name), (q,), parameters=parameters))[..., :3, :]
        turned = np.cross(np.swapaxes(J, -1, -2), lever[..., None, :])
        moment = np.cross(turned, wrench[..., None, 3:])
        own = -np.swapaxes(moment @ J, -1, -2)
        shifts = own if shifts is None else shifts + own
    return shifts


def _levers(tree: TreeEngine, q: Array, given: Given, parameters: Array | None) -> list[Array | None]:
    """R r of each frame that is not at its body's origin."""
    if parameters is not None:  # they may move frames in their bodies
        return [
            None if frame.body == GROUND
            else tree.answer(Request(lever_quantity(tree.mechanism, frame.name), (q,), parameters=parameters))
            for frame, _ in given
        ]  # fmt: skip
    if not any(frame.body != GROUND and frame.position.any() for frame, _ in given):
        return [None] * len(given)
    R = tree.answer(Request(QUANTITIES["body_rotations"], (q,)))
    return [
        R[..., frame.body, :, :] @ frame.position if frame.body != GROUND and frame.position.any() else None
        for frame, _ in given
    ]


__all__ = ["Wrenches", "checked", "lever_shifts", "on_bodies", "on_frames"]
