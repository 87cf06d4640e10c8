"""From a description's graph to the tree: order, merging, reversal, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from mechanisms import descriptions, random_body, random_pose, random_tree
from polybody.description.records import Body, Description, Frame, Joint, Loop, frozen_array
from polybody.errors import InputError
from polybody.mechanism import GROUND, Mechanism, kinematics, mechanism_from
from polybody.mechanism.couplings import joint_positions
from polybody.mechanism.geared import own_model
from polybody.mechanism.reduction import reduced, reduced_frames
from polybody.model import Model

Array = np.ndarray


def body(name: str) -> Body:
    return random_body(np.random.default_rng(len(name)), name)


def tree(*joints: tuple[str, str, str, str], **more: object) -> Description:
    """Bodies and joints from (name, kind, parent, child)."""
    names = dict.fromkeys(end for _, _, p, c in joints for end in (p, c) if end != "world")
    records = tuple(Joint(n, k, p, c, origin=frozen_array(random_pose(np.random.default_rng(i))))
                    for i, (n, k, p, c) in enumerate(joints))
    return Description("t", bodies=tuple(body(n) for n in names), joints=records, **more)  # type: ignore[arg-type]


def poses_of(mechanism: Mechanism, q: Array) -> dict[str, Array]:
    poses = kinematics.body_poses(mechanism, q)
    found = {}
    for frame in mechanism.frames:
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = kinematics.frame_pose(frame, poses)
        found[frame.name] = T
    return found


def test_joints_are_in_depth_first_preorder_with_siblings_in_file_order() -> None:
    m = mechanism_from(
        tree(
            ("d", "revolute", "b", "d"),
            ("a", "revolute", "world", "a"),
            ("c", "revolute", "b", "c"),
            ("b", "revolute", "a", "b"),
            ("e", "revolute", "world", "e"),
            ("f", "revolute", "a", "f"),
        )
    )
    assert [j.name for j in m.joints] == ["a", "b", "d", "c", "f", "e"]
    assert [j.parent for j in m.joints] == [GROUND, 0, 1, 1, 0, GROUND]
    assert m.children == ((1, 4), (2, 3), (), (), (), ())
    assert m.supports[3] == (0, 1, 3)


def test_slices_follow_the_order_of_joints() -> None:
    m = mechanism_from(tree(("f", "floating", "world", "a"), ("s", "spherical", "a", "b"), ("p", "planar", "b", "c")))
    assert [(j.q, j.v) for j in m.joints] == [
        (slice(0, 7), slice(0, 6)), (slice(7, 11), slice(6, 9)), (slice(11, 14), slice(9, 12))
    ]
    assert (m.nq, m.nv) == (14, 12)


def test_fixed_joints_merge_bodies_and_keep_frames() -> None:
    welds = ("w", "fixed", "a", "b"), ("x", "fixed", "c", "b")
    d = tree(("j", "revolute", "world", "a"), *welds, ("k", "revolute", "c", "d"))
    d = replace(d, frames=(Frame("tip", "c", frozen_array(random_pose(np.random.default_rng(9)))),))
    m = mechanism_from(d)
    assert [b.name for b in m.bodies] == ["a", "d"]
    assert m.bodies[0].links == ("a", "b", "c")
    assert [f.name for f in m.fixed_joints] == ["w", "x"]
    assert [f.name for f in m.frames] == ["world", "a", "b", "c", "d", "tip"]
    assert m.bodies[0].mass == pytest.approx(sum(b.mass for b in d.bodies[:3]))
    # the merged body has the momentum of its parts: compare with joints that hold still instead of fixed ones
    loose = replace(d, joints=tuple(replace(j, kind="revolute") if j.kind == "fixed" else j for j in d.joints))
    n = mechanism_from(loose)
    q = np.zeros(n.nv)
    q[[j.v.start for j in n.joints if j.name in "jk"]] = 0.3, -0.8
    own = np.array([0.3, -0.8])
    np.testing.assert_allclose(kinematics.center_of_mass(m, own), kinematics.center_of_mass(n, q), atol=1e-14)
    for name, T in poses_of(m, own).items():
        np.testing.assert_allclose(T, poses_of(n, q)[name], atol=1e-14)


def test_what_is_welded_to_the_ground_does_not_move_and_does_not_count() -> None:
    m = mechanism_from(tree(("w", "fixed", "world", "base"), ("j", "revolute", "base", "arm")))
    assert [b.name for b in m.bodies] == ["arm"]
    frame = m.frames[m.frame_index["base"]]
    assert frame.body == GROUND
    alone = kinematics.body_poses(m, np.array([0.4]))[0]
    np.testing.assert_allclose(
        kinematics.center_of_mass(m, np.array([0.4])), alone[1] + alone[0] @ m.bodies[0].com, atol=1e-15
    )


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "universal", "spherical", "planar", "floating"])
def test_a_joint_given_child_to_parent_keeps_the_meaning_of_its_q(kind: str) -> None:
    """X(q) is the pose of the record's child in its parent, whichever of the two is nearer to the ground."""
    d = tree(("j", "revolute", "world", "a"), ("r", kind, "b", "a"), ("k", "revolute", "b", "c"))
    m = mechanism_from(d)
    assert m.joints[1].reversed
    model = Model(m)
    q = model.random_configuration(3)
    found = poses_of(m, q)
    R, p = m.joints[1].model.joint.configuration(q[m.joints[1].q])  # type: ignore[attr-defined]
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = R, p
    np.testing.assert_allclose(found["b"] @ d.joints[1].origin @ X, found["a"], atol=1e-13)


