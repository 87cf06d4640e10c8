"""Forces within limits, in norms 1, 2 and ∞; least torques; criteria that self-motion climbs."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.mechanism.saturation import drive_limits, saturated


def held(name, size=6):
    """(model, q, v, a) of a machine with more actuators than motions, a batch in motion."""
    model = pb.load(name)
    rng = np.random.default_rng(3)
    starts = model.integrate(model.neutral(), 0.02 * rng.normal(size=(size, model.nv)))
    q = model.assemble(starts)
    v = model.assemble_velocity(q, 0.3 * rng.normal(size=(size, model.nv)))
    a = model.assemble_acceleration(q, v, rng.normal(size=(size, model.nv)))
    return model, q, v, a


@pytest.mark.parametrize("norm", [1, 2, "inf"])
def test_every_norm_makes_the_motion_and_is_the_least_of_its_kind(norm):
    pytest.importorskip("clarabel")
    model, q, v, a = held("walking-machine")
    tau = pb.actuator_forces(model, q, v, a, norm=norm, limits=None)
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), a, atol=1e-6 * (1 + np.abs(a).max()))
    assert not tau[:, ~model.actuation.active].any()
    if norm == 2:
        np.testing.assert_allclose(tau, model.inverse_dynamics(q, v, a), atol=1e-8 * (1 + np.abs(tau).max()))
    active = np.flatnonzero(model.actuation.active)
    power = {1: 1, 2: 2, "inf": np.inf}[norm]
    for k in range(len(q)):
        names, internal = model.actuation.internal_loads(q[k])
        assert len(names) == len(active)
        size = np.linalg.norm(tau[k, active], power)
        for s in np.linspace(-2, 2, 41):
            assert np.linalg.norm(tau[k, active] + s * internal[:, 0], power) >= size - 1e-7


@pytest.mark.parametrize("norm", [1, 2, "inf"])
def test_limits_are_kept_and_what_they_would_need_is_told(norm):
    pytest.importorskip("clarabel")
    model, q, v, a = held("two-fingered-hand", 3)
    active = np.flatnonzero(model.actuation.active)
    evenly = np.abs(pb.actuator_forces(model, q, v, a, norm="inf", limits=None)[:, active]).max()
    limit = 1.001 * evenly
    tau = pb.actuator_forces(model, q, v, a, norm=norm, limits=limit)[:, active]
    assert np.abs(tau).max() <= limit * (1 + 1e-7)
    whole = np.zeros((3, model.nv))
    whole[:, active] = tau
    np.testing.assert_allclose(model.forward_dynamics(q, v, whole), a, atol=1e-5 * (1 + np.abs(a).max()))
    with pytest.raises(pb.LimitsError, match=r"at least 2\.\d* times the limits") as told:
        pb.actuator_forces(model, q, v, a, norm=norm, limits=0.49 * evenly)
    assert told.value.needed > 1
    with pytest.raises(pb.InputError, match="norm is 3"):
        pb.actuator_forces(model, q, v, a, norm=3)


@pytest.mark.parametrize("norm", [1, 2, "inf"])
def test_power_and_velocity_limits_share_the_load_as_drives_saturate(norm):
    """One axis, two drives: what the fast one may not give, the slow one does; a drive brakes with its full effort."""
    pytest.importorskip("clarabel")
    build = pb.Builder("geared axis", gravity=(0, 0, 0))
    for name, limits in (("fast", {"effort": 9, "power": 4, "velocity": 20}), ("slow", {"effort": 9, "velocity": 8})):
        build.body(name, 1.0, inertia=(1, 1, 1))
        build.joint(name, "revolute", "world", name, limits=limits)
    build.relation("gear", "fast - 2*slow")
    model = build.model()
    q, limits = np.zeros(2), drive_limits(model.mechanism)

    def shared(speed, rate):
        v, a = np.array([speed, speed / 2]), np.array([rate, rate / 2])
        tau = pb.actuator_forces(model, q, v, a, norm=norm)
        np.testing.assert_allclose(saturated(limits, tau, v), tau, atol=1e-5)  # the drives can give it
        np.testing.assert_allclose(model.forward_dynamics(q, v, tau), a, atol=1e-5)
        return tau

    assert shared(4.0, 3.0)[0] <= 1.0 + 1e-6  # 4 W at 4 rad/s
    assert shared(4.0, -3.0)[0] < -1.5  # braking
    needed = pb.actuator_forces(model, q, [4.0, 2.0], [3.0, 1.5], norm=norm, limits="effort")
    assert needed[0] > 1.0 + 1e-3
    with pytest.raises(pb.LimitsError, match="at least"):
        pb.actuator_forces(model, q, [4.0, 2.0], [12.0, 6.0], norm=norm)
    with pytest.raises(pb.LimitsError):  # at its velocity limit the slow drive does not push, and the fast one has 4 W
        pb.actuator_forces(model, q, [16.0, 8.0], [3.0, 1.5], norm=norm)


def seven():
    rows = [{"alpha": (-1) ** k * np.pi / 2, "d": 0.35 * (k % 2), "mass": 2.0, "com": (0, 0.02, 0.1),
             "inertia": (0.02, 0.02, 0.01)} for k in range(7)]
    return pb.from_dh(rows, name="seven")


@pytest.mark.parametrize("norm", [1, 2, "inf"])
def test_least_torques_move_the_hand_and_no_self_motion_lowers_them(norm):
    pytest.importorskip("clarabel")
    arm = seven()
    machine = pb.redundant(arm, pb.Pose("dh_7"))
    rng = np.random.default_rng(0)
    q, v, wanted = 0.7 * rng.normal(size=(4, 7)), 0.5 * rng.normal(size=(4, 7)), rng.normal(size=(4, 6))
    a, tau = machine.least_torques(q, v, wanted, norm=norm)
    np.testing.assert_allclose(arm.coefficients.influence(q, "dh_7", 2).acceleration(v, a), wanted, atol=1e-6)
    np.testing.assert_allclose(arm.inverse_dynamics(q, v, a), tau, atol=1e-9 * (1 + np.abs(tau).max()))
    power = {1: 1, 2: 2, "inf": np.inf}[norm]
    for k in range(4):
        free = np.linalg.svd(arm.jacobian(q[k], "dh_7"))[2][-1]
        size = np.linalg.norm(tau[k], power)
        for s in (-3.0, -1e-2, 1e-2, 3.0):
            assert np.linalg.norm(tau[k] + s * arm.mass_matrix(q[k]) @ free, power) >= size - 1e-6
    # limits just above the least largest torque
    if norm == "inf":
        limit = 1.01 * np.abs(tau).max(axis=-1).max()
        _, kept = machine.least_torques(q, v, wanted, norm=2, limits=limit)
        assert np.abs(kept).max() <= limit * (1 + 1e-7)


def test_damping_lets_a_self_motion_die_at_its_rate():
    """Without gravity a slow self-motion has φ̈ = −k φ̇; without damping least torques leave it alone."""
    arm = seven().with_gravity((0, 0, 0))
    machine = pb.redundant(arm, pb.Pose("dh_7"))
    q = np.array([0.3, -0.5, 0.2, 0.9, -0.4, 0.6, 0.1])
    v = 1e-6 * np.linalg.svd(arm.jacobian(q, "dh_7"))[2][-1]
    for k in (0.0, 3.0):
        a, _ = machine.least_torques(q, v, np.zeros(6), damping=k)
        np.testing.assert_allclose(a, -k * v, atol=1e-10)
    limit = 1e-7
    _, tau = machine.least_torques(q, v, np.zeros(6), damping=3.0, limits=limit, norm=1)
    assert np.abs(tau).max() <= limit * (1 + 1e-6)
    for wrong in (-1.0, np.nan, "fast"):
        with pytest.raises(pb.InputError, match="damping"):
            machine.least_torques(q, v, np.zeros(6), damping=wrong)


def redundant_platform():
    """Freeman's figure 4-4 and a place: six motors, three motions of the platform."""
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    from freeman_figure_4_4 import machine, start

    model = machine()
    return model, start(model), [pb.Orientation("hand", "z"), pb.Position("hand", "xy")]


