"""The part library: one file a domain, one entry a part. It is read when somebody asks for a part of it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from polybody.errors import InputError
from polybody.names import listed, nearest
from polybody.networks.energy import domain_named
from polybody.networks.part import Part

if TYPE_CHECKING:
    PARTS: dict[str, Part]


def __getattr__(name: str) -> Any:
    if name == "PARTS":
        return _every_part()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _every_part() -> dict[str, Part]:
    from polybody.networks.library import electrical, hydraulic, machines, rotational, signals, translational

    tables = (electrical, rotational, translational, hydraulic, machines, signals)
    return {part.name: part for table in tables for part in table.PARTS}


def part_named(name: str) -> Part:
    """The part of that name, or an error with the nearest."""
    known = _every_part()
    if name not in known:
        raise InputError(f"no part {name!r}{nearest(name, known)}; available: {listed(known)} (pb.parts())")
    return known[name]


def parts(domain: str | None = None) -> list[str]:
    """Names of the library's parts, all or those with a port of an energy domain; add them by `pb.Network.part`."""
    if domain is not None:
        domain_named(domain)
    return [name for name, part in _every_part().items()
            if domain in (None, *(d.name for d in part.domains.values()))]


__all__ = ["PARTS", "part_named", "parts"]
