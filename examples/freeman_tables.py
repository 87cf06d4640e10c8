"""Freeman 1985, appendices B, C and E: his tables, computed, beside what he printed.

    python examples/freeman_tables.py [FOLDER]

B: the wrist point of a wrist-partitioned arm, first and second order (Table B-1), their transfer (B-6)-(B-8).
C: the five-bar by dyads (C-1), as an open chain (C-2), transferred to its end and held there (C-3), in, lbf.
E: a planar platform on three legs, leg by leg (Tables E-1, E-2), by `pb.legs`.
Every matrix and number of these tables is compared.

Numbers that ERRATA.md corrects are the corrected ones. Some printed entries are truncated: one unit of the last digit.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import polybody as pb
from polybody.coordinates.arrays import Dynamics, reversed_coefficients
from polybody.coordinates.constraining import augmented, constrained, end_motion, transferred_chain

PLANAR = [3, 4, 2]  # x, y, θ of [angular; linear]


def table(text: str) -> np.ndarray:
    return np.array([[float(x) for x in line.split()] for line in text.strip().splitlines()])


class Tables:
    """What was computed beside what is printed; `off` is the largest difference in units of the last digit."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float]] = []

    def compare(self, name: str, found: np.ndarray, printed: str | np.ndarray, unit: float) -> None:
        wanted = table(printed) if isinstance(printed, str) else printed
        off = float(np.abs(np.atleast_2d(found) - wanted).max() / unit)
        self.rows.append((name, off))
        print(f"\n{name}: off by at most {off:.2g} of {unit:g}")
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
    (s1, c1), (a23, a34), s3 = (np.sin(0.6), np.cos(0.6)), (0.5, 0.4), np.sin(0.9)
    s, c = a34 * np.sin(1.3), a34 * np.cos(1.3)  # a34 s(θ2+θ3), a34 c(θ2+θ3)
    r, Pz = a23 * np.cos(0.4) + c, a23 * np.sin(0.4) + s
    found = model.coefficients.influence(q, "P", 2)
    inverse, bent = reversed_coefficients(np.linalg.inv(found.G[3:]), found.H[3:])
    printed = {
        "B-1 G": (found.G[3:], [[-r * s1, -Pz * c1, -s * c1], [r * c1, -Pz * s1, -s * s1], [0, r, c]]),
        "B-1 H1": (found.H[3], [[-r * c1, Pz * s1, s * s1], [Pz * s1, -r * c1, -c * c1], [s * s1, -c * c1, -c * c1]]),
        "B-1 H2": (found.H[4], [[-r * s1, -Pz * c1, -s * c1], [-Pz * c1, -r * s1, -c * s1],
                                [-s * c1, -c * s1, -c * s1]]),
        "B-1 H3": (found.H[5], [[0, 0, 0], [0, -Pz, -s], [0, -s, -s]]),
        "(B-6)": (inverse, [[-s1 / r, c1 / r, 0], np.array([c1 * c, s1 * c, s]) / (a23 * a34 * s3),
                            np.array([-r * c1, -r * s1, -Pz]) / (a23 * a34 * s3)]),
        "(B-7)": (np.tensordot(inverse, found.H[3:], 1)[0], -np.array([[0, Pz, s], [Pz, 0, 0], [s, 0, 0]]) / r),
        "(B-8)": (bent[0], np.array([[np.sin(1.2), -np.cos(1.2), 0], [-np.cos(1.2), -np.sin(1.2), 0],
                                     [0, 0, 0]]) / r**2),
    }  # fmt: skip
    for name, (ours, theirs) in printed.items():
        tables.compare(name, ours, np.array(theirs), 1e-12)  # formulas: the last digits of the machine
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
    build.frame("A", "link1", (12, 0, 0))
    build.frame("centre", "link2", (12, 0, 0))
    build.frame("B", "link3", (24, 0, 0))
    build.frame("h", "link4", (12, 0, 0))
    return build.model()


