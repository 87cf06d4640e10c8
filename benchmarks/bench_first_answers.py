"""First answers: seconds from a loaded model to the first result of a call, each in a fresh process on an empty cache.

    python benchmarks/bench_first_answers.py [ROBOT …] [--json benchmarks/results/first_answers.json]

Imports of CasADi and LLVM, which the first call makes, are counted; `import polybody` and `pb.load` are not. Python's
own bytecode of modules is there, as after any installation. Beside it the same call with POLYBODY_TIER=optimised, which
waits for compiled code, with `--optimised`. The least of `--rounds` runs is told: other processes only make one longer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rivals import FILES, machine, robots

CALLS = {
    "inverse_dynamics": "q, v, v", "forward_dynamics": "q, v, v", "mass_matrix": "q", "coriolis_matrix": "q, v",
    "bias_forces": "q, v", "energy": "q, v", "poses": "q", "inverse_mass_matrix": "q",
    "inverse_dynamics_derivatives": "q, v, v", "forward_dynamics_derivatives": "q, v, v",
}  # fmt: skip
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", default=["UR5", "G1", "TALOS", "stewart"])
    parser.add_argument("--optimised", action="store_true")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "first_answers.json")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
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
