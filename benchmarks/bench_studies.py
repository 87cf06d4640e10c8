"""Studies: cost beside the bare kernel, a Python loop and MuJoCo; by workers, and by Ray nodes of this machine.

    python benchmarks/bench_studies.py payloads | simulations | scaling | ray
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rivals import robot

import polybody as pb
from polybody.quantities.table import quantity

CASES = 1_000_000


def together(works: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """The shortest of many runs of each, in turn: what else the machine does meets all of them."""
    lowest = dict.fromkeys(works, float("inf"))
    for work in works.values():
        work()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, work in works.items():
            started = time.perf_counter()
            work()
            lowest[name] = min(lowest[name], time.perf_counter() - started)
    return lowest


def payloads() -> None:
    """Inverse dynamics of a UR5 with one million payloads: the study, default settings, against its kernel."""
    arm = robot("UR5")[0].with_payload("tool0", 1.0, (0, 0, 0.05), (0.01, 0.01, 0.01))
    vary = {"payload.mass": {"uniform": [0, 5]}, "payload.com": {"uniform": [[-0.05] * 3, [0.05] * 3]}}
    at = {"q": np.full(6, 0.3), "v": np.full(6, 0.5), "a": np.full(6, 1.0)}

    def study(*keep: str) -> pb.Study:
        return pb.Study(arm, vary, samples=CASES, quantity="inverse_dynamics", at=at, keep=keep)

    whole, peaks = study("tau"), study("peak(tau)")
    model, cases = whole.model, whole.cases
    assert model is not None
    values = np.concatenate([np.hstack(list(cases.values(k).values())) for k in range(cases.chunks)])
    inner = model.engine.kernel(quantity(model.mechanism, "inverse_dynamics"))  # type: ignore[attr-defined]
    low, high = values.min(axis=0), values.max(axis=0)

    def plain() -> object:
        drawn = np.random.default_rng(0).uniform(low, high, values.shape)
        return model.inverse_dynamics(*at.values(), parameters=drawn)

    for count in (1, 2):
        with pb.threads(count):
            found = together({
                "bare call": lambda: model.inverse_dynamics(*at.values(), parameters=values),
                "machine code alone": lambda: inner(*at.values(), values),
                "study, tau in memory": whole.run, "study, peak(tau) in memory": peaks.run,
                "NumPy's uniform() and the call": plain,
            }, 10.0)  # fmt: skip
            bare, code = found["bare call"], found["machine code alone"]
            print(f"1,000,000 payloads of a UR5, {count} thread(s), chunks of {cases.chunk}:")
            for name, spent in found.items():
                over = 100 * (spent / bare - 1), 100 * (spent / code - 1)
                print(f"  {name:32} {1e3 * spent:6.1f} ms  {over[0]:+4.0f} % to the call {over[1]:+4.0f} % to its code")
            _on_disk({"tau": whole, "peak(tau)": peaks})


def _on_disk(studies: dict[str, pb.Study]) -> None:
    """The same written to files, beside what the file system takes for as many bytes in as many files."""
    for name, study in studies.items():
        for form in ("arrow", "parquet"):
            times, raw, size = [], [], 0
            for _ in range(8):
                with tempfile.TemporaryDirectory(dir=".") as folder:
                    started = time.perf_counter()
                    files = study.run(Path(folder) / "out", format=form).files()
                    times.append(time.perf_counter() - started)
                    contents = [path.read_bytes() for path in files]
                    size = sum(map(len, contents))
                with tempfile.TemporaryDirectory(dir=".") as folder:
                    started = time.perf_counter()
                    for k, content in enumerate(contents):
                        with open(Path(folder) / str(k), "wb", buffering=0) as stream:
                            stream.write(content)
                    raw.append(time.perf_counter() - started)
            print(f"  {name} as {form}: {1e3 * min(times):.0f} ms, {size / 1e6:.0f} MB, {size / 1e9 / min(times):.2f} "
                  f"GB/s; writing these bytes alone {1e3 * min(raw):.0f} ms, {size / 1e9 / min(raw):.2f} GB/s")


def panda_study(cases: int) -> pb.Study:
    arm = robot("Panda")[0]
    link = arm.body_names[5]
    rollout = {"steps": 1000, "dt": 1e-3, "method": "semi-implicit", "controller": {"kd": 0.5, "target": 0.1}}
    vary = {f"{link}.mass": {"uniform": [1, 4]}, "kp": {"uniform": [10, 40]}}
    return pb.Study(arm, vary, samples=cases, rollout=rollout, keep=["q_end"], chunk=256)


def simulations(cases: int = 10_000) -> None:
    """One-second simulations of a Panda under PD with other masses and gains."""
    study = panda_study(cases)
    study.job.compute(0)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        failed = len(study.run(Path(folder) / "out").failures())
        ours = time.perf_counter() - started
    assert not failed, f"{failed} motions failed: nothing is compared"
    model, values = study.model, study.cases.values(0)
    assert model is not None
    names = list(values)
    started, few = time.perf_counter(), 5
    for k in range(few):
        own = model.parameters.at(values[names[0]][k])
        law = pb.PD(own, np.full(model.nq, 0.1), values["kp"][k][0], 0.5)
        pb.simulate(own, 1.0, controller=law, method="semi-implicit", dt=1e-3, limits="ignore")
    loop = (time.perf_counter() - started) / few
    theirs = _mujoco(cases, study)
    print(f"{cases} one-second simulations of a Panda under PD: study {ours:.2f} s ({cases / ours:.0f} a second), "
          f"Python loop over pb.simulate {1 / loop:.1f} a second, MuJoCo's rollout {theirs} a second")  # fmt: skip


def _mujoco(cases: int, study: pb.Study) -> str:
    from bench_rollout import mujoco_arm

    try:
        import mujoco
    except ImportError:
        return "not installed"
    model = study.model
    assert model is not None
    made, rollout = mujoco_arm(model)
    made.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST  # type: ignore[attr-defined]
    few = 64
    masses = study.cases.values(0)[study.facts()["varied"][0]][:few, 0]
    models = []
    import copy

    for mass in masses:
        one = copy.copy(made)
        one.body_mass[6] = mass  # type: ignore[attr-defined]
        models.append(one)
    state = np.zeros((few, 1 + made.nq + made.nv))  # type: ignore[attr-defined]
    control = np.zeros((few, 1000, made.nu))  # type: ignore[attr-defined]
    data = [mujoco.MjData(made) for _ in range(2)]
    started = time.perf_counter()
    rollout(models, data, state, control)
    return f"{few / (time.perf_counter() - started):.0f} (torques given, no PD)"


def slow_study(cases: int) -> pb.Study:
    arm = pb.load("puma560")
    return pb.Study(arm, {"link2.mass": {"uniform": [15, 20]}}, samples=cases, chunk=8,
                    simulate={"duration": 0.5, "q0": 0.3, "method": "dop853", "limits": "ignore"}, keep=["q_end"])


def _rate(study: pb.Study, folder: Path, **options: Any) -> str:
    """Cases per second over the second half, when all workers run, and how long the first chunks and the whole took."""
    times: list[tuple[int, float]] = []
    started = time.perf_counter()
    study.run(folder, progress=lambda n, *_: times.append((n, time.perf_counter())), **options)
    half, last = times[len(times) // 2], times[-1]
    return (f"{(last[0] - half[0]) / (last[1] - half[1]):.1f} simulations per second, the first four chunks after "
            f"{times[3][1] - started:.1f} s, all {last[0]} after {last[1] - started:.1f} s")  # fmt: skip


def scaling() -> None:
    """Simulations case by case: one process, two processes."""
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            print(f"{workers} process(es): {_rate(slow_study(1600), Path(folder) / 'out', workers=workers)}")


def on_ray() -> None:
    """The same on Ray clusters of one and two nodes of this machine, and the driver's own cost of a chunk."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.studies.cluster import two_nodes

    with two_nodes() as cluster, tempfile.TemporaryDirectory() as folder:
        rate = _rate(slow_study(600), Path(folder) / "out", cluster=cluster.address)
        print(f"Ray, two nodes of one processor: {rate}")
        empty = pb.Study(None, {"x": {"uniform": [0, 1]}}, samples=2000, function=_nothing, chunk=1)
        started = time.perf_counter()
        empty.run(Path(folder) / "empty", cluster=cluster.address)
        print(f"Ray, empty chunks: {2000 / (time.perf_counter() - started):.0f} chunks a second through the driver")


def _nothing(case: pb.studies.Case) -> dict[str, float]:
    return {"y": case["x"]}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    chosen = sys.argv[1:] or ["payloads", "simulations", "scaling", "ray"]
    for word in chosen:
        {"payloads": payloads, "simulations": simulations, "few": lambda: simulations(1000), "scaling": scaling,
         "ray": on_ray}[word]()  # fmt: skip
