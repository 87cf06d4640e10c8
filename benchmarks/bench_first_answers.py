"""First answers: seconds from a loaded model to the first result of a call, each in a fresh process on an empty cache.

    python benchmarks/bench_first_answers.py [ROBOT …] [--calls NAME … | --commands] [--json results/first_answers.json]

Every quantity of the table and the public calls of `first_calls.py`. Imports of CasADi and LLVM, which the first call
makes, are counted; `import polybody` and `pb.load` are not. Python's own bytecode of modules is there, as after any
installation. Beside it the same call with POLYBODY_TIER=optimised, which waits for compiled code, with `--optimised`.
The least of `--rounds` runs is reported: other processes only make one longer. A call that a model cannot answer (a
floating robot has no holding forces) is listed with the message.
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

import numpy as np
from first_calls import CALLS, COMMANDS, limit, quantities
from rivals import FILES, machine, robots

import polybody as pb

BASES = {False: "fixed", True: "floating"}
MODELS = ["UR5", "Panda", "G1", "TALOS", "stewart", "delta", "3-rrr", "hybrid", "bricard", "two-arms", "humanoid"]
SCRIPT = """
import os, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
import polybody as pb
source, base, given, text, folder = sys.argv[1:]
model = pb.load(source, base=base) if base else pb.load(source)
given = np.load(given)
q, pose = given["q"], given["pose"]
v = tau = np.zeros(model.nv)
frame = model.frame_names[-1]
joint = next(name for name, (own, _) in model.joint_slices().items() if own.stop - own.start == 1)
port = 20000 + os.getpid() % 20000
place = model.joint_slices()[joint][0].start
def recorded():
    if "tau" not in given:
        raise pb.InputError("recordings of this benchmark are of trees whose coordinates are plain numbers")
    return {"t": given["t"], "q": given["q_t"], "v": given["v_t"], "tau": given["tau"]}
from polybody.description.records import Body
box = Body("held box", 1.0, inertia=0.01 * np.eye(3))
def asked(name):
    from polybody.model.engine import Request
    from polybody.quantities.table import quantity
    chosen = quantity(model.mechanism, name)
    values = {"q": q, "q0": q, "q1": q, "multipliers": np.zeros(int(given["rows"]))}
    return model.engine.answer(Request(chosen, tuple(values.get(x, v) for x in chosen.arguments)))
code = compile(text, "call", "eval")
begun, used = time.perf_counter(), time.thread_time()
try:
    eval(code)
except (pb.PolybodyError, ImportError) as error:
    print("refused:", str(error).splitlines()[0])
else:
    print(time.perf_counter() - begun, time.thread_time() - used)
"""


def loaded(name: str) -> tuple[pb.Model, str, str]:
    """(model, what a process loads, its base)."""
    file, floating = FILES.get(name, (None, False))
    source, base = (name, "") if file is None else (str(robots() / file), BASES[floating])
    return pb.load(source, base=base or None), source, base


def once(source: str, base: str, given: str, text: str, tier: str, bytecode: str) -> tuple[float, float] | str:
    """Seconds on the clock and of the calling thread's processor time, or why there is no answer."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment = {**kept, "POLYBODY_CACHE": cache, "POLYBODY_TIER": tier, "PYTHONPYCACHEPREFIX": bytecode}
        command = [sys.executable, "-c", SCRIPT, source, base, given, text, folder]
        found = subprocess.run(command, env=environment, capture_output=True, text=True)
    if found.returncode:
        return "failed: " + found.stderr.strip().splitlines()[-1]
    told = found.stdout.strip().splitlines()[-1]
    if told.startswith("refused"):
        return told
    wall, used = map(float, told.split())
    return wall, used


def recording(model: pb.Model, q: np.ndarray) -> dict[str, np.ndarray]:
    """A motion of 2 s with friction, where coordinates are plain numbers; nothing elsewhere."""
    if model.nq != model.nv or len(model.constraints):
        return {}
    t, rates = np.linspace(0, 2, 201), 2 + np.arange(model.nv) % 7
    angle = np.outer(t, rates)
    v = 0.3 * rates * np.cos(angle)
    tau = model.inverse_dynamics(q + 0.3 * np.sin(angle), v, -0.3 * rates**2 * np.sin(angle)) + 0.4 * v
    return {"t": t, "q_t": q + 0.3 * np.sin(angle), "v_t": v, "tau": tau}


