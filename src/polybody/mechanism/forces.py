"""What springs, dampers, friction and compliant stops exert, over any domain.

A joint's spring stores ½ ξᵀKξ with ξ = difference(rest, q), the manifold's logarithm; its force is minus the gradient,

    f = −Dᵀ K ξ − B v,      D = ∂ξ/∂(tangent of q),

so it does no work around a closed path. D is 1 where ξ = q − rest, else it comes from jets. A follower's spring and
damper are those of its own coordinate k q + c: what they exert on it acts on the slot, times k. A point spring pulls
along the line between its points a and b:  f_a = (k (ℓ − ℓ_0) + c ℓ̇) u, u from a to b, and the opposite at b.
Springs of cut joints: `closure_springs`; friction in joints: `friction`; compliant stops:
`compliant_stops`; contact with the ground: `contacts`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain
from polybody.algebra.jets import JetDomain
from polybody.algebra.rotations import cross
from polybody.mechanism import closure_springs
from polybody.mechanism.compliant_stops import compliant, stop_energy, stop_forces
from polybody.mechanism.contacts import contact_energy, contact_wrench
from polybody.mechanism.friction import friction_forces
from polybody.mechanism.geared import own_coordinates, own_model, own_velocities, slot_forces
from polybody.mechanism.joints import JointModel
from polybody.mechanism.kinematics import Pose
from polybody.mechanism.mechanism import GROUND, Mechanism, PointSpring


class Sprung(Protocol):
    """A joint with a spring."""

    @property
    def model(self) -> JointModel | None: ...
    @property
    def nv(self) -> int: ...
    @property
    def rest(self) -> Array: ...
    @property
    def stiffness(self) -> Array: ...


def spring_gradient(joint: Sprung, q: Array, *, domain: Domain = FLOAT) -> Array:
    """∂(½ ξᵀKξ)/∂(tangent), nv numbers, of one joint; q and the result are those of its slot."""
    rest, K = domain.array(joint.rest), domain.array(joint.stiffness)
    model = joint.model
    if model is None:
        return domain.zeros(0)
    pull = K @ spring_deflection(model, rest, q, domain=domain)
    if model.rates_are_velocities:
        return slot_forces(model, pull, domain=domain)
    jets = JetDomain(domain)
    gradient = domain.zeros(joint.nv)
    for k in range(joint.nv):
        direction = domain.zeros(joint.nv)
        direction[k] = domain.const(1)
        moved = jets.lift(q, model.rate(q, direction, domain=domain))
        slope = jets.rates(model.difference(jets.lift(rest), moved, domain=jets))
        gradient[k] = slope @ pull
    return gradient


def spring_deflection(model: JointModel, rest: Array, q: Array, *, domain: Domain = FLOAT) -> Array:
    """ξ = difference(rest, q) in the joint's own coordinates, q those of its slot."""
    return own_model(model).difference(rest, own_coordinates(model, q, domain=domain), domain=domain)


def joint_passive_forces(mechanism: Mechanism, q: Array, v: Array | None, *, domain: Domain = FLOAT) -> Array:
    """What springs, dampers, friction, stops and motors' bearings exert on v; v None leaves out what needs it."""
    forces = domain.zeros(mechanism.nv)
    for joint in mechanism.joints:
        if joint.stiffness.any():
            forces[joint.v] = forces[joint.v] - spring_gradient(joint, q[joint.q], domain=domain)
        if v is not None and joint.damping.any():
            drag = domain.array(joint.damping) @ own_velocities(joint.model, v[joint.v], domain=domain)
            forces[joint.v] = forces[joint.v] - slot_forces(joint.model, drag, domain=domain)
        if v is not None and joint.friction is not None:
            rub = friction_forces(joint.friction, own_velocities(joint.model, v[joint.v], domain=domain), domain=domain)
            forces[joint.v] = forces[joint.v] + slot_forces(joint.model, rub, domain=domain)
        if compliant(joint.limits) and not joint.follows:  # limits are said of the slot
            push = stop_forces(joint.limits, q[joint.q], None if v is None else v[joint.v], domain=domain)
            forces[joint.v] = forces[joint.v] + push
    if v is not None and mechanism.motor_damping.any():
        forces = forces - domain.array(mechanism.motor_damping) @ v
    return forces


def _point(body: int, local: Array, poses: list[Pose], domain: Domain) -> tuple[Array, Array]:
    """World position of a body's point, and its lever from the body's origin, world axes."""
    local = domain.array(local)
    if body == GROUND:
        return local, domain.zeros(3)
    R, p = poses[body]
    lever = R @ local
    return p + lever, lever


