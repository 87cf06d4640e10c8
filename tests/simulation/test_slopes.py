"""Derivatives of the right side by the motion's equation equal those of the text of forward dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.simulation.recording import Mode
from polybody.simulation.slopes import Sloping
from polybody.simulation.stage_control import control_of
from polybody.simulation.start import prepared
from polybody.simulation.step_derivatives import StepDerivatives


def flying() -> pb.Model:
    """A floating body with sliding, spherical and turning joints, spring, dampers, armature, motor with inductance."""
    build = pb.Builder("flying")
    inertia = (0.03, 0.04, 0.05, 0.002, -0.003, 0.001)
    for k in range(4):
        build.body(f"b{k}", 1.0 + k, (0.1, -0.05 * k, 0.2), inertia)
    build.joint("base", "floating", "world", "b0")
    build.joint("slide", "prismatic", "b0", "b1", (0.2, 0, 0), axis=(0, 1, 0), stiffness=20, damping=0.3)
    build.joint("ball", "spherical", "b1", "b2", (0, 0.3, 0.1), damping=0.1)
    build.joint("turn", "revolute", "b0", "b3", (0, 0.1, 0.3), armature=0.2)
    build.motor("turn", resistance=2.0, inductance=0.1, torque_constant=0.3, gear=4.0)
    return build.model()


def states_of(model: pb.Model, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    if not model.mechanism.constrained:
        q = model.random_configuration(rng, size=count)
        return q, rng.normal(size=(count, model.nv))
    q = np.array([model.assemble(model.assemble() + 0.05 * rng.normal(size=model.nq)) for _ in range(count)])
    return q, np.array([model.assemble_velocity(x, rng.normal(size=model.nv)) for x in q])


def sloping(variant: pb.Model, law: Any, q: np.ndarray, v: np.ndarray, **options: Any) -> tuple[Sloping, Any]:
    run = prepared(variant, 0.1, q, v, law, **options)[0]
    of = StepDerivatives(run.problem, control_of(variant, law), "rk4")
    mode = Mode(False, np.zeros(0))
    plan = run.problem.motion.plans.free(q) if run.problem.loops else None
    return of.field(mode, plan).slopes, of.constants(mode)


@pytest.mark.parametrize("name", ["flying", "3-rrr", "bricard"])
@pytest.mark.parametrize("driven", [False, True])
def test_slopes_by_the_equation_of_motion_equal_those_of_forward_dynamics(
    name: str, driven: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYBODY_TIER", "fast")  # nothing is compiled in the background for a few states
    model = flying() if name == "flying" else pb.load(name)
    variant = model.with_parameters("*.mass", "*.com.x", *(["*.inertia.xy", "*.damping"] if name == "flying" else []))
    q, v = states_of(model, 3)
    law = pb.PD(model, q[0], 3.0, 0.5) if driven else None
    options: dict[str, Any] = {"voltages": [6.0]} if name == "flying" and driven else {}
    slopes, c = sloping(variant, law, q[0], v[0], **options)
    assert slopes.is_structured
    x = np.concatenate([q, v, np.full((3, slopes.of.n - model.nq - model.nv), 0.7)], axis=1)
    t, c, z = np.array([0.0, 0.01, 0.02]), np.tile(c, (3, 1)), np.zeros((3, 0))
    rate, found = slopes(t, x, c, z)
    slopes.__dict__["is_structured"] = False
    wanted_rate, wanted = slopes(t, x, c, z)
    np.testing.assert_allclose(rate, wanted_rate, rtol=0, atol=1e-12 * np.abs(wanted_rate).max())
    scale = np.abs(wanted.dense).max()
    np.testing.assert_allclose(found.dense, wanted.dense, rtol=0, atol=1e-10 * scale)
    S = np.random.default_rng(2).normal(size=(slopes.of.n, slopes.of.k))
    np.testing.assert_allclose(
        found.carried(1, S, z[:0]), wanted.carried(1, S, z[:0]), rtol=0, atol=1e-9 * scale
    )


def test_parameters_that_change_loops_go_by_the_text_of_forward_dynamics() -> None:
    model = pb.load("3-rrr")
    name = next(n for n in model.with_parameters("*.origin.x").parameters.names)
    q, v = states_of(model, 1)
    slopes, _ = sloping(model.with_parameters(name), None, q[0], v[0])
    assert not slopes.is_structured
