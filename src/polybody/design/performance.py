"""`performance(model, frame)`: how well a machine moves, bears, accelerates and holds a frame, serial or parallel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.design import ellipsoids, workspace
from polybody.design import sizing as sizes
from polybody.design import stiffness as springs
from polybody.design.ellipsoids import Ellipsoid
from polybody.design.sizing import Capacity, Sizing
from polybody.design.stiffness import Modes, Stiffness
from polybody.design.task import RANK, Task, task_of, unit_direction
from polybody.design.workspace import Workspace
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.model.arguments import as_model
from polybody.model.model import Model
from polybody.model.sets import one_set

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Performance:
    """Measures of one frame; configurations (..., nq) may be batches. Made by `pb.performance`."""

    task: Task  # the frame and the rows of its motion
    scaled: bool  # whether actuators are scaled by their limits

    @property
    def model(self) -> Model:
        """The machine."""
        return self.task.model

    @property
    def frame(self) -> str:
        """Frame that is analysed."""
        return self.task.frame

    def jacobian(self, q: ArrayLike) -> Array:
        """J_a, (..., rows, actuators): the frame's velocity per rate of the actuators; rotations times the length."""
        return self._maps(q)[1].actuators

    def velocity_ellipsoid(self, q: ArrayLike) -> Ellipsoid:
        """Velocities of the frame under unit rates of the actuators."""
        return ellipsoids.velocity(self.task, self._maps(q)[1], self._rates)

    def force_ellipsoid(self, q: ArrayLike) -> Ellipsoid:
        """Forces of the frame under unit forces of the actuators."""
        return ellipsoids.force(self.task, self._maps(q)[1], self._efforts)

    def acceleration_ellipsoid(self, q: ArrayLike) -> Ellipsoid:
        """Accelerations from rest under unit forces of the actuators: dynamic manipulability."""
        return ellipsoids.acceleration(self.task, *self._maps(q), self._efforts)

    def inertia_ellipsoid(self, q: ArrayLike) -> Ellipsoid:
        """Effective masses along principal axes."""
        return ellipsoids.inertia(self.task, *self._maps(q))

    def effective_mass(self, q: ArrayLike, direction: ArrayLike) -> Array:
        """Effective mass 1/(nᵀJM⁻¹Jᵀn) of the frame's origin, kg, (...), along n (3 numbers, world axes)."""
        return self._effective(q, direction, slice(3, 6))

    def effective_inertia(self, q: ArrayLike, axis: ArrayLike) -> Array:
        """Effective inertia against a moment about an axis, kg m²."""
        return self._effective(q, axis, slice(0, 3))

    def measures(self, q: ArrayLike) -> dict[str, Array]:
        """manipulability, condition, isotropy, least and greatest singular value, regularity, closure, each (...).

        `regularity` is that of the actuators (zero: some motion is not held), `closure` that of the loops.
        """
        return workspace.measures(self.task, self.model._q(q), self._rates)

    def workspace(self, samples: int = 2000, rng: Any = 0, q: ArrayLike | None = None) -> Workspace:
        """Sample the workspace of the frame at random configurations, with performance measures.

        A machine with loops stays in the assembly mode of q (default: assembled neutral), a passive free base where it
        is in q.
        """
        start = self.model.assemble() if q is None else self.model._q(q)
        return workspace.sampled(self.task, self._rates, samples, rng, start)

    def grid(self, first: str, second: str, points: Any = 41, q: ArrayLike | None = None) -> Workspace:
        """Measures over a grid of two coordinates; the others as in q (default: assembled neutral) or by the loops.

        `points`: how many between the limits (±π without limits), or the values; a pair where they differ.
        """
        start = self.model.assemble() if q is None else self.model._q(q)
        return workspace.gridded(self.task, self._rates, (first, second), points, start)

    def sizing(
        self, motion: Any, times: Any = None, *, wrenches: Mapping[str, Any] | None = None, effort: Any = None,
        speed: Any = None,
    ) -> Sizing:  # fmt: skip
        """Peak and RMS torque, speed, power, energy and inertia of every actuator over a path or a run.

        `effort` and `speed` replace the model's limits: one number, or one per actuator.
        """
        return sizes.sizing(self.task, motion, times, wrenches, effort, speed)

    def payload(self, motion: Any, times: Any = None, *, effort: Any = None) -> Capacity:
        """The largest point mass at the frame within effort limits, along a path or run, or at rest at q (n, nq).

        Passive coordinates of a tree (a free base) are taken as held by others; a warning says so.
        """
        return sizes.payload_capacity(self.task, motion, times, effort)

    def force(self, q: ArrayLike, direction: ArrayLike, *, effort: Any = None) -> Capacity:
        """The largest force that the frame exerts along a direction at rest, within effort limits."""
        return sizes.force_capacity(self.task, np.asarray(q, dtype=float), direction, effort)

    def stiffness(self, q: ArrayLike, stiffness: Any, *, wrenches: Mapping[str, Any] | None = None) -> Stiffness:
        """Stiffness and compliance of the frame where actuators hold with `stiffness` (N m/rad, N/m; one or each)."""
        return springs.stiffness(self.task, np.asarray(q, dtype=float), stiffness, wrenches)

    def modes(
        self, q: ArrayLike, stiffness: Any, *, damping: Any = 0.0, wrenches: Mapping[str, Any] | None = None
    ) -> Modes:
        """Natural frequencies, mode shapes and poles where actuators hold with `stiffness` and `damping`.

        A free base falls or floats: its modes are those without gravity, six of them at zero. Other passive
        coordinates must be in equilibrium at q.
        """
        return springs.modes(self.task, np.asarray(q, dtype=float), stiffness, damping, wrenches)

    def held(self, q: ArrayLike, stiffness: Any) -> tuple[dict[str, Any], Stiffness | None, Modes]:
        """(numbers, stiffness, modes) where actuators hold with `stiffness`; no stiffness where something is free."""
        swing = self.modes(q, stiffness)
        if swing.free:  # a free base, an idle link
            return {"free_motions": swing.free, "frequencies": swing.frequencies}, None, swing
        stiff = self.stiffness(q, stiffness)
        against = {"against_forces": stiff.principal()[0], "stable": stiff.stable}
        return {**against, "frequencies": swing.frequencies}, stiff, swing

    def summary(self, q: ArrayLike | None = None) -> dict[str, Any]:
        """The main numbers at one configuration (default: assembled neutral) as plain data."""
        place = self.model.assemble() if q is None else self.model._q(q)
        if place.ndim != 1:
            raise InputError(f"q has shape {place.shape}, expected one configuration, ({self.model.nq},)")
        speed, push = self.velocity_ellipsoid(place), self.force_ellipsoid(place)
        swift, heavy = self.acceleration_ellipsoid(place), self.inertia_ellipsoid(place)
        found = {name: float(values) for name, values in self.measures(place).items()}
        return {
            "model": self.model.name, "frame": self.frame, "rows": self.task.names, "q": place,
            "position": self.model.pose(place, self.frame)[:3, 3], **found,
            "velocity_radii": speed.radii, "force_radii": push.radii, "acceleration_radii": swift.radii,
            "dynamic_manipulability": float(swift.volume), "fall": swift.center, "effective_masses": heavy.radii,
        }  # fmt: skip

    def capacity(self, q: ArrayLike, motion: Any = None, *, effort: Any = None) -> dict[str, Capacity]:
        """Largest loads within effort limits: payload_at_rest and push_down at q, payload_along_motion where given.

        Without `effort` the model's limits are used; an error says where there are none.
        """
        limits = self.model.joint_limits()["effort"][self.task.active]
        if effort is None and not np.isfinite(limits).any():
            raise InputError(f"{self.model.name!r} has no effort limits: give effort=, one number or one per actuator")
        place = self.model._q(q)
        found = {"payload_at_rest": self.payload(place[None], effort=effort)}
        found["push_down"] = self.force(place, (0.0, 0.0, -1.0), effort=effort)
        if motion is not None:
            found["payload_along_motion"] = self.payload(motion, effort=effort)
        return found

    # Inside.

    def _maps(self, q: ArrayLike) -> tuple[Array, Any]:
        place = self.model._q(q)
        self.model.engine.require_closed(place)
        return place, self.task.maps(place)

    def _effective(self, q: ArrayLike, direction: ArrayLike, rows: slice) -> Array:
        n = unit_direction(direction)
        whole = Task(self.model, self.frame, tuple(range(6)), 1.0)
        place, _ = self._maps(q)
        maps = whole.maps(place)
        move = ellipsoids.mobility(whole, place, maps)[..., rows, rows]
        along = np.einsum("i,...ij,j->...", n, move, n)
        # a direction that is held: rounding errors of what moves in others
        held = np.linalg.norm(np.einsum("i,...ij->...j", n, maps.J[..., rows, :]), axis=-1) <= RANK * np.linalg.norm(
            maps.J[..., rows, :], axis=(-2, -1))  # fmt: skip
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(held, np.inf, 1 / along)

    @property
    def _rates(self) -> Array:
        return self._limits("velocity")

    @property
    def _efforts(self) -> Array:
        return self._limits("effort")

    def _limits(self, key: str) -> Array:
        count = len(self.task.active)
        if not self.scaled:
            return np.ones(count)
        limits = self.model.joint_limits()[key][self.task.active]
        missing = np.flatnonzero(~(np.isfinite(limits) & (limits > 0)))
        if len(missing):
            name = self.model.actuation.names[int(missing[0])]
            raise InputError(f"scaled=True needs the {key} limit of every actuator, and {name!r} has none")
        return limits


@one_set
def performance(
    model: Model, frame: str | None = None, *, rows: Any = None, length: float = 1.0, scaled: bool = False,
    parameters: ArrayLike | None = None,
) -> Performance:
    """Kinematic and dynamic performance of a frame of a machine, serial or parallel, from its actuators.

    `frame` defaults to the last named frame that moves, otherwise the platform of the loops or the last link. `rows`
    are "position", "orientation", "pose" or some of "rx ry rz x y z" in world axes; by default the position rows that
    can move. Where rotations and translations mix, `length` in metres corresponds to one radian. With `scaled`, rates
    and forces of actuators are relative to their limits. `model` may be a grasp. `parameters`, (k,), are values of the
    parameters of `model.with_parameters`. See `Performance` for the available results.
    """
    return Performance(task_of(as_model("performance", model), frame, rows, length), bool(scaled))


__all__ = ["Performance", "performance"]
