"""Threads: the same answers, the number asked for, no lock held."""

import itertools
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


def test_pieces_cover_every_state_once_in_whole_blocks():
    seen = []
    pool.share(10_007, 8, 3, lambda lo, hi: seen.append((lo, hi)))
    seen.sort()
    assert seen[0][0] == 0
    assert seen[-1][1] == 10_007
    assert all(a[1] == b[0] for a, b in itertools.pairwise(seen))
    assert all(lo % 8 == 0 for lo, _ in seen)


def test_error_in_a_helper_thread_is_raised():
    def fail(lo, hi):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pool.share(1000, 4, 2, fail)


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
