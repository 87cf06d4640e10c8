"""What decides which motions a mechanism allows, as data: joints and where they are, loops and other constraints.

Masses, forces and limits have no part in it, nor what is welded to a body: two mechanisms with the same geometry have
the same q and v, and the same constraint equations, to the last bit.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from polybody.description.records import as_data
from polybody.mechanism.joints import JointModel
from polybody.mechanism.mechanism import BodyFrame, Mechanism

#: of the records of loops: forces, and what they need coordinates for
FORCES = ("source", "stiffness", "damping", "friction", "rest", "armature", "limits")


def geometry(m: Mechanism) -> dict[str, Any]:
    """Nested lists, names and exact numbers."""
    records = {loop.name: loop for loop in m.description.loops}
    pairs = [(x.name, (x.body_a, x.point_a), (x.body_b, x.point_b)) for x in (*m.rods, *m.guides)]
    return {
        "joints": [[j.name, _facts(j.model), j.parent, _facts(j.rotation), _facts(j.position),
                    [j.q.start, j.q.stop, j.v.start, j.v.stop]] for j in m.joints],
        "loops": [[_facts(c), as_data(records[c.name], skip=FORCES)] for c in m.closures],
        "points": [[name, *(_facts(m.point(*end)) for end in ends)] for name, *ends in pairs],
        "rolling": [_facts(m.frames[m.frame_index[x.body]]) for x in m.rolling],
        "others": [as_data(x) for x in (*m.rods, *m.guides, *m.relations, *m.rolling, *m.velocity_relations)],
    }  # fmt: skip


def _facts(x: Any) -> Any:
    """An object by its attributes, numbers exact."""
    if isinstance(x, JointModel):
        return [type(x).__name__, x.kind, {name: _facts(value) for name, value in vars(x).items()}]
    if isinstance(x, BodyFrame):
        return [x.body, _facts(x.rotation), _facts(x.position)]
    if is_dataclass(x) and not isinstance(x, type):
        return {field.name: _facts(getattr(x, field.name)) for field in fields(x)}
    return as_data(np.asarray(x) if isinstance(x, np.generic) else x)


__all__ = ["geometry"]
