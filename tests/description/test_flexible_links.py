"""Flexible links: a cantilever of elastic joints converges to the Euler-Bernoulli beam with the square of 1/N."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

import polybody as pb

LENGTH, DENSITY, EI = 2.0, 1.5, 40.0
#: roots of cos x cosh x = −1
ROOTS = (1.8751040687119611, 4.694091132974175)
COUNTS = (5, 10, 20, 40)


def cantilever(segments: int, **options) -> pb.Model:
    build = pb.Builder("cantilever", gravity=(0, 0, 0))
    build.flexible_link("beam", LENGTH, DENSITY, EI, segments=segments, **options)
    build.joint("clamp", "fixed", "world", "beam")
    return build.model()


def stiffness(model: pb.Model) -> np.ndarray:
    """Derivative of the elastic forces at rest."""
    q, n, h = model.neutral(), model.nv, 1e-4
    columns = [
        (model.passive_forces(model.integrate(q, h * e), np.zeros(n))
         - model.passive_forces(model.integrate(q, -h * e), np.zeros(n))) / (2 * h)
        for e in np.eye(n)
    ]
    return -np.array(columns).T


def frequencies(model: pb.Model) -> np.ndarray:
    K = stiffness(model)
    return np.sqrt(eigh((K + K.T) / 2, model.mass_matrix(model.neutral()), eigvals_only=True))


def second_order(errors) -> None:
    """Halving h divides the error by four."""
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    np.testing.assert_allclose(ratios, 4.0, rtol=0.15)


def test_first_two_frequencies_of_a_cantilever_converge_at_second_order():
    exact = np.array(ROOTS) ** 2 * np.sqrt(EI / (DENSITY * LENGTH**4))
    errors = np.array([np.abs(frequencies(cantilever(n))[:2] / exact - 1) for n in COUNTS])
    second_order(errors[:, 0])
    second_order(errors[:, 1])
    assert errors[-1].max() < 2e-3


@pytest.mark.parametrize("rotary", [0.0, 0.003])
def test_frequencies_are_those_of_a_chain_of_slender_pieces_with_the_rotary_inertia_given(rotary):
    """The chain's mass matrix by hand: pieces of mass m and inertia m s²/12 + rotary s about hinges at h/2, 3h/2, …"""
    n = 6
    h = LENGTH / n
    hinges = h / 2 + h * np.arange(n)
    sizes = np.array([h] * (n - 1) + [h / 2])
    M = np.zeros((n, n))
    for k, (start, size) in enumerate(zip(hinges, sizes, strict=True)):
        lift = np.where(np.arange(n) <= k, start + size / 2 - hinges, 0.0)  # of the piece's centre, by each hinge
        turn = np.where(np.arange(n) <= k, 1.0, 0.0)
        mass = DENSITY * size
        M += mass * np.outer(lift, lift) + (mass * size**2 / 12 + rotary * size) * np.outer(turn, turn)
    exact = np.sqrt(eigh(EI / h * np.eye(n), M, eigvals_only=True))
    np.testing.assert_allclose(frequencies(cantilever(n, rotary_inertia=rotary)), exact, rtol=1e-11)


def test_tip_deflection_of_a_cantilever_converges_at_second_order():
    """δ = F L³ / 3EI: small loads on the linear chain."""
    force, errors = 1e-3, []
    for n in COUNTS:
        model = cantilever(n)
        J = model.jacobian(model.neutral(), "beam_tip")[4]
        bend = np.linalg.solve(stiffness(model), J * force)
        errors.append(abs(J @ bend / (force * LENGTH**3 / (3 * EI)) - 1))
    second_order(errors)
    assert errors[-1] < 2e-4


def test_spatial_link_bends_both_ways_and_twists():
    EIs, GJ, polar = (40.0, 90.0), 30.0, 0.02
    model = cantilever(10, **{})  # planar: one column a hinge
    assert model.nv == 10
    build = pb.Builder("spatial", gravity=(0, 0, 0))
    build.flexible_link("beam", LENGTH, DENSITY, EIs, GJ, segments=10, polar_inertia=polar)
    build.joint("clamp", "fixed", "world", "beam")
    found = frequencies(build.model())
    first = ROOTS[0] ** 2 * np.sqrt(np.array(EIs) / (DENSITY * LENGTH**4))
    twist = np.pi / 2 / LENGTH * np.sqrt(GJ / polar)
    for exact in (*first, twist):
        assert np.abs(found / exact - 1).min() < 0.01


def test_mass_length_and_damping_are_those_of_the_link():
    model = cantilever(8, damping=0.01)
    T = model.pose(model.neutral(), "beam_tip")
    np.testing.assert_allclose(T[:3, 3], (LENGTH, 0, 0), atol=1e-12)
    masses = [b.mass for b in model.description.bodies]
    np.testing.assert_allclose(sum(masses), DENSITY * LENGTH)
    joint = model.mechanism.joints[3]
    np.testing.assert_allclose(joint.damping, 0.01 * joint.stiffness)
    assert not model.actuation.active.any()


def test_mechanism_file_says_the_same_as_the_builder(tmp_path):
    path = tmp_path / "beam.yaml"
    path.write_text(
        "polybody: 1\nname: cantilever\ngravity: [0, 0, 0]\n"
        "flexible_links:\n  beam: {length: 200cm, mass_per_length: 1.5, EI: 40, segments: 6, axis: z}\n"
        "joints:\n  clamp: {kind: fixed, parent: world, child: beam}\n",
        encoding="utf-8",
    )
    read, built = pb.load(path), cantilever(6)
    np.testing.assert_allclose(read.mass_matrix(read.neutral()), built.mass_matrix(built.neutral()), atol=1e-15)
    path.write_text(path.read_text(encoding="utf-8").replace("segments: 6", "segments: 1"), encoding="utf-8")
    with pytest.raises(pb.InputError, match=r"beam.yaml:5.*segments is 1, expected a whole number of at least 2"):
        pb.load(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segments": 1}, "at least 2"),
        ({"segments": 2.5}, "at least 2"),
        ({"EI": 0.0}, "EI is 0.0, expected a positive number"),
        ({"EI": -3.0}, "EI is -3.0"),
        ({"EI": (1.0, 2.0)}, "one number"),
        ({"GJ": -1.0, "polar_inertia": 0.1}, "GJ is -1.0"),
        ({"GJ": 1.0}, "polar_inertia"),
        ({"length": 0.0}, "length is 0.0"),
        ({"mass_per_length": float("nan")}, "mass_per_length is nan"),
        ({"damping": -0.1}, "damping is -0.1"),
        ({"axis": (1, 0, 0)}, "across x"),
    ],
)
def test_impossible_flexible_links_are_refused(options, message):
    given = {"length": LENGTH, "mass_per_length": DENSITY, "EI": EI} | options
    with pytest.raises(pb.InputError, match=message):
        pb.Builder("beam").flexible_link("beam", **given)
