"""The columns of v: their names, which are driven, and directions among them as words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from polybody.mechanism.mechanism import Mechanism

Array = np.ndarray


def velocity_names(mechanism: Mechanism) -> list[str]:
    """A name for each number of v: the joint's, with _0, _1, … where it has several."""
    names = []
    for joint in mechanism.independent_joints:
        names += [joint.name] if joint.nv == 1 else [f"{joint.name}_{k}" for k in range(joint.nv)]
    return names


def position_names(mechanism: Mechanism) -> list[str]:
    """A name for each number of q: the joint's, with _0, _1, … where it has several."""
    names = []
    for joint in mechanism.independent_joints:
        names += [joint.name] if joint.nq == 1 else [f"{joint.name}_{k}" for k in range(joint.nq)]
    return names


def actuated(mechanism: Mechanism) -> Array:
    """Indices of the velocities that are active: those of a joint or of one that follows it."""
    flags = [joint.active for joint in mechanism.independent_joints]
    return np.flatnonzero(np.concatenate(flags)) if flags else np.zeros(0, dtype=int)


def plain_columns(mechanism: Mechanism, velocities: Iterable[int]) -> list[int] | None:
    """Indices in q of velocities whose joints have as many positions; None where one has a quaternion."""
    found = {}
    for joint in mechanism.independent_joints:
        if joint.nq == joint.nv:
            found |= zip(range(joint.v.start, joint.v.stop), range(joint.q.start, joint.q.stop), strict=True)
    wanted = [int(k) for k in velocities]
    return [found[k] for k in wanted] if all(k in found for k in wanted) else None


def direction_text(direction: Array, names: Sequence[str]) -> str:
    """ "0.71 hand.x − 0.71 hand.y": the larger parts of a direction."""
    order = np.argsort(-np.abs(direction))
    kept = [k for k in order[:4] if abs(direction[k]) > 0.05]
    text = " ".join(f"{'+' if direction[k] >= 0 else '−'} {abs(direction[k]):.2f} {names[k]}" for k in kept)
    return text.removeprefix("+ ")


def state_text(index: Sequence[int]) -> str:
    """ " (state 3, 1 of the batch)", or nothing for a single state."""
    return f" (state {', '.join(str(int(i)) for i in index)} of the batch)" if len(index) else ""


__all__ = ["actuated", "direction_text", "plain_columns", "position_names", "state_text", "velocity_names"]
