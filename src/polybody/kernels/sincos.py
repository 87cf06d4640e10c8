"""Sine and cosine of a vector, as LLVM text: one reduction serves both.

With k the integer nearest to 2x/π and r = x − kπ/2, |r| ≤ π/4 up to rounding:

    sin x = ( sin r,  cos r, −sin r, −cos r)[k mod 4]
    cos x = ( cos r, −sin r, −cos r,  sin r)[k mod 4]                                                           (1)

sin r and cos r are Taylor-like minimax polynomials of degree 13 and 14 (the classic coefficients of fdlibm).

Reduction with fused multiply-add: π/2 = A + B + C to 160 bits, r = fma(−k, C, fma(−k, B, fma(−k, A, x))). The first
step is exact, since x − kA has no more than 53 significant bits while |k| < 2¹⁷; the others round once each.     (2)

Without it: A and B have 33 bits each, so that kA and kB are exact for |k| < 2²⁰; the rounding error of the second
subtraction is recovered (two-sum) and joins the tail kC.                                                     (3)

k is found by adding 1.5·2⁵², which leaves it in the low bits of the sum: defined for NaN and infinity too, unlike a
conversion to an integer. Those come out as NaN because r is NaN. Blocks with a lane beyond |x| = 1e5 take libm's sine
and cosine, lane by lane, through the table of function addresses. No fast-math flag may touch these lines.
"""

from __future__ import annotations

import struct

from polybody.kernels.target import Target

LIMIT = 1e5
MAGIC = 1.5 * 2.0**52
TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
FUSED_PARTS = tuple(map(float.fromhex, ("0x1.921fb54442d18p+0", "0x1.1a62633145c07p-54", "-0x1.f1976b7ed8fbcp-110")))
SHORT_PARTS = tuple(map(float.fromhex, ("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2e037073p-69")))
SIN = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06,
    -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
COS = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05, -2.75573143513906633035e-07,
    2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip


def literal(value: float) -> str:
    """A double as LLVM writes it exactly."""
    return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"


def splat(value: float, lanes: int) -> str:
    return "<" + ", ".join([f"double {literal(value)}"] * lanes) + ">"


