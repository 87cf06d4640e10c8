"""Springs, dampers and friction in cut joints, as force elements between frames a and b, over any domain.

(R, p) is the pose of b in a, z the joint's axis, (e_1, e_2, z) right-handed. Coordinates, where the joint is closed:

    turn    θ = atan2(e_2·R e_1 − e_1·R e_2, e_1·R e_1 + e_2·R e_2)       revolute, continuous, cylindrical
    slide   s = z·p                                                        prismatic, cylindrical
    thread  θ = z·p / h, h the pitch                                       screw

ξ is what they are off `rest`, a turn by the lesser way, between −π and π: the pose of two bodies does not determine how
often they went around. The element stores ½ ξᵀKξ and exerts f = −Kξ − Bξ̇ and friction on b: a moment z f
for turn and thread, a force z f for slide, at b's origin; the opposite acts on a, at the same point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.algebra.domains import Array, Domain
from polybody.algebra.rotations import cross
from polybody.algebra.scalars import numbers
from polybody.description.records import SPRUNG_LOOPS, Friction, Loop
from polybody.late import dataclass
from polybody.mechanism.friction import friction_forces
from polybody.mechanism.kinds import plane_axes

if TYPE_CHECKING:
    from polybody.mechanism.kinematics import Pose
    from polybody.mechanism.mechanism import BodyFrame

GROUND = -1


@dataclass(frozen=True, eq=False)
class ClosureSpring:
    """What a loop's cut joint exerts along its own coordinates."""

    name: str
    parts: tuple[str, ...]  # "turn", "slide", "thread"
    a: BodyFrame
    b: BodyFrame
    axis: Array
    pitch: float
    stiffness: Array
    damping: Array
    rest: Array
    friction: Friction | None = None


def closure_spring(loop: Loop, a: BodyFrame, b: BodyFrame) -> ClosureSpring | None:
    """The element of a loop's record; None where it has none, or is of a kind whose springs do not act."""
    parts = SPRUNG_LOOPS.get(loop.kind, ())
    n = len(parts)
    K, B = (np.zeros((n, n)) if x is None else numbers(x) for x in (loop.stiffness, loop.damping))
    if not parts or not (K.any() or B.any() or loop.friction is not None):
        return None
    rest = np.zeros(n) if loop.rest is None else numbers(loop.rest)
    pitch = 0.0 if loop.pitch is None else loop.pitch
    return ClosureSpring(loop.name, parts, a, b, numbers(loop.axis), pitch, K, B, rest, loop.friction)


def deflection(spring: ClosureSpring, poses: list[Pose], *, domain: Domain) -> Array:
    """ξ: the joint's coordinates, from their rest."""
    (Ra, pa), (Rb, pb) = (_placed(frame, poses, domain) for frame in (spring.a, spring.b))
    found = domain.zeros(len(spring.parts))
    for k, (part, rest) in enumerate(zip(spring.parts, spring.rest, strict=True)):
        if part == "turn":
            found[k] = _turned(spring, Ra.T @ Rb, domain.const(rest), domain)
        else:
            slid = (Ra @ domain.array(spring.axis)) @ (pb - pa)
            found[k] = (slid if part == "slide" else slid / domain.const(spring.pitch)) - domain.const(rest)
    return found


def _turned(spring: ClosureSpring, R: Array, rest: Any, domain: Domain) -> Any:
    e1, e2 = (domain.array(e) for e in plane_axes(spring.axis))
    sine, cosine = e2 @ (R @ e1) - e1 @ (R @ e2), e1 @ (R @ e1) + e2 @ (R @ e2)
    if not domain.is_zero(rest):
        s, c = domain.sin(rest), domain.cos(rest)
        sine, cosine = sine * c - cosine * s, cosine * c + sine * s
    return domain.atan2(sine, cosine)


def stored(spring: ClosureSpring, poses: list[Pose], *, domain: Domain) -> Any:
    """½ ξᵀKξ."""
    xi = deflection(spring, poses, domain=domain)
    return (xi @ (domain.array(spring.stiffness) @ xi)) * domain.const(0.5)


def wrench_on_b(
    spring: ClosureSpring, poses: list[Pose], twists: list[Array] | None, *, domain: Domain
) -> tuple[Array, Array]:
    """(wrench [moment; force] on b in world axes, the world position of b's origin, where it acts)."""
    (Ra, _), (_, pb) = (_placed(frame, poses, domain) for frame in (spring.a, spring.b))
    z = Ra @ domain.array(spring.axis)
    force = -(domain.array(spring.stiffness) @ deflection(spring, poses, domain=domain))
    if twists is not None and (spring.damping.any() or spring.friction is not None):
        (wa, va), (wb, vb) = (_motion(f.body, pb, poses, twists, domain) for f in (spring.a, spring.b))
        rates = {"turn": z @ (wb - wa), "slide": z @ (vb - va), "thread": z @ (wb - wa)}
        rate = np.array([rates[part] for part in spring.parts], dtype=domain.dtype)
        force = force - domain.array(spring.damping) @ rate
        if spring.friction is not None:
            force = force + friction_forces(spring.friction, rate, domain=domain)
    moment, push = domain.zeros(3), domain.zeros(3)
    for part, f in zip(spring.parts, force, strict=True):
        if part == "slide":
            push = push + z * f
        else:
            moment = moment + z * f
    return np.concatenate([moment, push]), pb


def on_bodies(
    spring: ClosureSpring, poses: list[Pose], twists: list[Array] | None, *, domain: Domain
) -> list[tuple[int, Array]]:
    """(body, wrench at its origin in world axes) of both ends that are no part of the ground."""
    wrench, point = wrench_on_b(spring, poses, twists, domain=domain)
    result = []
    for body, sign in ((spring.b.body, 1), (spring.a.body, -1)):
        if body != GROUND:
            w = wrench * domain.const(sign)
            result.append((body, np.concatenate([w[:3] + cross(point - poses[body][1], w[3:]), w[3:]])))
    return result


def _placed(frame: BodyFrame, poses: list[Pose], domain: Domain) -> Pose:
    from polybody.mechanism.kinematics import frame_pose

    return frame_pose(frame, poses, domain=domain)


def _motion(body: int, point: Array, poses: list[Pose], twists: list[Array], domain: Domain) -> tuple[Array, Array]:
    """Angular velocity of a body, and the velocity of its point that is at a place of the world, world axes."""
    if body == GROUND:
        return domain.zeros(3), domain.zeros(3)
    R, p = poses[body]
    w = R @ twists[body][:3]
    return w, R @ twists[body][3:] + cross(w, point - p)


__all__ = ["ClosureSpring", "closure_spring", "deflection", "on_bodies", "stored", "wrench_on_b"]
