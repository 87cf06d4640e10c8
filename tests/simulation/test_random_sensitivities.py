"""Sensitivities of random arms with stops, dry friction and events with actions: differences of runs, other methods."""

from __future__ import annotations

import numpy as np
import pytest
from sensitivity_cases import TIGHT, compared

import polybody as pb


def random_case(seed: int) -> tuple[pb.Model, np.ndarray, np.ndarray, dict[str, object]]:
    rng = np.random.default_rng(seed)
    n, planar = int(rng.integers(2, 4)), rng.random() < 0.5
    build = pb.Builder("random", gravity=(0, -9.81, 0) if planar else (1.0, -6.0, -5.0))
    for k in range(n):
        build.body(f"b{k}", float(rng.uniform(0.5, 2)), (0.25, 0.02, 0), tuple(rng.uniform(0.02, 0.03, 3)))
        axis = np.array([0, 0, 1.0]) if planar else rng.normal(size=3)
        laws: dict[str, object] = {"limits": (-0.6, float(rng.uniform(0.4, 0.9)))} if rng.random() < 0.5 else {}
        if rng.random() < 0.4:
            laws["friction"] = {"coulomb": float(rng.uniform(0.2, 1)), "static": float(rng.uniform(1, 1.3))}
        build.joint(f"j{k}", "revolute", f"b{k - 1}" if k else "world", f"b{k}", (0.5 if k else 0, 0, 0),
                    axis=axis / np.linalg.norm(axis), damping=0.05, **laws)  # fmt: skip
    variant = build.model().with_parameters("b0.mass", "gravity.y", f"j{n - 1}.origin.x")
    level, gains = float(rng.uniform(-0.3, 0.3)), 1 + rng.uniform(0, 0.5, n)
    kick = pb.Event("kick", lambda t, q, v: q[0] - level, action=lambda t, q, v: (q, v * gains * (1 + t)))
    options = {"restitution": float(rng.choice([0.0, 0.5])), "events": [kick] if rng.random() < 0.7 else []}
    return variant, rng.uniform(-0.4, 0.4, n), 2 * rng.normal(size=n), options


@pytest.mark.parametrize("seed", range(6))
def test_sensitivities_of_random_arms_equal_differences_and_those_of_another_method(seed: int) -> None:
    variant, q, v, options = random_case(seed)
    found = compared(variant, None, q, v, 0.3, 1e-5, **options, **TIGHT)
    fixed = pb.simulate(variant, 0.3, q, v, sample=0.15, method="rk4", dt=1e-4, **options)  # type: ignore[arg-type]
    other = pb.sensitivities(fixed, events=options["events"])  # type: ignore[arg-type]
    np.testing.assert_allclose(other.v_p[-1], found.v_p[-1], rtol=0, atol=1e-4 * (1 + np.abs(found.v_p[-1]).max()))
