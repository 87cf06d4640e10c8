"""What a run of a network gives back: every across and through variable over time, switches, and the energy audit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.names import counted, nearest
from polybody.simulation.events import Happening

if TYPE_CHECKING:
    from polybody.networks.network import Network

Array = np.ndarray


@dataclass(frozen=True)
class NetworkAudit:
    """How far a run can be trusted.

    energy_error_relative   largest change of (stored + left) energy over all domains, relative to what is stored or
                            was moved
    index                   differential index of the equations before reduction, the largest of all modes
    """

    method: str
    steps: int
    evaluations: int
    switches: int
    index: int
    energy_error: float
    energy_error_relative: float
    seconds: float
    trusted: bool
    doubts: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(eq=False)
class NetworkTrajectory:
    """Result of simulating a network: `run["R1.i"]` is a variable over `run.t`, `run.names` lists all of them.

    `run.final` holds the last values, `run.audit` the energy audit over all domains.
    """

    network: Network
    t: Array
    names: tuple[str, ...]
    values: Array  # (n, variables)
    states: tuple[str, ...]
    energy: Array  # stored, over all domains
    work: Array  # what has left the storing parts since the start
    audit: NetworkAudit
    domains: dict[str, str]  # of across and through variables, by name
    happenings: list[Happening] = field(default_factory=list)
    stopped: str | None = None

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        end = f"stopped: {self.stopped}" if self.stopped else "complete"
        span = f"{self.t[0]:g} to {self.t[-1]:g} s"
        return f"<NetworkTrajectory of {self.network.name!r}: {counted(len(self), 'time')}, {span}, {end}>"

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __getitem__(self, name: str) -> Array:
        if name not in self.names:
            raise InputError(f"the run has no variable {name!r}{nearest(name, self.names)}")
        return self.values[:, self.names.index(name)]

    @property
    def final(self) -> dict[str, float]:
        """Final value of every variable."""
        return dict(zip(self.names, self.values[-1].tolist(), strict=True))

    @property
    def trusted(self) -> bool:
        """Whether the energy audit passed and the run reached its end."""
        return self.audit.trusted

    def configuration(self, model: str) -> Array:
        """Configurations q (n, nq) of a model that is a part."""
        return np.column_stack([self[name] for name in self._model(model).configuration_names])

    def velocity(self, model: str) -> Array:
        """Velocities v (n, nv) of a model that is a part."""
        return np.column_stack([self[name] for name in self._model(model).velocity_names])

    def _model(self, name: str) -> Any:
        from polybody.networks.models import ModelComponent, flat_components

        found = {part.name: part for part in flat_components(self.network) if isinstance(part, ModelComponent)}
        if name not in found:
            raise InputError(f"{name!r} is not a model of the network; available: {', '.join(found) or 'none'}")
        return found[name]

    def save(self, path: Any) -> None:
        """Write a .csv file: time, then every variable."""
        from polybody.files import write_text

        rows = [",".join(["time", *self.names])]
        rows += [",".join(repr(float(x)) for x in (t, *row)) for t, row in zip(self.t, self.values, strict=True)]
        write_text(path, "\n".join(rows) + "\n")


__all__ = ["NetworkAudit", "NetworkTrajectory"]
