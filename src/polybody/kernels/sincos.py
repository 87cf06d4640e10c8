"""Sine and cosine of a vector, as LLVM text: one reduction serves both.

With k the integer nearest to 2x/π and r = x − kπ/2, |r| ≤ π/4 up to rounding:

    sin x = ( sin r,  cos r, −sin r, −cos r)[k mod 4]
    cos x = ( cos r, −sin r, −cos r,  sin r)[k mod 4]                                                           (1)

sin r and cos r are Taylor-like minimax polynomials: of degree 13 and 14 for float64 (the classic coefficients of
fdlibm), of degree 7 and 8 for float32 (those of Cephes).

Reduction with fused multiply-add: π/2 = A + B + C to three times the precision, r = fma(−k, C, fma(−k, B, fma(−k, A,
x))). The first step is exact, since x − kA has no more significant bits than a number; the others round once each. (2)

Without it: A and B have 33 bits each, so that kA and kB are exact for |k| < 2²⁰; the rounding error of the second
subtraction is recovered (two-sum) and joins the tail kC. For float32, x − kA − kB in float64 is more than enough. (3)

k is found by adding 1.5·2⁵² (1.5·2²³), which leaves it in the low bits of the sum: defined for NaN and infinity too,
unlike a conversion to an integer. Those come out as NaN because r is NaN. No fast-math flag may touch these lines.

All arguments are computed so first, their squares summed up. Where the sum says that one may lie beyond |x| = 1e5
(1e4), vectors with such a lane are computed again by libm's sine and cosine, through the table of function addresses.

Measured on Zen 4 with AVX2: 16 cycles for four pairs in float64, where the units that multiply need 12; 11 cycles for
eight in float32. Horner's rule, two vectors side by side, or the same written into the code that uses the results were
no faster.
"""

from __future__ import annotations

from dataclasses import replace

from polybody.kernels.code import Code
from polybody.kernels.target import Target
from polybody.late import dataclass


def _exact(*numbers: str) -> tuple[float, ...]:
    return tuple(map(float.fromhex, numbers))


@dataclass(frozen=True)
class _Numbers:
    """What (1) to (3) need of numbers, for one precision."""

    limit: float
    magic: float
    two_over_pi: float
    fused: tuple[float, ...]
    sin: tuple[float, ...]
    cos: tuple[float, ...]


SHORT = _exact("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2e037073p-69")
NUMBERS = {
    "double": _Numbers(
        limit=1e5,
        magic=1.5 * 2.0**52,
        two_over_pi=float.fromhex("0x1.45f306dc9c883p-1"),
        fused=_exact("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110"),
        sin=(
            -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
            2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
        ),
        cos=(
            4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
            -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
        ),
    ),
    "float": _Numbers(
        limit=1e4,
        magic=1.5 * 2.0**23,
        two_over_pi=float.fromhex("0x1.45f306p-1"),
        fused=_exact("0x1.921fb60000000p+0", "-0x1.777a5c0000000p-25", "-0x1.ee59da0000000p-50"),
        sin=(-1.6666654611e-01, 8.3321608736e-03, -1.9515295891e-04),
        cos=(4.166664568298827e-02, -1.388731625493765e-03, 2.443315711809948e-05),
    ),
}  # fmt: skip


def _polynomial(w: Code, coefficients: tuple[float, ...], z: str, zz: str) -> str:
    """Neighbours in pairs, pairs by Horner's rule in z²: as many operations as Horner's rule in z, half as deep."""
    pairs = [coefficients[k : k + 2] for k in range(0, len(coefficients), 2)]
    value = ""
    for pair in reversed(pairs):
        low = w.constant(pair[0])
        part = w.mul_add(w.constant(pair[1]), z, low) if len(pair) == 2 else low
        value = w.mul_add(value, zz, part) if value else part
    return value


def _reduce(w: Code, x: str) -> tuple[str, str, str]:
    """(r, r without its last correction, the bits whose low end is k) by (2) or (3)."""
    n = NUMBERS[w.number]
    magic = w.constant(n.magic)
    shifted = w.mul_add(x, w.constant(n.two_over_pi), magic)
    bits = w.add(f"bitcast {w.v} {shifted} to {w.i}")
    k = w.op("fsub", shifted, magic)
    if w.target.fma:
        minus = w.add(f"fneg {w.v} {k}")
        r = x
        for part in n.fused[:2]:
            r = w.mul_add(minus, w.constant(part), r)
        return w.mul_add(minus, w.constant(n.fused[2]), r), r, bits
    if w.number == "float":
        r = _reduce_in_double(w, x, k)
        return r, r, bits
    a = w.op("fsub", x, w.op("fmul", k, w.const(SHORT[0])))
    kb = w.op("fmul", k, w.const(SHORT[1]))
    b = w.op("fsub", a, kb)
    virtual = w.op("fsub", b, a)  # two-sum of a and −kb
    error = w.op("fsub", w.op("fsub", a, w.op("fsub", b, virtual)), w.op("fadd", kb, virtual))
    tail = w.op("fsub", error, w.op("fmul", k, w.const(SHORT[2])))
    r = w.op("fadd", b, tail)
    return r, r, bits


def _reduce_in_double(w: Code, x: str, k: str) -> str:
    wide = Code(replace(w.target, number="double"))
    long_x, long_k = (w.add(f"fpext {w.v} {value} to {wide.v}") for value in (x, k))
    for part in (SHORT[0], SHORT[1] + SHORT[2]):
        product = w.add(f"fmul {wide.v} {long_k}, {wide.const(part)}")
        long_x = w.add(f"fsub {wide.v} {long_x}, {product}")
    return w.add(f"fptrunc {wide.v} {long_x} to {w.v}")


