"""`polybody grasp`: hands that hold a body, from the command line."""

from __future__ import annotations

import json

import numpy as np
from typer.testing import CliRunner

import polybody as pb
from polybody.cli import app

HANDS = ("--object", "object", "--hand", "left_hand", "--hand", "right_hand")


def run(*arguments: str):
    return CliRunner().invoke(app, ["grasp", *arguments])


def test_forces_told_hold_the_object_still():
    answer = json.loads(run("two-arms", *HANDS, "--json").stdout)
    assert (answer["independent_rows"], answer["freedom"]) == (6, 3)
    assert answer["internal_loads"][3] == "force x of right_hand against left_hand"
    model = pb.load("two-arms")  # the same grips as welds
    q = np.array(answer["q"])
    np.testing.assert_allclose(model.forward_dynamics(q, np.zeros(9), np.array(answer["tau"])), 0, atol=1e-9)
    loads = np.array(answer["loads"])
    weight = sum(model.pose(q, hand)[:3, :3] @ load[3:] for hand, load in zip(answer["hands"], loads, strict=True))
    np.testing.assert_allclose(weight, (0, 3 * 9.81, 0), atol=1e-9)
    assert answer["cannot"] is None


def test_hands_away_from_their_places_are_told_and_brought_there():
    both = ("two-arms", "--object", "object", "--hand", "left_hand=object", "--hand", "right_hand=object")
    text = run(*both)
    assert text.exit_code == 0
    assert "left_hand: 0.329135 m and 0.7 rad from its grip" in text.stdout
    answer = json.loads(run(*both, "--json").stdout)
    model, q = pb.load("two-arms").tree, np.array(answer["q"])
    np.testing.assert_allclose(model.pose(q, "left_hand"), model.pose(q, "object"), atol=1e-9)
    np.testing.assert_allclose(model.pose(q, "right_hand"), model.pose(q, "object"), atol=1e-9)


def test_what_cannot_hold_it_still_says_why(tmp_path):
    """One arm whose base is free to fall holds nothing up."""
    path = tmp_path / "falling.yaml"
    path.write_text(
        "polybody: 1\nname: falling\nbodies:\n  hull: {mass: 9, inertia: [1, 1, 1]}\n"
        "  arm: {mass: 1, inertia: [0.1, 0.1, 0.1]}\n  box: {mass: 2, inertia: [0.1, 0.1, 0.1]}\n"
        "joints:\n  root: {kind: floating, parent: world, child: hull, active: false}\n"
        "  turn: {kind: revolute, parent: hull, child: arm, origin: [1, 0, 0]}\n"
        "  free: {kind: floating, parent: world, child: box, active: false}\n",
        encoding="utf-8",
    )
    text = run(str(path), "--object", "box", "--hand", "arm")
    assert text.exit_code == 0
    assert "it cannot be held at rest: " in text.stdout
    assert "passive" in text.stdout.replace("\n", " ")


def test_wrong_names_and_half_given_places_are_refused():
    wrong = run("two-arms", "--object", "object", "--hand", "left_hnd")
    assert wrong.exit_code == 1
    assert "did you mean 'left_hand'" in wrong.stderr.replace("\n", " ")
    half = run("two-arms", "--object", "object", "--hand", "left_hand=object", "--hand", "right_hand")
    assert half.exit_code == 1
    assert "for every hand, or for none" in half.stderr.replace("\n", " ")
