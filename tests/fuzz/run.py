"""Long runs of the fuzzers: `python tests/fuzz/run.py --minutes 60` (or `make fuzz MINUTES=60`), `--inputs N` at most.

Inputs are read in a process of its own, which is watched from here: it may raise, run out of memory, hang or crash, and
the run goes on behind the input that did it. Their files go to TMPDIR: a folder in memory is faster. Counted are inputs
(read, refused), crashes, hangs of more than 10 s, memory above 1 GB and exceptions other than `PolybodyError`; each
defect is printed with its kind and seed, and `--minutes 0 --kind K --seed N` repeats one of them here.
"""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import SystemRandom

from fuzz_inputs import KINDS, input_of

SECONDS, MEGABYTES = 10.0, 1000.0
#: inputs of one process: its memory is a high-water mark, so that a fresh one judges anew; starting it costs a second
BATCH = 5000
#: more of what is read in a tenth of a millisecond
BATCHES = {"expression": 5 * BATCH}


def work(kind: str, start: int) -> None:
    """Read inputs from seed `start` on; for each a line when it begins and one when it ends."""
    from fuzz_targets import attempt

    with tempfile.TemporaryDirectory() as folder:
        for seed in range(start, start + BATCHES.get(kind, BATCH)):
            print(f"> {seed}", flush=True)
            try:
                outcome = attempt(kind, input_of(kind, seed), Path(folder))
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                outcome = f"raised {type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error!s:.100}"
            print(f"< {high_water():.0f} {' '.join(outcome.split())}", flush=True)


def high_water() -> float:
    """The most memory this process has had, MB."""
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    scale = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def seconds_of(pid: int) -> float:
    """Seconds that a process has computed, or, where the system does not tell, the time: a busy machine is no hang."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return time.monotonic()


def watch(kind: str, start: int, counts: Counter[str], deadline: float) -> int:
    """Run one process until its batch or the time is over, or something is wrong; returns the seed to go on with."""
    command = [sys.executable, __file__, "--work", kind, "--seed", str(start)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        seed, rest, since = start, b"", seconds_of(process.pid) + 20  # the first input waits for imports
        heard = time.monotonic()
        wrong = ""
        while not wrong and time.monotonic() < deadline:
            select.select([process.stdout], [], [], 0.5)
            data = process.stdout.read()
            if data == b"":
                code = process.wait()
                wrong = f"crash, exit code {code}" if code else "done"
            *lines, rest = (rest + (data or b"")).split(b"\n")
            for line in lines:
                since, heard = seconds_of(process.pid), time.monotonic()
                mark, _, text = line.decode().partition(" ")
                if mark == ">":
                    seed = int(text)
                    continue
                used, _, outcome = text.partition(" ")
                counts["inputs"] += 1
                counts[f"{kind} {outcome if not outcome.startswith('raised') else 'raised'}"] += 1
                if outcome.startswith("raised"):
                    tell(kind, seed, outcome, counts, "exceptions")
                if float(used) > MEGABYTES:
                    wrong = f"memory of {used} MB"
            waits = time.monotonic() - heard > 12 * SECONDS
            if not wrong and (waits or seconds_of(process.pid) - since > SECONDS):
                wrong = f"hang of more than {SECONDS:g} s"
        process.kill()
    if wrong not in ("", "done"):
        tell(kind, seed, wrong, counts, wrong.split()[0].strip(","))
    return seed + 1


def tell(kind: str, seed: int, what: str, counts: Counter[str], group: str) -> None:
    counts[f"DEFECTS: {group}"] += 1
    if counts[f"DEFECTS: {group}"] <= 50:
        print(f"{kind} {seed}: {what}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--inputs", type=float, default=float("inf"), help="stop after about so many inputs")
    parser.add_argument("--kind", choices=KINDS, help="fuzz this reader only")
    parser.add_argument("--seed", type=int, help="the first seed; default a random one, which is printed")
    parser.add_argument("--work", choices=KINDS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        work(chosen.work, chosen.seed)
        return 0
    if chosen.kind and chosen.seed is not None and chosen.minutes == 0:
        from fuzz_targets import attempt

        data = input_of(chosen.kind, chosen.seed)
        print(data if not isinstance(data, bytes) else data.decode("utf-8", "backslashreplace"))
        with tempfile.TemporaryDirectory() as folder:
            print(attempt(chosen.kind, data, Path(folder)))
        return 0
    first = SystemRandom().randrange(10**9) if chosen.seed is None else chosen.seed
    print(f"seeds from {first} on", flush=True)
    kinds = [chosen.kind] if chosen.kind else list(KINDS)
    counts: Counter[str] = Counter()
    reached = dict.fromkeys(kinds, first)
    deadline = time.monotonic() + 60 * chosen.minutes
    try:
        while time.monotonic() < deadline and counts["inputs"] < chosen.inputs:
            for kind in kinds:
                if time.monotonic() < deadline and counts["inputs"] < chosen.inputs:
                    reached[kind] = watch(kind, reached[kind], counts, deadline)
            print(f"{counts['inputs']} inputs", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    for key, count in sorted(counts.items()):
        print(f"{count:10d}  {key}")
    return int(any(key.startswith("DEFECTS") for key in counts))


if __name__ == "__main__":
    sys.exit(main())
