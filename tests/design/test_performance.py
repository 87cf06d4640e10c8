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


def spring_chain(n, k, mass, *, actuated):
    build = pb.Builder("chain", gravity=(0, 0, 0))
    for i in range(n):
        build.body(f"c{i}", mass, inertia=(1, 1, 1))
        build.joint(f"x{i}", "prismatic", f"c{i - 1}" if i else "world", f"c{i}", axis=(1, 0, 0),
                    stiffness=0 if actuated or i == 0 else k, active=actuated or i == 0)  # fmt: skip
    return build.model()


@pytest.mark.parametrize("actuated", [True, False])
def test_spring_chain_has_its_closed_form_frequencies(actuated):
    """ω_j = 2√(k/m) sin((2j − 1)π/(4n + 2)) of n masses in a row, the first one tied to the wall."""
    n, k, mass = 5, 50.0, 2.0
    modes = pb.performance(spring_chain(n, k, mass, actuated=actuated)).modes(np.zeros(n), k)
    wanted = 2 * np.sqrt(k / mass) * np.sin((2 * np.arange(1, n + 1) - 1) * np.pi / (4 * n + 2)) / (2 * np.pi)
    np.testing.assert_allclose(modes.frequencies, wanted, rtol=1e-10)


def test_effective_mass_and_inertia_of_two_links_are_the_closed_forms():
    l1, l2, m1, m2 = 0.7, 0.5, 2.0, 1.3
    build = pb.Builder("2R", gravity=(0, -9.81, 0))
    build.body("a", m1, (l1 / 2, 0, 0), (0, m1 * l1**2 / 12, m1 * l1**2 / 12))
    build.body("b", m2, (l2 / 2, 0, 0), (0, m2 * l2**2 / 12, m2 * l2**2 / 12))
    build.joint("j1", "revolute", "world", "a")
    build.joint("j2", "revolute", "a", "b", (l1, 0, 0))
    build.frame("tip", "b", (l2, 0, 0))
    found, q = pb.performance(build.model()), np.array([0.3, 0.8])
    s1, c1, s12, c12, c2 = np.sin(0.3), np.cos(0.3), np.sin(1.1), np.cos(1.1), np.cos(0.8)
    J = np.array([[-l1 * s1 - l2 * s12, -l2 * s12], [l1 * c1 + l2 * c12, l2 * c12]])
    across = m2 * (l2**2 / 3 + l1 * l2 * c2 / 2)
    M = np.array([[m1 * l1**2 / 3 + m2 * (l1**2 + l2**2 / 3 + l1 * l2 * c2), across], [across, m2 * l2**2 / 3]])
    move = J @ np.linalg.solve(M, J.T)
    for n in ([1, 0, 0], [0, 1, 0], [3, -4, 0]):
        u = np.array(n[:2]) / np.linalg.norm(n)
        assert found.effective_mass(q, n) == pytest.approx(1 / (u @ move @ u), rel=1e-12)
    assert found.effective_inertia(q, [0, 0, 2]) == pytest.approx(1 / np.linalg.inv(M).sum(), rel=1e-12)
    assert found.effective_mass(q, [0, 0, 1]) == np.inf
    # gravity's share of the stiffness is the gradient of the holding torques, the springs' is JK⁻¹Jᵀ
    stiff = pb.performance(build.model().with_gravity((0, 0, 0))).stiffness(q, [100.0, 50.0])
    np.testing.assert_allclose(stiff.compliance[3:5, 3:5], J @ np.diag([0.01, 0.02]) @ J.T, atol=1e-15)


@pytest.mark.parametrize("name", ["delta", "bricard", "four-bar", "slider-crank"])
def test_what_loops_hold_is_infinitely_heavy_not_nearly(name):
    model = pb.load(name)
    found, q = pb.performance(model), model.assemble()
    G = model.constraints.joint_influence(q, 1).G if len(model.constraints) else np.eye(model.nv)
    J = model.jacobian(q, found.frame) @ G
    for k, n in enumerate(np.eye(3)):
        for row, value in ((k, found.effective_inertia(q, n)), (3 + k, found.effective_mass(q, n))):
            assert (value == np.inf) == (np.abs(J[row]).max() < 1e-8)
            assert value == np.inf or 0 < value < 1e4


def floating_pair(gravity):
    build = pb.Builder("pair", gravity=gravity)
    build.body("a", 2.0, inertia=(1, 1, 1))
    build.body("b", 3.0, inertia=(1, 1, 1))
    build.joint("root_joint", "floating", "world", "a", active=False)
    build.joint("x", "prismatic", "a", "b", axis=(0, 0, 1))
    return build.model()


