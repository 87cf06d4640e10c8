"""Drive trains, clutches and stops against models derived by hand."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

import polybody as pb


def test_drive_train_with_elastic_gears_is_the_hand_derived_model():
    """Motor rotor J1, gear N1 with stiffness k1, d1, shaft J2, gear N2 with k2, load J3."""
    J1, J2, J3, N1, N2, k1, d1, k2, d2, b = 1e-4, 2e-3, 0.3, 10.0, 5.0, 200.0, 0.02, 900.0, 0.3, 1e-3
    net = pb.Network("train")
    net.part("T", "torque_source", "a", torque=0.5)
    net.part("J1", "inertia", "a", inertia=J1)
    net.part("bearing", "rotational_damper", "a", damping=b)
    net.part("G1", "elastic_gear", "a", "m", ratio=N1, stiffness=k1, damping=d1)
    net.part("J2", "inertia", "m", inertia=J2)
    net.part("G2", "elastic_gear", "m", "z", ratio=N2, stiffness=k2, damping=d2)
    net.part("J3", "inertia", "z", inertia=J3)
    run = pb.simulate(net, 0.5)
    # states w1, w2, w3, φ1, φ2; shaft torques t1 = k1 φ1 + d1 (w1/N1 − w2), t2 alike
    t1 = np.array([d1 / N1, -d1, 0, k1, 0])
    t2 = np.array([0, d2 / N2, -d2, 0, k2])
    A = np.array([(-t1 / N1 - [b, 0, 0, 0, 0]) / J1, (t1 - t2 / N2) / J2, t2 / J3, [1 / N1, -1, 0, 0, 0],
                  [0, 1 / N2, -1, 0, 0]])
    B = np.array([0.5 / J1, 0, 0, 0, 0])
    big = np.block([[A, B[:, None]], [np.zeros((1, 6))]])
    wanted = np.array([(expm(big * t) @ [0, 0, 0, 0, 0, 1])[:5] for t in run.t])
    for k, name in enumerate(("J1.w", "J2.w", "J3.w", "G1.twist", "G2.twist")):
        np.testing.assert_allclose(run[name], wanted[:, k], rtol=0, atol=1e-8 * max(1, np.abs(wanted[:, k]).max()))
    poles = np.sort_complex(pb.linearize(net).poles())
    np.testing.assert_allclose(poles, np.sort_complex(np.linalg.eigvals(A)), rtol=1e-10, atol=1e-9)


def test_clutch_slips_until_both_sides_turn_alike_and_then_locks():
    """J1 at w0 and J2 at rest: the slip ends at w0 J1 J2 / (T (J1 + J2)), and momentum is kept."""
    J1, J2, w0, T = 0.02, 0.05, 30.0, 1.5
    net = pb.Network("clutch")
    net.part("J1", "inertia", "a", inertia=J1)
    net.part("J2", "inertia", "b", inertia=J2)
    net.part("C", "clutch", "a", "b", capacity=T)
    run = pb.simulate(net, 1.0, {"J1.w": w0})
    ends = w0 * J1 * J2 / (T * (J1 + J2))
    assert [h.detail for h in run.happenings if h.name == "C"][-1] == "forward → locked"
    np.testing.assert_allclose(run.happenings[-1].time, ends, rtol=1e-9)
    np.testing.assert_allclose(run["J1.w"][-1], w0 * J1 / (J1 + J2), rtol=1e-9)
    np.testing.assert_allclose(run["J2.w"][-1], run["J1.w"][-1], rtol=1e-9)
    assert run.audit.energy_error_relative < 1e-8


def test_brake_holds_below_its_capacity_and_slips_above_it():
    net = pb.Network("brake")
    net.part("J", "inertia", "a", inertia=0.1)
    net.part("B", "clutch", "a", capacity=2.0)
    net.part("T", "torque_source", "a", torque="4*time")
    run = pb.simulate(net, 1.0)
    np.testing.assert_allclose(run.happenings[0].time, 0.5, atol=1e-9)
    after = np.maximum(run.t - 0.5, 0)
    np.testing.assert_allclose(run["J.w"], 2 * after**2 / 0.1, atol=1e-8)


def test_stop_bounces_as_half_an_oscillation_of_its_spring():
    m, k, v, gap = 2.0, 5e4, 1.5, 0.3
    net = pb.Network("stop")
    net.part("m", "mass", "a", mass=m)
    net.part("S", "stop", "a", lower=-1.0, upper=gap, stiffness=k)
    run = pb.simulate(net, 0.5, {"m.v": v})
    touch, leave = gap / v, gap / v + np.pi * np.sqrt(m / k)
    np.testing.assert_allclose([h.time for h in run.happenings], [touch, leave], rtol=1e-8)
    np.testing.assert_allclose(run["m.v"][-1], -v, rtol=1e-8)
    assert run.audit.energy_error_relative < 1e-7


def test_rack_and_lever_turn_and_shift_a_load_as_one_inertia():
    J, r, m, n, F = 0.01, 0.05, 3.0, 2.0, 4.0
    net = pb.Network("rack")
    net.part("J", "inertia", "s", inertia=J)
    net.part("rack", "rack", "s", "x", radius=r)
    net.part("lever", "lever", "x", "y", ratio=n)
    net.part("m", "mass", "y", mass=m)
    net.part("F", "force_source", "x", force=F)
    run = pb.simulate(net, 1.0)
    np.testing.assert_allclose(run["m.v"][-1], F / (J / r**2 + m / n**2) / n, rtol=1e-10)
    assert run.audit.index == 2


def test_closed_speed_loop_of_signals_settles_at_its_reference():
    net = pb.Network("servo")
    net.part("ref", "step", "r", at=0.1, after=50.0)
    net.part("error", "difference", "r", "y", "e")
    net.part("control", "pi_controller", "e", "u", proportional=0.5, integral=20.0)
    net.part("amp", "amplifier", control="u", output="p", gain=1.0, resistance=0.2)
    net.part("M", "dc_motor", winding="p", shaft="s", torque_constant=0.05, resistance=0.8, rotor_inertia=1e-4)
    net.part("sensor", "speed_sensor", probe="s", out="y")
    run = pb.simulate(net, 1.5, method="radau")
    assert abs(run["M.shaft.w"][run.t < 0.1]).max() < 1e-9
    np.testing.assert_allclose(run["M.shaft.w"][-1], 50.0, rtol=1e-4)
    assert run.happenings[0].time == 0.1 or abs(run.happenings[0].time - 0.1) < 1e-10
