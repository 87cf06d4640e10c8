"""Threads: the same answers, the number asked for, no lock held."""

import ctypes
import errno
import os
import threading
import time

import casadi as ca
import numpy as np
import pytest
from helpers import product_kernel, product_oracle

from polybody.errors import InputError
from polybody.kernels import background, iterate, pool, thread_count, threads
from polybody.kernels import kernel as kernel_module


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("states", [1, 5, 4099, 60_001])
def test_any_number_of_threads_gives_the_same_answer(count, states):
    rng = np.random.default_rng(states)
    a, b = rng.normal(size=(states, 5)), rng.normal(size=(states, 3))
    kernel = product_kernel()
    kernel._form.nanoseconds = 1e5  # as if each state were dear, so that threads are worth it
    with threads(count):
        found = kernel(a, b)
    for f, w in zip(found, product_oracle(a, b), strict=True):
        np.testing.assert_allclose(f, w, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("states", [1, 7, 8, 9, 1000, 10_007])
def test_pieces_are_whole_blocks_and_enough_for_every_thread(states):
    for workers in (1, 2, 5):
        size = pool.piece(states, 8, workers)
        assert size == states if workers == 1 else size % 8 == 0
        assert size >= 1
        assert -(-states // size) <= workers * pool.PIECES


class Started:
    """Stands between machine code and the system's function that starts threads: counts, and refuses after `most`."""

    def __init__(self, most: int) -> None:
        real, self.join, self.stack = pool.starter()
        create = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
        self.count, start = 0, create(real)

        def started(*arguments):
            if self.count == most:
                return errno.EAGAIN
            self.count += 1
            return start(*arguments)

        self.function = create(started)

    def __call__(self):
        return pool.address(self.function), self.join, self.stack


@pytest.mark.skipif(os.name != "posix", reason="threads are started by pthread_create")
@pytest.mark.parametrize(("wanted", "granted"), [(2, 1), (5, 4), (5, 2), (5, 0)])
def test_helpers_are_started_and_those_that_cannot_start_are_done_without(monkeypatch, wanted, granted):
    started = Started(granted)
    monkeypatch.setattr(pool, "starter", started)
    kernel = product_kernel()
    kernel._form.nanoseconds = 1e5
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(801, 5)), rng.normal(size=(801, 3))
    with threads(wanted):
        found = kernel.batch(a, b)
    assert started.count == granted
    for f, w in zip(found, product_oracle(a, b), strict=True):
        np.testing.assert_allclose(f, w, rtol=1e-14, atol=1e-14)


def tasks() -> set[str]:
    """The system's numbers of this process's threads, where it tells them."""
    return set(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else set()


def test_batches_leave_no_thread_behind_and_the_stack_size_alone():
    """The compiling thread may begin or end meanwhile, and the system lists a thread a moment longer than joined."""
    kernel = product_kernel()
    assert background.wait(300)
    kernel._form.nanoseconds = 1e5
    size, before = threading.stack_size(), tasks()
    with threads(6):
        kernel.batch(np.zeros((999, 5)), np.zeros(3))
    assert threading.stack_size() == size
    end = time.monotonic() + 10
    while tasks() - before and time.monotonic() < end:
        time.sleep(0.01)
    assert not tasks() - before


@pytest.mark.parametrize("turn", [1, 700, 10**4, 10**5])
def test_turns_cover_every_state_once(monkeypatch, turn):
    monkeypatch.setattr(kernel_module, "TURN", turn)
    monkeypatch.setattr(kernel_module, "TURN_SECONDS", (0, 1e-9) if turn == 1 else (0, 1))
    rng = np.random.default_rng(turn)
    a, b = rng.normal(size=(40, 25, 5)), rng.normal(size=(25, 3))
    for count in (1, 3):
        with threads(count):
            found = product_kernel().batch(a, b)
        for f, w in zip(found, product_oracle(a, b), strict=True):
            np.testing.assert_allclose(f, w, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("every", [True, False])
def test_steps_made_in_rounds_equal_steps_made_at_once(monkeypatch, every):
    x, u = ca.SX.sym("x", 3), ca.SX.sym("u", 2)
    step = ca.Function("f", [x, u], [ca.vertcat(x[1] + u[0], ca.sin(x[2]), x[0] * u[1])])
    rng = np.random.default_rng(3)
    start, table = rng.normal(size=(21, 3)), rng.normal(size=(21, 50 * 2))
    whole = iterate.build("rounds", (3, 0, 2), 50, lambda: step, "rounds", every=every)
    monkeypatch.setattr(iterate, "TURN", 30.0)
    cut = iterate.build("rounds", (3, 0, 2), 50, lambda: step, "rounds", every=every)
    assert len(whole._form.contexts) == 1 < len(cut._form.contexts)
    for workers in (1, 3):
        with threads(workers):
            np.testing.assert_array_equal(cut(start, table), whole(start, table))
            np.testing.assert_array_equal(cut(start[0], table[0]), whole(start, table)[0])
            np.testing.assert_array_equal(cut(start[0], table), whole(start[0], table))
            inside = start.copy()
            if not every:
                np.testing.assert_array_equal(cut(inside, table, out=inside), whole(start, table))


def test_threads_nest_and_belong_to_their_context():
    assert thread_count() == pool.cores()
    inside = []
    with threads(3):
        assert thread_count() == 3
        with threads(1):
            assert thread_count() == 1
        other = threading.Thread(target=lambda: inside.append(thread_count()))
        other.start()
        other.join()
        assert thread_count() == 3
    assert inside == [pool.cores()]
    assert thread_count() == pool.cores()


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "two", None])
def test_a_senseless_number_of_threads_is_refused(wrong):
    with pytest.raises(InputError, match="at least 1"), threads(wrong):
        pass


def test_the_interpreter_runs_on_while_a_batch_is_computed():
    kernel = product_kernel()
    a = np.random.default_rng(0).normal(size=(3_000_000, 5))
    b = np.ones(3)
    out = (np.empty((3_000_000, 5, 3)), np.empty((3_000_000, 5)))
    kernel(a[:1000], b)
    ticks = 0
    done = threading.Event()

    def compute():
        with threads(1):
            kernel(a, b, out=out)
        done.set()

    worker = threading.Thread(target=compute)
    worker.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    worker.join()
    assert ticks >= 3
