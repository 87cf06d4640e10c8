"""Freeman's influence coefficients and arrays against 40-digit differences and against Saha's recursions."""

from __future__ import annotations

from functools import partial

import mpmath
import numpy as np
import pytest

from mechanisms import ALL_KINDS, random_tree
from polybody.algebra.domains import FLOAT, domain
from polybody.algebra.jets import JetDomain
from polybody.errors import InputError
from polybody.formulations import denoc, influence
from polybody.formulations.influence.coefficients import configured, point_influence
from polybody.mechanism import kinematics, mechanism_from
from trees import random_state, scale

JETS = JetDomain(FLOAT)
SEEDS = range(8)


tree = partial(random_state, most=6)


def chain(kinds, seed, reverse=0.0):
    """A chain that runs through every kind given, and its last body's frame."""
    rng = np.random.default_rng(seed)
    description = random_tree(rng, len(kinds), kinds, branching=0, reversed_joints=reverse, springs=0)
    mechanism = mechanism_from(description)
    q = np.concatenate([j.model.random(rng) for j in mechanism.joints])
    deepest = max(range(len(mechanism.bodies)), key=lambda i: len(mechanism.supports[i]))
    name = mechanism.bodies[deepest].links[-1]
    return mechanism, q, mechanism.frames[mechanism.frame_index[name]], rng


@pytest.mark.parametrize("reverse", [0.0, 1.0])
@pytest.mark.parametrize("kind", [*ALL_KINDS])
def test_coefficients_equal_40_digit_differences_for_every_kind_of_joint(kind, reverse):
    mechanism, q, frame, rng = chain((kind, "revolute", kind), len(kind), reverse)
    directions = rng.normal(size=(3, mechanism.nv))
    _against_differences(mechanism, q, frame, directions)


@pytest.mark.parametrize("seed", range(3))
def test_coefficients_equal_40_digit_differences_on_random_trees(seed):
    mechanism, q, _, _, rng = tree(seed, 5)
    for frame in (mechanism.frames[-1], mechanism.frames[-3]):
        _against_differences(mechanism, q, frame, rng.normal(size=(3, mechanism.nv)))


def _against_differences(mechanism, q, frame, directions):
    """Central differences along straight lines in velocity space: q moves with q̇ = Γ(q) d, one short step each side."""
    mp = domain("mpmath")
    found = influence.influence(mechanism, q, frame)
    l, m, n = directions
    with mpmath.workdps(40):
        h = mpmath.mpf(10) ** -12

        def moved(q, d, step):
            """Two-term expansion of the flow of the velocity field d: exact to h³, so differences are to h²."""
            first = kinematics.rate(mechanism, q, d, domain=mp)
            half = kinematics.rate(mechanism, q + first * (step / 2), d, domain=mp)
            return q + half * step

        def along(function, q, d):
            return (function(moved(q, d, h)) - function(moved(q, d, -h))) / (2 * h)

        def G(q):
            return kinematics.frame_jacobian(mechanism, q, frame, domain=mp)

        q0, l_, m_, n_ = (mp.array(x) for x in (q, l, m, n))
        first = np.array(G(q0), dtype=float)
        second = along(lambda x: G(x) @ n_, q0, m_)
        third = along(lambda y: along(lambda x: G(x) @ n_, y, m_), q0, l_)
        pose_rate = along(lambda x: kinematics.frame_pose(frame, kinematics.body_poses(mechanism, x, domain=mp),
                                                          domain=mp)[1], q0, n_)
    np.testing.assert_allclose(found.G, first, atol=1e-13 * scale(first))
    np.testing.assert_allclose(found.G[3:] @ n, np.array(pose_rate, dtype=float), atol=1e-13 * scale(first @ n))
    second, third = np.array(second, dtype=float), np.array(third, dtype=float)
    np.testing.assert_allclose(np.einsum("imn,m,n", found.H, m, n), second, atol=1e-12 * scale(second))
    np.testing.assert_allclose(np.einsum("ilmn,l,m,n", found.D, l, m, n), third, atol=1e-12 * scale(third, second))


@pytest.mark.parametrize("seed", SEEDS)
def test_velocity_acceleration_and_jerk_are_time_derivatives(seed):
    mechanism, q, v, a, rng = tree(seed)
    jerk = rng.normal(size=mechanism.nv)
    frame = mechanism.frames[int(rng.integers(1, len(mechanism.frames)))]
    found = influence.influence(mechanism, q, frame)
    moved = JETS.lift(q, kinematics.rate(mechanism, q, v))
    ahead = influence.influence(mechanism, moved, frame, domain=JETS)
    acceleration = JETS.rates(ahead.velocity(JETS.lift(v, a)))
    jerk_found = JETS.rates(ahead.acceleration(JETS.lift(v, a), JETS.lift(a, jerk)))
    np.testing.assert_allclose(found.acceleration(v, a), acceleration, atol=1e-12 * scale(acceleration))
    np.testing.assert_allclose(found.jerk(v, a, jerk), jerk_found, atol=1e-11 * scale(jerk_found))


