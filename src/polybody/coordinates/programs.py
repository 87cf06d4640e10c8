"""Least norms within limits, many states in one program.

    least ‖w(B x + c)‖_p   such that   E x = e,   low ≤ B x + c ≤ high          p = 1, 2, ∞

States do not know each other: their programs are the blocks of one sparse program. p = 1 and ∞ are linear programs for
HiGHS (scipy), p = 2 is quadratic, for Clarabel (extra `control`). Where limits leave nothing, another linear program
finds the least factor s on the limits that would do, low s ≤ B x + c ≤ high s; limits of the other sign (cables that
must pull) do not grow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.late import dataclass

Array = np.ndarray
NORMS = (1, 2, np.inf)
#: unknowns of one program: larger batches are cut, for speed, and so that no solver keeps an interrupt waiting
MOST = 4_000


@dataclass(frozen=True, eq=False)
class Program:
    """B (s, n, k), c (s, n), E (s, r, k), e (s, r), low and high (s, n) or (n,), weights (n,)."""

    B: Array
    c: Array
    E: Array
    e: Array
    low: Array
    high: Array
    weights: Array

    def part(self, states: Any) -> Program:
        """The program of some states."""
        return Program(
            self.B[states], self.c[states], self.E[states], self.e[states],
            np.broadcast_to(self.low, self.c.shape)[states], np.broadcast_to(self.high, self.c.shape)[states],
            self.weights,
        )  # fmt: skip


class LimitsError(PolybodyError):
    """Actuator limits are infeasible.

    `needed` is the smallest factor on the limits that would be feasible, `index` the state in the batch.
    """

    def __init__(self, message: str, needed: float, index: int) -> None:
        super().__init__(message)
        self.needed, self.index = needed, index


def check_norm(norm: Any) -> float:
    """1, 2 or ∞ from what a user says."""
    value = {"1": 1, "2": 2, "inf": np.inf}.get(str(norm), norm)
    if value not in NORMS:
        raise InputError(f"norm is {norm!r}, expected 1, 2 or 'inf'")
    return float(value)


def solve(program: Program, norm: float, numbers: Array | None = None) -> Array:
    """x (s, k); `numbers` (s,) are those of the states in the user's batch, for errors."""
    states, k = len(program.c), program.B.shape[-1]
    size = max(1, MOST // max(k + program.c.shape[-1], 1))
    numbers = np.arange(states) if numbers is None else numbers
    pieces = [_piece(program.part(slice(a, a + size)), norm, numbers[a : a + size]) for a in range(0, states, size)]
    return np.concatenate(pieces) if pieces else np.zeros((0, k))


def _piece(program: Program, norm: float, numbers: Array) -> Array:
    found = _quadratic(program) if norm == 2 else _linear(program, norm)
    if found is None:
        _refuse(program, numbers)
    assert found is not None
    return found


def _stacked(blocks: Array) -> Any:
    from scipy.sparse import block_diag

    return block_diag(list(blocks), format="csc")


def _linear(program: Program, norm: float) -> Array | None:
    """By HiGHS: |w(Bx + c)| ≤ t, with one t per row (p = 1) or per state (p = ∞); None where nothing is left."""
    from scipy.optimize import linprog
    from scipy.sparse import csc_matrix, hstack, kron, vstack
    from scipy.sparse import eye as identity

    s, n, k = program.B.shape
    B, w = _stacked(program.B), np.tile(program.weights, s)
    WB = B.multiply(w[:, None]).tocsc()
    Wc = w * program.c.ravel()
    T = identity(s * n) if norm == 1 else kron(identity(s), np.ones((n, 1)))
    m = s * n if norm == 1 else s
    rows = [hstack([WB, -T]), hstack([-WB, -T])]
    right = [-Wc, Wc]
    low, high = (np.broadcast_to(x, program.c.shape).ravel() for x in (program.low, program.high))
    for sign, limit in ((1, high), (-1, low)):
        kept = np.isfinite(limit)
        if kept.any():
            rows.append(hstack([(sign * B).tocsr()[kept], csc_matrix((int(kept.sum()), m))]))
            right.append(sign * (limit - program.c.ravel())[kept])
    E = _stacked(program.E)
    cost = np.concatenate([np.zeros(s * k), np.ones(m)])
    answer = linprog(
        cost, vstack(rows).tocsc(), np.concatenate(right), hstack([E, csc_matrix((E.shape[0], m))]).tocsc(),
        program.e.ravel(), bounds=[(None, None)] * (s * k) + [(0, None)] * m, method="highs",
    )  # fmt: skip
    if answer.status == 2:
        return None
    if answer.status != 0:
        raise PolybodyError(f"HiGHS did not solve this program: {answer.message}")
    return answer.x[: s * k].reshape(s, k)


def _quadratic(program: Program) -> Array | None:
    """By Clarabel; None where nothing is left."""
    clarabel = require_clarabel()
    from scipy.sparse import vstack

    s, _, k = program.B.shape
    B, w = _stacked(program.B), np.tile(program.weights, s)
    P = (B.T @ B.multiply((w**2)[:, None])).tocsc()
    linear = B.T @ (w**2 * program.c.ravel())
    low, high = (np.broadcast_to(x, program.c.shape).ravel() for x in (program.low, program.high))
    rows, right = [_stacked(program.E)], [program.e.ravel()]
    for sign, limit in ((1, high), (-1, low)):
        kept = np.isfinite(limit)
        rows.append((sign * B).tocsr()[kept].tocsc())
        right.append(sign * (limit - program.c.ravel())[kept])
    cones = [clarabel.ZeroConeT(rows[0].shape[0]), clarabel.NonnegativeConeT(rows[1].shape[0] + rows[2].shape[0])]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    answer = clarabel.DefaultSolver(P, linear, vstack(rows).tocsc(), np.concatenate(right), cones, settings).solve()
    status = str(answer.status)
    if "Infeasible" in status:
        return None
    if status not in ("Solved", "AlmostSolved"):
        raise PolybodyError(f"Clarabel did not solve this program: {status}")
    return np.array(answer.x).reshape(s, k)


def require_clarabel() -> Any:
    """The module, or an error that says what to install."""
    try:
        import clarabel
    except ImportError:
        raise PolybodyError("Clarabel is not installed; pip install polybody[control]") from None
    return clarabel


def _refuse(program: Program, numbers: Array) -> None:
    """Name the first state whose limits leave nothing, and by what factor they would have to grow."""
    for k, number in enumerate(numbers):
        needed = _factor(program.part(slice(k, k + 1)))
        if needed == np.inf:
            raise LimitsError(
                f"no forces within any multiple of the limits produce the required motion in state {number}", np.inf,
                int(number),
            )  # fmt: skip
        if needed > 1 + 1e-9 or len(numbers) == 1:
            raise LimitsError(
                f"no forces within the limits produce the required motion in state {number}: at least "
                f"{needed:.3g} times the limits are needed", needed, int(number),
            )  # fmt: skip
    raise LimitsError("no forces within the limits produce the required motion in some state", np.inf, int(numbers[0]))


def _factor(one: Program) -> float:
    """The least s with E x = e and low s ≤ B x + c ≤ high s for one state, infinite where there is none."""
    from scipy.optimize import linprog

    (B,), (c,), (E,), (e,) = one.B, one.c, one.E, one.e
    n, k = B.shape
    rows, right = [], []
    for sign, limit in ((1, np.broadcast_to(one.high, (1, n))[0]), (-1, np.broadcast_to(one.low, (1, n))[0])):
        kept, room = np.isfinite(limit), sign * limit
        grows = room >= 0  # a limit of the other sign stays as it is
        rows.append(np.column_stack([sign * B, np.where(grows, -np.where(kept, room, 0.0), 0.0)])[kept])
        right.append((np.where(grows, 0.0, np.where(kept, room, 0.0)) - sign * c)[kept])
    answer = linprog(
        np.concatenate([np.zeros(k), [1.0]]), np.concatenate(rows), np.concatenate(right), np.column_stack([E, 0 * e]),
        e, bounds=[(None, None)] * k + [(0, None)], method="highs",
    )  # fmt: skip
    if answer.status == 2:
        return np.inf
    if answer.status != 0:
        raise PolybodyError(f"HiGHS did not solve this program: {answer.message}")
    return float(answer.x[-1])


__all__ = ["LimitsError", "Program", "check_norm", "require_clarabel", "solve"]
