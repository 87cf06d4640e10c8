"""Mechanism files: what is written reads back to the same bits, and every mistake is named with its line."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polybody as pb
from mechanisms import descriptions, random_tree
from polybody.description.limits import LARGEST_NUMBER
from polybody.description.mechanism_file.reader import read_mechanism, scan_mechanism, schema
from polybody.description.mechanism_file.writer import mechanism_text, quoted
from polybody.description.reading import read_description, shipped_models, write_description
from polybody.description.records import Body, Description, Joint, Visual, frozen_array, same_description
from polybody.description.units import ANGLE, LENGTH, MASS, quantity

ROOT = """\
polybody: 1
name: one
bodies:
  bob: {mass: 1, com: [0, 0, -0.5], inertia: [0.02, 0.02, 0.001]}
joints:
  hinge: {kind: revolute, parent: world, child: bob, axis: y}
"""


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(descriptions(motors=0.4))
def test_random_mechanisms_survive_writing_and_reading_bit_by_bit(description: Description) -> None:
    back = read_mechanism(mechanism_text(description), "random.yaml")
    assert same_description(description, back)


NUMBER = st.floats(-LARGEST_NUMBER, LARGEST_NUMBER)


@given(NUMBER, st.text(min_size=1).filter(lambda s: s != "world" and s.strip() and s.isprintable()))
def test_any_number_and_any_printable_name_survive(number: float, name: str) -> None:
    body = Body(name, abs(number), frozen_array([number, 1 / 3, -number / 7]))
    joint = Joint("j", "prismatic", "world", name, stiffness=frozen_array([[abs(number)]]))
    description = Description(name, bodies=(body,), joints=(joint,))
    assert same_description(description, read_mechanism(mechanism_text(description), "x.yaml"))


def test_shapes_to_draw_survive() -> None:
    visuals = (
        Visual("mesh", frozen_array([1, 1, 1]), mesh="package://arm/link, 1 #.stl", color=(0.1, 0.2, 0.3, 1.0)),
        Visual("cylinder", frozen_array([0.1, 1 / 3])),
        Visual("sphere", frozen_array([0.2])),
    )
    description = Description(
        "d", bodies=(Body("b", 1.0, visuals=visuals),), joints=(Joint("j", "spherical", "world", "b"),)
    )
    assert same_description(description, read_mechanism(mechanism_text(description), "x.yaml"))


def test_written_files_and_shipped_models_obey_the_published_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(schema())
    validator.check_schema(schema())
    texts = [path.read_text(encoding="utf-8") for path in shipped_models().values()]
    trees = [random_tree(seed, 6, loops=2, limits=0.5, couplings=True, motors=0.8) for seed in range(5)]
    texts += [mechanism_text(tree) for tree in trees]
    for text in texts:
        assert list(validator.iter_errors(yaml.safe_load(text))) == []
    assert not validator.is_valid(yaml.safe_load(ROOT.replace("mass", "mas")))
    assert not validator.is_valid(yaml.safe_load(ROOT.replace("revolute", "rotary")))


@pytest.mark.parametrize(
    ("text", "dimensions", "value"),
    [
        ("90deg", (ANGLE,), math.pi / 2),
        ("-45 deg", (ANGLE,), -math.pi / 4),
        ("pi/2", (), math.pi / 2),
        ("-2*pi/3", (ANGLE,), -2 * math.pi / 3),
        ("7cm", (LENGTH,), 0.07),
        ("250mm", (LENGTH,), 0.25),
        ("300g", (MASS,), 0.3),
        ("1/12", (), 1 / 12),
        ("1e-3", (), 1e-3),
        (".5", (), 0.5),
        ("-.inf", (), -math.inf),
    ],
)
def test_quantities_are_si(text: str, dimensions: tuple[str, ...], value: float) -> None:
    assert quantity(text, dimensions) == value


@pytest.mark.parametrize(
    ("text", "dimensions", "message"),
    [
        ("90deg", (LENGTH,), "dimension angle, expected a length"),
        ("3furlong", (LENGTH,), "unknown unit 'furlong'"),
        ("ninety", (ANGLE,), "not a number"),
        ("1/0", (), "divides by zero"),
        ("__import__('os')", (), "not a number"),
    ],
)
def test_wrong_quantities_are_explained(text: str, dimensions: tuple[str, ...], message: str) -> None:
    with pytest.raises(pb.InputError, match=message):
        quantity(text, dimensions)


def problems_of(text: str) -> list[str]:
    return [str(problem) for problem in scan_mechanism(text, "bad.yaml")[1]]


def test_all_problems_of_a_file_are_found_at_once_with_their_lines() -> None:
    text = """\