@settings(max_examples=60, deadline=None)
@given(descriptions(most=5))
def test_every_joint_record_is_honoured_in_any_tree(description: Description) -> None:
    """child = parent · origin · X(q) for every joint of random trees with reversed and fixed joints."""
    m = mechanism_from(replace(description, loops=(), springs=()))
    q = Model(m).random_configuration(1)
    found, positions = poses_of(m, q), joint_positions(m, q)
    for joint in m.joints:
        own = own_model(joint.model)
        plain = own.joint if joint.reversed else own  # type: ignore[attr-defined]
        X = np.eye(4)
        X[:3, :3], X[:3, 3] = plain.configuration(positions[joint.name])
        record = joint.record
        assert np.abs(found[record.parent] @ record.origin @ X - found[record.child]).max() < 1e-12
    for weld in m.fixed_joints:
        wanted = found[weld.record.parent] @ weld.record.origin
        assert np.abs(wanted - found[weld.record.child]).max() < 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_jacobians_are_the_derivatives_of_poses(seed: int) -> None:
    """Of every frame of a random tree, by jets along every velocity at once."""
    from polybody.algebra import FLOAT, JetDomain

    m = mechanism_from(random_tree(seed, 6, loops=0, springs=0))
    jets, rng = JetDomain(FLOAT), np.random.default_rng(seed)
    q, v = Model(m).random_configuration(rng), rng.normal(size=m.nv)
    moved = jets.lift(q, kinematics.rate(m, q, v))
    poses, jet_poses = kinematics.body_poses(m, q), kinematics.body_poses(m, moved, domain=jets)
    twists = kinematics.body_twists(m, q, v)
    for frame in m.frames:
        R, _ = kinematics.frame_pose(frame, poses)
        R_rate, p_rate = (jets.rates(x) for x in kinematics.frame_pose(frame, jet_poses, domain=jets))
        W = R_rate @ R.T
        J = kinematics.frame_jacobian(m, q, frame)
        np.testing.assert_allclose(J @ v, [W[2, 1], W[0, 2], W[1, 0], *p_rate], atol=1e-12)
    for k, (R, _) in enumerate(poses):
        J = kinematics.point_jacobian(m, k, poses[k][1], kinematics.world_maps(m, q, poses))
        np.testing.assert_allclose(np.concatenate([R @ twists[k][:3], R @ twists[k][3:]]), J @ v, atol=1e-12)


def test_a_cycle_is_refused_with_its_path() -> None:
    d = tree(("p", "revolute", "world", "a"), ("q", "revolute", "a", "b"), ("r", "revolute", "b", "c"),
             ("s", "revolute", "c", "a"))
    with pytest.raises(InputError, match=r"joints form a cycle: .*a.*b.*c.*make one of them a loop"):
        mechanism_from(d)


def test_bodies_that_nothing_reaches_are_named() -> None:
    d = tree(("p", "revolute", "world", "a"), ("q", "revolute", "b", "c"))
    with pytest.raises(InputError, match="no chain of joints leads from 'world' to 'b', 'c'; join 'b' to 'world'"):
        mechanism_from(d)


def test_a_loop_within_one_rigid_body_is_refused() -> None:
    d = tree(("p", "revolute", "world", "a"), ("w", "fixed", "a", "b"), loops=(Loop("l", "revolute", "a", "b"),))
    with pytest.raises(InputError, match="loop 'l' joins 'a' and 'b', which are one rigid body"):
        mechanism_from(d)


def test_the_graph_has_every_body_and_joint() -> None:
    graph = mechanism_from(tree(("p", "revolute", "world", "a"), ("w", "fixed", "a", "b"))).graph
    assert set(graph.nodes) == {"world", "a", "b"}
    assert {key for _, _, key in graph.edges(keys=True)} == {"p", "w"}


def test_the_digest_depends_on_motion_and_not_on_sources() -> None:
    d = tree(("p", "revolute", "world", "a"))
    elsewhere = replace(d, joints=(replace(d.joints[0], source="x.urdf:3"),))
    heavier = replace(d, bodies=(replace(d.bodies[0], mass=d.bodies[0].mass + 1e-12),))
    assert mechanism_from(d).digest == mechanism_from(elsewhere).digest != mechanism_from(heavier).digest


def test_frames_of_the_reduced_mechanism_are_where_they_were():
    rng = np.random.default_rng(4)
    mechanism = mechanism_from(random_tree(rng, 7, ("revolute", "prismatic", "spherical", "screw"), springs=0))
    lean = reduced(mechanism)
    q = np.concatenate([joint.model.random(rng) for joint in mechanism.joints])
    whole, less = kinematics.body_poses(mechanism, q), kinematics.body_poses(lean, q)
    moved = reduced_frames(mechanism, mechanism.frames)
    assert any(not np.allclose(R, S) for (R, _), (S, _) in zip(whole, less, strict=True))
    for frame, there in zip(mechanism.frames, moved, strict=True):
        for wanted, found in zip(kinematics.frame_pose(frame, whole), kinematics.frame_pose(there, less), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-12)
