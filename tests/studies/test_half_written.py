"""Workers that are killed while they send a chunk: the rest of it never comes, and nobody may wait for it."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

import polybody as pb

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")


def exists(path: Path, within: float = 60.0) -> bool:
    end = time.monotonic() + within
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return path.exists()


def half(case: pb.studies.Case) -> dict[str, Any]:
    """The worker of case 3 announces a message of a million bytes, and is killed, or sends no more."""
    folder = Path(os.environ["HALF"])
    if case.index == 3 and not (folder / "half").exists():
        assert exists(folder / "first"), "a chunk has arrived before"

        def send(self: Connection, message: bytes) -> None:
            os.write(self.fileno(), struct.pack("!i", 1_000_000) + bytes(1000))
            (folder / "half").touch()
            if os.environ["THEN"] == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600)

        Connection._send_bytes = send  # type: ignore[attr-defined]
    return {"y": case["x"] ** 2}


DRIVER = """
import os, sys
from pathlib import Path
from tests.studies.test_half_written import exists, half
import polybody as pb

def progress(finished, cases, failed):
    folder = Path(os.environ["HALF"])
    (folder / "first").touch()
    if os.environ["THEN"] == "interrupted" and exists(folder / "half"):
        raise KeyboardInterrupt

if __name__ == "__main__":
    study = pb.Study(None, {"x": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]}, function=half, chunk=1)
    results = study.run(Path(os.environ["HALF"]) / "out", workers=2, progress=progress)
    print(results.numpy("y")["y"].tolist())
"""


@pytest.mark.parametrize(("then", "code"), [("killed", 0), ("interrupted", -signal.SIGINT)])
def test_a_worker_that_ends_while_it_sends_a_chunk_stops_nobody(then: str, code: int, tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, *sys.path]), "HALF": str(tmp_path), "THEN": then}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=60)
    assert (tmp_path / "half").exists()
    assert done.returncode == code, done.stderr
    if then == "killed":
        assert done.stdout.strip() == "[0.0, 1.0, 4.0, 9.0, 16.0, 25.0]"
