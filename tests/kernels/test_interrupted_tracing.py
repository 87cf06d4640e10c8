"""Interrupts that come where foreign code swallows exceptions, or where a lock is taken, are neither lost nor harmful."""

import _thread
import signal
import threading
import time

import pytest

from polybody.kernels.interrupts import passed_on
from polybody.kernels.locks import Lock, undisturbed


def swallowed() -> None:
    """As CasADi does it when it chooses an overload."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return


def test_swallowed_interrupt_is_raised_again_while_the_work_goes_on():
    def work() -> None:
        swallowed()
        while time.monotonic() < end:
            pass

    end = time.monotonic() + 60
    with pytest.raises(KeyboardInterrupt):
        passed_on(work)
    assert time.monotonic() < end
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_swallowed_interrupt_is_raised_when_the_work_ends_before():
    with pytest.raises(KeyboardInterrupt):
        passed_on(swallowed)
    time.sleep(0.12)  # nothing is raised behind it
    assert passed_on(lambda: 3) == 3


def test_interrupt_that_is_not_swallowed_is_raised_once():
    for _ in range(20):
        with pytest.raises(KeyboardInterrupt):
            passed_on(lambda: signal.raise_signal(signal.SIGINT))
    time.sleep(0.12)


def test_handler_of_a_program_is_left_in_place():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        assert passed_on(lambda: signal.raise_signal(signal.SIGINT)) is None
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]


def test_interrupt_ends_the_waiting_for_work_that_goes_on_to_its_end():
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        _thread.interrupt_main()
        go.wait(60)
        done.set()

    with pytest.raises(KeyboardInterrupt):
        undisturbed(work)
    assert not done.is_set()
    go.set()
    assert done.wait(60)


def test_undisturbed_work_returns_and_raises_as_it_does_alone():
    assert undisturbed(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        undisturbed(lambda: 1 // 0)


def test_interrupts_leave_no_lock_taken():
    """A second thread takes the lock all the time, so that this one waits for it, and is interrupted there."""
    lock, stop = Lock(), False

    def compete() -> None:
        while not stop:
            with lock:
                pass

    other = threading.Thread(target=compete)
    other.start()
    interrupts = 0
    try:
        while interrupts < 200:
            try:
                _thread.interrupt_main()
                for _ in range(3):
                    with lock:
                        pass
            except KeyboardInterrupt:
                interrupts += 1
    finally:
        stop = True
        other.join(60)
    assert not other.is_alive()