def appendix_c(tables: Tables) -> tuple[pb.Model, np.ndarray]:
    model, q = five_bar(), np.deg2rad([70, -35, -100, -25])
    found = model.coefficients.influence(q, "h", 2)
    I, P = model.coefficients.dynamic_arrays(q)
    w = augmented(found.G[PLANAR], found.H[PLANAR], [0])
    whole, back, bend = transferred_chain(Dynamics(I, P, np.zeros(4)), w)
    rate, second = np.array([2.0, 0, 0, 3]), np.array([1.0, 0, 0, 0.5])
    _c_dyads(tables, model, q, whole.effort(rate, second), *end_motion(back, bend, rate, second))
    tables.compare("C-2 G", w.G, "1 0 0 0\n8.71 19.98 33.75 12\n33.91 29.80 10.14 0\n1 1 1 1", 0.01)
    tables.compare("C-2 H2", -w.H[1], "33.91 29.80 10.14 0\n29.80 29.80 10.14 0\n10.14 10.14 10.14 0\n0 0 0 0", 0.01)
    tables.compare("C-2 H3", w.H[2], """8.71 19.98 33.75 12\n19.98 19.98 33.75 12
        33.75 33.75 33.75 12\n12 12 12 12""", 0.01)
    tables.compare("C-2 H1, H4", np.concatenate([w.H[0], w.H[3]]), np.zeros((8, 4)), 1e-12)
    tables.compare("C-2 I*", I, "2.774 1.418 0 0\n1.418 0.808 0 0\n0 0 0 0\n0 0 0 0", 0.001)
    tables.compare("C-2 P*1", P[0], "0 0.428 0 0\n0.428 0.428 0 0\n0 0 0 0\n0 0 0 0", 0.001)
    tables.compare("C-2 P*2", P[1], "-0.428 0 0 0\n0 0 0 0\n0 0 0 0\n0 0 0 0", 0.001)
    tables.compare("C-2 P*3, P*4", np.concatenate([P[2], P[3]]), np.zeros((8, 4)), 1e-12)
    tables.compare("C-3 I*, 1e-3", 1e3 * whole.I, """411.24 -5.73 12.29 68.79
        -5.73 0.26 -0.55 -3.10\n12.29 -0.55 1.19 6.64\n68.79 -3.10 6.64 37.17""", 0.01)
    tables.compare("C-3 P*1, 1e-3", 1e3 * whole.P[0], """303.35 -0.18 -8.96 2.15
        -0.18 -0.24 -0.61 2.84\n-8.96 -0.61 0.52 7.27\n2.15 2.84 7.27 -181.56""", 0.01)
    tables.compare("C-3 P*2, 1e-3", 1e3 * whole.P[1], """3.38 0.13 0.14 -1.58
        0.13 0.02 0.01 -0.20\n0.14 0.01 0.005 -0.17\n-1.58 -0.20 -0.17 9.06""", 0.01)
    tables.compare("C-3 P*3, 1e-3", 1e3 * whole.P[2], """-7.24 -0.28 -0.29 3.38
        -0.28 -0.04 -0.03 0.43\n-0.29 -0.03 -0.01 0.36\n3.38 0.43 0.36 -19.43""", 0.01)
    tables.compare("C-3 P*4, 1e-3", 1e3 * whole.P[3], """-40.50 -1.58 -1.66 18.95
        -1.58 -0.20 -0.17 2.42\n-1.66 -0.17 -0.06 2.03\n18.95 2.42 2.03 -108.75""", 0.01)
    held = constrained(whole, [1, 2])
    motion = rate[[0, 3]], second[[0, 3]]
    tables.compare("C-3 drives, 1e-3", 1e3 * held.free.effort(*motion), "50.77 -825.92", 0.01)
    tables.compare("C-3 constraint, 1e-3", 1e3 * held.constraint_loads(*motion), "68.83 -147.60", 0.01)
    return model, q