@pytest.mark.parametrize("seed", SEEDS)
def test_center_of_mass_coefficients_are_derivatives_of_its_position(seed):
    mechanism, q, v, _, _ = tree(seed)
    moved = JETS.lift(q, kinematics.rate(mechanism, q, v))
    found = influence.center_influence(mechanism, q, 3)
    velocity = JETS.rates(kinematics.center_of_mass(mechanism, moved, domain=JETS))
    np.testing.assert_allclose(found.G[3:] @ v, velocity, atol=1e-12 * scale(velocity))
    ahead = influence.center_influence(mechanism, moved, 2, domain=JETS)
    assert not found.G[:3].any()
    H = np.einsum("imn,m->in", found.H, v)
    D = np.einsum("ilmn,l->imn", found.D, v)
    np.testing.assert_allclose(JETS.rates(ahead.G), H, atol=1e-12 * scale(H))
    np.testing.assert_allclose(JETS.rates(ahead.H), D, atol=1e-12 * scale(D))


@pytest.mark.parametrize("seed", SEEDS)
def test_arrays_give_the_same_dynamics_as_denoc(seed):
    mechanism, q, v, a, rng = tree(seed)
    wrenches = rng.normal(size=(len(mechanism.bodies), 6))
    tau = denoc.inverse_dynamics(mechanism, q, v, a, wrenches)
    np.testing.assert_allclose(
        influence.inverse_dynamics(mechanism, q, v, a, wrenches), tau, atol=1e-11 * scale(tau))
    np.testing.assert_allclose(
        influence.mass_matrix(mechanism, q), denoc.mass_matrix(mechanism, q), atol=1e-12 * scale(tau))
    bias = denoc.bias_forces(mechanism, q, v)
    np.testing.assert_allclose(influence.bias_forces(mechanism, q, v), bias, atol=1e-11 * scale(bias))
    back = influence.forward_dynamics(mechanism, q, v, tau, wrenches)
    np.testing.assert_allclose(back, a, atol=1e-9 * scale(a, tau))


@pytest.mark.parametrize("seed", [0, 1, 3, 6, 7])
def test_linearised_load_equals_jets_of_denoc(seed):
    mechanism, q, v, a, rng = tree(seed)
    wrenches = rng.normal(size=(len(mechanism.bodies), 6))
    dq, dv, da = influence.inverse_dynamics_derivatives(mechanism, q, v, a, wrenches)
    unit, zero = np.eye(mechanism.nv), np.zeros(mechanism.nv)
    for k in range(mechanism.nv):
        moved = kinematics.rate(mechanism, q, unit[k])
        cases = ((dq, (moved, zero, zero)), (dv, (0 * q, unit[k], zero)), (da, (0 * q, zero, unit[k])))
        for found, (rq, rv, ra) in cases:
            tau = denoc.inverse_dynamics(mechanism, JETS.lift(q, rq), JETS.lift(v, rv), JETS.lift(a, ra),
                                         JETS.lift(wrenches), domain=JETS)
            column = JETS.rates(tau)
            np.testing.assert_allclose(found[:, k], column, atol=1e-11 * scale(JETS.values(tau), column))


def test_linearised_load_equals_central_differences():
    mechanism, q, v, a, _ = tree(3)
    dq, _, _ = influence.inverse_dynamics_derivatives(mechanism, q, v, a)
    h = 1e-5
    for k, unit in enumerate(np.eye(mechanism.nv)):
        taus = [denoc.inverse_dynamics(mechanism, kinematics.integrate(mechanism, q, s * h * unit), v, a)
                for s in (-2, -1, 1, 2)]
        column = (taus[0] - 8 * taus[1] + 8 * taus[2] - taus[3]) / (12 * h)
        np.testing.assert_allclose(dq[:, k], column, atol=1e-8 * scale(column))


@pytest.mark.parametrize("seed", SEEDS)
def test_structure_constants_are_the_brackets_of_velocity_directions(seed):
    """[X_m, X_n] q = L_m (Γ e_n) − L_n (Γ e_m) = Γ c_mn."""
    mechanism, q, _, _, rng = tree(seed)
    m, n = rng.normal(size=(2, mechanism.nv))

    def derivative(along, of):
        moved = JETS.lift(q, kinematics.rate(mechanism, q, along))
        return JETS.rates(kinematics.rate(mechanism, moved, JETS.lift(of), domain=JETS))

    bracket = derivative(m, n) - derivative(n, m)
    c = np.einsum("kmn,m,n->k", influence.structure_constants(mechanism), m, n)
    expected = kinematics.rate(mechanism, q, c)
    np.testing.assert_allclose(bracket, expected, atol=1e-12 * scale(bracket))


