"""State-space models and motors: against differences of the mechanism's own motion, and against python-control."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

import polybody as pb
from mechanisms import ONE_NUMBER, random_tree
from polybody.description.records import Motor, Transmission, frozen_array, without_friction
from polybody.errors import InputError
from polybody.formulations import formulation, formulations
from polybody.formulations.influence import dynamic_arrays, inverse_dynamics_derivatives
from polybody.mechanism import mechanism_from
from polybody.mechanism.energy import energy
from polybody.model.model import Model
from polybody.quantities.frames import find_frame


def scale(*arrays) -> float:
    return 1.0 + max(float(np.abs(x).max(initial=0.0)) for x in arrays)


def random_model(seed, n=4, **options):
    rng = np.random.default_rng(seed)
    model = Model(mechanism_from(random_tree(rng, n, **options)))
    q = np.concatenate([j.model.random(rng) for j in model.mechanism.joints])
    v, tau = rng.normal(size=(2, model.nv))
    return model, q, v, tau, rng


def motor_arm(seed=5, inductance=(0.02, 0.0, 0.03), coupled=False, n=4):
    """A damped chain of n one-number joints; motors on the first three, the last joint driven by a bare torque."""
    rng = np.random.default_rng(seed)
    # dry friction makes joints stick, which no linear model does
    description = without_friction(random_tree(rng, n, ONE_NUMBER, springs=0, reversed_joints=0.5, fixed=0))
    names = [j.name for j in description.joints if j.kind != "fixed"][:3]
    motors = tuple(
        Motor(f"m{k}", name, 1.5 + k, inductance[k], 0.4 + 0.1 * k, 0.35, 0.002, 0.01,
              gear=1 if coupled and k < 2 else 8.0 - k)
        for k, name in enumerate(names)
    )
    drives = (Transmission("wrist", tuple(names[:2]), frozen_array([[0.1, 0.02], [-0.03, 0.12]])),) if coupled else ()
    bare = mechanism_from(description)
    model = Model(mechanism_from(replace(description, motors=motors, transmissions=drives)))
    q, v = 0.5 * rng.normal(size=(2, model.nv))
    return model, bare, q, v, rng


@pytest.mark.parametrize("kinds", [("revolute", "screw", "prismatic"), ("spherical", "universal"), ("planar", "screw")])
def test_influence_derivatives_equal_the_compiled_ones(kinds):
    model, q, v, a, _ = random_model(3, len(kinds), kinds=kinds)
    found = inverse_dynamics_derivatives(model.mechanism, q, v, a)
    for ours, compiled in zip(found, model.inverse_dynamics_derivatives(q, v, a), strict=True):
        np.testing.assert_allclose(ours, compiled, atol=1e-11 * scale(compiled, model.inverse_dynamics(q, v, a)))


@pytest.mark.parametrize("kinds", [("spherical", "revolute"), ("floating",), ("planar", "revolute"), ("compound",)])
def test_state_matrix_equals_differences_of_the_flow_in_tangent_space(kinds):
    """x = (δ, v): the difference of two motions from neighbouring states, after a short time, grows as A says."""
    model, q, v, tau, _ = random_model(6, len(kinds), kinds=kinds, stiffness=0, reversed_joints=0.5)
    system = pb.linearize(model, q, v, tau)
    n, h = model.nv, 1e-4

    def vector_field(delta, velocity):
        """δ̇ and v̇ relative to the nominal motion: δ(t) = difference(q₀(t), q(t))."""
        moved = model.integrate(q, delta)
        a = model.forward_dynamics(moved, velocity, tau)
        ahead, nominal = model.integrate(moved, velocity, h), model.integrate(q, v, h)
        behind, before = model.integrate(moved, velocity, -h), model.integrate(q, v, -h)
        return np.concatenate([(model.difference(nominal, ahead) - model.difference(before, behind)) / (2 * h), a])

    for k in range(2 * n):
        step = np.zeros(2 * n)
        step[k] = 1e-4
        plus, minus = (vector_field(s * step[:n], v + s * step[n:]) for s in (1, -1))
        column = (plus - minus) / 2e-4
        np.testing.assert_allclose(system.A[:, k], column, atol=2e-5 * scale(system.A, v * v))


def test_states_inputs_and_outputs_are_named_and_only_active_columns_are_inputs():
    model, q, v, tau, _ = random_model(11, 2, kinds=("floating", "revolute"), fixed=0, stiffness=0)
    system = pb.linearize(model, q, v, tau, outputs=["body1"])
    active = np.concatenate([j.active for j in model.mechanism.joints])
    assert system.B.shape == (2 * model.nv, int(active.sum()))
    assert not any("floating" in j.kind and j.active.any() for j in model.mechanism.joints)
    assert system.outputs == tuple(f"body1_{x}" for x in ("rx", "ry", "rz", "x", "y", "z"))
    np.testing.assert_allclose(system.C[:, : model.nv], model.jacobian(q, "body1"))
    M_inverse = np.linalg.inv(model.mass_matrix(q))
    np.testing.assert_allclose(system.B[model.nv :], M_inverse[:, active], atol=1e-9 * scale(M_inverse))


def test_a_trajectory_gives_a_model_for_each_state():
    model, q, v, tau, rng = random_model(2, 3, kinds=ONE_NUMBER)
    many = np.stack([q, model.integrate(q, rng.normal(size=model.nv)), q])
    system = pb.linearize(model, many, v, tau)
    assert system.A.shape == (3, 2 * model.nv, 2 * model.nv)
    np.testing.assert_allclose(system.A[2], pb.linearize(model, q, v, tau).A, atol=1e-12)
    assert system.poles().shape == (3, 2 * model.nv)
    with pytest.raises(InputError, match="batch"):
        system.to_control()


@pytest.mark.parametrize("coupled", [False, True])
def test_rotors_and_bearings_join_the_mechanism(coupled):
    model, bare, q, v, rng = motor_arm(coupled=coupled)
    motors = model.mechanism.motors
    speeds = motors.speeds @ v
    kinetic, _ = energy(model.mechanism, q, v)
    np.testing.assert_allclose(
        kinetic - energy(bare, q, v)[0], 0.5 * motors.rotor_inertia @ speeds**2, rtol=1e-9)
    a = rng.normal(size=model.nv)
    tau = model.inverse_dynamics(q, v, a)
    added = motors.speeds.T @ (motors.rotor_inertia * (motors.speeds @ a) + motors.damping * speeds)
    np.testing.assert_allclose(tau - Model(bare).inverse_dynamics(q, v, a), added, atol=1e-10 * scale(tau))
    for name in formulations():
        engine = formulation(name)
        np.testing.assert_allclose(engine.inverse_dynamics(model.mechanism, q, v, a), tau, atol=1e-10 * scale(tau))
        np.testing.assert_allclose(
            engine.forward_dynamics(model.mechanism, q, v, tau), a, atol=1e-9 * scale(a, tau))
    if coupled:
        assert not model.mechanism.separable
        G = np.array([[0.1, 0.02], [-0.03, 0.12]])
        np.testing.assert_allclose(G @ speeds[:2], v[motors.driven[:2]], atol=1e-12)


@pytest.mark.filterwarnings("ignore:the energy balance")  # almost nothing is exchanged: it is relative to that
@pytest.mark.parametrize(
    ("inductance", "coupled"), [((0.02, 0.01, 0.03), False), ((0.02, 0.0, 0.03), True), ((0.0, 0.0, 0.0), False)]
)
def test_state_space_with_motors_equals_differences_of_the_simulated_arm(inductance, coupled):
    """About a posture that voltages hold: neighbouring motions of the arm differ by exp(A t) and its integral."""
    model, _, q, _, _ = motor_arm(inductance=inductance, coupled=coupled, n=3)
    n, still, T, eps = model.nv, np.zeros(model.nv), 0.02, 1e-4
    hold = model.motors.inputs(q, still, still, still)
    system = pb.linearize(model, q, still, inputs="voltage")
    slow = np.flatnonzero(model.mechanism.motors.inductance > 0)
    size, start = 2 * n + len(slow), np.concatenate([q, still, hold.currents[slow]])

    def reached(x, V):
        """The simulated arm's state after T."""
        currents = hold.currents.copy()
        currents[slow] = x[2 * n :]
        run = pb.simulate(model, T, x[:n], x[n : 2 * n], voltages=V, currents0=currents, limits="ignore",
                          rtol=1e-12, atol=1e-14)
        return np.concatenate([run.q[-1], run.v[-1], run.currents[-1][slow]])

    whole = expm(T * np.block([[system.A, system.B], [np.zeros((3, size + 3))]]))
    for k in range(size + 3):
        x_step, V_step = eps * np.eye(size + 3)[k][:size], eps * np.eye(size + 3)[k][size:]
        ends = [reached(start + s * x_step, hold.voltages + s * V_step) for s in (1, -1)]
        column = (ends[0] - ends[1]) / (2 * eps)
        np.testing.assert_allclose(column, whole[:size, k], atol=1e-6 * scale(whole))


