"""Machine code of Radau IIA of order 5 with adaptive steps, in the language of `native`: for stiff fields.

Stages Y_i = x + Z_i at t + c_i h (Hairer & Wanner, Solving Ordinary Differential Equations II, IV.8),

    (A⁻¹/h) Z = F(x + Z),    A⁻¹T = T Λ,    Λ = diag(μ, [[α, β], [−β, α]]),    Z = T W                               (1)

by simplified Newton iterations, which fall apart into one real and one complex system of the size of the state:

    (μ/h − J) ΔW₀ = (T⁻¹F)₀ − (μ/h) W₀,    (ν/h − J)(ΔW₁ + iΔW₂) = (T⁻¹F)₁ + i(T⁻¹F)₂ − (ν/h)(W₁ + iW₂),    ν = α − iβ

J and its factors are kept for as long as the iterations converge and the step stays about the same. The error is

    e = (μ/h − J)⁻¹(f + Σ E_i Z_i/h),    again with f(x + e) after a rejection

and the interpolant through x and the stages is a cubic, which foresees the next step's Z too. The work W, the last of
y, acts on nothing: it has no part in the systems, and is integrated by the stages' own quadrature.

J is a part `slopes`, or differences of the field where there is none. What a step knows of the one before (`LAST`: its
interpolant; `h_old`, `error_old`; J and its factors) stays in the job from call to call while `warm` is 1.
"""

from __future__ import annotations

import numpy as np

from polybody.late import dataclass
from polybody.properties import cached_property

Array = np.ndarray
MOST_NEWTON = 6
MOST_DOUBTS = 4  # tries of one step whose stages are not to be believed


@dataclass(frozen=True, eq=False)
class Collocation:
    """A method of three stages by c and A, of order 5, and what (1) needs of it."""

    c: Array
    A: Array

    stages = 2  # the place of the last one, which is at the end of the step
    adaptive = True
    dense_rows = 3

    @property
    def b(self) -> Array:
        return self.A[-1]

    @property
    def rows(self) -> Array:
        return self.A

    @cached_property
    def numbers(self) -> dict[str, float]:
        """By the names that the loop's text has."""
        inverse = np.linalg.inv(self.A)
        values, vectors = np.linalg.eig(inverse)
        turn = np.imag(values)
        k, j = int(np.argmin(np.abs(turn))), int(np.argmax(turn))
        real, turning = (vectors[:, i] / vectors[-1, i] for i in (k, j))
        T = np.array([real.real, turning.real, turning.imag]).T
        mu, nu = float(values[k].real), complex(values[j].conjugate())
        # e: the difference to a method with the stage 0 as well, whose weight is 1/μ
        powers = np.vander(self.c, 3, increasing=True).T
        weights = np.linalg.solve(powers, np.array([1 - 1 / mu, 1 / 2, 1 / 3]))
        E = mu * (weights - self.A[-1]) @ inverse
        P = np.linalg.inv(np.vander(self.c, 4, increasing=True)[:, 1:])
        named = {"T": T, "V": np.linalg.inv(T), "A": self.A, "P": P}
        found = {f"{name}{i}{j}": float(M[i, j]) for name, M in named.items() for i in range(3) for j in range(3)}
        found |= {f"C{i}": float(self.c[i]) for i in range(3)} | {f"E{i}": float(E[i]) for i in range(3)}
        return found | {"MU": mu, "NU_RE": nu.real, "NU_IM": nu.imag}


def layout(size: int, padded: int) -> dict[str, int]:
    """{name: bytes from the beginning} of the memory behind the job's word `implicit`, and its length as END_OF."""
    n = size - 1
    sizes = {
        "JAC": n * n, "REAL": n * n, "RE": n * n, "IM": n * n, "PIVOTS_AT": n, "TURNS_AT": n, "W_AT": 3 * n,
        "D_AT": 3 * n, "SCALE": n, "Z_AT": 3 * padded, "LAST": 4 * padded, "ERROR": padded, "PULL": n,
    }  # fmt: skip
    places = 8 * np.cumsum([0, *sizes.values()])
    return dict(zip([*sizes, "END_OF"], places.tolist(), strict=True))


