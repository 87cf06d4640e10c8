"""Cost per step of an arm with six motors, gears and elastic drives, against the same arm without them.

    python benchmarks/bench_networks.py [--json FILE]

Fixed steps (rk4), the whole run in compiled loops, states kept rarely; and the right side alone, as other methods call
it.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

import polybody as pb
from polybody.networks.motion import Motion


def arm_alone() -> pb.Network:
    net = pb.Network("alone")
    net.mechanism("arm", pb.load("puma560"))
    return net


def arm_driven() -> pb.Network:
    net = arm_alone()
    for k, joint in enumerate(pb.load("puma560").joint_names):
        net.part(f"V{k}", "voltage_source", f"p{k}", voltage="3*sin(2*time)")
        net.part(f"M{k}", "dc_motor", winding=f"p{k}", shaft=f"s{k}", torque_constant=0.06, resistance=0.9,
                 inductance=1.5e-3, rotor_inertia=3e-5, damping=2e-5)
        net.part(f"G{k}", "elastic_gear", f"s{k}", f"arm.{joint}", ratio=80, stiffness=2e4, damping=20)
    return net


def best(work, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    found: dict[str, float] = {}
    steps, dt = 20_000, 1e-5
    for name, net in (("alone", arm_alone()), ("driven", arm_driven())):
        options = {"method": "rk4", "dt": dt, "sample": steps * dt / 4}
        pb.simulate(net, steps * dt, **options)
        took = best(lambda n=net, o=options: pb.simulate(n, steps * dt, **o))
        found[f"{name}: us a step of rk4"] = 1e6 / steps * took
        motion = Motion(net)
        system, y = motion.start(0.0, {})
        system.rate(0.0, y)
        took = best(lambda s=system, y=y: [s.rate(0.0, y) for _ in range(2000)])
        found[f"{name}: us a right side"] = 1e6 / 2000 * took
        batch = np.tile(system.argument(0.0, y), (4096, 1))
        found[f"{name}: ns a right side in batches"] = 1e9 / 4096 * best(lambda s=system, b=batch: s._rate(b))
    for what in ("us a step of rk4", "us a right side", "ns a right side in batches"):
        found[f"ratio, {what}"] = found[f"driven: {what}"] / found[f"alone: {what}"]
    model = pb.load("puma560")
    pb.simulate(model, steps * dt, method="rk4", dt=dt, sample=steps * dt / 4, limits="ignore")
    found["model: us a step of rk4 (pb.simulate)"] = 1e6 / steps * best(
        lambda: pb.simulate(model, steps * dt, method="rk4", dt=dt, sample=steps * dt / 4, limits="ignore"))
    for what, value in found.items():
        print(f"{what:50} {value:10.3f}")
    if "--json" in sys.argv:
        with open(sys.argv[sys.argv.index("--json") + 1], "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