def test_nominal_voltages_drive_the_arm_along_its_trajectory():
    model, _, q, _, rng = motor_arm(n=3)
    amplitude = 0.2 * rng.normal(size=model.nv)

    def trajectory(t):
        s, c = np.sin(3 * np.asarray(t))[..., None], np.cos(3 * np.asarray(t))[..., None]
        return q + amplitude * (1 - c), 3 * amplitude * s, 9 * amplitude * c, -27 * amplitude * s

    def voltages(t, q, v):
        return model.motors.inputs(*trajectory(t)).voltages

    times = np.linspace(0, 0.5, 6)
    nominal = model.motors.inputs(*trajectory(times))
    assert nominal.currents.shape == nominal.voltages.shape == (6, 3)
    assert not nominal.unmet.any()
    start = trajectory(0.0)
    motion = pb.simulate(model, 0.5, start[0], start[1], voltages=voltages, currents0=nominal.currents[0], times=times,
                         limits="ignore")
    np.testing.assert_allclose(motion.q, trajectory(times)[0], atol=1e-7)
    np.testing.assert_allclose(motion.currents, nominal.currents, atol=1e-6 * scale(nominal.currents))


def test_python_control_takes_the_model_and_designs_with_it():
    control = pytest.importorskip("control")
    model, _, q, v, _ = motor_arm()
    system = pb.linearize(model, q, 0 * v, inputs="voltage")
    plant = system.to_control()
    assert plant.state_labels == list(system.states)
    assert plant.input_labels[:3] == ["V_m0", "V_m1", "V_m2"]
    np.testing.assert_allclose(np.sort_complex(control.poles(plant)), np.sort_complex(system.poles()), atol=1e-6)
    K, _, closed = control.lqr(plant, np.eye(plant.nstates), np.eye(plant.ninputs))
    assert np.all(closed.real < 0)
    np.testing.assert_allclose(
        np.sort(np.linalg.eigvals(system.A - system.B @ K).real), np.sort(closed.real), atol=1e-5 * scale(closed))
    response = control.frequency_response(plant, [1.0, 10.0])
    exact = system.C @ np.linalg.solve(1j * np.eye(plant.nstates) - system.A, system.B)
    np.testing.assert_allclose(response.frdata[:, :, 0], exact, atol=1e-8 * scale(abs(exact)))


