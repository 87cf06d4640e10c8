"""Contact with planes and terrains: a smooth force element in all formulations, runs and files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import polybody as pb
from polybody.description.mechanism_file.reader import read_mechanism, schema
from polybody.description.mechanism_file.writer import mechanism_text
from polybody.description.records import Contact, same_description
from polybody.model.validation import model_from

G = 9.81
FEET = [(x, y, -0.1) for x in (-0.2, 0.2) for y in (-0.2, 0.2)]
GROUNDS: list[dict[str, Any]] = [
    {},
    {"point": (0, 0, 0.05), "normal": (0.6, 0, 0.8)},
    {"terrain": "0.1*sin(3*x)*cos(2*y)"},
    {"heights": [[0, 0.1, 0.05], [0.02, -0.1, 0.1]], "extent": (-1, 1, -1, 1)},
]


def block(points: Any = FEET, **more: Any) -> pb.Model:
    build = pb.Builder("block", gravity=(0, 0, -G))
    build.body("block", 2.0, (0.01, 0, 0.02), (0.1, 0.12, 0.15))
    build.joint("free", "floating", "world", "block")
    build.contact("feet", "block", points, **{"stiffness": 1e4, "damping": 0.7, "friction": 0.5, "slip": 0.05, **more})
    return build.model()


def state(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = np.array([0.13, -0.08, 0.03, *rng.normal(size=4)])
    q[3:] = [0.05, -0.08, 0.03, 1]
    q[3:] /= np.linalg.norm(q[3:])
    return q, 0.3 * rng.normal(size=6)


@pytest.mark.parametrize("ground", GROUNDS)
def test_formulations_agree_and_the_elastic_force_is_the_gradient_of_energy(ground: dict[str, Any]) -> None:
    model = block(**ground, radius=0.03)
    q, v = state()
    a = np.ones(6)
    tau = model.inverse_dynamics(q, v, a)
    for name in pb.formulations():
        found = model.inverse_dynamics(q, v, a, formulation=name)
        np.testing.assert_allclose(found, tau, atol=1e-9 * np.abs(tau).max())
    still, h = np.zeros(6), 1e-6
    force = model.passive_forces(q, still) - model.gravity_forces(q)
    assert np.abs(model.passive_forces(q, still)).max() > 1
    for k, e in enumerate(np.eye(6)):
        ends = [model.energy(model.integrate(q, e, s * h), still)[1] for s in (1, -1)]
        assert -(ends[0] - ends[1]) / (2 * h) == pytest.approx(force[k], abs=2e-5 * np.abs(force).max())
    np.testing.assert_allclose(model.reactions(q, v, a)["free"][3:] @ np.ones(3), (tau_in_world(model, q, tau)).sum())


def tau_in_world(model: pb.Model, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
    return model.pose(q, "block")[:3, :3] @ tau[3:]


def test_contact_dissipates_and_keeps_inside_its_friction_cone() -> None:
    model, smooth = block(), block(friction=0.0, damping=0.0)
    rng = np.random.default_rng(1)
    for seed in range(20):
        q, v = state(seed)
        v = v * rng.uniform(0, 5)
        assert v @ (model.passive_forces(q, v) - smooth.passive_forces(q, v)) <= 1e-12
        force = tau_in_world(model, q, model.passive_forces(q, v))
        assert np.hypot(*force[:2]) <= 0.5 * force[2] + 1e-12


def test_a_ball_bounces_to_its_height_and_as_long_as_hertz_says() -> None:
    radius, k, m = 0.1, 1e5, 1.0
    build = pb.Builder("ball", gravity=(0, 0, -G))
    build.body("ball", m, inertia=(0.01, 0.01, 0.01))
    build.joint("free", "floating", "world", "ball")
    build.contact("floor", "ball", radius=radius, stiffness=k)
    model = build.model()
    q = model.neutral()
    q[2] = 1 + radius
    fall = np.sqrt(2 / G)
    run = pb.simulate(model, 2 * fall + 0.1, q, sample=1e-3)
    speed = np.sqrt(2 * G)
    deepest = brentq(lambda d: 0.4 * k * d**2.5 - m * G * (1 + d), 0, 1)
    touch = 2.9432 * (1.25 * m * speed**2 / k) ** 0.4 / speed  # Hertz, without gravity
    apex = run.t[np.argmax(run.q[:, 2] * (run.t > fall + touch))]
    assert apex == pytest.approx(2 * fall + touch, abs=2e-3)
    assert run.q[run.t > fall + touch, 2].max() == pytest.approx(1 + radius, rel=1e-5)
    assert radius - run.q[:, 2].min() == pytest.approx(deepest, rel=3e-3)
    assert run.audit.trusted


def test_a_block_slides_as_far_as_coulomb_says_and_slips_on_ice() -> None:
    pressed = (2 * G / 4 / 1e4) ** (2 / 3)
    for friction in (0.5, 0.02):
        model = block([(x, y, -0.001) for x, y, _ in FEET], friction=friction, slip=1e-3)
        q, v = model.neutral(), np.zeros(6)
        q[2], v[3] = 0.001 - pressed, 1.0
        run = pb.simulate(model, 0.35, q, v, method="radau", rtol=1e-6, atol=1e-8, sample=0.01)
        if friction == 0.5:
            assert run.q[-1, 0] == pytest.approx(1 / (2 * friction * G), rel=2e-2)
            assert abs(run.v[-1, 3]) < 1e-4
        else:
            assert run.v[-1, 3] == pytest.approx(1 - friction * G * 0.35, rel=1e-2)
        assert run.audit.trusted


def test_rollouts_and_derivatives_have_contact() -> None:
    model = block()
    q, v = state()
    dq, dv, _ = model.inverse_dynamics_derivatives(q, v, np.zeros(6))
    h = 1e-6
    for k, e in enumerate(np.eye(6)):
        ends = [model.inverse_dynamics(model.integrate(q, e, s * h), v, np.zeros(6)) for s in (1, -1)]
        np.testing.assert_allclose(dq[:, k], (ends[0] - ends[1]) / (2 * h), atol=1e-5 * np.abs(dq).max())
        ends = [model.inverse_dynamics(q, v + s * h * e, np.zeros(6)) for s in (1, -1)]
        np.testing.assert_allclose(dv[:, k], (ends[0] - ends[1]) / (2 * h), atol=1e-5 * np.abs(dv).max())
    with pytest.raises(pb.PolybodyError, match="contacts \\('feet'\\)"):
        pb.network(model)


LEG = """<body name="{n}u" pos="{x} {y} 0"><joint name="{n}hip" axis="0 1 0" stiffness="60" damping="3"/>
<inertial pos="0 0 -.1" mass=".4" diaginertia=".002 .002 .001"/><body name="{n}l" pos="0 0 -.2">
<joint name="{n}knee" axis="0 1 0" stiffness="60" damping="3" springref="-20"/>
<inertial pos="0 0 -.1" mass=".2" diaginertia=".001 .001 .0005"/>
<geom type="sphere" size=".02" pos="0 0 -.2" mass="0" condim="1"/></body></body>"""
QUADRUPED = (
    """<mujoco><option timestep=".0005" gravity="0 0 -9.81"/><default><geom solref=".002 1"/></default><worldbody>
