"""Networks in files: what they say, what is wrong in them with its line, and the commands."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import polybody as pb
from polybody.cli import app
from polybody.description.mechanism_file.reader import schema

DRIVE = """\
polybody: 1
name: drive
network:
  kinds:
    varistor: {ports: electrical, parameters: {level: V!, amp: [A, 0.1]}, equations: ["i = amp*(v/level)^3"], loss: v*i}
  networks:
    filter:
      parts:
        R: {kind: resistor, nodes: [a, b], resistance: 1 kohm}
        C: {kind: capacitor, nodes: b, capacitance: 1 uF}
      terminals: {in: a, out: b}
  parts:
    supply: {kind: voltage_source, nodes: plus, voltage: 24 V}
    motor:
      {kind: dc_motor, winding: plus, shaft: axle, torque_constant: 0.05 N m/A, resistance: 1.2 ohm, inductance: 3 mH}
    flywheel: {kind: inertia, nodes: axle, inertia: 2e-4 kg m^2}
    stage: {use: filter, in: plus, out: smooth}
    limiter: {kind: varistor, nodes: smooth, level: 5}
  initial: {flywheel.w: 10}
"""


@pytest.fixture
def drive(tmp_path):
    path = tmp_path / "drive.yaml"
    path.write_text(DRIVE, encoding="utf-8")
    return path


def test_file_is_the_network_built_in_python(drive):
    run = pb.simulate(pb.load_network(drive), 0.1)
    net = pb.Network("drive")
    net.part("supply", "voltage_source", "plus", voltage=24)
    net.part("motor", "dc_motor", winding="plus", shaft="axle", torque_constant=0.05, resistance=1.2, inductance=3e-3)
    net.part("flywheel", "inertia", "axle", inertia=2e-4)
    wanted = pb.simulate(net, 0.1, {"flywheel.w": 10})
    np.testing.assert_allclose(run["flywheel.w"], wanted["flywheel.w"], rtol=1e-8)
    assert run["flywheel.w"][0] == 10
    assert 0 < run["limiter.v"][-1] < 24


def test_file_follows_the_published_schema():
    jsonschema.validate(yaml.safe_load(DRIVE), schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"polybody": 1, "network": {"parts": {"R": {"nodes": "a"}}}}, schema())


def test_every_mistake_is_reported_with_its_line(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("""\
polybody: 1
name: bad
network:
  kinds:
    odd: {ports: electrical, equations: [v = i, i = 0]}
  parts:
    supply: {kind: voltage_source, nodes: plus, voltage: 24 N}
    motor: {kind: dc_motr, winding: plus, shaft: axle}
    sound: {kind: resistor, nodes: a, resistance: 1}
    wheel: {kind: inertia, nodes: a, inertia: 1}
    load: {kind: inertia, nodes: axle, inertia: 1 ohm}
    again: {use: nothing}
""", encoding="utf-8")
    with pytest.raises(pb.InputError) as told:
        pb.load_network(path)
    said = {5: "2 equations", 7: "not in N", 8: "did you mean 'dc_motor'", 10: "is electrical, by 'sound'",
            11: r"in kg m\^2, not in ohm", 12: "'nothing'"}
    for line, words in said.items():
        assert f"bad.yaml:{line}:" in str(told.value)
        assert told.match(words)


def test_joints_of_the_same_file_are_nodes_and_the_model_says_what_it_leaves_out(tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text("""\
polybody: 1
name: arm
gravity: [0, -9.81, 0]
bodies:
  rod: {mass: 1, com: [0.5, 0, 0], inertia: [0.01, 0.08, 0.08]}
joints:
  hinge: {kind: revolute, parent: world, child: rod}
network:
  parts:
    brake: {kind: rotational_damper, nodes: hinge, damping: 0.5 N m s/rad}
