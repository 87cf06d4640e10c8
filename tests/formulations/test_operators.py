"""Swain & Morris' operators against Saha's recursions, on random trees of every joint kind and over every domain."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms import random_tree
from polybody.algebra.domains import domain
from polybody.errors import PolybodyError
from polybody.formulations import denoc, operators
from polybody.mechanism import mechanism_from
from trees import random_state, scale

SEEDS = range(12)


def tree(seed: int, **options):
    return random_state(1000 + seed, **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_answer_of_the_protocol_equals_denoc(seed):
    mechanism, q, v, a, rng = tree(seed, floating_base=seed % 3 == 0)
    wrenches = rng.normal(size=(len(mechanism.bodies), 6))
    M, tau = denoc.mass_matrix(mechanism, q), denoc.inverse_dynamics(mechanism, q, v, a, wrenches)
    back = denoc.forward_dynamics(mechanism, q, v, tau, wrenches)
    near = {"rtol": 0, "atol": 1e-10 * scale(M, tau, a)}
    np.testing.assert_allclose(operators.mass_matrix(mechanism, q), M, **near)
    np.testing.assert_allclose(operators.inverse_dynamics(mechanism, q, v, a, wrenches), tau, **near)
    np.testing.assert_allclose(operators.bias_forces(mechanism, q, v), denoc.bias_forces(mechanism, q, v), **near)
    np.testing.assert_allclose(operators.forward_dynamics(mechanism, q, v, tau, wrenches), back, **near)


@pytest.mark.parametrize("seed", SEEDS)
def test_hybrid_dynamics_fills_in_what_full_dynamics_demand_for_any_choice_of_columns(seed):
    mechanism, q, v, a, rng = tree(seed)
    wrenches = rng.normal(size=(len(mechanism.bodies), 6))
    tau = denoc.inverse_dynamics(mechanism, q, v, a, wrenches)
    given = rng.random(mechanism.nv) < 0.5
    blind_a, blind_tau = np.where(given, a, np.nan), np.where(given, np.nan, tau)
    full_a, full_tau = operators.hybrid_dynamics(mechanism, q, v, given, blind_a, blind_tau, wrenches)
    np.testing.assert_allclose(full_a, a, rtol=0, atol=1e-10 * scale(a, tau))
    np.testing.assert_allclose(full_tau, tau, rtol=0, atol=1e-10 * scale(a, tau))


def test_casadi_reading_equals_float_reading():
    import casadi

    mechanism, q, v, a, _ = tree(5)
    graph = domain("casadi")
    tau = operators.inverse_dynamics(mechanism, q, v, a)
    (Q, qs), (V, vs), (T, ts) = (graph.variables(n, k) for n, k in (("q", len(q)), ("v", len(v)), ("t", len(v))))
    traced = graph.column(operators.forward_dynamics(mechanism, qs, vs, ts, domain=graph))
    result = np.array(casadi.Function("f", [Q, V, T], [traced])(q, v, tau)).ravel()
    np.testing.assert_allclose(result, a, rtol=0, atol=1e-10 * scale(a, tau))


def test_sympy_reading_equals_float_reading():
    import sympy

    rng = np.random.default_rng(2)
    mechanism = mechanism_from(random_tree(rng, 2, ("revolute", "prismatic"), stiffness=0, springs=0, damping=0))
    symbols = domain("sympy")
    names = np.array(sympy.symbols("q0 q1 v0 v1"), dtype=object)
    bias = operators.bias_forces(mechanism, names[:2], names[2:], domain=symbols)
    values = rng.normal(size=4)
    numbers = [float(b.subs(dict(zip(names, values, strict=True)))) for b in bias]
    np.testing.assert_allclose(numbers, denoc.bias_forces(mechanism, values[:2], values[2:]), atol=1e-12)


def test_mpmath_reading_undoes_itself_to_thirty_digits():
    import mpmath

    with mpmath.workdps(40):
        mechanism, q, v, a, _ = tree(3, stiffness=0.0, springs=0, fixed=0.0)
        many = domain("mpmath")
        q, v, a = (many.array(x) for x in (q, v, a))
        tau = operators.inverse_dynamics(mechanism, q, v, a, domain=many)
        back = operators.forward_dynamics(mechanism, q, v, tau, domain=many)
        assert max(abs(x - y) for x, y in zip(a, back, strict=True)) < mpmath.mpf(10) ** -30


def test_a_joint_that_moves_no_inertia_is_named():
    from polybody.description.records import Body, Description, Joint

    description = Description(
        "empty", bodies=(Body("ghost"),), joints=(Joint("hinge", "revolute", "world", "ghost"),)
    )
    mechanism = mechanism_from(description)
    with pytest.raises(PolybodyError, match="hinge"):
        operators.forward_dynamics(mechanism, np.zeros(1), np.zeros(1), np.zeros(1))


def test_named_operators_read_the_same_over_casadi_and_sympy():
    import casadi
    import sympy

    rng = np.random.default_rng(8)
    mechanism = mechanism_from(
        random_tree(rng, 3, ("revolute", "prismatic"), floating_base=True, stiffness=0, springs=0, damping=0, fixed=0)
    )
    chosen = operators.split(mechanism)
    q = np.concatenate([j.model.random(rng) for j in mechanism.joints])
    v, tau = rng.normal(size=(2, mechanism.nv))
    wanted = operators.coefficients(mechanism, q, v, tau, chosen)
    graph = domain("casadi")
    columns, arrays = zip(*(graph.variables(n, len(x)) for n, x in (("q", q), ("v", v), ("t", tau))), strict=True)
    found = operators.coefficients(mechanism, *arrays, chosen, domain=graph)
    for name in ("M", "J", "J_D", "T_hat", "H"):
        traced = casadi.Function("f", list(columns), [graph.column(getattr(found, name))])(q, v, tau)
        reference = getattr(wanted, name)
        np.testing.assert_allclose(
            np.array(traced).reshape(reference.shape), reference, rtol=0, atol=1e-10 * scale(reference)
        )
    symbols = np.array(sympy.symbols("s0:2"), dtype=object)  # the joints' own numbers; the base's stay numbers
    known = domain("sympy").array(q)
    known[7:] = symbols
    X = operators.structure(mechanism, known, domain("sympy").array(v), chosen, domain=domain("sympy")).X
    numbers = np.array([[float(x.subs(dict(zip(symbols, q[7:], strict=True)))) for x in row] for row in X])
    np.testing.assert_allclose(numbers, operators.structure(mechanism, q, v, chosen).X, atol=1e-12)
