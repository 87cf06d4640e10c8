"""A mechanism in natural coordinates: its equations as polynomials of degree two, without rounding.

The coordinates z are the entries of R and p of every body, world axes, the same of frames between the stages of
compound joints, the slides d of joints, and R and p of the child in the parent of spherical and floating ones. Then
every joint and cut joint is a set of equations of degree one or two, with the numbers of the geometry as coefficients
(frames a, b of the joint, z its axis, y across it):

    every frame     R_i · R_j = δ_ij, the columns of R        revolute      R_a z = R_b z, p_a = p_b
    prismatic       R_a = R_b, p_b − p_a = d R_a z             universal     R_a z · R_b y = 0, p_a = p_b

and twists and velocities are bilinear in (z, ż): ω̂ = Rᵀ Ṙ, u = Rᵀ ṗ, of a turn z·ω_b − z·ω_a, each in its own axes. A
linear form is a row {index: coefficient}, index 0 standing for the constant 1; a quadratic one has pairs of indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polybody.algebra.rotations import axis_angle_matrix
from polybody.constraints.closure import PARTS
from polybody.constraints.place import Place
from polybody.identification.crossings import squared_up
from polybody.identification.proofs.echelon import Row, combined, product
from polybody.identification.proofs.prime_field import PrimeField
from polybody.late import dataclass, field
from polybody.mechanism.joints import FloatingJoint, JointModel, MapJoint, PlanarJoint, ReversedJoint, SphericalJoint
from polybody.mechanism.kinds import plane_axes
from polybody.mechanism.mechanism import GROUND, Closure, Mechanism, TreeJoint

Array = np.ndarray
Pose = tuple[Array, Array]
#: Σ f ġ over pairs (f, g) of linear forms
Rate = list[tuple[Row, Row]]


class NotAlgebraicError(Exception):
    """A joint or constraint whose equations are no polynomials of degree two."""


@dataclass(frozen=True, eq=False)
class Frame:
    """The entries of R (rows of columns) and p as linear forms, and their values at a configuration."""

    R: list[list[Row]]
    p: list[Row]
    at: Callable[[Place], Pose]
    name: str = ""

    def column(self, k: int) -> list[Row]:
        return [self.R[r][k] for r in range(3)]


@dataclass(eq=False)
class System:
    """Polynomials of a mechanism over GF(p)."""

    numbers: PrimeField
    linear: list[Row] = field(default_factory=list)
    quadratic: list[Row] = field(default_factory=list)
    implied: list[Row] = field(default_factory=list)  # polynomials that vanish too, of rotations without reflection
    frames: list[Frame] = field(default_factory=list)  # ground, bodies, then those between stages
    velocities: dict[int, Rate] = field(default_factory=dict)  # by the index in v
    values: list[Callable[[Place], Any]] = field(default_factory=list)  # of the variables, in blocks
    size: int = 1  # of z and the constant

    def variables(self, count: int, value: Callable[[Place], Any]) -> list[Row]:
        self.values.append(value)
        self.size += count
        return [{k: 1} for k in range(self.size - count, self.size)]

    def at(self, place: Place) -> Array:
        """z at a configuration, the constant first."""
        return np.concatenate([[1.0], *(np.atleast_1d(np.asarray(value(place), dtype=float)) for value in self.values)])

    # forms

    def sum(self, *terms: tuple[int, Row]) -> Row:
        return combined(self.numbers.p, *terms)

    def equal(self, left: Sequence[Row], right: Sequence[Row]) -> None:
        self.linear += [self.sum((1, x), (-1, y)) for x, y in zip(left, right, strict=True)]

    def dot(self, a: Sequence[Row], b: Sequence[Row]) -> Row:
        p = self.numbers.p
        return combined(p, *((1, product(p, x, y)) for x, y in zip(a, b, strict=True)))

    def as_pairs(self, form: Row) -> Row:
        return {(0, k): value for k, value in form.items()}

    def vanishing(self, *terms: tuple[int, Row]) -> None:
        self.quadratic.append(combined(self.numbers.p, *terms))

    def turned(self, frame: Frame, direction: Sequence[int]) -> list[Row]:
        """R d."""
        return [self.sum(*zip(direction, row, strict=True)) for row in frame.R]

    # frames

    def frame(self, name: str, at: Callable[[Place], Pose]) -> Frame:
        """A new frame, with its equations of orthonormality."""
        entries = self.variables(12, lambda place: np.concatenate([at(place)[0].ravel(), at(place)[1]]))
        new = Frame([entries[0:3], entries[3:6], entries[6:9]], entries[9:], at, name)
        self.frames.append(new)
        for i in range(3):
            for j in range(i + 1):
                self.vanishing((1, self.dot(new.column(i), new.column(j))), (-(i == j), {(0, 0): 1}))
        self._right_handed(new)
        return new

    def _right_handed(self, frame: Frame) -> None:
        """Every column is the vector product of the others."""
        p = self.numbers.p
        for i in range(3):
            x, y, z = (frame.column((i + k) % 3) for k in range(3))
            for r in range(3):
                s, t = (r + 1) % 3, (r + 2) % 3
                terms = ((1, product(p, x[s], y[t])), (-1, product(p, x[t], y[s])), (-1, self.as_pairs(z[r])))
                self.implied.append(combined(p, *terms))

    def placed(self, frame: Frame, rotation: Array, position: Array) -> Frame:
        """A frame fixed in another."""
        turn, shift = self.numbers.rotation(squared_up(rotation)), self.numbers.numbers(position)
        columns = [self.turned(frame, [turn[i][k] for i in range(3)]) for k in range(3)]
        moved = [self.sum((1, x), (1, y)) for x, y in zip(frame.p, self.turned(frame, shift), strict=True)]

        def at(place: Place) -> Pose:
            R, p = frame.at(place)
            return R @ rotation, p + R @ position

        return Frame([[columns[k][r] for k in range(3)] for r in range(3)], moved, at)

    def across(self, axis: Array) -> tuple[list[int], list[int], list[int]]:
        """(e_1, e_2, z)."""
        rows = self.numbers.rotation(np.column_stack([*plane_axes(axis), axis]))
        e1, e2, z = ([row[k] for row in rows] for k in range(3))
        return e1, e2, z

    # pairs of frames

    def gap(self, a: Frame, b: Frame) -> list[Row]:
        """p_b − p_a."""
        return [self.sum((1, y), (-1, x)) for x, y in zip(a.p, b.p, strict=True)]

    def tilt(self, a: Frame, b: Frame, z: Sequence[int]) -> None:
        self.equal(self.turned(a, z), self.turned(b, z))

    def turning(self, a: Frame, b: Frame, axis: Array) -> Rate:
        """b turns about an axis of a, by z·ω_b − z·ω_a."""
        e1, e2, z = self.across(axis)
        self.tilt(a, b, z)
        minus = [self.sum((-1, x)) for x in self.turned(a, e2)]
        along = list(zip(self.turned(b, e2), self.turned(b, e1), strict=True))
        return along + list(zip(minus, self.turned(a, e1), strict=True))

    def sliding(self, a: Frame, b: Frame, axis: Array, slide: Callable[[Place], float]) -> Row:
        """b slides along an axis of a; the form of the slide."""
        z = self.across(axis)[2]
        for i in range(3):
            self.equal(a.R[i], b.R[i])
        (d,) = self.variables(1, lambda place: np.array([slide(place)]))
        p = self.numbers.p
        for direction, x, y in zip(self.turned(a, z), a.p, b.p, strict=True):
            self.vanishing((1, product(p, d, direction)), (1, self.as_pairs(x)), (-1, self.as_pairs(y)))
        return d

    def relative(self, a: Frame, b: Frame) -> Frame:
        """The place of b in a as variables."""

        def at(place: Place) -> Pose:
            (Ra, pa), (Rb, pb) = a.at(place), b.at(place)
            return Ra.T @ Rb, Ra.T @ (pb - pa)

        entries = self.variables(12, lambda place: np.concatenate([at(place)[0].ravel(), at(place)[1]]))
        new = Frame([entries[0:3], entries[3:6], entries[6:9]], entries[9:], at)
        for i in range(3):
            for form, other in [*((new.R[i][j], b.column(j)) for j in range(3)), (new.p[i], self.gap(a, b))]:
                self.vanishing((1, self.dot(a.column(i), other)), (-1, self.as_pairs(form)))
        self._right_handed(new)
        return new


def twist(frame: Frame) -> list[Rate]:
    """[ω; u] in the frame's own axes: ω̂ = Rᵀ Ṙ, u = Rᵀ ṗ."""
    spin = [list(zip(frame.column(i), frame.column(j), strict=True)) for i, j in ((2, 1), (0, 2), (1, 0))]
    return spin + [list(zip(frame.column(i), frame.p, strict=True)) for i in range(3)]


