"""A flexible link as a chain of rigid pieces with elastic joints between them (Swain & Morris 2003, appendix C.2).

The link lies along x from its frame's origin. It is cut into N segments of length h = L/N, each with a hinge in its
middle that takes the whole bending of the segment:

    o---|---+-------|-------+---  …  ---+-------|---       | hinge, + end of a segment
    piece 0 │        piece 1          …          │ piece N

so there are N hinges of stiffness EI/h and N + 1 rigid pieces, of which the first and the last are half as long. Hinges
in the middle make statics a midpoint rule: deflections and frequencies converge with h². Planar links bend about one
axis; spatial ones (GJ given) bend about y and z and twist about x, in ball joints of stiffness diag(GJ, EI_y, EI_z)/h.
Material damping of the Kelvin-Voigt kind makes the moment EI (κ + damping · κ̇), `damping` in seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.description import shapes
from polybody.description.limits import RECORDS
from polybody.description.records import Body, Frame, Joint, frozen_array
from polybody.errors import InputError

Array = np.ndarray

#: Inertia about x over that across it, of the pieces of a planar link: it has no part in bending, and keeps the pieces'
#: inertia positive definite.
THIN = 1e-3


def flexible_link_records(
    name: str,
    length: float,
    mass_per_length: float,
    EI: Any,
    GJ: float | None = None,
    *,
    damping: float = 0.0,
    segments: int = 10,
    axis: Any = (0.0, 0.0, 1.0),
    polar_inertia: float | None = None,
    rotary_inertia: float = 0.0,
    source: str | None = None,
) -> tuple[list[Body], list[Joint], list[Frame]]:
    """Pieces `name`, `name_1` … `name_N`, joints `name_joint_1` … `name_joint_N`, and the frame `name_tip`.

    SI units: EI and GJ in N·m² (EI one number, or (EI_y, EI_z) where GJ is given), `mass_per_length` in kg/m,
    `polar_inertia` in kg·m (about x, per length; needed where GJ is given). `axis` is what a planar link bends about,
    y, z or any direction across x. `rotary_inertia` (kg·m, about the axes across x, per length: ρ I of the section, as
    in Rayleigh's beam) is zero by default: the pieces are slender, of the inertia m h²/12 across x and no other.
    """
    _check(name, length, mass_per_length, EI, GJ, damping, segments, polar_inertia, rotary_inertia)
    axis = _across(name, axis)
    h = length / segments
    bodies: list[Body] = []
    joints: list[Joint] = []
    for k in range(segments + 1):
        size = h / 2 if k in (0, segments) else h
        bodies.append(_piece(_piece_name(name, k), size, mass_per_length, polar_inertia, rotary_inertia, source))
        if k:
            reach = h / 2 if k == 1 else h
            joints.append(_hinge(name, k, reach, h, EI, GJ, damping, axis, source))
    tip = Frame(f"{name}_tip", _piece_name(name, segments), _shift(h / 2), source)
    return bodies, joints, [tip]


def _piece_name(name: str, k: int) -> str:
    return name if k == 0 else f"{name}_{k}"


def _shift(x: float) -> Array:
    T = np.eye(4)
    T[0, 3] = x
    return frozen_array(T)


def _piece(name: str, size: float, density: float, polar: float | None, rotary: float, source: str | None) -> Body:
    mass = density * size
    across = mass * size * size / 12 + rotary * size  # size**2 would raise where this is infinite, and refused later
    inertia = np.diag([THIN * across if polar is None else polar * size, across, across])
    return Body(name, mass, frozen_array((size / 2, 0, 0)), frozen_array(inertia), source=source)


def _hinge(
    name: str,
    k: int,
    reach: float,
    h: float,
    EI: Any,
    GJ: float | None,
    damping: float,
    axis: Array,
    source: str | None,
) -> Joint:
    if GJ is None:
        kind, stiffness = "revolute", np.array([[float(EI) / h]])
    else:
        bending = np.broadcast_to(np.asarray(EI, dtype=float), (2,))
        kind, stiffness = "spherical", np.diag([GJ, *bending]) / h
    return Joint(
        f"{name}_joint_{k}",
        kind,
        _piece_name(name, k - 1),
        _piece_name(name, k),
        _shift(reach),
        frozen_array(axis) if GJ is None else frozen_array((0, 0, 1)),
        stiffness=frozen_array(stiffness),
        damping=frozen_array(damping * stiffness) if damping else None,
        active=(False,) * len(stiffness),
        source=source,
    )


def _across(name: str, axis: Any) -> Array:
    axis = shapes.numbers(f"flexible link {name!r}: axis", axis, 3)
    size = float(np.linalg.norm(axis)) if axis.shape == (3,) else 0.0
    if not size or abs(axis[0]) > 1e-9 * size:
        raise InputError(
            f"flexible link {name!r}: axis is {axis.tolist()}, expected a direction across x, as (0, 0, 1)"
        )
    return axis / size


def _check(
    name: str, length: Any, density: Any, EI: Any, GJ: Any, damping: Any, segments: Any, polar: Any, rotary: Any
) -> None:
    what = f"flexible link {name!r}: "
    if not isinstance(segments, (int, np.integer)) or not 2 <= segments <= RECORDS:
        raise InputError(f"{what}segments is {segments!r}, expected a whole number of at least 2 and at most {RECORDS}")
    positive = {"length": length, "mass_per_length": density, "EI": EI}
    if GJ is not None:
        positive["GJ"] = GJ
        if polar is None:
            raise InputError(
                f"{what}a link that twists (GJ given) needs polar_inertia, its inertia about x per length in kg·m "
                "(mass_per_length · radius²/2 for a round bar)"
            )
    if polar is not None:
        positive["polar_inertia"] = polar
    if np.ndim(EI) and (GJ is None or np.shape(EI) != (2,)):
        raise InputError(f"{what}EI is {EI!r}, expected one number, or (EI_y, EI_z) for a link with GJ")
    for key, value in positive.items():
        numbers = shapes.numbers(what + key, value, *np.shape(value))
        if not np.all(np.isfinite(numbers)) or np.any(numbers <= 0):
            raise InputError(f"{what}{key} is {value!r}, expected a positive number")
    for key, value, kind in (("damping", damping, "a time in seconds"), ("rotary_inertia", rotary, "kg·m")):
        if not 0 <= shapes.number(what + key, value) < np.inf:
            raise InputError(f"{what}{key} is {value!r}, expected {kind}, zero or more")


__all__ = ["flexible_link_records"]
