"""One step of Runge and Kutta's method as a tape: its stages run one tape of ẏ = f(y, p, u).

    k₁ = f(y),  k₂ = f(y + h/2 k₁),  k₃ = f(y + h/2 k₂),  k₄ = f(y + h k₃),   y₁ = y + h/6 (k₁ + 2(k₂ + k₃) + k₄)

with h = p₀ and u held. `finish` is what is done with y₁: unit quaternions, the way back to loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from polybody.model.tracing import Recorded

if TYPE_CHECKING:
    from polybody.kernels.tape import Tape


def rk4_step(stage: Recorded, finish: Recorded, size: int) -> Tape:
    """The tape (x, p[, u]) → x of stages and finish, functions of the same; y are the first `size` of x."""
    from polybody.kernels.composing import Composition

    make = Composition([column.shape[0] for column in stage.columns])
    field, last = stage.tape(), finish.tape()
    x, *others = make.inputs
    y, more = x[:size], x[size:]
    h, two = others[0][0], make.constant(2.0)
    half, sixth = make.product(h, make.constant(0.5)), make.product(h, make.constant(1.0 / 6.0))

    def moved(rate: Sequence[int], by: int) -> list[int]:
        return [make.sum(a, make.product(b, by)) for a, b in zip(y, rate, strict=True)]

    def rate(at: list[int]) -> list[int]:
        return make.run(field, [[*at, *more], *others])[0]

    k1 = rate(y)
    k2 = rate(moved(k1, half))
    k3 = rate(moved(k2, half))
    k4 = rate(moved(k3, h))
    total = [
        make.sum(make.sum(a, make.product(make.sum(b, c), two)), d) for a, b, c, d in zip(k1, k2, k3, k4, strict=True)
    ]
    return make.tape([make.run(last, [[*moved(total, sixth), *more], *others])[0]])


__all__ = ["rk4_step"]
