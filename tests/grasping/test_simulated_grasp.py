"""`pb.simulate` and `pb.rollout` take a grasp: the motion is that of its closed model, and the hands stay on."""

from __future__ import annotations

import numpy as np
from test_grasps_of_linkages import parallelogram

import polybody as pb


def test_a_held_load_swings_with_its_arm_and_keeps_energy():
    model, q = parallelogram()
    held = pb.grasp(model, "load", {"hand": "load"})
    q = held.project(q)
    v = np.zeros(model.nv)
    run = pb.simulate(held, 0.3, q, v)
    held.check(run.q, run.v, tolerance=1e-8)
    energy = np.sum(model.energy(run.q, run.v), axis=0)
    np.testing.assert_allclose(energy, energy[0], atol=1e-6)
    assert np.abs(run.q[-1] - q).max() > 0.05
    rolled = pb.rollout(held, q, v, steps=300, dt=1e-3)
    np.testing.assert_allclose(rolled.q[-1], run.q[-1], atol=1e-6)


def test_a_grasp_carries_its_load_by_resolved_acceleration():
    model, q = parallelogram()
    held = pb.grasp(model, "load", {"hand": "load"})
    q = held.project(q)
    target = held.closed.pose(q, "load")[:3, 3].copy()
    law = pb.controllers.ResolvedAcceleration(held, "load", target, rows="position", damping=1e-4)
    run = pb.simulate(held, 0.2, q, np.zeros(model.nv), law, sample=0.1, method="rk4", dt=2e-3)
    held.check(run.q, run.v, tolerance=1e-7)
    assert np.abs(held.closed.pose(run.q[-1], "load")[:3, 3] - target).max() < 5e-3
