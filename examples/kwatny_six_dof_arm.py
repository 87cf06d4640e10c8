"""Kwatny & Blankenship 1995, sections III and IV: the thin disk and the six-degree-of-freedom arm, told truly.

Prints the results the paper prints (configuration of the end effector, gravity potential, last row of the inertia
matrix, sizes), with a simple and with a compound wrist, and says where the printed ones differ. Writes the equations as
HTML and LaTeX, and a picture of the sizes.

    python examples/kwatny_six_dof_arm.py [FOLDER]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import sympy

import polybody as pb

NAMES = {"q": ["s1", "s2", "e", "t1", "t2", "t3"], "p": ["w1", "w2", "u1", "v1", "v2", "v3"]}
QUANTITIES = ("mass_matrix", "velocity_forces", "poincare_matrix", "coriolis_matrix", "potential_forces")


def disk() -> None:
    """Section III: m = 5, R = 2, on a spherical joint at its mass centre, without gravity."""
    build = pb.Builder("disk", gravity=(0, 0, 0))
    build.body("disk", 5, inertia=(5, 5, 10))
    build.joint("ball", "spherical", "world", "disk")
    model = build.model()
    simple = model.symbolic("none", q=["t1", "t2", "t3"], p=["w1", "w2", "w3"])
    print("disk, simple spherical joint: Euler's equations")
    print("  Gamma =", simple.kinematic_matrix("ball").tolist())
    print("  M     =", simple.mass_matrix().tolist())
    print("  C p   =", list(simple.velocity_forces()), " (the paper prints the opposite sign)")
    compound = model.symbolic("none", joints="compound", q=["t1", "t2", "t3"], p=["u1", "u2", "u3"])
    print("disk, compound universal joint of three degrees of freedom: Lagrange's equations")
    print("  M_33  =", compound.mass_matrix()[2, 2], " (the paper prints 5 sin t2 for 5 sin² t2)")
    print("  C p_1 =", compound.velocity_forces()[0])


def arm(folder: Path) -> None:
    """Section IV."""
    model = pb.load("six-dof-arm")
    try:
        model.symbolic(joints={"shoulder": "simple"})
    except pb.InputError as error:
        print(f"\nthe paper's simple shoulder, r1 = {{2}}: refused.\n  {error}")
    sizes = {}
    for kind in ("simple", "compound"):
        started = time.perf_counter()
        sym = model.symbolic("none", joints={"wrist": kind}, **NAMES)
        sizes[kind] = {name: sym.size(name).characters for name in QUANTITIES}
        sizes[kind]["program"] = sym.program("equations").size()[1]
        print(f"\n{kind} wrist, derived, measured in {time.perf_counter() - started:.1f} s, characters {sizes[kind]}")
        print("  last row of M:")
        for entry in sym.mass_matrix()[5, :]:
            print("   ", entry)
    print("\nend effector, world coordinates:")
    for entry in sym.end_effector("tip")[:3, 3]:
        print("   ", entry)
    print("gravity potential / g:", model.symbolic("gravity", **NAMES).potential_energy() / sympy.Symbol("g"))
    ratio = sizes["simple"]["mass_matrix"] / sizes["compound"]["mass_matrix"]
    print(f"inertia matrix, simple wrist over compound: {ratio:.2f} of the characters (the paper claims about .25)")
    simple = model.symbolic("none", joints={"wrist": "simple"}, **NAMES)
    for name, text in (("six-dof-arm.html", simple.html()), ("six-dof-arm.tex", simple.latex())):
        (folder / name).write_text(text, encoding="utf-8")
        print("wrote", folder / name)
    picture(sizes, folder / "kwatny-sizes.png")


def picture(sizes: dict[str, dict[str, int]], path: Path) -> None:
    names = list(sizes["simple"])
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for offset, kind in ((-0.2, "simple"), (0.2, "compound")):
        axes.bar([k + offset for k in range(len(names))], [sizes[kind][n] for n in names], 0.38, label=f"{kind} wrist")
    axes.set_xticks(range(len(names)), [n.replace("_", "\n") for n in names])
    axes.set_ylabel("characters")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)
    print("wrote", path)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/kwatny")
    folder.mkdir(parents=True, exist_ok=True)
    disk()
    arm(folder)


if __name__ == "__main__":
    main()
