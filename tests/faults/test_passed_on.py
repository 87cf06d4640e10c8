"""Interrupts at the moments at which foreign code, or the way out of it, would lose them."""

import os
import signal

import pytest

from polybody.interrupts import passed_on

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
