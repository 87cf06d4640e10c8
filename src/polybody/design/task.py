"""What a machine's actuators do at one frame: the maps that all measures of performance are made of.

Z(q) is an orthonormal basis of the motions that pass (nv × m; all motions of a tree), from the constraints' singular
vectors, so that no choice of independent coordinates can be singular. A motion v = Z z moves

    x = J_z z, J_z = J Z          the rows of the frame that count, rotations times a length
    q̇_a = A z, A = Z_a            the active coordinates
    x = J_a q̇_a, J_a = J_z A⁺     what the actuators' rates do

A is square and regular where the actuators are as many as the mobility; with more of them A⁺ takes rates that agree,
and forces J_aᵀ f are the least. Of a tree whose passive coordinates are at rest J_a has the columns of the active ones;
what would hold them at rest (a stand under a free base) is not the actuators' work, and `held_by_others` says so.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyWarning
from polybody.late import dataclass
from polybody.mechanism.columns import velocity_names
from polybody.model.arguments import float_array
from polybody.model.model import Model
from polybody.quantities.frames import find_frame

Array = np.ndarray
ROWS = ("rx", "ry", "rz", "x", "y", "z")
CHOICES = {"pose": ROWS, "position": ROWS[3:], "orientation": ROWS[:3]}
#: singular values below this part of the largest are zero
RANK = 1e-9


@dataclass(frozen=True, eq=False)
class Maps:
    """J_z (..., k, m), A (..., actuators, m), Z (..., nv, m), and how near the constraints are to losing rank."""

    J: Array
    A: Array
    Z: Array
    closure: Array

    @property
    def actuators(self) -> Array:
        """J_a (..., k, actuators)."""
        return self.J @ np.linalg.pinv(self.A, rcond=RANK)

    @property
    def regularity(self) -> Array:
        """σ_min/σ_max of A: zero where actuators do not hold every motion (of a tree: those they have at all)."""
        s = np.linalg.svd(self.A, compute_uv=False)
        least = s[..., min(self.A.shape[-2:]) - 1]
        return least / np.maximum(s[..., 0], 1e-300)


@dataclass(frozen=True, eq=False)
class Task:
    """A frame of a model, and which of its motions count."""

    model: Model
    frame: str
    rows: tuple[int, ...]
    length: float

    @property
    def names(self) -> list[str]:
        return [ROWS[k] for k in self.rows]

    @property
    def active(self) -> Array:
        """Indices of the active coordinates."""
        return np.flatnonzero(self.model.actuation.active)

    def maps(self, q: Array) -> Maps:
        model = self.model
        scale = np.array([self.length] * 3 + [1.0] * 3)[list(self.rows)]
        J = model.jacobian(q, self.frame)[..., list(self.rows), :] * scale[:, None]
        if not len(model.constraints):
            Z = np.broadcast_to(np.eye(model.nv), (*q.shape[:-1], model.nv, model.nv))
            return Maps(J, Z[..., self.active, :], Z, np.ones(q.shape[:-1]))
        rows = model.constraints.jacobian(q)
        rank = model.nv - len(model.constraints.independent)
        _, s, vh = np.linalg.svd(rows)
        Z = np.swapaxes(vh, -1, -2)[..., :, rank:]
        move = _without_noise(J, J @ Z, self.rows)
        closure = s[..., rank - 1] / np.maximum(s[..., 0], 1e-300) if rank else np.ones(q.shape[:-1])
        return Maps(move, Z[..., self.active, :], Z, closure)

    def inertia(self, q: Array, maps: Maps) -> Array:
        """ZᵀMZ, (..., m, m)."""
        M = self.model.tree.mass_matrix(q) if len(self.model.constraints) else self.model.mass_matrix(q)
        return np.swapaxes(maps.Z, -1, -2) @ M @ maps.Z

    def weight(self, q: Array, maps: Maps) -> Array:
        """Zᵀ(gravity − springs) at rest, (..., m)."""
        tree = self.model.tree if len(self.model.constraints) else self.model
        still = np.zeros(self.model.nv)
        force = tree.gravity_forces(q) - tree.passive_forces(q, still)
        return np.einsum("...im,...i->...m", maps.Z, force)


def _without_noise(J: Array, move: Array, rows: tuple[int, ...]) -> Array:
    """J Z, with zeros in rows that the loops hold: what is left there are rounding errors of J."""
    move = move.copy()
    for block in ([k for k, row in enumerate(rows) if (row < 3) == turning] for turning in (True, False)):
        if block:
            size = np.linalg.norm(J[..., block, :], axis=(-2, -1))[..., None]
            held = np.linalg.norm(move[..., block, :], axis=-1) <= RANK * size
            move[..., block, :] = np.where(held[..., None], 0.0, move[..., block, :])
    return move


def held_by_others(task: Task, tau: Array, what: str) -> None:
    """Warn where passive coordinates of a tree would need forces (..., nv): no actuator gives them."""
    if len(task.model.constraints):
        return
    names = velocity_names(task.model.mechanism)
    passive = np.flatnonzero(~task.model.actuation.active)
    size = np.abs(tau).reshape(-1, tau.shape[-1]).max(axis=0, initial=0.0)
    if len(passive) and size[passive].max() > 1e-9 * (1 + size.max()):
        worst = int(passive[np.argmax(size[passive])])
        warnings.warn(
            f"{what} takes passive coordinates as held by others: {names[worst]!r} would need {size[worst]:.4g}",
            PolybodyWarning, stacklevel=4,
        )  # fmt: skip


def unit_direction(value: Any, size: int = 3) -> Array:
    """A direction, normalised."""
    n = float_array("direction", value)
    length = np.linalg.norm(n)
    if n.shape != (size,) or not 0 < length < np.inf:
        raise InputError(f"a direction is {size} finite numbers, not all zero, got {value!r}")
    return n / length


def task_of(model: Model, frame: str | None, rows: Any, length: float) -> Task:
    """A task from what a user says; `frame` None is the model's last one that moves."""
    name = default_frame(model) if frame is None else frame
    find_frame(model.mechanism, name)
    if rows is None:
        words: tuple[str, ...] = moving_rows(model, name)
    elif isinstance(rows, str) and rows in CHOICES:
        words = CHOICES[rows]
    else:
        words = tuple(rows.split()) if isinstance(rows, str) else tuple(rows)
    if not words or any(word not in ROWS for word in words) or len(set(words)) != len(words):
        raise InputError(f"rows is {rows!r}, expected {', '.join(CHOICES)}, or some of {' '.join(ROWS)!r}, each once")
    if not (np.isfinite(length) and length > 0):
        raise InputError(f"length is {length!r}, expected a positive number of metres that corresponds to one radian")
    if not model.actuation.active.any():
        raise InputError(f"{model.name!r} has no active coordinate, so it has no actuators to analyse")
    return Task(model, name, tuple(ROWS.index(word) for word in words), float(length))


