"""C source: compiles under the strictest flags and computes what CasADi computes."""

import ctypes
import shutil
import subprocess

import casadi as ca
import numpy as np
import pytest
from test_operations import BINARY, UNARY, VALUES

from polybody.errors import InputError
from polybody.kernels import csource

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")


def compiled(tmp_path, name, functions, flags=("-O1", "-ffp-contract=off")):
    text = csource.generate(name, functions, comment="made by a test */ of comments\nsecond line")
    (tmp_path / f"{name}.c").write_text(text.source)
    (tmp_path / f"{name}.h").write_text(text.header)
    library = tmp_path / f"{name}.so"
    command = ["gcc", *STRICT, *flags, "-shared", "-fPIC", f"{name}.c", "-o", str(library), "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


def pointer(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


@needs_compiler
def test_every_operation_equals_casadi(tmp_path):
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    values = [f(x) for f in UNARY.values()] + [f(x, y) for f in BINARY.values()]
    function = ca.Function("everything", [x, y], [ca.densify(ca.vertcat(*values))], ["a", "b"], ["r"])
    library = compiled(tmp_path, "ops", [function])
    for a in VALUES:
        for b in VALUES[::3]:
            found = np.empty(len(values))
            library.ops_everything(pointer(np.array([a])), pointer(np.array([b])), pointer(found))
            np.testing.assert_allclose(found, np.array(function(a, b)).ravel(), rtol=1e-15, atol=1e-300)


@needs_compiler
def test_several_functions_share_a_file_and_compile_at_every_level(tmp_path):
    x, u = ca.SX.sym("x", 3), ca.SX.sym("u", 2)
    one = ca.Function("rhs", [x, u], [ca.vertcat(x[1], ca.sin(x[0]) + u[0], ca.fmin(x[2], u[1]))], ["x", "u"], ["dx"])
    two = ca.Function("cost", [x, u], [ca.sumsqr(x), ca.SX([1.5, -2.0])], ["x", "u"], ["value", "weights"])
    nothing = ca.Function(
        "nothing", [ca.SX.sym("e", 0), u], [ca.SX(0, 1), ca.SX([1e300, -np.inf])], ["e", "u"], ["n", "big"]
    )
    for level in ("-O0", "-O3"):
        library = compiled(tmp_path, "plant", [one, two, nothing], [level])
        a, b = np.array([0.3, -1.0, 2.0]), np.array([0.5, 1.0])
        dx, value, weights, big = np.empty(3), np.empty(1), np.empty(2), np.empty(2)
        library.plant_rhs(pointer(a), pointer(b), pointer(dx))
        library.plant_cost(pointer(a), pointer(b), pointer(value), pointer(weights))
        library.plant_nothing(pointer(a), pointer(b), pointer(dx), pointer(big))
        np.testing.assert_allclose(dx, [-1.0, np.sin(0.3) + 0.5, 1.0], rtol=1e-15)
        np.testing.assert_allclose(value, a @ a, rtol=1e-15)
        np.testing.assert_array_equal(weights, [1.5, -2.0])
        np.testing.assert_array_equal(big, [1e300, -np.inf])


@needs_compiler
def test_output_may_be_the_input(tmp_path):
    x = ca.SX.sym("x", 3)
    library = compiled(
        tmp_path, "turn", [ca.Function("f", [x], [ca.vertcat(x[2], x[0], x[1] + x[0])], ["x"], ["x_new"])]
    )
    values = np.array([1.0, 2.0, 3.0])
    library.turn_f(pointer(values), pointer(values))
    np.testing.assert_array_equal(values, [3, 1, 3])


@needs_compiler
def test_header_serves_cplusplus_too(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("no g++ here")
    x = ca.SX.sym("x", 2)
    text = csource.generate("two", [ca.Function("f", [x], [2 * x])])
    (tmp_path / "two.h").write_text(text.header)
    (tmp_path / "main.cpp").write_text('#include "two.h"\nint main() { double a[2] = {1, 2}; two_f(a, a); }\n')
    command = ["g++", "-Wall", "-Wextra", "-Werror", "-pedantic", "-c", "main.cpp"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0


def test_source_allocates_nothing_and_keeps_no_state():
    x = ca.SX.sym("x", 2)
    source = csource.generate("m", [ca.Function("f", [x], [ca.sin(x) * ca.sign(x)])]).source
    assert "malloc" not in source
    assert [line for line in source.splitlines() if line.startswith("static")] == [csource.HELPERS["sign"]]


@pytest.mark.parametrize("name", ["1st", "while", "a-b", "", "x y"])
def test_names_that_c_cannot_have_are_refused(name):
    x = ca.SX.sym("x")
    with pytest.raises(InputError, match="C wants letters"):
        csource.generate(name, [ca.Function("f", [x], [x])])


def test_ports_named_like_temporaries_and_doubled_functions_are_refused():
    x = ca.SX.sym("x")
    with pytest.raises(InputError, match="taken"):
        csource.generate("m", [ca.Function("f", [x], [x], ["t1"], ["y"])])
    with pytest.raises(InputError, match="same name"):
        csource.generate("m", [ca.Function("f", [x], [x]), ca.Function("f", [x], [2 * x])])
