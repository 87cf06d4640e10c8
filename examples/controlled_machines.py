"""Seven controllers on a tree, a linkage, a grasp and a free base: each brings its frame to the goal as its law says.

    python examples/controlled_machines.py [FOLDER]      writes controlled-machines.png

The machines are a Puma 560, a 3-RRR platform, two arms that hold a box, and an arm on a free base. Every law is made by
the same call on each of them; only actuated joints exert forces. The error of resolved rate obeys
x̃'' + 28 x̃' + 196 x̃ = 0, that of the others x̃'' + 20 x̃' + 100 x̃ = 0. The last law has a push on its frame, which the
observer takes away; on a free base the joints no longer feel it, but the base still drifts.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import polybody as pb

KP, KD, DURATION, STEP = 100.0, 20.0, 0.4, 0.02
SPRING, DAMPER, MASS = 200.0, 40.0, 2.0  # SPRING/MASS = KP, DAMPER/MASS = KD


def chain(build: Any, side: str, parent: str, x: float, axes: tuple[tuple[int, int, int], ...]) -> None:
    place = (x, 0, 0)
    for k, (axis, length) in enumerate(zip(axes, (0.6, 0.6, 0.4), strict=True)):
        name = f"{side}{k}"
        build.body(name, 2.0, com=(length / 2, 0, 0), inertia=(0.01, 0.06, 0.06))
        build.joint(f"{side}_joint{k}", "revolute", parent, name, place, axis)
        parent, place = name, (length, 0, 0)
    build.frame(f"{side}_hand", parent, place)


def two_arms() -> tuple[Any, np.ndarray]:
    """Two planar arms that hold a box: (grasp, configuration)."""
    build = pb.Builder("two arms", gravity=(0, -9.81, 0))
    for side, x in (("left", -0.5), ("right", 0.5)):
        chain(build, side, "world", x, ((0, 0, 1),) * 3)
    build.body("box", 3.0, inertia=(0.2, 0.2, 0.2))
    build.joint("box_joint", "planar", "world", "box", active=False)
    model = build.model()
    q = np.array([2.2, -1.0, -0.5, 0.9, 1.1, 0.4, 0.0, 0.0, 0.0])
    q[7:] = (model.pose(q, "left_hand")[:2, 3] + model.pose(q, "right_hand")[:2, 3]) / 2
    held = pb.grasp(model, "box", ["left_hand", "right_hand"], q)
    return held, held.project(q)


def space_arm() -> tuple[pb.Model, np.ndarray]:
    """An arm of three joints on a free base without gravity."""
    build = pb.Builder("space arm", gravity=(0, 0, 0))
    build.body("base", 20.0, inertia=(2.0, 2.0, 2.0))
    build.joint("root_joint", "floating", "world", "base")
    chain(build, "arm", "base", 0.5, ((0, 0, 1), (0, 1, 0), (0, 1, 0)))
    model = build.model()
    return model, model.integrate(model.neutral(), [0, 0, 0, 0, 0, 0, 0.3, 0.8, -1.2])


def machines() -> list[tuple[str, Any, np.ndarray, str, np.ndarray]]:
    """(title, model or grasp, configuration, frame, shift of the goal)."""
    puma, platform = pb.load("puma560"), pb.load("3-rrr")
    held, at = two_arms()
    free, start = space_arm()
    return [
        ("tree: Puma 560", puma, np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5]), "dh_6", np.array([-0.05, -0.04, -0.03])),
        ("loops: 3-RRR", platform, platform.neutral(), "hand", np.array([0.01, -0.005, 0])),
        ("grasp: two arms hold a box", held, at, "box", np.array([0.05, 0.03, 0])),
        ("free base: a space arm", free, start, "arm_hand", np.array([0.05, 0.08, -0.06])),
    ]


def laws(given: Any, q: np.ndarray, frame: str, goal: np.ndarray) -> dict[str, Any]:
    """Every controller with this goal of the frame."""
    kinds, position = pb.controllers, {"rows": "position"}
    nothing = lambda t, q, v: np.zeros(6)  # noqa: E731  a force sensor that nothing touches
    k = len(q) - 2
    last = pb.Function(lambda q, domain: [q[k], q[k + 1]], 2)
    resolved = kinds.ResolvedAcceleration(given, frame, goal, KP, KD, **position)
    return {
        "resolved rate": kinds.ResolvedRate(given, frame, goal, 7.0, 28.0, **position),
        "resolved acceleration": resolved,
        "impedance": kinds.Impedance(given, frame, goal, SPRING, DAMPER, inertia=MASS, force=nothing, **position),
        "admittance": kinds.Admittance(given, frame, goal, SPRING, DAMPER, MASS, nothing, kp=KP, kd=KD, period=STEP,
                                       **position),
        "hybrid force-position": kinds.HybridForcePosition(given, frame, goal, np.zeros(6), "y", kp=KP, kd=KD,
                                                           **position),
        "feedback linearisation": kinds.FeedbackLinearisation(given, last, q[k:] + np.array([0.02, -0.02]), KP, KD),
        "disturbance observer": kinds.DisturbanceObserver(given, resolved, gain=40.0, period=STEP),
    }  # fmt: skip


def error(name: str, law: Any, model: pb.Model, frame: str, goal: np.ndarray, q: np.ndarray) -> float:
    """What the law is to bring to zero."""
    if name == "feedback linearisation":
        return float(np.linalg.norm(law.target(0.0)[0] - law.values(q)))
    gap = goal - model.pose(q, frame)[:3, 3]
    return float(np.linalg.norm(gap[[0, 2]] if name.startswith("hybrid") else gap))


def main(folder: Path) -> None:
    figure, axes = plt.subplots(2, 2, figsize=(10, 6.5), sharex=True, sharey=True, layout="constrained")
    for place, (title, given, q, frame, shift) in zip(axes.flat, machines(), strict=True):
        model = getattr(given, "closed", given)
        goal = model.pose(q, frame)[:3, 3] + shift
        push = np.array([0, 0, 0, 1.0, -0.6, 0]) * (1e-3 if "RRR" in title else 2.0)
        print(title)
        for k, (name, law) in enumerate(laws(given, q, frame, goal).items()):
            loads = {frame: push} if "observer" in name else None
            run = pb.simulate(given, DURATION, q, controller=law, wrenches=loads, method="rk4", dt=STEP, sample=STEP,
                              limits="ignore")
            assert not run.tau[:, ~model.actuation.active].any()
            gap = np.array([error(name, law, model, frame, goal, at) for at in run.q])
            print(f"  {name:24s} error {gap[0]:.4f} -> {gap[-1]:.1e}")
            assert gap[-1] < 0.2 * gap[0], f"{name} on {title} does not converge"
            place.semilogy(run.t, gap / gap[0], label=name, marker="os^vDPX"[k], markevery=(k, 7), markersize=6)
        exact = (1 + 10 * run.t) * np.exp(-10 * run.t)
        place.semilogy(run.t, exact, color="black", linestyle=":", label="(1 + 10 t) exp(−10 t)")
        place.set_title(title)
        place.grid(alpha=0.3)
    for below in axes[-1]:
        below.set_xlabel("time [s]")
    for left in axes[:, 0]:
        left.set_ylabel("error / its start")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "controlled-machines.png"
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "controlled_machines")
