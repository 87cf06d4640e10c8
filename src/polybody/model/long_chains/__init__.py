"""Long chains: every quantity that is a recursion over the tree as a rolled kernel (see `kinds` and `kernels`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polybody.mechanism.mechanism import Mechanism
from polybody.model.long_chains.choice import coriolis_early, early, is_long, worth_rolling

if TYPE_CHECKING:
    from polybody.kernels import Kernel


def kernel(mechanism: Mechanism, name: str, dtype: Any = float, lanes: int | None = None) -> Kernel | None:
    """The rolled kernel of a quantity by its name in `quantities.table`, or None where there is none.

    It grows with the number of joints (matrices: with its square). With "_wrenches" after the name, dynamics takes a
    wrench on each body too: world axes, at the body's origin.
    """
    from polybody.model.long_chains import kernels  # compilers are imported when they are needed

    return kernels.kernel(mechanism, name, dtype, lanes)


def names() -> frozenset[str]:
    """The quantities that `kernel` knows; families are followed by their parameters, as in `quantities.table`."""
    from polybody.model.long_chains import kernels

    return kernels.NAMES


__all__ = ["coriolis_early", "early", "is_long", "kernel", "names", "worth_rolling"]
