"""Random mechanisms cut at random into reduced sub-networks: accelerations of the expanded model."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polybody as pb
from mechanisms import closed_tree
from polybody.model.validation import model_from


@pytest.mark.parametrize("seed", [2, 4, 5])
def test_random_closed_mechanisms_in_reduced_pieces_accelerate_as_the_model(seed: int) -> None:
    rng = np.random.default_rng(seed)
    description, known = closed_tree(rng)
    net = pb.network(model_from(description, warn=False))
    net.reductions = {word: net for word in ("s0", "s1") if any(b.startswith(f"{word}.") for b in net.parts.bodies)}
    assert net.reductions
    model = net.model()
    q = model.neutral()
    for name, (own, _) in model.joint_slices().items():
        q[own] = known.get(name, q[own])
    q = model.assemble(q)
    v, tau = model.assemble_velocity(q, rng.normal(size=model.nv)), rng.normal(size=model.nv)
    wanted = model.forward_dynamics(q, v, tau)
    a, _ = net.port_wrenches(q, v, tau)
    assert_allclose(a, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())
