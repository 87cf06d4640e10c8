"""Tables of numbers in files: columns by name.

CSV files are UTF-8 text with a header, their columns separated by commas, semicolons or tabs, decimals with a point, or
with a comma where columns are separated otherwise; cells may be quoted. Lines before the header that begin with # are
skipped; a cell that is no number is a missing one (NaN).
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from polybody.errors import InputError
from polybody.names import counted

Array = np.ndarray
#: a table larger than this is not a recording of a robot
LARGEST_FILE = 2_000_000_000


def columns_of(path: Path) -> dict[str, Array]:
    """{name: column} of a .csv or .parquet file."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.stat().st_size > LARGEST_FILE:
        raise InputError(f"{path}: larger than {LARGEST_FILE / 1e9:g} GB, not read")
    return _parquet(path) if path.suffix == ".parquet" else _csv(path)


def _parquet(path: Path) -> dict[str, Array]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise InputError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from None
    try:
        table = parquet.read_table(path)
        return {name: np.asarray(table[name], dtype=float) for name in table.column_names}
    except (pyarrow.ArrowException, ValueError, TypeError) as problem:
        raise InputError(f"{path}: not a Parquet table of numbers ({str(problem).splitlines()[0]})") from None


def _csv(path: Path) -> dict[str, Array]:
    try:
        lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; expected CSV with a header such as t,q1,q2,tau1,tau2") from None
    first = next((k for k, line in enumerate(lines) if not line.lstrip().startswith("#")), len(lines))
    lines = lines[first:]
    if len(lines) < 2:
        raise InputError(f"{path}: {'empty' if not lines else 'a header without rows'}; expected a table of numbers")
    separator = next((x for x in (",", ";", "\t") if x in lines[0]), ",")
    header = [x.strip().strip('"') for x in lines[0].split(separator)]
    repeated = sorted({x for x in header if header.count(x) > 1})
    if repeated:
        raise InputError(f"{path}: more than one column {repeated[0]!r}")
    text = "\n".join(lines[1:])
    if '"' in text:
        text, separator = _unquoted(lines[1:], separator)
    if separator != "," and "," in text and "." not in text:
        text = text.replace(",", ".")
    try:
        rows = np.genfromtxt(io.StringIO(text), delimiter=separator, dtype=float, ndmin=2)
    except ValueError as problem:
        raise InputError(f"{path}: not a table of numbers ({str(problem).splitlines()[-1].strip()})") from None
    if rows.shape[1] != len(header):
        raise InputError(f"{path}: the header has {counted(len(header), 'column')}, the rows {rows.shape[1]}")
    return dict(zip(header, rows.T, strict=True))


def _unquoted(lines: list[str], separator: str) -> tuple[str, str]:
    """(the lines without quotes around their cells, their separator): quoted decimals may have a comma."""
    rows = list(csv.reader(lines, delimiter=separator))
    return "\n".join("\t".join(cell.strip() for cell in row) for row in rows), "\t"


__all__ = ["columns_of"]
