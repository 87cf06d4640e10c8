"""Models of which nothing moves, or nothing that moves has mass: empty answers, or errors in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polybody as pb

NONE = np.zeros(0)


@pytest.fixture(scope="module")
def still() -> pb.Model:
    """A rock that is welded to the ground: nv = 0."""
    build = pb.Builder("rock")
    build.body("stone", 1.0, inertia=(1, 1, 1))
    build.joint("weld", "fixed", "world", "stone")
    return build.model()


@pytest.fixture(scope="module")
def light() -> pb.Model:
    """A pointer without mass on a stand of 1 kg."""
    build = pb.Builder("pointer")
    build.body("stand", 1.0, inertia=(1, 1, 1))
    build.joint("weld", "fixed", "world", "stand")
    build.body("hand", 0.0)
    build.joint("turn", "revolute", "stand", "hand")
    with pytest.warns(pb.PolybodyWarning, match="'hand'"):
        return build.model()


@pytest.mark.parametrize(
    ("act", "shapes"),
    [
        (lambda m: m.mass_matrix(NONE), [(0, 0)]),
        (lambda m: m.inverse_mass_matrix(NONE), [(0, 0)]),
        (lambda m: m.coriolis_matrix(NONE, NONE), [(0, 0)]),
        (lambda m: m.inverse_dynamics(NONE, NONE, NONE), [(0,)]),
        (lambda m: m.forward_dynamics(np.zeros((3, 0)), NONE, NONE), [(3, 0)]),
        (lambda m: m.inverse_dynamics_derivatives(NONE, NONE, NONE), [(0, 0)] * 3),
        (lambda m: m.forward_dynamics_derivatives(NONE, NONE, NONE), [(0, 0)] * 3),
        (lambda m: m.jacobian(NONE, "stone"), [(6, 0)]),
        (lambda m: m.coefficients.dynamic_arrays(NONE), [(0, 0), (0, 0, 0)]),
        (lambda m: [getattr(pb.linearize(m, NONE, NONE), key) for key in "ABCD"], [(0, 0)] * 4),
        (lambda m: pb.inverse_kinematics(m, {"stone": np.eye(4)}).q, [(0,)]),
    ],
)
def test_answers_about_no_velocities_are_empty(still: pb.Model, act: Any, shapes: list[tuple[int, ...]]) -> None:
    found = act(still)
    assert [np.shape(x) for x in (found if isinstance(found, tuple | list) else [found])] == shapes


@pytest.mark.parametrize("formulation", pb.formulations())
def test_every_formulation_gives_empty_answers(still: pb.Model, formulation: str) -> None:
    for name in ("inverse_dynamics", "forward_dynamics"):
        assert getattr(still, name)(NONE, NONE, NONE, formulation=formulation).shape == (0,)
    assert still.mass_matrix(NONE, formulation=formulation).shape == (0, 0)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m, q: m.momentum(q, q), "has mass, so it has no momentum"),
        (lambda m, q: m.center_of_mass(q), "has mass, so it has no centre of mass"),
        (lambda m, q: m.coefficients.centroidal_momentum_matrix(q), "has mass, so it has no momentum"),
        (lambda m, q: m.coefficients.center_of_mass(q), "has mass, so it has no centre of mass"),
        (lambda m, q: m.coefficients.task_space_inertia(q, "world"), "no frame of it moves in all six directions"),
    ],
)
def test_what_needs_moving_mass_says_that_nothing_that_moves_has_any(
    still: pb.Model, light: pb.Model, act: Any, message: str
) -> None:
    """The stone weighs 1 kg: the message is about what moves, not about what there is."""
    for model in (still, light):
        with pytest.raises(pb.InputError, match=message) as caught:
            act(model, np.zeros(model.nv))
        assert "six" in message or f"nothing that moves in {model.name!r}" in str(caught.value)


@pytest.mark.parametrize(
    "act",
    [
        lambda m, q: m.forward_dynamics(q, q, q),
        lambda m, q: m.forward_dynamics_derivatives(q, q, q),
        lambda m, q: m.inverse_mass_matrix(q),
        lambda m, q: pb.linearize(m, q, q),
        lambda m, q: pb.simulate(m, 0.01),
        lambda m, q: pb.rollout(m, q, q, steps=2),
    ],
)
def test_motion_without_inertia_is_named(light: pb.Model, act: Any) -> None:
    with pytest.raises(pb.PolybodyError, match="singular at joint 'turn': nothing beyond it has inertia"):
        act(light, np.zeros(1))
