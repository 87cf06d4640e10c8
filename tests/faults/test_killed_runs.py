"""Processes killed while they write runs: a folder is whole or absent, and what is left behind is cleared."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest

import polybody as pb
from polybody.staging import remove_leftovers, staged
from polybody.studio.record import Record, from_trajectory
from polybody.studio.results import read_run, write_run

pytestmark = pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
unix = pytest.mark.skipif(os.name != "posix", reason="folders are locked by flock")


def write_for_ever(record: Record, folder: Path) -> None:
    while True:
        write_run(record, folder, force=True)


def aged(folder: Path) -> Path:
    past = time.time() - 3600
    os.utime(folder, (past, past))
    return folder


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


@unix
def test_killed_writers_leave_whole_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """30 kills at times spread over some ten writes each: never half a run, never a lost one, and no litter."""
    monkeypatch.setattr("polybody.studio.results._fill_pictures", lambda *_: None)  # slow, and not the point
    record = from_trajectory(pb.simulate(pb.load("two-link"), 1.0, method="rk4", dt=0.01))
    write_run(record, tmp_path / "run")
    times = np.random.default_rng(15).uniform(0.005, 0.06, 30)
    for seconds in times:
        writer = multiprocessing.get_context("fork").Process(target=write_for_ever, args=(record, tmp_path / "run"))
        writer.start()
        time.sleep(seconds)
        writer.kill()
        writer.join()
        for name in hidden(tmp_path):
            aged(tmp_path / name)
        remove_leftovers(tmp_path)
        assert hidden(tmp_path) == []
        assert len(read_run(tmp_path / "run").t) == 101


@unix
def test_next_run_clears_what_a_killed_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polybody.studio.results._fill_pictures", lambda *_: None)  # slow, and not the point
    left = tmp_path / ".polybody-run.abcd1234"
    left.mkdir()
    (left / "trajectory.npz").write_bytes(b"half")
    record = from_trajectory(pb.simulate(pb.load("two-link"), 0.1, method="rk4", dt=0.01))
    write_run(record, tmp_path / "first")
    assert left.exists(), "too new: its process may be about to lock it"
    aged(left)
    write_run(record, tmp_path / "second")
    assert not left.exists()


@unix
def test_a_run_that_was_being_replaced_comes_back(tmp_path: Path) -> None:
    """Killed between the two renames: what stood there is put back."""
    old = tmp_path / ".polybody-old-run.abcd1234"
    (old / "last").mkdir(parents=True)
    (old / "last" / "run.json").write_text("{}")
    aged(old)
    remove_leftovers(tmp_path)
    assert (tmp_path / "run" / "run.json").read_text() == "{}"
    assert hidden(tmp_path) == []


@unix
def test_folders_in_use_or_of_others_stay(tmp_path: Path) -> None:
    names = [".run.abcd1234", ".polybody-notes", "polybody-run.abcd1234"]
    for name in names:
        (tmp_path / name).mkdir()
        aged(tmp_path / name)
    link = tmp_path / ".polybody-link.abcd1234"
    link.symlink_to(tmp_path / names[0])
    with staged(tmp_path / "run") as fresh:
        aged(fresh)
        remove_leftovers(tmp_path)
        assert fresh.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*names, link.name])
