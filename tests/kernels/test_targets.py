"""Code for processors this machine is not: it assembles, with the instructions those processors are there for."""

import struct

import casadi as ca
import llvmlite.binding as llvm
import numpy as np
import pytest
from helpers import of_function

from polybody.errors import InputError
from polybody.kernels import bodies, machine, runtime, tape
from polybody.kernels.target import Target, host, without_avx512, without_fma

TARGETS = {
    "avx-512": (Target("x86_64-unknown-linux-gnu", "skylake-avx512", "+avx,+avx512f", 8, True), "zmm", "vfmadd"),
    "avx2": (Target("x86_64-unknown-linux-gnu", "haswell", "+avx,+avx2,+fma", 4, True), "ymm", "vfmadd"),
    "avx": (Target("x86_64-pc-windows-msvc", "sandybridge", "", 4, False), "ymm", "vmulpd"),
    "sse2": (Target("x86_64-unknown-linux-gnu", "x86-64", "", 2, False), "xmm", "mulpd"),
    "neon": (Target("arm64-apple-darwin", "apple-m1", "", 2, True), ".2d", "fmla"),
    "arm linux": (Target("aarch64-unknown-linux-gnu", "neoverse-n1", "", 4, True), ".2d", "fmla"),
}


def function() -> ca.Function:
    x, y = ca.SX.sym("x", 5), ca.SX.sym("y", 3)
    return ca.Function("f", [x, y], [ca.sin(x) * y[0] + ca.if_else(x > 0, ca.sqrt(x), y[1]), ca.exp(y) * y + y[::-1]])


@pytest.mark.parametrize("name", TARGETS)
def test_code_assembles_for_other_processors(name):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target, register, instruction = TARGETS[name]
    (text,) = bodies.body_texts(tape.from_function(function()), target)
    assert len(machine.assemble(text, target)) > 1000
    assert len(machine.assemble(runtime.text(target), target)) > 1000
    assembly = machine._machine(target, 1).emit_assembly(llvm.parse_assembly(text))
    assert register in assembly
    assert instruction in assembly


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("fma", [True, False])
def test_every_number_of_lanes_gives_the_same_answer(lanes, fma):
    target = host() if fma else without_fma(host())
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(37, 5)), rng.normal(size=(37, 3))
    found = of_function(function(), lanes=lanes, target=target)(x, y)
    with np.errstate(invalid="ignore"):
        wanted = np.sin(x) * y[:, :1] + np.where(x > 0, np.sqrt(x), y[:, 1:2])
    np.testing.assert_allclose(found[0], wanted, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(found[1], np.exp(y) * y + y[:, ::-1], rtol=1e-13, atol=1e-15)


def test_constants_are_operands_in_memory_where_avx_has_no_broadcast_of_them():
    target = TARGETS["avx2"][0]
    x = ca.SX.sym("x", 40)
    tree = ca.Function("g", [x], [ca.cumsum(x * np.linspace(1, 2, 40))])
    (text,) = bodies.body_texts(tape.from_function(tree), target)
    body = machine._machine(target, 1).emit_assembly(llvm.parse_assembly(text)).split("\n")
    assert sum("vbroadcastsd" in line for line in body) < 8  # rows that all states share are spread by one
    assert sum("(%rip)" in line and line.strip().startswith(("vfmadd", "vmulpd")) for line in body) > 30


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lanes", [None, 4, 16])
def test_code_without_avx512_gives_the_same_bits(lanes, dtype):
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(37, n)).astype(dtype) for n in (5, 3)]
    targets = host(), without_avx512(host())
    found, again = (of_function(function(), lanes=lanes, target=t, dtype=dtype)(*given) for t in targets)
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_target_of_the_environment(monkeypatch):
    monkeypatch.setenv("POLYBODY_TARGET", "avx2")
    assert host.__wrapped__() == without_avx512(host())
    monkeypatch.setenv("POLYBODY_TARGET", "neon")
    with pytest.raises(InputError, match="expected host or avx2"):
        host.__wrapped__()


def test_senseless_lanes_are_refused():
    with pytest.raises(InputError, match="lanes is 3"):
        of_function(function(), lanes=3)


def steps_of_six(count: int, turning: bool) -> ca.Function:
    """Each step needs the one before: nothing can be left out."""
    x = ca.SX.sym("x", 6)
    parts = [x]
    for k in range(count):
        y = parts[-1]
        parts.append(ca.vertcat(0.5 * y[1:] - 0.3 * y[:-1], 0.8 * (ca.sin(y[0]) if turning else y[0])) + x * (k % 7))
    return ca.Function("long", [x], [parts[-1], sum(parts)])


def check_values(function: ca.Function, tier: str) -> None:
    values = np.random.default_rng(2).normal(size=(11, 6))
    found = of_function(function, key=tier)(values)
    wanted = [function(value) for value in values]
    for k in range(2):
        expected = np.array([np.asarray(w[k]).ravel() for w in wanted])
        np.testing.assert_allclose(found[k], expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("tier", ["optimised", "fast"])
def test_long_code_is_cut_into_modules_and_answers_the_same(monkeypatch, tier):
    monkeypatch.setenv("POLYBODY_TIER", tier)
    function = steps_of_six(700, turning=True)
    *parts, driver = bodies.body_texts(tape.from_function(function), host())
    assert len(parts) > 1
    assert driver.count("call void @part") == len(parts)
    check_values(function, tier)


def reaches(code: bytes) -> set[int]:
    """The kinds of relocation in a 64-bit ELF file that name a symbol of another file."""
    sections, size, count = struct.unpack_from("<Q10xHH", code, 40)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections + k * size) for k in range(count)]
    found = set()
    for header in headers:
        if header[1] != 4:  # SHT_RELA
            continue
        symbols = headers[header[6]][4]
        for at in range(header[4], header[4] + header[5], 24):
            (info,) = struct.unpack_from("<Q", code, at + 8)
            (where,) = struct.unpack_from("<H", code, symbols + 24 * (info >> 32) + 6)
            if where == 0:  # SHN_UNDEF
                found.add(info & 0xFFFFFFFF)
    return found


def test_modules_of_one_kernel_may_be_loaded_any_distance_apart():
    """Calls between them go through a table: 9, 41 and 42 are R_X86_64_GOTPCREL and its two shorter forms.

    A direct call reaches 2 GB; LLVM ended the process where other libraries had mapped more than that in between.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = TARGETS["avx2"][0]
    *_, driver = bodies.body_texts(tape.from_function(steps_of_six(700, turning=True)), target)
    assert reaches(machine.assemble(driver, target))
    assert reaches(machine.assemble(driver, target)) <= {9, 41, 42}
    assert not reaches(machine.assemble(driver.replace("nonlazybind", ""), target)) <= {9, 41, 42}


@pytest.mark.parametrize("tier", ["optimised", "fast"])
def test_code_of_one_module_is_cut_into_blocks_and_answers_the_same(monkeypatch, tier):
    monkeypatch.setenv("POLYBODY_TIER", tier)
    function = steps_of_six(60, turning=False)
    (text,) = bodies.body_texts(tape.from_function(function), host())
    assert text.count("label %done") > 2
    check_values(function, tier)
