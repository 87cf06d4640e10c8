"""Measures of design against closed forms, identities and the machine's own motion."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb

LENGTHS, MASSES = (0.6, 0.4), (2.0, 1.0)


def two_link():
    build = pb.Builder("two links", gravity=(0, -9.81, 0))
    for k, (length, mass) in enumerate(zip(LENGTHS, MASSES, strict=True)):
        build.body(f"b{k}", mass, (length / 2, 0, 0), (1e-6, mass * length**2 / 12, mass * length**2 / 12))
    build.joint("j0", "revolute", "world", "b0")
    build.joint("j1", "revolute", "b0", "b1", (LENGTHS[0], 0, 0))
    build.frame("tip", "b1", (LENGTHS[1], 0, 0))
    return build.model()


def pendulum(**joint):
    build = pb.Builder("pendulum", gravity=(0, -9.81, 0))
    build.body("bar", 2.0, (0.5, 0, 0), (1e-3, 0.1, 0.1))
    build.joint("hinge", "revolute", "world", "bar", **joint)
    build.frame("tip", "bar", (1.0, 0, 0))
    return build.model()


def test_ellipsoids_of_two_links_are_the_closed_forms():
    model = two_link()
    found = pb.performance(model)
    assert (found.frame, found.task.names) == ("tip", ["x", "y"])
    q = model.random_configuration(0, 20)
    J, M = model.jacobian(q, "tip")[:, 3:5], model.mass_matrix(q)
    speed, push = found.velocity_ellipsoid(q), found.force_ellipsoid(q)
    np.testing.assert_allclose(speed.volume, LENGTHS[0] * LENGTHS[1] * np.abs(np.sin(q[:, 1])), atol=1e-12)
    np.testing.assert_allclose(push.radii[:, ::-1] * speed.radii, 1.0, atol=1e-9)
    swift = found.acceleration_ellipsoid(q)
    np.testing.assert_allclose(swift.volume, np.abs(np.linalg.det(J)) / np.linalg.det(M), rtol=1e-9)
    fall = model.frame_acceleration(q, np.zeros(2), model.forward_dynamics(q, np.zeros(2), np.zeros(2)), "tip")
    np.testing.assert_allclose(swift.center, fall[:, 3:5], atol=1e-9)
    mobility = J @ np.linalg.solve(M, np.swapaxes(J, -1, -2))
    np.testing.assert_allclose(found.effective_mass(q, (0, 2, 0)), 1 / mobility[:, 1, 1], rtol=1e-9)
    heavy = found.inertia_ellipsoid(q)
    np.testing.assert_allclose(np.prod(heavy.radii, axis=-1), 1 / np.linalg.det(mobility), rtol=1e-8)
    # a push along a principal axis meets the mass of that axis
    for k in range(2):
        n = np.append(heavy.axes[3, :, k], 0.0)
        assert found.effective_mass(q[3], n) == pytest.approx(heavy.radii[3, k], rel=1e-9)
    assert speed.reach([1.0, 0.0])[0] == pytest.approx(
        1 / np.sqrt(np.linalg.inv(J[0] @ J[0].T)[0, 0]), rel=1e-9)


def test_isotropic_postures_have_condition_one():
    """l1 = √2 l2 at θ2 = ±135° is the isotropic two-link arm of Salisbury & Craig."""
    build = pb.Builder("isotropic", gravity=(0, 0, 0))
    build.body("a", 1.0, (0.1, 0, 0), (0.01, 0.01, 0.01))
    build.body("b", 1.0, (0.1, 0, 0), (0.01, 0.01, 0.01))
    build.joint("j0", "revolute", "world", "a")
    build.joint("j1", "revolute", "a", "b", (np.sqrt(2) * 0.5, 0, 0))
    build.frame("tip", "b", (0.5, 0, 0))
    found = pb.performance(build.model()).measures([0.4, np.deg2rad(135)])
    assert found["condition"] == pytest.approx(1.0, abs=1e-9)
    assert found["isotropy"] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("name", ["five-bar", "3-rrr", "stewart", "delta", "walking-machine"])
def test_what_actuators_do_to_a_platform_is_what_its_motion_says(name):
    """x = J_a q̇_a for any motion that the loops allow; forces by virtual work."""
    model = pb.load(name)
    found = pb.performance(model, rows="pose")
    rng = np.random.default_rng(2)
    q = model.assemble()
    v = model.assemble_velocity(q, rng.normal(size=model.nv))
    J = found.jacobian(q)
    active = np.flatnonzero(model.actuation.active)
    np.testing.assert_allclose(J @ v[active], model.frame_velocity(q, v, found.frame), atol=1e-9)
    wrench, still = rng.normal(size=6), np.zeros(model.nv)
    borne = model.inverse_dynamics(q, still, still, wrenches={found.frame: -wrench}) - model.inverse_dynamics(
        q, still, still)
    np.testing.assert_allclose(J.T @ wrench, borne[active], atol=1e-8 * (1 + np.abs(borne).max()))


def test_lengths_scale_rotations_and_limits_scale_actuators():
    model = pb.load("puma560")
    q = np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5])
    one, two = (pb.performance(model, "dh_6", rows="pose", length=x).jacobian(q) for x in (1.0, 0.5))
    np.testing.assert_allclose(two[:3], 0.5 * one[:3], atol=1e-14)
    np.testing.assert_allclose(two[3:], one[3:], atol=1e-14)
    build = pb.Builder("limited")
    build.body("b", 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
    limits = {"lower": -1, "upper": 1, "velocity": 3.0, "effort": 20.0}
    build.joint("j", "revolute", "world", "b", limits=limits)
    build.frame("tip", "b", (0.5, 0, 0))
    found = pb.performance(build.model(), rows="y", scaled=True)
    assert found.velocity_ellipsoid([0.0]).radii[0] == pytest.approx(1.5)
    assert found.force_ellipsoid([0.0]).radii[0] == pytest.approx(40.0)
    with pytest.raises(pb.InputError, match="velocity limit of every actuator, and 'j0' has none"):
        _ = pb.performance(two_link(), scaled=True).velocity_ellipsoid([0.1, 0.2])


def test_workspace_of_two_links_is_their_ring_and_singular_at_its_edges():
    found = pb.performance(two_link())
    space = found.workspace(3000)
    radius = np.linalg.norm(space.positions, axis=1)
    assert (radius <= sum(LENGTHS) + 1e-12).all()
    assert (radius >= LENGTHS[0] - LENGTHS[1] - 1e-12).all()
    edge = np.abs(np.sin(space.q[:, 1])) < 1e-3
    assert (space.singular | ~edge).all()
    low, high = space.extent
    assert high[0] > 0.97
    assert low[1] < -0.97
    grid = found.grid("j0", "j1", 21)
    assert grid.shape == (21, 21)
    wanted = LENGTHS[0] * LENGTHS[1] * np.abs(np.sin(grid.coordinates[1][1]))
    np.testing.assert_allclose(grid.values["manipulability"].reshape(21, 21)[4], wanted, atol=1e-12)
    assert 0 < space.summary()["conditioning_index"] < 1


def test_a_parallel_machine_is_mapped_within_its_assembly_mode():
    model = pb.load("five-bar")
    found = pb.performance(model)
    space = found.workspace(200)
    assert np.abs(model.constraints.residual(space.q)).max() < 1e-8
    assert space.reachable.all()
    grid = found.grid(*model.actuation.names, 15)
    assert 0 < grid.reachable.sum() <= 225
    closed = grid.q[grid.reachable]
    assert np.abs(model.constraints.residual(closed)).max() < 1e-8
    names = list(model.joint_names)
    at = closed[:, names.index(model.actuation.names[0])]
    values = grid.coordinates[0][1]
    assert np.abs(at[:, None] - values).min(axis=1).max() < 1e-9, "the grid's own coordinates are kept"
    assert np.isnan(grid.values["condition"][~grid.reachable]).all()


def test_stiffness_of_a_pendulum_counts_gravity_and_buckles_upside_down():
    model, K = pendulum(), 40.0
    found = pb.performance(model, rows="y")
    for angle in (-np.pi / 2, 0.3):
        held = found.stiffness([angle], K)
        assert held.matrix[0, 0] == pytest.approx(K - 2.0 * 9.81 * 0.5 * np.sin(angle), rel=1e-9)
        frequency = np.sqrt(held.matrix[0, 0] / (0.1 + 2.0 * 0.25)) / (2 * np.pi)
        assert found.modes([angle], K).frequencies[0] == pytest.approx(frequency, rel=1e-9)
    assert held.deflection([0, 0, 1.0, 0, 0, 0])[2] == pytest.approx(1 / held.matrix[0, 0])
    upright = found.stiffness([np.pi / 2], 5.0)
    assert not upright.stable
    assert "buckles" in str(upright)
    assert np.isnan(found.modes([np.pi / 2], 5.0).frequencies[0])
    # damping ratio of one mass, spring and damper
    ratio = found.modes([-np.pi / 2], K, damping=0.7).damping_ratios
    inertia, stiff = 0.6, K + 9.81
    np.testing.assert_allclose(ratio, 0.7 / (2 * np.sqrt(stiff * inertia)), rtol=1e-9)


@pytest.mark.parametrize("name", ["puma560", "four-bar"])
def test_deflection_is_where_the_loaded_machine_comes_to_rest(name):
    model = pb.load(name)
    found = pb.performance(model)
    rng = np.random.default_rng(5)
    q = model.assemble() if name == "four-bar" else np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5])
    K, wrench, base = 500.0, rng.normal(size=6), {found.frame: [0, 0, 0, 3.0, -5.0, 2.0]}
    held = found.stiffness(q, K, wrenches=base)
    active, still = np.flatnonzero(model.actuation.active), np.zeros(model.nv)
    tau0 = model.inverse_dynamics(q, still, still, wrenches=base)
    u = list(model.constraints.indices(model.constraints.independent))

    def rest(size):
        """Newton's method on what is out of balance, in independent coordinates."""
        at = q
        for _ in range(30):
            tau = tau0.copy()
            tau[active] -= K * model.difference(q, at)[active]
            load = {found.frame: np.asarray(base[found.frame]) + size * wrench}
            a = model.forward_dynamics(at, still, tau, wrenches=load)[u]
            step = np.linalg.solve(held.matrix, model.mass_matrix(at) @ a)
            move = still.copy()
            move[u] = step
            if len(model.constraints):
                there = model.integrate(at, model.constraints.joint_influence(at, 1).G @ step)
                at = model.constraints.assemble_dependent(there)
            else:
                at = model.integrate(at, move)
            if np.abs(step).max() < 1e-14:
                break
        return model.pose(at, found.frame)

    eps = 1e-3
    there, back = rest(eps), rest(-eps)
    shift = (there[:3, 3] - back[:3, 3]) / (2 * eps)
    np.testing.assert_allclose(held.deflection(wrench)[3:], shift, atol=1e-6 * np.abs(shift).max())


