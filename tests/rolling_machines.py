"""Machines that roll or glide on the ground."""

from __future__ import annotations

from typing import Any

import numpy as np

import polybody as pb

G = 9.81


def sleigh(mass: float = 2.0, inertia: float = 0.3, ahead: float = 0.4) -> pb.Model:
    build = pb.Builder("sleigh")
    build.body("sleigh", mass, (ahead, 0, 0), (inertia,) * 3)
    build.joint("base", "planar", "world", "sleigh")
    build.rolling("blade", "blade", "sleigh", axis=(1, 0, 0))
    return build.model()


def rolling_body(kind: str, radius: Any, mass: float, inertia: Any, gravity: Any = (0, 0, -G)) -> pb.Model:
    build = pb.Builder(kind, gravity=gravity)
    build.body("body", mass, inertia=inertia)
    build.joint("free", "floating", "world", "body")
    build.rolling("rolls", kind, "body", radius, axis=(0, 1, 0))
    return build.model()


def disk() -> pb.Model:
    return rolling_body("disk", 0.3, 1.5, (0.03375, 0.0675, 0.03375))


def rattleback() -> pb.Model:
    """An ellipsoid whose axes of inertia are turned against those of its shape, about the vertical."""
    c, s = np.cos(0.1), np.sin(0.1)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
    return rolling_body("ellipsoid", (0.2, 0.03, 0.02), 1.0, turn @ np.diag([2e-4, 1.6e-3, 1.7e-3]) @ turn.T)


def snakeboard() -> pb.Model:
    """A board with a rotor and two steered axles, one angle: the back turns against the front."""
    build = pb.Builder("snakeboard", gravity=(0, 0, 0))
    for name, mass, inertia in (("board", 3.0, 0.2), ("rotor", 0.5, 0.1), ("front", 0.2, 0.01), ("back", 0.2, 0.01)):
        build.body(name, mass, inertia=(inertia,) * 3)
    build.joint("base", "planar", "world", "board")
    build.joint("rotor", "revolute", "board", "rotor")
    build.joint("front", "revolute", "board", "front", (0.4, 0, 0))
    build.joint("back", "revolute", "board", "back", (-0.4, 0, 0))
    build.couple("back", "front", -1)
    for name in ("front", "back"):
        build.rolling(f"{name}_wheels", "blade", name, axis=(1, 0, 0))
    return build.model()


def tracked_vehicle() -> pb.Model:
    """15 joint coordinates: a hull (course, heave, pitch, roll), a turret, two sprockets and six sprung road arms.

    Tracks do not slip: three rows on velocities. Road wheels keep to the ground: six relations of coordinates.
    """
    build = pb.Builder("tracked vehicle")
    x, y, z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    light = (0.01, 0.01, 0.01)
    for name in ("course", "heave", "pitch"):
        build.body(name, 0.1, inertia=light)
    build.body("hull", 40.0, (0.05, 0.02, 0.1), (2.0, 5.0, 6.0))
    build.body("turret", 6.0, (0.2, 0, 0.1), (0.3, 0.4, 0.5))
    build.joint("base", "planar", "world", "course")
    build.joint("heave", "prismatic", "course", "heave", (0, 0, 0.4), axis=z)
    build.joint("pitch", "revolute", "heave", "pitch", axis=y)
    build.joint("roll", "revolute", "pitch", "hull", axis=x)
    build.joint("turret", "revolute", "hull", "turret", (0, 0, 0.3), axis=z)
    for side, sign in (("left", 1), ("right", -1)):
        build.body(f"{side}_sprocket", 1.0, inertia=light)
        build.joint(f"{side}_sprocket", "continuous", "hull", f"{side}_sprocket", (1.2, 0.6 * sign, 0), axis=y)
        build.velocity_relation(f"{side}_track", {"base": -0.6 * sign, "base[1]": 1, f"{side}_sprocket": -0.2})
        for k, along in enumerate((-0.8, 0.0, 0.8)):
            name = f"{side}_{k}"
            build.body(name, 2.0, (-0.3, 0, 0), light)
            build.joint(name, "revolute", "hull", name, (along, 0.6 * sign, 0), axis=y, stiffness=400.0, rest=0.1)
            hull = f"heave - {along}*sin(pitch) + {0.6 * sign}*cos(pitch)*sin(roll)"
            build.relation(f"{name}_ground", f"{hull} - 0.3*sin({name} + pitch)")
    build.velocity_relation("no_slip_sideways", {"base[2]": 1})
    return build.model()
