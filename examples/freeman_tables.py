"""Freeman 1985, appendices B, C and E: his tables, computed, beside what he printed.

    python examples/freeman_tables.py [FOLDER]

B: the wrist point of a wrist-partitioned arm, first and second order coefficients (Table B-1) and their transfer (B-6).
C: the five-bar as an open chain (Table C-2), transferred to its end and held there (Table C-3), in inches and pounds.
E: a planar platform on three legs, leg by leg (Tables E-1, E-2), by `pb.legs`.

Numbers that ERRATA.md corrects are the corrected ones. Some printed entries are truncated: one unit of the last digit.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import polybody as pb
from polybody.coordinates.arrays import Dynamics, reversed_coefficients
from polybody.coordinates.constraining import augmented, constrained, transferred_chain

PLANAR = [3, 4, 2]  # x, y, θ of [angular; linear]


def table(text: str) -> np.ndarray:
    return np.array([[float(x) for x in line.split()] for line in text.strip().splitlines()])


class Tables:
    """What was computed beside what is printed; `off` is the largest difference in units of the last digit."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float]] = []

    def compare(self, name: str, found: np.ndarray, printed: str, unit: float) -> None:
        wanted = table(printed)
        off = float(np.abs(np.atleast_2d(found) - wanted).max() / unit)
        self.rows.append((name, off))
        print(f"\n{name}: off by at most {off:.2f} of the last digit")
        print(np.array2string(np.atleast_2d(found), precision=3, suppress_small=True))


# B


def wrist() -> pb.Model:
    build = pb.Builder("wrist-partitioned arm")
    for name in ("turret", "upper", "fore"):
        build.body(name, 1, inertia=(1, 1, 1))
    build.joint("1", "revolute", "world", "turret", (0, 0, 0.7))
    build.joint("2", "revolute", "turret", "upper", axis=(0, -1, 0))
    build.joint("3", "revolute", "upper", "fore", (0.5, 0, 0), axis=(0, -1, 0))
    build.frame("P", "fore", (0.4, 0, 0))
    return build.model()


def appendix_b(tables: Tables) -> tuple[pb.Model, np.ndarray]:
    model, q = wrist(), np.array([0.6, 0.4, 0.9])
    (s1, c1), (s23, c23), (a23, a34) = (np.sin(0.6), np.cos(0.6)), (np.sin(1.3), np.cos(1.3)), (0.5, 0.4)
    r, Pz = a23 * np.cos(0.4) + a34 * c23, a23 * np.sin(0.4) + a34 * s23
    found = model.coefficients.influence(q, "P", 2)
    G = np.array([[-r * s1, -Pz * c1, -a34 * s23 * c1], [r * c1, -Pz * s1, -a34 * s23 * s1], [0, r, a34 * c23]])
    H3 = np.array([[0, 0, 0], [0, -Pz, -a34 * s23], [0, -a34 * s23, -a34 * s23]])
    inverse, bent = reversed_coefficients(np.linalg.inv(found.G[3:]), found.H[3:])
    b8 = np.array([[np.sin(1.2), -np.cos(1.2), 0], [-np.cos(1.2), -np.sin(1.2), 0], [0, 0, 0]]) / r**2
    for name, ours, theirs in (("B-1 G", found.G[3:], G), ("B-1 H of z", found.H[5], H3), ("B-8 H of θ1", bent[0], b8)):
        off = float(np.abs(ours - theirs).max())
        tables.rows.append((name, off / 1e-3))
        print(f"\n{name}, against its formulas: off by {off:.1e}")
        print(np.array2string(ours, precision=4, suppress_small=True))
    assert inverse.shape == (3, 3)
    return model, q


# C


def five_bar() -> pb.Model:
    build = pb.Builder("five-bar (in, lbf)", gravity=(0, 0, 0))
    lengths = (12, 24, 24, 12)
    for k in range(4):
        mass, J = (0.00517563, 0.062194) if k == 1 else (0, 0)
        build.body(f"link{k + 1}", mass, (12, 0, 0) if k == 1 else (0, 0, 0), (0, 0, J))
        build.joint(f"phi{k + 1}", "revolute", f"link{k}" if k else "world", f"link{k + 1}",
                    (lengths[k - 1] if k else 0, 0, 0), armature=0.000237 if k == 0 else 0)  # fmt: skip
    build.frame("h", "link4", (12, 0, 0))
    return build.model()


