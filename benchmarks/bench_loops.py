"""The Stewart platform: forward dynamics of a state, one thread, against Pinocchio's constraintDynamics; then inverse
dynamics, mass matrix and derivatives, which Pinocchio has not for loops.
Then chains of four-bars: what their length costs.

    python benchmarks/bench_loops.py [chain]         only the chains

Both get the same 4096 closed states as arrays; Pinocchio has no batched call for constraints, so that its own is called
in a Python loop (some 1 µs a call of what is measured). Answers are compared before they are timed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import polybody as pb
from polybody.constraints.ranks import null_space

LENGTHS = (5, 10, 20, 40, 80)
TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "engines")]


def best(call, repeat: int = 5) -> float:
    call()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    from test_loops_against_pinocchio import Twin, pin

    model, rng, count = pb.load("stewart"), np.random.default_rng(0), 4096
    q0 = model.assemble()
    Z = null_space(model.constraints.jacobian(q0))
    some = model.assemble(np.array([model.integrate(q0, 0.1 * (Z @ rng.normal(size=Z.shape[1]))) for _ in range(64)]))
    q = np.tile(some, (count // 64, 1))
    v = model.assemble_velocity(q, rng.normal(size=(count, model.nv)))
    tau = rng.normal(size=(count, model.nv)) * 20
    twin = Twin(model)
    a = model.forward_dynamics(q, v, tau)
    error = max(np.abs(a[k] - twin.accelerations(q[k], v[k], tau[k])).max() for k in range(0, count, 400))
    with pb.threads(1):
        ours = best(lambda: model.forward_dynamics(q, v, tau)) / count
        back = best(lambda: model.inverse_dynamics(q, v, np.array(a))) / count
        mass = best(lambda: model.mass_matrix(q)) / count
        changes = best(lambda: model.forward_dynamics_derivatives(q, v, tau)) / count
    theirs_q = [twin.q(x) for x in q[:512]]
    theirs_v, theirs_tau = v[:512] @ twin.P.T, tau[:512] @ twin.P.T
    settings = pin.ProximalSettings(1e-12, 0.0, 1)

    def loop() -> None:
        for x, y, z in zip(theirs_q, theirs_v, theirs_tau, strict=True):
            pin.constraintDynamics(twin.model, twin.data, x, y, z, twin.contacts, twin.contact_data, settings)

    theirs = best(loop) / 512
    print(f"largest difference {error:.1e} rad/s² or m/s² of {np.abs(a).max():.1f}")
    print(f"polybody forward   {ours * 1e6:8.3f} us a state")
    print(f"polybody inverse   {back * 1e6:8.3f} us a state")
    print(f"polybody mass matrix {mass * 1e6:6.3f} us a state; derivatives of forward dynamics {changes * 1e6:.3f} us")
    print(f"Pinocchio forward  {theirs * 1e6:8.3f} us a state   ratio {theirs / ours:.1f}")


def chains(path: Path) -> None:
    """Each length in a process of its own, as a table, a file and a plot."""
    results = []
    script = Path(__file__).with_name("chain_of_loops.py")
    widths = {"loops": 6, "set-up s": 10, "compile s": 11, "operations": 12, "forward us": 12, "step us": 10}
    print("\n" + "".join(f"{title:>{width}}" for title, width in widths.items()) + f"{'loop error':>12}")
    for count in LENGTHS:
        told = subprocess.run(
            [sys.executable, str(script), str(count)], capture_output=True, text=True, check=True,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # waiting threads would count as work
        )
        found = json.loads(told.stdout)
        results.append(found)
        print(
            f"{count:6d}{found['setup_s']:10.2f}{found['compile_s']:11.2f}{found['operations']:12d}"
            f"{found['forward_us']:12.2f}{found['step_us']:10.0f}{found['loop_error']:12.1e}", flush=True,
        )
    path.write_text(json.dumps(results, indent=1) + "\n")
    plot(results, path.with_suffix(".png"))
    print(f"written: {path} and {path.with_suffix('.png')}")


def plot(results: list[dict[str, float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = {
        "operations of forward dynamics": "operations", "forward dynamics, µs a state": "forward_us",
        "one step of rk4, projection included, µs": "step_us", "set-up, s": "setup_s", "compilation, s": "compile_s",
    }
    loops = np.array([r["loops"] for r in results])
    figure, axes = plt.subplots(1, len(shown), figsize=(3.2 * len(shown), 3), layout="constrained")
    for ax, (title, key) in zip(axes, shown.items(), strict=True):
        values = np.array([r[key] for r in results])
        ax.plot(loops, values, "o-")
        ax.plot(loops, np.polyval(np.polyfit(loops, values, 1), loops), "k:", lw=1)
        ax.set(title=title, xlabel="four-bars", ylim=(0, None))
        ax.title.set_size(9)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    if sys.argv[1:] != ["chain"]:
        main()
    chains(Path(__file__).parent / "results" / "chain.json")
