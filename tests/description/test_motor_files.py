"""Motors in Builder, mechanism file, schema and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import polybody as pb
from polybody.cli import app
from polybody.description.mechanism_file.reader import read_mechanism, schema
from polybody.description.mechanism_file.writer import mechanism_text
from polybody.description.records import as_data, same_description
from polybody.description.urdf.writer import urdf_text

FILE = """polybody: 1
name: driven
bodies:
  upper: {mass: 2, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.001]}
  lower: {mass: 1, com: [0, 0, -0.2], inertia: [0.01, 0.01, 0.001]}
joints:
  shoulder: {kind: revolute, parent: world, child: upper, axis: y}
  elbow: {kind: revolute, parent: upper, child: lower, origin: [0, 0, -0.4], axis: y}
motors:
  shoulder: {joint: shoulder, resistance: 1.5, inductance: 1e-3, torque_constant: 0.05, speed_constant: 0.05,
             rotor_inertia: 1e-4, damping: 1e-3}
  small: {joint: elbow, resistance: 2, inductance: 0, torque_constant: 0.04, speed_constant: 0.041}
transmissions:
  belt: {joints: [shoulder, elbow], matrix: [[0.01, 0], [-0.01, 0.02]]}
"""


def built() -> pb.Builder:
    build = pb.Builder("driven")
    build.body("upper", 2, (0, 0, -0.2), (0.02, 0.02, 0.001))
    build.body("lower", 1, (0, 0, -0.2), (0.01, 0.01, 0.001))
    build.joint("shoulder", "revolute", "world", "upper", axis=(0, 1, 0))
    build.joint("elbow", "revolute", "upper", "lower", (0, 0, -0.4), (0, 1, 0))
    build.motor("shoulder", 1.5, 1e-3, 0.05, None, 1e-4, 1e-3)
    build.motor("elbow", 2, 0, 0.04, 0.041, name="small")
    build.transmission("belt", ["shoulder", "elbow"], [[0.01, 0], [-0.01, 0.02]])
    return build


def test_builder_file_and_written_file_say_the_same():
    read = read_mechanism(FILE, "driven.yaml")
    assert as_data(read) == as_data(built().description())
    assert same_description(read, read_mechanism(mechanism_text(read), "again.yaml"))


def test_the_schema_knows_motors():
    jsonschema = pytest.importorskip("jsonschema")
    import yaml

    jsonschema.validate(yaml.safe_load(FILE.replace("1e-", "1.0e-")), schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(FILE.replace("resistance", "resistence")), schema())


def test_a_built_model_has_its_motors():
    model = built().model()
    motors = model.mechanism.motors
    assert motors.names == ("shoulder", "small")
    np.testing.assert_allclose(motors.speeds, np.linalg.inv([[0.01, 0], [-0.01, 0.02]]))
    system = pb.linearize(model, model.neutral(), np.zeros(2), inputs="voltage")
    assert system.states[-1] == "i_shoulder"
    assert system.inputs == ("V_shoulder", "V_small")


def test_wrong_motors_are_named_with_their_line():
    with pytest.raises(pb.InputError, match=r"driven.yaml:10: motor 'shoulder' needs 'resistance'"):
        read_mechanism(FILE.replace("resistance: 1.5, ", ""), "driven.yaml")
    build = built()
    build.joint("free", "revolute", "lower", "tip", active=False)
    build.body("tip", 1, inertia=(1, 1, 1))
    build.motor("free", 1, 0, 1)
    with pytest.raises(pb.InputError, match="motor 'free' is on joint 'free', which is not actuated"):
        build.model()
    with pytest.raises(pb.InputError, match="a motor of that name exists already"):
        build.motor("free", 1, 0, 1)
    with pytest.raises(pb.InputError, match="motor 'shoulder'"):
        urdf_text(built().description())


def test_the_command_prints_the_state_space_model(tmp_path):
    path = tmp_path / "driven.yaml"
    path.write_text(FILE)
    run = CliRunner().invoke(
        app, ["linearize", str(path), "--q", "shoulder=30deg", "--inputs", "voltage", "--measure", "lower", "--json"])
    assert run.exit_code == 0, run.output
    answer = json.loads(run.output)
    model = pb.load(path)
    system = pb.linearize(model, [np.pi / 6, 0], [0, 0], inputs="voltage", outputs=["lower"])
    np.testing.assert_allclose(answer["A"], system.A, atol=1e-12)
    np.testing.assert_allclose(answer["C"], system.C, atol=1e-12)
    plain = CliRunner().invoke(app, ["linearize", str(path)])
    assert plain.exit_code == 0
    assert "poles" in plain.output
    wrong = CliRunner().invoke(app, ["linearize", str(path), "--q", "sholder=1"])
    assert wrong.exit_code == 1
    assert "did you mean 'shoulder'" in wrong.output
    short = CliRunner().invoke(app, ["linearize", str(path), "--q", "1,2,3"])
    assert "has 3 numbers, expected 2" in short.output
