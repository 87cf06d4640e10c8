"""Cut joints of every kind as constraints: what the joint does not let frame b do, seen from frame a.

(R, p) is the pose of b in a, z the joint's axis (the same in a and b), (e_1, e_2, z) right-handed, V = [ω; u] the twist
of b relative to a, in a's axes at b's origin. Directions are rows n of n·V = 0, one to six of them:

    tilt         e_1·(R z), e_2·(R z) = 0                 rows [R z × e_i; 0]          hinges, screws, cylinders, planes
    turn         z as well: no rotation at all             rows [1; 0]                  sliders, welds
    crossing     z·(R y) = 0                               row  [R y × z; 0]            universal: z stays in a, y in b
    point        p = 0                                     rows [0; 1]
    line, plane  e_1·p, e_2·p = 0;   z·p = 0               rows [0; e_i], [0; z]
    thread       h sin(p_z/h − θ) = 0                      row  [−h z; z]               screw of pitch h, θ the turn

Where they hold these rows are the derivatives of the residuals. Far from assembly sin θ becomes 2 tan(θ/2), which does
not vanish for an axis that points backwards. A joint given by any map matrix is eliminated instead (`map_closure`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.jets import JetDomain
from polybody.algebra.rotations import cross
from polybody.constraints.constraint import PairConstraint
from polybody.constraints.place import Place
from polybody.mechanism.kinds import plane_axes
from polybody.mechanism.mechanism import Closure

#: kind: (angular part, linear part)
PARTS = {
    "fixed": ("turn", "point"),
    "revolute": ("tilt", "point"),
    "continuous": ("tilt", "point"),
    "prismatic": ("turn", "line"),
    "screw": ("tilt", "thread"),
    "cylindrical": ("tilt", "line"),
    "universal": ("crossing", "point"),
    "spherical": (None, "point"),
    "planar": ("tilt", "plane"),
}
_SIZE = {"tilt": 2, "turn": 3, "crossing": 1, "point": 3, "line": 2, "plane": 1, "thread": 3, None: 0}


class ClosureConstraint(PairConstraint):
    """A constraint between two frames; its loads are wrenches on b at b's origin."""

    #: True where directions depend on the pose of b in a
    turning: bool = True

    def __init__(self, closure: Closure) -> None:
        self.name, self.closure = closure.name, closure
        self.a, self.b = closure.a, closure.b

    @abstractmethod
    def directions(self, R: Array, p: Array, domain: Domain) -> Array:
        """size×6: rows n of n·V = 0 in a's axes."""

    def columns(self, place: Place) -> Array:
        R, p = place.relative_pose(self.a, self.b)
        return self.directions(R, p, place.domain) @ place.relative_jacobian(self.a, self.b)

    def velocity(self, place: Place) -> Array:
        R, p = place.relative_pose(self.a, self.b)
        return self.directions(R, p, place.domain) @ place.relative_twist(self.a, self.b)

    @property
    def drifts_as_read(self) -> bool:
        return False

    def bias(self, place: Place, moving: Callable[[], Place]) -> Array:
        """N V̇ + Ṅ V; b turns against a by ω and moves by u."""
        domain = place.domain
        R, p = place.relative_pose(self.a, self.b)
        V, V_rate = place.relative_rate(self.a, self.b)
        drift = self.directions(R, p, domain) @ V_rate
        if not self.turning:
            return drift
        jets = JetDomain(domain)
        turned = np.array([cross(V[:3], R[:, k]) for k in range(3)], dtype=domain.dtype).T
        N = self.directions(jets.lift(R, turned), jets.lift(p, V[3:]), jets)
        return drift + jets.rates(N) @ V

    def wrench_map(self, place: Place) -> Array:
        R, p = place.relative_pose(self.a, self.b)
        N = self.directions(R, p, place.domain)
        Ra, _ = place.frame(self.a)
        return np.concatenate([Ra @ N[:, :3].T, Ra @ N[:, 3:].T])


