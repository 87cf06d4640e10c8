"""Denavit-Hartenberg tables.

Classical:          T_(i−1),i = Rz(θ) Tz(d) Tx(a) Rx(α)
Modified (Craig):   T_(i−1),i = Rx(α) Tx(a) Rz(θ) Tz(d), with α_(i−1), a_(i−1) in row i

A row's variable is θ (revolute: θ = q + `theta`) or d (prismatic: d = q + `d`). The body's frame is the joint's frame:
it lies at DH frame i−1 (classical) or at Rx(α) Tx(a) from it (modified), moves with the body, and has the joint's axis
as z. So with

    A = 1                 F = Rz(θ_0) Tz(d_0) Tx(a) Rx(α)        classical
    A = Rx(α) Tx(a)       F = Rz(θ_0) Tz(d_0)                    modified

joint i is placed at F_(i−1) A_i in body i−1, and DH frame i is the named frame `dh_i`, placed at F_i in body i. Mass
centres and inertias are given in DH frame i and turned into the body's. Multiples of 90° have exact sines and cosines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from polybody.algebra.spatial import pose
from polybody.description import shapes
from polybody.description.limits import LARGEST_NUMBER
from polybody.description.records import SIZES, WORLD, Array, Body, Description, Frame, Joint, frozen_array
from polybody.errors import InputError
from polybody.late import dataclass, field
from polybody.names import listed, nearest

CONVENTIONS = ("classical", "modified")
DH_KINDS = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True, eq=False)
class DHLink:
    """A row of the table, with the link's mass, mass centre and inertia (about it) in DH frame i."""

    a: float = 0.0
    alpha: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    kind: str = "revolute"
    mass: float = 0.0
    com: Any = (0.0, 0.0, 0.0)
    inertia: Any = (0.0, 0.0, 0.0)
    name: str | None = None
    joint: str | None = None
    #: fields of the joint's record: stiffness, damping, friction, rest, armature, limits, active
    drive: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None


def exact_turn(angle: float) -> tuple[float, float]:
    """(sine, cosine), exact at multiples of 90°."""
    quarters = angle / (math.pi / 2)
    whole = round(quarters)
    if abs(quarters - whole) < 1e-15 * max(1.0, abs(quarters)):
        return ((0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0))[whole % 4]
    return math.sin(angle), math.cos(angle)


def turn_z_shift(theta: float, d: float) -> Array:
    """Rz(θ) Tz(d)."""
    s, c = exact_turn(theta)
    return pose(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), np.array([0.0, 0.0, d]))


def turn_x_shift(alpha: float, a: float) -> Array:
    """Rx(α) Tx(a) = Tx(a) Rx(α)."""
    s, c = exact_turn(alpha)
    return pose(np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]), np.array([a, 0.0, 0.0]))


def dh_records(
    links: Iterable[DHLink],
    *,
    convention: str = "classical",
    base: Array | None = None,
    parent: str = WORLD,
) -> tuple[list[Body], list[Joint], list[Frame]]:
    """Bodies, joints and `dh_i` frames of a table; DH frame 0 is placed in `parent` by `base`."""
    if convention not in CONVENTIONS:
        raise InputError(
            f"no DH convention {convention!r}{nearest(convention, CONVENTIONS)}; available: {listed(CONVENTIONS)}"
        )
    bodies, joints, frames = [], [], []
    place = np.eye(4) if base is None else np.asarray(base, dtype=float)
    for i, link in enumerate(links, start=1):
        name, joint = link.name or f"link{i}", link.joint or f"joint{i}"
        owner = f"DH row {i}: "
        if not isinstance(link.kind, str) or link.kind not in DH_KINDS:
            near = nearest(str(link.kind), DH_KINDS)
            raise InputError(f"{owner}no kind {link.kind!r:.60}{near}; a row is {listed(DH_KINDS)}")
        for key in ("a", "alpha", "d", "theta"):
            if not abs(shapes.number(owner + key, getattr(link, key))) <= LARGEST_NUMBER:
                raise InputError(f"{owner}{key} is {getattr(link, key)}, expected a finite number")
        across = turn_x_shift(link.alpha, link.a)
        along = turn_z_shift(link.theta, link.d)
        to_joint, to_frame = (np.eye(4), along @ across) if convention == "classical" else (across, along)
        R, com = to_frame[:3, :3], shapes.numbers(owner + "com", link.com, 3)
        inertia = shapes.inertia_matrix(owner + "inertia", link.inertia)
        bodies.append(
            Body(
                name,
                shapes.number(owner + "mass", link.mass),
                frozen_array(R @ com + to_frame[:3, 3]),
                frozen_array(R @ inertia @ R.T),
                source=link.source,
            )
        )
        origin = frozen_array(place @ to_joint)
        joints.append(Joint(joint, link.kind, parent, name, origin, source=link.source, **_drive(owner, link)))
        frames.append(Frame(f"dh_{i}", name, frozen_array(to_frame), source=link.source))
        parent, place = name, to_frame
    if not bodies:
        raise InputError("a DH table needs at least one row")
    return bodies, joints, frames


def _drive(owner: str, link: DHLink) -> dict[str, Any]:
    nq, nv = SIZES[link.kind]
    convert = {
        "stiffness": lambda value, what: shapes.square_matrix(what, value, nv),
        "damping": lambda value, what: shapes.square_matrix(what, value, nv),
        "friction": lambda value, what: shapes.friction(what, value, nv),
        "rest": lambda value, what: shapes.rest_configuration(what, value, nq),
        "armature": lambda value, what: shapes.vector(what, value, nv),
        "limits": lambda value, what: shapes.joint_limits(what, value, nv),
        "active": lambda value, what: shapes.active_flags(what, value, nv),
    }
    for key in link.drive:
        if key not in convert:
            every = (*_ROW, *convert)
            raise InputError(f"{owner}no key {key!r}{nearest(str(key), every)}; available: {listed(every, len(every))}")
    return {key: convert[key](value, owner + key) for key, value in link.drive.items()}


_ROW = ("a", "alpha", "d", "theta", "kind", "mass", "com", "inertia", "name", "joint")


def dh_description(
    rows: Iterable[Mapping[str, Any] | DHLink],
    *,
    name: str = "arm",
    convention: str = "classical",
    base: Any = None,
    gravity: Any = (0, 0, -9.81),
) -> Description:
    """The description of a DH table. A row is a mapping of a, alpha, d, theta, kind, mass, com, inertia, name, joint,
    and of a joint's armature, damping, stiffness, rest, limits, active; what is absent is zero."""
    links = []
    for i, row in enumerate(rows, start=1):
        if isinstance(row, DHLink):
            links.append(row)
            continue
        if not isinstance(row, Mapping):
            raise InputError(f"DH row {i} must be a mapping such as dict(a=0.4, alpha=0, d=0.1), got {row!r:.60}")
        known = {key: value for key, value in row.items() if key in _ROW}
        for key in ("a", "alpha", "d", "theta"):
            known[key] = shapes.number(f"DH row {i}: {key}", known.get(key, 0.0))
        links.append(DHLink(**known, drive={key: value for key, value in row.items() if key not in _ROW}))
    place = None if base is None else shapes.pose_matrix("base", base)
    bodies, joints, frames = dh_records(links, convention=convention, base=place)
    return Description(name, shapes.numbers("gravity", gravity, 3), tuple(bodies), tuple(joints), tuple(frames))


__all__ = ["CONVENTIONS", "DHLink", "dh_description", "dh_records", "exact_turn"]
