"""Every public call that takes a batch: time per state at 1,000 and 10,000 states, peak memory at many.

    python benchmarks/bench_calls.py [--models UR5 stewart four-bar] [--only PART] [--peaks] [--json FILE]

Time is that of the processor, one thread. A call that loops over states in Python shows by its time (0.1 ms per state
and more), one whose cost per state grows by the ratio of the two. `--peaks` measures memory instead, of 300 MB of
results or two million states: what is above arguments and results must stay below 64 MB.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench_sweep import forget, resident
from rivals import FILES, machine, robot

import polybody as pb
from polybody.kernels import memory

Array = np.ndarray
States = dict[str, Array]
Call = Callable[[States], Any]
DRAWN, RESULTS, MOST, SECONDS = 10_000, 3e8, 2_000_000, 4.0
#: a call that takes longer per state (s) is not measured on more
SLOW = 2e-3


def model_of(name: str) -> pb.Model:
    return robot(name)[0] if name in FILES else pb.load(name)


def states_of(model: pb.Model, varied: pb.Model, count: int) -> States:
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng, count)
    v = model.assemble_velocity(q, rng.normal(size=(count, model.nv)))
    a = model.assemble_acceleration(q, v, rng.normal(size=(count, model.nv)))
    free = rng.normal(size=(count, model.nv))
    found = {"q": q, "v": v, "a": a, "tau": free, "w": rng.normal(size=(count, 6)),
             "p": varied.parameters.nominal * rng.uniform(0.9, 1.1, (count, len(varied.parameters)))}  # fmt: skip
    found["u"] = v[:, list(model.constraints.indices(model.constraints.independent))]
    return found


def calls_of(model: pb.Model, varied: pb.Model) -> dict[str, Call]:
    """{name: call of states}."""
    f, loops = model.frame_names[-1], len(model.constraints) > 0
    base: dict[str, tuple[Callable[..., Any], str]] = {
        "inverse_dynamics": (model.inverse_dynamics, "qva"),
        "forward_dynamics": (model.forward_dynamics, "qvt"),
        "mass_matrix": (model.mass_matrix, "q"),
        "inverse_mass_matrix": (model.inverse_mass_matrix, "q"),
        "coriolis_matrix": (model.coriolis_matrix, "qv"),
        "bias_forces": (model.bias_forces, "qv"),
        "gravity_forces": (model.gravity_forces, "q"),
        "passive_forces": (model.passive_forces, "qv"),
        "energy": (model.energy, "qv"),
        "momentum": (model.momentum, "qv"),
        "center_of_mass": (model.center_of_mass, "q"),
        "poses": (model.poses, "q"),
        "integrate": (model.integrate, "qv"),
        "difference": (model.difference, "qq"),
        "inverse_dynamics_derivatives": (model.inverse_dynamics_derivatives, "qva"),
        "forward_dynamics_derivatives": (model.forward_dynamics_derivatives, "qvt"),
        "reactions": (model.reactions, "qva"),
        "regressor": (model.regressor, "qva"),
        "regressor.nonzeros": (model.regressor.nonzeros, "qva"),
        "regressor.energy": (model.regressor.energy, "qv"),
        "regressor.momentum": (model.regressor.momentum, "qv"),
        "constraints.residual": (model.constraints.residual, "q"),
        "constraints.jacobian": (model.constraints.jacobian, "q"),
        "constraints.bias": (model.constraints.bias, "qv"),
        "constraints.rank": (model.constraints.rank, "q"),
        "constraints.joint_positions": (model.constraints.joint_positions, "q"),
        "constraints.assemble_dependent": (model.constraints.assemble_dependent, "q"),
        "constraints.projection_step": (model.constraints.projection_step, "qv"),
        "constraints.joint_motion": (model.constraints.joint_motion, "qu"),
        "constraints.joint_influence": (model.constraints.joint_influence, "q"),
        "constraints.solution": (model.constraints.solution, "qvt"),
        "constraints.loads": (model.constraints.loads, "qvt"),
        "constraints.motion_derivatives": (model.constraints.motion_derivatives, "qvt"),
        "actuation.hybrid_dynamics": (model.actuation.hybrid_dynamics, "qva"),
        "actuation.holding_forces": (model.actuation.holding_forces, "q"),
        "coefficients.influence": (lambda q, **k: model.coefficients.influence(q, f, 2, **k), "q"),
        "coefficients.influence 3": (lambda q, **k: model.coefficients.influence(q, f, 3, **k), "q"),
        "coefficients.center_of_mass": (lambda q, **k: model.coefficients.center_of_mass(q, 2, **k), "q"),
        "coefficients.centroidal_momentum_matrix": (model.coefficients.centroidal_momentum_matrix, "q"),
        "coefficients.dynamic_arrays": (model.coefficients.dynamic_arrays, "q"),
        "coefficients.reduced_dynamics": (model.coefficients.reduced_dynamics, "q"),
        "coefficients.task_space_inertia": (lambda q, **k: model.coefficients.task_space_inertia(q, f, **k), "q"),
        "assemble": (model.assemble, "q"),
        "assemble_velocity": (model.assemble_velocity, "qt"),
        "assemble_acceleration": (model.assemble_acceleration, "qvt"),
        "linearize": (lambda *x, **k: pb.linearize(model, *x, **k), "qvt"),
        "linearize without tau": (lambda *x, **k: pb.linearize(model, *x, **k), "qv"),
        "pose": (lambda q, **k: model.pose(q, f, **k), "q"),
        "pose in a frame": (lambda q, **k: model.pose(q, f, model.frame_names[1], **k), "q"),
        "jacobian": (lambda q, **k: model.jacobian(q, f, **k), "q"),
        "jacobian_rate": (lambda q, v, **k: model.jacobian_rate(q, v, f, **k), "qv"),
        "frame_velocity": (lambda q, v, **k: model.frame_velocity(q, v, f, **k), "qv"),
        "frame_acceleration": (lambda q, v, a, **k: model.frame_acceleration(q, v, a, f, **k), "qva"),
    }  # fmt: skip
    loaded = ("inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives",
              "reactions", "linearize", "constraints.loads", "actuation.hybrid_dynamics")  # fmt: skip
    single = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "poses", "inverse_dynamics_derivatives",
              "forward_dynamics_derivatives", "coriolis_matrix", "jacobian")  # fmt: skip
    keys = {"t": "tau"}
    found: dict[str, Call] = {}

    def bound(call: Callable[..., Any], order: str, **more: str) -> Call:
        return lambda s: call(*(s[keys.get(x, x)] for x in order), **{k: s[x] for k, x in more.items()})

    for name, (call, order) in base.items():
        found[name] = bound(call, order)
        if name in loaded:
            found[f"{name}, wrenches"] = lambda s, c=call, o=order: c(
                *(s[keys.get(x, x)] for x in o), wrenches={f: s["w"]})  # fmt: skip
        if name in single:
            found[f"{name}, float32"] = lambda s, c=call, o=order: c(*(_narrow(s, keys.get(x, x)) for x in o))
    for name, (call, order) in calls_with_parameters(varied, f).items():
        found[f"{name}, parameters"] = bound(call, order, parameters="p")
    for way in pb.formulations():
        found[f"inverse_dynamics by {way}"] = lambda s, w=way: model.inverse_dynamics(
            s["q"], s["v"], s["a"], formulation=w)  # fmt: skip
        found[f"forward_dynamics by {way}"] = lambda s, w=way: model.forward_dynamics(
            s["q"], s["v"], s["tau"], formulation=w)  # fmt: skip
    found["compute"] = lambda s: model.compute(
        s["q"], s["v"], s["a"], quantities=["inverse_dynamics", "mass_matrix", f"jacobian:{f}"])  # fmt: skip
    found["random_configuration"] = lambda s: model.random_configuration(0, len(s["q"]))
    found["rollout"] = lambda s: pb.rollout(model, s["q"], s["v"], np.zeros((10, model.nv)), steps=10, keep="last")
    ends = model.random_configuration(1, 2)
    found["path"] = lambda s: pb.paths.quintic(model, ends[0], ends[1], 1.0)(np.linspace(0, 1, len(s["q"])))
    targets: dict[int, Array] = {}

    def poses(s: States) -> Array:
        if len(s["q"]) not in targets:
            targets[len(s["q"])] = model.pose(s["q"], f)
        return targets[len(s["q"])]

    found["inverse_kinematics"] = lambda s: pb.inverse_kinematics(model, {f: poses(s)}, restarts=20)
    found["reach"] = lambda s: pb.reach(model, [pb.Goal(f, poses(s))], s["q"])
    if loops:
        weights = np.ones(len(model.actuation.names))
        found["inverse_dynamics, weights"] = lambda s: model.inverse_dynamics(
            s["q"], s["v"], s["a"], weights=weights)  # fmt: skip
    return found


def calls_with_parameters(varied: pb.Model, f: str) -> dict[str, tuple[Callable[..., Any], str]]:
    return {
        "inverse_dynamics": (varied.inverse_dynamics, "qva"),
        "forward_dynamics": (varied.forward_dynamics, "qvt"),
        "mass_matrix": (varied.mass_matrix, "q"),
        "forward_dynamics_derivatives": (varied.forward_dynamics_derivatives, "qvt"),
        "reactions": (varied.reactions, "qva"),
        "assemble": (varied.assemble, "q"),
        "assemble_velocity": (varied.assemble_velocity, "qt"),
        "assemble_acceleration": (varied.assemble_acceleration, "qvt"),
        "linearize": (lambda *x, **k: pb.linearize(varied, *x, **k), "qvt"),
        "actuation.hybrid_dynamics": (varied.actuation.hybrid_dynamics, "qva"),
        "actuation.holding_forces": (varied.actuation.holding_forces, "q"),
        "constraints.loads": (varied.constraints.loads, "qvt"),
        "constraints.joint_motion": (varied.constraints.joint_motion, "qu"),
        "coefficients.influence": (lambda q, **k: varied.coefficients.influence(q, f, 2, **k), "q"),
        "coefficients.dynamic_arrays": (varied.coefficients.dynamic_arrays, "q"),
        "regressor": (varied.regressor, "qva"),
    }  # fmt: skip


def _narrow(s: States, key: str) -> Array:
    if f"{key}32" not in s:
        s[f"{key}32"] = s[key].astype(np.float32)
    return s[f"{key}32"]


def some(s: States, count: int) -> States:
    return {key: np.ascontiguousarray(np.resize(x, (count, x.shape[1]))) for key, x in s.items()}


def size(x: Any) -> int:
    """Bytes of results; those that are the same for all states count once."""
    if isinstance(x, np.ndarray):
        return x.nbytes if x.size == 0 or 0 not in x.strides[:1] else x[:1].nbytes
    if isinstance(x, dict):
        return sum(size(y) for y in x.values())
    if isinstance(x, tuple | list):
        return sum(size(y) for y in x)
    return sum(size(getattr(x, f.name)) for f in dataclasses.fields(x)) if dataclasses.is_dataclass(x) else 0


def per_state(call: Call, s: States, least: float = 0.02) -> float:
    """The shortest of two calls or more: the first into fresh memory takes longer."""
    shortest, begun, runs = np.inf, time.process_time(), 0
    while runs < (2 if least else 1) or (least and time.process_time() - begun < (least if runs > 2 else 10 * least)):
        at = time.process_time()
        call(s)
        shortest, runs = min(shortest, time.process_time() - at), runs + 1
    return float(shortest) / len(s["q"])


def timed(call: Call, s: States) -> dict[str, float]:
    few = some(s, 100)
    call(few)
    row = {"us_100": 1e6 * per_state(call, few, 0.0)}
    for count in (1000, 10_000):
        if row["us_100"] < 1e6 * SLOW:
            row[f"us_{count}"] = 1e6 * per_state(call, some(s, count))
    return row


def peak(call: Call, s: States) -> dict[str, float]:
    few = some(s, 1000)
    each = size(call(few)) / 1000
    slow = per_state(call, few, 0.0)
    count = int(min(MOST, RESULTS / max(each, 1.0), SECONDS / slow))
    many = some(s, count)
    for key in [k[:-2] for k in few if k.endswith("32")]:
        _narrow(many, key)
    memory.release()
    before, _ = resident()
    forget()
    results = size(call(many))
    return {"states": count, "results_mb": results / 1e6, "above_mb": (resident()[1] - before - results) / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["UR5", "stewart"])
    parser.add_argument("--only", default="")
    parser.add_argument("--peaks", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in options.models:
        model = model_of(name)
        varied = model.with_parameters("*.mass")
        states = states_of(model, varied, DRAWN)
        for title, call in calls_of(model, varied).items():
            if options.only not in title:
                continue
            with pb.threads(1):
                try:
                    row = peak(call, states) if options.peaks else timed(call, states)
                except pb.PolybodyError as error:
                    print(f"{name:10s} {title:45s} {str(error).splitlines()[0][:100]}", flush=True)
                    continue
            rows.append({"model": name, "call": title, **row})
            print(f"{name:10s} {title:45s} " + "  ".join(f"{k} {v:10.3f}" for k, v in row.items()), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
