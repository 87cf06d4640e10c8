"""Circuits with known solutions, to 1e-8 of their size."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.optimize import brentq

import polybody as pb

CLOSE = {"rtol": 0, "atol": 1e-8}


def rlc(R=2.0, L=10e-3, C=100e-6):
    net = pb.Network("rlc")
    net.part("V", "voltage_source", "a", voltage=1.0)
    net.part("R", "resistor", "a", "b", resistance=R)
    net.part("L", "inductor", "b", "c", inductance=L)
    net.part("C", "capacitor", "c", capacitance=C)
    return net


@pytest.mark.parametrize(("method", "options"), [("dop853", {}), ("radau", {}), ("rk4", {"dt": 1e-5}),
                                                 ("idas", {"rtol": 1e-11, "atol": 1e-13})])
def test_rlc_transient_is_the_damped_oscillation(method, options):
    run = pb.simulate(rlc(), 0.03, method=method, **options)
    decay, square = 2.0 / 2 / 10e-3, 1 / (10e-3 * 100e-6)
    w = np.sqrt(square - decay**2)
    wanted = 1 - np.exp(-decay * run.t) * (np.cos(w * run.t) + decay / w * np.sin(w * run.t))
    np.testing.assert_allclose(run["C.v"], wanted, **CLOSE)
    np.testing.assert_allclose(run["L.i"], np.exp(-decay * run.t) * np.sin(w * run.t) / (w * 10e-3), **CLOSE)
    assert run.trusted
    assert run.audit.energy_error_relative < 1e-7


@pytest.mark.parametrize("method", ["dop853", "radau", "rk4", "idas"])
def test_times_too_late_for_a_circuit_are_not_trusted(method):
    """Its voltage changes by up to V/RC, its largest value, in a second: v/V by ulp(t)/RC between two numbers."""
    net = pb.Network("rc")
    net.part("V", "voltage_source", "a", voltage=1.0)
    net.part("R", "resistor", "a", "b", resistance=1e3)
    net.part("C", "capacitor", "b", capacitance=1e-3)
    early = pb.simulate(net, 20.0, method=method, dt=0.01)
    assert early.trusted
    assert early.audit.time_error == pytest.approx(math.ulp(20.0), rel=1e-6)
    with pytest.warns(pb.PolybodyWarning, match="times so late are not resolved"):
        late = pb.simulate(net, 20.0, method=method, dt=0.01, start=1e12)
    assert not late.trusted
    assert late.audit.time_error >= 0.999 * math.ulp(1e12)  # idas gives up before the voltage has grown


def test_ideal_transformer_shows_its_load_by_the_square_of_its_ratio():
    R, n, r, L = 3.0, 4.0, 0.5, 2e-3
    net = pb.Network("transformer")
    net.part("V", "voltage_source", "a", voltage=10)
    net.part("R", "resistor", "a", "p", resistance=R)
    net.part("T", "transformer", primary="p", secondary=("s", "s0"), ratio=n)
    net.part("r", "resistor", "s", "m", resistance=r)
    net.part("L", "inductor", "m", "s0", inductance=L)
    run = pb.simulate(net, 0.01)
    total = R + n**2 * r
    wanted = 10 / total * (1 - np.exp(-total * run.t / (n**2 * L)))
    np.testing.assert_allclose(run["T.primary.i"], wanted, **CLOSE)
    np.testing.assert_allclose(run["L.i"], n * wanted, **CLOSE)
    np.testing.assert_allclose(run["T.primary.v"], n * run["T.secondary.v"], **CLOSE)


def test_gyrator_makes_a_capacitor_look_like_an_inductor():
    g, C, w = 0.02, 1e-6, np.array([10.0, 1e3, 1e5])
    net = pb.Network("gyrated")
    net.part("G", "gyrator", first="a", second="b", conductance=g)
    net.part("C", "capacitor", "b", capacitance=C)
    np.testing.assert_allclose(pb.impedance(net, "a", w), 1j * w * C / g**2, rtol=1e-12)


class Bridge:
    """A bridge rectifier with a smoothing capacitor by nodal analysis, integrated in closed form between switches."""

    V, W, RS, C, R = 10.0, 2 * np.pi * 50, 1.0, 1e-3, 50.0
    ON, OFF = 1e5, 1e-5  # conductances
    DIODES = (("c", "p"), ("b", "p"), ("n", "c"), ("n", "b"))

    def coefficients(self, on):
        """Linear maps of (capacitor voltage, source voltage) to (dV_C/dt, diode voltages)."""
        nodes = ["c", "p", "n"]  # b is the reference
        G, columns = np.zeros((3, 3)), np.zeros((3, 2))

        def stamp(x, y, g):
            for s, t in ((x, y), (y, x)):
                if s in nodes:
                    G[nodes.index(s), nodes.index(s)] += g
                    if t in nodes:
                        G[nodes.index(s), nodes.index(t)] -= g

        for k, ends in enumerate(self.DIODES):
            stamp(*ends, self.ON if on[k] else self.OFF)
        stamp("p", "n", 1 / self.R)
        G[0, 0] += 1 / self.RS
        columns[0, 1] = 1 / self.RS
        # the capacitor is a voltage source between p and n, its current the fourth unknown
        A = np.block([[G, np.array([[0.0], [1.0], [-1.0]])], [np.array([[0.0, 1.0, -1.0, 0.0]])]])
        x = np.linalg.solve(A, np.vstack([columns, [1.0, 0.0]]))
        volts = {"c": x[0], "p": x[1], "n": x[2], "b": np.zeros(2)}
        return x[3] / self.C, [volts[i] - volts[j] for i, j in self.DIODES]

    def solution(self, times):
        on, t, vc, found, k = [False] * 4, 0.0, 0.0, [], 0
        end = times[-1]
        while k < len(times):
            (a, b), volts = self.coefficients(on)
            # V' = a V + b V0 sin wt
            S = b * self.V / (a**2 + self.W**2)

            def value(s, a=a, S=S, t=t, vc=vc):
                particular = -S * (a * np.sin(self.W * s) + self.W * np.cos(self.W * s))
                start = -S * (a * np.sin(self.W * t) + self.W * np.cos(self.W * t))
                return particular + (vc - start) * np.exp(a * (s - t))

            def leave(s, d, on=on, volts=volts, value=value):
                v = volts[d] @ [value(s), self.V * np.sin(self.W * s)]
                return -v if on[d] else v

            until, which = end, None
            grid = t + np.linspace(0, 2e-2, 4001)
            for s0, s1 in itertools.pairwise(grid):
                hits = [d for d in range(4) if leave(s0, d) <= 1e-12 < leave(s1, d)]
                if hits:
                    roots = [s0 if leave(s0, d) >= 0 else brentq(leave, s0, s1, args=(d,), xtol=1e-16) for d in hits]
                    until, which = min(roots), [d for d, r in zip(hits, roots, strict=True) if r < min(roots) + 1e-9]
                    break
            while k < len(times) and times[k] <= until:
                found.append(value(times[k]))
                k += 1
            if which is None:
                break
            t, vc = until, value(until)
            on = list(on)
            for d in which:
                on[d] = not on[d]
        return np.array(found)


def test_bridge_rectifier_is_the_closed_form_between_switches():
    b = Bridge()
    net = pb.Network("bridge")
    net.part("V", "voltage_source", "a", "b", voltage="10*sin(2*pi*50*time)")
    net.part("Rs", "resistor", "a", "c", resistance=b.RS)
    for k, ends in enumerate(b.DIODES):
        net.part(f"D{k}", "diode", *ends)
    net.part("C", "capacitor", "p", "n", capacitance=b.C)
    net.part("R", "resistor", "p", "n", resistance=b.R)
    run = pb.simulate(net, 0.04, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run["C.v"], b.solution(run.t), rtol=0, atol=1e-8)
    assert {h.name for h in run.happenings} == {"D0", "D1", "D2", "D3"}
    assert run.trusted
    assert run["C.v"][-1] > 8


def test_dc_motor_step_is_the_second_order_response():
    K, R, L, J, B = 0.05, 1.2, 3e-3, 2e-4, 1e-4
    net = pb.Network("motor")
    net.part("V", "voltage_source", "a", voltage="24 V")
    net.part("M", "dc_motor", winding="a", shaft="s", torque_constant=K, resistance=R, inductance="3 mH", damping=B)
    net.part("J", "inertia", "s", inertia=J)
    run = pb.simulate(net, 0.3)
    A = np.array([[-R / L, -K / L], [K / J, -B / J]])
    steady = np.linalg.solve(A, [-24 / L, 0])
    wanted = np.array([steady - expm(A * t) @ steady for t in run.t])
    np.testing.assert_allclose(run["M.winding.i"], wanted[:, 0], **CLOSE)
    np.testing.assert_allclose(run["J.w"], wanted[:, 1], rtol=1e-9, atol=1e-7)
    assert run.audit.energy_error_relative < 1e-8


def test_brushless_motor_in_rotor_axes_is_the_same_motor_in_three_phases():
    """Phases driven by the inverse Park transform of constant v_d, v_q: torque, speed and power agree."""
    numbers = {"pole_pairs": 4, "flux": 0.02, "resistance": 0.5, "inductance": 1e-3, "rotor_inertia": 1e-3,
               "damping": 1e-3}
    root = np.sqrt(1.5)  # the transformation that keeps power: flux linkage of a phase times √(3/2)
    dq = pb.Network("dq")
    dq.part("d", "voltage_source", "d", voltage=-1.0)
    dq.part("q", "voltage_source", "q", voltage=6.0)
    dq.part("M", "bldc_motor", "d", "q", "s", **{**numbers, "flux": 0.02 * root})
    one = pb.simulate(dq, 0.2)
    transform = pb.Part(
        "inverse_park", {"a": "electrical", "b": "electrical", "c": "electrical", "shaft": "rotational"},
        {"d": "V", "q": "V", "pairs": ""},
        ["der(angle) = shaft.w", "shaft.t = 0",
         *(f"{p}.v = (2/3)^0.5*(d*cos(pairs*angle - {k}*2*pi/3) - q*sin(pairs*angle - {k}*2*pi/3))"
           for p, k in (("a", 0), ("b", 1), ("c", -1)))], {"angle": "rad"})
    phases = pb.Network("abc")
    phases.part("P", transform, "a", "b", "c", "s", d=-1.0, q=6.0, pairs=4)
    phases.part("M", "pm_motor", "a", "b", "c", "s", **numbers)
    two = pb.simulate(phases, 0.2)
    np.testing.assert_allclose(two["M.shaft.w"], one["M.shaft.w"], rtol=0, atol=1e-6)
    assert one["M.shaft.w"][-1] > 10
    assert one.trusted
    assert two.trusted


def test_stepper_holds_the_angle_of_its_phase_currents():
    net = pb.Network("stepper")
    net.part("a", "voltage_source", "a", voltage=0.0)
    net.part("b", "voltage_source", "b", voltage=2.0)
    net.part("M", "stepper_motor", "a", "b", "s", torque_constant=0.2, resistance=1.0, inductance=1e-3,
             rotor_inertia=1e-5, damping=2e-3)
    run = pb.simulate(net, 0.3, {"M.angle": 0.02}, method="radau", rtol=1e-6)
    # torque K (−i_a sin Nθ + i_b cos Nθ) vanishes at Nθ = π/2 for a current in b alone
    np.testing.assert_allclose(run["M.angle"][-1], np.pi / 2 / 50, atol=1e-6)
    assert run.trusted


def test_hydraulic_cylinder_moves_its_load_with_the_flow_and_rings_at_its_oil_spring():
    area, volume, bulk, mass = 1e-3, 2e-4, 1.4e9, 50.0
    net = pb.Network("cylinder")
    net.part("pump", "flow_source", "head", flow=1e-4)
    net.part("tank", "line", "tail", resistance=1e3)
    net.part("cyl", "cylinder", "head", "tail", "rod", head_area=area, tail_area=area, head_volume=volume,
             tail_volume=volume)
    net.part("load", "mass", "rod", mass=mass)
    run = pb.simulate(net, 0.05, method="radau", rtol=1e-8)
    assert abs(run["load.v"].mean() / (1e-4 / area) - 1) < 0.05
    peaks = run.t[1:-1][(run["load.v"][1:-1] > run["load.v"][:-2]) & (run["load.v"][1:-1] > run["load.v"][2:])]
    wanted = 2 * np.pi / np.sqrt(bulk * area**2 / volume / mass)
    assert abs(np.diff(peaks).mean() / wanted - 1) < 0.08
    orifice = pb.Network("orifice")
    orifice.part("P", "pressure_source", "a", pressure="50 bar")
    orifice.part("O", "orifice", "a", area=1e-5)
    flow = pb.simulate(orifice_with_state(orifice), 0.01)["O.q"][-1]
    np.testing.assert_allclose(flow, 0.62 * 1e-5 * np.sqrt(2 * 50e5 / 870), rtol=1e-6)


def orifice_with_state(net):
    net.part("A", "accumulator", "a", compliance=1e-12)
    return net


def test_nonlinear_algebraic_loop_is_solved_without_help():
    """A diode by its exponential law between two resistors: one scalar equation without a closed solution."""
    junction = pb.Part("junction", "electrical", {"saturation": ("A", 1e-12), "thermal": ("V", 0.025)},
                       ["i = saturation*(exp(v/thermal) - 1)"], loss="v*i")
    net = pb.Network("clipper")
    net.part("V", "voltage_source", "a", voltage="3*sin(20*time)")
    net.part("R", "resistor", "a", "b", resistance=100)
    net.part("D", junction, "b")
    net.part("C", "capacitor", "b", capacitance=1e-5)
    net.part("R2", "resistor", "b", "c", resistance=100)
    net.part("D2", junction, "c")
    run = pb.simulate(net, 0.3, method="radau", rtol=1e-9)

    def rate(t, y):
        second = brentq(lambda v: 1e-12 * np.expm1(v / 0.025) - (y[0] - v) / 100, -10, 1.2, xtol=1e-15)
        return [((3 * np.sin(20 * t) - y[0]) / 100 - 1e-12 * np.expm1(y[0] / 0.025) - (y[0] - second) / 100) / 1e-5]

    wanted = solve_ivp(rate, (0, 0.3), [0.0], method="Radau", t_eval=run.t, rtol=1e-9, atol=1e-12).y[0]
    np.testing.assert_allclose(run["C.v"], wanted, rtol=0, atol=1e-6)


def test_inputs_may_be_numbers_expressions_and_functions_of_time():
    runs = [pb.simulate(rlc(), 0.01, inputs={"V.voltage": said})
            for said in ("2 V", 2.0, lambda t: 2.0, "2 + 0*time")]
    for run in runs[1:]:
        np.testing.assert_allclose(run["C.v"], runs[0]["C.v"], rtol=0, atol=1e-9)
