"""Threads: the same answers, the number asked for, no lock held."""

import threading
import time

import numpy as np
import pytest
from helpers import product_kernel, product_oracle

from polybody.errors import InputError
from polybody.kernels import pool, thread_count, threads


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("states", [1, 5, 4099, 60_001])
def test_any_number_of_threads_gives_the_same_answer(count, states):
    rng = np.random.default_rng(states)
    a, b = rng.normal(size=(states, 5)), rng.normal(size=(states, 3))
    kernel = product_kernel()
    kernel.nodes = 10**6  # as if each state were dear, so that threads are worth it
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


def test_every_thread_works_and_all_have_ended():
    names, barrier = set(), threading.Barrier(3)

    def work():
        barrier.wait(timeout=20)
        names.add(threading.current_thread().name)

    pool.together(3, work)
    assert len(names) == 3


def test_error_in_any_thread_is_raised():
    here = threading.current_thread()
    barrier = threading.Barrier(2)

    def fail_elsewhere():
        barrier.wait(timeout=20)
        if threading.current_thread() is not here:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pool.together(2, fail_elsewhere)


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
