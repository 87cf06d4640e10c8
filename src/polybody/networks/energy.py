"""Energy domains: what an edge's across and through variables are called, and their units.

Power into a part at an edge is across · through in every domain; signals carry none (what reads one has s = 0).
"""

from __future__ import annotations

from dataclasses import dataclass

from polybody.errors import InputError
from polybody.names import nearest

#: the reference node of every domain: 0 V, the fixed frame, the tank
GROUND = "ground"


@dataclass(frozen=True)
class EnergyDomain:
    """The letters of its across and through variables, and their units."""

    name: str  # translational, rotational, electrical, …
    across: str
    through: str
    across_unit: str  # SI
    through_unit: str  # SI

    @property
    def absolute(self) -> bool:
        """Whether the domain has an absolute reference, so that parts not connected to the ground are an error."""
        return self.name != "electrical"


DOMAINS = {
    domain.name: domain
    for domain in (
        EnergyDomain("electrical", "v", "i", "V", "A"),
        EnergyDomain("rotational", "w", "t", "rad/s", "N m"),
        EnergyDomain("translational", "v", "f", "m/s", "N"),
        EnergyDomain("hydraulic", "p", "q", "Pa", "m^3/s"),
        EnergyDomain("signal", "x", "s", "", ""),
    )
}


def domain_named(name: str) -> EnergyDomain:
    """The domain, or an error that lists them."""
    if name not in DOMAINS:
        raise InputError(f"no energy domain {name!r}{nearest(name, DOMAINS)}; available: {', '.join(DOMAINS)}")
    return DOMAINS[name]


__all__ = ["DOMAINS", "GROUND", "EnergyDomain", "domain_named"]
