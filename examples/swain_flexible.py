"""Swain & Morris 2003, appendix C: an arm on a flexible base (C.1), and an arm with a flexible link (C.2).

    python examples/swain_flexible.py [FOLDER]

C.1: a two-link arm makes a quick planned motion on a base held by springs and dampers, f_b = −δ ẋ − s Δx (C5); hybrid
dynamics gives the torques of the driven joints and the motion of the passive base. C.2: a driven hinge turns a flexible
link, a chain of virtual elastic joints; its tip lags and swings. The cantilever's first frequency is that of
Euler and Bernoulli up to the square of the segments' length.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import polybody as pb

DT = 0.001


def plan(t: float) -> tuple[float, float]:
    """(velocity, acceleration) of a turn of one radian in half a second, then rest."""
    T = 0.5
    if t >= T:
        return 0.0, 0.0
    w = 2 * np.pi / T
    return (1 - np.cos(w * t)) / T, w * np.sin(w * t) / T


def run(model: pb.Model, driven: np.ndarray, seconds: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(times, q, tau) of the planned motion of the driven columns: the passive ones follow (hybrid dynamics)."""
    times = np.arange(0.0, seconds, DT)
    q, v = model.neutral(), np.zeros(model.nv)
    path, forces = [], []

    def rates(t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        v = np.where(driven, plan(t)[0], v)
        a, tau = model.actuation.hybrid_dynamics(q, v, np.full(model.nv, plan(t)[1]), active=driven)
        return v, a, tau

    for t in times:
        v1, a1, tau = rates(t, q, v)
        path.append(q)
        forces.append(tau)
        v2, a2, _ = rates(t + DT / 2, model.integrate(q, v1, DT / 2), v1 + DT / 2 * a1)
        v3, a3, _ = rates(t + DT / 2, model.integrate(q, v2, DT / 2), v1 + DT / 2 * a2)
        v4, a4, _ = rates(t + DT, model.integrate(q, v3, DT), v1 + DT * a3)
        q = model.integrate(q, (v1 + 2 * v2 + 2 * v3 + v4) / 6, DT)
        v = v1 + DT / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return times, np.array(path), np.array(forces)


def flexible_base() -> pb.Model:
    """A two-link arm on a block that stands on springs."""
    build = pb.Builder("arm on springs", gravity=(0, 0, 0))
    build.body("block", 10.0, inertia=(0.5, 0.5, 0.5))
    build.joint("stand", "fixed", "world", "block")
    for k, parent in enumerate(("block", "upper")):
        build.body(("upper", "lower")[k], 1.5, com=(0.25, 0, 0), inertia=(0.001, 0.03, 0.03))
        build.joint(f"joint{k}", "revolute", parent, ("upper", "lower")[k], (0.5 * k, 0, 0.2 * (1 - k)))
    stiffness = np.diag([400.0, 400, 300, 4000, 4000, 6000])
    stiffness[1, 3] = stiffness[3, 1] = 150.0  # the springs sit below the origin: shifts and turns couple
    return build.model(base=pb.Base("flexible", stiffness=stiffness, damping=0.03 * stiffness))


def flexible_arm(segments: int = 6) -> pb.Model:
    """A driven hinge, and a flexible link of a metre and a half."""
    build = pb.Builder("flexible arm", gravity=(0, 0, 0))
    build.flexible_link("beam", 1.5, 0.8, 120.0, damping=2e-4, segments=segments)
    build.joint("hinge", "revolute", "world", "beam", armature=0.05)
    return build.model()


def main(folder: Path) -> None:
    base = flexible_base()
    t1, q1, tau1 = run(base, base.actuation.active, 1.5)
    swing = 1e3 * np.abs(q1[:, :2])
    pull = np.abs(base.passive_forces(q1, 0 * tau1)[:, 3:6]).max()
    print(f"flexible base: swings {swing.max():.2f} mm, at the end {swing[-50:].max():.3f}; springs pull {pull:.1f} N")

    arm = flexible_arm()
    t2, q2, tau2 = run(arm, arm.actuation.active, 1.5)
    rigid = np.cumsum([plan(t)[0] * DT for t in t2])
    tip = arm.pose(q2, "beam_tip")[:, :2, 3]
    lag = np.unwrap(np.arctan2(tip[:, 1], tip[:, 0])) - rigid
    driven = int(arm.actuation.active.sum())
    print(f"flexible arm: {driven} of {arm.nv} columns driven, tip lags {np.abs(lag).max():.4f} rad")
    draw(folder, (t1, q1[:, :2], tau1[:, base.actuation.active]), (t2, lag, tau2[:, arm.actuation.active]))


def draw(folder: Path, base: tuple[np.ndarray, ...], arm: tuple[np.ndarray, ...]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, panes = plt.subplots(2, 2, figsize=(9, 5.4), constrained_layout=True, sharex=True)
    panes[0, 0].plot(base[0], 1e3 * base[1], label=["x", "y"])
    panes[0, 0].set(title="C.1: base on springs", ylabel="shift (mm)")
    panes[1, 0].plot(base[0], base[2], label=["joint 0", "joint 1"])
    panes[1, 0].set(xlabel="time (s)", ylabel="torque (N m)")
    panes[0, 1].plot(arm[0], arm[1], label="tip")
    panes[0, 1].set(title="C.2: flexible link", ylabel="lag of the tip (rad)")
    panes[1, 1].plot(arm[0], arm[2], label="hinge")
    panes[1, 1].set(xlabel="time (s)", ylabel="torque (N m)")
    for axes in panes.ravel():
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(folder / "swain_appendix_c.png", dpi=110)
    plt.close(figure)
    print(f"wrote {folder / 'swain_appendix_c.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "swain_flexible")
