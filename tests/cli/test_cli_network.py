"""`polybody network`: the drawing and the equations of a closed chain."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from polybody.cli import app

FIVE_BAR = """\
polybody: 1
name: five-bar
gravity: [0, -9.81, 0]
bodies:
  left_arm: {mass: 1.0, com: [0.15, 0, 0], inertia: [0.001, 0.01, 0.01]}
  left_rod: {mass: 1.3, com: [0.25, 0, 0], inertia: [0.001, 0.03, 0.03]}
  right_arm: {mass: 1.0, com: [0.15, 0, 0], inertia: [0.001, 0.01, 0.01]}
  right_rod: {mass: 1.3, com: [0.25, 0, 0], inertia: [0.001, 0.03, 0.03]}
joints:
  left_motor: {kind: revolute, parent: world, child: left_arm, origin: [-0.15, 0, 0]}
  left_elbow: {kind: revolute, parent: left_arm, child: left_rod, origin: [0.3, 0, 0]}
  right_motor: {kind: revolute, parent: world, child: right_arm, origin: [0.15, 0, 0]}
  right_elbow: {kind: revolute, parent: right_arm, child: right_rod, origin: [0.3, 0, 0]}
loops:
  tip: {kind: revolute, body_a: left_rod, body_b: right_rod, origin_a: [0.5, 0, 0], origin_b: [0.5, 0, 0]}
"""


@pytest.fixture
def five_bar(tmp_path: Path) -> Path:
    path = tmp_path / "five-bar.yaml"
    path.write_text(FIVE_BAR, encoding="utf-8")
    return path


def run(*arguments: object):
    return CliRunner().invoke(app, ["network", *map(str, arguments)])


def test_drawing_shows_every_edge_branches_heavy_and_the_driver_marked(five_bar, tmp_path):
    svg = tmp_path / "graph.svg"
    done = run(five_bar, "--svg", svg, "--driven", "left_motor", "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    drawing = ET.parse(svg).getroot()
    space = "{http://www.w3.org/2000/svg}"
    drawn = {path.find(f"{space}title").text: float(path.get("stroke-width"))
             for path in drawing.iter(f"{space}path") if path.find(f"{space}title") is not None}
    assert set(drawn) == {edge["name"] for edge in answer["edges"]}
    for edge in answer["edges"]:
        assert (drawn[edge["name"]] > 2) == edge["tree"]
    kinds = {edge["name"]: edge["kind"] for edge in answer["edges"]}
    assert kinds["left_motor"] == "velocity"
    assert kinds["tip"] == "joint"
    rings = [c for c in drawing.iter(f"{space}circle") if c.get("fill") == "none"]
    assert len(rings) == 1


def test_equations_are_cutsets_and_circuits_that_are_orthogonal(five_bar):
    words = run(five_bar, "--equations").stdout
    assert "joint tip (revolute)" in words
    assert "y(left_arm.G) = 0" in words
    why = "its bodies are connected already: it closes a circuit"
    assert f"tip: left_rod.tip:a → right_rod.tip:b, co-tree ({why})" in words
    assert "solved together with them, as circuits that are closed: tip" in words
    driven = run(five_bar, "--equations", "--driven", "left_motor").stdout
    assert "tree (an across driver: always in the tree)" in driven
    assert "x(left_rod.tip:a) + x(tip) − x(right_rod.tip:b) = 0" in words
    answer = json.loads(run(five_bar, "--equations", "--json").stdout)
    for circuit in answer["circuits"]:
        for cutset in answer["cutsets"]:
            assert sum(a * b for a, b in zip(circuit, cutset, strict=True)) == 0


def test_unknown_driven_joint_is_refused(five_bar):
    done = run(five_bar, "--driven", "nobody")
    assert done.exit_code == 1
    assert "nobody" in done.output


def test_a_drawing_replaces_a_file_only_when_forced_and_needs_its_folder(five_bar, tmp_path):
    svg = tmp_path / "graph.svg"
    svg.write_text("mine", encoding="utf-8")
    done = run(five_bar, "--svg", svg)
    assert done.exit_code == 1
    assert "exists" in done.output
    assert svg.read_text(encoding="utf-8") == "mine"
    assert run(five_bar, "--svg", svg, "--force").exit_code == 0
    assert "<svg" in svg.read_text(encoding="utf-8")
    done = run(five_bar, "--svg", tmp_path / "nowhere" / "graph.svg")
    assert done.exit_code == 1
    assert "does not exist" in done.output


def test_forms_of_a_body_balance_newton_and_euler(five_bar):
    """(1), (5) and (6) at one state: the through variable that each gives at its port does the same power."""
    ends = ("left_rod.G", "left_rod.left_elbow:b", "left_rod.tip:a")
    flags = [word for end in ends for word in ("--form", end)]
    done = run(five_bar, *flags, "--v", "left_motor=1", "--json")
    assert done.exit_code == 0, done.output
    forms = json.loads(done.stdout)["forms"]
    rng = np.random.default_rng(0)
    rate_G = rng.normal(size=6)
    wanted = None
    for form in forms:
        K = {name: np.array(value) for name, value in form["K"].items()}
        assert set(K) == {"G", "left_elbow:b", "tip:a"} - {form["port"]}
        P, u = np.array(form["P"]), np.array(form["u"])
        to_G = np.eye(6) if form["port"] == "G" else np.linalg.inv(K["G"])  # x of the port = to_Gᵀ x_G
        moved = to_G @ (P @ to_G.T @ rate_G + u)  # at the mass centre, at rest: (49), (50)
        wanted = moved if wanted is None else wanted
        np.testing.assert_allclose(moved, wanted, atol=1e-9)
        np.testing.assert_allclose(P, P.T, atol=1e-12)
    assert "(49), (50)" in run(five_bar, "--form", ends[2]).stdout
    assert run(five_bar, "--form", "left_rod.nowhere").exit_code == 1
    assert run(five_bar, "--q", "neutral", "--v", "left_motor=1").exit_code == 1
