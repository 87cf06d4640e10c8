"""Dry friction with true sticking, for `pb.simulate`.

A joint slides, with what `mechanism.friction` (1) says without its tanh,

    f = −sign(u) (F_c + (F_s − F_c) e^{−|u/u_s|^δ}) − B u,

or it sticks: then it does not accelerate, and the force λ that holds it is at most F_s either way. Sliding ends where
its speed crosses zero, sticking where |λ| reaches F_s. When joints are at rest together, which of them stick follows
from all at once: with N their rows of B (`stops`) and N c their accelerations without friction,

    λ = argmin |Nᵀλ + c|²,      −F_s ≤ λ ≤ F_s                                                          (1)

(λ inside its bounds: the joint sticks; at a bound: it begins to slide against it), stops that press among them with
0 ≤ λ. A level that depends on load is F + k |R|, R the force in the joint, found with the acceleration it causes by
iteration (`bearing_forces`). Joints whose q and v do not correspond number by number (spherical, floating), and cut
joints, keep the smooth law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import FLOAT
from polybody.description.records import Friction
from polybody.late import dataclass
from polybody.mechanism.friction import smoothed, stribeck_excess
from polybody.mechanism.geared import own_velocities
from polybody.mechanism.mechanism import Mechanism, TreeJoint
from polybody.model.model import Model, varied_model
from polybody.properties import cached_property
from polybody.simulation.bearing_forces import solved
from polybody.simulation.failures import SimulationError

if TYPE_CHECKING:
    from polybody.simulation.problem import Problem

Array = np.ndarray


@dataclass(frozen=True)
class Rubbing:
    """Number k of the velocities of one joint: its slot of q and of v, and its own speed per the slot's."""

    joint: str
    k: int
    q: int
    v: int
    factor: float
    law: Friction

    @property
    def bears(self) -> bool:
        """Whether it depends on the joint's load: where that is a parameter, it may."""
        load = self.law.load[self.k]
        return not isinstance(load, float) or load != 0.0

    def level(self, speed: float, load: float) -> float:
        """Friction at a speed of the slot, as a force on the slot."""
        if not self.factor:
            return 0.0
        own, static = float(self.law.coulomb[self.k]), float(self.law.static[self.k])
        if static != own:
            own += float(stribeck_excess(self.law, self.k, self.factor * speed))
        return abs(self.factor) * (own + float(self.law.load[self.k]) * load)


@dataclass(frozen=True)
class Stick:
    """A joint at rest by friction, in the place of a stop that holds it."""

    joint: str
    q: int
    v: int
    limit: float  # where it sticks

    @property
    def name(self) -> str:
        return f"{self.joint} friction"


@dataclass(frozen=True)
class SlidingSpeed:
    """How fast a slot of v slides the way it goes, as a function of (t, y): crosses zero downwards as it comes to rest.

    `place` is where it stands in y.
    """

    slot: int
    place: int
    direction: int

    @property
    def label(self) -> tuple[str, int]:
        return "rests", self.slot

    def __call__(self, t: float, y: Array) -> float:
        return self.direction * float(y[self.place])


@dataclass(frozen=True, eq=False)
class Overload:
    """By how much the load on a slot that sticks exceeds its friction, as a function of (problem, t, y)."""

    slot: int
    holding: Callable[[Any, float, Array], tuple[float, float]]

    @property
    def label(self) -> tuple[str, int]:
        return "slips", self.slot

    def __call__(self, problem: Any, t: float, y: Array) -> float:
        force, level = self.holding(problem, t, y)
        return abs(force) - level