def test_bad_motors_are_refused_with_reasons():
    rng = np.random.default_rng(0)
    description = random_tree(rng, 2, ("revolute",), springs=0, fixed=0, branching=0)
    good = Motor("m", "joint0", 1.0, 0.0, 1.0, 1.0)

    def with_motors(*motors, transmissions=()):
        return mechanism_from(replace(description, motors=motors, transmissions=transmissions))

    with pytest.raises(InputError, match="not a moving joint"):
        with_motors(replace(good, joint="elbow"))
    passive = replace(description.joints[0], active=(False,))
    with pytest.raises(InputError, match="not actuated"):
        mechanism_from(replace(description, joints=(passive, *description.joints[1:]), motors=(good,)))
    with pytest.raises(InputError, match="neither resistance nor inductance"):
        with_motors(replace(good, resistance=0.0))
    with pytest.raises(InputError, match="torque_constant is 0"):
        with_motors(replace(good, torque_constant=0.0))
    with pytest.raises(InputError, match="drive one coordinate"):
        with_motors(good, replace(good, name="n"))
    drive = Transmission("t", ("joint0", "joint1"), frozen_array(np.eye(2)))
    with pytest.raises(InputError, match="which has 0 motors"):
        with_motors(good, transmissions=(drive,))
    with pytest.raises(InputError, match="must be invertible"):
        with_motors(good, replace(good, name="n", joint="joint1"),
                    transmissions=(replace(drive, matrix=frozen_array(np.ones((2, 2)))),))