def _c_dyads(tables: Tables, model: pb.Model, q: np.ndarray, loads: np.ndarray, v: np.ndarray, a: np.ndarray) -> None:
    """Table C-1: places, velocities and accelerations of A, B and the coupler, and what the pins carry."""
    A, B, centre = (model.coefficients.influence(q, name, 2) for name in ("A", "B", "centre"))
    place = {name: model.pose(q, name)[:2, 3] for name in ("A", "B", "centre")}
    tables.compare("C-1 A", np.array([place["A"], A.velocity(v)[3:5]]), "4.10 11.28\n-22.55 8.21", 0.01)
    tables.compare("C-1 A, x''", A.acceleration(v, a)[3:4], "-27.69", 0.01)
    tables.compare("C-1 A, y''", A.acceleration(v, a)[4:5], "-41.0", 0.1)
    tables.compare("C-1 B", np.array([B.velocity(v)[3:5], B.acceleration(v, a)[3:5]]), "-36.0 0.0\n-6.0 -108.0", 0.1)
    tables.compare("C-1 B, x", place["B"][:1], "33.9", 0.1)
    tables.compare("C-1 B, y", place["B"][1:], "3.29", 0.01)
    tables.compare("C-1 coupler turns", np.array([centre.velocity(v)[2], centre.acceleration(v, a)[2]]),
                   "-0.074 -3.405", 0.001)  # fmt: skip
    tables.compare("C-1 centre", np.array([place["centre"], centre.acceleration(v, a)[3:5]]),
                   "13.93 18.16\n-4.31 -74.51", 0.01)  # fmt: skip
    force = 0.00517563 * centre.acceleration(v, a)[3:5] - loads[1:3]  # of pin A on the coupler
    tables.compare("C-1 F of A, x", force[:1], "-0.091", 0.001)
    tables.compare("C-1 F of A, y", force[1:], "-0.24", 0.01)
    tables.compare("C-1 F of B and H, T1, T2", loads[[1, 2, 0, 3]], "0.07 -0.15 0.05 -0.83", 0.01)


# E

HAND = np.array([2.55, 1.475])
LEGS = (
    ((2.55, 1.475), (2.28, 0), (0.866, 0.5)),
    ((-2.55, 1.475), (-1.14, 1.975), (-0.866, 0.5)),
    ((0, -2.95), (-1.14, -1.975), (0, -1)),
)


def leg(number: int) -> pb.Model:
    """One leg at the tables' place, its base link with inertia number + 1 and nothing else with any."""
    build = pb.Builder(f"leg {number + 1} (in, lbf)", gravity=(0, 0, 0))
    places = [HAND - np.array(lever) for lever in LEGS[number]]
    for k, place in enumerate(places):
        before = places[k - 1] if k else np.zeros(2)
        build.body(f"link{k}", 0, inertia=(0, 0, number + 1 if k == 0 else 0))
        build.joint(f"phi{k}", "revolute", f"link{k - 1}" if k else "world", f"link{k}", (*(place - before), 0))
    build.frame("hand", "link2", (*(HAND - places[2]), 0))
    return build.model()


def appendix_e(tables: Tables) -> list[pb.Model]:
    models, q = [leg(k) for k in range(3)], [np.zeros(3)] * 3
    _e_leg(tables, models[0])
    machine = pb.legs(models, "hand", motions="rz x y", driven=[(k, "phi0") for k in range(3)])
    order = [1, 2, 0]  # the tables' w is (x, y, θ)
    here = np.ix_(order, order)
    legs = machine.coefficients(q)
    tables.compare("E-2 G", np.array([G[0, order] for G, _ in legs]),
                   "-0.637 0.225 -0.513\n0.124 -0.665 -0.514\n0.513 0.439 -0.513", 0.001)  # fmt: skip
    printed_H = ("0.050 -0.105 0.116\n-0.105 -0.439 0.328\n0.116 0.328 -0.665",
                 "-0.408 -0.159 -0.342\n-0.159 0.018 -0.063\n-0.342 -0.063 -0.665",
                 "-0.225 0.263 0.225\n0.263 -0.165 -0.263\n0.225 -0.263 -0.664")  # fmt: skip
    for k, ((_, H), text) in enumerate(zip(legs, printed_H, strict=True)):
        tables.compare(f"E-2 H{k + 1}", H[0][here], text, 0.001)
    whole = machine.dynamics(q)
    tables.compare("E-2 I*", whole.I[here], "1.225 0.367 -0.589\n0.367 1.513 -0.106\n-0.589 -0.106 1.582", 0.001)
    printed_P = ("-0.479 0.432 0.188\n0.432 0.031 -0.629\n0.188 -0.629 -0.762",
                 "0.259 0.534 0.777\n0.534 -0.340 -0.188\n0.777 -0.188 -0.137",
                 "0.741 -0.188 -0.054\n-0.188 0.459 0.302\n-0.054 0.302 2.047")  # fmt: skip
    for k, text in enumerate(printed_P):
        tables.compare(f"E-2 P*{k + 1}", whole.P[order[k]][here], text, 0.001)
    driven, _, _ = machine.at_actuators(q)
    tables.compare("(E-7) I*", driven.I, "1 0 0\n0 2 0\n0 0 3", 1e-12)
    tables.compare("(E-7) P*", driven.P.reshape(9, 3), np.zeros((9, 3)), 1e-12)
    return models


