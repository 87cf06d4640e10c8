"""Results of a study as they are kept: a folder of Arrow or Parquet files, or memory.

    FOLDER/study.json                      what the study is: description, digest, cases, chunk, machine
    FOLDER/chunks/part-000012-3f9c….arrow  chunk 12; the name has the digest of model, code, description and chunk

A chunk's file is written beside its place and renamed, so that whoever reads sees all of it or nothing; a file of that
name is that chunk, and is never computed again. Rows are cases in their order. Arrow's files hold the numbers as memory
does: writing them costs what the file system costs. Parquet's are encoded first, which takes longer than most kernels,
and can be read by more programs. A chunk may be of either format.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.files import UNFINISHED, write_beside, write_bytes, write_text
from polybody.kernels import memory

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray
FORMAT = 1
FORMATS = ("arrow", "parquet")


def arrow() -> Any:
    """pyarrow, or what to install."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise PolybodyError("studies keep their results by pyarrow; pip install polybody[study]") from None
    return pyarrow


def parquet() -> Any:
    """The part of pyarrow that few studies need, as long to import as the rest of it."""
    arrow()
    import pyarrow.parquet

    return pyarrow.parquet


def table_of(columns: dict[str, Any]) -> pa.Table:
    """Arrow's table of a chunk's columns: numbers, or lists of fixed length with their shape in the metadata."""
    pa = arrow()
    arrays, fields = [], []
    for name, values in columns.items():
        if name == "error":
            count = len(columns["case"])
            texts = [values.get(k) for k in range(count)] if values else None
            arrays.append(pa.nulls(count, pa.string()) if texts is None else _texts(texts))
            fields.append(pa.field(name, pa.string()))
            continue
        array = np.arange(values.start, values.stop) if isinstance(values, range) else np.asarray(values)
        flat = array.reshape(len(array), -1)
        kind = pa.int64() if array.dtype.kind in "iu" else pa.float64()
        if array.ndim == 1 or (flat.shape[1] == 1 and array.ndim == 2):
            arrays.append(_numbers(_dense(flat[:, 0], array.dtype.kind), kind))
            fields.append(pa.field(name, kind))
        else:
            numbers = _numbers(_dense(flat, array.dtype.kind), kind)
            arrays.append(pa.FixedSizeListArray.from_arrays(numbers, flat.shape[1]))
            shape = json.dumps(list(array.shape[1:])).encode()
            fields.append(pa.field(name, pa.list_(kind, flat.shape[1]), metadata={b"shape": shape}))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _dense(x: Array, kind: str) -> Array:
    """The numbers one behind the other: as they are, or in memory that was used before."""
    wanted = np.dtype(np.int64 if kind in "iu" else np.float64)
    if x.flags.c_contiguous and x.dtype == wanted:
        return x
    found = memory.empty(x.shape, wanted)
    found[...] = x
    return found


