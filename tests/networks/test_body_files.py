"""Multi-port bodies and joints in `network:` files: what they say, what is wrong in them with its line, writing."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import polybody as pb
from polybody.cli import app
from polybody.description.mechanism_file.reader import schema

WALKER = """\
polybody: 1
name: walker
gravity: [0.3, -9.81, 0.4]
parameters: {L: 40cm}
network:
  networks:
    leg:
      bodies:
        upper:
          {mass: 1.2, com: [=L/2, 0, 0], inertia: [0.001, 0.02, 0.02],
           ports: {pin: [0, 0, 0], end: [=L, 0, 0], eye: [10cm, 5cm, 0]}}
        lower:
          mass: 800 g
          com: [0.1, 0, 0]
          inertia: [0.001, 0.01, 0.01]
          ports: {pin: [0, 0, 0], tip: {xyz: [0.3, 0, 0], rpy: [0, 0, 30deg]}, eye: [0.15, 0.05, 0]}
      joints:
        bend: {kind: revolute, a: upper.end, b: lower.pin, stiffness: 3 N m/rad, damping: 20 mN m s/rad, rest: 5deg}
      springs:
        S: {a: upper.eye, b: lower.eye, stiffness: 0.03 kN/m, length: 20cm, damping: 0.5}
      motors:
        M: {joint: bend, nodes: supply, torque_constant: 0.05 N m/A, resistance: 1 ohm, rotor_inertia: 1e-4, gear: 10}
      parts:
        D: {kind: rotational_damper, nodes: bend, damping: 0.01}
      terminals: {plus: supply}
  ground: {pin: [0.1, 0.2, 0], far: [1, 0.3, 0.1], rail: [0.5, 0, 0]}
  bodies:
    plate:
      {mass: 0.5, com: [0, 0.05, 0.02], inertia: [0.002, 0.003, 0.004],
       ports: {hole: [0.02, 0.03, 0], eye: [0, 0, 0], side: [0, 0.1, 0], slot: [0.1, 0, 0]}}
    wheel: {mass: 0.2, inertia: [0.002, 0.002, 0.004], ports: {hub: [0, 0, 0]}}
  parts:
    V: {kind: voltage_source, nodes: p, voltage: 3}
    a: {use: leg, plus: p, reduced: true}
    b: {use: leg, plus: p, reduced: true}
  joints:
    first:
      {kind: revolute, a: world.pin, b: a.upper.pin, axis: z, armature: 0.01, friction: {coulomb: 0.1, viscous: 0.2},
       limits: {lower: -100deg, upper: 100deg, stiffness: 50, damping: 1}}
    second: {kind: universal, a: a.lower.tip, b: b.upper.pin, damping: 0.2 N m s/rad}
    third: {kind: spherical, a: b.lower.tip, b: plate.hole, damping: 0.05}
    spin: {kind: revolute, a: plate.side, b: wheel.hub, axis: [0, 1, 0]}
  rods: {R: {a: world.far, b: plate.eye, length: 70cm}}
  guides: {G: {kind: plane, a: world.rail, b: plate.slot, axis: z}}
  gears: {follow: {follower: spin, leader: first, factor: -2, offset: 10deg}}
  relations: {T: "q['b.bend'][0] - q['a.bend'][0] - 0.2*sin(first)"}
