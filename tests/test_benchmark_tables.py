"""The tables of benchmarks/README.md are those of the files in benchmarks/results."""

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


def test_tables_are_those_of_the_measured_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import tables

    text = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    assert text.count("<!-- end -->") == len(tables.TABLES), "each table has its place"
    assert tables.filled(text) == text, "run: python benchmarks/tables.py"