def appendix_c(tables: Tables) -> tuple[pb.Model, np.ndarray]:
    model, q = five_bar(), np.deg2rad([70, -35, -100, -25])
    found = model.coefficients.influence(q, "h", 2)
    I, P = model.coefficients.dynamic_arrays(q)
    w = augmented(found.G[PLANAR], found.H[PLANAR], [0])
    tables.compare("C-2 G", w.G, "1 0 0 0\n8.71 19.98 33.75 12\n33.91 29.80 10.14 0\n1 1 1 1", 0.01)
    tables.compare("C-2 I*", I, "2.774 1.418 0 0\n1.418 0.808 0 0\n0 0 0 0\n0 0 0 0", 0.001)
    whole, _, _ = transferred_chain(Dynamics(I, P, np.zeros(4)), w)
    tables.compare("C-3 I*, 1e-3", 1e3 * whole.I, """411.24 -5.73 12.29 68.79
        -5.73 0.26 -0.55 -3.10\n12.29 -0.55 1.19 6.64\n68.79 -3.10 6.64 37.17""", 0.01)
    tables.compare("C-3 P*1, 1e-3", 1e3 * whole.P[0], """303.35 -0.18 -8.96 2.15
        -0.18 -0.24 -0.61 2.84\n-8.96 -0.61 0.52 7.27\n2.15 2.84 7.27 -181.56""", 0.01)
    held = constrained(whole, [1, 2])
    motion = np.array([2.0, 3.0]), np.array([1.0, 0.5])
    tables.compare("C-3 loads of the drives, 1e-3", 1e3 * held.free.effort(*motion), "50.77 -825.92", 0.01)
    tables.compare("C-3 loads that hold the end, 1e-3", 1e3 * held.constraint_loads(*motion), "68.83 -147.60", 0.01)
    return model, q


# E

HAND = np.array([2.55, 1.475])
LEGS = (
    ((2.55, 1.475), (2.28, 0), (0.866, 0.5)),
    ((-2.55, 1.475), (-1.14, 1.975), (-0.866, 0.5)),
    ((0, -2.95), (-1.14, -1.975), (0, -1)),
)


def leg(number: int) -> pb.Model:
    """One leg at the tables' place, its base link with inertia number + 1 and nothing else with any."""
    build = pb.Builder(f"leg {number + 1}", gravity=(0, 0, 0))
    places = [HAND - np.array(lever) for lever in LEGS[number]]
    for k, place in enumerate(places):
        before = places[k - 1] if k else np.zeros(2)
        build.body(f"link{k}", 0, inertia=(0, 0, number + 1 if k == 0 else 0))
        build.joint(f"phi{k}", "revolute", f"link{k - 1}" if k else "world", f"link{k}", (*(place - before), 0))
    build.frame("hand", "link2", (*(HAND - places[2]), 0))
    return build.model()


def appendix_e(tables: Tables) -> list[pb.Model]:
    models, q = [leg(k) for k in range(3)], [np.zeros(3)] * 3
    machine = pb.legs(models, "hand", motions="rz x y", driven=[(k, "phi0") for k in range(3)])
    order = [1, 2, 0]  # the tables' w is (x, y, θ)
    (G, H), *_ = machine.coefficients(q)
    tables.compare("E-1 G of leg 1", G[:, order], "-0.637 0.225 -0.513\n0.758 0.439 -0.001\n-0.122 -0.664 1.514", 0.001)
    tables.compare("E-1 H of leg 1, joint 1", H[0][np.ix_(order, order)],
                   "0.050 -0.105 0.116\n-0.105 -0.439 0.328\n0.116 0.328 -0.665", 0.001)  # fmt: skip
    whole = machine.dynamics(q)
    tables.compare("E-2 I* of the hand", whole.I[np.ix_(order, order)],
                   "1.225 0.367 -0.589\n0.367 1.513 -0.106\n-0.589 -0.106 1.582", 0.001)  # fmt: skip
    tables.compare("E-2 P*3 of the hand", whole.P[0][np.ix_(order, order)],
                   "0.741 -0.188 -0.054\n-0.188 0.459 0.302\n-0.054 0.302 2.047", 0.001)  # fmt: skip
    driven, _, _ = machine.at_actuators(q)
    tables.compare("(E-7) I* at the actuators", driven.I, "1 0 0\n0 2 0\n0 0 3", 0.001)
    return models


def draw(folder: Path, tables: Tables, shown: list[tuple[pb.Model, np.ndarray]]) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    from polybody.studio.drawing import draw_on

    figure = plt.figure(figsize=(13, 8.6))
    for k, (model, q) in enumerate(shown):
        axes = figure.add_axes((0.02 + 0.33 * k, 0.52, 0.3, 0.42), projection="3d", proj_type="ortho")
        draw_on(axes, model, q)
        axes.get_legend().remove()
    axis = figure.add_axes((0.08, 0.16, 0.88, 0.3))
    names, off = zip(*tables.rows, strict=True)
    axis.bar(range(len(off)), off, color="#2563eb")
    axis.axhline(1.0, color="#dc2626", linewidth=1)
    axis.set_xticks(range(len(off)), names, rotation=30, ha="right", fontsize=8)
    axis.set_ylabel("largest difference,\nunits of the last printed digit")
    path = folder / "freeman_tables.png"
    figure.savefig(path, dpi=100)
    return path


def main(folder: Path) -> None:
    warnings.simplefilter("ignore", pb.PolybodyWarning)  # the tables' massless links
    tables = Tables()
    b, c, e = appendix_b(tables), appendix_c(tables), appendix_e(tables)
    worst = max(off for _, off in tables.rows)
    print(f"\n{len(tables.rows)} tables, off by at most {worst:.2f} of the last printed digit")
    assert worst < 1.01
    print("wrote", draw(folder, tables, [b, c, (e[0], np.zeros(3))]))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "freeman_tables")
