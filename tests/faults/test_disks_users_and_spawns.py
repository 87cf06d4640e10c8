"""A disk that is really full, caches of other users and of other processors, processes that are spawned.

Mounting a disk and being another user need root: elsewhere `test_cache_and_disk` stands for the first, with limits of
file sizes, and the second is skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from polybody.errors import PolybodyWarning
from polybody.kernels import build, cache
from polybody.kernels.target import host, without_fma

root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
NOBODY = 65534


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}


# ---- a full disk -----------------------------------------------------------------------------------------------------

FULL = textwrap.dedent("""
    import errno, os, sys, warnings
    from pathlib import Path
    import numpy as np
    warnings.simplefilter("ignore")
    import polybody as pb

    disk = Path(sys.argv[1])
    model = pb.load("two-link")
    run = pb.simulate(model, 1.0, method="rk4", dt=0.01)
    weight = disk / "weight"
    for left in (0, 3000, 12_000):
        with open(weight, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError as error:
                assert error.errno == errno.ENOSPC
        os.truncate(weight, max(0, weight.stat().st_size - left))
        build = pb.Builder("fresh")
        build.body("a", 1.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.3))
        build.joint("j", "revolute", "world", "a", axis=(0, 1, 0), armature=1.0 + left)
        assert np.allclose(build.model().mass_matrix([0.3]), 0.2 + 0.25 + 1.0 + left)
        try:
            run.save(disk / "run")
            raise SystemExit("a run was written that the disk cannot hold")
        except pb.InputError as error:
            assert "cannot be written" in str(error), error
        try:
            pb.export_c(model, disk / "library")
            raise SystemExit("a library was written that the disk cannot hold")
        except pb.PolybodyError as error:
            assert "No space left" in str(error) or "cannot be written" in str(error), error
        beside = sorted(path.name for path in disk.iterdir() if path.name not in ("weight", "kernels"))
        assert not beside, beside
        assert not [path for path in (disk / "kernels").glob("*.part")]
    weight.unlink()
    run.save(disk / "run")
    assert (disk / "run" / "run.json").exists()
    print("done")
""")


@root
@pytest.mark.skipif(shutil.which("unshare") is None or sys.platform != "linux", reason="no disk can be mounted here")
def test_full_disk_refuses_runs_and_exports_whole_and_keeps_answers(tmp_path: Path) -> None:
    """In a namespace of its own, so that the disk is gone with the process."""
    script = tmp_path / "script.py"
    script.write_text(FULL)
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'mount -t tmpfs -o size=2m tmpfs "{disk}" || exit 77; exec "{sys.executable}" "{script}" "{disk}"'
    child = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount], env=environment(POLYBODY_CACHE=str(disk), MPLBACKEND="Agg"),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if child.returncode == 77 or "unshare" in child.stderr:
        pytest.skip("no disk can be mounted here")
    assert child.returncode == 0, child.stderr
    assert child.stdout.strip() == "done"


# ---- other users -----------------------------------------------------------------------------------------------------


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def triple(key: str) -> float:
    x = ca.SX.sym("x", 2)
    kernel = build("triple", [("x", 2)], [("y", (2,))], lambda: ca.Function("f", [x], [3 * x]), key)
    return float(kernel(np.array([1.0, 2.0]))[1])


def as_nobody(work: Callable[[], None]) -> int:
    """The exit code of a child that does the work as another user."""
    child = os.fork()
    if not child:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            work()
            os._exit(0)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def warned(work: Callable[[], None]) -> list[str]:
    cache._warned = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(one.message) for one in caught if issubclass(one.category, PolybodyWarning)]


@root
@pytest.mark.parametrize("mode", [0o700, 0o777], ids=["private", "open to all"])
def test_cache_of_root_serves_no_other_user(shared: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    monkeypatch.setenv("POLYBODY_CACHE", str(shared))
    assert triple(f"root's {mode}") == 6.0
    for path in cache.folder().iterdir():
        path.chmod(0o644)
    cache.folder().chmod(mode)
    before = sorted((p.name, p.read_bytes()) for p in cache.folder().iterdir())

    def work() -> None:
        said = warned(lambda: None if triple(f"root's again {mode}") == 6.0 else os._exit(4))
        assert len(said) == 1, said
        assert "cannot be kept in" in said[0]

    assert as_nobody(work) == 0
    assert sorted((p.name, p.read_bytes()) for p in cache.folder().iterdir()) == before


@root
def test_code_that_another_user_planted_is_not_run(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole folder is another user's; then one file in a folder of ours is."""
    monkeypatch.setenv("POLYBODY_CACHE", str(shared))
    assert triple("warm") == 6.0  # imports and compiles what a child could not
    shutil.rmtree(cache.folder())
    shared.chmod(0o777)
    digest = "ab" * 32
    assert as_nobody(lambda: cache.store(digest, {"name": "planted"}, b"code")) == 0
    assert cache.folder().stat().st_uid == NOBODY
    said = warned(lambda: None if cache.load(digest) is None else pytest.fail("planted code was taken"))
    assert len(said) == 1
    assert f"belongs to user {NOBODY}" in said[0]
    planted = {path.name: path.read_bytes() for path in cache.folder().iterdir()}
    shutil.rmtree(cache.folder())
    cache.store("cd" * 32, {"name": "own"}, b"own")
    for name, content in planted.items():
        if name != "key":
            path = cache.folder() / name
            path.write_bytes(content)
            os.chown(path, NOBODY, NOBODY)
    said = warned(lambda: None if cache.load(digest) is None else pytest.fail("planted code was taken"))
    assert "could have been written by another user" in said[0]
    assert cache.load("cd" * 32) == ({"name": "own"}, b"own")


# ---- other processors ------------------------------------------------------------------------------------------------


def test_cache_of_another_processor_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One folder, as on a shared home: code of the other has another name, and both are kept."""
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    x = ca.SX.sym("x", 2)
    traced = []

    def trace() -> ca.Function:
        traced.append(1)
        return ca.Function("f", [x], [ca.sin(x) * 5])

    other = replace(without_fma(host()), cpu="another")
    for target, count in ((other, 1), (host(), 2), (other, 2), (host(), 2)):
        kernel = build("five", [("x", 2)], [("y", (2,))], trace, "five", target=target)
        assert len(traced) == count
        del kernel
    assert len({entry.digest for entry in cache.entries() if entry.name == "five"}) == 2
    found = build("five", [("x", 2)], [("y", (2,))], trace, "five")(np.array([0.1, 0.2]))
    np.testing.assert_allclose(found, 5 * np.sin([0.1, 0.2]), rtol=1e-15)


# ---- spawned processes -----------------------------------------------------------------------------------------------

SPAWNED = textwrap.dedent("""
    import multiprocessing, threading
    import numpy as np
    import polybody as pb

    def answer(model):
        return model.forward_dynamics(*np.full((3, model.nv), 0.3))

    def main():
        models = [pb.load(name) for name in ("puma560", "two-link", "double-pendulum")]
        wanted = [None] * len(models)

        def compile_here(k):
            wanted[k] = answer(models[k])

        threads = [threading.Thread(target=compile_here, args=(k,)) for k in range(len(models))]
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            for thread in threads:  # this process compiles while the others start, with an empty cache
                thread.start()
            found = pool.map(answer, models)
        for thread in threads:
            thread.join()
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
        print("done")

    if __name__ == "__main__":
        main()
""")


def test_spawned_processes_answer_with_the_same_bits(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SPAWNED)
    child = subprocess.run(
        [sys.executable, script], env=environment(POLYBODY_CACHE=str(tmp_path / "cache")), capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    assert child.stdout.strip() == "done"
