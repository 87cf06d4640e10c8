"""Joints that follow others: all five formulations against Eᵀ(…)E of the tree whose joints are all free."""

from __future__ import annotations

from dataclasses import replace

import casadi
import numpy as np
import pytest
import sympy

import polybody as pb
from mechanisms import random_tree, with_followers
from polybody.algebra import FLOAT, JetDomain
from polybody.algebra.domains import domain
from polybody.constraints.assembly import bounded_problem, descend
from polybody.constraints.coupling_forces import coupling_forces
from polybody.constraints.system import constraints_of
from polybody.description.records import Body, Coupling, Description, Joint, Motor, Transmission, frozen_array
from polybody.errors import InputError, PolybodyError
from polybody.formulations import denoc, formulation, formulations, influence, operators, poincare
from polybody.formulations.influence.coefficients import higher_orders
from polybody.formulations.network import network_of, reactions
from polybody.formulations.network.listing import terminal_equations
from polybody.formulations.network.reactions import reaction_names
from polybody.mechanism import mechanism_from
from polybody.mechanism.energy import energy
from polybody.mechanism.forces import joint_passive_forces
from polybody.mechanism.kinematics import frame_jacobian, integrate, rate
from polybody.mechanism.reduction import reduced
from trees import coupled_state, expanded, scale

SEEDS = range(12)
FIVE_BAR = ("phi1", "theta_h")


@pytest.mark.parametrize("seed", SEEDS)
def test_all_five_formulations_answer_as_the_free_tree_held_by_its_couplings(seed):
    m, q, v, a, rng = coupled_state(seed, most=7)
    free = m.uncoupled
    q_all, E, v_all, a_all = expanded(m, q, v, a)
    wrenches = rng.normal(size=(len(m.bodies), 6))
    tau = E.T @ denoc.inverse_dynamics(free, q_all, v_all, a_all, wrenches)
    M = E.T @ denoc.mass_matrix(free, q_all) @ E
    bias = E.T @ denoc.bias_forces(free, q_all, v_all)
    for name in formulations():
        one = formulation(name)
        close = dict(rtol=0, err_msg=name)
        np.testing.assert_allclose(
            one.inverse_dynamics(m, q, v, a, wrenches), tau, atol=1e-11 * scale(tau), **close)
        np.testing.assert_allclose(one.mass_matrix(m, q), M, atol=1e-11 * scale(M), **close)
        np.testing.assert_allclose(one.bias_forces(m, q, v), bias, atol=1e-11 * scale(bias), **close)
        np.testing.assert_allclose(
            one.forward_dynamics(m, q, v, tau, wrenches), a, atol=1e-9 * scale(a, tau), **close)


@pytest.mark.parametrize("seed", SEEDS)
def test_factors_inverse_and_coriolis_matrix_are_those_of_the_projected_tree(seed):
    m, q, v, _, _ = coupled_state(100 + seed)
    q_all, E, v_all = expanded(m, q, v)
    M = E.T @ denoc.mass_matrix(m.uncoupled, q_all) @ E
    U, D = denoc.udu(m, q)
    np.testing.assert_allclose(U @ D @ U.T, M, atol=1e-12 * scale(M))
    inverse = denoc.inverse_mass_matrix(m, q)
    np.testing.assert_allclose(inverse @ M, np.eye(m.nv), atol=1e-9 * scale(inverse))
    np.testing.assert_allclose(denoc.solve_mass_matrix(m, q, v), inverse @ v, atol=1e-10 * scale(inverse))
    C = E.T @ denoc.coriolis_matrix(m.uncoupled, q_all, v_all) @ E
    np.testing.assert_allclose(denoc.coriolis_matrix(m, q, v), C, atol=1e-11 * scale(C))
    np.testing.assert_allclose(poincare.poincare_matrix(m, q, v) @ v, C @ v, atol=1e-10 * scale(C))
    N_l, N_d = denoc.denoc_matrices(m, q)
    rigid = N_d.T @ N_l.T @ denoc.generalized_mass(m) @ N_l @ N_d
    np.testing.assert_allclose(rigid + m.armature, M, atol=1e-11 * scale(M))


