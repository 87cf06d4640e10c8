"""Badly posed networks are refused with the names of the parts, and the circuit or cut-set at fault."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb


def circuit(*parts):
    net = pb.Network("faulty")
    for name, kind, nodes, numbers in parts:
        net.part(name, kind, *nodes, **numbers)
    return net


def test_loop_of_voltage_sources_names_its_circuit():
    net = circuit(("V1", "voltage_source", ("a",), {"voltage": 1}), ("R", "resistor", ("a",), {"resistance": 1}),
                  ("V2", "voltage_source", ("a", "b"), {"voltage": 1}),
                  ("V3", "voltage_source", ("b",), {"voltage": 2}))
    with pytest.raises(pb.InputError, match=r"circuit 'V3' - .*'V[12]' - 'V[12]'.*put a resistor"):
        pb.simulate(net, 1)


def test_cut_set_of_current_sources_names_its_members():
    net = circuit(("I1", "current_source", ("a",), {"current": 1}),
                  ("I2", "current_source", ("a", "b"), {"current": 1}),
                  ("C", "capacitor", ("b",), {"capacitance": 1}))
    with pytest.raises(pb.InputError, match=r"cut-set 'I1', 'I2' around node 'a'"):
        pb.simulate(net, 1)


def test_conflicting_drivers_through_a_gear_are_named():
    net = circuit(("W1", "speed_source", ("a",), {"speed": 1}), ("W2", "speed_source", ("b",), {"speed": 5}),
                  ("G", "gear", ("a", "b"), {"ratio": 2}), ("J", "inertia", ("b",), {"inertia": 1}))
    with pytest.raises(pb.InputError, match=r"not well posed: the equations of 'W1', 'W2', 'G'.* too many.*nothing "
                                            r"determines"):
        pb.simulate(net, 1)


def test_gears_that_close_a_loop_are_named():
    net = circuit(("T", "torque_source", ("a",), {"torque": 1}), ("J", "inertia", ("a",), {"inertia": 1}),
                  ("G1", "gear", ("a", "b"), {"ratio": 2}), ("G2", "gear", ("b", "a"), {"ratio": 0.5}))
    with pytest.raises(pb.PolybodyError, match="'G1', 'G2' hold the same motion twice"):
        pb.simulate(net, 1)


def test_floating_sub_network_names_its_parts():
    net = circuit(("m", "mass", ("x",), {"mass": 1}), ("k", "spring", ("p", "q"), {"stiffness": 1}),
                  ("d", "damper", ("p", "q"), {"damping": 1}))
    with pytest.raises(pb.InputError, match=r"floating: 'k', 'd' \(translational\)"):
        pb.simulate(net, 1)


def test_open_port_is_named():
    net = pb.Network("open")
    with pytest.raises(pb.InputError, match=r"part 'M': its port 'shaft' is open; give it a node"):
        net.part("M", "dc_motor", winding="a", torque_constant=1, resistance=1)


def test_two_domains_at_one_node_are_refused():
    net = circuit(("R", "resistor", ("a",), {"resistance": 1}))
    with pytest.raises(pb.InputError, match=r"'J' is rotational, but node 'a' is electrical, by 'R'"):
        net.part("J", "inertia", "a", inertia=1)


@pytest.mark.parametrize(("given", "wanted"), [("3 N", "in ohm, not in N"), ("3 kg", "in ohm, not in kg"),
                                               ("much", "expected a number in ohm"), (np.nan, "finite"),
                                               (True, "expected a number")])
def test_units_are_checked_by_what_the_parameter_is(given, wanted):
    with pytest.raises(pb.InputError, match=wanted):
        circuit(("R", "resistor", ("a",), {"resistance": given}))


@pytest.mark.parametrize(("text", "value"), [("2.2 kohm", 2200), ("47Ω", 47), ("0.1 V/A", 0.1), ("3 mohm", 0.003)])
def test_units_with_prefixes_become_numbers_in_si(text, value):
    net = circuit(("R", "resistor", ("a",), {"resistance": text}))
    np.testing.assert_allclose(net.components["R"].values["resistance"], value, rtol=1e-15)


@pytest.mark.parametrize(("change", "message"), [
    ({"equations": ["v = R*i", "i = 0"]}, "has 2 equations; 1 port and 0 variables need 1"),
    ({"equations": ["v = R*j"]}, "uses 'j'"),
    ({"equations": ["v = R*i = 0"]}, "expected one '='"),
    ({"equations": ["v = __import__('os').system(i)"]}, "not understood|no function"),
    ({"equations": ["v = open(i)"]}, "no function 'open'"),
    ({"ports": "thermal"}, "no energy domain 'thermal'"),
    ({"parameters": {"R": "furlong"}}, "no unit 'furlong'"),
    ({"equations": [], "modes": {"on": {"equations": ["v = R*i"], "to": {"off": "i < 0"}}}}, "leads to 'off'"),
])
def test_own_parts_with_a_mistake_say_so_at_once(change, message):
    said = {"name": "mine", "ports": "electrical", "parameters": {"R": "ohm"}, "equations": ["v = R*i"], **change}
    with pytest.raises(pb.InputError, match=message):
        pb.Part(**said)


def test_wrong_names_get_the_nearest():
    net = circuit(("R", "resistor", ("a",), {"resistance": 1}), ("C", "capacitor", ("a",), {"capacitance": 1}))
    with pytest.raises(pb.InputError, match=r"no part 'resistr' \(did you mean 'resistor'\?\)"):
        net.part("x", "resistr", "a")
    with pytest.raises(pb.InputError, match=r"has no parameter 'resistence'"):
        net.part("x", "resistor", "a", resistence=1)
    with pytest.raises(pb.InputError, match=r"no variable 'C.w'"):
        pb.simulate(net, 1, {"C.w": 1})
    with pytest.raises(pb.InputError, match=r"'R.i' cannot be 7"):
        pb.simulate(net, 1, {"C.v": 1, "R.i": 7})
    with pytest.raises(pb.InputError, match="no integration method 'euler'"):
        pb.simulate(net, 1, method="euler")


def test_ideal_switch_that_would_ask_for_an_impulse_is_refused():
    net = pb.Network("impulse")
    net.part("C1", "capacitor", "a", capacitance=1e-3)
    net.part("C2", "capacitor", "b", capacitance=1e-3)
    net.part("R", "resistor", "b", resistance=1.0)
    net.part("s", "step", "u", at=0.01)
    net.part("S", "switch", ("a", "b"), control="u", resistance=0, conductance=0)
    with pytest.raises(pb.SimulationError, match=r"would jump.*impulse"):
        pb.simulate(net, 0.1, {"C1.v": 5.0})


def test_a_signal_that_nothing_drives_is_named_with_its_node_and_reader():
    net = pb.Network("open")
    net.part("g", "gain", "u", "y", factor=2)
    with pytest.raises(pb.InputError, match=r"nothing drives the signal at node 'u', which 'g\.u' reads"):
        pb.simulate(net, 1)


def test_a_cut_set_of_through_drivers_is_named_at_the_node_that_it_isolates():
    net = pb.Network("cut")
    net.part("I1", "current_source", "a", "b", current=1)
    net.part("I2", "current_source", "b", current=2)
    net.part("R", "resistor", "a", resistance=1)
    with pytest.raises(pb.InputError, match=r"cut-set 'I1', 'I2' around node 'b'"):
        pb.simulate(net, 1)


@pytest.mark.parametrize("method", ["dop853", "radau", "rk4", "idas"])
def test_a_network_without_states_runs_by_every_method(method):
    net = pb.Network("divider")
    net.part("R", "resistor", "a", resistance=2.0)
    net.part("V", "voltage_source", "a", voltage=6.0)
    run = pb.simulate(net, 0.5, method=method, **({"dt": 0.01} if method == "rk4" else {}))
    assert run.trusted
    assert np.allclose(run["R.i"], 3.0, rtol=1e-12)


def test_a_part_that_supplies_energy_by_a_negative_resistance_is_named():
    net = pb.Network("active")
    with pytest.warns(pb.PolybodyWarning, match="'R': resistance is -5 ohm"):
        net.part("R", "resistor", "a", resistance=-5.0)
