"""Files are written whole or not at all."""

import os

import pytest

from polybody import files
from polybody.errors import InputError


def test_what_stood_there_survives_a_failure_and_nothing_is_left_behind(tmp_path, monkeypatch):
    path = tmp_path / "model.yaml"
    files.write_text(path, "first\n")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="No space left"):
        files.write_text(path, "second\n")
    assert path.read_bytes() == b"first\n"
    assert [p.name for p in tmp_path.iterdir()] == ["model.yaml"]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_permissions_stay_those_of_the_file_or_of_a_new_one(tmp_path):
    path = tmp_path / "model.yaml"
    files.write_text(path, "first")
    plain = tmp_path / "plain"
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    files.write_text(path, "second")
    assert path.stat().st_mode & 0o777 == 0o640
    files.write_bytes(path, b"third", 0o600)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("where", ["nowhere/file", "."])
def test_a_place_that_is_no_file_is_named(tmp_path, where):
    with pytest.raises(InputError, match=r"does not exist|is a folder"):
        files.write_text(tmp_path / where, "")