def test_lowest_mode_of_a_four_bar_is_how_it_swings():
    model = pb.load("four-bar")
    found, q, K = pb.performance(model), model.assemble(), 60.0
    mode = found.modes(q, K)
    still = np.zeros(model.nv)
    hold, active = model.inverse_dynamics(q, still, still), np.flatnonzero(model.actuation.active)

    def spring(t, at, v):
        tau = hold.copy()
        tau[active] -= K * (at - q)[active]
        return tau

    shape = mode.shapes[0] / np.abs(mode.shapes[0]).max()
    start = model.constraints.assemble_dependent(model.integrate(q, 1e-4 * shape))
    T = 1 / mode.frequencies[0]
    run = pb.simulate(model, T, start, still, spring, times=np.linspace(0, T, 41))
    swing = (run.q - q)[:, active[0]]
    np.testing.assert_allclose(swing, swing[0] * np.cos(2 * np.pi * run.t / T), atol=2e-3 * abs(swing[0]))
    motion = mode.motion(0, 0.05, 12)
    assert np.abs(model.constraints.residual(motion)).max() < 1e-8


def test_sizing_balances_energy_and_knows_the_closed_form_of_a_swing():
    model = pendulum()
    found = pb.performance(model)
    w, amplitude = 3.0, 0.4

    class Swing:
        duration = 2 * np.pi / w

        def __call__(self, t):
            t = np.asarray(t)[..., None]
            return amplitude * np.sin(w * t), amplitude * w * np.cos(w * t), -amplitude * w**2 * np.sin(w * t)

    level = model.with_gravity((0, 0, 0))
    told = pb.performance(level).sizing(Swing(), np.linspace(0, Swing.duration, 4001))
    peak = 0.6 * amplitude * w**2
    assert told.peak_torque[0] == pytest.approx(peak, rel=1e-6)
    assert told.rms_torque[0] == pytest.approx(peak / np.sqrt(2), rel=1e-5)
    assert told.peak_power[0] == pytest.approx(peak * amplitude * w / 2, rel=1e-5)
    path = pb.paths.quintic(model, [-1.0], [0.7], 0.8)
    told = found.sizing(path, np.linspace(0, 0.8, 4001))
    before, after = (sum(model.energy(path(t)[0], path(t)[1])) for t in (0.0, 0.8))
    assert told.energy_in[0] - told.energy_back[0] == pytest.approx(float(after - before), abs=1e-5)
    run = pb.simulate(model, 0.5, [0.3], controller=lambda t, q, v: np.array([2.0]), sample=0.001)
    assert found.sizing(run).rms_torque[0] == pytest.approx(2.0)


