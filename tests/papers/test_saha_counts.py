"""Saha's Table 2 derived: his forward dynamics (34)-(37), (47)-(50) step by step, counted as he wrote it.

The text below is the paper's, about mass centres, in Denavit-Hartenberg frames: body k is treated in frame k, where
e_k = (0, 0, 1), and carried to frame k+1 or back by two planar rotations. φ is given. Symmetric matrices are computed
once. Numbers know whether they are constants of the arm (operations among constants cost nothing, nor do those with 0
and 1), and only what the accelerations need is counted, so that the savings at the first and last body follow by
themselves. Every number carries its value too: the accelerations are those of the model.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from polybody.model.counting import FORWARD, GIVEN, INVERSE, general_chain, general_counts


class Number:
    """A value with the operation that made it; `fixed` where it is a constant of the arm."""

    step = ""

    def __init__(self, value, kind="", parents=(), fixed=True):
        self.value, self.kind, self.parents, self.fixed = float(value), kind, parents, fixed
        self.made = Number.step

    def _with(self, other, kind, value):
        other = other if isinstance(other, Number) else Number(other)
        fixed = self.fixed and other.fixed
        return Number(value(self.value, other.value), "" if fixed else kind, () if fixed else (self, other), fixed)

    def __mul__(self, other):
        other = other if isinstance(other, Number) else Number(other)
        for one, two in ((self, other), (other, self)):
            if one.fixed and one.value == 0:
                return one
            if one.fixed and one.value == 1:
                return two
        return self._with(other, "M", lambda a, b: a * b)

    def __truediv__(self, other):
        return self if self.fixed and self.value == 0 else self._with(other, "M", lambda a, b: a / b)

    def __add__(self, other):
        other = other if isinstance(other, Number) else Number(other)
        for one, two in ((self, other), (other, self)):
            if one.fixed and one.value == 0:
                return two
        return self._with(other, "A", lambda a, b: a + b)

    def __neg__(self):  # a sign is not counted
        return Number(-self.value, "", () if self.fixed else (self,), self.fixed)

    def __sub__(self, other):
        return self + (-other if isinstance(other, Number) else Number(-other))


def counted(results):
    """{step: [M, A]} of everything that the results need."""
    found, seen, left = defaultdict(lambda: [0, 0]), set(), list(results)
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.kind:
            found[one.made]["MA".index(one.kind)] += 1
        left.extend(one.parents)
    return found


def step(name):
    Number.step = name


def total(terms):
    terms = list(terms)
    found = terms[0]
    for term in terms[1:]:
        found = found + term
    return found


def planar(x, y, c, s):
    return c * x - s * y, s * x + c * y


def turned(v, arm, k, back=False):
    """A vector from frame k+1 to frame k by Rz(θ) Rx(α), or back: 8 M, 4 A."""
    (c, s), (ca, sa) = arm.turn[k], arm.twist[k]
    x, y, z = v
    if back:
        x, y = planar(x, y, c, -s)
        y, z = planar(y, z, ca, -sa)
    else:
        y, z = planar(y, z, ca, sa)
        x, y = planar(x, y, c, s)
    return [x, y, z]


def similar(S, i, j, c, s, symmetric):
    """R S Rᵀ for a planar rotation of axes i, j: 8 M, 8 A of a symmetric matrix, 12 M, 11 A of another.

    u = s (S_ii − S_jj) + c (S_ij + S_ji): the diagonal changes by ∓ s u, off it c u − S_ji stands at ij.
    """
    R, k = [list(row) for row in S], 3 - i - j
    u = s * (S[i][i] - S[j][j]) + c * (S[i][j] + S[j][i])
    su, cu = s * u, c * u
    R[i][i], R[j][j] = S[i][i] - su, S[j][j] + su
    R[i][j] = cu - S[j][i]
    R[j][i] = R[i][j] if symmetric else cu - S[i][j]
    R[i][k], R[j][k] = planar(S[i][k], S[j][k], c, s)
    R[k][i], R[k][j] = (R[i][k], R[j][k]) if symmetric else planar(S[k][i], S[k][j], c, s)
    return R


def turned_matrix(blocks, arm, k):
    """[A Cᵀ; C D] from frame k+1 to frame k: 56 M, 54 A."""
    (c, s), (ca, sa) = arm.turn[k], arm.twist[k]
    return tuple(similar(similar(S, 1, 2, ca, sa, sym), 0, 1, c, s, sym)
                 for S, sym in zip(blocks, (True, False, True), strict=True))  # fmt: skip


def skew(c):
    z = Number(0)
    return [[z, -c[2], c[1]], [c[2], z, -c[0]], [-c[1], c[0], z]]


def carried(blocks, c):
    """Bᵀ M B with B = [1 0; c× 1] (50): C + D c×, and A + ½(c×ᵀW + Wᵀc×) with W = 2 C + D c×; 39 M, 45 A."""
    A, C, D = blocks
    cx, half = skew(c), skew([x * 0.5 for x in c])
    moved = [[C[i][j] + total(D[i][m] * cx[m][j] for m in range(3)) for j in range(3)] for i in range(3)]
    W = [[C[i][j] + moved[i][j] for j in range(3)] for i in range(3)]
    new = [[None] * 3 for _ in range(3)]
    for i in range(3):
        new[i][i] = A[i][i] + total(cx[m][i] * W[m][i] for m in range(3))
        for j in range(i + 1, 3):
            across = total(half[m][i] * W[m][j] for m in range(3)) + total(W[m][i] * half[m][j] for m in range(3))
            new[i][j] = new[j][i] = A[i][j] + across
    return new, moved, D


def full(blocks):
    A, C, D = blocks
    return [[*A[i], *(C[j][i] for j in range(3))] for i in range(3)] + [[*C[i], *D[i]] for i in range(3)]


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


class Arm:
    """Constants and variables of a general chain in the paper's frames: d and r of C_k in frame k+1, I about C_k."""

    def __init__(self, model, q):
        m = model.mechanism
        self.n = model.nv
        number = lambda x: Number(x, fixed=False)  # noqa: E731
        self.turn = [(number(np.cos(x)), number(np.sin(x))) for x in q]
        self.twist, self.d, self.r, self.mass, self.inertia = [], [], [], [], []
        for k in range(self.n):
            T = model.pose(np.zeros(self.n), f"dh_{k + 1}")
            before = np.eye(4) if k == 0 else model.pose(np.zeros(self.n), f"dh_{k}")
            local = np.linalg.inv(before) @ T  # θ = 0: Tz(d) Tx(a) Rx(α)
            alpha = np.arctan2(local[2, 1], local[2, 2])
            self.twist.append((Number(np.cos(alpha)), Number(np.sin(alpha))))
            body = next(b for b in model.description.bodies if b.name == m.bodies[k].links[0])
            frame = next(f for f in model.description.frames if f.name == f"dh_{k + 1}")
            E = np.linalg.inv(frame.origin)
            com = E[:3, :3] @ body.com + E[:3, 3]  # from O_{k+1} to C_k, frame k+1
            a = local[:3, :3].T @ local[:3, 3]  # from O_k to O_{k+1}, frame k+1
            self.r.append([Number(-x) for x in com])
            self.d.append([Number(x) for x in a + com])
            self.mass.append(Number(body.mass))
            I = E[:3, :3] @ body.inertia @ E[:3, :3].T
            self.inertia.append([[Number(x) for x in row] for row in I])

    def body(self, k):
        zero = [[Number(0)] * 3 for _ in range(3)]
        mass = [[self.mass[k] if i == j else Number(0) for j in range(3)] for i in range(3)]
        return self.inertia[k], zero, mass


