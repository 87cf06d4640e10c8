"""Steps under controllers, for `bench_simulate`: µs per step of a UR5 and a Stewart platform, compiled and in Python.

Every run is one of `pb.simulate` by `rk4` in steps of 1 ms; controllers with instants have one each millisecond, so
that every step ends at one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import polybody as pb

C = pb.controllers
Array = np.ndarray
Laws = dict[str, Callable[[], Any]]
STEP = 1e-3


def push(t: float, q: Array, v: Array) -> Array:
    return np.array([0, 0, 0, 5 * np.sin(9 * t), 0.5 * q[0], 0])


def ur5_laws(model: pb.Model, q: Array) -> Laws:
    hand, n = model.body_names[-1], model.nv
    pose = model.pose(q, hand)
    path = pb.paths.quintic(model, q, q + 0.3, 2.0)
    kp, kd = np.array([200.0, 200, 100, 10, 10, 2]), np.array([30.0, 30, 15, 1, 1, 0.1])
    hold = C.PD(model, q, kp, kd, gravity=True)
    steered = C.OperationalSpace(model, hand, path)
    return {
        "PD with gravity": lambda: hold,
        "computed torque": lambda: C.ComputedTorque(model, path),
        "operational space along a path": lambda: steered,
        "impedance": lambda: C.Impedance(model, hand, pose, 300.0, 60.0, inertia=2.0, force=push),
        "admittance, 1 kHz": lambda: C.Admittance(model, hand, pose, 300.0, 60.0, 2.0, push, period=STEP),
        "adaptive, 1 kHz": lambda: C.Adaptive(model, path, kd, 8.0, period=STEP),
        "observer of PD, 1 kHz": lambda: C.DisturbanceObserver(model, hold, period=STEP),
        "sampled PD, 1 kHz, delay 0.4 ms": lambda: C.Sampled(hold, STEP, 4e-4),
        "sampled observer of operational space": lambda: C.Sampled(
            C.DisturbanceObserver(model, steered, period=STEP), STEP),
        "stateful (PID), 1 kHz": lambda: C.Stateful(
            lambda t, q, v, z: -kd * v - kp * z, lambda t, q, v, z: z + 1e-3 * v, np.zeros(n), STEP),
    }  # fmt: skip


def stewart_laws(model: pb.Model, q: Array) -> Laws:
    there = q.copy()
    legs = [j.q.start for j in model.mechanism.independent_joints if j.kind == "prismatic"]
    there[legs] += 0.03
    path = pb.paths.quintic(model, q, model.constraints.assemble_dependent(there), 2.0)
    law = C.ComputedTorque(model, path)
    return {
        "PD along a path": lambda: C.PD(model, path=path, kp=500.0, kd=50.0),
        "computed torque": lambda: law,
        "operational space along a path": lambda: C.OperationalSpace(model, "platform", path),
        "observer of computed torque, 1 kHz": lambda: C.DisturbanceObserver(model, law, period=STEP),
    }


def rows(systems: list[Any], shortest: Callable[..., tuple[float, Any]]) -> list[dict[str, Any]]:
    """{system, controller, µs per step compiled and in Python} of every controller of some systems."""
    return [row for system in systems for row in _rows(system, shortest)]


def _rows(system: Any, shortest: Callable[..., tuple[float, Any]]) -> list[dict[str, Any]]:
    makers, found = {"UR5": ur5_laws, "Stewart": stewart_laws}, []
    for name, make in makers[system.name](system.model, system.q).items():
        row = {"system": system.name, "controller": name}
        for key, compiled, steps in (("us_per_step", None, 2000), ("python_us_per_step", False, 20)):
            options = {"method": "rk4", "dt": STEP, "limits": "ignore", "sample": steps * STEP, "compiled": compiled}
            run_of = partial(_run, system, make, steps * STEP, options)
            seconds, run = shortest(run_of)
            assert run.stopped is None, run.stopped
            row[key] = 1e6 * seconds / run.audit.steps
            row.setdefault("path", run.audit.path)
        found.append(row)
        print(f"{system.name:10s}{name:42s}{row['us_per_step']:8.2f} µs per step, in Python "
              f"{row['python_us_per_step']:8.0f}  ({row['path']})", flush=True)  # fmt: skip
    return found


def _run(system: Any, make: Callable[[], Any], seconds: float, options: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pb.simulate(system.model, seconds, system.q, controller=make(), **options)


__all__ = ["rows"]