def test_payload_at_its_limit_uses_all_of_one_actuator():
    model = pb.load("puma560")
    found = pb.performance(model, "dh_6")
    q = np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5])
    path, effort = pb.paths.quintic(model, model.neutral(), q, 1.0), 90.0
    most = found.payload(path, effort=effort)
    loaded = pb.performance(model.with_payload("dh_6", most.value), "dh_6").sizing(path, effort=effort)
    assert loaded.utilisation.max() == pytest.approx(1.0, rel=1e-9)
    assert loaded.names[int(np.argmax(loaded.utilisation))] == most.actuator
    assert loaded.enough is bool((loaded.utilisation <= 1).all())
    force = found.force(q, (0, 0, -1.0), effort=effort)
    still = np.zeros(6)
    tau = model.inverse_dynamics(q, still, still, wrenches={"dh_6": [0, 0, 0, 0, 0, force.value]})
    assert np.abs(tau).max() == pytest.approx(effort, rel=1e-9)
    assert found.payload(path, effort=1.0).value == 0.0


def test_the_best_gear_reflects_as_much_inertia_as_it_drives():
    build = pb.Builder("driven")
    build.body("bar", 2.0, (0.5, 0, 0), (1e-3, 0.1, 0.1))
    build.joint("hinge", "revolute", "world", "bar", axis=(0, 0, 1))
    build.motor("hinge", 1.0, 0.0, 0.1, 0.1, 1e-4, 0.0, 30.0)
    model = build.model()
    told = pb.performance(model, "bar", rows="rz").sizing(pb.paths.quintic(model, [0.0], [1.0], 1.0))
    assert told.inertia[0][0] == pytest.approx(0.6)
    assert told.reflected[0] == pytest.approx(1e-4 * 900)
    assert told.gear[0] ** 2 * 1e-4 == pytest.approx(0.6)
    assert told.inertia_ratio[0] == pytest.approx(0.6 / 0.09)


