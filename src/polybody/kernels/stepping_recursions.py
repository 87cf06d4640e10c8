"""Machine code for the inertias of long chains at crossings, in the language of `native`.

In the place of a matrix and its factors (`stepping_bounds.MATRICES`) are recursions, whose time grows with the number
of velocities only:

    solve(x, constants, f) -> M⁻¹ f        energy(x, constants, v) -> [½ vᵀM v + U]
"""

from __future__ import annotations

RECURSIONS = """
def _inertial(job, x):
    m = word(job + SWITCH_MEMORY)
    put(m + SW_JOB, job)
    _copy(m + SW_ASKED, x, N)
    return 0

def _energy(m, v, out):  # of motion and place, at the state that `_inertial` was asked for
    job = word(m + SW_JOB)
    call(word(job + ENERGY_AT), m + SW_ASKED, word(job + CONSTANTS), v, out, word(job + ENERGY_WITH))
    return 0

def _answered(m, column, v, sign: float):  # M⁻¹n, n the row of a velocity
    job = word(m + SW_JOB)
    row = m + SW_PASSED
    for i in range(NV):
        put(row + 8 * i, 0.0)
    put(row + v, sign)
    call(word(job + SOLVE_AT), m + SW_ASKED, word(job + CONSTANTS), row, column, word(job + SOLVE_WITH))
    return 0
"""

__all__ = ["RECURSIONS"]
