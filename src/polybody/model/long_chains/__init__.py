"""Long chains: every quantity that is a recursion over the tree as a rolled kernel (see `kinds` and `kernels`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from polybody.mechanism.mechanism import Mechanism
from polybody.model.long_chains.choice import ANY_FROM, FEW_KINDS_FROM, worth_rolling

if TYPE_CHECKING:
    from polybody.kernels import Kernel


def kernel(mechanism: Mechanism, name: str, arguments: Sequence[str] | None = None) -> Kernel | None:
    """The rolled kernel of a quantity by its name in `quantities.table`, or None where there is none.

    It grows with the number of joints (matrices: with its square). Where `arguments` hold "wrenches", dynamics takes a
    wrench on each body too: world axes, at the body's origin.
    """
    from polybody.model.long_chains import kernels  # compilers are imported when they are needed

    return kernels.kernel(mechanism, name, arguments)


def names() -> frozenset[str]:
    """The quantities that `kernel` knows; "pose" and "jacobian" are followed by axes and frame."""
    from polybody.model.long_chains import kernels

    return kernels.NAMES


__all__ = ["ANY_FROM", "FEW_KINDS_FROM", "kernel", "names", "worth_rolling"]