""", encoding="utf-8")
    run = pb.simulate(pb.load_network(path), 0.5)
    with pytest.warns(pb.PolybodyWarning, match="not in the model; pb.load_network"):
        bare = pb.load(path)
    assert bare.description.network["parts"]["brake"]["damping"] == "0.5 N m s/rad"
    build = pb.Builder("arm", gravity=(0, -9.81, 0))
    build.body("rod", 1, (0.5, 0, 0), (0.01, 0.08, 0.08))
    build.joint("hinge", "revolute", "world", "rod", damping=0.5)
    wanted = pb.simulate(build.model(), 0.5, times=run.t)
    np.testing.assert_allclose(run["hinge.q"], wanted.q[:, 0], atol=1e-8)
    bare.save(tmp_path / "again.yaml")
    assert pb.load_network(tmp_path / "again.yaml").components["brake"].values["damping"] == 0.5


def test_network_without_bodies_is_no_model(drive):
    with pytest.raises(pb.InputError, match=r"pb\.load_network reads it"):
        pb.load(drive)


def test_commands_simulate_draw_and_print(drive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    done = runner.invoke(app, ["simulate", str(drive), "-t", "0.05", "-o", "run", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["audit"]["trusted"]
    table = (tmp_path / "run" / "values.csv").read_text().splitlines()
    assert table[0].startswith("time,")
    assert "flywheel.w" in table[0]
    assert (tmp_path / "run" / "report.html").exists()
    files = ["--svg", "g.svg", "--blocks", "b.svg", "--write", "e.html"]
    done = runner.invoke(app, ["network", str(drive), "--equations", *files])
    assert done.exit_code == 0, done.output
    for words in ("motor.winding.v = der(motor.winding.i)*motor.inductance", "an across driver: always in the tree",
                  "limiter.v − stage.C.v = 0", "index 1"):
        assert words in done.stdout
    assert "<math>" in (tmp_path / "e.html").read_text(encoding="utf-8")
    for name in ("g.svg", "b.svg"):
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("<svg")
    refused = runner.invoke(app, ["simulate", str(drive), "--q", "0", "-o", "other"])
    assert refused.exit_code != 0


@pytest.mark.parametrize(
    ("source", "message"),
    [("a" * 900, "no model|no file"), ("../elsewhere.yaml", "outside the folder"), ("nofile.yaml", "no file")],
)
def test_models_of_a_network_are_shipped_or_beside_its_file(tmp_path, source: str, message: str) -> None:
    """Found by the fuzzers: a name that is too long for the system raised OSError."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "elsewhere.yaml").write_text("polybody: 1\nname: m\n")
    path = inner / "net.yaml"
    path.write_text(f'polybody: 1\nname: n\nnetwork:\n  models: {{arm: "{source}"}}\n')
    with pytest.raises(pb.InputError, match=message):
        pb.load_network(path)
    path.write_text('polybody: 1\nname: n\nnetwork:\n  models: {arm: "two-link"}\n')
    assert pb.load_network(path).name == "n"


CELL = """\
polybody: 1
name: cell
parameters: {R0: 0.9, l: 0.4}
network:
  networks:
    axis:                                   # a pendulum with its motor: a model inside a sub-network
      models:
        pendulum:
          gravity: [0, -9.81, 0]
          bodies: {rod: {mass: 1.5, com: [=l/2, 0, 0], inertia: [0.001, 0.02, 0.02]}}
          joints: {pin: {kind: revolute, parent: world, child: rod}}
      parts:
        M: {kind: dc_motor, winding: p, shaft: s, torque_constant: 0.06 N m/A, resistance: =2*R0, inductance: 2 mH}
        G: {kind: elastic_gear, input: s, output: pendulum.pin, ratio: 20, stiffness: 300, damping: 1}
      terminals: {supply: p, joint: pendulum.pin}
      initial: {pendulum.pin.q: 0.3, G.twist: 0}
    filter:
      parts:
        R: {kind: resistor, nodes: [a, b], resistance: 2 ohm}
        C: {kind: capacitor, nodes: b, capacitance: 1 mF}
      terminals: {in: a, out: b}
  parts:
    V: {kind: voltage_source, nodes: plus, voltage: 12 V}
    stage: {multiport: filter, in: plus, out: smooth}
    left: {use: axis, supply: smooth, joint: left_joint}
    right: {use: axis, supply: smooth, joint: right_joint}
    brake: {kind: rotational_damper, nodes: right_joint, damping: 0.5}
"""


