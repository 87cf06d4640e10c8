"""Arms that hold an object: Table I, the inverse problem, capture, consistency; against an independent KKT solve."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

import polybody as pb
from cooperation import FOUR, MIXED, SIX, THREE, held_system, kkt
from mechanisms import random_pose
from polybody.algebra.domains import FLOAT, domain
from polybody.algebra.spatial import pose
from polybody.constraints.elimination import Elimination
from polybody.constraints.plan import plan_elimination
from polybody.constraints.ranks import null_space
from polybody.description.records import Body, Motor, Transmission, frozen_array
from polybody.errors import InputError
from polybody.grasping.inverse import levelled, ranked_inverse
from polybody.grasping.making import grasp
from polybody.model.diagnosed import doubtful
from polybody.model.validation import model_from
from polybody.quantities.constrained import Closed, along_plan
from polybody.quantities.holding import Held, Wanted, forces, motion, nearest, nearest_step

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


def read(held, q, v, tau):
    """(a, f_e, V̇°, diagnostics) by the text of the compiled kernel, on numbers: nothing has to be compiled for it."""
    assert held._engine.ready(q)
    engine, text = held.closed.engine, motion(held._engine.names).constrained
    closed = Closed(
        engine.reduced_mechanism, engine.constraints.constraints, along_plan(engine.plans.free(q)),
        engine.drives.columns,
    )
    a, multipliers, moved, _ = text(closed, q, v, tau, domain=FLOAT)
    return a, held._f_e(multipliers), moved, closed.diagnostics(q, v, FLOAT)


def test_rotors_that_couple_joints_of_two_arms_are_honoured():
    held, q, v, tau = held_system(6, (SIX, MIXED), armature=True)
    ends = ("arm0_3_joint", "arm1_1_joint")
    motors = tuple(Motor(f"{end}_motor", end, 1.0, 0.0, 0.1, 0.1, rotor_inertia=0.3) for end in ends)
    across = Transmission("across", ends, frozen_array([[1.0, 0.5], [-0.3, 1.0]]))
    said = dataclasses.replace(held.model.description, motors=motors, transmissions=(across,))
    places = {grip.tip.name: pose(grip.hold.rotation, grip.hold.position) for grip in held.held.grips}
    held = grasp(model_from(said, warn=False), "load", places)
    assert not held.model.mechanism.separable
    a, f_e = kkt(held, q, v, tau)
    found_a, found_f, *_ = read(held, q, v, tau)
    near(found_a, a, 1e-9)
    near(found_f, f_e, 1e-9)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("seed", range(2))
def test_motion_and_loads_equal_an_independent_kkt_solve(system, seed):
    arms, options = SYSTEMS[system]
    held, q, v, tau = held_system(seed, arms, **options)
    a, f_e = kkt(held, q, v, tau)
    found_a, found_f, _, told = read(held, q, v, tau)
    assert not doubtful(told)
    near(found_a, a, 1e-9)
    near(found_f, f_e, 1e-9)


@pytest.mark.parametrize("arms", [(MIXED, SIX), (SIX, MIXED, THREE)], ids=["two arms", "three arms, one short"])
def test_compiled_batches_equal_single_states(arms):
    held, q, v, tau = held_system(4, arms)
    rng = np.random.default_rng(0)
    v = held.capture(q, rng.normal(size=(5, len(v)))).v
    tau = rng.normal(size=v.shape)
    many = held.forward_dynamics(q, v, tau)
    for i in range(5):
        a, f_e = kkt(held, q, v[i], tau[i])
        near(many.a[i], a, 1e-9)
        near(many.f_e[i], f_e, 1e-9)
        near(many.object_acceleration[i], read(held, q, v[i], tau[i])[2], 1e-9)


def test_a_wrench_on_the_object_is_the_force_of_its_jacobian():
    held, q, v, tau = held_system(4, (MIXED, SIX))
    wrench = np.random.default_rng(0).normal(size=6)
    loaded = held.forward_dynamics(q, v, tau, wrenches={"load": wrench})
    as_force = tau + held.model.jacobian(q, "load").T @ wrench
    near(loaded.a, read(held, q, v, as_force)[0], 1e-9)


def test_momentum_of_arms_base_and_object_together_is_kept():
    held, q, v, tau = held_system(7, (SIX, MIXED))
    model = held.model
    tau[:6] = tau[-6:] = 0.0
    a = read(held, q, v, tau)[0]
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
    a, f_e, moved, _ = read(held, q, v, found.tau)
    near(moved, wanted, 1e-8)
    near(f_e, found.f_e, 1e-8)
    near(a, found.a, 1e-8)
    passive = ~held.model.actuation.active
    np.testing.assert_array_equal(found.tau[passive], 0.0)


def test_internal_loads_are_named_and_do_no_work_on_the_object():
    held, *_ = held_system(1, (SIX, SIX, SIX))
    assert len(held.internal_names) == 12
    assert held.internal_names[9] == "force x of hand2 against hand0"
    near(held.W.T @ held.internal_basis, np.zeros((6, 12)), 1e-13)


def test_whole_motion_is_accepted_only_if_the_grips_stay_closed():
    held, q, v, tau = held_system(2, (SIX, MIXED), base="revolute")
    a = read(held, q, v, tau)[0]
    back = held.inverse_dynamics(q, v, a=a, tau=tau)
    near(read(held, q, v, back.tau)[0], a, 1e-8)
    a[0] += 1.0
    with pytest.raises(InputError, match="opens grip 'hand"):
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


def test_a_capture_that_bounces_reverses_velocities_at_the_grips_and_keeps_momentum():
    held, q, v, _ = held_system(0, (SIX, MIXED), closed=False)
    model, e = held.model, 0.6
    bounced, taken = held.capture(q, v, restitution=e), held.capture(q, v)
    J = held.closure_matrix(q)
    near(J @ bounced.v, -e * (J @ v), 1e-10)
    near(model.momentum(q, bounced.v), model.momentum(q, v), 1e-10)
    near(bounced.energy_lost, model.energy(q, v)[0] - model.energy(q, bounced.v)[0], 1e-10)
    near(bounced.impulses, (1 + e) * taken.impulses, 1e-12)
    with pytest.raises(InputError, match="restitution is 2"):
        held.capture(q, v, restitution=2)


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


def wandering(held, q, count, seed=0, reach=0.2):
    """Closed states around one: q (count, nq) and v (count, nv)."""
    moved, v = np.random.default_rng(seed).normal(size=(2, count, held.model.nv))
    return held.project(held.model.integrate(q, reach * moved), v)


def test_projection_of_many_states_is_that_of_each_and_names_the_one_that_fails():
    held, q, *_ = held_system(5, (SIX, MIXED), base="revolute")
    rng = np.random.default_rng(1)
    off = held.model.integrate(q, 0.1 * rng.normal(size=(2, 3, held.model.nv)))
    closed = held.project(off)
    held.check(closed, tolerance=1e-10)
    for index in np.ndindex(2, 3):
        near(closed[index], held.project(off[index]), 1e-8)
        # The way back is the least: to first order no motion that the grips let pass leads nearer.
        Z = null_space(held.closure_matrix(closed[index]))
        back = held.model.difference(off[index], closed[index])
        assert np.abs(Z.T @ back).max() < 0.2 * np.linalg.norm(back)
    away = off.copy()
    away[1, 2, -7:-4] += 50.0  # the object out of reach of every arm
    with pytest.raises(InputError, match=r"no configuration near q in state \(1, 2\) closes the grasp of 'load'"):
        held.project(away)
    away[0, 1, 0] = np.nan
    with pytest.raises(InputError, match=r"q\[0, 1, 0\] is nan"):
        held.project(away)


@pytest.mark.parametrize("base", ["floating", "revolute"])
def test_batched_inverse_problem_equals_rank_revealing_solutions_of_each_state(base):
    held, q, *_ = held_system(1, (SIX, MIXED), base=base, gravity=(0, 0, -3.0), passive=True)
    q, v = wandering(held, q, 4)
    rng = np.random.default_rng(2)
    wanted, internal, tau = rng.normal(size=(4, 6)), rng.normal(size=(4, 6)), rng.normal(size=(4, held.model.nv))
    many = held.inverse_dynamics(q, v, wanted, internal=internal, tau=tau)
    assert not many.deficient.any()
    (wants,) = held._engine._wants.values()
    beside = internal @ held.internal_basis.T
    for i in range(4):
        a = np.concatenate([np.zeros(held.model.nv - 6), wanted[i]])
        one = ranked_inverse(held.closed.engine, wants, held._engine.shares, q[i], v[i], a, tau[i], beside[i])
        assert one.failed is None
        near(many.tau[i], one.tau, 1e-9)
        near(many.a[i], one.a, 1e-9)
        near(many.f_e[i].ravel(), one.multipliers, 1e-9)
    np.testing.assert_array_equal(many.tau[:, ~held.model.actuation.active], tau[:, ~held.model.actuation.active])
    with pytest.raises(InputError, match=r"internal\[2, 1\] is nan"):
        held.inverse_dynamics(q, v, wanted, internal=np.where(np.arange(24).reshape(4, 6) == 13, np.nan, internal))
    # The arm of seven joints has one to spare: it goes as near to a preferred motion as it can.
    preferred = rng.normal(size=held.model.nv)
    near_it, plain = (held.inverse_dynamics(q, v, wanted, internal=internal, a=a) for a in (preferred, None))
    arms = held.model.nv - 6
    aside = [np.linalg.norm(x.a[:, :arms] - preferred[:arms], axis=1) for x in (near_it, plain)]
    assert np.all(aside[0] < aside[1])
    near(near_it.a[:, -6:], wanted, 1e-12)
    motion = held.forward_dynamics(q, v, many.tau)
    near(motion.a, many.a, 1e-8)
    near(motion.f_e, many.f_e, 1e-8)
    again = pickle.loads(pickle.dumps(held)).inverse_dynamics(q, v, wanted, internal=internal, a=preferred)
    np.testing.assert_array_equal(again.tau, near_it.tau)
    empty = held.inverse_dynamics(q[:0], v[:0], wanted[:0])
    assert empty.tau.shape == (0, held.model.nv)


def test_nearest_solution_by_elimination_and_by_levels_equals_that_by_pseudo_inverses():
    """Two rows repeat others."""
    rng = np.random.default_rng(0)
    E = rng.normal(size=(9, 13))
    E[2], E[7] = E[0] - 2 * E[1], E[6] + E[4]
    right = E @ rng.normal(size=13)
    wanted = -np.linalg.pinv(E) @ right
    plan = plan_elimination(E[None])
    assert len(plan.pivots) == 7
    found = Elimination(E, plan, FLOAT)
    near(nearest(found, found.follow(right), FLOAT), wanted, 1e-12)
    wants = Wanted(Held(0, ()), tuple(range(3)), tuple(range(2)), ())
    level_by_level, rank = levelled(E, right, wants, 4)
    near(level_by_level, wanted, 1e-12)
    assert rank == 7


def test_an_object_on_an_oblique_hinge_is_held_as_well():
    """A door: its joint's axis is oblique, so that the reduced mechanism turns the object's own frame."""
    rng = np.random.default_rng(3)
    build = pb.Builder("door", gravity=(0.5, -1, -9.81))
    near_body = "world"
    for k in range(6):
        build.body(f"link{k}", 1.0, com=rng.normal(size=3) * 0.1, inertia=(0.02, 0.03, 0.04))
        build.joint(f"joint{k}", "revolute", near_body, f"link{k}", random_pose(rng, 0.4), axis=unit(rng))
        near_body = f"link{k}"
    build.frame("hand", near_body, random_pose(rng, 0.2))
    build.body("door", 8.0, com=(0.4, 0.1, 0), inertia=(0.3, 0.4, 0.5))
    build.joint("hinge", "revolute", "world", "door", random_pose(rng, 0.5), axis=unit(rng), active=False, damping=0.3)
    model = build.model()
    q = model.random_configuration(rng)
    held = pb.grasp(model, "door", ["hand"], q)
    v = held.capture(q, rng.normal(size=model.nv)).v
    tau = rng.normal(size=model.nv)
    motion = held.forward_dynamics(q, v, tau)
    a, f_e = kkt(held, q, v, tau)
    near(motion.a, a, 1e-9)
    near(motion.f_e, f_e, 1e-9)
    pushed = held.inverse_dynamics(q, v, [2.0])
    near(held.forward_dynamics(q, v, pushed.tau).a[-1], 2.0, 1e-8)


def test_arms_too_long_for_straight_line_code_are_answered_all_the_same():
    """An arm that ends in a flexible link of 118 segments: forward, inverse and projection, without kernels."""
    build = pb.Builder("long", gravity=(0, -9.81, 0))
    build.body("hub", 5.0, inertia=(1, 1, 1))
    build.joint("shoulder", "revolute", "world", "hub")
    tip = build.flexible_link("rod", 1.0, 0.5, 50.0, segments=118, damping=0.01)
    build.joint("clamp", "fixed", "hub", "rod")
    build.body("hand", 0.5, inertia=(0.01, 0.01, 0.01))
    build.joint("wrist", "revolute", tip, "hand", (1 / 236, 0, 0))
    build.body("ball", 1.0, inertia=(0.1, 0.1, 0.1))
    build.joint("ball_joint", "planar", "world", "ball", active=False)
    model = build.model()
    assert model.engine.tree.is_long
    q = model.neutral()
    q[-2] = 1.0  # the ball at the rod's end
    held = pb.grasp(model, "ball", {"hand": "ball"})
    rng = np.random.default_rng(0)
    q, v = held.project(model.integrate(q, 1e-3 * rng.normal(size=(2, model.nv))), np.zeros((2, model.nv)))
    a = held.forward_dynamics(q, v, np.zeros(model.nv)).a
    near(a[1], kkt(held, q[1], v[1], np.zeros(model.nv))[0], 1e-6)  # links of a gram: M is badly conditioned
    driven = held.inverse_dynamics(q, v, a=a)
    near(driven.tau, np.zeros((2, model.nv)), 1e-4)


def unit(rng) -> np.ndarray:
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def stretched_arm():
    """A planar 3R arm that holds a planar load: (model, the load last, at the hand)."""
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
    return build.model()


def with_load(model, q):
    """q of the arm, and the load where the hand is."""
    q = np.concatenate([q, np.zeros(3)])
    q[3:] = q[:3].sum(), *model.pose(q, "hand")[:2, 3]
    return q


def test_states_that_lose_rank_are_marked_one_by_one_and_the_impossible_named():
    model = stretched_arm()
    bent, straight = with_load(model, [0.3, 0.4, 0.5]), with_load(model, [0.3, 0.0, 0.0])
    held = pb.grasp(model, "load", {"hand": "load"})
    q, v = np.array([bent, straight, bent]), np.zeros((3, 6))
    # Across the stretched arm the load can still be moved, and turned; along it it cannot.
    across = np.array([0.7, 0.0, 1.5])
    found = held.inverse_dynamics(q, v, across)
    np.testing.assert_array_equal(found.deficient, [False, True, False])
    A = held.closure_matrix(q)
    near((A @ found.a[..., None])[..., 0], np.zeros((3, 6)), 1e-12)
    one = held.inverse_dynamics(bent, v[0], across)
    near(found.tau[0], one.tau, 1e-12)
    assert not one.deficient
    least = np.linalg.lstsq(A[1][:, :3], -A[1][:, 3:] @ across, rcond=1e-9)[0]
    near(found.a[1, :3], least, 1e-9)  # of all arm motions that do it, the least
    with pytest.raises(InputError, match=r"the desired motion in state \(1,\) opens grip 'hand': linear x"):
        held.inverse_dynamics(q, v, [0.0, 1.0, 0.0])


def test_a_stretched_arm_moves_its_load_as_the_whole_saddle_system_says():
    """H of the arm alone is singular there, so that Table I has no answer; the load's inertia determines one."""
    model = stretched_arm()
    q = with_load(model, [0.3, 0.0, 0.0])
    held = pb.grasp(model, "load", ["hand"], q)
    assert np.linalg.matrix_rank(held.mobility(q), tol=1e-9) == 2
    found, (a, f_e) = held.forward_dynamics(q, np.zeros(6), np.ones(6)), kkt(held, q, np.zeros(6), np.ones(6))
    near(found.a, a, 1e-10)
    near(found.f_e, f_e, 1e-10)


