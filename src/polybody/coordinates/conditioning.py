"""Inverses of Jacobians that say what is lost where they do not exist.

G = Σ s_k a_k b_kᵀ. Where the smallest s is below 1/limit of the largest, the motion a_min of the new coordinates cannot
be produced, and the motion b_min of the old ones does not show in them. Damped, G⁻¹ becomes Gᵀ(GGᵀ + λ²)⁻¹.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polybody.errors import PolybodyError
from polybody.mechanism.columns import direction_text, state_text

Array = np.ndarray

#: a transfer with a larger condition number stops
CONDITION_LIMIT = 1e7


class SingularTransferError(PolybodyError):
    """A coordinate transfer at a singular or nearly singular configuration.

    `singular_values`, `lost` and `unseen` describe the singularity, `condition` is the condition number.
    """

    def __init__(
        self, message: str, singular_values: Array, lost: Array, unseen: Array, index: tuple[int, ...]
    ) -> None:
        super().__init__(message)
        self.singular_values = singular_values
        self.lost = lost
        self.unseen = unseen
        self.index = index

    @property
    def condition(self) -> float:
        """Largest over smallest singular value; infinite at a singular configuration."""
        s = self.singular_values
        return float(s[0] / s[-1]) if s[-1] > 0 else float("inf")


def inverse(
    G: Array, new: Sequence[str], old: Sequence[str], *, damping: float | None = None, limit: float = CONDITION_LIMIT
) -> Array:
    """G⁻¹ over leading dimensions; damped by λ where asked, else an error that names the lost direction."""
    if damping is not None:
        Gt = np.swapaxes(G, -1, -2)
        return Gt @ np.linalg.inv(G @ Gt + damping**2 * np.eye(G.shape[-2]))
    U, s, Vt = np.linalg.svd(G)
    bad = ~(s[..., -1] * limit > s[..., 0])
    if np.any(bad):
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        values, lost, unseen = s[index], U[index][:, -1], Vt[index][-1]
        condition = f"{values[0] / values[-1]:.3g}" if values[-1] > 0 else "infinite"
        raise SingularTransferError(
            f"these coordinates are singular here{state_text(index)}: condition number {condition}, singular values "
            f"{np.array2string(values, precision=3)}. Lost: the motion {direction_text(lost, new)}; not seen: "
            f"the motion {direction_text(unseen, old)}. Take another configuration, other coordinates, or damping",
            values, lost, unseen, index,
        )
    return np.linalg.inv(G)


__all__ = ["CONDITION_LIMIT", "SingularTransferError", "inverse"]
