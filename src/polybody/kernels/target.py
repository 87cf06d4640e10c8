"""The processor that kernels are compiled for: its name, its features, and how many states one block computes.

A block of `lanes` states fills one SIMD register per scalar of the expression graph: 8 doubles on AVX-512, 4 on AVX,
2 on NEON or SSE2, and twice as many in single precision. `fma` says whether fused multiply-add exists, because the
sine's range reduction has one form with it and another without (`sincos`).
"""

from __future__ import annotations

import functools
import os
import platform
from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from polybody.errors import InputError
from polybody.late import dataclass

DTYPES: dict[str, np.dtype[Any]] = {"double": np.dtype(np.float64), "float": np.dtype(np.float32)}


@dataclass(frozen=True)
class Target:
    """What machine code is generated for."""

    triple: str
    cpu: str
    features: str
    lanes: int
    fma: bool
    number: str = "double"  # LLVM's name of the type that is computed with: double or float

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's name of the same."""
        return DTYPES[self.number]

    @property
    def size(self) -> int:
        """Bytes of a number."""
        return self.dtype.itemsize

    @property
    def register(self) -> int:
        """Numbers that one vector register holds."""
        on = self.features.split(",")
        return (64 if "+avx512f" in on else 32 if "+avx" in on else 16) // self.size

    @property
    def held(self) -> int:
        """Vectors that the registers hold at once, with one left for what comes from memory."""
        many = "+avx512f" in self.features.split(",") or "x86" not in self.triple
        return 31 if many else 15

    @property
    def folds_whole_vectors(self) -> bool:
        """Whether an operand in memory must be a whole vector: AVX, where AVX-512 repeats a number by itself."""
        return self.register * self.size == 32

    def with_dtype(self, dtype: Any) -> Target:
        """The same processor computing with float64 or float32: of the latter twice as many at once."""
        for number, known in DTYPES.items():
            if np.dtype(dtype) == known:
                return replace(self, number=number, lanes=self.lanes * self.size // known.itemsize)
        raise InputError(f"dtype is {np.dtype(dtype)}; kernels compute with float64 or float32")

    def with_lanes(self, lanes: int | None) -> Target:
        if lanes is None:
            return self
        if lanes not in (1, 2, 4, 8, 16):
            raise InputError(f"lanes is {lanes!r}; it must be 1, 2, 4, 8 or 16")
        return replace(self, lanes=lanes)

    def describe(self) -> str:
        """Everything the generated code depends on, for the cache key."""
        return f"{self.triple}|{self.cpu}|{self.features}|{self.lanes}|{self.fma}|{self.number}"


@functools.cache
def initialise_llvm() -> None:
    """Register the native code generator, once a process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.cache
def host() -> Target:
    """The processor this process runs on; with $POLYBODY_TARGET "avx2" as if it had no AVX-512."""
    wanted = os.environ.get("POLYBODY_TARGET") or "host"
    if wanted not in ("host", "avx2"):
        raise InputError(f"POLYBODY_TARGET is {wanted!r}; expected host or avx2")
    return _processor() if wanted == "host" else without_avx512(_processor())


def _processor() -> Target:
    initialise_llvm()
    flags = llvm.get_host_cpu_features()
    arm = platform.machine().lower() in ("arm64", "aarch64")
    if flags.get("avx512f"):
        lanes = 8
    elif flags.get("avx"):
        lanes = 4
    else:
        lanes = 2
    return Target(
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=flags.flatten(),
        lanes=lanes,
        fma=arm or bool(flags.get("fma")),
    )


def without_avx512(target: Target) -> Target:
    """The same processor as one of the generation before it: AVX2 with FMA, 16 registers of 32 bytes."""
    if "+avx512f" not in target.features.split(","):
        return target
    kept = [f for f in target.features.split(",") if not f[1:].startswith("avx512")]
    cpu = "znver3" if target.cpu.startswith("znver") else "haswell"
    return replace(target, cpu=cpu, features=",".join(kept), lanes=target.lanes // 2)


def without_fma(target: Target) -> Target:
    """The same processor with its fused multiply-add unused: how a CPU without FMA computes, testable anywhere."""
    kept = [f for f in target.features.split(",") if f[1:] not in ("fma", "fma4") and not f[1:].startswith("avx512")]
    off = ["-fma", "-fma4", "-avx512f"] if "x86" in target.triple else []
    return replace(target, features=",".join(kept + off), fma=False)