class _Lines:
    """Collects instructions on vectors of one width; each method returns the name of its result."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.v = f"<{target.lanes} x double>"
        self.i = f"<{target.lanes} x i64>"
        self.text: list[str] = []
        self.count = 0

    def add_line(self, right: str) -> str:
        self.count += 1
        self.text.append(f"  %t{self.count} = {right}")
        return f"%t{self.count}"

    def op(self, name: str, a: str, b: str) -> str:
        return self.add_line(f"{name} {self.v} {a}, {b}")

    def iop(self, name: str, a: str, b: str) -> str:
        return self.add_line(f"{name} {self.i} {a}, {b}")

    def const(self, value: float) -> str:
        return splat(value, self.target.lanes)

    def iconst(self, value: int) -> str:
        return "<" + ", ".join([f"i64 {value}"] * self.target.lanes) + ">"

    def mul_add(self, a: str, b: str, c: str) -> str:
        """a b + c, fused where the processor can."""
        if self.target.fma:
            n = self.target.lanes
            return self.add_line(f"call {self.v} @llvm.fma.v{n}f64({self.v} {a}, {self.v} {b}, {self.v} {c})")
        return self.op("fadd", self.op("fmul", a, b), c)

    def horner(self, coefficients: tuple[float, ...], z: str) -> str:
        value = self.const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.mul_add(value, z, self.const(c))
        return value


def _reduce(w: _Lines, x: str) -> tuple[str, str]:
    """(r, the bits whose low end is k) by (2) or (3)."""
    shifted = w.mul_add(x, w.const(TWO_OVER_PI), w.const(MAGIC))
    bits = w.add_line(f"bitcast {w.v} {shifted} to {w.i}")
    k = w.op("fsub", shifted, w.const(MAGIC))
    if w.target.fma:
        minus = w.add_line(f"fneg {w.v} {k}")
        r = x
        for part in FUSED_PARTS:
            r = w.mul_add(minus, w.const(part), r)
        return r, bits
    a = w.op("fsub", x, w.op("fmul", k, w.const(SHORT_PARTS[0])))
    kb = w.op("fmul", k, w.const(SHORT_PARTS[1]))
    b = w.op("fsub", a, kb)
    virtual = w.op("fsub", b, a)  # two-sum of a and −kb
    error = w.op("fsub", w.op("fsub", a, w.op("fsub", b, virtual)), w.op("fadd", kb, virtual))
    tail = w.op("fsub", error, w.op("fmul", k, w.const(SHORT_PARTS[2])))
    return w.op("fadd", b, tail), bits


def _both(w: _Lines, x: str) -> tuple[str, str]:
    """Names of sin x and cos x by (1)."""
    r, bits = _reduce(w, x)
    z = w.op("fmul", r, r)
    sin_r = w.mul_add(w.op("fmul", r, z), w.horner(SIN, z), r)
    zz, tail = w.op("fmul", z, z), w.horner(COS, z)
    if w.target.fma:
        cos_r = w.mul_add(zz, tail, w.mul_add(z, w.const(-0.5), w.const(1.0)))
    else:
        half = w.op("fmul", z, w.const(0.5))
        head = w.op("fsub", w.const(1.0), half)
        lost = w.op("fsub", w.op("fsub", w.const(1.0), head), half)  # what rounding took from head
        cos_r = w.op("fadd", head, w.op("fadd", lost, w.op("fmul", zz, tail)))
    parity = w.iop("shl", bits, w.iconst(63))
    odd = w.add_line(f"icmp slt {w.i} {parity}, zeroinitializer")
    mask = f"<{w.target.lanes} x i1>"
    sine = w.add_line(f"select {mask} {odd}, {w.v} {cos_r}, {w.v} {sin_r}")
    cosine = w.add_line(f"select {mask} {odd}, {w.v} {sin_r}, {w.v} {cos_r}")
    # Bit 1 of k is the sign of the sine; bit 1 of k + 1, which is bit 1 of k unless k is odd, that of the cosine.
    sine_sign = w.iop("and", w.iop("shl", bits, w.iconst(62)), w.iconst(-(2**63)))
    signs = (sine_sign, w.iop("xor", sine_sign, parity))
    results = []
    for value, sign in zip((sine, cosine), signs, strict=True):
        flipped = w.iop("xor", w.add_line(f"bitcast {w.v} {value} to {w.i}"), sign)
        results.append(w.add_line(f"bitcast {w.i} {flipped} to {w.v}"))
    return results[0], results[1]


def loop_text(target: Target, sin_slot: int, cos_slot: int) -> str:
    """`@sincos_map(x, sines, cosines, n, libm)`: n vectors of arguments from memory, results to memory."""
    n = target.lanes
    w = _Lines(target)
    magnitude = w.add_line(f"call {w.v} @llvm.fabs.v{n}f64({w.v} %x)")
    huge = w.add_line(f"fcmp ogt {w.v} {magnitude}, {w.const(LIMIT)}")
    packed = w.add_line(f"bitcast <{n} x i1> {huge} to i{n}")
    any_huge = w.add_line(f"icmp ne i{n} {packed}, 0")
    test = w.text
    w.text = []
    sine, cosine = _both(w, "%x")
    return f"""
define internal void @sincos_map(ptr noalias %args, ptr noalias %sines, ptr noalias %cosines,
                                 i64 %n, ptr %libm) noinline {{
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %tail]
  %px = getelementptr {w.v}, ptr %args, i64 %i
  %ps = getelementptr {w.v}, ptr %sines, i64 %i
  %pc = getelementptr {w.v}, ptr %cosines, i64 %i
  %x = load {w.v}, ptr %px
{chr(10).join(test)}
  br i1 {any_huge}, label %far, label %near, !prof !0
near:
{chr(10).join(w.text)}
  store {w.v} {sine}, ptr %ps
  store {w.v} {cosine}, ptr %pc
  br label %tail
far:
  %slot_s = getelementptr ptr, ptr %libm, i64 {sin_slot}
  %slot_c = getelementptr ptr, ptr %libm, i64 {cos_slot}
  %fs = load ptr, ptr %slot_s
  %fc = load ptr, ptr %slot_c
  call void @map1(ptr %fs, ptr %px, ptr %ps, i64 {n})
  call void @map1(ptr %fc, ptr %px, ptr %pc, i64 {n})
  br label %tail
tail:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %done
done:
  ret void
}}
"""


MODULE_TAIL = '\n!0 = !{!"branch_weights", i32 1, i32 100000}\n'
