"""Random networks with switches over all domains: energy, agreement of methods, agreement of exported C.

    python benchmarks/campaign_networks.py [COUNT] [FIRST SEED] [--c]

Each network has a rectified or switched supply (diodes), coils and capacitors, a DC motor, an elastic drive, clutches,
stops, and in every third a two-link arm whose joints have limits and dry friction. Printed of each: switches, the error
of the energy over all domains, the largest difference of final values between dop853 and radau, IDAS, and with --c the
exported library (compiled), relative to 1 + |value|. Whatever differs by more than 1e-5 is reported.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import polybody as pb

SECONDS = 0.15


def supply(net: pb.Network, rng: np.random.Generator, number: int) -> None:
    """A source behind one, two or four diodes, with a filter, at the node "dc"."""
    wave = f"{rng.uniform(8, 20):.6f}*sin({rng.uniform(20, 60):.6f}*time + {rng.uniform(0, 3):.6f})"
    diode = {"resistance": 0.05, "conductance": 1e-3, "threshold": float(rng.choice([0.0, 0.6]))}
    if number == 4:
        net.part("V", "voltage_source", "a", "b", voltage=wave)
        for name, ends in {"D1": ("a", "r"), "D2": ("b", "r"), "D3": ("ground", "a"), "D4": ("ground", "b")}.items():
            net.part(name, "diode", *ends, **diode)
    else:
        net.part("V", "voltage_source", "a", voltage=wave)
        net.part("D1", "diode", "a", "r", **diode)
        if number == 2:
            net.part("D2", "diode", "ground", "r", **diode)
    net.part("Ls", "inductor", "r", "l", inductance=rng.uniform(2e-3, 2e-2))
    net.part("Rs", "resistor", "l", "dc", resistance=rng.uniform(0.2, 2))
    net.part("Cs", "capacitor", "dc", capacitance=rng.uniform(1e-3, 1e-2))


def random_network(seed: int) -> pb.Network:
    rng = np.random.default_rng(seed)
    net = pb.Network(f"random {seed}")
    supply(net, rng, int(rng.choice([1, 2, 4])))
    net.part("M", "dc_motor", winding="dc", shaft="m", torque_constant=rng.uniform(0.05, 0.2),
             resistance=rng.uniform(0.5, 2), inductance=rng.uniform(1e-3, 5e-3), rotor_inertia=rng.uniform(1e-4, 1e-3))
    ratio = rng.uniform(5, 20)
    node = "load"
    if seed % 3 == 0:
        net.mechanism("arm", arm(rng))
        node = "arm.s"
    net.part("G", "elastic_gear", "m", node, ratio=ratio, stiffness=rng.uniform(50, 500), damping=rng.uniform(0.5, 2))
    if node == "load":
        net.part("J", "inertia", "load", inertia=rng.uniform(0.01, 0.1))
        net.part("S", "rotational_stop", "load", lower=-rng.uniform(0.05, 0.3), upper=rng.uniform(0.05, 0.3),
                 stiffness=rng.uniform(200, 2000), damping=rng.uniform(0.5, 3))
        net.part("K", "clutch", "load", "fly", capacity=rng.uniform(0.2, 2))
        net.part("F", "inertia", "fly", inertia=rng.uniform(0.01, 0.1))
        net.part("B", "clutch", "fly", capacity=rng.uniform(0.05, 0.3))
    return net


def arm(rng: np.random.Generator) -> pb.Model:
    build = pb.Builder("arm", gravity=(0, -9.81, 0))
    build.body("upper", rng.uniform(0.3, 1), (0.1, 0, 0), (0.001, 0.01, 0.01))
    build.body("lower", rng.uniform(0.2, 0.8), (0.1, 0, 0), (0.001, 0.005, 0.005))
    at = np.eye(4)
    at[0, 3] = 0.25
    friction = {"coulomb": rng.uniform(0.02, 0.1), "static": rng.uniform(0.1, 0.15), "stribeck": 0.1, "viscous": 0.05}
    build.joint("s", "revolute", "world", "upper", limits=(-rng.uniform(0.2, 0.5), 1.0), friction=friction)
    build.joint("e", "revolute", "upper", "lower", at, limits=(-0.4, rng.uniform(0.2, 0.6)), friction=friction)
    return build.model()


def difference(one: dict[str, float], other: dict[str, float]) -> tuple[float, str]:
    """The largest difference, and its variable."""
    return max((abs(one[k] - x) / (1 + abs(x)), k) for k, x in other.items() if k in one)


def in_c(net: pb.Network) -> dict[str, float]:
    """Final states by the exported library."""
    with tempfile.TemporaryDirectory() as folder:
        pb.export_c(net, Path(folder) / "c", name="net")
        subprocess.run(["make", "all"], cwd=Path(folder) / "c", check=True, capture_output=True)
        library = ctypes.CDLL(str(Path(folder) / "c" / "libnet.so"))
        text = (Path(folder) / "c" / "net.h").read_text()
        size = {word: int(text.split(f"NET_{word} = ")[1].split(",")[0].split(" ")[0])
                for word in ("NX", "NA", "NU", "ND", "NP")}  # fmt: skip

        class State(ctypes.Structure):
            _fields_ = [("t", ctypes.c_double), ("h", ctypes.c_double),
                        *((w[1].lower(), max(size[w], 1) * ctypes.c_double) for w in size), ("mode", ctypes.c_int)]

        s, d = State(), ctypes.c_double
        status = library.net_start(ctypes.byref(s))
        status = status or library.net_advance(ctypes.byref(s), d(SECONDS), d(1e-3), d(1e-10), d(1e-12))
        if status:
            raise RuntimeError(f"exported C returned {status} at t = {s.t}")
        names = [x.decode() for x in (ctypes.c_char_p * size["NX"]).in_dll(library, "net_state_names")]
        return dict(zip(names, s.x, strict=False))


def main() -> None:
    given = [int(x) for x in sys.argv[1:] if not x.startswith("-")]
    count, first = (given + [30, 0][len(given) :])[:2]
    warnings.simplefilter("ignore", pb.PolybodyWarning)
    worst = {"energy": 0.0, "radau": 0.0, "idas": 0.0, "C": 0.0}
    switches = 0
    print("seed  switches  energy    radau     idas      C         seconds")
    for seed in range(first, first + count):
        net, began, found = random_network(seed), time.perf_counter(), dict[str, tuple[float, str]]()
        run = pb.simulate(net, SECONDS, rtol=1e-9, atol=1e-11)
        states = {name: run.final[name] for name in run.states}
        found["energy"] = (run.audit.energy_error_relative, "")
        switches += run.audit.switches
        for method in ("radau", "idas"):
            options = {"rtol": 1e-8, "atol": 1e-10} if method == "idas" else {"rtol": 1e-9, "atol": 1e-11}
            other = pb.simulate(net, SECONDS, method=method, **options)
            found[method] = difference(other.final, states)
            found["energy"] = max(found["energy"], (other.audit.energy_error_relative, method))
        if "--c" in sys.argv:
            found["C"] = difference(in_c(net), states)
        for key, (size, where) in found.items():
            worst[key] = max(worst[key], size)
            if size > 1e-5:
                print(f"  seed {seed}: {key} {size:.2e} {where}")
        row = "  ".join(f"{found[k][0]:8.1e}" if k in found else " " * 8 for k in worst)
        print(f"{seed:4d}  {run.audit.switches:8d}  {row}  {time.perf_counter() - began:7.1f}", flush=True)
    print(f"{count} networks, {switches} switches; worst: " + ", ".join(f"{k} {x:.1e}" for k, x in worst.items()))


if __name__ == "__main__":
    main()
