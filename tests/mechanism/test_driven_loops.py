"""Armature, limits and motors of cut joints act as those of joints do: the same linkage, cut elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polybody as pb


def four_bar(cut: bool, motor: bool = False, **more: Any) -> pb.Model:
    """`b` is the coupler's joint at the crank, cut or not; what is said of it is `more`."""
    build = pb.Builder("four-bar", gravity=(0, -9.81, 0))
    for name, mass, length in (("crank", 1.0, 0.5), ("coupler", 2.0, 1.2), ("rocker", 1.5, 0.9)):
        build.body(name, mass, (length / 2, 0, 0), (0, mass * length**2 / 12, mass * length**2 / 12))
    build.joint("a", "revolute", "world", "crank")
    build.joint("d", "revolute", "world", "rocker", (1.1, 0, 0))
    turned = np.diag([-1.0, -1.0, 1.0, 1.0])
    if cut:
        build.joint("c", "revolute", "rocker", "coupler", (0.9, 0, 0))
        end = turned.copy()
        end[:3, 3] = (1.2, 0, 0)
        build.loop("b", "revolute", "crank", "coupler", (0.5, 0, 0), end, **more)
    else:
        build.joint("b", "revolute", "crank", "coupler", (0.5, 0, 0), **more)
        build.loop("c", "revolute", "coupler", "rocker", (1.2, 0, 0), (0.9, 0, 0))
    if motor:
        build.motor("b", 1.0, 0.01, 0.5, rotor_inertia=0.02, gear=5)
    return build.model()


def state(model: pb.Model) -> tuple[np.ndarray, np.ndarray]:
    guess = {"a": 0.7, "b": -0.274, "d": 1.141, "c": -3.856}
    q = model.assemble([guess[name] for name in model.joint_names], hold=["a"])
    return q, model.assemble_velocity(q, np.full(model.nv, 0.9), hold=["a"])


def crank(model: pb.Model, values: np.ndarray) -> np.ndarray:
    return values[..., model.joint_slices()["a"][1]]


@pytest.mark.parametrize(
    "more",
    [{"armature": 0.8}, {"armature": 0.3, "stiffness": 4.0, "damping": 0.7, "rest": 0.2}, {"friction": {"load": 0.02}}],
)
def test_what_a_cut_joint_has_acts_as_on_a_joint(more: dict[str, Any]) -> None:
    found = []
    for cut in (False, True):
        model = four_bar(cut, **more)
        q, v = state(model)
        run = pb.simulate(model, 0.2, q, v, sample=0.05, rtol=1e-8, atol=1e-10)
        a = model.forward_dynamics(q, v, np.zeros(model.nv))
        found.append((crank(model, a).item(), crank(model, run.q)[-1].item()))
    assert found[1] == pytest.approx(found[0], rel=1e-7)
    plain = four_bar(True)
    bare = plain.forward_dynamics(*state(plain), np.zeros(3))
    if "armature" in more:
        assert abs(found[0][0] - crank(plain, bare).item()) > 0.1


def test_limits_of_a_cut_joint_stop_the_linkage() -> None:
    ends = []
    for cut in (False, True):
        model = four_bar(cut, limits=(-0.6, 0.2), armature=1e-3)
        q, v = state(model)
        run = pb.simulate(model, 1.0, q, v, sample=0.05, rtol=1e-8, atol=1e-10)
        assert any("b " in h.name and "limit" in h.name for h in run.happenings)
        assert run.audit.trusted
        ends.append(crank(model, run.q)[-1].item())
    assert ends[1] == pytest.approx(ends[0], abs=1e-6)


def test_a_motor_drives_a_cut_joint() -> None:
    ends = []
    for cut in (False, True):
        model = four_bar(cut, motor=True)
        q, v = state(model)
        run = pb.simulate(model, 0.2, q, v * 0, voltages=np.array([6.0]), sample=0.05, rtol=1e-8, atol=1e-10)
        assert run.audit.trusted
        ends.append(crank(model, run.q)[-1].item())
    assert ends[1] == pytest.approx(ends[0], rel=1e-7)
