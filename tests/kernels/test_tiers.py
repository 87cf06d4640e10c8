"""The fast tier: equal bits, compiled code swapped in, safe at forks and at the end of the process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import casadi as ca
import numpy as np
import pytest
from helpers import elementwise, of_function

from polybody.errors import InputError, PolybodyWarning
from polybody.kernels import background, bodies, build, interpret, iterate, programs, tape
from polybody.kernels.operations import OPERATIONS
from polybody.kernels.target import host, without_fma

UNARY = [op for op, operation in OPERATIONS.items() if operation.arity == 1]
BINARY = [op for op, operation in OPERATIONS.items() if operation.arity == 2]


def apply(op, *values):
    return ca.SX.unary(op, *values) if len(values) == 1 else ca.SX.binary(op, *values)


def random_function(seed: int, size: int = 400) -> ca.Function:
    """Every operation at random, sums and products most of all."""
    rng = np.random.default_rng(seed)
    x, y = ca.SX.sym("x", 5), ca.SX.sym("y", 3)
    known = [*ca.vertsplit(x), *ca.vertsplit(y), ca.SX(1.75), ca.SX(-0.5)]
    common = [ca.OP_ADD, ca.OP_SUB, ca.OP_MUL] * 12
    for _ in range(size):
        op = int(rng.choice([*common, *UNARY, *BINARY]))
        given = [known[int(k)] for k in rng.integers(len(known), size=OPERATIONS[op].arity)]
        known.append(apply(op, *given))
    last = [*known[-70:], known[0] ** 3, known[1] ** 0.5, ca.sin(known[2]), ca.SX(4.0), known[3]]
    return ca.Function("random", [x, y], [ca.vertcat(*last), ca.vertcat(*known[-9:])])


def in_tier(monkeypatch, tier: str, function: ca.Function, **options):
    monkeypatch.setenv("POLYBODY_TIER", tier)
    return of_function(function, key=f"{tier} ", **options)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(4))
def test_both_tiers_give_the_same_bits_for_every_operation(monkeypatch, seed, dtype):
    function = random_function(seed)
    fast, optimised = (in_tier(monkeypatch, tier, function, dtype=dtype) for tier in ("fast", "optimised"))
    assert fast._form.program is not optimised._form.program
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(29, 5)).astype(dtype), rng.normal(size=(29, 3)).astype(dtype)
    x[3, 1], x[5, 2], y[7, 0], y[9, 1], x[11, 0] = np.nan, np.inf, 0.0, -0.0, 3e5
    for found, wanted in zip(fast(x, y), optimised(x, y), strict=True):
        np.testing.assert_array_equal(found, wanted)
    for found, wanted in zip(fast(x[4].copy(), y[4].copy()), optimised(x[4], y[4]), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_operations_of_one_level_are_one_run():
    """Sums of products, each of its own inputs, and their squares: as many runs as for one of them."""
    lengths = []
    for n in (1, 50):
        x, y, z = (ca.SX.sym(name, n) for name in "xyz")
        each = [(x[k] * y[k] - z[k]) ** 2 / (x[k] + z[k]) for k in range(n)]
        traced = tape.prepared(ca.Function("some", [x, y, z], [ca.vertcat(*each)]))
        lengths.append(len(programs.encoded(traced, without_fma(host())).words))
    runs = (lengths[0] - interpret.WORDS * 10) // interpret.HEAD  # three inputs, five operations, an output, the end
    assert runs == 8
    assert lengths[1] == interpret.HEAD * runs + interpret.WORDS * (50 * 9 + 1)


def test_without_fused_multiply_add_both_tiers_round_twice(monkeypatch):
    target = without_fma(host())
    function = random_function(9, 60)
    fast, optimised = (in_tier(monkeypatch, tier, function, target=target) for tier in ("fast", "optimised"))
    rng = np.random.default_rng(9)
    for found, wanted in zip(fast(x := rng.normal(size=5), y := rng.normal(size=3)), optimised(x, y), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_product_and_a_sum_are_one_rounding_where_the_processor_can(monkeypatch):
    if not host().fma:
        pytest.skip("this processor cannot")
    x = 1.0 + 2.0**-30
    for tier in ("fast", "optimised"):
        monkeypatch.setenv("POLYBODY_TIER", tier)
        found = elementwise(lambda a, b, c: a * b - c, 3, key=tier)(*(np.array([v]) for v in (x, x, x * x)))
        assert found == 2.0**-60


def test_compiled_code_is_swapped_in_for_single_calls_and_batches(monkeypatch):
    monkeypatch.setenv("POLYBODY_TIER", "auto")
    made = of_function(random_function(11), key="swapped ")
    plan, first = made.lone.plan.copy(), made._form
    x, y = np.ones((40, 5)), np.ones((40, 3))
    before = made(x, y), made(x[0].copy(), y[0].copy())
    assert background.wait(300)
    assert made._form is not first
    assert not np.array_equal(made.lone.plan, plan)
    for found, wanted in zip((made(x, y), made(x[0].copy(), y[0].copy())), before, strict=True):
        for f, w in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(f, w)


@pytest.mark.parametrize("every", [True, False])
def test_steps_are_interpreted_until_their_loop_is_compiled(monkeypatch, tmp_path, every):
    monkeypatch.setenv("POLYBODY_CACHE", str(tmp_path))
    x, p, u = ca.SX.sym("x", 3), ca.SX.sym("p", 1), ca.SX.sym("u", 2)
    step = ca.Function("f", [x, p, u], [ca.vertcat(x[1] + u[0], ca.sin(x[2]) * p, 0.3 * x[0] * u[1])])
    rng = np.random.default_rng(3)
    values = rng.normal(size=(3,)), rng.normal(size=(21, 1)), rng.normal(size=(21, 100))
    build_it = lambda: iterate.build("orbit", (3, 1, 2), 50, lambda: step, f"tiers {every}", every=every)  # noqa: E731
    monkeypatch.setenv("POLYBODY_TIER", "auto")
    monkeypatch.setattr(background, "PAUSE", 60.0)
    monkeypatch.setattr(background, "LATEST", 60.0)
    first = build_it()
    assert isinstance(first, iterate.Stepwise)
    found = first(*values)
    assert background.wait(300)
    assert not isinstance(build_it(), iterate.Stepwise)
    np.testing.assert_array_equal(found, build_it()(*values))
    np.testing.assert_array_equal(found, first(*values))  # one step interpreted, 49 compiled


def test_calls_go_on_in_threads_while_code_is_swapped_in(monkeypatch):
    monkeypatch.setenv("POLYBODY_TIER", "auto")
    function = random_function(12, 200)
    x, y = np.random.default_rng(0).normal(size=(300, 5)), np.ones((300, 3))
    made = [of_function(function, key=f"threads {k} ") for k in range(6)]
    wanted, wrong, stop = made[0](x, y), [], threading.Event()

    def call(one):
        while not stop.is_set():
            found = one(x, y), one(x[7], y[7])
            same = [np.array_equal(f, w, equal_nan=True) for f, w in zip(found[0], wanted, strict=True)]
            alone = [np.array_equal(f, w[7], equal_nan=True) for f, w in zip(found[1], wanted, strict=True)]
            if not all(same + alone):
                wrong.append(one)

    callers = [threading.Thread(target=call, args=(one,)) for one in made]
    for caller in callers:
        caller.start()
    done = background.wait(300)
    stop.set()
    for caller in callers:
        caller.join()
    assert done
    assert not wrong


def test_a_failure_to_compile_is_told_and_answers_go_on(monkeypatch):
    monkeypatch.setenv("POLYBODY_TIER", "auto")

    def refuse(*given):
        raise MemoryError("none left")

    monkeypatch.setattr(bodies, "body_texts", refuse)
    said = []
    monkeypatch.setattr(background.warnings, "warn", lambda text, *rest, **more: said.append((text, *rest)))
    made = elementwise(lambda x: 2 * x + 1, key="refused ")
    assert background.wait(300)
    assert made(np.array([3.0])) == 7.0
    assert [(PolybodyWarning in rest, "none left" in text) for text, *rest in said] == [(True, True)]


def test_an_unknown_tier_is_refused(monkeypatch):
    monkeypatch.setenv("POLYBODY_TIER", "fastest")
    with pytest.raises(InputError, match="POLYBODY_TIER is 'fastest'; expected auto, optimised or fast"):
        elementwise(lambda x: 5 * x, key="unknown ")


SCRIPT = textwrap.dedent("""
    import faulthandler, os, sys, time
    import casadi as ca, numpy as np
    from polybody.kernels import background, build
    background.PAUSE = 0.0

    def kernel(n, label):
        x = ca.SX.sym("x", 3)
        y = x
        for k in range(n):
            y = ca.cos(y) * x + k
        return build(label, [("x", 3)], [("y", (3,))], lambda: ca.Function("f", [x], [y]), label)

    one = kernel(4000, "long")
    value = one(np.ones(3))
    time.sleep(float(sys.argv[2]))
    if sys.argv[1] == "fork":
        child = os.fork()
        if not child:
            faulthandler.dump_traceback_later(240, exit=True)  # a deadlock says where
            if not np.array_equal(one(np.ones((30, 3)))[7], value):
                os._exit(3)
            begun = time.process_time()  # not by the clock: a process that others keep waiting is late, not wrong
            while not background.wait(5):
                if time.process_time() - begun > 60:
                    os._exit(4)
            os._exit(0 if np.array_equal(one(np.ones(3)), value) else 5)
        status = os.waitpid(child, 0)[1]
        assert status == 0, status
    print("ends", time.monotonic(), flush=True)
