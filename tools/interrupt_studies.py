"""Interrupt `polybody study` at random times, resume it, and compare its files with those of an uninterrupted run.

    python tools/interrupt_studies.py [how many] [seed] [INT, TERM or KILL] [kinds: lanes,rollouts,processes,ray]

INT goes to all processes of the group, as from a terminal; TERM and KILL to the driver alone. Signals are sent at a
random time after the folder of the results exists, and until so many of each kind met a study under way: not all of its
chunks were there when it ended. Prints one line per signal, and exits with 1 where files differ, half-written ones are
left after resuming, or a worker outlives its driver. Times in which this process itself did not run (the machine was
busy, or all were paused) are not counted. `ray` starts a cluster of two nodes on this machine.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STUDIES = {
    "lanes": ([], """
vary:
  payload.mass: {uniform: [0, 3]}
  q: {uniform: [[-1, -1, -1, -1, -1, -1], [1, 1, 1, 1, 1, 1]]}
samples: 1000000
chunk: 16384
do: {quantity: forward_dynamics}
"""),
    "rollouts": ([], """
vary: {link2.mass: {uniform: [15, 20]}, kp: {uniform: [10, 40]}}
samples: 20000
chunk: 256
do: {rollout: {steps: 1000, dt: 0.001, method: semi-implicit, controller: {kd: 0.5, target: 0.1}}}
keep: [q_end]
"""),
    "processes": (["--workers", "2"], """
vary: {link2.mass: {uniform: [15, 20]}}
samples: 400
chunk: 8
do: {simulate: {duration: 0.3, q0: 0.3, method: dop853, limits: ignore}}
keep: [q_end]
"""),
    "ray": (["--cluster", "ADDRESS"], """
vary: {link2.mass: {uniform: [15, 20]}}
samples: 400
chunk: 8
do: {simulate: {duration: 0.3, q0: 0.3, method: dop853, limits: ignore}}
keep: [q_end]
"""),
}  # fmt: skip
HEAD = "study: 1\nname: interrupted\nmodel: puma560\npayload: {frame: link6, mass: 1}\n"


class Clock:
    """Seconds in which this process ran: gaps of its heart beat are left out."""

    def __init__(self) -> None:
        self.now = 0.0
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        last = time.perf_counter()
        while True:
            time.sleep(0.01)
            now = time.perf_counter()
            self.now, last = self.now + min(now - last, 0.1), now


def command(kind: str, folder: Path, *more: str) -> list[str]:
    file = folder.parent / f"{kind}.yaml"
    return [sys.executable, "-m", "polybody", "study", str(file), "-o", str(folder), *STUDIES[kind][0], *more]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "chunks").iterdir()}


def alive(group: int) -> list[int]:
    """Processes of the group that still run."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, _, own = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(own) == group and state != "Z":
            found.append(int(name))
    return found


def one(kind: str, number: signal.Signals, folder: Path, after: float, clock: Clock) -> tuple[float, str, list[int]]:
    """Signal a study some seconds after its folder was made: (how long it took to end, its last line, who is left)."""
    process = subprocess.Popen(command(kind, folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)  # fmt: skip
    while not (folder / "study.json").exists() and process.poll() is None:
        time.sleep(0.002)
    begun = clock.now
    while clock.now - begun < after and process.poll() is None:
        time.sleep(0.01)
    signalled = clock.now
    if process.poll() is not None:
        pass  # it was faster
    elif number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    process.wait()
    ended = clock.now - signalled
    while alive(process.pid) and clock.now - signalled < ended + 10:  # workers that start end when they have imported
        time.sleep(0.02)
    left = alive(process.pid)
    print(f"  its processes had ended {clock.now - signalled - ended:.2f} s after it" if not left else "  some go on")
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert process.stdout is not None
    said = process.stdout.read().strip().splitlines()
    return ended, said[-1].strip() if said else "", left


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    number = signal.Signals[f"SIG{sys.argv[3]}" if len(sys.argv) > 3 else "SIGINT"]
    kinds = sys.argv[4].split(",") if len(sys.argv) > 4 else list(STUDIES)
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    clock, wrong = Clock(), 0
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        if "ray" in kinds:
            sys.path[:0] = [str(ROOT), str(ROOT / "src")]
            from tests.studies.cluster import two_nodes

            STUDIES["ray"][0][1] = stack.enter_context(two_nodes()).address
        for kind in kinds:
            wrong += series(kind, number, count, Path(temporary), rng, clock)
    return int(wrong > 0)


def series(kind: str, number: signal.Signals, count: int, temporary: Path, rng: random.Random, clock: Clock) -> int:
    """Signals until so many met the study under way: how many datasets were wrong."""
    (temporary / f"{kind}.yaml").write_text(HEAD + STUDIES[kind][1])
    whole = temporary / f"{kind}-whole"
    subprocess.run(command(kind, whole, "--json"), check=True, capture_output=True)
    wanted = contents(whole)
    written = [path.stat().st_mtime for path in (whole / "chunks").iterdir()]
    most = max(written) - (whole / "study.json").stat().st_mtime
    times, wrong, met, sent = [], 0, 0, 0
    while met < count and sent < 3 * count:
        sent += 1
        folder, after = temporary / f"{kind}{sent}", rng.uniform(0, most)
        ended, said, left = one(kind, number, folder, after, clock)
        chunks = len(list((folder / "chunks").glob("part-*")))
        under_way = chunks < len(wanted)
        subprocess.run(command(kind, folder, "--json", "--resume"), check=True, capture_output=True)
        good = contents(folder) == wanted and not left
        wrong, met = wrong + (not good), met + under_way
        if under_way:
            times.append(ended)
        verdict = "whole and equal" if good else f"WRONG, left: {left}"
        print(f"{kind} {sent:3} {number.name} after {after:.2f} s, ended after {ended:.2f} s, {chunks} of "
              f"{len(wanted)} chunks there, {verdict} ({said:.60})", flush=True)  # fmt: skip
        subprocess.run(["rm", "-r", str(folder)], check=True)
    print(f"{kind}: {number.name} met {met} studies under way (of {sent}), which ended after "
          f"{min(times, default=0):.2f} to {max(times, default=0):.2f} s; "
          f"{sent - wrong} of {sent} whole and equal", flush=True)  # fmt: skip
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
