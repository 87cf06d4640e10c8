"""Operators, hybrid dynamics and active forces on random free-floating and mixed trees."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from mechanisms import random_tree
from polybody.algebra.domains import FLOAT
from polybody.algebra.jets import JetDomain
from polybody.errors import InputError
from polybody.formulations import denoc, operators
from polybody.mechanism import kinematics, mechanism_from
from polybody.mechanism.energy import momentum
from polybody.model import Model

JETS = JetDomain(FLOAT)
KINDS = ("revolute", "prismatic", "spherical", "universal", "screw")


def free_floating(seed: int, n: int = 6, **options):
    rng = np.random.default_rng(seed)
    options = {"floating_base": True, "gravity": (0, 0, 0), "springs": 0, "stiffness": 0, "damping": 0} | options
    model = Model(mechanism_from(random_tree(rng, n, KINDS, armature=0.0, **options)))
    q = model.random_configuration(rng)
    v, tau = rng.normal(size=(2, model.nv))
    return model, q, v, tau, rng


def near(actual, wanted, tolerance):
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=tolerance * (1 + np.abs(wanted).max(initial=0)))


@pytest.mark.parametrize("seed", range(3))
def test_operators_as_matrices_give_the_coefficients_of_the_paper(seed):
    """M_a = ΦᵀXᵀM_qXΦ, C_a = ΦᵀXᵀ(b + M_q c), C_p = X_bᵀ(b + M_q c) + b_b … with dense products."""
    model, q, v, tau, _ = free_floating(seed, gravity=(1.0, -2.0, 3.0))
    o = model.coefficients.operators(q, v, tau)
    link = o.X @ o.Phi
    near(link.T @ o.M_q @ link, o.M_a, 1e-12)
    near(o.X_b.T @ o.M_q @ link, o.M_ap, 1e-12)
    near(o.M_b + o.X_b.T @ o.M_q @ o.X_b, o.M_p, 1e-12)
    near(link.T @ (o.b + o.M_q @ o.c), o.C_a, 1e-12)
    near(o.X_b.T @ (o.b + o.M_q @ o.c) + o.b_b, o.C_p, 1e-12)
    near(o.B @ link, o.J_a, 1e-12)
    near(o.B @ o.X_b, o.J_p, 1e-12)
    near(o.X_b @ o.V_b + link @ v[o.active], o.V, 1e-12)
    near(o.T_hat, tau[o.active] - o.M_ap.T @ np.linalg.solve(o.M_p, tau[o.passive]), 1e-11)
    np.testing.assert_array_equal(o.D, o.B.T)
    assert o.base == model.body_names[0]


@pytest.mark.parametrize("seed", range(6))
def test_velocity_products_are_the_rate_of_the_link_twists_at_zero_acceleration(seed):
    model, q, v, _, _ = free_floating(seed)
    m = model.mechanism
    moved = JETS.lift(q, kinematics.rate(m, q, v))
    rates = np.concatenate([JETS.rates(V) for V in kinematics.body_twists(m, moved, JETS.lift(v), domain=JETS)])
    near(model.coefficients.operators(q, v).c, rates[6:], 1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_generalised_inertia_is_the_schur_complement_of_the_whole_mass_matrix(seed):
    """Section 10: the paper's model is Jain & Rodriguez's, whose blocks are those of the whole mass matrix."""
    model, q, v, _, _ = free_floating(seed)
    o = model.coefficients.operators(q, v)
    whole = denoc.mass_matrix(model.mechanism, q)
    near(np.block([[o.M_p, o.M_ap], [o.M_ap.T, o.M_a]]), whole, 1e-12)
    schur = np.linalg.inv(np.linalg.inv(whole)[6:, 6:])
    near(o.M, schur, 1e-11)
    bias = denoc.bias_forces(model.mechanism, q, v)
    near(o.C, bias[6:] - whole[6:, :6] @ np.linalg.solve(whole[:6, :6], bias[:6]), 1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_generalised_jacobian_equals_the_momentum_derivation(seed):
    """With zero momentum the base follows v_b = −J_D v_a and the end effectors J v_a (Umetani & Yoshida)."""
    model, q, v, _, rng = free_floating(seed)
    m, o = model.mechanism, model.coefficients.operators(q, v)
    v_a = rng.normal(size=model.nv - 6)
    columns = np.array([momentum(m, q, e) for e in np.eye(model.nv)]).T
    v_b = -np.linalg.solve(columns[:, :6], columns[:, 6:] @ v_a)
    near(-o.J_D @ v_a, v_b, 1e-11)
    whole = np.concatenate([v_b, v_a])
    tips = np.concatenate([model.jacobian(q, name, axes="frame") @ whole for name in o.frames])
    near(o.J @ v_a, tips, 1e-11)
    # ½ v_aᵀ M v_a is the kinetic energy of the motion without momentum.
    near(v_a @ o.M @ v_a / 2, model.energy(q, whole)[0], 1e-11)


@pytest.mark.parametrize("seed", range(2))
def test_end_effector_mobility_is_that_of_the_whole_system_whatever_is_active(seed):
    model, q, v, _, rng = free_floating(seed)
    mask = rng.random(model.nv) < 0.6
    J = np.concatenate([model.jacobian(q, n, axes="frame") for n in model.coefficients.operators(q, v).frames])
    wanted = J @ np.linalg.solve(denoc.mass_matrix(model.mechanism, q), J.T)
    near(model.coefficients.operators(q, v).H, wanted, 1e-10)
    near(model.coefficients.operators(q, v, active=mask).H, wanted, 1e-10)


def test_unified_equation_of_motion_gives_the_active_accelerations():
    model, q, v, tau, _ = free_floating(11, springs=1, stiffness=0.5, damping=0.5, gravity=(0, 0, -9.81))
    o = model.coefficients.operators(q, v, tau)
    a = denoc.forward_dynamics(model.mechanism, q, v, tau)
    near(o.M @ a[o.active] + o.C, o.T_hat, 1e-11)
    near(np.linalg.solve(o.M_p, o.T_p - o.C_p) - o.J_D @ a[o.active], a[o.passive], 1e-10)


def test_hybrid_dynamics_with_mixed_columns_of_one_joint_in_batches():
    model, q, v, tau, rng = free_floating(3)
    q, (v, tau) = model.random_configuration(rng, size=5), rng.normal(size=(2, 5, model.nv))
    a = model.forward_dynamics(q, v, tau)
    mask = np.zeros(model.nv, dtype=bool)
    mask[[1, 4, *range(7, model.nv, 2)]] = True  # two columns of the floating joint are driven, four are not
    full_a, full_tau = model.actuation.hybrid_dynamics(q, v, a[:, mask], tau[:, ~mask], active=mask)
    near(full_a, a, 1e-9)
    near(full_tau, tau, 1e-9)
    wrench = {model.body_names[-1]: rng.normal(size=6)}
    a = model.forward_dynamics(q, v, tau, wrenches=wrench)
    near(model.actuation.hybrid_dynamics(q, v, a, tau, active=mask, wrenches=wrench)[1], tau, 1e-9)


def test_batched_operators_equal_those_of_each_state():
    """Every operator by name: stacked over the batch from one kernel, against the text state by state."""
    model, _, _, _, rng = free_floating(4, gravity=(1.0, -2.0, 3.0))
    q, (v, tau) = model.random_configuration(rng, size=(2, 3)), rng.normal(size=(2, 2, 3, model.nv))
    many = model.coefficients.operators(q, v, tau)
    chosen = operators.split(model.mechanism)
    for index in ((0, 1), (1, 2)):
        one = operators.structure(model.mechanism, q[index], v[index], chosen)
        parts = operators.coefficients(model.mechanism, q[index], v[index], tau[index], chosen)
        for found in (one, parts):
            for field in fields(found):
                near(getattr(many, field.name)[index], getattr(found, field.name), 1e-11)
    shared = model.coefficients.operators(q, v[0, 0])  # one velocity for all configurations
    assert shared.X.shape[:2] == (2, 3)
    near(shared.b[1, 1], operators.structure(model.mechanism, q[1, 1], v[0, 0], chosen).b, 1e-11)
    assert model.coefficients.operators(q[:0], v[:0]).X.shape[0] == 0


def test_fixed_base_has_no_passive_columns_and_its_jacobian_is_the_arm_s():
    rng = np.random.default_rng(0)
    model = Model(mechanism_from(random_tree(rng, 4, ("revolute",), branching=0.0)))
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    o = model.coefficients.operators(q, v)
    assert o.base == "world"
    assert o.passive.size == 0
    near(o.M, model.mass_matrix(q), 1e-12)
    near(o.J, model.jacobian(q, o.frames[0], axes="frame"), 1e-12)
    near(o.X @ o.Phi @ v, o.V, 1e-12)


def test_a_motion_that_a_passive_coordinate_cannot_make_is_refused_by_name():
    model, q, v, tau, _ = free_floating(5)
    tau[:6] = 0.0
    a = model.forward_dynamics(q, v, tau)
    near(model.actuation.active_forces(q, v, a), tau, 1e-8)
    a[2] += 10.0
    with pytest.raises(InputError, match=r"joint 'root_joint', column \d of 6.*passive"):
        model.actuation.active_forces(q, v, a)
    # In a batch each state is judged by its own size, and named.
    heavy = model.forward_dynamics(q, v, 1e12 * tau)
    slightly = model.forward_dynamics(q, v, tau) + np.eye(model.nv)[4] * 1e-3
    with pytest.raises(InputError, match=r"'root_joint', column \d of 6\) is passive: this motion in state \(1,\)"):
        model.actuation.active_forces(q, v, np.array([heavy, slightly]))


def test_active_columns_are_joint_names_or_booleans():
    model, *_ = free_floating(6)
    last = model.joint_names[-1]
    assert model.actuation.mask([last]).sum() == model.mechanism.joints[-1].nv
    with pytest.raises(InputError, match="booleans"):
        model.actuation.mask([True])
    with pytest.raises(InputError, match="no joint"):
        model.actuation.mask(["elbow"])
    with pytest.raises(InputError, match="fixed to the base"):
        model.coefficients.operators(model.neutral(), np.zeros(model.nv), frames=[model.body_names[0]])
