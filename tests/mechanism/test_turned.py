"""Placements that turn about their joint's own axis become part of its angle."""

import numpy as np
import pytest

from mechanisms import random_body
from polybody.algebra.rotations import axis_rotation
from polybody.description.records import Body, Description, Joint, frozen_array
from polybody.formulations import denoc
from polybody.mechanism import kinematics, mechanism_from
from polybody.mechanism.mechanism import Mechanism
from polybody.mechanism.reduction import reduced
from polybody.mechanism.turned import TurnedJoint

QUARTER = 1.57079632679  # as files write π/2: 4.9e-12 less


def turn(axis: int, angle: float) -> np.ndarray:
    return axis_rotation(np.eye(3)[axis], np.sin(angle), np.cos(angle))


def chain(placements: list[np.ndarray], axes: list[np.ndarray], **more: object) -> Mechanism:
    """Revolute joints with these placements and axes in their own frames."""
    rng = np.random.default_rng(3)
    names = [f"b{k}" for k in range(len(axes))]
    joints = []
    for k, (R, axis) in enumerate(zip(placements, axes, strict=True)):
        origin = np.eye(4)
        origin[:3, :3], origin[:3, 3] = R, rng.normal(size=3)
        parent = names[k - 1] if k else "world"
        joints.append(Joint(f"j{k}", "revolute", parent, names[k], frozen_array(origin), frozen_array(axis), **more))
    bodies: tuple[Body, ...] = tuple(random_body(rng, name) for name in names)
    return mechanism_from(Description("chain", bodies=bodies, joints=tuple(joints)))


def same_dynamics(whole: Mechanism, lean: Mechanism) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v, a = rng.normal(size=(3, whole.nv))
        for text, given in ((denoc.inverse_dynamics, (q, v, a)), (denoc.mass_matrix, (q,))):
            wanted, found = text(whole, *given), text(lean, *given)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-14 * np.abs(wanted).max())


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_turns_about_the_axis_leave_placements_of_zeros_and_ones(sign):
    axes = [sign * np.eye(3)[k] for k in (2, 1, 1, 0, 2)]
    placements = [turn(2, 0.3), turn(1, QUARTER), turn(1, -2.0), turn(2, np.pi / 2) @ turn(0, 0.7), turn(0, np.pi)]
    whole = chain(placements, axes)
    lean = reduced(whole)
    for joint in lean.joints:
        assert set(np.abs(joint.rotation).ravel()) <= {0.0, 1.0}
    assert [isinstance(joint.model, TurnedJoint) for joint in lean.joints] == [True, True, True, True, False]
    same_dynamics(whole, lean)


def test_an_axis_in_a_coordinate_plane_leaves_a_placement_of_five_numbers():
    whole = chain([turn(2, 0.2), turn(0, 0.4) @ turn(2, 1.1)], [np.eye(3)[2]] * 2)
    lean = reduced(whole)
    assert np.count_nonzero(lean.joints[1].rotation) == 5
    assert np.count_nonzero(whole.joints[1].rotation) == 8
    same_dynamics(whole, lean)


def test_bodies_stay_where_they_are_and_springs_rest_where_they_did():
    whole = chain([turn(2, 0.3), turn(1, QUARTER)], [np.eye(3)[2], np.eye(3)[1]], stiffness=3.0, rest=0.4)
    lean = reduced(whole)
    q = np.array([0.7, -0.2])
    for (R, _), (S, _) in zip(kinematics.body_poses(whole, q), kinematics.body_poses(lean, q), strict=True):
        np.testing.assert_allclose(S, R, atol=1e-15)
    same_dynamics(whole, lean)
    assert np.abs(denoc.passive_forces(whole, q, np.zeros(2))).min() > 0.1


def test_code_of_many_joints_of_one_kind_keeps_their_models():
    whole = chain([turn(2, 0.3), turn(1, QUARTER)], [np.eye(3)[2], np.eye(3)[1]])
    assert not any(isinstance(joint.model, TurnedJoint) for joint in reduced(whole, alike=True).joints)
