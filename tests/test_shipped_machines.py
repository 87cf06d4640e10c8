"""The shipped machines with loops: they are assembled as they stand, and as mobile as the literature says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polybody as pb
from machines import SHIPPED, appendix_e, four_bar_chain
from polybody.constraints.system import Constraints, constraints_of
from polybody.mechanism import kinematics

Array = np.ndarray
PLANAR = ("four-bar", "five-bar", "3-rrr", "walking-machine", "two-fingered-hand", "two-arms")


def rank(J: Array) -> int:
    s = np.linalg.svd(J, compute_uv=False)
    return int(np.sum(s > 1e-8 * s[0]))


def pose(model: pb.Model, q: Array, frame: str) -> Array:
    """4×4, without compiling anything."""
    m, result = model.mechanism, np.eye(4)
    found = m.frames[m.frame_index[frame]]
    result[:3, :3], result[:3, 3] = kinematics.frame_pose(found, kinematics.body_poses(m, q))
    return result


def closed_near(model: pb.Model, constraints: Constraints, q: Array) -> Array:
    """Newton's method with the least step; nothing of the product's own assembly."""
    for _ in range(30):
        phi = constraints.residual(q)
        if np.abs(phi).max() < 1e-13:
            break
        q = model.integrate(q, -np.linalg.pinv(constraints.jacobian(q), rcond=1e-7) @ phi, 1.0)
    return q


def moved(model: pb.Model, constraints: Constraints, seed: int = 0, size: float = 0.1) -> Array:
    """A configuration some way along a random motion that the loops let pass."""
    q, rng = model.neutral(), np.random.default_rng(seed)
    v = rng.normal(size=model.nv)
    for _ in range(5):
        J = constraints.jacobian(q)
        along = v - np.linalg.pinv(J, rcond=1e-7) @ (J @ v)
        step = size / 5 * along / np.linalg.norm(along)
        q = closed_near(model, constraints, model.integrate(q, step, 1.0))
    return q


@pytest.mark.parametrize("name", SHIPPED)
def test_machine_is_assembled_at_neutral(name: str) -> None:
    model = pb.load(name)
    constraints = constraints_of(model.mechanism)
    velocities, rows, _, _ = SHIPPED[name]
    assert (model.nv, len(constraints)) == (velocities, rows)
    assert np.abs(constraints.residual(model.neutral())).max() < 1e-12
    assert not constraints.mirrored(model.neutral())


@pytest.mark.parametrize("name", SHIPPED)
def test_rank_of_the_constraints_gives_the_known_mobility_at_neutral_and_after_a_finite_motion(name: str) -> None:
    model = pb.load(name)
    constraints = constraints_of(model.mechanism)
    _, _, mobility, _ = SHIPPED[name]
    size = 0.02 if name == "two-fingered-hand" else 0.1  # the hand is small
    for q in (model.neutral(), *(moved(model, constraints, seed, size) for seed in range(3))):
        assert np.abs(constraints.residual(q)).max() < 1e-12
        assert model.nv - rank(constraints.jacobian(q)) == mobility


@pytest.mark.parametrize("name", SHIPPED)
def test_drives_hold_every_motion_but_the_idle_spin(name: str) -> None:
    """With the driven joints locked, nothing moves, but the slider-crank's coupler spins on."""
    model = pb.load(name)
    driven = [j.v.start + k for j in model.mechanism.joints for k in range(j.nv) if np.broadcast_to(j.active, j.nv)[k]]
    assert len(driven) == SHIPPED[name][3]
    locked = np.vstack([constraints_of(model.mechanism).jacobian(model.neutral()), np.eye(model.nv)[driven]])
    assert model.nv - rank(locked) == (name == "slider-crank")


@pytest.mark.parametrize("name", SHIPPED)
def test_bodies_are_real_or_said_to_be_without_mass(name: str) -> None:
    for body in pb.load(name).mechanism.bodies:
        moments = np.linalg.eigvalsh(body.inertia)
        assert body.mass > 0 or name == "five-bar"
        assert moments[0] >= 0
        assert moments[0] + moments[1] >= moments[2] * (1 - 1e-6)


