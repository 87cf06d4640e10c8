"""The midpoint rule of robots with many joints: steps by differences of its equations."""

from __future__ import annotations

from typing import Any

import numpy as np

import polybody as pb


def chain(n: int) -> pb.Model:
    """A hanging chain with dampers, armature and a spring, some joints sliding."""
    build = pb.Builder("chain")
    for k in range(n):
        build.body(f"b{k}", 0.3, (0.05, 0.01, 0), (1e-3, 2e-3, 2e-3))
        kind, axis = ("prismatic", (1, 0, 0)) if k % 10 == 9 else ("revolute", ((0, 1, 0), (0, 0, 1))[k % 2])
        more: dict[str, Any] = {"stiffness": 40.0} if kind == "prismatic" else {}
        build.joint(f"j{k}", kind, f"b{k - 1}" if k else "world", f"b{k}", (0.1 if k else 0, 0, 0), axis=axis,
                    damping=0.02, armature=1e-3, **more)  # fmt: skip
    return build.model()


def test_compiled_midpoint_steps_of_a_chain_of_44_joints_are_of_second_order() -> None:
    model = chain(44)
    rng = np.random.default_rng(3)
    q, v = 0.1 * rng.normal(size=44), 0.3 * rng.normal(size=44)
    law = pb.PD(model, q, 2.0, 0.1)
    wanted = pb.simulate(model, 0.01, q, v, law, rtol=1e-10, atol=1e-12)
    errors = []
    for dt in (1e-3, 5e-4):
        run = pb.simulate(model, 0.01, q, v, law, method="midpoint", dt=dt, compiled=True)
        errors.append(np.abs(run.q[-1] - wanted.q[-1]).max())
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_compiled_midpoint_steps_under_forces_of_the_time_are_of_second_order() -> None:
    model = chain(14)
    rng = np.random.default_rng(5)
    q, v = 0.1 * rng.normal(size=14), np.zeros(14)

    def law(t: Any, q: Any, v: Any) -> Any:
        return np.sin(60 * t) * np.ones(14)

    wanted = pb.simulate(model, 0.05, q, v, law, rtol=1e-11, atol=1e-13)
    runs = [pb.simulate(model, 0.05, q, v, law, method="midpoint", dt=dt, compiled=True) for dt in (1e-3, 5e-4)]
    errors = [np.abs(run.v[-1] - wanted.v[-1]).max() for run in runs]
    assert 3.5 < errors[0] / errors[1] < 4.5
