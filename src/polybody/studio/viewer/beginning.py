"""What a page begins with, served or in a file: the stage, the coordinates and the first content.

Apart from `serve`, whose server and live simulation a page in a file does without: their imports take 60 ms.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polybody.errors import PolybodyError
from polybody.model.model import Model
from polybody.studio.record import Record
from polybody.studio.stage.stage import Stage
from polybody.studio.viewer.content import posed_content, require_one_model, runs_content
from polybody.studio.viewer.posing import Posing


def require_packages() -> None:
    """The page reads meshes and talks over websockets with packages of the extra `viewer`.

    Whether they are there is asked without importing them: trimesh takes longer than all else of a page, and many
    models have no mesh that needs it.
    """
    missing = [name for name in ("trimesh", "websockets") if importlib.util.find_spec(name) is None]
    if missing:
        raise PolybodyError(
            f"the page needs a package that is not installed ({missing[0]}): pip install 'polybody[viewer]'"
        )


def page_content(
    model: Model, records: Sequence[Record], names: Sequence[str] | None = None, q: Any = None,
    most_faces: int = 400_000,
) -> tuple[Stage, Posing, Callable[[], dict[str, Any]]]:  # fmt: skip
    """The stage, the coordinates and what the page is given, of a model in the configuration that it has now.

    Forces and energies of a model at rest are computed when the page asks: their kernels take as long as all before.
    """
    if records:
        called = [f"run {k + 1}" for k in range(len(records))] if names is None else list(names)
        require_one_model(records, called)
        stage = Stage(model, np.concatenate([record.q for record in records]), most_faces)
        posing = Posing(model, stage.size, records[0].q[0])
        content = runs_content(stage, records, called)  # which warns of what cannot be shown
        return stage, posing, lambda: content
    first = Posing(model, 1.0, q)
    stage = Stage(model, first.q[None], most_faces)
    return stage, Posing(model, stage.size, first.q), lambda: posed_content(stage, Posing(model, stage.size, first.q))


__all__ = ["page_content", "require_packages"]