def _both(w: Code, x: str) -> tuple[str, str]:
    """Names of sin x and cos x by (1)."""
    r, rough, bits = _reduce(w, x)
    z = w.op("fmul", rough, rough)
    zz = w.op("fmul", z, z)
    sin_r = w.mul_add(w.op("fmul", rough, z), _polynomial(w, NUMBERS[w.number].sin, z, zz), r)
    tail = _polynomial(w, NUMBERS[w.number].cos, z, zz)
    if w.target.fma:
        cos_r = w.mul_add(zz, tail, w.mul_add(z, w.constant(-0.5), w.constant(1.0)))
    else:
        half = w.op("fmul", z, w.const(0.5))
        head = w.op("fsub", w.const(1.0), half)
        lost = w.op("fsub", w.op("fsub", w.const(1.0), head), half)  # what rounding took from head
        cos_r = w.op("fadd", head, w.op("fadd", lost, w.op("fmul", zz, tail)))
    parity = w.iop("shl", bits, w.iconst(8 * w.size - 1))
    odd = w.add(f"icmp slt {w.i} {parity}, zeroinitializer")
    sine = w.add(f"select {w.mask} {odd}, {w.v} {cos_r}, {w.v} {sin_r}")
    cosine = w.add(f"select {w.mask} {odd}, {w.v} {sin_r}, {w.v} {cos_r}")
    # Bit 1 of k is the sign of the sine; bit 1 of k + 1, which is bit 1 of k unless k is odd, that of the cosine.
    sine_sign = w.iop("and", w.iop("shl", bits, w.iconst(8 * w.size - 2)), w.iconst(-(2 ** (8 * w.size - 1))))
    signs = (sine_sign, w.iop("xor", sine_sign, parity))
    results = []
    for value, sign in zip((sine, cosine), signs, strict=True):
        flipped = w.iop("xor", w.add(f"bitcast {w.v} {value} to {w.i}"), sign)
        results.append(w.add(f"bitcast {w.i} {flipped} to {w.v}"))
    return results[0], results[1]


def loop_text(target: Target, sin_slot: int, cos_slot: int) -> str:
    """`@sincos_map(x, sines, cosines, n, libm)`: n vectors of arguments from memory, results to memory."""
    n = min(target.lanes, target.register)
    w = Code(replace(target, lanes=n), "sincos")
    limit = NUMBERS[w.number].limit
    squares = w.mul_add("%x", "%x", "%before")
    sine, cosine = _both(w, "%x")
    near, w.lines = w.lines, []
    may_be_huge = _any_above(w, squares, 0.99 * limit**2)
    test, w.lines = w.lines, []
    magnitude = w.add(f"call {w.v} @llvm.fabs.{w.suffix}({w.v} %far_x)")
    is_far = _any_above(w, magnitude, limit)
    declared = "" if n == target.lanes else _declared(w)
    newline = "\n"
    return f"""{newline.join(w.constants_text())}{declared}
define internal void @sincos_map(ptr noalias %args, ptr noalias %sines, ptr noalias %cosines,
                                 i64 %vectors, ptr %libm) {w.attributes()} noinline {{
entry:
  %n = mul i64 %vectors, {target.lanes // n}
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %head]
  %before = phi {w.v} [zeroinitializer, %entry], [{squares}, %head]
  %px = getelementptr {w.v}, ptr %args, i64 %i
  %ps = getelementptr {w.v}, ptr %sines, i64 %i
  %pc = getelementptr {w.v}, ptr %cosines, i64 %i
  %x = load {w.v}, ptr %px
{newline.join(near)}
  store {w.v} {sine}, ptr %ps
  store {w.v} {cosine}, ptr %pc
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %ended
ended:
{newline.join(test)}
  br i1 {may_be_huge}, label %again, label %done, !prof !0
again:
  %k = phi i64 [0, %ended], [%next_k, %tail]
  %far_px = getelementptr {w.v}, ptr %args, i64 %k
  %far_x = load {w.v}, ptr %far_px
{newline.join(w.lines)}
  br i1 {is_far}, label %far, label %tail
far:
  %far_ps = getelementptr {w.v}, ptr %sines, i64 %k
  %far_pc = getelementptr {w.v}, ptr %cosines, i64 %k
  %slot_s = getelementptr ptr, ptr %libm, i64 {sin_slot}
  %slot_c = getelementptr ptr, ptr %libm, i64 {cos_slot}
  %fs = load ptr, ptr %slot_s
  %fc = load ptr, ptr %slot_c
  call void @map1(ptr %fs, ptr %far_px, ptr %far_ps, i64 {n})
  call void @map1(ptr %fc, ptr %far_px, ptr %far_pc, i64 {n})
  br label %tail
tail:
  %next_k = add i64 %k, 1
  %more_k = icmp slt i64 %next_k, %n
  br i1 %more_k, label %again, label %done
done:
  ret void
}}
"""


def _any_above(w: Code, value: str, limit: float) -> str:
    above = w.add(f"fcmp ogt {w.v} {value}, {w.const(limit)}")
    packed = w.add(f"bitcast {w.mask} {above} to i{w.target.lanes}")
    return w.add(f"icmp ne i{w.target.lanes} {packed}, 0")


def _declared(w: Code) -> str:
    """The intrinsics of vectors that are shorter than the module's."""
    return f"""
declare {w.v} @llvm.fabs.{w.suffix}({w.v})
declare {w.v} @llvm.fma.{w.suffix}({w.v}, {w.v}, {w.v})
"""


MODULE_TAIL = '\n!0 = !{!"branch_weights", i32 1, i32 100000}\n'
