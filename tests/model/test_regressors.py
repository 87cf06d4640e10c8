"""Regressors: joint forces, energies and momentum as matrices times parameters, on random mechanisms and on loops."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from loop_states import massive, states
from polybody.algebra.domains import FLOAT, domain
from polybody.formulations import denoc
from polybody.formulations.denoc.inverse import tree_forces
from polybody.formulations.denoc.links import crossings, links
from polybody.mechanism.columns import actuated
from polybody.model.model import Model
from polybody.quantities.regressors import structure
from trees import coupled_state, random_state, scale

LOOPS = ("five-bar", "delta", "stewart")


def body_forces(m, q, v, a):
    """Joint forces of the bodies alone: no springs, dampers, armature."""
    chain = links(m, domain=FLOAT)
    return tree_forces(m, chain, crossings(m, chain, q, domain=FLOAT), q, v, a, None, FLOAT)


@pytest.mark.parametrize("seed", range(8))
def test_regressor_times_parameters_is_inverse_dynamics_on_random_trees(seed: int) -> None:
    m, q, v, a, _ = random_state(seed, springs=0) if seed % 2 else coupled_state(seed, springs=0)
    tau = body_forces(m, q, v, a)
    Y = denoc.regressor(m, q, v, a)
    np.testing.assert_allclose(Y @ denoc.body_parameters(m), tau, atol=1e-12 * scale(tau))


def test_compiled_regressor_equals_its_text_with_every_term_and_out() -> None:
    model = pb.load("puma560")
    rng = np.random.default_rng(3)
    q = model.random_configuration(rng, 17)
    v, a = rng.normal(size=(2, 17, model.nv))
    terms = ("offset", "viscous", "coulomb", "armature")
    names = model.regressor.columns(terms)
    Y = model.regressor(q, v, a, terms=terms)
    assert Y.shape == (17, 6, 60 + 24)
    assert names[60::6] == [f"joint1.{term}" for term in ("armature", "viscous", "coulomb", "offset")]
    p = np.concatenate([model.regressor.parameters(), np.diag(model.mechanism.armature), np.zeros(18)])
    np.testing.assert_allclose(Y @ p, model.inverse_dynamics(q, v, a) + model.passive_forces(q, v), atol=1e-10)
    p = np.concatenate([np.zeros(66), np.full(6, 0.5), np.full(6, 2.0), np.full(6, 7.0)])
    np.testing.assert_allclose(Y @ p, 0.5 * v + 2 * np.tanh(v / 0.01) + 7)
    out = np.empty_like(Y)
    assert model.regressor(q, v, a, terms=terms, out=out) is out
    np.testing.assert_array_equal(out, Y)


@pytest.mark.parametrize("seed", range(3))
def test_energy_and_momentum_are_linear_in_the_parameters(seed: int) -> None:
    m, q, v, _, _ = random_state(seed, springs=0)
    p = denoc.body_parameters(m)
    kinetic, potential = denoc.energy_regressor(m, q, v)
    T = 0.5 * v @ (denoc.mass_matrix(m, q) - m.armature) @ v
    np.testing.assert_allclose(kinetic @ p, T, rtol=1e-11)
    bodies = Model(m)
    com, momentum = bodies.center_of_mass(q), bodies.momentum(q, v)
    U = -bodies.total_mass * bodies.gravity @ com
    np.testing.assert_allclose(potential @ p, U, atol=1e-11 * (1 + abs(U)))
    found = denoc.momentum_regressor(m, q, v) @ p
    expected = np.concatenate([momentum[:3] + np.cross(com, momentum[3:]), momentum[3:]])
    np.testing.assert_allclose(found, expected, atol=1e-11 * scale(expected))


@pytest.mark.parametrize("name", LOOPS)
def test_regressor_of_loops_is_what_the_drives_do_on_every_motion(name: str) -> None:
    model = massive(name)
    q, v, a = states(model)
    a = model.assemble_acceleration(q, v, a)
    G = model.constraints.joint_influence(q, 1).G
    Y = model.regressor(q, v, a, terms=("armature",))
    p = np.concatenate([model.regressor.parameters(), np.diag(model.mechanism.armature)])
    passive = (model.tree.passive_forces(q, v)[:, None] @ G)[:, 0]
    driven = list(actuated(model.mechanism))
    shared = (model.inverse_dynamics(q, v, a)[:, None, driven] @ G[:, driven])[:, 0]
    np.testing.assert_allclose(Y @ p, shared + passive, atol=1e-8 * scale(shared))


@pytest.mark.parametrize("seed", range(3))
def test_entries_outside_the_structure_vanish_and_those_inside_do_not(seed: int) -> None:
    m, _, _, _, rng = random_state(seed, most=5)
    model = Model(m)
    q = model.random_configuration(rng, 5)
    v, a = rng.normal(size=(2, 5, m.nv))
    rows, columns = structure(m, ("viscous",))
    Y = model.regressor(q, v, a, terms="viscous")
    inside = np.zeros(Y.shape[1:], dtype=bool)
    inside[rows, columns] = True
    assert np.all(Y[:, ~inside] == 0)
    assert np.all(np.abs(Y[:, inside]).max(axis=0) > 0)
    np.testing.assert_allclose(model.regressor.nonzeros(q, v, a, terms="viscous"), Y[:, rows, columns], atol=1e-13)


def test_regressor_of_a_two_link_arm_in_symbols_is_the_closed_form() -> None:
    sympy = pytest.importorskip("sympy")
    build = pb.Builder("two", gravity=(0, -10, 0))
    for k, parent in enumerate(("world", "b0")):
        build.body(f"b{k}", 1, inertia=(1, 1, 1))
        origin = np.eye(4)
        origin[0, 3] = 2.0 * k
        build.joint(f"j{k}", "revolute", parent, f"b{k}", origin)
    m, symbols = build.model().mechanism, domain("sympy")
    q, v, a = (np.array(sympy.symbols(f"{x}1 {x}2"), dtype=object) for x in "qva")
    Y = denoc.regressor(m, q, v, a, domain=symbols)
    second = dict(zip(("mass", "mx", "my"), Y[1, 10:13], strict=True))
    c, s = sympy.cos(q[1]), sympy.sin(q[1])
    forward = 2 * a[0] * s - 2 * v[0] ** 2 * c + 10 * sympy.sin(q.sum())  # the second joint's acceleration, in its axes
    sideways = 2 * a[0] * c + 2 * v[0] ** 2 * s + 10 * sympy.cos(q.sum())
    place = dict(zip([*q, *v, *a], np.linspace(0.3, 1.7, 6), strict=True))
    gaps = (second["mass"], second["mx"] - sideways, second["my"] + forward, Y[1, 16] - a.sum())
    assert all(abs(float(sympy.sympify(gap).subs(place))) < 1e-12 for gap in gaps)


def test_friction_columns_times_the_laws_numbers_are_the_friction_of_the_model() -> None:
    build = pb.Builder("rough")
    build.body("b", 1, inertia=(1, 1, 1))
    law = {"coulomb": 3.0, "viscous": 0.4, "static": 5.0, "stribeck": 0.3, "exponent": 1.5, "regularisation": 0.05}
    build.joint("j", "revolute", "world", "b", friction=law)
    model = build.model()
    v = np.linspace(-1, 1, 9)[:, None]
    q = a = np.zeros((9, 1))
    Y = model.regressor(q, v, a, terms=("viscous", "coulomb", "stribeck"))
    np.testing.assert_allclose(Y[..., 10:] @ [0.4, 3.0, 2.0], -model.passive_forces(q, v), atol=1e-12)


def test_unknown_terms_are_refused_with_the_nearest_one() -> None:
    model = pb.load("puma560")
    with pytest.raises(pb.InputError, match=r"viscuos.*viscous"):
        model.regressor.columns("viscuos")
    with pytest.raises(pb.InputError, match="cut tree"):
        pb.load("five-bar").regressor.structure()
