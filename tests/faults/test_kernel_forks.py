"""Fork while other threads compile: the child compiles, computes and ends."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from polybody import importing
from polybody.errors import PolybodyError
from polybody.kernels import forks
from polybody.kernels.locks import Lock, tracing

SCRIPT = textwrap.dedent("""
    import os, sys, threading, time, warnings
    warnings.simplefilter("ignore")
    import casadi as ca, numpy as np
    from polybody.kernels import build, memory, threads

    def kernel(n, label):
        def traced():  # all of CasADi within `build`: threads that make graphs without it are not safe in CasADi
            x = ca.SX.sym("x", 3)
            y = x
            for k in range(n):
                y = ca.sin(y) * x + k
            return ca.Function("f", [x], [y])

        return build(label, [("x", 3)], [("y", (3,))], traced, label)

    stop = False

    def compile_for_ever(label):
        k = 0
        while not stop:
            k += 1
            kernel(300, f"{label}_{k}")
            memory.empty((200_000,))

    others = [threading.Thread(target=compile_for_ever, args=(f"t{k}",)) for k in range(2)]
    for other in others:
        other.start()
    for attempt in range(8):
        time.sleep(0.03 + 0.021 * attempt)
        child = os.fork()
        if not child:
            try:
                found = kernel(2, f"child_{attempt}")(np.ones((40_000, 3)))
                wanted = np.sin(np.sin(1)) + 1
                os._exit(0 if np.allclose(found, wanted) else 3)
            finally:
                os._exit(4)
        deadline = time.monotonic() + 100
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done or time.monotonic() > deadline:
                break
            time.sleep(0.005)
        if not done:
            os.kill(child, 9)
            os._exit(5)
        if status:
            print(status)
            os._exit(6)
    stop = True
    for other in others:
        other.join()
    print("all children answered")
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_while_threads_compile_can_compile_itself(tmp_path):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), POLYBODY_CACHE=str(tmp_path))
    child = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, timeout=300, text=True)
    assert child.stdout.strip() == "all children answered", (child.returncode, child.stdout, child.stderr)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_thread_that_forks_keeps_the_locks_it_holds():
    lock = Lock()
    with lock, lock:
        child = os.fork()
        if not child:
            os._exit(0 if lock._lock._is_owned() else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert not lock._lock._is_owned()


def answer_of_a_child(work):
    """What work() gives in a forked child, a number below 256; 255 if it takes more than 60 s."""
    child = os.fork()
    if not child:
        try:
            os._exit(work())
        finally:
            os._exit(254)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return 255


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_waits_for_a_thread_that_traces():
    begun, over = threading.Event(), threading.Event()

    def trace():
        with tracing:
            begun.set()
            time.sleep(0.3)
            over.set()

    other = threading.Thread(target=trace)
    other.start()
    begun.wait()
    assert answer_of_a_child(lambda: 1 if over.is_set() and tracing._lock.acquire(blocking=False) else 2) == 1
    other.join()
    with tracing:
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_from_a_thread_that_compiles_for_too_long_says_that_it_cannot_compile(monkeypatch):
    monkeypatch.setattr(forks, "PATIENCE", 0.05)
    begun, go_on = threading.Event(), threading.Event()

    def trace():
        with tracing:
            begun.set()
            go_on.wait(60)

    def compile_here():
        try:
            with tracing:
                return 2
        except PolybodyError as error:
            return 1 if "forked" in str(error) else 3

    other = threading.Thread(target=trace)
    other.start()
    begun.wait()
    assert answer_of_a_child(compile_here) == 1
    assert answer_of_a_child(lambda: answer_of_a_child(compile_here)) == 1
    go_on.set()
    other.join()
    assert answer_of_a_child(compile_here) == 2


IMPORTED = "import time\ntime.sleep({seconds})\nvalue = 7\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("patience", [20.0, 0.05])
def test_a_child_forked_while_a_thread_imports_can_import_the_same(tmp_path, monkeypatch, patience):
    name = f"slow_module_{int(100 * patience)}"
    (tmp_path / f"{name}.py").write_text(IMPORTED.format(seconds=0.5))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(importing, "PATIENCE", patience)
    other = threading.Thread(target=__import__, args=(name,))
    other.start()
    while name not in sys.modules:
        time.sleep(0.001)
    assert answer_of_a_child(lambda: __import__(name).value) == 7
    other.join()
    assert sys.modules[name].value == 7


FIRST_IMPORTS = textwrap.dedent("""
    import os, threading, time
    import polybody as pb

    other = threading.Thread(target=lambda: pb.load("two-link").mass_matrix([0.1, 0.2]))
    other.start()
    time.sleep(0.02)
    child = os.fork()
    if not child:
        try:
            pb.load("two-link").mass_matrix([0.1, 0.2])
            os._exit(0)
        finally:
            os._exit(4)
    deadline = time.monotonic() + 60
    while not (found := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, 9)
            raise SystemExit("the child hangs")
        time.sleep(0.005)
    other.join()
    raise SystemExit(found[1])
""")


def test_a_child_forked_while_another_thread_imports_polybody_for_the_first_time_imports_it_too() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_IMPORTS], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
