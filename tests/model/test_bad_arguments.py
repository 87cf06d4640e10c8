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
        ({"q": np.zeros(5)}, "q has shape (5,), expected (2,) or (..., 2)"),
        ({"a": np.zeros((4, 3))}, "a has shape (4, 3), expected (2,) or (..., 2)"),
        ({"v": 1.0}, "v has shape (), expected (2,)"),
        ({"q": Z + 1j}, "q must be real numbers, got complex128"),
        ({"q": ["0", "0"]}, "q must be numbers in a regular array, got <U1"),
        ({"v": ["0", "0"], "check": True}, "v must be numbers in a regular array, got <U1"),
        ({"q": [None, None]}, "q must be numbers in a regular array, got object"),
        ({"a": [None, None], "check": True}, "a must be numbers in a regular array, got object"),
        ({"q": [[0, 0], [0]]}, "q must be numbers in a regular array, got list"),
        ({"q": np.zeros((3, 2)), "v": np.zeros((4, 2))}, "do not broadcast"),
        ({"q": [[0, 0], [0, np.inf]], "check": True}, "q[1, 1] is inf; expected a finite number"),
        ({"a": [np.nan, 0], "check": True}, "a[0] is nan; expected a finite number"),
        ({"wrenches": np.zeros(6)}, "wrenches must map a frame's name to its wrench [moment; force], got ndarray"),
        ({"wrenches": {"lower": np.zeros(5)}}, "wrenches['lower'] has shape (5,), expected (6,)"),
        ({"wrenches": {"lowr": np.zeros(6)}}, "no frame 'lowr' (did you mean 'lower'?)"),
        ({"wrenches": {"lower": [0, 0, np.nan, 0, 0, 0]}, "check": True}, "wrenches['lower'][2] is nan"),
        ({"out": np.zeros(3)}, "out has shape (3,); expected (2,)"),
        ({"out": np.zeros(2, int)}, "out has dtype int64; expected float64"),
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
        (lambda m: m.pose(Z, 3), "a frame is chosen by its name, not by 3; available: world, upper, lower, tip"),
        (lambda m: m.jacobian(Z, "tip", axes="body"), "axes is 'body', expected 'world' or 'frame'"),
        (lambda m: m.integrate(Z, Z, "soon"), "dt must be numbers"),
        (lambda m: m.integrate(np.zeros((3, 2)), Z, np.ones(4)), "do not broadcast"),
        (lambda m: m.random_configuration(0, size=-1), "size is -1, expected a whole number that is not negative"),
        (lambda m: m.random_configuration("dice"), "rng is 'dice', expected a numpy.random.Generator"),
        (lambda m: m.mass_matrix(Z, formulation="denok"), "no formulation 'denok' (did you mean 'denoc'?)"),
        (lambda m: m.inverse_dynamics_derivatives(Z, Z, Z, wrenches=np.zeros(6)), "wrenches must map a frame's name"),
        (lambda m: pb.load(3), "expected a file's path or a shipped model's name, got int"),
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


BALL = pb.Builder("ball")
BALL.body("body", 1.0, inertia=(1, 1, 1))
BALL.joint("root_joint", "floating", "world", "body")
BALL.body("arm", 1.0, com=(0.1, 0, 0), inertia=(1, 1, 1))
BALL.joint("elbow", "revolute", "body", "arm")
W = np.zeros(7)

