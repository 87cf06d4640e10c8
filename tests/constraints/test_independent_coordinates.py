"""Coordinates are chosen at the states asked for: linkages whose neutral configuration is singular or open."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb


def _at(x: float) -> np.ndarray:
    place = np.eye(4)
    place[0, 3] = x
    return place


def _bar(build: pb.Builder, name: str, length: float, start: float = 0.0) -> None:
    moment = length**3 / 12
    build.body(name, length, com=(start + length / 2, 0, 0), inertia=(0.01, moment, moment + 0.01))


def scissor() -> tuple[pb.Model, np.ndarray]:
    """One stage of a scissor lift, flat at neutral, where two motions begin; and an assembled state."""
    build = pb.Builder("scissor", gravity=(0, -9.81, 0))
    _bar(build, "a", 1.0)
    _bar(build, "b", 1.0, -0.5)
    _bar(build, "top", 1.0)
    build.joint("foot", "revolute", "world", "a")
    build.joint("middle", "revolute", "a", "b", _at(0.5), active=False)
    build.joint("head", "revolute", "b", "top", _at(-0.5), active=False)
    build.point_on_line("roller", "world", (0, 0, 0), (1, 0, 0), "b", (0.5, 0, 0))
    build.point_on_line("slot", "top", (0, 0, 0), (1, 0, 0), "a", (1, 0, 0))
    return build.model(), np.array([0.6, -1.2, 0.6])


def peaucellier() -> tuple[pb.Model, np.ndarray]:
    """Bars of 3 m from the ground, a rhombus of 1.5 m, a crank of 1 m whose pivot is 1 m away; open at neutral."""
    build = pb.Builder("peaucellier", gravity=(0, -9.81, 0))
    for side in ("left", "right"):
        _bar(build, side, 3.0)
        build.joint(side, "revolute", "world", side, active=side == "left")
        for end in ("inner", "outer"):
            _bar(build, f"{side} {end}", 1.5)
            build.joint(f"{side} {end}", "revolute", side, f"{side} {end}", _at(3), active=False)
    _bar(build, "crank", 1.0)
    build.joint("crank", "revolute", "world", "crank", _at(1), active=False)
    for end in ("inner", "outer"):
        build.loop(end, "revolute", f"left {end}", f"right {end}", _at(1.5), _at(1.5))
    build.loop("pin", "revolute", "left inner", "crank", _at(1.5), _at(1))
    build.frame("pen", "left outer", _at(1.5))
    model = build.model()
    guess = {"left": 0.5, "left inner": -2, "left outer": -1, "right": -0.5, "right inner": 2, "right outer": 1,
             "crank": 1}
    return model, model.assemble([guess[name] for name in model.joint_names])


@pytest.mark.parametrize("make", [scissor, peaucellier])
@pytest.mark.parametrize("asked_before", [False, True])
def test_mass_matrix_at_an_assembled_state_is_that_of_the_kinetic_energy(make, asked_before) -> None:
    """It said "2 coordinates for a mobility of 1": the choice was made at neutral."""
    model, q = make()
    if asked_before:
        assert len(model.constraints.independent) == 1
    M = model.mass_matrix(q)
    (column,) = model.constraints.indices(model.constraints.independent)
    v = model.assemble_velocity(q, np.eye(model.nv)[column])
    assert M.shape == (1, 1)
    assert M[0, 0] * v[column] ** 2 / 2 == pytest.approx(model.energy(q, v)[0], rel=1e-12)


@pytest.mark.parametrize("make", [scissor, peaucellier])
def test_the_minimal_route_gives_the_same_accelerations_in_any_coordinate(make) -> None:
    model, q = make()
    v = model.assemble_velocity(q, np.ones(model.nv))
    tau = np.eye(model.nv)[0] * 3.0
    wanted = model.constraints.solution(q, v, tau, route="multipliers").a
    for independent in (None, *([name] for name in model.joint_names)):
        found = model.constraints.solution(q, v, tau, route="minimal", independent=independent)
        np.testing.assert_allclose(found.a, wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), wanted, rtol=1e-10, atol=1e-10)


def test_peaucelliers_pen_moves_on_a_straight_line() -> None:
    """(3² − 1.5²) / (2 · 1 m) from the ground's pivot, whatever the crank's angle."""
    model, q = peaucellier()
    assert model.pose(q, "pen")[0, 3] == pytest.approx(3.375, abs=1e-8)
    for turn in (-0.2, 0.2, 0.4):
        moved = q.copy()
        moved[model.joint_slices()["crank"][0]] += turn
        assert model.pose(model.assemble(moved, ["crank"]), "pen")[0, 3] == pytest.approx(3.375, abs=1e-8)


def test_a_state_that_is_off_the_loops_by_a_little_does_not_change_the_coordinates():
    """Redundant rows seem independent there; float32 input is off by as much."""
    model = pb.load("bricard")
    q = model.random_configuration(3)
    before, chosen = model.mass_matrix(q), model.constraints.independent
    rounded = q.astype(np.float32).astype(float)
    np.testing.assert_allclose(model.mass_matrix(rounded), before, rtol=1e-5)
    np.testing.assert_array_equal(model.mass_matrix(q), before)
    assert model.constraints.independent == chosen
    assert model.mass_matrix(np.stack([q, rounded])).shape == (2, 1, 1)


@pytest.mark.parametrize("name", ["3-rrr", "two-arms"])
def test_coordinates_do_not_depend_on_which_state_is_asked_first(name):
    q = pb.load(name).random_configuration(8)
    asked, fresh = pb.load(name), pb.load(name)
    first = asked.mass_matrix(q)
    assert asked.constraints.independent == fresh.constraints.independent
    np.testing.assert_allclose(fresh.mass_matrix(q), first, rtol=1e-12)


def test_small_cranks_near_a_dead_point_have_the_inertia_of_the_closed_form():
    """A crank of 0.1 mm, its rod nearly across the slide: J_d of rod and slide spreads by 1e9, the motions by 1e5."""
    r = rod = 1e-4
    alpha, beta, moment, mass = 0.3, np.pi / 2 - 3e-6, 2e-9, 3e-3
    build = pb.Builder("small", gravity=(0, 0, 0))
    build.body("crank", 1e-3, inertia=(moment, moment, moment))
    build.body("rod", 1e-3, inertia=(moment, moment, moment))
    build.body("slider", mass, inertia=(moment, moment, moment))
    build.joint("turn", "revolute", "world", "crank")
    build.joint("pin", "revolute", "crank", "rod", _at(r), active=False)
    slide = np.eye(4)
    slide[1, 3] = r * np.sin(alpha) + rod * np.sin(beta)
    build.joint("slide", "prismatic", "world", "slider", slide, axis=(1, 0, 0), active=False)
    build.loop("end", "revolute", "slider", "rod", origin_b=_at(rod))
    model = build.model()
    q = np.array([alpha, beta - alpha, r * np.cos(alpha) + rod * np.cos(beta)])
    rate = -r * np.cos(alpha) / (rod * np.cos(beta))  # of the rod, over that of the crank
    speed = -r * np.sin(alpha) - rod * np.sin(beta) * rate
    wanted = moment + 1e-3 * r**2 + moment * rate**2 + mass * speed**2
    for states in (q, np.stack([q, q])):
        np.testing.assert_allclose(model.mass_matrix(states, independent=["turn"]).ravel(), wanted, rtol=1e-6)
