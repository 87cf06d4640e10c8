"""Derivatives and linearisation of models with loops, against differences between closed neighbours of a state."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from scipy.linalg import expm
from typer.testing import CliRunner

import polybody as pb
from closed_states import closed_state, neighbour
from machines import parallelogram
from polybody.cli import app

Array = np.ndarray
STEP = 1e-4
AXES = ((0, 0, 1), (0, 1, 0), (0, 0.6, 0.8))


def slope(f: Callable[[float], Array]) -> Array:
    """df/dx at 0, by the fourth-order difference."""
    return (8 * (f(STEP) - f(-STEP)) - (f(2 * STEP) - f(-2 * STEP))) / (12 * STEP)


def agree(found: Array, wanted: Array, tolerance: float) -> None:
    np.testing.assert_allclose(found, wanted, atol=tolerance * (1 + np.abs(wanted).max()), rtol=0)


def columns_of(model: pb.Model, names: list[str] | None) -> list[int]:
    return list(model.constraints.indices(names or model.constraints.independent))


def motions(model: pb.Model, q: Array, u: list[int]) -> Array:
    """G of v = G u̇, from the constraints alone."""
    J, rest = model.constraints.jacobian(q), [k for k in range(model.nv) if k not in u]
    G = np.zeros((model.nv, len(u)))
    G[u, range(len(u))] = 1
    G[rest] = -np.linalg.lstsq(J[:, rest], J[:, u], rcond=1e-9)[0]
    return G


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "slider-crank", "bricard", "3-rrr", "stewart", "hybrid"])
def test_forward_derivatives_equal_differences_along_closed_states(name):
    model, q, v = closed_state(name)
    tau = np.random.default_rng(1).normal(size=model.nv)
    da_dq, da_dv, da_dtau = model.forward_dynamics_derivatives(q, v, tau)
    u = columns_of(model, None)
    assert da_dq.shape == da_dv.shape == (model.nv, len(u))
    G = motions(model, q, u)
    for k in range(len(u)):
        e = np.eye(len(u))[k]

        def moved(x: float, y: float, e: Array = e) -> Array:
            return model.constraints.solution(*neighbour(model, q, G @ (x * e), v[u] + y * e, u), tau).a

        agree(da_dq[:, k], slope(lambda x: moved(x, 0.0)), 1e-7)
        agree(da_dv[:, k], slope(lambda x: moved(0.0, x)), 1e-7)
    here = model.constraints.solution(q, v, tau).a
    forces = [model.constraints.solution(q, v, tau + e).a - here for e in np.eye(model.nv)]
    agree(da_dtau, np.transpose(forces), 1e-10)
    # forces move what the loops let pass, and nothing else
    assert np.abs(model.constraints.jacobian(q) @ da_dtau).max() < 1e-9 * (1 + np.abs(da_dtau).max())


@pytest.mark.parametrize("name", ["five-bar", "3-rrr", "stewart", "walking-machine", "two-arms"])
def test_inverse_derivatives_equal_differences_along_closed_states(name):
    """walking-machine and two-arms have more actuators than coordinates: the least forces are differentiated."""
    model, q, v = closed_state(name)
    u = columns_of(model, None)
    rng = np.random.default_rng(2)
    speeds, rates = v[u], rng.normal(size=len(u))
    drives = len(model.actuation.names)
    weights = None if drives == len(u) else rng.uniform(1, 2, drives)

    def motion(x: float, y: float, z: float, e: Array) -> tuple[Array, Array, Array]:
        Q, V = neighbour(model, q, G @ (x * e), speeds + y * e, u)
        rest = [k for k in range(model.nv) if k not in u]
        J, a = model.constraints.jacobian(Q), np.zeros(model.nv)
        a[u] = rates + z * e
        a[rest] = -np.linalg.lstsq(J[:, rest], J @ a + model.constraints.bias(Q, V), rcond=1e-9)[0]
        return Q, V, a

    G = motions(model, q, u)
    found = model.inverse_dynamics_derivatives(*motion(0, 0, 0, np.zeros(len(u))), weights=weights)
    for k in range(len(u)):
        e = np.eye(len(u))[k]
        for part, way in zip(found, np.eye(3), strict=True):
            def tau(x: float, way: Array = way, e: Array = e) -> Array:
                return model.inverse_dynamics(*motion(*(x * way), e), weights=weights)

            agree(part[:, k], slope(tau), 1e-7)


def test_wrenches_stay_constant_in_world_axes_while_inverse_dynamics_is_differentiated():
    model, q, v = closed_state("five-bar")
    u, load = columns_of(model, None), {"A": np.array([0.3, -0.2, 0.5, 1.0, -2.0, 0.4])}
    G, rest = motions(model, q, u), [k for k in range(model.nv) if k not in u]

    def tau(x: float, e: Array) -> Array:
        Q, V = neighbour(model, q, G @ (x * e), v[u], u)
        J, a = model.constraints.jacobian(Q), np.zeros(model.nv)
        a[rest] = -np.linalg.lstsq(J[:, rest], model.constraints.bias(Q, V), rcond=1e-9)[0]
        return model.inverse_dynamics(Q, V, a, wrenches=load)

    a = model.constraints.joint_motion(q, v[u], np.zeros(len(u)))[1]
    found = model.inverse_dynamics_derivatives(q, v, a, wrenches=load)[0]
    for k, e in enumerate(np.eye(len(u))):
        agree(found[:, k], slope(lambda x, e=e: tau(x, e)), 1e-7)


def test_forward_and_inverse_derivatives_undo_each_other():
    """With as many actuators as coordinates: dτ/dü ∂ü/∂τ = 1, ∂ü/∂x = −(dτ/dü)⁻¹ dτ/dx."""
    model, q, v = closed_state("stewart", seed=3)
    u = columns_of(model, None)
    tau = model.inverse_dynamics(q, v, model.assemble_acceleration(q, v, np.ones(model.nv)))
    a = model.forward_dynamics(q, v, tau)
    A = [j.v.start for j in model.mechanism.joints if j.active.any()]
    dq, dv, da = (x[A] for x in model.inverse_dynamics_derivatives(q, v, a))
    fq, fv, ft = model.forward_dynamics_derivatives(q, v, tau)
    agree(da @ ft[np.ix_(u, A)], np.eye(6), 1e-9)
    agree(fq[u], -np.linalg.solve(da, dq), 1e-8)
    agree(fv[u], -np.linalg.solve(da, dv), 1e-8)


def test_couplings_of_a_mimic_urdf_differentiate_like_the_coupled_mechanism():
    """A follower's column joins its leader's: with v = G u̇ constant, derivatives are Gᵀ(…)G of the tree's."""
    build = pb.Builder("fingers")
    for k in range(3):
        build.body(f"b{k}", 1.0 + k, com=(0.1, 0.02, 0), inertia=(0.01, 0.02, 0.03))
        build.joint(f"j{k}", "revolute", "world" if k == 0 else f"b{k - 1}", f"b{k}", (0.3, 0, 0), axis=AXES[k])
    build.couple("j2", "j1", -1.5, 0.2)
    model, rng = build.model(), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 2))
    G = np.array([[1, 0], [0, 1], [0, -1.5]])
    a = model.forward_dynamics(q, v, tau)
    da_dq, da_dv, da_dtau = model.forward_dynamics_derivatives(q, v, tau)
    free = pb.Model(model.mechanism.uncoupled)
    D_q, D_v, M = free.inverse_dynamics_derivatives(G @ q + [0, 0, 0.2], G @ v, G @ a)
    inverse = np.linalg.inv(G.T @ M @ G)
    agree(da_dq, -inverse @ G.T @ D_q @ G, 1e-10)
    agree(da_dv, -inverse @ G.T @ D_v @ G, 1e-10)
    agree(da_dtau, inverse, 1e-10)