def test_arms_stretched_against_each_other_are_refused_with_rank_and_direction():
    """Two arms in one line, the load between them: what they press against each other along it nothing determines."""
    build = pb.Builder("two stretched", gravity=(0, 0, 0))
    for side, x in (("left", -2.0), ("right", 2.0)):
        near_body, T = "world", np.eye(4)
        T[0, 3] = x
        for k in range(3):
            build.body(f"{side}{k}", 1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
            build.joint(f"{side}_joint{k}", "revolute", near_body, f"{side}{k}", T)
            near_body, T = f"{side}{k}", np.eye(4)
            T[0, 3] = 1.0
        build.frame(f"{side}_hand", near_body, T)
    build.body("load", 1.0, inertia=(0.1, 0.1, 0.1))
    build.joint("load_joint", "planar", "world", "load", active=False)
    model = build.model()
    straight = np.array([0, 0, 0, np.pi, 0, 0, 0, 0, 0.0])
    held = pb.grasp(model, "load", ["left_hand", "right_hand"], straight)
    bent = held.project(np.array([0.4, -0.9, 0.5, np.pi + 0.4, -0.9, 0.5, 0, 0, 0.0]))
    assert np.abs(held.model.difference(straight, bent)).max() > 0.1
    held.forward_dynamics(bent, np.zeros(9), np.ones(9))
    told = r"H is singular in state \(1,\): its rank is 4, and of 6 rows of the grasp of 'load' only 5 "
    with pytest.raises(InputError, match=told + r".*\[ ?-?0\. +-?0\. +-?0\. +-?1\."):
        held.forward_dynamics(np.array([bent, straight]), np.zeros(9), np.ones(9))


def test_a_hand_turned_by_half_a_turn_does_not_meet_its_grip():
    """The sine of that angle vanishes, so that rows alone would not see it."""
    model = stretched_arm()
    q = with_load(model, [0.3, 0.4, 0.5])
    held = pb.grasp(model, "load", {"hand": "load"})
    held.forward_dynamics(q, np.zeros(6), np.ones(6))
    q[3] += np.pi
    for call in (held.forward_dynamics, lambda *x: held.inverse_dynamics(*x[:2], a=x[2])):
        with pytest.raises(InputError, match=r"the object 'load': it is .* m and 3\.14159 rad from its grip"):
            call(q, np.zeros(6), np.ones(6))


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
    with pytest.raises(InputError, match="give object_acceleration, or a"):
        held.inverse_dynamics(q, np.zeros(model.nv))
    assert isinstance(model.description.bodies[-1], Body)


def traced_operations(text, *arrays) -> int:
    """Operations of text(*arrays, domain=…) over the expression graph, equal ones counted once."""
    import casadi

    graph = domain("casadi")
    columns, nodes = zip(*(graph.variables(f"x{k}", len(x)) for k, x in enumerate(arrays)), strict=True)
    outputs = casadi.cse([graph.column(x) for x in text(*nodes, domain=graph)])
    function = casadi.Function("f", list(columns), outputs)
    return function.n_instructions() - function.nnz_in() - function.nnz_out()


def counted(m: int, base: str) -> tuple[int, int, int]:
    """Operations of the motion, of the inverse problem and of a step back to the grips, m arms of six joints."""
    held, q, v, tau = held_system(m, (("revolute",) * 6,) * m, base=base)
    assert held._engine.ready(q)
    engine = held.closed.engine
    tree, system, plan = engine.reduced_mechanism, engine.constraints.constraints, engine.plans.free(q)
    wants = held._engine.planned(held._asked(False, held.model.actuation.active), q)
    assert wants.settled

    def closed() -> Closed:
        return Closed(tree, system, along_plan(plan), engine.drives.columns)

    def inverse(*x, domain):
        return forces(tree, system, wants, held._engine.shares, *x, domain=domain)

    forward = motion(held._engine.names).constrained
    return (
        traced_operations(lambda *x, domain: forward(closed(), *x, domain=domain), q, v, tau),
        traced_operations(inverse, q, v, v, tau, np.zeros(len(system))),
        traced_operations(lambda q, *, domain: (nearest_step(closed(), q, domain=domain),), q),
    )


def test_cost_grows_linearly_with_arms():
    """Arms that share a base and an object: each further arm costs about the same, there is no 6m×6m system."""
    for counts in zip(*(counted(m, "revolute") for m in (2, 3, 4)), strict=True):
        first, second = np.diff(counts)
        assert second == pytest.approx(first, rel=0.25)
