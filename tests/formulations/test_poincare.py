"""Poincaré's equations on random trees with every joint kind, against Saha's recursions and against Lagrange."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mechanisms import ONE_NUMBER
from polybody.algebra.domains import COMPLEX, FLOAT, domain
from polybody.algebra.jets import JetDomain
from polybody.formulations import denoc, formulation, poincare
from polybody.mechanism import kinematics, mechanism_from
from polybody.mechanism.energy import energy
from trees import random_state, scale

JETS = JetDomain(FLOAT)
SEEDS = range(8)


tree = partial(random_state, least=2, most=6)


@pytest.mark.parametrize("seed", SEEDS)
def test_poincare_equals_denoc_on_random_tree(seed):
    mechanism, q, v, a, rng = tree(seed)
    wrenches = rng.normal(size=(len(mechanism.bodies), 6))
    M = denoc.mass_matrix(mechanism, q)
    np.testing.assert_allclose(poincare.mass_matrix(mechanism, q), M, atol=1e-11 * scale(M))
    bias = denoc.bias_forces(mechanism, q, v)
    np.testing.assert_allclose(poincare.bias_forces(mechanism, q, v), bias, atol=1e-11 * scale(bias))
    tau = denoc.inverse_dynamics(mechanism, q, v, a, wrenches)
    found = formulation("poincare").inverse_dynamics(mechanism, q, v, a, wrenches)
    np.testing.assert_allclose(found, tau, atol=1e-11 * scale(tau))
    back = poincare.forward_dynamics(mechanism, q, v, tau, wrenches)
    np.testing.assert_allclose(back, a, atol=1e-9 * scale(a, tau))


@pytest.mark.parametrize("seed", SEEDS)
def test_poincare_matrix_times_velocity_is_bias_without_gravity(seed):
    mechanism, q, v, _, _ = tree(seed)
    rigid = denoc.bias_forces(mechanism, q, v, gravity=np.zeros(3))
    C = poincare.poincare_matrix(mechanism, q, v)
    np.testing.assert_allclose(C @ v, rigid, atol=1e-11 * scale(rigid))


@pytest.mark.parametrize("seed", SEEDS)
def test_structure_constants_are_brackets_of_the_velocity_fields(seed):
    """(38) at its word, V differentiated by jets, against the brackets of the map's columns in se(3)."""
    mechanism, q, *_ = tree(seed)
    V, c = poincare.kinematic_matrix(mechanism, q), poincare.structure_constants(mechanism)
    X = poincare.field_brackets(mechanism, q)
    np.testing.assert_allclose(np.einsum("ak,kji->jai", V, c), X, atol=1e-10 * scale(X))


@pytest.mark.parametrize("seed", SEEDS)
def test_poincare_matrix_of_paper_in_coordinates(seed):
    """(53b) as the errata correct it, with V⁻¹ and X_j as matrices, on joints with as many q as v."""
    kinds = (*ONE_NUMBER, "planar", "custom", "compound", "universal")
    mechanism, q, v, *_ = tree(seed, kinds=kinds, armature=0)
    V, X = poincare.kinematic_matrix(mechanism, q), poincare.field_brackets(mechanism, q)
    M = denoc.mass_matrix(mechanism, q)
    slopes = np.empty((mechanism.nv, mechanism.nq))
    for i in range(mechanism.nq):
        moved = JETS.lift(q, np.eye(mechanism.nq)[i])
        slopes[:, i] = JETS.rates(denoc.mass_matrix(mechanism, moved, domain=JETS)) @ v
    S = slopes @ V
    C = S - S.T / 2 - np.einsum("j,jai->ia", v, X) @ np.linalg.inv(V).T @ M
    np.testing.assert_allclose(poincare.poincare_matrix(mechanism, q, v), C, atol=1e-9 * scale(C))