""")


@pytest.mark.parametrize("delay", ["0", "0.1", "0.35"])
@pytest.mark.parametrize("how", ["exit", "fork"])
def test_a_process_ends_and_forks_while_code_is_compiled(tmp_path, how, delay):
    if how == "fork" and not hasattr(os, "fork"):
        pytest.skip("no fork here")
    environment = dict(
        os.environ, PYTHONPATH=os.pathsep.join(sys.path), POLYBODY_CACHE=str(tmp_path), POLYBODY_TIER="auto"
    )
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, how, delay]
    child = subprocess.run(command, env=environment, capture_output=True, timeout=300, text=True)
    assert child.returncode == 0, child.stderr
    assert child.stdout.startswith("ends")
    assert child.stderr == ""


def test_a_second_kernel_of_the_same_key_uses_the_code_of_the_first(monkeypatch):
    monkeypatch.setenv("POLYBODY_TIER", "auto")
    x = ca.SX.sym("x", 2)
    function = ca.Function("f", [x], [x * 7 + 1])
    made = [build("f", [("x", 2)], [("y", (2,))], lambda: function, "seven") for _ in range(2)]
    assert background.wait(300)
    assert made[0]._form.program is made[1]._form.program
    assert programs.known(programs.digest("straight", "seven", host(), ["f", ("x", 2), ("y", (2,)), "best"]))
