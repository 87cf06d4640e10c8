"""What one frame does against another, along the joints between them, is what both do in the world."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms import random_rotation
from polybody.algebra.domains import FLOAT
from polybody.algebra.jets import JetDomain
from polybody.constraints.between import branches, velocities_between
from polybody.constraints.place import Place
from polybody.mechanism import kinematics
from polybody.mechanism.mechanism import GROUND, BodyFrame
from trees import coupled_state, random_state

SEEDS = range(6)


def pairs(seed):
    """(mechanism, q, v, frames a and b) of a random tree with every kind of joint: bodies on one branch, on two, and
    the ground."""
    mechanism, q, v, _, rng = coupled_state(seed) if seed % 2 else random_state(seed, 9)
    last = len(mechanism.bodies) - 1
    bodies = [(GROUND, last), (last, GROUND), (0, last), (last, 0), *rng.integers(0, last + 1, size=(6, 2)).tolist()]
    frames = [BodyFrame("f", body, random_rotation(rng), rng.normal(size=3)) for pair in bodies for body in pair]
    return mechanism, q, v, list(zip(frames[::2], frames[1::2], strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_pose_and_jacobian_between_frames_are_the_difference_of_those_in_the_world(seed):
    mechanism, q, v, found = pairs(seed)
    place = Place(mechanism, q, v, domain=FLOAT)
    for a, b in found:
        (Ra, pa), (Rb, pb) = place.frame(a), place.frame(b)
        R, p = place.relative_pose(a, b)
        np.testing.assert_allclose(R, Ra.T @ Rb, atol=1e-13)
        np.testing.assert_allclose(p, Ra.T @ (pb - pa), atol=1e-12)
        maps = kinematics.world_maps(mechanism, q, place.poses)
        both = [kinematics.point_jacobian(mechanism, frame.body, pb, maps) for frame in (a, b)]
        wanted = np.concatenate([Ra.T @ half for half in np.split(both[1] - both[0], 2)])
        J = np.zeros_like(wanted)
        J[:, velocities_between(mechanism, a.body, b.body)] = place.relative_jacobian(a, b)
        np.testing.assert_allclose(J, wanted, atol=1e-12)
        np.testing.assert_allclose(place.relative_twist(a, b), wanted @ v, atol=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_rate_of_the_relative_twist_is_its_derivative_along_the_motion_with_v_held(seed):
    mechanism, q, v, found = pairs(seed)
    place, jets = Place(mechanism, q, v, domain=FLOAT), JetDomain(FLOAT)
    moving = Place(mechanism, jets.lift(q, kinematics.rate(mechanism, q, v)), jets.lift(v), domain=jets)
    for a, b in found:
        V, V_rate = place.relative_rate(a, b)
        np.testing.assert_allclose(V, place.relative_twist(a, b), atol=1e-12)
        wanted = jets.rates(_in_the_world(moving, a, b)).astype(float)
        np.testing.assert_allclose(V_rate, wanted, atol=1e-11 * max(1.0, np.abs(wanted).max()))


def _in_the_world(place, a, b):
    (Ra, _), (_, pb) = place.frame(a), place.frame(b)
    V = place.twist(b.body, pb) - place.twist(a.body, pb)
    return np.concatenate([Ra.T @ V[:3], Ra.T @ V[3:]])


def test_branches_part_at_the_last_body_that_carries_both():
    mechanism = random_state(1, 9)[0]
    for a in range(-1, len(mechanism.bodies)):
        for b in range(-1, len(mechanism.bodies)):
            top, to_a, to_b = branches(mechanism, a, b)
            below = [() if body == GROUND else mechanism.supports[body] for body in (a, b, top)]
            assert (*below[2], *to_a) == tuple(below[0])
            assert (*below[2], *to_b) == tuple(below[1])
            assert not set(to_a) & set(to_b)
