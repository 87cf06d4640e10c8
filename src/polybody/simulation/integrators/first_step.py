"""The first step of an adaptive method, from two evaluations (Hairer, Nørsett & Wanner, Solving Ordinary Differential
Equations I, II.4).

With norms relative to the tolerances, ‖x‖ = root mean square of xᵢ/(atolᵢ + rtol |y₀ᵢ|), and p the order of the error
estimate: h₀ is a hundredth of ‖y₀‖/‖f₀‖; f₁ is the rate after an Euler step by h₀, d₂ = ‖f₁ − f₀‖/h₀, and

    h₁ = (0.01/max(‖f₀‖, d₂))^(1/(p + 1)),    h = min(100 h₀, h₁)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray


def first_step(
    rate: Callable[[float, Array], Array], t: float, y: Array, end: float, max_step: float, order: int, rtol: float,
    atol: Array,
) -> float:  # fmt: skip
    """Seconds; entries whose atol is infinite do not count."""
    span = end - t
    scale = atol + rtol * np.abs(y)
    norm = lambda x: float(np.sqrt(np.mean(np.square(x / scale))))  # noqa: E731
    f = rate(t, y)
    size, speed = norm(y), norm(f)
    h = 1e-6 if size < 1e-5 or speed < 1e-5 else 0.01 * size / speed
    h = min(h, span)
    turn = norm(rate(t + h, y + h * f) - f) / h
    fastest = max(speed, turn)
    later = max(1e-6, 1e-3 * h) if fastest <= 1e-15 else (0.01 / fastest) ** (1 / (order + 1))
    return min(100 * h, later, span, max_step)


__all__ = ["first_step"]
