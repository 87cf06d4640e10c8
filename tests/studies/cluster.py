"""A Ray cluster of two nodes on this machine, a study on it, and a driver that can be killed: for tests and `tools`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import polybody as pb

ROOT = Path(__file__).resolve().parents[2]
PATHS = [str(ROOT / "src"), str(ROOT)]


def slow(case: pb.studies.Case) -> dict[str, Any]:
    time.sleep(0.01)
    return {"y": np.array([case["x"] ** 2, case.rng.normal()])}


def study(cases: int = 240) -> pb.Study:
    return pb.Study(None, {"x": {"uniform": [0, 1]}}, samples=cases, function=slow, chunk=10)


@contextmanager
def two_nodes() -> Iterator[Any]:
    """A head without processors to compute with would wait: one each."""
    import ray
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    os.environ["PYTHONPATH"] = os.pathsep.join(PATHS)
    os.environ |= {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_raylet_start_wait_time_s": "120"}
    store = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **store})
    try:
        cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)


def workers() -> list[int]:
    """Process ids of this cluster's workers that compute a chunk: not Ray's own agents, without which a node dies."""
    import psutil

    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            title = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if title.startswith("ray::") and "Agent" not in title and "IDLE" not in title:
            found.append(process.pid)
    return found


DRIVER = """
import sys
sys.path[:0] = {paths!r}
from tests.studies.cluster import study
if __name__ == "__main__":
    study({cases}).run({folder!r}, cluster={address!r}, progress=lambda *a: print(*a, flush=True))
"""


def killed_driver(folder: Path, address: str, after: int, cases: int = 240) -> int:
    """Run the study in a driver of its own and kill it after so many chunks; how many chunks it left."""
    script = folder.parent / f"{folder.name}.py"
    script.write_text(DRIVER.format(paths=PATHS, folder=str(folder), address=address, cases=cases))
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(after):
        if not process.stdout.readline():
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return len(list((folder / "chunks").glob("part-*")))


def same(one: pb.StudyResults, other: pb.StudyResults) -> bool:
    """Complete, without duplicates, and equal byte for byte."""
    cases = one.numpy("case")["case"]
    whole = one.complete and np.array_equal(cases, np.arange(len(cases)))
    return whole and [p.read_bytes() for p in one.files()] == [p.read_bytes() for p in other.files()]
