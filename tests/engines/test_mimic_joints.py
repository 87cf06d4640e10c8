"""URDFs with mimic joints behave as coupled: positions follow, torques map back, couplings do no work."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import polybody as pb
from pinocchio_bridge import robot_files
from polybody.description.records import frozen_array
from polybody.errors import PolybodyWarning
from polybody.mechanism.energy import energy
from polybody.model.validation import model_from

FILES = [path for path in robot_files() if "<mimic" in path.read_text()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_positions_follow_torques_map_back_and_energy_holds(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolybodyWarning)
        model = pb.load(path)
    if not model.mechanism.couplings:
        pytest.skip("all its mimic joints are fixed")
    rng = np.random.default_rng(1)
    q = model.random_configuration(rng)
    v = model.assemble_velocity(q, rng.normal(size=model.nv))
    slices = model.joint_slices()
    for c in model.mechanism.couplings:
        (i, k), (j, m) = slices[c.joint], slices[c.source_joint]
        np.testing.assert_allclose(q[i], c.ratio * q[j] + c.offset, atol=1e-10)
        np.testing.assert_allclose(v[k], c.ratio * v[m], atol=1e-10)
    if path.stem == "romeo":
        model = with_heavy_hands(model, q, v)
    tau = rng.normal(size=model.nv)
    solved = model.constraints.solution(q, v, tau, formulation="denoc")
    size = 1 + np.abs(solved.a).max()
    for c in model.mechanism.couplings:
        k, m = slices[c.joint][1], slices[c.source_joint][1]
        np.testing.assert_allclose(solved.a[k], c.ratio * solved.a[m], atol=1e-8 * size)
    # power in is energy gained: nothing is lost or made in the couplings
    rate = energy_rate(model, q, v, solved.a)
    damped = model.tree.passive_forces(q, v) - model.tree.passive_forces(q, 0 * v)
    np.testing.assert_allclose(rate, (tau + damped) @ v, atol=1e-5 * (1 + np.abs(tau) @ np.abs(v) + abs(rate)))
    # a torque on a follower is its ratio times as much on its leader
    followers = {c.joint for c in model.mechanism.couplings}
    c = next(c for c in model.mechanism.couplings if c.source_joint not in followers)
    moved = tau.copy()
    moved[slices[c.source_joint][1]] += c.ratio * moved[slices[c.joint][1]]
    moved[slices[c.joint][1]] = 0.0
    same = model.constraints.solution(q, v, moved, formulation="denoc").a
    np.testing.assert_allclose(same, solved.a, atol=1e-7 * size)
    # and the efforts for this motion do on every independent velocity what tau did
    G = model._motion(q, None).G
    back = model.inverse_dynamics(q, v, solved.a, formulation="denoc")
    np.testing.assert_allclose(G.T @ back, G.T @ tau, atol=1e-7 * size)


def with_heavy_hands(model, q, v):
    """Romeo's fingers have no mass at all: what cannot be told is said, all else is answered; armature mends it."""
    for route in ("multipliers", "minimal"):
        with pytest.raises(pb.PolybodyError, match="nothing that moves with LHand or RHand has mass"):
            model.constraints.solution(q, v, 0 * v, formulation="denoc", route=route)
    holding = model.inverse_dynamics(q, 0 * v, 0 * v, formulation="denoc")
    G = model._motion(q, None).G
    np.testing.assert_allclose(G.T @ holding, model.gravity_forces(q), atol=1e-9 * np.abs(holding).max())
    d = model.description
    hands = ("LHand", "RHand")
    joints = tuple(replace(j, armature=frozen_array([0.01])) if j.name in hands else j for j in d.joints)
    return model_from(replace(d, joints=joints), warn=False)


def energy_rate(model, q, v, a, h=1e-4):
    def total(t):
        return float(sum(energy(model.mechanism, model.integrate(q, v + a * t / 2, t), v + a * t)))

    return (8 * (total(h) - total(-h)) - (total(2 * h) - total(-2 * h))) / (12 * h)


def test_panda_falls_with_its_fingers_coupled_and_its_energy_kept():
    path = next(path for path in FILES if path.stem == "panda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolybodyWarning)
        model = pb.load(path)
    motion = pb.simulate(model, 0.5, model.random_configuration(2))
    assert np.ptp(motion.q[:, 1]) > 0.05
    assert motion.audit.energy_error_relative < 1e-8
    (c,) = model.mechanism.couplings
    follower, leader = (model.joint_slices()[name][0] for name in (c.joint, c.source_joint))
    np.testing.assert_allclose(motion.q[:, follower], c.ratio * motion.q[:, leader] + c.offset, atol=1e-12)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_undamped_robot_falls_with_its_couplings_kept_and_its_energy_held(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolybodyWarning)
        d = pb.load(path).description
    hands = ("LHand", "RHand") if path.stem == "romeo" else ()  # without mass, as above
    joints = [replace(j, damping=None) for j in d.joints]
    joints = [replace(j, armature=frozen_array([0.01])) if j.name in hands else j for j in joints]
    model = model_from(replace(d, joints=tuple(joints)), warn=False)
    if not model.mechanism.couplings:
        pytest.skip("all its mimic joints are fixed")
    q = model.random_configuration(2)
    v = model.assemble_velocity(q, 0.3 * np.random.default_rng(3).normal(size=model.nv))
    motion = pb.simulate(model, 0.5, q, v, limits="ignore", rtol=1e-10, atol=1e-12)
    assert motion.stopped is None
    assert np.ptp(motion.q, axis=0).max() > 0.1
    assert motion.audit.energy_error_relative < 1e-9
    slices = model.joint_slices()
    for c in model.mechanism.couplings:
        (i, k), (j, m) = slices[c.joint], slices[c.source_joint]
        np.testing.assert_allclose(motion.q[:, i], c.ratio * motion.q[:, j] + c.offset, atol=1e-12)
        np.testing.assert_allclose(motion.v[:, k], c.ratio * motion.v[:, m], atol=1e-11)
    # power at every state of the way, with torques on all joints, followers too
    some = slice(None, None, max(1, len(motion) // 8))
    q, v = motion.q[some], motion.v[some]
    tau = np.random.default_rng(5).normal(size=v.shape)
    a = model.forward_dynamics(q, v, tau)
    rates = [energy_rate(model, *state) for state in zip(q, v, a, strict=True)]
    power = (tau * v).sum(axis=-1)
    np.testing.assert_allclose(rates, power, atol=1e-5 * (1 + np.abs(tau * v).sum(axis=-1).max() + np.abs(rates).max()))
