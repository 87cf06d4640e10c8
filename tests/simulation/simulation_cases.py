"""Models and states that simulation tests share."""

from __future__ import annotations

from functools import cache

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
