"""Rotations: matrices, unit quaternions (x, y, z, w), roll-pitch-yaw, axis-angle, exponential and logarithm.

A rotation matrix R maps components in the rotated frame to components in the reference frame. With φ a rotation
vector, θ = ‖φ‖ and [φ] its cross-product matrix,

    exp φ = 1 + A [φ] + B [φ]²,     A = sin θ / θ,   B = (1 − cos θ) / θ²

and its tangent (left Jacobian)  J = 1 + B [φ] + C [φ]²,  C = (θ − sin θ) / θ³. Near zero the coefficients are their
Taylor series; the switch is a `where` on θ², so that all domains and derivatives can take it. The logarithm goes
through the quaternion, which keeps full precision near θ = π, where the skew part of R vanishes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array, Domain

#: The logarithm's closed form is exact down to the underflow of its divisor, so its series takes over much later.
LOG_SERIES_BELOW = 1e-8


def cross(a: Array, b: Array) -> Array:
    """a × b for arrays of any domain, of vectors (3,) or of many (3, …)."""
    values = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    if a.dtype != object or a.ndim > 1 or b.ndim > 1:
        return np.array(values, dtype=np.result_type(a, b))
    result = np.empty(3, dtype=object)  # NumPy would look into every scalar for more dimensions
    result[:] = values
    return result


def skew(a: Array, *, domain: Domain = FLOAT) -> Array:
    """[a]: the matrix with [a] b = a × b."""
    o = domain.const(0)
    return np.array([[o, -a[2], a[1]], [a[2], o, -a[0]], [-a[1], a[0], o]], dtype=domain.dtype)



def exp_coefficients(square: Any, *, domain: Domain = FLOAT) -> tuple[Any, Any, Any]:
    """A = sin θ/θ, B = (1 − cos θ)/θ² and C = (θ − sin θ)/θ³ as functions of θ²."""
    c = domain.const
    small = domain.less(square, c(domain.series_below))
    safe = domain.where(small, c(1), square)  # keeps the branch not taken finite
    theta = domain.sqrt(safe)
    s, half = domain.sin(theta), domain.sin(theta / c(2))
    x = square

    def series(*terms: float) -> Any:
        total = c(0)
        for k in reversed(terms):
            total = total * x + c(1) / c(k)
        return total

    a = domain.where(small, series(1, -6, 120, -5040, 362880, -39916800, 6227020800), s / theta)
    b = domain.where(small, series(2, -24, 720, -40320, 3628800, -479001600, 87178291200), c(2) * half * half / safe)
    d = domain.where(small, series(6, -120, 5040, -362880, 39916800, -6227020800), (theta - s) / (safe * theta))
    return a, b, d


def rotation_exp(phi: Array, *, domain: Domain = FLOAT) -> Array:
    """The rotation matrix exp[φ]."""
    a, b, _ = exp_coefficients(phi @ phi, domain=domain)
    k = skew(phi, domain=domain)
    return domain.eye(3) + a * k + b * (k @ k)


def left_jacobian(phi: Array, *, domain: Domain = FLOAT) -> Array:
    """J with d(exp φ) exp(−φ) = [J dφ]: it also carries the translation of the SE(3) exponential."""
    _, b, d = exp_coefficients(phi @ phi, domain=domain)
    k = skew(phi, domain=domain)
    return domain.eye(3) + b * k + d * (k @ k)


def left_jacobian_inverse(phi: Array, *, domain: Domain = FLOAT) -> Array:
    """J⁻¹ = 1 − ½[φ] + E [φ]², E = 1/θ² − (1 + cos θ)/(2 θ sin θ), with its series near zero."""
    c = domain.const
    x = phi @ phi
    small = domain.less(x, c(domain.series_below))
    safe = domain.where(small, c(1), x)
    theta = domain.sqrt(safe)
    half = theta / c(2)
    closed = c(1) / safe - domain.cos(half) / (c(2) * theta * domain.sin(half))
    series = c(0)
    for numerator, denominator in ((691, 1307674368000), (1, 47900160), (1, 1209600), (1, 30240), (1, 720), (1, 12)):
        series = series * x + c(numerator) / c(denominator)
    k = skew(phi, domain=domain)
    return domain.eye(3) - k / c(2) + domain.where(small, series, closed) * (k @ k)


def axis_rotation(axis: Array, sine: Any, cosine: Any, *, domain: Domain = FLOAT) -> Array:
    """The rotation about a unit axis whose sine and cosine are given.

    About a coordinate axis, as most joints turn, they are its entries: 1 − (1 − c) would round, and cost a first answer
    half of the time in which it reads a joint.
    """
    about = [i for i, x in enumerate(axis.tolist()) if not domain.is_zero(x)]
    if len(about) == 1:
        i, one = about[0], domain.const(1)
        j, k, along = (i + 1) % 3, (i + 2) % 3, axis[i]
        if domain.is_zero(along - one) or domain.is_zero(along + one):
            result = domain.eye(3)
            result[j, j] = result[k, k] = cosine
            result[k, j], result[j, k] = (sine, -sine) if domain.is_zero(along - one) else (-sine, sine)
            return result
    k = skew(axis, domain=domain)
    return domain.eye(3) + sine * k + (domain.const(1) - cosine) * (k @ k)


def axis_angle_matrix(axis: Array, angle: Any, *, domain: Domain = FLOAT) -> Array:
    """The rotation by `angle` about a unit `axis`."""
    return axis_rotation(axis, domain.sin(angle), domain.cos(angle), domain=domain)


def quaternion_matrix(quaternion: Array, *, domain: Domain = FLOAT) -> Array:
    """The rotation matrix of a unit quaternion (x, y, z, w); no normalisation happens here."""
    x, y, z, w = quaternion
    one, two = domain.const(1), domain.const(2)
    return np.array(
        [
            [one - two * (y * y + z * z), two * (x * y - z * w), two * (x * z + y * w)],
            [two * (x * y + z * w), one - two * (x * x + z * z), two * (y * z - x * w)],
            [two * (x * z - y * w), two * (y * z + x * w), one - two * (x * x + y * y)],
        ],
        dtype=domain.dtype,
    )


def quaternion_product(a: Array, b: Array) -> Array:
    """a ⊗ b, rotations composed as their matrices are: R(a ⊗ b) = R(a) R(b)."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return np.array(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        dtype=np.result_type(a, b),
    )


