"""Recordings as users have them: separators, comments, names, followers; what cannot be used is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from pinocchio_bridge import robot_file
from polybody.identification.recording import recording

HEADER = "t,q1,q2,v1,v2,tau1,tau2"


def lines(count: int = 40) -> list[str]:
    t = np.arange(count) * 0.01
    q, v = np.sin(3 * t), 3 * np.cos(3 * t)
    return [",".join(f"{x:.9g}" for x in row) for row in zip(t, q, 2 * q, v, 2 * v, q, v, strict=True)]


def written(tmp_path, rows: list[str], header: str = HEADER):
    path = tmp_path / "run.csv"
    path.write_text("\n".join([*([header] if header else []), *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("change", [
    lambda rows: [row.replace(",", ";") for row in rows],
    lambda rows: [row.replace(",", "\t") for row in rows],
    lambda rows: [row.replace(",", ", ") for row in rows],
    lambda rows: ["# recorded in the laboratory", *rows],
    lambda rows: [rows[0].upper(), "", *rows[:0:-1]],
])  # fmt: skip
def test_separators_comments_case_and_order_of_rows_do_not_matter(change, tmp_path) -> None:
    arm = pb.load("two-link")
    plain = recording(arm, written(tmp_path, lines()))
    other = recording(arm, written(tmp_path, change([HEADER, *lines()]), ""))
    for x in ("t", "q", "v", "tau"):
        np.testing.assert_array_equal(getattr(other, x), getattr(plain, x))


@pytest.mark.parametrize(("rows", "header", "message"), [
    ([], "", "empty"),
    ([], HEADER, "header without rows"),
    (lines(), HEADER.replace("q2", "q1"), "more than one column 'q1'"),
    (lines(), HEADER.replace("q1", "q_shoulder"), "in part"),
    (lines(), HEADER.replace("q1", "q_elbo").replace("q2", "q_shoulder"), "no joint 'elbo'"),
    (lines(), "t,x1,x2,v1,v2,tau1,tau2", "no positions"),
    ([row.rsplit(",", 1)[0] + ",1e300" for row in lines()], HEADER, "numbers up to 1.0e\\+300"),
    ([row.split(",")[0] + ",0" * 6 for row in lines()], HEADER, "no joint moves"),
    ([*lines(), "1e9" + ",1" * 6], HEADER, "far closer"),
    (lines(), HEADER.replace("tau", "i"), "drive gains"),
])  # fmt: skip
def test_unusable_tables_are_refused_by_reason(rows, header, message, tmp_path) -> None:
    with pytest.raises(pb.InputError, match=message):
        recording(pb.load("two-link"), written(tmp_path, rows, header))


def test_bytes_are_no_table_and_gains_of_zero_no_gains(tmp_path) -> None:
    arm = pb.load("two-link")
    (tmp_path / "x.csv").write_bytes(bytes(range(256)))
    with pytest.raises(pb.InputError, match="not UTF-8"):
        recording(arm, tmp_path / "x.csv")
    (tmp_path / "x.parquet").write_bytes(bytes(range(256)))
    with pytest.raises(pb.InputError, match="not a Parquet table"):
        recording(arm, tmp_path / "x.parquet")
    with pytest.raises(pb.InputError, match="other than zero"):
        recording(arm, written(tmp_path, lines(), HEADER.replace("tau", "i")), drive_gains=[1.0, 0.0])


def test_what_is_not_used_or_in_other_units_is_told(tmp_path) -> None:
    arm = pb.load("two-link")
    with pytest.warns(pb.PolybodyWarning, match="currents and drive gains are not used"):
        recording(arm, written(tmp_path, lines()), drive_gains=[1.0, 1.0])
    late = [",".join([f"{1000 * float(row.split(',')[0])}", row.split(",", 1)[1]]) for row in lines()]
    with pytest.warns(pb.PolybodyWarning, match="not the rates of positions"):
        recording(arm, written(tmp_path, late))


def test_columns_of_followers_go_to_their_leaders() -> None:
    model = pb.load(robot_file("panda.urdf"))
    names, t = list(model.joint_names), np.arange(40) * 0.01
    columns = {"t": t} | {f"{kind}_{name}": np.sin(t + k) for kind in ("q", "tau") for k, name in enumerate(names)}
    follower = {f"{kind}_panda_finger_joint2": np.full(40, 2.0) for kind in ("q", "tau")}
    plain = recording(model, columns)
    with pytest.warns(pb.PolybodyWarning, match="panda_finger_joint2"):
        both = recording(model, dict(reversed((columns | follower).items())))
    np.testing.assert_array_equal(both.q, plain.q)
    np.testing.assert_allclose(both.tau[:, -1], plain.tau[:, -1] + 2.0)


def test_numbers_of_a_floating_base_have_names() -> None:
    model = pb.load("humanoid")
    t = np.arange(40) * 0.01
    q = model.integrate(model.neutral(), 0.1 * np.sin(t)[:, None] * np.ones(model.nv))
    base = [j for j in model.mechanism.independent_joints if j.nq > 1]
    names = [name for j in model.mechanism.independent_joints
             for name in ([j.name] if j.nq == 1 else [f"{j.name}_{k}" for k in range(j.nq)])]  # fmt: skip
    assert base
    columns = {"t": t} | {f"q_{name}": x for name, x in zip(names, q.T, strict=True)}
    columns |= {f"tau{k + 1}": np.zeros(40) for k in range(model.nv)}
    np.testing.assert_allclose(recording(model, columns).q, q)


@pytest.mark.parametrize(("factors", "message"), [
    ({"q": 180 / np.pi, "v": 180 / np.pi}, "far beyond the joint limits"),
    ({"t": 1e3, "v": 1e-3}, "samples are 10 s apart"),
    ({"tau": 1e3}, "far beyond the effort limits"),
    ({}, None),
])  # fmt: skip
def test_numbers_in_other_units_are_far_beyond_the_limits(factors, message, recwarn) -> None:
    arm = pb.load(robot_file("ur5_robot.urdf"))
    t = np.arange(60) * 0.01
    q = 1.5 * np.sin(3 * t)[:, None] * np.ones(6)
    parts = {"t": t, "q": q, "v": np.gradient(q, t, axis=0), "tau": 20 * np.cos(t)[:, None] * np.ones(6)}
    recwarn.clear()
    recording(arm, {name: factors.get(name, 1.0) * x for name, x in parts.items()})
    told = [str(w.message) for w in recwarn]
    assert not told if message is None else len(told) == 1 and message in told[0]