class DryFriction:
    """Which slots of v slide or stick, and what friction exerts on them."""

    def __init__(self, model: Model, origin: Model | None = None) -> None:
        """`origin` is the model whose parameters have other values in `model`: both share compiled code."""
        self.model = model
        self.parts = rubbing(model.mechanism)
        self.slots = {part.v: part.q for part in self.parts}
        self.sliding = dict.fromkeys(self.slots, 0)  # the direction; 0: not known, or sticking
        self.loaded = any(part.law.load[part.k] for part in self.parts)
        self.smooth = smooth_at(model, origin)

    @property
    def texts(self) -> tuple[Rubbing, ...]:
        """The parts with what is a parameter of their laws as a symbol."""
        traced = self.model.engine.tree.source.traced
        laws = {joint.name: joint.friction for joint in traced.joints}
        return tuple(replace(part, law=laws[part.joint]) for part in self.parts)

    def stick(self, slot: int, q: Array) -> Stick:
        """The slot held where it is."""
        name = next(part.joint for part in self.parts if part.v == slot)
        return Stick(name, self.slots[slot], slot, float(q[self.slots[slot]]))

    def levels(self, v: Array, loads: dict[str, float] | None = None) -> dict[int, float]:
        """How strong friction is on each slot."""
        total = dict.fromkeys(self.slots, 0.0)
        for part in self.parts:
            total[part.v] += part.level(float(v[part.v]), (loads or {}).get(part.joint, 0.0))
        return total

    def forces(self, problem: Problem, q: Array, v: Array, tau: Array, wrenches: Any) -> Array:
        """What friction exerts on the slots that slide, tau and wrenches all else that acts."""
        force = self._sliding_forces(v, {})
        slots = [slot for slot in dict.fromkeys(part.v for part in self.bearing) if self.sliding[slot]]
        if not slots:
            return force
        more = np.eye(len(v))[slots]
        R = self._across(problem, q, v, tau + force + np.concatenate([np.zeros((1, len(v))), more]), wrenches)
        R0, by = R[0], np.moveaxis(R[1:] - R[0], 0, -1)  # (joints, 3), (joints, 3, slots)
        weights, names = np.zeros((len(slots), len(R0))), self.bearing_joints
        for part in self.bearing:
            if part.v in slots:
                way = self.sliding[part.v] * abs(part.factor)
                weights[slots.index(part.v), names.index(part.joint)] -= way * float(part.law.load[part.k])
        f, reached = solved(R0, by, weights, 1.0 + np.abs(force).max())
        if f is None:
            raise SimulationError(
                f"friction by load is too strong for {', '.join(self._names(slots))} to slide as they do: they lock "
                f"themselves where the coefficients of load are {reached:.3g} of what they are (beyond it the forces "
                "are not bounded, or are none that continue those of smaller coefficients). Rigid bodies have no "
                "motion from there; smaller coefficients of load have one"
            )
        return force + f @ more

    def _names(self, slots: list[int]) -> list[str]:
        """Of joints, at most six."""
        names = list(dict.fromkeys(repr(part.joint) for part in self.bearing if part.v in slots))
        return names if len(names) <= 6 else [*names[:6], f"{len(names) - 6} more"]

    def _sliding_forces(self, v: Array, loads: dict[str, float]) -> Array:
        force = np.zeros(len(v))
        for part in self.parts:  # in every rate: of joints that stick the level is not asked for
            if way := self.sliding[part.v]:
                force[part.v] -= way * part.level(float(v[part.v]), loads.get(part.joint, 0.0))
        return force

    @cached_property
    def bearing(self) -> list[Rubbing]:
        """Parts that depend on loads now."""
        return [part for part in self.parts if part.law.load[part.k]]

    @cached_property
    def bearing_joints(self) -> list[str]:
        return list(dict.fromkeys(part.joint for part in self.bearing))

    def bearing_loads(self, problem: Problem, q: Array, v: Array, tau: Array, wrenches: Any) -> dict[str, float]:
        """{joint: |R|}: the force in a joint, less what is along directions in which it slides."""
        if not self.bearing:
            return {}
        found = np.linalg.norm(self._across(problem, q, v, tau[None], wrenches)[0], axis=1)
        return dict(zip(self.bearing_joints, found.tolist(), strict=True))

    def _across(self, problem: Problem, q: Array, v: Array, tau: Array, wrenches: Any) -> Array:
        """R of each of `bearing_joints`, (n, joints, 3), under joint forces (n, nv): they depend on them linearly."""
        count = len(tau)
        Q, V, held = np.tile(q, (count, 1)), np.tile(v, (count, 1)), np.zeros_like(tau)
        on_links = {name: np.asarray(w, dtype=float) for name, w in (wrenches or {}).items()}
        if problem.loops:
            a = np.array([problem.free_acceleration(q, v, forces, wrenches) for forces in tau])
        else:
            given = {name: np.tile(w, (count, 1)) for name, w in on_links.items()}
            a = problem.free_acceleration(Q, V, tau, given or None)
        if problem.stops is not None and problem.stops.held:
            change, held = problem.stops.reactions(q, a)
            a = a + change
        if problem.loops:
            kernels = problem.model.engine.constraints
            needed = np.array([problem.tree.inverse_dynamics(q, v, x, wrenches=wrenches) for x in a]) - tau - held
            multipliers = np.linalg.lstsq(kernels.jacobian(q).T, needed.T, rcond=None)[0].T
            totals = np.array([kernels.constraints.wrenches(q, x, domain=FLOAT)[1] for x in multipliers])
            for k, link in enumerate(kernels.constraints.loaded_links):
                on_links[link] = on_links.get(link, np.zeros(6)) + totals[:, k]
        on_links = {name: np.broadcast_to(w, (count, 6)) for name, w in on_links.items()}
        found = problem.tree.reactions(Q, V, a, wrenches=on_links or None, axes="joint")
        result = np.empty((count, len(self.bearing_joints), 3))
        for k, name in enumerate(self.bearing_joints):
            joint = self.model.mechanism.joints[self.model.mechanism.joint_index[name]]
            slide, force = joint.model.velocity_map(q[joint.q])[3:], found[name][:, 3:]
            result[:, k] = force - force @ np.linalg.pinv(slide).T @ slide.T if slide.any() else force
        return result


