"""Compiled kernels equal the text they were traced from, on random trees with every joint kind; batches; errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from mechanisms import random_body, random_tree
from polybody.description.records import Body, Description, Joint
from polybody.errors import InputError, PolybodyError
from polybody.formulations import denoc
from polybody.mechanism import kinematics, mechanism_from
from polybody.mechanism.energy import energy, momentum
from polybody.mechanism.reduction import reduced
from polybody.model import Model
from polybody.quantities.table import QUANTITIES


def model_of(seed: int, n: int = 5, **options) -> tuple[Model, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return Model(mechanism_from(random_tree(rng, n, **options))), rng


def states(model: Model, rng: np.random.Generator, *shape: int):
    q = model.random_configuration(rng, size=shape) if shape else model.random_configuration(rng)
    return (q, *rng.normal(size=(2, *shape, model.nv)))


def assert_close(ours, reference, tolerance: float = 1e-11) -> None:
    np.testing.assert_allclose(ours, reference, rtol=0, atol=tolerance * (1 + np.abs(reference).max(initial=0)))


@pytest.mark.parametrize("springs", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_compiled_equals_interpreted(seed, springs):
    model, rng = model_of(seed, springs=springs)
    m = model.mechanism
    q, v, a = states(model, rng, 3)
    loads = {m.frames[-1].name: rng.normal(size=(3, 6)), m.bodies[0].name: rng.normal(size=6)}
    answers = {
        "inverse": (model.inverse_dynamics(q, v, a), lambda q, v, a: denoc.inverse_dynamics(m, q, v, a)),
        "forward": (model.forward_dynamics(q, v, a), lambda q, v, a: denoc.forward_dynamics(m, q, v, a)),
        "mass": (model.mass_matrix(q), lambda q, v, a: denoc.mass_matrix(m, q)),
        "coriolis": (model.coriolis_matrix(q, v), lambda q, v, a: denoc.coriolis_matrix(m, q, v)),
        "bias": (model.bias_forces(q, v), lambda q, v, a: denoc.bias_forces(m, q, v)),
        "gravity": (model.gravity_forces(q), lambda q, v, a: denoc.gravity_forces(m, q)),
        "passive": (model.passive_forces(q, v), lambda q, v, a: denoc.passive_forces(m, q, v)),
        "momentum": (model.momentum(q, v), lambda q, v, a: momentum(m, q, v)),
        "com": (model.center_of_mass(q), lambda q, v, a: kinematics.center_of_mass(m, q)),
        "kinetic": (model.energy(q, v)[0], lambda q, v, a: energy(m, q, v)[0]),
        "potential": (model.energy(q, v)[1], lambda q, v, a: energy(m, q, v)[1]),
    }
    for name, (compiled, text) in answers.items():
        reference = np.array([text(*s) for s in zip(q, v, a, strict=True)])
        assert_close(compiled, reference, 1e-9 if name == "forward" else 1e-11)
    tau = model.inverse_dynamics(q, v, a, wrenches=loads)
    assert_close(tau, model.inverse_dynamics(q, v, a, wrenches=loads, formulation="denoc"))
    assert_close(model.forward_dynamics(q, v, tau, wrenches=loads), a, 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_reduced_mechanism_has_the_same_joint_space_dynamics(seed):
    kinds = ("revolute", "prismatic", "continuous", "screw", "spherical")
    model, rng = model_of(seed, 7, kinds=kinds, springs=0)
    q, v, a = states(model, rng)
    lean = reduced(model.mechanism)
    assert_close(denoc.mass_matrix(lean, q), denoc.mass_matrix(model.mechanism, q))
    assert_close(denoc.inverse_dynamics(lean, q, v, a), denoc.inverse_dynamics(model.mechanism, q, v, a))
    massive = [j.name for j in lean.joints if lean.inertials and lean.inertials[j.index].mass and j.kind == "revolute"]
    leaves = [j.name for j in lean.joints if not lean.children[j.index]]
    assert not set(massive) & set(leaves), "what a turning leaf's mass does is its parent's business"


@pytest.mark.parametrize("seed", range(3))
def test_wrench_on_a_frame_acts_through_its_jacobian(seed):
    model, rng = model_of(seed)
    q, v, a = states(model, rng)
    frame, wrench = model.frame_names[-1], rng.normal(size=6)
    change = model.inverse_dynamics(q, v, a) - model.inverse_dynamics(q, v, a, wrenches={frame: wrench})
    assert_close(change, model.jacobian(q, frame).T @ wrench)


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_equal_central_differences_along_the_tangent(seed):
    model, rng = model_of(seed, 4)
    q, v, a = states(model, rng)
    loads = {model.frame_names[-1]: rng.normal(size=6)}
    h = 1e-5

    def slope(function):
        columns = []
        for e in np.eye(model.nv):
            columns.append((function(h * e) - function(-h * e)) / (2 * h))
        return np.stack(columns, axis=-1)

    for wrenches in (None, loads):
        dq, dv, da = model.inverse_dynamics_derivatives(q, v, a, wrenches=wrenches)
        reference = slope(lambda d, w=wrenches: model.inverse_dynamics(model.integrate(q, d), v, a, wrenches=w))
        assert_close(dq, reference, 1e-7)
        assert_close(dv, slope(lambda d, w=wrenches: model.inverse_dynamics(q, v + d, a, wrenches=w)), 1e-7)
        assert_close(da, model.mass_matrix(q))
    fq, fv, ft = model.forward_dynamics_derivatives(q, v, a)
    assert_close(fq, slope(lambda d: model.forward_dynamics(model.integrate(q, d), v, a)), 1e-6)
    assert_close(fv, slope(lambda d: model.forward_dynamics(q, v + d, a)), 1e-6)
    assert_close(ft, np.linalg.inv(model.mass_matrix(q)), 1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_forward_derivatives_by_loops_equal_straight_ones(monkeypatch, dtype):
    model, rng = model_of(1, 4)
    q, v, a = (x.astype(dtype) for x in states(model, rng, 2))
    loads = {model.frame_names[-1]: rng.normal(size=6)}
    straight = [model.forward_dynamics_derivatives(q, v, a, wrenches=w) for w in (None, loads)]
    monkeypatch.setattr("polybody.model.tree_engine.FACTORED_FROM", 0)
    other = Model(model.mechanism)
    assert other.engine.tree.is_factored(QUANTITIES["forward_dynamics_derivatives"])
    for w, wanted in zip((None, loads), straight, strict=True):
        for one, reference in zip(other.forward_dynamics_derivatives(q, v, a, wrenches=w), wanted, strict=True):
            assert one.dtype == dtype
            assert_close(one, reference, 1e-8 if dtype is np.float64 else 2e-3)


def test_forward_derivatives_of_large_trees_are_those_of_inverse_dynamics_with_parameters_too():
    model, rng = model_of(1, 14)
    assert model.engine.tree.is_factored(QUANTITIES["forward_dynamics_derivatives"])
    q, v, tau = states(model, rng, 3)
    loads = {model.frame_names[-1]: rng.normal(size=(3, 6))}
    masses = [f"{name}.mass" for name in (model.body_names[0], model.body_names[-1])]
    varied = model.with_parameters(*masses)
    for some in (model, varied):
        for w in (None, loads):
            a = some.forward_dynamics(q, v, tau, wrenches=w)
            dq, dv, M = some.inverse_dynamics_derivatives(q, v, a, wrenches=w)
            out = (np.empty_like(M), np.empty_like(M), np.empty_like(M))
            assert some.forward_dynamics_derivatives(q, v, tau, wrenches=w, out=out) is out
            wanted = (-np.linalg.solve(M, dq), -np.linalg.solve(M, dv), np.linalg.inv(M))
            for one, reference in zip(out, wanted, strict=True):
                assert_close(one, reference, 1e-8)
    lighter = varied.parameters.values(dict.fromkeys(masses, 0.1))
    found = varied.forward_dynamics_derivatives(q, v, tau, parameters=lighter)
    M = varied.mass_matrix(q, parameters=lighter)
    assert_close(found[2], np.linalg.inv(M), 1e-8)
    assert np.abs(found[2] - wanted[2]).max() > 1e-3


def test_batches_broadcast_and_out_is_filled():
    model, rng = model_of(2)
    q, v, a = states(model, rng, 4)
    tau = model.inverse_dynamics(q[:, None], v[None], a[0])
    assert tau.shape == (4, 4, model.nv)
    assert_close(tau[2, 3], model.inverse_dynamics(q[2], v[3], a[0]))
    out = np.empty((4, model.nv))
    assert model.inverse_dynamics(q, v, a, out=out) is out
    assert_close(out, model.inverse_dynamics(q, v, a))


def test_models_survive_pickling():
    model, rng = model_of(3)
    q, v, a = states(model, rng)
    again = pickle.loads(pickle.dumps(model))
    assert_close(again.inverse_dynamics(q, v, a), model.inverse_dynamics(q, v, a))


def test_wrong_sizes_name_the_argument_and_the_size_wanted():
    model, rng = model_of(4)
    q, v, a = states(model, rng)
    with pytest.raises(InputError, match=rf"v has shape \({model.nv + 1},\), expected \({model.nv},\)"):
        model.inverse_dynamics(q, np.append(v, 0), a)
    with pytest.raises(InputError, match="no frame 'nowhere'"):
        model.inverse_dynamics(q, v, a, wrenches={"nowhere": np.zeros(6)})
    with pytest.raises(InputError, match="broadcast"):
        model.inverse_dynamics(np.tile(q, (2, 1)), np.tile(v, (3, 1)), a)


def test_non_finite_input_comes_out_non_finite_or_is_refused_on_request():
    model, rng = model_of(5)
    q, v, a = states(model, rng)
    bad = v.copy()
    bad[0] = np.nan
    assert np.isnan(model.inverse_dynamics(q, bad, a)).any()
    with pytest.raises(InputError, match="v"):
        model.inverse_dynamics(q, bad, a, check=True)


def test_massless_leaf_is_named_instead_of_dividing_by_zero():
    heavy = random_body(np.random.default_rng(0), "heavy")
    description = Description(
        "leafy",
        bodies=(heavy, Body("feather")),
        joints=(Joint("turn", "revolute", "world", "heavy"), Joint("wave", "revolute", "heavy", "feather")),
    )
    model = Model(mechanism_from(description))
    with pytest.raises(PolybodyError, match="singular at joint 'wave'"):
        model.forward_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_forces"])
def test_loops_are_never_answered_for_the_cut_tree(name):
    """A configuration in which the loop is open is refused by its name, whatever is asked."""
    model, _ = model_of(6, loops=1)
    assert model.mechanism.closures
    v = np.zeros(model.nv)
    arguments = {"mass_matrix": (), "bias_forces": (v,)}.get(name, (v, v))
    with pytest.raises(PolybodyError, match="'loop0'"):
        getattr(model, name)(model.neutral(), *arguments)
