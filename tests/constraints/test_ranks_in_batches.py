"""A rank that changes inside a batch is told for each state, and no state feels its neighbours."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.errors import PolybodyWarning


def parallelogram(active=("a", "c")):
    """Singular where all bars lie in line: there two motions pass, elsewhere one."""
    build = pb.Builder("parallelogram", gravity=(0, -9.81, 0))
    for name, length in (("crank", 1.0), ("coupler", 2.0), ("rocker", 1.0)):
        build.body(name, 1, com=(length / 2, 0, 0), inertia=(0.01, 0.005 + length**2 / 12, 0.005 + length**2 / 12))
    build.joint("a", "revolute", "world", "crank", active="a" in active)
    build.joint("b", "revolute", "crank", "coupler", (1, 0, 0), active="b" in active)
    build.joint("c", "revolute", "world", "rocker", (2, 0, 0), active="c" in active)
    build.loop("d", "revolute", "coupler", "rocker", (2, 0, 0), (1, 0, 0))
    return build.model()


def batch(model):
    """Twelve states in rows of four; the third and the tenth are in line."""
    rng = np.random.default_rng(4)
    angle = rng.uniform(0.3, 1.2, size=12)
    angle[[2, 9]] = 0.0
    q = np.stack([angle, -angle, angle], axis=-1)
    v = model.assemble_velocity(q, rng.normal(size=(12, 3)))
    v[[2, 9]] = [[1.0, -1.0, 1.0], [-2.0, 2.0, -2.0]]  # along the branch on which the bars stay parallel
    return q, v, rng.normal(size=(12, 3))


def test_rank_is_told_state_by_state():
    model = parallelogram()
    q, _, _ = batch(model)
    ranks = model.constraints.rank(q.reshape(3, 4, 3))
    assert ranks.shape == (3, 4)
    assert ranks.ravel().tolist() == [1 if k in (2, 9) else 2 for k in range(12)]
    assert model.constraints.rank(q[2]) == 1
    assert pb.load("puma560").constraints.rank(np.zeros((5, 6))).tolist() == [0] * 5


def test_forward_dynamics_of_a_batch_flags_singular_states_and_answers_each_as_if_alone():
    model = parallelogram()
    q, v, tau = batch(model)
    said = r"2 of 12 states are singular; the first is 0, 2: the constraints have rank 1 there, 2 in general"
    with pytest.warns(PolybodyWarning, match=said):
        a = model.forward_dynamics(q.reshape(3, 4, 3), v.reshape(3, 4, 3), tau.reshape(3, 4, 3)).reshape(12, 3)
    for k in range(12):
        other = parallelogram()  # its elimination is planned from this state alone
        if k in (2, 9):
            with pytest.warns(PolybodyWarning, match="1 of 1 states are singular: the constraints have rank 1 there"):
                alone = other.forward_dynamics(q[k], v[k], tau[k])
        else:
            alone = other.forward_dynamics(q[k], v[k], tau[k])
        np.testing.assert_allclose(a[k], alone, atol=1e-9 * np.abs(alone).max())
    with pytest.warns(PolybodyWarning, match=said.replace("0, 2:", "2:")):
        by_text = model.forward_dynamics(q, v, tau, formulation="denoc")
    np.testing.assert_allclose(by_text, a, atol=1e-9 * np.abs(a).max())
    np.testing.assert_array_equal(model.constraints.solution(q, v, tau).rank, model.constraints.rank(q))


def test_inverse_dynamics_of_a_batch_flags_singular_states_and_gives_the_motion_back():
    model = parallelogram()
    q, v, tau = batch(model)
    tau[:, 1] = 0.0
    with pytest.warns(PolybodyWarning):
        a = model.forward_dynamics(q, v, tau)
    with pytest.warns(PolybodyWarning, match="2 of 12 states are singular; the first is 2"):
        efforts = model.inverse_dynamics(q, v, a)
    for k in range(12):
        if k in (2, 9):
            with pytest.warns(PolybodyWarning, match="singular"):
                alone = model.inverse_dynamics(q[k], v[k], a[k])
            # two drives for two motions: no choice is left
            np.testing.assert_allclose(efforts[k], tau[k], atol=1e-9 * np.abs(tau[k]).max())
        else:
            alone = model.inverse_dynamics(q[k], v[k], a[k])
        np.testing.assert_allclose(efforts[k], alone, atol=1e-9 * np.abs(alone).max())
    with pytest.warns(PolybodyWarning):
        np.testing.assert_allclose(model.forward_dynamics(q, v, efforts), a, atol=1e-9 * np.abs(a).max())


def test_one_drive_cannot_hold_a_singular_state_and_the_error_says_which():
    model = parallelogram(active=("a",))
    q, v, _ = batch(model)
    a = model.assemble_acceleration(q, v, np.random.default_rng(1).normal(size=(12, 3)))
    with pytest.raises(pb.PolybodyError, match=r"active joints .a. cannot give this motion .state 2 of the batch"):
        model.inverse_dynamics(q, v, a)


def test_velocity_that_leads_along_no_branch_is_refused():
    """In line, crank and rocker may turn at different rates to first order only."""
    model = parallelogram()
    q, v, tau = batch(model)
    v[9] = [1.0, -1.2, 0.6]
    assert np.abs(model.constraints.jacobian(q[9]) @ v[9]).max() < 1e-15
    with pytest.raises(pb.InputError, match=r"no acceleration keeps the constraints .state 9 of the batch.: 'd' by"):
        model.forward_dynamics(q, v, tau)


def test_batch_without_singular_states_says_nothing(recwarn):
    model = parallelogram()
    q, v, tau = (np.delete(x, [2, 9], axis=0) for x in batch(model))
    model.forward_dynamics(q, v, tau)
    assert not [w for w in recwarn if issubclass(w.category, PolybodyWarning)]


def light_fingers():
    build = pb.Builder("light", gravity=(0, 0, -9.81))
    build.body("arm", 1, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    build.joint("shoulder", "revolute", "world", "arm")
    for finger in ("left", "right"):
        build.body(finger, 0.0)
        build.joint(finger, "revolute", "arm", finger)
    return build


@pytest.mark.filterwarnings("ignore:body '(left|right)'")
def test_motion_without_mass_is_refused_by_the_name_of_what_leads_it():
    build = light_fingers()
    build.relation("grip", "left + right")
    model = build.model()
    rest = np.zeros(3)
    with pytest.raises(pb.PolybodyError, match=r"nothing that moves with left has mass, so no force"):
        model.forward_dynamics(rest, rest, rest)
    with pytest.raises(pb.PolybodyError, match=r"left has mass .state 0 of the batch"):
        model.constraints.solution(np.zeros((2, 3)), rest, rest)
    np.testing.assert_allclose(model.inverse_dynamics(rest, rest, [1.0, 2.0, -2.0])[0], 0.11)


@pytest.mark.filterwarnings("ignore:body '(left|right)'")
def test_followers_without_mass_are_refused_by_the_name_of_their_leader():
    build = light_fingers()
    build.couple("left", "right", -1.0)
    model = build.model()
    with pytest.raises(pb.PolybodyError, match="singular at joint 'right'"):
        model.forward_dynamics([0, 0], [0, 0], [0, 0])
    np.testing.assert_allclose(model.inverse_dynamics([0, 0], [0, 0], [1.0, 2.0]), [0.11, 0])
