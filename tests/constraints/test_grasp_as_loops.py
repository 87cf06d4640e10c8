"""Arms that hold an object, once as loops with welds for cut joints, once as `pb.grasp` (Swain & Morris)."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import polybody as pb
from cooperation import MIXED, SIX, held_system
from polybody.algebra.spatial import pose
from polybody.description.records import Loop, frozen_array
from polybody.grasping.grasp import Grasp
from polybody.mechanism import kinematics
from polybody.model import Model
from polybody.model.validation import model_from


def as_loops(held: Grasp) -> Model:
    """The same arms and object, with a weld for each grip."""
    said = held.model.mechanism.description
    hands = {frame.name: frame for frame in said.frames}
    loops = []
    for grip in held.held.grips:
        hand = hands[grip.tip.name]
        place = frozen_array(pose(grip.hold.rotation, grip.hold.position))
        loops.append(Loop(f"grip_{hand.name}", "fixed", hand.body, held.object, hand.origin, place))
    return model_from(dataclasses.replace(said, loops=tuple(loops)), warn=False)


def same(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * (1 + np.abs(wanted).max()))


def same_loads(model: Model, q: np.ndarray, loads: dict[str, np.ndarray], f_e: np.ndarray, hands: list[str]) -> None:
    """A loop's load is in world axes, a grasp's in those of the hand; both act on the object."""
    m = model.mechanism
    poses = kinematics.body_poses(m, q)
    for wrench, wanted, hand in zip(loads.values(), f_e, hands, strict=True):
        R, _ = kinematics.frame_pose(m.frames[m.frame_index[hand]], poses)
        same(np.concatenate([R.T @ wrench[:3], R.T @ wrench[3:]]), wanted)


@pytest.mark.parametrize("arms", [(SIX, SIX), (MIXED, SIX)], ids=["two arms of six", "one of seven"])
def test_random_arms_with_an_object_move_alike_as_loops_and_as_a_grasp(arms) -> None:
    held, q, v, tau = held_system(3, arms, gravity=(1, 2, -9.81))
    model = as_loops(held)
    wanted = held.forward_dynamics(q, v, tau)
    same(model.constraints.solution(q, v, tau).a, wanted.a)
    same_loads(model, q, model.constraints.loads(q, v, tau), wanted.f_e, held.frames)


def test_shipped_two_arms_move_as_a_grasp_of_their_tree_does() -> None:
    model = pb.load("two-arms")
    hands = ["left_hand", "right_hand"]
    q, rng = model.neutral(), np.random.default_rng(0)
    held = pb.grasp(model.tree, "object", hands, q)
    v = model.assemble_velocity(q, rng.normal(size=model.nv))
    tau = rng.normal(size=model.nv)
    wanted = held.forward_dynamics(q, v, tau)
    same(model.forward_dynamics(q, v, tau), wanted.a)
    same_loads(model, q, model.constraints.loads(q, v, tau), wanted.f_e, hands)
    assert model.mobility().true == 3
    assert model.actuation.internal_loads(q)[1].shape == (6, 3)
