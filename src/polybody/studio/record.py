"""A run as it is kept: states and torques over time, with what is needed to draw and judge them.

A record comes from a simulation, from inverse dynamics along a path, or from a folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polybody.model.model import Model
from polybody.properties import cached_property
from polybody.simulation import Trajectory
from polybody.studio.channels import Channel, channels, tables

Array = np.ndarray


@dataclass
class Record:
    """`kind` is "simulation", "inverse dynamics" or "network"; arrays as in `Trajectory`."""

    model: Model
    kind: str
    t: Array
    q: Array
    v: Array
    tau: Array
    work: Array | None = None
    currents: Array | None = None
    options: dict[str, Any] = field(default_factory=dict)
    audit: dict[str, Any] | None = None
    happenings: list[dict[str, Any]] = field(default_factory=list)
    stopped: str | None = None
    #: channels besides the model's own, each with its table (n, items): the variables of a network around it
    more: list[tuple[Channel, Array]] = field(default_factory=list)

    def channels(self) -> list[Channel]:
        """What can be reported of the run over time."""
        return [*channels(self.model, self.work is not None), *(channel for channel, _ in self.more)]

    def tables(self, keep: Any = slice(None)) -> dict[str, Array]:
        """{channel: (n, items)} at the states `keep`; those of all states are kept for the next who asks."""
        if isinstance(keep, slice) or "every_table" in self.__dict__:
            return {key: table[keep] for key, table in self.every_table.items()}
        return self._tables(keep)

    @cached_property
    def every_table(self) -> dict[str, Array]:
        return self._tables(slice(None))

    def _tables(self, keep: Any) -> dict[str, Array]:
        work = None if self.work is None else self.work[keep]
        kinetic, potential = self.energies
        energies = kinetic[keep], potential[keep]
        own = tables(self.model, self.q[keep], self.v[keep], self.accelerations[keep], self.tau[keep], work, energies)
        return own | {channel.key: table[keep] for channel, table in self.more}

    @cached_property
    def energies(self) -> tuple[Array, Array]:
        return self.model.energy(self.q, self.v)

    @cached_property
    def accelerations(self) -> Array:
        """v̇ at the samples, by differences in time: whatever acted is in them."""
        if len(self.t) < 3:
            return np.zeros_like(self.v)
        return np.gradient(self.v, self.t, axis=0, edge_order=2)


def from_trajectory(run: Trajectory) -> Record:
    happenings = [{"time": h.time, "name": h.name, "detail": h.detail} for h in run.happenings]
    record = Record(
        run.model, "simulation", run.t, run.q, run.v, run.tau, run.work, run.currents, dict(run.options),
        run.audit.as_dict(), happenings, run.stopped,
    )  # fmt: skip
    record.accelerations = run.a
    return record


def along_path(model: Model, path: Any, times: Array, options: dict[str, Any]) -> Record:
    """The torques of a path, from inverse dynamics."""
    q, v, a = path(times)
    record = Record(model, "inverse dynamics", times, q, v, model.inverse_dynamics(q, v, a), options=options)
    record.accelerations = a  # known here, no need for differences
    return record


def q_labels(model: Model) -> list[str]:
    """A name for each number of q."""
    return _labels(model, "q", {7: ("x", "y", "z", "qx", "qy", "qz", "qw"), 4: ("qx", "qy", "qz", "qw")})


def v_labels(model: Model) -> list[str]:
    """A name for each number of v."""
    return _labels(model, "v", {6: ("wx", "wy", "wz", "vx", "vy", "vz")})


def _labels(model: Model, which: str, special: dict[int, tuple[str, ...]]) -> list[str]:
    result = []
    for joint in model.mechanism.independent_joints:
        size = joint.nq if which == "q" else joint.nv
        free = joint.nq != joint.nv
        parts = special.get(size) if free else None
        if which == "v" and free and size == 3:
            parts = ("wx", "wy", "wz")
        result += [joint.name] if size == 1 else [f"{joint.name}.{p}" for p in parts or range(size)]
    return result


__all__ = ["Record", "along_path", "from_trajectory", "q_labels", "v_labels"]
