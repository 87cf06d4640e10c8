"""Which columns are active, which link is the base, and where the end effectors are.

The paper's passive columns are the six of a free base; here any column of any joint may be passive. The base is the
one link joined to the ground that carries all end effectors, when its columns are passive and move no other link as
those of a leader do, else the ground itself (M_b → ∞ and V_b = 0, section 8.1, corrected).
"""

from __future__ import annotations

import numpy as np

from polybody.errors import InputError
from polybody.late import dataclass
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Split:
    """Active and passive columns of v, the base link (GROUND for a fixed base), and the end-effector frames."""

    active: Array
    passive: Array
    base: int
    tips: tuple[BodyFrame, ...]

    @property
    def mask(self) -> Array:
        """True for active columns."""
        mask = np.zeros(len(self.active) + len(self.passive), dtype=bool)
        mask[self.active] = True
        return mask

    def links(self, mechanism: Mechanism) -> list[int]:
        """The links beyond the base."""
        return [i for i in range(len(mechanism.bodies)) if i != self.base]

    def link_columns(self, mechanism: Mechanism) -> list[int]:
        """The columns of v that move the links against each other and against the base."""
        own = range(0) if self.base == GROUND else range(*mechanism.joints[self.base].v.indices(mechanism.nv))
        return [k for k in range(mechanism.nv) if k not in own]


def active_mask(mechanism: Mechanism) -> Array:
    """The mechanism's own active columns."""
    parts = [joint.active for joint in mechanism.independent_joints]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)


def base_link(mechanism: Mechanism, mask: Array, tips: tuple[BodyFrame, ...] | None = None) -> int:
    """The single link on the ground that carries all end effectors, where its joint is all passive; else GROUND."""
    roots = {joint.index for joint in mechanism.joints if joint.parent == GROUND}
    if tips:
        roots = {mechanism.supports[tip.body][0] for tip in tips if tip.body != GROUND}
    if len(roots) != 1:
        return GROUND
    own = mechanism.joints[min(roots)].v
    shared = sum(joint.v == own for joint in mechanism.joints) > 1
    return GROUND if shared or mask[own].any() else min(roots)


def tip_frames(mechanism: Mechanism, base: int) -> tuple[BodyFrame, ...]:
    """The frames of the outermost links: one end effector for every link that carries no other."""
    ends = [i for i, below in enumerate(mechanism.children) if not below and i != base]
    return tuple(mechanism.frames[mechanism.frame_index[mechanism.bodies[i].name]] for i in ends)


def split(mechanism: Mechanism, mask: Array | None = None, tips: tuple[BodyFrame, ...] | None = None) -> Split:
    """The mechanism's own split, or one by another mask of active columns and other end effectors."""
    mask = active_mask(mechanism) if mask is None else np.asarray(mask, dtype=bool)
    base = base_link(mechanism, mask, tips)
    chosen = tip_frames(mechanism, base) if tips is None else tips
    for frame in chosen:
        if frame.body in (GROUND, base):
            where = "the ground" if frame.body == GROUND else f"the base {mechanism.bodies[base].name!r}"
            raise InputError(f"end effector {frame.name!r} is fixed to {where}; it must be on a link beyond the base")
    return Split(np.flatnonzero(mask), np.flatnonzero(~mask), base, chosen)


__all__ = ["Split", "active_mask", "base_link", "split", "tip_frames"]
