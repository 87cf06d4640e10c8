"""The cache under kills, crowds and disks that take nothing; one model under many threads."""

from __future__ import annotations

import multiprocessing
import os
import resource
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.errors import PolybodyWarning
from polybody.kernels import cache
from polybody.studio.record import from_trajectory
from polybody.studio.results import write_run

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked"),
    pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning"),
]
fork = multiprocessing.get_context("fork")
Q = np.array([0.3, -0.7])


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fresh_answer(length: float = 1.0) -> np.ndarray:
    """The mass matrix of a model whose code nobody has in memory; (2, 2)."""
    build = pb.Builder("fresh")
    for body, parent in (("a", "world"), ("b", "a")):
        build.body(body, 1.0, com=(0.5 * length, 0, 0), inertia=(0.1, 0.2, 0.3))
        build.joint(f"j{body}", "revolute", parent, body, origin=(length, 0, 0), axis=(0, 1, 0))
    return build.model().mass_matrix(Q)


def in_child(work: Callable[[], Any]) -> int:
    """The exit code of a forked process that does the work."""
    child = fork.Process(target=work)
    child.start()
    child.join(60)
    if child.is_alive():
        child.kill()
        raise AssertionError("it hangs")
    assert child.exitcode is not None
    return child.exitcode


def same(found: np.ndarray, length: float) -> None:
    c = 0.5 * length * length * np.cos(Q[1])
    own = 0.2 + 0.25 * length**2
    wanted = np.array([[2 * own + length**2 + 2 * c, own + c], [own + c, own]])
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_eight_processes_compile_one_model_at_once(empty_cache: Path) -> None:
    go = fork.Event()

    def work() -> None:
        go.wait(30)
        same(fresh_answer(1.25), 1.25)

    children = [fork.Process(target=work) for _ in range(8)]
    for child in children:
        child.start()
    go.set()
    for child in children:
        child.join(120)
    assert [child.exitcode for child in children] == [0] * 8
    assert cache.entries(), "and one of them kept the code"
    assert not list(empty_cache.rglob("*.part"))


def test_kills_while_code_is_kept_leave_a_cache_that_serves(empty_cache: Path) -> None:
    """25 kills among writes of entries: what is there afterwards verifies, and answers stay right."""

    def write_for_ever() -> None:
        for k in range(10**9):
            cache.store(f"{k % 50:064x}", {"k": k}, bytes([k % 251]) * 20_000)

    for seconds in np.random.default_rng(3).uniform(0.002, 0.03, 25):
        child = fork.Process(target=write_for_ever)
        child.start()
        time.sleep(seconds)
        child.kill()
        child.join()
        for k in range(50):
            found = cache.load(f"{k:064x}")
            if found is not None:
                facts, code = found
                assert code == bytes([facts["k"] % 251]) * 20_000
    same(fresh_answer(1.5), 1.5)


def test_home_that_cannot_be_written_costs_a_warning_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").write_text("a file where a folder should be, which root cannot write into either")
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path / "home"))
    monkeypatch.setattr(cache, "_warned", False)  # one warning per process, which an earlier test may have had

    def work() -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            same(fresh_answer(1.75), 1.75)
        assert any(issubclass(one.category, PolybodyWarning) for one in caught)

    assert in_child(work) == 0


def test_read_only_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a folder without permission to write; root has it all the same, and must get its answer too."""
    (tmp_path / "home").mkdir(mode=0o500)
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path / "home"))
    assert in_child(lambda: same(fresh_answer(2.25), 2.25)) == 0


@pytest.mark.parametrize("size", [0, 100, 5000])
def test_full_disk_keeps_answers_and_leaves_no_half_files(empty_cache: Path, tmp_path: Path, size: int) -> None:
    """Files may grow to so many bytes and no further, as on a disk that is full there."""
    record = from_trajectory(pb.simulate(pb.load("two-link"), 1.0, method="rk4", dt=0.01))

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        same(fresh_answer(2.0 + size), 2.0 + size)
        with pytest.raises(pb.InputError, match="cannot be written"):
            write_run(record, tmp_path / "runs" / "run")

    assert in_child(work) == 0
    assert not list((tmp_path / "runs").iterdir())
    assert not list(empty_cache.rglob("*.part"))


def test_sixteen_threads_ask_one_new_model(empty_cache: Path) -> None:
    model = pb.load("puma560")
    rng = np.random.default_rng(5)
    q, v, a = (rng.normal(size=(64, model.nv)) for _ in range(3))
    gate, found, failed = threading.Barrier(16), {}, []

    def work(k: int) -> None:
        try:
            gate.wait(30)
            for _ in range(5):
                found[k] = (model.inverse_dynamics(q, v, a), model.mass_matrix(q[k]), model.energy(q, v)[0])
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed
    tau, energy = model.inverse_dynamics(q, v, a), model.energy(q, v)[0]
    for k, (torques, M, kinetic) in found.items():
        np.testing.assert_array_equal(torques, tau)
        np.testing.assert_array_equal(kinetic, energy)
        np.testing.assert_array_equal(M, model.mass_matrix(q[k]))
    assert len(found) == 16
