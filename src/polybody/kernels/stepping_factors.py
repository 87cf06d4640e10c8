"""Machine code that solves A x = b by elimination with pivots, in the language of `native`: factors stand in the place
of A, and serve any number of right sides."""

from __future__ import annotations

FACTORS = """
def _swap(a, b, count):
    for i in range(count):
        first = number(a + 8 * i)
        put(a + 8 * i, number(b + 8 * i))
        put(b + 8 * i, first)

def _factored(A, pivots, n):
    for k in range(n):
        best = size(number(A + 8 * (k * n + k)))
        pivot = k
        for i in range(k + 1, n):
            entry = size(number(A + 8 * (i * n + k)))
            if entry > best:
                best = entry
                pivot = i
        put(pivots + 8 * k, pivot)
        if not best > 0.0:
            return CANNOT
        if pivot != k:
            _swap(A + 8 * k * n, A + 8 * pivot * n, n)
        inverse = 1.0 / number(A + 8 * (k * n + k))
        for i in range(k + 1, n):
            factor = number(A + 8 * (i * n + k)) * inverse
            if not factor == 0.0:
                put(A + 8 * (i * n + k), factor)
                for j in range(k + 1, n):
                    at = A + 8 * (i * n + j)
                    put(at, number(at) - factor * number(A + 8 * (k * n + j)))
    return 0

def _divided(A, pivots, n, b):  # b ← A⁻¹ b by the factors
    for k in range(n):
        _swap(b + 8 * k, b + 8 * word(pivots + 8 * k), 1)
    for i in range(1, n):
        total = number(b + 8 * i)
        for j in range(i):
            total = total - number(A + 8 * (i * n + j)) * number(b + 8 * j)
        put(b + 8 * i, total)
    i = n
    while i > 0:
        i -= 1
        total = number(b + 8 * i)
        for j in range(i + 1, n):
            total = total - number(A + 8 * (i * n + j)) * number(b + 8 * j)
        put(b + 8 * i, total / number(A + 8 * (i * n + i)))
    return 0
"""

COMPLEX_FACTORS = """
def _factored_complex(R, I, pivots, n):
    for k in range(n):
        d = 8 * (k * n + k)
        best = size(number(R + d)) + size(number(I + d))
        pivot = k
        for i in range(k + 1, n):
            entry = size(number(R + 8 * (i * n + k))) + size(number(I + 8 * (i * n + k)))
            if entry > best:
                best = entry
                pivot = i
        put(pivots + 8 * k, pivot)
        if not best > 0.0:
            return CANNOT
        if pivot != k:
            _swap(R + 8 * k * n, R + 8 * pivot * n, n)
            _swap(I + 8 * k * n, I + 8 * pivot * n, n)
        a = number(R + d)
        b = number(I + d)
        square = a * a + b * b
        a = a / square
        b = 0.0 - b / square
        for i in range(k + 1, n):
            at = 8 * (i * n + k)
            c = number(R + at)
            e = number(I + at)
            if not size(c) + size(e) == 0.0:
                p = a * c - b * e
                q = a * e + b * c
                put(R + at, p)
                put(I + at, q)
                for j in range(k + 1, n):
                    to = 8 * (i * n + j)
                    u = number(R + 8 * (k * n + j))
                    v = number(I + 8 * (k * n + j))
                    put(R + to, number(R + to) - (p * u - q * v))
                    put(I + to, number(I + to) - (p * v + q * u))
    return 0

def _divided_complex(R, I, pivots, n, b, c):
    for k in range(n):
        pivot = word(pivots + 8 * k)
        _swap(b + 8 * k, b + 8 * pivot, 1)
        _swap(c + 8 * k, c + 8 * pivot, 1)
    for i in range(1, n):
        p = number(b + 8 * i)
        q = number(c + 8 * i)
        for j in range(i):
            u = number(R + 8 * (i * n + j))
            v = number(I + 8 * (i * n + j))
            p = p - (u * number(b + 8 * j) - v * number(c + 8 * j))
            q = q - (u * number(c + 8 * j) + v * number(b + 8 * j))
        put(b + 8 * i, p)
        put(c + 8 * i, q)
    i = n
    while i > 0:
        i -= 1
        p = number(b + 8 * i)
        q = number(c + 8 * i)
        for j in range(i + 1, n):
            u = number(R + 8 * (i * n + j))
            v = number(I + 8 * (i * n + j))
            p = p - (u * number(b + 8 * j) - v * number(c + 8 * j))
            q = q - (u * number(c + 8 * j) + v * number(b + 8 * j))
        u = number(R + 8 * (i * n + i))
        v = number(I + 8 * (i * n + i))
        square = u * u + v * v
        put(b + 8 * i, (p * u + q * v) / square)
        put(c + 8 * i, (q * u - p * v) / square)
    return 0
"""

__all__ = ["COMPLEX_FACTORS", "FACTORS"]
