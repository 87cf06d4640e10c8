"""Forces of joints that are held, against the equations of motion, and plain single calls before fast methods are."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import polybody as pb
from polybody.kernels import methods
from polybody.simulation.friction import Stick
from polybody.simulation.stops import Stops


def arm(n: int = 5) -> pb.Model:
    build, parent = pb.Builder("arm", gravity=(0, -9.81, 0)), "world"
    build.body("base", 2.0, (0.1, 0, 0.2), (0.1, 0.2, 0.15))
    build.joint("floating", "floating", parent, "base")
    parent = "base"
    for i in range(n):
        build.body(f"link{i}", 1.0 + 0.1 * i, (0.5, 0.1, 0), (0.05, 0.1, 0.12))
        build.joint(f"joint{i}", "revolute", parent, f"link{i}", (0.9 if i else 0, 0, 0.01 * i))
        parent = f"link{i}"
    return build.model()


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("slots", [[], [7], [10, 6, 8]])
def test_held_joints_do_not_accelerate_and_only_they_are_pushed(slots: list[int], known: bool) -> None:
    """M(a + Δ) = M a + f: checked without M⁻¹, with R of that configuration at hand and without."""
    model = arm()
    q, a = model.random_configuration(3), np.random.default_rng(4).uniform(-5, 5, (4, model.nv))
    stops = Stops(model, 0.0)
    stops.held = {slot: Stick(f"joint{slot - 6}", slot + 1, slot, 0.0) for slot in slots}
    if known:
        stops.motions(q)
    for _ in range(4):  # by the text, and by the kernel that follows
        change, force = stops.reactions(q, a)
        np.testing.assert_allclose((a + change)[:, slots], 0.0, atol=1e-12)
        np.testing.assert_allclose(change @ model.mass_matrix(q), force, atol=1e-11)
        assert not np.delete(force, slots, axis=1).any()


def test_single_calls_go_straight_to_the_kernel_while_the_methods_wait_to_be_fast() -> None:
    """They take only what a fast method takes: quaternions off unit length are refused, lists are converted."""
    model = arm()
    q, v, tau = model.random_configuration(1), np.arange(model.nv) / 7, np.arange(model.nv) / 3
    with mock.patch.object(methods, "fast_method"):
        wanted = [model.forward_dynamics(q, v, tau) for _ in range(3)]
        assert all(np.array_equal(x, wanted[0]) for x in wanted)
        kernel = model._plain["forward_dynamics", "d"]
        with mock.patch.object(kernel, "batch", side_effect=AssertionError("not straight")):
            assert np.array_equal(model._answered_plainly("forward_dynamics", (q, v, tau), None), wanted[0])
        for others in [(2 * q, v, tau), (q, list(v), tau), (q, v[:-1], tau), (q, v, np.tile(tau, (2, 1))[:, ::2])]:
            assert model._answered_plainly("forward_dynamics", others, None) is None
        np.testing.assert_array_equal(model.forward_dynamics(q, list(v), tau), wanted[0])
        with pytest.raises(pb.InputError, match="unit"):
            model.forward_dynamics(2 * q, v, tau)
