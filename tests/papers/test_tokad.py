"""Tokad 1992 in symbols and numbers, as corrected by ERRATA.md section 000."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from polybody.algebra.domains import domain
from polybody.algebra.rotations import skew
from polybody.description.records import Body, Description, Joint, frozen_array
from polybody.formulations import network
from polybody.formulations.network import Network
from polybody.formulations.network.terminals import (
    across_at,
    active_port,
    lever,
    terminal_form,
    through_from,
)
from polybody.mechanism import mechanism_from

# The loaded three-link manipulator of ERRATA.md (two engines, 1e-14).
L, MASS = (1.0, 0.8, 0.6), (2.0, 1.5, 1.0)
THETA, OMEGA, ALPHA = (0.3, -0.5, 0.9), (0.4, -0.7, 1.1), (1.2, 0.5, -0.8)
LOAD = np.array([0.0, 0.0, 0.5, 2.0, -3.0, 0.0])  # M4, f4 on A_3, [moment; force]
MOMENTS = (65.518438343, 23.136937846, 4.629518486)
GRAVITY = (48.512643291, 15.711164937, 2.250930557)


def manipulator(lengths, masses, g, load=True) -> Network:
    """Figure 5: homogeneous links, revolute joints about z, gravity along −y; port `tip` is A_m."""
    net = Network("planar", gravity=(0, -g, 0))
    net.ground(base=(0, 0, 0))
    before = "world.base"
    for k, (length, mass) in enumerate(zip(lengths, masses, strict=True), 1):
        J = mass * length**2 / 12
        ports = {"B": (0, 0, 0), "A": (length, 0, 0)}
        net.body(f"link{k}", mass, (length / 2, 0, 0), (0, J, J), ports=ports)
        net.joint(f"joint{k}", "revolute", before, f"link{k}.B")
        before = f"link{k}.A"
    if load:
        net.force("load", before)
    return net


def reduce_trig(expression, angles):
    """Zero exactly where the expression is: polynomial in sines and cosines modulo s² + c² = 1."""
    expression = sp.expand(sp.expand_trig(expression))
    s, c = sp.symbols("s1:4"), sp.symbols("c1:4")
    for angle, si, ci in zip(angles, s, c, strict=False):
        expression = expression.subs({sp.sin(angle): si, sp.cos(angle): ci})
    n = len(angles)
    return sp.reduced(sp.expand(expression), [s[k] ** 2 + c[k] ** 2 - 1 for k in range(n)], *s[:n], *c[:n])[1]


def table_one(l, m, t, w, g):
    """Table 1 with the errata's d11, d12, d21, d31, d32 and β2; C, S as the paper writes them."""
    (l1, l2, l3), (m1, m2, m3), (w1, w2, w3) = l, m, w
    C2, C3, C23 = sp.cos(t[1]), sp.cos(t[2]), sp.cos(t[1] + t[2])
    S2, S3, S23 = sp.sin(t[1]), sp.sin(t[2]), sp.sin(t[1] + t[2])
    half, third = sp.Rational(1, 2), sp.Rational(1, 3)
    c11 = (
        m1 * third * l1**2 + m2 * (l1**2 + l1 * l2 * C2 + third * l2**2)
        + m3 * (l1**2 + l2**2 + third * l3**2 + 2 * l1 * l2 * C2 + l2 * l3 * C3 + l1 * l3 * C23)
    )
    c12 = m2 * (third * l2**2 + half * l1 * l2 * C2) + m3 * (
        l2**2 + third * l3**2 + l2 * l3 * C3 + l1 * l2 * C2 + half * l1 * l3 * C23
    )
    c13 = m3 * (third * l3**2 + half * l2 * l3 * C3 + half * l1 * l3 * C23)
    c22 = m2 * third * l2**2 + m3 * (third * l3**2 + l2**2 + l2 * l3 * C3)
    c23 = m3 * (third * l3**2 + half * l2 * l3 * C3)
    c33 = m3 * third * l3**2
    a = half * m2 + m3
    d = [
        [
            -a * l1 * l2 * S2 * w2 - half * m3 * (l1 * l3 * S23 * (w2 + w3) + l2 * l3 * S3 * w3),
            -a * l1 * l2 * S2 * (w1 + w2) - half * m3 * (l2 * l3 * S3 * w3 + l1 * l3 * S23 * (w1 + w2 + w3)),
            -m3 * half * (l2 * l3 * S3 + l1 * l3 * S23) * (w1 + w2 + w3),
        ],
        [
            a * l1 * l2 * S2 * w1 + half * m3 * (l1 * l3 * S23 * w1 - l2 * l3 * S3 * w3),
            -m3 * half * l2 * l3 * S3 * w3,
            -m3 * half * l2 * l3 * S3 * (w1 + w2 + w3),
        ],
        [
            half * m3 * (l1 * l3 * S23 * w1 + l2 * l3 * S3 * (w1 + w2)),
            half * m3 * l2 * l3 * S3 * (w1 + w2),
            0,
        ],
    ]
    ca = [sp.cos(t[0]), sp.cos(t[0] + t[1]), sp.cos(t[0] + t[1] + t[2])]
    sa = [sp.sin(t[0]), sp.sin(t[0] + t[1]), sp.sin(t[0] + t[1] + t[2])]
    delta = [[-sum(l[k] * sa[k] for k in range(p, 3)), sum(l[k] * ca[k] for k in range(p, 3)), 1] for p in range(3)]
    beta = [
        g * (m1 * half * l1 * ca[0] + m2 * (l1 * ca[0] + half * l2 * ca[1])
             + m3 * (l1 * ca[0] + l2 * ca[1] + half * l3 * ca[2])),
        g * (m2 * half * l2 * ca[1] + m3 * (l2 * ca[1] + half * l3 * ca[2])),
        g * m3 * half * l3 * ca[2],
    ]
    return [[c11, c12, c13], [c12, c22, c23], [c13, c23, c33]], d, delta, beta


