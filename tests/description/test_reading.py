"""Files that are missing, cut off, binary, too large or of the wrong kind are refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

import polybody as pb
from polybody.description.reading import read_description, shipped_models


def refused(source: object, message: str, **options: str) -> None:
    with pytest.raises(pb.InputError, match=message):
        pb.load(source, **options)  # type: ignore[arg-type]


def test_missing_files_and_unknown_names_offer_the_nearest(tmp_path: Path) -> None:
    refused("stanford_arm", r"no model 'stanford_arm' \(did you mean 'stanford-arm'\?\); available: .*double-pendulum")
    (tmp_path / "robot.yaml").write_text("polybody: 1\n", encoding="utf-8")
    refused(tmp_path / "robt.yaml", r"no file .*robt.yaml' \(did you mean 'robot.yaml'\?\)")
    refused(tmp_path, "is a folder; name a file in it")


def test_name_of_a_shipped_model_cannot_leave_its_folder() -> None:
    folder = next(iter(shipped_models().values())).parent
    for name in ("../models/two-link", "./two-link", str(folder / "two-link")):
        refused(name, "no file")


def test_wrong_suffix_names_the_right_ones(tmp_path: Path) -> None:
    (tmp_path / "robot.dae").write_text("<x/>", encoding="utf-8")
    refused(tmp_path / "robot.dae", "polybody reads .yaml, .yml, .urdf, .xacro, .sdf, .xml files, not .dae")


@pytest.mark.parametrize("suffix", [".yaml", ".urdf", ".xml"])
def test_binary_empty_and_huge_files_are_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"robot{suffix}"
    path.write_bytes(b"\x7fELF\x00\x01\x02")
    refused(path, "binary file, not text")
    path.write_bytes(b"  \n")
    refused(path, "the file is empty")
    path.write_bytes(b"name: caf\xe9\n")
    refused(path, "not UTF-8 text")
    with path.open("wb") as file:
        file.truncate(100_000_000)  # sparse: it is never read
    refused(path, "the file has 100 MB")


def test_truncated_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    text = shipped_models()["stanford-arm"].read_text(encoding="utf-8")
    path = tmp_path / "cut.yaml"
    path.write_text(text[: text.index("inertia: [0.05") + 14], encoding="utf-8")
    refused(path, r"cut.yaml:\d+: not valid YAML: .*cut off")


def test_base_of_an_arm_on_the_ground_needs_a_mass() -> None:
    refused("two-link", "joint 'shoulder' is attached to the ground itself.*mass=", base="floating")
    refused("two-link", r"base is 'floatin' \(did you mean 'floating'\?\)", base="floatin")


def test_sources_name_file_and_line() -> None:
    joint = read_description("two-link").joints[1]
    text = shipped_models()["two-link"].read_text(encoding="utf-8").splitlines()
    file, line = (joint.source or "").split(":")
    assert file == "two-link.yaml"
    assert text[int(line) - 1].lstrip().startswith("elbow:")
