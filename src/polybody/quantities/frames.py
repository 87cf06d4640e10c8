"""Quantities of a frame or two: each function makes one for the frames it is given, by name.

Rates come from jets: with q moving along v, J̇ = dJ/dt, and the acceleration of a frame is J a + J̇ v.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.jets import JetDomain
from polybody.algebra.spatial import pose as as_matrix
from polybody.errors import InputError
from polybody.formulations import denoc
from polybody.formulations import influence as freeman
from polybody.formulations.network.reactions import AXES
from polybody.formulations.network.reactions import reactions as tree_reactions
from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import BodyFrame, Mechanism
from polybody.names import listed, nearest
from polybody.quantities import constrained
from polybody.quantities.quantity import Quantity

WORLD_OR_FRAME = ("world", "frame")


def find_frame(m: Mechanism, name: Any) -> BodyFrame:
    """The frame of that name, or an error that offers the nearest one."""
    if not isinstance(name, str):
        raise InputError(f"a frame is chosen by its name, not by {name!r}; available: {listed(m.frame_index)}")
    if name not in m.frame_index:
        raise InputError(f"no frame {name!r}{nearest(name, m.frame_index)}; available: {listed(m.frame_index)}")
    return m.frames[m.frame_index[name]]


def _axes(axes: Any, allowed: tuple[str, ...] = WORLD_OR_FRAME) -> str:
    if axes not in allowed:
        raise InputError(f"axes is {axes!r}, expected {' or '.join(map(repr, allowed))}")
    return axes


def _jacobian(m: Mechanism, place: BodyFrame, axes: str, q: Array, domain: Domain) -> Array:
    J = kinematics.frame_jacobian(m, q, place, domain=domain)
    return J if axes == "world" else _turned(m, place, q, J, domain)


def _turned(m: Mechanism, place: BodyFrame, q: Array, rows: Array, domain: Domain) -> Array:
    """Rows [angular; linear] in the frame's own axes."""
    R, _ = kinematics.frame_pose(place, kinematics.body_poses(m, q, domain=domain), domain=domain)
    return np.concatenate([R.T @ rows[:3], R.T @ rows[3:]])


def pose(m: Mechanism, frame: str) -> Quantity:
    """Pose of a frame in the world."""
    find_frame(m, frame)

    def text(m: Mechanism, q: Array, *, domain: Domain) -> Array:
        bodies = kinematics.body_poses(m, q, domain=domain)
        return as_matrix(*kinematics.frame_pose(find_frame(m, frame), bodies, domain=domain), domain=domain)

    doc = "Pose of a frame in the world."
    return Quantity(f"pose:{frame}", ("q",), (("T", (4, 4)),), text, doc=doc, group="kinematics")


def lever(m: Mechanism, frame: str) -> Quantity:
    """From the origin of the body that carries a frame to the frame's, world axes."""
    find_frame(m, frame)

    def text(m: Mechanism, q: Array, *, domain: Domain) -> Array:
        place = find_frame(m, frame)
        R, _ = kinematics.body_poses(m, q, domain=domain)[place.body]
        return R @ domain.array(place.position)

    return Quantity(f"lever:{frame}", ("q",), (("r", (3,)),), text, group="kinematics")


def relative_pose(m: Mechanism, frame: str, reference: str) -> Quantity:
    """Pose of a frame relative to another."""
    names = find_frame(m, frame).name, find_frame(m, reference).name

    def text(m: Mechanism, q: Array, *, domain: Domain) -> Array:
        bodies = kinematics.body_poses(m, q, domain=domain)
        (R, p), (S, o) = (kinematics.frame_pose(find_frame(m, x), bodies, domain=domain) for x in names)
        return as_matrix(S.T @ R, S.T @ (p - o), domain=domain)

    doc = "Pose of a frame relative to another."
    return Quantity(f"relative_pose:{frame}:{reference}", ("q",), (("T", (4, 4)),), text, doc=doc, group="kinematics")


def jacobian(m: Mechanism, frame: str, axes: str = "world") -> Quantity:
    """Jacobian of a frame's origin."""
    frame, axes = find_frame(m, frame).name, _axes(axes)

    def text(m: Mechanism, q: Array, *, domain: Domain) -> Array:
        return _jacobian(m, find_frame(m, frame), axes, q, domain)

    doc = "Jacobian of a frame's origin, rows [angular; linear], in world axes or the frame's own."
    return Quantity(f"jacobian:{frame}:{axes}", ("q",), (("J", (6, "nv")),), text, doc=doc, group="kinematics")


def jacobian_rate(m: Mechanism, frame: str, axes: str = "world") -> Quantity:
    """Time derivative of a frame's Jacobian along v."""
    frame, axes = find_frame(m, frame).name, _axes(axes)

    def text(m: Mechanism, q: Array, v: Array, *, domain: Domain) -> Array:
        jets = JetDomain(domain)
        moving = jets.lift(q, kinematics.rate(m, q, v, domain=domain))
        return jets.rates(_jacobian(m, find_frame(m, frame), axes, moving, jets))

    doc = "Time derivative of a frame's Jacobian along v."
    name = f"jacobian_rate:{frame}:{axes}"
    return Quantity(name, ("q", "v"), (("J_rate", (6, "nv")),), text, doc=doc, group="kinematics")


