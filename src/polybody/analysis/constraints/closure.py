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
not vanish for an axis that points backwards. A joint given by any map matrix H(ε) is eliminated instead: ε is the
joint's configuration nearest to (R, p), ξ = log(X(ε)⁻¹ (R, p)) what is left over in b's axes, N the orthogonal
complement of H(ε), and

    φ = Nᵀ ξ,     φ̇ = Nᵀ V_b,     φ̈ = Nᵀ (V̇_b − Ḣ β),    β = H⁺ V_b
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.jets import JetDomain
from polybody.algebra.rotations import cross
from polybody.algebra.spatial import twist_log
from polybody.analysis.constraints.constraint import Constraint
from polybody.analysis.constraints.place import Place, velocities_between
from polybody.errors import PolybodyError
from polybody.mechanism.joints import JointModel
from polybody.mechanism.kinds import plane_axes
from polybody.mechanism.mechanism import BodyFrame, Closure, Mechanism

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


class ClosureConstraint(Constraint):
    """A constraint between two frames; its loads are wrenches on b at b's origin."""

    def __init__(self, closure: Closure) -> None:
        self.name, self.closure = closure.name, closure
        self.a: BodyFrame = closure.a
        self.b: BodyFrame = closure.b

    @abstractmethod
    def directions(self, R: Array, p: Array, domain: Domain) -> Array:
        """size×6: rows n of n·V = 0 in a's axes."""

    def support(self, mechanism: Mechanism) -> list[int]:
        return velocities_between(mechanism, self.a.body, self.b.body)

    def columns(self, place: Place) -> Array:
        R, p = place.relative_pose(self.a, self.b)
        return self.directions(R, p, place.domain) @ place.relative_jacobian(self.a, self.b)

    def velocity(self, place: Place) -> Array:
        R, p = place.relative_pose(self.a, self.b)
        return self.directions(R, p, place.domain) @ place.relative_twist(self.a, self.b)

    def wrench_map(self, place: Place) -> Array:
        """6×size: the wrench on b at b's origin, world axes, of unit multipliers."""
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
            N[count + 2, :3], N[count + 2, 3:] = z * domain.const(-float(self.pitch or 0)), z
        return N

    def mirrored(self, place: Place) -> bool:
        R, p = place.relative_pose(self.a, self.b)
        if self.angular == "turn":
            return bool(np.trace(R) < 1)
        if self.angular == "tilt" and float(self.z @ R @ self.z) < 0:
            return True
        if self.linear == "thread" and self.pitch:
            turn = np.arctan2(self.e2 @ R @ self.e1, self.e1 @ R @ self.e1)
            return bool(np.cos(self.z @ p / self.pitch - turn) < 0)
        return False


class MapClosure(ClosureConstraint):
    """A cut joint given by its map matrix; its own configuration is eliminated (numbers only, unless it is simple)."""

    kind = "custom"
    compiled = False

    def __init__(self, closure: Closure) -> None:
        super().__init__(closure)
        assert closure.model is not None
        self.model: JointModel = closure.model
        self.labels = tuple(f"direction {k + 1}" for k in range(6 - closure.model.nv))
        self.units = ("",) * self.size
        H = self.model.constant_map
        self.constant_complement = None if H is None else complement(np.asarray(H, dtype=float))

    def nearest(self, R: Array, p: Array) -> tuple[Array, Array]:
        """(ε, ξ): the joint's configuration nearest to (R, p), and what is left over in b's axes."""
        best: tuple[float, Array, Array] | None = None
        starts = [self.model.neutral(), *(self.model.random(np.random.default_rng(k)) for k in range(12))]
        for start in starts:
            epsilon = np.asarray(start, dtype=float)
            xi, last = self._left_over(epsilon, R, p), np.inf
            for _ in range(60):
                step = np.linalg.pinv(self.model.velocity_map(epsilon)) @ xi
                size = float(np.abs(step).max())
                if size < 1e-15 or (size < 1e-9 and size >= last):
                    break
                last = size
                epsilon = self.model.integrate(epsilon, step * min(1.0, 1.0 / size))
                xi = self._left_over(epsilon, R, p)
            gap = float(np.linalg.norm(xi))
            if best is None or gap < best[0] - 1e-12:
                best = (gap, epsilon, xi)
            if best[0] < 1e-6:
                break
        assert best is not None
        return best[1], best[2]

    def _left_over(self, epsilon: Array, R: Array, p: Array) -> Array:
        X, x = self.model.configuration(epsilon)
        return twist_log(X.T @ R, X.T @ (p - x))

    def residual(self, place: Place, far: bool = False) -> Array:
        self._only_numbers(place.domain)
        R, p = place.relative_pose(self.a, self.b)
        epsilon, xi = self.nearest(R, p)
        return complement(self.model.velocity_map(epsilon)).T @ xi

    def directions(self, R: Array, p: Array, domain: Domain) -> Array:
        """Nᵀ V_b with V_b = [Rᵀω; Rᵀu]."""
        if self.constant_complement is not None:
            N = domain.array(self.constant_complement)
        else:
            self._only_numbers(domain)
            N = complement(self.model.velocity_map(self.nearest(R, p)[0]))
        return np.concatenate([N[:3].T @ R.T, N[3:].T @ R.T], axis=1)

    def bias(self, place: Place, moving: Place) -> Array:
        if self.constant_complement is not None:
            return super().bias(place, moving)
        self._only_numbers(place.domain)
        assert isinstance(moving.domain, JetDomain)
        R, p = place.relative_pose(self.a, self.b)
        epsilon, _ = self.nearest(R, p)
        H = self.model.velocity_map(epsilon)
        Rj, _ = moving.relative_pose(self.a, self.b)
        V = moving.relative_twist(self.a, self.b)
        V_b = np.concatenate([Rj.T @ V[:3], Rj.T @ V[3:]])
        beta = np.linalg.pinv(H) @ moving.domain.values(V_b)
        return complement(H).T @ (moving.domain.rates(V_b) - self.model.velocity_map_rate(epsilon, beta) @ beta)

    def _only_numbers(self, domain: Domain) -> None:
        if domain is not FLOAT:
            raise PolybodyError(
                f"loop {self.name!r}: the configuration of a joint given by a map is found by iteration, which has no "
                f"expression over {domain.name}"
            )


def complement(H: Array) -> Array:
    """Orthonormal columns of what H does not reach, the same for the same H."""
    U, s, _ = np.linalg.svd(np.asarray(H, dtype=float))
    rank = int(np.sum(s > 1e-12 * s[0])) if len(s) else 0
    return U[:, rank:]


def closure_constraint(closure: Closure, record: Any) -> ClosureConstraint | None:
    """The constraint of a loop; None for a floating joint, which holds nothing."""
    kind = "fixed" if closure.model is None else closure.model.kind
    if kind == "floating" or (closure.model is not None and closure.model.nv == 6):
        return None
    if kind == "custom":
        return MapClosure(closure)
    if kind == "screw" and not record.pitch:  # a screw without pitch is a hinge
        kind = "revolute"
    axis = np.array([0.0, 0.0, 1.0]) if kind in ("universal", "spherical", "fixed") else record.axis
    return NamedClosure(closure, kind, np.asarray(axis, dtype=float), record.pitch)


__all__ = ["PARTS", "ClosureConstraint", "MapClosure", "NamedClosure", "closure_constraint", "complement"]
