"""Methods as data: what `kernels.stepping` steps by."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from polybody.kernels.stepping import Tableau
    from polybody.kernels.stepping_given import Nodes
    from polybody.kernels.stepping_radau import Collocation

Array = np.ndarray


@cache
def runge_kutta_4() -> Tableau:
    """The classical method of order 4."""
    from polybody.kernels.stepping import Tableau

    A = np.zeros((4, 4))
    A[1, 0], A[2, 1], A[3, 2] = 0.5, 0.5, 1.0
    return Tableau(A, np.array([1, 2, 2, 1]) / 6)


@cache
def dormand_prince_8() -> Tableau:
    """Dormand and Prince's pair of order 8(5, 3) with its interpolant of order 7; SciPy has the numbers."""
    from polybody.kernels.stepping import Tableau

    numbers = _coefficients()
    n, A = numbers["N_STAGES"], numbers["A"]
    return Tableau(
        A[:n, :n], numbers["B"], A[n + 1 :], np.array([numbers["E5"], numbers["E3"]]), numbers["D"]
    )


@cache
def radau_5() -> Collocation:
    """Radau IIA of order 5: collocation at the zeros of Radau's polynomial, the last at the end of the step."""
    from polybody.kernels.stepping_radau import Collocation

    c, orders = np.array([(4 - 6**0.5) / 10, (4 + 6**0.5) / 10, 1.0]), np.arange(1, 4)
    powers = np.vander(c, 3, increasing=True).T  # Σ_j A_ij c_j^(k − 1) = c_i^k/k
    return Collocation(c, np.array([np.linalg.solve(powers, end**orders / orders) for end in c]))


@cache
def of_sundials() -> Nodes:
    """Steps that SUNDIALS has taken, given at Chebyshev's points."""
    from polybody.kernels.stepping_given import Nodes
    from polybody.simulation.integrators.pieces import LOOKS, chebyshev

    return Nodes(*chebyshev(), LOOKS)


def nested(terms: Array, s: float) -> Array:
    """Dormand and Prince's interpolant at the part s of a step: s (F₀ + (1 − s) (F₁ + s (F₂ + …))), F the terms."""
    found = np.zeros_like(terms[0])
    for k in range(len(terms) - 1, -1, -1):
        found = (found + terms[k]) * (1 - s if k % 2 else s)
    return found


def interpolating(tableau: Tableau, parts: Array) -> Array:
    """Weights w (parts, stages) in x₀ + h Σ w_i K_i at parts of a step; K are the rates of stages, end and `extra`."""
    assert tableau.dense is not None
    n, columns = tableau.stages, tableau.dense.shape[1]
    b, (first, last) = np.pad(tableau.b, (0, columns - n)), np.eye(columns)[[0, n]]
    terms = np.array([b, first - b, 2 * b - last - first, *tableau.dense])
    return np.array([nested(terms, s) for s in parts]).reshape(-1, columns)


def _coefficients() -> dict[str, Any]:
    """SciPy's module of numbers alone: to import its package takes half a second, and scipy itself some more."""
    package = find_spec("scipy")
    for folder in (package.submodule_search_locations or ()) if package else ():
        path = Path(folder) / "integrate" / "_ivp" / "dop853_coefficients.py"
        spec = spec_from_file_location("dop853_coefficients", path) if path.is_file() else None
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return dict(vars(module))
    from scipy.integrate._ivp import dop853_coefficients

    return dict(vars(dop853_coefficients))


TABLEAUX: dict[str, Callable[[], Tableau | Collocation]] = {
    "rk4": runge_kutta_4, "dop853": dormand_prince_8, "radau": radau_5,
}  # fmt: skip
#: methods whose steps SUNDIALS takes
GIVEN: dict[str, Callable[[], Nodes]] = {"cvodes": of_sundials, "idas": of_sundials}

__all__ = ["GIVEN", "TABLEAUX", "dormand_prince_8", "interpolating", "nested"]