def quaternion_rate(quaternion: Array, omega: Array, *, domain: Domain = FLOAT) -> Array:
    """q̇ = ½ q ⊗ (ω, 0) for the angular velocity ω in the rotated frame."""
    pure = np.array([*omega, domain.const(0)], dtype=domain.dtype)
    return quaternion_product(quaternion, pure) / domain.const(2)


def quaternion_exp(phi: Array, *, domain: Domain = FLOAT) -> Array:
    """The unit quaternion of the rotation vector φ."""
    half = phi / domain.const(2)
    square = half @ half
    a, b, _ = exp_coefficients(square, domain=domain)
    return np.array([*(a * half), domain.const(1) - b * square], dtype=domain.dtype)


def quaternion_log(quaternion: Array, *, domain: Domain = FLOAT) -> Array:
    """The rotation vector of a unit quaternion, of length at most π; stable near 0 and near π."""
    c = domain.const
    v, w = quaternion[:3], quaternion[3]
    # q and −q are the same rotation: take the one with w ≥ 0, whose angle is at most π.
    sign = domain.where(domain.less(w, c(0)), c(-1), c(1))
    v, w = sign * v, sign * w
    square = v @ v
    small = domain.less(square, c(min(LOG_SERIES_BELOW, domain.series_below**4)))
    safe = domain.where(small, c(1), square)
    norm = domain.sqrt(safe)
    # Near zero θ/‖v‖ = 2 atan(‖v‖/w)/‖v‖, a series in (‖v‖/w)².
    safe_w = domain.where(small, w, c(1))
    t = square / (safe_w * safe_w)
    series = (c(2) - t * c(2) / c(3) + t * t * c(2) / c(5) - t * t * t * c(2) / c(7)) / safe_w
    return domain.where(small, series, c(2) * domain.atan2(norm, w) / norm) * v


