"""Sub-networks as one part, in closed form, and the forms (1), (5), (6) of a body at a state."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb


def stage(inductive=False):
    net = pb.Network("stage")
    net.part("R", "resistor", "in", "m", resistance=1e3)
    if inductive:
        net.part("Lin", "inductor", "m", "out", inductance=0.1)
    else:
        net.part("Rout", "resistor", "m", "out", resistance=500)
    net.part("C", "capacitor", "m", capacitance=1e-6)
    net.part("L", "inductor", "m", inductance=0.5)
    net.part("bias", "current_source", "ground", "m", current=1e-3)
    net.terminal("input", "in")
    net.terminal("output", "out")
    return net


def ladder(put):
    net = pb.Network("ladder")
    net.part("V", "voltage_source", "n0", voltage=1)
    for k in range(2):
        put(net, f"S{k}", f"n{k}", f"n{k + 1}")
    net.part("load", "resistor", "n2", resistance=1e4)
    return net


@pytest.mark.parametrize("inductive", [False, True])
def test_multiport_in_closed_form_is_the_sub_network(inductive):
    inner = stage(inductive)
    port = inner.as_part("stage_port")
    copied = ladder(lambda net, name, a, b: net.use(name, inner, input=a, output=b))
    closed = ladder(lambda net, name, a, b: net.part(name, port, a, b))
    one, two = (pb.simulate(net, 0.01) for net in (copied, closed))
    np.testing.assert_allclose(two["load.i"], one["load.i"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(two["V.i"], one["V.i"], rtol=0, atol=1e-9)
    w = np.array([10.0, 1e3])
    answers = [pb.frequency_response(net, "V.voltage", "load.v", w) for net in (copied, closed)]
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-9)


def test_nonlinear_or_switching_sub_networks_have_no_multiport():
    net = stage()
    net.part("D", "diode", "m")
    with pytest.raises(pb.InputError, match=r"parts that switch \(D\)"):
        net.as_part()


def test_exported_function_is_the_motor_and_its_load():
    net = pb.Network("drive")
    net.part("V", "voltage_source", "a", voltage=2)
    net.part("M", "dc_motor", winding="a", shaft="s", torque_constant=0.05, resistance=1.2, inductance=3e-3)
    net.part("J", "inertia", "s", inertia=2e-4)
    function, space = net.function(), pb.linearize(net)
    y, u = np.array([0.3, 7.0]), np.array([5.0])
    np.testing.assert_allclose(np.asarray(function(y, u, 0.0)).ravel(), space.A @ y + space.B @ u, rtol=1e-12)
    assert function.name_in() == ["y", "u", "t"]


def test_forms_one_five_and_six_of_a_moving_body_agree():
    rng = np.random.default_rng(0)
    net = pb.Network("body")
    net.ground(base=(0, 0, 0))
    inertia = np.diag([0.2, 0.3, 0.4])
    net.body("b", 2.0, (0.1, 0.2, -0.1), inertia, ports={"A": (0.5, 0, 0.1), "B": (-0.4, 0.1, 0)})
    net.joint("free", "floating", "world.base", "b.B")
    q = np.array([0.1, 0.2, 0.3, *(x := rng.normal(size=4)) / np.linalg.norm(x)])
    state, v = {"free": q}, {"free": rng.normal(size=6)}
    forms = {base: net.terminal_form("b", base, state, v) for base in ("G", "A", "B")}
    placed = net.situation(state, v)
    rate_G = rng.normal(size=6)
    centre = placed.port(net, "b.G")
    for base, form in forms.items():
        at = placed.port(net, f"b.{base}")
        r, omega = at.p - centre.p, centre.x[3:]
        rate = np.concatenate([rate_G[:3] + np.cross(rate_G[3:], r) + np.cross(omega, np.cross(omega, r)), rate_G[3:]])
        across, through = form.solve(np.zeros(12), at.x, rate)
        for name, x in zip(form.others, np.split(across, 2), strict=True):
            np.testing.assert_allclose(x, placed.port(net, f"b.{name}").x, atol=1e-12)
        # the wrench that this motion needs, moved to the mass centre, is the same by every form
        moved = np.concatenate([through[:3], through[3:] + np.cross(r, through[:3])])
        wanted = forms["G"].active.through(centre.x, rate_G)
        np.testing.assert_allclose(moved, wanted, atol=1e-11)
    with pytest.raises(pb.InputError, match="no port 'C'"):
        net.terminal_form("b", "C", state, v)


def cubic_stage():
    """A nonlinear dynamic two-port: a varistor, a capacitor, a source that oscillates."""
    kind = pb.Part("varistor", "electrical", {"level": "V!"}, ["i = (v/level)^3 + 0.2*v + 0.1*sin(v)"], loss="v*i")
    net = pb.Network("cubic")
    net.part("R", "resistor", "in", "m", resistance=2.0)
    net.part("X", kind, "m", level=1.5)
    net.part("C", "capacitor", "m", capacitance=0.1)
    net.part("bias", "current_source", "ground", "m", current="0.3*sin(4*time)")
    net.part("Rout", "resistor", "m", "out", resistance=1.0)
    net.terminal("input", "in")
    net.terminal("output", "out")
    return net


def test_a_nonlinear_dynamic_sub_network_with_explicit_equations_is_one_part():
    inner = cubic_stage()
    port = inner.as_part("cubic_port")
    assert any("sin" in text for text in port.equations)
    copied = ladder(lambda net, name, a, b: net.use(name, inner, input=a, output=b))
    closed = ladder(lambda net, name, a, b: net.part(name, port, a, b))
    one, two = (pb.simulate(net, 1.0, inputs={"V.voltage": "3*sin(5*time)"}, rtol=1e-10) for net in (copied, closed))
    assert np.abs(one["V.i"]).max() > 0.1
    np.testing.assert_allclose(two["load.i"], one["load.i"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(two["V.i"], one["V.i"], rtol=0, atol=1e-8)


def test_an_ideal_transformer_behind_terminals_has_a_hybrid_form():
    net = pb.Network("box")
    net.part("T", "transformer", "p", "s", ratio=4)
    net.terminal("primary", "p")
    net.terminal("secondary", "s")
    port = net.as_part()
    outer = pb.Network("outer")
    outer.part("V", "voltage_source", "a", voltage=8)
    outer.part("Z", "resistor", "a", "b", resistance=3)
    outer.part("box", port, "b", "c")
    outer.part("L", "resistor", "c", resistance=0.5)
    outer.part("C", "capacitor", "c", capacitance=1e-3)
    run = pb.simulate(outer, 1.0)
    np.testing.assert_allclose(run.final["V.i"], -8 / (3 + 16 * 0.5), rtol=1e-8)


def test_sub_networks_that_need_iteration_are_refused_with_the_unknowns():
    kind = pb.Part("odd", "electrical", {}, ["v = i^3 + sin(i) + v^3"])
    net = pb.Network("implicit")
    net.part("R", "resistor", "in", "m", resistance=2.0)
    net.part("X", kind, "m")
    net.part("Y", kind, "m", "k")
    net.part("S", "resistor", "k", resistance=1.0)
    net.terminal("input", "in")
    with pytest.raises(pb.InputError, match="solved by iteration"):
        net.as_part()


def test_starts_of_a_sub_network_s_parts_are_those_of_its_multiport():
    kind = pb.Part("charged", "electrical", {"capacitance": "F!"}, ["i = der(charge)", "charge = capacitance*v"],
                   {"charge": ("C", 2.0)})
    net = pb.Network("store")
    net.part("Q", kind, "a", capacitance=0.5)
    net.terminal("t", "a")
    outer = pb.Network("outer")
    outer.part("box", net.as_part(), "a")
    outer.part("R", "resistor", "a", resistance=2.0)
    run = pb.simulate(outer, 1.0, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(run["R.v"], 4.0 * np.exp(-run.t), rtol=1e-8)
