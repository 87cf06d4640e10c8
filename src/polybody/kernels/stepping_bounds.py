"""Machine code that finds forces within bounds, in the language of `native`:

    λ = argmin ½ λᵀSλ + gᵀλ,    low ≤ λ ≤ high,    S = N M⁻¹Nᵀ                                                      (1)

N are rows of the unit matrix with signs, of the velocities that forces act on; M is the inertia matrix. Active sets
from the solution without bounds, as `simulation.bounds.within`: from a point within all bounds a bound that holds the
wrong way is let go, and the way to the next point ends at the first bound that it meets. Where S is nearly singular,
its rows depend on each other: the least λ, as `simulation.bounds` finds it.

With constraints only the motions v = G u pass, M* = GᵀMG: G M*⁻¹Gᵀ stands in the place of M⁻¹.
"""

from __future__ import annotations

BOUNDED = """
def _is_well(m, n):
    A = m + SW_PART
    _copy(A, m + SW_S, n * n)
    for k in range(n):
        left = number(A + 8 * (k * n + k))
        if not left * 1e9 > number(m + SW_S + 8 * (k * n + k)):
            return 0
        for i in range(k + 1, n):
            factor = number(A + 8 * (i * n + k)) / left
            for j in range(k + 1, n):
                at = A + 8 * (i * n + j)
                put(at, number(at) - factor * number(A + 8 * (k * n + j)))
    return 1

def _tried_set(m, n):  # the minimum for the present set of bounds
    at = m + SW_BOUND
    y = m + SW_NEXT
    b = m + SW_RIGHT
    A = m + SW_PART
    pick = m + SW_PICK
    free = 0
    for k in range(n):
        if word(at + 8 * k) == 0:
            put(pick + 8 * free, k)
            free += 1
        elif word(at + 8 * k) > 0:
            put(y + 8 * k, number(m + SW_HIGH + 8 * k))
        else:
            put(y + 8 * k, number(m + SW_LOW + 8 * k))
    for i in range(free):
        row = word(pick + 8 * i)
        total = 0.0 - number(m + SW_G + 8 * row)
        for j in range(n):
            if word(at + 8 * j) != 0:
                total = total - number(m + SW_S + 8 * (row * n + j)) * number(y + 8 * j)
        put(b + 8 * i, total)
        for j in range(free):
            put(A + 8 * (i * free + j), number(m + SW_S + 8 * (row * n + word(pick + 8 * j))))
    if _factored(A, m + SW_PIV, free) != 0:
        return CANNOT
    _divided(A, m + SW_PIV, free, b)
    for i in range(free):
        put(y + 8 * word(pick + 8 * i), number(b + 8 * i))
    return 0

def _wrong_bound(m, n):  # the bound that holds the wrong way by most; n: none
    worst = 0.0
    which = n
    for k in range(n):
        slope = number(m + SW_G + 8 * k)
        scale = size(slope)
        for j in range(n):
            term = number(m + SW_S + 8 * (k * n + j)) * number(m + SW_NEXT + 8 * j)
            slope = slope + term
            scale = scale + size(term)
        side = word(m + SW_BOUND + 8 * k)
        along = 0.0
        if side > 0:
            along = slope
        if side < 0:
            along = 0.0 - slope
        if along > 1e-13 * scale and along > worst:
            worst = along
            which = k
    return which

def _within(m, n):  # (1), into SW_FOUND, for S that is positive definite
    x = m + SW_FOUND
    y = m + SW_NEXT
    low = m + SW_LOW
    high = m + SW_HIGH
    at = m + SW_BOUND
    for k in range(n):
        put(at + 8 * k, 0)
    known = 0
    for tries in range(4 * n + 8):
        if _tried_set(m, n) != 0:
            return CANNOT
        beyond = 0
        nearest = 1e300
        which = 0
        for k in range(n):
            bound = 0.0
            outside = 0
            if number(y + 8 * k) < number(low + 8 * k):
                bound = number(low + 8 * k)
                outside = 1
            if number(y + 8 * k) > number(high + 8 * k):
                bound = number(high + 8 * k)
                outside = 1
            if outside == 1:
                beyond += 1
                if known == 1:
                    part = (bound - number(x + 8 * k)) / (number(y + 8 * k) - number(x + 8 * k))
                    if part < nearest:
                        nearest = part
                        which = k
        if beyond == 0:
            known = 1
            _copy(x, y, n)
            wrong = _wrong_bound(m, n)
            if wrong == n:
                return 0
            put(at + 8 * wrong, 0)
        elif known == 0:
            for k in range(n):
                if number(y + 8 * k) < number(low + 8 * k):
                    put(at + 8 * k, 0 - 1)
                if number(y + 8 * k) > number(high + 8 * k):
                    put(at + 8 * k, 1)
        else:  # from the last point within bounds as far as they let it
            side = 1
            if number(y + 8 * which) < number(low + 8 * which):
                side = 0 - 1
            for k in range(n):
                put(x + 8 * k, number(x + 8 * k) + nearest * (number(y + 8 * k) - number(x + 8 * k)))
            put(at + 8 * which, side)
    return CANNOT

def _outside(m, n):  # those beyond their bounds are put there; how many
    found = 0
    for k in range(n):
        x = m + SW_NEXT + 8 * k
        if number(x) < number(m + SW_LOW + 8 * k):
            put(m + SW_BOUND + 8 * k, 0 - 1)
            put(x, number(m + SW_LOW + 8 * k))
            found += 1
        if number(x) > number(m + SW_HIGH + 8 * k):
            put(m + SW_BOUND + 8 * k, 1)
            put(x, number(m + SW_HIGH + 8 * k))
            found += 1
    return found

def _refined(m, n, soft: float):  # proximal points among those between their bounds, from the one in SW_FOUND
    x = m + SW_FOUND
    y = m + SW_NEXT
    for tries in range(20):
        for k in range(n):
            put(m + SW_G + 8 * k, number(m + SW_PULL + 8 * k) - soft * number(x + 8 * k))
        if _tried_set(m, n) != 0:
            return CANNOT
        beyond = _outside(m, n)
        change = 0.0
        scale = 0.0
        for k in range(n):
            change = most(size(number(y + 8 * k) - number(x + 8 * k)), change)
            total = size(number(m + SW_PULL + 8 * k))
            for j in range(n):
                total = total + size(number(m + SW_S + 8 * (k * n + j)) * number(y + 8 * j))
            scale = most(total, scale)
        _copy(x, y, n)
        if beyond == 0 and soft * change <= 1e-14 * scale:
            return 0
    return CANNOT

def _nearest(m, n):  # (1) where rows depend on each other: S + ε in the place of S, and then what ε has changed
    _copy(m + SW_PULL, m + SW_G, n)
    largest = 0.0
    for k in range(n):
        put(m + SW_DIAGONAL + 8 * k, number(m + SW_S + 8 * (k * n + k)))
        largest = most(number(m + SW_S + 8 * (k * n + k)), largest)
    soft = 1e-6 * largest
    if not soft > 0.0:
        return CANNOT
    for k in range(n):
        put(m + SW_S + 8 * (k * n + k), number(m + SW_DIAGONAL + 8 * k) + soft)
    status = _within(m, n)
    if status == 0:
        status = _refined(m, n, soft)
    _copy(m + SW_G, m + SW_PULL, n)
    for k in range(n):
        put(m + SW_S + 8 * (k * n + k), number(m + SW_DIAGONAL + 8 * k))
    return status

def _between(m, n):  # (1), into SW_FOUND
    if n == 0:
        return 0
    if n == 1 and number(m + SW_S) > 0.0:
        alone = (0.0 - number(m + SW_G)) / number(m + SW_S)
        put(m + SW_FOUND, least(most(alone, number(m + SW_LOW)), number(m + SW_HIGH)))
        return 0
    if _is_well(m, n) == 1:
        if _within(m, n) == 0:
            return 0
    return _nearest(m, n)
"""

