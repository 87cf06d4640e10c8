"""The C library of models with loops: built by gcc, against the model's own answers."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from c_library import built, call, gcc

QUANTITIES = ["inverse", "forward", "mass", "coriolis", "bias", "gravity", "passive", "energy", "way_back"]


@gcc
@pytest.mark.parametrize("which", ["five-bar", "3-rrr", "walking-machine"])
def test_library_of_a_machine_with_loops_agrees_with_the_model(which, tmp_path):
    """walking-machine has more drives than it needs."""
    model = pb.load(which)
    library = built(model, tmp_path / "c", [*QUANTITIES], 0)
    rng = np.random.default_rng(4)
    n, m = model.nv, len(model.constraints.independent)
    for _ in range(3):
        q = model.assemble(model.integrate(model.neutral(), 0.05 * rng.normal(size=n)))
        v = model.assemble_velocity(q, rng.normal(size=n))
        tau = rng.normal(size=n)
        a = model.forward_dynamics(q, v, tau)
        pairs = [
            (call(library.robot_inverse_dynamics, (q, v, a), (n,), (6,))[0], model.inverse_dynamics(q, v, a)),
            (call(library.robot_forward_dynamics, (q, v, tau), (n,), (5,))[0], a),
            (call(library.robot_mass_matrix, (q,), (m, m), (5,))[0], model.mass_matrix(q)),
            (call(library.robot_coriolis_matrix, (q, v), (m, m), (5,))[0], model.coriolis_matrix(q, v)),
            (call(library.robot_bias_forces, (q, v), (m,), (5,))[0], model.bias_forces(q, v)),
            (call(library.robot_gravity_forces, (q,), (m,), (5,))[0], model.gravity_forces(q)),
            (call(library.robot_passive_forces, (q, v), (m,), (5,))[0], model.passive_forces(q, v)),
        ]
        for found, wanted in pairs:
            np.testing.assert_allclose(found, wanted, atol=1e-8 * (1 + np.abs(wanted).max()))
        off = model.integrate(q, 1e-4 * rng.normal(size=n))
        for _ in range(4):
            step, speed, trust = call(library.robot_way_back, (off, v), (n,), (n,), (3,))
            off = model.integrate(off, step)
        assert np.abs(model.constraints.residual(off)).max() < 1e-12
        assert trust[0] < 1e-20
        assert speed.shape == (n,)


def test_what_c_code_cannot_do_with_loops_is_refused(tmp_path):
    model = pb.load("five-bar")
    with pytest.raises(pb.InputError, match=r"forward_derivatives with loops.*linearize"):
        pb.export_c(model, tmp_path / "c", ["forward_derivatives"])
    with pytest.raises(pb.InputError, match="neither"):
        pb.export_c(pb.load("two-link"), tmp_path / "d", ["way_back"])
    assert not (tmp_path / "c").exists()
