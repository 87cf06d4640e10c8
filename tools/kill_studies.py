"""Kill workers, nodes and drivers of a study on a two-node Ray cluster at random times; every dataset must be whole.

    python tools/kill_studies.py [how many] [seed]

Prints one line a kill, and exits with 1 where a dataset was not complete, had duplicates, or was not the serial one.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.studies.cluster import killed_driver, same, study, two_nodes, workers  # noqa: E402

CASES = 160


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        serial = study(CASES).run(folder / "serial", workers=1)
        with two_nodes() as cluster:
            for k in range(count):
                act = ("worker", "node", "driver")[k % 3]
                started, target = time.perf_counter(), folder / f"run{k}"
                at = rng.randrange(1, study(CASES).cases.chunks - 1)
                if act == "driver":
                    left = killed_driver(target, cluster.address, at, CASES)
                    results = study(CASES).run(target, cluster=cluster.address)
                    told = f"{left} chunks were there"
                else:
                    told = ""
                    done = []

                    def progress(finished: int, cases: int, failed: int, act: str = act, at: int = at,
                                 done: list[int] = done) -> None:  # fmt: skip
                        if done or finished < 10 * at:
                            return
                        if act == "worker":
                            found = workers()
                            if found:
                                os.kill(rng.choice(found), signal.SIGKILL)
                                done.append(1)
                        else:
                            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
                            done.append(1)

                    results = study(CASES).run(target, cluster=cluster.address, progress=progress)
                    told = "killed" if done else "nothing was left to kill"
                    if act == "node":
                        cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
                good = same(results, serial)
                wrong += not good
                print(f"{k + 1:3} {act:7} after chunk {at:3}, {told}: {'whole and equal' if good else 'WRONG'} "
                      f"({time.perf_counter() - started:.1f} s)", flush=True)  # fmt: skip
    print(f"{count - wrong} of {count} datasets whole and equal")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
