"""Every shipped machine with loops: its mobility told in words, and all of them in one picture, each in motion.

    python examples/closed_loop_machines.py [FOLDER]      writes closed-loop-machines.png

Each machine is moved from its neutral configuration (most by their drives, the last three by trunk and object), its
loops kept closed on the way, and drawn where it arrives with the path of one of its points.
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
from polybody.studio.drawing import draw_on

#: name: (how far joints move to where the machine is drawn; the frame whose path is drawn)
MACHINES: dict[str, tuple[dict[str, Any], str]] = {
    "four-bar": ({"crank_joint": -0.9}, "coupler_point"),
    "five-bar": ({"phi1": 0.4, "theta_h": -0.3}, "C"),
    "slider-crank": ({"crank_joint": 0.9}, "slider"),
    "bricard": ({"theta1": 0.5}, "link4"),
    "3-rrr": ({"phi1_1": -0.3, "phi1_2": -0.25, "phi1_3": -0.35}, "hand"),
    "stewart": ({"leg1": 0.1, "leg2": 0.12, "leg5": -0.05, "leg6": 0.05}, "tool"),
    "delta": ({"motor1": 0.5, "motor2": -0.2, "motor3": 0.2}, "tool"),
    "hybrid": ({"phi1_1": 0.4, "phi1_2": -0.2, "phi4": -0.4, "phi5": 0.5}, "tool"),
    "walking-machine": ({"trunk_joint": (-0.12, 0.12, -0.04)}, "trunk"),
    "two-fingered-hand": ({"object_joint": (0.25, 0.012, 0.008)}, "object"),
    "two-arms": ({"object_joint": (-0.3, 0.15, -0.1)}, "object"),
}


def drive(model: pb.Model, goal: dict[str, Any], steps: int = 24) -> np.ndarray:
    """Configurations (steps + 1, nq) on the way: the named joints move evenly, everything else follows the loops."""
    path = [model.neutral()]
    for k in range(1, steps + 1):
        q = path[-1].copy()
        for joint, size in goal.items():
            q[model.joint_slices()[joint][0]] = np.asarray(size) * k / steps
        path.append(model.assemble(q, hold=goal))
    return np.array(path)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    figure = plt.figure(figsize=(17, 6.6), dpi=90)
    for k, (name, (goal, follow)) in enumerate(MACHINES.items(), start=1):
        model = pb.load(name)
        mobility = model.mobility()
        print(f"{name}\n  " + str(mobility).replace("\n", "\n  "))
        path = drive(model, goal)
        axes = figure.add_subplot(2, 6, k, projection="3d", proj_type="ortho")
        draw_on(axes, model, path[-1])
        axes.plot(*model.pose(path, follow)[:, :3, 3].T, color="#e67e22", linewidth=1.6)
        axes.get_legend().remove()
        axes.set_title(f"{name}: mobility {mobility.true} (Gruebler {mobility.gruebler})", fontsize=9)
        axes.tick_params(labelsize=0, length=0)
        for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
            axis.set_ticklabels([])
            axis.label.set_visible(False)
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.95, wspace=0.02, hspace=0.1)
    figure.savefig(folder / "closed-loop-machines.png")
    print(f"wrote {folder / 'closed-loop-machines.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
