"""A subsystem as one component again: the (m+1)-port at a state.

    ẋ = A y + b                                        at the ports of the subsystem

with y the wrench [f; M] that acts on the subsystem at each port and ẋ the rate of its across variable [v; ω]. A is
symmetric and positive semidefinite: the subsystem's inverse inertia seen from its ports. Where the ports are
independent, y = P ẋ + p follows (P = A⁻¹), the form of (20). Ports may also be mixed: across inputs at some,

    [y_1; ẋ_2] = H [ẋ_1; y_2] + h                                                                  (20)
"""

from __future__ import annotations

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.errors import InputError
from polybody.formulations.network.situation import Placed
from polybody.late import dataclass, field


@dataclass(frozen=True, eq=False)
class Multiport:
    """ẋ = A y + b at named ports, with the ports' frames at that state. Add it to a network with `Network.add`."""

    name: str  # of the component
    ports: tuple[str, ...]
    A: Array
    b: Array
    frames: dict[str, Placed] = field(repr=False)
    domain: Domain = FLOAT  # scalars of A and b

    def impedance(self) -> tuple[Array, Array]:
        """(P, p) with y = P ẋ + p; only where the ports are independent."""
        n = 6 * len(self.ports)
        if self.domain is FLOAT:
            _refuse_dependent(self)
        P = self.domain.solve(self.A, self.domain.eye(n))
        return P, -(P @ self.b)


@dataclass(frozen=True, eq=False)
class HybridMultiport:
    """outputs = H inputs + h, with across inputs at the ports `across` and through inputs at the others."""

    name: str  # of the component
    ports: tuple[str, ...]
    across: tuple[str, ...]
    H: Array
    h: Array


def _refuse_dependent(multiport: Multiport) -> None:
    _, s, Vt = np.linalg.svd(multiport.A)
    if s[-1] > 1e-10 * s[0]:
        return
    null = np.abs(Vt[s <= 1e-10 * s[0]]).max(axis=0)
    at_fault = [p for i, p in enumerate(multiport.ports) if null[6 * i : 6 * i + 6].max() > 1e-6]
    raise InputError(
        f"multiport {multiport.name!r}: the ports {', '.join(map(repr, at_fault))} are not independent, "
        "their motions are tied by the mechanism; use fewer ports, or the form ẋ = A y + b"
    )


__all__ = ["HybridMultiport", "Multiport"]
