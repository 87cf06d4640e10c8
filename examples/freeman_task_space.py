"""Freeman 1985, chapters II and III: influence coefficients of the Puma's hand, and its model transferred to the hand.

    python examples/freeman_task_space.py [FOLDER]

The hand goes along a straight line at constant speed. Left: what the second-order coefficients H add to the hand's
acceleration, (2-27), against a difference of its velocity. Middle: the effective mass of the hand along the line, from
the dynamic model transferred to the hand's coordinates (3-34). Right: joint torques by the transferred model, (3-33)
and back through Gᵀ, and by inverse dynamics in joint space: the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import polybody as pb

START = np.array([0.2, -0.6, 0.4, 0.3, 0.7, -0.2])
VELOCITY = np.array([0, 0, 0, 0.25, 0.15, -0.2])  # [angular; linear] of the hand, world axes


def follow(task: object, model: pb.Model, steps: int, dt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v and a along the line, by fourth-order steps of q̇ = (G_φ^u)⁻¹ u̇, (3-15)."""
    q, rows = START.copy(), []
    for _ in range(steps):
        rows.append(q.copy())
        k1 = task.velocity(q, VELOCITY)
        k2 = task.velocity(model.integrate(q, k1, dt / 2), VELOCITY)
        k3 = task.velocity(model.integrate(q, k2, dt / 2), VELOCITY)
        k4 = task.velocity(model.integrate(q, k3, dt), VELOCITY)
        q = model.integrate(q, (k1 + 2 * k2 + 2 * k3 + k4) / 6, dt)
    qs = np.array(rows)
    return qs, task.velocity(qs, VELOCITY), task.acceleration(qs, VELOCITY, np.zeros(6))


def main(folder: Path) -> None:
    model = pb.load("puma560")
    task = pb.transfer(model, pb.Pose("dh_6"))
    dt, steps = 0.01, 101
    t = dt * np.arange(steps)
    q, v, a = follow(task, model, steps, dt)
    H = model.coefficients.influence(q, "dh_6", order=2).H
    curvature = np.einsum("tm,trmn,tn->tr", v, H, v)
    joint_part = np.einsum("trn,tn->tr", model.jacobian(q, "dh_6"), a)
    print("hand's acceleration, G a + vᵀHv (should vanish):", np.abs(joint_part + curvature).max())
    inertia = task.mass_matrix(q)
    direction = np.concatenate([np.zeros(3), VELOCITY[3:] / np.linalg.norm(VELOCITY[3:])])
    mass = 1 / (direction @ np.linalg.inv(inertia) @ direction)
    wrench = task.inverse_dynamics(q, VELOCITY, np.zeros(6))
    tau = np.einsum("trn,tr->tn", model.jacobian(q, "dh_6"), wrench)
    print("torques by both models differ by:", np.abs(tau - model.inverse_dynamics(q, v, a)).max())
    print(f"effective mass of the hand along the line: {mass.min():.3f} to {mass.max():.3f} kg")
    draw(folder, t, curvature, mass, tau, model.joint_names)


def draw(
    folder: Path, t: np.ndarray, curvature: np.ndarray, mass: np.ndarray, tau: np.ndarray, names: list[str]
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), constrained_layout=True)
    left.plot(t, curvature[:, 3:], label=["x", "y", "z"])
    left.set(title="vᵀHv of the hand (2-27)", xlabel="time (s)", ylabel="m/s²")
    middle.plot(t, mass)
    middle.set(title="effective mass along the line (3-34)", xlabel="time (s)", ylabel="kg")
    right.plot(t, tau, label=names)
    right.set(title="torques from the task-space model", xlabel="time (s)", ylabel="N m")
    for axes in (left, middle, right):
        axes.grid(alpha=0.3)
    left.legend(fontsize=8)
    right.legend(fontsize=7)
    path = folder / "freeman_task_space.png"
    figure.savefig(path, dpi=100)
    plt.close(figure)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "freeman_task_space")
