"""What a file or a caller says wrong comes back as an `InputError` that names it, never as a raw exception."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import polybody as pb
from polybody.cli import app
from polybody.description.checks import check_description
from polybody.description.expressions import parse
from polybody.description.mechanism_file.reader import read_mechanism, scan_mechanism, schema
from polybody.description.mechanism_file.writer import mechanism_text
from polybody.description.problems import errors_of
from polybody.description.reading import read_description
from polybody.description.records import same_description
from polybody.model.validation import model_from

HEAD = "polybody: 1\nname: x\n"
TWO = (
    HEAD + "bodies: {a: {mass: 1, inertia: [1, 1, 1]}, b: {mass: 1, inertia: [1, 1, 1]}}\n"
    "joints: {j: {kind: revolute, parent: world, child: a}, k: {kind: revolute, parent: a, child: b}}\n"
)


def problems(text: str) -> str:
    description, found = scan_mechanism(text, "m.yaml")
    return "\n".join(map(str, errors_of([*found, *check_description(description)])))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("j + 1/0", "'1 / 0' at column .* has no finite value"),
        ("j + 1/(2 - 2)", "has no finite value"),
        ("j + asin(2)", "has no finite value"),
        ("j + sqrt(-1)", "has no finite value"),
        ("j + " + "1" * 400, "is not a finite number"),
        ("j + " + "1" * 1990, "is not a finite number"),
        ("j + 1e999", "is not a finite number"),
        ("j + 1e29*1e29", "has no finite value"),
        ("j[0][0][0][0]", "is not understood"),
        ("q" + "[0]" * 600, "is not understood|nested"),
        ("j + " + "-" * 1900 + "1", "nested too deeply|no expression"),
        ("[" * 150 + "]" * 150, "is not understood|no expression"),
        ("j + True", "is not a finite number"),
        ("j ** True", "must be a whole number"),
        ("((j + k + 1)**12)**5", "have more than 5000 terms"),
        ("(" + "+".join(f"j{i}" for i in range(10)) + ")**12", "have more than 5000 terms"),
        ("*".join(["(j + k)"] * 14), "have more than 5000 terms"),
        ('q["\x1b[2J"]', "control characters"),
    ],
)
def test_expressions_without_a_value_or_beyond_measure_are_refused(expression: str, message: str) -> None:
    with pytest.raises(pb.InputError, match=message):
        parse(expression)


def test_expressions_in_use_are_still_read() -> None:
    for text in ("j - 2*sin(k)", "j**3 + 0.5*k**2 - pi/2", 'q["any name"] - q["ball"][3]', "atan2(sin(j), cos(k))/2"):
        assert parse(text).used


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mass: 1,", "mass: 1e31,", "mass is 1e.31, expected a finite number of at most 1e.30"),
        ("inertia: [1, 1, 1]", "inertia: [1e308, 1e308, 1e308]", "inertia.* expected a finite number"),
        ("inertia: [1, 1, 1]", "inertia: [.nan, 1, 1]", "inertia.* is nan"),
        ("mass: 1,", "mass: " + "9" * 400 + ",", "a number has at most 100"),
        ("child: b", "child: b, limits: {lower: 1, upper: -1}", "lower limit .* is above the upper"),
        ("child: b", "child: b, limits: {lower: .inf}", "no position lies between"),
        ("child: b", "child: b, limits: {effort: -1}", "must not be negative"),
        ("child: b", "child: b, origin: {rpy: [.inf, 0, 0]}", "expected finite angles"),
        ("child: b", "body_b: b", "no key 'body_b'; a joint has 'child'"),
        ("joints:", "dh: {links: [{alpha: .inf}]}\njoints:", "alpha is inf, expected a finite number"),
        ("joints:", "dh: {links: [{theta: .nan}]}\njoints:", "theta is nan, expected a finite number"),
        ("polybody: 1", "polybody: " + "1" * 5000, "at most nine digits"),
        ("polybody: 1", "polybody: \u0661", "at most nine digits"),
    ],
)
def test_numbers_that_no_mechanism_has_are_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(problems(TWO.replace(old, new, 1)))


@pytest.mark.parametrize("what", ["rods: {r: {body_a: world, body_b: a, length: 1}}",
                                  "guides: {r: {kind: line, body_a: world, body_b: a, axis: x}}",
                                  "loops: {r: {kind: revolute, body_a: world, body_b: a}}"])  # fmt: skip
def test_constraints_within_one_rigid_body_are_refused(what: str) -> None:
    text = TWO.replace("kind: revolute", "kind: fixed", 1) + what
    assert "'world' and 'a', which are one rigid body" in problems(text)


DATES = np.array(["2020-01-01"] * 3, dtype="datetime64[D]")


@pytest.mark.parametrize("bad", [["0"] * 3, "1", [None] * 3, DATES, [1j] * 3])
def test_only_numbers_are_numbers(bad: object) -> None:
    build = pb.Builder("b")
    with pytest.raises(pb.InputError, match="must be numbers"):
        build.body("a", 1, com=bad)
    with pytest.raises(pb.InputError, match="must be numbers"):
        build.flexible_link("f", 1, 1, EI=bad if np.ndim(bad) == 0 else 1, axis=bad)
    with pytest.raises(pb.InputError, match="must be numbers"):
        build.flexible_link("f", "1", 1, 1)


def test_mujoco_refusal_is_an_input_error_with_our_line(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text("<mujoco>\n<worldbody>\n<body><joint axis='0 0 0'/><geom size='1'/></body></worldbody></mujoco>")
    with pytest.raises(pb.InputError, match=r"MuJoCo rejects the file: .*m\.xml:3"):
        read_description(path)


def test_warnings_of_builders_point_at_the_callers_line() -> None:
    build = pb.Builder("b")
    build.body("bar", 1, inertia=(1, 1, 0))
    build.joint("j", "revolute", "world", "bar")
    for make in (build.model, lambda: model_from(build.description())):
        with pytest.warns(pb.PolybodyWarning) as caught:
            make()
        assert caught[0].filename == __file__


LOOP = TWO + "loops: {l: {kind: revolute, body_a: world, body_b: b, origin_a: [1, 0, 0], origin_b: [0, 1, 0]}}\n"


def test_loops_may_say_their_ends_as_joints_do() -> None:
    words = {"body_a": "parent", "body_b": "child", "origin_a": "origin", "origin_b": "child_origin"}
    other = LOOP
    for theirs, ours in words.items():
        other = other.replace(theirs, ours)
    assert same_description(read_mechanism(LOOP, "m.yaml"), read_mechanism(other, "m.yaml"))
    twice = LOOP.replace("body_a: world", "body_a: world, parent: world")
    assert "has 'parent' and 'body_a', two names for the same key" in problems(twice)
    jsonschema = pytest.importorskip("jsonschema")
    yaml = pytest.importorskip("yaml")
    validator = jsonschema.Draft202012Validator(schema())
    for text in (LOOP, other):
        assert not list(validator.iter_errors(yaml.safe_load(text)))
    assert list(validator.iter_errors(yaml.safe_load(twice)))


def test_loops_take_springs_dampers_and_limits_as_joints_do() -> None:
    drive = "stiffness: 3, damping: 0.5, rest: 90deg, armature: 0.1, friction: 0.2, limits: {lower: -1, upper: 1}"
    text = LOOP.replace("origin_b", f"{drive}, origin_b")
    description = read_mechanism(text, "m.yaml")
    loop = description.loops[0]
    assert loop.stiffness.tolist() == [[3.0]]
    assert loop.rest.tolist() == [np.pi / 2]
    assert loop.limits.upper.tolist() == [1.0]
    assert same_description(read_mechanism(mechanism_text(description), "m.yaml"), description)
    told = "\n".join(map(str, check_description(description)))
    assert "cut joints" not in told  # all of it acts
    free = LOOP.replace("revolute, body_a", "floating, damping: 0.5, body_a")
    told = "\n".join(map(str, check_description(read_mechanism(free, "m.yaml"))))
    assert "of floating cut joints are not enforced, of loops l" in told
    assert "must not be negative" in problems(text.replace("armature: 0.1", "armature: -0.1"))
    yaml, jsonschema = pytest.importorskip("yaml"), pytest.importorskip("jsonschema")
    assert not list(jsonschema.Draft202012Validator(schema()).iter_errors(yaml.safe_load(text)))


def test_convert_leaves_out_what_urdf_cannot_say_only_where_told(tmp_path: Path) -> None:
    source, target = tmp_path / "m.yaml", tmp_path / "m.urdf"
    source.write_text(
        LOOP.replace("child: b}", "child: b, armature: 0.1, damping: 2, limits: {lower: -1, upper: 1}}")
        + "gravity: [0, -9.81, 0]\n"
    )
    refused = CliRunner().invoke(app, ["convert", str(source), str(target)])
    assert refused.exit_code == 1
    assert "joint 'k': its armature" in refused.output
    assert "--lossy" in refused.output
    assert not target.exists()
    made = CliRunner().invoke(app, ["convert", str(source), str(target), "--lossy", "--json"])
    assert made.exit_code == 0, made.output
    lost = json.loads(made.stdout)["lost"]
    assert [what.split(";")[0] for what in lost] == ["loop 'l'", "gravity (0.0, -9.81, 0.0)", "joint 'k': its armature"]
    back = read_description(target)
    assert [joint.name for joint in back.joints] == ["j", "k"]
    assert back.joints[1].damping.tolist() == [[2.0]]
    source.write_text(TWO.replace("kind: revolute", "kind: spherical", 1))
    kept = CliRunner().invoke(app, ["convert", str(source), str(target), "--lossy", "--force"])
    assert kept.exit_code == 1
    assert "its kind 'spherical'" in kept.output
