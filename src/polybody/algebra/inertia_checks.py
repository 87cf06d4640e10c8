"""Whether mass properties can belong to a real body.

A body of mass m has an inertia about its mass centre whose principal moments are not negative and obey the triangle
inequality I_1 + I_2 ≥ I_3 (their sums and differences are integrals of squares). Equality belongs to flat and slender
bodies. Negative or non-finite mass can never be right; the rest occurs in real files and is only worth a warning.
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import Array

#: Relative slack: files print inertias with few digits.
SLACK = 1e-6


def inertia_problem(inertia: Array) -> str | None:
    """What is unphysical about a 3×3 inertia about the mass centre, or None."""
    moments = np.linalg.eigvalsh(np.asarray(inertia, dtype=float))
    scale = float(np.abs(moments).max())
    if scale == 0.0:
        return None
    listed = ", ".join(f"{m:.6g}" for m in moments)
    if moments[0] < -SLACK * scale:
        return f"its inertia is not positive semidefinite (principal moments {listed})"
    if moments[0] + moments[1] < moments[2] * (1 - SLACK):
        return (
            f"its inertia breaks the triangle inequality (principal moments {listed}: "
            "the two smaller must sum to at least the largest)"
        )
    return None


__all__ = ["inertia_problem"]
