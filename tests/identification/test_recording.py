"""Recordings as users have them: separators, comments, names, followers; what cannot be used is refused by name."""

from __future__ import annotations

import re

import numpy as np
import pytest

import polybody as pb
from identification.recordings import motion, table
from pinocchio_bridge import robot_file
from polybody.identification.recording import recording, recordings
from polybody.identification.recording_checks import check_scale
from polybody.identification.signals import states_of

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


def same(found, plain) -> None:
    for x in ("t", "q", "v", "tau"):
        np.testing.assert_allclose(getattr(found, x), getattr(plain, x), rtol=1e-7)


@pytest.mark.parametrize("header", [
    "time,q0,q1,v0,v1,tau0,tau1",
    "timestamp,pos1,pos2,vel1,vel2,torque1,torque2",
    "t,position_shoulder,position_elbow,velocity_shoulder,velocity_elbow,effort_shoulder,effort_elbow",
    "t [s],q_1 (rad),q_2 (rad),v1 [rad/s],v2 [rad/s],tau1 [N·m],tau2 [Nm]",
])  # fmt: skip
def test_columns_may_have_other_names_and_count_from_zero(header, tmp_path) -> None:
    arm = pb.load("two-link")
    same(recording(arm, written(tmp_path, lines(), header)), recording(arm, written(tmp_path, lines())))


def test_units_of_headers_and_of_whole_quantities_are_converted(tmp_path) -> None:
    arm = pb.load("two-link")
    plain = recording(arm, written(tmp_path, lines()))
    factors = np.array([1e3, *[180 / np.pi] * 4, 1e3, 1e3])
    rows = [",".join(f"{x:.9g}" for x in factors * np.array([float(y) for y in row.split(",")])) for row in lines()]
    said = "t [ms],q1 [deg],q2 (°),v1 [deg/s],v2 [deg/s],tau1 [mN·m],tau2 [N mm]"
    same(recording(arm, written(tmp_path, rows, said)), plain)
    units = {"t": "ms", "q": "deg", "v": "deg/s", "tau": "mNm"}
    same(recording(arm, written(tmp_path, rows), units=units), plain)
    arrays = {"t": plain.t * 1e3, "q": np.degrees(plain.q), "v": np.degrees(plain.v), "tau": plain.tau * 1e3}
    same(recording(arm, arrays, units=units), plain)
    with pytest.raises(pb.InputError, match="no unit 'lbf'"):
        recording(arm, written(tmp_path, rows, said.replace("mN·m", "lbf")))
    with pytest.raises(pb.InputError, match="no quantity 'torque'"):
        recording(arm, arrays, units={"torque": "mNm"})


def test_decimal_commas_are_read_where_columns_are_separated_otherwise(tmp_path) -> None:
    arm = pb.load("two-link")
    rows = [row.replace(",", ";").replace(".", ",") for row in lines()]
    same(recording(arm, written(tmp_path, rows, HEADER.replace(",", ";"))), recording(arm, written(tmp_path, lines())))


def test_a_column_said_twice_is_refused(tmp_path) -> None:
    with pytest.raises(pb.InputError, match="says q1 again"):
        recording(pb.load("two-link"), written(tmp_path, lines(), HEADER.replace("q2", "pos1")))


def waves(count: int = 400) -> dict[str, np.ndarray]:
    t = np.arange(count) * 0.01
    q = np.column_stack([np.sin(3 * t), np.cos(2 * t)])
    return {"t": t, "q": q, "tau": np.column_stack([np.cos(t), np.sin(t) + 2])}


def test_a_recording_with_a_gap_is_used_in_parts() -> None:
    arm, data = pb.load("two-link"), waves()
    there = (data["t"] < 1.5) | (data["t"] > 2.5)
    with pytest.warns(pb.PolybodyWarning, match="1 gap .*used in 2 parts"):
        parts = recordings(arm, {name: x[there] for name, x in data.items()})
    assert [len(x) for x in parts] == [150, 149]
    short = (data["t"] < 1.5) | ((data["t"] > 2.5) & (data["t"] < 2.7))
    with pytest.warns(pb.PolybodyWarning, match="19 samples in shorter ones left out"):
        assert len(recordings(arm, {name: x[short] for name, x in data.items()})) == 1


@pytest.mark.parametrize(("change", "message"), [
    (lambda tau: tau * [0, 1], "are zero although"),
    (lambda tau: np.clip(tau, None, 2.5), "stay at their largest value"),
    (lambda tau: tau, None),
])  # fmt: skip
def test_silent_and_saturated_drives_are_reported(change, message, recwarn) -> None:
    data = waves()
    recwarn.clear()
    recording(pb.load("two-link"), data | {"tau": change(data["tau"])})
    told = [str(w.message) for w in recwarn]
    assert not told if message is None else len(told) == 1 and message in told[0]


@pytest.mark.parametrize(("factor", "message"), [(1000.0, "1e\\+03 times"), (-1.0, "opposite"), (1.0, None)])
def test_forces_of_another_size_or_sign_than_the_models_are_reported(factor, message, recwarn) -> None:
    own = np.random.default_rng(0).normal(size=(50, 2))
    recwarn.clear()
    check_scale(factor * own, own, "run.csv")
    assert [bool(re.search(message or "", str(w.message))) for w in recwarn] == [True] * (message is not None)


def test_a_recording_too_short_for_the_others_rate_is_refused() -> None:
    arm, data = pb.load("two-link"), waves()
    with pytest.raises(pb.InputError, match="4 samples at 1 Hz"):
        states_of(arm, recording(arm, data), rate=1.0)


