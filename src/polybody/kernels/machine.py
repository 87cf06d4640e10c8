"""LLVM text to object code, and object code to addresses one can call.

Object code holds no external symbols (functions of libm come through a table), so that it can be kept on disk and
loaded by another process as it is.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from polybody.kernels import forks as _forks  # noqa: F401 what it asks of forks holds once it is imported
from polybody.kernels.locks import Lock, undisturbed
from polybody.kernels.operations import LIBM
from polybody.kernels.target import Target, host, initialise_llvm

_lock = Lock()  # llvmlite's binding is not safe to enter from two threads


def is_near(triple: str) -> bool:
    """Whether code finds its constants by short offsets: where object code is loaded in one piece.

    Far ones take an instruction of ten bytes before each use. Measured on Zen 4: dynamics 3 to 5 % faster. On Windows
    a function of the system's may be too far away, on ARM offsets are short anyway.
    """
    return triple.startswith("x86_64") and "linux" in triple


@functools.cache
def _machine(target: Target, level: int) -> llvm.TargetMachine:
    initialise_llvm()
    chosen = llvm.Target.from_triple(target.triple)
    model, relocation = ("small", "pic") if is_near(target.triple) else ("jitdefault", "default")
    return chosen.create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, jit=True, codemodel=model, reloc=relocation
    )


def assemble(text: str, target: Target, *, level: int = 1) -> bytes:
    """Object code of a module."""

    def work() -> bytes:
        with _lock:
            machine = _machine(target, level)
            module = llvm.parse_assembly(text)
            module.data_layout = str(machine.target_data)
            module.verify()
            return machine.emit_object(module)

    return undisturbed(work)


#: LLVM's objects of each `Loaded`. They have a `__del__` in Python, where an interrupt is lost: not whoever drops the
#: last reference frees them, but the thread that loads the next code (`undisturbed`). The callback is written in C.
_engines: dict[Any, Any] = {}
_freed: deque[Any] = deque()


class Loaded:
    """Object code in memory; alive as long as this object is. `code`: object files, each after its length.

    `addresses` are those of functions, `words` those of variables.
    """

    addresses: dict[str, int]
    words: dict[str, int]
    followed_by: Loaded | None = None  # what its functions go to (`relay`)

    def __init__(self, code: bytes, names: Sequence[str], words: Sequence[str] = ()) -> None:
        undisturbed(lambda: self._load(code, names, words))
        for name, address in self.addresses.items():
            if not address:
                raise RuntimeError(f"compiled code has no function {name}")

    def _load(self, code: bytes, names: Sequence[str], words: Sequence[str]) -> None:
        with _lock:
            while _freed:
                _engines.pop(_freed.popleft(), None)
            if sys.platform == "win32":  # frames above a page are probed by a function that only ntdll has
                address = ctypes.cast(ctypes.WinDLL("ntdll").__chkstk, ctypes.c_void_p).value
                llvm.add_symbol("__chkstk", address)
            triple = host().triple
            machine = llvm.Target.from_triple(triple).create_target_machine(jit=True)
            # llvmlite's own manager of memory allocates the sections of an object side by side
            in_one_piece = True if is_near(triple) else None
            engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=in_one_piece)
            objects = [llvm.ObjectFileRef.from_data(part) for part in _apart(code)]
            for part in objects:
                engine.add_object_file(part)
            engine.finalize_object()
            self.addresses = {name: engine.get_function_address(name) for name in names}
            self.words = {name: engine.get_global_value_address(name) for name in words}
            _engines[weakref.ref(self, _freed.append)] = engine, objects


def _apart(code: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(code):
        size = int.from_bytes(code[at : at + 8], "little")
        parts.append(code[at + 8 : at + 8 + size])
        at += 8 + size
    return parts


@functools.cache
def libm_table() -> np.ndarray:
    """Addresses of the functions in `LIBM`, in that order."""
    if sys.platform == "win32":
        library = ctypes.CDLL("ucrtbase")
    else:
        try:
            library = ctypes.CDLL("libm.so.6")
        except OSError:  # not glibc; asking for its name starts a process
            from ctypes import util

            library = ctypes.CDLL(util.find_library("m") or None)
    addresses = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in LIBM]
    return np.array(addresses, dtype=np.uint64)