@pytest.mark.parametrize("gravity", [(0, 0, 0), (0, 0, -9.81), (1.0, 2.0, -3.0)])
def test_modes_of_a_free_base_are_those_of_a_floating_one(gravity):
    """√(k(1/m₁ + 1/m₂)) and six motions as a whole: a machine that falls freely does not feel gravity."""
    model = floating_pair(gravity)
    modes = pb.performance(model, "b").modes(model.neutral(), 60.0)
    assert not modes.frequencies[:6].any()
    assert modes.frequencies[6] == pytest.approx(np.sqrt(60 * (1 / 2 + 1 / 3)) / (2 * np.pi), rel=1e-10)
    base = np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    space = pb.performance(model, "b").workspace(40, q=base)  # where the slide reaches, from where the base is
    np.testing.assert_allclose(space.positions[:, :2], [[1.0, 2.0]] * 40, atol=1e-12)
    numbers, stiff, _ = pb.performance(model, "b").held(model.neutral(), 60.0)
    assert numbers["free_motions"] == 6
    assert stiff is None
    with pytest.raises(pb.PolybodyError, match="a free base has none"):
        pb.performance(model, "b").stiffness(model.neutral(), 60.0)


def test_loops_on_a_free_base_fall_too():
    """A planar four-bar on a base that nothing holds, in gravity and without: the same modes, three of them at zero."""
    build = pb.Builder("falling four-bar", gravity=(0, -9.81, 0))
    build.body("base", 5.0, inertia=(0.2, 0.2, 0.2))
    build.joint("root_joint", "planar", "world", "base", active=False)
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        build.body(name, 1.0, com=(length / 2, 0, 0), inertia=(0.001, 0.02, 0.02))
    build.joint("a", "revolute", "base", "crank")
    build.joint("b", "revolute", "crank", "coupler", (0.2, 0, 0), active=False)
    build.joint("d", "revolute", "base", "rocker", (0.5, 0, 0), active=False)
    build.loop("c", "revolute", "coupler", "rocker", (0.5, 0, 0), (0.4, 0, 0))
    model = build.model()
    q = model.assemble([0.2, 0.1, 0.3, 0.8, 0.4, 1.4])
    found, wanted = (pb.performance(m, "coupler").modes(q, 50.0) for m in (model, model.with_gravity((0, 0, 0))))
    assert found.free == wanted.free == 3
    np.testing.assert_allclose(found.frequencies, wanted.frequencies, rtol=1e-9)


def test_passive_joints_off_their_equilibrium_are_refused_or_named():
    build = pb.Builder("hangs", gravity=(0, 0, -9.81))
    for name in "ab":
        build.body(name, 1.0, (0, 0, -0.5), (0.1, 0.1, 0.01))
    build.joint("j", "revolute", "world", "a", axis=(0, 1, 0))
    build.joint("k", "revolute", "a", "b", (0, 0, -1), axis=(0, 1, 0), active=False)
    found = pb.performance(build.model())
    with pytest.raises(pb.InputError, match=r"'k' is passive and not in equilibrium.*would need 3\.16"):
        found.modes([0.3, 0.4], 100.0)
    # hanging straight down the closed form of a double pendulum with a spring at its first joint
    M, K = np.array([[0.35 + 1.0, 0.5], [0.5, 0.35]]), 9.81 * np.diag([1.5, 0.5]) + np.diag([100.0, 0])
    turned = np.array([[1.0, 0], [1, 1]])  # absolute angles
    M_rel, K_rel = turned.T @ M @ turned, turned.T @ K @ turned
    wanted = np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(M_rel, K_rel)).real)) / (2 * np.pi)
    np.testing.assert_allclose(found.modes([0.0, 0.0], 100.0).frequencies, wanted, rtol=1e-9)
    with pytest.warns(pb.PolybodyWarning, match="'k' would need"):
        found.payload([[0.3, 0.4]], effort=30.0)
    with pytest.warns(pb.PolybodyWarning, match="this motion takes passive coordinates as held"):
        found.sizing(pb.paths.quintic(build.model(), [0.3, 0.4], [0.5, 0.1], 1.0))


def test_maps_and_directions_refuse_what_has_no_meaning():
    model = pb.load("puma560")
    found = pb.performance(model)
    for wrong in ([np.inf, 0, 0], [np.nan, 1, 0], [0, 0, 0], [1, 2], "up", None):
        for question in (found.effective_mass, found.effective_inertia, found.force):
            with pytest.raises(pb.InputError, match="direction"):
                question(model.neutral(), wrong)
        with pytest.raises(pb.InputError, match="direction"):
            found.velocity_ellipsoid(model.neutral()).reach(wrong)
    a, b = "joint1", "joint2"
    for points in (0, 1, -3, 2.5, "many", (3, 0), ([0.1, np.nan], 3), 10_000_000):
        with pytest.raises(pb.InputError, match=r"points|nodes"):
            found.grid(a, b, points)
    with pytest.raises(pb.InputError, match="twice"):
        found.grid(a, a)
    for samples in (0, -1, 2.5, True, 10**9, "many"):
        with pytest.raises(pb.InputError, match="samples is"):
            found.workspace(samples)
    free = floating_pair((0, 0, 0))
    turning = pb.linearize(free, free.neutral(), np.zeros(7)).states[0].removeprefix("q_")
    with pytest.raises(pb.InputError, match="quaternion"):
        pb.performance(free, "b").grid(turning, "x")


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
