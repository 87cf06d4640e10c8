"""Quantities over time: what a run, a live simulation or one state reports, in named channels with units.

A channel is a table with one column per item; an item knows its unit and its joint. The page, the plots and the reports
take their curves from here. Quaternions have no unit ("1"): they are not angles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.errors import PolybodyError
from polybody.model.model import Model

Array = np.ndarray
QUATERNION = ("qx", "qy", "qz", "qw")


@dataclass(frozen=True)
class Item:
    """One column: what it is called, its unit, the joint it belongs to and which number of it."""

    label: str
    unit: str
    joint: str = ""
    part: str = ""

    def as_dict(self) -> dict[str, str]:
        return {"label": self.label, "unit": self.unit, "joint": self.joint, "part": self.part}


@dataclass(frozen=True)
class Channel:
    """A table's heading: `key` as it is asked for, `title` above a plot, `short` in a list."""

    key: str
    title: str
    short: str
    items: tuple[Item, ...]

    def as_dict(self) -> dict[str, Any]:
        items = [item.as_dict() for item in self.items]
        return {"key": self.key, "title": self.title, "short": self.short, "items": items}


def turning(model: Model) -> Array:
    """Which numbers of v turn, (nv,) booleans."""
    flags: list[bool] = []
    for joint in model.mechanism.independent_joints:
        H = joint.model.velocity_map(joint.model.neutral())
        flags += [bool(np.any(H[:3, k])) for k in range(joint.nv)]
    return np.array(flags, dtype=bool)


def position_items(model: Model) -> tuple[Item, ...]:
    """The numbers of q."""
    items: list[Item] = []
    turns = turning(model)
    for joint in model.mechanism.independent_joints:
        if joint.nq == joint.nv:
            units = ["rad" if t else "m" for t in turns[joint.v]]
            parts = [""] if joint.nq == 1 else [str(k) for k in range(joint.nq)]
        else:
            parts = [*(("x", "y", "z") if joint.nq == 7 else ()), *QUATERNION]
            units = [*(("m",) * 3 if joint.nq == 7 else ()), *("1",) * 4]
        items += [_item(joint.name, part, unit) for part, unit in zip(parts, units, strict=True)]
    return tuple(items)


def velocity_items(model: Model, angular: str, linear: str) -> tuple[Item, ...]:
    """The numbers of v, a or tau."""
    items: list[Item] = []
    turns = turning(model)
    for joint in model.mechanism.independent_joints:
        parts = [""] if joint.nv == 1 else [str(k) for k in range(joint.nv)]
        if joint.nq != joint.nv:
            parts = ["wx", "wy", "wz", *(("vx", "vy", "vz") if joint.nv == 6 else ())]
        units = [angular if t else linear for t in turns[joint.v]]
        items += [_item(joint.name, part, unit) for part, unit in zip(parts, units, strict=True)]
    return tuple(items)


def _item(joint: str, part: str, unit: str) -> Item:
    return Item(f"{joint}.{part}" if part else joint, unit, joint, part)


def channels(model: Model, work: bool = False) -> list[Channel]:
    """What can be reported of a model over time."""
    found = [
        Channel("positions", "Joint positions", "position", position_items(model)),
        Channel("velocities", "Joint velocities", "velocity", velocity_items(model, "rad/s", "m/s")),
        Channel("accelerations", "Joint accelerations", "acceleration", velocity_items(model, "rad/s²", "m/s²")),
        Channel("forces", "Joint forces", "force", velocity_items(model, "N m", "N")),
    ]
    energies = ["kinetic", "potential", "total", *(["work"] if work else [])]
    found.append(Channel("energy", "Energy", "energy", tuple(Item(name, "J") for name in energies)))
    if model.total_mass > 0:
        axes = tuple(Item(f"centre of mass.{axis}", "m") for axis in "xyz")
        found.append(Channel("mass centre", "Centre of mass", "centre of mass", axes))
    if model.mechanism.constrained:
        found.append(Channel("residual", "Loop residual", "residual", (Item("largest residual", "m, rad"),)))
    return found


def tables(
    model: Model, q: Array, v: Array, a: Array | None, tau: Array | None, work: Array | None = None,
    energies: tuple[Array, Array] | None = None,
) -> dict[str, Array]:  # fmt: skip
    """{channel: (n, items)} at states (n, …); what is not given is not reported."""
    kinetic, potential = model.energy(q, v) if energies is None else energies
    energy = [kinetic, potential, kinetic + potential, *([] if work is None else [work])]
    found = {"positions": q, "velocities": v, "energy": np.stack(energy, axis=-1)}
    if a is not None:
        found["accelerations"] = a
    if tau is not None:
        found["forces"] = tau
    if model.total_mass > 0:
        found["mass centre"] = model.center_of_mass(q)
    if model.mechanism.constrained:
        found["residual"] = np.abs(model.constraints.residual(q)).max(axis=-1, keepdims=True, initial=0.0)
    return found


def holding(model: Model, q: Array) -> Array | None:
    """Joint forces that hold still at q, or None where active joints cannot."""
    zero = np.zeros(model.nv)
    try:
        return model.inverse_dynamics(q, zero, zero)
    except PolybodyError:
        return None


__all__ = ["Channel", "Item", "channels", "holding", "position_items", "tables", "turning", "velocity_items"]
