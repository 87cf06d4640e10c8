"""Objects with a memory in a user's law are called as Python calls them; those that only compute are compiled."""

from __future__ import annotations

import functools
import itertools
import logging
import sys
from collections import deque
from enum import Enum
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import polybody as pb


class Filter:
    """A low pass that remembers what it gave."""

    def __init__(self) -> None:
        self.y = np.zeros(2)

    def __call__(self, x: Any) -> Any:
        self.y = 0.9 * self.y + 0.1 * x
        return self.y

    def compute(self, x: Any) -> Any:
        return self(x)


class Log:
    def __init__(self) -> None:
        self.rows: list[float] = []

    def note(self, t: float) -> None:
        self.rows.append(t)


class Robot:
    def __init__(self) -> None:
        self.log = Log()

    def law(self, t: float, q: Any, v: Any) -> Any:
        self.log.note(t)
        return -q


class Scaled:
    """A number that counts how often it was multiplied."""

    def __init__(self) -> None:
        self.used = 0

    def __rmul__(self, other: Any) -> Any:
        self.used += 1
        return other * float(self.used)

    __array_ufunc__ = None


class Counting(logging.Handler):
    count = 0

    def emit(self, record: Any) -> None:
        self.count += 1


def importing(t: float, q: Any, v: Any) -> Any:
    import heard_by_this_test  # type: ignore[import-not-found]

    heard_by_this_test.listen(t)
    return -q


def within(kind: str) -> tuple[Any, Any]:
    """(a law, what it remembers of its calls)."""
    low, log, robot, scaled, rows, counting = Filter(), Log(), Robot(), Scaled(), [], Counting()
    held: deque[int] = deque(maxlen=1000)
    rng, ticks, module, logger = np.random.default_rng(1), itertools.count(), ModuleType("mine"), logging.Logger("mine")
    logger.addHandler(counting)
    module.tell = log.note  # type: ignore[attr-defined]
    if kind == "imported":
        module.listen, sys.modules["heard_by_this_test"] = rows.append, module  # type: ignore[attr-defined]
    note, table, draw = rows.append, {"filters": [low]}, rng.standard_normal
    noting = lambda x: (rows.append(0.0), -x)[1]  # noqa: E731
    each, every = np.vectorize(noting, otypes=[float]), np.frompyfunc(noting, 1, 1)
    laws: dict[str, tuple[Any, Any]] = {
        "vectorized": (lambda t, q, v: each(q), lambda: rows),
        "made a ufunc": (lambda t, q, v: np.asarray(every(q), dtype=float), lambda: rows),
        "called object": (lambda t, q, v: -low(q), lambda: low.y),
        "method": (lambda t, q, v: -low.compute(q), lambda: low.y),
        "method of an entry": (lambda t, q, v: -table["filters"][0].compute(q), lambda: low.y),
        "log": (lambda t, q, v: (log.note(t), -q)[1], lambda: log.rows),
        "bound method": (robot.law, lambda: robot.log.rows),
        "partial": (functools.partial(lambda low, t, q, v: -low(q), low), lambda: low.y),
        "append under another name": (lambda t, q, v: (note(t), -q)[1], lambda: rows),
        "rotated": (lambda t, q, v: (held.appendleft(1), held.rotate(), -q)[2], lambda: len(held)),
        "module": (lambda t, q, v: (module.tell(t), -q)[1], lambda: log.rows),
        "imported": (importing, lambda: (rows, sys.modules.pop("heard_by_this_test"))[0]),
        "logger": (lambda t, q, v: (logger.error("%s", t), -q)[1], lambda: counting.count),
        "operator": (lambda t, q, v: -(q * scaled), lambda: scaled.used),
        "random numbers": (lambda t, q, v: -q + rng.normal(size=2), lambda: rng.normal()),
        "random numbers under another name": (lambda t, q, v: -q + draw(2), lambda: rng.normal()),
        "iterator": (lambda t, q, v: -q * 0.01 * sum(itertools.islice(ticks, 1)), lambda: next(ticks)),
    }
    return laws[kind]


