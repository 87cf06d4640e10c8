"""Elimination by blocks: the same motions and multipliers as by single pivots, in more postures."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.algebra.domains import FLOAT
from polybody.constraints.blocks import BlockElimination, multiplied, plan_blocks
from polybody.constraints.elimination import Elimination
from polybody.constraints.plan import Plan, growth, plan_elimination

MECHANISMS = ("four-bar", "five-bar", "3-rrr", "stewart", "delta")


def planned(name, count=40, given=False):
    """(J at random states, the plan by single pivots, that by blocks), in the model's own coordinates or any."""
    model = pb.load(name)
    q = model.random_configuration(np.random.default_rng(4), size=count)
    J = model.engine.constraints.jacobian(q)
    kept = model.engine.coordinates(q) if given else ()
    plan = plan_elimination(J[:1], kept=kept)
    return J, plan, plan_blocks(J, plan, kept)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (2, 1), (3, 2)])
def test_a_block_becomes_a_unit_matrix_and_a_row_across_it_vanishes(shape):
    B = np.random.default_rng(sum(shape)).normal(size=shape)
    X = multiplied(B, FLOAT)
    np.testing.assert_allclose(X @ B, np.eye(*shape), atol=1e-12)
    assert abs(np.linalg.det(X)) > 1e-3  # nothing of the rows is lost


def test_a_block_that_zeros_make_singular_has_no_inverse():
    assert multiplied(np.array([[1.0, 0, 0], [2, 0, 0], [3, 4, 5]]), FLOAT) is None
    assert multiplied(np.zeros((2, 1)), FLOAT) is None


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("name", MECHANISMS)
def test_motions_and_multipliers_keep_the_constraints(name, given):
    J, _, plan = planned(name, given=given)
    rng, seen = np.random.default_rng(0), 0
    for own in J:
        found = BlockElimination(own, plan, FLOAT)
        if not found.growth < 1e6:
            continue
        seen += 1
        filled = np.abs(own).max(axis=1) > 1e-9
        right, load, size = rng.normal(size=len(own)) * filled, rng.normal(size=own.shape[1]), found.growth**0.5
        x, multipliers = found.follow(right), found.bear(load)
        np.testing.assert_allclose(own @ found.G, 0, atol=1e-12 * size)
        np.testing.assert_allclose(found.G[list(plan.independent)], np.eye(len(plan.independent)))
        np.testing.assert_allclose(own @ x + right, 0, atol=1e-11 * size)
        np.testing.assert_array_equal(x[list(plan.independent)], 0)
        np.testing.assert_allclose((own.T @ multipliers - load)[list(plan.dependent)], 0, atol=1e-11 * size)
        np.testing.assert_array_equal(multipliers[list(plan.redundant)], 0)
    assert seen > len(J) // 2


def test_in_given_coordinates_both_eliminations_have_the_same_motions():
    J, single, blocks = planned("stewart", given=True)
    for own in J:
        if growth(own, single) < 1e6:
            wanted = Elimination(own, single, FLOAT).G
            np.testing.assert_allclose(BlockElimination(own, blocks, FLOAT).G, wanted, rtol=1e-8, atol=1e-8)


def test_a_block_that_nearly_vanishes_costs_the_motions_of_a_regular_matrix_few_digits():
    rng, blocks = np.random.default_rng(8), (((0, 1, 2), (0, 1, 2)), ((3, 4, 5), (3, 4, 5)))
    plan = Plan(tuple((k, k) for k in range(6)), (6, 7), (), (1.0,) * 6, blocks, (1.0,) * 8)
    worst = 0.0
    for _ in range(200):
        J = rng.normal(size=(6, 8))
        U, s, Vt = np.linalg.svd(J[:3, :3])
        J[:3, :3] = U * [*s[:2], 1e-3] @ Vt
        if np.linalg.cond(J[:, :6]) < 100:
            found = BlockElimination(J, plan, FLOAT)
            assert found.growth > 1e5
            wanted = -np.linalg.solve(J[:, :6], J[:, 6:])
            worst = max(worst, np.abs(found.G[:6] - wanted).max() / np.abs(wanted).max())
    assert 0 < worst < 2e-8  # 4e-7 by cofactors alone


def test_legs_of_a_stewart_platform_are_blocks_and_few_postures_are_left_out():
    J, single, blocks = planned("stewart", 400)
    assert sorted(blocks.blocks) == [
        (tuple(range(3 * k, 3 * k + 3)), tuple(range(6 + 3 * k, 9 + 3 * k))) for k in range(6)
    ]
    worst = [BlockElimination(own, blocks, FLOAT).growth for own in J]
    assert np.mean(np.array(worst) > 1e4) < 0.02 < np.mean([growth(own, single) > 1e4 for own in J])


def test_a_singular_sample_does_not_decide():
    J, single, _ = planned("stewart")
    J[7, 0:3, 6] = 0.0  # a leg's joint without effect
    found = plan_blocks(J, single)
    assert found is not None
    assert BlockElimination(J[8], found, FLOAT).growth < 1e3
    J[:, 0:3, 6:9] = 0.0
    assert plan_blocks(J, single) is None or 6 not in plan_blocks(J, single).dependent


def test_rows_that_repeat_others_have_no_plan_by_blocks():
    J, _, _ = planned("3-rrr")
    twice = np.concatenate([J, J[:, 2:3] + J[:, 3:4]], axis=1)
    assert plan_blocks(twice, plan_elimination(twice[:1])) is None


def test_labels_tell_plans_apart():
    plan = Plan(((0, 1),), (0,), (), (1.0,), (((0,), (1,)),), (1.0, 1.0))
    other = Plan(((0, 1),), (0,), (), (1.0,), (((0, 1), (1,)),), (1.0, 1.0))
    assert len({plan.label, other.label}) == 2
