"""Building and calling the C library of a model, for tests."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import polybody as pb

gcc = pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("make") is None, reason="gcc and make are needed")
WARNINGS = "-std=c99 -Wall -Wextra -Werror -pedantic"


def built(model, folder, quantities, optimise):
    pb.export_c(model, folder, quantities, name="robot")
    command = ["make", "-C", str(folder), f"CFLAGS={WARNINGS} -O{optimise}", "all", "test"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout
    return ctypes.CDLL(str(folder / "librobot.so"))


def call(function, arrays, *shapes):
    pointer = ctypes.POINTER(ctypes.c_double)
    outputs = [np.full(shape, np.nan) for shape in shapes]
    kept = [np.ascontiguousarray(x, dtype=float) for x in arrays]
    function.restype = None
    function(*(x.ctypes.data_as(pointer) for x in (*kept, *outputs)))
    return outputs


__all__ = ["WARNINGS", "built", "call", "gcc"]
