"""Saha 1999, section 6.1: torques and free fall of a planar arm with three joints, figures 5 and 6.

    python examples/saha_planar_3r.py [FOLDER]

The paper's parameters are lost with its figures; here, as in the errata, every link has length 1 m, mass 1 kg and
inertia 1/12 kg m² about its middle, and gravity is −9.81 m/s² along Y. The path is (38): θ from 0 to π in ten seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import polybody as pb

T = 10.0


def path(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """θ, its rate and its acceleration of (38), the same for the three joints."""
    w = 2 * np.pi / T
    each = ((w * t - np.sin(w * t)) / 2, w * (1 - np.cos(w * t)) / 2, w**2 * np.sin(w * t) / 2)
    q, v, a = (np.repeat(x[:, None], 3, axis=1) for x in each)
    return q, v, a


def main(folder: Path) -> None:
    model = pb.load("planar-3r")
    t, fall_time = np.linspace(0, T, 501), np.linspace(0, 1, 201)
    tau = model.inverse_dynamics(*path(t))
    q = pb.simulate(model, 1.0, times=fall_time, rtol=1e-11, atol=1e-13).q
    draw(folder, t, tau, fall_time, q)
    for k in (0, 125, 250):
        print(f"tau({t[k]:.1f}) =", np.array2string(tau[k], precision=7))
    for k in (100, 200):
        print(f"free fall, q({fall_time[k]:.1f}) =", np.array2string(q[k], precision=10))


def draw(folder: Path, t: np.ndarray, tau: np.ndarray, fall_time: np.ndarray, q: np.ndarray) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    left.plot(t, tau, label=["tau_1", "tau_2", "tau_3"])
    left.set(title="Figure 5: torques along (38)", xlabel="time (s)", ylabel="torque (N m)")
    right.plot(fall_time, q, label=["th_1", "th_2", "th_3"])
    right.set(title="Figure 6: free fall", xlabel="time (s)", ylabel="angle (rad)")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(folder / "saha_figures_5_and_6_planar_3r.png", dpi=110)
    plt.close(figure)
    print(f"wrote {folder / 'saha_figures_5_and_6_planar_3r.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "saha_planar_3r")
