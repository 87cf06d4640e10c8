"""Quasi-velocities of one's own choice, and Poincaré's equations that know no multipliers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import polybody as pb
from polybody.model.engine import Request
from polybody.quantities.table import QUANTITIES
from rolling_machines import disk, rattleback, sleigh, snakeboard, tracked_vehicle


def numbers(equations: Any, symbols: list[Any], values: np.ndarray) -> list[np.ndarray]:
    wanted = [equations.B, equations.B_rate, equations.mass_matrix, equations.bias]
    function = sympy.lambdify([symbols], wanted, cse=True)
    return [np.asarray(x, dtype=float) for x in function(list(values))]


def agrees(model: pb.Model, sym: Any, equations: Any, seed: int, at: Any = None) -> None:
    """a of the multiplier route, from the state that the quasi-velocities make; on the ground, height is the last q."""
    rng = np.random.default_rng(seed)
    q, w = rng.uniform(0.2, 0.9, len(sym.q)), rng.normal(size=len(equations.w))
    q = q if at is None else at
    q[-1] -= float(sum(sympy.lambdify([sym.q], sym.residual())(q)[:, 0]))
    B, B_rate, M, bias = numbers(equations, [*sym.q, *equations.w], np.concatenate([q, w]))
    own_q, own_v = sym.to_model(q, B @ w)
    tau = rng.normal(size=model.nv)
    found = B @ np.linalg.solve(M, B.T @ tau - bias[:, 0]) + B_rate @ w
    K, right = model.engine.answer(Request(QUANTITIES["augmented_system"], (own_q, own_v, tau)))
    wanted = np.linalg.lstsq(K, right, rcond=None)[0][: model.nv]
    np.testing.assert_allclose(found, wanted, atol=1e-10 * np.abs(wanted).max())


def test_chaplygins_sleigh_in_two_quasi_velocities_is_the_books() -> None:
    model = sleigh()
    sym = model.symbolic("none", joints="simple")
    equations = sym.quasi([[1, 0], [0, 1], [0, 0]], ["turn", "ahead"])
    turn, ahead = equations.w
    assert sympy.simplify(equations.bias - sympy.Matrix([0.8 * turn * ahead, -0.8 * turn**2])).is_zero_matrix
    for seed in range(3):
        agrees(model, sym, equations, seed)
        agrees(model, sym, sym.quasi(), seed)


def test_a_rolling_disk_in_its_angular_velocity() -> None:
    model = disk()
    sym = model.symbolic("none")
    n = sym.end_effector("body")[:3, :3].T * sympy.Matrix([0, 0, 1])
    lean = sympy.sqrt(1 - n[1] ** 2)
    rho = -sympy.Rational(3, 10) / lean * sympy.Matrix([n[0], 0, n[2]])
    B = sympy.Matrix.vstack(sympy.eye(3), rho.hat())  # the point that touches rests: v = ρ × ω
    equations = sym.quasi(B, ["wx", "wy", "wz"])
    for seed in range(3):
        agrees(model, sym, equations, seed)


def test_a_rattleback_in_its_angular_velocity() -> None:
    """Its axes of inertia are turned against those of its shape: both are in the equations, and neither multiplier."""
    model = rattleback()
    sym = model.symbolic("none")
    n = sym.end_effector("body")[:3, :3].T * sympy.Matrix([0, 0, 1])
    squares = sympy.diag(*(sympy.Rational(r, 100) ** 2 for r in (20, 3, 2)))
    rho = -squares * n / sympy.sqrt((n.T * squares * n)[0])
    equations = sym.quasi(sympy.Matrix.vstack(sympy.eye(3), rho.hat()), ["wx", "wy", "wz"])
    assert (len(equations.w), len(sym.rows)) == (3, 3)
    for seed in range(3):
        agrees(model, sym, equations, seed)
    with pytest.raises(pb.InputError, match="breaks row"):
        sym.quasi(sympy.Matrix.vstack(sympy.eye(3), 2 * rho.hat()))


def test_a_snakeboard_without_multipliers() -> None:
    model = snakeboard()
    sym = model.symbolic("none")
    equations = sym.quasi()
    assert len(equations.w) == model.nv - 2
    for seed in range(3):
        agrees(model, sym, equations, seed)


def without_slip(sym: Any) -> Any:
    """B of a tracked vehicle for the rates of heave, pitch, roll, turret and both sprockets: arms follow the ground."""
    free, J = [3, 4, 5, 6, 7, 11], sym.jacobian()
    B = sympy.zeros(15, 6)
    for k, column in enumerate(free):
        B[column, k] = 1
    B[0, 4], B[0, 5] = -sympy.Rational(1, 6), sympy.Rational(1, 6)  # radius over the tracks' distance
    B[1, 4] = B[1, 5] = sympy.Rational(1, 10)
    for arm in (8, 9, 10, 12, 13, 14):
        (row,) = (i for i in range(J.rows) if J[i, arm] != 0)
        for k in range(3):
            B[arm, k] = -J[row, 3 + k] / J[row, arm]
    return B


def test_a_tracked_vehicle_of_15_coordinates_without_its_nine_multipliers() -> None:
    model = tracked_vehicle()
    sym = model.symbolic("none")
    equations = sym.quasi(without_slip(sym))
    assert (model.nv, len(equations.w), len(sym.rows)) == (15, 6, 9)
    q = model.assemble(np.random.default_rng(1).uniform(0, 0.2, 15))
    agrees(model, sym, equations, 1, q)
    v = model.assemble_velocity(q, np.random.default_rng(2).normal(size=15))
    tau = np.random.default_rng(3).normal(size=15)
    K, right = model.engine.answer(Request(QUANTITIES["augmented_system"], (q, v, tau)))
    wanted = np.linalg.lstsq(K, right, rcond=None)[0][:15]
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), wanted, atol=1e-10 * np.abs(wanted).max())
    run = pb.simulate(model, 0.5, q, v, sample=0.1)
    assert run.audit.trusted, run.audit.doubts


def test_a_tree_in_other_quasi_velocities_moves_the_same() -> None:
    model = pb.load("two-link")
    sym = model.symbolic("none")
    q1, q2 = sym.q
    equations = sym.quasi([[1, sympy.sin(q2)], [q1, 2 + sympy.cos(q1)]])
    rng = np.random.default_rng(0)
    q, w, tau = rng.uniform(0.2, 0.9, 2), rng.normal(size=2), rng.normal(size=2)
    B, B_rate, M, bias = numbers(equations, [*sym.q, *equations.w], np.concatenate([q, w]))
    found = B @ np.linalg.solve(M, B.T @ tau - bias[:, 0]) + B_rate @ w
    np.testing.assert_allclose(found, model.forward_dynamics(q, B @ w, tau), rtol=1e-11)


def test_choices_that_break_rows_or_lose_motions_are_refused() -> None:
    sym = sleigh().symbolic("none")
    with pytest.raises(pb.InputError, match="breaks row 1"):
        sym.quasi([[1, 0], [0, 0], [0, 1]])
    with pytest.raises(pb.InputError, match="1 columns of rank 1; 2 motions are free"):
        sym.quasi([[1], [0], [0]])
    with pytest.raises(pb.InputError, match="'p1'"):
        sym.quasi([[sym.p[0], 0], [0, 1], [0, 0]])


def test_own_potentials_and_forces_are_in_the_equations() -> None:
    model = pb.load("two-link")
    plain = model.symbolic("none")
    k, c = sympy.symbols("k c")
    (q1, q2), (p1, p2) = plain.q, plain.p
    acted = plain.acted_on(k * (q1 - q2) ** 2 / 2 + sympy.cos(q1 + q2), {"p2": -c * p2 * sympy.Abs(p2)})
    own = sympy.Matrix([k * (q1 - q2) - sympy.sin(q1 + q2), k * (q2 - q1) - sympy.sin(q1 + q2)])
    assert sympy.simplify(acted.potential_forces() - plain.potential_forces() - own).is_zero_matrix
    extra = acted.passive_forces() - plain.passive_forces()
    assert sympy.simplify(extra - sympy.Matrix([0, -c * p2 * sympy.Abs(p2)])).is_zero_matrix
    wanted = plain.potential_energy() + k * (q1 - q2) ** 2 / 2 + sympy.cos(q1 + q2)
    assert sympy.simplify(acted.potential_energy() - wanted) == 0
    assert sympy.simplify(acted.equations().bias() - plain.equations().bias() - own + extra).is_zero_matrix
    assert acted.quasi(sympy.eye(2)).bias.has(k, c)
    with pytest.raises(pb.InputError, match="no quasi-velocity 'p3'"):
        plain.acted_on(forces={"p3": 1})
    with pytest.raises(pb.InputError, match="potential"):
        plain.acted_on(p1)
    with pytest.raises(pb.PolybodyError, match="acted_on"):
        acted.program("bias")


def test_own_potential_of_a_free_body_acts_along_its_quasi_velocities() -> None:
    """U = z of a floating body needs a force of 1 along the world's z, whatever its angles."""
    build = pb.Builder("free", gravity=(0, 0, 0))
    build.body("body", 1.0, inertia=(1, 2, 3))
    build.joint("free", "floating", "world", "body")
    sym = build.model().symbolic("none")
    acted = sym.acted_on(sym.q[5])
    at = dict(zip(sym.q, [0.3, -0.4, 0.5, 0.1, 0.2, 0.6], strict=True))
    R = np.array(sym.end_effector("body").subs(at), dtype=float)[:3, :3]
    force = np.array(acted.potential_forces().subs(at), dtype=float)[:, 0]
    np.testing.assert_allclose(force, [0, 0, 0, *R[2]], atol=1e-14)


def test_a_loop_in_its_independent_velocity() -> None:
    model = pb.load("four-bar")
    sym = model.symbolic("none")
    equations, minimal = sym.quasi(), sym.minimal()
    q = model.assemble(model.neutral())
    at = dict(zip((*sym.q, *equations.w), [*q, 0.7], strict=True))
    p = np.array(equations.B.subs(at), dtype=float) @ [0.7]
    there = at | dict(zip(sym.p, p, strict=True))
    for mine, other in ((equations.mass_matrix, minimal.mass_matrix), (equations.bias, minimal.bias)):
        assert float(mine[0].subs(at)) == pytest.approx(float(other[0].subs(there)), rel=1e-10)