def first_as_scalar(arm, p, c, F):
    """m̂_1 = p_1ᵀM_1p_1 + xᵀM̂_22 x, x = B_21 p_1: body 1 needs no matrix M̂_1."""
    step("m̂_1 alone")
    across, own = cross(c, p[:3]), full(arm.body(0))
    x = p[:3] + [p[3 + i] + across[i] for i in range(3)]
    parts = [total(M[i][j] * y[j] for j in range(6)) * y[i] for M, y in ((own, p), (F, x)) for i in range(6)]
    return total(parts[:6]) + total(parts[6:])


def accelerations(arm, phi, *, first_matrix=True):
    """θ̈ of (33) by (34)-(37) and (47)-(50); of body 1 either the matrix M̂_1 (50) or only the number m̂_1."""
    n, p, c, psi, m_hat = arm.n, [], [None] * arm.n, [None] * arm.n, [None] * arm.n
    for k in range(n):
        step("d, c")
        if k == 0:  # the first body stays in frame 2, where p_1 is constant
            ca, sa = arm.twist[0]
            e = [Number(0), sa, ca]
            p.append([*e, *cross(e, arm.d[0])])
            continue
        d = turned(arm.d[k], arm, k)
        p.append([Number(0), Number(0), Number(1), -d[1], d[0], Number(0)])
        c[k] = [-(d[j] + arm.r[k - 1][j]) for j in range(3)]
    M = arm.body(n - 1)
    for k in range(n - 1, -1, -1):
        if k:
            step("rotations of M̂")
            M = turned_matrix(M, arm, k)
        F = full(M)
        step("ψ̂ (47)")
        psi_hat = [total(F[i][j] * p[k][j] for j in range(6)) for i in range(6)]
        step("m̂ (47)")
        m_hat[k] = total(p[k][i] * psi_hat[i] for i in range(6))
        if k == 0:
            break
        step("ψ (48)")
        psi[k] = [x / m_hat[k] for x in psi_hat]
        step("M̂_kk (50)")
        for i in range(6):
            for j in range(i, 6):
                F[i][j] = F[j][i] = F[i][j] - psi_hat[i] * psi[k][j]
        if k == 1 and not first_matrix:
            m_hat[0] = first_as_scalar(arm, p[0], c[1], F)
            break
        rest = ([row[:3] for row in F[:3]], [row[:3] for row in F[3:]], [row[3:] for row in F[3:]])
        step("Bᵀ M̂_kk B (50)")
        new = carried(rest, c[k])
        step("M + … (50)")
        M = tuple([[x + y for x, y in zip(*rows, strict=True)] for rows in zip(*pair, strict=True)]
                  for pair in zip(arm.body(k - 1), new, strict=True))  # fmt: skip
        M = tuple([[S[min(i, j)][max(i, j)] for j in range(3)] for i in range(3)] if sym else S
                  for S, sym in zip(M, (True, False, True), strict=True))  # fmt: skip
    tau_hat, eta = [None] * n, [Number(0)] * 6
    for k in range(n - 1, -1, -1):
        if k and k < n - 1:
            step("rotations of η")
            eta = turned(eta[:3], arm, k) + turned(eta[3:], arm, k)
        step("τ̂ (34)")
        tau_hat[k] = phi[k] - total(p[k][i] * eta[i] for i in range(6))
        if k == 0:
            break
        step("η (35)")
        eta = [psi[k][i] * tau_hat[k] + eta[i] for i in range(6)]
        step("Bᵀη (35)")
        arm_of = cross(eta[3:], c[k])
        eta = [eta[i] + arm_of[i] for i in range(3)] + eta[3:]
    step("τ̃")
    tau_tilde = [tau_hat[k] / m_hat[k] for k in range(n)]
    found, mu = [tau_tilde[0]], [Number(0)] * 6
    for k in range(n - 1):
        step("μ (37)")
        mu = [p[k][i] * found[k] + mu[i] for i in range(6)]
        if k:
            step("rotations of μ")
            mu = turned(mu[:3], arm, k, back=True) + turned(mu[3:], arm, k, back=True)
        step("B μ (37)")
        across = cross(c[k + 1], mu[:3])
        mu = mu[:3] + [mu[3 + i] + across[i] for i in range(3)]
        step("θ̈ (36)")
        found.append(tau_tilde[k + 1] - total(psi[k + 1][i] * mu[i] for i in range(6)))
    return found


