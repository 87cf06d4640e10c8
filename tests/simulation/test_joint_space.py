"""Mechanisms that laws read their dynamics from: the same forces as the mechanism as it was given."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from polybody.formulations import denoc
from polybody.mechanism.reduction import reduced
from polybody.simulation.compiled import joint_space as js
from polybody.simulation.friction import without_dry_friction


@pytest.mark.parametrize("known", [True, False])
def test_friction_is_that_of_the_mechanism_and_bodies_are_those_of_its_reduction(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = pb.Builder("chain")
    for k in range(4):
        build.body(f"b{k}", 1.0, com=(0.05, 0.02, 0.1), inertia=(0.02, 0.03, 0.01))
        origin = np.eye(4)
        origin[:3, 3] = 0.1 * k, 0.05, 0.2
        build.joint(f"j{k}", "revolute", f"b{k - 1}" if k else "world", f"b{k}", origin, axis=np.eye(3)[k % 3],
                    friction={"coulomb": 0.3 + k, "viscous": 0.1})  # fmt: skip
    model = build.model()
    m, smooth = model.mechanism, without_dry_friction(model)
    js._known.clear()
    if known:
        js.remember(smooth.mechanism, smooth.engine.reduced_mechanism)
    with monkeypatch.context() as patched:
        if known:
            patched.setattr(js, "reduced", None)  # need not be asked
        found = js.joint_space(m)
    assert found.digest == reduced(m).digest
    assert js.joint_space(m) is found
    q, v, a = np.random.default_rng(2).normal(size=(3, 4))
    np.testing.assert_allclose(denoc.inverse_dynamics(found, q, v, a), denoc.inverse_dynamics(m, q, v, a), atol=1e-12)
    heavier = model.with_payload("b3", 1.0).mechanism
    assert js.joint_space(heavier).digest == reduced(heavier).digest