#: every public way in for a configuration, and what it calls it
WITH_Q: list[tuple[str, Any]] = [
    *((name, lambda m, q, k=name: getattr(m, k)(q)) for name in (
        "mass_matrix", "inverse_mass_matrix", "gravity_forces", "center_of_mass", "poses", "mobility",
    )),
    ("constraints.joint_positions", lambda m, q: m.constraints.joint_positions(q)),
    ("coefficients.centroidal_momentum_matrix", lambda m, q: m.coefficients.centroidal_momentum_matrix(q)),
    *((name, lambda m, q, k=name: getattr(m, k)(q, W)) for name in (
        "coriolis_matrix", "bias_forces", "passive_forces", "energy", "momentum", "integrate", "assemble_velocity",
    )),
    *((name, lambda m, q, k=name: getattr(m, k)(q, W, W)) for name in (
        "inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives",
        "reactions", "assemble_acceleration",
    )),
    ("forward_dynamics with check", lambda m, q: m.forward_dynamics(q, W, W, check=True)),
    ("inverse_dynamics with check", lambda m, q: m.inverse_dynamics(q, W, W, check=True)),
    ("pose", lambda m, q: m.pose(q, "arm")),
    ("jacobian", lambda m, q: m.jacobian(q, "arm")),
    ("difference, from", lambda m, q: m.difference(q, m.neutral())),
    ("difference, to", lambda m, q: m.difference(m.neutral(), q)),
    ("constraints.solution", lambda m, q: m.constraints.solution(q, W, W)),
    ("actuation.hybrid_dynamics", lambda m, q: m.actuation.hybrid_dynamics(q, W, W, W)),
    ("coefficients.influence", lambda m, q: m.coefficients.influence(q, "arm")),
    ("coefficients.dynamic_arrays", lambda m, q: m.coefficients.dynamic_arrays(q)),
    ("base.zero_momentum_velocity", lambda m, q: m.base.zero_momentum_velocity(q, W)),
    ("lock", lambda m, q: m.lock("elbow", q)),
    ("pb.linearize", lambda m, q: pb.linearize(m, q, W)),
    ("pb.simulate", lambda m, q: pb.simulate(m, 0.01, q)),
    ("pb.rollout", lambda m, q: pb.rollout(m, q, W, steps=1)),
    ("pb.inverse_kinematics", lambda m, q: pb.inverse_kinematics(m, {"arm": np.eye(4)}, q)),
    ("pb.redundant", lambda m, q: pb.redundant(m, pb.Position("arm")).velocity(q, np.zeros(3))),
]  # fmt: skip


@pytest.fixture(scope="module")
def floating() -> pb.Model:
    return BALL.model()


@pytest.mark.parametrize("act", [act for _, act in WITH_Q], ids=[name for name, _ in WITH_Q])
def test_configurations_that_are_no_numbers_or_no_rotations_are_refused(floating: pb.Model, act: Any) -> None:
    """["0", ...] was read as zeros, None as NaN, and a quaternion of length two as a rotation."""
    long = floating.neutral()
    long[6] = 2.0
    for q, message in ((["0"] * 8, "must be numbers in"), ([None] * 8, "must be numbers in"), (long, "length 2")):
        with pytest.raises(pb.InputError, match=message):
            act(floating, q)


@pytest.mark.parametrize(
    "act",
    [
        lambda m, x: pb.simulate(m, 0.01, v0=x),
        lambda m, x: pb.rollout(m, m.neutral(), x, steps=1),
        lambda m, x: pb.rollout(m, m.neutral(), W, x, steps=1),
        lambda m, x: pb.controllers.PD(m, m.neutral(), kp=x),
        lambda m, x: pb.controllers.Given(m, x),
        lambda m, x: pb.linearize(m, m.neutral(), x),
        lambda m, x: pb.inverse_kinematics(m, {"arm": x[:3]}),
        lambda m, x: pb.paths.cycloidal(m, m.neutral(), [*x, x[0]], 1.0),
        lambda m, x: m.base.zero_momentum_velocity(m.neutral(), x),
        lambda m, x: m.forward_dynamics(m.neutral(), W, W, wrenches={"arm": x[:6]}),
    ],
)
def test_texts_and_none_are_no_velocities_forces_or_gains(floating: pb.Model, act: Any) -> None:
    for values in (["0"] * 7, [None] * 7):
        with pytest.raises(pb.InputError, match="must be numbers in a regular array"):
            act(floating, values)


@pytest.mark.parametrize("name", ["four-bar", "stewart"])
def test_check_refuses_torques_that_are_not_finite_with_loops(name: str) -> None:
    """`check` was not looked at where a model has loops: NaN in, NaN out."""
    model = pb.load(name)
    q, none = model.assemble(), np.zeros(model.nv)
    bad = none.copy()
    bad[0] = np.nan
    with pytest.raises(pb.InputError, match=r"tau\[0\] is nan; expected a finite number"):
        model.forward_dynamics(q, none, bad, check=True)
    with pytest.raises(pb.InputError, match=r"a\[0\] is nan; expected a finite number"):
        model.inverse_dynamics(q, none, bad, check=True)


@pytest.mark.parametrize(("limits", "low", "high"), [
    ({"lower": 5.0}, 5.0, np.inf), ({"upper": -3.0}, -np.inf, -3.0), ({"lower": 2.0, "upper": 2.5}, 2.0, 2.5),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["prismatic", "revolute"])
def test_random_configurations_honour_limits_on_one_side_too(kind: str, limits: Any, low: float, high: float) -> None:
    build = pb.Builder("slide")
    build.body("block", 1.0, inertia=(1, 1, 1))
    build.joint("joint", kind, "world", "block", limits=limits)
    drawn = build.model().random_configuration(0, size=200)
    assert np.all((drawn >= low) & (drawn <= high))
    assert np.ptp(drawn) > 0.1
