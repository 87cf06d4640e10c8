"""Random mechanisms cut at random into reduced sub-networks: accelerations of the expanded model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polybody as pb
from mechanisms import random_axis, random_joint, random_pose, random_tree, with_followers
from polybody.algebra.spatial import inverse_pose
from polybody.description.records import Description, Guide, Loop, Rod
from polybody.model.validation import model_from

KINDS = ("revolute", "prismatic", "cylindrical", "universal", "spherical", "planar")


def closed_tree(rng: np.random.Generator) -> tuple[Description, dict[str, np.ndarray]]:
    """A random tree whose bodies belong to two sub-networks or none, and what closes circuits where it is: (…, q)."""
    tree = random_tree(rng, 5, motors=0.5, frames=0)
    tree = with_followers(rng, tree, 2) if rng.random() < 0.5 else tree
    homes = {body.name: f"{rng.choice(['s0.', 's1.', ''])}{body.name}" for body in tree.bodies} | {"world": "world"}
    tree = replace(
        tree, bodies=tuple(replace(body, name=homes[body.name]) for body in tree.bodies),
        joints=tuple(replace(j, parent=homes[j.parent], child=homes[j.child]) for j in tree.joints),
        springs=tuple(replace(s, body_a=homes[s.body_a], body_b=homes[s.body_b]) for s in tree.springs))
    model = model_from(tree, warn=False)
    q = model.random_configuration(rng)
    moving = [homes[name] for name in homes if name.startswith("body")]
    loops, rods, guides = [], [], []
    for k in range(2):
        a, b = (str(name) for name in rng.choice(moving, 2, replace=False))
        T_a, T_b = model.pose(q, a), model.pose(q, b)
        here, there = rng.uniform(-0.3, 0.3, size=(2, 3))
        what = rng.choice(["loop", "loop", "rod", "line", "plane"])
        if what == "loop":
            joint = random_joint(rng, f"loop{k}", str(rng.choice(KINDS)), a, b, stiffness=rng.random() < 0.5,
                                 damping=rng.random() < 0.5, armature=rng.random() < 0.3)
            origin = random_pose(rng)
            loops.append(Loop(joint.name, joint.kind, a, b, origin, inverse_pose(T_b) @ T_a @ origin, joint.axis,
                              stiffness=joint.stiffness, damping=joint.damping, rest=joint.rest,
                              armature=joint.armature))
        elif what == "rod":
            length = np.linalg.norm(T_a[:3, :3] @ here + T_a[:3, 3] - T_b[:3, :3] @ there - T_b[:3, 3])
            rods.append(Rod(f"rod{k}", a, here, b, there, float(length)))
        else:
            at = T_b[:3, :3].T @ (T_a[:3, :3] @ here + T_a[:3, 3] - T_b[:3, 3])
            guides.append(Guide(f"guide{k}", str(what), a, here, random_axis(rng), b, at))
    closed = replace(tree, loops=tuple(loops), rods=tuple(rods), guides=tuple(guides))
    return closed, {name: q[own] for name, (own, _) in model.joint_slices().items()}


@pytest.mark.parametrize("seed", [2, 4, 5])
def test_random_closed_mechanisms_in_reduced_pieces_accelerate_as_the_model(seed: int) -> None:
    rng = np.random.default_rng(seed)
    description, known = closed_tree(rng)
    net = pb.network(model_from(description, warn=False))
    net.reductions = {word: net for word in ("s0", "s1") if any(b.startswith(f"{word}.") for b in net.parts.bodies)}
    assert net.reductions
    model = net.model()
    q = model.neutral()
    for name, (own, _) in model.joint_slices().items():
        q[own] = known.get(name, q[own])
    q = model.assemble(q)
    v, tau = model.assemble_velocity(q, rng.normal(size=model.nv)), rng.normal(size=model.nv)
    wanted = model.forward_dynamics(q, v, tau)
    a, _ = net.port_wrenches(q, v, tau)
    assert_allclose(a, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())
