"""Networks against closed forms, models derived by hand and `pb.linearize(model)`: the largest differences, printed.

    python benchmarks/accuracy_networks.py

Networks and closed forms are those of tests/networks; here their errors are measured, there they are bounded.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "networks"))

import test_choice_of_states as swing
import test_circuits as circuits
import test_models_as_parts as arms

import polybody as pb

Array = np.ndarray
METHODS = {"dop853": {"rtol": 1e-10, "atol": 1e-12}, "radau": {"rtol": 1e-10, "atol": 1e-12},
           "rk4": {"dt": 1e-5, "sample": 1e-3}, "idas": {"rtol": 1e-11, "atol": 1e-13}}


def error(found: Array, wanted: Array) -> float:
    return float(np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max()))


def rlc(method: str) -> tuple[float, pb.NetworkTrajectory]:
    run = pb.simulate(circuits.rlc(), 0.03, method=method, **METHODS[method])
    decay, square = 100.0, 1e6
    w = np.sqrt(square - decay**2)
    wanted = 1 - np.exp(-decay * run.t) * (np.cos(w * run.t) + decay / w * np.sin(w * run.t))
    return error(run["C.v"], wanted), run


def transformer(method: str) -> tuple[float, pb.NetworkTrajectory]:
    net = pb.Network("transformer")
    net.part("V", "voltage_source", "a", voltage=10)
    net.part("R", "resistor", "a", "p", resistance=3.0)
    net.part("T", "transformer", primary="p", secondary=("s", "s0"), ratio=4.0)
    net.part("r", "resistor", "s", "m", resistance=0.5)
    net.part("L", "inductor", "m", "s0", inductance=2e-3)
    run = pb.simulate(net, 0.01, method=method, **METHODS[method])
    return error(run["T.primary.i"], 10 / 11 * (1 - np.exp(-11 * run.t / 32e-3))), run


def rectifier(method: str) -> tuple[float, pb.NetworkTrajectory]:
    b = circuits.Bridge()
    net = pb.Network("bridge")
    net.part("V", "voltage_source", "a", "b", voltage="10*sin(2*pi*50*time)")
    net.part("Rs", "resistor", "a", "c", resistance=b.RS)
    for k, ends in enumerate(b.DIODES):
        net.part(f"D{k}", "diode", *ends)
    net.part("C", "capacitor", "p", "n", capacitance=b.C)
    net.part("R", "resistor", "p", "n", resistance=b.R)
    run = pb.simulate(net, 0.04, method=method, **{**METHODS[method], "sample": 1e-3, "dt": 2e-6})
    return error(run["C.v"], b.solution(run.t)), run


def motor(method: str) -> tuple[float, pb.NetworkTrajectory]:
    K, R, L, J, B = 0.05, 1.2, 3e-3, 2e-4, 1e-4
    net = pb.Network("motor")
    net.part("V", "voltage_source", "a", voltage=24)
    net.part("M", "dc_motor", winding="a", shaft="s", torque_constant=K, resistance=R, inductance=L, damping=B)
    net.part("J", "inertia", "s", inertia=J)
    run = pb.simulate(net, 0.3, method=method, **METHODS[method])
    A = np.array([[-R / L, -K / L], [K / J, -B / J]])
    steady = np.linalg.solve(A, [-24 / L, 0])
    wanted = np.array([steady - expm(A * t) @ steady for t in run.t])
    return max(error(run["M.winding.i"], wanted[:, 0]), error(run["J.w"], wanted[:, 1])), run


def drive(method: str) -> tuple[float, pb.NetworkTrajectory]:
    J1, J2, J3, N1, N2, k1, d1, k2, d2, b = 1e-4, 2e-3, 0.3, 10.0, 5.0, 200.0, 0.02, 900.0, 0.3, 1e-3
    net = pb.Network("train")
    net.part("T", "torque_source", "a", torque=0.5)
    net.part("J1", "inertia", "a", inertia=J1)
    net.part("bearing", "rotational_damper", "a", damping=b)
    net.part("G1", "elastic_gear", "a", "m", ratio=N1, stiffness=k1, damping=d1)
    net.part("J2", "inertia", "m", inertia=J2)
    net.part("G2", "elastic_gear", "m", "z", ratio=N2, stiffness=k2, damping=d2)
    net.part("J3", "inertia", "z", inertia=J3)
    run = pb.simulate(net, 0.5, method=method, **METHODS[method])
    t1, t2 = np.array([d1 / N1, -d1, 0, k1, 0]), np.array([0, d2 / N2, -d2, 0, k2])
    A = np.array([(-t1 / N1 - [b, 0, 0, 0, 0]) / J1, (t1 - t2 / N2) / J2, t2 / J3, [1 / N1, -1, 0, 0, 0],
                  [0, 1 / N2, -1, 0, 0]])
    big = np.block([[A, np.array([[0.5 / J1], [0], [0], [0], [0]])], [np.zeros((1, 6))]])
    wanted = np.array([(expm(big * t) @ [0, 0, 0, 0, 0, 1])[:5] for t in run.t])
    names = ("J1.w", "J2.w", "J3.w", "G1.twist", "G2.twist")
    return max(error(run[name], wanted[:, k]) for k, name in enumerate(names)), run


def pendulum(method: str) -> tuple[float, pb.NetworkTrajectory]:
    """Index three; turns over and over."""
    start = {"rod.px": 0.0, "rod.py": -swing.LENGTH, "mx.v": 12 * swing.LENGTH}
    options = {**METHODS[method], "sample": 0.05, "dt": 2e-4}
    run = pb.simulate(swing.pendulum(), 0.5, start, method=method, **options)
    done = solve_ivp(lambda t, s: [s[1], -swing.G / swing.LENGTH * np.sin(s[0])], (0, 0.5), [0, 12.0], rtol=1e-12,
                     atol=1e-13, method="DOP853", t_eval=run.t)
    return error(run["rod.px"], swing.LENGTH * np.sin(done.y[0])), run


def poles() -> float:
    model, bare = arms.driven_arm()
    rng, worst = np.random.default_rng(5), 0.0
    for _ in range(5):
        q, v, i = rng.uniform(-0.8, 0.8, 6), rng.uniform(-0.3, 0.3, 6), rng.uniform(-1, 1, 6)
        wanted = pb.linearize(model, q, v, model.mechanism.motors.torques @ i, inputs="voltage")
        net = arms.with_motors(bare)
        at = {**arms.started(net.components["arm"], bare, q, v), **{f"M{k}.winding.i": x for k, x in enumerate(i)}}
        found, known = (arms.sorted_poles(space.A) for space in (pb.linearize(net, at), wanted))
        worst = max(worst, float(np.abs(found - known).max() / np.abs(known).max()))
    return worst


def ill_posed() -> None:
    cases = {
        "a loop of sources": [("V1", "voltage_source", ("a",), {"voltage": 1}),
                              ("R", "resistor", ("a",), {"resistance": 1}),
                              ("V2", "voltage_source", ("a",), {"voltage": 2})],
        "a cut-set of sources": [("I1", "current_source", ("a",), {"current": 1}),
                                 ("I2", "current_source", ("a", "b"), {"current": 1}),
                                 ("C", "capacitor", ("b",), {"capacitance": 1})],
        "a floating sub-network": [("m", "mass", ("x",), {"mass": 1}), ("k", "spring", ("p", "q"), {"stiffness": 1})],
        "conflicting drivers": [("W1", "speed_source", ("a",), {"speed": 1}),
                                ("W2", "speed_source", ("b",), {"speed": 5}),
                                ("G", "gear", ("a", "b"), {"ratio": 2}), ("J", "inertia", ("b",), {"inertia": 1})],
        "an open port": [("M", "dc_motor", ("a",), {"torque_constant": 1, "resistance": 1})],
    }  # fmt: skip
    for title, parts in cases.items():
        net = pb.Network("faulty")
        try:
            for name, kind, nodes, numbers in parts:
                net.part(name, kind, *nodes, **numbers)
            pb.simulate(net, 1)
            print(f"{title}: NOT DIAGNOSED")
        except pb.InputError as fault:
            print(f"{title}: {fault}")


def main() -> None:
    print(f"{'network':<34}" + "".join(f"{method:>10}" for method in METHODS) + "    energy")
    for measure in (rlc, transformer, rectifier, motor, drive, pendulum):
        row, energy = [], 0.0
        for method in METHODS:
            began = time.perf_counter()
            size, run = measure(method)
            row.append(f"{size:10.1e}")
            energy = max(energy, run.audit.energy_error_relative if method != "rk4" else 0.0)
            if time.perf_counter() - began > 60:
                print(f"  ({measure.__name__} by {method} took {time.perf_counter() - began:.0f} s)")
        print(f"{measure.__name__:<34}{''.join(row)}{energy:10.1e}", flush=True)
    print(f"poles of a six-joint arm with motors, network against linearize(inputs='voltage'), 5 states: {poles():.1e}")
    ill_posed()


if __name__ == "__main__":
    main()