def measured(name: str, options: argparse.Namespace, bytecode: str, warm: set[str]) -> list[dict[str, Any]]:
    """Rows of all calls of one robot."""
    rows: list[dict[str, Any]] = []
    model, source, base = loaded(name)
    calls = {**quantities(model.frame_names), **CALLS}
    with tempfile.TemporaryDirectory() as folder:
        given = f"{folder}/state.npz"
        q = model.assemble()
        pose = model.pose(q, model.frame_names[-1])
        values = {"q": q, "pose": pose, "rows": np.array(len(model.constraints)), **recording(model, q)}
        np.savez(given, allow_pickle=False, **values)
        for call in options.calls or calls:
            if call not in warm:
                once(source, base, given, calls[call], "auto", bytecode)  # bytecode and pages of the files
                warm.add(call)
            times = [once(source, base, given, calls[call], "auto", bytecode) for _ in range(options.rounds)]
            row: dict[str, Any] = {"model": name, "call": call}
            if isinstance(times[0], str):
                row["no_answer"] = times[0]
                print(f"{name:10s} {call:34s} {times[0]}", flush=True)
            else:
                wall, used = (min(column) for column in zip(*times, strict=True))
                row |= {"seconds": wall, "cpu_seconds": used, "late": wall > limit(call)}
                if options.optimised:
                    row["optimised_seconds"] = once(source, base, given, calls[call], "optimised", bytecode)[0]
                late = "  LATE" if row["late"] else ""
                print(f"{name:10s} {call:34s} {wall:.3f} s, processor {used:.3f} s{late}", flush=True)
            rows.append(row)
    return rows


def commanded(name: str, options: argparse.Namespace, bytecode: str) -> list[dict[str, Any]]:
    """Rows of the commands, from the start of a process to its end."""
    rows: list[dict[str, Any]] = []
    _, source, base = loaded(name)
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for command in options.calls or COMMANDS:
        times = []
        for _ in range(options.rounds + 1):  # the first for bytecode and pages of the files
            with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
                words = COMMANDS[command].format(model=source, folder=folder).split()
                words += ["--base", base] if base and source in words else []
                environment = {**kept, "POLYBODY_CACHE": cache, "PYTHONPYCACHEPREFIX": bytecode}
                begun = time.perf_counter()
                found = subprocess.run([sys.executable, "-m", "polybody", *words], env=environment, capture_output=True)
                times.append(time.perf_counter() - begun)
        row: dict[str, Any] = {"model": name, "call": f"polybody {command}"}
        row |= {"no_answer": found.stderr.decode().strip()} if found.returncode else {"seconds": min(times[1:])}
        print(f"{name:10s} polybody {command:25s} {row.get('no_answer') or f'{min(times[1:]):.3f} s'}", flush=True)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", default=MODELS)
    parser.add_argument("--calls", nargs="*", default=[])
    parser.add_argument("--commands", action="store_true", help="the command line instead of calls")
    parser.add_argument("--optimised", action="store_true")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "first_answers.json")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--bytecode", help="folder of Python's bytecode, kept between runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        warm = set({**CALLS, **quantities(["world", "world"])}) if options.bytecode else set[str]()
        folder = options.bytecode or own
        rows = [
            row
            for name in options.robots
            for row in (commanded(name, options, folder) if options.commands else measured(name, options, folder, warm))
        ]
    late = [row for row in rows if row.get("late")]
    print(f"{len(rows)} calls, {len(late)} late")
    kept = json.loads(options.json.read_text())["results"] if options.json.exists() else []
    now = {(row["model"], row["call"]): row for row in (*kept, *rows)}  # others' rows stay
    options.json.write_text(json.dumps({"machine": machine(), "results": list(now.values())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
