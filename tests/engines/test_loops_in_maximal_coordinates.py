"""Loops against Newton, Euler and constraint rows in maximal coordinates, which share nothing with the product.

Where constraints are redundant single loads are not determined by the motion. What is determined is found from the
null space N of the maximal Jᵀ: a part u of a joint's wrench L λ is unique where uᵀ L N = 0, and those parts must agree;
the rest of our loads must balance every body, and be least.
"""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from loop_states import massive, states
from machines import SHIPPED
from maximal import Maximal
from polybody.mechanism.columns import actuated

FOUR = ("four-bar", "five-bar", "3-rrr", "stewart")


def named(model, q=None, v=None):
    """Arrays by joint."""
    return {name: (q[a] if q is not None else v[b]) for name, (a, b) in model.joint_slices().items()}


def placed(model, q, v):
    machine = Maximal(model.description)
    machine.place(named(model, q=q), named(model, v=v))
    return machine


def stacked(model, parts):
    return np.concatenate([parts[name] for name in model.joint_slices()])


def close(got, wanted, size=None):
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9 * (np.abs(wanted).max() if size is None else size))


def unmoving_loads(machine):
    """N, columns λ with Jᵀ λ = 0, and where each joint's rows are."""
    J, _, parts = machine.constraints()
    U, s, _ = np.linalg.svd(J)
    rank = int(np.sum(s > 1e-9 * s[0]))
    return U[:, rank:], parts


def determined(L, N):
    """Orthonormal rows u with uᵀ L N = 0."""
    U, s, _ = np.linalg.svd(L @ N) if N.shape[1] else (np.eye(6), np.zeros(0), None)
    return U[:, int(np.sum(s > 1e-9)) :].T


def in_order(model, machine, driven, forces):
    """Forces of the driven coordinates, from the machine's order of joints to the model's."""
    parts = np.split(forces, np.cumsum([len(driven[pair.name]) for pair in machine.tree]))
    by_name = {pair.name: part for pair, part in zip(machine.tree, parts[:-1], strict=True)}
    return np.concatenate([by_name[joint.name] for joint in model.mechanism.joints])


def at_drives(model, tau):
    driven = np.zeros(model.nv, dtype=bool)
    driven[actuated(model.mechanism)] = True
    return np.where(driven, tau, 0.0)


@pytest.mark.parametrize("name", SHIPPED)
def test_accelerations_equal_newtons_and_eulers_on_random_consistent_states_by_every_route(name):
    model = pb.load(name)
    q, v, tau = states(model, 12, 0.05 if name == "two-fingered-hand" else 0.15)
    a = model.forward_dynamics(q, v, tau)
    wanted = np.empty(a.shape)
    for k in range(len(q)):
        machine = placed(model, q[k], v[k])
        wanted[k] = stacked(model, machine.joint_accelerations(machine.forward(named(model, v=tau[k]))[0]))
        close(a[k], wanted[k])
    for route in ("multipliers", "minimal"):
        close(model.constraints.solution(q, v, tau, route=route).a, wanted)
    close(model.forward_dynamics(q[:2], v[:2], tau[:2], formulation="network"), wanted[:2])


@pytest.mark.parametrize("make", [pb.load, massive])
@pytest.mark.parametrize("name", FOUR)
def test_closure_loads_equal_the_cut_joints_multipliers_where_they_are_unique_and_are_least_elsewhere(name, make):
    model = make(name)
    q, v, tau = states(model, 10)
    loads = model.constraints.loads(q, v, tau)
    by_minimal = model.constraints.loads(q, v, tau, route="minimal")
    for k in range(len(q)):
        machine = placed(model, q[k], v[k])
        _, multipliers = machine.forward(named(model, v=tau[k]))
        N, parts = unmoving_loads(machine)
        size = max(np.abs(loads[pair.name][k]).max() for pair in machine.cut)
        free = []
        for pair in machine.cut:
            L, at = machine.wrench_map(pair), parts[pair.name]
            u = determined(L, N[at])
            # a hinge of a planar machine: its force in the plane, and no moment about its axis; a ball: everything
            assert len(u) == (6 if name == "stewart" else 3)
            close(u @ loads[pair.name][k], u @ (L @ multipliers[at]), size)
            close(by_minimal[pair.name][k], loads[pair.name][k], size)
            free.append(L @ N[at])
        # least: no sum of loads that move nothing can shorten them
        ours = np.concatenate([loads[pair.name][k] for pair in machine.cut])
        close(np.concatenate(free).T @ ours, np.zeros(N.shape[1]), size)