@pytest.mark.parametrize("name", PLANAR)
def test_planar_machines_stay_in_their_plane(name: str) -> None:
    model = pb.load(name)
    q = moved(model, constraints_of(model.mechanism), 4, 0.02)
    for frame in model.frame_names:
        place = pose(model, q, frame)
        np.testing.assert_allclose([*place[2, :2], place[2, 3]], 0, atol=1e-14)


def test_five_bar_is_where_the_appendix_has_it() -> None:
    """Table C-1, with ERRATA's y^B = +3.29; inches."""
    model = pb.load("five-bar")
    q, inch = model.neutral(), 0.0254
    np.testing.assert_allclose(pose(model, q, "A")[:2, 3] / inch, [4.10, 11.28], atol=0.01)
    B = pose(model, q, "link4") @ np.array([12 * inch, 0, 0, 1])
    np.testing.assert_allclose(B[:2] / inch, [33.9, 3.29], atol=0.01)
    h = pose(model, q, "link4")[:2, 3]
    np.testing.assert_allclose(h / inch, [33.90673, -8.70924], atol=1e-5)
    centre = pose(model, q, "link2") @ np.array([12 * inch, 0, 0, 1])
    np.testing.assert_allclose(centre[:2] / inch, [13.93, 18.16], atol=0.01)


def test_slider_cranks_idle_spin_moves_neither_crank_nor_slider() -> None:
    model = pb.load("slider-crank")
    constraints = constraints_of(model.mechanism)
    spin = np.zeros(model.nv)
    _, at = model.joint_slices()["crank_ball"]
    spin[at] = 1, 0, 0  # about the coupler's own axis, in its frame
    for q in (model.neutral(), moved(model, constraints, 1)):
        np.testing.assert_allclose(constraints.jacobian(q) @ spin, 0, atol=1e-15)


def test_crank_of_the_slider_crank_turns_all_round() -> None:
    model = pb.load("slider-crank")
    constraints = constraints_of(model.mechanism)
    at = model.joint_slices()["crank_joint"][0]
    q = model.neutral()
    for angle in np.linspace(0, 2 * np.pi, 25):
        q = q.copy()
        q[at] = angle
        free = [k for k in range(model.nv) if k != model.joint_slices()["crank_joint"][1].start]
        for _ in range(20):
            step = np.zeros(model.nv)
            step[free] = -np.linalg.pinv(constraints.jacobian(q)[:, free]) @ constraints.residual(q)
            q = model.integrate(q, step, 1.0)
        assert np.abs(constraints.residual(q)).max() < 1e-13
        height = pose(model, q, "slider")[2, 3]
        pin = np.array([0, 0.1 * np.cos(angle), 0.1 * np.sin(angle)])
        np.testing.assert_allclose(height, pin[2] + np.sqrt(0.44**2 - 0.24**2 - (pin[1] - 0.02) ** 2), atol=1e-12)


def test_legs_of_the_stewart_platform_reach_from_foot_to_ball() -> None:
    """The inverse kinematics of textbooks: leg k is the distance of its ball from its foot."""
    model = pb.load("stewart")
    q = moved(model, constraints_of(model.mechanism), 2, 0.3)
    platform = pose(model, q, "platform")
    base, top = np.radians([10, 110, 130, 230, 250, 350]), np.radians([50, 70, 170, 190, 290, 310])
    neutral = np.sqrt(0.6**2 + 0.35**2 - 2 * 0.6 * 0.35 * np.cos(np.radians(40)) + 0.8**2)
    for k, (a, b) in enumerate(zip(base, top, strict=True), start=1):
        ball = platform @ np.array([0.35 * np.cos(b), 0.35 * np.sin(b), 0, 1])
        length = np.linalg.norm(ball[:3] - 0.6 * np.array([np.cos(a), np.sin(a), 0]))
        np.testing.assert_allclose(q[model.joint_slices()[f"leg{k}"][0]], length - neutral, atol=1e-12)


