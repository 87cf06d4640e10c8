"""Where arms hold an object: grips, the grasp matrix, shares and internal loads.

The object is a body of the mechanism, moved from the ground by a joint of its own. Grip j is an end-effector frame e_j
of an arm that coincides with a frame g_j of the object. With twists of grips in the grip's own axes,

    V^e = W V^o,     W_j = X(g_j, object), 6×6,  W is 6m×6        (29), (30) corrected for [η; f], (34)

A rigid grasp seen from the body frames has Ẇ = 0. The object needs the wrench w = M_o V̇° + b_o (33), which m grips
supply as

    f_j = W_j⁻ᵀ (w / m + λ_j),      Σ λ_j = 0

each an equal share, taken to its grip, plus an internal load: λ_j (j = 2 … m), a wrench in object axes at the object's
origin, is what arm j exerts beyond its share, and arm 1 takes the opposite. The columns of N (6m×6(m−1)) are these
loads one by one: WᵀN = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polybody.errors import InputError
from polybody.formulations.operators.named import frame_crossing
from polybody.mechanism.mechanism import GROUND, BodyFrame, Mechanism
from polybody.properties import cached_property

Array = np.ndarray

AXES = ("moment x", "moment y", "moment z", "force x", "force y", "force z")


@dataclass(frozen=True, eq=False)
class Grip:
    """End-effector frame `tip` of an arm holds the object at its frame `hold`, by the loop `name`."""

    name: str
    tip: BodyFrame
    hold: BodyFrame

    @cached_property
    def W(self) -> Array:
        """W_j: twist of the object to twist of the grip."""
        return frame_crossing(self.hold).matrix()

    @cached_property
    def lifted(self) -> Array:
        """W_j⁻ᵀ: wrench at the object's origin to wrench at the grip."""
        return np.linalg.inv(self.W).T


@dataclass(frozen=True, eq=False)
class Holding:
    """Body `object` of a mechanism is held by m grips."""

    object: int
    grips: tuple[Grip, ...]

    @property
    def m(self) -> int:
        return len(self.grips)

    @cached_property
    def W(self) -> Array:
        """The grasp matrix, 6m×6."""
        return np.vstack([grip.W for grip in self.grips])

    @cached_property
    def internal_basis(self) -> Array:
        """N, 6m×6(m−1): unit internal loads, in grip axes."""
        N = np.zeros((6 * self.m, 6 * (self.m - 1)))
        for j in range(1, self.m):
            columns = slice(6 * (j - 1), 6 * j)
            N[6 * j : 6 * j + 6, columns] = self.grips[j].lifted
            N[:6, columns] = -self.grips[0].lifted
        return N

    @property
    def internal_names(self) -> list[str]:
        """What each column of N is."""
        first = self.grips[0].tip.name
        return [f"{axis} of {grip.tip.name} against {first}" for grip in self.grips[1:] for axis in AXES]

    @property
    def equal_shares(self) -> Array:
        """6m×6: f_e of equal shares of the object's wrench (object axes, object origin)."""
        return np.vstack([grip.lifted for grip in self.grips]) / self.m

    @cached_property
    def _internal_map(self) -> Array:
        """6m×6(m−1): λ of loads f_e, both as rows: λ_k = Σ_j f_j W_j (δ_jk − 1/m)."""
        each = np.eye(self.m)[:, 1:] - 1.0 / self.m
        return np.vstack([np.kron(row, grip.W) for row, grip in zip(each, self.grips, strict=True)])

    def internal_part(self, f_e: Array) -> Array:
        """λ, (..., 6(m−1)), of loads f_e (..., m, 6)."""
        return f_e.reshape(*f_e.shape[:-2], 6 * self.m) @ self._internal_map

    def check(self, mechanism: Mechanism) -> None:
        """Refuse what cannot be a grasp."""
        name = mechanism.bodies[self.object].name
        if mechanism.joints[self.object].parent != GROUND:
            raise InputError(
                f"object {name!r} is carried by joint {mechanism.joints[self.object].name!r} of another body; an "
                "object to grasp moves from the ground by a joint of its own (floating, or planar)"
            )
        if not self.grips:
            raise InputError(f"a grasp of {name!r} needs at least one end effector")
        for grip in self.grips:
            if grip.tip.body == GROUND:
                raise InputError(f"end effector {grip.tip.name!r} is fixed to the ground, so it cannot hold {name!r}")
            if self.object in mechanism.supports[grip.tip.body]:
                raise InputError(f"end effector {grip.tip.name!r} is part of the object {name!r} that it should hold")
            if grip.hold.body != self.object:
                raise InputError(f"frame {grip.hold.name!r} is not fixed to the object {name!r}")


__all__ = ["Grip", "Holding"]
