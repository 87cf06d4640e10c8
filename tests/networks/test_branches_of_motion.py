"""Expressions of mechanisms with loops hold on every branch of motion, where pivots of general position vanish, too."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_pieces import LAWS, nothing, walker

import polybody as pb


def planar_states(model: pb.Model, count: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Assembled states all in one plane that are not singular."""
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        q = model.assemble(model.integrate(model.neutral(), rng.normal(size=model.nv)))
        if abs(q[0]) > 1e-9 or np.linalg.svd(model.constraints.jacobian(q))[1].min() < 0.05:
            continue
        found.append((q, model.assemble_velocity(q, rng.normal(size=model.nv)), rng.normal(size=model.nv)))
        if len(found) == count:
            return found
    pytest.fail("no planar states found")


def test_symbolic_forward_dynamics_and_its_slopes_hold_in_the_plane() -> None:
    import casadi as ca

    # it moves in space, and on another branch in a plane
    model = walker(nothing, LAWS["elastic cylinder"], False).model()
    f = model.casadi("forward_dynamics")
    q, v, tau = f.sx_in()
    slopes = ca.Function("slopes", [q, v, tau], [ca.jacobian(f(q, v, tau)[0], x) for x in (q, v, tau)])
    for state in planar_states(model, 5):
        wanted = model.forward_dynamics(*state)
        a, told = (np.array(x).ravel() for x in f(*state))
        assert_allclose(a, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())
        assert told[2] < 1e6
        dq, dv, dtau = (np.array(x) for x in slopes(*state))
        assert_allclose(dtau, model.forward_dynamics_derivatives(*state)[2], rtol=0, atol=1e-9 * np.abs(dtau).max())
        # along the motion itself: d/dt of a(q, v, tau) is the slope times (q̇, v̇)
        step = 1e-4
        run = pb.simulate(model, 2 * step, state[0], state[1], lambda t, q, v, u=state[2]: u, rtol=1e-12, atol=1e-14,
                          times=[0, step, 2 * step])  # fmt: skip
        ends = [model.forward_dynamics(run.q[k], run.v[k], state[2]) for k in (0, 1, 2)]
        rate = (-3 * ends[0] + 4 * ends[1] - ends[2]) / (2 * step)
        mine = dq @ np.array(model.casadi("rate")(state[0], state[1])).ravel() + dv @ wanted
        assert_allclose(mine, rate, rtol=0, atol=1e-3 * np.abs(rate).max())


def test_mechanisms_with_one_branch_have_one_plan() -> None:
    for name in ("four-bar", "stewart"):
        engine = pb.load(name).engine
        assert engine._other_plans(engine._own_plan()[1]) == ()
