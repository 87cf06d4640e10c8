"""How fast a weight W(q) of one's own changes along a motion, as exactly as its function allows.

A function of q alone is plain numpy code. Its derivative along q̇ is found by the first of these that works:

    traced         the function is called with numbers that carry their derivative (`algebra.traced`): exact; it covers
                   operators, indexing, sums, products and ufuncs
    complex step   Im W(q + i h q̇)/h with h = 1e-30: exact to rounding, for analytic functions that need numpy.linalg;
                   taken only if it agrees with the differences, since conjugates and absolute values would spoil it
    differences    sixth order along the manifold's geodesic, about 1e-11

A trace that does not give the function's own values is not believed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.algebra.traced import parts, traced

Array = np.ndarray
Weight = Callable[[Array], Any]

TRACED, COMPLEX_STEP, DIFFERENCES = "traced", "complex step", "differences"


def rate_of_function(weight: Weight, q: Array, q_dot: Array, moved: Callable[[float], Array]) -> tuple[Array, str]:
    """(dW/dt, how it was found); `moved(t)` is the configuration after t seconds of the motion."""
    rate = _by_trace(weight, q, q_dot)
    if rate is not None:
        return rate, TRACED
    differences = _by_differences(weight, moved)
    rate = _by_complex_step(weight, q, q_dot)
    if rate is not None and np.allclose(rate, differences, rtol=1e-7, atol=1e-7 * (1 + np.abs(differences).max())):
        return rate, COMPLEX_STEP
    return differences, DIFFERENCES


def _by_trace(weight: Weight, q: Array, q_dot: Array) -> Array | None:
    """None where the function does not take traced numbers, or gives others than it gives of floats."""
    try:
        values, rates = parts(weight(traced(q, np.broadcast_to(q_dot, q.shape))))
    except (TypeError, AttributeError, ValueError, ArithmeticError):  # what code for floats says of other numbers
        return None
    wanted = np.asarray(weight(q), dtype=float)
    same = values.shape == wanted.shape and np.allclose(values, wanted, rtol=1e-12, atol=1e-14)
    return rates if same and np.isfinite(rates).all() else None


def _by_complex_step(weight: Weight, q: Array, q_dot: Array) -> Array | None:
    h = 1e-30
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a discarded imaginary part is a warning of numpy's
            stepped = np.asarray(weight(q + 1j * h * q_dot))
    except (TypeError, AttributeError, ValueError, ArithmeticError, Warning, np.linalg.LinAlgError):
        return None
    return np.imag(stepped) / h if np.iscomplexobj(stepped) and np.isfinite(stepped).all() else None


def _by_differences(weight: Weight, moved: Callable[[float], Array]) -> Array:
    h = 4e-3  # sixth order: its error h⁶ and the rounding ε/h are both below 1e-12
    steps = [
        np.asarray(weight(moved(k * h)), dtype=float) - np.asarray(weight(moved(-k * h)), dtype=float)
        for k in (1, 2, 3)
    ]
    return (45 * steps[0] - 9 * steps[1] + steps[2]) / (60 * h)


__all__ = ["COMPLEX_STEP", "DIFFERENCES", "TRACED", "rate_of_function"]
