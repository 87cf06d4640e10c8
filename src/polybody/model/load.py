"""`load`: a model from a file or by its name; `from_dh`: from a Denavit-Hartenberg table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from polybody.description.dh import DHLink, dh_description
from polybody.description.reading import find_source, read_description, shipped_models
from polybody.model.model import Model
from polybody.model.soundness import model_from


def load(source: str | os.PathLike[str], *, base: str | None = None) -> Model:
    """The model in a .yaml, .urdf or .xml (MJCF) file, or a shipped one by name (`polybody models` lists them).

    `base` is "fixed" or "floating", for URDF and MJCF. Everything wrong is one `InputError`; what is unusual (no mass,
    an inertia no body can have) is a `PolybodyWarning` each. Shipped models, whose peculiarities are stated in their
    files, load without warnings.
    """
    ours = find_source(source) in shipped_models().values()
    return model_from(read_description(source, base=base), warn=not ours, stacklevel=3)


def from_dh(
    rows: Iterable[Mapping[str, Any] | DHLink],
    *,
    name: str = "arm",
    convention: str = "classical",
    base: Any = None,
    gravity: Any = (0, 0, -9.81),
) -> Model:
    """The arm of a DH table, `convention` "classical" or "modified" (Craig).

    A row is a mapping of a, alpha, d, theta (m, rad; the variable's offset where it is the joint's variable), kind
    ("revolute" or "prismatic"), mass, com and inertia in DH frame i, name, joint, and a joint's armature, damping,
    stiffness, rest, limits. DH frame i is the frame `dh_i`; `base` places DH frame 0 in the world.
    """
    description = dh_description(rows, name=name, convention=convention, base=base, gravity=gravity)
    return model_from(description, stacklevel=3)


__all__ = ["from_dh", "load"]