@pytest.mark.parametrize("independent", [["a"], ["b"], ["c"]])
def test_any_independent_coordinate_gives_the_same_motion(independent):
    """A change of coordinates δu' = (G_u'/G_u) δu leaves eigenvalues of A alone, at rest and balanced."""
    build = pb.Builder("four-bar", gravity=(0, -9.81, 0))
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        build.body(name, 1, com=(length / 2, 0, 0), inertia=(0.001, 0.02, 0.02))
    build.joint("a", "revolute", "world", "crank", stiffness=3.0, damping=0.4)
    build.joint("b", "revolute", "crank", "coupler", (0.2, 0, 0), active=False, damping=0.1)
    build.joint("c", "revolute", "world", "rocker", (0.6, 0, 0), active=False, stiffness=2.0)
    build.loop("d", "revolute", "coupler", "rocker", (0.5, 0, 0), (0.4, 0, 0))
    model = build.model()
    q = model.assemble([0.7, 0.3, 1.5], hold=["a"])
    system = pb.linearize(model, q, np.zeros(3), independent=independent)
    assert system.states == (f"q_{independent[0]}", f"v_{independent[0]}")
    assert system.inputs == ("tau_a",)
    base = pb.linearize(model, q, np.zeros(3))
    agree(np.sort_complex(system.poles()), np.sort_complex(base.poles()), 1e-9)


