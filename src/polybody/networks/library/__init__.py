"""The part library: one file a domain, one entry a part."""

from __future__ import annotations

from polybody.errors import InputError
from polybody.names import listed, nearest
from polybody.networks.energy import domain_named
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
        raise InputError(f"no part {name!r}{nearest(name, PARTS)}; available: {listed(PARTS)} (pb.parts())")
    return PARTS[name]


def parts(domain: str | None = None) -> list[str]:
    """Names of the library's parts, all or those with a port of an energy domain; add them by `pb.Network.part`."""
    if domain is not None:
        domain_named(domain)
    return [name for name, part in PARTS.items() if domain in (None, *(d.name for d in part.domains.values()))]


__all__ = ["PARTS", "part_named", "parts"]
