"""The C library of models with loops: built by gcc, against the model's own answers."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from c_library import built, call, gcc

QUANTITIES = [
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "coriolis_matrix", "bias_forces", "gravity_forces",
    "passive_forces", "energy", "projection_step", "forward_dynamics_derivatives",
]  # fmt: skip


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
            (call(library.robot_forward_dynamics, (q, v, tau), (n,), (6,))[0], a),
            (call(library.robot_mass_matrix, (q,), (m, m), (6,))[0], model.mass_matrix(q)),
            (call(library.robot_coriolis_matrix, (q, v), (m, m), (6,))[0], model.coriolis_matrix(q, v)),
            (call(library.robot_bias_forces, (q, v), (m,), (6,))[0], model.bias_forces(q, v)),
            (call(library.robot_gravity_forces, (q,), (m,), (6,))[0], model.gravity_forces(q)),
            (call(library.robot_forward_dynamics_derivatives, (q, v, tau), (n, m), (n, m), (n, n), (6,))[1],
             model.forward_dynamics_derivatives(q, v, tau)[1]),
            (call(library.robot_passive_forces, (q, v), (m,), (6,))[0], model.passive_forces(q, v)),
        ]  # fmt: skip
        for found, wanted in pairs:
            np.testing.assert_allclose(found, wanted, atol=1e-8 * (1 + np.abs(wanted).max()))
        off = model.integrate(q, 1e-4 * rng.normal(size=n))
        for _ in range(4):
            step, speed, told = call(library.robot_projection_step, (off, v), (n,), (n,), (6,))
            off = model.integrate(off, step)
        assert np.abs(model.constraints.residual(off)).max() < 1e-12
        assert told[0] < 1e-20
        assert speed.shape == (n,)


def test_forces_of_drives_that_cannot_hold_every_motion_are_refused(tmp_path):
    build = pb.Builder("loose")
    for name in ("a", "b", "c"):
        build.body(name, 1.0, inertia=(1, 1, 1))
    build.joint("one", "revolute", "world", "a", active=False)
    build.joint("two", "revolute", "a", "b", origin=(1, 0, 0), active=False)
    build.joint("three", "revolute", "b", "c", origin=(1, 0, 0), active=False)
    build.loop("end", "revolute", "c", "world", origin_a=(1, 0, 0), origin_b=(1.5, 0.5, 0))
    model = build.model()
    with pytest.raises(pb.InputError, match="cannot hold every motion"):
        pb.export_c(model, tmp_path / "c", ["inverse_dynamics"])
    assert not (tmp_path / "c").exists()
