"""Influence coefficients, dynamic arrays and hybrid dynamics of models with loops: identities on closed states."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from closed_states import closed_state, neighbour

Array = np.ndarray
MACHINES = ["four-bar", "five-bar", "slider-crank", "bricard", "3-rrr", "stewart"]


def agree(found: Array, wanted: Array, tolerance: float) -> None:
    np.testing.assert_allclose(found, wanted, atol=tolerance * (1 + np.abs(wanted).max()), rtol=0)


@pytest.mark.parametrize("name", MACHINES)
def test_coefficients_of_joints_give_closed_motions_and_their_own_derivatives(name):
    """J G = 0, J(u̇ᵀHu̇) + γ = 0; H and D are derivatives of G and H along the loops."""
    model, q, v = closed_state(name)
    found = model.constraints.joint_influence(q, 3)
    u = list(model.constraints.indices(model.constraints.independent))
    agree(found.velocity(v[u]), v, 1e-9)
    J, gamma = model.constraints.jacobian(q), model.constraints.bias(q, v)
    assert found.H is not None
    assert found.D is not None
    curved = np.einsum("imn,m,n->i", found.H, v[u], v[u])
    assert np.abs(J @ curved + gamma).max() < 1e-9 * (1 + np.abs(gamma).max())
    h = 1e-4
    for k in range(len(u)):
        step = h * found.G[:, k]
        here = [model.constraints.joint_influence(neighbour(model, q, s * step, v[u], u)[0]) for s in (-2, -1, 1, 2)]
        for known, rate in (("G", found.H[:, k]), ("H", found.D[:, k])):
            a, b, c, d = (getattr(x, known) for x in here)
            agree(rate, (8 * (c - b) - (d - a)) / (12 * h), 1e-6)


@pytest.mark.parametrize(("name", "frame"), [("five-bar", "A"), ("3-rrr", "hand"), ("stewart", "platform")])
def test_coefficients_of_frames_over_independent_coordinates_give_the_trees_motion(name, frame):
    model, q, v = closed_state(name)
    u = list(model.constraints.indices(model.constraints.independent))
    rng = np.random.default_rng(0)
    ud, udd, uddd = v[u], rng.normal(size=len(u)), rng.normal(size=len(u))
    joints = model.constraints.joint_influence(q, 3)
    a, jerk = joints.acceleration(ud, udd), joints.jerk(ud, udd, uddd)
    ours = model.coefficients.influence(q, frame, independent=model.constraints.independent)
    tree = model.coefficients.influence(q, frame)
    assert ours.G.shape == (6, len(u))
    agree(ours.velocity(ud), tree.velocity(v), 1e-9)
    agree(ours.acceleration(ud, udd), tree.acceleration(v, a), 1e-9)
    agree(ours.jerk(ud, udd, uddd), tree.jerk(v, a, jerk), 1e-8)
    com = model.coefficients.center_of_mass(q, 2, independent=model.constraints.independent)
    agree(com.velocity(ud), model.coefficients.center_of_mass(q, 2).velocity(v), 1e-9)


@pytest.mark.parametrize("name", MACHINES)
def test_dynamic_arrays_give_the_forces_of_the_motion(name):
    """Gᵀ ID(q, G u̇, G ü + u̇ᵀHu̇) = I* ü + u̇ᵀP*u̇ − load − damping, one state and a batch."""
    model, q, v = closed_state(name)
    found = model.coefficients.reduced_dynamics(np.stack([q, model.neutral()]))
    u = list(model.constraints.indices(model.constraints.independent))
    udd = np.random.default_rng(3).normal(size=len(u))
    I, P = model.coefficients.dynamic_arrays(q)
    agree(I, found.I[0], 1e-12)
    agree(I, model.mass_matrix(q), 1e-12)
    a = model.constraints.joint_influence(q).acceleration(v[u], udd)
    needed = found.G[0].T @ (model.tree.inverse_dynamics(q, v, a) + model.tree.passive_forces(q, v)
                             - model.tree.passive_forces(q, np.zeros(model.nv)))
    agree(I @ udd + np.einsum("imn,m,n->i", P, v[u], v[u]) - found.load[0], needed, 1e-9)


@pytest.mark.parametrize("name", ["five-bar", "slider-crank", "stewart", "walking-machine"])
def test_hybrid_dynamics_is_consistent_with_forward_dynamics(name):
    """What the active columns exert, given to forward dynamics, makes the motion they were given."""
    model, q, v = closed_state(name)
    rng = np.random.default_rng(4)
    free = model.forward_dynamics(q, v, rng.normal(size=model.nv))
    tau = np.where(model.actuation.active, 0.0, 0.3 * rng.normal(size=model.nv))
    a, forces = model.actuation.hybrid_dynamics(q, v, free, tau)
    agree(a[model.actuation.active], free[model.actuation.active], 1e-8)
    agree(forces[~model.actuation.active], tau[~model.actuation.active], 1e-12)
    agree(model.forward_dynamics(q, v, forces), a, 1e-7)
    one = model.mechanism.joints[0].name  # a single driven joint, the rest swings
    a, forces = model.actuation.hybrid_dynamics(q, v, free, np.zeros(model.nv), active=[one])
    mask = model.actuation.mask([one])
    agree(a[mask], free[mask], 1e-8)
    agree(model.forward_dynamics(q, v, forces), a, 1e-7)
    agree(model.actuation.active_forces(q, v, a, active=[one]), forces, 1e-7)


def test_hybrid_dynamics_takes_batches_and_refuses_accelerations_that_break_the_loops():
    model, q, v = closed_state("walking-machine")
    a = model.forward_dynamics(q, v, np.ones(model.nv))
    many = model.actuation.hybrid_dynamics(np.stack([q, q]), v, np.stack([a, a]))
    for both, one in zip(many, model.actuation.hybrid_dynamics(q, v, a), strict=True):
        agree(both[1], one, 1e-12)
    with pytest.raises(pb.InputError, match=r"are inconsistent with the loops.*assemble_acceleration"):
        model.actuation.hybrid_dynamics(q, v, np.arange(model.nv), active=np.ones(model.nv, dtype=bool))


def test_joints_of_a_tree_follow_nothing():
    model, rng = pb.load("stanford-arm"), np.random.default_rng(0)
    q, u_dot, u_ddot = model.neutral(), *rng.normal(size=(2, model.nv))
    v, a = model.constraints.joint_motion(q, u_dot, u_ddot)
    assert np.array_equal(v, u_dot)
    assert np.array_equal(a, u_ddot)
    assert np.array_equal(model.constraints.assemble_dependent(q), q)
    assert model.constraints.joint_influence(q, 3).D.shape == (model.nv,) * 4
    found = model.constraints.motion_derivatives(q, v, v)
    for one, other in zip(found, model.forward_dynamics_derivatives(q, v, v), strict=False):
        assert np.array_equal(one, other)
    assert np.array_equal(found[3], np.eye(model.nv))
    assert not found[4].any()


def test_operators_of_a_model_with_loops_say_what_to_use_instead():
    model = pb.load("five-bar")
    with pytest.raises(pb.PolybodyError, match=r"model.tree.coefficients.operators.*hybrid_dynamics"):
        model.coefficients.operators(model.neutral(), np.zeros(4))
