"""Contact of points and spheres of a body with the ground, over any domain: compliant, with friction.

g(p) is how far a sphere's centre p (radius r, zero for a point) is above the ground: n·(p − p_0) − r for a plane,
z − h(x, y) − r for a terrain. With δ = −g where that is positive, δ̇ its rate and t the slip velocity of the point that
touches, along the ground,

    N = k δ^e max(0, 1 + c δ̇)              f_n = N ∇g                  (Hunt and Crossley)                (1)
    f_t = −μ |f_n| t / √(|t|² + s²)                                     (Coulomb, regularised)             (2)

k `stiffness`, e `exponent`, c `damping`, μ `friction`, s `slip`. f_n is the gradient of k δ^{e+1}/(e + 1), which is
part of the potential energy, where nothing dissipates; |f_t| < μ |f_n| always: the force is inside its friction cone. A
foot at rest on a slope creeps, at the speed where (2) balances its weight. Terrains are an expression in x and y, or
heights on a regular grid, bilinear between its nodes and level outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.jets import JetDomain
from polybody.algebra.rotations import cross
from polybody.description.expressions import Expression, parse
from polybody.description.records import Contact
from polybody.late import dataclass
from polybody.mechanism.compliant_stops import positive_part
from polybody.properties import cached_property

if TYPE_CHECKING:
    from polybody.mechanism.kinematics import Pose

#: added to δ under a root or logarithm, m
TINY = 1e-30


@dataclass(frozen=True, eq=False)
class GroundContact:
    """A contact's record with its points in the frame of tree body `body`."""

    body: int
    points: Array
    record: Contact

    @property
    def name(self) -> str:
        return self.record.name

    @cached_property
    def terrain(self) -> Expression | None:
        return None if self.record.terrain is None else parse(self.record.terrain)


def height(contact: GroundContact, x: Any, y: Any, *, domain: Domain) -> Any:
    """h(x, y)."""
    if contact.terrain is not None:
        return contact.terrain.value({"x": np.array([x], dtype=object), "y": np.array([y], dtype=object)}, domain)
    grid = contact.record
    assert grid.heights is not None
    assert grid.extent is not None
    x0, x1, y0, y1 = (float(end) for end in grid.extent)
    rows, columns = grid.heights.shape
    hats = _hats(x, x0, x1, rows, domain), _hats(y, y0, y1, columns, domain)
    total = domain.const(0)
    for i, across in enumerate(hats[0]):
        row = domain.const(0)
        for j, along in enumerate(hats[1]):
            if grid.heights[i, j]:
                row = row + along * domain.const(grid.heights[i, j])
        total = total + across * row
    return total


def _hats(x: Any, low: float, high: float, count: int, domain: Domain) -> list[Any]:
    """Weights of the nodes of a line: linear between two, the ends' outside."""
    one, step = domain.const(1), (high - low) / (count - 1)
    inside = domain.where(domain.less(x, domain.const(low)), domain.const(low), x)
    inside = domain.where(domain.less(domain.const(high), inside), domain.const(high), inside)
    found = []
    for k in range(count):
        off = (inside - domain.const(low + k * step)) / domain.const(step)
        off = domain.where(domain.less(off, domain.const(0)), -off, off)
        found.append(positive_part(one - off, domain))
    return found


def gap(contact: GroundContact, p: Array, *, domain: Domain) -> tuple[Any, Array]:
    """(g, ∇g) of a sphere's centre."""
    record = contact.record
    r = domain.const(record.radius)
    if contact.terrain is None and record.heights is None:
        n = domain.array(record.normal)
        return n @ (p - domain.array(record.point)) - r, n
    jets = JetDomain(domain)
    slope = domain.zeros(3)
    slope[2] = domain.const(1)
    for k in range(2):
        rates = domain.zeros(2)
        rates[k] = domain.const(1)
        x, y = jets.lift(p[:2], rates)
        slope[k] = -jets.rates(np.array([height(contact, x, y, domain=jets)], dtype=object))[0]
    return p[2] - height(contact, p[0], p[1], domain=domain) - r, slope


def _power(delta: Any, exponent: float, domain: Domain) -> Any:
    """δ^e for e ≥ 1, with derivatives that are finite at zero."""
    if exponent == 1:
        return delta
    if exponent == 1.5:
        return delta * domain.sqrt(delta + domain.const(TINY))
    if exponent == 2:
        return delta * delta
    return delta * domain.exp(domain.const(exponent - 1) * domain.log(delta + domain.const(TINY)))


def contact_forces(
    contact: GroundContact, poses: list[Pose], twists: list[Array] | None, *, domain: Domain = FLOAT
) -> list[tuple[Array, Array]]:
    """(world position where it acts, force on the body) of each point; elastic forces alone if twists is None."""
    record, c = contact.record, domain.const
    R, origin = poses[contact.body]
    result = []
    for local in contact.points:
        lever = R @ domain.array(local)
        centre = origin + lever
        g, slope = gap(contact, centre, domain=domain)
        delta = positive_part(-g, domain)
        push = _power(delta, record.exponent, domain) * c(record.stiffness)
        size = domain.sqrt(slope @ slope) if contact.terrain is not None or record.heights is not None else c(1)
        n = slope / size
        lever = lever - n * c(record.radius)
        if twists is None:
            result.append((origin + lever, slope * push))
            continue
        twist = twists[contact.body]
        v = R @ twist[3:] + cross(R @ twist[:3], lever)
        if record.damping:
            push = push * positive_part(c(1) - (slope @ v) * c(record.damping), domain)
        force = slope * push
        if record.friction:
            t = v - n * (n @ v)
            force = force - t * (push * size * c(record.friction) / domain.sqrt(t @ t + c(record.slip**2)))
        result.append((origin + lever, force))
    return result


def contact_wrench(
    contact: GroundContact, poses: list[Pose], twists: list[Array] | None, *, domain: Domain = FLOAT
) -> Array:
    """The wrench of all its points on the body, at the body's origin, world axes."""
    total = domain.zeros(6)
    origin = poses[contact.body][1]
    for place, force in contact_forces(contact, poses, twists, domain=domain):
        total = total + np.concatenate([cross(place - origin, force), force])
    return total


def contact_energy(contact: GroundContact, poses: list[Pose], *, domain: Domain = FLOAT) -> Any:
    """Σ k δ^{e+1}/(e + 1)."""
    record, total = contact.record, domain.const(0)
    R, origin = poses[contact.body]
    for local in contact.points:
        g, _ = gap(contact, origin + R @ domain.array(local), domain=domain)
        delta = positive_part(-g, domain)
        stored = delta * _power(delta, record.exponent, domain)
        total = total + stored * domain.const(record.stiffness / (record.exponent + 1))
    return total


__all__ = ["GroundContact", "contact_energy", "contact_forces", "contact_wrench", "gap", "height"]
