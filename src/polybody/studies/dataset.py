"""Results on disk: one Parquet file a chunk, the study's description beside them.

    FOLDER/study.json                      what the study is: description, digest, cases, chunk, machine
    FOLDER/chunks/part-000012-3f9c….parquet    chunk 12; the name has the digest of model, code, description and chunk

A chunk's file is written beside its place and renamed, so that whoever reads sees all of it or nothing; a file of that
name is that chunk, and is never computed again. Rows are cases in their order.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.files import UNFINISHED, write_bytes, write_text

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray
FORMAT = 1


def arrow() -> Any:
    """pyarrow, or what to install."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise PolybodyError("studies keep their results by pyarrow; pip install polybody[study]") from None
    return pyarrow


def _needed(package: str) -> Any:
    """A package that only reads results, or what to install."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise PolybodyError(f"{package} is not installed; pip install {package}") from None


def table_of(columns: dict[str, Any]) -> pa.Table:
    """Arrow's table of a chunk's columns: numbers, or lists of fixed length with their shape in the metadata."""
    pa = arrow()
    arrays, fields = [], []
    for name, values in columns.items():
        if name == "error":
            count = len(columns["case"])
            texts = [values.get(k) for k in range(count)] if values else None
            arrays.append(pa.nulls(count, pa.string()) if texts is None else pa.array(texts, pa.string()))
            fields.append(pa.field(name, pa.string()))
            continue
        array = np.asarray(values)
        flat = array.reshape(len(array), -1)
        kind = pa.int64() if array.dtype.kind in "iu" else pa.float64()
        if array.ndim == 1 or (flat.shape[1] == 1 and array.ndim == 2):
            arrays.append(pa.array(np.ascontiguousarray(flat[:, 0]), kind))
            fields.append(pa.field(name, kind))
        else:
            numbers = pa.array(np.ascontiguousarray(flat, dtype=float).ravel(), kind)
            arrays.append(pa.FixedSizeListArray.from_arrays(numbers, flat.shape[1]))
            shape = json.dumps(list(array.shape[1:])).encode()
            fields.append(pa.field(name, pa.list_(kind, flat.shape[1]), metadata={b"shape": shape}))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def parquet_bytes(table: pa.Table) -> bytes:
    """The table as a Parquet file; the same bytes for the same table. Measured numbers hardly compress."""
    pa = arrow()
    stream = pa.BufferOutputStream()
    pa.parquet.write_table(table, stream, compression="none", use_dictionary=False, write_statistics=False)
    return stream.getvalue().to_pybytes()


class Dataset:
    """The folder of one study's results."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    @property
    def chunks_folder(self) -> Path:
        return self.folder / "chunks"

    def facts(self) -> dict[str, Any]:
        """What study.json says."""
        path = self.folder / "study.json"
        if not path.is_file():
            raise InputError(f"{self.folder}: holds no study (there is no study.json)")
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot be read ({error})") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise InputError(f"{path}: is not of format {FORMAT}")
        return found

    def begin(self, facts: dict[str, Any]) -> None:
        """Make the folder, or see that it belongs to this study."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder}: is a file; expected the folder of a study")
        if (self.folder / "study.json").exists():
            before = self.facts()
            if before.get("digest") != facts["digest"]:
                raise InputError(f"{self.folder}: holds the results of another study ({before.get('name')!r}, made of "
                                 "another model, description or code); choose another folder")
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise InputError(f"{self.folder}: is not empty and holds no study; choose another folder")
        self.chunks_folder.mkdir(parents=True, exist_ok=True)
        for stale in self.chunks_folder.glob(f".*{UNFINISHED}"):
            stale.unlink(missing_ok=True)  # of a driver that was killed
        if not (self.folder / "study.json").exists():
            write_text(self.folder / "study.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n")

    def path(self, digest: str, index: int) -> Path:
        key = hashlib.sha256(f"{digest}:{index}".encode()).hexdigest()[:16]
        return self.chunks_folder / f"part-{index:06d}-{key}.parquet"

    def done(self, digest: str, index: int, rows: int) -> bool:
        """Whether a chunk is there, whole; what is damaged is removed."""
        path = self.path(digest, index)
        if not path.exists():
            return False
        try:
            if arrow().parquet.read_metadata(path).num_rows == rows:
                return True
        except (OSError, arrow().ArrowException):
            pass
        path.unlink(missing_ok=True)
        return False

    def write(self, digest: str, index: int, content: bytes) -> None:
        try:
            write_bytes(self.path(digest, index), content, 0o644)
        except OSError as error:
            raise PolybodyError(
                f"{self.chunks_folder}: chunk {index} cannot be written ({error.strerror or error}); what is finished "
                "stays, and the study can be resumed"
            ) from None

    # Reading.

    def files(self) -> list[Path]:
        return sorted(self.chunks_folder.glob("part-*.parquet"))

    def batches(self) -> Iterator[pa.Table]:
        """Chunk by chunk: for results that do not fit into memory."""
        for path in self.files():
            yield arrow().parquet.read_table(path)

    def table(self, columns: list[str] | None = None) -> pa.Table:
        """All rows as an Arrow table."""
        pa = arrow()
        paths = self.files()
        if not paths:
            raise InputError(f"{self.folder}: no chunk is finished yet")
        tables = [pa.parquet.read_table(path, columns=columns) for path in paths]
        return pa.concat_tables(tables, promote_options="default")

    def pandas(self) -> Any:
        """All rows as a pandas DataFrame."""
        _needed("pandas")
        return self.table().to_pandas()

    def polars(self) -> Any:
        """All rows as a polars DataFrame."""
        return _needed("polars").from_arrow(self.table())

    def numpy(self, *names: str) -> dict[str, Array]:
        """{column: (cases, …)} of the named columns, or of all numbers."""
        table = self.table(list(names) or None)
        found = {}
        for field in table.schema:
            if field.name == "error" and "error" not in names:
                continue
            column = table.column(field.name).combine_chunks()
            if field.metadata and b"shape" in field.metadata:
                shape = json.loads(field.metadata[b"shape"])
                array = column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), *shape)
            else:
                array = column.to_numpy(zero_copy_only=False)
            found[field.name] = array
        return found

    def failures(self) -> list[tuple[int, str]]:
        """(case, error) of the cases that failed."""
        table = self.table(["case", "error"])
        pairs = zip(table.column("case").to_pylist(), table.column("error").to_pylist(), strict=True)
        return [(case, error) for case, error in pairs if error is not None]


__all__ = ["FORMAT", "Dataset", "arrow", "parquet_bytes", "table_of"]
