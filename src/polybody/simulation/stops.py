"""Joint limits as stops, any number of them at once, with loops too.

The velocities that a mechanism can have are v = B y, B Bᵀ the inverse of its mass matrix on the motions that its loops
allow. A stop pushes its joint inwards: with n its row of B, signed so that n y > 0 leads away from the limit, N all
rows of joints at their stops, impulses λ and restitution e (Newton),

    y⁺ = y⁻ + Nᵀλ,      0 ≤ λ  ⊥  N y⁺ + e N y⁻ ≥ 0                                                           (1)

which is what minimises |Nᵀλ + (1 + e) y⁻|² over λ ≥ 0: a least-squares problem with bounds, solvable however many stops
there are and whether or not they are redundant. N y⁻ are the joints' own speeds. Where the fastest rebound would be
slower than `REST`, e = 0. Joints that then rest are pressed by forces f, the same with accelerations,

    0 ≤ f  ⊥  N (Nᵀf + c) ≥ 0,      N c = the joints' accelerations without stops                             (2)

Those with f > 0 are held, until a stop would have to pull; joints whose rows are combinations of the held ones' stay
with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

import numpy as np

from polybody.constraints.ranks import null_space
from polybody.kernels.kernel import Kernel
from polybody.late import dataclass
from polybody.mechanism.compliant_stops import compliant
from polybody.mechanism.mechanism import Mechanism
from polybody.model.engine import Request
from polybody.model.model import Model
from polybody.quantities.table import QUANTITIES
from polybody.simulation.bounds import bounded
from polybody.simulation.friction import Stick

Array = np.ndarray
Loaded = tuple[Array, Callable[[], dict[int, float]]]
REST = 1e-3  # rad/s or m/s
AT = 1e-9  # rad or m: a joint as near to its limit as this is at it
ROUNDING = 1e-12  # of the largest acceleration or impulse: a joint whose own is smaller is not pushed
MOST_HITS = 50  # one throwing others onto their stops, at one time


@dataclass(frozen=True)
class Stop:
    """One limit of one number of q (and of v): `side` is +1 for the upper, −1 for the lower."""

    joint: str
    q: int
    v: int
    side: int
    limit: float

    def __hash__(self) -> int:
        return 2 * self.q + (self.side > 0)  # a run asks more than a hundred times

    def excess(self, y: Array | Sequence[float]) -> float:
        """Positive beyond the limit."""
        return self.side * (float(y[self.q]) - self.limit)

    @property
    def name(self) -> str:
        return f"{self.joint} {'upper' if self.side > 0 else 'lower'} limit"


@dataclass(frozen=True)
class Excess:
    """How far a joint is beyond a limit, as a function of (t, y); `level` is how far it may be (`Stops.levels`)."""

    stop: Stop
    level: float = 0.0

    @property
    def label(self) -> tuple[str, Stop]:
        return "reached", self.stop

    def __call__(self, t: float, y: Array) -> float:
        return self.stop.excess(y) - self.level


@dataclass(frozen=True, eq=False)
class Pull:
    """How much a stop would have to pull, as a function of (problem, t, y)."""

    stop: Stop
    holding: Callable[[Any, float, Array], tuple[float, float]]

    @property
    def label(self) -> tuple[str, Stop]:
        return "left", self.stop

    def __call__(self, problem: Any, t: float, y: Array) -> float:
        return self.stop.side * self.holding(problem, t, y)[0]


class Stops:
    """All finite limits of a model, and which joints rest at one."""

    def __init__(self, model: Model, restitution: float, pressing: bool = True) -> None:
        """`pressing`: limits are stops; otherwise joints are held by friction alone."""
        self.model, self.pressing = model, pressing
        self.restitution = restitution
        self.all = finite_limits(model)
        self.held: dict[int, Stop | Stick] = {}  # by index of v; joints that stick by friction too
        self.implied: set[Stop] = set()  # at rest because the held ones are
        self.still: set[int] = set()  # slots of friction that could slide, and are at rest because of the held ones
        #: of joints that linger at a limit without pressing on it: their excess is zero, or rounding, from the start
        self.levels: dict[Stop, float] = {}
        self._known: dict[tuple[float, bytes], Loaded] | None = None
        self._last = b"", np.zeros((0, 0))
        self._kernel: Kernel | None = None  # of a tree's M, which is asked for in every rate while joints are held

    @property
    def is_free(self) -> bool:
        """Whether nothing is held, and no joint lingers at a limit."""
        return not (self.held or self.implied or self.still or self.levels)

    def are_far(self, q: Array) -> bool:
        """Whether no joint is at a limit or beyond it; q may be a state."""
        here = q.tolist()
        return self.are_inside(here, here, -AT)

    def are_inside(self, highest: Sequence[float], lowest: Sequence[float], most: float) -> bool:
        """Whether joints are nowhere as much as `most` beyond a limit, of which the highest and the lowest coordinates
        are given; where one is no number it is not so."""
        limits = _limits(self.model.mechanism)  # single numbers: of a few joints they take less than NumPy's calls
        above = [None for q, limit in limits.upper if not highest[q] - limit < most]
        return not (above or [None for q, limit in limits.lower if not limit - lowest[q] < most])

    @property
    def functions(self) -> list[tuple[Excess, int]]:
        """What is watched while nothing is held: the same list in every run of a mechanism."""
        return _limits(self.model.mechanism).functions

    def motions(self, q: Array) -> Array:
        """B; that of the last q is kept, for whoever looks at one state asks several times."""
        key = q.tobytes()
        if self._last[0] != key:
            self._last = key, self._motions(q)
        return self._last[1]

    def _motions(self, q: Array) -> Array:
        if self.model.mechanism.constrained:
            Z = null_space(self.model.engine.constraints.jacobian(q))
            return Z @ _root(Z.T @ self.model.tree.mass_matrix(q) @ Z)
        return _root(self._mass_matrix(q))

    def _mass_matrix(self, q: Array) -> Array:
        """M of a tree: q is the run's own, and nothing is to be checked."""
        if self._kernel is not None:
            return self._kernel(q)
        tree, asked = self.model.engine.tree, QUANTITIES["mass_matrix"]
        if tree.has_kernel(asked):
            self._kernel = tree.plain(asked)
        M = tree.once(asked, q)
        return tree.answer(Request(asked, (q,))) if M is None else M

    def reaction(self, q: Array, a: Array) -> tuple[Array, Array]:
        """(change of a, joint force) by which the held joints do not accelerate."""
        change, force = self.reactions(q, a[None])
        return change[0], force[0]

    def reactions(self, q: Array, a: Array) -> tuple[Array, Array]:
        """The same of many accelerations, (n, nv), at one q.

        In a tree the joints' unit forces accelerate it by columns X of M⁻¹, of which the rows of the joints themselves
        are positive definite: two solutions, a third of the time that R takes. Joints that loops lock have none.
        """
        held, force = list(self.held), np.zeros_like(a)
        if not self.model.mechanism.constrained:
            X = self._answers(q, held)
            force[:, held] = np.linalg.solve(X[held], -a[:, held].T).T
            return force[:, held] @ X.T, force
        B = self.motions(q)
        N = B[held]
        force[:, held] = np.linalg.lstsq(N @ N.T, -a[:, held].T, rcond=None)[0].T
        return force[:, held] @ N @ B.T, force

    def _answers(self, q: Array, held: list[int]) -> Array:
        """How unit forces of these joints of a tree accelerate it: columns of M⁻¹."""
        key = q.tobytes()
        if self._last[0] == key:  # R is at hand
            B = self._last[1]
            return B @ B[held].T
        units = np.zeros((self.model.nv, len(held)))
        units[held, range(len(held))] = 1.0
        return np.linalg.solve(self._mass_matrix(q), units)

    def holding(self, stop: Stop | Stick) -> Callable[[Any, float, Array], tuple[float, float]]:
        """(what holds the joint, as a force on it; the level of friction there, 0 for a stop)."""

        def function(problem: Any, t: float, y: Array) -> tuple[float, float]:
            force, levels = self._loads_at(problem, t, y)
            return float(force[stop.v]), levels()[stop.v] if isinstance(stop, Stick) else 0.0

        return function

    def _loads_at(self, problem: Any, t: float, y: Array) -> Loaded:
        """(what holds the joints, as forces on them; the levels of friction, when they are asked for)."""
        key = t, y.tobytes()
        if self._known is not None and key in self._known:
            return self._known[key]
        q, v = problem.split(y)
        tau, loads = problem.drive(t, q, v, problem.currents(y))
        force = self.reaction(q, problem.free_acceleration(q, v, tau, loads))[1]

        @cache
        def levels() -> dict[int, float]:
            return problem.friction.levels(v, problem.friction.bearing_loads(problem, q, v, tau, loads))

        if self._known is not None:
            self._known[key] = force, levels
        return force, levels

    @contextmanager
    def looking(self) -> Iterator[None]:
        """While the functions of all held joints are looked at, each state's loads are computed once. Not between: what
        acts may change."""
        self._known = {}
        try:
            yield
        finally:
            self._known = None

    def pull(self, stop: Stop) -> Pull:
        """How much the stop would have to pull its joint towards itself: crosses zero upwards when it is left."""
        return Pull(stop, self.holding(stop))

    def impact(self, struck: list[Stop], q: Array, v: Array, B: Array | None = None) -> tuple[Array, Array]:
        """(speeds after the hits, impulses of the stops) by (1); again while a hit throws others onto their stops.

        B is that of q where it is known.
        """
        B = self.motions(q) if B is None else B
        N, impulses, after = inward(B, struck), np.zeros(len(struck)), v.copy()
        sides, rows = np.array([-stop.side for stop in struck]), [stop.v for stop in struck]
        tiny = 1e-12 * (1 + np.abs(v).max())
        for again in range(MOST_HITS):
            speeds = sides * after[rows]
            if np.max(-speeds, initial=0.0) <= tiny:
                break
            e = self.restitution if again < MOST_HITS - 1 else 0.0
            e = e if e * np.max(-speeds) >= REST else 0.0
            impulse = bounded(N, (1 + e) * speeds)
            after, impulses = after + B @ (N.T @ impulse), impulses + impulse
        for stop in struck:
            if abs(after[stop.v]) < tiny:
                after[stop.v] = 0.0
        return after, impulses

    def press(
        self, resting: list[Stop], q: Array, a: Array, rubbing: Sequence[tuple[Stick, float]] = ()
    ) -> list[float]:
        """Hold those of the resting joints that their stops must push, by (2), under accelerations without stops.

        `rubbing` are joints at rest with what friction can hold them by; the forces of friction on them are returned.
        A joint that is at rest at its stop and rubs is one row, held by friction as far as that suffices: its force
        is unbounded where the stop pushes.
        """
        both = {stick.v for stick, _ in rubbing}
        beside, resting = [s for s in resting if s.v in both], [s for s in resting if s.v not in both]
        along = np.array([-stop.side * a[stop.v] for stop in resting])
        if is_rounding(a[[*(stop.v for stop in resting), *both]], a):  # in free fall nothing presses,
            self.held = {stick.v: stick for stick, level in rubbing if level > 0}  # and friction need hold nothing
            self.implied = set()
            return [0.0] * len(rubbing)
        along[np.abs(along) <= ROUNDING * np.abs(a).max(initial=0.0)] = 0.0
        if not rubbing and (along >= 0).all():  # every joint leaves its stop: no force is the answer to (2)
            self.held, self.implied = {}, set()
            return []
        B = self.motions(q)
        N = inward(B, resting)
        if rubbing:
            rows = np.array([B[stick.v] for stick, _ in rubbing])
            every, along = np.concatenate([N, rows]), np.concatenate([along, [a[stick.v] for stick, _ in rubbing]])
            levels = np.array([level for _, level in rubbing])
            ends = {(s.v, s.side) for s in beside}
            low = [-np.inf if (stick.v, 1) in ends else -level for stick, level in rubbing]
            high = [np.inf if (stick.v, -1) in ends else level for stick, level in rubbing]
            bounds = (np.concatenate([np.zeros(len(N)), low]), np.concatenate([np.full(len(N), np.inf), high]))
            found = bounded(every, along, *bounds)
            force, rub = found[: len(N)], found[len(N) :]
        else:
            force, rub = bounded(N, along), np.zeros(0)
        pressed = force > 1e-12 * max(float(force.max(initial=0.0)), 1e-300)
        self.held = {stop.v: stop for stop, yes in zip(resting, pressed, strict=True) if yes}
        if rubbing:
            inside = np.abs(rub) < levels * (1 - 1e-9)
            self.held |= {s.v: s for (s, _), yes in zip(rubbing, inside, strict=True) if yes}
            pushed = {s.v: x for (s, _), x, yes in zip(rubbing, rub, inside, strict=True) if not yes}
            self.held |= {stop.v: stop for stop in beside if stop.side * pushed.get(stop.v, 0.0) < 0}
            self.implied = set()
            return [float(x) for x in rub]
        others = [k for k in range(len(resting)) if not pressed[k]]
        self.implied = {resting[others[k]] for k in following(N[pressed], N[others])}
        return []

    def rest_with_others(self, q: Array, slots: list[int]) -> None:
        """Note which of the slots of friction cannot slide because of the joints that are held."""
        free = [slot for slot in slots if slot not in self.held]
        B = self.motions(q) if free and self.model.mechanism.constrained else np.zeros((0, 0))
        self.still = {free[k] for k in following(B[list(self.held)], B[free])} if len(B) else set()

    def pinned(self, y: Array) -> Array:
        """y with held joints exactly at their limits and at rest."""
        y = y.copy()
        for index, stop in self.held.items():
            y[stop.q] = stop.limit
            y[self.model.nq + index] = 0.0
        return y


