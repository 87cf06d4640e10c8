"""One file that shows a mechanism or runs in any browser, without a program behind it and without a network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.files import write_text
from polybody.model.model import Model
from polybody.studio.channels import holding
from polybody.studio.record import Record
from polybody.studio.viewer.analyses import mobility_motions
from polybody.studio.viewer.beginning import page_content, require_packages
from polybody.studio.viewer.content import state_content, with_meshes
from polybody.studio.viewer.html import page
from polybody.studio.viewer.pack import compressed

#: triangles of a page that is sent around: meshes of files are often far finer than a screen shows
MOST_FACES = 120_000
#: models whose free motions are put into the page
MOST_MOTIONS = 8


def page_text(model: Model, records: Sequence[Record] = (), names: Sequence[str] | None = None, q: Any = None) -> str:
    """The whole page."""
    require_packages()
    stage, posing, make = page_content(model, list(records), names, q, MOST_FACES)
    content = make()
    if not records:  # nobody will answer later: all loads are in the page from the start
        zero, tau = np.zeros(model.nv), holding(model, posing.q)
        every = {layer.key for layer in stage.loads.layers if tau is not None or not layer.key.startswith("joint")}
        content["state"] = state_content(stage, posing, posing.q, zero, zero, tau, 0.0, every)[0]
    if not records and model.nv:
        try:
            found = mobility_motions(stage, posing.q)
            content["analyses"] = found | {"motions": found["motions"][:MOST_MOTIONS]}
        except PolybodyError:  # a mechanism that is not mobile has nothing to show
            content["analyses"] = None
    return page(f"polybody: {model.name}", compressed(with_meshes(stage, content)))


def write_page(
    path: str | os.PathLike[str], model: Model, records: Sequence[Record] = (), names: Sequence[str] | None = None,
    q: Any = None,
) -> Path:  # fmt: skip
    """Write the page to an .html file."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: a page is an .html file")
    write_text(path, page_text(model, records, names, q))
    return path


__all__ = ["page_text", "write_page"]
