"""The random mechanisms that other tests rely on are what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms import ALL_KINDS, random_tree
from polybody.algebra.inertia_checks import inertia_problem
from polybody.description.records import same_description
from polybody.mechanism.mechanism import mechanism_from
from polybody.model import Model


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_are_physical_mechanisms_of_every_kind(seed: int) -> None:
    description = random_tree(seed, 11)
    mechanism = mechanism_from(description)
    assert len(mechanism.joints) == 11
    assert {joint.kind for joint in mechanism.joints} == {"custom", *ALL_KINDS} - {"compound"}
    assert all(inertia_problem(body.inertia) is None and body.mass > 0 for body in description.bodies)
    model = Model(mechanism)
    q = model.random_configuration(np.random.default_rng(seed))
    v = 0.3 * np.random.default_rng(seed + 1).normal(size=model.nv)
    np.testing.assert_allclose(model.difference(q, model.integrate(q, v)), v, atol=1e-9)


def test_random_trees_branch_and_turn_joints_round() -> None:
    trees = [mechanism_from(random_tree(seed, 8)) for seed in range(10)]
    assert any(len(c) > 1 for tree in trees for c in tree.children)
    assert any(joint.reversed for tree in trees for joint in tree.joints)
    assert any(tree.fixed_joints for tree in trees)
    assert all(tree.springs for tree in trees)


def test_same_seed_gives_the_same_tree() -> None:
    assert same_description(random_tree(3, 6, loops=1), random_tree(3, 6, loops=1))
    assert not same_description(random_tree(3, 6), random_tree(4, 6))


def test_floating_base_is_the_only_joint_to_the_ground() -> None:
    mechanism = mechanism_from(random_tree(5, 6, floating_base=True))
    assert mechanism.joints[0].name == "root_joint"
    assert [j.parent for j in mechanism.joints].count(-1) == 1


def test_motors_and_their_gears_are_put_on_active_joints() -> None:
    mechanism = mechanism_from(random_tree(2, 6, ("revolute", "prismatic"), motors=0.9))
    assert len(mechanism.motors) >= 2
    assert mechanism.description.transmissions