def table_two(l, m, t, w, g):
    """Table 2 as printed."""
    (l1, l2), (m1, m2), (w1, w2) = l, m, w
    C2, S2, half, third = sp.cos(t[1]), sp.sin(t[1]), sp.Rational(1, 2), sp.Rational(1, 3)
    c12 = m2 * (third * l2**2 + half * l1 * l2 * C2)
    c = [[m1 * third * l1**2 + m2 * (l1**2 + l1 * l2 * C2 + third * l2**2), c12], [c12, m2 * third * l2**2]]
    d = [[-m2 * half * l1 * l2 * S2 * w2, -m2 * half * l1 * l2 * S2 * (w1 + w2)], [m2 * half * l1 * l2 * S2 * w1, 0]]
    C1, C12 = sp.cos(t[0]), sp.cos(t[0] + t[1])
    beta = [m1 * g * half * l1 * C1 + m2 * g * (l1 * C1 + half * l2 * C12), m2 * g * half * l2 * C12]
    return c, d, beta


def symbols(n):
    l, m = sp.symbols(f"l1:{n + 1}", positive=True), sp.symbols(f"m1:{n + 1}", positive=True)
    t, w = sp.symbols(f"theta1:{n + 1}"), sp.symbols(f"omega1:{n + 1}")
    return l, m, t, w, sp.Symbol("g", positive=True)


def symbolic_form(n):
    l, m, t, w, g = symbols(n)
    net = manipulator(l, m, g, load=False)
    form = net.closed_form(np.array(t, dtype=object), np.array(w, dtype=object), [f"link{n}.A"], domain=domain("sympy"))
    return (l, m, t, w, g), form


def test_table_one_as_corrected():
    given, form = symbolic_form(3)
    c, d, delta, beta = form.reduced()
    expected_c, expected_d, expected_delta, expected_beta = table_one(*given)
    angles = given[2]
    for p in range(3):
        assert reduce_trig(beta[p] - expected_beta[p], angles) == 0
        for q in range(3):
            assert reduce_trig(c[p, q] - expected_c[p][q], angles) == 0
            assert reduce_trig(d[p, q] - expected_d[p][q], angles) == 0
        for k, row in enumerate((0, 1, 5)):  # v_4x, v_4y, ω_4
            assert reduce_trig(delta[p, row] - expected_delta[p][k], angles) == 0


def test_table_two():
    given, form = symbolic_form(2)
    c, d, _, beta = form.reduced()
    expected_c, expected_d, expected_beta = table_two(*given)
    for p in range(2):
        assert reduce_trig(beta[p] - expected_beta[p], given[2]) == 0
        for q in range(2):
            assert reduce_trig(c[p, q] - expected_c[p][q], given[2]) == 0
            assert reduce_trig(d[p, q] - expected_d[p][q], given[2]) == 0


