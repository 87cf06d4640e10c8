"""C libraries and FMUs of networks, compiled and run, move as `pb.simulate` says."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polybody as pb

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="exported C is compiled and run: no C compiler")


def rectifier() -> pb.Network:
    net = pb.Network("rectifier")
    net.part("V", "voltage_source", "a", "b", voltage="10*sin(2*pi*50*time)")
    net.part("Ri", "resistor", "p", "o", resistance=2)
    for name, ends in {"D1": ("a", "p"), "D2": ("b", "p"), "D3": ("ground", "a"), "D4": ("ground", "b")}.items():
        net.part(name, "diode", *ends)
    net.part("R", "resistor", "o", resistance=100)
    net.part("C", "capacitor", "o", capacitance=1e-4)
    return net


def two_stops() -> pb.Network:
    """Two inertias that run against their stops: three modes each, one combination."""
    net = pb.Network("stops")
    for k in (1, 2):
        net.part(f"T{k}", "torque_source", f"a{k}", torque=float(k))
        net.part(f"J{k}", "inertia", f"a{k}", inertia=0.1)
        net.part(f"S{k}", "rotational_stop", f"a{k}", lower=-1, upper=0.5, stiffness=1e4, damping=3)
    return net


def varistor() -> pb.Network:
    kind = pb.Part("varistor", "electrical", {"level": "V!"}, ["v = level*i^3 + 0.1*i"], loss="v*i")
    net = pb.Network("varistor")
    net.part("V", "voltage_source", "a", voltage=5.0)
    net.part("X", kind, "a", "b", level=1)
    net.part("R", "resistor", "b", "c", resistance=3)
    net.part("C", "capacitor", "c", capacitance=1e-2)
    return net


def clutch() -> pb.Network:
    net = pb.Network("clutch")
    net.part("T", "torque_source", "a", torque="8*sin(3*time)")
    net.part("Ja", "inertia", "a", inertia=0.4)
    net.part("K", "clutch", "a", "b", capacity=2)
    net.part("Jb", "inertia", "b", inertia=0.5)
    net.part("D", "rotational_damper", "b", damping=0.3)
    return net


def driven_arm() -> pb.Network:
    arm = pb.load("two-link")
    net = pb.Network("arm")
    net.mechanism("arm", arm)
    for k, joint in enumerate(arm.joint_names):
        net.part(f"V{k}", "voltage_source", f"p{k}", voltage=3.0 - 5 * k)
        net.part(f"M{k}", "dc_motor", winding=f"p{k}", shaft=f"s{k}", torque_constant=0.06, resistance=0.9,
                 inductance=1.5e-3, rotor_inertia=3e-5)
        net.part(f"G{k}", "elastic_gear", f"s{k}", f"arm.{joint}", ratio=80, stiffness=2e3, damping=20)
    return net


def driven_loop() -> pb.Network:
    net = pb.Network("bar")
    model = pb.load("four-bar")
    net.mechanism("bar", model)
    net.part("M", "dc_motor", winding="p", shaft=f"bar.{model.joint_names[0]}", torque_constant=0.5, resistance=2,
             inductance=1e-3)
    net.part("V", "voltage_source", "p", voltage=12.0)
    return net


def spinning_top() -> pb.Network:
    build = pb.Builder("top")
    build.body("top", 2.0, (0.1, 0.2, 0), (0.1, 0.2, 0.25))
    build.joint("ball", "spherical", "world", "top")
    net = pb.Network("top")
    net.mechanism("top", build.model())
    net.part("D", "rotational_damper", next(iter(net.nodes)), damping=0.1)
    return net


CASES: dict[str, tuple[Callable[[], pb.Network], float, dict[str, float]]] = {
    "rectifier": (rectifier, 0.03, {}),
    "stops": (two_stops, 1.0, {"J1.w": -0.5}),
    "varistor": (varistor, 0.1, {"C.v": 1.0}),
    "clutch": (clutch, 2.0, {}),
    "arm": (driven_arm, 0.2, {}),
    "loop": (driven_loop, 0.2, {}),
    "top": (spinning_top, 0.5, {}),
}


class Library:
    """An exported library, loaded."""

    def __init__(self, net: pb.Network, folder: Path, initial: dict[str, float], **options: Any) -> None:
        pb.export_c(net, folder, initial, name="net", **options)
        done = subprocess.run(["make", "all", "test"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        self.c: Any = ctypes.CDLL(str(folder / "libnet.so"))
        text = (folder / "net.h").read_text()
        size = lambda word: int(text.split(f"NET_{word} = ")[1].split(",")[0].split(" ")[0])  # noqa: E731
        room = lambda word: max(size(word), 1) * ctypes.c_double  # noqa: E731

        class State(ctypes.Structure):
            _fields_ = [("t", ctypes.c_double), ("h", ctypes.c_double), ("x", room("NX")), ("a", room("NA")),
                        ("u", room("NU")), ("d", room("ND")), ("p", room("NP")), ("mode", ctypes.c_int)]

        self.state, self.nz = State(), size("NZ")
        self.names = {word: [x.decode() for x in (ctypes.c_char_p * size(n)).in_dll(self.c, f"net_{word}_names")]
                      for word, n in (("state", "NX"), ("observed", "NZ"))}
        assert self.c.net_start(ctypes.byref(self.state)) == 0

    def values(self) -> dict[str, float]:
        z = (ctypes.c_double * max(self.nz, 1))()
        assert self.c.net_observe(ctypes.byref(self.state), z) == 0
        return dict(zip(self.names["observed"], z, strict=False)) | dict(zip(self.names["state"], self.state.x,
                                                                             strict=False))

    def advance(self, until: float) -> None:
        d = ctypes.c_double
        status = self.c.net_advance(ctypes.byref(self.state), d(until), d(1e-3), d(1e-10), d(1e-12))
        assert status == 0, status

    def steps(self, until: float, count: int) -> None:
        for _ in range(count):
            assert self.c.net_step(ctypes.byref(self.state), ctypes.c_double(until / count)) == 0


@pytest.mark.parametrize("name", CASES)
def test_exported_c_moves_as_simulate(name: str, tmp_path: Path) -> None:
    make, duration, initial = CASES[name]
    net = make()
    run = pb.simulate(net, duration, initial, rtol=1e-10, atol=1e-12,
                      method="radau" if name == "rectifier" else "dop853")
    wanted = run.final
    library = Library(net, tmp_path / "c", initial)
    library.advance(duration)
    found = library.values()
    for key, value in wanted.items():
        assert abs(found[key] - value) < 2e-6 * (1 + abs(value)), (key, found[key], value)
    library.c.net_start(ctypes.byref(library.state))
    if name == "rectifier":  # ideal diodes are stiff: an explicit method needs steps below R C of theirs
        return
    library.steps(duration, 4000)
    found = library.values()
    for key, value in wanted.items():
        assert abs(found[key] - value) < 2e-6 * (1 + abs(value)), (key, found[key], value)


@pytest.mark.parametrize("name", CASES)
def test_exported_fmus_move_as_simulate(name: str, tmp_path: Path) -> None:
    fmpy = pytest.importorskip("fmpy")
    from fmpy.validation import validate_fmu

    make, duration, initial = CASES[name]
    net = make()
    path = str(pb.export_fmu(net, tmp_path / "net.fmu", initial, binary=True))
    assert validate_fmu(path) == []
    run = pb.simulate(net, duration, initial, rtol=1e-10, atol=1e-12,
                      method="radau" if name == "rectifier" else "dop853")
    for kind in ("CoSimulation", "ModelExchange"):
        found = fmpy.simulate_fmu(path, fmi_type=kind, stop_time=duration, output_interval=duration / 20,
                                  relative_tolerance=1e-9)
        told = [key for key in found.dtype.names if key in run.names]
        assert len(told) > 2
        for key in told:
            value = run.final[key]
            assert abs(found[key][-1] - value) < 2e-5 * (1 + abs(value)), (kind, key, found[key][-1], value)


def test_sources_are_inputs_of_exported_libraries(tmp_path: Path) -> None:
    net = pb.Network("rc")
    net.part("V", "voltage_source", "a", voltage=lambda t: 4.0)
    net.part("R", "resistor", "a", "b", resistance=2)
    net.part("C", "capacitor", "b", capacitance=0.1)
    library = Library(net, tmp_path / "c", {"C.v": 1.0})
    assert library.state.u[0] == 4.0
    library.state.u[0] = 7.0
    library.advance(0.3)
    assert_allclose(library.values()["C.v"], 7 - 6 * np.exp(-0.3 / 0.2), rtol=1e-9)
    library.state.u[0] = 0.0  # held from here
    library.advance(0.5)
    assert_allclose(library.values()["C.v"], (7 - 6 * np.exp(-1.5)) * np.exp(-1.0), rtol=1e-9)


def test_an_input_whose_rate_is_needed_stays_constant_and_is_named(tmp_path: Path) -> None:
    net = pb.Network("parallel")
    net.part("V", "voltage_source", "a", voltage=3.0)
    net.part("C", "capacitor", "a", capacitance=0.1)
    net.part("R", "resistor", "a", "b", resistance=1.0)
    net.part("D", "capacitor", "b", capacitance=0.5)
    with pytest.warns(pb.PolybodyWarning, match="time derivative of 'V.voltage'"):
        pb.export_c(net, tmp_path / "c")
    with pytest.raises(pb.PolybodyError, match=r"V\.voltage.*cannot be an input"):
        pb.export_c(net, tmp_path / "d", inputs=["V.voltage"])


def test_combinations_of_modes_beyond_reason_are_refused_by_name(tmp_path: Path) -> None:
    """Modes that decide what is a state: x is given in one, and moves on in the other."""
    kind = pb.Part("latch", {"out": "signal"}, {}, ["out.x = x"], {"x": ""}, modes={
        "moving": {"equations": ["der(x) = 1"], "to": {"held": "x > 1"}},
        "held": {"equations": ["x = 1"], "to": {"moving": "time > 5"}}})  # fmt: skip
    net = pb.Network("latches")
    for k in range(2):
        net.part(f"L{k}", kind, out=f"n{k}")
    with pytest.raises(pb.PolybodyError, match=r"L0, L1.*more than 2 combinations of modes.*combinations=4"):
        pb.export_c(net, tmp_path / "c", combinations=2)


def test_clutches_between_inertias_are_data(tmp_path: Path) -> None:
    """A chain of six clutches: 3^6 combinations, written as one."""
    net = pb.Network("clutches")
    net.part("T", "torque_source", "n0", torque="6*sin(3*time)")
    net.part("J", "inertia", "n0", inertia=0.4)
    for k in range(6):
        net.part(f"K{k}", "clutch", f"n{k}", f"n{k + 1}", capacity=3.0 - 0.4 * k - 0.03 * k * k)
        net.part(f"J{k}", "inertia", f"n{k + 1}", inertia=0.5)
        net.part(f"D{k}", "rotational_damper", f"n{k + 1}", damping=0.1)
    net.part("T6", "torque_source", "n6", torque="-4*sin(5*time)")
    library = Library(net, tmp_path / "c", {})
    library.advance(3.0)
    run = pb.simulate(net, 3.0, rtol=1e-10, atol=1e-12)
    assert run.audit.switches > 6
    found = library.values()
    for key, value in run.final.items():
        assert abs(found[key] - value) < 1e-7 * (1 + abs(value)), (key, found[key], value)


def test_modes_of_many_diodes_are_data(tmp_path: Path) -> None:
    """A voltage multiplier: 2^4 combinations, written as one."""
    net = pb.Network("multiplier")
    net.part("V", "voltage_source", "v", voltage="10*sin(2*pi*50*time)")
    net.part("Rs", "resistor", "v", "n0", resistance=5)
    for k in range(4):
        net.part(f"D{k}", "diode", "ground" if k == 0 else f"n{k}", f"n{k + 1}", resistance=0.1, conductance=1e-4)
        net.part(f"C{k}", "capacitor", "n0" if k == 0 else f"n{k - 1}" if k > 1 else "ground", f"n{k + 1}",
                 capacitance=1e-4)
        net.part(f"R{k}", "resistor", f"n{k + 1}", resistance=1e4)
    library = Library(net, tmp_path / "c", {}, combinations=2)
    library.advance(0.02)
    wanted = pb.simulate(net, 0.02, method="radau", rtol=1e-8, atol=1e-10)
    assert wanted.audit.switches > 4
    found = library.values()
    for key in (f"C{k}.v" for k in range(4)):
        assert abs(found[key] - wanted.final[key]) < 1e-4, (key, found[key], wanted.final[key])


def test_files_with_networks_are_exported_on_the_command_line(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from polybody.cli import app

    file = tmp_path / "rc.yaml"
    file.write_text("polybody: 1\nname: rc\nnetwork:\n  parts:\n"
                    "    V: {kind: voltage_source, nodes: a, voltage: 2 V}\n"
                    "    R: {kind: resistor, nodes: [a, b], resistance: 2 ohm}\n"
                    "    C: {kind: capacitor, nodes: b, capacitance: 0.1 F}\n  initial: {C.v: 1}\n")
    done = CliRunner().invoke(app, ["export-c", str(file), str(tmp_path / "c")])
    assert done.exit_code == 0, done.output
    assert subprocess.run(["make", "test"], cwd=tmp_path / "c", capture_output=True).returncode == 0
    done = CliRunner().invoke(app, ["export-c", str(file), str(tmp_path / "p"), "--parameter", "R.resistance"])
    assert done.exit_code == 0, done.output
    assert "rc_set" in (tmp_path / "p" / "rc.h").read_text()
    done = CliRunner().invoke(app, ["export-fmu", str(file), str(tmp_path / "rc.fmu"), "--parameter", "*", "--json"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "rc.fmu").stat().st_size > 1000
    done = CliRunner().invoke(app, ["export-c", str(file), str(tmp_path / "e"), "-q", "mass_matrix"])
    assert done.exit_code != 0
    done = CliRunner().invoke(app, ["export-c", str(file), str(tmp_path / "f"), "--limits", "ignore"])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["export-fmu", "two-link", str(tmp_path / "f.fmu"), "--friction", "smooth"])
    assert done.exit_code != 0


def geared(ratio: float = 3.0, inertia: float = 0.1, damping: float = 0.2) -> pb.Network:
    """Two inertias on a gear, so one state; the ratio stands in equations that are differentiated."""
    net = pb.Network("geared")
    net.part("T", "torque_source", "a", torque=1.0)
    net.part("Ja", "inertia", "a", inertia=inertia)
    net.part("G", "gear", "a", "b", ratio=ratio)
    net.part("Jb", "inertia", "b", inertia=0.5)
    net.part("D", "rotational_damper", "b", damping=damping)
    net.part("S", "rotational_stop", "b", lower=-1, upper=0.2, stiffness=1e3, damping=1)
    return net


def test_parameters_of_exported_libraries_are_numbers_of_parts(tmp_path: Path) -> None:
    library = Library(geared(), tmp_path / "c", {}, parameters=["G.ratio", "Ja.inertia", "*.damping"])
    names = [x.decode() for x in (ctypes.c_char_p * 4).in_dll(library.c, "net_parameter_names")]
    assert names == ["G.ratio", "Ja.inertia", "D.damping", "S.damping"]
    library.advance(1.0)
    wanted = pb.simulate(geared(), 1.0, rtol=1e-10, atol=1e-12).final
    assert_allclose(library.values()["Jb.w"], wanted["Jb.w"], rtol=1e-6)
    d, s = ctypes.c_double, ctypes.byref(library.state)
    library.c.net_start(s)
    for k, value in ((0, 2.0), (1, 0.3), (2, 0.6)):
        assert library.c.net_set(s, k, d(value)) == 0
    assert library.c.net_settle(s) == 0
    library.advance(1.0)
    other = pb.simulate(geared(2.0, 0.3, 0.6), 1.0, rtol=1e-10, atol=1e-12).final
    for key in ("Ja.w", "Jb.w", "S.angle", "G.input.t"):
        assert_allclose(library.values()[key], other[key], rtol=1e-6, atol=1e-8)
    for k, value in ((0, np.nan), (0, 0.0), (9, 1.0), (-1, 1.0), (1, np.inf)):
        assert library.c.net_set(s, k, d(value)) != 0, (k, value)


def test_what_cannot_be_a_parameter_is_named(tmp_path: Path) -> None:
    with pytest.raises(pb.PolybodyError, match=r"no number of a part or model is 'G.ration'.*G.ratio"):
        pb.export_c(geared(), tmp_path / "c", parameters=["G.ration"])
    net = driven_arm()
    net.part("X", "dc_motor", winding="p0", shaft="q", torque_constant=0.06, resistance=0.9)
    net.part("Jx", "inertia", "q", inertia=1.0)
    with pytest.raises(pb.PolybodyError, match=r"'X.inductance' is 0"):
        pb.export_c(net, tmp_path / "c", parameters=["X.inductance"])


def test_parameters_and_derivatives_of_exported_fmus(tmp_path: Path) -> None:
    fmpy = pytest.importorskip("fmpy")
    from fmpy.validation import validate_fmu

    path = str(pb.export_fmu(geared(), tmp_path / "net.fmu", parameters=["G.ratio", "D.damping"], binary=True))
    assert validate_fmu(path) == []
    described = {v.name: v for v in fmpy.read_model_description(path).modelVariables}
    assert described["G.ratio"].variability == "tunable"
    wanted = pb.simulate(geared(2.0, damping=0.6), 1.0, rtol=1e-10, atol=1e-12).final
    for kind in ("CoSimulation", "ModelExchange"):
        found = fmpy.simulate_fmu(path, fmi_type=kind, stop_time=1.0, output_interval=0.05, relative_tolerance=1e-9,
                                  start_values={"G.ratio": 2.0, "D.damping": 0.6}, output=["Jb.w", "S.angle"])
        assert abs(found["Jb.w"][-1] - wanted["Jb.w"]) < 2e-5
    with pytest.raises(Exception, match="fmi3SetFloat64"):
        fmpy.simulate_fmu(path, stop_time=0.1, start_values={"G.ratio": 0.0})


@pytest.mark.parametrize("name", ["varistor", "arm", "loop"])
def test_directional_derivatives_of_fmus_are_differences_of_their_answers(name: str, tmp_path: Path) -> None:
    fmpy = pytest.importorskip("fmpy")
    from fmpy.fmi3 import FMU3Model

    make, _, initial = CASES[name]
    path = str(pb.export_fmu(make(), tmp_path / "net.fmu", initial, binary=True))
    told = fmpy.read_model_description(path)
    folder = fmpy.extract(path, unzipdir=str(tmp_path / "fmu"))
    fmu = FMU3Model(guid=told.guid, unzipDirectory=folder, modelIdentifier=told.modelExchange.modelIdentifier)
    fmu.instantiate()
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    fmu.enterContinuousTimeMode()
    by_name = {v.name: v for v in told.modelVariables}
    states = [by_name[v.name.removeprefix("der(").removesuffix(")")].valueReference for v in told.modelVariables
              if v.derivative is not None]
    inputs = [v.valueReference for v in told.modelVariables if v.causality == "input"]
    rates = [v.valueReference for v in told.modelVariables if v.derivative is not None]
    outputs = [v.valueReference for v in told.modelVariables if v.causality == "output" and
               v.variability == "continuous"]
    unknowns, knowns = [*rates, *outputs], [*states, *inputs]
    start = np.array(fmu.getFloat64(knowns))
    rng = np.random.default_rng(3)
    start = start + 0.05 * rng.normal(size=len(start)) if name != "loop" else start
    seed = rng.normal(size=len(knowns))
    found = np.empty(2)

    def answer(values: np.ndarray) -> np.ndarray:
        fmu.setFloat64(knowns, list(values))
        return np.array(fmu.getFloat64(unknowns))

    h = 1e-6
    difference = (answer(start + h * seed) - answer(start - h * seed)) / (2 * h)
    answer(start)
    found = np.array(fmu.getDirectionalDerivative(unknowns, knowns, list(seed)))
    assert_allclose(found, difference, rtol=1e-5, atol=1e-5 * (1 + np.abs(difference).max()))
    fmu.terminate()
    fmu.freeInstance()


def cartesian() -> pb.Network:
    """A pendulum in Cartesian coordinates, as one part: index three."""
    kind = pb.Part("pendulum", {"": "signal"}, {}, ["x = 0", "der(px) = vx", "der(py) = vy", "der(vx) = -px*pull",
                   "der(vy) = -py*pull - 9.81", "px*px + py*py = 1"],
                   {"px": ("m", 1.0), "py": ("m", 0.0), "vx": "m/s", "vy": "m/s", "pull": ""})  # fmt: skip
    net = pb.Network("cartesian")
    net.part("P", kind, "n")
    return net


def swung(net: pb.Network) -> tuple[float, dict[str, float]]:
    """(duration, start): over every singular place of a choice of states, several times."""
    return (1.2, {"rod.px": 0.0, "rod.py": -0.7, "mx.v": 8.4}) if net.name == "pendulum" else (2.0, {"P.px": 0.8,
                                                                                                   "P.py": -0.6})


@pytest.mark.parametrize("which", ["pendulum", "cartesian"])
def test_exported_constraints_need_no_choice_of_states(which: str, tmp_path: Path) -> None:
    from test_choice_of_states import pendulum

    net = pendulum() if which == "pendulum" else cartesian()
    duration, start = swung(net)
    library = Library(net, tmp_path / "c", start)
    library.advance(duration)
    run = pb.simulate(net, duration, start, rtol=1e-11, atol=1e-12)
    assert run.audit.reselections >= 1
    found = library.values()
    for key, value in run.final.items():
        assert abs(found[key] - value) < 1e-6 * (1 + abs(value)), (key, found[key], value)
    library.c.net_start(ctypes.byref(library.state))
    library.steps(duration, 4000)
    found = library.values()
    for key, value in run.final.items():
        assert abs(found[key] - value) < 1e-6 * (1 + abs(value)), (key, found[key], value)


@pytest.mark.parametrize("which", ["pendulum", "cartesian"])
def test_fmus_of_constraints_among_states_are_put_back_to_them(which: str, tmp_path: Path) -> None:
    fmpy = pytest.importorskip("fmpy")
    from fmpy.validation import validate_fmu
    from test_choice_of_states import pendulum

    net = pendulum() if which == "pendulum" else cartesian()
    duration, start = swung(net)
    path = str(pb.export_fmu(net, tmp_path / "net.fmu", start, binary=True))
    assert validate_fmu(path) == []
    run = pb.simulate(net, duration, start, rtol=1e-11, atol=1e-12)
    x, y = ("rod.px", "rod.py") if which == "pendulum" else ("P.px", "P.py")
    for kind in ("CoSimulation", "ModelExchange"):
        found = fmpy.simulate_fmu(path, fmi_type=kind, stop_time=duration, output_interval=duration / 20,
                                  relative_tolerance=1e-10)
        for key in (x, y):
            assert abs(found[key][-1] - run.final[key]) < 1e-4, (kind, key, found[key][-1], run.final[key])
        length = found[x] ** 2 + found[y] ** 2
        assert_allclose(length, length[0], rtol=1e-6)


def test_exported_reduced_sub_networks_with_closed_circuits_move_as_simulate(tmp_path: Path) -> None:
    """A loop inside of a reduced sub-network, and another through the ground."""
    import test_pieces as pieces

    def net(reduced: bool) -> pb.Network:
        made = pb.Network("leg", gravity=(0, -9.81, 0))
        made.ground(pin=(0.1, 0.2, 0), far=(0.75, 0.3, 0))
        made.use("a", pieces.leg(pieces.closed), reduced=reduced)
        made.joint("first", "revolute", "world.pin", "a.upper.pin", damping=0.1)
        made.body("link", 0.3, (0.1, 0, 0), (1e-3, 1e-3, 1e-3), ports={"p": (0, 0, 0), "q": (0.3, 0, 0)})
        made.joint("hang", "revolute", "world.far", "link.p")
        made.joint("last", "spherical", "link.q", "a.lower.tip")
        return made

    library = Library(net(True), tmp_path / "c", {})
    library.advance(0.1)
    found = library.values()
    for reduced in (True, False):
        run = pb.simulate(net(reduced), 0.1, rtol=1e-9, atol=1e-11)
        for key, value in run.final.items():
            assert abs(found[key] - value) < 1e-6 * (1 + abs(value)), (key, found[key], value)
