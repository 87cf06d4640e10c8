"""Fork while other threads compile: the child compiles, computes and ends."""

import os
import subprocess
import sys
import textwrap

import pytest

from polybody.kernels.locks import Lock

SCRIPT = textwrap.dedent("""
    import os, sys, threading, time, warnings
    warnings.simplefilter("ignore")
    import casadi as ca, numpy as np
    from polybody.kernels import build, memory, threads

    def kernel(n, label):
        x = ca.SX.sym("x", 3)
        y = x
        for k in range(n):
            y = ca.sin(y) * x + k
        return build(label, [("x", 3)], [("y", (3,))], lambda: ca.Function("f", [x], [y]), label)

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
