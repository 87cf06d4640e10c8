"""Friction in joints: the smooth law in passive forces of all formulations, of loops, long chains and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polybody as pb
from polybody.description.mechanism_file.reader import read_mechanism
from polybody.description.mechanism_file.writer import mechanism_text
from polybody.description.records import same_description

LAW = {"coulomb": 2.0, "static": 3.0, "stribeck": 0.2, "exponent": 1.3, "viscous": 0.5, "regularisation": 0.03}


def law(u: np.ndarray, coulomb: float, static: float, stribeck: float, exponent: float, viscous: float,
        regularisation: float) -> np.ndarray:  # fmt: skip
    level = coulomb + (static - coulomb) * np.exp(-np.abs(u / stribeck) ** exponent)
    return -level * np.tanh(u / regularisation) - viscous * u


def arm(n: int = 3, **more: object) -> pb.Builder:
    build = pb.Builder("arm", gravity=(0, -9.81, 0))
    parent = "world"
    for i in range(n):
        build.body(f"link{i}", 1.0 + 0.1 * i, (0.5, 0.1, 0), (0.01, 0.1, 0.12))
        build.joint(f"joint{i}", "revolute", parent, f"link{i}", (0.9 if i else 0, 0, 0.01 * i), **more)
        parent = f"link{i}"
    return build


def test_passive_forces_are_the_written_law() -> None:
    model = arm(friction=LAW).model()
    v = np.random.default_rng(1).uniform(-1, 1, (40, 3))
    v[0], v[1] = 0, 1e-3
    q = np.zeros_like(v)
    wanted = law(v, **LAW)
    np.testing.assert_allclose(model.passive_forces(q, v), wanted, atol=1e-11 * np.abs(wanted).max())
    without = arm().model()
    tau = model.inverse_dynamics(q, v, v) - without.inverse_dynamics(q, v, v)
    np.testing.assert_allclose(tau, -wanted, atol=1e-11)


def test_formulations_agree_and_forward_undoes_inverse() -> None:
    model = arm(friction=LAW, limits={"lower": -0.5, "upper": 0.5, "stiffness": 300, "damping": 0.4}).model()
    rng = np.random.default_rng(2)
    q, v, a = rng.uniform(-1.5, 1.5, (3, 3))
    tau = model.inverse_dynamics(q, v, a)
    for name in pb.formulations():
        np.testing.assert_allclose(model.inverse_dynamics(q, v, a, formulation=name), tau, rtol=1e-10)
        np.testing.assert_allclose(model.forward_dynamics(q, v, tau, formulation=name), a, rtol=1e-9)


def test_derivatives_are_those_of_differences() -> None:
    model = arm(friction=LAW, limits={"lower": -0.5, "upper": 0.5, "stiffness": 300, "damping": 0.4}).model()
    rng = np.random.default_rng(3)
    q, v, a = rng.uniform(-1, 1, (3, 3))
    h = 1e-6
    _, dv, _ = model.inverse_dynamics_derivatives(q, v, a)
    dq, _, _ = model.inverse_dynamics_derivatives(q, v, a)
    for k, e in enumerate(np.eye(3)):
        slope = (model.inverse_dynamics(q, v + h * e, a) - model.inverse_dynamics(q, v - h * e, a)) / (2 * h)
        np.testing.assert_allclose(dv[:, k], slope, atol=1e-6 * np.abs(dv).max())
        slope = (model.inverse_dynamics(q + h * e, v, a) - model.inverse_dynamics(q - h * e, v, a)) / (2 * h)
        np.testing.assert_allclose(dq[:, k], slope, atol=1e-6 * np.abs(dq).max())


def test_power_of_friction_and_stops_is_the_rate_of_energy() -> None:
    stops = {"lower": -0.5, "upper": 0.5, "stiffness": 300}
    model = arm(limits=stops).model()
    rng = np.random.default_rng(4)
    q, v = rng.uniform(-1, 1, (2, 3))
    h = 1e-5
    potential = [model.energy(q + s * h * v, v * 0)[1] for s in (1, -1)]
    wanted = float(v @ (model.passive_forces(q, v * 0) - model.gravity_forces(q)))
    assert -(potential[0] - potential[1]) / (2 * h) == pytest.approx(wanted, rel=1e-7)


def test_rolled_kernels_of_long_chains_have_friction() -> None:
    long, short = arm(70, friction=LAW), arm(70)
    q, v, a = np.random.default_rng(5).uniform(-1, 1, (3, 70))
    difference = long.model().inverse_dynamics(q, v, a) - short.model().inverse_dynamics(q, v, a)
    np.testing.assert_allclose(difference, -law(v, **LAW), atol=1e-9)
    plain = {"coulomb": 0.7}
    wanted = law(v, 0.7, 0.7, 1, 2, 0, 0.01)
    np.testing.assert_allclose(arm(70, friction=plain).model().passive_forces(q, v), wanted, atol=1e-12)


def four_bar(cut: bool, friction: object) -> pb.Model:
    """The same linkage, its coupler's joint cut or not: friction is in that joint."""
    build = pb.Builder("four-bar", gravity=(0, -9.81, 0))
    for name, mass, length in (("crank", 1.0, 0.5), ("coupler", 2.0, 1.2), ("rocker", 1.5, 0.9)):
        build.body(name, mass, (length / 2, 0, 0), (0, mass * length**2 / 12, mass * length**2 / 12))
    build.joint("a", "revolute", "world", "crank")
    build.joint("d", "revolute", "world", "rocker", (1.1, 0, 0))
    if cut:
        build.joint("c", "revolute", "rocker", "coupler", (0.9, 0, 0))
        build.loop("b", "revolute", "crank", "coupler", (0.5, 0, 0), (1.2, 0, 0), friction=friction)
    else:
        build.joint("b", "revolute", "crank", "coupler", (0.5, 0, 0), friction=friction)
        build.loop("c", "revolute", "coupler", "rocker", (1.2, 0, 0), (0.9, 0, 0))
    return build.model()


