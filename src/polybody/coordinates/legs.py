"""A parallel machine from its legs, one at a time (Freeman (4-42)-(4-64)).

Every leg is a chain of its own, from the ground to the platform, with as many velocities φ_r as the platform has
motions w. Each is transferred to w by itself, and what was found is summed (`constraining`):

    I*_ww = Σ_r G_r⁻ᵀ I*_r G_r⁻¹ + I*_platform,   P*_www and T_w^L alike                          (4-42)-(4-54)
    q̇ = [G_w^q] ẇ: rows of the legs' own G_r⁻¹ that belong to driven joints                       (4-55)-(4-60)
    I*_qq = G_w^q⁻ᵀ I*_ww G_w^q⁻¹, …                                                              (4-61)-(4-64)

No loop is closed by iteration and no leg knows another: legs can be computed side by side. It needs a configuration of
each leg, (nq,) or a batch (..., nq), with the platform in one place; that is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polybody.coordinates.arrays import Dynamics, apply, quadratic, reversed_coefficients, transposed
from polybody.coordinates.conditioning import CONDITION_LIMIT, inverse
from polybody.coordinates.constraining import actuator_coefficients, driven, platform, sum_of_legs
from polybody.coordinates.sets import CoordinateSet, coordinate_set
from polybody.coordinates.spaces import JointSpace
from polybody.errors import InputError
from polybody.late import dataclass
from polybody.mechanism.columns import state_text
from polybody.model.arguments import require_model, state_array
from polybody.model.batches import batch_shape
from polybody.model.model import Model
from polybody.names import counted

Array = np.ndarray
#: platforms of two legs may be apart by this many metres (or radians)
TOGETHER = 1e-6


@dataclass(frozen=True, eq=False)
class Legs:
    """A parallel machine of legs that hold one frame; made by `legs`."""

    models: tuple[Model, ...]  # one per leg
    frame: str
    coordinates: CoordinateSet  # of the held frame
    rows: tuple[int, ...]  # of the frame's motion that are coordinates
    names: tuple[str, ...]  # of the coordinates
    actuators: tuple[tuple[int, int], ...]  # (leg, velocity) of every actuated joint
    body: Model | None  # the held body's own mass, if it has any

    def coefficients(self, configurations: Sequence[Any]) -> list[tuple[Array, Array]]:
        """[G_w^φ], [H_ww^φ] of every leg, (4-43), (4-44)."""
        return [reversed_coefficients(Gi, H) for Gi, H in self._inverses(self._checked(configurations))]

    def dynamics(self, configurations: Sequence[Any], w_dot: Any = None) -> Dynamics:
        """I*_ww, P*_www and T_w^L of all legs and the platform, at platform velocity w_dot (it feels dampers)."""
        states = self._checked(configurations)
        w = np.zeros(len(self.names)) if w_dot is None else state_array("w_dot", w_dot, len(self.names))
        parts = []
        for model, q, (Gi, H) in zip(self.models, states, self._inverses(states), strict=True):
            parts.append(JointSpace(model).dynamics(q, apply(Gi, w)).transferred(Gi, H))
        return sum_of_legs(parts, self._platform(states[0], w))

    def at_actuators(
        self, configurations: Sequence[Any], w_dot: Any = None, *, limit: float = CONDITION_LIMIT
    ) -> tuple[Dynamics, Array, Array]:
        """(I*_qq, P*_qqq, T_q^L at the driven joints; [G_q^w]; [H_qq^w]), by (4-61)-(4-64)."""
        if len(self.actuators) != len(self.names):
            raise InputError(
                f"{counted(len(self.actuators), 'driven joint')} for {counted(len(self.names), 'motion')} of the "
                "platform; expected as many; pb.share_load shares loads among more"
            )
        G, H = actuator_coefficients(self.coefficients(configurations), self.actuators)
        return driven(self.dynamics(configurations, w_dot), G, H, limit=limit)

    def joint_motion(
        self, configurations: Sequence[Any], w_dot: Any, w_ddot: Any
    ) -> list[tuple[Array, Array]]:
        """(φ̇, φ̈) of every leg for the platform's motion."""
        w, dw = (state_array(n, x, len(self.names)) for n, x in (("w_dot", w_dot), ("w_ddot", w_ddot)))
        return [(apply(G, w), apply(G, dw) + quadratic(w, H, w)) for G, H in self.coefficients(configurations)]

    def inverse_dynamics(self, configurations: Sequence[Any], w_dot: Any, w_ddot: Any) -> Array:
        """Forces of the driven joints for a motion of the platform: [G_q^w]ᵀ T_w."""
        _, G, _ = self.at_actuators(configurations, w_dot)
        T = self.dynamics(configurations, w_dot).effort(*(np.asarray(x, dtype=float) for x in (w_dot, w_ddot)))
        return apply(transposed(G), T)

    def _inverses(self, states: Sequence[Array]) -> list[tuple[Array, Array]]:
        found = []
        for k, (model, q) in enumerate(zip(self.models, states, strict=True)):
            G, H = self.coordinates.coefficients(model, q, 2)
            old = [f"leg {k} {name}" for name in JointSpace(model).names]
            found.append((inverse(G, list(self.names), old, limit=CONDITION_LIMIT), H))
        return found

    def _checked(self, configurations: Sequence[Any]) -> list[Array]:
        if len(configurations) != len(self.models):
            raise InputError(
                f"{counted(len(configurations), 'configuration')} for {counted(len(self.models), 'leg')}; "
                "expected one per leg"
            )
        pairs = zip(self.models, configurations, strict=True)
        states = [model._q(q, f"q of leg {k}") for k, (model, q) in enumerate(pairs)]
        lead = batch_shape(states)
        states = [np.broadcast_to(q, (*lead, q.shape[-1])) for q in states]
        first = self.models[0].pose(states[0], self.frame)
        for k, (model, q) in enumerate(zip(self.models, states, strict=True)):
            off = np.abs(model.pose(q, self.frame) - first).max(axis=(-1, -2))
            if np.any(off > TOGETHER):
                at = tuple(int(i) for i in np.argwhere(off > TOGETHER)[0])
                where = state_text(at)
                raise InputError(f"leg {k} has the platform off by {off[at]:.3g} from where leg 0 has it{where}")
        return states

    def _platform(self, q: Array, w: Array) -> Dynamics | None:
        """The platform's own dynamics in w, as that of a free body with the frame's rows."""
        if self.body is None:
            return None
        R = self.models[0].pose(q, self.frame)[..., :3, :3]
        ((_, record),) = {(b.name, b) for b in self.body.mechanism.bodies}
        c, mass = R @ record.com, record.mass
        weight = np.concatenate([np.zeros(3), mass * self.body.gravity])
        free = platform(mass, R @ record.inertia @ transposed(R), weight)
        # [ω; ċ] = X [ω; ṗ], ċ = ṗ + ω × c: with H of ω × (ω × c)
        lead = c.shape[:-1]
        X, H = np.broadcast_to(np.eye(6), (*lead, 6, 6)).copy(), np.zeros((*lead, 6, 6, 6))
        for n in range(3):
            e = np.eye(3)[n]
            X[..., 3:, n] = np.cross(e, c)
            for m in range(3):
                H[..., 3:, m, n] = np.cross(np.eye(3)[m], np.cross(e, c))
        back = transposed(X)
        P = np.einsum("...pi,...pmn,...mj,...nk->...ijk", X, free.P, X, X)
        P = P + np.einsum("...ip,...pmn->...imn", back @ free.I, H)
        kept = list(self.rows)
        own, all_three = np.ix_(kept, kept), np.ix_(kept, kept, kept)
        return Dynamics((back @ free.I @ X)[..., *own], P[..., *all_three], apply(back, free.load)[..., kept])


