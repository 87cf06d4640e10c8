"""Joints that stops or dry friction hold, and the way others rub, as numbers that compiled code reads.

A held joint does not accelerate: one code serves every set of held joints, with a number `free` for each that may be
held (1, or 0 while it is), which eliminates it from the articulated bodies or leaves it frozen there. Beside it are
`place`, where it is held, `pressed` for each stop (1 while it holds its joint), `open` for each stop (1 while its joint
may reach it) and `way` for each velocity that rubs: its direction of sliding, 0 while it sticks. With loops a joint
whose friction is at its bound may be unable to slide, for others are held: its `place` is 1. These change at events
only; nothing is compiled anew for them.

With loops a held joint is a row more on the motions that pass, v = G u̇. Its rows N of G and d = 1 − free give

    D (N M*⁻¹Nᵀ) D λ = −D a,    a ← a + G M*⁻¹Nᵀ D λ,    D = diag(d)                                          (1)

and the same with 1 for M* brings positions and velocities back. Rows may depend on each other (all joints of a four-bar
stick at once): ε of the trace is added to the matrix, and one refinement takes away what that changes along directions
that count; forces are then the least, as in Python.

What may end the present state is watched, λ being what holds a joint (`simulation.stops`, `simulation.friction`):

    a limit is reached      side (q − limit), upwards        a stop would have to pull     side λ, upwards
    sliding comes to rest   way v, downwards                 friction is too weak          |λ| − level, upwards

with −1 for what does not apply now, which crosses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from polybody.algebra.domains import Domain
from polybody.late import dataclass
from polybody.mechanism.friction import stribeck_excess
from polybody.mechanism.mechanism import Mechanism
from polybody.properties import cached_property
from polybody.simulation.friction import DryFriction, Rubbing, Stick
from polybody.simulation.stops import Stop, Stops, limits_of

Array = np.ndarray
SOFT = 1e-9  # ε


@dataclass(frozen=True, eq=False)
class Holding:
    """What may be held and what rubs; `frozen` where something is held now."""

    slots: tuple[tuple[int, int], ...] = ()  # (index of q, index of v) of joints that may be held
    stops: tuple[Stop, ...] = ()
    rubs: tuple[Rubbing, ...] = ()
    frozen: bool = False
    loose: bool = False  # frozen, but nothing is held: the same numbers, and nothing computed of forces that hold

    @cached_property
    def key(self) -> str:
        """What distinguishes its text from others."""
        if not self.frozen and not self.rubs:
            return ""
        stops = [(stop.v, stop.q, stop.side, stop.limit.hex()) for stop in self.stops]
        rubs = [(rub.v, rub.q, rub.k, rub.factor, _numbers(rub.law))
                for rub in self.rubs]  # fmt: skip
        return f"{self.slots} {stops} {rubs} {self.frozen}{' loose' if self.loose else ''}"

    @cached_property
    def rubbing(self) -> tuple[int, ...]:
        """Indices of v that rub, in order."""
        return tuple(dict.fromkeys(rub.v for rub in self.rubs))

    @cached_property
    def bearing(self) -> tuple[str, ...]:
        """Joints whose friction depends on their load."""
        return tuple(dict.fromkeys(rub.joint for rub in self.rubs if rub.bears))

    @property
    def size(self) -> int:
        """Of its numbers."""
        return len(self.rubbing) + (2 * (len(self.slots) + len(self.stops)) if self.frozen else 0)

    def numbers(self, stops: Stops | None, friction: DryFriction | None) -> Array:
        """[way; free; place; pressed; open] as the run has it now."""
        way = [0 if friction is None else friction.sliding[slot] for slot in self.rubbing]
        if not self.frozen:
            return np.array(way, dtype=float)
        held: dict[int, Stop | Stick] = {} if stops is None else stops.held
        free = [0.0 if v in held else 1.0 for _, v in self.slots]
        still = set() if stops is None else stops.still
        place = [held[v].limit if v in held else float(v in still) for _, v in self.slots]
        pressed = [1.0 if held.get(stop.v) is stop else 0.0 for stop in self.stops]
        implied: set[Stop] = set() if stops is None else stops.implied
        levels: dict[Stop, float] = {} if stops is None else stops.levels
        # (1 − level) excess − level < 0 up to the level
        reachable = [0.0 if stop.v in held or stop in implied else 1.0 - levels.get(stop, 0.0) for stop in self.stops]
        return np.array([*way, *free, *place, *pressed, *reachable], dtype=float)

    def apart(self, numbers: Array) -> tuple[Array, Array, Array, Array, Array]:
        """(way, free, place, pressed, open)."""
        ends = np.cumsum([len(self.rubbing), len(self.slots), len(self.slots), len(self.stops)])
        parts = np.split(numbers, ends if self.frozen else ends[:1])
        return (*parts, *[numbers[:0]] * (5 - len(parts)))  # type: ignore[return-value]

    # Texts.

    def friction(self, v: Array, numbers: Array, domain: Domain) -> Array:
        """What dry friction exerts on joints that slide, (nv,)."""
        force, way = domain.zeros(len(v)), self.apart(numbers)[0]
        for slot, direction in zip(self.rubbing, way, strict=True):
            force[slot] = -direction * self.level(slot, v, domain)
        return force

    def level(self, slot: int, v: Array, domain: Domain, borne: Mapping[str, Any] | None = None) -> Any:
        """How strong friction is on a slot of v; `borne` are the loads of joints, where they count."""
        total = domain.const(0)
        for rub in self.rubs:
            if rub.v == slot and rub.factor:
                own = stribeck_excess(rub.law, rub.k, v[slot] * domain.const(rub.factor), domain=domain)
                own = own + domain.array(rub.law.coulomb[rub.k : rub.k + 1])[0]
                if borne is not None and rub.joint in borne:
                    own = own + borne[rub.joint] * domain.array(rub.law.load[rub.k : rub.k + 1])[0]
                total = total + own * domain.const(abs(rub.factor))
        return total

    def free(self, nv: int, numbers: Array, domain: Domain) -> Array | None:
        """For each velocity 1 where it may accelerate, 0 where it is held; None where nothing is."""
        if not self.frozen or self.loose:
            return None
        found = domain.zeros(nv) + domain.const(1)
        for (_, slot), value in zip(self.slots, self.apart(numbers)[1], strict=True):
            found[slot] = value
        return found

    def pinned(self, x: Array, nq: int, numbers: Array, domain: Domain) -> Array:
        """The state with held joints exactly at their places and at rest."""
        x = x.copy()
        _, free, place, _, _ = self.apart(numbers)
        for (q, v), moves, at in zip(self.slots, free, place, strict=False):
            held = domain.less(moves, domain.const(0.5))
            x[q] = domain.where(held, at, x[q])
            x[nq + v] = domain.where(held, domain.const(0), x[nq + v])
        return x

    # With loops.

    def held_forces(self, G: Array, answer: Array, a: Array, numbers: Array, domain: Domain) -> Array:
        """λ of (1), one for each slot; `answer` is M*⁻¹Nᵀ, or Nᵀ."""
        slots = [v for _, v in self.slots]
        d = domain.const(1) - self.apart(numbers)[1]
        S, right = (G[slots] @ answer) * np.outer(d, d), -(a[slots] * d)
        A, total = S.copy(), domain.const(0)
        for k in range(len(slots)):
            total = total + S[k, k]
        for k in range(len(slots)):
            A[k, k] = A[k, k] + total * domain.const(SOFT) + (domain.const(1) - d[k])
        found = domain.solve(A, right)
        return (found + domain.solve(A, right - S @ found)) * d

    def kept(self, G: Array, move: Array, numbers: Array, domain: Domain, x: Array | None = None) -> Array:
        """A change `move` of positions x, or of velocities, with the least motion added by which held joints keep
        their places, or are at rest."""
        slots, place = [v for _, v in self.slots], self.apart(numbers)[2]
        gap = move.copy()
        if x is not None:
            for (q, v), at in zip(self.slots, place, strict=True):
                gap[v] = gap[v] + x[q] - at
        N = G[slots]
        return move + G @ (N.T @ self.held_forces(G, N.T, gap, numbers, domain))

    def gaps(self, x: Array, numbers: Array, domain: Domain) -> list[Any]:
        """How far held joints are from their places."""
        _, free, place, _, _ = self.apart(numbers)
        return [(x[q] - at) * (domain.const(1) - moves)
                for (q, _), moves, at in zip(self.slots, free, place, strict=True)]  # fmt: skip

    @property
    def directions(self) -> list[int]:
        """Of the crossings that count, in the order of `watched`."""
        sliding = [-1] * len(self.rubbing)
        return sliding if not self.frozen else [*sliding, *[1] * (2 * len(self.stops) + len(self.rubbing))]

    @property
    def labels(self) -> list[tuple[str, Any]]:
        """Of what is watched, in the order of `watched`, as `stops` and `friction` label it."""
        found: list[tuple[str, Any]] = [("rests", slot) for slot in self.rubbing]
        if self.frozen:
            found += [(word, stop) for stop in self.stops for word in ("reached", "left")]
            found += [("slips", slot) for slot in self.rubbing]
        return found

    def watched(
        self, q: Array, v: Array, numbers: Array, load: Array | None, domain: Domain,
        borne: Mapping[str, Any] | None = None,
    ) -> list[Any]:  # fmt: skip
        """What would end the present state; `load` is what holds each joint, (nv,), where something is held."""
        way, free, place, pressed, reachable = self.apart(numbers)
        values: list[Any] = [direction * v[slot] for slot, direction in zip(self.rubbing, way, strict=True)]
        if load is None:
            return values
        one, moves = domain.const(1), {slot: x for (_, slot), x in zip(self.slots, free, strict=True)}
        if not self.loose:
            stays = {slot: x * y for (_, slot), x, y in zip(self.slots, free, place, strict=True)}
            values = [x * (one - stays[slot]) + stays[slot] for slot, x in zip(self.rubbing, values, strict=True)]
        stuck = {slot: one - x for slot, x in moves.items()}
        for stop, here, may in zip(self.stops, pressed, reachable, strict=True):
            side = domain.const(stop.side)
            excess = (q[stop.q] - domain.const(stop.limit)) * side
            if self.loose:
                values += [excess * may - (one - may), -one]
                continue
            values += [excess * may - (one - may), load[stop.v] * side * here - (one - here)]
            stuck[stop.v] = stuck[stop.v] - here
        if self.loose:
            return [*values, *[-one] * len(self.rubbing)]
        for slot in self.rubbing:
            size = domain.where(domain.less(load[slot], domain.const(0)), -load[slot], load[slot])
            values.append((size - self.level(slot, v, domain, borne)) * stuck[slot] - (one - stuck[slot]))
        return values


def _numbers(law: Any) -> list[Any]:
    """The numbers of a law of friction, None where they are parameters."""
    return [[x if isinstance(x, float) else None for x in np.asarray(part).tolist()] for part in vars(law).values()]


def holding_of(stops: Stops | None, friction: DryFriction | None, pressing: bool) -> Holding:
    """What of a run may be held; `pressing` where limits are stops."""
    if stops is not None and pressing and friction is None:
        return _of_limits(stops.model.mechanism)
    limits: Sequence[Stop] = stops.all if stops is not None and pressing else ()
    slots = {stop.v: stop.q for stop in limits} | ({} if friction is None else friction.slots)
    rubs = () if friction is None else friction.texts
    return Holding(tuple((slots[v], v) for v in sorted(slots)), tuple(limits), rubs)


@lru_cache(maxsize=32)  # asked for with every run
def _of_limits(mechanism: Mechanism) -> Holding:
    limits = limits_of(mechanism)
    slots = {stop.v: stop.q for stop in limits}
    return Holding(tuple((slots[v], v) for v in sorted(slots)), limits)


__all__ = ["Holding", "holding_of"]
