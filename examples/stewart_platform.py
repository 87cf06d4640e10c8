"""A Gough-Stewart platform: the six leg forces that carry its platform around a circle while it heaves and rolls.

    python examples/stewart_platform.py [FOLDER]      writes stewart-platform.png

The motion is given where it is wanted, at the platform; the forces come out where the drives are, in the legs. Feet,
balls and the platform's own joint are passive. As a check, the drives' power must be the rate of the energy.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import polybody as pb
from polybody.studio.drawing import draw_on

PERIOD, ROLL, RADIUS, HEAVE = 2.0, np.radians(12), 0.10, 0.05
PLATFORM = ["platform_joint"]


def platform_motion(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, v, a) of the platform's floating joint: place and quaternion; [ω; v] in the platform's axes, and its rate."""
    w = 2 * np.pi / PERIOD
    s, c, s2, c2 = np.sin(w * t), np.cos(w * t), np.sin(2 * w * t), np.cos(2 * w * t)
    p = np.array([RADIUS * c, RADIUS * s, HEAVE * s2])
    dp = w * np.array([-RADIUS * s, RADIUS * c, 2 * HEAVE * c2])
    ddp = -(w**2) * np.array([RADIUS * c, RADIUS * s, 4 * HEAVE * s2])
    roll, rate, acceleration = ROLL * s, ROLL * w * c, -ROLL * w**2 * s
    R = np.array([[1, 0, 0], [0, np.cos(roll), -np.sin(roll)], [0, np.sin(roll), np.cos(roll)]])
    omega = np.array([rate, 0, 0])
    v = np.concatenate([omega, R.T @ dp])
    a = np.concatenate([[acceleration, 0, 0], R.T @ ddp - np.cross(omega, R.T @ dp)])
    return np.concatenate([p, [np.sin(roll / 2), 0, 0, np.cos(roll / 2)]]), v, a


def states(model: pb.Model, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The whole machine's q, v, a along the platform's motion, each (times, n)."""
    at_q, at_v = model.joint_slices()["platform_joint"]
    q, (v, a) = np.tile(model.neutral(), (len(times), 1)), np.zeros((2, len(times), model.nv))
    for k, t in enumerate(times):
        guess = q[max(k - 1, 0)].copy()
        guess[at_q], v[k, at_v], a[k, at_v] = platform_motion(t)
        q[k] = model.assemble(guess, hold=PLATFORM)
    v = model.assemble_velocity(q, v, hold=PLATFORM)
    return q, v, model.assemble_acceleration(q, v, a, hold=PLATFORM)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model = pb.load("stewart")
    print(model.mobility())
    times = np.linspace(0, PERIOD, 161)
    q, v, a = states(model, times)
    tau = model.inverse_dynamics(q, v, a)
    legs = [model.joint_slices()[f"leg{k}"] for k in range(1, 7)]
    lengths = np.stack([q[:, at_q.start] for at_q, _ in legs], axis=1)
    forces = np.stack([tau[:, at_v.start] for _, at_v in legs], axis=1)

    energy = np.sum(model.energy(q, v), axis=0)
    power = np.sum(tau * v, axis=1)
    step = times[1] - times[0]
    rate = np.gradient(energy, step, edge_order=2)
    stroke = 1e3 * np.abs(lengths).max()
    print(f"leg forces from {forces.min():.1f} to {forces.max():.1f} N, strokes within {stroke:.0f} mm")
    print(f"power against the rate of energy: {np.abs(power - rate)[2:-2].max():.3f} W of {np.abs(power).max():.1f} W")

    figure = plt.figure(figsize=(11, 5), dpi=100)
    axes = figure.add_subplot(1, 2, 1, projection="3d", proj_type="ortho")
    draw_on(axes, model, q[20])
    axes.plot(*(q[:, :3] + [0, 0, 0.8]).T, color="#e67e22", linewidth=1.2, label="the platform's path")
    axes.legend(loc="upper left", fontsize=7, framealpha=0.6)
    axes.set_title("at t = 0.25 s", fontsize=10)
    for row, (values, label) in enumerate(((1e3 * lengths, "stroke [mm]"), (forces, "force [N]"))):
        plot = figure.add_subplot(2, 2, 2 + 2 * row)
        plot.plot(times, values, label=[f"leg {k}" for k in range(1, 7)])
        plot.set_ylabel(label)
        plot.grid(alpha=0.3)
    plot.set_xlabel("t [s]")
    plot.legend(ncols=3, fontsize=7)
    figure.tight_layout()
    figure.savefig(folder / "stewart-platform.png")
    print(f"wrote {folder / 'stewart-platform.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
