"""Single precision: throughput against float64, and accuracy on every URDF of example-robot-data.

    python benchmarks/bench_single.py [UR5 Panda G1] [--states 16384] [--accuracy] [--avx2] [--json FILE]

Throughput of each quantity through the public face, one thread, both precisions in turns, and of `pb.rollout`: steps of
rk4 of as many states, 50 for arms and 10 for the G1, of which the last state is kept.

Accuracy: for each robot 64 random states within its limits, velocities and accelerations of normal deviation 1. The
error of a state's answer is the largest difference of an entry from float64's, over the largest entry of that answer
among the states of the robot; inputs are numbers of float32, so that it is the arithmetic's error alone. Robots whose
forward dynamics is singular are left out there.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rivals import best_of, machine, robot, robots

import polybody as pb
from polybody.errors import PolybodyError

QUANTITIES = {
    "inverse_dynamics": 3, "forward_dynamics": 3, "mass_matrix": 1, "coriolis_matrix": 2, "bias_forces": 2,
    "gravity_forces": 1, "energy": 2, "momentum": 2, "center_of_mass": 1, "poses": 1,
    "jacobian": 1, "inverse_dynamics_derivatives": 3, "forward_dynamics_derivatives": 3,
}  # fmt: skip
STEPS = {"UR5": 50, "Panda": 50, "G1": 10}


def throughput(names: list[str], states: int) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        model, _ = robot(name)
        rng = np.random.default_rng(0)
        double = (model.random_configuration(rng, size=states), *0.3 * rng.normal(size=(2, states, model.nv)))
        single = tuple(x.astype(np.float32) for x in double)
        for quantity in (*QUANTITIES, "rollout"):
            with pb.threads(1):
                calls, count = zip(*(work(model, name, quantity, given) for given in (double, single)), strict=True)
                wide, narrow = (1e9 * seconds / count[0] for seconds in best_of(*calls))
            rows.append({"model": name, "quantity": quantity, "float64_ns": wide, "float32_ns": narrow})
            print(f"{name:6s} {quantity:30s} {wide:8.1f} ns  {narrow:8.1f} ns  {wide / narrow:5.2f}", flush=True)
    return rows


def work(model: Any, name: str, quantity: str, given: tuple[np.ndarray, ...]) -> tuple[Callable[[], object], int]:
    """The call that is timed, and the states that it computes, of rollouts states and steps."""
    if quantity == "rollout":
        steps = STEPS[name]
        return lambda: pb.rollout(model, *given[:2], steps=steps, keep="last"), len(given[0]) * steps
    call = asked(model, quantity)
    return lambda: call(*given[: QUANTITIES[quantity]]), len(given[0])


def asked(model: Any, quantity: str) -> Any:
    """The call that answers: of a Jacobian, that of the last frame."""
    if quantity == "jacobian":
        return lambda q: model.jacobian(q, model.frame_names[-1])
    return getattr(model, quantity)


def error(model: Any, quantity: str, count: int) -> float:
    rng = np.random.default_rng(0)
    given = (model.random_configuration(rng, size=64), *rng.normal(size=(2, 64, model.nv)))
    single = [x.astype(np.float32) for x in given]
    double = [x.astype(np.float64) for x in single[:count]]
    if model.nq != model.nv:
        double[0] = model.normalize(double[0])  # unit in float64 too
    found, wanted = (asked(model, quantity)(*given) for given in (single[:count], double))
    pairs = zip(*(x if isinstance(x, tuple) else (x,) for x in (found, wanted)), strict=True)
    return max(float(np.abs(f - w).max() / max(np.abs(w).max(), 1e-30)) for f, w in pairs)


def accuracy() -> list[dict[str, Any]]:
    os.environ["POLYBODY_TIER"] = "fast"  # the same bits
    errors: dict[str, list[float]] = {quantity: [] for quantity in QUANTITIES}
    for path in sorted(robots().rglob("*.urdf")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = pb.load(path, base="floating")
            except PolybodyError as reason:
                print(f"{path.name}: {reason}")
                continue
            for quantity, count in QUANTITIES.items():
                if quantity.endswith("derivatives") and model.nv > 16:
                    continue
                try:
                    errors[quantity].append(error(model, quantity, count))
                except PolybodyError as reason:
                    print(f"{path.name}, {quantity}: {reason}")
    rows = []
    for quantity, found in errors.items():
        middle, worst = float(np.median(found)), max(found)
        rows.append({"quantity": quantity, "robots": len(found), "median": middle, "worst": worst})
        print(f"{quantity:30s} {len(found):3d} robots   median {middle:.1e}   worst {worst:.1e}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(STEPS))
    parser.add_argument("--states", type=int, default=16384)
    parser.add_argument("--accuracy", action="store_true", help="the URDF zoo, some minutes")
    parser.add_argument("--avx2", action="store_true", help="as on a processor without AVX-512")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "single.json")
    options = parser.parse_args()
    if options.avx2:
        os.environ["POLYBODY_TARGET"] = "avx2"
    known = json.loads(options.json.read_text()) if options.json.exists() else {}
    if options.accuracy:
        known["accuracy"] = accuracy()
    else:
        found = {"machine": machine(), "throughput": throughput(options.models, options.states)}
        known |= {"avx2": found} if options.avx2 else found
    options.json.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
