"""Records of actuators: what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from polybody.description.problems import Problem
from polybody.description.record_checks import Record
from polybody.description.records import Actuator, Joint, joint_size
from polybody.names import nearest


def actuator_problems(actuator: Actuator, joints: Mapping[str, Joint]) -> Iterator[Problem]:
    r = Record("actuator", actuator)
    if actuator.joint not in joints:
        r.error(f"no joint {actuator.joint!r:.60}{nearest(actuator.joint, joints)}")
    else:
        nq, nv = joint_size(joints[actuator.joint])
        if not 0 <= actuator.coordinate < nv or nq != nv:
            r.error(f"joint {actuator.joint!r} has no number {actuator.coordinate} that an actuator could drive")
    r.number("gain", actuator.gain)
    if r.number("gear", actuator.gear) and actuator.gear == 0:
        r.error("gear is 0; it must not be")
    r.array("bias", actuator.bias, 3)
    for what in ("control", "limit"):
        if r.array(what, getattr(actuator, what), 2, finite=False):
            low, high = np.asarray(getattr(actuator, what))
            if not low <= high:
                r.error(f"{what} goes from {low:g} to {high:g}; its lower end must not be above the upper")
    yield from r.problems


__all__ = ["actuator_problems"]