def velocity(m: Mechanism, frame: str, axes: str = "world") -> Quantity:
    """Velocity of a frame's origin."""
    frame, axes = find_frame(m, frame).name, _axes(axes)

    def text(m: Mechanism, q: Array, v: Array, *, domain: Domain) -> Array:
        return _jacobian(m, find_frame(m, frame), axes, q, domain) @ v

    doc = "Velocity [angular; linear] of a frame's origin."
    return Quantity(f"frame_velocity:{frame}:{axes}", ("q", "v"), (("V", (6,)),), text, doc=doc, group="kinematics")


def acceleration(m: Mechanism, frame: str, axes: str = "world") -> Quantity:
    """Acceleration of a frame's origin: the rate of its velocity in world axes, then in the axes asked for."""
    frame, axes = find_frame(m, frame).name, _axes(axes)

    def text(m: Mechanism, q: Array, v: Array, a: Array, *, domain: Domain) -> Array:
        jets, place = JetDomain(domain), find_frame(m, frame)
        moving = jets.lift(q, kinematics.rate(m, q, v, domain=domain))
        drift = jets.rates(_jacobian(m, place, "world", moving, jets) @ jets.lift(v))
        found = _jacobian(m, place, "world", q, domain) @ a + drift
        return found if axes == "world" else _turned(m, place, q, found, domain)

    doc = "Acceleration [angular; linear] of a frame's origin."
    name = f"frame_acceleration:{frame}:{axes}"
    return Quantity(name, ("q", "v", "a"), (("A", (6,)),), text, doc=doc, group="kinematics")


def task_space_inertia(m: Mechanism, frame: str) -> Quantity:
    """(J M⁻¹ Jᵀ)⁻¹ of a frame."""
    find_frame(m, frame)

    def tree(m: Mechanism, q: Array, *, domain: Domain) -> Array:
        J = kinematics.frame_jacobian(m, q, find_frame(m, frame), domain=domain)
        inner = J @ denoc.inverse_mass_matrix(m, q, domain=domain) @ J.T
        return domain.solve(inner, domain.eye(6))

    def closed(c: constrained.Closed, q: Array, *, domain: Domain) -> Array:
        return constrained.task_space_inertia(c, find_frame(c.tree, frame), q, domain=domain)

    doc = "Effective inertia at a frame, (J M⁻¹ Jᵀ)⁻¹, world axes."
    results = (("Lambda", (6, 6)),)
    return Quantity(f"task_space_inertia:{frame}", ("q",), results, tree, closed, doc, "dynamics")


def reactions(m: Mechanism, axes: str = "world", loaded: str = "") -> Quantity:
    """Reactions of all joints and loops, with wrenches on frames if `loaded` is "loads"."""
    axes = _axes(axes, AXES)

    def tree(m: Mechanism, q: Array, v: Array, a: Array, *more: Array, domain: Domain) -> tuple[Array, Array]:
        table = more[0].reshape(-1, 6) if loaded else None
        return tree_reactions(m, q, v, a, table, axes=axes, domain=domain), domain.zeros(0, 6)

    def closed(
        c: constrained.Closed, q: Array, v: Array, a: Array, *more: Array, domain: Domain
    ) -> tuple[Array, Array]:
        table = more[0].reshape(-1, 6) if loaded else None
        return constrained.reactions(c, q, v, a, table, axes=axes, domain=domain)

    arguments = ("q", "v", "a", "loads") if loaded else ("q", "v", "a")
    results = (("reactions", ("joints", 6)), ("loops", ("pairs", 6)))
    doc = "Wrench [moment; force] of every joint on its child, then of every loop on its second body."
    return Quantity(f"reactions:{axes}{':loads' if loaded else ''}", arguments, results, tree, closed, doc, "dynamics")


def influence(
    m: Mechanism, frame: str, order: str | int = 2, place: Callable[[Mechanism], BodyFrame] | None = None,
    label: str = "",
) -> Quantity:  # fmt: skip
    """Freeman's G, H, D of a frame, or of another point of its body: where `place` puts it, called `label`."""
    order = int(order)
    find_frame(m, frame)

    def text(m: Mechanism, q: Array, *, domain: Domain) -> tuple[Array, ...]:
        there = find_frame(m, frame) if place is None else place(m)
        return _orders(freeman.influence(m, q, there, order, domain=domain))

    name = f"influence:{frame}:{order}{'' if place is None else f':{label}'}"
    doc = "Influence coefficients of a point, rows [angular; linear], world axes."
    return Quantity(name, ("q",), _order_shapes(order), text, doc=doc, group="kinematics")


def center_of_mass_influence(m: Mechanism, order: str | int = 2) -> Quantity:
    """Freeman's G, H, D of the centre of mass."""
    order = int(order)

    def text(m: Mechanism, q: Array, *, domain: Domain) -> tuple[Array, ...]:
        return _orders(freeman.center_influence(m, q, order, domain=domain))

    doc = "Influence coefficients of the centre of mass; angular rows are zero."
    name = f"center_of_mass_influence:{order}"
    return Quantity(name, ("q",), _order_shapes(order), text, doc=doc, group="kinematics")


def _orders(found: freeman.Influence) -> tuple[Array, ...]:
    return tuple(x for x in (found.G, found.H, found.D) if x is not None)


def _order_shapes(order: int) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    return tuple((name, (6, *("nv",) * (k + 1))) for k, name in enumerate("GHD"[:order]))


__all__ = [
    "acceleration", "center_of_mass_influence", "find_frame", "influence", "jacobian", "jacobian_rate", "lever",
    "pose", "reactions", "relative_pose", "task_space_inertia", "velocity",
]
