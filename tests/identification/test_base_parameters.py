"""Base parameters: published numbers, agreement of structure and samples, and Y p = Y_B p_base."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from loop_states import massive
from mechanisms import random_tree
from pinocchio_bridge import robot_file
from polybody.identification.base_parameters import sampled_rank
from polybody.identification.states import sample_states
from polybody.mechanism import mechanism_from
from polybody.model.model import Model
from trees import coupled_state


def ur10e() -> pb.Model:
    """Classical DH of a UR10e, the first axis vertical."""
    d, a = (0.1807, 0, 0, 0.17415, 0.11985, 0.11655), (0, -0.6127, -0.57155, 0, 0, 0)
    alpha = (np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2, 0)
    table = zip(d, a, alpha, strict=True)
    rows = [{"d": x, "a": y, "alpha": z, "mass": 1.0, "inertia": (0.1, 0.1, 0.1)} for x, y, z in table]
    return pb.from_dh(rows, name="ur10e")


def panda() -> pb.Model:
    return pb.load(robot_file("panda.urdf")).lock(["panda_finger_joint1"])


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: pb.load("puma560"), 36),  # Khalil & Bennis; Mayeda with a vertical first axis
        (panda, 43),  # Gaz, Cognetti, Oliva, Robuffo Giordano & De Luca 2019
        (ur10e, 36),
        (lambda: pb.load(robot_file("ur5_robot.urdf")), 36),
        (lambda: pb.load("stanford-arm"), 33),
        (lambda: pb.load("double-pendulum"), 6),  # closed form below
        (lambda: pb.load("two-link").with_gravity((0, 0, 0)), 4),  # I1 + m2 l², I2, m2 c2 (2)
    ],
)  # fmt: skip
def test_numbers_of_base_parameters_are_the_published_ones(make, count: int) -> None:
    model = make()
    found = pb.base_parameters(model)
    assert len(found) == count
    assert sampled_rank(model)[0] == count


@pytest.mark.parametrize("seed", range(6))
def test_structure_and_samples_agree_on_random_trees_of_any_joints(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = Model(mechanism_from(random_tree(rng, 4, springs=0)))
    for terms in ((), ("armature", "offset"), ("viscous", "offset")):
        found = pb.base_parameters(model, terms)
        assert (len(found), found.gap) == (sampled_rank(model, terms)[0], np.inf)
        check_forces(model, found)


def check_forces(model, found) -> None:
    """Y p = Y_B p_base for any p."""
    q, v, a = sample_states(model, 4, 3)
    Y = model.regressor(q, v, a, terms=found.terms)
    p = np.random.default_rng(1).normal(size=Y.shape[-1])
    whole = Y @ p
    np.testing.assert_allclose(Y[..., found.pivots] @ found.values(p), whole, atol=1e-9 * np.abs(whole).max())


@pytest.mark.parametrize("name", ["four-bar", "five-bar"])
def test_loops_show_what_sampled_states_show_and_no_more_than_their_tree(name: str) -> None:
    model = massive(name)
    found, tree = pb.base_parameters(model), pb.base_parameters(model.tree)
    assert len(found) <= len(tree)
    assert found.gap > 1e6
    assert len(found) == sampled_rank(model, seed=4)[0]
    check_forces(model, found)


def test_followers_hide_what_sampled_states_do_not_show() -> None:
    m, *_ = coupled_state(3, springs=0)
    found = pb.base_parameters(Model(m))
    assert len(found) == sampled_rank(Model(m), seed=2)[0]
    check_forces(Model(m), found)


def test_formulas_of_a_planar_arm_are_the_closed_form() -> None:
    build = pb.Builder("two", gravity=(0, -9.81, 0))
    for k, parent in enumerate(("world", "b1")):
        build.body(f"b{k + 1}", 1, inertia=(1, 1, 1))
        origin = np.eye(4)
        origin[0, 3] = 0.5 * k
        build.joint(f"j{k + 1}", "revolute", parent, f"b{k + 1}", origin)
    found = pb.base_parameters(build.model())
    assert set(found.formulas) == {"b1.Izz + 0.25 b2.mass", "b1.mx + 0.5 b2.mass", "b1.my", "b2.Izz", "b2.mx", "b2.my"}
    assert "b1.mass" in found.invisible
    assert "b2.mass" in found.combined
    assert "6 base parameters of 20" in str(found)
