"""Every domain does the same arithmetic; jets carry exact derivatives through it."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from readings import DOMAINS, reading

from polybody.algebra import COMPLEX, FLOAT, Domain, JetDomain, domain
from polybody.algebra.rotations import (
    left_jacobian,
    left_jacobian_inverse,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    rotation_exp,
)
from polybody.algebra.spatial import twist_exp

Array = np.ndarray
every_domain = pytest.mark.parametrize("name", DOMAINS)


def mixture(x: Array, *, domain: Domain) -> Array:
    """Every operation of a domain."""
    c = domain.const
    a = domain.sin(x[0]) * x[1] + domain.cos(x[1]) / x[2] - c(3)
    b = domain.sqrt(x[2] * x[2] + c(1)) - (-x[0])
    d = domain.atan2(a, b) + c(1) / b
    e = domain.where(domain.less(x[0], x[1]), a * b, a / b)
    f = domain.where(domain.less(x[1], x[0]), a * b, a / b)
    return np.array([a, b, d, e, f, c(2) * a, a - c(1), c(0.5) - a], dtype=domain.dtype)


X = np.array([0.3, 1.7, 0.8])


@every_domain
def test_all_operations_agree_with_plain_numbers(name: str) -> None:
    np.testing.assert_allclose(reading(name, mixture, X), mixture(X, domain=FLOAT), rtol=1e-15)


@every_domain
def test_linear_systems_are_solved(name: str) -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    A, B = root @ root.T + np.eye(4), rng.normal(size=(4, 2))
    found = reading(name, lambda A, B, domain: domain.solve(A, B), A, B)
    np.testing.assert_allclose(found, np.linalg.solve(A, B), rtol=1e-12)
    found = reading(name, lambda A, B, domain: domain.solve(A, B[:, 0]), A, B)
    np.testing.assert_allclose(found, np.linalg.solve(A, B[:, 0]), rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        mixture,
        lambda x, domain: rotation_exp(x, domain=domain),
        lambda x, domain: rotation_exp(x * domain.const(1e-3), domain=domain),
        lambda x, domain: quaternion_log(quaternion_exp(x, domain=domain), domain=domain),
        lambda x, domain: left_jacobian_inverse(x, domain=domain),
        lambda x, domain: np.concatenate([p.ravel() for p in twist_exp(np.concatenate([x, x]), domain=domain)]),
    ],
    ids=["mixture", "exp", "exp near 0", "log exp", "inverse jacobian", "twist exp"],
)
def test_jets_equal_complex_steps(function: Any) -> None:
    direction = np.array([0.4, -1.1, 0.7])
    h = 1e-30
    stepped = np.asarray(function(COMPLEX.array(X + 0j) + 1j * h * direction, domain=COMPLEX)).imag / h
    jets = JetDomain(FLOAT)
    rates = jets.rates(function(jets.lift(X, direction), domain=jets))
    np.testing.assert_allclose(rates, stepped, rtol=1e-13, atol=1e-15)


def test_nested_jets_give_second_derivatives() -> None:
    inner = JetDomain(FLOAT)
    outer = JetDomain(inner)
    u, v = np.array([1.0, 0, 0]), np.array([0, 1.0, 0])
    x = outer.lift(inner.lift(X, u), inner.lift(v))
    second = inner.rates(outer.rates(mixture(x, domain=outer)))
    s = sp.symbols("x0:3", real=True)
    symbolic = mixture(np.array(s, dtype=object), domain=domain("sympy"))
    at = dict(zip(s, X, strict=True))
    wanted = [float(sp.diff(e, s[0], s[1]).subs(at)) for e in symbolic]
    np.testing.assert_allclose(second, wanted, rtol=1e-12, atol=1e-13)


def test_jets_over_symbols_equal_symbolic_derivatives() -> None:
    base = domain("sympy")
    jets = JetDomain(base)
    s = np.array(sp.symbols("x0:3", real=True), dtype=object)
    d = np.array(sp.symbols("d0:3", real=True), dtype=object)
    rates = jets.rates(mixture(jets.lift(s, d), domain=jets))[:3]
    for rate, value in zip(rates, mixture(s, domain=base)[:3], strict=True):
        assert sp.simplify(rate - sum(sp.diff(value, x) * dx for x, dx in zip(s, d, strict=True))) == 0


def test_symbols_keep_decimal_numbers_as_the_rationals_they_state() -> None:
    d = domain("sympy")
    assert d.const(0.1) == sp.Rational(1, 10)
    assert d.const(3.0) == 3
    assert d.array([[0.25, 2]])[0, 0] == sp.Rational(1, 4)


def test_graphs_fold_known_zeros_and_ones_away() -> None:
    d = domain("casadi")
    _, (x, y) = d.variables("x", 2)  # type: ignore[attr-defined]
    assert x * d.const(0) == 0.0
    assert x * d.const(1) is x
    assert x + d.const(0) is x
    assert d.const(0) / x == 0.0
    assert isinstance(x - x, float)
    assert d.is_zero(x - x)
    assert not d.is_zero(x)
    rows = d.array(np.eye(3)) @ np.array([x, y, 0.0], dtype=object)
    assert rows[0] is x
    assert rows[1] is y
    assert rows[2] == 0.0


@pytest.mark.parametrize("scale", [1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-9, 1e-13])
def test_mpmath_keeps_its_digits_at_all_angles(scale: float) -> None:
    d = domain("mpmath")
    with mpmath.workdps(40):
        phi = d.array([mpmath.mpf(1) / 3, mpmath.mpf(-2) / 7, mpmath.mpf(1) / 11]) * mpmath.mpf(scale)
        R, q = rotation_exp(phi, domain=d), quaternion_exp(phi, domain=d)
        J = left_jacobian(phi, domain=d) @ left_jacobian_inverse(phi, domain=d) - d.eye(3)
        defects = [*(R @ R.T - d.eye(3)).ravel(), *(R - quaternion_matrix(q, domain=d)).ravel(), *J.ravel()]
        assert max(abs(x) for x in defects) < mpmath.mpf(10) ** -36
        back = quaternion_log(q, domain=d) - phi
        assert max(abs(x) for x in back) < mpmath.mpf(10) ** -36 * mpmath.mpf(scale)


def test_unknown_domains_are_named() -> None:
    with pytest.raises(KeyError, match="no scalar domain 'float32'; available: casadi, complex128"):
        domain("float32")
