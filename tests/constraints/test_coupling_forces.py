"""What couplings exert, through the public face: against the tree whose followers are free."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb


def geared(loop: bool = False, couplings: bool = True):
    """Two bars on the ground, the second turned by minus twice the first; perhaps with a slider that a loop holds."""
    build = pb.Builder("geared", gravity=(0, -9.81, 0))
    for name, mass in (("one", 1.0), ("two", 2.0), ("third", 0.5)):
        build.body(name, mass, com=(0.4, 0.1, 0), inertia=(0.1, 0.1, 0.2))
    build.joint("a", "revolute", "world", "one")
    build.joint("b", "revolute", "world", "two", origin=(1, 0, 0), damping=0.3)
    build.joint("c", "revolute", "two", "third", origin=(0.5, 0, 0), active=not loop)
    if loop:
        build.joint("s", "prismatic", "world", "slide", origin=(1, 0.3, 0), axis=(1, 0, 0), active=False)
        build.body("slide", 0.7, inertia=(0.1, 0.1, 0.1))
        build.loop("pin", "revolute", "third", "slide", origin_a=(0.8, 0, 0))
    if couplings:
        build.couple("b", "a", -2.0, 0.1)
    return build.model()


def test_coupling_force_is_what_the_free_follower_would_need():
    model, free = geared(), geared(couplings=False)
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 5, 2))
    every = [np.stack([x[:, 0], -2 * x[:, 0] + c, x[:, 1]], axis=-1) for x, c in ((q, 0.1), (v, 0), (a, 0))]
    needed = free.inverse_dynamics(*every)
    force = model.constraints.coupling_forces(q, v, a)["b"]
    np.testing.assert_allclose(force, needed[:, 1], atol=1e-12)
    tau = model.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(tau[:, 0], needed[:, 0] - 2 * force, atol=1e-12)


def test_coupling_force_in_a_loop_balances_the_follower_with_what_the_loop_bears():
    model, free = geared(True), geared(True, couplings=False)
    rng = np.random.default_rng(1)
    q = model.assemble(np.array([0.2, -0.4, 0.3]))
    v = model.assemble_velocity(q, rng.normal(size=model.nv))
    a = model.assemble_acceleration(q, v, rng.normal(size=model.nv))
    force = model.constraints.coupling_forces(q, v, a)["b"]
    tau = model.inverse_dynamics(q, v, a)
    # The free machine, given the drive's own force and the coupling's on both its joints, makes the same motion.
    names = free.joint_names
    state = {x: np.zeros(free.nv) for x in "qvat"}
    for key, values in (("q", model.constraints.joint_positions(q)),):
        for name, value in values.items():
            state[key][names.index(name)] = value[0]
    for key, x in (("v", v), ("a", a)):
        for name, (_, part) in model.joint_slices().items():
            state[key][names.index(name)] = x[part][0]
        state[key][names.index("b")] = -2 * x[model.joint_slices()["a"][1]][0]
    state["t"][names.index("a")] = tau[model.joint_slices()["a"][1]][0] + 2 * force
    state["t"][names.index("b")] = force
    np.testing.assert_allclose(free.forward_dynamics(state["q"], state["v"], state["t"]), state["a"], atol=1e-9)


def test_a_model_without_couplings_has_no_coupling_forces():
    model = pb.load("two-link")
    assert model.constraints.coupling_forces(model.neutral(), np.zeros(2), np.zeros(2)) == {}
    with pytest.raises(pb.InputError, match="shape"):
        model.constraints.coupling_forces([0.0], np.zeros(2), np.zeros(2))