<geom type="plane" size="9 9 .1" condim="1"/><body name="trunk" pos="0 0 .5"><freejoint name="free"/>
<inertial pos="0 0 0" mass="5" diaginertia=".05 .15 .18"/>"""
    + "".join(LEG.format(n=n, x=x, y=y) for n, x, y in
              (("a", 0.25, 0.15), ("b", 0.25, -0.15), ("c", -0.25, 0.15), ("d", -0.25, -0.15)))
    + "</body></worldbody></mujoco>"
)  # fmt: skip


def test_a_quadruped_dropped_on_the_floor_stands_as_mujoco_says(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "quadruped.xml").write_text(QUADRUPED)
    read = pb.load(tmp_path / "quadruped.xml").description
    feet = tuple(
        Contact(f"{n}foot", f"{n}l", np.array([[0, 0, -0.2]]), 3e5, 1.0, radius=0.02) for n in "abcd"
    )
    model = model_from(replace(read, contacts=feet))
    q = model.neutral()
    q[2] = 0.5
    run = pb.simulate(model, 1.2, q, method="radau", rtol=1e-6, atol=1e-8, sample=0.05)
    assert run.audit.trusted
    theirs = mujoco.MjModel.from_xml_string(QUADRUPED)
    data = mujoco.MjData(theirs)
    while data.time < 1.2:
        mujoco.mj_step(theirs, data)
    assert run.q[-1, 2] == pytest.approx(data.qpos[2], abs=3e-3)  # as far as feet sink in either
    for name, (own, _) in model.joint_slices().items():
        if own.stop - own.start == 1:
            assert run.q[-1, own].item() == pytest.approx(data.joint(name).qpos.item(), abs=0.02)
    weight = sum(body.mass for body in read.bodies) * G
    force = tau_of_feet(model, run.q[-1])
    assert force == pytest.approx(weight, rel=1e-3)


def tau_of_feet(model: pb.Model, q: np.ndarray) -> float:
    """The vertical force of all feet on the trunk's free joint, world axes."""
    R = model.pose(q, "trunk")[:3, :3]
    return float((R @ model.passive_forces(q, np.zeros(model.nv))[3:6])[2])


TEXT = """polybody: 1
bodies: {b: {mass: 1, inertia: [1, 1, 1]}}
joints: {free: {kind: floating, parent: world, child: b}}
contacts:
  foot: {body: b, points: [[0, 0, -10cm], [0.1, 0, -0.1]], stiffness: 1e4, damping: 0.5, friction: 0.8, radius: 1cm}
  hill: {body: b, stiffness: 1e4, exponent: 1, slip: 0.1, terrain: "0.1*sin(x) + y/10"}
  grid: {body: b, stiffness: 1e4, heights: [[0, 1], [0, 0]], extent: [0, 1, 0, 1], point: [0, 0, 0], normal: [0, 0, 1]}
"""


def test_files_say_contacts_and_are_written_back() -> None:
    description = read_mechanism(TEXT, "m.yaml")
    assert [c.name for c in description.contacts] == ["foot", "hill", "grid"]
    assert description.contacts[0].points.tolist() == [[0, 0, -0.1], [0.1, 0, -0.1]]
    assert same_description(read_mechanism(mechanism_text(description), "m.yaml"), description)
    yaml, jsonschema = pytest.importorskip("yaml"), pytest.importorskip("jsonschema")
    assert not list(jsonschema.Draft202012Validator(schema()).iter_errors(yaml.safe_load(TEXT)))


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"stiffness": 0}, "stiffness is 0; it must be above 0"),
        ({"friction": -1}, "friction is -1"),
        ({"exponent": 0.5}, "exponent is 0.5"),
        ({"terrain": "z + 1"}, "names z; a terrain is an expression in x and y"),
        ({"terrain": "import os"}, "is not an expression"),
        ({"heights": [[0, 1], [1, 0]]}, "need an extent"),
        ({"normal": (0, 0, 2)}, "normal has length 2"),
        ({"points": [(0, 1)]}, "expected \\(3,\\) or \\(n, 3\\)"),
    ],
)
def test_impossible_contacts_are_refused_by_name(more: dict[str, Any], match: str) -> None:
    with pytest.raises(pb.InputError, match=match):
        block(**more)
