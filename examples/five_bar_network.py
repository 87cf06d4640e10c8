"""A planar five-bar as a network of parts: pin forces along a motion of its two motors, without cutting the loop.

    python examples/five_bar_network.py [FOLDER]      writes five-bar-network.svg and five-bar-pin-forces.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import polybody as pb
from polybody.studio.network_drawing import network_svg

ARM, ROD, HALF_BASE = 0.3, 0.5, 0.15


def five_bar() -> pb.Network:
    """Two arms on the ground, two rods that meet in a pin."""
    net = pb.Network("five-bar", gravity=(0, -9.81, 0))
    net.ground(left=(-HALF_BASE, 0, 0), right=(HALF_BASE, 0, 0))
    for side in ("left", "right"):
        net.body(f"{side}_arm", 1.0, (ARM / 2, 0, 0), (1e-4, 0.01, 0.01),
                 ports={"shoulder": (0, 0, 0), "elbow": (ARM, 0, 0)})
        net.body(f"{side}_rod", 0.6, (ROD / 2, 0, 0), (1e-4, 0.02, 0.02),
                 ports={"elbow": (0, 0, 0), "tip": (ROD, 0, 0)})
    for side in ("left", "right"):
        net.joint(f"{side}_motor", "revolute", f"world.{side}", f"{side}_arm.shoulder")
        net.joint(f"{side}_elbow", "revolute", f"{side}_arm.elbow", f"{side}_rod.elbow")
    net.joint("pin", "revolute", "left_rod.tip", "right_rod.tip")
    return net


def motion(t: float) -> tuple[tuple[float, float], ...]:
    """Angles of the two motors, their rates and accelerations."""
    s, c = np.sin([2 * t, 3 * t]), np.cos([2 * t, 3 * t])
    size, speed = np.array([0.4, 0.3]), np.array([2.0, 3.0])
    return tuple(np.array([2.2, 0.9]) + size * s), tuple(size * speed * c), tuple(-size * speed**2 * s)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    net = five_bar()
    drivers = ("left_motor", "right_motor")
    (folder / "five-bar-network.svg").write_text(network_svg(net, net.graph(driven=drivers)), encoding="utf-8")
    q = {"left_motor": 2.2, "left_elbow": -1.2, "right_motor": 0.9, "right_elbow": 1.2}
    times, pin, torque = np.linspace(0, 3, 61), [], []
    for t in times:
        angles, rates, accelerations = motion(t)
        q = net.close({**q, **dict(zip(drivers, angles, strict=True))}, hold=drivers)
        answer = net.solve(
            q, dict(zip(drivers, rates, strict=True)), accelerations=dict(zip(drivers, accelerations, strict=True))
        )
        pin.append(np.linalg.norm(answer.reactions["pin"][3:5]))
        torque.append([answer.forces[name][0] for name in drivers])
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7, 5), layout="constrained")
    above.plot(times, pin)
    above.set_ylabel("force in the pin [N]")
    below.plot(times, torque, label=drivers)
    below.set(xlabel="time [s]", ylabel="torque of the motors [N m]")
    below.legend()
    figure.savefig(folder / "five-bar-pin-forces.png", dpi=120)
    print(f"largest force in the pin {max(pin):.3f} N; wrote five-bar-network.svg, five-bar-pin-forces.png in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs"))
