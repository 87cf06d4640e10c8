"""Uniform random numbers by machine code: xoshiro256+ (Blackman & Vigna 2021) in eight streams side by side.

    x   = s0 + s3,     t = s1 << 17
    s2 ^= s0,  s3 ^= s1,  s1 ^= s2,  s0 ^= s3,  s2 ^= t,  s3 = rotl(s3, 45)
    u   = (x >> 12) 2⁻⁵²              in [0, 1)

The lowest bits of a sum are the weak ones of this generator; they are not used.

Number k of a sequence is that of stream k mod 8, whatever the processor: eight streams fill its registers, and the same
seed gives the same bits everywhere. The 32 words of the state come from `numpy.random.SeedSequence`. NumPy's generators
compute number after number, which takes as long as the kernels that the numbers are for.

Column j of a row gets low_j + width_j u, in the same pass: two roundings, never a fused one.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from polybody.kernels import memory
from polybody.kernels.machine import Loaded
from polybody.kernels.programs import Made, digest, kept
from polybody.kernels.target import Target, host

Array = np.ndarray
STREAMS = 8
TEXT = """
define i64 @draw(ptr %state, ptr %low, ptr %width, i64 %period, ptr %out, i64 %blocks) {
entry:
  %p1 = getelementptr i64, ptr %state, i64 8
  %p2 = getelementptr i64, ptr %state, i64 16
  %p3 = getelementptr i64, ptr %state, i64 24
  %a0 = load <8 x i64>, ptr %state, align 8
  %a1 = load <8 x i64>, ptr %p1, align 8
  %a2 = load <8 x i64>, ptr %p2, align 8
  %a3 = load <8 x i64>, ptr %p3, align 8
  br label %test
test:
  %k = phi i64 [0, %entry], [%k1, %step]
  %j = phi i64 [0, %entry], [%j2, %step]
  %s0 = phi <8 x i64> [%a0, %entry], [%d0, %step]
  %s1 = phi <8 x i64> [%a1, %entry], [%d1, %step]
  %s2 = phi <8 x i64> [%a2, %entry], [%d2, %step]
  %s3 = phi <8 x i64> [%a3, %entry], [%d3, %step]
  %more = icmp slt i64 %k, %blocks
  br i1 %more, label %step, label %end
step:
  %sum = add <8 x i64> %s0, %s3
  %t = shl <8 x i64> %s1, splat (i64 17)
  %b2 = xor <8 x i64> %s2, %s0
  %b3 = xor <8 x i64> %s3, %s1
  %d1 = xor <8 x i64> %s1, %b2
  %d0 = xor <8 x i64> %s0, %b3
  %d2 = xor <8 x i64> %b2, %t
  %d3 = call <8 x i64> @llvm.fshl.v8i64(<8 x i64> %b3, <8 x i64> %b3, <8 x i64> splat (i64 45))
  %bits = lshr <8 x i64> %sum, splat (i64 12)
  %over = or <8 x i64> %bits, splat (i64 4607182418800017408)
  %beyond = bitcast <8 x i64> %over to <8 x double>
  %u = fsub <8 x double> %beyond, splat (double 1.0)
  %lowAt = getelementptr double, ptr %low, i64 %j
  %widthAt = getelementptr double, ptr %width, i64 %j
  %l = load <8 x double>, ptr %lowAt, align 8
  %w = load <8 x double>, ptr %widthAt, align 8
  %scaled = fmul <8 x double> %u, %w
  %y = fadd <8 x double> %scaled, %l
  %first = shl i64 %k, 3
  %outAt = getelementptr double, ptr %out, i64 %first
  store <8 x double> %y, ptr %outAt, align 8
  %k1 = add i64 %k, 1
  %j1 = add i64 %j, 8
  %round = icmp eq i64 %j1, %period
  %j2 = select i1 %round, i64 0, i64 %j1
  br label %test
end:
  store <8 x i64> %s0, ptr %state, align 8
  store <8 x i64> %s1, ptr %p1, align 8
  store <8 x i64> %s2, ptr %p2, align 8
  store <8 x i64> %s3, ptr %p3, align 8
  ret i64 0
}
declare <8 x i64> @llvm.fshl.v8i64(<8 x i64>, <8 x i64>, <8 x i64>)
"""
_DRAW = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)


@functools.cache
def _code() -> tuple[Any, Loaded]:
    target: Target = host()
    code, _ = kept(digest("uniform", TEXT, target, []), "uniform numbers", lambda: Made(TEXT, target))
    loaded = Loaded(code, ["draw"])
    return _DRAW(loaded.addresses["draw"]), loaded


@functools.lru_cache(64)
def _wide(numbers: bytes) -> Array:
    """A row of numbers so often that all streams find theirs at the same place."""
    return np.tile(np.frombuffer(numbers), STREAMS)


def uniform(seed: np.random.SeedSequence, rows: int, low: Array, width: Array) -> Array:
    """Rows of independent numbers, (rows, d): column j is uniform from low[j] to low[j] + width[j]."""
    d = len(low)
    count = rows * d
    blocks = -(-count // STREAMS)
    state = seed.generate_state(4 * STREAMS, np.uint64)
    wide = [_wide(np.asarray(x, dtype=float).tobytes()) for x in (low, width)]
    found = memory.empty((blocks * STREAMS,))
    _code()[0](state.ctypes.data, wide[0].ctypes.data, wide[1].ctypes.data, d * STREAMS, found.ctypes.data, blocks)
    return found[:count].reshape(rows, d)


__all__ = ["STREAMS", "uniform"]
