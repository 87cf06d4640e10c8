"""Results of a study: the dataset, and what can be asked of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.errors import InputError
from polybody.names import counted, nearest
from polybody.studies.dataset import Dataset
from polybody.studies.statistics import SobolIndices, sobol_indices, summary

Array = np.ndarray


class StudyResults(Dataset):
    """Results of a study: `table()` (Arrow), `pandas()`, `polars()`, `numpy()`, `batches()`, `failures()`, statistics.
    """

    def __repr__(self) -> str:
        facts = self.facts()
        there = f"{counted(len(self.files()), 'chunk')} of {counted(facts['cases'], 'case')}"
        return f"<StudyResults {str(self.folder)!r}: {facts['name']!r}, {there}>"

    @property
    def complete(self) -> bool:
        facts = self.facts()
        return len(self.files()) == -(-facts["cases"] // facts["chunk"])

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
        if result not in scalars:
            raise InputError(f"no result {result!r}{nearest(result, scalars)}; available: {', '.join(scalars)}")
        names: list[str] = []
        for name in facts["varied"]:
            size = sum(key == name or key.startswith(f"{name}[") for key in scalars)
            names += [name] if size == 1 else [f"{name}[{k}]" for k in range(size)]
        return sobol_indices(scalars[result], len(names), tuple(names))

    def correlations(self, result: str) -> dict[str, float]:
        """Spearman rank correlation of a result with every varied number."""
        from scipy.stats import spearmanr

        scalars, varied = self.scalars(), set(self.facts()["varied"])
        y = scalars[result]
        good = np.isfinite(y)
        found: dict[str, Any] = {}
        for name, x in scalars.items():
            if name.partition("[")[0] in varied and np.ptp(x[good]) > 0 and np.ptp(y[good]) > 0:
                found[name] = float(np.asarray(spearmanr(x[good], y[good])[0]))
        return found


__all__ = ["StudyResults"]
