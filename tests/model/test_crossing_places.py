"""Configurations in which branches of motion cross, or which move to first order only: what moves beside them."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb


def along(x):
    place = np.eye(4)
    place[0, 3] = x
    return place


def parallelogram(cranks, turned=0.0):
    """So many cranks of 1 m, 1 m apart, on one coupler; flat at neutral, all turned by an angle."""
    build = pb.Builder("parallelogram", gravity=(0, -9.81, 0))
    build.body("coupler", 1.0, (1, 0, 0), (1e-3, 0.1, 0.1))
    c, s = np.cos(turned), np.sin(turned)
    turn = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    for k in range(cranks):
        build.body(f"crank{k}", 1.0, (0.5, 0, 0), (1e-3, 0.1, 0.1))
        build.joint(f"j{k}", "revolute", "world", f"crank{k}", turn @ along(k), axis=(0, 0, 1))
    build.joint("c", "revolute", "crank0", "coupler", along(1), axis=(0, 0, 1))
    for k in range(1, cranks):
        build.loop(f"l{k}", "revolute", "coupler", f"crank{k}", along(k), along(1), axis=(0, 0, 1))
    return build.model()


@pytest.mark.parametrize("turned", [0.0, 0.7])
@pytest.mark.parametrize("cranks", [2, 3, 4])
def test_a_flat_parallelogram_moves_with_any_number_of_cranks(cranks, turned):
    model = parallelogram(cranks, turned)
    found = model.mobility(model.neutral())
    assert found.true == 1
    assert found.singular
    assert found.here == 2
    assert len(model.engine.coordinates()) == 1
    bent = model.assemble(np.array([0.4, -0.4, *[0.4] * (cranks - 1)]), hold=["j0"])
    assert model.mobility(bent).true == 1


def test_bent_states_are_as_a_pendulum_whatever_was_asked_first():
    """All cranks turn by φ, the coupler is carried parallel: (Σ I_crank + m l²) φ̈ = −g l (m + Σ m_crank / 2) cos φ."""
    model = parallelogram(3)
    flat, angle = model.neutral(), 0.4
    with pytest.warns(pb.PolybodyWarning, match="singular"):
        model.forward_dynamics(flat, 0 * flat, 0 * flat)
    slots = model.joint_slices()
    q = np.zeros(model.nq)
    for name in ("j0", "j1", "j2", "c"):
        q[slots[name][0]] = -angle if name == "c" else angle
    inertia, load = 3 * (0.1 + 0.25) + 1.0, 1.0 + 1.5
    a = model.forward_dynamics(q, 0 * q, 0 * q)
    wanted = -9.81 * load * np.cos(angle) / inertia
    np.testing.assert_allclose(a[[slots[f"j{k}"][1].start for k in range(3)]], wanted, rtol=1e-9)
    np.testing.assert_allclose(model.mass_matrix(q), [[inertia]], rtol=1e-9)


def test_two_bars_in_line_between_pins_are_rigid():
    """They move to first order; nothing closes beside it."""
    build = pb.Builder("toggle", gravity=(0, -9.81, 0))
    build.body("first", 1.0, (0.5, 0, 0), (1e-3, 0.1, 0.1))
    build.body("second", 1.0, (0.5, 0, 0), (1e-3, 0.1, 0.1))
    build.joint("a", "revolute", "world", "first", axis=(0, 0, 1))
    build.joint("b", "revolute", "first", "second", along(1), axis=(0, 0, 1))
    build.loop("c", "revolute", "second", "world", along(1), along(2), axis=(0, 0, 1))
    model = build.model()
    found = model.mobility(model.neutral())
    assert (found.here, found.true) == (1, 0)
