"""Functions that may interrupt a run, as text: what compiled code can look at by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.kernels.stepping import directions
from polybody.late import dataclass, field
from polybody.properties import cached_property
from polybody.simulation.compiled.holding import Holding
from polybody.simulation.failures import NotCompiled
from polybody.simulation.friction import Overload, SlidingSpeed
from polybody.simulation.stops import Excess, Pull
from polybody.simulation.switches import EventValue

Array = np.ndarray
Text = Callable[[Any, Array, Array, Domain], Any]  # (t, q, v, domain) -> value


@dataclass(frozen=True)
class Watch:
    """What is looked at: one text, one direction and one label (`label_of`) for each function, and whether some have no
    text."""

    key: str
    texts: tuple[Text, ...] = ()
    directions: tuple[int, ...] = ()
    called: bool = False  # some functions must be called in Python, step by step
    holding: Holding = field(default_factory=Holding)  # what ends the present state of held and sliding joints
    labels: tuple[Any, ...] = ()

    @property
    def count(self) -> int:
        return len(self.directions)

    @cached_property
    def codes(self) -> Array:
        """The directions as loops read them."""
        return directions(list(self.directions))

    def __call__(self, t: Any, q: Array, v: Array, domain: Domain) -> list[Any]:
        return [text(t, q, v, domain) for text in self.texts]


NOTHING = Watch("")


def label_of(function: Any) -> Any:
    """What distinguishes a watched function from the others of a run."""
    function = getattr(function, "func", function)
    return ("event", id(function.event)) if isinstance(function, EventValue) else getattr(function, "label", function)


def watch_of(functions: Sequence[tuple[Any, int]], holding: Holding, known: dict[Any, Any]) -> Watch:
    """What of the functions of (t, y) that are watched now is text; those of `holding` are, all of them. `known` are
    the texts of a run's events, by label, traced once."""
    texts: list[Text] = []
    keys, ways, labels, called = [], [], [], False
    told = frozenset(holding.stops) if holding.frozen else frozenset[Any]()  # by `holding`
    for function, direction in functions:
        if isinstance(getattr(function, "func", function), Pull | Overload | SlidingSpeed):
            continue
        if isinstance(function, Excess) and function.stop in told:
            continue
        text = text_of(function, known)
        if text is None:
            called = True
            continue
        key, written = text
        keys.append(key)
        texts.append(written)
        ways.append(direction)
        labels.append(label_of(function))
    keys.append(holding.key)
    all_ways, all_labels = (*ways, *holding.directions), (*labels, *holding.labels)
    return Watch(";".join(keys), tuple(texts), all_ways, called, holding, all_labels)


def text_of(function: Any, known: dict[Any, Any]) -> tuple[str, Text] | None:
    """(what distinguishes it from others, its text), or None."""
    if isinstance(function, Excess):
        stop, level = function.stop, function.level
        return f"{stop.q} {stop.side} {stop.limit.hex()} {level.hex()}", lambda t, q, v, domain: (
            (q[stop.q] - domain.const(stop.limit)) * domain.const(stop.side) - domain.const(level)
        )
    if not isinstance(function, EventValue):
        return None
    label = label_of(function)
    if label not in known:
        known[label] = _event_text(function)
    return known[label]


def _event_text(function: EventValue) -> tuple[str, Text] | None:
    """A user's event, where it is an expression."""
    from polybody.simulation.compiled.tracing import key_of, require_whole, samples_of, traced

    model = function.problem.model
    try:
        if function.problem.calls:
            require_whole(function.event.function)
        made = traced(function.event.function, (0, model.nq, model.nv), 1, samples_of(model))
    except NotCompiled:
        return None

    def text(t: Any, q: Array, v: Array, domain: Any) -> Any:
        return domain.scalars(made(*(domain.column(x) for x in ([t], q, v))))[0]

    return f"event {key_of(made)}", text


__all__ = ["NOTHING", "Watch", "label_of", "watch_of"]
