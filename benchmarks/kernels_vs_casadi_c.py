"""Kernels against CasADi's own C code (gcc -O3 -march=native, mapped over the batch), on graphs of several sizes.

    python benchmarks/kernels_vs_casadi_c.py [states]

The graphs are random: chains of small rotations and cross products, as rigid bodies have them, so that about one
operation in thirty is a sine. Both sides get arrays as rows of states and one thread; times are the best of many.
CasADi's side is a plain C loop over rows around the function it generates, with no Python in between.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import casadi as ca
import numpy as np

from polybody.kernels import build, threads

LOOP = """
#include <stddef.h>
int f(const double** arg, double** res, long long int* iw, double* w, int mem);
void rows(const double* x, double* y, ptrdiff_t states, ptrdiff_t n, ptrdiff_t m, double* w) {
  for (ptrdiff_t k = 0; k < states; ++k) {
    const double* arg[1] = {x + k * n};
    double* res[1] = {y + k * m};
    f(arg, res, 0, w, 0);
  }
}
"""


def graph(links: int) -> ca.Function:
    """A serial recursion over `links` joints, 3 inputs and 1 output each."""
    rng = np.random.default_rng(0)
    x = ca.SX.sym("x", 3 * links)
    omega, acceleration, out = ca.SX.zeros(3), ca.SX([0, 0, 9.81]), []
    frames = []
    for i in range(links):
        q, v, a = x[3 * i], x[3 * i + 1], x[3 * i + 2]
        c, s = ca.cos(q), ca.sin(q)
        r = rng.normal(size=3)
        turn = ca.vertcat(ca.horzcat(c, s, 0), ca.horzcat(-s * 0.6, c * 0.6, 0.8), ca.horzcat(s * 0.8, -c * 0.8, 0.6))
        acceleration = turn @ (acceleration + ca.cross(omega, ca.cross(omega, r))) + ca.vertcat(0, 0, a)
        omega = turn @ omega + ca.vertcat(0, 0, v)
        frames.append((turn, r, rng.uniform(0.5, 2) * acceleration + ca.cross(omega, rng.normal(3) * omega)))
    force = ca.SX.zeros(3)
    for turn, r, own in reversed(frames):
        force = turn.T @ (force + own) + ca.cross(r, force)
        out.append(force[2])
    return ca.Function("f", [x], [ca.vertcat(*out)])


def best(work: Callable[[], object], seconds: float = 0.7) -> float:
    """The shortest of many runs: other processes only ever make one longer."""
    shortest, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def casadi_c(function: ca.Function, folder: Path) -> ctypes.CDLL:
    """CasADi's own C for one state, in a loop over rows."""
    here = function.generate("f.c", {"with_header": False, "casadi_real": "double"})
    Path(here).replace(folder / "f.c")
    (folder / "loop.c").write_text(LOOP)
    flags = ["-O3", "-march=native", "-fPIC", "-shared"]
    subprocess.run(["gcc", *flags, "f.c", "loop.c", "-o", "f.so", "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "f.so"))


def compare(links: int, states: int) -> None:
    function = graph(links)
    n, m = function.numel_in(0), function.numel_out(0)
    x = np.random.default_rng(1).normal(size=(states, n))
    start = time.perf_counter()
    kernel = build("f", [("x", n)], [("y", (m,))], lambda: function, f"benchmark {time.time()}")
    compiling = time.perf_counter() - start
    out = np.empty((states, m))
    with threads(1):
        ours = best(lambda: kernel(x, out=out))
    with tempfile.TemporaryDirectory() as temporary:
        start = time.perf_counter()
        library = casadi_c(function, Path(temporary))
        compiling_c = time.perf_counter() - start
        theirs_out, work = np.empty((states, m)), np.empty(function.sz_w() + 1)

        def loop() -> None:
            address = [ctypes.c_void_p(a.ctypes.data) for a in (x, theirs_out, work)]
            sizes = [ctypes.c_ssize_t(k) for k in (states, n, m)]
            library.rows(address[0], address[1], *sizes, address[2])

        theirs = best(loop)
    np.testing.assert_allclose(out, theirs_out, rtol=1e-9, atol=1e-9 * np.abs(theirs_out).max())
    print(
        f"{links:4d} links {kernel.nodes:6d} operations: kernel {ours / states * 1e9:8.1f} ns, "
        f"CasADi's C {theirs / states * 1e9:8.1f} ns a state, ratio {theirs / ours:5.1f}; "
        f"compiling {compiling:5.2f} s against {compiling_c:5.2f} s"
    )


if __name__ == "__main__":
    for size in (3, 6, 12, 30):
        compare(size, int(sys.argv[1]) if len(sys.argv) > 1 else 4096)
