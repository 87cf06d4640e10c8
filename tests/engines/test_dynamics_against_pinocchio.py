"""Every dynamic quantity of every robot of example-robot-data, against Pinocchio.

Our inverse dynamics subtracts what URDF dampers exert, Pinocchio's does not: the comparison adds it back. C is not
unique, so C v is compared. The formulation's own text is held against Pinocchio on every robot; the compiled kernels
are held against it on a choice of them, and against the text on random trees elsewhere.
"""

from __future__ import annotations

import numpy as np
import pytest

from pinocchio_bridge import SWAP, PinModel, pin, robot_file, robot_files
from polybody.formulations import denoc
from polybody.mechanism import kinematics
from polybody.mechanism.energy import energy, momentum
from polybody.mechanism.forces import joint_passive_forces

FILES = [path for path in robot_files() if path.name != "ur3.urdf"]
BASES = [False, True]


def state(both: PinModel):
    rng = np.random.default_rng(7)
    q = both.ours.random_configuration(rng)
    v, a, tau = rng.normal(size=(3, both.ours.nv))
    return q, v, a, tau


def close(ours, theirs, tolerance: float) -> None:
    scale = max(np.abs(theirs).max(initial=0.0), 1e-6)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)


def damping(both: PinModel):
    B = np.zeros((both.ours.nv, both.ours.nv))
    for joint in both.ours.mechanism.joints:
        B[joint.v, joint.v] = joint.damping
    return B


@pytest.mark.parametrize("floating", BASES, ids=["fixed", "floating"])
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_robot_moves_as_pinocchio_says(path, floating):
    both = PinModel(path, floating)
    m, model, data = both.ours.mechanism, both.model, both.data
    if m.nv == 0:
        return
    q, v, a, tau = state(both)
    q_pin, v_pin, a_pin = both.q(q), both.v(v), both.v(a)
    passive = joint_passive_forces(m, q, v)

    M = pin.crba(model, data, q_pin)
    M = both.matrix_back(np.triu(M) + np.triu(M, 1).T)
    close(denoc.mass_matrix(m, q), M, 1e-10)
    rnea = both.tau_back(pin.rnea(model, data, q_pin, v_pin, a_pin))
    close(denoc.inverse_dynamics(m, q, v, a) + passive, rnea, 1e-10)
    bias = both.tau_back(pin.nonLinearEffects(model, data, q_pin, v_pin))
    gravity = both.tau_back(pin.computeGeneralizedGravity(model, data, q_pin))
    close(denoc.bias_forces(m, q, v), bias, 1e-10)
    close(denoc.gravity_forces(m, q), gravity, 1e-10)
    close(denoc.coriolis_matrix(m, q, v) @ v, bias - gravity, 1e-10)

    kinetic, potential = energy(m, q, v)
    close(kinetic, pin.computeKineticEnergy(model, data, q_pin, v_pin), 1e-10)
    # The potential of what is welded to the ground is a constant that Pinocchio keeps and we do not have.
    neutral = both.ours.neutral()
    change = potential - energy(m, neutral, v)[1]
    theirs = pin.computePotentialEnergy(model, data, q_pin) - pin.computePotentialEnergy(model, data, both.q(neutral))
    np.testing.assert_allclose(change, theirs, rtol=0, atol=1e-10 * (1 + abs(potential)))
    if sum(body.mass for body in m.bodies) > 0:
        h = pin.computeCentroidalMomentum(model, data, q_pin, v_pin)
        close(momentum(m, q, v), np.asarray(h)[SWAP], 1e-10)
        if not m.fixed_joints or floating:
            close(kinematics.center_of_mass(m, q), pin.centerOfMass(model, data, q_pin), 1e-10)

    if np.linalg.eigvalsh(M)[0] > 1e-12 * np.abs(M).max():
        # Forward dynamics of a badly scaled robot loses what its mass matrix's condition takes.
        tolerance = 1e-10 if np.linalg.cond(M) < 1e5 else 1e-8
        theirs = both.v_back(pin.aba(model, data, q_pin, v_pin, both.tau(tau + passive)))
        close(denoc.forward_dynamics(m, q, v, tau), theirs, tolerance)


@pytest.mark.parametrize("floating", BASES, ids=["fixed", "floating"])
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_robots_derivatives_are_pinocchios(path, floating):
    both = PinModel(path, floating)
    m = both.ours.mechanism
    if m.nv == 0:
        return
    q, v, a, _ = state(both)
    dq, dv, _ = denoc.inverse_dynamics_derivatives(m, q, v, a)
    theirs = pin.computeRNEADerivatives(both.model, both.data, both.q(q), both.v(v), both.v(a))
    close(dq, both.matrix_back(theirs[0]), 1e-8)
    close(dv - damping(both), both.matrix_back(theirs[1]), 1e-8)


@pytest.mark.parametrize(
    ("name", "floating"),
    [("ur5_robot.urdf", False), ("panda.urdf", False), ("anymal.urdf", True), ("hyq_no_sensors.urdf", True)],
)
def test_compiled_answers_are_pinocchios(name, floating):
    both = PinModel(robot_file(name), floating)
    ours, model, data = both.ours, both.model, both.data
    rng = np.random.default_rng(3)
    q = ours.random_configuration(rng, size=5)
    v, a = rng.normal(size=(2, 5, ours.nv))
    passive = ours.passive_forces(q, v)
    tau = ours.inverse_dynamics(q, v, a) + passive
    back = ours.forward_dynamics(q, v, tau - passive)
    M = ours.mass_matrix(q)
    Cv = np.einsum("bij,bj->bi", ours.coriolis_matrix(q, v), v) + ours.gravity_forces(q)
    close(Cv, ours.bias_forces(q, v), 1e-11)
    close(back, a, 1e-9)
    for k in range(5):
        q_pin, v_pin, a_pin = both.q(q[k]), both.v(v[k]), both.v(a[k])
        close(tau[k], both.tau_back(pin.rnea(model, data, q_pin, v_pin, a_pin)), 1e-10)
        theirs = pin.crba(model, data, q_pin)
        close(M[k], both.matrix_back(np.triu(theirs) + np.triu(theirs, 1).T), 1e-10)
