"""Dynamics against Pinocchio, MuJoCo and robotics-toolbox-python: ratios in one run, through public calls.

    python benchmarks/bench_dynamics.py [--states 16384] [--quick] [--avx2] [--json benchmarks/results/dynamics.json]

One thread on each side. Pinocchio's batches are `rneaInParallel` and `abaInParallel` on columns of states; where it has
no batch, its Python call in a loop. MuJoCo is called in a loop (`mj_inverse`, `mj_forward` without contacts).
Arrays are rows of states on our side, as users have them. A ratio above 1 means that polybody is faster. Each side
runs for a while, then the other, several times; each has its own arrays in the caches while it runs.

A processor with AVX-512 is measured twice: as it is, and then by a process whose kernels are compiled for AVX2 alone
(`POLYBODY_TARGET=avx2`), against Pinocchio measured again in that process. `--avx2` does the second only. `--only` does
a part, of which the file's rows are replaced and all others kept: a machine that others use can be had for minutes.

Ours is what `pb.load` returns: of the Panda eight coordinates, its second finger follows the first. Pinocchio gets the
same joints (`mimic=True`), but its forward dynamics and derivatives refuse them: there it has all nine joints free, and
its column says so. A variant with nine on our side, `couplings=False`, stands beside, named.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anchors
import numpy as np
import pinocchio_chain
from rivals import arm_without_fingers, best, best_of, chain, has_mimic, machine, pinocchio_states, robot

import polybody as pb

LOOPED = 400  # states for calls in a Python loop
ARM = "Panda without fingers"


def states_of(model: Any, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return model.random_configuration(rng, size=count), *rng.normal(size=(2, count, model.nv))


def loop(call: Any, *columns: np.ndarray) -> Callable[[], object]:
    """A Python call in a loop over `LOOPED` columns."""
    rows = [np.ascontiguousarray(c[:, :LOOPED].T) for c in columns]
    return lambda: [call(*state) for state in zip(*rows, strict=True)]


def looped(call: Any, *columns: np.ndarray) -> float:
    """Seconds a state of such a loop."""
    return best(loop(call, *columns)) / LOOPED


def against_pinocchio(name: str, states: int, results: list[dict[str, Any]], couplings: bool = True) -> None:
    """What `pb.load` returns against Pinocchio's model of the same joints.

    Where Pinocchio refuses mimic joints: against its model with all joints free, and the rival's name says so.
    """
    import pinocchio as pin

    ours, theirs = arm_without_fingers() if name == ARM else robot(name, couplings)
    free = robot(name, False)[1] if has_mimic(theirs) else theirs
    apart = f", nv {free.nv}" if has_mimic(theirs) else ""
    title = f"{name}, nv {ours.nv}" if couplings else f"{name}, nv {ours.nv}, couplings=False"
    rng = np.random.default_rng(0)
    q, v, a = states_of(ours, states, rng)
    Q, V, A, out = pinocchio_states(theirs, states, rng)
    data, pool = theirs.createData(), pin.ModelPool(theirs, 1)
    free_states = pinocchio_states(free, states, rng)
    free_data, free_pool = free.createData(), pin.ModelPool(free, 1)
    tau = np.empty_like(v)

    def compared(quantity: str, rival: str, mine: Any, their: Any, count: int = states, looped: int = states) -> None:
        """Both sides in turns; `looped`: states of the rival's run."""
        own, other = best_of(mine, their)
        record(results, title, quantity, rival, own / count, other / looped)

    with pb.threads(1):
        compared("inverse dynamics", "Pinocchio, batch", lambda: ours.inverse_dynamics(q, v, a, out=tau),
                 lambda: pin.rneaInParallel(1, pool, Q, V, A, out))
        compared("forward dynamics", f"Pinocchio, batch{apart}", lambda: ours.forward_dynamics(q, v, a, out=tau),
                 lambda: pin.abaInParallel(1, free_pool, *free_states))
        compared("mass matrix", "Pinocchio, calls", lambda: ours.mass_matrix(q),
                 loop(lambda q: pin.crba(theirs, data, q), Q), looped=LOOPED)
        if ours.nv < 12 or name == "G1":
            some = states if ours.nv < 12 else states // 8  # 29 kB of results a state
            compared("inverse dynamics derivatives", f"Pinocchio, calls{apart}",
                     lambda: ours.inverse_dynamics_derivatives(q[:some], v[:some], a[:some]),
                     loop(lambda *x: pin.computeRNEADerivatives(free, free_data, *x), *free_states[:3]), some, LOOPED)
            compared("forward dynamics derivatives", f"Pinocchio, calls{apart}",
                     lambda: ours.forward_dynamics_derivatives(q[:some], v[:some], a[:some]),
                     loop(lambda *x: pin.computeABADerivatives(free, free_data, *x), *free_states[:3]), some, LOOPED)
        one = (q[0].copy(), v[0].copy(), a[0].copy())
        other = (Q[:, 0].copy(), V[:, 0].copy(), A[:, 0].copy())
        many = range(2000)
        compared("single inverse dynamics", "Pinocchio, call", lambda: [ours.inverse_dynamics(*one) for _ in many],
                 lambda: [pin.rnea(theirs, data, *other) for _ in many], len(many), len(many))


