"""The part library: one file a domain, one entry a part."""

from __future__ import annotations

from polybody.errors import InputError
from polybody.names import nearest
from polybody.networks.library import electrical, hydraulic, machines, rotational, signals, translational
from polybody.networks.part import Part

PARTS: dict[str, Part] = {
    part.name: part
    for table in (electrical, rotational, translational, hydraulic, machines, signals)
    for part in table.PARTS
}


def part_named(name: str) -> Part:
    """The part of that name, or an error with the nearest."""
    if name not in PARTS:
        raise InputError(f"no part {name!r}{nearest(name, PARTS)}; there are {', '.join(PARTS)}")
    return PARTS[name]


__all__ = ["PARTS", "part_named"]