def test_reference_moments_from_the_closed_form():
    net = manipulator(L, MASS, 9.81, load=False)
    c, d, delta, beta = net.closed_form(THETA, OMEGA, ["link3.A"]).reduced()
    y_end = np.concatenate([LOAD[3:], LOAD[:3]])
    moments = c @ ALPHA + d @ OMEGA - delta @ y_end + beta
    np.testing.assert_allclose(moments, MOMENTS, atol=1e-9)
    np.testing.assert_allclose(beta, GRAVITY, atol=1e-9)


def test_reference_moments_from_the_network():
    net = manipulator(L, MASS, 9.81)
    drivers = {f"joint{k + 1}": ALPHA[k] for k in range(3)}
    answer = net.solve(THETA, OMEGA, accelerations=drivers, wrenches={"load": LOAD})
    np.testing.assert_allclose([answer.forces[name][0] for name in drivers], MOMENTS, atol=1e-9)
    forward = net.solve(THETA, OMEGA, forces=MOMENTS, wrenches={"load": LOAD})
    np.testing.assert_allclose([forward.accelerations[name][0] for name in drivers], ALPHA, atol=1e-8)


def test_reference_moments_from_the_recursion():
    def origin(x):
        T = np.eye(4)
        T[0, 3] = x
        return frozen_array(T)

    bodies = tuple(
        Body(f"link{k}", m, frozen_array((l / 2, 0, 0)), frozen_array(np.diag([0, m * l**2 / 12, m * l**2 / 12])))
        for k, (l, m) in enumerate(zip(L, MASS, strict=True))
    )
    joints = tuple(
        Joint(f"joint{k}", "revolute", f"link{k - 1}" if k else "world", f"link{k}", origin(L[k - 1] if k else 0.0))
        for k in range(3)
    )
    mechanism = mechanism_from(Description("planar", frozen_array((0, -9.81, 0)), bodies, joints))
    angle = sum(THETA)
    arm = L[2] * np.array([np.cos(angle), np.sin(angle), 0.0])
    wrenches = np.zeros((3, 6))
    wrenches[2] = LOAD + np.concatenate([np.cross(arm, LOAD[3:]), np.zeros(3)])
    tau = network.inverse_dynamics(mechanism, np.array(THETA), np.array(OMEGA), np.array(ALPHA), wrenches)
    np.testing.assert_allclose(tau, MOMENTS, atol=1e-9)
    held = network.bias_forces(mechanism, np.array(THETA), np.zeros(3))
    np.testing.assert_allclose(held, GRAVITY, atol=1e-9)


def spatial_chain(rng, m=3):
    """Free spatial motion of m bodies: floating joints everywhere, so that no joint is assumed, as in the paper."""
    net = Network("chain", gravity=rng.normal(size=3) * 5)
    net.ground(base=rng.normal(size=3))
    before = "world.base"
    for k in range(1, m + 1):
        root = rng.normal(size=(3, 3))
        ports = {"B": rng.normal(size=3), "A": rng.normal(size=3)}
        net.body(f"link{k}", 1.0 + k, rng.normal(size=3) * 0.2, root @ root.T + np.eye(3), ports=ports)
        net.joint(f"joint{k}", "floating", before, f"link{k}.B")
        before = f"link{k}.A"
    q, v = [], rng.normal(size=6 * m)
    for _ in range(m):
        turn = rng.normal(size=4)
        q += [*rng.normal(size=3), *(turn / np.linalg.norm(turn))]
    return net, np.array(q), v


