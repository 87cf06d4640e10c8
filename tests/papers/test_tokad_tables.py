"""Tokad 1992, Tables 1 and 2 (as ERRATA corrects them), equal for all values of all symbols to the symbolic model."""

from __future__ import annotations

import sympy as sp
from sympy import Rational, cos, sin

import polybody as pb
from symbolic_checks import assert_same

HALF, THIRD = Rational(1, 2), Rational(1, 3)
l1, l2, l3, m1, m2, m3, g = sp.symbols("l1 l2 l3 m1 m2 m3 g")
t1, t2, t3, w1, w2, w3 = sp.symbols("theta1 theta2 theta3 omega1 omega2 omega3")


def bars(name: str, n: int):
    """The chain of uniform slender bars in Tokad's symbols: com at l/2, J = m l²/12."""
    sym = pb.load(name).symbolic(q=[f"theta{k + 1}" for k in range(n)], p=[f"omega{k + 1}" for k in range(n)])
    lengths, masses = (l1, l2, l3)[:n], (m1, m2, m3)[:n]
    values = {}
    for k, (length, mass) in enumerate(zip(lengths, masses, strict=True), start=1):
        values[f"c{k}x"] = length / 2
        values |= {f"I{k}{a}{a}": mass * length**2 / 12 for a in "yz"}
        if k > 1:
            values[f"r{k}x"] = lengths[k - 2]
    values["tip_x"] = lengths[-1]
    return sym.substitute({key: value for key, value in values.items() if key in map(str, sym.parameters)})


def test_table_1_is_the_three_link_arm():
    sym = bars("three-link", 3)
    C2, C3, C23 = cos(t2), cos(t3), cos(t2 + t3)
    S2, S3, S23 = sin(t2), sin(t3), sin(t2 + t3)
    c11 = (m1 * THIRD * l1**2 + m2 * (l1**2 + l1 * l2 * C2 + THIRD * l2**2)
           + m3 * (l1**2 + l2**2 + THIRD * l3**2 + 2 * l1 * l2 * C2 + l2 * l3 * C3 + l1 * l3 * C23))
    c12 = (m2 * (THIRD * l2**2 + HALF * l1 * l2 * C2)
           + m3 * (l2**2 + THIRD * l3**2 + l2 * l3 * C3 + l1 * l2 * C2 + HALF * l1 * l3 * C23))
    c13 = m3 * (THIRD * l3**2 + HALF * l2 * l3 * C3 + HALF * l1 * l3 * C23)
    c22 = m2 * THIRD * l2**2 + m3 * (THIRD * l3**2 + l2**2 + l2 * l3 * C3)
    c23 = m3 * (THIRD * l3**2 + HALF * l2 * l3 * C3)
    c33 = m3 * THIRD * l3**2
    assert_same(sym.mass_matrix(), [[c11, c12, c13], [c12, c22, c23], [c13, c23, c33]])

    # d11, d12, d21, d31, d32 and β2 by ERRATA 000
    both, all_three = HALF * m2 + m3, w1 + w2 + w3
    d = sp.Matrix([
        [-both * l1 * l2 * S2 * w2 - HALF * m3 * (l1 * l3 * S23 * (w2 + w3) + l2 * l3 * S3 * w3),
         -both * l1 * l2 * S2 * (w1 + w2) - HALF * m3 * (l2 * l3 * S3 * w3 + l1 * l3 * S23 * all_three),
         -m3 * (HALF * l2 * l3 * S3 + HALF * l1 * l3 * S23) * all_three],
        [both * l1 * l2 * S2 * w1 + HALF * m3 * (l1 * l3 * S23 * w1 - l2 * l3 * S3 * w3),
         -m3 * HALF * l2 * l3 * S3 * w3,
         -m3 * HALF * l2 * l3 * S3 * all_three],
        [HALF * m3 * (l1 * l3 * S23 * w1 + l2 * l3 * S3 * (w1 + w2)), HALF * m3 * l2 * l3 * S3 * (w1 + w2), 0],
    ])  # fmt: skip
    assert_same(sym.coriolis_matrix(), d)  # not only d ω: on a planar chain Tokad's d is Saha's C
    assert_same(sym.velocity_forces(), d * sp.Matrix([w1, w2, w3]))
    assert_same(sym.poincare_matrix() * sp.Matrix([w1, w2, w3]), d * sp.Matrix([w1, w2, w3]))

    C1, C12, C123 = cos(t1), cos(t1 + t2), cos(t1 + t2 + t3)
    beta = [
        m1 * HALF * l1 * C1 + m2 * (l1 * C1 + HALF * l2 * C12) + m3 * (l1 * C1 + l2 * C12 + HALF * l3 * C123),
        m2 * HALF * l2 * C12 + m3 * (l2 * C12 + HALF * l3 * C123),
        m3 * HALF * l3 * C123,
    ]
    assert_same(sym.potential_forces(), [g * x for x in beta])


def test_table_1_load_coefficients_are_the_tip_jacobian():
    sym = bars("three-link", 3)
    x, y = sym.end_effector("tip")[0, 3], sym.end_effector("tip")[1, 3]
    S = [sin(t1), sin(t1 + t2), sin(t1 + t2 + t3)]
    C = [cos(t1), cos(t1 + t2), cos(t1 + t2 + t3)]
    terms = (l1, l2, l3)
    for p, theta in enumerate((t1, t2, t3)):
        assert_same([sp.diff(x, theta)], [-sum(terms[k] * S[k] for k in range(p, 3))])
        assert_same([sp.diff(y, theta)], [sum(terms[k] * C[k] for k in range(p, 3))])


def test_table_2_is_the_two_link_arm():
    sym = bars("two-link", 2)
    C2, S2 = cos(t2), sin(t2)
    c12 = m2 * (THIRD * l2**2 + HALF * l1 * l2 * C2)
    c11 = m1 * THIRD * l1**2 + m2 * (l1**2 + l1 * l2 * C2 + THIRD * l2**2)
    assert_same(sym.mass_matrix(), [[c11, c12], [c12, m2 * THIRD * l2**2]])
    d = [[-m2 * HALF * l1 * l2 * S2 * w2, -m2 * HALF * l1 * l2 * S2 * (w1 + w2)], [m2 * HALF * l1 * l2 * S2 * w1, 0]]
    assert_same(sym.coriolis_matrix(), d)
    C1, C12 = cos(t1), cos(t1 + t2)
    beta = [m1 * g * HALF * l1 * C1 + m2 * g * (l1 * C1 + HALF * l2 * C12), m2 * g * HALF * l2 * C12]
    assert_same(sym.potential_forces(), beta)