def rubbing(mechanism: Mechanism) -> list[Rubbing]:
    """Every velocity of a joint with dry friction that can stick."""
    found = []
    for joint in mechanism.joints:
        if sticks(joint) and joint.friction is not None:
            factor = float(own_velocities(joint.model, np.ones(1))[0]) if joint.follows else 1.0
            for k in range(joint.nv):
                if joint.friction.static[k] or joint.friction.load[k]:
                    places = (joint.q.start + k, joint.v.start + k)
                    found.append(Rubbing(joint.name, k, *places, factor, joint.friction))
    return found


def sticks(joint: TreeJoint) -> bool:
    """Whether a joint has dry friction, and coordinates in which it can stick."""
    law = joint.friction
    return law is not None and joint.model.rates_are_velocities and bool(np.any(law.static) or np.any(law.load))


def has_dry_friction(model: Model) -> bool:
    return _any_sticks(model.mechanism)


@lru_cache(maxsize=32)  # asked for with every run
def _any_sticks(mechanism: Any) -> bool:
    return any(sticks(joint) for joint in mechanism.joints)


def smooth_at(model: Model, origin: Model | None) -> Model:
    """The model without dry friction, by the code of `origin`'s where the parameters are the same."""
    if origin is not None and model is not origin:
        base, values = varied_without_dry_friction(origin), model.engine.tree.source.values
        if base is not None and values is not None:
            return base.parameters.at(values)
    return varied_without_dry_friction(model) or without_dry_friction(model)


@lru_cache(maxsize=16)
def varied_without_dry_friction(model: Model) -> Model | None:
    """The same with the parameters of a model as parameters; None where it has none."""
    source = model.engine.source
    if source.variation is None or source.values is None:
        return None
    names = tuple(joint.name for joint in model.mechanism.joints if sticks(joint))
    return varied_model(without_dry_friction(model).mechanism, replace(source.variation, smooth=names), source.values)


@lru_cache(maxsize=16)
def without_dry_friction(model: Model) -> Model:
    """The model whose joints have of their friction only the viscous part, where they can stick."""
    m = model.mechanism
    names = {joint.name for joint in m.joints if sticks(joint)}

    records = {x.name: smoothed(x) if x.name in names else x for x in m.description.joints}
    joints = tuple(replace(j, friction=records[j.name].friction, record=records[j.name]) for j in m.joints)
    described = replace(m.description, joints=tuple(records.values()))
    return Model(replace(m, joints=joints, description=described))


__all__ = [
    "DryFriction", "Overload", "Rubbing", "SlidingSpeed", "Stick", "has_dry_friction", "rubbing",
    "without_dry_friction",
]  # fmt: skip