BY_PART = """
def _slopes(job, x, f):
    at = word(job + IMPLICIT) + JAC
    call(word(job + SLOPES_AT), x, word(job + CONSTANTS), _row(job, x), at, word(job + SLOPES_WITH))
    return 0
"""
#: forward differences: errors of J slow Newton's iterations down a little, and change no result
BY_DIFFERENCES = """
def _slopes(job, x, f):
    at = word(job + IMPLICIT) + JAC
    stage = word(job + STAGE)
    answer = word(job + STAGES) + 3 * F
    for j in range(CONTROLLED):
        _copy(stage, x, N)
        here = number(x + 8 * j)
        put(stage + 8 * j, here + 1.5e-8 * (1.0 + size(here)))
        step = number(stage + 8 * j) - here
        if _evaluate(job, stage, answer) != 0:
            return CANNOT
        for i in range(CONTROLLED):
            put(at + 8 * (i * CONTROLLED + j), (number(answer + 8 * i) - number(f + 8 * i)) / step)
    return 0
"""

INTERPOLANT = """
def _inside(job, x0, f0, x1, f1, h: float, s: float, out):  # x₀ + s(Q₀ + s(Q₁ + s Q₂))
    rows = word(job + DENSE) + word(job + DONE) * DENSE_ROW
    mix(out, x0, 1.0, rows, s, rows + X, s * s, rows + 2 * X, s * s * s)
"""

