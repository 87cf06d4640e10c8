"""The Jacobian that implicit methods are given is that of the right side they integrate."""

from __future__ import annotations

import numpy as np
import pytest
from simulation_cases import moving, satellite, shipped, tree
from test_switches import motor_slider

import polybody as pb
from polybody.model.engine import Request
from polybody.quantities.table import QUANTITIES
from polybody.simulation.jacobian import jacobian
from polybody.simulation.problem import Problem
from polybody.simulation.stops import Stop, Stops


def differences(problem, t, y, moves):
    """Derivatives of the right side along displacements of y, by differences of order four."""
    h = 1e-4
    ends = [problem.rate(t, y + k * h * d) for d in moves for k in (-2, -1, 1, 2)]
    a, b, c, d = np.reshape(ends, (len(moves), 4, -1)).swapaxes(0, 1)
    return ((a - d) + 8 * (c - b)).T / (12 * h)


def states(problem, model, q, v):
    """A state of the problem and the directions in which it may move: q along its manifold."""
    y = problem.state(q, v, np.full(problem.circuits.size, 0.3))
    gamma = np.array([model.engine.answer(Request(QUANTITIES["rate"], (q, e))) for e in np.eye(model.nv)])
    moves = np.zeros((model.nv, problem.size))
    moves[:, : model.nq] = gamma
    return y, np.concatenate([moves, np.eye(problem.size)[model.nq : -1]])


def torque(model):
    return lambda t, q, v: 0.3 * np.cos(t) - 2.0 * model.difference(model.neutral(), q) - 0.5 * v * np.abs(v)


def compare(problem, t, y, moves, tolerance=1e-7):
    found, expected = jacobian(problem, t, y) @ moves.T, differences(problem, t, y, moves)
    np.testing.assert_allclose(found[:-1], expected[:-1], atol=tolerance * np.abs(expected[:-1]).max())


@pytest.mark.parametrize("driven", [False, True])
@pytest.mark.parametrize("make", [satellite, lambda: tree(3, 6), lambda: shipped("stanford-arm")])
def test_jacobian_of_trees_is_that_of_the_right_side(make, driven):
    model = make()
    push = {model.body_names[-1]: [0.1, -0.2, 0.3, 1.0, 2.0, -1.0]}
    problem = Problem(model, torque(model), push) if driven else Problem(model)
    compare(problem, 0.4, *states(problem, model, *moving(model)))


def test_jacobian_of_motors_is_that_of_their_circuits():
    model = motor_slider(0.3)
    problem = Problem(model, voltages=lambda t, q, v: [12 - 3 * v[0] + q[0]])
    compare(problem, 0.0, *states(problem, model, np.array([0.2]), np.array([1.5])))


def test_jacobian_with_a_held_stop_keeps_the_joint_at_rest():
    model = spinner()
    problem = Problem(model)
    problem.stops = Stops(model, 0.0)
    stop = Stop("swing", 1, 1, 1, 0.5)
    problem.stops.held[stop.v] = stop
    q, v = moving(model)
    v[stop.v] = 0.0
    y, moves = states(problem, model, q, v)
    moves = moves[[k for k in range(len(moves)) if k not in (stop.v, model.nv + stop.v)]]
    compare(problem, 0.0, y, moves)


@pytest.mark.parametrize("name", ["four-bar", "stewart", "bricard"])
def test_jacobian_of_loops_along_closed_motions_is_that_of_the_right_side(name):
    model = shipped(name)
    problem = Problem(model, torque(model))
    rng = np.random.default_rng(2)
    q = model.assemble()
    v = model.assemble_velocity(q, rng.normal(size=model.nv))
    y = problem.state(q, v)
    h, found = 1e-4, jacobian(problem, 0.0, y)
    for _ in range(3):
        d, w = model.assemble_velocity(q, rng.normal(size=model.nv)), rng.normal(size=model.nv)

        def at(s, d=d, w=w):
            near = model.assemble(model.integrate(q, d, s))
            return problem.state(near, model.assemble_velocity(near, v + s * w))

        rates = [problem.rate(0.0, at(s)) for s in (-2 * h, -h, h, 2 * h)]
        change = [at(s) for s in (-2 * h, -h, h, 2 * h)]
        slope = [(x[0] - x[3] + 8 * (x[2] - x[1])) / (12 * h) for x in (rates, change)]
        expected = slope[0][:-1]
        np.testing.assert_allclose((found @ slope[1])[:-1], expected, atol=2e-6 * np.abs(expected).max())


def spinner() -> pb.Model:
    """Nothing depends on the first angle; the slide is held by a stiff damped spring."""
    build = pb.Builder("spinner")
    for name in ("spin", "swing", "slide"):
        build.body(f"{name} body", 1.0, com=(0.1, 0.05, 0.0), inertia=(0.01, 0.02, 0.015))
    build.joint("spin", "continuous", "world", "spin body")
    build.joint("swing", "revolute", "spin body", "swing body", (0.2, 0, 0), axis=(0, 1, 0))
    build.joint("slide", "prismatic", "swing body", "slide body", (0.1, 0, 0), axis=(1, 0, 0), stiffness=1e6,
                damping=1e3)
    return build.model()


@pytest.mark.parametrize("method", ["radau", "cvodes"])
def test_stiff_methods_go_on_where_an_angle_is_cyclic(method):
    model, start = spinner(), ([0.3, 0.4, 0.0], [2.0, 0.5, 0.0])
    lifted = {"slide body": [0, 0, 0, 0, 0, 1.0]}
    run = pb.simulate(model, 20.0, *start, method=method, rtol=1e-6, atol=1e-8, wrenches=lifted)
    assert run.stopped is None
    assert run.audit.energy_error_relative < 1e-3


def test_midpoint_rule_takes_gains_that_are_stiff_for_its_step():
    """Gains whose time constant is a thousandth of the step: the torques do not converge without their derivatives."""
    model = shipped("double-pendulum")
    run = pb.simulate(model, 0.2, [0.3, 0.1], controller=lambda t, q, v: -1e6 * q - 1e4 * v, method="midpoint", dt=1e-2)
    assert run.stopped is None
    assert np.abs(run.q[-1]).max() < 0.3