def _velocity(body: int, lever: Array, poses: list[Pose], twists: list[Array], domain: Domain) -> Array:
    if body == GROUND:
        return domain.zeros(3)
    R = poses[body][0]
    return R @ twists[body][3:] + cross(R @ twists[body][:3], lever)


def spring_length(spring: PointSpring, poses: list[Pose], *, domain: Domain = FLOAT) -> Any:
    """The distance between the spring's points."""
    a, _ = _point(spring.body_a, spring.point_a, poses, domain)
    b, _ = _point(spring.body_b, spring.point_b, poses, domain)
    return domain.sqrt((b - a) @ (b - a))


def spring_forces(
    mechanism: Mechanism, poses: list[Pose], twists: list[Array] | None, *, domain: Domain = FLOAT
) -> list[tuple[Array, Array, Array]]:
    """For each point spring the world positions of its points a and b, and the force on a (minus it acts on b)."""
    result = []
    for spring in mechanism.springs:
        a, lever_a = _point(spring.body_a, spring.point_a, poses, domain)
        b, lever_b = _point(spring.body_b, spring.point_b, poses, domain)
        result.append((a, b, _pull(spring, b - a, lever_a, lever_b, poses, twists, domain)))
    return result


def spring_wrenches(
    mechanism: Mechanism, poses: list[Pose], twists: list[Array] | None, *, domain: Domain = FLOAT
) -> list[Array | None]:
    """Wrench of springs and contacts on each body: world axes, at the body's origin; None where none acts."""
    wrenches: list[Array | None] = [None] * len(mechanism.bodies)
    forces = spring_forces(mechanism, poses, twists, domain=domain)
    for spring, (_, _, force) in zip(mechanism.springs, forces, strict=True):
        for body, point, sign in ((spring.body_a, spring.point_a, 1), (spring.body_b, spring.point_b, -1)):
            if body != GROUND:
                _, lever = _point(body, point, poses, domain)
                f = force * domain.const(sign)
                wrench = np.concatenate([cross(lever, f), f])
                previous = wrenches[body]
                wrenches[body] = wrench if previous is None else previous + wrench
    for element in mechanism.closure_springs:
        for body, wrench in closure_springs.on_bodies(element, poses, twists, domain=domain):
            previous = wrenches[body]
            wrenches[body] = wrench if previous is None else previous + wrench
    for contact in mechanism.contacts:
        previous, wrench = wrenches[contact.body], contact_wrench(contact, poses, twists, domain=domain)
        wrenches[contact.body] = wrench if previous is None else previous + wrench
    return wrenches


def _pull(
    spring: PointSpring,
    line: Array,
    lever_a: Array,
    lever_b: Array,
    poses: list[Pose],
    twists: list[Array] | None,
    domain: Domain,
) -> Array:
    """The force on point a. A spring of zero length pulls with k·line, with no division by its length."""
    c = domain.const
    if spring.length == 0 and (spring.damping == 0 or twists is None):
        return line * c(spring.stiffness)
    length = domain.sqrt(line @ line)
    u = line / length
    pull = (length - c(spring.length)) * c(spring.stiffness)
    if twists is not None and spring.damping:
        approach = _velocity(spring.body_b, lever_b, poses, twists, domain) - _velocity(
            spring.body_a, lever_a, poses, twists, domain
        )
        pull = pull + (u @ approach) * c(spring.damping)
    return u * pull


def spring_energy(mechanism: Mechanism, q: Array, poses: list[Pose], *, domain: Domain = FLOAT) -> Any:
    """Energy stored in springs of joints, between points, and in cut joints."""
    half, energy = domain.const(0.5), domain.const(0)
    for joint in mechanism.joints:
        if joint.stiffness.any():
            xi = spring_deflection(joint.model, domain.array(joint.rest), q[joint.q], domain=domain)
            energy = energy + half * (xi @ (domain.array(joint.stiffness) @ xi))
        if compliant(joint.limits) and not joint.follows:
            energy = energy + stop_energy(joint.limits, q[joint.q], domain=domain)
    for spring in mechanism.springs:
        stretch = spring_length(spring, poses, domain=domain) - domain.const(spring.length)
        energy = energy + half * domain.const(spring.stiffness) * stretch * stretch
    for element in mechanism.closure_springs:
        energy = energy + closure_springs.stored(element, poses, domain=domain)
    for contact in mechanism.contacts:
        energy = energy + contact_energy(contact, poses, domain=domain)
    return energy


__all__ = [
    "joint_passive_forces",
    "spring_deflection",
    "spring_energy",
    "spring_forces",
    "spring_gradient",
    "spring_length",
    "spring_wrenches",
]