RADAU = """
def _factors(job, h: float):
    m = word(job + IMPLICIT)
    for i in range(CONTROLLED * CONTROLLED):
        entry = 0.0 - number(m + JAC + 8 * i)
        put(m + REAL + 8 * i, entry)
        put(m + RE + 8 * i, entry)
        put(m + IM + 8 * i, 0.0)
    for i in range(CONTROLLED):
        d = 8 * (i * CONTROLLED + i)
        put(m + REAL + d, number(m + REAL + d) + MU / h)
        put(m + RE + d, number(m + RE + d) + NU_RE / h)
        put(m + IM + d, NU_IM / h)
    put(job + FACTOR_H, h)
    if _factored(m + REAL, m + PIVOTS_AT, CONTROLLED) != 0:
        return CANNOT
    return _factored_complex(m + RE, m + IM, m + TURNS_AT, CONTROLLED)

def _foreseen(job, x, h: float):  # Z and W from the last step's interpolant
    m = word(job + IMPLICIT)
    z = m + Z_AT
    last = m + LAST
    stage = word(job + STAGE)
    for s in range(3):
        c = C0
        if s == 1:
            c = C1
        if s == 2:
            c = C2
        at = z + X * s
        if word(job + WARM) == 1:
            o = 1.0 + c * h / number(job + H_OLD)
            mix(stage, last, 1.0, last + X, o, last + 2 * X, o * o, last + 3 * X, o * o * o)
            mix(at, stage, 1.0, x, 0.0 - 1.0, x, 0.0, x, 0.0)
        else:
            mix(at, x, 0.0, x, 0.0, x, 0.0, x, 0.0)
        put(at + T, c * h)
    for i in range(CONTROLLED):
        a = number(z + 8 * i)
        b = number(z + X + 8 * i)
        c = number(z + 2 * X + 8 * i)
        w = m + W_AT + 8 * i
        put(w, V00 * a + V01 * b + V02 * c)
        put(w + 8 * CONTROLLED, V10 * a + V11 * b + V12 * c)
        put(w + 16 * CONTROLLED, V20 * a + V21 * b + V22 * c)
    return 0

def _stages(job, x):  # the field at all three; 0 where it is to be believed, CANNOT where not, −1 for no numbers
    m = word(job + IMPLICIT)
    stage = word(job + STAGE)
    for s in range(3):
        mix(stage, x, 1.0, m + Z_AT + X * s, 1.0, x, 0.0, x, 0.0)
        out = word(job + STAGES) + F * s
        if _evaluate(job, stage, out) != 0:
            return CANNOT
        if _finite(out, NX) == 0:
            return 0 - 1
    return 0

def _collocated(job, x, h: float):  # Newton's iterations: how many, 0 where they do not converge, −1 for no belief
    m = word(job + IMPLICIT)
    K = word(job + STAGES)
    z = m + Z_AT
    d = m + D_AT
    e = d + 8 * CONTROLLED
    g = e + 8 * CONTROLLED
    tolerance = number(job + NEWTON_TOL)
    before = 0.0
    left = MOST_NEWTON
    k = 0
    going = 1
    put(job + RATE, 0.0)
    while going == 1:
        status = _stages(job, x)
        if status == CANNOT:
            return 0 - 1
        if status != 0:
            return 0
        for i in range(CONTROLLED):
            a = number(K + 8 * i)
            b = number(K + F + 8 * i)
            c = number(K + 2 * F + 8 * i)
            w = m + W_AT + 8 * i
            w1 = number(w + 8 * CONTROLLED)
            w2 = number(w + 16 * CONTROLLED)
            put(d + 8 * i, V00 * a + V01 * b + V02 * c - MU / h * number(w))
            put(e + 8 * i, V10 * a + V11 * b + V12 * c - (NU_RE * w1 - NU_IM * w2) / h)
            put(g + 8 * i, V20 * a + V21 * b + V22 * c - (NU_RE * w2 + NU_IM * w1) / h)
        _divided(m + REAL, m + PIVOTS_AT, CONTROLLED, d)
        _divided_complex(m + RE, m + IM, m + TURNS_AT, CONTROLLED, e, g)
        total = 0.0
        for i in range(CONTROLLED):
            scale = number(m + SCALE + 8 * i)
            a = number(d + 8 * i)
            b = number(e + 8 * i)
            c = number(g + 8 * i)
            total = total + (a * a + b * b + c * c) / (scale * scale)
        norm = root(total / (3.0 * ENTRIES))
        rate = 0.0
        if k > 0:
            rate = norm / before
            put(job + RATE, rate)
            if rate >= 1.0:
                return 0
            if power(word(job + POW), rate, left) / (1.0 - rate) * norm > tolerance:
                return 0
        for i in range(CONTROLLED):
            w = m + W_AT + 8 * i
            a = number(w) + number(d + 8 * i)
            b = number(w + 8 * CONTROLLED) + number(e + 8 * i)
            c = number(w + 16 * CONTROLLED) + number(g + 8 * i)
            put(w, a)
            put(w + 8 * CONTROLLED, b)
            put(w + 16 * CONTROLLED, c)
            put(z + 8 * i, T00 * a + T01 * b + T02 * c)
            put(z + X + 8 * i, T10 * a + T11 * b + T12 * c)
            put(z + 2 * X + 8 * i, T20 * a + T21 * b + T22 * c)
        k += 1
        left = left - 1.0
        if norm == 0.0:
            return k
        if k > 1 and rate / (1.0 - rate) * norm < tolerance:
            return k
        before = norm
        if not left > 0.0:
            return 0
    return 0

def _error(job, x, f, h: float):  # its norm at `first`
    m = word(job + IMPLICIT)
    z = m + Z_AT
    e = m + ERROR
    for i in range(CONTROLLED):
        pull = (E0 * number(z + 8 * i) + E1 * number(z + X + 8 * i) + E2 * number(z + 2 * X + 8 * i)) / h
        put(e + 8 * i, number(f + 8 * i) + pull)
    _divided(m + REAL, m + PIVOTS_AT, CONTROLLED, e)
    total = 0.0
    for i in range(CONTROLLED):
        here = number(x + 8 * i)
        there = here + number(z + 2 * X + 8 * i)
        part = number(e + 8 * i) / (number(job + ATOL) + number(job + RTOL) * most(size(here), size(there)))
        total = total + part * part
    put(job + FIRST, root(total / ENTRIES))
    return 0

def _growth(job, h: float, norm: float, result):  # of the step, by the last two errors (Gustafsson)
    factor = 1e300
    if norm > 0.0:
        factor = power(word(job + POW), norm, 0.0 - 0.25)
        if word(job + WARM) == 1 and number(job + ERROR_OLD) > 0.0:
            more = power(word(job + POW), number(job + ERROR_OLD) / norm, 0.25) * h / number(job + H_OLD)
            factor = factor * least(1.0, more)
    put(result, factor)
    return 0

def _worked(job, x, new, h: float):  # the state at the end, with its work, and the interpolant's rows
    m = word(job + IMPLICIT)
    z = m + Z_AT
    K = word(job + STAGES)
    if _stages(job, x) != 0:
        return CANNOT
    w = 8 * CONTROLLED
    a = number(K + w)
    b = number(K + F + w)
    c = number(K + 2 * F + w)
    put(z + w, h * (A00 * a + A01 * b + A02 * c))
    put(z + X + w, h * (A10 * a + A11 * b + A12 * c))
    put(z + 2 * X + w, h * (A20 * a + A21 * b + A22 * c))
    mix(new, x, 1.0, z + 2 * X, 1.0, x, 0.0, x, 0.0)
    rows = word(job + DENSE) + word(job + DONE) * DENSE_ROW
    mix(rows, z, P00, z + X, P01, z + 2 * X, P02, x, 0.0)
    mix(rows + X, z, P10, z + X, P11, z + 2 * X, P12, x, 0.0)
    mix(rows + 2 * X, z, P20, z + X, P21, z + 2 * X, P22, x, 0.0)
    return 0

def _warmed(job, x, f):
    if word(job + WARM) == 1:
        return 0
    put(job + CURRENT, 1)
    put(job + FACTOR_H, 0.0)
    return _slopes(job, x, f)

def _attempted(job, x, f, new, end: float):  # tries until one is accepted; its error and how fast it was found are kept
    K = word(job + STAGES)
    m = word(job + IMPLICIT)
    t = number(x + T)
    tiny = 2.3e-15 * size(t) + 1e-300
    h = most(least(number(job + H), number(job + MAX_STEP)), tiny)
    t1 = t
    status = 0
    rejected = 0
    accepted = 0
    iterations = 0
    doubts = 0
    norm = 0.0
    for i in range(CONTROLLED):
        put(m + SCALE + 8 * i, number(job + ATOL) + number(job + RTOL) * size(number(x + 8 * i)))
    while accepted == 0 and status == 0:
        t1 = t + h
        if h < tiny:
            status = CANNOT
        if t1 > end:
            t1 = end
        h = t1 - t
        iterations = 0
        going = 1
        while going == 1 and status == 0:
            if size(number(job + FACTOR_H) - h) > 1e-6 * h:
                if _factors(job, h) != 0:
                    going = 0
            if going == 1:
                _foreseen(job, x, h)
                iterations = _collocated(job, x, h)
                if iterations > 0 or word(job + CURRENT) == 1:
                    going = 0
                else:
                    status = _slopes(job, x, f)
                    put(job + CURRENT, 1)
                    put(job + FACTOR_H, 0.0)
        if status == 0 and iterations < 0:  # smaller steps would creep up to where the field is believed
            doubts += 1
            if doubts > MOST_DOUBTS:
                status = CANNOT
        if status == 0 and iterations <= 0:
            h = 0.5 * h
            put(job + FACTOR_H, 0.0)
            rejected += 1
        if status == 0 and iterations > 0:
            _error(job, x, f, h)
            norm = number(job + FIRST)
            if norm > 1.0 and rejected > 0:  # once more, from where the error itself leads
                stage = word(job + STAGE)
                _copy(stage, x, N)
                for i in range(CONTROLLED):
                    put(stage + 8 * i, number(x + 8 * i) + number(m + ERROR + 8 * i))
                if _evaluate(job, stage, K + 3 * F) == 0:
                    _error(job, x, K + 3 * F, h)
                    norm = number(job + FIRST)
            used = 2.0 * MOST_NEWTON
            for i in range(iterations):
                used = used + 1.0
            put(job + SAFE, 0.9 * (2.0 * MOST_NEWTON + 1.0) / used)
            if norm <= 1.0:
                accepted = 1
            else:
                factor = 0.2
                if norm < 1e300:
                    _growth(job, h, norm, job + FIRST)
                    factor = most(0.2, number(job + SAFE) * number(job + FIRST))
                h = h * factor
                put(job + FACTOR_H, 0.0)
                rejected += 1
    put(job + TAKEN, h)
    put(job + TRIES, rejected)
    put(job + ERROR_NOW, norm)
    put(job + ITERATED, iterations)
    if status == 0:
        status = _worked(job, x, new, h)
        put(new + T, t1)
    return status

def _interpolated(job, x, f, new, answer):  # with the step itself
    return 0

def _counted(job, x, new, answer, status):
    m = word(job + IMPLICIT)
    h = number(job + TAKEN)
    _growth(job, h, number(job + ERROR_NOW), job + FIRST)
    factor = least(10.0, number(job + SAFE) * number(job + FIRST))
    slow = 0
    if word(job + ITERATED) > 2 and number(job + RATE) > 1e-3:
        slow = 1
    if slow == 0 and factor < 1.2:
        factor = 1.0
    _copy(m + LAST, x, N)
    _copy(m + LAST + X, word(job + DENSE) + word(job + DONE) * DENSE_ROW, 3 * N)
    put(job + WARM, 1)
    put(job + H_OLD, h)
    put(job + ERROR_OLD, number(job + ERROR_NOW))
    put(job + H, h * factor)
    put(job + CURRENT, 0)
    if slow == 1 and status == 0:
        status = _slopes(job, new, answer)
        put(job + CURRENT, 1)
        put(job + FACTOR_H, 0.0)
    return status

def _renewed(job, x, f):  # as from a start
    put(job + WARM, 0)
    return _warmed(job, x, f)
"""

__all__ = ["BY_DIFFERENCES", "BY_PART", "INTERPOLANT", "RADAU", "Collocation", "layout"]