def test_bad_questions_are_named():
    model = pb.load("puma560")
    with pytest.raises(pb.InputError, match="expected pose, position, orientation"):
        pb.performance(model, rows="speed")
    with pytest.raises(pb.InputError, match="metres that corresponds to one radian"):
        pb.performance(model, length=0.0)
    with pytest.raises(pb.InputError, match="no frame 'hand'"):
        pb.performance(model, "hand")
    with pytest.raises(pb.InputError, match="one per actuator"):
        pb.performance(model).stiffness(model.neutral(), -1.0)
    with pytest.raises(pb.InputError, match="no coordinate 'elbow'"):
        pb.performance(model).grid("elbow", "joint2")


def test_capacity_is_what_the_limits_leave_and_every_number_has_a_label():
    from polybody.design.labels import LABELS, labelled

    model = pb.load("puma560")
    found, q = pb.performance(model, "dh_6"), np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5])
    path = pb.paths.quintic(model, q, np.zeros(6), 1.0)
    loads = found.capacity(q, path, effort=120.0)
    still = np.zeros(6)
    at_rest = model.with_payload("dh_6", loads["payload_at_rest"].value).inverse_dynamics(q, still, still)
    assert np.abs(at_rest).max() == pytest.approx(120.0, rel=1e-9)
    assert loads["payload_along_motion"].value <= loads["payload_at_rest"].value
    push = model.inverse_dynamics(q, still, still, wrenches={"dh_6": [0, 0, 0, 0, 0, loads["push_down"].value]})
    assert np.abs(push).max() == pytest.approx(120.0, rel=1e-9)
    with pytest.raises(pb.InputError, match="has no effort limits"):
        found.capacity(q)
    told = found.summary(q)
    assert set(told) - {"model", "frame"} <= set(LABELS)
    assert set(found.workspace(5).summary()) <= set(LABELS)
    assert ("greatest velocity radius [m/s]", f"{told['greatest']:.5g}") in labelled(told)
    mixed = pb.performance(model, "dh_6", rows="pose").summary(q)
    assert "greatest velocity radius" in dict(labelled(mixed))  # rotations and translations: no one unit
