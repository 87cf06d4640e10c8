"""Denavit-Hartenberg tables: frames `dh_i` are the products of the table's transforms, written out here by hand."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.description.dh import exact_turn

Array = np.ndarray


def turn(axis: int, angle: float) -> Array:
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    T = np.eye(4)
    T[i, i] = T[j, j] = np.cos(angle)
    T[i, j], T[j, i] = -np.sin(angle), np.sin(angle)
    return T


def shift(axis: int, length: float) -> Array:
    T = np.eye(4)
    T[axis, 3] = length
    return T


ROWS = [
    {"a": 0.1, "alpha": 0.7, "d": 0.3, "theta": 0.2, "mass": 1.0, "com": (0.1, 0.2, -0.1), "inertia": (0.3, 0.4, 0.5)},
    {"a": 0.4, "alpha": -1.1, "d": -0.2, "theta": -0.5, "kind": "prismatic", "mass": 2.0, "inertia": (0.1, 0.2, 0.2)},
    {"a": 0.0, "alpha": np.pi / 2, "d": 0.5, "theta": 1.0, "mass": 0.5, "com": (0, 0, 0.3), "inertia": (0.1, 0.1, 0.1)},
]


@pytest.mark.parametrize("convention", ["classical", "modified"])
def test_dh_frames_are_the_products_of_the_table(convention: str) -> None:
    base = turn(0, 0.3) @ shift(1, 0.2)
    model = pb.from_dh(ROWS, convention=convention, base=base)
    q = np.array([0.4, 0.15, -0.8])
    expected = base
    com = np.zeros(3)
    for i, (row, value) in enumerate(zip(ROWS, q, strict=True), start=1):
        slides = row.get("kind") == "prismatic"
        theta, d = row["theta"] + (0 if slides else value), row["d"] + (value if slides else 0)
        along, across = turn(2, theta) @ shift(2, d), turn(0, row["alpha"]) @ shift(0, row["a"])
        expected = expected @ (along @ across if convention == "classical" else across @ along)
        np.testing.assert_allclose(model.pose(q, f"dh_{i}"), expected, atol=1e-14)
        body = model.mechanism.bodies[i - 1]
        R = model.pose(q, body.name)[:3, :3].T @ expected[:3, :3]
        np.testing.assert_allclose(R @ np.diag(row["inertia"]) @ R.T, body.inertia, atol=1e-14)
        com += row["mass"] * (expected @ [*row.get("com", (0, 0, 0)), 1])[:3]
    np.testing.assert_allclose(model.center_of_mass(q), com / 3.5, atol=1e-14)


def test_quarter_turns_are_exact() -> None:
    angles = [k * np.pi / 2 for k in range(-4, 5)]
    assert [exact_turn(x) for x in angles[:5]] == [(0, 1), (1, 0), (0, -1), (-1, 0), (0, 1)]
    assert exact_turn(0.3) == (np.sin(0.3), np.cos(0.3))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], {}, "at least one row"),
        ([{"a": 1}], {"convention": "craig"}, "no DH convention 'craig'"),
        ([{"a": 1, "kind": "screw"}], {}, "DH row 1: no kind 'screw'"),
        ([{"a": 1}, {"alhpa": 1}], {}, r"DH row 2: no key 'alhpa' \(did you mean 'alpha'\?\); available: a, alpha"),
        ([[0, 0, 0, 0]], {}, "DH row 1 must be a mapping"),
        ([{"a": "x"}], {}, "DH row 1: a must be numbers"),
        ([{"com": (1, 2)}], {}, r"DH row 1: com has shape \(2,\)"),
    ],
)
def test_wrong_tables_are_explained(rows: list, options: dict, message: str) -> None:
    with pytest.raises(pb.InputError, match=message):
        pb.from_dh(rows, **options)