def test_platform_of_the_delta_robot_moves_without_turning_by_its_closed_form() -> None:
    model = pb.load("delta")
    q = moved(model, constraints_of(model.mechanism), 3, 0.4)
    platform = pose(model, q, "platform")
    assert np.linalg.norm(platform[:3, 3] - [0, 0, -0.4]) > 0.01
    np.testing.assert_allclose(platform[:3, :3], np.eye(3), atol=1e-12)
    for k, angle in enumerate(np.radians([0, 120, 240]), start=1):
        out, down = np.array([np.cos(angle), np.sin(angle), 0]), np.array([0, 0, -1])
        arm = float(q[model.joint_slices()[f"motor{k}"][0]][0])
        elbow = (0.15 + 0.2 * np.cos(arm)) * out + 0.2 * np.sin(arm) * down
        np.testing.assert_allclose(np.linalg.norm(platform[:3, 3] + 0.05 * out - elbow), 0.5, atol=1e-12)


def test_shoulder_of_the_hybrid_turns_about_one_point() -> None:
    model = pb.load("hybrid")
    q = moved(model, constraints_of(model.mechanism), 5, 0.5)
    before, after = pose(model, model.neutral(), "shoulder"), pose(model, q, "shoulder")
    assert np.abs(after - before).max() > 0.05
    centre = np.linalg.solve(before, [0, 0, 0, 1])
    np.testing.assert_allclose(after @ centre, [0, 0, 0, 1], atol=1e-13)


def test_appendix_e_has_the_printed_coordinates_and_inertias() -> None:
    """ERRATA 001: h minus joints 1, 2, 3 of each leg, inches; I* = diag(1, 2, 3)."""
    printed = [
        [(2.55, 1.475), (2.28, 0), (0.866, 0.5)],
        [(-2.55, 1.475), (-1.14, 1.975), (-0.866, 0.5)],
        [(0, -2.95), (-1.14, -1.975), (0, -1)],
    ]
    model, inch = appendix_e(), 0.0254
    q = model.neutral()
    h = pose(model, q, "hand")[:2, 3]
    np.testing.assert_allclose(h / inch, [2.55, 1.475], atol=1e-12)
    for k, leg in enumerate(printed, start=1):
        loop = next(c for c in model.mechanism.closures if c.name == f"phi3_{k}")
        last = pose(model, q, "hand") @ np.array([*loop.a.position, 1])
        points = [pose(model, q, f"base{k}")[:2, 3], pose(model, q, f"middle{k}")[:2, 3], last[:2]]
        np.testing.assert_allclose((h - np.array(points)) / inch, leg, atol=1e-12)
        body = next(b for b in model.mechanism.bodies if b.name == f"base{k}")
        assert body.inertia[2, 2] == k


@pytest.mark.parametrize("count", [1, 5, 40])
def test_chain_of_four_bars_has_mobility_one_and_one_more_for_every_loop_when_it_lies_down(count: int) -> None:
    model = four_bar_chain(count)
    constraints = constraints_of(model.mechanism)
    down = model.neutral()
    for k in range(count + 1):
        down[model.joint_slices()[f"base{k}"][0]] = -np.pi / 2
    for k in range(1, count + 1):
        down[model.joint_slices()[f"pin{k}"][0]] = np.pi / 2
    for q, mobility in ((model.neutral(), 1), (down, count + 1)):
        assert np.abs(constraints.residual(q)).max() < 1e-12
        assert model.nv - rank(constraints.jacobian(q)) == mobility


@pytest.mark.parametrize("name", SHIPPED)
def test_mobility_tells_grueblers_count_from_the_true_one(name: str) -> None:
    velocities, rows, mobility, drives = SHIPPED[name]
    found = pb.load(name).mobility()
    assert (found.gruebler, found.true) == (velocities - rows, mobility)
    assert len(found.redundant) == mobility - found.gruebler
    expected = "underactuated" if name == "slider-crank" else "redundant" if drives > mobility else "exact"
    assert (found.actuation, found.singular) == (expected, False)


