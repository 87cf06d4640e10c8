"""First-order jets x + ẋ ε over any scalar domain: exact directional derivatives without differences.

With ε² = 0,

    (x + ẋε)(y + ẏε) = xy + (ẋy + xẏ)ε,        f(x + ẋε) = f(x) + f'(x) ẋ ε.

A jet's parts are scalars of the base domain, themselves possibly jets: nesting gives higher derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain, GraphDomain
from polybody.algebra.graph import DIV, LEAF, Node, rates


class Jet:
    """A value and its derivative along one direction."""

    __slots__ = ("rate", "value")

    def __init__(self, value: Any, rate: Any) -> None:
        self.value = value
        self.rate = rate

    @staticmethod
    def _parts(other: Any) -> tuple[Any, Any]:
        return (other.value, other.rate) if isinstance(other, Jet) else (other, 0)

    def __add__(self, other: Any) -> Jet:
        if isinstance(other, np.ndarray):  # let numpy go over the entries
            return NotImplemented
        value, rate = self._parts(other)
        return Jet(self.value + value, self.rate + rate)

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return Jet(-self.value, -self.rate)

    def __sub__(self, other: Any) -> Jet:
        if isinstance(other, np.ndarray):  # let numpy go over the entries
            return NotImplemented
        value, rate = self._parts(other)
        return Jet(self.value - value, self.rate - rate)

    def __rsub__(self, other: Any) -> Jet:
        if isinstance(other, np.ndarray):  # let numpy go over the entries
            return NotImplemented
        value, rate = self._parts(other)
        return Jet(value - self.value, rate - self.rate)

    def __mul__(self, other: Any) -> Jet:
        if isinstance(other, np.ndarray):  # let numpy go over the entries
            return NotImplemented
        value, rate = self._parts(other)
        return Jet(self.value * value, self.rate * value + self.value * rate)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Jet:
        if isinstance(other, np.ndarray):  # let numpy go over the entries
            return NotImplemented
        value, rate = self._parts(other)
        quotient = self.value / value
        return Jet(quotient, (self.rate - quotient * rate) / value)

    def __rtruediv__(self, other: Any) -> Jet:
        if isinstance(other, np.ndarray):  # let numpy go over the entries
            return NotImplemented
        value, rate = self._parts(other)
        quotient = value / self.value
        return Jet(quotient, (rate - quotient * self.rate) / self.value)

    def __eq__(self, other: object) -> bool:
        value, rate = self._parts(other)
        return bool(self.value == value) and bool(self.rate == rate)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Jet({self.value!r}, {self.rate!r})"


class JetDomain(Domain):
    """Jets over a base domain."""

    def __init__(self, base: Domain) -> None:
        self.base = base
        self.name = f"jet({base.name})"
        self.series_below = base.series_below

    def const(self, value: Any) -> Jet:
        return Jet(self.base.const(value), self.base.const(0))

    def _enter(self, value: Any) -> Any:
        return value if isinstance(value, Jet) else Jet(self.base._enter(value), self.base.const(0))

    def lift(self, values: Array, rates: Array | None = None) -> Array:
        """The array of jets with these values and rates (zero rates if none are given)."""
        values = np.asarray(values)
        result = np.empty(values.shape, dtype=object)
        for index in np.ndindex(values.shape):
            result[index] = Jet(values[index], self.base.const(0) if rates is None else rates[index])
        return result

    def values(self, jets: Array) -> Array:
        return self._extract(jets, "value")

    def rates(self, jets: Array) -> Array:
        return self._extract(jets, "rate")

    def _extract(self, jets: Array, part: str) -> Array:
        jets = np.asarray(jets, dtype=object)
        result = self.base.zeros(*jets.shape)
        for index in np.ndindex(jets.shape):
            result[index] = getattr(self._enter(jets[index]), part)
        return result

    def sin(self, x: Jet) -> Jet:
        return Jet(self.base.sin(x.value), self.base.cos(x.value) * x.rate)

    def cos(self, x: Jet) -> Jet:
        return Jet(self.base.cos(x.value), -(self.base.sin(x.value) * x.rate))

    def sqrt(self, x: Jet) -> Jet:
        root = self.base.sqrt(x.value)
        return Jet(root, x.rate / (root + root))

    def atan2(self, y: Jet, x: Jet) -> Jet:
        square = x.value * x.value + y.value * y.value
        return Jet(self.base.atan2(y.value, x.value), (x.value * y.rate - y.value * x.rate) / square)

    def tanh(self, x: Jet) -> Jet:
        value = self.base.tanh(x.value)
        return Jet(value, x.rate - value * value * x.rate)

    def exp(self, x: Jet) -> Jet:
        value = self.base.exp(x.value)
        return Jet(value, value * x.rate)

    def log(self, x: Jet) -> Jet:
        return Jet(self.base.log(x.value), x.rate / x.value)

    def less(self, a: Any, b: Any) -> Any:
        return self.base.less(Jet._parts(a)[0], Jet._parts(b)[0])

    def where(self, condition: Any, yes: Any, no: Any) -> Jet:
        yes, no = self._enter(yes), self._enter(no)
        return Jet(self.base.where(condition, yes.value, no.value), self.base.where(condition, yes.rate, no.rate))

    def is_zero(self, x: Any) -> bool:
        value, rate = Jet._parts(x)
        return self.base.is_zero(value) and (isinstance(rate, int) or self.base.is_zero(rate))


class BundleDomain(JetDomain):
    """Jets along several directions at once: a rate is an array with one entry for each, or zero for all."""

    def __init__(self, base: Domain, directions: int) -> None:
        super().__init__(base)
        self.directions = directions
        self.name = f"jets({base.name})"

    def _extract(self, jets: Array, part: str) -> Array:
        """Values (*shape,), rates (*shape, directions)."""
        if part == "value":
            return super()._extract(jets, part)
        jets = np.asarray(jets, dtype=object)
        result = self.base.zeros(*jets.shape, self.directions)
        for index in np.ndindex(jets.shape):
            result[index] = self._enter(jets[index]).rate
        return result

    def is_zero(self, x: Any) -> bool:
        value, rate = Jet._parts(x)
        return self.base.is_zero(value) and all(self.base.is_zero(y) for y in np.ravel(rate))


def _is_whole(x: Any) -> bool:
    return isinstance(x, Node) and x.op in (LEAF, DIV)


def along(
    text: Callable[..., Array], points: Sequence[Array], directions: Sequence[Sequence[Array]], domain: Domain
) -> list[Array]:
    """The derivatives of text(*points, domain=…), an array, along each of the directions (a rate for every point).

    By jets over the domain. Of an expression graph the text is read once and its nodes are differentiated, which is
    the same and sooner done, where the points are nodes that arithmetic leaves whole: of others, such as −x, it may use
    the parts, whose rates are not given.
    """
    if isinstance(domain, GraphDomain) and all(_is_whole(x) for point in points for x in point.ravel()):
        outputs = np.asarray(text(*points, domain=domain), dtype=object)
        nodes = [x for point in points for x in point.ravel()]
        seeds = []
        for direction in directions:
            given = [x for rate in direction for x in np.asarray(rate, dtype=object).ravel()]
            seeds.append({node.serial: rate for node, rate in zip(nodes, given, strict=True)})
        found = np.empty((len(seeds), outputs.size), dtype=object)
        for k, row in enumerate(rates(outputs.ravel(), seeds)):
            found[k] = row
        return list(found.reshape(len(seeds), *outputs.shape))
    jets = JetDomain(domain)
    return [
        jets.rates(text(*(jets.lift(x, rate) for x, rate in zip(points, direction, strict=True)), domain=jets))
        for direction in directions
    ]


__all__ = ["BundleDomain", "Jet", "JetDomain", "along"]
