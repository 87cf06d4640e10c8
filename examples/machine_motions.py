"""Each shipped machine with loops in motion: a picture, what its drives must do, and what its cut joints bear.

    python examples/machine_motions.py [FOLDER [MACHINE …]]      writes MACHINE.png for each

A machine goes from its neutral configuration to that of `closed_loop_machines.py` and back in 2 s. Positions are closed
at every instant, velocities and accelerations are those of the closed motion; the drives' efforts come from inverse
dynamics (of the slider-crank, whose coupler may spin, from hybrid dynamics), the loads from the cut joints' wrenches.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from closed_loop_machines import MACHINES

import polybody as pb
from polybody.studio.drawing import draw_on

STEPS, SECONDS = 40, 2.0


def motion(model: pb.Model, goal: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(t, q, v, a) of the way there and back, closed at all three levels."""
    t = np.linspace(0, SECONDS, STEPS + 1)
    share = (1 - np.cos(2 * np.pi * t / SECONDS)) / 2
    q = [model.neutral()]
    for s in share[1:]:
        guess = q[-1].copy()
        for joint, size in goal.items():
            guess[model.joint_slices()[joint][0]] = np.asarray(size) * s
        q.append(model.assemble(guess, hold=goal))
    q = np.array(q)
    ends = np.concatenate([q[-2:-1], q, q[1:2]])  # the motion is periodic
    v = model.difference(ends[:-2], ends[2:]) / (2 * (t[1] - t[0]))
    v = model.assemble_velocity(q, v)
    around = np.concatenate([v[-2:-1], v, v[1:2]])
    a = (around[2:] - around[:-2]) / (2 * (t[1] - t[0]))
    return t, q, v, model.assemble_acceleration(q, v, a)


def efforts(model: pb.Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a, tau): the drives' forces for the motion, and the motion, whose idle part may be another."""
    if model.mobility(q[0]).actuation == "underactuated":
        return model.actuation.hybrid_dynamics(q, v, a)
    return a, model.inverse_dynamics(q, v, a)


def draw(name: str, folder: Path) -> None:
    goal, follow = MACHINES[name]
    model = pb.load(name)
    t, q, v, a = motion(model, goal)
    a, tau = efforts(model, q, v, a)
    loads = model.constraints.loads(q, v, tau)
    figure = plt.figure(figsize=(8.6, 3.4), dpi=110)
    axes = figure.add_subplot(1, 2, 1, projection="3d", proj_type="ortho")
    draw_on(axes, model, q[STEPS // 2])
    axes.plot(*model.pose(q, follow)[:, :3, 3].T, color="#e67e22", linewidth=1.6)
    axes.get_legend().remove()
    axes.set_title(name)
    axes.tick_params(labelsize=6)
    axes.locator_params(nbins=4)  # numbers that do not touch
    axes.zaxis.labelpad = -1  # type: ignore[attr-defined]
    upper = figure.add_axes((0.6, 0.6, 0.38, 0.32))
    lower = figure.add_axes((0.6, 0.14, 0.38, 0.32), sharex=upper)
    for joint in model.mechanism.joints:
        for k in np.flatnonzero(np.broadcast_to(joint.active, joint.nv)):
            upper.plot(t, tau[:, joint.v.start + k], label=joint.name)
    unit = "N" if all(j.kind == "prismatic" for j in model.mechanism.joints if np.any(j.active)) else "N m"
    upper.set_ylabel(f"drives [{unit}]")
    for loop, wrench in loads.items():
        lower.plot(t, np.linalg.norm(wrench[:, 3:], axis=-1), label=loop)
    lower.set_ylabel("cut joints [N]")
    lower.set_xlabel("t [s]")
    upper.tick_params(labelbottom=False)
    for panel in (upper, lower):
        panel.grid(alpha=0.3)
        panel.legend(fontsize=6, ncols=6, frameon=False, loc="lower right", bbox_to_anchor=(1.02, 0.97),
                     columnspacing=1.0, handlelength=1.4)
        panel.tick_params(labelsize=7)
    figure.savefig(folder / f"{name}.png")
    plt.close(figure)
    print(f"wrote {folder / name}.png: drives up to {np.abs(tau).max():.3g} {unit}")


def main(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or list(MACHINES):
        draw(name, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"), sys.argv[2:])
