"""Short pulses are found while a mechanism rests, where no error keeps steps short; times derived by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.simulation.problem import Problem
from polybody.simulation.steady import is_steady

CENTRE, WIDTH = 6.3, 0.05


def pulse(t, q, v):
    """Exceeds 1 N from CENTRE − WIDTH √ln 3 on."""
    return np.array([3 * np.exp(-(((t - CENTRE) / WIDTH) ** 2))])


FIRST = CENTRE - WIDTH * np.sqrt(np.log(3))


def block(**options) -> pb.Model:
    build = pb.Builder("block", gravity=(0, 0, 0))
    build.body("mass", 1.0, inertia=(1, 1, 1))
    build.joint("slide", "prismatic", "world", "mass", axis=(1, 0, 0), **options)
    return build.model()


@pytest.mark.parametrize("method", ["dop853", "radau"])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_sticking_block_slips_when_a_short_pulse_exceeds_its_friction(method: str, compiled: bool):
    run = pb.simulate(block(friction={"coulomb": 1.0}), 10.0, controller=pulse, method=method, compiled=compiled)
    slips = [x.time for x in run.happenings if x.detail == "slips"]
    assert slips == pytest.approx([FIRST], abs=1e-9)
    assert run.q[-1, 0] > 0.01


def test_a_block_at_its_stop_leaves_it_under_a_short_pulse():
    model = block(limits=(0.0, 10.0))
    run = pb.simulate(model, 10.0, controller=lambda t, q, v: pulse(t, q, v) - 1.0)
    left = [x.time for x in run.happenings if "left" in x.detail or "leaves" in x.detail]
    assert left[0] == pytest.approx(FIRST, abs=1e-9)


def test_an_event_of_the_time_alone_is_found_at_rest():
    event = pb.Event("bell", lambda t, q, v: pulse(t, q, v)[0] - 1.0, direction=1)
    run = pb.simulate(block(), 10.0, events=[event])
    assert [x.time for x in run.happenings] == pytest.approx([FIRST], abs=1e-9)


def test_steps_without_anything_to_watch_stay_long():
    assert pb.simulate(block(), 10.0).audit.steps < 20


def test_laws_of_the_state_alone_bound_no_steps():
    """Steps under PD are as long as tolerances allow; a path, or a user's class, may have pulses."""

    class Pulsing(pb.PD):
        def __call__(self, t, q, v):
            return super().__call__(t, q, v) + pulse(t, q, v)

    model = block(limits=(-1.0, 1.0), friction={"coulomb": 1.0})
    at = np.zeros(1)
    assert pb.simulate(model, 10.0, controller=pb.PD(model, at, 4.0, 4.0)).audit.steps < 20
    found = pb.simulate(model, 10.0, controller=Pulsing(model, at, 4.0, 4.0))
    assert next(x.time for x in found.happenings if x.detail == "slips") == pytest.approx(FIRST, abs=1e-9)
    still = pb.paths.quintic(model, at, at, 1.0)
    assert pb.simulate(model, 10.0, controller=pb.PD(model, None, 4.0, 4.0, path=still)).audit.steps >= 10.0 / 0.04


def test_constant_voltages_bound_no_steps():
    """A motor runs up to u / (K_e + R d / (gear² K_t)) of its own speed, and on."""
    build = pb.Builder("drive", gravity=(0, 0, 0))
    build.body("rotor", 1.0, inertia=(0.1, 0.1, 0.1))
    build.joint("turn", "revolute", "world", "rotor", damping=0.1)
    build.motor("turn", 1.0, 0.01, 0.1, gear=10, name="motor")
    model = build.model()
    final = 5.0 / (0.1 + 1.0 * 0.1 / (10**2 * 0.1)) / 10
    constant = pb.simulate(model, 100.0, voltages=[5.0], method="radau", sample=1.0)
    assert constant.v[-1, 0] == pytest.approx(final, rel=1e-9)
    assert constant.audit.steps < 1000
    function = pb.simulate(model, 10.0, voltages=lambda t, q, v: [5.0], method="radau", sample=1.0)
    assert function.audit.steps >= 10.0 / 0.02


@pytest.mark.parametrize("kind", ["impedance", "given", "actuated path"])
def test_what_is_known_of_laws(kind: str):
    model = pb.load("puma560")
    laws = {
        "impedance": (pb.controllers.Impedance(model, model.frame_names[-1], np.eye(4), 100.0, 20.0), True),
        "given": (pb.controllers.Given(model, np.zeros(model.nv)), True),
        "actuated path": (pb.controllers.Given(model, np.zeros((2, model.nv)), [0.0, 1.0]), False),
    }
    law, steady = laws[kind]
    assert is_steady(law) is steady
    assert not is_steady(lambda t, q, v: -v)