def matrix_quaternion(rotation: Array, *, domain: Domain = FLOAT) -> Array:
    """The unit quaternion (x, y, z, w), w ≥ 0, of a rotation matrix (the largest component divides)."""
    r, c = domain.array(rotation), domain.const
    trace = r[0, 0] + r[1, 1] + r[2, 2]
    largest = trace
    found = [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], c(1) + trace]
    for i in range(3):
        j, m = (i + 1) % 3, (i + 2) % 3
        other = {i: c(1) + r[i, i] - r[j, j] - r[m, m], j: r[j, i] + r[i, j], m: r[m, i] + r[i, m]}
        other[3] = r[m, j] - r[j, m]
        larger = domain.less(largest, r[i, i])
        found = [domain.where(larger, other[k], found[k]) for k in range(4)]
        largest = domain.where(larger, r[i, i], largest)
    q = np.array(found, dtype=domain.dtype)
    scale = c(1) / domain.sqrt(q @ q)
    return q * domain.where(domain.less(q[3], c(0)), -scale, scale)


def rotation_log(rotation: Array, *, domain: Domain = FLOAT) -> Array:
    """The rotation vector of a rotation matrix; stable near 0 and near π."""
    return quaternion_log(matrix_quaternion(rotation, domain=domain), domain=domain)


def rpy_matrix(rpy: Array, *, domain: Domain = FLOAT) -> Array:
    """R = Rz(yaw) Ry(pitch) Rx(roll): fixed-axis roll, pitch, yaw as in URDF."""
    (sr, cr), (sp, cp), (sy, cy) = ((domain.sin(a), domain.cos(a)) for a in rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ],
        dtype=domain.dtype,
    )


def matrix_rpy(rotation: Array) -> Array:
    """(roll, pitch, yaw) of a rotation matrix of numbers; at pitch ±90° the roll is taken as zero.

    Near ±90° roll and yaw are each ill-determined, only together they are not: the yaw is therefore taken from what the
    roll found leaves over, R Rx(−roll) = Rz(yaw) Ry(pitch), so that the angles always give R back.
    """
    r = np.asarray(rotation, dtype=float)
    flat = float(np.hypot(r[0, 0], r[1, 0]))
    pitch = float(np.arctan2(-r[2, 0], flat))
    roll = 0.0 if flat < 1e-15 else float(np.arctan2(r[2, 1], r[2, 2]))
    s, c = np.sin(roll), np.cos(roll)
    yaw = float(np.arctan2(s * r[0, 2] - c * r[0, 1], c * r[1, 1] - s * r[1, 2]))
    return np.array([roll, pitch, yaw])


def is_rotation(matrix: Array, tolerance: float = 1e-9) -> bool:
    """True for a proper orthogonal 3×3 matrix of numbers."""
    r = np.asarray(matrix, dtype=float)
    if np.array_equal(r, _IDENTITY):  # most frames of files are not turned
        return True
    return bool(np.abs(r @ r.T - _IDENTITY).max() <= tolerance and np.linalg.det(r) > 0)


_IDENTITY = np.eye(3)


__all__ = [
    "axis_angle_matrix",
    "axis_rotation",
    "cross",
    "exp_coefficients",
    "is_rotation",
    "left_jacobian",
    "left_jacobian_inverse",
    "matrix_quaternion",
    "matrix_rpy",
    "quaternion_exp",
    "quaternion_log",
    "quaternion_matrix",
    "quaternion_product",
    "quaternion_rate",
    "rotation_exp",
    "rotation_log",
    "rpy_matrix",
    "skew",
]
