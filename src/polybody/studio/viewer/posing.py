"""Coordinates that a person can move, and the configuration that follows.

A tree moves freely: each number of a joint whose q and v correspond is a coordinate; balls and free bases are set by
place and roll, pitch, yaw. With loops only as many coordinates are free as the mechanism is mobile: `mobility` names
them (driven ones first), the others follow. Setting one is a continuation: from the assembled q in steps of at most
STEP, each closed again by Newton's method with the independent coordinates held. Where a step does not close, or
leads to another branch, it is halved; what cannot be reached raises an error, and the configuration stays at the last
one that closes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polybody.constraints.assembly import AssemblyError
from polybody.coordinates.inverse_kinematics import inverse_kinematics
from polybody.errors import InputError, PolybodyError
from polybody.mechanism.columns import velocity_names
from polybody.model.model import Model
from polybody.studio.channels import turning
from polybody.studio.record import q_labels

Array = np.ndarray
STEP = 0.05  # rad, or this part of the mechanism's size
HALVINGS = 7
BASE = ("x", "y", "z", "roll", "pitch", "yaw")


@dataclass(frozen=True)
class Coordinate:
    """One slider. `kind` is independent, dependent or base; `part` is the number of the joint's it shows."""

    key: str
    label: str
    unit: str
    low: float
    high: float
    limited: bool
    kind: str
    joint: int
    part: int

    def as_dict(self) -> dict[str, Any]:
        names = ("key", "label", "unit", "low", "high", "limited", "kind")
        return {name: getattr(self, name) for name in names}


