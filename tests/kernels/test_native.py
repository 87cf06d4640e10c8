"""The small language of the code around kernels: each form does what the same text does in Python."""

import ctypes
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from polybody.kernels import machine, native, runtime
from polybody.kernels.programs import joined
from polybody.kernels.target import host

SOURCE = """
def collatz(n):
    steps = 0
    while n != 1:
        half_of_n = n // 2
        if n - 2 * half_of_n == 0:
            n = half_of_n
        else:
            n = 3 * n + TWO - 1
        steps += 1
    return steps

def logic(a, b, c):
    result = 0
    if a > 0 and (b > 0 or not c > 0):
        result = result + 1
    if not (a == b or b != c):
        result += 2
    else:
        if a <= b:
            return 100 + result
    if a & 1 == 1:
        result += least(a, b) * 8
    return result

def sums(table, n):
    total = 0
    for i in range(n):
        for j in range(i, n):
            if word(table + 8 * j) >= 3:
                total += word(table + 8 * i)
    for k in unroll(TWO):
        total = total * 2 + k
    return total

def scatter(table, n):
    own = room(n)
    for i in range(n):
        put(own + 8 * i, word(table + 8 * (n - 1 - i)))
    for i in range(n):
        put(table + 8 * i, _tripled(word(own + 8 * i)))
        put_half(table + 8 * i, half(table + 8 * i) + 1)
    return take(table, 5)

def _tripled(x):
    return 3 * x
"""


class Memory:
    """What the language's words do, in Python, on an array of words."""

    @staticmethod
    def names(table):
        def whole(p):
            return int(table[p // 8])

        def take(p, n):
            before = int(table[p // 8])
            table[p // 8] += n
            return before

        return {"TWO": 2, "word": whole, "least": min, "unroll": range, "take": take}


@pytest.fixture(scope="module")
def code():
    target = host()
    text = f'target triple = "{target.triple}"\n' + native.translate(SOURCE, {"TWO": 2}) + native.MODULE_TAIL
    return machine.Loaded(joined([machine.assemble(text, target)]), ["collatz", "logic", "sums", "scatter"])


def function(code, name, arity):
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * arity)(code.addresses[name])


def in_python(table=None):
    names = Memory.names(table)
    exec(SOURCE, names)
    return names


def test_loops_and_branches(code):
    mine = function(code, "collatz", 1)
    assert [mine(n) for n in range(1, 60)] == [in_python()["collatz"](n) for n in range(1, 60)]


def test_and_or_not(code):
    mine, theirs = function(code, "logic", 3), in_python()["logic"]
    for case in itertools.product([-2, 0, 1, 3], repeat=3):
        assert mine(*case) == theirs(*case), case


@pytest.mark.parametrize("n", [0, 1, 5])
def test_memory(code, n):
    table = np.array([4, -1, 3, 7, 2][:n] or [0], dtype=np.int64)
    mine = function(code, "sums", 2)(table.ctypes.data, n)
    assert mine == in_python(table)["sums"](0, n)
    wanted = 3 * table[::-1] + 1
    assert function(code, "scatter", 2)(table.ctypes.data, n) == (wanted[0] if n else 0)
    if n:
        np.testing.assert_array_equal(table, wanted + 5 * (np.arange(n) == 0))


def test_text_is_the_same_in_every_process():
    """Code is kept by its text, so nothing in it may depend on the order of a set of strings."""
    script = (
        "import hashlib; from polybody.kernels import runtime; from polybody.kernels.target import host\n"
        "print(hashlib.sha256(runtime.text(host()).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), PYTHONHASHSEED=str(seed)),
            capture_output=True, text=True, check=True, timeout=300,
        ).stdout
        for seed in (1, 2)
    }  # fmt: skip
    assert len(found) == 1
    assert "define i64 @together" in runtime.text(host())
