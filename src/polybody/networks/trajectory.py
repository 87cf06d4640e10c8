"""What a run of a network gives back: every across and through variable over time, switches, and the energy audit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.names import counted, nearest
from polybody.outlets import outlet
from polybody.properties import cached_property
from polybody.simulation.events import Happening

if TYPE_CHECKING:
    from polybody.model.model import Model
    from polybody.networks.network import Network

Array = np.ndarray


@dataclass(frozen=True)
class NetworkAudit:
    """How far a run can be trusted.

    energy_error_relative   largest change of (stored + left) energy over all domains, relative to what is stored or
                            was moved
    index                   differential index of the equations before reduction, the largest of all modes
    reselections            how often other variables became states, since the choice had become nearly singular
    time_error              part of its largest value by which a state changes between the last time and the number
                            after it, at its fastest: what late times, which are resolved less finely, leave open
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
    reselections: int = 0
    time_error: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """All entries, by name."""
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
    states: tuple[str, ...]  # variables that are integrated
    energy: Array  # stored, over all domains
    work: Array  # what has left the storing parts since the start
    audit: NetworkAudit
    domains: dict[str, str]  # of across and through variables, by name
    units: dict[str, str]  # of all variables, by name
    happenings: list[Happening] = field(default_factory=list)  # events
    stopped: str | None = None  # the reason if the run ended early

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

    def forces(self, model: str) -> Array:
        """Joint forces tau (n, nv) that the rest of the network exerts on a model that is a part."""
        part = self._model(model)
        return np.column_stack([self[f"{port.name}.{port.domain.through}"] for port in part.ports[: part.model.nv]])

    @cached_property
    def models(self) -> dict[str, Model]:
        """Models that are parts of the network, by name."""
        return {name: part.model for name, part in self._models.items()}

    @cached_property
    def _models(self) -> dict[str, Any]:
        from polybody.networks.models import ModelComponent, flat_components

        return {part.name: part for part in flat_components(self.network) if isinstance(part, ModelComponent)}

    def _model(self, name: str) -> Any:
        found = self._models
        if name not in found:
            raise InputError(f"{name!r} is not a model of the network; available: {', '.join(found) or 'none'}")
        return found[name]

    def csv(self) -> str:
        """All variables as text: time, then every variable, one row per time."""
        rows = [",".join(["time", *self.names])]
        rows += [",".join(repr(float(x)) for x in (t, *row)) for t, row in zip(self.t, self.values, strict=True)]
        return "\n".join(rows) + "\n"

    # What is done with a run in higher folders: see polybody.outlets.

    def save(self, path: Any, *, force: bool = False) -> Any:
        """Write a .csv file, or a run folder: values, plots by domain, report; `polybody view FOLDER` shows it."""
        if str(path).lower().endswith(".csv"):
            from polybody.files import write_text

            return write_text(path, self.csv())
        return outlet("network_run", "save")(self, path, force)

    def plot(self, quantity: Any = "states", path: Any = None) -> Any:
        """Plot variables as a matplotlib figure; with a path, also write a .png, .svg or .pdf file.

        `quantity` is "states", "energy", a domain ("electrical"), one side of it ("rotational across"), "variables"
        (the parts' own), a variable ("motor.winding.i") or a list of variables. Different units have separate axes.
        """
        return outlet("network_run", "plot")(self, quantity, path)

    def report(self, path: Any) -> Any:
        """Write a report with interactive plots by domain as one .html file that works offline."""
        return outlet("network_run", "report")(self, path)

    def view(self, model: str | None = None, port: int = 8080, browser: bool = True) -> Any:
        """Show a model of the network in motion in the browser, with all variables of the network beside it.

        `model` names it where there are several. Returns the page, closed by `.close()`.
        """
        return outlet("network_run", "view")(self, model, port=port, browser=browser)

    def share(self, path: Any, model: str | None = None) -> Any:
        """Write one .html page that plays a model of the network offline in any browser."""
        return outlet("network_run", "share")(self, path, model)

    def animate(self, path: Any, model: str | None = None, **options: Any) -> Any:
        """Render a model of the network to a video (.mp4, .webm, .gif, .webp) or an image; options of `pb.render`."""
        return outlet("network_run", "animate")(self, path, model, **options)

    def _repr_html_(self) -> str:
        return outlet("network_run", "html")(self)


__all__ = ["NetworkAudit", "NetworkTrajectory"]
