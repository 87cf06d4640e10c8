"""What is wrong with records of rolling and of velocity relations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from polybody.description.expressions import parse
from polybody.description.problems import Problem
from polybody.description.record_checks import Record
from polybody.description.records import ROLLING_KINDS, Joint, Rolling, VelocityRelation, joint_size
from polybody.errors import InputError
from polybody.names import listed, nearest


def rolling_problems(rolling: Rolling) -> Iterator[Problem]:
    r = Record("rolling", rolling)
    if rolling.kind not in ROLLING_KINDS:
        near = nearest(str(rolling.kind), ROLLING_KINDS)
        r.error(f"no kind {rolling.kind!r:.40}{near}; available: {listed(ROLLING_KINDS)}")
        yield from r.problems
        return
    size = 3 if rolling.kind == "ellipsoid" else 1
    if r.array("radius", rolling.radius, size) and rolling.kind != "blade" and np.any(np.asarray(rolling.radius) <= 0):
        r.error(f"radius is {np.min(rolling.radius):g}; it must be positive")
    for what in ("point", "ground"):
        r.array(what, getattr(rolling, what), 3)
    for what in ("axis", "normal"):
        if r.array(what, getattr(rolling, what), 3):
            length = float(np.linalg.norm(getattr(rolling, what)))
            if abs(length - 1) > 1e-9:
                r.error(f"its {what} has length {length:.6g}, expected 1")
    yield from r.problems


def velocity_relation_problems(relation: VelocityRelation, joints: Mapping[str, Joint]) -> Iterator[Problem]:
    r = Record("velocity relation", relation)
    if not relation.terms:
        r.error("it has no terms; expected {joint: coefficient}")
    for joint, number, text in relation.terms:
        if joint not in joints:
            r.error(f"no joint {joint!r:.60}{nearest(joint, joints)}")
        elif not 0 <= number < joint_size(joints[joint])[1]:
            r.error(f"joint {joint!r} has {joint_size(joints[joint])[1]} velocities, no number {number}")
        _check_value(r, f"the coefficient of {joint!r}", text, joints)
    _check_value(r, "the right side", relation.equals, joints)
    yield from r.problems


def _check_value(r: Record, what: str, text: str, joints: Mapping[str, Joint]) -> None:
    """A finite number, or an expression in coordinates of these joints."""
    try:
        if not np.isfinite(float(text)):
            r.error(f"{what} is {text}; expected a finite number")
        return
    except ValueError:
        pass  # an expression
    try:
        for name in set(parse(text).joints) - set(joints):
            r.error(f"{text!r:.60} names {name!r:.60}, which is not a joint{nearest(name, joints)}")
    except InputError as error:
        r.error(str(error))


__all__ = ["rolling_problems", "velocity_relation_problems"]
