"""From a description to a model, or to every reason why not.

`description_problems` adds to the description's own checks what only joints can report: whether a custom joint's map is
holonomic, whether a loop joins two bodies that can move apart. `model_from` raises all errors as one, warns of the
rest, and builds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polybody.description.checks import check_description
from polybody.description.problems import ERROR, Problem, errors_of, raise_errors, warn_warnings
from polybody.description.records import Description, Joint, Loop
from polybody.description.shapes import unit_axis
from polybody.errors import InputError
from polybody.mechanism.kinds import joint_model
from polybody.mechanism.mechanism import mechanism_from
from polybody.model.model import Model


def map_problem(record: Joint | Loop) -> str | None:
    """Why a custom joint's map cannot be a joint (columns that depend on each other, no holonomy), or None."""
    if record.kind != "custom" or record.map is None:
        return None
    H = np.asarray(record.map)
    if H.ndim != 2 or H.shape[0] != 6 or not np.isfinite(H).all():
        return None  # the record's own checks say so
    if record.stages is not None and sum(record.stages) != H.shape[1]:
        return None
    try:
        joint_model(record)
    except InputError as error:
        return str(error)
    return None


def _unbuilt_problems(description: Description) -> list[Problem]:
    """The description's own problems, and those of its custom joints' maps."""
    problems = check_description(description)
    for record in (*description.joints, *description.loops):
        message = map_problem(record)
        if message is not None:
            problems.append(Problem(ERROR, message, record.source))
    return problems


def description_problems(description: Description) -> list[Problem]:
    """Every error and warning of a description; where it has no error, `model_from` builds it."""
    problems = _unbuilt_problems(description)
    if not errors_of(problems):
        try:
            mechanism_from(with_unit_axes(description))
        except InputError as error:  # a loop between bodies that are welded together, a motor on a passive joint
            problems.append(Problem(ERROR, str(error), description.source))
    return problems


def with_unit_axes(description: Description) -> Description:
    """The description with axes that are nearly of unit length made so."""
    return replace(
        description,
        joints=tuple(replace(joint, axis=unit_axis(joint.axis)) for joint in description.joints),
        loops=tuple(replace(loop, axis=unit_axis(loop.axis)) for loop in description.loops),
    )


def model_from(
    description: Description, *, warn: bool = True, couplings: bool = True
) -> Model:
    """The model of a description; one `InputError` that lists all errors, a `PolybodyWarning` for each warning."""
    problems = _unbuilt_problems(description)
    raise_errors(problems, description.source or repr(description.name))
    mechanism = mechanism_from(with_unit_axes(description), couplings=couplings)
    if warn:
        warn_warnings(problems)
    return Model(mechanism)


__all__ = ["description_problems", "map_problem", "model_from", "with_unit_axes"]
