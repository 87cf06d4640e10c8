"""The units that each number of a joint's q and v may carry: an angle where it turns, a length where it slides."""

from __future__ import annotations

import numpy as np

from polybody.description.records import Joint, Loop
from polybody.description.units import ANGLE, LENGTH

Units = tuple[tuple[str, ...], ...]

_TURN, _SLIDE, _BARE = (ANGLE,), (LENGTH,), ()
_Q: dict[str, Units] = {
    "fixed": (),
    "revolute": (_TURN,),
    "continuous": (_TURN,),
    "prismatic": (_SLIDE,),
    "screw": (_TURN,),
    "cylindrical": (_TURN, _SLIDE),
    "universal": (_TURN, _TURN),
    "spherical": (_BARE,) * 4,
    "planar": (_TURN, _SLIDE, _SLIDE),
    "floating": (_SLIDE,) * 3 + (_BARE,) * 4,
}
#: where the numbers of v are not rates of those of q
_V: dict[str, Units] = {"spherical": (_TURN,) * 3, "floating": (_TURN,) * 3 + (_SLIDE,) * 3}


def coordinate_units(record: Joint | Loop, which: str = "q") -> Units:
    """For each number of q ("q"), v ("v": per second) or the joint force ("tau": none) the dimensions of its unit."""
    if record.kind == "custom":
        columns = np.zeros((6, 0)) if record.map is None else np.asarray(record.map)
        found = tuple(_TURN if np.any(column[:3]) else _SLIDE for column in columns.T)
    else:
        found = _Q[record.kind] if which == "q" else _V.get(record.kind, _Q[record.kind])
    return (_BARE,) * len(found) if which == "tau" else found


__all__ = ["Units", "coordinate_units"]
