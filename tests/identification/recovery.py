"""Recovery of base parameters from made recordings, over seeds: how often they are within three deviations.

    python tests/identification/recovery.py [SEEDS]

Machines with random masses move along Fourier series (loops along their independent coordinates, a floating base with a
velocity that is one). Joint forces come from inverse dynamics and have normal noise of one per cent of each one's rms.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import polybody as pb
from polybody.formulations.denoc import body_parameters
from polybody.identification.problem import bare
from polybody.mechanism.columns import actuated, plain_columns

sys.path.append(str(Path(__file__).resolve().parent.parent))

MACHINES = ("puma560", "panda", "humanoid", "five-bar", "delta", "stewart")
TERMS = ("viscous",)
VISCOUS = 0.7


def machine(name: str) -> pb.Model:
    from loop_states import massive
    from pinocchio_bridge import robot_file

    if name == "panda":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bare(pb.load(robot_file("panda.urdf")).lock(["panda_finger_joint1"]))
    return bare(pb.load(name) if name in ("puma560", "humanoid") else massive(name))


def series(rng: np.random.Generator, t: np.ndarray, n: int, size: float):
    """(u, u̇, ü): three waves in each of n coordinates, zero at the start."""
    u, du, ddu = np.zeros((3, len(t), n))
    for w in 2 * np.pi / t[-1] * np.array([1, 2, 3]):
        A, B = rng.normal(size=(2, n)) * size / 3
        s, c = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
        u, du, ddu = u + A * s + B * (c - 1), du + w * (A * c - B * s), ddu - w * w * (A * s + B * c)
    return u, du, ddu


def motion(model: pb.Model, rng: np.random.Generator, count: int = 400, seconds: float = 6.0):
    """(t, q, v, a) within the loops."""
    t = np.linspace(0, seconds, count)
    if model.mechanism.constrained:
        return t, *_on_loops(model, rng, t)
    if model.nq == model.nv:
        return t, *series(rng, t, model.nv, 1.2)
    fine = np.linspace(0, seconds, 10 * (count - 1) + 1)
    middle = (fine[1:] + fine[:-1]) / 2
    state = rng.bit_generator.state
    _, v, a = series(rng, t, model.nv, 0.8)
    rng.bit_generator.state = state
    _, between, _ = series(rng, np.concatenate([middle, t[-1:]]), model.nv, 0.8)
    q = [model.neutral()]
    for row in between[:-1]:
        q.append(model.integrate(q[-1], row, fine[1]))
    return t, np.array(q[::10]), v, a


def _on_loops(model: pb.Model, rng: np.random.Generator, t: np.ndarray):
    own, start = plain_columns(model.mechanism, model.engine.independent), model.assemble()
    assert own is not None
    if model.name == "five-bar":
        start = model.assemble(np.deg2rad([70, -35, -100, -25]))
    size = 0.25
    while True:
        u, du, ddu = series(rng, t, len(own), size)
        try:
            q, guess = [], start
            for row in u:
                guess = guess.copy()
                guess[own] = start[own] + row
                guess = model.constraints.assemble_dependent(guess)
                q.append(guess)
            q = np.array(q)
            return q, *model.constraints.joint_motion(q, du, ddu)
        except pb.InputError:
            size *= 0.7


def recovered(name: str, seeds: range) -> tuple[int, int, float]:
    """(within three deviations, all, rms of gap over deviation) of a machine's base parameters over seeds."""
    model = machine(name)
    t, q, v, a = motion(model, np.random.default_rng(1))
    tau = model.inverse_dynamics(q, v, a)
    found, gaps = None, []
    for seed in seeds:
        rng = np.random.default_rng(1000 + seed)
        columns = [int(k) for k in actuated(model.mechanism)]
        rub = np.zeros_like(v)
        rub[:, columns] = VISCOUS * v[:, columns]
        whole = tau + rub
        noise = 0.01 * np.sqrt(np.mean(whole**2, axis=0)) * rng.normal(size=tau.shape)
        found = pb.identify(
            model, {"t": t, "q": q, "v": v, "tau": whole + noise}, terms=TERMS, cutoff=np.inf, consistent=False,
            method="weighted",
        )  # fmt: skip
        true = np.concatenate([body_parameters(model.mechanism), np.full(len(columns), VISCOUS)])
        gaps.append(np.abs(found.base - found.problem.base.values(true)) / found.deviations)
    all_gaps = np.array(gaps)
    return int(np.sum(all_gaps < 3)), all_gaps.size, float(np.sqrt(np.mean(all_gaps**2)))


def main() -> None:
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
    for name in sys.argv[2:] or MACHINES:
        within, total, rms = recovered(name, seeds)
        share = 100 * within / total
        print(f"{name:10} {within} of {total} within 3 deviations ({share:.2f} %), rms {rms:.3f}", flush=True)


if __name__ == "__main__":
    main()