@pytest.mark.parametrize("seed", SEEDS)
def test_power_of_all_forces_is_the_rate_of_energy(seed):
    m, q, v, a, _rng = coupled_state(200 + seed)
    jets = JetDomain(FLOAT)
    tau = denoc.inverse_dynamics(m, q, v, a)
    kinetic, potential = energy(m, jets.lift(q, rate(m, q, v)), jets.lift(v, a), domain=jets)
    gained = jets.rates(np.array([kinetic + potential], dtype=object))[0]
    lost = denoc.passive_forces(m, q, v) - denoc.passive_forces(m, q, 0 * v)
    np.testing.assert_allclose(gained, (tau + lost) @ v, atol=1e-10 * scale(tau) * scale(v))


@pytest.mark.parametrize("seed", SEEDS)
def test_given_accelerations_and_given_forces_may_be_mixed(seed):
    m, q, v, a, rng = coupled_state(300 + seed)
    tau = denoc.inverse_dynamics(m, q, v, a)
    given = rng.random(m.nv) < 0.5
    found_a, found_tau = operators.hybrid_dynamics(m, q, v, given, np.where(given, a, 0), np.where(given, 0, tau))
    np.testing.assert_allclose(found_a, a, atol=1e-9 * scale(a, tau))
    np.testing.assert_allclose(found_tau, tau, atol=1e-9 * scale(tau))


