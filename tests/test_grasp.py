"""Arms that hold an object: Table I, the inverse problem, capture, consistency; against an independent KKT solve."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cooperation import FOUR, MIXED, SIX, THREE, held_system, kkt
from polybody.algebra.domains import domain
from polybody.analysis.cooperation import closed_forward_dynamics
from polybody.description.records import Body
from polybody.errors import InputError
from polybody.model import Model
from polybody.model.grasp_making import grasp
from polybody.model.grasping import Grasp

SYSTEMS = {
    "two arms, free base": ((SIX, SIX), {}),
    "two mixed arms, free base, springs and gravity": ((MIXED, SIX), {"gravity": (1, 2, -9.81), "passive": True}),
    "three arms, free base": ((SIX, MIXED, SIX), {}),
    "three arms, planar base, armature": ((MIXED, SIX, MIXED), {"base": "planar", "armature": True}),
    "two arms on a torso": ((SIX, MIXED), {"trunk": ("revolute", "universal"), "gravity": (0, 0, -9.81)}),
    "one arm, free base": ((SIX,), {}),
    "arms of five and six joints": ((("spherical", "universal"), SIX), {"base": "revolute"}),
    "arms of three and four joints among others": ((THREE, FOUR, SIX), {"base": "planar"}),
}


def near(actual, wanted, tolerance):
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=tolerance * (1 + np.abs(wanted).max()))


def test_rotors_that_couple_joints_of_two_arms_are_honoured():
    held, q, v, tau = held_system(6, (SIX, MIXED), armature=True)
    mechanism = held.model.mechanism
    root = np.random.default_rng(0).normal(size=(held.model.nv - 12,) * 2)
    armature = mechanism.armature.copy()
    armature[6:-6, 6:-6] += 0.01 * root @ root.T
    coupled = dataclasses.replace(held.held, mechanism=dataclasses.replace(mechanism, armature=armature))
    a, f_e = kkt(Grasp(Model(coupled.mechanism), coupled), q, v, tau)
    found_a, found_f, _ = closed_forward_dynamics(coupled, q, v, tau)
    near(found_a, a, 1e-9)
    near(found_f, f_e, 1e-9)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("seed", range(2))
def test_motion_and_loads_equal_an_independent_kkt_solve(system, seed):
    arms, options = SYSTEMS[system]
    held, q, v, tau = held_system(seed, arms, **options)
    a, f_e = kkt(held, q, v, tau)
    found_a, found_f, apart = closed_forward_dynamics(held.held, q, v, tau)
    near(found_a, a, 1e-9)
    near(found_f, f_e, 1e-9)
    near(apart, 0 * apart, 1e-9 * (1 + np.abs(a).max()))


def test_compiled_batches_equal_single_states():
    held, q, v, tau = held_system(4, (MIXED, SIX))
    rng = np.random.default_rng(0)
    v = held.capture(q, rng.normal(size=(5, len(v)))).v
    tau = rng.normal(size=v.shape)
    many = held.forward_dynamics(q, v, tau)
    for i in range(5):
        a, f_e = kkt(held, q, v[i], tau[i])
        near(many.a[i], a, 1e-9)
        near(many.f_e[i], f_e, 1e-9)
    plain = held.forward_dynamics(q, v, tau, compiled=False)
    near(plain.a, many.a, 1e-9)
    near(plain.object_acceleration, many.object_acceleration, 1e-9)


def test_a_wrench_on_the_object_is_the_force_of_its_jacobian():
    held, q, v, tau = held_system(4, (MIXED, SIX))
    wrench = np.random.default_rng(0).normal(size=6)
    loaded = held.forward_dynamics(q, v, tau, wrenches={"load": wrench}, compiled=False)
    as_force = tau + held.model.jacobian(q, "load").T @ wrench
    near(loaded.a, held.forward_dynamics(q, v, as_force, compiled=False).a, 1e-9)


def test_momentum_of_arms_base_and_object_together_is_kept():
    held, q, v, tau = held_system(7, (SIX, MIXED))
    model = held.model
    tau[:6] = tau[-6:] = 0.0
    a = held.forward_dynamics(q, v, tau, compiled=False).a
    h = 1e-6
    rates = (
        model.momentum(model.integrate(q, v, h), v + h * a) - model.momentum(model.integrate(q, v, -h), v - h * a)
    ) / (2 * h)
    near(rates, np.zeros(6), 1e-7)


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("base", ["floating", "revolute"])
def test_inverse_problem_undone_by_forward_dynamics_with_wanted_internal_loads(seed, base):
    held, q, v, _ = held_system(seed, (SIX, MIXED), base=base, gravity=(0, 0, -3.0))
    rng = np.random.default_rng(seed)
    wanted, internal = rng.normal(size=6), rng.normal(size=6)
    found = held.inverse_dynamics(q, v, wanted, internal=internal)
    near(found.internal, internal, 1e-9)
    motion = held.forward_dynamics(q, v, found.tau, compiled=False)
    near(motion.object_acceleration, wanted, 1e-8)
    near(motion.f_e, found.f_e, 1e-8)
    near(motion.a, found.a, 1e-8)
    passive = ~held.model.active
    np.testing.assert_array_equal(found.tau[passive], 0.0)


def test_internal_loads_are_named_and_do_no_work_on_the_object():
    held, *_ = held_system(1, (SIX, SIX, SIX))
    assert len(held.internal_names) == 12
    assert held.internal_names[9] == "force x of hand2 against hand0"
    near(held.W.T @ held.internal_basis, np.zeros((6, 12)), 1e-13)


def test_whole_motion_is_accepted_only_if_the_grips_stay_closed():
    held, q, v, tau = held_system(2, (SIX, MIXED), base="revolute")
    a = held.forward_dynamics(q, v, tau, compiled=False).a
    back = held.inverse_dynamics(q, v, a=a, tau=tau)
    near(held.forward_dynamics(q, v, back.tau, compiled=False).a, a, 1e-8)
    a[0] += 1.0
    with pytest.raises(InputError, match="tears grip 'hand"):
        held.inverse_dynamics(q, v, a=a)


def test_a_passive_joint_that_cannot_follow_is_named():
    """Seven joints of which two are passive cannot give an object any acceleration."""
    held, q, v, _ = held_system(3, (SIX,), base="revolute")
    names = held.model.joint_names
    with pytest.raises(InputError, match=r"joint '(arm0_3|base)_joint'\) is passive"):
        held.inverse_dynamics(q, v, np.ones(6), active=names[1:-2])


@pytest.mark.parametrize("seed", [0])
def test_capture_keeps_momentum_and_loses_the_energy_it_says(seed):
    held, q, v, _ = held_system(seed, (SIX, MIXED), closed=False)
    model = held.model
    after = held.capture(q, v)
    near(held.closure_matrix(q) @ after.v, np.zeros(12), 1e-10)
    near(model.momentum(q, after.v), model.momentum(q, v), 1e-10)
    kinetic = model.energy(q, v)[0] - model.energy(q, after.v)[0]
    near(after.energy_lost, kinetic, 1e-10)
    assert kinetic > 0
    # On the object alone: the impulses change its momentum, in its own axes, by Wᵀ I.
    M = model.mass_matrix(q)[-6:, -6:]
    near(held.W.T @ after.impulses.ravel(), M @ (after.v - v)[-6:], 1e-10)


def test_projection_closes_an_open_grasp():
    held, q, v, _ = held_system(5, (SIX, MIXED))
    rng = np.random.default_rng(1)
    off = held.model.integrate(q, 0.02 * rng.normal(size=held.model.nv))
    with pytest.raises(InputError, match=r"end effector 'hand\d' does not meet the object 'load': it is 0\.\d+ m"):
        held.check(off)
    closed, velocity = held.project(np.array([off, q]), v)
    held.check(closed, velocity, tolerance=1e-9)
    with pytest.raises(InputError, match="moves against the object"):
        held.forward_dynamics(q, rng.normal(size=held.model.nv), 0 * v)


def test_singular_arms_are_refused_with_rank_and_direction():
    import polybody as pb

    build = pb.Builder("stretched", gravity=(0, 0, 0))
    near_body, T = "world", np.eye(4)
    for k in range(3):
        build.body(f"link{k}", 1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
        build.joint(f"joint{k}", "revolute", near_body, f"link{k}", T)
        near_body, T = f"link{k}", np.eye(4)
        T[0, 3] = 1.0
    build.frame("hand", "link2", T)
    build.body("load", 1.0, inertia=(0.1, 0.1, 0.1))
    build.joint("load_joint", "planar", "world", "load", active=False)
    model = build.model()
    q = np.array([0.3, 0.0, 0.0, 0.3, 3 * np.cos(0.3), 3 * np.sin(0.3)])
    held = pb.grasp(model, "load", ["hand"], q)
    for compiled in (True, False):
        with pytest.raises(InputError, match=r"H is singular: its rank is 2.*'hand'.*\[ ?-?0\. +-?0\. +-?0\. +-?1\."):
            held.forward_dynamics(q, np.zeros(6), np.ones(6), compiled=compiled)
    bent = np.array([0.3, 0.4, 0.5, 0, 0, 0])
    bent[3:] = 1.2, *model.pose(bent, "hand")[:2, 3]
    held.forward_dynamics(bent, np.zeros(6), np.ones(6))


def test_what_is_no_grasp_is_refused():
    held, q, *_ = held_system(0, (SIX, SIX))
    model = held.model
    for frames, message in (
        (["hand0"], "give q"),
        ("hand0", "sequence"),
        ({"hand0": np.ones((4, 4))}, "4×4 pose"),
        ({"hand0": "hand1"}, "not fixed to the object"),
        ({}, "at least one"),
        ({"load": "load"}, "part of the object"),
        ({"world": "load"}, "fixed to the ground"),
        ({"hand7": "load"}, "no frame 'hand7'"),
    ):
        with pytest.raises(InputError, match=message):
            grasp(model, "load", frames)
    with pytest.raises(InputError, match="joint of its own"):
        grasp(model, "arm0_1", {"hand1": np.eye(4)})
    with pytest.raises(InputError, match="either object_acceleration or a"):
        held.inverse_dynamics(q, np.zeros(model.nv))
    assert isinstance(model.description.bodies[-1], Body)


def operations(function) -> int:
    return function.n_instructions() - function.nnz_in() - function.nnz_out()


def counted(m: int, n: int) -> int:
    """Operations of Table I for m arms of n joints on a free base, traced and counted."""
    import casadi

    held, q, v, tau = held_system(m * 10 + n, (("revolute",) * n,) * m)
    graph = domain("casadi")
    columns, arrays = zip(*(graph.variables(x, len(y)) for x, y in (("q", q), ("v", v), ("t", tau))), strict=True)
    outputs = [graph.column(x) for x in closed_forward_dynamics(held.held, *arrays, domain=graph)]
    return operations(casadi.Function("f", list(columns), outputs))


def test_cost_grows_linearly_with_arms_and_with_joints():
    """Each further arm costs the same, and each further joint of an arm too: no 6m×6m system anywhere."""
    by_arms = [counted(m, 6) for m in (2, 3, 4)]
    by_joints = [counted(1, n) for n in (7, 9, 11)]
    for counts in (by_arms, by_joints):
        first, second = np.diff(counts)
        assert second == pytest.approx(first, rel=0.03)