class Posing:
    """A configuration under a person's hands."""

    def __init__(self, model: Model, size: float, q: Array | None = None, shown: Array | None = None) -> None:
        self.model, self.size = model, size
        self.q = first_configuration(model) if q is None else np.array(q, dtype=float)
        self.start = self.q.copy()
        self.independent = self._independent()
        self.coordinates = self._coordinates(self.q[None] if shown is None else shown)

    def _independent(self) -> tuple[str, ...]:
        if not self.model.mechanism.constrained:
            return tuple(velocity_names(self.model.mechanism))
        return self.model.mobility(self.q).independent

    def _coordinates(self, shown: Array) -> list[Coordinate]:
        found = []
        m, turns = self.model.mechanism, turning(self.model)
        labels, columns = q_labels(self.model), velocity_names(m)
        for joint in m.independent_joints:
            if joint.nq == joint.nv:
                for k in range(joint.nq):
                    low, high = float(joint.limits.lower[k]), float(joint.limits.upper[k])
                    turns_here = bool(turns[joint.v.start + k])
                    wide = np.pi if turns_here else self.size
                    limited = bool(np.isfinite(low) and np.isfinite(high))
                    seen = shown[:, joint.q.start + k]
                    low = min(low if np.isfinite(low) else -wide, float(seen.min()))
                    high = max(high if np.isfinite(high) else wide, float(seen.max()))
                    kind = "independent" if columns[joint.v.start + k] in self.independent else "dependent"
                    label = labels[joint.q.start + k]
                    unit = "rad" if turns_here else "m"
                    found.append(
                        Coordinate(label, label, unit, low, max(high, low + 1e-6), limited, kind, joint.index, k)
                    )
                continue
            parts = range(6) if joint.nq == 7 else range(3, 6)
            own = {columns[k] for k in range(joint.v.start, joint.v.stop)}
            kind = "base" if joint.nq == 7 and own <= set(self.independent) else "dependent"
            if joint.nq == 4 and own <= set(self.independent):
                kind = "independent"
            for k in parts:
                reach = (1.0 if k == 4 else 2.0) * np.pi / 2 if k > 2 else 1.5 * self.size
                middle = float(self.q[joint.q.start + k]) if k < 3 else 0.0
                label = f"{joint.name}.{BASE[k]}"
                found.append(Coordinate(label, label, "rad" if k > 2 else "m", middle - reach, middle + reach, False,
                                        kind, joint.index, k))  # fmt: skip
        return found

    def values(self, q: Array) -> Array:
        """The coordinates at states (..., nq), (..., coordinates)."""
        if not self.coordinates:
            return np.zeros((*q.shape[:-1], 0))
        turned: dict[int, Array] = {}
        columns = []
        for c in self.coordinates:
            joint = self.model.mechanism.joints[c.joint]
            if joint.nq == joint.nv or c.part < 3:
                columns.append(q[..., joint.q.start + c.part])
                continue
            if c.joint not in turned:
                turned[c.joint] = _angles(q[..., joint.q.stop - 4 : joint.q.stop])
            columns.append(turned[c.joint][..., c.part - 3])
        return np.stack(columns, axis=-1)

    def _with(self, c: Coordinate, value: float) -> Array:
        """q with one coordinate elsewhere, loops not asked."""
        q, joint = self.q.copy(), self.model.mechanism.joints[c.joint]
        if joint.nq == joint.nv or c.part < 3:
            q[joint.q.start + c.part] = value
            return q
        angles = _angles(q[joint.q.stop - 4 : joint.q.stop])
        angles[c.part - 3] = value
        q[joint.q.stop - 4 : joint.q.stop] = _quaternion(angles)
        return q

    def set(self, key: str, value: float) -> float | None:
        """Move a coordinate; None where it arrived, else the value that it could not reach."""
        c = next((c for c in self.coordinates if c.key == key), None)
        if c is None:
            raise InputError(f"no coordinate {key!r}")
        if c.kind == "dependent":
            raise InputError(f"{key!r} is a dependent coordinate: it follows from the independent ones")
        if not np.isfinite(value):
            raise InputError(f"{key!r} is {value}; expected a finite number")
        value = float(np.clip(value, c.low, c.high)) if c.limited else float(value)
        if not self.model.mechanism.constrained:
            self.q = self._with(c, value)
            return None
        return value if not self._continue(c, value) else None

    def _continue(self, c: Coordinate, value: float) -> bool:
        """Go to a value in closed steps, as far as there are any."""
        step = STEP * (1.0 if c.unit == "rad" else self.size)
        smallest = step / 2**HALVINGS
        while True:
            here = float(self.values(self.q)[self.coordinates.index(c)])
            left = value - here
            if abs(left) < 1e-9 * (1 + abs(value)):
                return True
            closed = self._closed(c, here + np.clip(left, -step, step))
            if closed is not None:
                self.q = closed
                continue
            step /= 2
            if step < smallest:
                return False

    def _closed(self, c: Coordinate, value: float) -> Array | None:
        """The configuration near q with the coordinate there and the loops closed."""
        guess = self._with(c, value)
        far = 0.5 + 20 * abs(float(np.abs(self.model.difference(self.q, guess)).max()))
        try:
            found = self.model.constraints.assemble_dependent(guess, self.independent)
        except PolybodyError:
            return None
        near = float(np.abs(self.model.difference(self.q, found)).max()) < far
        return found if near and np.isfinite(found).all() else None

    def drag(self, frame: str, target: Array, turn: bool = False) -> bool:
        """Bring a frame's origin towards a point (its orientation kept where asked); whether it arrived.

        A free base stays where it is: the limbs reach.
        """
        if not np.isfinite(target).all():
            raise InputError("a target is three finite numbers")
        here = self.model.pose(self.q, frame)
        way = np.asarray(target) - here[:3, 3]
        count = int(min(8, np.ceil(np.linalg.norm(way) / (0.2 * self.size)))) or 1
        arrived = False
        for part in range(1, count + 1):
            point = here[:3, 3] + way * part / count
            goal = here.copy()
            goal[:3, 3] = point
            targets: dict[str, Array] = {frame: goal if turn else point}
            base = self._base_frame()
            if base is not None and base != frame:
                targets[base] = self.model.pose(self.q, base)
            found = inverse_kinematics(self.model, targets, self.q, tolerance=1e-5, restarts=0, steps=25)
            arrived = bool(found.converged)
            q = found.q
            if self.model.mechanism.constrained:  # what inverse kinematics leaves open is closed to the last digits
                try:
                    q = self.model.assemble(q, restarts=0)
                except (AssemblyError, PolybodyError):
                    break
            self.q = q
            if not arrived:
                break
        return arrived

    def _base_frame(self) -> str | None:
        """The link that a free base carries, where the mechanism stands on one."""
        m = self.model.mechanism
        if m.constrained or not m.joints or m.joints[0].kind != "floating" or len(m.joints) == 1:
            return None
        return m.bodies[0].links[0] if m.bodies[0].links else m.bodies[0].name

    def move_to(self, q: Array) -> None:
        """Another configuration as a whole; loops are closed from there."""
        q = self.model.normalize(q)
        self.q = self.model.assemble(q) if self.model.mechanism.constrained else q
        self.independent = self._independent()


def first_configuration(model: Model) -> Array:
    """Where a model is first shown: neutral within limits, assembled where it has loops."""
    q = model.neutral()
    for joint in model.mechanism.independent_joints:
        if joint.nq == joint.nv:
            q[joint.q] = np.clip(q[joint.q], joint.limits.lower, joint.limits.upper)
    return model.assemble(q) if model.mechanism.constrained else q


def _angles(quaternion: Array) -> Array:
    """Roll, pitch, yaw of quaternions (..., 4)."""
    x, y, z, w = np.moveaxis(quaternion, -1, 0)
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return np.stack([roll, pitch, yaw], axis=-1)


def _quaternion(angles: Array) -> Array:
    """The inverse of `_angles`."""
    (sx, sy, sz), (cx, cy, cz) = (np.moveaxis(f(np.asarray(angles) / 2), -1, 0) for f in (np.sin, np.cos))
    x, y = sx * cy * cz - cx * sy * sz, cx * sy * cz + sx * cy * sz
    z, w = cx * cy * sz - sx * sy * cz, cx * cy * cz + sx * sy * sz
    return np.stack([x, y, z, w], axis=-1)


__all__ = ["Coordinate", "Posing", "first_configuration"]
