"""`model.parameters`: the numbers of a model that are inputs, and which of their values are possible.

A model made by `with_parameters` takes `parameters=` of shape (k,) or (..., k) in its calls. What no body, joint or
drive can have raises an error with parameter and state: numbers out of their bounds, inertias
about the mass centre that break the triangle inequality (½ tr(I) 1 − I must be positive semidefinite; all its principal
minors are looked at), axes that are not of unit length. One compiled function counts what is not possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from polybody.algebra.domains import Domain
from polybody.algebra.inertia_checks import SLACK, inertia_problem
from polybody.description.parameters import Parameter, parameters_of
from polybody.description.shapes import AXIS_SLACK
from polybody.description.substitution import followed, substituted
from polybody.errors import InputError
from polybody.mechanism.columns import state_text
from polybody.model.arguments import choose, float_array, state_array
from polybody.model.source import Source
from polybody.model.tracing import trace
from polybody.properties import cached_property

if TYPE_CHECKING:
    from polybody.model.engine import Engine
    from polybody.model.model import Model

Array = np.ndarray
#: a sum of squares above this (or NaN) is that of numbers which are not finite, or of no machine
LARGEST = 1e60
NEVER_ZERO = ("torque_constant", "gear", "pitch")


class Parameters:
    """Names, units, nominal values and bounds of the parameters that are inputs; empty for most models."""

    def __init__(self, engine: Engine, make: Any) -> None:
        self._engine, self._make = engine, make
        variation = engine.source.variation
        self._list: tuple[Parameter, ...] = () if variation is None else variation.parameters
        self._last: tuple[bytes, Model] | None = None

    def __reduce__(self) -> Any:
        return attrgetter("parameters"), (self._make(self._engine),)

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._list)

    def __repr__(self) -> str:
        if not self._list:
            return "no parameters: all numbers are constants; see model.with_parameters"
        width = max(len(p.name) for p in self._list)
        rows = [
            f"{p.name:<{width}}  {value:>12.6g} {p.unit:<10} [{p.lower:g}, {p.upper:g}]"
            for p, value in zip(self._list, self.nominal, strict=True)
        ]
        return "\n".join(rows)

    @property
    def names(self) -> list[str]:
        """Parameter names, in the order of `parameters=`: `forearm.mass`, `forearm.com.x`, …"""
        return [p.name for p in self._list]

    @property
    def units(self) -> list[str]:
        """Units of the parameters, SI and radians."""
        return [p.unit for p in self._list]

    @property
    def nominal(self) -> Array:
        """Nominal values, (k,), used by calls without `parameters=`."""
        values = self._engine.source.values
        return np.zeros(0) if values is None else values.copy()

    @property
    def lower(self) -> Array:
        """Lower bounds, (k,), −inf where there is none."""
        return np.array([p.lower for p in self._list])

    @property
    def upper(self) -> Array:
        """Upper bounds, (k,), inf where there is none."""
        return np.array([p.upper for p in self._list])

    def values(self, given: Mapping[str, ArrayLike]) -> Array:
        """Nominal values with some replaced by name, (..., k): {"forearm.mass": (...), "forearm.com": (..., 3)}."""
        places = {name: k for k, name in enumerate(self.names)}
        parts: list[tuple[list[int], Array]] = []
        for name, value in given.items():
            columns = [k for full, k in places.items() if full.startswith(f"{name}.")]
            if name in places:
                parts.append(([places[name]], float_array(name, value)[..., None]))
            elif columns:
                parts.append((columns, state_array(name, value, len(columns))))
            else:
                choose("parameter", name, places)
        lead = np.broadcast_shapes(*(array.shape[:-1] for _, array in parts)) if parts else ()
        result = np.broadcast_to(self.nominal, (*lead, len(self))).copy()
        for columns, array in parts:
            result[..., columns] = array
        return result

    def at(self, values: ArrayLike) -> Model:
        """The model with these parameter values, (k,), using the same compiled code.

        For functions that take a model but no `parameters=`.
        """
        checked = self.checked(values)
        if checked.ndim != 1:
            raise InputError(f"one set of parameters makes a model; got shape {checked.shape}, expected ({len(self)},)")
        key = checked.tobytes()
        if self._last is None or self._last[0] != key:  # callers come back with the same numbers
            self._last = key, self._make(self._engine.at(checked))
        return self._last[1]

    # Checking.

    def checked(self, values: Any) -> Array:
        """Validate `parameters=` as an array (..., k); an error names the first value that is not physically possible.
        """
        if not self._list:
            raise InputError(
                "this model has no parameters: model.with_parameters('forearm.mass', …) makes one whose numbers may "
                "be given"
            )
        array = state_array("parameters", values, len(self))
        margins = self._margins(parameters=array)
        if not np.min(margins, initial=np.inf) >= 0:
            for index in np.argwhere(~(margins >= 0)):
                self._refuse(array[tuple(index)], tuple(int(i) for i in index))
        return array

    @cached_property
    def _margins(self) -> Any:
        """parameters -> zero, or less where a number is not possible."""
        return self._engine.tree.compile("parameter margins", [], [("worst", ())], self.margin_function)

    def margin_function(self) -> Any:
        """casadi.Function of the parameters: zero, or less where one is not possible, for other kernels."""
        source: Source = self._engine.tree.source
        return trace("margins", [], lambda *, domain: _worst(source, domain), source.traced.symbols)

    def all_possible(self, low: Array, high: Array) -> bool:
        """Whether bounds (k,) alone show that every set of values between them passes `checked`.

        False where inertias, axes, levels of dry friction or named constants are among the parameters: those depend on
        several numbers at once.
        """
        several = any(p.place[0] == "constants" or p.place[2] in ("inertia", "axis") for p in self._list)
        several |= bool(_dry_joints(self._engine.source))
        if several or not np.sum(np.maximum(low * low, high * high)) < LARGEST:
            return False
        zero = [p.place[2] in NEVER_ZERO and a <= 0 <= b for p, a, b in zip(self._list, low, high, strict=True)]
        least = [a > p.lower if p.positive else a >= p.lower for p, a in zip(self._list, low, strict=True)]
        return all(least) and not any(zero)

    def _refuse(self, values: Array, index: tuple[int, ...]) -> None:
        where = state_text(index)
        for p, value in zip(self._list, values, strict=True):
            field = p.place[2]
            if not abs(value) <= LARGEST**0.5 / 2:
                raise InputError(f"parameter {p.name!r} is {value}{where}; expected a finite number")
            if value < p.lower or value > p.upper or (p.positive and value <= p.lower):
                wanted = "more than" if p.positive else "at least"
                unit = f" {p.unit}" if p.unit else ""
                raise InputError(f"parameter {p.name!r} is {value:g}{unit}{where}; expected {wanted} {p.lower:g}")
            if field in NEVER_ZERO and value == 0:
                raise InputError(f"parameter {p.name!r} is 0{where}; expected another number")
        variation = self._engine.source.variation
        assert variation is not None
        for p, value in _followers(self._engine.source, values):
            if value < p.lower or (p.positive and value <= p.lower):
                made = f"{p.name!r} {value:g} {p.unit}{where}"
                raise InputError(f"the parameters make {made}; expected at least {p.lower:g}")
        d = substituted(variation.description, variation.parameters, values)
        for k in _checked_bodies(self._engine.source):
            problem = inertia_problem(np.asarray(d.bodies[k].inertia, dtype=float))
            if problem is not None:
                raise InputError(f"the parameters of body {d.bodies[k].name!r}{where}: {problem}")
        for section, k in _dry_joints(self._engine.source):
            joint = getattr(d, section)[k]
            static, coulomb = np.asarray(joint.friction.static, float), np.asarray(joint.friction.coulomb, float)
            for low, high in zip(static[static < coulomb], coulomb[static < coulomb], strict=True):
                raise InputError(
                    f"the parameters of joint {joint.name!r}{where}: friction.static {low:g} is below friction.coulomb "
                    f"{high:g}; static friction is at least Coulomb friction"
                )
        for name, given in _axes(self._engine.source, values):
            length = float(np.linalg.norm(np.asarray(given, dtype=float)))
            if abs(length - 1) > AXIS_SLACK:
                raise InputError(f"parameters '{name}.axis'{where} have length {length:.6g}; expected a unit vector")


def _worst(source: Source, domain: Domain) -> Array:
    """Minus how many numbers are not possible, or −1 where some are not finite; traced over the parameters' symbols.

    Sums are taken in pairs: in long chains each operation would wait for the one before.
    """
    variation = source.variation
    assert variation is not None
    graph: Any = domain
    p, zero = graph.scalars(source.traced.symbols[0]), domain.const(0.0)
    margins: list[Any] = []
    for parameter, value in [*zip(variation.parameters, p, strict=True), *_followers(source, p)]:
        if np.isfinite(parameter.lower):
            tiny = np.finfo(float).tiny if parameter.positive else 0.0
            margins.append(value - domain.const(parameter.lower + tiny))
    for parameter, value in zip(variation.parameters, p, strict=True):
        if parameter.place[2] in NEVER_ZERO:
            margins.append(value * value - domain.const(np.finfo(float).tiny))
    d = substituted(variation.description, variation.parameters, p)
    for k in _checked_bodies(source):
        margins += _inertia_margins(domain.array(d.bodies[k].inertia), domain)
    for section, k in _dry_joints(source):
        friction = getattr(d, section)[k].friction
        margins += list(domain.array(friction.static) - domain.array(friction.coulomb))
    for _, axis in _axes(source, p):
        square = axis @ axis
        margins.append(domain.const((1 + AXIS_SLACK) ** 2) - square)
        margins.append(square - domain.const((1 - AXIS_SLACK) ** 2))
    broken = _sum([domain.where(domain.less(margin, zero), domain.const(1.0), zero) for margin in margins])
    squares = _sum([value * value for value in p])
    return domain.array([domain.where(domain.less(squares, domain.const(LARGEST)), -broken, domain.const(-1.0))])


def _sum(terms: list[Any]) -> Any:
    while len(terms) > 1:
        terms = [*(a + b for a, b in zip(terms[::2], terms[1::2], strict=False)), *terms[len(terms) // 2 * 2 :]]
    return terms[0] if terms else 0.0


def _followers(source: Source, values: Any) -> list[tuple[Parameter, Any]]:
    """(number of a record, its value) of those that named constants of the file move."""
    variation = source.variation
    assert variation is not None
    d = variation.description
    pairs = zip(variation.parameters, values, strict=True)
    given = {p.place[1]: value for p, value in pairs if p.place[0] == "constants"}
    if not given:
        return []
    every = {p.place: p for p in parameters_of(d)}
    return [(every[place], value) for place, value in followed(d, given)[1]]


def _inertia_margins(inertia: Array, domain: Domain) -> list[Any]:
    """Principal minors of Σ = ½ tr(I) 1 − I, with slack: what `inertia_problem` rejects has a negative one.

    Its least eigenvalue is (I_1 + I_2 − I_3)/2 < −SLACK I_3/2 there, and tr(I) < 2 I_3.
    """
    trace_ = inertia[0, 0] + inertia[1, 1] + inertia[2, 2]
    S = domain.eye(3) * (trace_ * domain.const(0.5 + SLACK / 4)) - inertia
    places = (rows for size in (1, 2, 3) for rows in combinations(range(3), size))
    return [_determinant(S[np.ix_(rows, rows)]) for rows in places]


def _determinant(A: Array) -> Any:
    if len(A) == 1:
        return A[0, 0]
    if len(A) == 2:
        return A[0, 0] * A[1, 1] - A[0, 1] * A[0, 1]
    (a, d, e), (_, b, f), (_, _, c) = A  # symmetric
    return c * (a * b - d * d) - f * (a * f - d * e) - e * (b * e - d * f)


def _checked_bodies(source: Source) -> list[int]:
    """Bodies some of whose inertia is an input, where the nominal one is sound: real files have others."""
    variation = source.variation
    assert variation is not None
    places = [*(p.place for p in variation.parameters), *(f.place for f in variation.description.formulas)]
    chosen = [place for place in places if place[0] == "bodies" and place[2] == "inertia"]
    varied = dict.fromkeys(index for _, index, *_ in chosen)
    bodies = variation.description.bodies
    return [k for k in varied if inertia_problem(np.asarray(bodies[k].inertia, dtype=float)) is None]


def _dry_joints(source: Source) -> list[tuple[str, int]]:
    """(section, index) of the joints whose static or Coulomb friction is an input."""
    variation = source.variation
    if variation is None:
        return []
    places = [*(p.place for p in variation.parameters), *(f.place for f in variation.description.formulas)]
    dry = [p for p in places if p[2] == "friction" and p[0] in ("joints", "loops") and p[3][0] in ("static", "coulomb")]
    return list(dict.fromkeys((section, index) for section, index, *_ in dry))


def _axes(source: Source, values: Any) -> Iterator[tuple[str, Array]]:
    """(owner, axis) of axes that are inputs, as they are given: before they are made unit."""
    variation = source.variation
    assert variation is not None
    given: dict[tuple[str, int], dict[int, Any]] = {}
    for parameter, value in zip(variation.parameters, values, strict=True):
        section, index, field, where = parameter.place
        if field == "axis":
            given.setdefault((section, index), {})[where[0]] = value
    for (section, index), entries in given.items():
        record = getattr(variation.description, section)[index]
        axis = np.array(record.axis, dtype=object)
        for k, value in entries.items():
            axis[k] = value
        yield record.name, axis


__all__ = ["NEVER_ZERO", "Parameters"]