class NamedClosure(ClosureConstraint):
    """A cut joint of a named kind, in closed form."""

    def __init__(self, closure: Closure, kind: str, axis: Array, pitch: float | None) -> None:
        super().__init__(closure)
        self.kind = kind
        self.angular, self.linear = PARTS[self.kind]
        self.turning = self.angular == "crossing"
        self.z, self.pitch = axis, pitch
        self.e1, self.e2 = plane_axes(axis)
        angular = {"tilt": ("tilt 1", "tilt 2"), "turn": ("turn x", "turn y", "turn z"), "crossing": ("crossing",)}
        linear = {
            "point": ("x", "y", "z"), "line": ("across 1", "across 2"), "plane": ("off plane",),
            "thread": ("across 1", "across 2", "thread"),
        }
        turns = () if self.angular is None else angular[self.angular]
        self.labels = (*turns, *linear[self.linear])
        self.units = ("rad",) * len(turns) + ("m",) * (self.size - len(turns))

    def residual(self, place: Place, far: bool = False) -> Array:
        domain = place.domain
        R, p = place.relative_pose(self.a, self.b)
        return np.concatenate([self._angular_residual(R, domain, far), self._linear_residual(R, p, domain, far)])

    def _angular_residual(self, R: Array, domain: Domain, far: bool) -> Array:
        one, two = domain.const(1), domain.const(2)
        if self.angular is None:
            return domain.zeros(0)
        if self.angular == "turn":
            sines = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]], dtype=domain.dtype) / two
            return sines * (domain.const(4) / (one + R[0, 0] + R[1, 1] + R[2, 2])) if far else sines
        if self.angular == "crossing":
            return np.array([domain.array(self.z) @ (R @ domain.array(self.e2))], dtype=domain.dtype)
        turned = R @ domain.array(self.z)
        sines = np.array([domain.array(e) @ turned for e in (self.e1, self.e2)], dtype=domain.dtype)
        return sines * (two / (one + domain.array(self.z) @ turned)) if far else sines

    def _linear_residual(self, R: Array, p: Array, domain: Domain, far: bool) -> Array:
        e1, e2, z = (domain.array(e) for e in (self.e1, self.e2, self.z))
        if self.linear == "point":
            return p
        if self.linear == "plane":
            return np.array([z @ p], dtype=domain.dtype)
        across = [e1 @ p, e2 @ p]
        if self.linear == "line":
            return np.array(across, dtype=domain.dtype)
        h, two = domain.const(self.pitch), domain.const(2)
        sine, cosine = e2 @ (R @ e1) - e1 @ (R @ e2), e1 @ (R @ e1) + e2 @ (R @ e2)  # of θ, both doubled
        slid = (z @ p) / h
        s, c = domain.sin(slid), domain.cos(slid)
        gap_sine, gap_cosine = (s * cosine - c * sine) / two, (c * cosine + s * sine) / two
        thread = h * (two * gap_sine / (domain.const(1) + gap_cosine) if far else gap_sine)
        return np.array([*across, thread], dtype=domain.dtype)

    def directions(self, R: Array, p: Array, domain: Domain) -> Array:
        e1, e2, z = (domain.array(e) for e in (self.e1, self.e2, self.z))
        N = domain.zeros(self.size, 6)
        count = _SIZE[self.angular]
        if self.angular == "turn":
            N[:3, :3] = domain.eye(3)
        elif self.angular == "crossing":
            N[0, :3] = cross(R @ e2, z)
        elif self.angular == "tilt":
            # d/dt e_i·(R z) = ω·(R z × e_i); where the hinge is closed R z = z.
            N[0, :3], N[1, :3] = cross(z, e1), cross(z, e2)
        if self.linear == "point":
            N[count:, 3:] = domain.eye(3)
        elif self.linear == "plane":
            N[count, 3:] = z
        else:
            N[count, 3:], N[count + 1, 3:] = e1, e2
        if self.linear == "thread":
            N[count + 2, :3], N[count + 2, 3:] = z * -domain.const(0 if self.pitch is None else self.pitch), z
        return N

    def uprightness(self, place: Place) -> list[Any]:
        if self.angular not in ("turn", "tilt") and not (self.linear == "thread" and self.pitch):
            return []  # as of a ball: no pose is needed to say so
        R, p = place.relative_pose(self.a, self.b)
        d = place.domain
        if self.angular == "turn":
            return [R[0, 0] + R[1, 1] + R[2, 2] - d.const(1)]
        z, values = d.array(self.z), list[Any]()
        if self.angular == "tilt":
            values.append(z @ R @ z)
        if self.linear == "thread" and self.pitch:
            e1, e2 = d.array(self.e1), d.array(self.e2)
            turn = d.atan2(e2 @ R @ e1, e1 @ R @ e1)
            values.append(d.cos((z @ p) / d.const(self.pitch) - turn))
        return values


__all__ = ["PARTS", "ClosureConstraint", "NamedClosure"]
