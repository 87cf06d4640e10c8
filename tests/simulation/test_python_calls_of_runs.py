"""What Python does in a compiled run grows with its chunks and its events, not with its steps.

Python functions are counted while a run is made (`sys.setprofile`), and while one of twice its length is. Chunks have a
fixed number of steps here. A run whose steps, forces, watched functions, projections or instants entered Python would
call several functions more for each of its steps: tens of thousands here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from simulation_cases import swinging_arm as arm

import polybody as pb
from polybody.model import tree_engine
from polybody.simulation.compiled import engine
from polybody.simulation.compiled.engine import Compiled
from polybody.simulation.compiled.sundials import Sundials
from polybody.simulation.integrators.tableaux import GIVEN
from polybody.simulation.switches import Switches

C = pb.controllers
pytestmark = pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")
METHODS = ("rk4", "dop853", "radau", "midpoint", "semi-implicit")
CHUNK = 256  # steps
#: Python functions that may be called for one chunk more, for an event that compiled code has decided (it is listed),
#: and for one of the few that it leaves to Python
A_CHUNK, AN_EVENT, A_DECISION = 160, 120, 1200
LEFT = 1  # decisions that may be left to Python in the second half of a run
A_CALL = 800  # of SUNDIALS, in the place of A_CHUNK


def laws(model: pb.Model) -> dict[str, Callable[[], Any]]:
    """Every kind of law: none, of the state, of the model, traced, sampled and late, with a memory."""
    t = np.linspace(0, 8, 161)
    path = pb.paths.spline(model, t, np.stack([0.55 * np.sin(5 * t), 0.5 * np.sin(3 * t)], axis=1))

    def follow(t: float, q: Any, v: Any) -> Any:
        return -60.0 * (q - np.array([0.55, 0.5]) * np.array([np.sin(5 * t), np.sin(3 * t)])) - 2.0 * v

    return {
        "none": lambda: None,
        "PD": lambda: C.PD(model, [0.6, 0.3], 60.0, 0.5),
        "traced": lambda: follow,
        "computed torque": lambda: C.ComputedTorque(model, path, 100.0, 20.0),
        "sampled": lambda: C.Sampled(follow, 0.01, 0.004),
        "observer": lambda: C.DisturbanceObserver(model, follow, 20.0, period=0.01),
    }


def counted(monkeypatch: Any, *given: Any, **options: Any) -> tuple[int, int, int, int, Any]:
    """(functions called, chunks or calls of SUNDIALS, decisions of Python, those of compiled code, the run).

    Not every decision is listed: a joint that comes to rest may slide on at once, the other way.
    """
    calls, chunks, decided, taken = [0], [0], [0], [0]
    act, happened = Switches.act, Switches.happened
    owner, name = (Sundials, "_states") if options.get("method") in GIVEN else (Compiled, "_chunk")
    chunk = getattr(owner, name)

    def count(frame: Any, event: str, argument: Any) -> None:
        calls[0] += event == "call"

    def one_more(self: Any, *args: Any, **more: Any) -> Any:
        chunks[0] += 1
        return chunk(self, *args, **more)

    def one_decided(self: Switches, *args: Any) -> Any:
        decided[0] += 1
        return act(self, *args)

    def one_taken(self: Switches, *args: Any) -> Any:
        taken[0] += 1
        return happened(self, *args)

    with monkeypatch.context() as m:
        m.setattr(engine, "FIRST_CHUNK", CHUNK)
        m.setattr(engine, "LONGEST_CHUNK", CHUNK)
        m.setattr(Compiled, "_paced", lambda self, seconds: None)
        m.setattr(owner, name, one_more)
        m.setattr(Switches, "act", one_decided)
        m.setattr(Switches, "happened", one_taken)
        sys.setprofile(count)
        try:
            run = pb.simulate(*given, **options)
        finally:
            sys.setprofile(None)
    return calls[0], chunks[0], decided[0], taken[0], run


def assert_steps_are_free(monkeypatch: Any, model: pb.Model, seconds: float, q: Any, make: Any, **options: Any) -> None:
    """A run of twice the length calls no more than its additional chunks and events need."""
    monkeypatch.setattr(tree_engine, "TIMES", 1)  # answers at single states are kernels' from the second run on
    pb.simulate(model, 2 * seconds, q, None, make(), **options)  # what is compiled, and imported, is known after it
    *counts, short = counted(monkeypatch, model, seconds, q, None, make(), **options)
    *more, long = counted(monkeypatch, model, 2 * seconds, q, None, make(), **options)
    assert long.audit.path == "compiled"
    calls, chunks, left, events = (b - a for a, b in zip(counts, more, strict=True))
    assert left <= LEFT
    a_chunk = A_CALL if options["method"] in GIVEN else A_CHUNK
    assert calls <= a_chunk * (chunks + 1) + AN_EVENT * events + A_DECISION * left
    if options["method"] not in ("dop853", "radau", *GIVEN):
        assert long.audit.steps - short.audit.steps >= 2000


LAWS = ("none", "PD", "traced", "computed torque", "sampled", "observer")
CASES = [(method, law) for method in METHODS for law in LAWS]


@pytest.mark.parametrize(("method", "law"), CASES)
def test_a_run_of_twice_as_many_steps_calls_no_more_than_its_chunks_need(
    method: str, law: str, monkeypatch: Any
) -> None:
    model = arm()
    make = laws(model)[law]
    quiet = pb.Event("turns", lambda t, q, v: v[0])
    options: dict[str, Any] = {"method": method, "restitution": 0.5, "events": [quiet], "sample": 0.5}
    assert_steps_are_free(monkeypatch, model, 2.0, [0.3, -0.2], make, **options)


@pytest.mark.parametrize("law", ["none", "PD", "computed torque"])
@pytest.mark.parametrize("method", ["cvodes", "idas"])
def test_events_between_calls_of_sundials_are_decided_in_compiled_code(
    method: str, law: str, monkeypatch: Any
) -> None:
    """Hits, rests, slips and turns; a call of SUNDIALS goes from one event to the next, in hundreds of steps."""
    model = arm()
    make = laws(model)[law]
    quiet = pb.Event("turns", lambda t, q, v: v[0])
    options: dict[str, Any] = {"method": method, "restitution": 0.5, "events": [quiet], "sample": 0.5}
    assert_steps_are_free(monkeypatch, model, 1.0, [0.3, -0.2], make, **options)


@pytest.mark.parametrize("friction", [False, True])
@pytest.mark.parametrize("limits", ["stop", "report", "halt", "ignore"])
@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_neither_limits_nor_friction_enter_python_with_every_step(
    method: str, limits: str, friction: bool, monkeypatch: Any
) -> None:
    model = arm(friction, limits=limits != "halt")  # which would end the run
    make = laws(model)["sampled"]
    options: dict[str, Any] = {"method": method, "limits": limits, "restitution": 0.5, "sample": 0.5}
    assert_steps_are_free(monkeypatch, model, 2.0, [0.3, -0.2], make, **options)


@pytest.mark.parametrize("method", ["rk4", "dop853", "radau", "semi-implicit"])
def test_steps_projection_and_events_of_loops_do_not_enter_python(method: str, monkeypatch: Any) -> None:
    model = pb.load("four-bar")
    q = model.assemble([0.5, 0, 0], hold=["crank_joint"])
    quiet = pb.Event("turns", lambda t, q, v: v[0])
    options: dict[str, Any] = {"method": method, "events": [quiet], "sample": 0.5}
    assert_steps_are_free(monkeypatch, model, 2.0, q, lambda: None, **options)


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_actions_that_are_expressions_do_not_enter_python(method: str, holds: bool, monkeypatch: Any) -> None:
    """At some eighty events more; without limits and friction none of them is left to Python."""
    model = arm(holds, holds)
    kick = pb.Event("kick", lambda t, q, v: np.sin(130 * t), action=lambda t, q, v: (q, 0.9 * v + 0.05))
    options: dict[str, Any] = {"method": method, "restitution": 0.5, "events": [kick], "sample": 0.5}
    assert_steps_are_free(monkeypatch, model, 2.0, [0.3, -0.2], lambda: None, **options)
    _, _, decided, _, run = counted(monkeypatch, model, 2.0, [0.3, -0.2], **options)
    assert len(run.happenings) >= 80
    assert holds or decided == 0


@pytest.mark.parametrize("method", ["rk4", "dop853", "radau", "semi-implicit"])
def test_actions_with_loops_do_not_enter_python(method: str, monkeypatch: Any) -> None:
    model = pb.load("four-bar")
    q = model.assemble([0.5, 0, 0], hold=["crank_joint"])
    turn = pb.Event("turn", lambda t, q, v: np.sin(60 * t), action=lambda t, q, v: (q, -0.99 * v))
    options: dict[str, Any] = {"method": method, "events": [turn], "sample": 0.5}
    assert_steps_are_free(monkeypatch, model, 2.0, q, lambda: None, **options)
    _, _, decided, _, run = counted(monkeypatch, model, 2.0, q, **options)
    assert len(run.happenings) >= 38
    assert decided == 0


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_an_action_that_is_called_enters_python_at_its_events_only(method: str, monkeypatch: Any) -> None:
    model, times = arm(), []

    def act(t: float, q: Any, v: Any) -> Any:
        times.append(t)
        return q, 0.9 * v

    kick = pb.Event("kick", lambda t, q, v: np.sin(13 * t), action=act)
    options: dict[str, Any] = {"method": method, "restitution": 0.5, "events": [kick], "sample": 0.5}
    pb.simulate(model, 4.0, [0.3, -0.2], **options)
    times.clear()
    *counts, short = counted(monkeypatch, model, 2.0, [0.3, -0.2], **options)
    acted = len(times)
    *more, long = counted(monkeypatch, model, 4.0, [0.3, -0.2], **options)
    assert acted == sum(x.name == "kick" for x in short.happenings) == 8
    assert len(times) - acted == sum(x.name == "kick" for x in long.happenings) == 16
    calls, chunks, left, events = (b - a for a, b in zip(counts, more, strict=True))
    assert left <= 8 + LEFT
    assert calls <= A_CHUNK * (chunks + left + 1) + AN_EVENT * events + A_DECISION * left


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("method", [*METHODS, *GIVEN])
def test_a_run_that_an_event_ends_enters_python_there_and_not_with_its_steps(
    method: str, holds: bool, monkeypatch: Any
) -> None:
    """The loop finds the event and ends at it; what Python adds is the list of what has happened."""
    model, found = arm(holds, holds), []
    for seconds in (1.0, 2.0):
        end = pb.Event("end", lambda t, q, v, seconds=seconds: t - seconds, terminal=True)
        options: dict[str, Any] = {"method": method, "restitution": 0.5, "events": [end], "sample": 0.5}
        pb.simulate(model, 4.0, [0.3, -0.2], **options)
        found.append(counted(monkeypatch, model, 4.0, [0.3, -0.2], **options))
        assert found[-1][-1].t[-1] == pytest.approx(seconds, abs=1e-12)
        assert found[-1][-1].happenings[-1].name == "end"
        assert found[-1][-1].audit.path == "compiled"
    calls, chunks, left, events = (b - a for a, b in zip(*(x[:4] for x in found), strict=True))
    assert left <= LEFT
    assert holds or found[-1][2] == 1  # decision of Python: the last
    a_chunk = A_CALL if method in GIVEN else A_CHUNK
    assert calls <= a_chunk * (chunks + 1) + AN_EVENT * events + A_DECISION * left


@pytest.mark.parametrize("options", [{"dense": True}, {"sample": 0.002}, {"progress": lambda t: None}])
def test_recording_and_dense_output_call_python_once_a_step_at_most(options: dict[str, Any], monkeypatch: Any) -> None:
    """Interpolants are objects, one a step; samples are arrays, and the progress function is the user's."""
    model = arm()
    allowed = 5 if "dense" in options else 0
    pb.simulate(model, 4.0, [0.3, -0.2], **options)
    short, long = (counted(monkeypatch, model, x, [0.3, -0.2], **options) for x in (2.0, 4.0))
    steps = long[-1].audit.steps - short[-1].audit.steps
    most = A_CHUNK * (long[1] - short[1] + 1) + AN_EVENT * (long[3] - short[3]) + allowed * steps
    assert long[0] - short[0] <= most
