"""A machine without moving joints, and seeds that are none."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb


def test_a_machine_without_moving_joints_has_no_base_parameters_and_no_exciting_motion():
    build = pb.Builder("plate")
    build.body("plate", 1.0, inertia=(1, 1, 1))
    build.joint("weld", "fixed", "world", "plate")
    model = build.model()
    assert len(pb.base_parameters(model)) == 0
    with pytest.raises(pb.InputError, match="no joint that moves"):
        pb.excitation(model)


@pytest.mark.parametrize("seed", [-3, "x", 1.5])
def test_seeds_that_are_no_whole_number_are_input_errors(seed):
    arm = pb.load("two-link")
    for call in (
        lambda: pb.excitation(arm, seed=seed, iterations=0, tries=1),
        lambda: pb.inverse_kinematics(arm, {"tip": np.eye(4)}, rng=seed),
        lambda: arm.random_configuration(seed),
    ):
        with pytest.raises(pb.InputError, match="a whole number or None"):
            call()
