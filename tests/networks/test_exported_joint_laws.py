"""Limits and dry friction of models in exported networks: C and FMU, compiled and run, move as `pb.simulate` says."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_joint_laws import NARROW, STRIBECK, alone, two_links
from test_network_export import Library

import polybody as pb

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="exported C is compiled and run: no C compiler")

START = {"arm.s.q": 0.3, "arm.e.q": 0.2}
CASES: dict[str, tuple[Any, Any, float]] = {
    "limits": (0, NARROW, 0.0),
    "rebound": (0, NARROW, 0.4),
    "stribeck": (STRIBECK, (None, None), 0.0),
    "both": ({"coulomb": 0.3}, NARROW, 0.0),
    "one side": ({"coulomb": 0.1, "exponent": 1.0, "static": 0.2}, ((-0.6, np.inf), None), 0.2),
}


@pytest.mark.parametrize("name", CASES)
def test_exported_joints_meet_their_limits_and_stick_as_in_simulate(name: str, tmp_path: Path) -> None:
    friction, limits, restitution = CASES[name]
    net = alone(two_links(friction, limits))
    times = np.linspace(0.0, 1.2, 25)
    run = pb.simulate(net, 1.2, START, rtol=1e-10, atol=1e-12, times=times, restitution=restitution)
    assert run.audit.switches >= 2
    library = Library(net, tmp_path / "c", START, restitution=restitution)
    for k, t in enumerate(times[1:], start=1):
        library.advance(float(t))
        found = library.values()
        for key in ("arm.s.q", "arm.e.q", "arm.s.w", "arm.e.w"):
            assert abs(found[key] - run[key][k]) < 1e-7, (t, key, found[key], run[key][k])


@pytest.mark.parametrize("name", ["rebound", "both"])
def test_fmus_of_joints_with_limits_and_friction_move_as_simulate(name: str, tmp_path: Path) -> None:
    fmpy = pytest.importorskip("fmpy")
    from fmpy.validation import validate_fmu

    friction, limits, restitution = CASES[name]
    net = alone(two_links(friction, limits))
    path = str(pb.export_fmu(net, tmp_path / "net.fmu", START, restitution=restitution, binary=True))
    assert validate_fmu(path) == []
    run = pb.simulate(net, 1.2, START, rtol=1e-10, atol=1e-12, restitution=restitution, times=np.linspace(0, 1.2, 25))
    for kind, tolerance in (("CoSimulation", 1e-5), ("ModelExchange", 1e-4)):
        found = fmpy.simulate_fmu(path, fmi_type=kind, stop_time=1.2, output_interval=0.05, relative_tolerance=1e-9)
        for key in ("arm.s.q", "arm.e.q"):
            at = np.searchsorted(found["time"], run.t + 1e-9) - 1
            assert np.abs(found[key][at] - run[key]).max() < tolerance, (kind, key)


def test_limits_of_a_loop_act_in_exported_c(tmp_path: Path) -> None:
    from test_joint_laws import crank

    model = crank()
    q = model.assemble([0.4, -0.5])
    start = {"arm.turn.q": float(q[0]), "arm.knee.q": float(q[1])}
    run = pb.simulate(alone(model), 0.8, start, rtol=1e-10, atol=1e-12)
    assert run["arm.turn.q"].min() == pytest.approx(-0.5, abs=1e-9)
    library = Library(alone(model), tmp_path / "c", start)
    library.advance(0.8)
    for key, value in run.final.items():
        assert abs(library.values()[key] - value) < 1e-6 * (1 + abs(value)), (key, library.values()[key], value)


def test_an_elastic_drive_presses_against_a_limit_in_exported_c(tmp_path: Path) -> None:
    net = alone(two_links({"coulomb": 0.2}, (None, (-0.4, 0.5))))
    net.part("hold", "rotational_spring", "arm.s", stiffness=1e4, damping=200)
    net.part("V", "voltage_source", "p", voltage=12)
    net.part("M", "dc_motor", winding="p", shaft="m", torque_constant=0.05, resistance=2, rotor_inertia=1e-5)
    net.part("G", "elastic_gear", "m", "arm.e", ratio=50, stiffness=400, damping=8)
    library = Library(net, tmp_path / "c", {})
    assert [x.decode() for x in (ctypes.c_char_p * 1).in_dll(library.c, "net_input_names")] == ["V.voltage"]
    run = pb.simulate(net, 0.6, rtol=1e-8, atol=1e-10, method="radau")
    library.advance(0.6)
    found = library.values()
    assert found["arm.e.q"] == pytest.approx(0.5, abs=1e-9)
    for key, value in run.final.items():
        assert abs(found[key] - value) < 1e-5 * (1 + abs(value)), (key, found[key], value)
    library.state.u[0] = -12.0  # away from the limit again
    library.advance(0.7)
    assert library.values()["arm.e.q"] < 0.45


def test_a_joint_that_is_driven_by_its_speed_beyond_its_limit_is_reported(tmp_path: Path) -> None:
    net = alone(two_links(0, ((-0.2, 0.2), None)))
    net.part("turn", "speed_source", "arm.s", speed=1.0)
    library = Library(net, tmp_path / "c", {})
    d = ctypes.c_double
    status = library.c.net_advance(ctypes.byref(library.state), d(0.5), d(1e-3), d(1e-8), d(1e-10))
    text = (tmp_path / "c" / "net.h").read_text()
    assert status == int(text.split("NET_JUMP = ")[1].split(",")[0])


def test_exports_ignore_limits_and_smooth_friction_on_request(tmp_path: Path) -> None:
    net = alone(two_links({"coulomb": 0.3}, NARROW))
    library = Library(net, tmp_path / "c", START, limits="ignore", friction="smooth")
    library.advance(0.5)
    run = pb.simulate(net, 0.5, START, limits="ignore", friction="smooth", rtol=1e-9, atol=1e-11)
    assert abs(library.values()["arm.s.q"] - run.final["arm.s.q"]) < 1e-6
    with pytest.raises(pb.PolybodyError, match="limits is 'halt'; expected one of stop, ignore"):
        pb.export_c(net, tmp_path / "d", limits="halt")
    with pytest.raises(pb.PolybodyError, match="restitution is 2; expected a number from 0 to 1"):
        pb.export_fmu(net, tmp_path / "d.fmu", restitution=2)
