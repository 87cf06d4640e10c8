"""What a model says to arguments it cannot use, and what becomes of numbers that are not finite."""

from __future__ import annotations

import gc
import pickle
import re
from typing import Any

import numpy as np
import pytest

import polybody as pb

Z = np.zeros(2)
READ_ONLY = np.zeros(2)
READ_ONLY.flags.writeable = False


@pytest.fixture(scope="module")
def arm() -> pb.Model:
    return pb.load("two-link")


@pytest.mark.parametrize("formulation", [None, *pb.formulations()])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": np.zeros(5)}, "q has shape (5,), wanted (2,) or (..., 2)"),
        ({"a": np.zeros((4, 3))}, "a has shape (4, 3), wanted (2,) or (..., 2)"),
        ({"v": 1.0}, "v has shape (), wanted (2,)"),
        ({"q": Z + 1j}, "q must be real numbers, got complex128"),
        ({"q": [[0, 0], [0]]}, "q must be numbers in a regular array, got list"),
        ({"q": np.zeros((3, 2)), "v": np.zeros((4, 2))}, "do not broadcast"),
        ({"q": [[0, 0], [0, np.inf]], "check": True}, "q[1, 1] is inf; wanted a finite number"),
        ({"a": [np.nan, 0], "check": True}, "a[0] is nan; wanted a finite number"),
        ({"wrenches": np.zeros(6)}, "wrenches must map a frame's name to its wrench [moment; force], got ndarray"),
        ({"wrenches": {"lower": np.zeros(5)}}, "wrenches['lower'] has shape (5,), wanted (6,)"),
        ({"wrenches": {"lowr": np.zeros(6)}}, "no frame 'lowr' (did you mean 'lower'?)"),
        ({"wrenches": {"lower": [0, 0, np.nan, 0, 0, 0]}, "check": True}, "wrenches['lower'][2] is nan"),
        ({"out": np.zeros(3)}, "out has shape (3,); wanted (2,)"),
        ({"out": np.zeros(2, int)}, "out has dtype int64; wanted float64"),
        ({"out": READ_ONLY}, "out is read-only"),
    ],
)
def test_inverse_dynamics_says_what_is_wrong(
    arm: pb.Model, formulation: str | None, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(pb.InputError, match=re.escape(message)):
        arm.inverse_dynamics(**{"q": Z, "v": Z, "a": Z, "formulation": formulation, **change})


@pytest.mark.parametrize("formulation", [None, *pb.formulations()])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_comes_out_not_finite_and_spoils_no_other_state(
    arm: pb.Model, formulation: str | None, bad: float
) -> None:
    q = np.array([[0.1, 0.2], [0.1, bad]])
    tau = arm.inverse_dynamics(q, Z, Z + 1, formulation=formulation)
    assert np.isfinite(tau[0]).all()
    assert not np.isfinite(tau[1]).all()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: m.pose(Z, 3), "a frame is chosen by its name, not by 3; there are world, upper, lower, tip"),
        (lambda m: m.jacobian(Z, "tip", axes="body"), "axes is 'body', wanted 'world' or 'frame'"),
        (lambda m: m.integrate(Z, Z, "soon"), "dt must be numbers"),
        (lambda m: m.integrate(np.zeros((3, 2)), Z, np.ones(4)), "do not broadcast"),
        (lambda m: m.random_configuration(0, size=-1), "size is -1, wanted a whole number that is not negative"),
        (lambda m: m.random_configuration("dice"), "rng is 'dice', wanted a numpy.random.Generator"),
        (lambda m: m.mass_matrix(Z, formulation="denok"), "no formulation 'denok' (did you mean 'denoc'?)"),
        (lambda m: m.inverse_dynamics_derivatives(Z, Z, Z, wrenches=np.zeros(6)), "wrenches must map a frame's name"),
        (lambda m: pb.load(3), "wanted a file's path or a shipped model's name, got int"),
        (lambda m: pb.Builder(3), "a mechanism needs a name, got 3"),
    ],
)
def test_other_answers_say_what_is_wrong(arm: pb.Model, act: Any, message: str) -> None:
    with pytest.raises(pb.InputError, match=re.escape(message)):
        act(arm)


def test_a_method_kept_by_itself_outlives_its_model() -> None:
    """A lone state goes straight to machine code; any other call needs a model, also when the user's is gone."""
    model = pb.load("two-link")
    held = model.inverse_dynamics(Z, Z, Z)
    kept = model.inverse_dynamics
    del model
    gc.collect()
    np.testing.assert_array_equal(kept(Z, Z, a=Z), held)
    np.testing.assert_array_equal(kept(np.zeros((3, 2)), Z, Z, formulation=None), [held] * 3)


def test_a_model_survives_pickling_after_use(arm: pb.Model) -> None:
    tau = arm.inverse_dynamics(Z, Z, Z + 1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(arm)).inverse_dynamics(Z, Z, Z + 1), tau)


def test_empty_wrenches_are_no_wrenches(arm: pb.Model) -> None:
    np.testing.assert_array_equal(arm.inverse_dynamics(Z, Z, Z, wrenches={}), arm.inverse_dynamics(Z, Z, Z))
