"""Friction that sticks, drives that saturate, a ball that bounces, a disk that rolls: four runs and a picture.

    python examples/forces_that_act.py [FOLDER]      writes forces.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import polybody as pb


def slider(**more: object) -> pb.Model:
    build = pb.Builder("slider")
    build.body("slider", 1.0, inertia=(1, 1, 1))
    build.joint("slide", "prismatic", "world", "slider", axis=(1, 0, 0), **more)
    return build.model()


def stick_slip(axes: plt.Axes) -> str:
    """A block that a spring pulls along at 0.1 m/s."""
    law = {"coulomb": 1.0, "static": 2.0, "stribeck": 1e-3}
    run = pb.simulate(slider(friction=law), 4.0, controller=lambda t, q, v: 100 * (0.1 * t - q), sample=0.01)
    axes.plot(run.t, run.q[:, 0], run.t, 0.1 * run.t, ":")
    axes.set(title="stick and slip", xlabel="t, s", ylabel="q, m")
    return f"stick-slip: {sum(h.detail == 'slips' for h in run.happenings)} slips in {run.t[-1]:g} s"


def saturation(axes: plt.Axes) -> str:
    """A position controller whose drive has 3 N and 0.8 m/s."""
    model = slider(limits={"effort": 3.0, "velocity": 0.8})
    run = pb.simulate(model, 4.0, controller=lambda t, q, v: 30 * (1.0 - q) - 10 * v, sample=0.01)
    axes.plot(run.t, run.tau[:, 0], run.t, run.v[:, 0])
    axes.set(title="effort 3 N, speed 0.8 m/s", xlabel="t, s")
    axes.legend(["force, N", "speed, m/s"])
    told = ", ".join(f"{s.limit} for {s.seconds:.2f} s" for s in run.audit.saturation)
    return f"saturation: at its limits of {told}"


def bounce(axes: plt.Axes) -> str:
    """A ball dropped on a wavy floor."""
    build = pb.Builder("ball")
    build.body("ball", 1.0, inertia=(0.004,) * 3)
    build.joint("free", "floating", "world", "ball")
    build.contact("floor", "ball", radius=0.1, stiffness=1e5, damping=0.3, friction=0.6, terrain="0.1*sin(3*x)")
    model = build.model()
    q = model.neutral()
    q[:3] = 0.1, 0, 1.0
    run = pb.simulate(model, 2.0, q, sample=0.005, rtol=1e-7, atol=1e-9)
    x = np.linspace(run.q[:, 0].min() - 0.2, run.q[:, 0].max() + 0.2, 200)
    axes.plot(run.q[:, 0], run.q[:, 2], x, 0.1 * np.sin(3 * x), "k")
    axes.set(title="contact with a terrain", xlabel="x, m", ylabel="z, m", aspect="equal")
    return f"contact: energy balance {run.audit.energy_error_relative:.0e}, trusted: {run.audit.trusted}"


def rolling(axes: plt.Axes) -> str:
    """A disk that rolls, leans and goes around."""
    build = pb.Builder("disk")
    build.body("disk", 1.5, inertia=(0.034, 0.0675, 0.034))
    build.joint("free", "floating", "world", "disk")
    build.rolling("rolls", "disk", "disk", 0.3)
    model = build.model()
    q = model.neutral()
    q[2], q[3:] = 0.3 * np.cos(0.2), [np.sin(0.1), 0, 0, np.cos(0.1)]
    q = model.assemble(q)
    v = model.assemble_velocity(q, [0, 9.0, -1.5, 2.6, 0, 0])
    run = pb.simulate(model, 4.0, q, v, sample=0.01)
    axes.plot(run.q[:, 0], run.q[:, 1])
    axes.set(title="a rolling disk", xlabel="x, m", ylabel="y, m", aspect="equal")
    slip = np.abs(np.einsum("nij,nj->ni", model.constraints.jacobian(run.q), run.v)).max()
    return f"rolling: slips by {slip:.0e} m/s at most"


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    figure, panels = plt.subplots(2, 2, figsize=(8.6, 6.4), dpi=75, layout="constrained")
    for axes, part in zip(panels.ravel(), (stick_slip, saturation, bounce, rolling), strict=True):
        print(part(axes))
    figure.savefig(folder / "forces.png")
    print(f"wrote {folder / 'forces.png'}")


if __name__ == "__main__":
    main()
