"""Freeman (1985), appendices C, D and E, by the general machine for loops; corrections of ERRATA.md applied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import polybody as pb
from polybody.description.records import frozen_array
from polybody.model.validation import model_from

INCH, POUND = 0.0254, 4.4482216152605
UNIT = INCH * POUND  # in·lbf in N·m


def appendix_e():
    """The 3-RRR with inertia 1, 2, 3 in·lbf·s² at the base joints only, and no gravity."""
    d = pb.load("3-rrr").description
    bodies = []
    for body in d.bodies:
        size = UNIT * float(body.name[-1]) if body.name.startswith("base") else 0.0
        inertia = frozen_array(np.diag([size / 2, size / 2, size]))
        bodies.append(replace(body, mass=0.0, com=frozen_array(np.zeros(3)), inertia=inertia))
    return model_from(replace(d, gravity=frozen_array(np.zeros(3)), bodies=tuple(bodies)), warn=False)


def test_appendix_c_five_bar_constrained_model_and_loads():
    model = pb.load("five-bar")
    q = model.neutral()
    found = model.coefficients.reduced_dynamics(q, ["phi1", "theta_h"])
    np.testing.assert_allclose(found.I / UNIT * 1e3, [[411.24, 68.79], [68.79, 37.17]], atol=0.011)
    np.testing.assert_allclose(found.P[0] / UNIT * 1e3, [[303.35, 2.15], [2.15, -181.56]], atol=0.011)
    np.testing.assert_allclose(found.P[1] / UNIT * 1e3, [[-40.50, 18.95], [18.95, -108.75]], atol=0.011)
    u_dot, u_ddot = np.array([2.0, 3.0]), np.array([1.0, 0.5])
    v = found.G @ u_dot
    a = found.G @ u_ddot + np.einsum("kij,i,j->k", found.H, u_dot, u_dot)
    tau = model.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(tau[[0, 3]] / UNIT * 1e3, [50.77, -825.92], atol=0.011)
    assert tau[1] == tau[2] == 0.0
    # link 4 is massless: what it passes on to link 3 is the force at h (table C-3)
    force = model.constraints.loads(q, v, tau)["B"][3:5]
    np.testing.assert_allclose(force / POUND * 1e3, [68.83, -147.60], atol=0.011)
    np.testing.assert_allclose(a, model.forward_dynamics(q, v, tau), atol=1e-9)
    # table C-1: link 2's rate and acceleration
    absolute = np.cumsum(v[:2])[1], np.cumsum(a[:2])[1]
    np.testing.assert_allclose(absolute, [-0.074, -3.405], atol=0.0011)


def test_appendix_e_three_rrr_model_at_its_actuators_is_known_beforehand():
    model = appendix_e()
    found = model.coefficients.reduced_dynamics(model.neutral(), ["phi1_1", "phi1_2", "phi1_3"])
    np.testing.assert_allclose(found.I / UNIT, np.diag([1.0, 2.0, 3.0]), atol=1e-12)
    assert np.abs(found.P).max() < 1e-12
    # table E-2: [G_w^q], w = (x, y, θ) of the hand, in inches; its rounded entries
    hand = model.jacobian(model.neutral(), "hand")[[3, 4, 2]] @ found.G
    G = np.linalg.inv(hand / np.array([[INCH], [INCH], [1.0]]))
    expected = [[-0.637, 0.225, -0.513], [0.124, -0.665, -0.514], [0.513, 0.439, -0.513]]
    np.testing.assert_allclose(G, expected, atol=2e-3)


def test_appendix_d_bricard_moves_though_gruebler_forbids_it():
    model = pb.load("bricard")
    q = model.neutral()
    told = model.mobility(q)
    assert (told.gruebler, told.true) == (0, 1)
    assert len(told.redundant) == 1
    assert told.redundant[0].row.name == "theta6"
    assert str(told.redundant[0].row).startswith("theta6: ")
    # (D-2): all joints follow one
    G = model.coefficients.reduced_dynamics(q).G
    assert np.abs(model.constraints.jacobian(q) @ G).max() < 1e-12
    solved = model.constraints.solution(q, np.zeros(5), np.zeros(5))
    assert solved.rank == 4
    np.testing.assert_allclose(model.forward_dynamics(q, np.zeros(5), np.zeros(5), formulation="network"), solved.a,
                               atol=1e-9)


def test_bricard_keeps_its_energy_and_its_loop_over_ten_seconds():
    motion = pb.simulate(pb.load("bricard"), 10.0, rtol=1e-11, atol=1e-13)
    assert motion.audit.energy_error_relative < 1e-8
    assert motion.audit.loop_error < 1e-10
    assert (motion.audit.singular_evaluations, motion.audit.singular_passages) == (0, 0)


def test_appendix_d_slider_crank_has_an_idle_spin_that_no_actuator_holds():
    model = pb.load("slider-crank")
    q = model.neutral()
    told = model.mobility(q, independent=["crank_joint", "crank_ball_0"])
    assert (told.gruebler, told.true, told.actuation) == (2, 2, "underactuated")
    (spin,) = told.uncontrolled
    slices = model.joint_slices()
    # the spin is about the coupler's own line and moves nothing else
    np.testing.assert_allclose(np.abs(spin), np.abs(np.eye(5)[slices["crank_ball"][1].start]), atol=1e-9)
    a = model.assemble_acceleration(q, np.zeros(5), [0, 1.0, 0, 0, 0], hold=["crank_joint"])
    with pytest.raises(pb.PolybodyError, match=r"cannot give this motion.*crank_ball_0"):
        model.inverse_dynamics(q, np.zeros(5), a)


@pytest.mark.parametrize("name", ["walking-machine", "two-fingered-hand"])
def test_figure_4_5_loads_are_shared_and_one_internal_load_is_free(name):
    model = pb.load(name)
    q, rest = model.neutral(), np.zeros(model.nv)
    told = model.mobility(q)
    assert (told.true, len(told.actuators), told.actuation) == (3, 4, "redundant")
    names, basis = model.actuation.internal_loads(q)
    assert basis.shape == (4, 1)
    holding = model.inverse_dynamics(q, rest, rest)
    at = model.constraints.indices(names)
    assert abs(holding[list(at)] @ basis[:, 0]) < 1e-9  # the least of all that hold it
    squeeze = holding.copy()
    squeeze[list(at)] += 3.0 * basis[:, 0]
    assert np.abs(model.forward_dynamics(q, rest, squeeze)).max() < 1e-9
    weighted = model.inverse_dynamics(q, rest, rest, weights=[1, 2, 3, 4.0])
    assert abs((np.array([1, 2, 3, 4.0]) * weighted[list(at)]) @ basis[:, 0]) < 1e-9
    assert np.abs(model.forward_dynamics(q, rest, weighted)).max() < 1e-9


def test_figure_4_3_hybrid_has_six_freedoms_at_its_six_actuators():
    model = pb.load("hybrid")
    told = model.mobility(model.neutral())
    assert (told.true, told.actuation) == (6, "exact")
    assert set(told.independent) == set(told.actuators)