@pytest.mark.parametrize("name", FOUR)
def test_actuator_efforts_equal_those_of_the_free_bodies(name):
    model = pb.load(name)
    q, v, tau = states(model, 10)
    a = model.forward_dynamics(q, v, tau)  # whatever all joints do, a motion that the drives can give too
    efforts = model.inverse_dynamics(q, v, a)
    by_ranks = model.inverse_dynamics(q, v, a, formulation="influence")
    for k in range(len(q)):
        machine = placed(model, q[k], v[k])
        acceleration, _ = machine.forward(named(model, v=tau[k]))
        driven = {j.name: np.flatnonzero(np.broadcast_to(j.active, j.nv)) for j in model.mechanism.joints}
        wanted, left = machine.efforts(acceleration, driven)
        assert left < 1e-9 * (1 + np.abs(wanted).max())
        ours = np.concatenate([efforts[k, joint.v][driven[joint.name]] for joint in model.mechanism.joints])
        close(ours, in_order(model, machine, driven, wanted))
        close(by_ranks[k], efforts[k], np.abs(wanted).max())


@pytest.mark.parametrize("name", FOUR)
def test_reactions_of_all_joints_balance_every_body_and_equal_the_multipliers_where_those_are_unique(name):
    model = pb.load(name)
    q, v, tau = states(model, 5)
    tau = at_drives(model, tau)
    a = model.forward_dynamics(q, v, tau)
    reactions = model.reactions(q, v, a)
    for k in range(len(q)):
        machine = placed(model, q[k], v[k])
        acceleration, multipliers = machine.forward(named(model, v=tau[k]))
        rates = machine.joint_accelerations(acceleration)
        N, parts = unmoving_loads(machine)
        size = max(np.abs(w[k]).max() for w in reactions.values())
        close(machine.balance(acceleration, {n: w[k] for n, w in reactions.items()}), 0.0, size)
        forces = named(model, v=tau[k])
        for pair in machine.pairs:
            L, at = machine.wrench_map(pair), parts[pair.name]
            wanted = L @ multipliers[at]
            if pair.name in forces:
                wanted = wanted + machine.driving_wrench(pair, forces[pair.name] - pair.armature * rates[pair.name])
            u = determined(L, N[at])
            close(u @ reactions[pair.name][k], u @ wanted, size)


@pytest.mark.parametrize(("name", "links"), [("five-bar", ("link2", "link4")), ("stewart", ("platform", "piston3"))])
def test_external_wrenches_over_a_batch_move_and_load_loops_as_they_do_free_bodies(name, links):
    model = pb.load(name)
    q, v, tau = states(model, 6)
    rng = np.random.default_rng(8)
    shape = (6,) if name == "stewart" else (1,)
    wrenches = {links[0]: rng.normal(size=(*shape, 6)), links[1]: rng.normal(size=6)}
    if name == "five-bar":  # what stays in its plane
        wrenches = {link: w * [0, 0, 1, 1, 1, 0] for link, w in wrenches.items()}
    a = model.forward_dynamics(q, v, tau, wrenches=wrenches)
    loads = model.constraints.loads(q, v, tau, wrenches=wrenches)
    close(model.constraints.solution(q, v, tau, wrenches=wrenches, route="minimal").a, a)
    for k in range(len(q)):
        machine = placed(model, q[k], v[k])
        here = {link: np.broadcast_to(w, (6, 6))[k] for link, w in wrenches.items()}
        wanted, multipliers = machine.forward(named(model, v=tau[k]), here)
        close(a[k], stacked(model, machine.joint_accelerations(wanted)))
        for pair in machine.cut:
            L, at = machine.wrench_map(pair), machine.constraints()[2][pair.name]
            # the reference solves redundant rows by least squares: its own rounding is some 2e-9 of the loads
            close(loads[pair.name][k], L @ multipliers[at], 10 * max(np.abs(load).max() for load in loads.values()))
