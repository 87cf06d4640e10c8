"""Studies: cost beside the bare kernel, a Python loop and MuJoCo; by workers, and by Ray nodes of this machine.

    python benchmarks/bench_studies.py payloads | simulations | scaling | ray
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from rivals import best, robot

import polybody as pb

CASES = 1_000_000


def payloads() -> None:
    """Inverse dynamics of a UR5 with one million payloads: the study against its kernel on the same numbers."""
    arm = robot("UR5")[0].with_payload("tool0", 1.0, (0, 0, 0.05), (0.01, 0.01, 0.01))
    vary = {"payload.mass": {"uniform": [0, 5]}, "payload.com": {"uniform": [[-0.05] * 3, [0.05] * 3]}}
    at = {"q": np.full(6, 0.3), "v": np.full(6, 0.5), "a": np.full(6, 1.0)}
    study = pb.Study(arm, vary, samples=CASES, quantity="inverse_dynamics", at=at, keep=["tau"], chunk=131072)
    model = study.model
    assert model is not None
    cases, job = study.cases, study.job
    values = np.concatenate([np.hstack(list(cases.values(k).values())) for k in range(cases.chunks)])
    low, high = values.min(axis=0), values.max(axis=0)

    def plain() -> None:
        drawn = np.random.default_rng(0).uniform(low, high, values.shape)
        model.inverse_dynamics(at["q"], at["v"], at["a"], parameters=drawn)

    with pb.threads(1), tempfile.TemporaryDirectory() as folder:
        bare = best(lambda: model.inverse_dynamics(at["q"], at["v"], at["a"], parameters=values), seconds=2)
        drawing = best(lambda: [len(cases.values(k)) for k in range(cases.chunks)], seconds=2)
        computing = best(lambda: [job.compute(k) for k in range(cases.chunks)], seconds=2)
        program = best(plain, seconds=2)
        folders = iter(Path(folder) / f"out{k}" for k in range(1000))
        whole = best(lambda: study.run(next(folders)), seconds=3)
    print(f"1,000,000 payloads of a UR5, one thread: bare kernel {bare:.4f} s, random numbers {drawing:.4f} s, "
          f"all chunks, kept in memory, {computing:.4f} s ({100 * (computing / (bare + drawing) - 1):.0f} % more), "
          f"NumPy's uniform() and one call {program:.4f} s, with Parquet on disk {whole:.3f} s")  # fmt: skip


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