@pytest.mark.parametrize("seed", range(4))
def test_operators_by_name_make_the_same_mass_matrix(seed):
    m, q, v, _, _ = coupled_state(400 + seed)
    chosen = operators.split(m)
    at = operators.structure(m, q, v, chosen)
    columns = chosen.link_columns(m)
    M = at.Phi.T @ at.X.T @ at.M_q @ at.X @ at.Phi
    whole = (denoc.mass_matrix(m, q) - m.armature)[np.ix_(columns, columns)]
    np.testing.assert_allclose(M, whole, atol=1e-11 * scale(M))
    tips = operators.coefficients(m, q, v, 0 * v, chosen)
    J = np.zeros((6, m.nv))
    J[:, chosen.active], J[:, chosen.passive] = tips.J_a[:6], tips.J_p[:6]
    frame = chosen.tips[0]
    R = np.linalg.norm(frame_jacobian(m, q, frame)[:3], axis=0)
    np.testing.assert_allclose(np.linalg.norm(J[:3], axis=0), R, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_influence_coefficients_are_derivatives_along_velocities_that_joints_share(seed):
    m, q, v, a, _rng = coupled_state(500 + seed, most=6)
    jets, frame = JetDomain(FLOAT), m.frames[-1]
    found = influence.influence(m, q, frame, 3)
    assert found.H is not None
    assert found.D is not None
    np.testing.assert_allclose(found.G, frame_jacobian(m, q, frame), atol=1e-13 * scale(found.G))
    for k in range(m.nv):
        moved = jets.lift(q, rate(m, q, np.eye(m.nv)[k]))
        along = influence.influence(m, moved, frame, 2, domain=jets)
        np.testing.assert_allclose(found.H[:, k], jets.rates(along.G), atol=1e-11 * scale(found.H))
        np.testing.assert_allclose(found.D[:, k], jets.rates(along.H), atol=1e-10 * scale(found.D))
    columns = influence.column_influence(m, q, frame, 1)
    for part, wanted in zip(("G", "H", "D"), (found.G, found.H, found.D), strict=True):
        np.testing.assert_allclose(getattr(higher_orders(m, columns, 3), part), wanted, atol=1e-11 * scale(wanted))
    I, P = influence.dynamic_arrays(m, q)
    S, carried = influence.composites(m, q)
    pairs = np.vectorize(influence.pair_loads, signature="(6),(6),(n),(2)->(6),(6),(6),(6),(9)")
    I_composites, P_composites = influence.arrays_of_composites(m, S[None], carried[None], m.armature, pairs)
    np.testing.assert_allclose(I_composites[0], I, atol=1e-11 * scale(I))
    np.testing.assert_allclose(P_composites[0], P, atol=1e-11 * scale(P))
    dq, dv, _ = influence.inverse_dynamics_derivatives(m, q, v, a)
    for k in range(m.nv):
        moved = jets.lift(q, rate(m, q, np.eye(m.nv)[k]))
        tau = denoc.inverse_dynamics(m, moved, jets.lift(v), jets.lift(a), domain=jets)
        np.testing.assert_allclose(dq[:, k], jets.rates(tau), atol=1e-9 * scale(dq))
        turned = denoc.inverse_dynamics(m, jets.lift(q), jets.lift(v, np.eye(m.nv)[k]), jets.lift(a), domain=jets)
        np.testing.assert_allclose(dv[:, k], jets.rates(turned), atol=1e-9 * scale(dv))


@pytest.mark.parametrize("seed", SEEDS)
def test_coupling_forces_are_the_multipliers_of_the_couplings_on_the_free_tree(seed):
    m, q, v, a, rng = coupled_state(600 + seed)
    free = m.uncoupled
    q_all, E, v_all = expanded(m, q, v)
    efforts = rng.normal(size=free.nv)  # a motor on every joint, followers too
    wrenches = rng.normal(size=(len(m.bodies), 6))
    # M a = efforts − bias + Aᵀλ, A a = 0 with one row v_f − k v_l for each follower
    A = np.zeros((len(m.followers), free.nv))
    for row, (name, (leader, factor, _)) in enumerate(m.followers.items()):
        A[row, free.joints[free.joint_index[name]].v] = 1.0
        A[row, free.joints[free.joint_index[leader]].v] -= factor
    M, rest = denoc.mass_matrix(free, q_all), denoc.inverse_dynamics(free, q_all, v_all, 0 * v_all, wrenches)
    n = len(A)
    K = np.block([[M, -A.T], [A, np.zeros((n, n))]])
    solved = np.linalg.solve(K, np.concatenate([efforts - rest, np.zeros(n)]))
    a = denoc.forward_dynamics(m, q, v, E.T @ efforts, wrenches)
    np.testing.assert_allclose(E @ a, solved[: free.nv], atol=1e-8 * scale(solved))
    own = efforts[[free.joints[free.joint_index[name]].v.start for name in m.followers]]
    found = coupling_forces(m, q, v, a, wrenches, own)
    np.testing.assert_allclose(found, solved[free.nv :], atol=1e-8 * scale(solved))


@pytest.mark.parametrize("seed", range(6))
def test_reactions_are_those_of_the_free_tree_and_hold_the_coupling_force(seed):
    m, q, v, a, _rng = coupled_state(700 + seed, springs=0)
    free = m.uncoupled
    q_all, _, v_all, a_all = expanded(m, q, v, a)
    found = reactions(m, q, v, a, axes="joint")
    np.testing.assert_allclose(found, reactions(free, q_all, v_all, a_all, axes="joint"), atol=1e-11 * scale(found))
    forces = coupling_forces(m, q, v, a) + joint_passive_forces(free, q_all, v_all)[_followers(m)]
    forces = forces - (free.armature @ a_all)[_followers(m)]
    for force, name in zip(forces, m.followers, strict=True):
        joint = free.joints[free.joint_index[name]]
        inner = joint.model.joint if joint.reversed else joint.model
        H = inner.velocity_map(q_all[joint.q])[:, 0]
        assert H @ found[reaction_names(m).index(name)] == pytest.approx(force, abs=1e-10 * scale(found))


def _followers(m):
    return [m.uncoupled.joints[m.uncoupled.joint_index[name]].v.start for name in m.followers]


@pytest.mark.parametrize("seed", range(6))
def test_the_reduced_mechanism_keeps_the_dynamics_of_followers(seed):
    m, q, v, a, _ = coupled_state(800 + seed, springs=0)
    lean = reduced(m)
    tau = denoc.inverse_dynamics(m, q, v, a)
    np.testing.assert_allclose(denoc.inverse_dynamics(lean, q, v, a), tau, atol=1e-11 * scale(tau))
    np.testing.assert_allclose(denoc.forward_dynamics(lean, q, v, tau), a, atol=1e-9 * scale(a, tau))


@pytest.mark.parametrize("seed", range(3))
def test_expression_graphs_of_followers_give_the_numbers(seed):
    m, q, v, a, _ = coupled_state(900 + seed)
    tau = denoc.inverse_dynamics(m, q, v, a)
    for name in ("denoc", "operators"):
        found = np.asarray(traced_forward_dynamics(m, name)(q, v, tau)).ravel()
        np.testing.assert_allclose(found, a, atol=1e-9 * scale(a, tau))


@pytest.mark.parametrize("name", ["denoc", "operators"])
def test_symbols_of_followers_give_the_numbers(name):
    m = mechanism_from(chain(3, couplings=[Coupling("j2", "j1", -0.5, 0.25)]))
    names = sympy.symbols("q0 q1 v0 v1 tau0 tau1")
    q, v, tau = (np.array(names[k : k + 2], dtype=object) for k in (0, 2, 4))
    text = formulation(name).forward_dynamics(m, q, v, tau, domain=domain("sympy"))
    values = np.random.default_rng(0).normal(size=6)
    found = sympy.lambdify(names, list(text))(*values)
    wanted = poincare.forward_dynamics(m, values[:2], values[2:4], values[4:])
    np.testing.assert_allclose(np.array(found, dtype=float), wanted, rtol=1e-10)


def traced_forward_dynamics(m, name):
    graph = domain("casadi")
    sizes = (("q", m.nq), ("v", m.nv), ("tau", m.nv))
    columns, arrays = zip(*(graph.variables(key, n) for key, n in sizes), strict=True)
    text = formulation(name).forward_dynamics(m, *arrays, domain=graph)
    return casadi.Function("forward_dynamics", list(columns), [graph.column(text)], {"cse": True})


def chain(n, kinds=("revolute",), couplings=(), transmissions=(), motors=(), masses=None):
    """n links one after another, each 0.5 m, and what couples their joints j0, j1, …"""
    bodies, joints = [], []
    for k in range(n):
        mass = 1.0 if masses is None else masses[k]
        inertia = frozen_array(np.diag([0.02, 0.03, 0.04]) * mass)
        bodies.append(Body(f"b{k}", mass, frozen_array([0.25, 0.02, 0.01 * k % 0.05]), inertia))
        origin = np.eye(4)
        origin[:3, 3] = 0.5, 0.1, 0.0
        axis = frozen_array(((0, 0, 1), (0, 1, 0), (1, 0, 0))[k % 3])
        parent = "world" if k == 0 else f"b{k - 1}"
        joints.append(Joint(f"j{k}", kinds[k % len(kinds)], parent, f"b{k}", frozen_array(origin), axis))
    return Description("chain", bodies=tuple(bodies), joints=tuple(joints), couplings=tuple(couplings),
                       transmissions=tuple(transmissions), motors=tuple(motors))


def geared_pairs(n):
    """Every sixth joint follows the one before it."""
    return chain(n, couplings=[Coupling(f"j{k}", f"j{k - 1}", -0.5, 0.1) for k in range(1, n, 6)])


def geared_motors(n):
    """Two motors share two neighbouring joints, again and again along the chain."""
    motors = [Motor(f"m{k}", f"j{k}", 1, 0.1, 0.1, 0.1, 0.01, 0) for k in range(n)]
    pairs = [Transmission(f"t{k}", (f"j{k}", f"j{k + 1}"), frozen_array([[1, 0.5], [0.3, -1]]))
             for k in range(0, n - 1, 2)]
    return chain(n, motors=motors, transmissions=pairs)


@pytest.mark.parametrize("build", [geared_pairs, geared_motors])
@pytest.mark.parametrize("name", ["denoc", "operators"])
def test_forward_dynamics_of_long_chains_stays_linear_outside_coupled_groups(build, name):
    counts = []
    for n in (12, 24, 36):
        m = mechanism_from(build(n))
        assert not m.separable
        counts.append(traced_forward_dynamics(m, name).n_instructions())
    first, second = counts[1] - counts[0], counts[2] - counts[1]
    assert second < 1.05 * first, counts


def test_a_follower_without_mass_is_carried_and_a_group_without_mass_is_named():
    couplings = [Coupling("j2", "j1", 0.7, 0.2)]
    m = mechanism_from(chain(3, couplings=couplings, masses=(1.0, 1.0, 0.0)))
    q, v, tau = np.random.default_rng(0).normal(size=(3, m.nv))
    wanted = np.linalg.solve(influence.mass_matrix(m, q), tau - influence.bias_forces(m, q, v))
    for name in formulations():
        np.testing.assert_allclose(formulation(name).forward_dynamics(m, q, v, tau), wanted, atol=1e-10)
    idle = mechanism_from(chain(3, couplings=couplings, masses=(1.0, 0.0, 0.0)))
    assert denoc.articulated.singular_joint(idle) == "j1"
    for name in ("denoc", "operators", "network"):
        with pytest.raises(PolybodyError, match="singular at joint 'j1'"):
            formulation(name).forward_dynamics(idle, q, v, tau)


def test_rotors_that_couple_neighbours_are_eliminated_in_groups_as_the_dense_matrix_says():
    m = mechanism_from(geared_motors(7))
    assert [len(g.joints) for g in m.groups] == [2, 2, 2, 1]
    q, v, tau = np.random.default_rng(1).normal(size=(3, m.nv))
    phi = tau + joint_passive_forces(m, q, v) - poincare.bias_forces(m, q, v)
    wanted = np.linalg.solve(poincare.mass_matrix(m, q), phi)
    for name in ("denoc", "operators"):
        np.testing.assert_allclose(formulation(name).forward_dynamics(m, q, v, tau), wanted, atol=1e-9 * scale(wanted))
    U, D = denoc.udu(m, q)
    np.testing.assert_allclose(U @ D @ U.T, poincare.mass_matrix(m, q), atol=1e-11)


def test_groups_span_what_lies_between_their_members_and_overlapping_ones_are_one():
    spans = mechanism_from(chain(8, couplings=[Coupling("j5", "j2"), Coupling("j7", "j6")])).groups
    assert [g.joints for g in spans] == [(0,), (1,), (2, 3, 4, 5), (6, 7)]
    merged = mechanism_from(chain(8, couplings=[Coupling("j5", "j2"), Coupling("j6", "j4")])).groups
    assert [(g.base, g.joints) for g in merged] == [(-1, (0,)), (0, (1,)), (1, (2, 3, 4, 5, 6)), (6, (7,))]
    assert merged[2].slots == (2, 3, 4)


@pytest.mark.parametrize("seed", range(6))
def test_networks_of_followers_move_by_gears_that_exert_the_coupling_forces(seed):
    m, q, v, a, _ = coupled_state(1100 + seed, most=6)
    tau = denoc.inverse_dynamics(m, q, v, a)
    net, index = network_of(m), [j.name for j in m.independent_joints]
    answer = net.solve(q, v, forces=tau)
    found = np.concatenate([answer.accelerations[name] for name in index])
    np.testing.assert_allclose(found, a, atol=1e-8 * scale(a, tau))
    gears = [answer.gears[f"{name} gear"] for name in m.followers]
    np.testing.assert_allclose(gears, coupling_forces(m, q, v, a), atol=1e-8 * scale(tau))
    back = net.solve(q, v, accelerations={j.name: a[j.v] for j in m.independent_joints}).forces
    np.testing.assert_allclose(np.concatenate([back[name] for name in index]), tau, atol=1e-8 * scale(tau))


def test_a_follower_inside_a_loop_moves_alike_in_the_network_and_by_multipliers():
    """A five-bar whose second crank follows the first: mobility 1 in place of 2."""
    d = pb.load("five-bar").description
    d = replace(d, couplings=(Coupling(FIVE_BAR[1], FIVE_BAR[0], -0.8, 0.3),),
                joints=tuple(replace(j, limits=None) for j in d.joints))
    m = mechanism_from(d)
    system = constraints_of(m)

    def functions(q):
        return system.residual(q), system.jacobian(q)

    problem = bounded_problem(m, functions, lambda q, x: integrate(m, q, x), [], False)
    q, gap = descend(problem, np.array([0.6, 0.5, 0.8]))
    assert gap < 1e-11
    J = system.jacobian(q)
    _, s, Vt = np.linalg.svd(J)
    Z = Vt[np.sum(s > 1e-9 * s[0]) :].T
    assert Z.shape == (m.nv, 1)
    v, tau = 1.5 * Z[:, 0], np.random.default_rng(0).normal(size=m.nv)
    net = network_of(m)
    answer = net.solve(q, v, forces=tau)
    found = np.concatenate([answer.accelerations[j.name] for j in m.independent_joints])
    beta = -np.linalg.pinv(J) @ system.bias(q, v)
    for name in formulations():
        one = formulation(name)
        M, h = one.mass_matrix(m, q), tau + joint_passive_forces(m, q, v) - one.bias_forces(m, q, v)
        wanted = beta + Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ (h - M @ beta))
        np.testing.assert_allclose(found, wanted, atol=1e-8 * scale(wanted), err_msg=name)
    closed = net.close({j.name: q[j.q] + 0.01 for j in m.independent_joints}, hold=[FIVE_BAR[0]])
    assert closed[FIVE_BAR[1]][0] == pytest.approx(-0.8 * closed[FIVE_BAR[0]][0] + 0.3)