def natural_system(mechanism: Mechanism, numbers: PrimeField) -> System:
    """The polynomials of all joints and cut joints."""
    m = mechanism
    if m.guides or m.relations or m.rolling or m.velocity_relations or m.followers:
        raise NotAlgebraicError("constraints that are no joints or rods")
    system = System(numbers)
    eye: list[list[Row]] = [[{0: 1} if i == j else {} for j in range(3)] for i in range(3)]
    ground = Frame(eye, [{}, {}, {}], lambda place: (np.eye(3), np.zeros(3)), "the ground")
    system.frames.append(ground)
    bodies = [system.frame(body.name, lambda place, k=k: place.poses[k]) for k, body in enumerate(m.bodies)]
    frame_of = lambda body: ground if body == GROUND else bodies[body]  # noqa: E731
    for joint in m.joints:
        _tree_joint(system, joint, system.placed(frame_of(joint.parent), joint.rotation, joint.position),
                    bodies[joint.index])  # fmt: skip
    for closure in m.closures:
        near, far = (system.placed(frame_of(f.body), f.rotation, f.position) for f in (closure.a, closure.b))
        _cut_joint(system, closure, near, far)
    for rod in m.rods:
        ends = (m.point(rod.body_a, rod.point_a), m.point(rod.body_b, rod.point_b))
        p, q = (system.placed(frame_of(f.body), np.eye(3), f.position).p for f in ends)
        along = [system.sum((1, x), (-1, y)) for x, y in zip(p, q, strict=True)]
        length = numbers.number(float(rod.length))
        system.vanishing((1, system.dot(along, along)), (-length * length, {(0, 0): 1}))
    return system


