"""Rollouts and exported C have what acts: friction, contact, prescribed rates; rollouts saturate drives where asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polybody as pb
from c_library import built, call, gcc


def hopper(friction: bool = True, contact: bool = True) -> pb.Model:
    """A sliding leg with dry friction whose foot touches the ground."""
    build = pb.Builder("hopper")
    build.body("trunk", 2.0, inertia=(0.1, 0.1, 0.1))
    build.body("leg", 0.5, (0, 0, -0.2), (0.01, 0.01, 0.01))
    build.joint("x", "prismatic", "world", "trunk", axis=(1, 0, 0))
    dry = {"coulomb": 3.0, "viscous": 0.1} if friction else None
    build.joint("leg", "prismatic", "trunk", "leg", axis=(0, 0, 1), friction=dry)
    if contact:
        build.contact("foot", "leg", (0, 0, -0.4), stiffness=3e3, damping=0.5, friction=0.4, slip=0.05)
    return build.model()


Q, V = np.array([0.0, 0.399]), np.array([0.3, -0.4])


def test_rollouts_have_friction_and_contact() -> None:
    """As `pb.simulate` with smooth friction; without either of them the motion is another one."""
    model, steps, dt = hopper(), 100, 1e-3
    run = pb.simulate(model, steps * dt, Q, V, method="rk4", dt=dt, friction="smooth", limits="ignore")
    for method, near in (("rk4", 1e-9), ("semi-implicit", 2e-3)):
        found = pb.rollout(model, Q, V, steps=steps, dt=dt, method=method, keep="last")
        np.testing.assert_allclose(found.q, run.q[-1], atol=near)
    for other in (hopper(friction=False), hopper(contact=False)):
        assert np.abs(pb.rollout(other, Q, V, steps=steps, dt=dt, keep="last").q - run.q[-1]).max() > 1e-3


@gcc
def test_exported_c_has_friction_and_contact(tmp_path: Path) -> None:
    model = hopper()
    library = built(model, tmp_path / "c", ["forward_dynamics", "inverse_dynamics"], 1)
    tau = np.array([0.4, -0.2])
    (a,) = call(library.robot_forward_dynamics, [Q, V, tau], 2)
    np.testing.assert_allclose(a, model.forward_dynamics(Q, V, tau), rtol=1e-12)
    (needed,) = call(library.robot_inverse_dynamics, [Q, V, a], 2)
    np.testing.assert_allclose(needed, tau, atol=1e-10)
    for other in (hopper(friction=False), hopper(contact=False)):
        assert np.abs(a - other.forward_dynamics(Q, V, tau)).max() > 0.1


def shaken() -> pb.Model:
    build = pb.Builder("shaken")
    build.clock()
    build.body("cart", 2.0, inertia=(1, 1, 1))
    build.body("bob", 1.0, (0, 0, -1), (0.01, 0.01, 0.01))
    build.joint("slide", "prismatic", "world", "cart", axis=(1, 0, 0))
    build.joint("swing", "revolute", "cart", "bob", axis=(0, 1, 0))
    build.velocity_relation("shaker", {"slide": 1}, "0.5*cos(2*clock)")
    return build.model()


@gcc
def test_rates_prescribed_in_time_are_in_rollouts_and_c(tmp_path: Path) -> None:
    model = shaken()
    q = model.neutral()
    v = model.assemble_velocity(q, np.zeros(3))
    end = pb.rollout(model, q, v, steps=500, dt=2e-3, keep="last")
    assert end.q[..., :2] == pytest.approx([1.0, 0.25 * np.sin(2.0)], abs=1e-8)
    library = built(model, tmp_path / "c", ["forward_dynamics"], 1)
    there = np.array([0.7, 0.1, 0.4])
    v = model.assemble_velocity(there, [0, 0, 0.3])
    a, _ = call(library.robot_forward_dynamics, [there, v, np.zeros(3)], 3, 6)
    np.testing.assert_allclose(a, model.forward_dynamics(there, v, np.zeros(3)), atol=1e-12)


def test_rollouts_saturate_drives_where_asked() -> None:
    build = pb.Builder("cart", gravity=(0, 0, 0))
    build.body("cart", 2.0, inertia=(1, 1, 1))
    build.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0), limits={"effort": 3.0})
    model = build.model()
    laws = ([10.0], np.full((100, 1), 10.0), lambda t, q, v: np.full(1, 10.0))
    for law in laws:
        for efforts, force in (("saturate", 3.0), ("ignore", 10.0)):
            found = pb.rollout(model, [0.0], [0.0], law, 100, 1e-2, efforts=efforts, keep="last")
            assert found.v.ravel() == pytest.approx([force / 2.0], rel=1e-12)
    with pytest.raises(pb.InputError, match="'ignore' or 'saturate'"):
        pb.rollout(model, [0.0], [0.0], steps=1, efforts="clip")
