"""Rows of states to lanes and back: whatever arrays the numbers come from, every state finds its own."""

import casadi as ca
import numpy as np
import pytest
from helpers import of_function

from polybody.kernels.target import host, without_avx512


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.setenv("POLYBODY_TIER", "optimised")


def arrangements(x: np.ndarray, y: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {
        "whole": (x, y), "one x for all": (x[0], y), "one y for all": (x, y[:1]), "every second row": (
            np.repeat(x, 2, axis=0)[::2], y), "part of wider rows": (np.hstack([y, x])[:, 3:], y),
        "outer": (x[:, None], y[None, :5]),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("target", [host(), without_avx512(host())], ids=["host", "without avx512"])
@pytest.mark.parametrize("size", [1, 2, 6, 7, 10, 18])
def test_every_state_finds_its_own_numbers_and_puts_its_results_in_its_own_row(size, target, dtype):
    x, y = ca.SX.sym("x", size), ca.SX.sym("y", 3)
    used = ca.vertcat(*[x[k] * y[k % 3] for k in range(size)])
    kernel = of_function(ca.Function("f", [x, y], [used, ca.vertcat(x[size - 1], y[1])]), target=target, dtype=dtype)
    rng = np.random.default_rng(size)
    for states in (1, 16, 37):
        given = rng.normal(size=(states, size)).astype(dtype), rng.normal(size=(states, 3)).astype(dtype)
        for name, (a, b) in arrangements(*given).items():
            found = kernel(a, b)
            lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
            a, b = np.broadcast_to(a, (*lead, size)), np.broadcast_to(b, (*lead, 3))
            np.testing.assert_array_equal(found[0], a * b[..., np.arange(size) % 3], err_msg=name)
            np.testing.assert_array_equal(found[1], np.stack([a[..., -1], b[..., 1]], axis=-1), err_msg=name)


def test_arguments_of_which_only_the_last_number_is_used_and_those_not_used_at_all():
    x, y = ca.SX.sym("x", 6), ca.SX.sym("y", 3)
    kernel = of_function(ca.Function("f", [x, y], [ca.sin(x[5])]), dtype=np.float32)
    x, y = np.random.default_rng(0).normal(size=(2, 40, 6)).astype(np.float32)
    np.testing.assert_allclose(kernel(x, y[:, :3].copy())[:, 0], np.sin(x[:, 5].astype(float)), rtol=3e-7)
