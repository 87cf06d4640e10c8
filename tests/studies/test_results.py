"""What is kept of a study: in memory or in files of either format, whole columns, entries and reductions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.errors import InputError, PolybodyError
from polybody.studies.reductions import REDUCTIONS, reduced

pytest.importorskip("pyarrow")
VARY = {"payload.mass": {"uniform": [0, 3]}, "q": {"uniform": [[-1] * 6, [1] * 6]}}


def arm() -> pb.Model:
    return pb.load("puma560").with_payload("link6", 1.0)


def test_memory_arrow_and_parquet_hold_the_same_numbers_by_any_number_of_threads(tmp_path: Path) -> None:
    study = pb.Study(arm(), VARY, samples=1000, chunk=96, quantity="inverse_dynamics", keep=["tau", "peak(tau)"])
    with pb.threads(3):
        held, arrow = study.run(), study.run(tmp_path / "arrow")
    with pb.threads(1):
        parquet = study.run(tmp_path / "parquet", format="parquet")
        alone = study.run()
    assert held.folder is None
    assert held.complete
    assert {p.suffix for p in arrow.files()} == {".arrow"}
    assert {p.suffix for p in parquet.files()} == {".parquet"}
    wanted = held.numpy()
    for other in (arrow, parquet, alone):
        found = other.numpy()
        assert list(found) == list(wanted)
        assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
    assert wanted["tau"].shape == (1000, 6)
    held.pandas()
    # a folder goes on in the other format: what is there is not computed again
    arrow.files()[3].unlink()
    mixed = study.run(tmp_path / "arrow", format="parquet")
    assert [p.suffix for p in mixed.files()].count(".parquet") == 1
    assert all(np.array_equal(mixed.numpy()[name], wanted[name]) for name in wanted)
    with pytest.raises(InputError, match=r"format is 'parkett'"):
        study.run(tmp_path / "other", format="parkett")


def test_kept_entries_and_reductions_are_those_of_the_whole_result() -> None:
    keep = ["tau", "tau[2]", *(f"{name}(tau)" for name in REDUCTIONS)]
    study = pb.Study(arm(), VARY, samples=300, quantity="inverse_dynamics", keep=keep)
    found = study.run().numpy()
    np.testing.assert_array_equal(found["tau[2]"], found["tau"][:, 2])
    for name, (of_rows, _) in REDUCTIONS.items():
        np.testing.assert_allclose(found[f"{name}(tau)"], of_rows(found["tau"]), rtol=1e-14, atol=1e-14)
    single = pb.Study(arm(), VARY, samples=300, quantity="inverse_dynamics", keep=["peak(tau)"]).run().numpy()
    np.testing.assert_array_equal(single["peak(tau)"], found["peak(tau)"])
    matrix = pb.Study(arm(), VARY, samples=20, quantity="mass_matrix", keep=["M[1][2]", "norm(M)", "max(M[0])"])
    M = np.array([matrix.model.parameters.at([m]).mass_matrix(q)  # type: ignore[union-attr]
                  for m, q in zip(*(matrix.run().numpy()[n] for n in ("payload.mass", "q")), strict=True)])  # fmt: skip
    got = matrix.run().numpy()
    np.testing.assert_allclose(got["M[1][2]"], M[:, 1, 2], rtol=1e-12)
    np.testing.assert_allclose(got["norm(M)"], np.linalg.norm(M, axis=(1, 2)), rtol=1e-12)
    np.testing.assert_allclose(got["max(M[0])"], M[:, 0].max(axis=1), rtol=1e-12)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_show_numbers_that_are_not_finite(name: str) -> None:
    x = np.arange(24.0).reshape(6, 4) - 7
    x[1, 0], x[2, 3], x[3, 1], x[4, 1] = np.nan, np.nan, np.inf, -np.inf
    np.testing.assert_allclose(reduced(name, x), REDUCTIONS[name][0](x), rtol=1e-14)


def sometimes(case: pb.studies.Case) -> dict[str, Any]:
    if case["x"] == 2:
        raise ValueError("no")
    return {"y": np.full(3, case["x"])}


def growing(case: pb.studies.Case) -> dict[str, Any]:
    return {"y": np.zeros(round(case["x"]))}


def test_chunks_in_which_all_cases_failed_are_rows_without_numbers() -> None:
    results = pb.Study(None, {"x": [1, 2, 3]}, function=sometimes, chunk=1).run(workers=1)
    y = results.numpy()["y"]
    np.testing.assert_array_equal(y, [[1] * 3, [np.nan] * 3, [3] * 3])
    assert results.failures() == [(1, "ValueError: no")]
    with pytest.raises(InputError, match=r"no column 'z'"):
        results.numpy("z")


def clashing(case: pb.studies.Case) -> dict[str, Any]:
    return {"x": 1.0, "y": 2.0}


def test_results_do_not_take_the_place_of_what_is_varied() -> None:
    results = pb.Study(None, {"x": [5, 6]}, function=clashing).run(workers=1)
    np.testing.assert_array_equal(results.numpy()["x"], [5, 6])
    assert "a result is called 'x'" in results.failures()[0][1]
    with pytest.raises(InputError, match=r"no result 'z'"):
        results.correlations("z")


def test_results_of_different_shapes_are_read_chunk_by_chunk() -> None:
    results = pb.Study(None, {"x": [2, 3]}, function=growing, chunk=1).run(workers=1)
    with pytest.raises(PolybodyError, match=r"y has shape \[2\] in some chunks and \[3\] in others.*batches"):
        results.table()
    assert [len(t.column("y")[0]) for t in results.batches()] == [2, 3]


def test_dry_runs_count_the_start_of_processes() -> None:
    study = pb.Study(arm(), VARY, samples=8, quantity="gravity_forces", chunk=4)
    alone, shared = study.dry_run(0.1), study.dry_run(0.1, workers=2)
    assert alone["start"] == 0.0, "threads start at once"
    assert shared["by"] == "2 processes"
    assert shared["start"] > 0.05, "Python itself takes longer to start"
    assert shared["seconds"] == shared["start"] + 8 / shared["cases_per_second"]


@pytest.mark.parametrize("seconds", [0.2, 1e-9])  # time for many samples, and for one only
def test_dry_runs_estimate_from_whole_chunks(seconds: float) -> None:
    said = pb.Study(arm(), VARY, samples=50_000, quantity="gravity_forces", keep=["gravity"]).dry_run(seconds)
    assert (said["cases"], said["chunk"], said["chunks"]) == (50_000, 16384, 4)
    size = 8 * (1 + 7 + 6)
    assert size < said["bytes"] / 50_000 < 1.3 * size
    assert said["seconds"] == pytest.approx(50_000 / said["cases_per_second"])


def test_chunks_by_default_depend_on_the_study_alone() -> None:
    few = pb.Study(arm(), VARY, samples=100, quantity="gravity_forces")
    many = pb.Study(arm(), VARY, samples=1_000_000, quantity="gravity_forces")
    large = pb.Study(arm(), VARY, samples=1_000_000, quantity="inverse_dynamics_derivatives")
    assert few.cases.chunk == 16384
    assert many.cases.chunk == -(-1_000_000 // (8 * 256)) * 256 or many.cases.chunk * 8 * 14 <= 12 << 20
    assert large.cases.chunk < many.cases.chunk
