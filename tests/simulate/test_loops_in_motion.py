"""Loops hold in long motions, through singular positions too."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import polybody as pb
from polybody.errors import PolybodyWarning


def chain(count):
    """Four-bars in a row: upright bars on the ground, joined by level ones of the same length.

    Where all bars lie in line, every loop has a second motion.
    """
    build = pb.Builder("chain", gravity=(0, -9.81, 0))
    inertia = (0.001, 1 / 12 + 0.0005, 1 / 12 + 0.0005)
    up, down = np.eye(4), np.eye(4)
    up[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    down[:3, :3], down[0, 3] = up[:3, :3].T, 1.0
    for i in range(count + 1):
        build.body(f"up{i}", 1, (0.5, 0, 0), inertia)
        build.joint(f"pin{i}", "revolute", "world", f"up{i}", [[*row[:3], i * (k == 0)] for k, row in enumerate(up[:3])]
                    + [[0, 0, 0, 1]])
    for i in range(count):
        build.body(f"bar{i}", 1, (0.5, 0, 0), inertia)
        build.joint(f"top{i}", "revolute", f"up{i}", f"bar{i}", down)
        build.loop(f"loop{i}", "revolute", f"bar{i}", f"up{i + 1}", (1, 0, 0), (1, 0, 0))
    return build.model()


def test_chain_of_four_bars_turns_through_its_singular_position():
    model = chain(4)
    q = model.neutral()
    v = np.array([-1.0 if joint.name.startswith("pin") else 1.0 for joint in model.mechanism.joints])
    assert np.abs(model.constraint_jacobian(q) @ v).max() < 1e-14
    flat = q.copy()
    for joint in model.mechanism.joints:
        flat[joint.q] = -np.pi / 2 if joint.name.startswith("pin") else np.pi / 2
    assert model.mobility(flat).singular
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolybodyWarning)
        motion = pb.simulate(model, 4.0, q, v, method="rk4", dt=5e-3, sample=0.1)
    assert np.ptp(motion.q[:, 0]) > np.pi  # past the line, up again on the other side
    assert motion.audit.loop_error < 1e-10
    assert motion.audit.energy_error_relative < 1e-6


@pytest.mark.parametrize("method", ["midpoint", "cvodes"])
def test_methods_that_bring_their_own_dynamics_refuse_loops(method):
    with pytest.raises(pb.InputError, match="with loops take dop853"):
        pb.simulate(pb.load("four-bar"), 0.1, method=method)
