"""Studies at the limits of a machine: a full disk, and more cases than should be held in memory."""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import polybody as pb

pytest.importorskip("pyarrow")
SIZE = 40_000  # bytes: enough for study.json, not for a chunk


def study() -> pb.Study:
    arm = pb.load("puma560").with_payload("link6", 1.0)
    return pb.Study(arm, {"payload.mass": {"uniform": [0, 3]}}, samples=4000, quantity="gravity_forces", chunk=1000)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_full_disk_leaves_whole_chunks_and_the_study_goes_on(tmp_path: Path) -> None:
    """Files may grow to so many bytes and no further, as on a disk that is full there."""
    folder, made = tmp_path / "out", study()
    wanted = made.run(tmp_path / "wanted")

    def work() -> None:
        room = iter((10**9, 10**9))  # after two chunks there is room, after the third none

        def progress(*_: int) -> None:
            size = next(room, SIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        with pytest.raises(pb.PolybodyError, match=r"cannot be written .*the study can be resumed"):
            made.run(folder, progress=progress)

    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join(60)
    assert child.exitcode == 0
    left = sorted(path.name for path in (folder / "chunks").iterdir())
    assert left == [path.name for path in wanted.files()[: len(left)]], "whole chunks only, nothing half-written"
    assert len(left) == 3
    results = made.run(folder)
    assert [p.read_bytes() for p in results.files()] == [p.read_bytes() for p in wanted.files()]


LARGE = """
import resource, sys
import polybody as pb
arm = pb.load("two-link")
study = pb.Study(arm, {"q": {"uniform": [[-1, -1], [1, 1]]}}, samples=2_000_000, quantity="gravity_forces",
                 keep=["peak(gravity)"], chunk=16384)
peaks = []
def progress(finished, cases, failed):
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
study.run(sys.argv[1], progress=progress)
print(len(peaks), peaks[len(peaks) // 2], peaks[-1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss in kB")
def test_memory_does_not_grow_with_the_number_of_cases(tmp_path: Path) -> None:
    """Of two million cases, 64 MB of numbers, the second half adds less than a quarter of its own size."""
    done = subprocess.run([sys.executable, "-c", LARGE, str(tmp_path / "out")], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=True)  # fmt: skip
    chunks, half, late = map(int, done.stdout.split())
    assert chunks == 123
    assert late - half < 0.25 * 1_000_000 * 4 * 8 / 1024
    found = pb.StudyResults(tmp_path / "out").numpy("case")["case"]
    assert np.array_equal(found, np.arange(2_000_000))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("q: [[0, 0]]", "q.0: {grid: [0, 1, 1e10]}"), r"expected \[first, last, how many\], at most 10000000"),
        (("two-link", "x" * 1000), r"no model 'xxx"),
        (("keep:", "chunk: 1e400\nkeep:"), r"chunk"),
        (("q: [[0, 0]]", "q.0: {uniform: [0, 1]}\nsamples: 1e30"), r"has 1e\+30 cases; at most 1e\+12"),
        (("q: [[0, 0]]", "q.0: {grid: [0, 1, 1e7]}\n  q.1: {grid: [0, 1, 1e7]}"), r"has 1e\+14 cases"),
    ],
)
def test_files_whose_numbers_and_names_exceed_the_machine_are_refused(
    change: tuple[str, str], message: str, tmp_path: Path
) -> None:
    from polybody.studies.file import read_study

    text = "study: 1\nmodel: two-link\nvary:\n  q: [[0, 0]]\ndo: {quantity: gravity_forces}\nkeep: [gravity]\n"
    path = tmp_path / "s.yaml"
    path.write_text(text)
    read_study(path)
    assert change[0] in text
    path.write_text(text.replace(*change))
    with pytest.raises(pb.InputError, match=message):
        read_study(path)


UNITS = """\
study: 1
model: stanford-arm
payload: {frame: link6, mass: 300g, com: [0, 0, 5cm]}
vary:
  payload.mass: {uniform: [100g, 3kg]}
  payload.com.z: {normal: [5cm, 1mm]}
  q.1: {grid: [-90deg, 90deg, 5]}
  q.2: [10cm, 0.2]
samples: 8
do: {quantity: inverse_dynamics, at: {v: [10deg, 0, 1cm, 0, 0, 0]}}
keep: [tau]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[100g", "[100deg", r":5: axis 'payload.mass': uniform: .*dimension angle, expected a mass"),
        ("5cm, 1mm", "5cm, 1deg", r":6: axis 'payload.com.z': normal: .*dimension angle, expected a length"),
        ("[-90deg", "[-90cm", r":7: axis 'q.1': grid: .*dimension length, expected an angle"),
        ("[10cm", "[10deg", r":8: axis 'q.2': .*dimension angle, expected a length"),
        ("samples: 8", "samples: 8kg", r":9: samples: .*dimension mass, expected a number without unit"),
        ("mass: 300g", "mass: 30deg", r":3: payload: mass: .*dimension angle, expected a mass"),
        ("0, 1cm", "0, 1deg", r":10: v: .*dimension angle, expected a length"),
        ("[10deg, 0", "[10cm, 0", r":10: v: .*dimension length, expected an angle"),
    ],
)
def test_numbers_of_study_files_have_units_of_what_they_set(old: str, new: str, message: str, tmp_path: Path) -> None:
    import pickle

    from polybody.studies.file import read_study

    path = tmp_path / "units.yaml"
    path.write_text(UNITS)
    study = read_study(path).study
    assert len(study) == 80
    np.testing.assert_allclose(study.cases.values(0)["q.1"][[0, -1], 0], [-np.pi / 2, np.pi / 2])
    pickle.loads(pickle.dumps(study.task.options))
    assert old in UNITS
    path.write_text(UNITS.replace(old, new))
    with pytest.raises(pb.InputError, match=message):
        read_study(path)