def is_rounding(own: Array, a: Array) -> bool:
    """Whether accelerations of joints are nothing beside the largest."""
    return bool(np.abs(own).max(initial=0.0) <= ROUNDING * np.abs(a).max(initial=0.0))


def following(rows: Array, others: Array) -> list[int]:
    """Which of the others are combinations of the rows."""
    if not len(others) or not len(rows):
        return []
    off = np.linalg.norm(others - (others @ np.linalg.pinv(rows)) @ rows, axis=1)
    lengths = np.linalg.norm(others, axis=1)
    return np.flatnonzero((off <= 1e-9 * lengths) & (lengths > 0)).tolist()


def inward(B: Array, stops: list[Stop]) -> Array:
    """N: rows of B, signed so that they lead away from the limits."""
    return np.array([-stop.side * B[stop.v] for stop in stops]).reshape(len(stops), B.shape[1])


def _root(M: Array) -> Array:
    """R with R Rᵀ = M⁻¹."""
    return np.linalg.inv(np.linalg.cholesky(M)).T if len(M) else M


def finite_limits(model: Model) -> list[Stop]:
    """Every finite limit of joints whose q and v correspond number by number."""
    return list(limits_of(model.mechanism))


def limits_of(mechanism: Mechanism) -> tuple[Stop, ...]:
    """The same, once for all runs."""
    return _limits(mechanism).stops


class _Limits:
    """The finite limits of a mechanism, with what every run asks of all of them."""

    def __init__(self, stops: list[Stop]) -> None:
        self.stops = tuple(stops)
        self.functions = [(Excess(stop), 1) for stop in stops]
        self.upper = [(stop.q, stop.limit) for stop in stops if stop.side > 0]
        self.lower = [(stop.q, stop.limit) for stop in stops if stop.side < 0]


@lru_cache(maxsize=32)
def _limits(mechanism: Mechanism) -> _Limits:
    stops = []
    for joint in mechanism.independent_joints:
        if not joint.model.rates_are_velocities or compliant(joint.limits):  # compliant stops are among the forces
            continue
        for k in range(joint.nv):
            place = (joint.q.start + k, joint.v.start + k)
            for side, limit in ((-1, joint.limits.lower[k]), (1, joint.limits.upper[k])):
                if np.isfinite(limit):
                    stops.append(Stop(joint.name, *place, side, float(limit)))
    return _Limits(stops)


__all__ = ["AT", "REST", "ROUNDING", "Excess", "Pull", "Stop", "Stops", "finite_limits", "inward", "is_rounding",
           "limits_of"]