@pytest.mark.parametrize("seed", SEEDS)
def test_with_coordinate_velocities_poincare_is_lagrange(seed):
    """V = I: d/dt ∂L/∂q̇ − ∂L/∂q by nested jets of the energy alone equals Poincaré's left side."""
    mechanism, q, v, a, _ = tree(seed, kinds=(*ONE_NUMBER, "universal", "cylindrical"), stiffness=0, springs=0)
    np.testing.assert_array_equal(poincare.kinematic_matrix(mechanism, q), np.eye(mechanism.nv))
    assert not poincare.structure_constants(mechanism).any()
    outer = JetDomain(JETS)
    n = mechanism.nv
    lagrange = np.empty(n)
    for k in range(n):
        e = np.eye(n)[k]
        # inner jet: along the motion (q̇, v̇); outer jet: along v_k, then along q_k
        along_q, along_v = JETS.lift(q, v), JETS.lift(v, a)
        T, P = energy(mechanism, outer.lift(along_q), outer.lift(along_v, JETS.lift(e)), domain=outer)
        momentum_rate = T.rate.rate - P.rate.rate
        T, P = energy(mechanism, JETS.lift(q, e), JETS.lift(v), domain=JETS)
        lagrange[k] = momentum_rate - (T.rate - P.rate)
    left = poincare.mass_matrix(mechanism, q) @ a + poincare.bias_forces(mechanism, q, v)
    np.testing.assert_allclose(left, lagrange, atol=1e-10 * scale(lagrange))


@pytest.mark.parametrize("seed", SEEDS)
def test_potential_forces_are_the_gravity_forces(seed):
    mechanism, q, *_ = tree(seed)
    states = poincare.joint_states(mechanism, q)
    held = denoc.gravity_forces(mechanism, q)
    np.testing.assert_allclose(poincare.potential_forces(mechanism, q, states), held, atol=1e-11 * scale(held))


def test_mass_matrix_rate_minus_twice_poincare_matrix_is_not_skew_but_powerless():
    mechanism, q, v, *_ = tree(3, armature=0)
    moved = JETS.lift(q, kinematics.rate(mechanism, q, v))
    rate = JETS.rates(poincare.mass_matrix(mechanism, moved, domain=JETS))
    S = rate - 2 * poincare.poincare_matrix(mechanism, q, v)
    assert np.abs(S + S.T).max() > 1e-3
    assert abs(v @ S @ v) < 1e-10 * scale(rate)


def test_every_domain_gives_the_same_numbers():
    mechanism, q, v, a, _ = tree(5)
    tau = poincare.inverse_dynamics(mechanism, q, v, a)
    by_complex = poincare.inverse_dynamics(mechanism, q + 0j, v + 0j, a + 0j, domain=COMPLEX)
    np.testing.assert_allclose(by_complex, tau, atol=1e-12 * scale(tau))
    graph = domain("casadi")
    columns = [graph.variables(name, len(x)) for name, x in (("q", q), ("v", v), ("a", a))]
    traced = poincare.inverse_dynamics(mechanism, *(nodes for _, nodes in columns), domain=graph)
    import casadi

    kernel = casadi.Function("tau", [column for column, _ in columns], [graph.column(traced)])
    np.testing.assert_allclose(np.asarray(kernel(q, v, a)).ravel(), tau, atol=1e-11 * scale(tau))


def test_sympy_domain_gives_the_pendulum_in_rationals():
    import sympy

    from polybody.description.records import Body, Description, Joint, frozen_array

    bob = Body("bob", 0.5, frozen_array((0.3, 0, 0)), frozen_array(np.diag([0, 0.01, 0.01])))
    hinge = Joint("hinge", "revolute", "world", "bob")
    mechanism = mechanism_from(Description("pendulum", frozen_array((0, -9.81, 0)), (bob,), (hinge,)))
    symbols = domain("sympy")
    theta, omega = sympy.symbols("theta omega")
    M = poincare.mass_matrix(mechanism, np.array([theta]), domain=symbols)
    bias = poincare.bias_forces(mechanism, np.array([theta]), np.array([omega]), domain=symbols)
    assert sympy.simplify(M[0, 0] - sympy.Rational(55, 1000)) == 0
    assert sympy.simplify(bias[0] - sympy.Rational(14715, 10000) * sympy.cos(theta)) == 0
