"""Paths that are no expressions, in compiled steps: with loops and through rotations; functions of time of users."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulation_cases import satellite, shipped
from test_compiled import assert_same, both
from test_compiled_controllers import machine

import polybody as pb
from polybody.simulation.compiled.path_tables import tabulated

C = pb.controllers


def places(model: pb.Model, q: np.ndarray, count: int) -> list[np.ndarray]:
    """Configurations one after the other."""
    found = [q]
    for k in range(1, count):
        if model.mechanism.constrained:
            there = found[-1].copy()
            there[list(model.engine.independent)] += 0.1 * k
            found.append(model.constraints.assemble_dependent(there))
        else:
            found.append(model.integrate(found[-1], 0.2 * np.random.default_rng(k).normal(size=model.nv)))
    return found


def paths(model: pb.Model, q: np.ndarray) -> dict[str, Any]:
    there = places(model, q, 4)
    return {
        "quintic": pb.paths.quintic(model, there[0], there[1], 0.1),
        "trapezoidal": pb.paths.trapezoidal(model, there[0], there[1], 0.1, 0.3),
        "spline": pb.paths.spline(model, [0.01, 0.04, 0.07, 0.1], np.array(there)),
    }


@pytest.mark.parametrize("kind", ["quintic", "trapezoidal", "spline"])
@pytest.mark.parametrize("name", ["four-bar", "satellite"])
def test_tables_of_paths_are_the_paths(name: str, kind: str) -> None:
    model = satellite() if name == "satellite" else shipped(name)
    path = paths(model, model.neutral() if name == "satellite" else model.assemble())[kind]
    _, motion, signals = tabulated(model, path)
    from polybody.algebra.domains import FLOAT

    for t in [-0.3, *np.linspace(0.0, 0.1, 57)[1:-1] + 1e-4, 0.11, 3.0]:
        for mine, wanted in zip(motion(t, signals.row(t), FLOAT), path(t), strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=0, atol=1e-11 * (1 + np.abs(path(0.05)[2]).max()))


@pytest.mark.parametrize("kind", ["quintic", "trapezoidal", "spline"])
def test_loops_follow_paths_as_in_python(kind: str) -> None:
    model = shipped("four-bar")
    q = model.assemble()
    path = paths(model, q)[kind]
    assert_same(*both(model, 0.12, q, controller=C.PD(model, path=path), method="rk4", dt=2e-3), 1e-9)
    steered = C.OperationalSpace(model, model.frame_names[-1], path, rows="position")
    assert_same(*both(model, 0.02, q, controller=steered, method="rk4", dt=1e-3), 1e-7)


def test_free_bodies_follow_splines_of_rotations_as_in_python() -> None:
    model = satellite()
    path = paths(model, model.neutral())["spline"]
    for law in (C.PD(model, path=path, kp=10.0, kd=1.0), C.ComputedTorque(model, path)):
        assert_same(*both(model, 0.12, model.neutral(), controller=law, method="rk4", dt=2e-3), 1e-10)


@pytest.mark.parametrize("name", ["tree", "loop", "free base"])
def test_functions_of_time_and_actuators_act_as_in_python(name: str) -> None:
    model, q, _ = machine(name)
    n = model.nv

    def own(t: float) -> tuple[np.ndarray, ...]:
        s, c = 0.1 * np.sin(t), 0.1 * np.cos(t)
        return np.array([0.4 + s, 0.8]), np.array([c, 0.0]), np.array([-s, 0.0])

    laws = [
        C.Given(model, lambda t: np.full(n, 0.3) * np.cos(9 * t)),
        C.Actuators(model, {"motor": 3.0, "servo": 0.2}),
        C.Actuators(model, lambda t, q, v: {"servo": 0.3 * np.sin(t) + q[-1]}),
        *([C.ComputedTorque(model, own), C.PD(model, path=own)] if name == "tree" else []),
    ]
    for law in laws:
        assert_same(*both(model, 0.02, q, controller=law, method="rk4", dt=2e-3, limits="ignore"), 1e-10)


def test_paths_that_are_no_expressions_are_called() -> None:
    model, q, _ = machine("tree")
    asked: list[float] = []

    def own(t: float) -> tuple[np.ndarray, ...]:
        asked.append(t)
        return q, np.zeros(2), np.zeros(2)

    run = pb.simulate(model, 0.004, q, controller=C.PD(model, path=own), method="rk4", dt=2e-3)
    assert run.audit.path.startswith("python: the path is called in Python: own uses 'append'")
    assert len(asked) >= 8
