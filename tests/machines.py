"""Machines with loops that tests and benchmarks share, beside the shipped ones."""

from __future__ import annotations

import dataclasses

import numpy as np

import polybody as pb
from polybody.model.validation import model_from

#: name: (velocities, constraint rows, true mobility, drives)
SHIPPED = {
    "four-bar": (3, 5, 1, 1),
    "five-bar": (4, 5, 2, 2),
    "slider-crank": (5, 3, 2, 1),  # the coupler's spin is idle
    "bricard": (5, 5, 1, 1),  # Gruebler's count is 0
    "3-rrr": (9, 15, 3, 3),
    "stewart": (24, 18, 6, 6),
    "delta": (21, 18, 3, 3),
    "hybrid": (10, 10, 6, 6),
    "walking-machine": (7, 10, 3, 4),
    "two-fingered-hand": (7, 10, 3, 4),
    "two-arms": (9, 12, 3, 6),
}


def four_bar_chain(count: int = 40) -> pb.Model:
    """A row of four-bars that share their uprights: 2 count + 1 bars of 1 m and 1 kg.

    Mobility 1; where all uprights lie down it is count + 1. Upright k is `upright<k>`, the bar before it `top<k>`.
    """
    build = pb.Builder(f"chain-of-{count}-four-bars", gravity=(0, -9.81, 0))
    thin = 0.01**2 / 2, 1 / 12, 1 / 12  # a round bar along x, 1 cm in radius
    for k in range(count + 1):
        build.body(f"upright{k}", 1.0, (0, 0.5, 0), (thin[1], thin[0], thin[2]))
        build.joint(f"base{k}", "revolute", "world", f"upright{k}", (k, 0, 0), active=k == 0)
    for k in range(1, count + 1):
        build.body(f"top{k}", 1.0, (0.5, 0, 0), thin)
        build.joint(f"pin{k}", "revolute", f"upright{k - 1}", f"top{k}", (0, 1, 0), active=False)
        build.loop(f"loop{k}", "revolute", f"upright{k}", f"top{k}", (0, 1, 0), (1, 0, 0))
    return build.model()


def parallelogram(gravity: float = 0.0) -> pb.Model:
    """Bars of 1 m, 2 m and 1 m on the ground that can lie flat, where they may also fold; gravity along -y."""
    build = pb.Builder("parallelogram", gravity=(0, -gravity, 0))
    for name in ("left", "top", "right"):
        build.body(name, 1, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    build.joint("a", "revolute", "world", "left")
    build.joint("b", "revolute", "left", "top", (1, 0, 0), active=False)
    build.joint("c", "revolute", "world", "right", (2, 0, 0), active=False)
    build.loop("d", "revolute", "top", "right", (2, 0, 0), (1, 0, 0))
    return build.model()


def appendix_e() -> pb.Model:
    """The shipped 3-RRR with the inertias of Freeman's appendix E: 1, 2 and 3 at the base joints, nothing else."""
    said = pb.load("3-rrr").mechanism.description
    bodies = []
    for body in said.bodies:
        J = float(body.name[-1]) if body.name.startswith("base") else 0.0
        inertia = np.diag([J, J, J])
        bodies.append(dataclasses.replace(body, mass=0.0, com=np.zeros(3), inertia=inertia))
    return model_from(dataclasses.replace(said, bodies=tuple(bodies)), warn=False)


__all__ = ["SHIPPED", "appendix_e", "four_bar_chain", "parallelogram"]