@pytest.mark.parametrize("name", SHIPPED)
def test_power_of_the_drives_is_the_rate_of_energy(name: str) -> None:
    model = pb.load(name)
    rng = np.random.default_rng(6)
    q = moved(model, constraints_of(model.mechanism), 6, 0.02)
    v = model.assemble_velocity(q, 0.3 * rng.normal(size=model.nv))
    driven = np.concatenate([np.broadcast_to(j.active, j.nv) for j in model.mechanism.joints])
    tau = np.where(driven, rng.normal(size=model.nv), 0.0)
    a = model.forward_dynamics(q, v, tau)
    h = 1e-5

    def energy(t: float) -> float:
        # q to second order in t: v changes along the way by a t
        return float(sum(model.tree.energy(model.integrate(q, v + a * t / 2, t), v + a * t)))

    rate = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
    np.testing.assert_allclose(rate, tau @ v, atol=1e-6 * (1 + np.abs(tau) @ np.abs(v)))


def test_five_bar_needs_the_torques_of_table_c3() -> None:
    """Printed in 1e-3 in·lbf: 50.77 at joint 1, −825.92 at h, for rates (2, 3) and accelerations (1, 0.5)."""
    model = pb.load("five-bar")
    q, hold = model.neutral(), ["phi1", "theta_h"]
    slices = model.joint_slices()
    v, a = np.zeros(model.nv), np.zeros(model.nv)
    for joint, rate, acceleration in (("phi1", 2, 1), ("theta_h", 3, 0.5)):
        v[slices[joint][1]], a[slices[joint][1]] = rate, acceleration
    v = model.assemble_velocity(q, v, hold)
    tau = model.inverse_dynamics(q, v, model.assemble_acceleration(q, v, a, hold)) / (0.0254 * 4.4482216152605)
    np.testing.assert_allclose(tau[slices["phi1"][1]] * 1e3, 50.77, atol=0.01)
    np.testing.assert_allclose(tau[slices["theta_h"][1]] * 1e3, -825.92, atol=0.01)


def test_mass_matrix_of_appendix_e_is_what_sits_at_the_base_joints() -> None:
    """(E-7): I*qq = diag(1, 2, 3), P*qqq = 0."""
    model = appendix_e()
    base = ["phi1_1", "phi1_2", "phi1_3"]
    reduced = model.coefficients.reduced_dynamics(model.neutral(), base)
    np.testing.assert_allclose(reduced.I, np.diag([1.0, 2, 3]), atol=1e-12)
    np.testing.assert_allclose(reduced.P, 0, atol=1e-10)


def test_legs_of_the_stewart_platform_carry_its_weight() -> None:
    """At rest the vertical parts of what the legs and feet bear are the weight; by symmetry all drives bear alike."""
    model = pb.load("stewart")
    q, still = model.neutral(), np.zeros(model.nv)
    tau = model.inverse_dynamics(q, still, still)
    forces = np.array([float(tau[model.joint_slices()[f"leg{k}"][1]][0]) for k in range(1, 7)])
    np.testing.assert_allclose(forces, forces[0], rtol=1e-10)
    rise, length = 0.8, np.sqrt(0.6**2 + 0.35**2 - 2 * 0.6 * 0.35 * np.cos(np.radians(40)) + 0.8**2)
    # virtual work of a vertical step dz of the platform: legs lengthen by dz·rise/length, each part's centre rises by
    # its distance from the foot over the leg's length, less what the leg's own lengthening takes back
    slope = rise / length
    cylinder = 1.5 * 0.25 / length * (1 - slope**2)
    piston = 0.8 * ((length - 0.25) / length * (1 - slope**2) + slope**2)
    np.testing.assert_allclose(forces[0] * slope, 9.81 * (12 / 6 + cylinder + piston), rtol=1e-10)


def test_every_machine_has_an_example_and_a_picture_in_the_documentation() -> None:
    """Code of the page runs in test_docs; pictures are those that examples/machine_motions.py writes."""
    docs = Path(__file__).resolve().parent.parent / "docs"
    sections = (docs / "machines.md").read_text(encoding="utf-8").split("\n## ")[1:]
    assert [section.partition("\n")[0] for section in sections] == list(SHIPPED)
    for name, section in zip(SHIPPED, sections, strict=True):
        assert f"pb.load(\"{name}\")" in section
        assert f"(images/machines/{name}.png)" in section
        assert (docs / "images" / "machines" / f"{name}.png").stat().st_size > 10_000