polybody: 1
bodies:
  bob: {mas: 1, com: [0, 0]}
joints:
  hinge: {kind: revolut, parent: world, child: bob, axis: y}
  other: {kind: prismatic, child: bob, limits: {lower: 90deg}}
"""
    found = problems_of(text)
    assert found == [
        "bad.yaml:3: body 'bob': no key 'mas' (did you mean 'mass'?); available: mass, com, inertia, visuals",
        "bad.yaml:3: body 'bob': com has shape (2,), expected (3,)",
        "bad.yaml:5: joint 'hinge': kind: no kind 'revolut' (did you mean 'revolute'?); available: fixed, revolute, "
        "continuous, prismatic, screw, cylindrical, universal, spherical, planar, floating, custom",
        "bad.yaml:6: joint 'other' needs 'parent'",
        "bad.yaml:6: joint 'other': limits: lower: '90deg' is of the dimension angle, expected a length",
    ]
    with pytest.raises(pb.InputError, match="has 5 problems"):
        read_mechanism(text, "bad.yaml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("polybody: 1", "polybody: 9"), "bad.yaml:1: this polybody reads version 1"),
        (("polybody: 1\n", ""), "must be 'polybody: 1'"),
        (("name: one", "name: !!python/object/apply:os.system ['true']"), "yaml:2: the tag .*python.* is not allowed"),
        (("name: one", "name: !!python/name:os.system"), "is not allowed"),
        (("  hinge", "  bob2: {kind: fixed, parent: bob, child: x}\n  bob2: {}\n  hinge"), "'bob2' is given twice"),
        (("mass: 1", "mass: [1, 2]"), "mass must be one number, got a list"),
        (("mass: 1", "mass: heavy"), "mass: 'heavy' is not a number"),
        (("[0, 0, -0.5]", "[0, 0, {}]"), r"com\[2\] must be one number, got a mapping"),
        (("axis: y", "axis: w"), "axis must be three numbers or one of x"),
        (("axis: y", "active: maybe"), "active must be true or false"),
        (("axis: y", "stiffness: [1, 2]"), r"stiffness has shape \(2,\), expected one number, \(1,\) or \(1, 1\)"),
        (("axis: y", "origin: {xyz: [0, 0, 0], rpy: [0, 0, 0], quaternion: [0, 0, 0, 1]}"), "one of rpy"),
        (("axis: y", "origin: {quaternion: [0, 0, 0, 2]}"), "length 2, expected a unit"),
        (("axis: y}", "axis: y"), r"bad.yaml:\d+: not valid YAML.*cut off"),
        (("inertia", "visuals: [{shape: mesh, mesh: ../../etc/passwd}], inertia"), "leaves the folder of its file"),
        (("inertia", "visuals: [{shape: mesh, mesh: /etc/passwd}], inertia"), "leaves the folder of its file"),
        (("bodies:", "bodies: []\nboddies:"), "bodies must be a mapping from names, got a list"),
    ],
)
def test_wrong_files_are_explained(change: tuple[str, str], message: str) -> None:
    text = ROOT.replace(*change, 1)
    assert text != ROOT
    with pytest.raises(pb.InputError, match=message):
        read_mechanism(text, "bad.yaml")


def test_alias_bombs_and_deep_nesting_are_refused_quickly() -> None:
    bomb = "polybody: 1\nname: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"b{i}: &b{i} [{', '.join([f'*b{i - 1}' if i else '*a'] * 9)}]\n" for i in range(40)
    )
    with pytest.raises(pb.InputError, match=r"more than 500000 values .each alias counts"):
        read_mechanism(bomb, "bomb.yaml")
    with pytest.raises(pb.InputError, match="nested more than 16 deep"):
        read_mechanism("polybody: 1\nname: " + "[" * 100, "deep.yaml")
    with pytest.raises(pb.InputError, match="contains itself"):
        read_mechanism("polybody: 1\nname: &a [*a]\n", "self.yaml")


def test_writing_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tree.yaml"
    description = random_tree(1, 3)
    write_description(description, path)
    assert same_description(read_description(path), description)
    before = path.read_text(encoding="utf-8")

    bad = Description("bad", bodies=(Body("b", -1.0),), joints=(Joint("j", "fixed", "world", "b"),))
    with pytest.raises(pb.InputError, match="must not be negative"):
        write_description(bad, path)
    with pytest.raises(pb.InputError, match="exists already"):
        write_description(description, path, force=False)

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(pb.InputError, match="disk full"):
        write_description(random_tree(2, 3), path)
    assert path.read_text(encoding="utf-8") == before
    assert list(tmp_path.iterdir()) == [path]


def test_dh_section_reads_as_the_same_arm_as_from_dh() -> None:
    rows = [
        {
            "d": 0.3,
            "alpha": math.pi / 2,
            "mass": 2.0,
            "com": (0.1, 0.2, 0.3),
            "inertia": (0.1, 0.2, 0.25, 0.01, 0.02, 0),
        },
        {"a": 0.4, "theta": 0.3, "kind": "prismatic", "mass": 1.0, "inertia": (0.1, 0.1, 0.1), "armature": 0.2},
    ]
    text = """\