#: what the rows need of inertias, from the part `inertia`; of long chains `stepping_recursions` has it
MATRICES = """
def _inertial(job, x):
    m = word(job + SWITCH_MEMORY)
    call(word(job + INERTIA_AT), x, word(job + CONSTANTS), m + SW_MASS, word(job + INERTIA_WITH))
    if SW_LOOPS == 1:
        _copy(m + SW_FACTOR, m + SW_STAR, SW_PASSING * SW_PASSING)
    else:
        _copy(m + SW_FACTOR, m + SW_MASS, NV * NV)
    return _factored(m + SW_FACTOR, m + SW_PIVOTS, SW_PASSING)

def _energy(m, v, out):  # of motion and place, at the state that `_inertial` was asked for
    total = 0.0
    for i in range(NV):
        part = 0.0
        for j in range(NV):
            part = part + number(m + SW_MASS + 8 * (i * NV + j)) * number(v + 8 * j)
        total = total + part * number(v + 8 * i)
    put(out, 0.5 * total + number(m + SW_POTENTIAL))
    return 0

def _answered(m, column, v, sign: float):  # M⁻¹n, n the row of a velocity
    if SW_LOOPS == 1:
        u = m + SW_PASSED
        for i in range(SW_PASSING):
            put(u + 8 * i, sign * number(m + SW_MOTIONS + v * SW_PASSING + 8 * i))
        _divided(m + SW_FACTOR, m + SW_PIVOTS, SW_PASSING, u)
        for i in range(NV):
            total = 0.0
            for j in range(SW_PASSING):
                total = total + number(m + SW_MOTIONS + 8 * (i * SW_PASSING + j)) * number(u + 8 * j)
            put(column + 8 * i, total)
    else:
        for i in range(NV):
            put(column + 8 * i, 0.0)
        put(column + v, sign)
        _divided(m + SW_FACTOR, m + SW_PIVOTS, NV, column)
    return 0
"""

