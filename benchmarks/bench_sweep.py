"""A sweep of ten million states: time per state and peak memory, beside the same in small batches.

    python benchmarks/bench_sweep.py [--states 10000000] [--chunk 262144] [--json benchmarks/results/sweep.json]
        [--only forward_dynamics:float32]

Two ways. In one call: arguments and results of all states are in memory, and the peak is what lies above them. In
chunks: the same chunk of states is computed again and again into memory that is used again, and reduced (the largest
torque of each joint); drawing states is not counted, neither in the time nor in the peak. After each chunk as many
states are computed in small batches, so that both have the same machine and the same statistic (mean and median; a
mean beside the best of a tight loop made chunks seem slower by up to four fifths). One thread.

`--peaks` measures the peak alone, of more quantities and models, loops and derivatives among them: ten million states,
or as many as have 2 GB of results (states are drawn once and repeated).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rivals import FILES, best, machine, robot

import polybody as pb
from polybody.kernels import memory

SMALL = 16384  # states of the batch that "full speed" is measured on


def resident() -> tuple[int, int]:
    """(bytes of memory in use now, most of them since `forget`), of this process (Linux)."""
    found = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    now, most = (int(found[key].split()[0]) << 10 for key in ("VmRSS", "VmHWM"))
    return now, most


def forget() -> None:
    """Let the kernel count the peak anew."""
    Path("/proc/self/clear_refs").write_text("5")


def states_of(model: Any, count: int, dtype: Any, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """States as one array each, made in pieces so that they themselves need no more memory."""
    q, v, a = (np.empty((count, n), dtype) for n in (model.nq, model.nv, model.nv))
    for first in range(0, count, 1 << 18):
        some = slice(first, min(first + (1 << 18), count))
        q[some] = model.random_configuration(rng, size=some.stop - some.start)
        v[some] = rng.standard_normal(v[some].shape, dtype=np.float32)
        a[some] = rng.standard_normal(a[some].shape, dtype=np.float32)
    return q, v, a


def at_once(model: Any, quantity: str, count: int, dtype: Any) -> dict[str, float]:
    states = states_of(model, count, dtype, np.random.default_rng(0))
    call, few = getattr(model, quantity), tuple(x[:SMALL].copy() for x in states)
    for _ in range(3):
        call(*few)
    small = best(lambda: call(*few)) / SMALL
    memory.release()
    before, _ = resident()
    forget()
    begun = time.perf_counter()
    found = call(*states)
    seconds = time.perf_counter() - begun
    _, most = resident()
    again = best(lambda: call(*states, out=found), 0.0, 1)
    return {"ns": 1e9 * seconds / count, "again_ns": 1e9 * again / count, "small_ns": 1e9 * small,
            "results_mb": found.nbytes / 1e6, "peak_over_results_mb": (most - before - found.nbytes) / 1e6}  # fmt: skip


PEAKS = {
    "inverse_dynamics": "qva", "forward_dynamics": "qva", "mass_matrix": "q", "bias_forces": "qv", "energy": "qv",
    "poses": "q",
    "inverse_dynamics_derivatives": "qva", "forward_dynamics_derivatives": "qva", "coriolis_matrix": "qv",
    "inverse_mass_matrix": "q", "reactions": "qva", "regressor": "qva",
}  # fmt: skip
MOST_RESULTS, DRAWN = 2e9, 1 << 14


def peak(model: Any, quantity: str, count: int) -> dict[str, float]:
    """Peak memory above arguments and results of one call on many states, which are some repeated."""
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng, size=DRAWN)
    v = model.assemble_velocity(q, rng.standard_normal((DRAWN, model.nv)))
    a = model.assemble_acceleration(q, v, rng.standard_normal((DRAWN, model.nv)))
    some = [{"q": q, "v": v, "a": a}[key] for key in PEAKS[quantity]]
    call = getattr(model, quantity)

    def sizes(found: Any) -> int:
        parts = found.values() if isinstance(found, dict) else found if isinstance(found, tuple) else (found,)
        return sum(part.nbytes for part in parts)

    one = sizes(call(*(x[:64].copy() for x in some))) / 64
    count = int(min(count, MOST_RESULTS / one))
    given = [np.resize(x, (count, x.shape[1])) for x in some]
    for _ in range(3):
        call(*(x[:SMALL].copy() for x in given))
    memory.release()
    before, _ = resident()
    forget()
    begun = time.perf_counter()
    found = call(*given)
    seconds = time.perf_counter() - begun
    results = sizes(found)
    over = (resident()[1] - before - results) / 1e6
    return {"states": count, "ns": 1e9 * seconds / count, "results_mb": results / 1e6, "peak_over_results_mb": over}


def peaks(names: list[str], count: int) -> list[dict[str, Any]]:
    """Rows of `peak` of all quantities of these models."""
    rows = []
    for name in names:
        model = robot(name)[0] if name in FILES else pb.load(name)
        for quantity in PEAKS:
            try:
                row = {"model": name, "quantity": quantity, **peak(model, quantity, count)}
            except pb.PolybodyError as error:  # a model may have no such answer
                print(f"{name:8s} {quantity:30s} {str(error).splitlines()[0]}")
                continue
            rows.append(row)
            over = row["peak_over_results_mb"]
            print(f"{name:8s} {quantity:30s} {row['states']:9d} states, {row['ns']:8.1f} ns, "
                  f"{row['results_mb']:7.0f} MB of results, peak {over:6.1f} MB above", flush=True)
    return rows


def largest_of(out: np.ndarray) -> np.ndarray:
    """The largest magnitude of each column. Rows are folded 64 to one first: NumPy's reduction of six columns takes
    70 ns per state, three times what the torques took to compute; this way it is 3 to 8."""
    whole = out[: len(out) // 64 * 64].reshape(-1, 64 * out.shape[1])
    folded = np.maximum(whole.max(axis=0, initial=0.0), -whole.min(axis=0, initial=0.0)).reshape(64, -1).max(axis=0)
    rest = np.abs(out[len(out) // 64 * 64 :]).max(axis=0, initial=0.0)
    return np.maximum(folded, rest)


def in_chunks(model: Any, quantity: str, count: int, dtype: Any, chunk: int) -> dict[str, float]:
    """Chunks and, by turns, as many states in small batches: means and medians of both from the same seconds."""
    states = states_of(model, chunk, dtype, np.random.default_rng(0))
    few = tuple(x[:SMALL].copy() for x in states)
    call = getattr(model, quantity)
    out, small_out = np.zeros((chunk, model.nv), dtype), np.zeros((SMALL, model.nv), dtype)
    largest = np.zeros(model.nv, dtype)
    for _ in range(3):
        call(*few, out=small_out)
        call(*states, out=out)
    before, _ = resident()
    forget()
    clock, rows, reduced = time.perf_counter, ([], []), 0.0
    for first in range(0, count, chunk):
        many = min(chunk, count - first)
        some = [x[:many] for x in states]
        at = clock()
        call(*some, out=out[:many])
        done = clock()
        rows[0].append((many, done - at))
        largest = np.maximum(largest, largest_of(out[:many]))
        reduced += clock() - done
        for _ in range(many // SMALL):
            at = clock()
            call(*few, out=small_out)
            rows[1].append((SMALL, clock() - at))
    peak_mb = (resident()[1] - before) / 1e6
    (states_of_chunks, chunks), (states_of_batches, batches) = (np.array(x).T for x in rows)
    return {"ns": 1e9 * chunks.sum() / states_of_chunks.sum(), "median_ns": 1e9 * np.median(chunks / states_of_chunks),
            "small_ns": 1e9 * batches.sum() / states_of_batches.sum(),
            "small_median_ns": 1e9 * np.median(batches / states_of_batches),
            "reduction_ns": 1e9 * reduced / count, "peak_mb": peak_mb}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=10_000_000)
    parser.add_argument("--chunk", type=int, default=1 << 18)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "sweep.json")
    parser.add_argument("--only", help="one row, such as forward_dynamics:float32; the others of the file are kept")
    parser.add_argument("--peaks", nargs="*", help="models; peak memory only, into results/peaks.json")
    options = parser.parse_args()
    if options.peaks is not None:
        rows = peaks(options.peaks or ["UR5", "Panda", "G1", "stewart", "delta", "four-bar"], options.states)
        told = {"machine": machine(), "rows": rows}
        options.json.with_name("peaks.json").write_text(json.dumps(told, indent=1) + "\n")
        return
    model, _ = robot("UR5")
    rows = []
    with pb.threads(1):
        for dtype in (np.float64, np.float32):
            for quantity in ("inverse_dynamics", "forward_dynamics"):
                name = np.dtype(dtype).name
                if options.only not in (None, f"{quantity}:{name}"):
                    continue
                whole = at_once(model, quantity, options.states, dtype)
                parts = in_chunks(model, quantity, options.states, dtype, options.chunk)
                rows.append({"quantity": quantity, "dtype": name, "at_once": whole, "in_chunks": parts})
                print(f"UR5 {quantity}, {name}, ns per state: one call {whole['ns']:.1f}, into memory used before "
                      f"{whole['again_ns']:.1f}, best of {SMALL} states {whole['small_ns']:.1f}; by turns, mean "
                      f"(median): chunks {parts['ns']:.1f} ({parts['median_ns']:.1f}), {SMALL} states "
                      f"{parts['small_ns']:.1f} ({parts['small_median_ns']:.1f}); reduction "
                      f"{parts['reduction_ns']:.1f}; peak {whole['peak_over_results_mb']:.1f} MB over "
                      f"{whole['results_mb']:.0f} MB of results, in chunks {parts['peak_mb']:.1f} MB", flush=True)
    if options.only is not None and options.json.exists():
        kept = [row for row in json.loads(options.json.read_text())["rows"]
                if f"{row['quantity']}:{row['dtype']}" != options.only]  # fmt: skip
        rows = sorted([*kept, *rows], key=lambda row: (row["dtype"] == "float32", row["quantity"][0] == "f"))
    told = {"machine": machine(), "states": options.states, "chunk": options.chunk, "rows": rows}
    options.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
