"""Single precision: throughput against float64, and accuracy on every URDF of example-robot-data.

    python benchmarks/bench_single.py [UR5 Panda G1] [--states N] [--accuracy | --loops [--every]] [--avx2] [--json F]

Throughput of each quantity through the public face, one thread, both precisions in turns, and of `pb.rollout`: steps of
rk4 of as many states, 50 for arms and 10 for the G1, of which the last state is kept.

Accuracy: for each robot 64 random states within its limits, velocities and accelerations of normal deviation 1. The
error of a state's answer is the largest difference of an entry from float64's, over the largest entry of that answer
among the states of the robot; inputs are numbers of float32, so that it is the arithmetic's error alone. Robots whose
forward dynamics is singular are left out there.

Loops: throughput and accuracy at random states of mechanisms with loops, those left out that float64 answers by
singular values, as they are or rounded to float32, as both precisions take as long for them; with `--every` as they
come, quantities left out that have no answer at some. The error of a state is over the largest entry of its own answer,
or over that of the state in the middle where its own is smaller.
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
from polybody.quantities.table import QUANTITIES as QUANTITY_TABLE

QUANTITIES = {
    "inverse_dynamics": 3, "forward_dynamics": 3, "mass_matrix": 1, "coriolis_matrix": 2, "bias_forces": 2,
    "gravity_forces": 1, "energy": 2, "momentum": 2, "center_of_mass": 1, "poses": 1,
    "jacobian": 1, "inverse_dynamics_derivatives": 3, "forward_dynamics_derivatives": 3,
}  # fmt: skip
STEPS = {"UR5": 50, "Panda": 50, "G1": 10}
LOOPS = ("four-bar", "3-rrr", "stewart", "delta")
ALONG_LOOPS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_forces")


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


def loops(names: list[str], states: int, every: bool = False) -> list[dict[str, Any]]:
    rows = []
    for name in [x for x in LOOPS if x in names] or LOOPS:
        model, given = closed_states(name, states, every)
        narrow = {key: x.astype(np.float32) for key, x in given.items()}
        for quantity in ALONG_LOOPS:
            keys, call = QUANTITY_TABLE[quantity].arguments, getattr(model, quantity)
            with pb.threads(1):
                try:
                    found = call(*(narrow[k] for k in keys))
                    wanted = call(*(narrow[k].astype(float) for k in keys))
                except PolybodyError as reason:
                    print(f"{name}, {quantity}: {reason}")
                    continue
                work = [lambda given=x, keys=keys, call=call: call(*(given[k] for k in keys)) for x in (given, narrow)]
                wide, less = (1e9 * seconds / states for seconds in best_of(*work))
            sizes = np.abs(wanted).reshape(states, -1).max(axis=1)
            off = np.abs(found - wanted).reshape(states, -1).max(axis=1) / np.maximum(sizes, np.median(sizes))
            row = {"model": name, "quantity": quantity, "float64_ns": wide, "float32_ns": less,
                   "again": share_again(model, quantity, narrow), "median": float(np.median(off)),
                   "99 of 100": float(np.quantile(off, 0.99)), "worst": float(off.max())}  # fmt: skip
            rows.append(row)
            print(f"{name:9s} {quantity:18s} {wide:6.1f} {less:6.1f} ns  {wide / less:5.2f}   again {row['again']:.4f}"
                  f"   median {row['median']:.0e}  99 of 100 {row['99 of 100']:.0e}  worst {row['worst']:.0e}",
                  flush=True)  # fmt: skip
    return rows


def closed_states(name: str, states: int, every: bool = False) -> tuple[Any, dict[str, np.ndarray]]:
    """(the model, random states on the constraints that elimination answers in float64, or `every`, and motions under
    forces)."""
    from polybody.model.diagnosed import doubtful, growth_limit

    model, rng = pb.load(name), np.random.default_rng(0)
    q = model.random_configuration(rng, size=states)
    v = model.assemble_velocity(q, 0.3 * rng.normal(size=(states, model.nv)))
    given = {"q": q, "v": v, "tau": rng.normal(size=(states, model.nv))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given["a"] = model.forward_dynamics(*given.values())
    if every:
        return model, given
    engine: Any = model.engine
    good = np.ones(states, dtype=bool)
    for quantity, plan in along(engine, q):
        engine._can_drive(quantity, plan, q)
        for near in (given, {key: x.astype(np.float32).astype(float) for key, x in given.items()}):
            told = engine.eliminated(quantity, *(near[k] for k in quantity.arguments), plan=plan)[-1]
            good &= ~doubtful(told, growth_limit(quantity, plan))
    kept = np.resize(np.flatnonzero(good), states)
    return model, {key: np.ascontiguousarray(x[kept]) for key, x in given.items()}


def along(engine: Any, q: np.ndarray) -> list[tuple[Any, Any]]:
    asked = [QUANTITY_TABLE[name] for name in ALONG_LOOPS]
    return [(x, engine._plan(x, engine.coordinates(q), q)) for x in asked]


def share_again(model: Any, quantity: str, given: dict[str, np.ndarray]) -> float:
    """The part of the states that float32 leaves to float64."""
    asked, plan = dict((x.name, (x, plan)) for x, plan in along(model.engine, given["q"].astype(float)))[quantity]
    *_, told = model.engine._kernel(asked, plan, np.float32)(*(given[k] for k in asked.arguments))
    return float(np.mean(~(told[..., 0] < 1)))


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
    parser.add_argument("--loops", action="store_true", help="mechanisms with loops: throughput and accuracy")
    parser.add_argument("--every", action="store_true", help="states near singular ones too")
    parser.add_argument("--avx2", action="store_true", help="as on a processor without AVX-512")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "single.json")
    options = parser.parse_args()
    if options.avx2:
        os.environ["POLYBODY_TARGET"] = "avx2"
    known = json.loads(options.json.read_text()) if options.json.exists() else {}
    if options.accuracy:
        known["accuracy"] = accuracy()
    elif options.loops:
        key = "loops, every state" if options.every else "loops"
        known[key] = loops(options.models, options.states, options.every)
    else:
        found = {"machine": machine(), "throughput": throughput(options.models, options.states)}
        known |= {"avx2": found} if options.avx2 else found
    options.json.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