def test_S_is_the_inverse_of_K_and_P_is_symmetric_and_positive():
    net, q, v = spatial_chain(np.random.default_rng(0))
    form = net.closed_form(q, v, ["link3.A"])
    np.testing.assert_allclose(form.S @ form.K, np.eye(18), atol=1e-13)
    np.testing.assert_allclose(form.P, form.P.T, atol=1e-12)
    assert np.linalg.eigvalsh(form.P).min() > 0
    for p in range(3):  # (19) as corrected: S_pp is K_b⁻ᵀ, not 1
        block = form.S[6 * p : 6 * p + 6, 6 * p : 6 * p + 6]
        np.testing.assert_allclose(block @ form.K[6 * p : 6 * p + 6, 6 * p : 6 * p + 6], np.eye(6), atol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_closed_form_equals_the_network_with_joints_opened_as_ports(seed):
    rng = np.random.default_rng(seed)
    net, q, v = spatial_chain(rng)
    form = net.closed_form(q, v, ["link3.A"])
    joints = list(form.joints)
    hybrid = net.hybrid([*joints, "link3.A"], across=joints, q=q, v=v)
    np.testing.assert_allclose(hybrid.H[:18, :18], form.P, atol=1e-9)  # (20): y = P ẋ + …
    np.testing.assert_allclose(hybrid.H[:18, 18:], -form.load_map.T, atol=1e-9)
    np.testing.assert_allclose(hybrid.H[18:, :18], form.load_map, atol=1e-9)
    np.testing.assert_allclose(hybrid.H[18:, 18:], 0, atol=1e-9)
    x = form.directions @ v
    np.testing.assert_allclose(hybrid.h[:18], form.Q @ x + form.u, atol=1e-9)


def test_enlarged_form_with_ports_at_the_mass_centres():
    """(21): through variables at the mass centres enter by −Sᵀ, and their across variables are S x."""
    net, q, v = spatial_chain(np.random.default_rng(4))
    form = net.closed_form(q, v)
    centres = [f"{body}.G" for body in form.bodies]
    hybrid = net.hybrid([*form.joints, *centres], across=form.joints, q=q, v=v)
    np.testing.assert_allclose(hybrid.H[:18, 18:], -form.S.T, atol=1e-9)
    np.testing.assert_allclose(hybrid.H[18:, :18], form.S, atol=1e-9)
    np.testing.assert_allclose(hybrid.h[18:], form.S_rate @ (form.directions @ v), atol=1e-9)


def test_three_forms_of_the_terminal_equations_are_one():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(3, 3))
    omega, gravity = rng.normal(size=(2, 3))
    places = {"G": np.zeros(3), "A": rng.normal(size=3), "B": rng.normal(size=3)}
    kinetic = active_port(1.7, root @ root.T + np.eye(3), omega, gravity)
    x_G, x_G_rate = np.concatenate([rng.normal(size=3), omega]), rng.normal(size=6)
    y = {name: rng.normal(size=6) for name in ("A", "B")}
    y["G"] = kinetic.through(x_G, x_G_rate) - sum(through_from(y[p], places[p]) for p in ("A", "B"))  # (14)
    x = {p: across_at(x_G, r) for p, r in places.items()}
    for base in ("G", "B", "A"):  # (1), (5), (6)
        form = terminal_form(places, base, kinetic, omega)
        r = places[base]
        rate = across_at(x_G_rate, r)
        rate[:3] += np.cross(omega, np.cross(omega, r))
        others, through = form.solve(np.concatenate([y[p] for p in form.others]), x[base], rate)
        np.testing.assert_allclose(others, np.concatenate([x[p] for p in form.others]), atol=1e-12)
        np.testing.assert_allclose(through, y[base], atol=1e-11)
        np.testing.assert_allclose(form.ideal, -form.ideal.T, atol=1e-15)  # an ideal transformer keeps power
    K_a, K_b = lever(places["A"]), lever(places["B"])
    np.testing.assert_allclose(np.linalg.inv(K_b) @ K_a, lever(places["A"] - places["B"]), atol=1e-13)  # (7)


def test_active_port_moved_to_B_is_the_appendix():
    """(49): P_B, u_B as printed; the printed Q_B is right only when applied to x_b."""
    rng = np.random.default_rng(5)
    m, r, (omega, gravity) = 1.3, rng.normal(size=3), rng.normal(size=(2, 3))
    J = np.diag([1.0, 2.0, 2.5])
    moved = active_port(m, J, omega, gravity).at(r, omega)
    R = skew(r)
    J_B = J + m * R @ R.T
    np.testing.assert_allclose(moved.P, np.block([[m * np.eye(3), m * R], [m * R.T, J_B]]), atol=1e-13)
    np.testing.assert_allclose(moved.u, -np.concatenate([m * gravity, m * R.T @ gravity]), atol=1e-13)
    W = skew(omega)
    Q_printed = np.block([[np.zeros((3, 3)), m * W @ R], [np.zeros((3, 3)), W @ J_B]])
    x_b = np.concatenate([rng.normal(size=3), omega])
    np.testing.assert_allclose(moved.Q @ x_b, Q_printed @ x_b, atol=1e-12)
    assert np.abs(moved.Q - Q_printed).max() > 0.1
