"""Forward dynamics of the Stewart platform: states a second, one thread, against Pinocchio's constraintDynamics.

    python benchmarks/bench_loops.py

Both get the same 4096 closed states as arrays; Pinocchio has no batched call for constraints, so that its own is called
in a Python loop (some 1 µs a call of what is measured). Answers are compared before they are timed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import polybody as pb
from polybody.analysis.constraints.ranks import null_space

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "engines")]


def best(call, repeat: int = 5) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    from test_loops_against_pinocchio import Twin, pin

    model, rng, count = pb.load("stewart"), np.random.default_rng(0), 4096
    q0 = model.close()
    Z = null_space(model.constraint_jacobian(q0))
    some = model.close(np.array([model.integrate(q0, 0.1 * (Z @ rng.normal(size=Z.shape[1]))) for _ in range(64)]))
    q = np.tile(some, (count // 64, 1))
    v = model.close_velocity(q, rng.normal(size=(count, model.nv)))
    tau = rng.normal(size=(count, model.nv)) * 20
    twin = Twin(model)
    a = model.forward_dynamics(q, v, tau)
    error = max(np.abs(a[k] - twin.accelerations(q[k], v[k], tau[k])).max() for k in range(0, count, 400))
    with pb.threads(1):
        ours = best(lambda: model.forward_dynamics(q, v, tau)) / count
        back = best(lambda: model.inverse_dynamics(q, v, np.array(a))) / count
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
    print(f"Pinocchio forward  {theirs * 1e6:8.3f} us a state   ratio {theirs / ours:.1f}")


if __name__ == "__main__":
    main()