ROWS = """
def _added(m, n, v, sign: float, who, low: float, high: float):  # a row of N; more than there is room for: SW_MOST + 1
    if n >= SW_MOST:
        return SW_MOST + 1
    put(m + SW_V + 8 * n, v)
    put(m + SW_SIGN + 8 * n, sign)
    put(m + SW_WHO + 8 * n, who)
    put(m + SW_LOW + 8 * n, low)
    put(m + SW_HIGH + 8 * n, high)
    return n + 1

def _squared(m, n):  # M⁻¹Nᵀ and S
    for k in range(n):
        _answered(m, m + SW_COLUMNS + 8 * NV * k, word(m + SW_V + 8 * k), number(m + SW_SIGN + 8 * k))
    for i in range(n):
        for j in range(n):
            entry = number(m + SW_COLUMNS + 8 * NV * j + word(m + SW_V + 8 * i))
            put(m + SW_S + 8 * (i * n + j), number(m + SW_SIGN + 8 * i) * entry)
    return 0

def _along(m, n, of, factor: float):  # g
    for k in range(n):
        put(m + SW_G + 8 * k, factor * number(m + SW_SIGN + 8 * k) * number(of + word(m + SW_V + 8 * k)))
    return 0

def _moved_by(m, n, v):  # v ← v + M⁻¹Nᵀλ
    for k in range(n):
        for i in range(NV):
            change = number(m + SW_FOUND + 8 * k) * number(m + SW_COLUMNS + 8 * (NV * k + i))
            put(v + 8 * i, number(v + 8 * i) + change)
    return 0

def _of_held(job, of):  # all that is held, and λ by which `of` vanishes there; how many rows, or SW_MOST + 1
    m = word(job + SWITCH_MEMORY)
    c = word(job + CONSTANTS)
    n = 0
    for i in range(SW_SLOTS):
        if number(c + FREE_AT + 8 * i) == 0.0:
            v = word(word(job + SWITCH_WORDS) + WORDS_SLOTS + 16 * i + 8)
            n = _added(m, n, v, 1.0, i, 0.0 - 1e300, 1e300)
    if n > SW_MOST:
        return n
    _squared(m, n)
    _along(m, n, of, 1.0)
    if _between(m, n) != 0:
        return SW_MOST + 1
    return n
"""

__all__ = ["BOUNDED", "MATRICES", "ROWS"]