def against_mujoco(states: int, results: list[dict[str, Any]]) -> None:
    """A six-joint arm written as MJCF for both."""
    import mujoco

    inertial = '<inertial pos="0 0 .15" mass="1" diaginertia=".02 .03 .01"/>'
    axes = ("0 0 1", "0 1 0", "0 1 0", "0 0 1", "0 1 0", "1 0 0")
    arm = "".join(f'<body pos="0 0 .3"><joint axis="{axis}"/>{inertial}' for axis in axes) + "</body>" * 6
    text = f"<mujoco><worldbody>{arm}</worldbody></mujoco>"
    path = Path("/tmp/polybody-bench-arm.xml")
    path.write_text(text)
    ours, theirs = pb.load(path, friction=False), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    rng = np.random.default_rng(0)
    q, v, a = states_of(ours, states, rng)

    def inverse(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> None:
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(theirs, data)

    def forward(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> None:
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
        mujoco.mj_forward(theirs, data)

    with pb.threads(1):
        record(results, "6R arm", "inverse dynamics", "MuJoCo, calls",
               best(lambda: ours.inverse_dynamics(q, v, a)) / states, looped(inverse, q.T, v.T, a.T))
        record(results, "6R arm", "forward dynamics", "MuJoCo, calls",
               best(lambda: ours.forward_dynamics(q, v, a)) / states, looped(forward, q.T, v.T, a.T))


def against_chains(lengths: list[int], results: list[dict[str, Any]]) -> None:
    """Cost against the number of links; Pinocchio's Python calls, whose overhead a chain's length makes small."""
    for n in lengths:
        with pb.threads(1):
            one_chain(n, results)


def one_chain(n: int, results: list[dict[str, Any]]) -> None:
    ours, _ = chain(n)
    count = max(64, 98304 // n // 8 * 8)
    states = states_of(ours, count, np.random.default_rng(0))
    few = tuple(np.ascontiguousarray(x[:16]) for x in states)
    theirs = pinocchio_chain.times(n, few)
    for quantity in pinocchio_chain.CALLS:
        call = getattr(ours, quantity)
        begun = time.perf_counter()
        found = call(*few)
        compiling, their, apart = time.perf_counter() - begun, float("nan"), float("nan")
        if theirs is not None:
            their, expected = theirs[quantity]["seconds"], np.array(theirs[quantity]["result"])
            apart = float(np.abs(found - expected).max() / np.abs(expected).max())
        mine, name = best(lambda call=call: call(*states)) / count, quantity.replace("_", " ")
        record(results, f"chain of {n}", name, "Pinocchio, calls", mine, their, compile_seconds=compiling,
               difference=apart)


def two_threads(states: int, results: list[dict[str, Any]]) -> None:
    ours, _ = robot("UR5")
    q, v, a = states_of(ours, 8 * states, np.random.default_rng(0))
    out = np.empty_like(v)
    with pb.threads(1):
        one = best(lambda: ours.forward_dynamics(q, v, a, out=out))
    with pb.threads(2):
        two = best(lambda: ours.forward_dynamics(q, v, a, out=out))
    record(results, "UR5", "forward dynamics, two threads", "one thread", two / len(q), one / len(q))


def toolbox(results: list[dict[str, Any]], python: str | None) -> None:
    """robotics-toolbox-python lives in an environment of its own (it pins old packages); pass --toolbox its python."""
    script = """
import time, numpy as np, roboticstoolbox as rtb
arm = rtb.models.DH.Puma560()
rng = np.random.default_rng(0)
q, v, a = rng.normal(size=(3, 200, 6))
arm.rne(q[0], v[0], a[0])
best = 1e9
for _ in range(5):
    t = time.perf_counter()
    for k in range(200): arm.rne(q[k], v[k], a[k])
    best = min(best, time.perf_counter() - t)
print(best / 200)
"""
    if python is None:
        print("robotics-toolbox-python: not asked for (--toolbox PYTHON or RTB_PYTHON=...)")
        return
    their = float(subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.split()[-1])
    ours = pb.load("puma560")
    q, v, a = states_of(ours, 16384, np.random.default_rng(0))
    with pb.threads(1):
        record(results, "Puma 560", "inverse dynamics", "robotics-toolbox, calls",
               best(lambda: ours.inverse_dynamics(q, v, a)) / len(q), their)


def record(
    results: list[dict[str, Any]], model: str, quantity: str, rival: str, mine: float, their: float, **more: Any
) -> None:
    ratio = their / mine
    row = {"model": model, "quantity": quantity, "rival": rival, "ours_ns": mine * 1e9, "rival_ns": their * 1e9,
           "ratio": ratio, **more}
    results.append({key: None if value != value else value for key, value in row.items()})  # JSON has no NaN
    print(f"{model:28s} {quantity:30s} {mine * 1e9:10.1f} ns   {rival:24s} {their * 1e9:12.1f} ns   ratio {ratio:7.1f}")


def without_avx512(options: argparse.Namespace) -> dict[str, Any]:
    """The same in a process whose kernels are for AVX2; robots and chains against Pinocchio only."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "avx2.json"
        for part in ("robots", "chains") if options.only is None else (options.only,):  # never "others"
            command = [sys.executable, __file__, "--avx2", "--only", part, "--json", str(file.with_stem(part))]
            command += ["--states", str(options.states), *(["--quick"] if options.quick else [])]
            subprocess.run(command, check=True)
        parts = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"), reverse=True)]
    return {"machine": parts[0]["machine"], "results": [row for part in parts for row in part["results"]]}


def merged(found: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What was found, with the rows of other parts from before; chains last."""
    new = {(row["model"], row["quantity"], row["rival"]) for row in found["results"]}
    kept = [row for row in before.get("results", []) if (row["model"], row["quantity"], row["rival"]) not in new]
    rows = [*kept, *found["results"]]
    chains = [row for row in rows if row["model"].startswith("chain")]
    return {**before, **found, "results": [*(row for row in rows if row not in chains), *chains]}


def plot(results: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 4))
    for quantity, mark in (("inverse dynamics", "o"), ("forward dynamics", "s")):
        rows = [r for r in results if r["model"].startswith("chain") and r["quantity"] == quantity]
        n = [int(r["model"].split()[-1]) for r in rows]
        axes.loglog(n, [r["ours_ns"] / 1e3 for r in rows], f"{mark}-", label=f"polybody, {quantity}")
        theirs = [(r["rival_ns"] or float("nan")) / 1e3 for r in rows]
        axes.loglog(n, theirs, f"{mark}--", label=f"Pinocchio, {quantity}", alpha=0.7)
    axes.set(xlabel="links", ylabel="microseconds a state, one thread", title="Serial chains")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=16384)
    parser.add_argument("--quick", action="store_true", help="fewer robots and shorter chains")
    parser.add_argument(
        "--toolbox", default=os.environ.get("RTB_PYTHON"), help="a python with robotics-toolbox-python ($RTB_PYTHON)"
    )
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "dynamics.json")
    parser.add_argument("--only", choices=("robots", "others", "chains"), help="part of it")
    parser.add_argument("--avx2", action="store_true", help="as on a processor without AVX-512")
    options = parser.parse_args()
    if options.avx2:
        os.environ["POLYBODY_TARGET"] = "avx2"
    results: list[dict[str, Any]] = []
    where = machine()
    print(f"{where['llvm_cpu']}, {where['lanes']} lanes, load {where['load_before']}")
    if options.only in (None, "robots"):
        for name in ("UR5", ARM) if options.quick else ("UR5", ARM, "Panda", "G1", "TALOS"):
            against_pinocchio(name, options.states, results)
    if options.only in (None, "others"):
        against_pinocchio("Panda", options.states, results, couplings=False)
        against_mujoco(options.states, results)
        two_threads(options.states, results)
        toolbox(results, options.toolbox)
        anchors.compared(partial(record, results))
    if options.only in (None, "chains"):
        against_chains([10, 50] if options.quick else [10, 20, 50, 100, 200, 400, 1000], results)
    found: dict[str, Any] = {"machine": where, "results": results}
    before = json.loads(options.json.read_text()) if options.only and options.json.exists() else {}
    if not options.avx2 and where["lanes"] > 4 and options.only != "others":
        print("the same without AVX-512", flush=True)
        found["avx2"] = merged(without_avx512(options), before.get("avx2", {}))
    found = merged(found, before)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(found, indent=1) + "\n")
    if any(row["model"].startswith("chain") for row in results):
        plot(found["results"], options.json.with_suffix(".png"))
    print(f"written: {options.json}")


if __name__ == "__main__":
    sys.exit(main())
