"""Long chains: time per state and compile time of every rolled quantity, and its growth from 100 to 200 joints.

    python benchmarks/bench_long_chains.py [QUANTITY …]              revolute chain, tree, floating base, point springs,
                                                                     coupled rotors, followers
    python benchmarks/bench_long_chains.py --against-straight        where rolled code overtakes straight-line code

Nothing is taken from the cache of compiled code. One thread; best of several batches.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

os.environ["POLYBODY_CACHE"] = tempfile.mkdtemp()

AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
NUMBERS = (
    "inverse_dynamics", "inverse_dynamics_wrenches", "inverse_directional", "forward_dynamics",
    "forward_dynamics_wrenches", "mass_solve", "bias_forces", "gravity_forces", "passive_forces", "energy", "momentum",
    "center_of_mass", "centroidal_momentum_matrix", "poses", "body_rotations", "pose", "jacobian", "jacobian_rate",
    "integrate", "difference", "rate",
)  # fmt: skip
MATRICES = ("mass_matrix", "coriolis_matrix")
OF_FRAMES = {"pose": "pose:{}", "jacobian": "jacobian:{}:world", "jacobian_rate": "jacobian_rate:{}:world"}


def chain(n: int, *, branches: int = 1, base: str = "fixed", springs: bool = False, kinds: int = 3) -> Any:
    """The mechanism of n joints; `kinds` different patterns of constants among its revolute joints."""
    from polybody.description.records import Body, Description, Joint, Spring, frozen_array
    from polybody.mechanism import mechanism_from

    bodies, joints, held = [], [], []
    for i in range(n):
        origin = np.eye(4)
        origin[:3, 3] = 0.1, 0.0, 0.3
        if kinds > 3:  # placements with zeros in different places
            angle = 0.3 * (i % (kinds // 3))
            origin[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
            origin[:3, 3] = [x * ((i % (kinds // 3)) >> k & 1) for k, x in enumerate((0.1, 0.2, 0.3))]
        bodies.append(Body(f"b{i}", 1 + 0.1 * (i % 4), frozen_array((0.05, 0.02, 0.15)),
                           frozen_array(np.diag((0.02, 0.03, 0.015)))))  # fmt: skip
        before = i - 1 if branches == 1 or i % (n // branches) else min(i, n // branches) - 1
        parent = "world" if before < 0 else f"b{before}"
        kind = "floating" if base == "floating" and i == 0 else "revolute"
        joints.append(
            Joint(f"j{i}", kind, parent, f"b{i}", frozen_array(origin), frozen_array(AXES[i % 3]),
                  damping=None if kind == "floating" else frozen_array([[0.1]]),
                  armature=None if kind == "floating" else frozen_array([0.01]))
        )  # fmt: skip
        if springs and i >= 2:
            held.append(Spring(f"s{i}", f"b{i - 2}", frozen_array((0.1, 0, 0)), f"b{i}", frozen_array((0, 0.1, 0.0)),
                               50.0, 0.2, 0.3))  # fmt: skip
    description = Description("chain", bodies=tuple(bodies), joints=tuple(joints), springs=tuple(held))
    return mechanism_from(description)


def rotors(n: int) -> Any:
    """The chain with transmissions that couple every fourth joint to the next one."""
    from polybody.description.records import Motor, Transmission, frozen_array
    from polybody.mechanism import mechanism_from

    pairs = [(f"j{k}", f"j{k + 1}") for k in range(0, n - 1, 4)]
    motors = [Motor(f"m{name}", name, 1.0, 0.0, 0.1, 0.1, rotor_inertia=1e-3) for pair in pairs for name in pair]
    matrix = frozen_array([[1.0, 0.0], [0.5, 1.0]])
    gears = [Transmission(f"t{k}", pair, matrix) for k, pair in enumerate(pairs)]
    return mechanism_from(replace(chain(n).description, motors=tuple(motors), transmissions=tuple(gears)))


def followers(n: int) -> Any:
    """The chain in which every fifth joint follows the one two before it."""
    from polybody.description.records import Coupling
    from polybody.mechanism import mechanism_from

    couplings = tuple(Coupling(f"j{k}", f"j{k - 2}", -0.5, 0.1) for k in range(3, n, 5))
    return mechanism_from(replace(chain(n).description, couplings=couplings))


MAKERS: dict[str, Callable[[int], Any]] = {
    "revolute chain": chain,
    "tree of 4 branches": lambda n: chain(n, branches=4),
    "floating base": lambda n: chain(n, base="floating"),
    "point springs": lambda n: chain(n, springs=True),
    "coupled rotors": rotors,
    "followers": followers,
}


def states(mechanism: Any, arguments: Sequence[tuple[str, int]], count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)

    def configurations() -> np.ndarray:
        some = [np.concatenate([joint.model.random(rng) for joint in mechanism.independent_joints]) for _ in range(8)]
        return np.tile(some, (count // 8, 1))

    return [
        configurations() if name in ("q", "q0", "q1") else rng.normal(size=(count, size)) for name, size in arguments
    ]


def nanoseconds(kernel: Any, mechanism: Any, budget: float = 0.25) -> float:
    """Per state: the best of many small batches."""
    import polybody as pb

    size = sum(int(np.prod(shape)) for _, shape in kernel.outputs)
    count = 256 if size < 10_000 else 16  # a sample must fit between two interruptions
    given = states(mechanism, kernel.inputs, count)
    target = kernel(*given)
    best, end = np.inf, time.perf_counter() + budget
    with pb.threads(1):
        while time.perf_counter() < end:
            start = time.perf_counter()
            kernel(*given, out=target)
            best = min(best, time.perf_counter() - start)
    return best / count * 1e9


def full_name(mechanism: Any, name: str) -> str:
    return OF_FRAMES.get(name, name).format(mechanism.bodies[-1].name)


def growth(names: Sequence[str]) -> None:
    from polybody.model import long_chains

    for title, make in MAKERS.items():
        print(f"\n{title}\n{'ns per state':28s} {'100':>9s} {'130':>9s} {'200':>9s} {'200/100':>8s} {'compile s':>9s}")
        mechanisms = [make(n) for n in (100, 130, 200)]
        for name in names:
            start = time.perf_counter()
            kernels = [long_chains.kernel(m, full_name(m, name)) for m in mechanisms[:1]]
            compiled = time.perf_counter() - start
            kernels += [long_chains.kernel(m, full_name(m, name)) for m in mechanisms[1:]]
            if None in kernels:
                print(f"{name:28s} not rolled")
                continue
            spent = [nanoseconds(k, m) for k, m in zip(kernels, mechanisms, strict=True)]
            limit = 5 if name in MATRICES else 2.5
            mark = "" if spent[2] <= limit * spent[0] else f"  > {limit}"
            numbers = " ".join(f"{x:9.0f}" for x in spent)
            print(f"{name:28s} {numbers} {spent[2] / spent[0]:8.2f} {compiled:9.2f}{mark}", flush=True)


def against_straight(names: Sequence[str], sizes: Sequence[int] = (16, 40, 60, 120, 200)) -> None:
    from polybody.errors import InputError
    from polybody.model import Model, long_chains
    from polybody.model.tracing import compiled
    from polybody.quantities.table import quantity

    for kinds in (3, 24):
        print(f"\n{kinds} kinds of joint: straight-line / rolled, time per state (compile time)")
        print(f"{'':28s}" + "".join(f"{n:>18d}" for n in sizes))
        for name in names:
            cells = []
            for n in sizes:
                m = chain(n, kinds=kinds)
                try:
                    asked = quantity(m, full_name(m, name))
                except InputError:  # rolled kernels that others are composed of
                    asked = None
                if asked is None or (name.endswith("matrix") and n > 60):
                    cells.append("")
                    continue
                engine = Model(m).engine.tree
                inputs, results = asked.inputs(engine.sizes()), engine.results(asked)
                start = time.perf_counter()
                traced = lambda asked=asked, engine=engine: engine.function(asked)  # noqa: E731
                straight = compiled(asked.name, inputs, results, traced, f"{n} {kinds}")
                middle = time.perf_counter()
                rolled = long_chains.kernel(m, asked.name)
                end = time.perf_counter()
                ratio = nanoseconds(straight, m, 0.05) / nanoseconds(rolled, m, 0.05)
                cells.append(f"{ratio:.2f} ({(middle - start):.1f}/{(end - middle):.1f})")
            print(f"{name:28s}" + "".join(f"{cell:>18s}" for cell in cells), flush=True)


def main() -> None:
    chosen = [x for x in sys.argv[1:] if not x.startswith("--")] or [*NUMBERS, *MATRICES]
    if "--against-straight" in sys.argv:
        against_straight(chosen)
    else:
        growth(chosen)


if __name__ == "__main__":
    main()
