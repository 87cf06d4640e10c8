"""Base parameters: published numbers, agreement of structure and samples, and Y p = Y_B p_base."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from loop_states import massive
from machines import parallelogram as singular_parallelogram
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


@pytest.mark.parametrize(
    ("name", "count"),
    [
        # Planar with gravity, link by link: (Izz, mx, my) each, a pin's point mass belongs to either of its bars.
        ("four-bar", 8),  # 3 · 3, less the coupler's mass at the cut pin
        ("five-bar", 7),  # without gravity: driven bars show Izz alone (1 + 1), the others 3 + 3, less the cut pin's
        ("slider-crank", 12),
        ("3-rrr", 19),
        ("stewart", 82),
        ("delta", 34),  # arms 3 · 3, rods of a parallelogram as one 3 · 8, the platform's mass
    ],
)
def test_structure_of_loops_explains_all_that_samples_do_not_show(name: str, count: int) -> None:
    model = massive(name)
    found, tree = pb.base_parameters(model), pb.base_parameters(model.tree)
    assert len(found) == count < len(tree)
    assert found.exact
    assert found.gap > 1e6
    check_forces(model, found)


def test_relations_of_a_loop_that_no_count_proves_are_told_apart() -> None:
    found = pb.base_parameters(massive("bricard"))  # overconstrained: relations between twists that samples show
    assert (len(found), found.proof, found.exact) == (19, "samples", False)
    assert "not proved" in str(found)
    check_forces(massive("bricard"), found)


def test_terms_of_joints_with_loops_are_explained_too() -> None:
    for name in ("four-bar", "five-bar"):
        model = massive(name)
        found = pb.base_parameters(model, "armature+viscous+coulomb+offset")
        assert found.exact
        check_forces(model, found)


def parallelogram(gravity: float) -> pb.Model:
    build = pb.Builder("parallelogram", gravity=(0, -gravity, 0))
    turn = lambda x, angle: {"xyz": (x, 0, 0), "rpy": (0, 0, angle)}  # noqa: E731
    for name in ("left", "top", "right"):
        build.body(name, 1, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    build.joint("a", "revolute", "world", "left", placed(**turn(0, 1.0)))
    build.joint("b", "revolute", "left", "top", placed(**turn(0.5, -1.0)), active=False)
    build.joint("c", "revolute", "world", "right", placed(**turn(2, 1.0)), active=False)
    build.loop("d", "revolute", "top", "right", (2, 0, 0), (0.5, 0, 0))
    return build.model()


def placed(xyz, rpy) -> np.ndarray:
    origin = np.eye(4)
    c, s = np.cos(rpy[2]), np.sin(rpy[2])
    origin[:2, :2], origin[:3, 3] = [[c, -s], [s, c]], xyz
    return origin


def test_bars_of_a_parallelogram_that_move_alike_combine_in_closed_form() -> None:
    # Cranks turn by θ, the coupler goes along: T = ½ (I_l + I_r + m l²) θ̇², V = g ((m_x + m l) sin θ + m_y cos θ).
    found = pb.base_parameters(parallelogram(9.81), "armature+viscous+coulomb+offset")
    assert found.exact
    assert set(found.formulas) == {
        "left.mx + 0.5 top.mass + right.mx",
        "left.my + right.my",
        "left.Izz + 0.25 top.mass + right.Izz + a.armature + b.armature + c.armature",
        "a.viscous + b.viscous + c.viscous",
        "a.coulomb + b.coulomb + c.coulomb",
        "a.offset − b.offset + c.offset",
    }
    assert (found.proof, found.identities) == ("identities", ("top does not turn", "right turns like left"))
    assert pb.base_parameters(parallelogram(0.0)).formulas == ("left.Izz + 0.25 top.mass + right.Izz",)


def test_a_machine_whose_neutral_configuration_is_singular_is_sampled_beside_it() -> None:
    found = pb.base_parameters(singular_parallelogram())
    assert len(found) in (1, 4)  # a parallelogram, or folded
    check_forces(singular_parallelogram(), found)


@pytest.mark.parametrize("seed", range(4))
def test_followers_hide_what_lasting_relations_explain(seed: int) -> None:
    m, *_ = coupled_state(seed, springs=0)
    found = pb.base_parameters(Model(m))
    assert found.exact
    assert len(found) == sampled_rank(Model(m), seed=2)[0]
    check_forces(Model(m), found)


def test_mirrored_fingers_combine() -> None:
    found = pb.base_parameters(pb.load(robot_file("panda.urdf")))
    assert (len(found), found.exact) == (48, True)


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