@pytest.mark.filterwarnings("ignore:1 of 2 states are singular")
def test_a_batch_gives_each_states_own_derivatives_and_a_singular_state_is_named():
    model, q, v = closed_state("five-bar")
    _, q2, v2 = closed_state("five-bar", seed=5)
    tau = np.ones(model.nv)
    many = model.forward_dynamics_derivatives(np.stack([q, q2]), np.stack([v, v2]), tau)
    for k, state in enumerate(((q, v), (q2, v2))):
        for whole, one in zip(many, model.forward_dynamics_derivatives(*state, tau), strict=True):
            agree(whole[k], one, 1e-10)
    flat = parallelogram()
    states = np.stack([flat.assemble([0.4, 0, 0], hold=["a"]), np.zeros(3)])
    with pytest.raises(pb.PolybodyError, match=r"state 1 of the batch"):
        flat.forward_dynamics_derivatives(states, np.zeros(3), np.zeros(3))


def driven_five_bar(inductance: tuple[float, float]) -> pb.Model:
    """A planar five-bar with a motor at each base joint and friction in the passive ones."""
    build = pb.Builder("driven five-bar", gravity=(0, -9.81, 0))
    for side, sign in (("l", -1), ("r", 1)):
        for part, length in (("upper", 0.3), ("lower", 0.4)):
            build.body(f"{side}_{part}", 0.8, com=(0, length / 2, 0), inertia=(0.012, 0.001, 0.012))
        build.joint(f"{side}1", "revolute", "world", f"{side}_upper", (0.1 * sign, 0, 0))
        build.joint(f"{side}2", "revolute", f"{side}_upper", f"{side}_lower", (0, 0.3, 0), active=False, damping=0.05)
    build.loop("tip", "revolute", "l_lower", "r_lower", (0, 0.4, 0), (0, 0.4, 0))
    for k, side in enumerate("lr"):
        build.motor(f"{side}1", 1.5, inductance[k], 0.4, 0.35, 0.002, 0.01, gear=8, name=f"m{k}")
    return build.model()


@pytest.mark.parametrize("inductance", [(0.02, 0.0), (0.02, 0.03)])
def test_state_space_with_motors_equals_differences_of_the_motor_driven_machine(inductance):
    """States of the passive joints are asked for too, so that back-EMF comes through the loop."""
    model, rng = driven_five_bar(inductance), np.random.default_rng(0)
    q = model.assemble([0.6, -1.1, -0.6, 1.1], hold=["l1", "r1"])
    v = model.assemble_velocity(q, rng.normal(size=4))
    names = ["l1", "l2"]
    u = columns_of(model, names)
    i, V = rng.normal(size=2), rng.normal(size=2)
    tau = motor_forces(model, v, i, V)
    system = pb.linearize(model, q, v, tau, inputs="voltage", independent=names)
    slow = [k for k in range(2) if inductance[k]]
    assert system.states == ("q_l1", "q_l2", "v_l1", "v_l2", *(f"i_m{k}" for k in slow))
    assert system.inputs == ("V_m0", "V_m1")
    G = motions(model, q, u)

    def rates(x: Array, volts: Array) -> Array:
        Q, W = neighbour(model, q, G @ x[:2], v[u] + x[2:4], u)
        currents = i.copy()
        currents[slow] += x[4:]
        a, di = model.motors.dynamics(Q, W, currents, V + volts)
        return np.concatenate([W[u], a[u], di[slow]])

    n, none = len(system.states), np.zeros(2)
    for k, e in enumerate(np.eye(n)):
        agree(system.A[:, k], slope(lambda x, e=e: rates(x * e, none)), 1e-6)
    for k, e in enumerate(np.eye(2)):
        agree(system.B[:, k], slope(lambda x, e=e: rates(np.zeros(n), x * e)), 1e-6)


