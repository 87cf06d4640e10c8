"""`polybody study` that is interrupted: it says how to go on, no worker is left, and what is resumed is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
TEXT = """\
study: 1
model: two-link
vary: {upper.mass: {uniform: [1, 2]}}
samples: 600
chunk: 2
do: {simulate: {duration: 0.2, q0: 0.3, method: rk4, dt: 0.001}}
keep: [q_end]
"""


def started(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "polybody", "study", str(folder.parent / "s.yaml"), "-o", str(folder), *more]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                            start_new_session=True)  # fmt: skip


def alive(group: int) -> list[str]:
    """Processes of the group that still run."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, _, own = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(own) == group and state != "Z":
            found.append(name)
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "chunks").iterdir()}


def test_terminated_and_killed_drivers_leave_no_worker_and_are_resumed(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(TEXT)
    drivers = {}
    for number in (signal.SIGTERM, signal.SIGKILL):
        folder = tmp_path / number.name
        drivers[number] = process = started(folder, "--workers", "2")
        while process.poll() is None and not list(folder.glob("chunks/part-*")):
            time.sleep(0.01)
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
        if number == signal.SIGTERM:
            assert process.returncode == 130
            assert "of 600 cases are in" in said
            assert said.strip().endswith(f"-o {folder} --workers 2 --resume")
        deadline = time.monotonic() + 30
        while alive(process.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not alive(process.pid)
        assert 0 < len(list(folder.glob("chunks/part-*"))) < 300
    again = started(tmp_path / "SIGTERM", "--workers", "1")
    assert "resume" in again.communicate(timeout=60)[1]
    assert again.returncode == 1
    for number in drivers:
        process = started(tmp_path / number.name, "--workers", "1", "--resume")
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert len(contents(tmp_path / "SIGTERM")) == 300
    assert contents(tmp_path / "SIGTERM") == contents(tmp_path / "SIGKILL")
