"""Controllers with a memory as text: sampled forces, adapted parameters, observers, filters, one inside the other.

    z ← update(t, q, v, z, told)      at the instants of its clocks
    tau = text(t, q, v, z)            at every time

z are the numbers that a controller remembers; `told` are numbers that depend on the instant alone: which of its clocks
strikes, the noise of a sensor. A controller's Python object keeps what it remembers too: `take` reads z from it, and
`give` reports to it what has happened at instants that it did not see. So a run may change between machine code and
Python at any instant, and what users read from the object (adapted parameters, estimates, forces) is there in both
cases.

The first instant of a run is Python's in `pb.simulate`; `begin` is its text, for those who differentiate a run.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.late import dataclass, field
from polybody.model.model import Model
from polybody.simulation.compiled.law import Law, Planned, Signals
from polybody.simulation.compiled.own_numbers import known_to
from polybody.simulation.controllers import kind_of
from polybody.simulation.controllers.sampling import SAME, Clock
from polybody.simulation.failures import NotCompiled

Array = np.ndarray


def nothing_told(times: Array, start: float) -> Array:
    return np.zeros((len(times), 0))


def nothing_given(times: Array, told: Array, rows: Array) -> None:
    """Nothing to tell."""


@dataclass(frozen=True, eq=False)
class Remembered:
    """The texts of a controller; `key` distinguishes them from others, not their constants and signals.

    Texts take the arguments (m, t, q, v, z, told, c, row, domain), without those that they do not need.
    """

    key: str
    text: Callable[..., Array]  # (m, t, q, v, z, c, row, domain) -> tau
    constants: Array = field(default_factory=lambda: np.zeros(0))
    signals: Signals = field(default_factory=Signals)
    doubts: list[Any] = field(default_factory=list)  # as of `Law`
    doubtful: bool = False
    size: int = 0  # of z
    width: int = 0  # of told
    clocks: tuple[Clock, ...] = ()
    told: Callable[[Array, float], Array] = nothing_told  # (times, begin of the run) -> (n, width)
    begin: Callable[..., Array] | None = None  # (m, t, q, v, told, c, row, domain) -> z
    update: Callable[..., Array] | None = None  # (m, t, q, v, z, told, c, row, domain) -> z
    #: (m, t, q, v, z, told, c, row, domain) -> (tau, z): the answer to one measurement of a computer around it
    measure: Callable[..., tuple[Array, Array]] | None = None
    take: Callable[[], Array] = lambda: np.zeros(0)
    give: Callable[[Array, Array, Array], None] = nothing_given  # (times, told, z after each)
    continuous: bool = True  # it may be asked between instants
    smooth: bool = True  # its texts have derivatives that mean something

    def measured(self, *arguments: Any) -> tuple[Array, Array]:
        """`measure`, by default the text."""
        if self.measure is not None:
            return self.measure(*arguments)
        m, t, q, v, z, _, c, row, domain = arguments
        return self.text(m, t, q, v, z, c, row, domain), z

    def updated(self, *arguments: Any) -> Array:
        """`update`, by default nothing changes."""
        return arguments[4] if self.update is None else self.update(*arguments)

    def begun(self, *arguments: Any) -> Array:
        """`begin`, by default nothing is remembered."""
        return np.zeros(0) if self.begin is None else self.begin(*arguments)


def chosen(domain: Domain, flag: Any, yes: Array, no: Array) -> Array:
    """`yes` where the flag is one, `no` where it is zero."""
    on = domain.less(domain.const(0.5), flag)
    return np.array([domain.where(on, a, b) for a, b in zip(yes, no, strict=True)], dtype=domain.dtype)


def strikes(clock: Clock, times: Array) -> Array:
    """`Clock.strikes` of many times."""
    x = (times - clock.offset) / clock.period
    return np.abs(x - np.round(x)) < 10 * SAME


def instants(clocks: tuple[Clock, ...], t: float, end: float, most: int) -> Array:
    """The next instants after t and before `end`, at most so many; those of several clocks that coincide are one."""
    every = [np.zeros(0)]
    for clock in clocks:
        first = np.floor((t - clock.offset) / clock.period + SAME) + 1  # as `Clock.next`
        count = min(most, int(max(0.0, (end - t) / clock.period)) + 2)
        every.append((first + np.arange(count)) * clock.period + clock.offset)
    times = np.sort(np.concatenate(every))
    if len(clocks) > 1:
        apart = SAME * min(clock.period for clock in clocks)
        times = times[np.concatenate([[True], np.diff(times) > apart])]
    return times[times < end][:most]


def remembered(model: Model, controller: Any, plan: Planned | None = None) -> Remembered:
    """The texts of a controller, with a memory or without; `NotCompiled` if there are none."""
    from polybody.simulation.compiled.laws import law_of

    maker = maker_of(controller)
    if maker is not None:
        return maker(model, controller, plan)
    law = law_of(model, controller, plan)
    return Remembered(
        law.key, lambda m, t, q, v, z, c, row, domain: law.text(m, t, q, v, c, row, domain), law.constants,
        law.signals, law.doubts, law.doubtful,
    )  # fmt: skip


#: the module with the texts of each kind of controller that has a memory, or is around one
_TEXTS = {
    "Sampled": "sampled_laws", "Stateful": "sampled_laws", "Quantised": "sampled_laws", "Noisy": "sampled_laws",
    "Adaptive": "adapting", "DisturbanceObserver": "observing", "Admittance": "admitting",
}  # fmt: skip


def maker_of(controller: Any) -> Callable[..., Remembered] | None:
    """What makes the texts of a controller with a memory, or around one; None of others."""
    module = _TEXTS.get(kind_of(controller) or "")
    if module is None:
        return None
    makers = import_module(f"polybody.simulation.compiled.{module}").MAKERS
    return makers[type(controller)]


def law_with_memory(found: Remembered) -> Law:
    """The same as a law: what it remembers are the last of its constants."""
    if not found.continuous:
        raise NotCompiled("the controller answers at its instants only")
    count = len(found.constants)

    def text(m: Any, t: Any, q: Array, v: Array, c: Array, row: Array, domain: Domain) -> Array:
        return found.text(m, t, q, v, c[count:], c[:count], row, domain)

    constants = np.concatenate([found.constants, np.zeros(found.size)])
    return Law(found.key, text, constants, found.signals, found.doubts, found.doubtful, found if found.size else None)


class Knowing:
    """The model that a controller computes with: the machine's own, or one with other numbers."""

    def __init__(self, model: Model, owner: Model) -> None:
        self.model, self._own = known_to(model, owner)
        self.key = "" if self._own is None else f" of {self._own.digest[:24]}"

    def mechanism(self, m: Any) -> Any:
        """What texts are read with, where the machine's mechanism is m."""
        return m if self._own is None else self._own


__all__ = ["Knowing", "Remembered", "chosen", "instants", "law_with_memory", "maker_of", "remembered", "strikes"]