def _e_leg(tables: Tables, model: pb.Model) -> None:
    """Table E-1: leg 1 at its joints, then at the hand."""
    found = model.coefficients.influence(np.zeros(3), "hand", 2)
    I, P = model.coefficients.dynamic_arrays(np.zeros(3))
    w = augmented(found.G[PLANAR], found.H[PLANAR])
    hand, back, bend = transferred_chain(Dynamics(I, P, np.zeros(3)), w)
    for name, ours, text in (
        ("G of φ", w.G, "-1.475 0 -0.5\n2.55 2.28 0.866\n1 1 1"),
        ("H1 of φ", w.H[0], "-2.55 -2.28 -0.866\n-2.28 -2.28 -0.866\n-0.866 -0.866 -0.866"),
        ("H2 of φ", w.H[1], "-1.475 0 -0.5\n0 0 -0.5\n-0.5 -0.5 -0.5"),
        ("H3 of φ", w.H[2], "0 0 0\n0 0 0\n0 0 0"),
        ("I* of φ", I, "1 0 0\n0 0 0\n0 0 0"),
        ("P* of φ", P.reshape(9, 3), np.zeros((9, 3))),
        ("G of w", back, "-0.637 0.225 -0.513\n0.758 0.439 -0.001\n-0.122 -0.664 1.514"),
        ("H1 of w", bend[0], "0.050 -0.105 0.116\n-0.105 -0.439 0.328\n0.116 0.328 -0.665"),
        ("H2 of w", bend[1], "0.358 -0.053 0.225\n-0.053 0.419 -0.390\n0.225 -0.390 1.327"),
        ("H3 of w", bend[2], "-0.408 0.158 -0.341\n0.158 0.019 0.062\n-0.341 0.062 -0.662"),
        ("I* of w", hand.I, "0.405 -0.143 0.327\n-0.143 0.051 -0.116\n0.327 -0.116 0.264"),
        ("P*1 of w", hand.P[0], "-0.032 0.067 -0.074\n0.067 0.279 -0.209\n-0.074 -0.209 0.423"),
        ("P*2 of w", hand.P[1], "0.011 -0.024 0.026\n-0.024 -0.099 0.074\n0.026 0.074 -0.150"),
        ("P*3 of w", hand.P[2], "-0.026 0.054 -0.059\n0.054 0.225 -0.168\n-0.059 -0.168 0.341"),
    ):
        tables.compare(f"E-1 {name}", ours, text, 0.001)


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
        if "(in," in model.name:  # the tables' lengths are inches
            axes.set_xlabel("x [in]")
            axes.set_ylabel("y [in]")
    axis = figure.add_axes((0.08, 0.16, 0.88, 0.3))
    names, off = zip(*tables.rows, strict=True)
    axis.bar(range(len(off)), off, color="#2563eb")
    axis.axhline(1.0, color="#dc2626", linewidth=1)
    axis.set_xticks(range(len(off)), names, rotation=60, ha="right", fontsize=7)
    axis.margins(x=0.01)
    axis.set_ylabel("largest difference,\nunits of the last printed digit")
    path = folder / "freeman_tables.png"
    figure.savefig(path, dpi=100)
    return path


def main(folder: Path) -> None:
    warnings.simplefilter("ignore", pb.PolybodyWarning)  # the tables' massless links
    tables = Tables()
    b, c, e = appendix_b(tables), appendix_c(tables), appendix_e(tables)
    worst = max(off for _, off in tables.rows)
    print(f"\n{len(tables.rows)} arrays, off by at most {worst:.2f} of the last printed digit")
    assert worst < 1.01
    print("wrote", draw(folder, tables, [b, c, (e[0], np.zeros(3))]))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs") / "freeman_tables")
