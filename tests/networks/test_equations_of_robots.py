"""How the equations of large models are assembled and called: shortcuts that must change no answer."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import casadi as ca
import numpy as np
import pytest

import polybody as pb
from polybody.description.naming import printable
from polybody.networks import calling, motion
from polybody.networks.assembly import Assembly
from polybody.networks.calling import Called
from polybody.networks.component import PartComponent
from polybody.networks.expressions import parse
from polybody.networks.joint_laws import held_together, with_joint_laws
from polybody.networks.models import ModelComponent, flat_components
from polybody.networks.reduction import _rest, semiexplicit
from polybody.networks.structure import incidence


def long_function() -> tuple[ca.Function, Any]:
    """(a function of more operations than are read at once, the same by NumPy)."""
    x = ca.SX.sym("x", 3)
    total, count = x, 500
    for k in range(count):
        total = ca.sin(total) + (1.0 + 0.01 * k) * x

    def by_numpy(s: np.ndarray) -> np.ndarray:
        found = s
        for k in range(count):
            found = np.sin(found) + (1.0 + 0.01 * k) * s
        return found

    return ca.Function("long", [x], [ca.densify(total)]), by_numpy


def test_a_long_function_gives_the_same_by_casadi_and_by_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    function, by_numpy = long_function()
    monkeypatch.setattr(calling, "PAID", 3)
    monkeypatch.setattr(calling, "is_on_disk", lambda *_: False)
    called = Called("network_test_long", function, (3,))
    rng = np.random.default_rng(0)
    for k in range(6):
        s = rng.normal(size=3)
        found = called(s)
        np.testing.assert_allclose(found, by_numpy(s), rtol=1e-12)
        assert ("_kernel" in vars(called)) == (k >= 3)
    every = rng.normal(size=(5, 3))
    np.testing.assert_allclose(called(every), [by_numpy(s) for s in every], rtol=1e-12)
    first = called(every[0])
    called(every[1])
    np.testing.assert_allclose(first, by_numpy(every[0]), rtol=1e-12)  # answers are the caller's own


def test_threads_that_call_one_function_at_once_get_their_own_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "is_on_disk", lambda *_: False)
    function, by_numpy = long_function()
    called = Called("network_test_threads", function, (3,))
    states = np.random.default_rng(1).normal(size=(400, 3))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(called, states))
    np.testing.assert_allclose(found, [by_numpy(s) for s in states], rtol=1e-12)


def test_rows_count_as_calls_and_short_functions_go_to_the_kernel_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "is_on_disk", lambda *_: False)
    function, by_numpy = long_function()
    called = Called("network_test_rows", function, (3,))
    first = called(np.ones(3))
    second = called(2 * np.ones(3))
    np.testing.assert_allclose([first, second], [by_numpy(np.ones(3)), by_numpy(2 * np.ones(3))], rtol=1e-12)
    monkeypatch.setattr(calling, "PAID", 8)
    called = Called("network_test_rows", function, (3,))
    rows = np.random.default_rng(3).normal(size=(2, 2, 3))
    for by_kernel in (False, False, True):
        found = called(rows)
        assert found.shape == rows.shape
        np.testing.assert_allclose(found, by_numpy(rows), rtol=1e-12)
        assert ("_kernel" in vars(called)) == by_kernel
    x = ca.SX.sym("x")
    short = Called("network_test_short", ca.Function("short", [x], [x**2]), (1,))
    assert short(np.array([3.0])) == 9.0
    assert "_kernel" in vars(short)


@pytest.mark.parametrize("seed", range(20))
def test_an_unknown_is_read_off_a_sum_with_its_sign(seed: int) -> None:
    rng, x, known = np.random.default_rng(seed), ca.SX.sym("x"), ca.SX.sym("p", 4)
    total, sign = x, 1
    for k in range(3):
        other = ca.sin(known[k]) * 2.0
        way = rng.integers(4)
        total = (total + other, total - other, other - total, -total)[way]
        sign = -sign if way >= 2 else sign
    found = _rest(total, x.element_hash(), 4)
    assert found is not None
    assert found[0] == sign
    rest = ca.Function("rest", [known], [found[1]])
    every = ca.Function("every", [x, known], [total])
    at = rng.normal(size=4)
    assert float(rest(at)) == pytest.approx(float(every(0.0, at)), abs=1e-15)
    assert _rest(ca.sin(x) + known[0], x.element_hash(), 4) is None


def test_an_unknown_that_is_in_its_own_sum_again_is_iterated() -> None:
    """v = 0.5 cos(v) looks explicit; it is not."""
    odd = pb.Part("odd", "electrical", equations=["v = 0.5*cos(v) + 1 + 0*i"])
    net: Any = pb.Network("odd")
    net.part("odd", odd, "a")
    net.part("R", "resistor", "a", resistance=2.0)
    run: Any = pb.simulate(net, 0.1)
    v = run["odd.v"][-1]
    assert v == pytest.approx(0.5 * np.cos(v) + 1, abs=1e-12)
    assert run["R.i"][-1] == pytest.approx(v / 2, abs=1e-12)


def test_patterns_are_those_of_jacobians() -> None:
    x = ca.SX.sym("x", 5)
    rng = np.random.default_rng(1)
    rows = [ca.sin(x[int(a)]) * x[int(b)] - x[int(c)] for a, b, c in rng.integers(5, size=(12, 3))]
    found = incidence(rows, ca.vertsplit(x))
    J = ca.jacobian(ca.vertcat(*rows), x).sparsity()
    wanted: list[set[int]] = [set() for _ in rows]
    for row, column in zip(*J.get_triplet(), strict=True):
        wanted[row].add(column)
    assert found == wanted


def arms(separate: bool) -> pb.Model:
    """Two links with limits at their start, one on the other or each on the ground."""
    build = pb.Builder("arms", gravity=(0, -9.81, 0))
    build.body("upper", 1.2, (0.2, 0, 0), (0.001, 0.02, 0.02))
    build.body("lower", 0.8, (0.1, 0, 0), (0.001, 0.01, 0.01))
    at = np.eye(4)
    at[0, 3] = 0.4
    stuck = {"coulomb": 0.5, "static": 0.6}
    build.joint("s", "revolute", "world", "upper", friction=stuck)
    build.joint("e", "revolute", "world" if separate else "upper", "lower", at, friction=stuck)
    return build.model()


@pytest.mark.parametrize("separate", [True, False])
def test_models_whose_held_joints_depend_on_each_other_are_known_beforehand(
    separate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    net: Any = pb.network(arms(separate))
    parts = with_joint_laws(flat_components(net), "stop", "stick")
    modes = {part.name: "stuck" for part in parts[1:]}
    assert held_together(parts, modes) == (frozenset() if separate else {"arms"})
    one = {**modes, parts[1].name: "forward"}
    assert held_together(parts, one) == frozenset()

    def final() -> tuple[np.ndarray, Any]:
        again: Any = pb.network(arms(separate))
        run: Any = pb.simulate(again, 0.3)
        return run.values[-1], run.audit.steps

    told = final()
    monkeypatch.setattr(motion, "held_together", lambda *_: frozenset())
    found = final()
    np.testing.assert_allclose(told[0], found[0], rtol=1e-9, atol=1e-11)
    assert told[1] == found[1]


def test_names_of_an_expression_are_found_wherever_they_stand() -> None:
    text = parse("der(in.v)*2 + pi*sin(b - -c)**atan2(a.w, 3)/min(b, x)")
    assert sorted(text.names()) == ["a.w", "b", "b", "c", "in.v", "x"]


def test_the_library_is_read_when_a_part_is_asked_for() -> None:
    code = ("import sys; from polybody.networks import network; from polybody.networks.library import part_named; "
            "name = 'polybody.networks.library.electrical'; assert name not in sys.modules; "
            "assert part_named('resistor').name == 'resistor'; assert name in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_control_characters_are_escaped_in_plain_text_and_beyond() -> None:
    for code in range(0x250):
        c = chr(code)
        hidden = (code < 0x20 and c not in "\n\t") or 0x7F <= code < 0xA0
        assert (printable(f"a{c}b") != f"a{c}b") == hidden or c == "\xad"


@pytest.mark.parametrize("varied", [False, True])
def test_forces_by_the_mass_matrix_are_those_of_inverse_dynamics(varied: bool) -> None:
    model = pb.load("puma560").with_payload("link6", 2.0, com=(0, 0, 0.05), inertia=(0.01, 0.01, 0.01))
    model = model.with_parameters("payload.mass") if varied else model
    part, rng = ModelComponent("arm", model, "arm."), np.random.default_rng(2)
    q, v, a = (ca.SX.sym(name, 6) for name in "qva")
    own = [ca.SX.sym("p", 1)] if varied else []
    made = ca.Function("needed", [q, v, a, *own], [part._needed(q, v, a, own)])
    for _ in range(5):
        x = rng.normal(size=(3, 6))
        found = np.asarray(made(*x, *([3.5] if varied else []))).ravel()
        wanted = model.inverse_dynamics(*x, **({"parameters": [3.5]} if varied else {}))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * (1 + np.abs(wanted).max()))


class Numbers(PartComponent):
    """A part whose equations are numbers at run time: they are never solved beforehand."""

    numeric = True


@pytest.mark.parametrize("numeric", [False, True])
def test_equations_that_are_numbers_at_run_time_stay_to_be_iterated(numeric: bool) -> None:
    net = pb.Network("net")
    net.part("supply", "voltage_source", "a", voltage=2.0)
    net.part("load", pb.Part("load", "electrical", equations=["i = 0.5*v"]), "a")
    found: list[Any] = flat_components(net)
    if numeric:
        found = [Numbers(x.name, x.part, x.nodes, x.values) if x.name == "load" else x for x in found]
    made = semiexplicit(Assembly(found, {}))
    names = [made.assembly.key_name(key) for key in made.algebraic]
    assert names == (["load.i"] if numeric else [])
