"""Swain & Morris' Table I, as the paper has it, against the engine that answers grasps: random arms, every base."""

from __future__ import annotations

import numpy as np
import pytest

from cooperation import MIXED, SIX, held_system
from polybody.algebra.domains import FLOAT, domain
from polybody.formulations.operators import table_one
from polybody.grasping.grasp import Grasp
from polybody.model.engine import Request
from polybody.quantities.table import QUANTITIES

BASES = {
    "fixed, a turntable on it": ((SIX, MIXED), {"base": "revolute", "gravity": (0.3, -0.2, -9.81)}),
    "floating": ((SIX, MIXED), {"gravity": (0, 0, 0)}),
    "flying": ((MIXED, SIX, SIX), {"gravity": (1, 2, -9.81), "armature": True}),
    "flexible": ((SIX, SIX), {"passive": True, "gravity": (0, 0, -3.0)}),
}


def by_engine(held: Grasp, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a, f_e) by the ranks of the shared engine: nothing is compiled but the constraints."""
    request = Request(QUANTITIES["forward_dynamics"], (q, v, tau))
    solved = held.closed.engine.ranked.solution(request)
    return solved.a, solved.multipliers


@pytest.mark.parametrize("base", BASES)
def test_table_one_equals_the_engine_of_loops(base):
    arms, options = BASES[base]
    held, q, v, tau = held_system(5, arms, **options)
    if base in ("floating", "flexible"):
        tau[:6] = 0.0  # thrusters push the flying base alone
    grips = [(grip.tip, grip.hold) for grip in held.held.grips]
    found = table_one(held.model.mechanism, q, v, tau, held.held.object, grips)
    a, f_e = by_engine(held, q, v, tau)
    np.testing.assert_allclose(found.a, a, rtol=0, atol=1e-9 * (1 + np.abs(a).max()))
    np.testing.assert_allclose(found.f_e, f_e, rtol=0, atol=1e-9 * (1 + np.abs(f_e).max()))
    np.testing.assert_allclose(found.object_acceleration, a[-6:], rtol=0, atol=1e-9 * (1 + np.abs(a).max()))


def test_table_one_is_the_same_over_complex_numbers():
    held, q, v, tau = held_system(5, (SIX, SIX))
    grips = [(grip.tip, grip.hold) for grip in held.held.grips]
    m, body = held.model.mechanism, held.held.object
    complex_ = domain("complex128")
    wide = table_one(m, *(complex_.array(x) for x in (q, v, tau)), body, grips, domain=complex_)
    plain = table_one(m, q, v, tau, body, grips, domain=FLOAT)
    np.testing.assert_allclose(wide.a.real, plain.a, atol=1e-11 * np.abs(plain.a).max())
