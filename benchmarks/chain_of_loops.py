"""What a chain of four-bars costs against its length: set-up, compilation, operations, one step of a simulation.

    python benchmarks/chain_of_loops.py COUNT        one chain, as JSON (bench_loops.py runs it in fresh processes)

Nothing is taken from the cache of compiled code. Set-up and compilation are in seconds of the processor.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

STEPS, DT = 400, 2.5e-3


def measured(count: int) -> dict[str, float]:
    """Seconds and operations of one chain of `count` loops."""
    import polybody as pb
    from machines import four_bar_chain
    from polybody.kernels.counts import operation_counts

    pb.load("four-bar").forward_dynamics(np.zeros(3), np.zeros(3), np.zeros(3))  # imports, and the runtime itself
    start = time.process_time()
    model = four_bar_chain(count)
    v = np.array([-1.0 if joint.name.startswith("base") else 1.0 for joint in model.mechanism.joints])
    q, rest = model.neutral(), np.zeros(model.nv)
    model.casadi("forward_dynamics")  # a general place, the order of elimination; kernels of φ and J
    model.mobility(q)
    planned = time.process_time()
    model.forward_dynamics(q, v, rest)
    model.constraints.projection_step(q, v)
    compiled = time.process_time()
    operations = operation_counts(model.casadi("forward_dynamics")).total  # diagnostics included
    states = np.tile(q, (4096, 1)), np.tile(v, (4096, 1)), np.zeros((4096, model.nv))
    with pb.threads(1):
        model.forward_dynamics(*states)
        batch = min(_timed(lambda: model.forward_dynamics(*states)) for _ in range(5)) / 4096
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):  # the first ones wait for their code
            motion = pb.simulate(model, STEPS * DT, q, v, method="rk4", dt=DT, sample=0.1)
    return {
        "loops": count, "setup_s": planned - start, "compile_s": compiled - planned, "operations": operations,
        "forward_us": batch * 1e6, "step_us": motion.audit.seconds / STEPS * 1e6,
        "loop_error": motion.audit.loop_error, "energy_error": motion.audit.energy_error_relative,
    }  # fmt: skip


def _timed(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"POLYBODY_CACHE": folder, "POLYBODY_TIER": "optimised"}
        print(json.dumps(measured(int(sys.argv[1]))))
