"""FMUs in FMPy: valid, and moving as `pb.simulate` does."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polybody as pb

fmpy = pytest.importorskip("fmpy")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="FMUs are run from their binaries: no C compiler")


def exported(model: pb.Model, folder: Path, **options: Any) -> str:
    from fmpy.validation import validate_fmu

    path = str(pb.export_fmu(model, folder / "model.fmu", binary=True, **options))
    assert validate_fmu(path) == []
    return path


def final(path: str, kind: str, duration: float, **options: Any) -> dict[str, float]:
    result = fmpy.simulate_fmu(path, fmi_type=kind, stop_time=duration, output_interval=duration / 50,
                               relative_tolerance=1e-10, **options)
    return {name: float(result[name][-1]) for name in result.dtype.names}


def named(model: pb.Model, q: Any, v: Any) -> dict[str, float]:
    found = {}
    for joint, (at_q, at_v) in model.joint_slices().items():
        for letter, values in (("q", np.asarray(q)[at_q]), ("v", np.asarray(v)[at_v])):
            several = len(values) > 1
            found |= {f"{letter}.{joint}" + (f"[{k + 1}]" if several else ""): x for k, x in enumerate(values)}
    return found


def agree(found: dict[str, float], wanted: dict[str, float], tolerance: float) -> None:
    for name, value in wanted.items():
        assert abs(found[name] - value) < tolerance, (name, found[name], value)


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_trees_move_as_in_simulate(kind: str, tmp_path: Path) -> None:
    model = pb.load("double-pendulum")
    path = exported(model, tmp_path, q0=[1.0, 0.5])
    run = pb.simulate(model, 1.0, [1.0, 0.5], rtol=1e-11)
    agree(final(path, kind, 1.0), named(model, run.q[-1], run.v[-1]), 1e-7)


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_free_bodies_turn_as_in_simulate(kind: str, tmp_path: Path) -> None:
    build = pb.Builder("top")
    build.body("top", 2.0, (0.1, 0.2, 0), (0.1, 0.2, 0.25))
    build.joint("free", "floating", "world", "top")
    model = build.model()
    v = [1.0, 5.0, 0.3, 0.1, 0, 0]
    path = exported(model, tmp_path, v0=v)
    run = pb.simulate(model, 1.0, None, v, rtol=1e-11)
    found = final(path, kind, 1.0)
    agree(found, named(model, run.q[-1], run.v[-1]), 2e-7)
    quaternion = [found[f"q.free[{k}]"] for k in range(4, 8)]
    assert_allclose(np.linalg.norm(quaternion), 1, atol=1e-12 if kind == "CoSimulation" else 1e-7)


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_loops_stay_closed_and_move_as_in_simulate(kind: str, tmp_path: Path) -> None:
    model = pb.load("four-bar")
    q = model.assemble()
    path = exported(model, tmp_path, q0=q)
    run = pb.simulate(model, 0.5, q, rtol=1e-11)
    found = final(path, kind, 0.5)
    agree(found, named(model, run.q[-1], run.v[-1]), 1e-6)
    reached = [found[f"q.{name}"] for name in model.joint_names]
    assert np.abs(model.constraints.residual(reached)).max() < (1e-10 if kind == "CoSimulation" else 1e-6)


def slider() -> pb.Model:
    build = pb.Builder("slider")
    build.body("block", 2.0, (0, 0, 0), (0.1, 0.1, 0.1))
    build.joint("drop", "prismatic", "world", "block", limits={"lower": 0.0})
    return build.model()


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_a_block_rebounds_from_its_stop_as_the_closed_form_says(kind: str, tmp_path: Path) -> None:
    path = exported(slider(), tmp_path, q0=[1.0])
    g, e = 9.81, 0.6
    fall = np.sqrt(2 / g)
    after = 0.3  # seconds after the first impact
    speed = e * g * fall
    found = final(path, kind, fall + after, start_values={"restitution": e})
    assert_allclose(found["q.drop"], speed * after - g * after**2 / 2, atol=1e-6)
    assert_allclose(found["v.drop"], speed - g * after, atol=1e-6)


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_a_block_rests_on_its_stop_until_it_is_lifted(kind: str, tmp_path: Path) -> None:
    path = exported(slider(), tmp_path, q0=[0.1])
    times = np.linspace(0, 1.0, 501)
    lift = np.where(times < 0.6, 0.0, 2 * (9.81 + 3.0))
    signals = np.array(list(zip(times, lift, strict=True)), dtype=[("time", float), ("tau.drop", float)])
    result = fmpy.simulate_fmu(path, fmi_type=kind, stop_time=1.0, output_interval=0.01, input=signals,
                               relative_tolerance=1e-9)
    height = result["q.drop"]
    assert_allclose(height[(result["time"] > 0.2) & (result["time"] < 0.59)], 0, atol=1e-9)
    assert_allclose(height[-1], 3.0 * 0.4**2 / 2, rtol=0.03)


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_a_joint_at_rest_at_its_limit_is_stopped_when_it_is_pushed_later(kind: str, tmp_path: Path) -> None:
    """Its room is exactly zero at first: an event indicator without a level never changed its sign."""
    path = exported(slider().with_gravity((0, 0, 0)), tmp_path, q0=[0.0])
    signals = np.array([(0, 0), (0.1, 0), (0.5, -1)], dtype=[("time", float), ("tau.drop", float)])
    result = fmpy.simulate_fmu(path, fmi_type=kind, stop_time=0.5, output_interval=0.01, input=signals)
    assert_allclose(result["q.drop"], 0, atol=1e-8)


def test_parameters_are_tunable_and_derivatives_are_exact(tmp_path: Path) -> None:
    from fmpy.fmi3 import FMU3Model

    model = pb.load("two-link")
    variant = model.with_parameters(f"{model.body_names[1]}.mass", "gravity.*")
    q, v, tau = np.array([0.3, -0.7]), np.array([1.1, -0.4]), np.array([2.0, 0.5])
    path = exported(variant, tmp_path, q0=q, v0=v)
    description = fmpy.read_model_description(path)
    references = {x.name: x.valueReference for x in description.modelVariables}
    fmu = FMU3Model(guid=description.guid, modelIdentifier=description.modelExchange.modelIdentifier,
                    unzipDirectory=fmpy.extract(path), instanceName="one")
    fmu.instantiate()
    fmu.enterInitializationMode()
    fmu.setFloat64([references[f"tau.{name}"] for name in model.joint_names], list(tau))
    fmu.exitInitializationMode()
    accelerations = [references[f"der(v.{name})"] for name in model.joint_names]
    assert_allclose(fmu.getFloat64(accelerations), model.forward_dynamics(q, v, tau), rtol=1e-12)
    heavier = np.array(variant.parameters.nominal)
    heavier[0] *= 2
    fmu.setFloat64([references[name] for name in variant.parameters.names], list(heavier))
    assert_allclose(fmu.getFloat64(accelerations), variant.forward_dynamics(q, v, tau, parameters=heavier), rtol=1e-12)
    da_dq, da_dv, da_dtau = variant.forward_dynamics_derivatives(q, v, tau, parameters=heavier)
    for letter, wanted in (("q", da_dq), ("v", da_dv), ("tau", da_dtau)):
        for k, name in enumerate(model.joint_names):
            found = fmu.getDirectionalDerivative(accelerations, [references[f"{letter}.{name}"]], [1.0])
            assert_allclose(found, wanted[:, k], rtol=1e-10, atol=1e-10)
    with pytest.raises(Exception, match=r"(?i)status|fail"):
        fmu.setFloat64([references["restitution"]], [2.0])
    fmu.terminate()
    fmu.freeInstance()


def test_parameters_that_are_not_possible_are_errors_by_name(tmp_path: Path) -> None:
    from fmpy.fmi3 import FMU3Model

    build = pb.Builder("one")
    build.body("bar", 1.0, inertia=(0.1, 0.1, 0.1))
    build.joint("hinge", "revolute", "world", "bar")
    variant = build.model().with_parameters("bar.mass", "bar.inertia*")
    path = exported(variant, tmp_path)
    description = fmpy.read_model_description(path)
    variables = {x.name: x for x in description.modelVariables}
    assert float(variables["bar.mass"].min) == 0.0
    fmu = FMU3Model(guid=description.guid, modelIdentifier=description.modelExchange.modelIdentifier,
                    unzipDirectory=fmpy.extract(path), instanceName="one")
    told = []
    fmu.instantiate(logMessage=lambda _environment, status, _category, message: told.append((status, message.decode())))
    change = lambda name, value: fmu.setFloat64([variables[name].valueReference], [value])  # noqa: E731
    with pytest.raises(Exception, match=r"(?i)status|fail"):
        change("bar.mass", -1.0)
    assert told[-1][0] == 3
    assert "bar.mass" in told[-1][1]
    assert fmu.getFloat64([variables["bar.mass"].valueReference]) == [1.0]  # as it was
    fmu.enterInitializationMode()
    largest = next(name for name in variables if name.startswith("bar.inertia"))
    change(largest, 1.0)  # alone it may come before the others
    with pytest.raises(Exception, match=r"(?i)status|fail"):
        fmu.exitInitializationMode()
    assert told[-1][0] == 3
    assert largest in told[-1][1]
    assert "together" in told[-1][1]
    change(largest, 0.15)
    fmu.exitInitializationMode()
    assert np.isfinite(fmu.getFloat64([variables["der(v.hinge)"].valueReference])).all()
    change(largest, 1.0)
    with pytest.raises(Exception, match=r"(?i)status|fail"):
        fmu.getFloat64([variables["der(v.hinge)"].valueReference])
    fmu.freeInstance()


def test_bad_input_writes_nothing(tmp_path: Path) -> None:
    model = pb.load("two-link")
    for wrong in ({"path": tmp_path / "x.zip"}, {"step": -1.0}, {"step": np.nan}, {"q0": [1.0]}):
        arguments = {"path": tmp_path / "x.fmu", **wrong}
        with pytest.raises(pb.InputError):
            pb.export_fmu(model, **arguments)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    pb.export_fmu(model, tmp_path / "x.fmu", binary=False)
    with pytest.raises(pb.InputError, match="exists already"):
        pb.export_fmu(model, tmp_path / "x.fmu")


def _arm(first: str, second: str, body: str = "upper") -> pb.Model:
    build = pb.Builder("arm")
    for name, parent, joint in ((body, "world", first), ("lower", body, second)):
        build.body(name, 1.0, (0.1, 0.2, 0), (0.1, 0.2, 0.25))
        build.joint(joint, "revolute", parent, name, axis=(0, 1, 0))
    return build.model()


def test_any_names_of_joints_make_valid_fmus(tmp_path: Path) -> None:
    from fmpy.validation import validate_fmu

    for k, (first, second) in enumerate([("c+b+a", "left::x"), ("my joint", "it's"), ("step", "time")]):
        path = pb.export_fmu(_arm(first, second), tmp_path / f"{k}.fmu", binary=False)
        assert validate_fmu(str(path)) == []


def test_variables_of_one_name_are_refused(tmp_path: Path) -> None:
    model = _arm("mass", "b", body="q").with_parameters("q.mass")
    with pytest.raises(pb.InputError, match=r"q\.mass"):
        pb.export_fmu(model, tmp_path / "arm.fmu", binary=False)
    assert not list(tmp_path.iterdir())