def space_arm():
    build = pb.Builder("space arm", gravity=(0, 0, 0))
    build.body("base", 30.0, inertia=(3.0, 3.0, 3.0))
    build.joint("root_joint", "planar", "world", "base", active=False)
    for k in range(4):
        build.body(f"b{k}", 2.0, (0.2, 0, 0), (1e-3, 0.03, 0.03))
        build.joint(f"j{k}", "revolute", f"b{k - 1}" if k else "base", f"b{k}", (0.4, 0, 0))
    build.frame("hand", "b3", (0.4, 0, 0))
    model = build.model()
    return model, np.array([0.1, 0.2, -0.1, 0.4, -0.8, 0.6, 0.5]), pb.Position("hand", "xy")


@pytest.mark.parametrize("norm", [1, 2, "inf"])
@pytest.mark.parametrize("make", [redundant_platform, space_arm])
def test_least_torques_of_loops_and_free_bases_are_the_least_of_all_that_move_the_hand(make, norm):
    pytest.importorskip("clarabel")
    model, q, task = make()
    machine = pb.redundant(model, task)
    rng = np.random.default_rng(1)
    v = model.assemble_velocity(q, 0.2 * rng.normal(size=model.nv)) if len(model.constraints) else rng.normal(size=7)
    wanted = rng.normal(size=len(machine.names))
    a, tau = machine.least_torques(q, v, wanted, norm=norm)
    assert not tau[~model.actuation.active].any()
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), a, atol=1e-8 * (1 + np.abs(a).max()))
    hand = model.frame_acceleration(q, v, a, "hand")
    np.testing.assert_allclose(hand[[2, 3, 4]] if len(wanted) == 3 else hand[[3, 4]], wanted, atol=1e-6)
    power = {1: 1, 2: 2, "inf": np.inf}[norm]
    # other torques that move the hand alike: what forward dynamics maps to the same ü
    active = np.flatnonzero(model.actuation.active)
    rows = [2, 3, 4] if len(wanted) == 3 else [3, 4]
    effect = np.array([(model.frame_acceleration(q, v, model.forward_dynamics(q, v, tau + e), "hand") - hand)[rows]
                       for e in np.eye(model.nv)[active]]).T  # fmt: skip
    for idle in np.linalg.svd(effect)[2][len(rows):]:
        for s in (-1.0, -1e-2, 1e-2, 1.0):
            assert np.linalg.norm(tau[active] + s * idle, power) >= np.linalg.norm(tau[active], power) - 1e-6