def test_questions_without_an_answer_are_refused():
    model, q, v, tau, _ = random_model(1, 3, kinds=ONE_NUMBER)
    with pytest.raises(InputError, match="has no motors"):
        pb.linearize(model, q, v, tau, inputs="voltage")
    with pytest.raises(InputError, match="expected 'torque' or 'voltage'"):
        pb.linearize(model, q, v, tau, inputs="current")
    with pytest.raises(InputError, match="did you mean 'body1'"):
        model.coefficients.influence(q, "body_1")
    driven, _, q, v, _ = motor_arm()
    with pytest.raises(InputError, match="jerk"):
        driven.motors.inputs(q, v, v)
    with pytest.raises(InputError, match="one per motor"):
        pb.simulate(driven, 0.1, q, v, voltages=np.zeros(3), currents0=[1.0])
    with pytest.raises(InputError, match="none without voltages"):
        pb.simulate(driven, 0.1, q, v, currents0=np.zeros(3))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_compiled_influence_equals_the_text_over_batches(order):
    from polybody.formulations.influence import influence

    model, q, _, _, rng = random_model(8, 3)
    many = np.stack([q, model.integrate(q, rng.normal(size=model.nv))])
    found = model.coefficients.influence(many, "body1", order)
    for k in range(2):
        expected = influence(model.mechanism, many[k], find_frame(model.mechanism, "body1"), order)
        for name in "GHD"[:order]:
            np.testing.assert_allclose(getattr(found, name)[k], getattr(expected, name), atol=1e-12)
    np.testing.assert_allclose(model.coefficients.influence(q, "body1", 1).G, model.jacobian(q, "body1"), atol=1e-13)


@pytest.mark.parametrize("limit", [0, 3000])
def test_influence_is_the_same_whether_compiled_or_not(limit, monkeypatch):
    from polybody.formulations.influence import center_influence, influence
    from polybody.model import coefficients as control

    model, q, _, _, rng = random_model(9, 3, kinds=("revolute", "spherical", "universal"))
    monkeypatch.setattr(control, "COMPILED_UP_TO", limit)
    many = np.stack([[q, model.integrate(q, rng.normal(size=model.nv))]])
    found, center = model.coefficients.influence(many, "body2", 3), model.coefficients.center_of_mass(many, 2)
    for k in range(2):
        expected = influence(model.mechanism, many[0, k], find_frame(model.mechanism, "body2"), 3)
        np.testing.assert_allclose(found.H[0, k], expected.H, atol=1e-12)
        np.testing.assert_allclose(found.D[0, k], expected.D, atol=1e-12)
        np.testing.assert_allclose(center.H[0, k], center_influence(model.mechanism, many[0, k], 2).H, atol=1e-12)


def test_the_ground_has_no_influence_coefficients_but_zeros():
    model, q, *_ = random_model(8, 3)
    found = model.coefficients.influence(q, "world", 3)
    assert not found.G.any()
    assert not found.H.any()
    assert not found.D.any()


def test_third_order_is_the_same_by_numpy_and_compiled():
    model, *_, rng = random_model(6, 4, kinds=("revolute", "screw"), branching=0)
    outermost = max(model.mechanism.bodies, key=lambda body: len(model.mechanism.supports[body.index]))
    frame, q = outermost.name, model.random_configuration(rng, 1000)
    few = model.coefficients.influence(q[:7], frame)
    assert not [name for name in model.engine._kernels if name.startswith(f"influence:{frame}:3")]
    many = model.coefficients.influence(q.reshape(10, 100, -1), frame)
    assert [name for name in model.engine._kernels if name.startswith(f"influence:{frame}:3")]
    again = model.coefficients.influence(q[:7], frame)
    for by_numpy, compiled, lone in zip(
        (few.G, few.H, few.D), (many.G, many.H, many.D), (again.G, again.H, again.D), strict=True
    ):
        assert np.abs(by_numpy).max() > 0.1
        np.testing.assert_allclose(compiled[0, :7], by_numpy, atol=1e-13 * scale(by_numpy))
        np.testing.assert_allclose(lone, by_numpy, atol=1e-13 * scale(by_numpy))