def test_gears_that_make_no_sense_are_refused_by_name():
    m = mechanism_from(chain(4, couplings=[Coupling("j1", "j0", 2.0, 0.1)]))
    net = network_of(m)
    for wrong, said in (
        (("g", "j1", "j2", 1), "'j1' follows already, by 'j1 gear'"),
        (("g", "j2", "j1", 1), "'j1' follows a joint itself"),
        (("g", "j0", "j2", 1), "'j0' leads a joint itself"),
        (("g", "j9", "j2", 1), "'j9', which does not exist"),
    ):
        with pytest.raises(InputError, match=said):
            net.gear(*wrong)
    with pytest.raises(InputError, match="off what gear 'j1 gear' requires"):
        net.solve({"j0": 0.2, "j1": 0.2, "j2": 0.0, "j3": 0.0}, np.zeros(3))
    assert any("gear j1 gear: v(j1) = k v(j0)" in line for line in terminal_equations(net, net.graph()))


def test_many_random_followers_forward_undoes_inverse():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        description = with_followers(rng, random_tree(rng, 9, motors=0.5), most=6)
        m = mechanism_from(replace(description, springs=()))
        q = np.concatenate([joint.model.random(rng) for joint in m.independent_joints])
        v, a = rng.normal(size=(2, m.nv))
        tau = denoc.inverse_dynamics(m, q, v, a)
        for one in (denoc, operators):
            np.testing.assert_allclose(one.forward_dynamics(m, q, v, tau), a, atol=1e-8 * scale(a, tau))
