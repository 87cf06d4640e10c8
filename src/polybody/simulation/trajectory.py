"""What a run gives back: states over time, what acted, what happened, and how far it can be trusted."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.late import dataclass, field
from polybody.model.arguments import float_array
from polybody.model.model import Model
from polybody.names import counted
from polybody.outlets import outlet
from polybody.properties import cached_property
from polybody.simulation.audit import Audit
from polybody.simulation.events import Happening
from polybody.simulation.integrators import Interpolant
from polybody.simulation.moments import moment

Array = np.ndarray
#: how `stopped` begins after an interrupt
INTERRUPTED = "interrupted at"


@dataclass
class Pieces:
    """The interpolants of all steps."""

    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    functions: list[Interpolant] = field(default_factory=list)

    def add(self, start: float, end: float, function: Interpolant) -> None:
        self.starts.append(start)
        self.ends.append(end)
        self.functions.append(function)

    def __call__(self, t: float) -> Array:
        return self.functions[max(0, bisect_right(self.starts, t) - 1)](t)


@dataclass
class Trajectory:
    """States of one run: t (n,), q (n, nq), v (n, nv), a (n, nv), tau (n, nv), work (n,).

    `a` are the accelerations under all forces: torques, wrenches, loops and stops. `work` is the work done by joint
    forces, dampers, stops and wrenches since the start. `currents` (n, motors) is present if voltages drive the motors.
    `stopped` is the reason if the run ended early, otherwise None. `audit` is the energy audit, `happenings` lists the
    events.
    """

    model: Model  # that was simulated
    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    work: Array
    audit: Audit
    options: dict[str, Any]  # of `pb.simulate`
    happenings: list[Happening] = field(default_factory=list)
    stopped: str | None = None
    pieces: Pieces | None = None  # the solver's interpolants
    currents: Array | None = None

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        end = f"stopped: {self.stopped}" if self.stopped else "complete"
        return (
            f"<Trajectory of {self.model.name!r}: {counted(len(self), 'state')}, {self.t[0]:g} to {self.t[-1]:g} s, "
            f"{end}>"
        )

    @property
    def trusted(self) -> bool:
        """Whether the audit found nothing to doubt; `audit.doubts` says what."""
        return self.audit.trusted

    @cached_property
    def energies(self) -> tuple[Array, Array]:
        """Kinetic and potential energy, each (n,)."""
        return self.model.energy(self.q, self.v)


    def at(self, t: Any) -> tuple[Array, Array]:
        """State (q, v) at any time of a run made with dense=True, by interpolation; t is a number or an array."""
        if self.pieces is None:
            raise InputError("this run kept no dense output: simulate(..., dense=True)")
        if not len(self.pieces.starts):
            raise InputError(f"this run took no step: {self.stopped}")
        times = float_array("t", t)
        low, high = self.pieces.starts[0], self.pieces.ends[-1]
        slack = moment(high, 1e-12)
        if times.size and (np.min(times) < low - slack or np.max(times) > high + slack or np.isnan(times).any()):
            raise InputError(f"t is outside the run, which goes from {low:g} to {high:g} s")
        y = np.array([self.pieces(float(s)) for s in times.ravel()]).reshape(*times.shape, -1)
        nq, nv = self.model.nq, self.model.nv
        return self.model.normalize(y[..., :nq]), y[..., nq : nq + nv]

    # What is done with a run in higher folders: see polybody.outlets.

    def plot(self, quantity: str = "positions", path: Any = None) -> Any:
        """Plot a quantity as a matplotlib figure; with a path, also write a .png, .svg or .pdf file.

        Quantities: positions, velocities, accelerations, forces, energy, mass centre, residual (with loops). Different
        units, and joints of very different magnitude, have separate axes; curves that are zero throughout are omitted
        and listed.
        """
        return outlet("run", "plot")(self, quantity, path)

    def save(self, folder: Any, *, force: bool = False) -> Any:
        """Write a run folder: arrays, CSV, plots, report and the model; `polybody view FOLDER` shows it."""
        return outlet("run", "save")(self, folder, force)

    def report(self, path: Any) -> Any:
        """Write a report with interactive plots as one .html file that works offline."""
        return outlet("run", "report")(self, path)

    def view(self, *others: Trajectory, port: int = 8080, browser: bool = True) -> Any:
        """Show the run, and others of the same model beside it, in the browser; returns the page, closed by `.close()`.
        """
        return outlet("run", "view")(self, *others, port=port, browser=browser)

    def share(self, path: Any) -> Any:
        """Write one .html page that plays the run offline in any browser."""
        return outlet("run", "share")(self, path)

    def animate(self, path: Any, **options: Any) -> Any:
        """Render the run to a video (.mp4, .webm, .gif, .webp) or an image (.png); options are those of `pb.render`."""
        return outlet("run", "animate")(self, path, **options)

    def _repr_html_(self) -> str:
        return outlet("run", "html")(self)


__all__ = ["INTERRUPTED", "Pieces", "Trajectory"]