polybody: 1
name: arm
dh:
  convention: modified
  links:
    - {d: 30cm, alpha: 90deg, mass: 2kg, com: [0.1, 0.2, 0.3], inertia: [0.1, 0.2, 0.25, 0.01, 0.02, 0]}
    - {a: 0.4, theta: 0.3, kind: prismatic, mass: 1, inertia: [0.1, 0.1, 0.1], armature: 0.2}
"""
    model = pb.from_dh(rows, convention="modified")
    assert same_description(read_mechanism(text, "arm.yaml"), model.description)
    np.testing.assert_array_equal(model.mechanism.armature, np.diag([0, 0.2]))


CONSTANTS = """\
polybody: 1
name: t
parameters: {L: 30cm, A: 90deg, W: 2kg, k: 3, H: =2*L}
bodies:
  a: {mass: =W, com: [=L/2, 0, 0], inertia: [=W*L*L/12, 1, 1]}
  b: {mass: 1, inertia: [1, 1, 1]}
joints:
  j: {kind: revolute, parent: world, child: a, limits: {lower: -1, upper: =A}}
  p: {kind: prismatic, parent: a, child: b, origin: {xyz: [=L, 0, =L*sin(A)], rpy: [=A, 0, 0]}, limits: {upper: =H}}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mass: =W", "mass: =L", r":5: body 'a': mass: '0.3m' is of the dimension length, expected a mass"),
        ("=L/2", "=A/2", r":5: body 'a': com\[0\]: .* dimension angle, expected a length"),
        ("rpy: [=A", "rpy: [=H", r":9: joint 'p': origin: rpy\[0\]: '0.6m' is of the dimension length"),
        ("upper: =A", "upper: =L", r":8: joint 'j': limits: upper: '0.3m' .* expected an angle"),
        ("upper: =H", "upper: =A", r":9: joint 'p': limits.* dimension angle, expected a length"),
        ("sin(A)", "sin(L)", r":9: =L\*sin\(L\): 'sin\(L\)' takes an angle, not a length"),
        ("=2*L", "=L+A", r":3: parameters: H: 'L \+ A' joins a length and an angle"),
        ("=W*L*L/12", "=W", r"inertia\[0\]: '2.0kg' is of the dimension mass"),
        ("=L/2", "=k", None),  # without a unit: SI, whatever is wanted
        ("xyz: [=L", "xyz: [=L*A", None),  # an arc
    ],
)
def test_constants_with_units_stand_only_where_their_dimension_may(
    old: str, new: str, message: str | None, tmp_path: Path
) -> None:
    assert old in CONSTANTS
    path = tmp_path / "t.yaml"
    path.write_text(CONSTANTS.replace(old, new))
    if message is None:
        assert pb.load(path).nv == 2
        return
    with pytest.raises(pb.InputError, match=message):
        pb.load(path)


def test_names_in_quotes_are_what_yaml_writes() -> None:
    rng = np.random.default_rng(2)
    letters = [*map(chr, range(32, 127)), "\t", "\n", "\x7f", "é", "\u2028", "\\", '"', "'", "\0"]
    texts = ["", " ", "a b", "file:///a/b%20c.stl", "# no", "x" * 5_000 + " y", *letters]
    texts += ["".join(rng.choice(letters, 12)) for _ in range(500)]
    for text in texts:
        assert quoted(text) == yaml.safe_dump(text, default_style='"', allow_unicode=True, width=2**20).rstrip("\n")
        assert yaml.safe_load(f"{{mesh: {quoted(text)}}}") == {"mesh": text}
