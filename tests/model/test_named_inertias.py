"""Saha's M̃, M̂, ψ and Swain & Morris' G (26), V̇_open (44) by name."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from mechanisms import random_tree
from polybody.formulations.denoc.articulated import udu
from polybody.formulations.denoc.matrices import denoc_matrices, generalized_mass
from polybody.mechanism import mechanism_from
from polybody.model import Model


def near(actual, wanted, tolerance):
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=tolerance * (1 + np.abs(wanted).max(initial=0)))


def floating(seed):
    rng = np.random.default_rng(seed)
    kinds = ("revolute", "prismatic", "spherical", "screw")
    model = Model(mechanism_from(random_tree(rng, 5, kinds, floating_base=True, armature=0.0)))
    q = model.random_configuration(rng)
    return model, q, *rng.normal(size=(2, model.nv))


@pytest.mark.parametrize("seed", range(3))
def test_composite_and_articulated_bodies_are_those_of_the_paper(seed):
    model, q, v, tau = floating(seed)
    o = model.coefficients.operators(q, v, tau)
    m = model.mechanism
    N_l, N_d = denoc_matrices(m, q)
    whole = N_l.T @ generalized_mass(m) @ N_l
    n = len(m.bodies)
    for i in range(n):  # (22): the diagonal blocks of NₗᵀMNₗ are the composite bodies
        near(o.M_tilde[i], whole[6 * i : 6 * i + 6, 6 * i : 6 * i + 6], 1e-12)
    U, D = udu(m, q)
    near(o.m_hat, D, 1e-12)
    near(U @ o.m_hat @ U.T, model.mass_matrix(q), 1e-11)
    for i, joint in enumerate(m.joints):  # (47), (48), and what a locked-free body may not exceed
        H = N_d[6 * i : 6 * i + 6, joint.v]
        near(o.psi[:, joint.v] @ o.m_hat[joint.v, joint.v], o.M_hat[i] @ H, 1e-11)
        near(o.m_hat[joint.v, joint.v], H.T @ o.M_hat[i] @ H, 1e-11)
        assert np.linalg.eigvalsh(o.M_tilde[i] - o.M_hat[i])[0] > -1e-9 * np.abs(o.M_tilde[i]).max()


@pytest.mark.parametrize("armature", [0.0, 0.3])
def test_articulated_body_is_the_schur_complement_of_the_free_subtree(armature):
    """M̂_i from dense matrices: the inertia of [V_i; θ̇ beyond i], its joints eliminated; ψ_i of (47), (48) from it."""
    rng = np.random.default_rng(4)
    kinds = ("revolute", "prismatic", "spherical", "screw")
    model = Model(mechanism_from(random_tree(rng, 6, kinds, floating_base=True, armature=armature)))
    q = model.random_configuration(rng)
    o, m = model.coefficients.operators(q, np.zeros(model.nv)), model.mechanism
    N_l, N_d = denoc_matrices(m, q)
    mass, N = generalized_mass(m), N_l @ N_d
    rotors = model.mass_matrix(q) - N.T @ mass @ N  # what the joints themselves store
    assert bool(armature) == bool(np.abs(rotors).max() > 1e-9)
    for i, joint in enumerate(m.joints):
        block = slice(6 * i, 6 * i + 6)
        carried = N_l[:, block]  # bodies that move with body i, rigidly
        beyond = [x for k, other in enumerate(m.joints) if k != i and np.abs(N_l[6 * k : 6 * k + 6, block]).any()
                  for x in range(other.v.start, other.v.stop)]  # fmt: skip
        free = N[:, beyond]
        wanted = carried.T @ mass @ carried
        if beyond:
            across = free.T @ mass @ carried
            own = free.T @ mass @ free + rotors[np.ix_(beyond, beyond)]
            wanted = wanted - across.T @ np.linalg.solve(own, across)
        near(o.M_hat[i], wanted, 1e-10)
        H = N_d[block, joint.v]
        pivot = H.T @ wanted @ H + rotors[joint.v, joint.v]
        near(o.psi[:, joint.v], np.linalg.solve(pivot, (wanted @ H).T).T, 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_g_and_the_open_acceleration_are_equations_26_and_44(seed):
    model, q, v, tau = floating(seed)
    o = model.coefficients.operators(q, v, tau)
    near(np.linalg.inv(o.G), np.linalg.inv(o.M_q) + o.X_b @ np.linalg.inv(o.M_b) @ o.X_b.T, 1e-8)
    # (26) without loads: what is left of the base's acceleration is J_D (37)
    near(np.linalg.solve(o.M_b, o.X_b.T @ o.G @ o.X @ o.Phi), o.J_D, 1e-9)
    a = model.forward_dynamics(q, v, tau)
    for k, frame in enumerate(o.frames):
        T = model.pose(q, frame)[:3, :3]
        V = model.frame_velocity(q, v, frame, axes="frame")
        world = model.frame_acceleration(q, v, a, frame)
        # the rate of the twist's numbers
        body = np.concatenate([T.T @ world[:3], T.T @ world[3:] - np.cross(V[:3], V[3:])])
        near(o.V_dot_open[6 * k : 6 * k + 6], body, 1e-9)
    many = model.coefficients.operators(np.stack([q, q]), v, tau)
    near(many.G[1], o.G, 1e-12)
    near(many.V_dot_open[1], o.V_dot_open, 1e-12)


def test_on_a_fixed_base_g_is_the_links_own_inertia():
    model = pb.load("puma560")
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 6))
    o = model.coefficients.operators(q, v)
    np.testing.assert_array_equal(o.G, o.M_q)
    assert "V_dot_open" in dir(o)
    assert o.psi.shape == (6, 6)
    with pytest.raises(AttributeError, match=r"no operator 'K'; available:.*M_tilde"):
        _ = o.K
