"""Several quantities in one call equal each by itself, and cost less."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.errors import InputError
from polybody.quantities.table import QUANTITIES

ASKED = ["inverse_dynamics", "mass_matrix", "energy", "bias_forces", "inverse_dynamics_derivatives"]


def states(model, count=7):
    rng = np.random.default_rng(0)
    return model.random_configuration(rng, size=count), *rng.normal(size=(3, count, model.nv))


def same(found, wanted, tolerance=1e-12):
    for f, w in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, wanted)), strict=True):
        np.testing.assert_allclose(f, w, rtol=tolerance, atol=tolerance * np.abs(w).max())


def test_each_answer_is_that_of_its_own_call():
    model = pb.load("puma560")
    q, v, a, tau = states(model)
    frame = model.frame_names[-1]
    names = [*ASKED, "forward_dynamics", f"jacobian:{frame}", "poses"]
    found = model.compute(q, v, a, tau=tau, quantities=names)
    assert list(found) == names
    own = {"inverse_dynamics": (q, v, a), "mass_matrix": (q,), "energy": (q, v), "bias_forces": (q, v),
           "inverse_dynamics_derivatives": (q, v, a), "forward_dynamics": (q, v, tau), "poses": (q,)}  # fmt: skip
    for name, arguments in own.items():
        same(found[name], getattr(model, name)(*arguments))
    same(found[f"jacobian:{frame}"], model.jacobian(q, frame))
    one = model.compute(q[2], v[2], quantities=["energy", "center_of_mass"])
    same(one["energy"], model.energy(q[2], v[2]))
    assert one["center_of_mass"].shape == (3,)


def test_what_they_have_in_common_is_computed_once():
    model = pb.load("puma560")
    asked = [QUANTITIES[name] for name in ("inverse_dynamics", "mass_matrix", "bias_forces")]
    together = model.engine.together(asked)
    assert together is model.engine.together(asked)
    assert together.nodes < 0.85 * sum(model.engine.kernel(one).nodes for one in asked)


def test_float32_parameters_and_quaternions_go_the_same_way():
    build = pb.Builder("ball")
    build.body("b", 2.0, com=(0, 0, 0.2), inertia=(0.02, 0.03, 0.01))
    build.joint("ball", "spherical", "world", "b")
    model = build.model()
    q, v, a, _ = states(model)
    found = model.compute(*(x.astype(np.float32) for x in (q, v, a)), quantities=["inverse_dynamics", "energy"])
    assert found["inverse_dynamics"].dtype == found["energy"][0].dtype == np.float32
    same(found["inverse_dynamics"], model.inverse_dynamics(q, v, a), 1e-5)
    with pytest.raises(InputError, match="quaternion of joint 'ball'"):
        model.compute(1.1 * q, v, quantities=["energy", "bias_forces"])
    varied = model.with_parameters("b.mass")
    heavy = varied.compute(q, v, a, quantities=["inverse_dynamics", "mass_matrix"], parameters=[4.0])
    same(heavy["inverse_dynamics"], varied.inverse_dynamics(q, v, a, parameters=[4.0]))


def test_models_with_loops_answer_one_by_one():
    model = pb.load("four-bar")
    q = model.assemble()
    v = model.assemble_velocity(q, np.ones(model.nv))
    found = model.compute(q, v, quantities=["mass_matrix", "bias_forces", "energy"])
    same(found["mass_matrix"], model.mass_matrix(q))
    same(found["energy"], model.energy(q, v))


def test_what_is_missing_or_unknown_is_named():
    model = pb.load("puma560")
    q = model.neutral()
    with pytest.raises(InputError, match=r"inverse_dynamics takes \(q, v, a\), and v is not given"):
        model.compute(q, quantities=["mass_matrix", "inverse_dynamics"])
    with pytest.raises(InputError, match=r"no quantity 'mass_matrx' .did you mean 'mass_matrix'"):
        model.compute(q, quantities=["mass_matrx"])
    for names in ([], "mass_matrix"):
        with pytest.raises(InputError, match="expected a list of names"):
            model.compute(q, quantities=names)