REMEMBERING = [
    "called object", "method", "method of an entry", "log", "bound method", "partial", "append under another name",
    "rotated", "module", "imported", "logger", "vectorized", "made a ufunc", "operator",
    "random numbers", "random numbers under another name", "iterator",
]  # fmt: skip


@pytest.mark.parametrize("kind", REMEMBERING)
def test_objects_that_remember_are_called_as_often_as_python_calls_them(kind: str) -> None:
    """They were run on symbols, which filters kept and logs listed, or compiled and never told of a step."""
    model = pb.load("two-link")
    found = []
    for compiled in (None, False):
        law, remembered = within(kind)
        run = pb.simulate(model, 0.02, [0.3, 0.2], controller=law, method="rk4", compiled=compiled)
        found.append((run, remembered()))
    (ours, mine), (theirs, wanted) = found
    assert ours.audit.path.startswith("python: the controller is called")
    np.testing.assert_array_equal(ours.q, theirs.q)
    np.testing.assert_array_equal(mine, wanted)


class Gains(NamedTuple):
    kp: float
    kd: float


class Spring:
    rest = 0.1

    def __init__(self, stiffness: float) -> None:
        self._stiffness = stiffness

    @property
    def stiffness(self) -> float:
        return self._stiffness

    def force(self, q: Any) -> Any:
        return self._bound(self.stiffness * (self.rest - q))

    def __call__(self, q: Any) -> Any:
        return self.force(q)

    @staticmethod
    def _bound(force: Any) -> Any:
        return np.clip(force, -5.0, 5.0)


class Mode(Enum):
    SOFT = 3.0


class Strict:
    """It tells whoever asks for what it has not."""

    __slots__ = ("gain", "unset")

    def __init__(self) -> None:
        self.gain = 3.0

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Sum:
    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __call__(self, t: float, q: Any, v: Any) -> Any:
        return sum([part(q) for part in self.parts], -0.1 * v)


SPRING, STRICT, ROWS = Spring(4.0), Strict(), [[float(k)] for k in range(100)]
COMPUTING = {
    "method": lambda t, q, v: SPRING.force(q) - 0.1 * v,
    "called object": lambda t, q, v: SPRING(q),
    "enumeration": lambda t, q, v: -Mode.SOFT.value * q,
    "slots": lambda t, q, v: -STRICT.gain * q,
    "rows": lambda t, q, v: -ROWS[3][0] * q,
    "objects in an object": Sum(Spring(3.0), Spring(2.0)),
    "bound method": functools.partial(lambda spring, t, q, v: spring.force(q), SPRING),
    "numbers in an object": functools.partial(lambda gains, t, q, v: -gains.kp * q - gains.kd * v, Gains(3.0, 0.1)),
    "numbers in a dictionary": functools.partial(lambda gains, t, q, v: -gains.get("kp") * q, {"kp": 3.0}),
}


@pytest.mark.parametrize("kind", COMPUTING)
def test_objects_that_only_compute_are_compiled(kind: str) -> None:
    model, law = pb.load("two-link"), COMPUTING[kind]
    ours = pb.simulate(model, 0.02, [0.3, 0.2], controller=law, method="rk4")
    theirs = pb.simulate(model, 0.02, [0.3, 0.2], controller=law, method="rk4", compiled=False)
    assert ours.audit.path == "compiled"
    np.testing.assert_allclose(ours.q, theirs.q, atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 1), (1, 2)])
@pytest.mark.parametrize("compiled", [None, False])
def test_rows_and_columns_are_refused_by_compiled_runs_as_by_others(shape: tuple[int, int], compiled: Any) -> None:
    with pytest.raises(pb.PolybodyError, match="the controller returned shape"):
        pb.simulate(pb.load("two-link"), 0.02, controller=lambda t, q, v: -q.reshape(shape), compiled=compiled)