def _texts(texts: Sequence[str | None]) -> Any:
    """Arrow's array of texts, None where there is none: the bytes of all, where each begins, a bit for each."""
    pa = arrow()
    parts = [(text or "").encode() for text in texts]
    begins = np.cumsum([0, *map(len, parts)], dtype=np.int32)
    told = np.packbits([text is not None for text in texts], bitorder="little")
    buffers = [pa.py_buffer(told), pa.py_buffer(begins), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def _numbers(dense: Array, kind: Any) -> Any:
    """Arrow's array of all numbers, in their memory. `pa.array` would import pandas, which takes long."""
    pa = arrow()
    return pa.Array.from_buffers(kind, dense.size, [None, pa.py_buffer(dense)])


def write_table(table: pa.Table, sink: Any, form: str) -> None:
    """The table as a file of either format; the same bytes for the same table. Measured numbers hardly compress."""
    pa = arrow()
    if form == "parquet":
        parquet().write_table(table, sink, compression="none", use_dictionary=False, write_statistics=False)
        return
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _write_file(table: pa.Table, path: str, form: str) -> None:
    """By a stream of Arrow's: one of Python's copies every column while no other thread can go on."""
    with arrow().OSFile(path, "wb") as stream:
        write_table(table, stream, form)


def encoded(columns: dict[str, Any], form: str) -> bytes:
    """The file of a chunk's columns, to be sent to the driver."""
    stream = arrow().BufferOutputStream()
    write_table(table_of(columns), stream, form)
    return stream.getvalue().to_pybytes()


def read_table(source: Any, form: str, columns: list[str] | None = None) -> pa.Table:
    """The table of a file: its path, or its bytes."""
    pa = arrow()
    if form == "parquet":
        return parquet().read_table(pa.BufferReader(source) if isinstance(source, bytes) else source, columns=columns)
    with pa.ipc.open_file(source if isinstance(source, bytes) else pa.memory_map(str(source))) as reader:
        table = reader.read_all()
    return table if columns is None else table.select([name for name in columns if name in table.column_names])


class Folder:
    """The folder of one study's results."""

    def __init__(self, path: str | os.PathLike[str], form: str = "arrow") -> None:
        self.path, self.form = Path(path), form

    def __str__(self) -> str:
        return str(self.path)

    @property
    def chunks(self) -> Path:
        return self.path / "chunks"

    def facts(self) -> dict[str, Any]:
        """What study.json says."""
        path = self.path / "study.json"
        if not path.is_file():
            raise InputError(f"{self.path}: holds no study (there is no study.json)")
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot be read ({error})") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise InputError(f"{path}: is not of format {FORMAT}")
        return found

    def begin(self, facts: dict[str, Any]) -> None:
        """Make the folder, or see that it belongs to this study."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path}: is a file; expected the folder of a study")
        if (self.path / "study.json").exists():
            before = self.facts()
            if before.get("digest") != facts["digest"]:
                raise InputError(f"{self.path}: holds the results of another study ({before.get('name')!r}, made of "
                                 "another model, description or code); choose another folder")
        elif self.path.exists() and any(self.path.iterdir()):
            raise InputError(f"{self.path}: is not empty and holds no study; choose another folder")
        try:
            self.chunks.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be made ({error.strerror or error})") from None
        for stale in self.chunks.glob(f".*{UNFINISHED}"):
            stale.unlink(missing_ok=True)  # of a driver that was killed
        if not (self.path / "study.json").exists():
            write_text(self.path / "study.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n")

    def file(self, digest: str, index: int, form: str) -> Path:
        key = hashlib.sha256(f"{digest}:{index}".encode()).hexdigest()[:16]
        return self.chunks / f"part-{index:06d}-{key}.{form}"

    def done(self, digest: str, index: int, rows: int) -> bool:
        """Whether a chunk is there, whole; what is damaged is removed."""
        for form in FORMATS:
            path = self.file(digest, index, form)
            if not path.exists():
                continue
            try:
                if _rows(path, form) == rows:
                    return True
            except (OSError, arrow().ArrowException):
                pass
            path.unlink(missing_ok=True)
        return False

    def write(self, digest: str, index: int, content: dict[str, Any] | pa.Table | bytes) -> None:
        path = self.file(digest, index, self.form)
        try:
            if isinstance(content, bytes):
                write_bytes(path, content, 0o644)
            else:
                table = table_of(content) if isinstance(content, dict) else content
                write_beside(path, 0o644, lambda neighbour: _write_file(table, neighbour, self.form))
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else error
            raise PolybodyError(
                f"{self.chunks}: chunk {index} cannot be written ({why}); "
                "what is finished stays, and the study can be resumed"
            ) from None

    def files(self) -> list[Path]:
        return sorted(path for form in FORMATS for path in self.chunks.glob(f"part-*.{form}"))

    def count(self) -> int:
        return len({path.stem for path in self.files()})

    def tables(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        for path in self.files():
            try:
                yield read_table(path, path.suffix[1:], columns)
            except (OSError, arrow().ArrowException) as error:
                raise PolybodyError(f"{path}: cannot be read ({error}); run the study again, which computes it anew"
                                    ) from None


def _rows(path: Path, form: str) -> int:
    """How many rows a file says that it has; damaged files are errors of Arrow."""
    pa = arrow()
    if form == "parquet":
        return parquet().read_metadata(path).num_rows
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        return sum(reader.get_batch(k).num_rows for k in range(reader.num_record_batches))


class Memory:
    """Results that are not written anywhere."""

    path: Path | None = None
    form: str | None = None

    def __init__(self) -> None:
        self._facts: dict[str, Any] = {}
        self._parts: dict[int, dict[str, Any] | bytes] = {}

    def __str__(self) -> str:
        return "memory"

    def facts(self) -> dict[str, Any]:
        return self._facts

    def begin(self, facts: dict[str, Any]) -> None:
        self._facts = facts

    def done(self, digest: str, index: int, rows: int) -> bool:
        return False

    def write(self, digest: str, index: int, content: dict[str, Any] | bytes) -> None:
        self._parts[index] = content

    def files(self) -> list[Path]:
        return []

    def count(self) -> int:
        return len(self._parts)

    def tables(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        for index in sorted(self._parts):
            part = self._parts[index]
            table = read_table(part, "arrow") if isinstance(part, bytes) else table_of(part)
            yield table if columns is None else table.select([name for name in columns if name in table.column_names])


__all__ = ["FORMAT", "FORMATS", "Folder", "Memory", "arrow", "encoded", "read_table", "table_of", "write_table"]
