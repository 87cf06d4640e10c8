"""Models with loops in coordinates of choice: the platform's own, and fewer than there are."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from closed_states import closed_state

Array = np.ndarray
#: machine: coordinates of its moving platform
PLATFORMS = {
    "3-rrr": [pb.Position("hand", "xy"), pb.Orientation("hand", "z")],
    "stewart": [pb.Pose("platform")],
}


def agree(found: Array, wanted: Array, tolerance: float) -> None:
    np.testing.assert_allclose(found, wanted, atol=tolerance * (1 + np.abs(wanted).max()), rtol=0)


@pytest.fixture(params=list(PLATFORMS))
def platform(request):
    model, q, v = closed_state(request.param)
    moved = pb.transfer(model, PLATFORMS[request.param])
    frame, rows = ("hand", [3, 4, 2]) if request.param == "3-rrr" else ("platform", list(range(6)))
    return model, q, v, moved, model.jacobian(q, frame)[rows] @ v


def test_motions_of_the_platform_move_all_joints_along_the_loops(platform):
    model, q, v, moved, twist = platform
    agree(moved.velocity(q, twist), v, 1e-8)
    accelerating = np.random.default_rng(1).normal(size=len(twist))
    a = moved.acceleration(q, twist, accelerating)
    gap = model.constraints.jacobian(q) @ a + model.constraints.bias(q, v)
    assert np.abs(gap).max() < 1e-8 * (1 + np.abs(a).max())
    rate = moved.jerk(q, twist, accelerating, np.zeros_like(twist))
    assert rate.shape == (model.nv,)


def test_dynamics_at_the_platform_agree_with_the_actuators(platform):
    """Power is the same whether wrenches at the platform or forces of the active joints make the motion."""
    model, q, v, moved, twist = platform
    accelerating = np.random.default_rng(2).normal(size=len(twist))
    a = moved.acceleration(q, twist, accelerating)
    wrench, tau = moved.inverse_dynamics(q, twist, accelerating), model.inverse_dynamics(q, v, a)
    agree(np.array(wrench @ twist), np.array(tau @ v), 1e-8)
    agree(moved.forward_dynamics(q, twist, wrench), accelerating, 1e-7)
    M = moved.mass_matrix(q)
    agree(np.array(twist @ M @ twist / 2), np.array(model.energy(q, v)[0]), 1e-9)
    whole = moved.dynamics(q, twist)
    agree(whole.effort(twist, accelerating), wrench, 1e-8)


def test_linearised_platform_has_the_poles_of_the_linearised_actuators_at_rest(platform):
    model, q, _, moved, twist = platform
    found, own = moved.linearize(q, 0 * twist), pb.linearize(model, q, np.zeros(model.nv))
    gaps = np.abs(found.poles()[:, None] - own.poles()[None, :])
    assert gaps.min(axis=1).max() < 1e-6 * (1 + np.abs(own.poles()).max())
    assert found.inputs == own.inputs


def test_a_transfer_from_other_joints_is_the_same_transfer():
    model, q, v = closed_state("3-rrr")
    coordinates = PLATFORMS["3-rrr"]
    others = [name.replace("phi1", "phi2") for name in model.constraints.independent]
    first, second = pb.transfer(model, coordinates), pb.transfer(model, coordinates, independent=others)
    agree(second.mass_matrix(q), first.mass_matrix(q), 1e-8)
    twist = first.coefficients(q, 1)[0] @ v[model.constraints.indices(model.constraints.independent)[0] :][:3]
    agree(second.velocity(q, twist), first.velocity(q, twist), 1e-8)


def test_wrong_numbers_of_coordinates_count_mobility():
    with pytest.raises(pb.InputError, match=r"1 coordinate .*for 2 velocities"):
        pb.transfer(pb.load("five-bar"), "phi1")


@pytest.mark.parametrize("criterion", ["energy", "least squares"])
def test_redundant_platforms_take_the_least_motion_and_keep_the_loops(criterion):
    model, q, _ = closed_state("3-rrr")
    point = pb.redundant(model, pb.Position("hand", "xy"), criterion)
    u_dot, u_ddot = np.array([0.2, -0.1]), np.array([0.5, 0.3])
    v = point.velocity(q, u_dot)
    a = point.acceleration(q, u_dot, u_ddot)
    agree(model.jacobian(q, "hand")[3:5] @ v, u_dot, 1e-9)
    assert np.abs(model.constraints.jacobian(q) @ a + model.constraints.bias(q, v)).max() < 1e-8
    h = 1e-5
    step = model.assemble(model.integrate(q, h * v)), model.assemble(model.integrate(q, -h * v))
    speeds = [point.velocity(x, u_dot + s * h * u_ddot) for s, x in zip((1, -1), step, strict=True)]
    agree(a, (speeds[0] - speeds[1]) / (2 * h), 1e-6)
    agree(model.forward_dynamics(q, v, point.loads(q, u_dot, u_ddot)), a, 1e-7)
