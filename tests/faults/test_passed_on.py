"""Interrupts at the moments at which foreign code, or the way out of it, would lose them."""

import os
import signal
import types
import weakref

import casadi
import pytest

import polybody as pb
from polybody.interrupts import passed_on
from polybody.kernels import build

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGINT is sent as POSIX does")


def interrupted() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("fails", [False, True])
def test_an_interrupt_while_the_handler_is_put_back_is_raised(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    real = signal.signal

    def put_back(number: int, handler: object) -> object:
        if handler is signal.default_int_handler:
            interrupted()
        return real(number, handler)

    def work() -> int:
        if fails:
            raise ValueError
        return 1

    monkeypatch.setattr(signal, "signal", put_back)
    with pytest.raises(KeyboardInterrupt):
        passed_on(work)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_is_swallowed_ends_the_work_nevertheless() -> None:
    turns = 0

    def work() -> None:
        nonlocal turns
        while turns < 3:
            try:
                turns += 1
                interrupted()
            except KeyboardInterrupt:  # as CasADi does
                pass

    with pytest.raises(KeyboardInterrupt):
        passed_on(work)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_made_of_an_interrupt_is_the_interrupt() -> None:
    def work() -> None:
        try:
            interrupted()
        except KeyboardInterrupt:
            raise RuntimeError("something else") from None

    with pytest.raises(KeyboardInterrupt) as told:
        passed_on(work)
    assert isinstance(told.value.__cause__, RuntimeError)


@pytest.mark.filterwarnings("ignore:the run stopped early")
def test_an_interrupt_that_is_swallowed_while_idas_is_made_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    real, made = casadi.integrator, 0

    def swallows(*arguments: object) -> object:
        nonlocal made
        made += 1
        try:
            if made == 1:
                interrupted()
        except KeyboardInterrupt:  # as CasADi does
            pass
        return real(*arguments)

    monkeypatch.setattr(casadi, "integrator", swallows)
    net = pb.Network("filter")
    net.part("supply", "voltage_source", "plus", voltage="24*sin(50*time)")
    net.part("load", "resistor", "plus", "middle", resistance=2.0)
    net.part("store", "capacitor", "middle", capacitance=1e-2)
    run = pb.simulate(net, 100.0, method="idas", max_step=0.1)
    assert made
    assert (run.stopped or "").startswith("interrupted")


def test_nothing_in_python_runs_when_machine_code_is_freed() -> None:
    """An exception in the callback of a weak reference is dropped, an interrupt too."""
    x = casadi.SX.sym("x")
    made = build("freed", [("x", 1)], [("y", (1,))], lambda: casadi.Function("f", [x], [11 * x + 2]), "freed")
    program = made._form.program
    found = [r.__callback__ for x in (program, program.loaded) for r in weakref.getweakrefs(x)]
    assert len(found) >= 2
    assert not [callback for callback in found if isinstance(callback, types.FunctionType)]