def counts(n, **options):
    model = general_chain(n)
    rng = np.random.default_rng(n)
    q, phi = rng.uniform(-1.0, 1.0, n), rng.normal(size=n)
    found = accelerations(Arm(model, q), [Number(x, fixed=False) for x in phi], **options)
    wanted = np.linalg.solve(model.mass_matrix(q), phi)
    np.testing.assert_allclose([x.value for x in found], wanted, rtol=1e-8, atol=1e-9)
    steps = counted(found)
    return steps, np.array([sum(x[k] for x in steps.values()) for k in range(2)])


#: of every step: multiplications and additions for one joint more
PER_JOINT = {
    "d, c": (4, 4), "rotations of M̂": (56, 54), "ψ̂ (47)": (12, 12), "m̂ (47)": (2, 2), "ψ (48)": (6, 0),
    "M̂_kk (50)": (21, 21), "Bᵀ M̂_kk B (50)": (38, 45), "M + … (50)": (0, 9), "rotations of η": (16, 8),
    "τ̂ (34)": (2, 3), "η (35)": (6, 6), "Bᵀη (35)": (6, 6), "τ̃": (1, 0), "μ (37)": (2, 3),
    "rotations of μ": (16, 8), "B μ (37)": (6, 6), "θ̈ (36)": (6, 6),
}  # fmt: skip