def legs(
    models: Sequence[Model], frame: str, *, motions: str = "rx ry rz x y z",
    driven: Sequence[tuple[int, str]] | Mapping[int, Sequence[str]] = (), platform: Mapping[str, Any] | None = None,
) -> Legs:  # fmt: skip
    """Model a parallel machine from models of its legs, each of which has the platform's `frame`.

    After Freeman (4-42)-(4-64). `motions` names the platform motions w among "rx ry rz x y z" (angular and linear,
    world axes; a planar machine has "rz x y"); each leg has as many velocities. `driven` are (leg, joint) pairs, or
    {leg: joints}. `platform` is {"mass", "com", "inertia"} of the platform in the frame, unless a leg includes it.
    """
    if not models:
        raise InputError("a machine needs at least one leg")
    for model in models:
        require_model("legs", model)
    order = ("rx", "ry", "rz", "x", "y", "z")
    words = motions.split()
    if not words or any(word not in order for word in words) or len(set(words)) != len(words):
        raise InputError(f"motions is {motions!r}, expected some of {' '.join(order)!r}, each once")
    rows = tuple(sorted(order.index(word) for word in words))
    from polybody.coordinates.sets import Orientation, Position

    turns, slides = "".join("xyz"[r] for r in rows if r < 3), "".join("xyz"[r - 3] for r in rows if r >= 3)
    chosen = coordinate_set([
        *([Orientation(frame, turns)] if turns else []), *([Position(frame, slides)] if slides else [])
    ])
    for k, model in enumerate(models):
        if len(model.constraints):
            raise InputError(f"leg {k} has loops of its own; legs are open chains")
        if model.nv != len(rows):
            raise InputError(
                f"leg {k} has {counted(model.nv, 'velocity', 'velocities')} and the platform "
                f"{counted(len(rows), 'motion')}; expected as many"
            )
    pairs = [(leg, joint) for leg, joints in driven.items() for joint in joints] if isinstance(driven, Mapping) else [
        *driven
    ]
    names = tuple(chosen.names(models[0]))
    body = None if platform is None else _free_body(frame, models[0].gravity, platform)
    return Legs(tuple(models), frame, chosen, rows, names, tuple(_column(models, *pair) for pair in pairs), body)


def _free_body(frame: str, gravity: Array, given: Mapping[str, Any]) -> Model:
    """The platform as a model of its own: that is how its numbers are checked."""
    from polybody.model.builder import Builder

    unknown = set(given) - {"mass", "com", "inertia"}
    if unknown or "mass" not in given:
        raise InputError(f"platform has {sorted(given)}, expected mass, and com and inertia where they are not zero")
    build = Builder("platform", gravity=tuple(gravity))
    build.body("platform", given["mass"], given.get("com", (0, 0, 0)), given.get("inertia", (0, 0, 0)))
    build.joint("root_joint", "floating", "world", "platform")
    return build.model()


def _column(models: Sequence[Model], leg: int, joint: str) -> tuple[int, int]:
    if not 0 <= leg < len(models):
        raise InputError(f"driven names leg {leg}; there are legs 0 to {len(models) - 1}")
    (column,) = models[leg].constraints.indices([joint])
    return leg, column


__all__ = ["Legs", "legs"]
