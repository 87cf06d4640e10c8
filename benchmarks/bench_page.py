"""What the page costs at the server: time and bytes per state sent to it, for robots posed, under arrows, and
simulated live.

    python benchmarks/bench_page.py [ROBOT.urdf …]

A screen shows 60 states per second: 16.7 ms each. `frame` is `Session.frame`: kinematics, channels, loads where asked
for, and packing; `live` is a step of simulation per 1/60 s (16 steps of 1 ms) and its frame. Scene: bytes sent once,
on opening.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np

import polybody as pb
from polybody.studio.viewer.live import Live
from polybody.studio.viewer.pack import compressed
from polybody.studio.viewer.serve import page_content
from polybody.studio.viewer.session import Session

ROBOTS = ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "ur_description/urdf/ur5_robot.urdf")


class Silent:
    """Stands for the hub: nobody listens."""

    def __init__(self) -> None:
        self.visitors: set[object] = set()

    def tell(self, *_: object) -> None:
        pass


class Watcher:
    def __init__(self, layers: set[str]) -> None:
        self.layers = layers


def median(act: object, count: int) -> float:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        act()  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def measure(model: pb.Model) -> None:
    stage, posing, content = page_content(model, [])
    session = Session(stage, posing)
    session.hub = Silent()  # type: ignore[assignment]
    rng = np.random.default_rng(0)
    joint = model.mechanism.independent_joints[-1]

    def moved() -> bytes:
        if not model.mechanism.constrained:
            posing.q[joint.q] = 0.1 * rng.standard_normal(joint.nq)
        return session.frame()

    size = len(moved())
    plain = median(moved, 200)
    session.hub.visitors = {Watcher({layer.key for layer in stage.loads.layers})}  # type: ignore[assignment]
    loaded_size, loaded = len(moved()), median(moved, 50)
    session.hub.visitors = set()
    posing.q = posing.start.copy()
    session.live = live = Live(model, posing, stage.size)
    live.running = True
    live._steps(16)
    simulated = median(lambda: (live._steps(16), session.frame()), 50)
    print(f"{model.name:24} {model.nv:4} {plain:8.2f} {size:8} {loaded:9.2f} {loaded_size:8} {simulated:9.2f} "
          f"{len(compressed(content)) / 1e6:9.2f}")  # fmt: skip


def main() -> None:
    warnings.simplefilter("ignore")
    names = sys.argv[1:]
    heads = ("frame ms", "bytes", "loads ms", "bytes", "live ms", "scene MB")
    print(f"{'model':24} {'nv':>4} " + " ".join(f"{head:>8}" for head in heads))
    if not names:
        import pinocchio

        above = [p / "share" / "example-robot-data" / "robots" for p in Path(pinocchio.__file__).resolve().parents]
        folder = next(p for p in above if p.is_dir())
        names = ["stewart", *(str(folder / name) for name in ROBOTS)]
    for name in names:
        floating = "g1" in name
        measure(pb.load(name, base="floating" if floating else None) if floating else pb.load(name))


if __name__ == "__main__":
    main()
