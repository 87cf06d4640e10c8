"""URDFs with mimic joints: followers have no coordinates, what acts on them acts on leaders, and Pinocchio agrees."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import polybody as pb
from pinocchio_bridge import pin, robot_file
from polybody.algebra import FLOAT, JetDomain
from polybody.description.records import frozen_array
from polybody.errors import PolybodyWarning
from polybody.formulations import formulation, formulations
from polybody.mechanism import kinematics
from polybody.mechanism.couplings import joint_positions, joint_velocities
from polybody.mechanism.energy import energy
from polybody.model.validation import model_from
from trees import expanded, scale

#: Robots whose mimic joints move; Pinocchio reads those of the first as such, and refuses followers before leaders.
ROBOTS = ("baxter", "panda", "panda_collision", "pr2", "tiago_pro")
OTHERS = ("romeo", "talos_full_v2", "talos_full_v2_box")


def loaded(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolybodyWarning)
        model = pb.load(robot_file(f"{name}.urdf"), friction=False)
    return with_heavy_hands(model) if name == "romeo" else model


def with_heavy_hands(model):
    """Romeo's fingers have no mass at all: that is said by the name of their leader, and armature mends it."""
    with pytest.raises(pb.PolybodyError, match=r"singular at joint '[LR]Hand'"):
        model.forward_dynamics(model.neutral(), np.zeros(model.nv), np.zeros(model.nv))
    d = model.description
    hands = ("LHand", "RHand")
    joints = tuple(replace(j, armature=frozen_array([0.01])) if j.name in hands else j for j in d.joints)
    return model_from(replace(d, joints=joints), warn=False)


@pytest.mark.parametrize("name", ROBOTS + OTHERS)
def test_followers_have_no_coordinates_and_couplings_do_no_work(name):
    model = loaded(name)
    m, rng = model.mechanism, np.random.default_rng(1)
    assert model.nv == len(m.joints) - len(m.followers) < len(m.joints)
    q = model.random_configuration(rng)
    v, tau = rng.normal(size=(2, model.nv))
    positions, speeds = joint_positions(m, q), joint_velocities(m, v)
    for name, (leader, factor, offset) in m.followers.items():
        np.testing.assert_allclose(positions[name], factor * positions[leader] + offset)
        np.testing.assert_allclose(speeds[name], factor * speeds[leader])
    a = model.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(model.inverse_dynamics(q, v, a), tau, atol=1e-8 * scale(tau, a))
    jets = JetDomain(FLOAT)  # power in is energy gained: nothing is lost or made in the couplings
    kinetic, potential = energy(m, jets.lift(q, kinematics.rate(m, q, v)), jets.lift(v, a), domain=jets)
    gained = jets.rates(np.array([kinetic + potential], dtype=object))[0]
    damped = model.passive_forces(q, v) - model.passive_forces(q, 0 * v)
    np.testing.assert_allclose(gained, (tau + damped) @ v, atol=1e-8 * scale(tau, a) * scale(v))
    # and the free tree, held by its couplings, moves alike
    q_all, E, v_all, a_all = expanded(m, q, v, a)
    free = formulation("denoc").inverse_dynamics(m.uncoupled, q_all, v_all, a_all)
    np.testing.assert_allclose(E.T @ free, tau, atol=1e-8 * scale(tau, free))


@pytest.mark.parametrize("name", ROBOTS)
def test_mass_matrix_and_bias_are_those_of_pinocchio_with_mimic_joints(name):
    m = loaded(name).mechanism
    theirs = pin.buildModelFromUrdf(str(robot_file(f"{name}.urdf")), mimic=True)
    data, rng = theirs.createData(), np.random.default_rng(2)
    assert theirs.nv == m.nv
    q, v = np.concatenate([j.model.random(rng) for j in m.independent_joints]), rng.normal(size=m.nv)
    their_q, place = np.empty(theirs.nq), np.empty(m.nv, dtype=int)
    for joint in m.independent_joints:
        other = theirs.joints[theirs.getJointId(joint.name)]
        part = q[joint.q]
        their_q[other.idx_q : other.idx_q + other.nq] = part if other.nq == 1 else (np.cos(part[0]), np.sin(part[0]))
        place[joint.v] = other.idx_v
    P = np.eye(m.nv)[:, place]  # v_pin = P v
    M = pin.crba(theirs, data, their_q)
    M = np.triu(M) + np.triu(M, 1).T
    bias = pin.rnea(theirs, data, their_q, P @ v, np.zeros(m.nv))
    rotors = m.armature  # Pinocchio's are zero in a URDF
    for each in formulations():
        one = formulation(each)
        np.testing.assert_allclose(one.mass_matrix(m, q) - rotors, P.T @ M @ P, atol=1e-10 * scale(M), err_msg=each)
        if each == "denoc" or m.nv < 20:
            found = one.bias_forces(m, q, v)
            np.testing.assert_allclose(found, P.T @ bias, atol=1e-9 * scale(bias), err_msg=each)


def test_panda_falls_with_its_fingers_together_and_its_energy_kept():
    model = loaded("panda")
    assert (model.nq, model.nv) == (8, 8)
    assert model.mass_matrix(model.neutral()).shape == (8, 8)
    motion = pb.simulate(model, 0.5, model.random_configuration(2))
    assert np.ptp(motion.q[:, 1]) > 0.05
    assert motion.audit.energy_error_relative < 1e-8


@pytest.mark.parametrize("name", ROBOTS + OTHERS)
def test_undamped_robot_falls_and_holds_its_energy(name):
    d = loaded(name).description
    model = model_from(replace(d, joints=tuple(replace(j, damping=None) for j in d.joints)), warn=False)
    q = model.random_configuration(2)
    v = 0.3 * np.random.default_rng(3).normal(size=model.nv)
    motion = pb.simulate(model, 0.5, q, v, limits="ignore", rtol=1e-10, atol=1e-12)
    assert motion.stopped is None
    assert np.ptp(motion.q, axis=0).max() > 0.1
    assert motion.audit.energy_error_relative < 1e-9


@pytest.mark.parametrize("name", ["pr2.urdf", "romeo.urdf", "talos_full_v2.urdf", "tiago_pro.urdf"])
@pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
def test_floating_robots_with_mimic_joints_stand_on_their_weight(name):
    """At rest the base bears the weight; with the base alone moving up, momentum is mass times speed."""
    model = pb.load(robot_file(name), base="floating", friction=False)
    q, rest = model.neutral(), np.zeros(model.nv)
    joint = model.mechanism.joints[0]
    assert joint.kind == "floating"
    tau = model.inverse_dynamics(q, rest, rest)[joint.v]
    weight = -model.total_mass * np.asarray(model.gravity)
    np.testing.assert_allclose(tau[3:], weight, rtol=1e-12, atol=1e-9)
    up = rest.copy()
    up[joint.v.start + 5] = 2.0
    np.testing.assert_allclose(model.momentum(q, up)[3:], [0, 0, 2 * model.total_mass], rtol=1e-12, atol=1e-9)
