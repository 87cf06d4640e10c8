"""The symbolic face of a model, and its C library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polybody.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from polybody.symbolic import SymbolicModel


class SymbolicAnswers:
    """Kwatny & Blankenship's equations as symbols."""

    mechanism: Mechanism

    def symbolic(
        self,
        symbols: str | Iterable[str] = "all",
        *,
        joints: str | Mapping[str, str] | None = None,
        q: Sequence[str] | None = None,
        p: Sequence[str] | None = None,
        names: Mapping[str, str] | None = None,
        progress: Callable[[str], None] = lambda text: None,
    ) -> SymbolicModel:
        """The model's equations as SymPy expressions: 𝓜(q) ṗ + 𝓒(q, p) p + 𝓕(q) = Q_p, q̇ = V(q) p.

        `symbols`: which parameters stay symbols: "all", "none", or a list of "masses", "lengths", "inertias",
        "gravity" and single names such as "m1"; the others are exact rationals where their decimals allow. `joints`:
        "simple" or "compound" for every joint that can be both, or {joint name: choice}. `q` and `p` name the
        coordinates and quasi-velocities (q1 … and p1 … by default), `names` renames parameters. `progress` is called
        with a word about each step. A model with loops or couplings has its equations with multipliers, and `minimal()`
        in independent coordinates: see `analysis.symbolic.loops`.
        """
        from polybody.symbolic import SymbolicModel
        from polybody.symbolic.loops import SymbolicLoops

        options: dict[str, Any] = {"symbols": symbols, "joints": joints, "q": q, "p": p, "names": names}
        if not self.mechanism.constrained:
            return SymbolicModel(self.mechanism, **options, progress=progress)
        from polybody.quantities.constrained import LoopTexts

        return SymbolicLoops(self.mechanism, plan=LoopTexts(self).plan, **options, progress=progress)  # type: ignore[arg-type]

    def export_c(
        self, folder: str | os.PathLike[str], quantities: Sequence[str] | None = None, *, name: str | None = None,
        force: bool = False,
    ) -> list[Path]:
        """Write a C99 library of this model into a folder: source, header, Makefile, README, self-test.

        `quantities`: inverse, forward, mass, coriolis, bias, gravity, passive, energy, inverse_derivatives,
        forward_derivatives, way_back (to loops), pose:FRAME. `name` is the prefix of files and functions, the model's
        name by default. A folder that holds anything is refused unless `force`.
        """
        from polybody.bridges import c_library as c

        return c.export_c(self, folder, quantities or c.DEFAULT, name=name, force=force)  # type: ignore[arg-type]


__all__ = ["SymbolicAnswers"]