def spatial_arm() -> pb.Model:
    build = pb.Builder("arm")
    parent = "world"
    for k, (axis, origin) in enumerate((((0, 0, 1), (0, 0, 0.3)), ((0, 1, 0), (0.1, 0, 0.2)), ((0, 1, 0), (0.5, 0, 0)),
                                        ((1, 0, 0), (0.4, 0, 0.05)))):
        build.body(f"b{k}", 3.0 - 0.5 * k, (0.2, 0.02 * k, 0.05), (0.02, 0.05, 0.06))
        build.joint(f"j{k}", "revolute", parent, f"b{k}", origin, axis=axis)
        parent = f"b{k}"
    return build.model()


def exchanged(x: np.ndarray, order: list[int]) -> np.ndarray:
    return x[:, order]


def reversed_sign(x: np.ndarray, k: int) -> np.ndarray:
    return x * np.where(np.arange(x.shape[1]) == k, -1.0, 1.0)


MISTAKES = {
    "nothing": (lambda q, v, tau: (q, v, tau), None),
    "two joints": (lambda q, v, tau: tuple(exchanged(x, [0, 2, 1, 3]) for x in (q, v, tau)),
                   "the columns of 'j1' and 'j2' exchanged, "),
    "forces of two": (lambda q, v, tau: (q, v, exchanged(tau, [1, 0, 2, 3])),
                      "columns of joint forces of 'j0' and 'j1' exchanged"),
    "sign of forces": (lambda q, v, tau: (q, v, reversed_sign(tau, 2)), "joint forces of 'j2' with the other sign"),
    "sign of positions": (lambda q, v, tau: (reversed_sign(q, 2), reversed_sign(v, 2), tau),
                          "'j2' with the other sign"),
    "degrees": (lambda q, v, tau: (np.rad2deg(q), np.rad2deg(v), tau), "all positions in degrees"),
    "a circle": (lambda q, v, tau: tuple(exchanged(x, [1, 2, 0, 3]) for x in (q, v, tau)),
                 "the columns of 'j2', 'j1', 'j0' as those of 'j0', 'j2', 'j1'"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_columns_mistaken_for_others_are_named_where_their_error_shows(mistake, recwarn) -> None:
    model, rng = spatial_arm(), np.random.default_rng(5)
    t, q, v, a = motion(model, rng, seconds=6.0)
    tau = model.inverse_dynamics(q, v, a) + 0.4 * v
    change, message = MISTAKES[mistake]
    q, v, tau = change(q, v, tau + 0.01 * rng.normal(size=tau.shape))
    found = pb.identify(model, table(t, q, v, tau), terms="viscous", method="ordinary", consistent=False)
    told = [str(w.message) for w in recwarn if "instead of" in str(w.message)]
    if message is None:
        assert not told
        assert found.training_error < 0.01
    else:
        assert found.training_error > 0.05
        assert len(told) == 1
        assert message in told[0]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_of_pandas_and_polars_are_read_as_files_are(library, tmp_path) -> None:
    tables = pytest.importorskip(library)
    path = written(tmp_path, lines())
    model = pb.load("two-link")
    same(recording(model, tables.read_csv(path)), recording(model, path))


def test_arrays_that_are_not_used_or_are_no_numbers_are_named() -> None:
    model, t = pb.load("two-link"), np.arange(40) * 0.01
    q = np.sin(np.outer(t, [3.0, 5.0]))
    with pytest.warns(pb.PolybodyWarning, match="'vel' is not used"):
        recording(model, {"t": t, "q": q, "vel": q, "tau": q})
    with pytest.raises(pb.InputError, match="data: tau must be numbers"):
        recording(model, {"t": t, "q": q, "tau": q.astype(str)})


def test_quoted_cells_repeated_times_and_silent_recordings(tmp_path, recwarn) -> None:
    arm, data = pb.load("two-link"), waves()
    rows = np.column_stack([data["t"], data["q"], data["tau"]])
    path = tmp_path / "quoted.csv"
    for comma in (".", ","):
        cells = [",".join(f'"{x!r}"'.replace(".", comma) for x in row) for row in rows.tolist()]
        path.write_text("\n".join(['"t","q1","q2","tau1","tau2"', *cells]))
        found = recording(arm, path)
        np.testing.assert_array_equal(found.tau, data["tau"])
    recwarn.clear()
    again = {key: np.concatenate([x, x]) for key, x in data.items()}
    assert len(recording(arm, again)) == len(data["t"])
    assert f"{len(data['t'])} samples repeat the time" in str(recwarn.pop().message)
    with pytest.raises(pb.InputError, match="all joint forces are zero"):
        pb.identify(arm, data | {"tau": 0 * data["tau"]})


def test_a_recording_at_the_rate_that_is_asked_for_is_taken_as_it_is() -> None:
    """No sample is computed from its neighbours, and none is left out; at another rate both are."""
    arm = pb.load("two-link")
    t, q, v, _ = motion(arm, np.random.default_rng(0))
    own = recording(arm, {"t": t, "q": q, "v": v, "tau": v})
    rate = 1 / float(np.median(np.diff(t)))
    plain, asked, other = (states_of(arm, own, np.inf, r) for r in (None, rate, 1.37 * rate))
    for name in ("t", "q", "v", "tau"):
        np.testing.assert_array_equal(getattr(asked, name), getattr(plain, name))
    np.testing.assert_array_equal(asked.q, q)
    assert len(other.t) == len(np.arange(t[0], t[-1], 1 / (1.37 * rate)))
    uneven = t + 1e-3 * np.sin(t)  # resampled, although its usual gap is the one asked for
    moved = recording(arm, {"t": uneven, "q": q, "v": v, "tau": v})
    assert not np.array_equal(states_of(arm, moved, np.inf, rate).t, uneven)