def test_influence_asked_again_refuses_what_it_refused_before():
    model, q, *_ = random_model(6, 4, kinds=ONE_NUMBER)
    frame = model.frame_names[-1]
    for order in (2, 2, 3):
        model.coefficients.influence(q, frame, order)
        with pytest.raises(InputError, match="q has shape"):
            model.coefficients.influence(q[:-1], frame, order)
        with pytest.raises(InputError, match="order is"):
            model.coefficients.influence(q, frame, [order])


def test_influence_of_a_mass_centre_is_that_of_its_point():
    model, q, *_ = random_model(8, 3)
    body = model.mechanism.bodies[1]
    frame = find_frame(model.mechanism, body.name)
    local = frame.rotation.T @ (body.com - frame.position)
    by_point, by_name = (model.coefficients.influence(q, body.name, 2, point=p) for p in (local, "com"))
    np.testing.assert_allclose(by_point.H, by_name.H, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_arrays_of_large_trees_equal_the_text(seed, monkeypatch):
    from polybody.formulations.influence import batched

    monkeypatch.setattr(batched, "PIECE", 4)  # several pieces, the last of them short
    model, *_, rng = random_model(seed, 6 + seed)
    assert model.nv > 9, "above what is compiled as a whole"
    q = model.random_configuration(rng, 6)
    inertia, power = model.coefficients.dynamic_arrays(q.reshape(2, 3, -1))
    for k, state in enumerate(q):
        I, P = dynamic_arrays(model.mechanism, state)
        np.testing.assert_allclose(inertia[divmod(k, 3)], I, atol=1e-12 * scale(I))
        np.testing.assert_allclose(power[divmod(k, 3)], P, atol=1e-12 * scale(P))
    lone, _ = model.coefficients.dynamic_arrays(q[0])
    np.testing.assert_array_equal(lone.shape, inertia.shape[2:])


@pytest.mark.parametrize("limit", [0, 9])
def test_dynamic_arrays_give_inverse_dynamics(limit, monkeypatch):
    from polybody.model import coefficients as control

    monkeypatch.setattr(control, "COMPILED_ARRAYS_UP_TO", limit)
    model, q, v, a, _ = random_model(4, 3, springs=0, stiffness=0, damping=0)
    inertia, power = (x[1] for x in model.coefficients.dynamic_arrays(np.stack([q, q])))
    tau = inertia @ a + np.einsum("imn,m,n->i", power, v, v) + model.gravity_forces(q)
    np.testing.assert_allclose(tau, model.inverse_dynamics(q, v, a), atol=1e-11 * scale(tau))


def test_batches_linearised_in_pieces_are_those_linearised_at_once(monkeypatch):
    arm = pb.load("puma560")
    q, wrench = (np.random.default_rng(3).normal(size=(3, 5, n)) for n in (6, 6))
    given = {"outputs": ["dh_6"], "disturbances": ["dh_3"], "wrenches": {"dh_6": wrench}}
    whole = pb.linearize(arm, q, np.ones(6), **given)
    plain = pb.linearize(arm, q, np.ones(6))
    monkeypatch.setattr(sys.modules["polybody.linearization.state_space"], "AT_ONCE", 4)
    for made, cut in (
        (whole, pb.linearize(arm, q, np.ones(6), **given)), (plain, pb.linearize(arm, q, np.ones(6)))
    ):
        for name in ("A", "B", "C", "D", "E", "nominal_load"):
            assert np.array_equal(getattr(made, name), getattr(cut, name)), name
        assert made.states == cut.states
        assert made.outputs == cut.outputs
