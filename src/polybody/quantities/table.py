"""The compiled quantities by name: arguments, shapes of results, and the text each is traced from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.algebra.spatial import pose
from polybody.formulations import denoc
from polybody.mechanism import kinematics
from polybody.mechanism.energy import energy, momentum
from polybody.mechanism.mechanism import Mechanism

Array = np.ndarray
Shapes = Callable[[Mechanism], tuple[tuple[str, tuple[int, ...]], ...]]


@dataclass(frozen=True)
class Quantity:
    """One answer: `text(mechanism, *arguments, domain=...)` gives arrays of the named shapes.

    `lean`: it depends on joint-space dynamics only, so it may be traced from the reduced mechanism.
    """

    name: str
    arguments: tuple[str, ...]
    shapes: Shapes
    text: Callable[..., Any]
    lean: bool = False


def _vector(name: str) -> Shapes:
    return lambda m: ((name, (m.nv,)),)


def _matrix(name: str) -> Shapes:
    return lambda m: ((name, (m.nv, m.nv)),)


def _inverse_with_wrenches(m: Mechanism, q: Array, v: Array, a: Array, w: Array, *, domain: Domain) -> Array:
    return denoc.inverse_dynamics(m, q, v, a, w.reshape(-1, 6), domain=domain)


def _forward_with_wrenches(m: Mechanism, q: Array, v: Array, tau: Array, w: Array, *, domain: Domain) -> Array:
    return denoc.forward_dynamics(m, q, v, tau, w.reshape(-1, 6), domain=domain)


def _energies(m: Mechanism, q: Array, v: Array, *, domain: Domain) -> tuple[Array, Array]:
    kinetic, potential = energy(m, q, v, domain=domain)
    return domain.array([kinetic]), domain.array([potential])


def _rotations(m: Mechanism, q: Array, *, domain: Domain) -> Array:
    return np.array([R for R, _ in kinematics.body_poses(m, q, domain=domain)], dtype=domain.dtype)


_ALL = (
    Quantity("inverse_dynamics", ("q", "v", "a"), _vector("tau"), denoc.inverse_dynamics, lean=True),
    Quantity("inverse_dynamics_wrenches", ("q", "v", "a", "wrenches"), _vector("tau"), _inverse_with_wrenches),
    Quantity("forward_dynamics", ("q", "v", "tau"), _vector("a"), denoc.forward_dynamics, lean=True),
    Quantity("forward_dynamics_wrenches", ("q", "v", "tau", "wrenches"), _vector("a"), _forward_with_wrenches),
    Quantity("mass_matrix", ("q",), _matrix("M"), denoc.mass_matrix, lean=True),
    Quantity("coriolis_matrix", ("q", "v"), _matrix("C"), denoc.coriolis_matrix),
    Quantity("bias_forces", ("q", "v"), _vector("bias"), denoc.bias_forces, lean=True),
    Quantity("gravity_forces", ("q",), _vector("gravity"), denoc.gravity_forces, lean=True),
    Quantity("passive_forces", ("q", "v"), _vector("passive"), denoc.passive_forces),
    Quantity("energy", ("q", "v"), lambda m: (("kinetic", ()), ("potential", ())), _energies),
    Quantity("momentum", ("q", "v"), lambda m: (("momentum", (6,)),), momentum),
    Quantity("center_of_mass", ("q",), lambda m: (("com", (3,)),), kinematics.center_of_mass),
    Quantity("integrate", ("q", "d"), lambda m: (("q", (m.nq,)),), kinematics.integrate),
    Quantity("difference", ("q0", "q1"), _vector("d"), kinematics.difference),
    Quantity("rate", ("q", "v"), lambda m: (("qdot", (m.nq,)),), kinematics.rate),
    Quantity("body_rotations", ("q",), lambda m: (("R", (len(m.bodies), 3, 3)),), _rotations),
)

QUANTITIES = {quantity.name: quantity for quantity in _ALL}


def pose_quantity(frame: str) -> Quantity:
    """Pose of one frame in the world."""

    def text(m: Mechanism, q: Array, *, domain: Domain) -> Array:
        place = m.frames[m.frame_index[frame]]
        poses = kinematics.body_poses(m, q, domain=domain)
        return pose(*kinematics.frame_pose(place, poses, domain=domain), domain=domain)

    return Quantity(f"pose {frame}", ("q",), lambda m: (("T", (4, 4)),), text)


def jacobian_quantity(frame: str, axes: str) -> Quantity:
    """Jacobian of one frame's origin, in world axes or the frame's own."""

    def text(m: Mechanism, q: Array, *, domain: Domain) -> Array:
        place = m.frames[m.frame_index[frame]]
        J = kinematics.frame_jacobian(m, q, place, domain=domain)
        if axes == "world":
            return J
        R, _ = kinematics.frame_pose(place, kinematics.body_poses(m, q, domain=domain), domain=domain)
        return np.concatenate([R.T @ J[:3], R.T @ J[3:]])

    return Quantity(f"jacobian {axes} {frame}", ("q",), lambda m: (("J", (6, m.nv)),), text)


__all__ = ["QUANTITIES", "Quantity", "jacobian_quantity", "pose_quantity"]
