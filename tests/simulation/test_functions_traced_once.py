"""A user's function that was run on symbols is not run on them again while it computes the same, and only then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.simulation.compiled import tracing

GAIN = 3.0


class Settings:
    gain = 3.0


SETTINGS = Settings()


def helper(v: Any) -> Any:
    return -GAIN * v


def by_helper(t: float, q: Any, v: Any) -> Any:
    return helper(v)


def by_attribute(t: float, q: Any, v: Any) -> Any:
    return -SETTINGS.gain * v


def with_default(t: float, q: Any, v: Any, gain: float = 3.0) -> Any:
    return -gain * v


def own_attribute(t: float, q: Any, v: Any) -> Any:
    return -own_attribute.gain * v  # type: ignore[attr-defined]


def scale(v: Any) -> Any:
    return v


def of_another(t: float, q: Any, v: Any) -> Any:
    return -scale.gain * scale(v)  # type: ignore[attr-defined]


def closure() -> tuple[Any, Any]:
    gain = 3.0

    def law(t: float, q: Any, v: Any) -> Any:
        return -gain * v

    def change() -> None:
        nonlocal gain
        gain = 30.0

    return law, change


def of_an_array() -> tuple[Any, Any]:
    gains = np.array([3.0, 3.0])

    def change() -> None:
        gains[0] = 30.0

    return lambda t, q, v: -gains * v, change


def of_a_tuple() -> tuple[Any, Any]:
    gains = (np.array([3.0, 3.0]), 0.5)

    def change() -> None:
        gains[0][0] = 30.0

    return lambda t, q, v: -gains[0] * v - gains[1] * q, change


def of_a_polynomial() -> tuple[Any, Any]:
    damping = np.poly1d([3.0, 0.0])

    def change() -> None:
        damping[1] = 30.0

    return lambda t, q, v: -damping(v), change


def of_a_list() -> tuple[Any, Any]:
    gains = [3.0, 3.0]

    def change() -> None:
        gains[0] = 30.0

    return lambda t, q, v: -np.array(gains) * v, change


def changes(monkeypatch: Any) -> dict[str, tuple[Any, Any]]:
    """{what changes: (law, what changes it)}."""
    here = __name__
    own_attribute.gain = scale.gain = 3.0  # type: ignore[attr-defined]
    return {
        "a global number": (by_helper, lambda: monkeypatch.setattr(f"{here}.GAIN", 30.0)),
        "a global function": (by_helper, lambda: monkeypatch.setattr(f"{here}.helper", lambda v: -30.0 * v)),
        "an attribute of an object": (by_attribute, lambda: monkeypatch.setattr(SETTINGS, "gain", 30.0)),
        "an attribute of the function": (own_attribute, lambda: setattr(own_attribute, "gain", 30.0)),
        "an attribute of another function": (of_another, lambda: setattr(scale, "gain", 30.0)),
        "a default": (with_default, lambda: monkeypatch.setattr(with_default, "__defaults__", (30.0,))),
        "a variable of a closure": closure(),
        "an entry of an array": of_an_array(),
        "an entry of a list": of_a_list(),
        "an entry of an array in a tuple": of_a_tuple(),
        "a coefficient of a polynomial": of_a_polynomial(),
    }


WHAT = (
    "a global number", "a global function", "an attribute of an object", "an attribute of the function",
    "an attribute of another function", "a default", "a variable of a closure", "an entry of an array",
    "an entry of a list", "an entry of an array in a tuple", "a coefficient of a polynomial",
)  # fmt: skip


@pytest.mark.parametrize("what", WHAT)
def test_a_law_whose_numbers_change_between_two_runs_acts_by_the_new_ones(what: str, monkeypatch: Any) -> None:
    model, (law, change) = pb.load("two-link"), changes(monkeypatch)[what]
    options: dict[str, Any] = {"controller": law, "method": "rk4"}
    before = pb.simulate(model, 0.1, [0.1, 0.2], [1.0, 1.0], **options)
    assert before.audit.path == "compiled"
    change()
    after = pb.simulate(model, 0.1, [0.1, 0.2], [1.0, 1.0], **options)
    slow = pb.simulate(model, 0.1, [0.1, 0.2], [1.0, 1.0], compiled=False, **options)
    np.testing.assert_allclose(after.q, slow.q, atol=1e-12)
    assert np.abs(after.v - before.v).max() > 1e-2


def test_a_function_that_reads_the_same_is_run_on_symbols_once(monkeypatch: Any) -> None:
    made: list[Any] = []
    expression = tracing.expression
    monkeypatch.setattr(tracing, "expression", lambda *given: made.append(given) or expression(*given))
    model = pb.load("two-link")
    events = {level: pb.Event("late", lambda t, q, v, level=level: t - level, terminal=True) for level in (0.04, 0.05)}
    for level in (0.04, 0.04, 0.05, 0.04):
        run = pb.simulate(model, 0.1, [0.1, 0.2], events=[events[level]], method="rk4")
        assert run.t[-1] == pytest.approx(level, abs=1e-12)
    assert len(made) == 2