def table_two(algorithm, n):
    row = next(row for row in FORWARD if row.algorithm == algorithm)
    return np.array([row.multiplications(n), row.additions(n)])


def test_his_steps_take_what_table_two_says_with_phi_given():
    """193 n additions exactly; of his 201 n multiplications one halves a constant. At the ends he saves 12 and 20 more,
    without saying where. With φ counted, 90 n more would be needed.
    """
    found = {n: counts(n) for n in (5, 6, 7)}
    for name, wanted in PER_JOINT.items():
        assert tuple(np.subtract(found[7][0][name], found[6][0][name])) == wanted, name
    assert sum(x[0] for x in PER_JOINT.values()) == 200
    assert sum(x[1] for x in PER_JOINT.values()) == 193
    for n, (_, both) in found.items():
        assert tuple(both) == (200 * n - 323, 193 * n - 341)
        np.testing.assert_array_equal(both, table_two("Saha 1999, his steps counted", n))
        assert tuple(table_two("Saha 1999", n) - both) == (n - 12, -20)


def test_the_constants_of_table_two_lie_between_two_treatments_of_the_first_body():
    """The paper does not say how the ends are counted: −335 and −361 lie between M̂_1 as a matrix and m̂_1 alone.

    The slopes are the same. One multiplication per joint more, the halved constant, is on his side in both.
    """
    matrix, scalar = ({n: counts(n, first_matrix=whole)[1] for n in (5, 6, 7)} for whole in (True, False))
    for n in (5, 6, 7):
        assert tuple(matrix[n]) == (200 * n - 323, 193 * n - 341)
        assert tuple(scalar[n]) == (200 * n - 342, 193 * n - 368)
        halved = np.array([n - 1, 0])
        printed = table_two("Saha 1999", n)
        assert tuple(printed - (matrix[n] + halved)) == (-11, -20)
        assert tuple(printed - (scalar[n] + halved)) == (8, 7)


def test_our_text_takes_no_more_than_any_printed_formula():
    """Like with like: φ given, general chains. For short chains Walker & Orin's cubic formula is the one to beat."""
    for n in (2, 3, 4, 6, 9, 12, 20):
        found = general_counts(n)[GIVEN]
        for row in FORWARD:
            if n >= 3:  # his formulas give 67 and 25 for two joints, fewer than any of his own steps
                assert found.multiplications <= row.multiplications(n), (n, row.algorithm)
                assert found.additions <= row.additions(n), (n, row.algorithm)
        inverse = general_counts(n)["inverse_dynamics"]
        saha = next(row for row in INVERSE if row.algorithm == "Saha 1999")
        assert inverse.multiplications <= saha.multiplications(n)
        assert inverse.additions <= saha.additions(n)
