"""Every controller on a tree, a loop and a free base, by every compiled method: none enters Python within a run.

`IN_PYTHON` is the list of what still does, and `NOT_FOR` of what a controller is not made for: what is in neither must
be compiled, instants of sampling included, and a controller that is added to the library must be added here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from test_controllers_everywhere import STILL

import polybody as pb
from polybody.simulation.problem import Problem

C = pb.controllers
MACHINES = ("tree", "loop", "free base")
METHODS = {"rk4": {"dt": 1e-3}, "semi-implicit": {"dt": 1e-3}, "dop853": {}}
#: (controller, machine) whose steps call Python
IN_PYTHON: set[tuple[str, str]] = set()
#: (controller, machine) that raise an error
NOT_FOR = {
    ("Adaptive", "free base"),  # positions that are quaternions
}


@cache
def machine(name: str) -> tuple[pb.Model, np.ndarray, str]:
    """(model, configuration, frame): two links, a four-bar, two links on a free base; with two actuators each."""
    build = pb.Builder(name, gravity=(0, 0, 0) if name == "free base" else (0, -9.81, 0))
    last, first = "world", 0.0
    if name == "free base":
        build.body("base", 8.0, inertia=(0.5, 0.6, 0.7))
        build.joint("root_joint", "floating", "world", "base", active=False)
        last, first = "base", 0.1
    lengths = (0.3, 0.7, 0.5) if name == "loop" else (0.4, 0.3)
    for k, length in enumerate(lengths):
        build.body(f"link{k}", 1.0 + k, com=(length / 2, 0, 0), inertia=(0.01, 0.02, 0.02))
        drives = name != "loop" or k == 0
        build.joint(f"j{k}", "revolute", last, f"link{k}", (first, 0, 0), (0, 0, 1), damping=0.1, active=drives)
        last, first = f"link{k}", length
    build.frame("hand", *(("link1", (0.35, 0.1, 0)) if name == "loop" else (last, (first, 0, 0))))
    if name == "loop":
        build.loop("pin", "revolute", "link2", "world", (0.5, 0, 0), (0.8, 0, 0))
    build.actuator("motor", "j0", gain=2.0, control=(-1, 1))
    build.actuator("servo", "j0" if name == "loop" else "j1", gain=10.0, bias=(0, -10.0, -1.0))
    model = build.model()
    q = model.neutral()
    q[-len(lengths) :] = (0.9, -0.4, -1.6) if name == "loop" else (0.4, 0.8)
    return model, model.assemble(q) if name == "loop" else q, "hand"


def output(q: Any, domain: Any) -> list[Any]:
    return [domain.sin(q[-2]) + q[-1]]


def controllers(name: str) -> dict[str, Callable[[], Any]]:
    """Of each controller of the library one that this machine can follow."""
    model, q, frame = machine(name)
    there = q.copy()
    there[-3 if name == "loop" else -1] += 0.1
    there = model.constraints.assemble_dependent(there) if name == "loop" else there
    path = pb.paths.quintic(model, q, there, 0.05)
    spline = pb.paths.spline(model, [0.0, 0.02, 0.05], np.array([q, there, q]))
    task, rows = (pb.Function(output, 1), [0.1]), {"rows": "position"}
    goal = model.pose(there, frame)[:3, 3]
    measured = lambda t, q, v: np.array([0, 0, 0, 0.1 * np.sin(9 * t), 0.1, 0])  # noqa: E731
    hold = C.PD(model, q, 20.0, 2.0)
    return {
        "PD": lambda: C.PD(model, path=spline, kp=20.0, kd=2.0),
        "GravityCompensation": lambda: C.GravityCompensation(model, 0.5),
        "ComputedTorque": lambda: C.ComputedTorque(model, path),
        "Given": lambda: C.Given(model, lambda t: np.full(model.nv, 0.1) * np.sin(t)),
        "zero": lambda: C.zero(model),
        "Actuators": lambda: C.Actuators(model, lambda t, q, v: [np.sin(t), 0.3]),
        "OperationalSpace": lambda: C.OperationalSpace(model, frame, path, **rows),
        "ResolvedRate": lambda: C.ResolvedRate(model, frame, goal, damping=0.1, **rows),
        "ResolvedAcceleration": lambda: C.ResolvedAcceleration(model, frame, goal, damping=0.1, **rows),
        "Impedance": lambda: C.Impedance(model, frame, goal, 50.0, 10.0, inertia=2.0, force=measured, **rows),
        "HybridForcePosition": lambda: C.HybridForcePosition(model, frame, goal, STILL, "y", **rows),
        "FeedbackLinearisation": lambda: C.FeedbackLinearisation(model, *task),
        "Admittance": lambda: C.Admittance(model, frame, goal, 50.0, 10.0, 2.0, measured, period=3e-3, **rows),
        "Adaptive": lambda: C.Adaptive(model, path, 5.0, 5.0, period=3e-3),
        "DisturbanceObserver": lambda: C.DisturbanceObserver(model, hold, period=3e-3),
        "Sampled": lambda: C.Sampled(hold, 3e-3, 1e-3),
        "Quantised": lambda: C.Quantised(model, C.Sampled(hold, 3e-3), 1e-3, 1e-2, 1e-2),
        "Noisy": lambda: C.Sampled(C.Noisy(model, hold, 1e-3, 1e-2), 3e-3),
        "Stateful": lambda: C.Stateful(
            lambda t, q, v, z: -v - z, lambda t, q, v, z: z + 0.01 * v, np.zeros(model.nv), 3e-3),
    }  # fmt: skip


def test_every_controller_of_the_library_is_looked_at() -> None:
    assert set(controllers("tree")) == set(C.__all__) - {"Sampling"}  # which is a protocol


def test_a_run_imports_no_other_controller_than_its_own() -> None:
    """First answers wait for every module: 25 of them belong to controllers that the run has not."""
    code = """if True:
        import sys
        import polybody as pb
        model = pb.load("two-link")
        run = pb.simulate(model, 0.01, controller=pb.controllers.GravityCompensation(model))
        assert run.audit.path == "compiled", run.audit.path
        folder = "polybody.simulation.controllers."
        print(sorted(x.removeprefix(folder) for x in sys.modules if x.startswith(folder)))
        print([x for x in sys.modules if x.endswith(("_laws", ".paths")) and x.startswith("polybody.")])
    """
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == ["['gains', 'gravity', 'sampling']", "[]"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("kind", controllers("tree"))
def test_controllers_enter_no_python_within_a_run(
    kind: str, name: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, q, _ = machine(name)
    if (kind, name) in NOT_FOR:
        with pytest.raises(pb.InputError):
            controllers(name)[kind]()
        return
    monkeypatch.setenv("POLYBODY_TIER", "fast")  # nothing is compiled that is called a few times only
    law, asked = controllers(name)[kind](), []
    torque = Problem.torque
    monkeypatch.setattr(Problem, "torque", lambda self, t, q, v: asked.append(t) or torque(self, t, q, v))
    told: list[float] = []
    if hasattr(law, "sample"):
        sample = type(law).sample
        monkeypatch.setattr(type(law), "sample", lambda self, t, q, v: told.append(t) or sample(self, t, q, v))
    run = pb.simulate(model, 0.02, q, controller=law, method=method, limits="ignore", **METHODS[method])
    assert run.t[-1] == 0.02
    assert (run.audit.path != "compiled") == ((kind, name) in IN_PYTHON), run.audit.path
    if (kind, name) not in IN_PYTHON:
        assert asked == []
        assert set(told) <= {0.0}  # the first instant


@pytest.mark.parametrize("kind", ["OperationalSpace", "Impedance"])
@pytest.mark.parametrize("name", ["tree", "free base"])
def test_accelerations_under_task_laws_are_those_of_their_forces(kind: str, name: str) -> None:
    """The field takes factors of M and bias forces over from the law's text."""
    model, q, frame = machine(name)
    model = model.with_gravity((0.5, -9.81, 2.0))
    goal = model.pose(q, frame)[:3, 3] + 0.05
    gains = (50.0, 5.0) if kind == "OperationalSpace" else (20.0, 2.0)
    law = getattr(C, kind)(model, frame, goal, *gains, rows="position")
    run = pb.simulate(model, 0.02, q, 0.5 + 0.1 * np.arange(model.nv), controller=law)
    assert run.audit.path == "compiled"
    np.testing.assert_allclose(run.a, model.forward_dynamics(run.q, run.v, run.tau), rtol=1e-9, atol=1e-9)