def _tree_joint(system: System, joint: TreeJoint, a: Frame, b: Frame) -> None:
    model: JointModel = joint.model
    if isinstance(model, ReversedJoint):
        model, a, b = model.joint, b, a
    first, start = joint.v.start, joint.q.start
    if isinstance(model, SphericalJoint | FloatingJoint):
        if isinstance(model, SphericalJoint):
            system.equal(a.p, b.p)
        rates = twist(system.relative(a, b))
        system.velocities.update({first + k: rates[k] for k in range(joint.nv)})
        return
    if not isinstance(model, MapJoint):
        raise NotAlgebraicError(joint.kind)
    if isinstance(model, PlanarJoint):
        _planar(system, joint, np.asarray(model.map.H[:3, 0], dtype=float), a, b)
        return
    if not model.rates_are_velocities:
        raise NotAlgebraicError(joint.kind)
    for k in reversed(range(joint.nv)):  # from the parent to the child: the last column comes first
        h = np.asarray(model.map.H[:, k], dtype=float)
        number = lambda place, at=start + k: float(place.q[at])  # noqa: E731
        turns = bool(np.any(h[:3]))
        if (turns and np.any(h[3:])) or abs(float(np.linalg.norm(h)) - 1.0) > 1e-12:
            raise NotAlgebraicError(joint.kind)
        end = b if k == 0 else _between(system, f"the cross of {joint.name}", a, h, number)
        if turns:
            system.equal(a.p, end.p)
            system.velocities[first + k] = system.turning(a, end, h[:3])
        else:
            system.velocities[first + k] = [({0: 1}, system.sliding(a, end, h[3:], number))]
        a = end


def _planar(system: System, joint: TreeJoint, axis: Array, a: Frame, b: Frame) -> None:
    """On the ground only: the velocity against a parent that turns is no bilinear form."""
    if any(key for row in a.R for entry in row for key in entry):
        raise NotAlgebraicError(joint.kind)
    e1, e2, z = system.across(axis)
    first = joint.v.start
    system.velocities[first] = system.turning(a, b, axis)
    system.vanishing((1, system.dot(system.turned(a, z), system.gap(a, b))))
    for k, e in enumerate((e1, e2)):
        system.velocities[first + 1 + k] = list(zip(system.turned(b, e), b.p, strict=True))


def _between(system: System, name: str, a: Frame, h: Array, number: Callable[[Place], float]) -> Frame:
    """The frame after one stage of a compound joint."""

    def at(place: Place) -> Pose:
        R, p = a.at(place)
        turned = np.any(h[:3])
        return (R @ axis_angle_matrix(h[:3], number(place)), p) if turned else (R, p + R @ h[3:] * number(place))

    return system.frame(name, at)


def _cut_joint(system: System, closure: Closure, a: Frame, b: Frame) -> None:
    kind = "fixed" if closure.model is None else closure.model.kind
    if kind not in PARTS or kind == "screw" or isinstance(closure.model, ReversedJoint):
        raise NotAlgebraicError(kind)
    angular, linear = PARTS[kind]
    axis = np.array([0.0, 0.0, 1.0])
    if isinstance(closure.model, MapJoint) and kind != "universal":
        h = np.asarray(closure.model.map.H[:, 0], dtype=float)
        axis = h[:3] if np.any(h[:3]) else h[3:]
    e1, e2, z = system.across(axis)
    if angular == "tilt":
        system.tilt(a, b, z)
    elif angular == "turn":
        for i in range(3):
            system.equal(a.R[i], b.R[i])
    elif angular == "crossing":
        system.vanishing((1, system.dot(system.turned(a, z), system.turned(b, e2))))
    if linear == "point":
        system.equal(a.p, b.p)
        return
    for direction in (z,) if linear == "plane" else (e1, e2):
        system.vanishing((1, system.dot(system.turned(a, direction), system.gap(a, b))))


__all__ = ["Frame", "NotAlgebraicError", "Rate", "System", "natural_system", "twist"]
