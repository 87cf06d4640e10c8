"""Models as parts of networks: the same motion, the same poles, motors and drives on their joints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import polybody as pb
from closed_states import closed_state
from mechanisms import random_tree
from polybody.description.records import Motor, without_friction
from polybody.mechanism import mechanism_from
from polybody.model import Model
from polybody.model.validation import model_from


def started(part, model, q, v):
    return {**dict(zip(part.configuration_names, q, strict=True)), **dict(zip(part.velocity_names, v, strict=True))}


@pytest.mark.parametrize("name", ["stanford-arm", "double-pendulum", "four-bar", "3-rrr"])
def test_a_model_alone_moves_as_pb_simulate_says(name):
    model, q, v = closed_state(name, 3)
    net = pb.Network("alone")
    net.mechanism("m", model)
    run = pb.simulate(net, 0.3, started(net.components["m"], model, q, v))
    wanted = pb.simulate(model, 0.3, q, v, times=run.t, limits="ignore")
    np.testing.assert_allclose(run.configuration("m"), wanted.q, atol=1e-7)
    np.testing.assert_allclose(run.velocity("m"), wanted.v, atol=1e-6)
    assert run.trusted


def test_floating_trees_with_quaternions_move_as_pb_simulate_says():
    """Without dry friction: pb.simulate lets joints stick, a network takes the smooth law of forward_dynamics."""
    tree = random_tree(np.random.default_rng(5), 3, kinds=("floating", "spherical", "revolute"))
    model = Model(mechanism_from(without_friction(tree)))
    rng = np.random.default_rng(0)
    q, v = model.random_configuration(rng), 0.5 * rng.normal(size=model.nv)
    net = pb.Network("alone")
    net.mechanism("m", model)
    run = pb.simulate(net, 0.3, started(net.components["m"], model, q, v))
    wanted = pb.simulate(model, 0.3, q, v, times=run.t, limits="ignore")
    np.testing.assert_allclose(run.configuration("m"), wanted.q, atol=1e-7)


MOTOR = {"torque_constant": 0.06, "resistance": 0.9, "inductance": 1.5e-3, "damping": 2e-5, "rotor_inertia": 3e-5}
GEARS = (80.0, 100.0, 60.0, 50.0, 50.0, 40.0)


def driven_arm():
    """A Puma with motors of its own, and without."""
    bare = pb.load("puma560")
    text = bare.description
    motors = [Motor(joint, joint, **MOTOR, speed_constant=0.06, gear=gear)
              for joint, gear in zip(bare.joint_names, GEARS, strict=True)]
    return model_from(replace(text, motors=tuple(motors)), warn=False), model_from(replace(text, motors=()), warn=False)


def with_motors(bare, elastic=None):
    net = pb.Network("driven")
    net.mechanism("arm", bare)
    for k, (joint, gear) in enumerate(zip(bare.joint_names, GEARS, strict=True)):
        net.part(f"V{k}", "voltage_source", f"p{k}", voltage=0.0)
        net.part(f"M{k}", "dc_motor", winding=f"p{k}", shaft=f"s{k}", **MOTOR)
        if elastic is None:
            net.part(f"G{k}", "gear", f"s{k}", f"arm.{joint}", ratio=gear)
        else:
            net.part(f"G{k}", "elastic_gear", f"s{k}", f"arm.{joint}", ratio=gear, stiffness=elastic, damping=1.0)
    return net


def sorted_poles(A):
    poles = np.linalg.eigvals(A)
    return poles[np.lexsort((poles.imag.round(6), poles.real.round(6)))]


def test_poles_of_a_robot_with_motors_as_a_network_are_those_of_its_linear_model_with_voltages():
    model, bare = driven_arm()
    q = np.array([0.3, -0.4, 0.5, 0.2, 0.6, -0.1])
    v = np.array([0.1, -0.2, 0.15, 0.3, -0.1, 0.2])
    i = np.linspace(-1, 1, 6)
    tau = model.mechanism.motors.torques @ i
    wanted = pb.linearize(model, q, v, tau, inputs="voltage")
    net = with_motors(bare)
    at = {**started(net.components["arm"], bare, q, v), **{f"M{k}.winding.i": x for k, x in enumerate(i)}}
    space = pb.linearize(net, at)
    found, poles = sorted_poles(space.A), sorted_poles(wanted.A)
    np.testing.assert_allclose(found, poles, rtol=1e-10, atol=1e-10 * np.abs(poles).max())
    assert set(space.inputs) == {f"V{k}.voltage" for k in range(6)}
    own = pb.Network("own motors")
    own.mechanism("arm", model)
    for k, joint in enumerate(model.joint_names):
        own.part(f"V{k}", "voltage_source", f"arm.{joint} winding", voltage=0.0)
    at = {**started(own.components["arm"], model, q, v),
          **{f"arm.{j} winding.i": x for j, x in zip(model.joint_names, i, strict=True)}}
    poles_own = sorted_poles(pb.linearize(own, at).A)
    np.testing.assert_allclose(poles_own, poles, rtol=1e-10, atol=1e-10 * np.abs(poles).max())


def test_stiff_drives_move_the_arm_as_rigid_ones_do():
    _, bare = driven_arm()
    inputs = {f"V{k}.voltage": 3.0 for k in range(6)}
    rigid = pb.simulate(with_motors(bare), 0.15, inputs=inputs)
    soft = pb.simulate(with_motors(bare, 1e7), 0.15, inputs=inputs, method="radau", rtol=1e-7)
    np.testing.assert_allclose(soft.configuration("arm"), rigid.configuration("arm"), atol=2e-5)
    assert rigid.trusted
    assert rigid.audit.index == 2
    assert np.abs(rigid.configuration("arm")[-1]).max() > 1e-3


def test_motor_driven_network_moves_as_simulate_with_voltages():
    model, bare = driven_arm()
    run = pb.simulate(with_motors(bare), 0.2, inputs={f"V{k}.voltage": 4.0 for k in range(6)})
    wanted = pb.simulate(model, 0.2, voltages=np.full(6, 4.0), times=run.t, limits="ignore")
    np.testing.assert_allclose(run.configuration("arm"), wanted.q, atol=1e-7)
    np.testing.assert_allclose(run["M2.winding.i"], wanted.currents[:, 2], atol=1e-5)  # its interpolant's error


@pytest.mark.parametrize("name", ["stanford-arm", "four-bar", "stewart", "slider-crank", "two-fingered-hand", "delta"])
def test_network_of_a_model_and_back_accelerates_alike(name):
    model, q, v = closed_state(name, 4)
    tau = np.random.default_rng(2).normal(size=model.nv)
    again = pb.network(model).model()
    assert again.joint_names == model.joint_names
    wanted = model.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(again.forward_dynamics(q, v, tau), wanted, rtol=1e-9, atol=1e-8)


def test_network_of_bodies_moves_and_takes_parts_on_its_joints():
    net = pb.Network("pendulum", gravity=(0, -9.81, 0))
    net.ground(pin=(0, 0, 0))
    net.body("rod", mass=1.0, com=(0.7, 0, 0), inertia=(0.01, 0.08, 0.08), ports={"pin": (0.2, 0, 0)})
    net.joint("hinge", "revolute", "world.pin", "rod.pin")
    net.motor("motor", "hinge", ("a", "b"), torque_constant=0.5, resistance=2.0, inductance=1e-2)
    net.resistor("short", "a", "b", 1.0)
    net.part("brake", "rotational_damper", "hinge", damping=0.05)
    run = pb.simulate(net, 0.5)
    assert run.trusted
    build = pb.Builder("same", gravity=(0, -9.81, 0))
    build.body("rod", 1.0, (0.5, 0, 0), (0.01, 0.08, 0.08))
    build.joint("hinge", "revolute", "world", "rod", damping=0.05)
    build.motor("hinge", 3.0, 1e-2, 0.5)
    wanted = pb.simulate(build.model(), 0.5, voltages=[0.0], times=run.t)
    np.testing.assert_allclose(run["hinge.q"], wanted.q[:, 0], atol=1e-8)


def test_friction_goes_to_the_network_and_back():
    tree = random_tree(np.random.default_rng(8), 4, kinds=("revolute", "prismatic"), springs=0)
    model = Model(mechanism_from(tree))
    assert any(joint.friction is not None for joint in model.mechanism.joints)
    rng = np.random.default_rng(1)
    q, v, tau = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    net = pb.network(model)
    wanted = model.forward_dynamics(q, v, tau)
    found = net.solve(q, v, forces=tau).accelerations
    a = np.concatenate([found[joint.name] for joint in model.mechanism.joints])
    np.testing.assert_allclose(a, wanted, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(net.model().forward_dynamics(q, v, tau), wanted, rtol=1e-8, atol=1e-9)


def test_transmissions_go_to_the_network_and_back():
    tree = random_tree(np.random.default_rng(3), 5, kinds=("revolute", "prismatic"), springs=0, motors=1.0)
    model = Model(mechanism_from(tree))
    assert model.mechanism.description.transmissions
    again = pb.network(model).model()
    assert again.joint_names == model.joint_names
    order = [again.mechanism.motors.names.index(name) for name in model.mechanism.motors.names]
    np.testing.assert_allclose(again.mechanism.motors.speeds[order], model.mechanism.motors.speeds, atol=1e-14)
    rng = np.random.default_rng(1)
    q, v, tau = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    np.testing.assert_allclose(again.forward_dynamics(q, v, tau), model.forward_dynamics(q, v, tau), rtol=1e-9)


def _as_a_part(model: pb.Model, v: np.ndarray, duration: float) -> tuple[pb.NetworkTrajectory, pb.Trajectory]:
    """The same motion by the network of the model alone, and by the model."""
    q = model.assemble(model.neutral()) if model.mechanism.constrained else model.neutral()
    v = model.assemble_velocity(q, v) if model.mechanism.constrained else v
    net = pb.Network("whole")
    net.mechanism("m", model)
    part = net.components["m"]
    start = dict(zip(part.configuration_names, q, strict=True)) | dict(zip(part.velocity_names, v, strict=True))
    return pb.simulate(net, duration, start), pb.simulate(model, duration, q, v)


@pytest.mark.parametrize("name", ["disk", "snakeboard"])
def test_rolling_of_a_model_acts_in_a_network(name):
    import rolling_machines

    model = getattr(rolling_machines, name)()
    run, wanted = _as_a_part(model, np.random.default_rng(1).normal(size=model.nv), 0.1)
    np.testing.assert_allclose(run.configuration("m")[-1], wanted.q[-1], atol=1e-8)
    assert run.trusted


def test_contact_of_a_model_acts_in_a_network():
    build = pb.Builder("drop")
    build.body("ball", 1.0, (0, 0, 0), (0.01, 0.01, 0.01))
    build.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1))
    build.contact("floor", "ball", radius=0.1, stiffness=1e4, damping=0.3)
    run, wanted = _as_a_part(build.model(), np.array([-1.0]), 0.3)
    assert (run["m.z.q"] < 0.1).any()
    assert run.final["m.z.v"] != pytest.approx(-1 - 9.81 * 0.3)
    np.testing.assert_allclose(run.configuration("m")[-1], wanted.q[-1], atol=1e-6)
    assert run.trusted