def test_compiled_code_tells_python_the_forces_at_an_event(monkeypatch: pytest.MonkeyPatch):
    """A block that sticks under a spring's growing pull slips once; its controller is not asked, for it was traced."""
    build = pb.Builder("two", gravity=(0, 0, 0))
    for k, friction in enumerate(({}, {"friction": {"coulomb": 1.0}})):
        build.body(f"mass {k}", 1.0, inertia=(1, 1, 1))
        build.joint(f"slide {k}", "prismatic", "world", f"mass {k}", axis=(1, 0, 0), **friction)
    model = build.model()

    def pull(t, q, v):
        return np.array([1.0, 2.0 * q[0]])

    monkeypatch.setenv("POLYBODY_TIER", "fast")
    wanted = pb.simulate(model, 1.5, controller=pull, compiled=False)
    asked, torque = [], Problem.torque
    monkeypatch.setattr(Problem, "torque", lambda self, t, q, v: asked.append(t) or torque(self, t, q, v))
    run = pb.simulate(model, 1.5, controller=pull)
    slips = [x.time for x in run.happenings if x.detail == "slips"]
    assert slips == pytest.approx([1.0], abs=1e-9)  # t²/2 · 2 N = 1 N
    assert asked == []
    assert run.q[-1] == pytest.approx(wanted.q[-1], abs=1e-9)


def test_functions_that_do_not_read_the_time_bound_no_compiled_steps():
    """What they read of others' may change meanwhile: then they are traced anew."""
    model, on = block(limits=(-1.0, 1.0), friction={"coulomb": 1.0}), [0.0]
    assert pb.simulate(model, 10.0, controller=lambda t, q, v: -v).audit.steps < 20
    assert pb.simulate(model, 10.0, controller=lambda t, q, v: -v + 0.1 * np.sin(t)).audit.steps >= 10.0 / 0.04

    def later(t, q, v):
        return pulse(t, q, v) * on[0]

    def switch(t):
        on[0] = 1.0

    run = pb.simulate(model, 10.0, controller=later, progress=switch)
    assert next(x.time for x in run.happenings if x.detail == "slips") == pytest.approx(FIRST, abs=1e-9)


METHODS = ["dop853", "radau", "cvodes", "idas"]


@pytest.mark.parametrize("sample", [None, 0.5])
@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("method", METHODS)
def test_a_push_of_a_function_gives_a_resting_block_its_impulse(method: str, compiled: bool | None, sample):
    """2 N for 15 ms on 1 kg, by a controller that Python calls, by a wrench that is traced."""

    def push(t, q, v):
        return np.array([2.0 if 0.9031 <= t < 0.9181 else 0.0])

    options: dict[str, Any] = {"method": method, "compiled": compiled, "sample": sample, "rtol": 1e-7}
    run = pb.simulate(block(), 1.5, controller=push, **options)
    assert run.v[-1, 0] == pytest.approx(0.03, rel=1e-4)
    smooth = {"mass": lambda t: np.array([0, 0, 0, 2 * np.exp(-(((t - 0.9031) / 0.01) ** 2)), 0, 0])}
    run = pb.simulate(block(), 1.5, wrenches=smooth, **options)
    assert run.v[-1, 0] == pytest.approx(2 * 0.01 * np.sqrt(np.pi), rel=1e-4)


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("method", METHODS)
def test_steps_end_where_a_table_bends(method: str, compiled: bool | None):
    """A triangle of 2 kN over 0.2 ms: an impulse of 0.2 N s, between 0.5 s and 0.5002 s."""
    times, forces = [0.0, 0.5, 0.5001, 0.5002, 5.0], [[0.0], [0.0], [2000.0], [0.0], [0.0]]
    law = pb.controllers.Given(block(), forces, times)
    run = pb.simulate(block(), 1.0, controller=law, method=method, compiled=compiled, sample=0.25)
    assert run.v[-1, 0] == pytest.approx(0.2, rel=1e-6)
    assert len(run.t) == 5
    assert run.trusted


class OwnTable(pb.controllers.Given):
    """A user's kind of table."""


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize("within", ["quantised", "observed", "own"])
def test_steps_end_where_a_table_within_another_law_bends(within: str, compiled: bool | None):
    """The same triangle: seen by nobody else, the run was at rest and trusted."""
    model, triangle = block(), ([[0.0], [0.0], [2000.0], [0.0], [0.0]], [0.0, 0.5, 0.5001, 0.5002, 5.0])
    table = pb.controllers.Given(model, *triangle)
    law = {
        "quantised": pb.controllers.Quantised(model, table),
        "observed": pb.controllers.DisturbanceObserver(model, table, period=0.3, compensate=False),
        "own": OwnTable(model, *triangle),
    }[within]
    run = pb.simulate(model, 1.0, controller=law, compiled=compiled)
    assert run.v[-1, 0] == pytest.approx(0.2, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_long_tables_are_looked_at_once_per_row(method: str):
    """251 rows, of which one pushes."""
    times = np.linspace(0.0, 1.0, 251)
    forces = np.zeros((251, 1))
    forces[94] = 3.0
    law = pb.controllers.Given(block(), forces, times)
    run = pb.simulate(block(), 1.0, controller=law, method=method, sample=0.25)
    assert run.v[-1, 0] == pytest.approx(3.0 * 0.004, rel=1e-5)
