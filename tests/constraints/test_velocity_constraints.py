"""Rolling, blades and velocity relations: closed forms, and two routes that agree."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.description.mechanism_file.reader import read_mechanism, schema
from polybody.description.mechanism_file.writer import mechanism_text
from polybody.description.records import same_description
from polybody.model.engine import Request
from polybody.quantities.table import QUANTITIES
from rolling_machines import G, disk, rattleback, rolling_body, sleigh, snakeboard


def vehicle(kind: str) -> pb.Model:
    build = pb.Builder("robot")
    build.vehicle("base", kind)
    build.add(pb.load("two-link"), "arm_", "base", (0.2, 0, 0.4))
    return build.model()


def random_state(model: pb.Model, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = model.assemble(model.integrate(grounded(model), 0.3 * rng.normal(size=model.nv)))
    return q, model.assemble_velocity(q, rng.normal(size=model.nv))


def grounded(model: pb.Model) -> np.ndarray:
    q = model.neutral()
    heights = {"disk": 0.3, "ellipsoid": 0.02, "sphere": 0.1}
    if model.name in heights:
        q[2] = heights[model.name]
    return q


MODELS = {
    "sleigh": sleigh, "disk": disk, "rattleback": rattleback, "snakeboard": snakeboard,
    "car": lambda: vehicle("car"), "differential": lambda: vehicle("differential"),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_multipliers_and_independent_velocities_give_one_motion(name: str) -> None:
    model = MODELS[name]()
    for seed in range(3):
        q, v = random_state(model, seed)
        tau = np.random.default_rng(seed).normal(size=model.nv)
        a = model.forward_dynamics(q, v, tau)
        K, right = model.engine.answer(Request(QUANTITIES["augmented_system"], (q, v, tau)))
        wanted = np.linalg.lstsq(K, right, rcond=None)[0][: model.nv]
        np.testing.assert_allclose(a, wanted, atol=1e-10 * np.abs(wanted).max())
        # quasi-velocities p of an orthonormal basis of what the rows let pass: v = V p, Vᵀ(M (V ṗ + V̇ p) + h) = Vᵀ tau
        J, bias = model.constraints.jacobian(q), model.constraints.bias(q, v)
        V = np.linalg.svd(J)[2][np.linalg.matrix_rank(J) :].T
        M, h = model.tree.mass_matrix(q), model.tree.inverse_dynamics(q, v, np.zeros(model.nv))
        drift = -np.linalg.pinv(J) @ bias
        p_dot = np.linalg.solve(V.T @ M @ V, V.T @ (tau - h - M @ drift))
        np.testing.assert_allclose(V @ p_dot + drift, a, atol=1e-10 * np.abs(wanted).max())
        assert np.abs(J @ v).max() < 1e-12


def test_chaplygins_sleigh_has_its_equations() -> None:
    m, inertia, ahead, w, u = 2.0, 0.3, 0.4, 1.2, 0.7
    model = sleigh(m, inertia, ahead)
    a = model.forward_dynamics([0.3, 0.1, -0.2], [w, u, 0], np.zeros(3))
    np.testing.assert_allclose(a, [-m * ahead * u * w / (inertia + m * ahead**2), ahead * w**2, 0], atol=1e-12)
    run = pb.simulate(model, 12.0, [0.3, 0.1, -0.2], [w, u, 0], sample=0.1)
    energy = 0.5 * m * u**2 + 0.5 * (inertia + m * ahead**2) * w**2
    assert abs(run.v[-1, 0]) < 1e-3  # it ends straight ahead, with all its energy
    assert run.v[-1, 1] == pytest.approx(np.sqrt(2 * energy / m), rel=1e-5)
    assert run.audit.trusted


def test_a_sphere_rolls_down_an_incline_with_five_sevenths() -> None:
    angle, radius = 0.3, 0.1
    inertia = 0.4 * 2.0 * radius**2
    model = rolling_body("sphere", radius, 2.0, (inertia,) * 3, (G * np.sin(angle), 0, -G * np.cos(angle)))
    q = grounded(model)
    run = pb.simulate(model, 1.0, q, sample=0.1)
    assert run.q[-1, 0] == pytest.approx(0.5 * 5 / 7 * G * np.sin(angle), rel=1e-9)
    assert run.q[-1, 2] == pytest.approx(radius, abs=1e-9)
    assert run.audit.trusted
    loads = model.reactions(q, np.zeros(6), model.forward_dynamics(q, np.zeros(6), np.zeros(6)))
    assert loads["free"] == pytest.approx(np.zeros(6), abs=1e-9)  # the ground carries it, by the rolling constraint


def test_an_upright_disk_rolls_straight_and_a_spun_one_wobbles_at_the_closed_form_rate() -> None:
    mass, radius = 1.5, 0.3
    A, C, spin = mass * radius**2 / 4, mass * radius**2 / 2, 8.0
    model = disk()
    q = model.neutral()
    q[2] = radius
    v = np.array([0, spin, 0, spin * radius, 0, 0])
    straight = pb.simulate(model, 1.0, q, v, sample=0.1)
    np.testing.assert_allclose(straight.q[-1, :3], [spin * radius, 0, radius], atol=1e-9)
    # small lean θ of a disk that rolls at Ω: (A + m r²) θ̈ = −[C (C + m r²) Ω²/A − m g r] θ
    rate = np.sqrt((C * (C + mass * radius**2) * spin**2 / A - mass * G * radius) / (A + mass * radius**2))
    v = model.assemble_velocity(q, v + np.array([1e-4, 0, 0, 0, 0, 0]))
    run = pb.simulate(model, np.pi / rate, q, v, sample=np.pi / rate / 40, rtol=1e-11, atol=1e-13)
    axis = np.array([model.pose(x, "body")[2, 1] for x in run.q])
    assert np.abs(axis[-1]) < 2e-2 * np.abs(axis).max()  # half a period on, upright again
    assert run.audit.energy_error_relative < 1e-8


def test_a_rattleback_turns_back_from_one_way_only() -> None:
    model = rattleback()
    q = grounded(model)
    q[3:] = [0.01, 0.005, 0, 1]
    q = model.assemble(model.normalize(q))
    reversed_ = []
    for spin in (2.0, -2.0):
        v = model.assemble_velocity(q, np.array([0, 0, spin, 0, 0, 0]))
        run = pb.simulate(model, 4.0, q, v, sample=0.05, rtol=1e-7, atol=1e-9)
        assert run.audit.energy_error_relative < 1e-5
        reversed_.append(bool(np.min(run.v[:, 2] * np.sign(spin)) < -0.2))
    assert sorted(reversed_) == [False, True]


@pytest.mark.parametrize("kind", ["car", "differential"])
def test_a_mobile_manipulator_drives_with_its_wheels_rolling(kind: str) -> None:
    model = vehicle(kind)
    assert model.mobility(model.neutral()).here == 4
    q, v = model.neutral(), np.zeros(model.nv)
    slices = model.joint_slices()
    if kind == "car":
        q[slices["base_steer"][0]] = 0.2
        v[slices["base_rear"][1]] = 5.0
        v = model.assemble_velocity(q, v, hold=["base_rear", "base_steer", "arm_shoulder", "arm_elbow"])
        assert v[slices["base"][1]] == pytest.approx([0.5 * np.tan(0.2) / 0.7, 0.5, 0])  # the single-track model
    else:
        v[slices["base_left"][1]], v[slices["base_right"][1]] = 4.0, 6.0
        v = model.assemble_velocity(q, v, hold=["base_left", "base_right", "arm_shoulder", "arm_elbow"])
        assert v[slices["base"][1]] == pytest.approx([0.1 * (6 - 4) / 0.5, 0.5, 0], abs=1e-12)
    run = pb.simulate(model, 0.5, q, v, sample=0.05, rtol=1e-7, atol=1e-9)
    assert run.audit.trusted


def test_rows_that_a_user_writes_are_those_of_a_blade() -> None:
    build = pb.Builder("sleigh")
    build.body("link", 0.01, inertia=(1e-3,) * 3)
    build.body("carriage", 0.01, inertia=(1e-3,) * 3)
    build.body("sleigh", 2.0, (0.4, 0, 0), (0.3,) * 3)
    build.joint("x", "prismatic", "world", "link", axis=(1, 0, 0))
    build.joint("y", "prismatic", "link", "carriage", axis=(0, 1, 0))
    build.joint("turn", "continuous", "carriage", "sleigh")
    build.velocity_relation("blade", {"x": "-sin(turn)", "y": "cos(turn)"})
    written = build.model()
    q, w, u = np.array([0.1, 0.2, 0.3]), 1.2, 0.7
    v = np.array([u * np.cos(0.3), u * np.sin(0.3), w])
    a = written.forward_dynamics(q, v, np.zeros(3))
    m, inertia, ahead = 2.0, 0.3, 0.4
    along = a[0] * np.cos(0.3) + a[1] * np.sin(0.3)
    assert a[2] == pytest.approx(-m * ahead * u * w / (inertia + m * ahead**2), rel=2e-2)
    assert along == pytest.approx(m * ahead * w**2 / (m + 0.015), rel=1e-2)


TEXT = """polybody: 1
bodies: {b: {mass: 1, inertia: [1, 1, 1]}}
joints: {base: {kind: planar, parent: world, child: b}}
rolling: {w: {body: b, kind: wheel, radius: 10cm, point: [0, 0, 0.1], lateral: false}}
velocity_relations: {r: {"base": 1, "base[1]": "sin(q['base'][0])"}}
"""


def test_files_say_velocity_constraints_and_are_written_back() -> None:
    description = read_mechanism(TEXT, "m.yaml")
    assert description.velocity_relations[0].terms == (("base", 0, "1"), ("base", 1, "sin(q['base'][0])"))
    assert same_description(read_mechanism(mechanism_text(description), "m.yaml"), description)
    yaml, jsonschema = pytest.importorskip("yaml"), pytest.importorskip("jsonschema")
    assert not list(jsonschema.Draft202012Validator(schema()).iter_errors(yaml.safe_load(TEXT)))
    with pytest.raises(pb.InputError, match=r"rolling 'w'.*no kind 'whel'"):
        pb.Builder("m").rolling("w", "whel", "b", 0.1)
    with pytest.raises(pb.InputError, match="no joint 'bas'"):
        pb.Builder("m").velocity_relation("r", {"bas": 1})


def shaken_pendulum(right: str = "0.5*cos(2*clock)") -> pb.Model:
    """A pendulum of 1 m and 1 kg on a cart whose speed is prescribed."""
    build = pb.Builder("shaken", gravity=(0, 0, -G))
    build.clock()
    build.body("cart", 2.0, inertia=(1, 1, 1))
    build.body("bob", 1.0, (0, 0, -1))
    build.joint("slide", "prismatic", "world", "cart", axis=(1, 0, 0))
    build.joint("swing", "revolute", "cart", "bob", axis=(0, 1, 0))
    build.velocity_relation("shaker", {"slide": 1}, right)
    return build.model()


def test_right_sides_move_a_cart_in_time_and_their_work_is_counted() -> None:
    model = shaken_pendulum()
    q = np.array([0.7, 0.1, 0.4])
    v = model.assemble_velocity(q, [0, 0, 0.3])
    assert v[:2] == pytest.approx([1, 0.5 * np.cos(1.4)], abs=1e-14)
    a = model.forward_dynamics(q, v, np.zeros(3))
    shaken = -np.sin(1.4)
    # x = s − sin θ of the bob (positive θ about +y swings it towards −x): θ̈ = −g sin θ + ẍ cos θ
    assert a == pytest.approx([0, shaken, -G * np.sin(0.4) + shaken * np.cos(0.4)], abs=1e-12)
    with pytest.raises(pb.PolybodyError, match="v breaks"):
        model.forward_dynamics(q, np.zeros(3), np.zeros(3))
    with pytest.raises(pb.PolybodyError, match="right sides"):
        model.coriolis_matrix(q, v)
    start = model.assemble_velocity(model.neutral(), np.zeros(3))
    for method in ("dop853", "radau"):
        run = pb.simulate(model, 2.0, v0=start, method=method, sample=0.1)
        np.testing.assert_allclose(run.q[:, 1], 0.25 * np.sin(2 * run.t), atol=1e-7)
        np.testing.assert_allclose(run.q[:, 0], run.t, atol=1e-9)
        assert run.audit.trusted, run.audit.doubts


def test_derivatives_know_right_sides() -> None:
    model, h = shaken_pendulum("0.3*sin(swing) + 0.2*clock"), 1e-5
    q, w = np.array([0.5, 0.8, 0.4]), 0.3

    def a(q: np.ndarray) -> np.ndarray:
        return model.forward_dynamics(q, model.assemble_velocity(q, [0, 0, w], hold=["swing"]), np.zeros(3))

    v = model.assemble_velocity(q, [0, 0, w], hold=["swing"])
    by_u = model.forward_dynamics_derivatives(q, v, np.zeros(3))[0]
    step = np.array([0, 0, h])
    numbers = (a(q + step) - a(q - step)) / (2 * h)
    assert np.asarray(by_u).ravel() == pytest.approx(numbers, abs=1e-8)


def test_right_sides_stand_in_files() -> None:
    text = TEXT.replace('"base": 1,', '"base": 1, "=": "0.3*cos(q[\'base\'][1])",')
    description = read_mechanism(text, "m.yaml")
    assert description.velocity_relations[0].equals == "0.3*cos(q['base'][1])"
    assert len(description.velocity_relations[0].terms) == 2
    assert same_description(read_mechanism(mechanism_text(description), "m.yaml"), description)
    assert not same_description(read_mechanism(TEXT, "m.yaml"), description)
    with pytest.raises(pb.InputError, match="the right side is nan; expected a finite number"):
        shaken_pendulum("nan")


def test_analyses_that_take_v_as_G_u_refuse_right_sides() -> None:
    model = shaken_pendulum()
    v = model.assemble_velocity(model.neutral(), np.zeros(3))
    for refused in (
        lambda: pb.linearize(model, model.neutral(), v),
        lambda: model.constraints.joint_motion(model.neutral(), [0.0]),
        lambda: pb.grasp(model, "bob", ["cart"], model.neutral()),
        lambda: model.symbolic("none").minimal(),
    ):
        with pytest.raises(pb.PolybodyError, match="right sides"):
            refused()


def test_a_run_without_velocities_begins_with_the_prescribed_rates() -> None:
    run = pb.simulate(shaken_pendulum(), 0.2)
    np.testing.assert_allclose(run.q[-1, 1], 0.25 * np.sin(0.4), rtol=1e-7)
    assert run.audit.trusted
