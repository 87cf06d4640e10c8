"""Freeman 1985, figure 4-4: a planar platform on three legs of three links, driven by six motors for three motions.

    python examples/freeman_figure_4_4.py [FOLDER]

Mobility 6, motors at the first two joints of every leg, and the platform's (x, y, θ) as task: three inputs are
redundant. The platform follows a circle without turning. Joint rates are chosen by (4-65)-(4-72): least kinetic energy,
least squares, or weights that spare the second joints; the torques are those of (4-73).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import polybody as pb

ANGLES = np.deg2rad([210.0, 330.0, 90.0])
BASE, HELD, LINKS = 0.7, 0.15, (0.35, 0.35, 0.3)
RADIUS, TURN = 0.08, 2 * np.pi  # m, rad/s


def machine() -> pb.Model:
    build = pb.Builder("figure 4-4", gravity=(0, -9.81, 0))
    corners = [HELD * np.array([np.cos(a), np.sin(a), 0]) for a in ANGLES]
    build.body("platform", 2.0, -corners[0], (0.02, 0.02, 0.04))
    for k, angle in enumerate(ANGLES):
        last = "world"
        for i, length in enumerate(LINKS):
            name = f"leg{k}_{i}"
            build.body(name, 0.6, (length / 2, 0, 0), (1e-4, 6e-3, 6e-3))
            origin = (BASE * np.cos(angle), BASE * np.sin(angle), 0) if i == 0 else (LINKS[i - 1], 0, 0)
            build.joint(f"phi{k}_{i}", "revolute", last, name, origin, active=i < 2)
            last = name
        if k == 0:
            build.joint("pin0", "revolute", last, "platform", (LINKS[2], 0, 0), active=False)
        else:
            build.loop(f"pin{k}", "revolute", last, "platform", (LINKS[2], 0, 0), tuple(corners[k] - corners[0]))
    build.frame("hand", "platform", tuple(-corners[0]))
    return build.model()


def start(model: pb.Model) -> np.ndarray:
    """Assembled near legs that bend the same way, with the platform in the middle."""
    guess = model.neutral()
    names = model.joint_names
    for k, angle in enumerate(ANGLES):
        for i, value in enumerate((angle + np.pi + 0.9, -1.1, -0.6)):
            guess[names.index(f"phi{k}_{i}")] = value
    middle = np.eye(4)
    found = pb.reach(model, [pb.Goal("hand", middle)], model.assemble(guess))
    assert found.converged
    return found.q


def circle(t: float) -> tuple[np.ndarray, np.ndarray]:
    """(u̇, ü) of (θ, x, y)."""
    w = TURN
    speed = RADIUS * w * np.array([0, -np.sin(w * t), np.cos(w * t)])
    return speed, RADIUS * w**2 * np.array([0, -np.cos(w * t), -np.sin(w * t)])


def follow(model: pb.Model, criterion: object, steps: int, q: np.ndarray) -> dict[str, np.ndarray]:
    """Rates, kinetic energies and torques along one turn, by second-order steps of (4-68)."""
    task = [pb.Orientation("hand", "z"), pb.Position("hand", "xy")]
    chosen = pb.redundant(model, task, criterion)
    dt = 1.0 / steps
    kept: dict[str, list[np.ndarray]] = {"q": [], "energy": [], "tau": []}
    for k in range(steps):
        u_dot, u_ddot = circle(k * dt)
        v = chosen.velocity(q, u_dot)
        a = chosen.acceleration(q, u_dot, u_ddot)
        kept["q"].append(q)
        kept["energy"].append(model.energy(q, v)[0])
        kept["tau"].append(model.inverse_dynamics(q, v, a))
        middle = model.constraints.assemble_dependent(model.integrate(q, v, dt / 2))
        halfway = chosen.velocity(middle, circle((k + 0.5) * dt)[0])
        q = model.constraints.assemble_dependent(model.integrate(q, halfway, dt))
    return {name: np.array(values) for name, values in kept.items()}


def main(folder: Path) -> None:
    model = machine()
    q = start(model)
    told = model.mobility(q)
    print(f"mobility {told.true}, {len(told.actuators)} motors ({told.actuation}), task (x, y, θ)")
    spare = np.array([1.0 if name.endswith("_0") else 20.0 for name in model.constraints.independent])
    runs = {"least energy": follow(model, "energy", 60, q), "least squares": follow(model, "least squares", 60, q),
            "second joints spared": follow(model, spare, 60, q)}  # fmt: skip
    for name, run in runs.items():
        print(f"{name}: kinetic energy at most {run['energy'].max():.4f} J, mean {run['energy'].mean():.4f} J; "
              f"largest torque {np.abs(run['tau']).max():.3f} N m")  # fmt: skip
    assert runs["least energy"]["energy"][0] <= min(run["energy"][0] for run in runs.values()) + 1e-12
    place = model.pose(runs["least energy"]["q"], "hand")
    radius = np.linalg.norm(place[:, :2, 3] - place[0, :2, 3] + [RADIUS, 0], axis=1)
    print(f"the hand is on its circle to {np.abs(radius - RADIUS).max():.1e} m")
    print("wrote", draw(folder, model, q, runs))


def draw(folder: Path, model: pb.Model, q: np.ndarray, runs: dict[str, dict[str, np.ndarray]]) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    from polybody.studio.drawing import draw_on

    figure = plt.figure(figsize=(14, 4.6), layout="constrained")
    axes = figure.add_subplot(1, 3, 1, projection="3d", proj_type="ortho")
    draw_on(axes, model, q)
    axes.get_legend().remove()
    energy, torque = figure.add_subplot(1, 3, 2), figure.add_subplot(1, 3, 3)
    t = np.linspace(0, 1, len(next(iter(runs.values()))["energy"]), endpoint=False)
    for name, run in runs.items():
        energy.plot(t, run["energy"], label=name)
        torque.plot(t, np.abs(run["tau"]).max(axis=1), label=name)
    energy.set_xlabel("turn")
    energy.set_ylabel("kinetic energy, J")
    energy.legend(fontsize=8)
    torque.set_xlabel("turn")
    torque.set_ylabel("largest motor torque, N m")
    torque.legend(fontsize=8)
    path = folder / "freeman_figure_4_4.png"
    figure.savefig(path, dpi=100)
    return path


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "freeman_figure_4_4")
