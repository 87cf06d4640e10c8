"""Rolled kernels of long chains equal the text, and the switch to them is automatic."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms import random_tree
from polybody.description.records import Body, Description, Joint, frozen_array
from polybody.formulations import denoc
from polybody.mechanism import mechanism_from
from polybody.model import Model
from polybody.model.rolled import rolled_kernel, worth_rolling

AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))


def chain(n: int) -> Model:
    origin = np.eye(4)
    origin[:3, 3] = 0.1, 0.0, 0.3
    bodies, joints = [], []
    for i in range(n):
        inertia = frozen_array(np.diag((2, 3, 1.5)))
        bodies.append(Body(f"b{i}", 1 + 0.1 * (i % 4), frozen_array((0.05, 0.02, 0.15)), inertia))
        parent = "world" if i == 0 else f"b{i - 1}"
        joints.append(
            Joint(f"j{i}", "revolute", parent, f"b{i}", frozen_array(origin), frozen_array(AXES[i % 3]),
                  damping=frozen_array([[0.1 * i]]), armature=frozen_array([0.01]))
        )  # fmt: skip
    return Model(mechanism_from(Description("chain", bodies=tuple(bodies), joints=tuple(joints))))


@pytest.mark.parametrize("seed", range(2))
def test_rolled_equals_text_on_random_trees_of_every_kind(seed):
    rng = np.random.default_rng(seed)
    model = Model(mechanism_from(random_tree(rng, 8, springs=0, stiffness=0)))
    q, v, a = model.random_configuration(rng, size=3), *rng.normal(size=(2, 3, model.nv))
    for name, tolerance in (("inverse_dynamics", 1e-12), ("forward_dynamics", 1e-9)):
        rolled = rolled_kernel(model.engine.reduced_mechanism, name)(q, v, a)
        reference = getattr(model, name)(q, v, a, formulation="denoc")
        np.testing.assert_allclose(rolled, reference, rtol=0, atol=tolerance * np.abs(reference).max())


def test_a_chain_of_two_hundred_links_is_rolled_and_right():
    model = chain(200)
    assert worth_rolling(model.engine.reduced_mechanism)
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 2, 200))
    tau = model.inverse_dynamics(q, v, a)
    reference = np.array([denoc.inverse_dynamics(model.mechanism, *s) for s in zip(q, v, a, strict=True)])
    np.testing.assert_allclose(tau, reference, rtol=0, atol=1e-11 * np.abs(reference).max())
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), a, atol=1e-7)
    M = model.mass_matrix(q[0])
    np.testing.assert_allclose(M, M.T, atol=1e-10 * np.abs(M).max())
    change = tau[0] - model.inverse_dynamics(q[0], v[0], 0 * a[0])
    np.testing.assert_allclose(M @ a[0], change, atol=1e-9 * np.abs(M).max())
    kinetic, _ = model.energy(q[0], v[0])
    np.testing.assert_allclose(v[0] @ M @ v[0] / 2, kinetic, rtol=1e-10)
    assert model.pose(q[0], "b199").shape == (4, 4)


@pytest.mark.parametrize("seed", range(2))
def test_rolled_derivatives_equal_straight_ones(seed):
    rng = np.random.default_rng(seed)
    model = Model(mechanism_from(random_tree(rng, 5, springs=0, stiffness=0)))
    q, v, a = model.random_configuration(rng, size=2), *rng.normal(size=(2, 2, model.nv))
    straight = model.inverse_dynamics_derivatives(q, v, a)
    for one, other in zip(model._rolled_derivatives(q, v, a), straight, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11 * (1 + np.abs(other).max()))


def test_a_long_chain_has_derivatives():
    model = chain(130)
    q, v, a = np.random.default_rng(0).normal(size=(3, 130))
    dq, dv, da = model.inverse_dynamics_derivatives(q, v, a)
    np.testing.assert_allclose(da, model.mass_matrix(q), atol=1e-9 * np.abs(da).max())
    h, d = 1e-6, np.random.default_rng(1).normal(size=130)
    for matrix, move in ((dq, lambda s: (q + s * d, v, a)), (dv, lambda s: (q, v + s * d, a))):
        slope = (model.inverse_dynamics(*move(h)) - model.inverse_dynamics(*move(-h))) / (2 * h)
        np.testing.assert_allclose(matrix @ d, slope, atol=1e-6 * np.abs(slope).max())


def test_short_and_varied_robots_stay_straight_lines():
    assert not worth_rolling(chain(8).engine.reduced_mechanism)
