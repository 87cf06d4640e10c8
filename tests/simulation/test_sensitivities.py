"""Sensitivities of motions, against differences of rollouts with other parameters."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.errors import InputError


def test_sensitivities_of_a_run_under_pd_equal_differences_of_rollouts() -> None:
    variant, rng = pb.load("double-pendulum").with_parameters("*.mass", "*.origin.x"), np.random.default_rng(0)
    law = pb.PD(variant, np.array([0.3, -0.2]), 20.0, 2.0)
    q0, v0 = rng.normal(size=(2, 2))
    run = pb.simulate(variant, 0.5, q0, v0, law, sample=0.05)
    found = pb.sensitivities(run, law, dt=1e-3)
    assert found.q_p.shape == (11, 2, len(variant.parameters))
    np.testing.assert_allclose(found.q, run.q, atol=1e-7)
    p, h = variant.parameters.nominal, 1e-4
    ends = pb.rollout(variant, q0, v0, law, steps=500, dt=1e-3, keep="last",
                      parameters=np.concatenate([p + h * np.eye(len(p)), p - h * np.eye(len(p))]))  # fmt: skip
    up, down = np.split(ends.q, 2)
    wanted = (up - down).T / (2 * h)
    np.testing.assert_allclose(found.q_p[-1], wanted, atol=1e-5 * (1 + np.abs(wanted).max()))
    with pytest.raises(InputError, match=r"the run was driven"):
        pb.sensitivities(run)


def test_sensitivities_of_a_five_bar_by_its_lengths_stay_with_the_loops() -> None:
    model = pb.load("five-bar")
    variant = model.with_parameters("phi2.origin.x", "link2.mass")
    q0, p, h = model.assemble(), variant.parameters.nominal, 1e-5
    found = pb.sensitivities(variant, q0=q0, duration=0.1, sample=0.02, method="semi-implicit")
    independent = model.constraints.independent
    ends = []
    for values in np.concatenate([p + h * np.eye(len(p)), p - h * np.eye(len(p))]):
        own = variant.parameters.at(values)
        start = own.constraints.assemble_dependent(q0, independent)
        rest = np.zeros(model.nv)
        ends.append(pb.rollout(own, start, rest, steps=100, dt=1e-3, keep="last", method="semi-implicit").q)
    up, down = np.split(np.array(ends), 2)
    wanted = (up - down).T / (2 * h)
    np.testing.assert_allclose(found.q_p[-1], wanted, atol=1e-4 * (1 + np.abs(wanted).max()))
