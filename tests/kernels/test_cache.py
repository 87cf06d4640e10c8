"""The disk cache: found again, never trusted blindly, never in the way."""

import os
import stat
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from polybody.errors import PolybodyWarning
from polybody.kernels import build, cache, machine, programs


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A cache of its own, as a new process would meet it."""
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_warned", False)
    forget()
    yield tmp_path / "cache" / "kernels"
    forget()


def forget():
    programs._programs.clear()
    programs._runtimes.clear()


class Traced:
    """Builds one kernel and counts how often it had to be traced."""

    def __init__(self):
        self.count = 0

    def build(self, key="triple", lanes=None, factor=3.0):
        def trace():
            self.count += 1
            x = ca.SX.sym("x", 3)
            return ca.Function("triple", [x], [factor * x])

        forget()
        kernel = build("triple", [("x", 3)], [("y", (3,))], trace, key, lanes=lanes)
        np.testing.assert_array_equal(kernel(np.arange(3.0)), np.arange(3.0) * factor)
        return kernel


def kernel_file(where: Path) -> Path:
    (path,) = [e.path for e in cache.entries() if e.name == "triple"]
    assert path.parent == where
    return path


def test_code_is_found_again_without_tracing(empty):
    traced = Traced()
    first, second = traced.build(), traced.build()
    assert traced.count == 1
    assert second.nodes == first.nodes > 0
    traced.build(key="another key")
    traced.build(lanes=2)
    assert traced.count == 3


@pytest.fixture
def compiled(monkeypatch):
    """Texts that were compiled, in the order they were."""
    texts, assemble = [], machine.assemble
    monkeypatch.setattr(machine, "assemble", lambda text, *rest: texts.append(text) or assemble(text, *rest))
    return texts


def test_another_key_for_the_same_graph_traces_but_does_not_compile(empty, compiled):
    traced = Traced()
    traced.build(key="before a source file was edited")
    before = len(compiled)
    traced.build(key="after")
    traced.build(key="after")
    assert traced.count == 2
    assert len(compiled) == before


def test_a_key_that_is_too_short_by_something_cannot_share_code_of_another_graph(empty, compiled):
    traced = Traced()
    traced.build(key="one", factor=3.0)
    traced.build(key="two", factor=np.nextafter(3.0, 4.0))
    assert traced.count == 2
    assert len({text for text in compiled if "@body" in text}) == 2


def test_code_that_is_gone_or_a_trace_that_is_gone_means_tracing_again(empty, compiled):
    traced = Traced()
    traced.build()
    kernel_file(empty).unlink()
    traced.build()
    assert traced.count == 2
    before = len(compiled)
    for path in empty.glob("*.trace"):
        path.write_bytes(b"damaged")
    traced.build()
    assert traced.count == 3
    assert len(compiled) == before


@pytest.mark.parametrize("position", [0, 20, 60, 200, -1])
def test_a_flipped_byte_means_rebuilding(empty, position):
    traced = Traced()
    traced.build()
    path = kernel_file(empty)
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    traced.build()
    assert traced.count == 2
    traced.build()
    assert traced.count == 2


@pytest.mark.parametrize("length", [0, 10, 40, 300])
def test_a_truncated_entry_means_rebuilding(empty, length):
    traced = Traced()
    traced.build()
    path = kernel_file(empty)
    path.write_bytes(path.read_bytes()[:length])
    traced.build()
    assert traced.count == 2


def test_an_entry_sealed_under_another_key_is_foreign(empty):
    traced = Traced()
    traced.build()
    (empty / "key").write_bytes(bytes(32))
    traced.build()
    assert traced.count == 2


def test_a_valid_entry_under_another_name_is_not_executed(empty):
    traced = Traced()
    traced.build(key="one")
    one = kernel_file(empty)
    content = one.read_bytes()
    one.unlink()
    traced.build(key="two", factor=2.0)
    two = kernel_file(empty)
    two.write_bytes(content)
    traced.build(key="two", factor=2.0)
    assert traced.count == 3


@pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX")
def test_folder_key_and_entries_are_private(empty):
    traced = Traced()
    traced.build()
    assert stat.S_IMODE(empty.stat().st_mode) == 0o700
    assert stat.S_IMODE((empty / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE(kernel_file(empty).stat().st_mode) == 0o600
    empty.chmod(0o755)
    traced.build()
    assert stat.S_IMODE(empty.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX")
def test_an_entry_others_could_write_is_not_executed(empty):
    traced = Traced()
    traced.build()
    kernel_file(empty).chmod(0o666)
    with pytest.warns(PolybodyWarning, match="could have been written by another user"):
        traced.build()
    assert traced.count == 2


@pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX")
def test_a_folder_of_another_user_is_not_used(empty, monkeypatch):
    traced = Traced()
    traced.build()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.warns(PolybodyWarning, match="belongs to user"):
        traced.build()
    assert traced.count == 2


def test_a_link_in_place_of_an_entry_is_not_followed(empty, tmp_path):
    traced = Traced()
    traced.build()
    path = kernel_file(empty)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(PolybodyWarning):
        traced.build()
    assert traced.count == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("which", ["entry", "key"])
def test_a_pipe_in_the_cache_is_refused_at_once(empty, which):
    traced = Traced()
    traced.build()
    path = kernel_file(empty) if which == "entry" else empty / "key"
    path.unlink()
    os.mkfifo(path, 0o600)
    assert len(cache.entries()) == 2
    with pytest.warns(PolybodyWarning, match="is not a file of ours"):
        traced.build()
    assert traced.count == 2


def test_foreign_files_in_the_cache_are_passed_over(empty):
    traced = Traced()
    traced.build()
    path = kernel_file(empty)
    path.unlink()
    path.mkdir()
    (empty / "notes.kernel").write_text("not a kernel")
    assert {e.name for e in cache.entries()} == {"runtime", "(damaged)"}
    with pytest.warns(PolybodyWarning, match="is not a file of ours|Is a directory"):
        traced.build()
    assert traced.count == 2


def test_an_unusable_folder_is_one_warning_and_work_goes_on(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(cache, "_warned", False)
    traced = Traced()
    with pytest.warns(PolybodyWarning, match="compiled code cannot be kept in"):
        traced.build()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced.build()
    assert traced.count == 2
    assert cache.entries() == []
    forget()


def test_entries_tell_name_and_size_and_clear_removes_them(empty):
    Traced().build()
    assert {e.name for e in cache.entries()} == {"triple", "runtime"}
    assert all(e.size == e.path.stat().st_size > 100 for e in cache.entries())
    assert cache.clear() == 2
    assert cache.entries() == []
    assert cache.clear() == 0


def test_the_folder_stays_within_its_limit_by_forgetting_the_oldest(empty, monkeypatch):
    traced = Traced()
    traced.build(key="old")
    old = kernel_file(empty)
    os.utime(old, (1, 1))
    monkeypatch.setattr(cache, "LIMIT", sum(path.stat().st_size for path in empty.iterdir()) + 1000)
    traced.build(key="new", factor=2.0)
    assert not old.exists()
    traced.build(key="new", factor=2.0)
    assert traced.count == 2


def test_places_follow_the_platform(monkeypatch, tmp_path):
    monkeypatch.delenv("POLYBODY_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.folder() == tmp_path / "polybody" / "kernels"
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setattr(sys, "platform", "win32")
    assert cache.folder() == tmp_path / "local" / "polybody" / "kernels"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.folder() == Path.home() / "Library" / "Caches" / "polybody" / "kernels"


def test_many_processes_at_once_all_get_right_answers(empty):
    script = textwrap.dedent("""
        import casadi as ca, numpy as np, warnings
        warnings.simplefilter("error")
        from polybody.kernels import build
        for n in range(1, 6):
            x = ca.SX.sym("x", n)
            kernel = build(f"k{n}", [("x", n)], [("y", (n,))], lambda: ca.Function("f", [x], [ca.sin(x) * n]), f"k{n}")
            v = np.linspace(0, 1, n)
            assert np.allclose(kernel(v), np.sin(v) * n, rtol=1e-14)
        print("right")
    """)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(6)
    ]
    for child in children:
        output, errors = child.communicate(timeout=300)
        assert output.strip() == b"right", errors.decode()
    assert {e.name for e in cache.entries()} == {"runtime", "k1", "k2", "k3", "k4", "k5"}
    assert not list(empty.glob("*.part"))