def test_generalised_products_keep_quadratic_forms():
    rng = np.random.default_rng(0)
    A, C, D, x = rng.normal(size=(4, 3)), rng.normal(size=(3, 5, 5)), rng.normal(size=(5, 2)), rng.normal(size=5)
    np.testing.assert_allclose(
        influence.quadratic(x, influence.scalar_product(A, C), x), A @ influence.quadratic(x, C, x))
    y = rng.normal(size=2)
    np.testing.assert_allclose(
        influence.quadratic(y, influence.two_sided(D, C), y), influence.quadratic(D @ y, C, D @ y))
    g, b = rng.normal(size=(3, 4)), rng.normal(size=(3, 2))
    pairs = influence.cross_product(g, b)
    np.testing.assert_allclose(pairs[:, 2, 1], np.cross(g[:, 2], b[:, 1]))
    np.testing.assert_allclose(influence.cross_product(g, b[:, 0]), pairs[:, :, 0])


def test_coefficients_of_a_point_of_a_link_follow_the_errata_rules_on_a_serial_chain():
    """Tables 2-3 to 2-5 as the errata state them: sorted indices, revolute and prismatic."""
    rng = np.random.default_rng(4)
    description = random_tree(rng, 5, ("revolute", "prismatic"), branching=0, reversed_joints=0, springs=0)
    mechanism = mechanism_from(description)
    deepest = max(range(5), key=lambda i: len(mechanism.supports[i]))
    q = rng.normal(size=mechanism.nv)
    at = configured(mechanism, q)
    P = at.poses[deepest][1] + np.array([0.1, -0.2, 0.3])
    found = point_influence(at, deepest, P)
    chain = list(mechanism.supports[deepest])
    revolute = [mechanism.joints[i].kind == "revolute" for i in chain]
    S = [at.poses[i][0] @ mechanism.joints[i].record.axis for i in chain]
    R = [at.poses[i][1] for i in chain]
    X = [np.cross(S[k], P - R[k]) if revolute[k] else S[k] for k in range(len(chain))]
    for l in range(len(chain)):
        for m in range(len(chain)):
            for n in range(len(chain)):
                a, b, c = sorted((l, m, n))
                linear = np.cross(S[a], np.cross(S[b], X[c])) if revolute[a] and revolute[b] else np.zeros(3)
                if a == b == c and not revolute[c]:
                    linear = np.zeros(3)
                turning = max(l, m) < n and revolute[l] and revolute[m] and revolute[n]
                angular = np.cross(S[min(l, m)], np.cross(S[max(l, m)], S[n])) if turning else np.zeros(3)
                got = found.D[:, chain[l], chain[m], chain[n]]
                np.testing.assert_allclose(got, [*angular, *linear], atol=1e-13)


def test_an_order_outside_one_to_three_is_refused():
    mechanism, q, *_ = tree(0)
    with pytest.raises(InputError, match="order is 4, expected 1"):
        influence.influence(mechanism, q, mechanism.frames[1], 4)
    with pytest.raises(InputError, match="order 2 or more"):
        influence.influence(mechanism, q, mechanism.frames[1], 1).acceleration(q, q)


def test_symbols_and_graphs_give_the_numbers():
    import casadi

    mechanism, q, v, a, _ = tree(2, 3, kinds=("revolute", "prismatic", "spherical"), stiffness=0, springs=0)
    graph = domain("casadi")
    qs, q_nodes = graph.variables("q", mechanism.nq)
    vs, v_nodes = graph.variables("v", mechanism.nv)
    as_, a_nodes = graph.variables("a", mechanism.nv)
    tau = influence.inverse_dynamics(mechanism, q_nodes, v_nodes, a_nodes, domain=graph)
    found = casadi.Function("tau", [qs, vs, as_], [graph.column(tau)])(q, v, a)
    expected = influence.inverse_dynamics(mechanism, q, v, a)
    np.testing.assert_allclose(np.array(found).ravel(), expected, atol=1e-12 * scale(expected))
    symbols = domain("sympy")
    exact = influence.influence(mechanism, symbols.array(q), mechanism.frames[-1], 2, domain=symbols)
    numbers = influence.influence(mechanism, q, mechanism.frames[-1], 2)
    np.testing.assert_allclose(exact.H.astype(float), numbers.H, atol=1e-12)
