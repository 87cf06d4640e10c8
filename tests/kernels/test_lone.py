"""The builtin that computes a lone state, and what it hands on."""

import gc
import weakref

import casadi as ca
import numpy as np
import pytest
from helpers import product_kernel, product_oracle

from polybody.errors import InputError
from polybody.kernels import runtime


def test_lone_state_equals_the_same_state_in_a_batch():
    kernel = product_kernel()
    a, b = np.arange(5.0), np.arange(3.0) + 0.5
    alone, together = kernel.call(a, b), kernel.batch(a[None], b[None])
    for found, batched, wanted in zip(alone, together, product_oracle(a, b), strict=True):
        assert type(found) is np.ndarray
        assert found.flags.owndata
        np.testing.assert_array_equal(found, batched[0])
        np.testing.assert_allclose(found, wanted, rtol=1e-15)


def test_unusual_calls_reach_the_fallback_unchanged():
    calls = []

    def fallback(*values, **options):
        calls.append((values, options))
        return "from python"

    fast = product_kernel().fast(fallback, "outer", "outer(a, b)\n--\n\nThe outer product.")
    a, b = np.zeros(5), np.zeros(3)
    assert isinstance(fast(a, b), tuple)
    assert not calls
    unusual = [
        ((a,), {}), ((a, b, 1), {}), ((a, b), {"out": None}), ((), {"a": a, "b": b}), ((np.zeros((0, 5)), b), {}),
        ((np.zeros((2, 5)), np.zeros((3, 3))), {}), ((np.zeros((2, 5)), np.zeros((1, 2, 3))), {}),
        ((a.astype(np.float32), b), {}), ((np.zeros(10)[::2], b), {}), ((np.zeros(4), b), {}), (([0.0] * 5, b), {}),
        ((None, b), {}), ((a, np.zeros(3, ">f8")), {}), ((a, np.ma.zeros(3)), {}), ((a, 1.5), {}),
    ]  # fmt: skip
    for values, options in unusual:
        assert fast(*values, **options) == "from python"
        assert calls[-1][0] is not None
        assert all(x is y for x, y in zip(calls[-1][0], values, strict=True))
        assert calls[-1][1].keys() == options.keys()
    assert len(calls) == len(unusual)


@pytest.mark.parametrize("leading", [(1,), (7,), (2, 3), (1, 4, 1), (1,) * 15])
def test_small_plain_batches_never_enter_python(leading):
    def fallback(*values, **options):
        raise AssertionError

    fast = product_kernel().fast(fallback)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(*leading, 5)), rng.normal(size=(*leading, 3))
    for left, right in ((a, b), (a, b.reshape(-1, 3)[0]), (a.reshape(-1, 5)[0], b)):
        for found, wanted in zip(fast(left, right), product_oracle(left, right), strict=True):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-15)


def test_large_batches_are_handed_on_to_be_shared_among_threads():
    fast = product_kernel().fast(lambda *values: "from python")
    assert fast(np.zeros((10**6, 5)), np.zeros(3)) == "from python"


def test_errors_of_the_fallback_come_through():
    with pytest.raises(InputError, match="a has shape"):
        product_kernel().call(np.zeros(4), np.zeros(3))


def test_builtin_is_really_in_use_here():
    assert runtime.can_be_called_alone()
    assert type(product_kernel().call).__name__ == "builtin_function_or_method"


def test_builtin_has_name_and_documentation():
    fast = product_kernel().fast(print, "outer", "outer(a, b)\n--\n\nThe outer product.")
    assert fast.__name__ == "outer"
    assert fast.__doc__ == "The outer product."


def test_builtin_stored_on_its_owner_is_collected_with_it():
    class Owner:
        def slow(self, *values, **options):
            return values, options

    owner = Owner()
    owner.quick = product_kernel().fast(owner.slow)
    assert owner.quick(1)[0] == (1,)
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is None


def test_references_are_counted_right():
    import sys

    kernel = product_kernel()
    a, b = np.zeros(5), np.zeros(3)
    before = sys.getrefcount(a), sys.getrefcount(np.dtype(np.float64))
    for _ in range(1000):
        kernel.call(a, b)
    results = kernel.call(a, b)
    ordinary = (np.zeros(3), np.zeros(3))
    counts = sys.getrefcount(results[0]), sys.getrefcount(ordinary[0])
    assert counts[0] == counts[1]
    del results, ordinary
    after = sys.getrefcount(a), sys.getrefcount(np.dtype(np.float64))
    assert after[0] == before[0]
    assert abs(after[1] - before[1]) < 10


def test_kernel_dropped_while_its_builtin_lives_still_computes():
    x = ca.SX.sym("x", 2)
    from helpers import of_function

    call = of_function(ca.Function("gone", [x], [3 * x])).call
    gc.collect()
    np.testing.assert_array_equal(call(np.ones(2)), [3, 3])
