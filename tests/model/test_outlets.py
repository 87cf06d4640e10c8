"""Outlets of the quantity table that no method passes through, and batches without states."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb


@pytest.mark.parametrize("name", ["puma560", "five-bar"])
def test_integrate_is_a_casadi_function(name: str) -> None:
    model = pb.load(name)
    q, d = model.random_configuration(0), np.full(model.nv, 0.1)
    np.testing.assert_allclose(np.asarray(model.casadi("integrate")(q, d)).ravel(), model.integrate(q, d), atol=1e-14)


def test_wrenches_on_no_states_give_no_answers() -> None:
    model = pb.load("puma560")
    none, loads = np.zeros((0, 6)), {model.frame_names[-1]: np.ones(6)}
    assert model.forward_dynamics(none, none, none, wrenches=loads).shape == (0, 6)
    assert model.inverse_dynamics_derivatives(none, none, none, wrenches=loads)[0].shape == (0, 6, 6)
    assert all(found.shape == (0, 6) for found in model.reactions(none, none, none, loads).values())
