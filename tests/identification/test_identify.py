"""Identification from made recordings: what was put in comes out, and how sure it is is said rightly."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import polybody as pb
from identification.recordings import motion, table, write_csv
from polybody.cli import app
from polybody.identification.semidefinite import is_consistent, pseudo_inertia
from polybody.identification.signals import motion_frequency, rates_of

FRICTION = {"viscous": 3.0, "coulomb": 4.0, "offset": 0.7}


@pytest.fixture(scope="module")
def arm() -> pb.Model:
    """A Puma whose joints have armature and nothing else."""
    return pb.load("puma560")


def forces(model, q, v, a, friction=FRICTION, width=0.01):
    armature = np.diag(model.mechanism.armature)
    bodies = (model.regressor(q, v, a) @ model.regressor.parameters()) + armature * a
    return bodies + friction["viscous"] * v + friction["coulomb"] * np.tanh(v / width) + friction["offset"]


def recorded(model, seed, noise=0.05, **options):
    rng = np.random.default_rng(seed)
    t, q, v, a = motion(model, rng, **options)
    tau = forces(model, q, v, a)
    return t, q, v, tau + noise * rng.normal(size=tau.shape)


def test_base_parameters_are_recovered_within_their_deviations(arm) -> None:
    found = pb.identify(arm, table(*recorded(arm, 0)), validate=table(*recorded(arm, 1)),
                        terms="armature+viscous+coulomb+offset", cutoff=np.inf, consistent=False)  # fmt: skip
    names = dict.fromkeys(found.problem.base.names, 0.0)
    true = np.zeros(len(names))
    true[:60] = arm.regressor.parameters()
    true[60:66] = np.diag(arm.mechanism.armature)
    for block, value in enumerate(FRICTION.values()):
        true[66 + 6 * block : 72 + 6 * block] = value
    gaps = np.abs(found.base - found.problem.base.values(true)) / found.deviations
    assert np.mean(gaps < 3) > 0.9
    assert np.sqrt(np.mean(gaps**2)) < 2.0  # the friction's step is not quite that of the estimate
    assert found.validation_error is not None
    assert found.validation_error < 0.02


def test_consistent_estimate_predicts_as_well_and_has_bodies_that_can_exist(arm) -> None:
    found = pb.identify(arm, table(*recorded(arm, 0)), validate=table(*recorded(arm, 1)))
    assert found.consistent
    assert is_consistent(found.model.regressor.parameters())
    assert found.validation_error is not None
    assert found.validation_error < 0.02
    assert found.base_count == 36
    q = found.model.random_configuration(0, 2000)
    assert np.linalg.eigvalsh(found.model.mass_matrix(q)).min() > 0
    assert "link1.mass" in found.unidentifiable
    assert len(found.plot().axes) == 6
    text = json.dumps(found.summary())
    assert "validation_error" in text


def test_velocities_may_be_absent_samples_uneven_and_rows_missing_or_wild(arm) -> None:
    t, q, v, tau = recorded(arm, 2)
    rng = np.random.default_rng(0)
    kept = np.sort(rng.choice(len(t), size=len(t) - 200, replace=False))
    t, q, v, tau = t[kept], q[kept], v[kept], tau[kept].copy()
    tau[rng.choice(len(t), 8)] += 300.0
    q = q.copy()
    q[17, 2] = np.nan
    with pytest.warns(pb.PolybodyWarning, match="1 of 1000 rows"):
        found = pb.identify(arm, {"t": t, "q": q, "tau": tau}, validate=table(*recorded(arm, 1)), consistent=False)
    assert found.validation_error is not None
    assert found.validation_error < 0.04
    assert found.choices["velocities"] == "differences of positions"


def test_currents_with_drive_gains_equal_forces(arm) -> None:
    t, q, v, tau = recorded(arm, 3)
    gains = np.array([10.0, 11, 12, 3, 4, 5])
    options = {"terms": "armature+viscous", "consistent": False, "method": "ordinary"}
    by_force = pb.identify(arm, table(t, q, v, tau), **options)
    by_current = pb.identify(arm, {"t": t, "q": q, "v": v, "i": tau / gains}, drive_gains=gains, **options)
    np.testing.assert_allclose(by_current.base, by_force.base, rtol=1e-9, atol=1e-9)
    with pytest.raises(pb.InputError, match="drive gains"):
        pb.identify(arm, {"t": t, "q": q, "i": tau})


def test_pseudo_inertia_of_a_point_mass_is_singular_and_of_a_ball_is_not() -> None:
    h = np.array([0.1, -0.2, 0.3])
    point = np.array([2.0, *(2 * h), *(2 * (h @ h - h**2)), *(-2 * h[[0, 0, 1]] * h[[1, 2, 2]])])
    assert abs(np.linalg.eigvalsh(pseudo_inertia(point))[0]) < 1e-12
    ball = point + np.array([0, 0, 0, 0, 0.1, 0.1, 0.1, 0, 0, 0])
    assert is_consistent(ball)
    assert not is_consistent(point - np.array([0, 0, 0, 0, 0.1, 0.1, 0.1, 0, 0, 0]))


def test_command_line_identifies_from_csv_by_number_and_by_name(arm, tmp_path) -> None:
    write_csv(tmp_path / "train.csv", *recorded(arm, 0))
    write_csv(tmp_path / "validate.csv", *recorded(arm, 1), names=tuple(arm.joint_names))
    result = CliRunner().invoke(app, [
        "identify", "puma560", str(tmp_path / "train.csv"), "--validate", str(tmp_path / "validate.csv"), "--json",
        "--terms", "armature+viscous+coulomb+offset", "--save", str(tmp_path / "arm.yaml"),
        "--report", str(tmp_path / "report.html"),
    ])  # fmt: skip
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["base_parameters"] == 36
    assert answer["consistent"] is True
    assert answer["training_error"] < 0.02
    assert answer["validation_error"] < 0.02
    saved = pb.load(tmp_path / "arm.yaml")
    assert is_consistent(saved.regressor.parameters())
    page = (tmp_path / "report.html").read_text()
    assert "physically consistent" in page
    assert "<img" in page


def test_steps_of_encoders_do_not_raise_the_cutoff() -> None:
    t = np.arange(1500) * 0.01
    q = np.column_stack([np.sin(2 * t) + 0.3 * np.cos(5 * t), np.cos(3 * t)])
    step = 2 * np.pi / 512
    exact, coarse = (rates_of(x, 0.01) for x in (q, np.rint(q / step) * step))
    wanted = motion_frequency(exact, 100.0, differences=True)
    assert motion_frequency(coarse, 100.0, differences=True) == wanted < 1.0
    assert motion_frequency(coarse, 100.0) > 10.0  # taken for motion


def test_unusable_data_are_refused_by_name(arm, tmp_path) -> None:
    (tmp_path / "few.csv").write_text("t,q1\n0,0\n")
    with pytest.raises(pb.InputError, match="q1"):
        pb.identify(arm, tmp_path / "few.csv")
    (tmp_path / "words.csv").write_text("a,b\n1,2\n")
    with pytest.warns(pb.PolybodyWarning, match="'a'"), pytest.raises(pb.InputError, match="no column t"):
        pb.identify(arm, tmp_path / "words.csv")
    with pytest.raises(pb.InputError, match="method"):
        pb.identify(arm, {}, method="best")
    for name, value in (("rate", 0.0), ("cutoff", -3.0), ("prior", np.nan), ("prior", -1.0)):
        with pytest.raises(pb.InputError, match=f"{name} is"):
            pb.identify(arm, {}, **{name: value})
    with pytest.raises(pb.InputError, match="no recording"):
        pb.identify(arm, [])


def test_payload_follows_from_a_recording_without_and_one_with_it(arm) -> None:
    held = {"mass": 1.6, "com": (0.02, -0.03, 0.08), "inertia": (0.004, 0.005, 0.003)}
    loaded = arm.with_payload("link6", **held)
    rng = np.random.default_rng(4)
    parts = []
    for model, seed in ((arm, 5), (loaded, 6)):
        t, q, v, a = motion(model, np.random.default_rng(seed))
        tau = forces(model, q, v, a)
        parts.append(table(t, q, v, tau + 0.02 * rng.normal(size=tau.shape)))
    found = pb.identify_payload(arm, *parts, frame="link6", terms="armature+viscous+coulomb+offset")
    assert abs(found.mass - 1.6) < 0.05
    np.testing.assert_allclose(found.com, held["com"], atol=0.01)
    assert found.consistent
    assert found.error < 0.02


def test_drive_gains_follow_from_a_known_payload(arm) -> None:
    held = {"mass": 4.0, "com": (0.05, -0.06, 0.12), "inertia": (0.02, 0.02, 0.02)}
    gains = np.array([10.0, 11, 12, 3, 4, 5])
    rng = np.random.default_rng(4)
    parts = []
    for model, seed in ((arm, 5), (arm.with_payload("link6", **held), 6)):
        t, q, v, a = motion(model, np.random.default_rng(seed))
        i = (forces(model, q, v, a) + 0.01 * rng.normal(size=q.shape)) / gains
        parts.append({"t": t, "q": q, "v": v, "i": i})
    found = pb.identify_drive_gains(arm, *parts, frame="link6", **held, terms="armature+viscous+coulomb+offset")
    np.testing.assert_allclose(found.gains, gains, rtol=0.05)


def test_a_model_without_masses_is_identified_as_one_with_them() -> None:
    rows = [{"a": 0.4, "alpha": 1.2}, {"a": 0.3, "d": 0.1}]
    true = pb.from_dh([{**row, "mass": 3.0, "com": (-0.1, 0.02, 0.05), "inertia": (0.05, 0.04, 0.06)} for row in rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing has mass
        bare = pb.from_dh(rows)
    t, rng = np.linspace(0, 8, 800), np.random.default_rng(2)
    q, v, a = (np.zeros((len(t), 2)) for _ in range(3))
    for k in range(1, 5):
        (A, phase), w = rng.normal(size=(2, 2)), 0.8 * k
        angle = w * t[:, None] + 3 * phase
        q, v, a = q + A * np.sin(angle), v + A * w * np.cos(angle), a - A * w * w * np.sin(angle)
    tau = true.inverse_dynamics(q, v, a) + 0.3 * v + 0.02 * rng.normal(size=q.shape)
    found = pb.identify(bare, {"t": t, "q": q, "v": v, "tau": tau}, terms="viscous")
    assert found.consistent
    assert found.training_error < 0.02
