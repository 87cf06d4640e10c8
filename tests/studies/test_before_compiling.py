"""Short studies answer by interpreted code, with the bits of compiled code, whatever is in the cache."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.kernels import background
from polybody.studies import dataset, executors, study

ROLLOUT = {"steps": 12, "controller": {"kd": 5.0}}
MAKE = {
    "arm": lambda: pb.Study(pb.load("puma560"), {"kp": {"uniform": [50, 300]}}, samples=10, rollout=ROLLOUT, chunk=4),
    "loops": lambda: pb.Study(pb.load("stewart"), {"kp": {"uniform": [5, 30]}}, samples=6, rollout=ROLLOUT, chunk=4),
    "quantity": lambda: pb.Study(
        pb.load("delta"), {"platform.mass": {"uniform": [1, 2]}}, samples=40, quantity="inverse_dynamics", chunk=16
    ),
}


def waits(monkeypatch, folder, tier: str) -> list[object]:
    """In this tier, on an empty cache, with a compiler that would begin a minute later: when it was waited for."""
    asked = []
    monkeypatch.setenv("POLYBODY_TIER", tier)
    monkeypatch.setenv("POLYBODY_CACHE", str(folder))
    monkeypatch.setattr(background, "PAUSE", 60.0)
    monkeypatch.setattr(background, "LATEST", 60.0)
    monkeypatch.setattr(background, "wait", lambda seconds=None: asked.append(seconds) or True)
    return asked


@pytest.mark.parametrize("name", MAKE)
def test_a_short_study_answers_before_anything_is_compiled_with_the_same_bits(monkeypatch, tmp_path, name) -> None:
    asked = waits(monkeypatch, tmp_path / "interpreted", "auto")
    interpreted = MAKE[name]().run().numpy()
    assert not asked
    waits(monkeypatch, tmp_path / "compiled", "optimised")
    compiled = MAKE[name]().run().numpy()
    assert list(interpreted) == list(compiled)
    for column, values in compiled.items():
        np.testing.assert_array_equal(interpreted[column], values)


def test_a_long_study_waits_for_compiled_code(monkeypatch, tmp_path) -> None:
    asked = waits(monkeypatch, tmp_path, "auto")
    monkeypatch.setattr(study, "INTERPRETED", 1e-9)
    MAKE["arm"]().run()
    assert len(asked) == 1
    pb.Study(None, {"x": [1.0, 2.0]}, function=lambda case: {"y": case["x"]}, chunk=1).run(workers=1)
    assert len(asked) == 2  # case by case: once the first chunk has shown how long the others take


def drawn(case):
    return {"q": case.model.random_configuration(case.rng)}


def test_states_that_cases_assemble_do_not_tell_what_was_asked_before(monkeypatch, tmp_path) -> None:
    """By the equations in NumPy, as calls outside of studies do at first, their last digits are others."""
    waits(monkeypatch, tmp_path / "first", "auto")
    model = pb.load("delta")
    alone = model.random_configuration(np.random.default_rng(1))  # read in NumPy
    found = [pb.Study(model, {"x": [1.0, 2.0, 3.0]}, function=drawn).run(workers=1).numpy()["q"]]
    for folder in ("second", "third"):
        waits(monkeypatch, tmp_path / folder, "auto" if folder == "second" else "optimised")
        found.append(pb.Study(pb.load("delta"), {"x": [1.0, 2.0, 3.0]}, function=drawn).run(workers=1).numpy()["q"])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert (alone != pb.load("delta").random_configuration(np.random.default_rng(1))).any()


def test_what_is_repeatable_ends_with_the_study_that_asked_for_it(monkeypatch) -> None:
    monkeypatch.setenv("POLYBODY_TIER", "auto")
    assert not background.is_repeatable()
    with background.repeatable():
        with background.repeatable(compiled=True):
            assert background.tier() == "optimised"
        with pytest.raises(pb.PolybodyError), background.repeatable(compiled=True):
            raise pb.PolybodyError("inside")
        assert (background.tier(), background.is_repeatable()) == ("auto", True)
    assert not background.is_repeatable()
    monkeypatch.setenv("POLYBODY_TIER", "fast")
    with background.repeatable(compiled=True):
        assert (background.tier(), background.is_repeatable()) == ("fast", True)  # what the user chose


def test_one_chunk_needs_no_other_process() -> None:
    assert executors.executor_of(None, None, False, 1) == (executors.serial, 1)
    assert executors.executor_of(2, None, False, 1) == (executors.processes, 2)
    many, count = executors.executor_of(None, None, False, 2)
    assert many is (executors.processes if count > 1 else executors.serial)


def test_errors_of_some_cases_are_texts_of_the_table() -> None:
    errors = {1: "ω is not finite", 7: "", 9: "x"}
    table = dataset.table_of({"case": range(20, 31), "error": errors})
    table.validate(full=True)
    assert table.column("error").to_pylist() == [errors.get(k) for k in range(11)]
    assert table.column("error").null_count == 8
