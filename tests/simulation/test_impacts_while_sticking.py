"""Joints that stick by friction are set in motion by impulses: friction is a finite force."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb


def arm(upper: float | None) -> pb.Model:
    build = pb.Builder("sticking arm", gravity=(0, 0, 0))
    for k, parent in enumerate(("world", "b0")):
        build.body(f"b{k}", 1.0, (0.25, 0, 0), (1e-3, 0.01, 0.01))
        limits = (-1.0, upper) if upper is not None and k == 0 else None
        friction = {"coulomb": 2.0} if k == 1 else 0
        build.joint(f"j{k}", "revolute", parent, f"b{k}", (0.5 * k, 0, 0), limits=limits, friction=friction)
    return build.model()


@pytest.mark.parametrize("compiled", [None, False])
def test_a_hit_sets_a_sticking_joint_in_motion_as_the_law_of_impacts_says(compiled: bool | None) -> None:
    model, e = arm(0.3), 0.5
    run = pb.simulate(
        model, 0.16, [0.0, 0.4], [2.0, 0.0], restitution=e, times=[0.1, 0.15 + 1e-7], compiled=compiled, rtol=1e-10
    )
    np.testing.assert_allclose(run.v[0], [2.0, 0.0], atol=1e-9)
    P = np.linalg.inv(model.mass_matrix([0.3, 0.4]))
    np.testing.assert_allclose(run.v[1], run.v[0] - (1 + e) * 2.0 * P[:, 0] / P[0, 0], atol=1e-4)
    assert run.audit.trusted


def test_an_action_sets_a_sticking_joint_in_motion() -> None:
    kick = pb.Event("kick", lambda t, q, v: t - 0.1, action=lambda t, q, v: (q, np.array([2.0, 6.0])))
    run = pb.simulate(arm(None), 0.14, [0.0, 0.4], [2.0, 0.0], events=[kick], times=[0.05, 0.1 + 1e-7])
    np.testing.assert_allclose(run.v, [[2.0, 0.0], [2.0, 6.0]], atol=1e-4)
