"""`integrate` of many states at once where joints have no formula for it: joints by map matrix, in their charts.

    X(ε) = X(q) exp(H d)

is solved for ε by Newton's steps (`MapJoint.refined`). One kernel gives their start, one Runge-Kutta step of ε̇ = Γ(ε)d,
another one step of all states; steps are repeated until no state changes any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.mechanism import kinematics
from polybody.mechanism.joints import MOST_NEWTON, SAME
from polybody.model.source import Source
from polybody.model.tracing import compiled, trace
from polybody.properties import cached_property

if TYPE_CHECKING:
    from polybody.kernels import Kernel

Array = np.ndarray


class Charts:
    """Configurations reached from q along d, for arrays of states."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def integrate(self, arrays: Sequence[Array], parameters: Array | None = None) -> Array:
        """(..., nq) from `arrays`, q (..., nq) and d (..., nv)."""
        q, d = arrays
        given = self.source.given(parameters)
        found = self._start(q, d, *given)
        least = SAME * (1.0 + np.abs(d).max(axis=-1, initial=0.0))
        for _ in range(MOST_NEWTON):
            found, worst = self._step(found, q, d, *given)
            if np.all(worst < least):
                break
        return found

    @cached_property
    def _start(self) -> Kernel:
        m = self.source.traced

        def text(q: Array, d: Array, *, domain: Domain) -> Array:
            return kinematics.integrate(m, q, d, domain=domain)

        return self._kernel("chart start", [("q", m.nq), ("d", m.nv)], [("q_next", (m.nq,))], text)

    @cached_property
    def _step(self) -> Kernel:
        m = self.source.traced

        def text(found: Array, q: Array, d: Array, *, domain: Domain) -> tuple[Array, Array]:
            following, sizes = kinematics.refined(m, found, q, d, domain=domain)
            zero = domain.const(0)
            worst = zero
            for x in sizes:
                size = domain.where(domain.less(x, zero), -x, x)
                worst = domain.where(domain.less(worst, size), size, worst)
            return following, np.array([worst], dtype=domain.dtype)

        ports = [("found", m.nq), ("q", m.nq), ("d", m.nv)]
        return self._kernel("chart step", ports, [("q_next", (m.nq,)), ("worst", ())], text)

    def _kernel(self, name: str, ports: list[tuple[str, int]], results: Any, text: Any) -> Kernel:
        source = self.source
        make = lambda: trace(name, ports, text, source.traced.symbols)  # noqa: E731
        return compiled(name, [*ports, *source.inputs], results, make, source.digest)


__all__ = ["Charts"]
