"""Real SIGINTs at random times in every long call: `python tests/faults/interrupts.py --count 100`, or one by name.

Each call runs in a process of its own, again and again, and is interrupted at a random time after its start. What is
asked: the call ends within half a second (`KeyboardInterrupt`, or for `pb.simulate` the run until then), the process
lives on, and the same call on a small problem answers as it did before.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import polybody as pb

LATENCY = 0.5  # seconds from the signal to the end of the call
METHODS = ("rk4", "semi-implicit", "dop853", "midpoint", "radau", "cvodes", "idas")

#: (a call that takes long, the same call on a small problem)
Pair = tuple[Callable[[], Any], Callable[[], Any]]


def simulation(method: str) -> Pair:
    arm = pb.load("puma560")
    q = np.array([0.1, 0.3, -0.2, 0.4, 0.5, 0.2])

    def run(duration: float) -> Any:
        return pb.simulate(arm, duration, q, method=method).q[-1]

    return lambda: run(400.0), lambda: run(0.01)


def with_loops(method: str) -> Pair:
    machine = pb.load("stewart")
    q = machine.assemble(hold=["platform_joint"])

    def run(duration: float) -> Any:
        return pb.simulate(machine, duration, q, method=method, limits="ignore").q[-1]

    return lambda: run(400.0), lambda: run(0.01)


def batch() -> Pair:
    arm = pb.load("puma560")
    x = np.random.default_rng(0).uniform(-1, 1, (3, 1_500_000, 6))
    return lambda: arm.forward_dynamics(*x), lambda: arm.forward_dynamics(*x[:, :10])


def rollout() -> Pair:
    arm = pb.load("puma560")
    q = np.random.default_rng(0).uniform(-1, 1, (600, 6))
    return lambda: pb.rollout(arm, q, 0 * q, steps=20_000), lambda: pb.rollout(arm, q[:4], 0 * q[:4], steps=10).q


def assembly() -> Pair:
    machine = pb.load("stewart")
    guess = machine.neutral() + np.random.default_rng(0).normal(0, 0.02, (40_000, machine.nq))
    return lambda: machine.assemble(guess), lambda: machine.assemble()


def inverse_kinematics() -> Pair:
    arm = pb.load("puma560")
    frame = arm.frame_names[-1]
    goals = arm.pose(arm.random_configuration(np.random.default_rng(0), size=60_000), frame)
    return lambda: pb.inverse_kinematics(arm, {frame: goals}), lambda: pb.inverse_kinematics(arm, {frame: goals[:5]}).q


CALLS: dict[str, Callable[[], Pair]] = {
    "batch": batch,
    "rollout": rollout,
    "assemble": assembly,
    "inverse_kinematics": inverse_kinematics,
    **{f"simulate:{method}": lambda method=method: simulation(method) for method in METHODS},
    **{f"loops:{method}": lambda method=method: with_loops(method) for method in METHODS if method != "midpoint"},
}


def interrupted(name: str, count: int) -> list[float]:
    """Latencies of `count` interrupts of a call."""
    warnings.simplefilter("ignore")
    long, small = CALLS[name]()
    before = small()
    rng, latencies = random.Random(name), list[float]()
    while len(latencies) < count:
        sent: list[float] = []
        over = threading.Event()

        def interrupt(sent: list[float] = sent, over: threading.Event = over) -> None:
            time.sleep(rng.uniform(0.01, 0.15))
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)
            while not over.wait(1.0):  # lost where Python ignores exceptions (finalizers): sent again, counted as late
                os.kill(os.getpid(), signal.SIGINT)

        sender = threading.Thread(target=interrupt)
        ended = 0.0
        try:
            sender.start()
            long()
            ended = time.perf_counter()
            while not sent:  # where the call was over before the signal came, it comes here
                time.sleep(0.001)
            time.sleep(0.01)
        except KeyboardInterrupt:
            ended = ended or time.perf_counter()
        over.set()
        sender.join()
        if sent[0] < ended:
            latencies.append(ended - sent[0])
    np.testing.assert_allclose(small(), before, rtol=0, atol=1e-12)
    return sorted(latencies)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--work", choices=CALLS, help=argparse.SUPPRESS)
    parser.add_argument("call", nargs="*", help=f"of {', '.join(CALLS)}; default all")
    chosen = parser.parse_args()
    if chosen.work:
        print(*interrupted(chosen.work, chosen.count))
        return 0
    failed = 0
    for name in chosen.call or CALLS:
        child = subprocess.run(
            [sys.executable, __file__, "--work", name, "--count", str(chosen.count)], capture_output=True, text=True
        )
        times = [float(word) for word in child.stdout.split()]
        late = sum(x > LATENCY for x in times)
        failed += child.returncode != 0 or late > 0
        last = child.stderr.strip().splitlines()[-1:] if child.returncode else ""
        middle = f"median {np.median(times):.3f} s, longest {times[-1]:.3f} s" if times else ""
        print(f"{name:24s} {len(times)} interrupts, {late} late, {middle} exit {child.returncode} {last}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