"""


def by_hand() -> pb.Network:
    leg = pb.Network("leg")
    leg.body("upper", 1.2, (0.2, 0, 0), (0.001, 0.02, 0.02),
             ports={"pin": (0, 0, 0), "end": (0.4, 0, 0), "eye": (0.1, 0.05, 0)})
    turned = np.eye(4)
    turned[:2, :2] = [[np.cos(np.pi / 6), -0.5], [0.5, np.cos(np.pi / 6)]]
    turned[0, 3] = 0.3
    leg.body("lower", 0.8, (0.1, 0, 0), (0.001, 0.01, 0.01),
             ports={"pin": (0, 0, 0), "tip": turned, "eye": (0.15, 0.05, 0)})
    leg.joint("bend", "revolute", "upper.end", "lower.pin", stiffness=3, damping=0.02, rest=np.pi / 36)
    leg.spring("S", "upper.eye", "lower.eye", 30, 0.2, 0.5)
    leg.motor("M", "bend", ("supply", "ground"), torque_constant=0.05, resistance=1, rotor_inertia=1e-4, gear=10)
    leg.part("D", "rotational_damper", "bend", damping=0.01)
    leg.terminal("plus", "supply")
    net = pb.Network("walker", (0.3, -9.81, 0.4))
    net.ground(pin=(0.1, 0.2, 0), far=(1, 0.3, 0.1), rail=(0.5, 0, 0))
    net.body("plate", 0.5, (0, 0.05, 0.02), (0.002, 0.003, 0.004),
             ports={"hole": (0.02, 0.03, 0), "eye": (0, 0, 0), "side": (0, 0.1, 0), "slot": (0.1, 0, 0)})
    net.body("wheel", 0.2, (0, 0, 0), (0.002, 0.002, 0.004), ports={"hub": (0, 0, 0)})
    net.part("V", "voltage_source", "p", voltage=3)
    net.use("a", leg, plus="p")
    net.use("b", leg, plus="p")
    held = pb.Builder("record")
    held.body("x", 1.0)
    held.joint("first", "revolute", "world", "x", armature=0.01, friction={"coulomb": 0.1, "viscous": 0.2},
               limits={"lower": -100 * np.pi / 180, "upper": 100 * np.pi / 180, "stiffness": 50, "damping": 1})
    record = held.description().joints[0]
    net.joint("first", "revolute", "world.pin", "a.upper.pin", armature=0.01, friction=record.friction,
              limits=record.limits)
    net.joint("second", "universal", "a.lower.tip", "b.upper.pin", damping=0.2)
    net.joint("third", "spherical", "b.lower.tip", "plate.hole", damping=0.05)
    net.joint("spin", "revolute", "plate.side", "wheel.hub", axis=(0, 1, 0))
    net.rod("R", "world.far", "plate.eye", 0.7)
    net.point_in_plane("G", "world.rail", "plate.slot", (0, 0, 1))
    net.gear("follow", "spin", "first", -2, np.pi / 18)
    net.relation("T", "q['b.bend'][0] - q['a.bend'][0] - 0.2*sin(first)")
    return net


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "walker.yaml"
    file.write_text(WALKER, encoding="utf-8")
    return file


def test_bodies_of_sub_networks_in_a_file_are_those_built_in_python(path: Path) -> None:
    mine, theirs = pb.load_network(path), by_hand()
    models = mine.model(), theirs.model()
    assert models[0].joint_names == models[1].joint_names
    rng = np.random.default_rng(0)
    q = models[1].assemble(models[1].integrate(models[1].neutral(), 0.1 * rng.normal(size=models[1].nv)))
    v = models[1].assemble_velocity(q, rng.normal(size=models[1].nv))
    tau = rng.normal(size=models[1].nv)
    wanted = models[1].forward_dynamics(q, v, tau)
    assert_allclose(models[0].forward_dynamics(q, v, tau), wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    a, _ = mine.port_wrenches(q, v, tau)
    assert_allclose(a, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    ours, known = pb.linearize(mine), pb.linearize(theirs)
    assert_allclose(ours.A, known.A, rtol=1e-9, atol=1e-9 * np.abs(known.A).max())


def test_a_written_network_is_read_back_the_same(path: Path, tmp_path: Path) -> None:
    net = pb.load_network(path)
    first, second = tmp_path / "one.yaml", tmp_path / "two.yaml"
    net.save(first)
    again = pb.load_network(first)
    again.save(second)
    assert first.read_text(encoding="utf-8") == second.read_text(encoding="utf-8")
    assert set(again.reductions) == {"a", "b"}
    assert first.read_text(encoding="utf-8").count("com: [0.1, 0.0, 0.0]") == 1  # the sub-network once
    jsonschema.validate(yaml.safe_load(first.read_text(encoding="utf-8")), schema())
    q, v = net.model().neutral(), np.ones(net.model().nv)
    for model in (net.model(), again.model()):
        assert_allclose(model.tree.mass_matrix(q), net.model().tree.mass_matrix(q), rtol=0, atol=0)
        assert_allclose(model.tree.passive_forces(q, v), net.model().tree.passive_forces(q, v), rtol=0, atol=0)
    with pytest.raises(pb.InputError, match="exists already"):
        net.save(first)


def test_kinds_models_and_sources_of_a_network_built_in_python_are_written(tmp_path: Path) -> None:
    net = pb.Network("cell")
    lamp = pb.Part("lamp", "electrical", {"ohms": "ohm!", "rise": ("", 0.1)}, ["v = ohms*(1 + rise*i^2)*i"], loss="v*i")
    net.part("V", "voltage_source", "p", voltage="3*sin(10*time)")
    net.part("L", lamp, "p", "m", ohms=4)
    net.part("motor", "dc_motor", winding="m", shaft="arm.elbow", torque_constant=0.5, resistance=1)
    net.mechanism("arm", pb.load("two-link"))
    net.initial["arm.elbow.q"] = 0.3
    file = net.save(tmp_path / "cell.yaml")
    runs = [pb.simulate(each, 0.05, {"arm.elbow.q": 0.3}).final for each in (net, pb.load_network(file))]
    assert runs[0].keys() == runs[1].keys()
    for name, value in runs[0].items():
        assert runs[1][name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
    net.part("W", "current_source", "p", current=lambda t: t)
    with pytest.raises(pb.PolybodyError, match="'current' of part 'W' is a Python function"):
        net.save(tmp_path / "other.yaml")


def test_the_file_follows_the_published_schema() -> None:
    jsonschema.validate(yaml.safe_load(WALKER), schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"polybody": 1, "network": {"bodies": {"x": {"mass": 1}}}}, schema())


#: {text: (what it becomes, what stands on the line that is named where that is another, message)}
WRONG = {
    "stiffness: 3 N m/rad": ("stiffness: 3 N/m", "", r"'bend': stiffness is '3 N/m'; expected a number in N m/rad"),
    "a: upper.end": ("a: upper.ned", "", r"'upper.ned', .*upper.end"),
    "mass: 800 g": ("mass: -0.8", "lower:", "body 'lower': mass is -0.8"),
    "length: 70cm": ("length: 0", "", "rod 'R'"),
    "kind: plane": ("kind: plain", "", "guide 'G'.*plain"),
    "follower: spin": ("follower: spun", "", "gear 'follow' is on joint 'spun'.*spin"),
    "joint: bend, nodes": ("joint: bent, nodes", "", "motor 'M' is on joint 'bent'.*bend"),
    "reduced: true}\n    b": ("reduced: maybe}\n    b", "", "reduced must be true or false, got 'maybe'"),
    "kind: universal": ("kind: univrsal", "", "no kind 'univrsal' .*universal"),
    "b: plate.hole": ("b: a.upper.end", "", "'a.upper.end' is connected twice"),
    "ports: {hub: [0, 0, 0]}": ("ports: {}", "", "body 'wheel' has no port"),
    "rpy: [0, 0, 30deg]": ("rotation: [[1, 0, 0], [0, 1, 0], [0, 0, 2]]", "", "not a rotation"),
    "sin(first)": ("sin(frist)", "", "relation 'T' names joint 'frist'"),
    "inertia: [0.001, 0.01, 0.01]": ("inertia: [.nan, 0.01, 0.01]", "lower:", "body 'lower'.*finite"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_named_with_its_line(wrong: str, tmp_path: Path) -> None:
    new, at, message = WRONG[wrong]
    line = WALKER[: WALKER.index(at or wrong)].count("\n") + 1
    file = tmp_path / "wrong.yaml"
    file.write_text(WALKER.replace(wrong, new, 1), encoding="utf-8")
    with pytest.raises(pb.InputError, match=message) as raised:
        pb.load_network(file)
    assert f"wrong.yaml:{line}:" in str(raised.value), raised.value


def test_a_terminal_of_a_winding_is_electrical(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    more = "    J: {kind: inertia, nodes: axle, inertia: 1}\n    c: {use: leg, plus: axle}\n"
    file.write_text(WALKER.replace("    a: {use", f"{more}    a: {{use", 1), encoding="utf-8")
    with pytest.raises(pb.InputError, match="electrical, but node 'axle' is rotational, by 'J'"):
        pb.load_network(file)


def test_the_example_of_the_documentation_is_read_and_closes_its_loop(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "networks-that-move.md").read_text(encoding="utf-8")
    text, = (block.split("```")[0] for block in page.split("```yaml\n")[1:] if "name: pair" in block)
    file = tmp_path / "pair.yaml"
    file.write_text(text, encoding="utf-8")
    jsonschema.validate(yaml.safe_load(text), schema())
    run = pb.simulate(pb.load_network(file), 0.02)
    assert run.audit.energy_error_relative < 1e-9
    assert abs(run.final["battery.i"]) > 0.1


def test_the_command_line_draws_and_lists_bodies_and_parts(path: Path, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("graph.svg", "order.svg", "all.html")]
    done = CliRunner().invoke(app, ["network", str(path), "--equations", "--svg", str(files[0]), "--blocks",
                                    str(files[1]), "--write", str(files[2])])
    assert done.exit_code == 0, done.output
    for name in ("graph.svg", "graph-bodies.svg", "order.svg", "order-bodies.svg", "all.html"):
        assert (tmp_path / name).read_text(encoding="utf-8")
    for line in ("body a.upper: x_pin = K_pinᵀ x_G", "V.v = V.voltage",
                 "second: a.lower.tip → b.upper.pin, tree (it leads the tree on to a body)",
                 "R: O → plate.eye, co-tree (it leaves most of its across variable open)"):
        assert line in done.output, line
    again = CliRunner().invoke(app, ["network", str(path), "--svg", str(tmp_path / "graph.svg")])
    assert again.exit_code == 1
