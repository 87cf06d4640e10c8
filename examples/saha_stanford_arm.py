"""Saha 1999, section 6.2: RIDIM and RFDSIM for the six-joint Stanford arm, figures 8 and 9.

    python examples/saha_stanford_arm.py [FOLDER]

The paper's path (39) turns every joint by 60 degrees (the second from 90 to 60) and slides the third by 0.1 m in ten
seconds; the paper prints (39) without its scale, the errata give it: q(0) + (q(T) − q(0)) [t/T − sin(2πt/T)/2π].
The free fall starts at rest from θ_2 = 90 degrees.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import polybody as pb

T = 10.0
START = np.array([0, np.pi / 2, 0, 0, 0, 0])
END = np.array([np.pi / 3, np.pi / 3, 0.1, np.pi / 3, np.pi / 3, np.pi / 3])


def cycloid(t: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a of the path (39) at the times t."""
    s, w = t[:, None] / T, 2 * np.pi / T
    change = end - start
    q = start + change * (s - np.sin(2 * np.pi * s) / (2 * np.pi))
    return q, change / T * (1 - np.cos(w * t[:, None])), change / T * w * np.sin(w * t[:, None])


def inverse(model: pb.Model, t: np.ndarray) -> np.ndarray:
    """RIDIM: the joint forces for the path, figure 8."""
    return model.inverse_dynamics(*cycloid(t, START, END))


def free_fall(model: pb.Model, t: np.ndarray) -> np.ndarray:
    """RFDSIM: the joints' motion under gravity alone, figure 9."""
    return pb.simulate(model, t[-1], START, times=t, rtol=1e-11, atol=1e-13).q


def main(folder: Path) -> None:
    model = pb.load("stanford-arm")
    t, fall_time = np.linspace(0, T, 501), np.linspace(0, 1, 201)
    tau, q = inverse(model, t), free_fall(model, fall_time)
    draw(folder, t, tau, fall_time, q)
    print("  t      tau_1      tau_2      f_3        tau_4      tau_5      tau_6")
    for k in (0, 125, 250, 375, 500):
        print(f"{t[k]:5.1f} " + " ".join(f"{x:10.6f}" for x in tau[k]))
    print("free fall, q(0.5):", np.array2string(q[100], precision=10))
    print("free fall, q(1.0):", np.array2string(q[200], precision=10))


def draw(folder: Path, t: np.ndarray, tau: np.ndarray, fall_time: np.ndarray, q: np.ndarray) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for name, x, y, label in (
        ("saha_figure_8_stanford_forces.png", t, tau, "force (N), moment (N m)"),
        ("saha_figure_9_stanford_free_fall.png", fall_time, q, "joint (rad, m)"),
    ):
        figure, panels = plt.subplots(2, 3, figsize=(9, 4.5), sharex=True, constrained_layout=True)
        for i, axes in enumerate(panels.flat):
            axes.plot(x, y[:, i])
            axes.set_title(f"joint {i + 1}", fontsize=9)
            axes.grid(alpha=0.3)
        figure.supxlabel("time (s)")
        figure.supylabel(label)
        figure.savefig(folder / name, dpi=110)
        plt.close(figure)
        print(f"wrote {folder / name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "saha_stanford_arm")
