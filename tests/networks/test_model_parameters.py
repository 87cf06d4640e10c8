"""Numbers of models in networks as parameters: of runs, exported C and FMUs; the motion is that of a model rebuilt."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_network_export import Library

import polybody as pb

compiled = pytest.mark.skipif(shutil.which("gcc") is None, reason="exported C is compiled and run: no C compiler")


def arm(mass: float = 0.8, reach: float = 0.1, length: float = 0.4, resistance: float = 2.0) -> pb.Model:
    build = pb.Builder("arm", gravity=(0, -9.81, 0))
    build.body("upper", 1.2, (0.2, 0, 0), (0.001, 0.02, 0.02))
    build.body("lower", mass, (reach, 0, 0), (0.001, 0.01, 0.01))
    at = np.eye(4)
    at[0, 3] = length
    build.joint("s", "revolute", "world", "upper", damping=0.1, limits=(-0.9, 2.0))
    build.joint("e", "revolute", "upper", "lower", at, damping=0.05)
    build.motor("e", resistance, 1e-2, 0.2, gear=5.0, rotor_inertia=1e-4, name="m")
    return build.model()


def net_of(model: pb.Model) -> pb.Network:
    net = pb.Network("net")
    net.mechanism("arm", model)
    net.part("V", "voltage_source", "arm.m", voltage=3.0)
    return net


PATTERNS = ["arm.lower.mass", "arm.lower.com.x", "arm.e.origin.x", "arm.m.resistance", "arm.lower.inertia"]
OTHER = {"arm.lower.mass": 1.5, "arm.lower.com.x": 0.15, "arm.e.origin.x": 0.5, "arm.m.resistance": 4.0}


def changed() -> pb.Model:
    return arm(1.5, 0.15, 0.5, 4.0)


@compiled
def test_numbers_of_models_are_parameters_of_exported_c(tmp_path: Path) -> None:
    library = Library(net_of(arm()), tmp_path / "c", {}, parameters=PATTERNS)
    count = len(PATTERNS) - 1 + 6
    names = [x.decode() for x in (ctypes.c_char_p * count).in_dll(library.c, "net_parameter_names")]
    assert names[:2] == ["arm.lower.mass", "arm.lower.com.x"]
    d, s = ctypes.c_double, ctypes.byref(library.state)
    for model, values in ((arm(), {}), (changed(), OTHER)):
        library.c.net_start(s)
        for name, value in values.items():
            assert library.c.net_set(s, names.index(name), d(value)) == 0
        assert library.c.net_settle(s) == 0
        library.advance(0.5)
        run = pb.simulate(net_of(model), 0.5, rtol=1e-10, atol=1e-12)
        found = library.values()
        for key, value in run.final.items():
            assert abs(found[key] - value) < 1e-6 * (1 + abs(value)), (key, found[key], value)
    assert run.audit.switches >= 1  # a limit was met
    for name, value in (("arm.lower.mass", -1.0), ("arm.lower.mass", np.nan), ("arm.e.origin.x", np.inf)):
        assert library.c.net_set(s, names.index(name), d(value)) != 0
    assert library.c.net_set(s, names.index("arm.lower.com.x"), d(0.0)) == 0  # nothing against zero
    assert library.c.net_check_parameters(s) == 0
    assert library.c.net_set(s, names.index("arm.lower.inertia.zz"), d(0.5)) == 0  # no body has such an inertia
    assert library.c.net_check_parameters(s) == count + 1
    assert library.c.net_settle(s) != 0


def test_parameters_of_a_model_are_inputs_of_runs_by_name() -> None:
    net = net_of(arm().with_parameters("lower.mass", "lower.com.x", "e.origin.x", "m.resistance"))
    for values, model in (({}, arm()), (OTHER, changed())):
        run = pb.simulate(net, 0.3, inputs=values, rtol=1e-10, atol=1e-12)
        wanted = pb.simulate(net_of(model), 0.3, rtol=1e-10, atol=1e-12)
        for key, value in wanted.final.items():
            assert abs(run.final[key] - value) < 1e-7 * (1 + abs(value)), key
        assert run.audit.energy_error_relative < 1e-9
    with pytest.raises(pb.PolybodyError, match=r"'lower.mass' is -2 kg; expected at least 0"):
        pb.simulate(net, 0.1, inputs={"arm.lower.mass": -2.0})
    with pytest.raises(pb.PolybodyError, match=r"'arm.lower.mass' is a parameter of the model 'arm' and cannot change"):
        pb.simulate(net, 0.1, inputs={"arm.lower.mass": "1 + time"})
    space = pb.linearize(net)
    assert_allclose(space.A, pb.linearize(net_of(arm())).A, atol=1e-9)
    assert len(space.inputs) == 1


def test_what_cannot_be_a_parameter_of_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(pb.PolybodyError, match=r"no number of a part or model is 'arm.lower.mas'.*arm.lower.mass"):
        pb.export_c(net_of(arm()), tmp_path / "c", parameters=["arm.lower.mas"])
    with pytest.raises(pb.PolybodyError, match=r"'arm.s.friction.coulomb' is one of those by which joints stick"):
        pb.export_c(net_of(arm()), tmp_path / "c", parameters=["arm.s.friction.coulomb"])
    with pytest.raises(pb.PolybodyError, match=r"s.friction.coulomb.* cannot be parameters of a model whose joints"):
        pb.simulate(net_of(arm().with_parameters("s.friction.coulomb")), 0.1)


@compiled
def test_numbers_of_models_are_tunable_parameters_of_fmus(tmp_path: Path) -> None:
    fmpy = pytest.importorskip("fmpy")
    from fmpy.validation import validate_fmu

    net = net_of(arm().with_parameters("lower.mass", "lower.com.x"))
    path = str(pb.export_fmu(net, tmp_path / "net.fmu", parameters=["arm.e.origin.x", "arm.m.resistance"], binary=True))
    assert validate_fmu(path) == []
    described = {v.name: v for v in fmpy.read_model_description(path).modelVariables}
    assert all(described[name].variability == "tunable" for name in OTHER)
    wanted = pb.simulate(net_of(changed()), 0.5, rtol=1e-10, atol=1e-12).final
    found = fmpy.simulate_fmu(path, stop_time=0.5, output_interval=0.05, start_values=OTHER, output=["arm.e.q"])
    assert abs(found["arm.e.q"][-1] - wanted["arm.e.q"]) < 1e-5
    said: list[str] = []
    with pytest.raises(Exception, match="fmi3SetFloat64"):
        fmpy.simulate_fmu(path, stop_time=0.1, start_values={"arm.lower.mass": -1.0},
                          logger=lambda *text: said.append(str(text)))
    assert any("arm.lower.mass" in text for text in said)


@compiled
def test_a_length_in_a_loop_is_a_parameter_of_exported_c(tmp_path: Path) -> None:
    """A four-bar whose coupler is made longer: loops are closed at its new length."""
    def bar(length: float) -> pb.Model:
        build = pb.Builder("bar", gravity=(0, -9.81, 0))
        for name, mass in (("crank", 0.5), ("coupler", 1.0), ("rocker", 0.8)):
            build.body(name, mass, (0.1, 0, 0), (1e-3, 1e-2, 1e-2))
        places = {name: np.eye(4) for name in ("b", "d", "end", "tip")}
        for name, x in (("b", 0.2), ("d", 0.6), ("end", length), ("tip", 0.4)):
            places[name][0, 3] = x
        build.joint("a", "revolute", "world", "crank", damping=0.1)
        build.joint("b", "revolute", "crank", "coupler", places["b"])
        build.joint("d", "revolute", "world", "rocker", places["d"])
        build.loop("c", "revolute", "coupler", "rocker", places["end"], places["tip"])
        return build.model()

    start = bar(0.5)
    q = start.assemble([0.6, 0.3, 1.6])
    initial = dict(zip(("arm.a.q", "arm.b.q", "arm.d.q"), map(float, q), strict=True))
    net = pb.Network("net")
    net.mechanism("arm", start)
    library = Library(net, tmp_path / "c", initial, parameters=["arm.c.origin_a.x"])
    s = ctypes.byref(library.state)
    assert library.c.net_set(s, 0, ctypes.c_double(0.52)) == 0
    assert library.c.net_settle(s) == 0
    now = library.values()
    places = np.array([now[key] for key in initial])
    longer = bar(0.52)
    assert np.abs(longer.constraints.residual(places)).max() < 1e-9
    library.advance(0.4)
    other = pb.Network("net")
    other.mechanism("arm", longer)
    run = pb.simulate(other, 0.4, dict(zip(initial, places.tolist(), strict=True)), rtol=1e-10, atol=1e-12)
    for key in initial:
        assert abs(library.values()[key] - run.final[key]) < 1e-6
