"""Parts of the library against closed forms: those that no other test has, and a list that none is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

import polybody as pb
from polybody.networks.library import PARTS


def test_every_part_of_the_library_is_in_some_test() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert [name for name in PARTS if f'"{name}"' not in text] == []


def test_conductor_and_electrical_sensors() -> None:
    net = pb.Network("divider")
    net.part("V", "voltage_source", "a", voltage=6.0)
    net.part("A", "current_sensor", ("a", "b"), "amps", gain=10)
    net.part("G", "conductor", "b", "c", conductance=0.5)
    net.part("R", "resistor", "c", resistance=4.0)
    net.part("M", "voltage_sensor", "c", "volts")
    net.part("K", "controlled_current", "volts", "d", gain=0.25)
    net.part("load", "resistor", "d", resistance=3.0)
    for node in ("amps", "volts"):
        net.part(f"use {node}", "gain", node, f"{node} out", factor=1.0)
    end = pb.simulate(net, 0.01).final
    assert end["A.out.x"] == pytest.approx(10 * 6 / (2 + 4), rel=1e-12)
    assert end["M.out.x"] == pytest.approx(4.0, rel=1e-12)
    assert abs(end["load.v"]) == pytest.approx(3.0 * 0.25 * 4.0, rel=1e-12)


def test_coupled_inductors_carry_the_currents_of_their_matrix() -> None:
    L = np.array([[0.3, 0.1], [0.1, 0.2]])
    net = pb.Network("coupled")
    net.part("V", "voltage_source", "s", voltage=5.0)
    net.part("R1", "resistor", "s", "a", resistance=2.0)
    net.part("T", "coupled_inductors", "a", "b", first_inductance=0.3, second_inductance=0.2, mutual_inductance=0.1)
    net.part("R2", "resistor", "b", resistance=1.5)
    end = pb.simulate(net, 0.2).final
    A = -np.linalg.solve(L, np.diag([2.0, 1.5]))
    steady = np.array([5.0 / 2.0, 0.0])
    wanted = steady - expm(A * 0.2) @ steady
    assert [end["T.first.i"], end["T.second.i"]] == pytest.approx(list(wanted), rel=1e-8)


def test_rotational_sensors_and_controlled_torque() -> None:
    net = pb.Network("shaft")
    net.part("r", "ramp", "u", slope=2.0, offset=1.0)
    net.part("T", "controlled_torque", "u", "a", gain=3.0)
    net.part("S", "torque_sensor", ("a", "b"), "torque")
    net.part("J", "inertia", "b", inertia=0.5)
    net.part("phi", "angle_sensor", "b", "angle")
    net.part("w", "speed_sensor", "b", "speed")
    for node in ("torque", "angle", "speed"):
        net.part(f"use {node}", "gain", node, f"{node} out", factor=1.0)
    end, t = pb.simulate(net, 0.8).final, 0.8
    assert end["S.out.x"] == pytest.approx(3 * (1 + 2 * t), rel=1e-9)
    assert end["w.out.x"] == pytest.approx(6 * (t + t**2), rel=1e-9)
    assert end["phi.out.x"] == pytest.approx(6 * (t**2 / 2 + t**3 / 3), rel=1e-9)


def test_translational_sensors_sources_and_controlled_force() -> None:
    net = pb.Network("rod")
    net.part("pull", "velocity_source", "a", velocity=0.7)
    net.part("F", "force_sensor", ("a", "b"), "force")
    net.part("D", "damper", "b", damping=20.0)
    net.part("s", "sine", "u", amplitude=2.0, frequency=0.5, phase=0.3, offset=1.0)
    net.part("push", "controlled_force", "u", "c", gain=4.0)
    net.part("m", "mass", "c", mass=1.6)
    net.part("v", "velocity_sensor", "c", "speed")
    for node in ("force", "speed"):
        net.part(f"use {node}", "gain", node, f"{node} out", factor=1.0)
    end, t = pb.simulate(net, 1.3).final, 1.3
    assert abs(end["F.out.x"]) == pytest.approx(14.0, rel=1e-12)
    impulse = 4 * (t - 2 / np.pi * (np.cos(np.pi * t + 0.3) - np.cos(0.3)))
    assert end["v.out.x"] == pytest.approx(impulse / 1.6, rel=1e-9)


def test_valves_and_hydraulic_sensors() -> None:
    net = pb.Network("oil")
    net.part("P", "pressure_source", "p", pressure="100 bar")
    net.part("Q", "flow_sensor", ("p", "q"), "flow", gain=1e3)
    net.part("o", "signal", "u", value=0.4)
    net.part("V", "valve", "q", opening="u", area=1e-5, laminar=1.0)
    net.part("M", "pressure_sensor", "q", "pressure", gain=1e-5)
    for node in ("flow", "pressure"):
        net.part(f"use {node}", "gain", node, f"{node} out", factor=1.0)
    end = pb.simulate(net, 0.01).final
    flow = 0.62 * 0.4e-5 * np.sqrt(2 * 1e7 / 870)
    assert end["V.q"] == pytest.approx(flow, rel=1e-9)
    assert end["Q.out.x"] == pytest.approx(1e3 * flow, rel=1e-9)
    assert end["M.out.x"] == pytest.approx(100.0, rel=1e-9)


def test_servo_valve_drives_a_load_by_its_linear_law() -> None:
    net = pb.Network("servo")
    net.part("P", "pressure_source", "p", pressure="50 bar")
    net.part("x", "signal", "u", value=0.5)
    net.part("S", "servo_valve", supply="p", a="a", b="b", spool="u", flow_gain=1e-4, pressure_gain=1e-11)
    net.part("load", "line", "a", "b", resistance=2e10)
    end = pb.simulate(net, 0.01).final
    # a.q = −k_q x + k_p p_a flows into the valve there; the load takes it from a to b
    p_a = 1e-4 * 0.5 / (1e-11 + 2 / 2e10)
    assert end["S.a.p"] == pytest.approx(p_a, rel=1e-9)
    assert end["S.b.p"] == pytest.approx(-p_a, rel=1e-9)
    assert end["S.supply.q"] == pytest.approx(0.5e-4, rel=1e-12)


def test_signal_sum_and_lag() -> None:
    net = pb.Network("signals")
    net.part("one", "signal", "a", value=2.0)
    net.part("two", "ramp", "b", slope=3.0)
    net.part("S", "sum", "a", "b", "c")
    net.part("L", "lag", "c", "d", time_constant=0.2)
    end, t = pb.simulate(net, 0.7).final, 0.7
    assert end["S.y.x"] == pytest.approx(2 + 3 * t, rel=1e-12)
    fade = np.exp(-t / 0.2)
    assert end["L.y.x"] == pytest.approx(2 * (1 - fade) + 3 * (t - 0.2 * (1 - fade)), rel=1e-8)


def test_differential_shares_its_torque() -> None:
    net = pb.Network("axle")
    net.part("T", "torque_source", "c", torque=4.0)
    net.part("D", "differential", "c", "l", "r")
    net.part("L", "inertia", "l", inertia=0.5)
    net.part("R", "inertia", "r", inertia=0.2)
    end = pb.simulate(net, 0.3).final
    assert end["L.w"] == pytest.approx(2 * 0.3 / 0.5, rel=1e-9)
    assert end["R.w"] == pytest.approx(2 * 0.3 / 0.2, rel=1e-9)
    assert end["T.w"] == pytest.approx((end["L.w"] + end["R.w"]) / 2, rel=1e-12)
