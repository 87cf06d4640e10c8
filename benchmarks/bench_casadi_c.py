"""Kernels against CasADi's own C code (gcc -O3 -march=native, looped over the batch), on the same traced graphs.

    python benchmarks/bench_casadi_c.py [states]

Both sides get arrays as rows of states and one thread; times are the best of many. CasADi's side is a plain C loop over
rows around the function it generates, with no Python in between. The kernels are also limited to 4 lanes, which is
what AVX2 has.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import casadi as ca
import numpy as np
from rivals import best, robot

from polybody.kernels import build, threads
from polybody.model.tracing import graph_domain
from polybody.quantities.table import QUANTITIES

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


def traced(name: str, quantity: str) -> ca.Function:
    """One input column [q; v; a] and one output column of a robot's quantity."""
    ours, _ = robot(name)
    graph = graph_domain()
    column, x = graph.variables("x", ours.nq + 2 * ours.nv)
    q, v, a = np.split(x, [ours.nq, ours.nq + ours.nv])
    result = QUANTITIES[quantity].tree(ours.engine.reduced_mechanism, q, v, a, domain=graph)
    return ca.Function("f", [column], [graph.column(result)])


def casadi_c(function: ca.Function, folder: Path) -> ctypes.CDLL:
    """CasADi's own C for one state, in a loop over rows."""
    here = function.generate("f.c", {"with_header": False, "casadi_real": "double"})
    Path(here).replace(folder / "f.c")
    (folder / "loop.c").write_text(LOOP)
    flags = ["-O3", "-march=native", "-fPIC", "-shared"]
    subprocess.run(["gcc", *flags, "f.c", "loop.c", "-o", "f.so", "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "f.so"))


def compare(name: str, quantity: str, states: int) -> None:
    function = traced(name, quantity)
    n, m = function.numel_in(0), function.numel_out(0)
    x = np.random.default_rng(1).normal(size=(states, n))
    out = np.empty((states, m))
    times = {}
    for label, lanes in (("", None), (", 4 lanes", 4)):
        key = f"benchmark {name} {quantity} {time.time()}"
        kernel = build("f", [("x", n)], [("y", (m,))], lambda: function, key, lanes=lanes)
        with threads(1):
            times[f"kernel{label}"] = best(lambda kernel=kernel: kernel(x, out=out)) / states
    with tempfile.TemporaryDirectory() as temporary:
        library = casadi_c(function, Path(temporary))
        theirs_out, work = np.empty((states, m)), np.empty(function.sz_w() + 1)

        def loop() -> None:
            address = [ctypes.c_void_p(a.ctypes.data) for a in (x, theirs_out, work)]
            sizes = [ctypes.c_ssize_t(k) for k in (states, n, m)]
            library.rows(address[0], address[1], *sizes, address[2])

        theirs = best(loop) / states
    np.testing.assert_allclose(out, theirs_out, rtol=1e-8, atol=1e-8 * np.abs(theirs_out).max())
    listed = ", ".join(f"{label} {t * 1e9:.1f} ns (ratio {theirs / t:.1f})" for label, t in times.items())
    print(f"{name:6s} {quantity:17s} CasADi's C {theirs * 1e9:8.1f} ns; {listed}")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    for model in ("UR5", "Panda", "G1"):
        for answer in ("inverse_dynamics", "forward_dynamics"):
            compare(model, answer, count)
