"""First answers: seconds from a loaded model to the first result of a call, each in a fresh process on an empty cache.

    python benchmarks/bench_first_answers.py [ROBOT …] [--json benchmarks/results/first_answers.json] [--every]

Imports of CasADi and LLVM, which the first call makes, are counted; `import polybody` and `pb.load` are not. Python's
own bytecode of modules is there, as after any installation. Beside it the same call with POLYBODY_TIER=optimised, which
waits for compiled code, with `--optimised`. `--every` asks for every quantity of the table, each in a fork of a process
that has imported polybody and nothing that compiles. The least of `--rounds` runs is told: other processes only make
one longer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rivals import FILES, machine, robots

CALLS = {
    "inverse_dynamics": "q, v, v", "forward_dynamics": "q, v, v", "mass_matrix": "q", "coriolis_matrix": "q, v",
    "bias_forces": "q, v", "energy": "q, v", "poses": "q", "inverse_mass_matrix": "q",
    "inverse_dynamics_derivatives": "q, v, v", "forward_dynamics_derivatives": "q, v, v",
}  # fmt: skip
BASES = {False: "fixed", True: "floating"}
SCRIPT = """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import polybody as pb
model = pb.load(sys.argv[1], base=sys.argv[2]) if sys.argv[2] else pb.load(sys.argv[1])
q = model.assemble() if model.mechanism.constrained else model.neutral()
v = np.zeros(model.nv)
begun, used = time.perf_counter(), time.thread_time()
model.{call}({arguments})
print(time.perf_counter() - begun, time.thread_time() - used)
"""


def seconds(source: str, base: str, call: str, tier: str, bytecode: str) -> tuple[float, float]:
    """On the clock, and of the calling thread's processor time."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment = {**kept, "POLYBODY_CACHE": folder, "POLYBODY_TIER": tier, "PYTHONPYCACHEPREFIX": bytecode}
        script = SCRIPT.format(call=call, arguments=CALLS[call])
        command = [sys.executable, "-c", script, source, base]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    wall, used = map(float, found.stdout.split()[-2:])
    return wall, used


def every(name: str, rounds: int) -> list[dict[str, Any]]:
    """Rows of all quantities of one robot."""
    import polybody as pb
    from polybody.quantities.table import FAMILIES, QUANTITIES

    os.environ.pop("POLYBODY_TIER", None)
    file, floating = FILES.get(name, (None, False))
    load = lambda: pb.load(name) if file is None else pb.load(robots() / file, base=BASES[floating])  # noqa: E731
    frames = load().frame_names
    parameters = {"relative_pose": f":{frames[-1]}:{frames[1]}", "reactions": ":world"}
    framed = ("pose", "jacobian", "jacobian_rate", "frame_velocity", "frame_acceleration", "task_space_inertia")
    parameters |= dict.fromkeys((*framed, "influence"), f":{frames[-1]}")
    rows = []
    for family in (*QUANTITIES, *FAMILIES):
        asked = family + parameters.get(family, "")
        wall, used = (min(x) for x in zip(*(_forked(load, asked) for _ in range(rounds)), strict=True))
        late = wall > (1.0 if "derivatives" in family else 0.3)
        rows.append({"model": name, "call": asked, "seconds": wall, "cpu_seconds": used, "late": late})
        print(f"{name:8s} {asked:50s} {wall:.3f} s, processor {used:.3f} s{'  late' if late else ''}", flush=True)
    return rows


def _forked(load: Any, asked: str) -> tuple[float, float]:
    """(seconds on the clock, of the calling thread's processor time) of one answer."""
    import numpy as np

    from polybody.model.engine import Request
    from polybody.quantities.table import quantity

    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["POLYBODY_CACHE"] = folder
            model = load()
            chosen, rows = quantity(model.mechanism, asked), 0
            q = model.neutral()
            if model.mechanism.constrained:
                q, rows = model.assemble(), len(model.constraints)
                model = load()
            sizes = {"q": q, "q0": q, "q1": q, "multipliers": np.zeros(rows)}
            values = tuple(sizes.get(name, np.zeros(model.nv)) for name in chosen.arguments)
            begun, used = time.perf_counter(), time.thread_time()
            model.engine.answer(Request(chosen, values))
            told = f"{time.perf_counter() - begun} {time.thread_time() - used}"
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    answer = os.read(reading, 100).decode().split()
    os.close(reading)
    os.waitpid(child, 0)
    return float(answer[0]), float(answer[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", default=["UR5", "G1", "TALOS", "stewart"])
    parser.add_argument("--optimised", action="store_true")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "first_answers.json")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--every", action="store_true")
    options = parser.parse_args()
    if options.every:
        rows = [row for name in options.robots for row in every(name, options.rounds)]
    else:
        with tempfile.TemporaryDirectory() as bytecode:
            rows = measured(options, bytecode)
    options.json.write_text(json.dumps({"machine": machine(), "results": rows}, indent=1) + "\n")


def measured(options: argparse.Namespace, bytecode: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    seconds("puma560", "", "energy", "auto", bytecode)  # writes most of the bytecode
    seconds("stewart", "", "inverse_dynamics_derivatives", "auto", bytecode)
    for name in options.robots:
        file, floating = FILES.get(name, (None, False))
        source = name if file is None else str(robots() / file)
        base = "" if file is None else "floating" if floating else "fixed"
        for call in CALLS:
            times = [seconds(source, base, call, "auto", bytecode) for _ in range(options.rounds)]
            wall, used = (min(column) for column in zip(*times, strict=True))
            row: dict[str, Any] = {"model": name, "call": call, "seconds": wall, "cpu_seconds": used}
            if options.optimised:
                row["optimised_seconds"] = seconds(source, base, call, "optimised", bytecode)[0]
            rows.append(row)
            print("  ".join(f"{x:.3f} s" if isinstance(x, float) else f"{x:30s}" for x in row.values()), flush=True)
    return rows


if __name__ == "__main__":
    main()
