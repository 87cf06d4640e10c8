"""float32 arrays in, float32 answers out: the rule, its exceptions, and how near they are to float64."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.errors import InputError

SINGLE = np.float32
EPSILON = float(np.finfo(SINGLE).eps)


@pytest.fixture(scope="module")
def arm():
    build = pb.Builder("arm on a ball")
    build.body("upper", 2.0, com=(0, 0, 0.2), inertia=(0.02, 0.03, 0.01))
    build.body("lower", 1.0, com=(0.1, 0, 0.2), inertia=(0.02, 0.03, 0.01))
    build.body("hand", 0.5, com=(0, 0, 0.1), inertia=(0.002, 0.003, 0.001))
    build.joint("ball", "spherical", "world", "upper")
    build.joint("elbow", "revolute", "upper", "lower", origin=shifted(0.4), axis=(0, 1, 0), damping=0.1)
    build.joint("slide", "prismatic", "lower", "hand", origin=shifted(0.3), stiffness=40.0)
    return build.model()


def shifted(z):
    origin = np.eye(4)
    origin[2, 3] = z
    return origin


def states(model, count=40, seed=0):
    rng = np.random.default_rng(seed)
    return model.random_configuration(rng, size=count), *rng.normal(size=(2, count, model.nv))


CALLS = {
    "inverse_dynamics": 3, "forward_dynamics": 3, "mass_matrix": 1, "inverse_mass_matrix": 1, "coriolis_matrix": 2,
    "bias_forces": 2, "gravity_forces": 1, "passive_forces": 2, "energy": 2, "momentum": 2, "center_of_mass": 1,
    "poses": 1, "inverse_dynamics_derivatives": 3, "forward_dynamics_derivatives": 3, "integrate": 2,
}  # fmt: skip


def flat(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", CALLS)
def test_float32_in_gives_float32_out_near_float64(arm, name):
    given = states(arm)[: CALLS[name]]
    wanted = flat(getattr(arm, name)(*given))
    narrow = [x.astype(SINGLE) for x in given]
    for some in (narrow, [x[3] for x in narrow]):
        found = flat(getattr(arm, name)(*some))
        for f, w in zip(found, wanted, strict=True):
            w = w if some is narrow else w[3]
            assert f.dtype == SINGLE
            assert np.abs(f - w).max() <= 300 * EPSILON * max(1.0, np.abs(w).max())


def test_of_a_frame_and_of_two_configurations(arm):
    q, v, a = (x.astype(SINGLE) for x in states(arm))
    found = [
        arm.pose(q, "hand"), arm.jacobian(q, "hand"), arm.jacobian_rate(q, v, "hand"),
        arm.frame_velocity(q, v, "hand"), arm.frame_acceleration(q, v, a, "hand"), arm.difference(q, q[::-1].copy()),
    ]  # fmt: skip
    assert {x.dtype for x in found} == {np.dtype(SINGLE)}


@pytest.mark.parametrize("other", [np.zeros(5), [0.0] * 5, np.zeros(5, dtype=int)], ids=["float64", "list", "int"])
def test_anything_else_among_the_arguments_means_float64(arm, other):
    q, v, _ = states(arm)
    found = arm.inverse_dynamics(q.astype(SINGLE), v.astype(SINGLE), other)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, arm.inverse_dynamics(q.astype(SINGLE).astype(float), v.astype(SINGLE), other))


def test_results_go_into_arrays_of_either_precision(arm):
    q, v, a = (x.astype(SINGLE) for x in states(arm))
    wanted = arm.inverse_dynamics(q, v, a)
    for dtype in (np.float32, np.float64):
        out = np.empty((len(q), arm.nv), dtype)
        assert arm.inverse_dynamics(q, v, a, out=out) is out
        np.testing.assert_array_equal(out, wanted)


def test_wrenches_and_bad_arguments_are_as_in_float64(arm):
    q, v, a = states(arm)
    wrench = {"hand": np.array([0.1, 0.2, 0.3, 4.0, 5.0, 6.0])}
    narrow = [x.astype(SINGLE) for x in (q, v, a)]
    for name in ("inverse_dynamics", "inverse_dynamics_derivatives"):
        found, wanted = (flat(getattr(arm, name)(*x, wrenches=wrench)) for x in (narrow, (q, v, a)))
        for f, w in zip(found, wanted, strict=True):
            assert f.dtype == SINGLE
            assert np.abs(f - w).max() <= 300 * EPSILON * np.abs(w).max()
    bad = narrow[0].copy()
    bad[7, :4] *= 1.001
    with pytest.raises(InputError, match=r"q\[7\]: the quaternion of joint 'ball'"):
        arm.inverse_dynamics(bad, *narrow[1:])
    with pytest.raises(InputError, match="v has shape"):
        arm.bias_forces(narrow[0], narrow[1][:, :-1])


def test_named_formulations_answer_in_float32_from_float64():
    model = pb.load("four-bar")
    q = model.assemble().astype(SINGLE)
    zero = np.zeros(model.nv, SINGLE)
    found = model.forward_dynamics(q, zero, zero, formulation="operators")
    assert found.dtype == SINGLE
    wide = (x.astype(float) for x in (q, zero, zero))
    np.testing.assert_array_equal(found, model.forward_dynamics(*wide, formulation="operators").astype(SINGLE))
    assert model.poses(q).dtype == SINGLE
    assert not any("float32" in name for name in model.engine._kernels)


def test_long_chains_run_rolled_code_of_float32():
    build = pb.Builder("chain")
    for k in range(70):
        build.body(f"b{k}", 1.0, com=(0.05, 0, 0.1), inertia=(0.01, 0.02, 0.03))
        parent = "world" if k == 0 else f"b{k - 1}"
        build.joint(f"j{k}", "revolute", parent, f"b{k}", origin=shifted(0.1), axis=np.eye(3)[k % 3])
    model = build.model()
    given = states(model, 5)
    wanted, found = model.inverse_dynamics(*given), model.inverse_dynamics(*(x.astype(SINGLE) for x in given))
    assert found.dtype == SINGLE
    assert np.abs(found - wanted).max() <= 1e3 * EPSILON * np.abs(wanted).max()
    assert "inverse_dynamics float32" in model.engine._kernels


def test_rollouts_of_float32_states(arm):
    q, v, _ = states(arm)
    for tau in (None, np.ones(arm.nv), lambda t, q, v: -v):
        wanted = pb.rollout(arm, q, v, tau, steps=20)
        found = pb.rollout(arm, q.astype(SINGLE), v.astype(SINGLE), tau, steps=20)
        assert found.q.dtype == found.v.dtype == SINGLE
        assert np.abs(found.q - wanted.q).max() <= 1e-5
        assert np.abs(found.v - wanted.v).max() <= 1e-4 * np.abs(wanted.v).max()


def test_derivatives_of_forward_dynamics_of_many_joints_are_products_with_the_inverse_mass_matrix():
    build = pb.Builder("comb")
    for k in range(18):
        build.body(f"b{k}", 1.0 + 0.1 * k, com=(0.1, 0, 0.02), inertia=(0.02, 0.03, 0.04))
        parent, axis = "world" if k % 6 == 0 else f"b{k - 1}", ((0, 0, 1), (0, 1, 0), (1, 0, 0))[k % 3]
        build.joint(f"j{k}", "revolute", parent, f"b{k}", origin=shifted(0.3), axis=axis, armature=0.1)
    model = build.model()
    given = states(model)
    found = model.forward_dynamics_derivatives(*given)
    at = model.inverse_dynamics_derivatives(*given[:2], model.forward_dynamics(*given))
    inverse = np.linalg.inv(model.mass_matrix(given[0]))
    for part, wanted in zip(found, (-inverse @ at[0], -inverse @ at[1], inverse), strict=True):
        np.testing.assert_allclose(part, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())
    single = model.forward_dynamics_derivatives(*(x.astype(np.float32) for x in given))
    for part, wanted in zip(single, found, strict=True):
        assert part.dtype == np.float32
        assert np.abs(part - wanted).max() < 1e-4 * np.abs(wanted).max()