def test_friction_of_a_cut_joint_is_that_of_the_joint() -> None:
    found = []
    for friction in (LAW, 0):
        for cut in (False, True):
            model = four_bar(cut, friction)
            guess = {"a": 0.7, "b": -0.274, "d": 1.141, "c": -3.856}
            q = model.assemble([guess[name] for name in model.joint_names], hold=["a"])
            v = model.assemble_velocity(q, np.full(3, 0.7), hold=["a"])
            crank = model.joint_slices()["a"][1]
            found.append(model.forward_dynamics(q, v, np.zeros(3))[crank].item())
    assert found[2] == pytest.approx(found[3], rel=1e-9)  # the same assembly on both trees
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    assert abs(found[0] - found[2]) > 0.1


URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="elbow" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<dynamics friction="2" damping="0.1"/></joint></robot>"""
MJCF = """<mujoco><worldbody><body name="b"><joint name="elbow" frictionloss="2" damping="0.1" axis="0 0 1"/>
<geom size="1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("name", "text"), [("r.urdf", URDF), ("r.xml", MJCF)])
def test_friction_of_files_acts_unless_it_is_left_out(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    q, v = np.zeros(1), np.ones(1)
    assert pb.load(tmp_path / name).passive_forces(q, v).item() == pytest.approx(-2.1)
    assert pb.load(tmp_path / name, friction=False).passive_forces(q, v).item() == pytest.approx(-0.1)


def test_files_say_every_number_of_the_law_and_are_written_back() -> None:
    words = ", ".join(f"{key}: {value}" for key, value in LAW.items())
    limits = "limits: {lower: -1, upper: 1, power: 20, stiffness: 300, damping: 2}"
    text = (
        "polybody: 1\nbodies: {b: {mass: 1, inertia: [1, 1, 1]}}\n"
        f"joints:\n  k: {{kind: revolute, parent: world, child: b, friction: {{{words}}}, {limits}}}\n"
    )
    description = read_mechanism(text, "m.yaml")
    friction = description.joints[0].friction
    assert friction is not None
    assert {key: getattr(friction, key).item() for key in LAW} == LAW
    assert same_description(read_mechanism(mechanism_text(description), "m.yaml"), description)
    with pytest.raises(pb.InputError, match=r"no key 'colomb'.*coulomb"):
        read_mechanism(text.replace("coulomb", "colomb"), "m.yaml")


@pytest.mark.parametrize(
    ("friction", "match"),
    [
        (-1, "must not be negative"),
        ({"coulomb": 2, "static": 1}, "static is below"),
        ({"coulomb": 2, "regularisation": 0}, "regularisation is 0"),
        ({"coulomb": [1, 2]}, "expected one number"),
        ({"dry": 2}, "has no 'dry'"),
        (float("nan"), "friction.coulomb"),
    ],
)
def test_impossible_friction_is_refused_by_name(friction: object, match: str) -> None:
    with pytest.raises(pb.InputError, match=match):
        arm(1, friction=friction)
