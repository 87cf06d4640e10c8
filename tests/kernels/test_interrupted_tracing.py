"""Interrupts that come where foreign code swallows exceptions, or where a lock is taken: not lost, and harmless."""

import _thread
import signal
import threading
import time

import pytest

from polybody.interrupts import passed_on
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


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="a signal is sent as POSIX does")
def test_interrupt_ends_the_waiting_for_work_that_goes_on_to_its_end():
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
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
    """Another thread interrupts this one while this one waits for a lock that the other gives back."""
    lock, ask, stop = Lock(), threading.Event(), False

    def compete() -> None:
        while not stop:
            with lock:
                if ask.is_set():
                    ask.clear()
                    _thread.interrupt_main()
                time.sleep(1e-4)

    def take_again_and_again() -> None:
        ask.set()
        end = time.monotonic() + 30  # a lock that stays taken leaves the other thread waiting for ever
        while time.monotonic() < end:
            with lock:
                pass

    other = threading.Thread(target=compete, daemon=True)
    other.start()
    try:
        for _ in range(300):
            with pytest.raises(KeyboardInterrupt):
                take_again_and_again()
    finally:
        stop = True
    other.join(30)
    assert not other.is_alive()
