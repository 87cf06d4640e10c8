"""Tokad's recursions on random trees against Saha's, and reactions against the balance of every free body."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms import random_tree
from polybody.algebra.domains import FLOAT, domain
from polybody.algebra.jets import JetDomain
from polybody.errors import InputError, PolybodyError
from polybody.formulations import denoc, network
from polybody.formulations.network.reactions import reaction_names
from polybody.mechanism import kinematics, mechanism_from
from polybody.mechanism.forces import joint_passive_forces
from polybody.model import Model
from trees import random_state as tree
from trees import scale

JETS = JetDomain(FLOAT)
SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_protocol_answers_equal_denoc_on_random_tree(seed):
    mechanism, q, v, a, rng = tree(seed, floating_base=seed % 3 == 0)
    wrenches = rng.normal(size=(len(mechanism.bodies), 6))
    tau = denoc.inverse_dynamics(mechanism, q, v, a, wrenches)
    tolerance = 1e-10 * scale(tau)
    np.testing.assert_allclose(network.inverse_dynamics(mechanism, q, v, a, wrenches), tau, atol=tolerance, rtol=0)
    M = denoc.mass_matrix(mechanism, q)
    np.testing.assert_allclose(network.mass_matrix(mechanism, q), M, atol=1e-10 * scale(M), rtol=0)
    bias = denoc.bias_forces(mechanism, q, v)
    np.testing.assert_allclose(network.bias_forces(mechanism, q, v), bias, atol=1e-10 * scale(bias), rtol=0)
    expected = denoc.forward_dynamics(mechanism, q, v, tau, wrenches)
    forward = network.forward_dynamics(mechanism, q, v, tau, wrenches)
    np.testing.assert_allclose(forward, expected, atol=1e-10 * scale(expected), rtol=0)


def test_one_text_gives_numbers_symbols_and_graphs():
    import casadi
    import sympy

    mechanism, q, v, a, _ = tree(3, kinds=("revolute", "prismatic", "screw"), springs=0)
    tau = network.inverse_dynamics(mechanism, q, v, a)
    graph = domain("casadi")
    columns, arrays = zip(*(graph.variables(n, len(x)) for n, x in (("q", q), ("v", v), ("a", a))), strict=True)
    traced = graph.column(network.inverse_dynamics(mechanism, *arrays, domain=graph))
    answer = np.array(casadi.Function("f", list(columns), [traced])(q, v, a)).ravel()
    np.testing.assert_allclose(answer, tau, rtol=1e-11, atol=1e-11)
    small = mechanism_from(random_tree(5, 2, kinds=("revolute",), springs=0, stiffness=0))
    q, v, a = q[:2], v[:2], a[:2]
    small_tau = network.inverse_dynamics(small, q, v, a)
    symbols = domain("sympy")
    names = [np.array(sympy.symbols(f"{n}:{small.nv}"), dtype=object) for n in "qva"]
    expression = network.inverse_dynamics(small, *names, domain=symbols)
    evaluate = sympy.lambdify(list(np.concatenate(names)), list(expression), modules="mpmath", cse=True)
    np.testing.assert_allclose([float(x) for x in evaluate(*q, *v, *a)], small_tau, rtol=1e-9)


def free_body_balance(mechanism, q, v, a):
    """For every link: rate of momentum about the link's origin minus its weight; by jets.

    It shares no recursion with `reactions`: velocities and momenta are rates of poses, taken twice by nested jets.
    """
    outer = JetDomain(JETS)
    qd = kinematics.rate(mechanism, q, v)
    moved = JETS.lift(q, qd)
    quicker = JETS.lift(v, a)
    outer_q = outer.lift(moved, kinematics.rate(mechanism, moved, quicker, domain=JETS))
    poses = kinematics.body_poses(mechanism, outer_q, domain=outer)
    residual = {"world": np.zeros(6)}
    places = {}
    for link in mechanism.description.bodies:
        frame = mechanism.frames[mechanism.frame_index[link.name]]
        R, p = kinematics.frame_pose(frame, poses, domain=outer)
        com = p + R @ outer.array(link.com)
        value = np.vectorize(lambda s: s.value, otypes=[object])
        rate = np.vectorize(lambda s: s.rate, otypes=[object])
        R0, G, G_rate = value(R), value(com), rate(com)
        spin = rate(R) @ R0.T
        omega = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
        L = R0 @ JETS.array(link.inertia) @ R0.T @ omega
        force = JETS.rates(G_rate) * link.mass - link.mass * mechanism.gravity
        arm = JETS.values(G) - JETS.values(value(p))
        residual[link.name] = np.concatenate([JETS.rates(L) + np.cross(arm, force), force])
        places[link.name] = (JETS.values(R0), JETS.values(value(p)))
    places["world"] = (np.eye(3), np.zeros(3))
    return residual, places


@pytest.mark.parametrize("seed", range(6))
def test_reactions_balance_every_free_body(seed):
    mechanism, q, v, a, rng = tree(seed)
    loads = rng.normal(size=(len(mechanism.frames), 6))
    names = reaction_names(mechanism)
    assert sorted(names) == sorted(j.name for j in mechanism.description.joints)
    w = dict(zip(names, network.reactions(mechanism, q, v, a, loads), strict=True))
    residual, places = free_body_balance(mechanism, q, v, a)
    origin = {name: p for name, (_, p) in places.items()}

    def act(link, wrench, point):
        residual[link] = residual[link] - wrench - np.concatenate(
            [np.cross(point - origin[link], wrench[3:]), np.zeros(3)]
        )

    for joint in mechanism.description.joints:
        act(joint.child, w[joint.name], origin[joint.child])
        act(joint.parent, -w[joint.name], origin[joint.child])
    owners = {f.name: f for f in mechanism.description.frames}
    for frame, load in zip(mechanism.frames, loads, strict=True):
        link = owners[frame.name].body if frame.name in owners else frame.name
        R, p = places[link]
        point = p + R @ owners[frame.name].origin[:3, 3] if frame.name in owners else p
        act(link, load, point)
    for spring in mechanism.description.springs:
        ends = [(n, places[n][1] + places[n][0] @ x)
                for n, x in ((spring.body_a, spring.point_a), (spring.body_b, spring.point_b))]
        (la, pa), (lb, pb) = ends
        length = np.linalg.norm(pb - pa)
        poses, twists = kinematics.body_poses(mechanism, q), kinematics.body_twists(mechanism, q, v)

        def speed(link, point, poses=poses, twists=twists):
            body = mechanism.frames[mechanism.frame_index[link]].body
            if body < 0:
                return np.zeros(3)
            (R, p), V = poses[body], twists[body]
            return R @ V[3:] + np.cross(R @ V[:3], point - p)

        u = (pb - pa) / length
        pull = spring.stiffness * (length - spring.length) + spring.damping * (u @ (speed(lb, pb) - speed(la, pa)))
        act(la, np.concatenate([np.zeros(3), u * pull]), pa)
        act(lb, np.concatenate([np.zeros(3), -u * pull]), pb)
    for link in mechanism.description.bodies:
        np.testing.assert_allclose(residual[link.name], 0, atol=1e-9 * scale(*w.values()), err_msg=link.name)


@pytest.mark.parametrize("seed", range(6))
def test_reaction_along_the_joint_is_what_motor_springs_and_rotor_exert(seed):
    mechanism, q, v, a, _ = tree(seed)
    tau = denoc.inverse_dynamics(mechanism, q, v, a)
    exerted = tau + joint_passive_forces(mechanism, q, v) - mechanism.armature @ a
    w = dict(zip(reaction_names(mechanism), network.reactions(mechanism, q, v, a, axes="joint"), strict=True))
    for joint in mechanism.joints:
        model = joint.model.joint if joint.reversed else joint.model
        H = model.velocity_map(q[joint.q])
        np.testing.assert_allclose(H.T @ w[joint.name], exerted[joint.v], atol=1e-10 * scale(*w.values()))


def test_model_reactions_are_batched_compiled_and_named():
    mechanism, _, _, _, rng = tree(4)
    model = Model(mechanism)
    q = model.random_configuration(rng, size=(2, 3))
    v, a = rng.normal(size=(2, 2, 3, model.nv))
    frame = model.frame_names[-1]
    load = rng.normal(size=6)
    for axes in ("world", "joint"):
        for wrenches in (None, {frame: load}):
            table = None
            if wrenches:
                table = np.zeros((len(mechanism.frames), 6))
                table[mechanism.frame_index[frame]] = load
            answer = model.reactions(q, v, a, wrenches=wrenches, axes=axes)
            assert list(answer) == list(reaction_names(mechanism))
            expected = network.reactions(mechanism, q[1, 2], v[1, 2], a[1, 2], table, axes=axes)
            got = np.array([answer[name][1, 2] for name in answer])
            np.testing.assert_allclose(got, expected, atol=1e-11 * scale(expected))
            assert answer[next(iter(answer))].shape == (2, 3, 6)


def test_model_reactions_refuse_other_axes_and_unknown_frames():
    mechanism, q, v, a, _ = tree(1)
    model = Model(mechanism)
    with pytest.raises(InputError, match="expected 'world' or 'joint'"):
        model.reactions(q, v, a, axes="body")
    with pytest.raises(InputError, match="no frame 'nowhere'"):
        model.reactions(q, v, a, wrenches={"nowhere": np.zeros(6)})


def test_chain_of_massless_links_is_refused_in_words():
    from polybody.description.records import Body, Description, Joint, frozen_array

    bodies = (Body("ring"), Body("rod", 1.0, frozen_array((0.3, 0, 0)), frozen_array(np.diag([0.0, 0.1, 0.1]))))
    joints = (Joint("outer", "revolute", "world", "ring"), Joint("inner", "revolute", "ring", "rod"))
    mechanism = mechanism_from(Description("twice", bodies=bodies, joints=joints))
    with pytest.raises(PolybodyError, match="mass matrix is singular"):
        network.forward_dynamics(mechanism, np.zeros(2), np.zeros(2), np.ones(2))


def test_massless_tip_is_named_by_forward_dynamics():
    from polybody.description.records import Body, Description, Joint

    description = Description("bare", bodies=(Body("tip"),), joints=(Joint("wrist", "revolute", "world", "tip"),))
    mechanism = mechanism_from(description)
    with pytest.raises(PolybodyError, match="'wrist'"):
        network.forward_dynamics(mechanism, np.zeros(1), np.zeros(1), np.ones(1))