def default_frame(model: Model) -> str:
    """The last named frame that moves; else the body that most joints and loops meet at, or the last link."""
    m, links = model.mechanism, {body.name for body in model.description.bodies}
    moving = [frame.name for frame in m.frames if frame.body >= 0]
    if not moving:
        raise InputError(f"{model.name!r} has no moving parts")
    named = [name for name in moving if name not in links]
    if named or not m.closures:
        return (named or moving)[-1]
    meet: dict[str, int] = {}
    for joint in (*model.description.joints, *model.description.loops):
        for body in (getattr(joint, "parent", None), getattr(joint, "child", None), getattr(joint, "body_a", None),
                     getattr(joint, "body_b", None)):  # fmt: skip
            if body in moving:
                meet[body] = meet.get(body, 0) + 1
    return max(reversed(moving), key=lambda name: meet.get(name, 0))


def moving_rows(model: Model, frame: str) -> tuple[str, ...]:
    """Rows of the position that move in some configuration; of the orientation where none does."""
    q = model.random_configuration(np.random.default_rng(0), 3)
    J = Task(model, frame, tuple(range(6)), 1.0).maps(q).J
    size = np.abs(J).max(axis=(0, -1))
    moves = [k for k in range(6) if size[k] > 1e-9 * max(size.max(), 1e-300)]
    if not moves:
        raise InputError(f"frame {frame!r} of {model.name!r} does not move")
    return tuple(ROWS[k] for k in moves if k >= 3) or tuple(ROWS[k] for k in moves)


__all__ = [
    "CHOICES", "ROWS", "Maps", "Task", "default_frame", "held_by_others", "moving_rows", "task_of", "unit_direction",
]  # fmt: skip
