"""Swain & Morris 2003, section 8: two arms hold an object, on a fixed, a free-floating and a free-flying base.

    python examples/swain_cases.py [FOLDER]

The arms are those of the errata's planar reference (links of 0.6, 0.6 and 0.4 m, base of 20 kg, object of 3 kg). The
same joint torques act in all three cases. On the fixed base only the arms move; a floating base is pushed by them, and
momentum stays; a flying base holds its attitude with a thruster's moment f_b. Then a single arm captures a drifting
body (the end of section 8.2).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import polybody as pb

LENGTHS, MASSES = (0.6, 0.6, 0.4), (2.0, 2.0, 1.0)
ANGLES = {"left": (2.2, -1.0, -0.5), "right": (0.9, 1.1, 0.4)}
TORQUES = {"left": (1.0, -0.5, 0.2), "right": (-0.8, 0.4, 0.1)}
DT, STEPS = 0.01, 100


def two_arms(base: str, sides: tuple[str, ...] = ("left", "right")) -> pb.Model:
    """The arms on that base, and a free object."""
    build = pb.Builder(f"arms on a {base} base", gravity=(0, 0, 0))
    build.body("base", 20.0, inertia=(2, 2, 2))
    build.joint("root_joint", "fixed", "world", "base")
    for side in sides:
        parent, origin = "base", (-0.5 if side == "left" else 0.5, 0, 0)
        for k, (length, mass) in enumerate(zip(LENGTHS, MASSES, strict=True)):
            inertia = mass * length**2 / 12
            build.body(f"{side}{k}", mass, com=(length / 2, 0, 0), inertia=(inertia,) * 3)
            build.joint(f"{side}_joint{k}", "revolute", parent, f"{side}{k}", origin)
            parent, origin = f"{side}{k}", (length, 0, 0)
        build.frame(f"{side}_hand", parent, origin)
    build.body("load", 3.0, inertia=(0.2, 0.2, 0.2))
    build.joint("load_joint", "planar", "world", "load", active=False)
    return build.model(base=base)


def held_at_rest(base: str, sides: tuple[str, ...] = ("left", "right")) -> tuple[pb.Grasp, np.ndarray, np.ndarray]:
    """(grasp, q, joint torques): the object midway between the hands."""
    model = two_arms(base, sides)
    q, tau = model.neutral(), np.zeros(model.nv)
    for name, (columns, forces) in model.joint_slices().items():
        side = name.split("_")[0]
        if side in ANGLES:
            q[columns], tau[forces] = ANGLES[side][int(name[-1])], TORQUES[side][int(name[-1])]
    hands = [f"{side}_hand" for side in sides]
    start = model.joint_slices()["load_joint"][0].start
    q[start + 1 : start + 3] = np.mean([model.pose(q, hand)[:2, 3] for hand in hands], axis=0)
    return pb.grasp(model, "load", hands, q), q, tau


def simulate(
    grasp: pb.Grasp, q: np.ndarray, v: np.ndarray, force: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Table I step by step (Runge-Kutta as in the paper), projected back on the grasp after every step."""
    model = grasp.model

    def a(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return grasp.forward_dynamics(q, v, force(q, v), tolerance=1e-2).a

    path = [(q, v, grasp.forward_dynamics(q, v, force(q, v)).f_e)]
    for _ in range(STEPS):
        q1, v1, a1 = q, v, a(q, v)
        q2, v2 = model.integrate(q1, v1, DT / 2), v1 + DT / 2 * a1
        a2 = a(q2, v2)
        q3, v3 = model.integrate(q1, v2, DT / 2), v1 + DT / 2 * a2
        a3 = a(q3, v3)
        q4, v4 = model.integrate(q1, v3, DT), v1 + DT * a3
        a4 = a(q4, v4)
        q = model.integrate(q1, (v1 + 2 * v2 + 2 * v3 + v4) / 6, DT)
        q, v = grasp.project(q, v1 + DT / 6 * (a1 + 2 * a2 + 2 * a3 + a4))
        path.append((q, v, grasp.forward_dynamics(q, v, force(q, v)).f_e))
    return tuple(np.array(x) for x in zip(*path, strict=True))  # type: ignore[return-value]


def main(folder: Path) -> None:
    results = {}
    for base in ("fixed", "floating", "flying"):
        grasp, q, tau = held_at_rest(base)
        model = grasp.model

        def force(
            q: np.ndarray, v: np.ndarray, model: pb.Model = model, tau: np.ndarray = tau, base: str = base
        ) -> np.ndarray:
            f = tau.copy()
            if base == "flying":  # the thrusters' moment about z holds the attitude
                f[model.joint_slices()["root_joint"][1].start + 2] = -60.0 * 2 * q[5] - 25.0 * v[2]
            return f

        q, v, f_e = simulate(grasp, q, np.zeros(model.nv), force)
        attitude = np.zeros(len(q)) if base == "fixed" else 2 * np.arcsin(q[:, 5])
        results[base] = attitude, f_e
        moved = model.pose(q[-1], "load")[:2, 3] - model.pose(q[0], "load")[:2, 3]
        momentum = np.abs(model.momentum(q, v)).max()
        print(f"{base:9s} object moves {moved.round(4)} m, base turns {attitude[-1]:+.4f} rad, momentum {momentum:.1e}")
    capture()
    draw(folder, results)


def capture() -> None:
    """One arm takes hold of a drifting, tumbling body."""
    grasp, q, _ = held_at_rest("floating", ("left",))
    model = grasp.model
    v = np.zeros(model.nv)
    v[model.joint_slices()["load_joint"][1]] = (0.4, 0.2, -0.1)
    taken = grasp.capture(q, v)
    kept = np.abs(model.momentum(q, taken.v) - model.momentum(q, v)).max()
    print(f"capture   impulse {np.linalg.norm(taken.impulses[0, 3:]):.4f} N s, energy lost {taken.energy_lost:.4f} J, ",
          f"momentum changes by {kept:.1e}")  # fmt: skip


def draw(folder: Path, results: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    t = DT * np.arange(STEPS + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    for base, (attitude, f_e) in results.items():
        left.plot(t, attitude, label=base)
        right.plot(t, np.linalg.norm(f_e[:, 0, 3:], axis=1), label=base)
    left.set(title="Attitude of the base", xlabel="time (s)", ylabel="angle (rad)")
    right.set(title="Force of the left hand on the object", xlabel="time (s)", ylabel="force (N)")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(folder / "swain_section_8.png", dpi=110)
    plt.close(figure)
    print(f"wrote {folder / 'swain_section_8.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "swain_cases")
