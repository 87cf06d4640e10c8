"""Springs store energy: around any closed path they do no work."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms import random_tree
from polybody.algebra.domains import FLOAT
from polybody.algebra.jets import JetDomain
from polybody.formulations import denoc
from polybody.mechanism import kinematics, mechanism_from
from polybody.mechanism.forces import spring_energy

JETS = JetDomain(FLOAT)


@pytest.mark.parametrize("seed", range(6))
def test_spring_forces_are_minus_the_gradient_of_the_stored_energy(seed):
    rng = np.random.default_rng(seed)
    m = mechanism_from(random_tree(rng, 6, stiffness=1.0, damping=0.0, springs=2))
    q = np.concatenate([joint.model.random(rng) for joint in m.joints])
    forces = denoc.passive_forces(m, q, np.zeros(m.nv))
    for k in range(m.nv):
        moved = JETS.lift(q, kinematics.rate(m, q, np.eye(m.nv)[k]))
        slope = spring_energy(m, moved, kinematics.body_poses(m, moved, domain=JETS), domain=JETS).rate
        assert abs(slope + forces[k]) <= 1e-10 * (1 + np.abs(forces).max())


@pytest.mark.parametrize("seed", range(3))
def test_springs_do_no_work_around_a_closed_path(seed):
    """A loop in the tangent space at q, by a rule of high order: power integrated over the period must vanish."""
    rng = np.random.default_rng(seed)
    m = mechanism_from(random_tree(rng, 4, stiffness=1.0, damping=0.0, springs=1))
    center = np.concatenate([joint.model.random(rng) for joint in m.joints])
    one, two = 0.2 * rng.normal(size=(2, m.nv))
    steps, work, scale = 96, 0.0, 0.0

    def place(angle: float) -> np.ndarray:
        return kinematics.integrate(m, center, one * np.cos(angle) + two * np.sin(2 * angle))

    for k in range(steps):  # the trapezoidal rule converges spectrally on a period
        angle, h = 2 * np.pi * k / steps, 1e-4
        ahead, behind = (kinematics.difference(m, place(angle), place(angle + s * h)) for s in (1, -1))
        farther, nearer = (kinematics.difference(m, place(angle), place(angle + s * 2 * h)) for s in (1, -1))
        velocity = (8 * (ahead - behind) - (farther - nearer)) / (12 * h)
        power = denoc.passive_forces(m, place(angle), np.zeros(m.nv)) @ velocity
        work, scale = work + power * 2 * np.pi / steps, scale + abs(power) * 2 * np.pi / steps
    assert abs(work) <= 1e-8 * scale
