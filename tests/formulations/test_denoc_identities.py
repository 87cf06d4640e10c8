"""Physical identities of Saha's recursions on random trees with every joint kind."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import polybody as pb
from polybody.algebra.domains import FLOAT
from polybody.algebra.jets import JetDomain
from polybody.formulations import denoc
from polybody.formulations.denoc import stations
from polybody.mechanism import kinematics
from polybody.mechanism.energy import energy, momentum
from polybody.mechanism.reduction import reduced
from trees import coupled_state, scale
from trees import random_state as tree

JETS = JetDomain(FLOAT)
SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_undoes_inverse(seed):
    mechanism, q, v, a, rng = tree(seed)
    wrenches = rng.normal(size=(len(mechanism.bodies), 6))
    tau = denoc.inverse_dynamics(mechanism, q, v, a, wrenches)
    back = denoc.forward_dynamics(mechanism, q, v, tau, wrenches)
    np.testing.assert_allclose(back, a, atol=1e-10 * scale(a, tau))


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_dynamics_is_mass_matrix_times_acceleration_plus_bias_minus_passive(seed):
    mechanism, q, v, a, _ = tree(seed)
    tau = denoc.inverse_dynamics(mechanism, q, v, a)
    parts = (
        denoc.mass_matrix(mechanism, q) @ a
        + denoc.bias_forces(mechanism, q, v)
        - denoc.passive_forces(mechanism, q, v)
    )
    np.testing.assert_allclose(parts, tau, atol=1e-11 * scale(tau))


@pytest.mark.parametrize("seed", SEEDS)
def test_convective_matrix_times_velocity_is_bias_without_gravity(seed):
    mechanism, q, v, _, _ = tree(seed)
    C = denoc.coriolis_matrix(mechanism, q, v)
    bias = denoc.bias_forces(mechanism, q, v, gravity=np.zeros(3))
    np.testing.assert_allclose(C @ v, bias, atol=1e-11 * scale(bias))


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_rate_minus_twice_convective_matrix_is_skew(seed):
    mechanism, q, v, _, _ = tree(seed)
    moved = JETS.lift(q, kinematics.rate(mechanism, q, v))
    M_dot = JETS.rates(denoc.mass_matrix(mechanism, moved, domain=JETS))
    S = M_dot - 2 * denoc.coriolis_matrix(mechanism, q, v)
    np.testing.assert_allclose(S, -S.T, atol=1e-11 * scale(M_dot))


@pytest.mark.parametrize("make", [tree, coupled_state])
@pytest.mark.parametrize("seed", SEEDS)
def test_momentum_drifts_by_the_transposed_convective_matrix(make, seed):
    """Ṁ v − C v, with rotors and followers too; and from the fewest numbers that have the same dynamics."""
    mechanism, q, v, _, _ = make(seed)
    p, drift = denoc.momentum_and_drift(mechanism, q, v)
    M, moved = denoc.mass_matrix(mechanism, q), JETS.lift(q, kinematics.rate(mechanism, q, v))
    M_dot = JETS.rates(denoc.mass_matrix(mechanism, moved, domain=JETS))
    wanted = M_dot @ v - denoc.bias_forces(mechanism, q, v, gravity=np.zeros(3))
    np.testing.assert_allclose(p, M @ v, atol=1e-11 * scale(p))
    np.testing.assert_allclose(drift, wanted, atol=1e-11 * scale(drift, M_dot))
    bare = replace(mechanism, springs=())
    fewer = denoc.momentum_and_drift(reduced(bare), q, v)
    np.testing.assert_allclose(fewer, (p, drift), atol=1e-10 * scale(p, drift))


@pytest.mark.parametrize("seed", SEEDS)
def test_convective_matrix_is_the_same_about_stations_of_any_reach(seed, monkeypatch):
    m, q, v, _, _ = tree(seed, 9)
    every_body_its_own = denoc.coriolis_matrix(m, q, v)
    for reach in (2, 3, 50):
        monkeypatch.setattr(stations, "SHORT", 1)
        monkeypatch.setattr(stations, "REACH", reach)
        assert any(k != joint.index for k, joint in zip(stations._chosen(m), m.joints, strict=True))
        found = denoc.coriolis_matrix(m, q, v)
        np.testing.assert_allclose(found, every_body_its_own, rtol=0, atol=1e-13 * scale(every_body_its_own))


@pytest.mark.parametrize("seed", SEEDS)
def test_joint_power_and_damping_equal_energy_rate(seed):
    mechanism, q, v, a, _ = tree(seed)
    tau = denoc.inverse_dynamics(mechanism, q, v, a)
    moved, quicker = JETS.lift(q, kinematics.rate(mechanism, q, v)), JETS.lift(v, a)
    kinetic, potential = energy(mechanism, moved, quicker, domain=JETS)
    spring_only = denoc.passive_forces(mechanism, q, 0 * v)
    loss = (denoc.passive_forces(mechanism, q, v) - spring_only) @ v
    power = tau @ v + loss
    np.testing.assert_allclose(power, kinetic.rate + potential.rate, atol=1e-10 * scale(tau @ v, kinetic.rate))


@pytest.mark.parametrize("seed", SEEDS)
def test_udu_of_mass_matrix(seed):
    mechanism, q, *_ = tree(seed)
    U, D = denoc.udu(mechanism, q)
    M = denoc.mass_matrix(mechanism, q)
    np.testing.assert_allclose(U @ D @ U.T, M, atol=1e-11 * scale(M))
    np.testing.assert_array_equal(np.tril(U, -1), 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_denoc_matrices_give_mass_matrix_and_twists(seed):
    mechanism, q, v, _, _ = tree(seed)
    N_l, N_d = denoc.denoc_matrices(mechanism, q)
    N, M = N_l @ N_d, denoc.generalized_mass(mechanism)
    np.testing.assert_allclose(
        N.T @ M @ N + mechanism.armature, denoc.mass_matrix(mechanism, q), atol=1e-11 * scale(N.T @ M @ N)
    )
    twists = np.concatenate(kinematics.body_twists(mechanism, q, v))
    np.testing.assert_allclose(N @ v, twists, atol=1e-12 * scale(twists))


@pytest.mark.parametrize("seed", SEEDS)
def test_kinetic_energy_is_half_the_quadratic_form_of_the_mass_matrix(seed):
    mechanism, q, v, _, _ = tree(seed)
    kinetic, _ = energy(mechanism, q, v)
    np.testing.assert_allclose(v @ denoc.mass_matrix(mechanism, q) @ v / 2, kinetic, rtol=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_linear_momentum_is_mass_times_velocity_of_the_center_of_mass(seed):
    mechanism, q, v, _, _ = tree(seed)
    moved = JETS.lift(q, kinematics.rate(mechanism, q, v))
    velocity = JETS.rates(kinematics.center_of_mass(mechanism, moved, domain=JETS))
    linear = momentum(mechanism, q, v)[3:]
    np.testing.assert_allclose(linear, sum(b.mass for b in mechanism.bodies) * velocity, atol=1e-11 * scale(linear))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [tree, coupled_state])
def test_held_velocities_do_not_accelerate_and_the_others_move_as_if_they_were_locked(make, seed: int) -> None:
    """M_ff a_f = φ_f, a_h = 0, with φ = M a of the free motion."""
    m, q, v, tau, rng = make(seed)
    free = (rng.uniform(size=m.nv) < 0.6).astype(float)
    phi = denoc.mass_matrix(m, q) @ denoc.forward_dynamics(m, q, v, tau)
    expected, f = np.zeros(m.nv), np.flatnonzero(free)
    expected[f] = np.linalg.solve(denoc.mass_matrix(m, q)[np.ix_(f, f)], phi[f])
    holding = np.full(m.nv, np.nan)
    found = denoc.forward_dynamics(m, q, v, tau, free=free, holding=holding)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * (1 + np.abs(expected).max()))
    needed = denoc.inverse_dynamics(m, q, v, found) - tau  # what holds them is what else they would need
    np.testing.assert_allclose(holding, needed, rtol=0, atol=1e-10 * (1 + np.abs(needed).max() + np.abs(tau).max()))
    np.testing.assert_array_equal(denoc.forward_dynamics(m, q, v, tau, free=np.ones(m.nv)),
                                  denoc.forward_dynamics(m, q, v, tau))  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_bodies_of_definite_inertia_make_every_pivot_regular_as_the_recursion_finds(seed: int) -> None:
    """What `singular_joint` sees from bodies alone agrees with the factors; a joint that moves nothing is named."""
    m, q, _, _, _ = tree(seed)
    assert denoc.articulated.singular_joint(m) is None
    assert np.linalg.eigvalsh(denoc.mass_matrix(m, q))[0] > 0
    build = pb.Builder("idle")
    build.body("first", 1.0, inertia=(0.1, 0.1, 0.1))
    build.body("last", 0.0)
    build.joint("one", "revolute", "world", "first")
    build.joint("two", "revolute", "first", "last", axis=(1, 0, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        idle = build.model().mechanism
    assert denoc.articulated.singular_joint(idle) == "two"