def test_infeasible_limits_name_their_state_and_factor_whatever_their_signs():
    pytest.importorskip("clarabel")
    model = pb.load("two-arms")
    q, still = model.assemble(), np.zeros(model.nv)
    least = np.abs(pb.actuator_forces(model, q, still, still, limits=None, norm="inf")).max()
    motions = np.stack([model.constraints.joint_motion(q, still[:3], s * np.array([1.0, 2.0, 3.0]))[1]
                        for s in (0.0, 0.01, 40.0, 0.0)])  # fmt: skip
    for norm in (1, 2, "inf"):
        with pytest.raises(pb.LimitsError, match="in state 2") as told:
            pb.actuator_forces(model, q, still, motions, limits=1.2 * least, norm=norm)
        assert told.value.index == 2
        for limits in ((0.0, 3.0), (0.5, 3.0), (-1.0, 4.0), (-3.0, 0.0)):
            with pytest.raises(pb.LimitsError) as told:
                pb.actuator_forces(model, q, still, still, limits=limits, norm=norm)
            grown = tuple(x * told.value.needed * (1 + 1e-6) if sign * x > 0 else x
                          for x, sign in zip(limits, (-1, 1), strict=True))  # fmt: skip
            assert told.value.needed > 1
            pb.actuator_forces(model, q, still, still, limits=grown, norm=norm)  # the factor is enough
            nearly = tuple(x * told.value.needed * (1 - 1e-3) if sign * x > 0 else x
                           for x, sign in zip(limits, (-1, 1), strict=True))  # fmt: skip
            with pytest.raises(pb.LimitsError):
                pb.actuator_forces(model, q, still, still, limits=nearly, norm=norm)
    with pytest.raises(pb.LimitsError, match="any multiple"):
        pb.actuator_forces(model, q, still, still, limits=0.0)
    for wrong in ([1.0, 2.0], [[1.0] * 6] * 3, ([1.0], 2.0), -1.0, np.nan):
        with pytest.raises(pb.InputError, match="limits"):
            pb.actuator_forces(model, q, still, still, limits=wrong)


def test_singular_configurations_are_named_not_crashed():
    arm = seven()
    machine = pb.redundant(arm, pb.Pose("dh_7"))
    straight, still = np.zeros(7), np.zeros(7)
    with pytest.raises(pb.PolybodyError, match="no gradient there"):
        machine.climbing_velocity(straight, np.zeros(6))
    J = arm.jacobian(straight, "dh_7")
    lost = np.linalg.svd(J)[0][:, -1]  # a direction that no acceleration gives
    assert np.abs(lost @ J).max() < 1e-9
    with pytest.raises(pb.LimitsError, match="no forces"):
        machine.least_torques(straight, still, lost)
    a, _ = machine.least_torques(straight, still, J @ np.ones(7))  # what it can do it does
    np.testing.assert_allclose(J @ a, J @ np.ones(7), atol=1e-8)


def test_self_motion_climbs_manipulability_by_its_exact_gradient():
    arm = seven()
    machine = pb.redundant(arm, pb.Pose("dh_7"), "least squares")
    q = np.array([0.3, -0.5, 0.2, 0.9, -0.4, 0.6, 0.1])

    def size(at):
        J = arm.jacobian(at, "dh_7")
        return np.sqrt(np.linalg.det(J @ J.T))

    from polybody.coordinates.optimising import gradient

    found = gradient(machine, q, "manipulability")
    wanted = [(size(q + 1e-6 * e) - size(q - 1e-6 * e)) / 2e-6 for e in np.eye(7)]
    np.testing.assert_allclose(found, wanted, atol=1e-8)
    at, before = q, size(q)
    for _ in range(50):
        v = machine.climbing_velocity(at, np.zeros(6), "manipulability", gain=20.0)
        assert np.abs(arm.jacobian(at, "dh_7") @ v).max() < 1e-9
        at = at + 0.02 * v
    assert size(at) > before * 1.02
    assert np.abs(arm.pose(at, "dh_7")[:3, 3] - arm.pose(q, "dh_7")[:3, 3]).max() < 0.02
    with pytest.raises(pb.InputError, match="expected manipulability, limits"):
        machine.climbing_velocity(q, np.zeros(6), "beauty")
