"""Networks of structurally high index, solved without the user's help."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import polybody as pb


def test_capacitors_in_parallel_with_a_source_follow_it():
    """Index 2: the source's derivative is the current."""
    net = pb.Network("parallel")
    net.part("V", "voltage_source", "a", voltage="3*sin(40*time)")
    net.part("C1", "capacitor", "a", capacitance=1e-3)
    net.part("C2", "capacitor", "a", capacitance=2e-3)
    net.part("R", "resistor", "a", "b", resistance=5)
    net.part("L", "inductor", "b", inductance=0.1)
    run = pb.simulate(net, 0.2)
    np.testing.assert_allclose(run["V.i"], -(3e-3 * 120 * np.cos(40 * run.t) + run["R.i"]), atol=1e-8)
    assert run.audit.index == 2
    assert run.states == ("L.i",)


def test_current_source_in_series_with_an_inductor_sets_its_voltage():
    net = pb.Network("series")
    net.part("I", "current_source", "ground", "a", current="2*sin(30*time)")
    net.part("L", "inductor", "a", "b", inductance=0.05)
    net.part("R", "resistor", "b", resistance=4)
    net.part("C", "capacitor", "b", capacitance=1e-2)
    run = pb.simulate(net, 0.2)
    np.testing.assert_allclose(run["L.v"], 0.05 * 60 * np.cos(30 * run.t), atol=1e-9)


def test_source_whose_derivative_is_needed_as_a_python_function_is_refused_by_name():
    net = pb.Network("parallel")
    net.part("V", "voltage_source", "a", voltage=np.sin)
    net.part("C1", "capacitor", "a", capacitance=1e-3)
    net.part("R", "resistor", "a", resistance=5)
    with pytest.raises(pb.InputError, match=r"derivative of input 'V.voltage'"):
        pb.simulate(net, 0.1)


def test_operational_amplifier_integrates():
    net = pb.Network("integrator")
    net.part("V", "voltage_source", "a", voltage="cos(10*time)")
    net.part("R", "resistor", "a", "m", resistance=1e4)
    net.part("C", "capacitor", "m", "o", capacitance=1e-5)
    net.part("A", "operational_amplifier", input="m", output="o")
    net.part("load", "resistor", "o", resistance=100)
    run = pb.simulate(net, 1.0)
    np.testing.assert_allclose(run["load.v"], -np.sin(10 * run.t), atol=1e-8)


def test_geared_inertias_are_one_inertia_and_one_state():
    net = pb.Network("gears")
    net.part("T", "torque_source", "a", torque=1.0)
    net.part("Ja", "inertia", "a", inertia=0.1)
    net.part("G1", "gear", "a", "b", ratio=3)
    net.part("Jb", "inertia", "b", inertia=0.5)
    net.part("G2", "gear", "b", "c", ratio=-2)
    net.part("Jc", "inertia", "c", inertia=2.0)
    run = pb.simulate(net, 1.0)
    np.testing.assert_allclose(run["Ja.w"], run.t / (0.1 + 0.5 / 9 + 2.0 / 36), rtol=1e-9, atol=1e-10)
    assert len(run.states) == 1
    assert run.audit.index == 2


def test_pendulum_in_cartesian_coordinates_is_the_pendulum():
    """Index 3: x² + y² = L² with a multiplier; the structure alone finds two states of four."""
    pendulum = pb.Part(
        "pendulum", "signal", {"length": "m"},
        ["der(px) = vx", "der(py) = vy", "der(vx) = -load*px", "der(vy) = -load*py - 9.81",
         "px^2 + py^2 = length^2", "x = px"],
        {"px": "m", "py": ("m", -1.0), "vx": "m/s", "vy": "m/s", "load": ""})
    net = pb.Network("pendulum")
    net.part("P", pendulum, "out", length=1.0)
    start = 0.6
    run = pb.simulate(net, 2.0, {"P.px": np.sin(start)}, method="radau", rtol=1e-10, atol=1e-12)
    assert run.audit.index == 3
    wanted = solve_ivp(lambda t, y: [y[1], -9.81 * np.sin(y[0])], (0, 2), [start, 0], t_eval=run.t, rtol=1e-11,
                       atol=1e-12, method="DOP853").y[0]
    np.testing.assert_allclose(run["P.px"], np.sin(wanted), atol=1e-7)
    np.testing.assert_allclose(run["P.px"] ** 2 + run["P.py"] ** 2, 1.0, atol=1e-10)
