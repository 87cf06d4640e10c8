"""Outlets of the quantity table that no method passes through, and batches without states."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb


@pytest.mark.parametrize("name", ["puma560", "five-bar"])
def test_integrate_is_a_casadi_function(name: str) -> None:
    model = pb.load(name)
    q, d = model.random_configuration(0), np.full(model.nv, 0.1)
    np.testing.assert_allclose(np.asarray(model.casadi("integrate")(q, d)).ravel(), model.integrate(q, d), atol=1e-14)


def test_wrenches_on_no_states_give_no_answers() -> None:
    model = pb.load("puma560")
    none, loads = np.zeros((0, 6)), {model.frame_names[-1]: np.ones(6)}
    assert model.forward_dynamics(none, none, none, wrenches=loads).shape == (0, 6)
    assert model.inverse_dynamics_derivatives(none, none, none, wrenches=loads)[0].shape == (0, 6, 6)
    assert all(found.shape == (0, 6) for found in model.reactions(none, none, none, loads).values())


def test_reactions_in_joint_axes_are_the_same_by_every_outlet():
    model = pb.load("five-bar")
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng)
    v = model.assemble_velocity(q, rng.normal(size=model.nv))
    a = model.assemble_acceleration(q, v, rng.normal(size=model.nv))
    found = model.reactions(q, v, a, axes="joint")
    rows, loops, *_ = (np.array(x).reshape(-1, 6) for x in model.casadi("reactions:joint")(q, v, a)[:2])
    np.testing.assert_allclose(np.concatenate([rows, loops]), np.array(list(found.values())), atol=1e-9)


def test_frames_that_cannot_move_in_six_directions_have_no_task_space_inertia():
    model = pb.load("puma560")
    with pytest.raises(pb.PolybodyError, match="six directions"):
        model.coefficients.task_space_inertia(model.neutral(), "link1")
    tip = model.frame_names[-1]
    with pytest.raises(pb.PolybodyError, match=r"state 1 of the batch.*singular"):
        model.coefficients.task_space_inertia(np.stack([model.random_configuration(1), model.neutral()]), tip)


def test_a_joint_is_locked_though_its_name_begins_another_that_a_relation_names():
    build = pb.Builder("named")
    for k, name in enumerate(("j1", "j10", "j2")):
        build.body(f"b{k}", 1.0, inertia=(1, 1, 1))
        build.joint(name, "revolute", "world", f"b{k}")
    build.relation("r", "j10 - 2*j2")
    assert build.model().lock("j1").joint_names == ["j10", "j2"]
    with pytest.raises(pb.InputError, match="relation 'r'"):
        build.model().lock("j2")


@pytest.mark.parametrize(
    ("place", "name", "size"),
    [("coefficients", "centroidal_momentum_matrix", 1), ("constraints", "projection_step", 2),
     ("constraints", "motion_derivatives", 3)],
)  # fmt: skip
def test_quantities_of_namespaces_write_into_given_arrays(place: str, name: str, size: int) -> None:
    model = pb.load("five-bar")
    q = model.assemble()
    call = getattr(getattr(model, place), name)
    arguments = (q, model.assemble_velocity(q, np.ones(model.nv)), np.ones(model.nv))[:size]
    expected = call(*arguments)
    rooms = np.empty_like(expected) if size == 1 else tuple(np.empty_like(x) for x in expected)
    found = call(*arguments, out=rooms)
    for room, got, right in zip(*((x,) if size == 1 else x for x in (rooms, found, expected)), strict=True):
        assert got is room
        np.testing.assert_array_equal(room, right)
