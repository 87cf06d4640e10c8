"""Results of a study: what is kept of it (`dataset`), in the ways one may read it, and what can be asked of it."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.names import counted, nearest
from polybody.studies.dataset import Folder, Memory, arrow
from polybody.studies.statistics import SobolIndices, sobol_indices, summary

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray


class StudyResults:
    """Results of a study: `table()` (Arrow), `pandas()`, `polars()`, `numpy()`, `batches()`, `failures()`, statistics.

    They are those of a folder, or of a study that was run without one.
    """

    def __init__(self, folder: str | os.PathLike[str] | Folder | Memory) -> None:
        self._kept = folder if isinstance(folder, Folder | Memory) else Folder(folder)

    def __repr__(self) -> str:
        facts = self.facts()
        chunks = counted(-(-facts["cases"] // facts["chunk"]), "chunk")
        there = f"{self._kept.count()} of {chunks}, {counted(facts['cases'], 'case')}"
        return f"<StudyResults in {str(self._kept)!r}: {facts['name']!r}, {there}>"

    @property
    def folder(self) -> Path | None:
        """The folder of the results; None if they are in memory."""
        return self._kept.path

    def facts(self) -> dict[str, Any]:
        """Metadata of the study: name, digest, cases, options, the processor."""
        return self._kept.facts()

    def files(self) -> list[Path]:
        """Files of the finished chunks, in the order of the cases."""
        return self._kept.files()

    def batches(self) -> Iterator[pa.Table]:
        """Iterate over chunks, for results that do not fit into memory."""
        return self._kept.tables()

    def table(self, columns: list[str] | None = None) -> pa.Table:
        """All rows as an Arrow table."""
        pa = arrow()
        tables = list(self._kept.tables(columns))
        if not tables:
            raise InputError(f"{self._kept}: no chunk is finished yet")
        _refuse_other_shapes(tables)
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
        for name in names:
            if name not in table.column_names:
                known = self.table().column_names
                raise InputError(f"no column {name!r}{nearest(name, known)}; available: {', '.join(known)}")
        return {
            field.name: _numbers(table.column(field.name), field) for field in table.schema
            if field.name != "error" or "error" in names
        }  # fmt: skip

    def failures(self) -> list[tuple[int, str]]:
        """(case, error) of the cases that failed."""
        table = self.table(["case", "error"])
        pairs = zip(table.column("case").to_pylist(), table.column("error").to_pylist(), strict=True)
        return [(case, error) for case, error in pairs if error is not None]

    @property
    def complete(self) -> bool:
        """Whether every chunk of the study is finished."""
        facts = self.facts()
        return self._kept.count() == -(-facts["cases"] // facts["chunk"])

    def scalars(self) -> dict[str, Array]:
        """Columns with one number per case, and components of short vectors as name[k]."""
        found: dict[str, Array] = {}
        for name, array in self.numpy().items():
            if name == "case":
                continue
            flat = array.reshape(len(array), -1)
            if array.ndim == 1:
                found[name] = array
            elif flat.shape[1] <= 16:
                found |= {f"{name}[{k}]": flat[:, k] for k in range(flat.shape[1])}
        return found

    def summaries(self) -> dict[str, dict[str, float]]:
        """Summary statistics {result: mean, deviation, quantiles}."""
        varied = set(self.facts()["varied"])
        return {name: summary(y) for name, y in self.scalars().items() if name.partition("[")[0] not in varied}

    def sobol_indices(self, result: str) -> SobolIndices:
        """First-order and total Sobol indices of a result for the inputs of a study with design='saltelli'."""
        facts = self.facts()
        if facts["study"]["design"] != "saltelli":
            raise InputError("Sobol indices need a study with design='saltelli'")
        scalars = self.scalars()
        _require(result, scalars)
        names: list[str] = []
        for name in facts["varied"]:
            size = sum(key == name or key.startswith(f"{name}[") for key in scalars)
            names += [name] if size == 1 else [f"{name}[{k}]" for k in range(size)]
        return sobol_indices(scalars[result], len(names), tuple(names))

    def correlations(self, result: str) -> dict[str, float]:
        """Spearman rank correlation of a result with every varied number."""
        from scipy.stats import spearmanr

        scalars, varied = self.scalars(), set(self.facts()["varied"])
        _require(result, scalars)
        y = scalars[result]
        good = np.isfinite(y)
        found: dict[str, Any] = {}
        for name, x in scalars.items():
            if name.partition("[")[0] in varied and np.ptp(x[good]) > 0 and np.ptp(y[good]) > 0:
                found[name] = float(np.asarray(spearmanr(x[good], y[good])[0]))
        return found


def _require(result: str, scalars: dict[str, Array]) -> None:
    if result not in scalars:
        raise InputError(f"no result {result!r}{nearest(str(result), scalars)}; available: {', '.join(scalars)}")


def _refuse_other_shapes(tables: list[pa.Table]) -> None:
    """A column has one shape in all chunks, or none where all cases of a chunk failed."""
    known: dict[str, tuple[Any, Any]] = {}
    for table in tables:
        for field in table.schema:
            said = field.type, (field.metadata or {}).get(b"shape")
            if known.setdefault(field.name, said) != said:
                shapes = sorted({str(x[1].decode() if x[1] else "one number") for x in (said, known[field.name])})
                raise PolybodyError(f"{field.name} has shape {' in some chunks and '.join(shapes)} in others, so there "
                                    "is no table of all; batches() reads chunk by chunk")


def _numbers(column: Any, field: Any) -> Array:
    """(cases, …); NaN in cases that have no such number."""
    array = column.combine_chunks()
    if not (field.metadata and b"shape" in field.metadata):
        return array.to_numpy(zero_copy_only=False)
    shape = json.loads(field.metadata[b"shape"])
    flat = array.flatten().to_numpy(zero_copy_only=False)  # without rows that are null
    if not array.null_count:
        return flat.reshape(len(array), *shape)
    found = np.full((len(array), *shape), np.nan)
    found[array.is_valid().to_numpy(zero_copy_only=False)] = flat.reshape(-1, *shape)
    return found


def _needed(package: str) -> Any:
    """A package that only reads results, or what to install."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise PolybodyError(f"{package} is not installed; pip install {package}") from None


__all__ = ["StudyResults"]