def motor_forces(model: pb.Model, v: Array, i: Array, V: Array) -> Array:
    motors = model.mechanism.motors
    now = np.where(motors.inductance > 0, i, (V - motors.voltages @ v) / motors.resistance)
    return motors.torques @ now


def test_voltages_of_a_motion_through_loops_drive_that_motion():
    """Currents' rates by the jerk of the independent coordinates: integrated, they give the currents a moment later."""
    model = driven_five_bar((0.02, 0.03))
    q0 = model.assemble([0.6, -1.1, -0.6, 1.1], hold=["l1", "r1"])

    def motion(t: float) -> tuple[Array, ...]:
        rate, swing = np.array([1.0, -0.7]), np.array([0.3, 0.5])
        held = q0[[0, 2]] + rate * t + swing * np.sin(3 * t)
        q = model.assemble([held[0], q0[1], held[1], q0[3]], hold=["l1", "r1"])
        v = model.assemble_velocity(q, wide(rate + 3 * swing * np.cos(3 * t)), hold=["l1", "r1"])
        a = model.assemble_acceleration(q, v, wide(-9 * swing * np.sin(3 * t)), hold=["l1", "r1"])
        return q, v, a, wide(-27 * swing * np.cos(3 * t))

    def wide(x: Array) -> Array:
        return np.array([x[0], 0, x[1], 0])

    motors, (q, v, a, jerk) = model.mechanism.motors, motion(0.2)
    found = model.motors.inputs(q, v, a, jerk)
    rate = slope(lambda x: model.motors.inputs(*motion(0.2 + x)).currents)
    agree(found.voltages, motors.inductance * rate + motors.resistance * found.currents + motors.voltages @ v, 1e-8)
    assert found.unmet[[1, 3]].tolist() == [0, 0]


@pytest.mark.filterwarnings("ignore:the energy balance")  # next to nothing is exchanged
def test_state_matrix_equals_the_simulated_growth_of_a_small_difference():
    """3-RRR about its balanced rest: the flow of the simulated machine is exp(A t) to first order."""
    model = pb.load("3-rrr")
    q, rest = model.neutral(), np.zeros(model.nv)
    system = pb.linearize(model, q, rest)
    tau = model.inverse_dynamics(q, rest, rest)
    u = columns_of(model, None)
    G, t = motions(model, q, u), 0.05
    for k in (0, 4):
        step = 1e-5 * np.eye(2 * len(u))[k]
        ends = []
        for sign in (1, -1):
            start = neighbour(model, q, G @ (sign * step[: len(u)]), sign * step[len(u) :], u)
            run = pb.simulate(model, t, *start, controller=lambda *_: tau, rtol=1e-11, atol=1e-14)
            ends.append(np.concatenate([model.difference(q, run.q[-1])[u], run.v[-1][u]]))
        agree(expm(system.A * t)[:, k], (ends[0] - ends[1]) / 2e-5, 1e-6)


def test_python_control_takes_a_linearised_platform():
    control = pytest.importorskip("control")
    model = pb.load("stewart")
    system = pb.linearize(model, model.neutral(), np.zeros(model.nv), outputs=["platform"]).to_control()
    assert isinstance(system, control.StateSpace)
    assert (system.nstates, system.ninputs, system.noutputs) == (12, 6, 6)
    assert np.linalg.matrix_rank(control.ctrb(system.A, system.B), tol=1e-6) == 12


@pytest.mark.parametrize(("name", "options"), [
    ("five-bar", ["--q", "phi1=80deg", "--velocity", "phi1=0.5", "--independent", "phi1,theta_h"]),
    ("stewart", ["--measure", "platform"]),
])
def test_polybody_linearize_prints_models_with_loops(name, options):
    done = CliRunner().invoke(app, ["linearize", name, *options, "--json"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.output)
    m = len(pb.load(name).constraints.independent)
    assert np.shape(answer["A"]) == (2 * m, 2 * m)
    assert len(answer["poles"]) == 2 * m
