"""Real SIGINTs at random times in every long call: `python tests/faults/interrupts.py --count 100`, or some by name.

Each call (`long_calls.py`) runs in a process of its own, again and again, and is interrupted at a random time after its
start. What is asked: the call ends within half a second (`KeyboardInterrupt`, or for `pb.simulate` the run until then),
the process lives on, and the same call on a small problem answers as it did before. A signal that has not ended the
call within a second, of which the process computed a half, is sent again and counted as lost. Beside each latency
stands what the process computed meanwhile: on a busy machine a process waits for its turn, which is no delay of ours.
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

import numpy as np
from long_calls import CALLS

LATENCY = 0.5  # seconds from the signal to the end of the call
LOST = 5.0  # seconds after which a signal is lost, whatever was computed meanwhile
TIMES = 0.005, 0.1  # seconds from the start of the call to the signal
MOST = 300.0  # seconds for one call's interrupts


def interrupted(name: str, count: int) -> list[tuple[float, float]]:
    """(latency, seconds computed meanwhile) of `count` interrupts of a call."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs in the background without it
    long, small = CALLS[name]()
    before = small()
    rng, latencies, lost = random.Random(name), list[tuple[float, float]](), 0
    while len(latencies) < count:
        sent: list[tuple[float, float]] = []
        over = threading.Event()

        def interrupt(sent: list[tuple[float, float]] = sent, over: threading.Event = over) -> None:
            nonlocal lost
            time.sleep(rng.uniform(*TIMES))
            sent.append((time.perf_counter(), time.process_time()))
            os.kill(os.getpid(), signal.SIGINT)
            while not over.wait(1.0):
                begun, computed = sent[0]
                if time.process_time() - computed > LATENCY or time.perf_counter() - begun > LOST:
                    lost += 1
                    os.kill(os.getpid(), signal.SIGINT)

        sender = threading.Thread(target=interrupt)
        ended = (0.0, 0.0)
        try:
            sender.start()
            long()
            ended = (time.perf_counter(), time.process_time())
            while not sent:  # where the call was over before the signal came, it comes here
                time.sleep(0.001)
            time.sleep(0.01)
        except KeyboardInterrupt:
            ended = ended if ended[0] else (time.perf_counter(), time.process_time())
        over.set()
        sender.join()
        if sent[0][0] < ended[0]:
            latencies.append((ended[0] - sent[0][0], ended[1] - sent[0][1]))
    np.testing.assert_allclose(small(), before, rtol=0, atol=1e-12)
    if lost:
        print(f"{lost} signals sent again", file=sys.stderr)
    return sorted(latencies)


def measured(name: str, count: int) -> tuple[list[float], list[float], int, str]:
    """(latencies, seconds computed meanwhile, exit code, last words) of a process for one call."""
    command = [sys.executable, __file__, "--work", name, "--count", str(count)]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=MOST)
    except subprocess.TimeoutExpired:
        return [], [], -1, f"not over after {MOST:g} s"
    pairs = [tuple(map(float, word.split("/"))) for word in child.stdout.split()]
    last = (child.stderr.strip().splitlines() or [""])[-1]
    return [a for a, _ in pairs], [b for _, b in pairs], child.returncode, last


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--work", choices=CALLS, help=argparse.SUPPRESS)
    parser.add_argument("call", nargs="*", help=f"of {', '.join(CALLS)}; default all")
    chosen = parser.parse_args()
    if chosen.work:
        print(*(f"{a:.6f}/{b:.6f}" for a, b in interrupted(chosen.work, chosen.count)))
        return 0
    failed = interrupts = 0
    for name in chosen.call or CALLS:
        began = time.perf_counter()
        times, computed, code, last = measured(name, chosen.count)
        late = [k for k, x in enumerate(times) if x > LATENCY]
        ours = [k for k in late if computed[k] > LATENCY]
        failed += code != 0 or bool(late) or bool(last)
        interrupts += len(times)
        middle = f"median {np.median(times):.3f} s, longest {times[-1]:.3f} s," if times else ""
        print(f"{name:22s} {len(times)} interrupts, {len(late)} late ({len(ours)} while computing), {middle}"
              f" exit {code} {last} [{time.perf_counter() - began:.1f} s]", flush=True)  # fmt: skip
    print(f"{interrupts} interrupts; {failed} calls with one that was late or lost")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
