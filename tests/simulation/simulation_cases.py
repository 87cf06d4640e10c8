"""Models and states that simulation tests share."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import polybody as pb
from mechanisms import random_tree
from polybody.mechanism import mechanism_from
from polybody.model import Model

Array = np.ndarray


@cache
def shipped(name: str) -> Model:
    return pb.load(name)


@cache
def tumbling_body() -> Model:
    """A free body with three different moments of inertia."""
    build = pb.Builder("body")
    build.body("box", mass=2.0, com=(0.1, -0.05, 0.2), inertia=(0.3, 0.5, 0.7))
    build.joint("root_joint", "floating", "world", "box")
    return build.model()


@cache
def satellite() -> Model:
    """A free body with a ball-jointed arm and a hinge: two quaternions, nothing that dissipates."""
    build = pb.Builder("satellite")
    build.body("hull", mass=3.0, com=(0.02, 0.01, 0.0), inertia=(0.2, 0.3, 0.25))
    build.body("arm", mass=1.0, com=(0.0, 0.0, 0.3), inertia=(0.05, 0.06, 0.01))
    build.body("panel", mass=0.5, com=(0.2, 0.0, 0.0), inertia=(0.01, 0.03, 0.03))
    build.joint("root_joint", "floating", "world", "hull")
    shoulder, hinge = np.eye(4), np.eye(4)
    shoulder[:3, 3], hinge[:3, 3] = (0.0, 0.0, 0.3), (0.2, 0.0, 0.0)
    build.joint("shoulder", "spherical", "hull", "arm", origin=shoulder)
    build.joint("hinge", "revolute", "hull", "panel", origin=hinge, axis=(0, 1, 0), stiffness=2.0)
    return build.model()


def moving(model: Model, seed: int = 1, speed: float = 1.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return model.random_configuration(rng), speed * rng.normal(size=model.nv)


def tree(seed: int, n: int, **options: object) -> Model:
    return Model(mechanism_from(random_tree(seed, n, **options)))  # type: ignore[arg-type]


SAHA_START = np.array([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])


def swinging_arm(friction: bool = True, limits: bool = True) -> pb.Model:
    """Two joints that swing between their stops, one of which sticks at its turning points."""
    build = pb.Builder("arm", gravity=(0, 0, -9.81))
    for k in range(2):
        build.body(f"b{k}", 1.0, com=(0, 0, -0.2), inertia=(0.02, 0.02, 0.01))
        origin = np.eye(4)
        origin[2, 3] = -0.4 * k
        more: dict[str, Any] = {"limits": (-0.4, 0.5)} if limits else {}
        more |= {"friction": 0.2} if friction and k == 1 else {}
        build.joint(f"j{k}", "revolute", f"b{k - 1}" if k else "world", f"b{k}", origin, axis=(0, 1, 0), **more)
    return build.model()
