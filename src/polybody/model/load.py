"""`load`: a model from a file or by its name; `from_dh`: from a Denavit-Hartenberg table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from polybody.description.bases import Base, as_base, with_base
from polybody.description.dh import DHLink, dh_description
from polybody.description.problems import ERROR, Problem, errors_of
from polybody.description.reading import (
    XML_SUFFIXES,
    YAML_SUFFIXES,
    find_source,
    read_description,
    scan_description,
    shipped_models,
)
from polybody.description.records import Description, without_friction
from polybody.errors import InputError, warn
from polybody.model.model import Model
from polybody.model.readiness import make_ready
from polybody.model.validation import model_from


def load(
    source: str | os.PathLike[str], *, base: str | Base | None = None, couplings: bool = True, friction: bool = True,
    arguments: Mapping[str, Any] | None = None,
) -> Model:  # fmt: skip
    """Load a .yaml, .urdf, .xacro, .sdf or .xml (MJCF) file, or a shipped model by name (see `polybody models`).

    `base` is the base type and overrides the file: "fixed", "planar" (mobile), "floating", "flying", or a `pb.Base`
    with numbers, e.g. pb.Base("flexible", stiffness=…, damping=…).

    Joints that follow others (URDF `mimic`, MJCF joint equalities, couplings of the mechanism file) have no coordinates
    of their own: `model.followers` lists them. `couplings=False` loads them as free joints. Joint friction (URDF
    `friction`, MJCF `frictionloss`) is part of `passive_forces`; `friction=False` omits it.

    `arguments` are those of a xacro file ({"prefix": "left_"}); macros are expanded by the package xacro, an extra.

    All errors of a file are reported in one `InputError`; unusual values (no mass, an inertia that no body can have)
    are reported as one `PolybodyWarning` each. Shipped models, which document their peculiarities in their files, load
    without warnings.
    """
    ours = find_source(source) in shipped_models().values()
    description = based_description(source, base, arguments)
    if description.network is not None:
        if not description.bodies:
            raise InputError(f"{source}: a network without bodies is not a model; pb.load_network reads it")
        warnings_of_network(str(source))
    model = model_from(description if friction else without_friction(description), warn=not ours, couplings=couplings)
    make_ready()
    return model


def warnings_of_network(source: str) -> None:
    """Say that the parts of a file's network are not in its model."""
    warn(f"{source}: the parts in `network:` are not in the model; pb.load_network reads the whole")


def based_description(
    source: str | os.PathLike[str], base: str | Base | None, arguments: Mapping[str, Any] | None = None
) -> Description:
    """The description in a file, on that base; `arguments` are a xacro file's."""
    if base is None:
        return read_description(source, arguments=arguments)
    made = as_base(base)
    if find_source(source).suffix.lower() in YAML_SUFFIXES:
        return with_base(read_description(source, arguments=arguments), made)
    plain = Base(made.kind)
    read = read_description(source, base="fixed" if made.kind == "fixed" else "floating", arguments=arguments)
    return read if made.kind in ("fixed", "floating") and made == plain else with_base(read, made)


def scan_based(
    source: str | os.PathLike[str], base: str | Base | None, arguments: Mapping[str, Any] | None = None
) -> tuple[Description | None, list[Problem]]:
    """As `based_description`, but every problem of reading is collected instead of raised."""
    if base is None:
        return scan_description(source, arguments=arguments)
    try:
        made = as_base(base)
        from_xml = Path(source).suffix.lower() in XML_SUFFIXES
        reading = ("fixed" if made.kind == "fixed" else "floating") if from_xml else None
        description, problems = scan_description(source, base=reading, arguments=arguments)
        if description is None or errors_of(problems) or (from_xml and made == Base(reading or "fixed")):
            return description, problems
        return with_base(description, made), problems
    except InputError as error:
        return None, [Problem(ERROR, str(error))]


def from_dh(
    rows: Iterable[Mapping[str, Any] | DHLink],
    *,
    name: str = "arm",
    convention: str = "classical",
    base: Any = None,
    gravity: Any = (0, 0, -9.81),
) -> Model:
    """Build an arm from a Denavit-Hartenberg table, `convention` "classical" or "modified" (Craig).

    A row is a mapping of a, alpha, d, theta (m, rad; an offset for the joint's own variable), kind ("revolute" or
    "prismatic"), mass, com and inertia in DH frame i, name, joint, and the joint's armature, damping, stiffness, rest,
    limits. DH frame i is the frame `dh_i`; `base` places DH frame 0 in the world.
    """
    description = dh_description(rows, name=name, convention=convention, base=base, gravity=gravity)
    model = model_from(description)
    make_ready()
    return model


__all__ = ["based_description", "from_dh", "load", "scan_based"]