def test_sub_networks_of_a_file_have_models_start_values_and_constants(tmp_path):
    path = tmp_path / "cell.yaml"
    path.write_text(CELL, encoding="utf-8")
    jsonschema.validate(yaml.safe_load(CELL), schema())
    run = pb.simulate(pb.load_network(path), 0.2)
    build = pb.Builder("pendulum", gravity=(0, -9.81, 0))
    build.body("rod", 1.5, (0.2, 0, 0), (0.001, 0.02, 0.02))
    build.joint("pin", "revolute", "world", "rod")
    net, model = pb.Network("by hand"), build.model()
    net.part("V", "voltage_source", "plus", voltage=12)
    net.part("R", "resistor", "plus", "smooth", resistance=2)
    net.part("C", "capacitor", "smooth", capacitance=1e-3)
    for k in "ab":
        net.mechanism(k, model)
        net.part(f"M{k}", "dc_motor", winding="smooth", shaft=f"s{k}", torque_constant=0.06, resistance=1.8,
                 inductance=2e-3)
        net.part(f"G{k}", "elastic_gear", f"s{k}", f"{k}.pin", ratio=20, stiffness=300, damping=1)
    net.part("brake", "rotational_damper", "b.pin", damping=0.5)
    wanted = pb.simulate(net, 0.2, {"a.pin.q": 0.3, "b.pin.q": 0.3}).final
    for mine, theirs in (("left.pendulum.pin.q", "a.pin.q"), ("right.pendulum.pin.q", "b.pin.q"),
                         ("left.M.winding.i", "Ma.winding.i"), ("V.i", "V.i")):
        assert run.final[mine] == pytest.approx(wanted[theirs], rel=1e-6), mine


@pytest.mark.parametrize(
    ("line", "text", "wrong"),
    [(10, "{rod: {mass: 1.5, ", "{rod: {mass: -1.5, "),
     (11, "child: rod", "child: rad"),
     (13, "0.06 N m/A", "0.06 V"),
     (14, "output: pendulum.pin", "output: p"),
     (15, "joint: pendulum.pin", "joint: pendulum.pen"),
     (24, "{multiport: filter", "{multiport: filters"),
     (25, "supply: smooth, joint", "supplies: smooth, joint")],
)  # fmt: skip
def test_what_is_wrong_inside_a_sub_network_is_told_with_its_line(tmp_path, line, text, wrong):
    path = tmp_path / "cell.yaml"
    assert text in CELL
    path.write_text(CELL.replace(text, wrong), encoding="utf-8")
    with pytest.raises(pb.PolybodyError, match=f"cell.yaml:{line}:"):
        pb.load_network(path)


@pytest.mark.parametrize(
    ("part", "said"),
    [("{use: {a: 1}}", "which is not defined above"),
     ("{use: [s], x: b}", "which is not defined above"),
     ("{use: s, x: {b: 1}}", "must be the name of a node"),
     ("{use: s, x: [b]}", "must be the name of a node"),
     ("{kind: resistor, nodes: {b: 1}, resistance: 1}", "got a mapping")],
)  # fmt: skip
def test_mappings_and_lists_where_names_belong_are_reported(tmp_path, part, said):
    path = tmp_path / "odd.yaml"
    inner = "{parts: {r: {kind: resistor, nodes: [a, ground], resistance: 1}}, terminals: {x: a}}"
    source = "{kind: voltage_source, nodes: [b, ground], voltage: 1}"
    path.write_text(f"polybody: 1\nname: n\nnetwork:\n  networks: {{s: {inner}}}\n  parts:\n    v: {source}\n"
                    f"    p: {part}\n", encoding="utf-8")  # fmt: skip
    with pytest.raises(pb.PolybodyError, match=f"odd.yaml:7: .*{said}"):
        pb.load_network(path)


def test_sub_networks_that_multiply_are_refused_before_they_fill_the_memory(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("polybody.networks.network.MOST_PARTS", 50)
    ten = [", ".join(f"x{j}: {{use: n{k}, in: a}}" for j in range(10)) for k in range(3)]
    copies = "\n".join(f"    n{k + 1}: {{parts: {{{uses}}}, terminals: {{in: a}}}}" for k, uses in enumerate(ten))
    first = "    n0: {parts: {R: {kind: resistor, nodes: a, resistance: 1}}, terminals: {in: a}}"
    path = tmp_path / "many.yaml"
    use = "  parts: {y: {use: n3, in: b}}"
    path.write_text(f"polybody: 1\nname: many\nnetwork:\n  networks:\n{first}\n{copies}\n{use}\n")
    with pytest.raises(pb.InputError, match="at most 50 are assembled"):
        pb.load_network(path)
