"""Every model as a network gives the compiled engine's answers: loops, gears, rods, guides and relations included."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from closed_states import closed_state
from mechanisms import random_axis, random_body
from polybody.model.load import shipped_models

SHIPPED = sorted(shipped_models())
KINDS = ("rod", "line", "plane", "relation", "follower", "loop", "everything")


def agreed(model, q, v, tau, size=1e-8):
    wanted = model.forward_dynamics(q, v, tau)
    answer = pb.network(model).solve(
        {j.name: q[j.q] for j in model.mechanism.independent_joints},
        {j.name: v[j.v] for j in model.mechanism.independent_joints},
        forces={j.name: tau[j.v] for j in model.mechanism.independent_joints},
    )
    found = np.concatenate([np.atleast_1d(answer.accelerations[j.name]) for j in model.mechanism.independent_joints])
    np.testing.assert_allclose(found, wanted, rtol=size, atol=size * (1 + np.abs(wanted).max()))
    return answer


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_model_as_a_network_accelerates_as_the_compiled_engine_says(name):
    model, q, v = closed_state(name, 2)
    tau = np.random.default_rng(1).normal(size=model.nv)
    agreed(model, q, v, tau)


def held(kind: str, seed: int):
    """A branched tree of six bodies with constraints of one kind, or of all, that hold at its neutral configuration."""
    rng = np.random.default_rng(seed)
    build = pb.Builder(f"held by {kind}", gravity=rng.normal(size=3))
    joints = ("revolute", "spherical", "revolute", "prismatic", "revolute", "revolute")
    parents = ("world", "b0", "b1", "world", "b3", "b4")
    for k, (joint, parent) in enumerate(zip(joints, parents, strict=True)):
        body = random_body(rng, f"b{k}")
        build.body(body.name, body.mass, body.com, body.inertia)
        place = np.eye(4)
        place[:3, 3] = rng.uniform(-0.5, 0.5, size=3)
        build.joint(f"j{k}", joint, parent, body.name, place, axis=random_axis(rng))
    free = build.model()
    q0 = free.neutral()
    points = {"a": rng.uniform(-0.3, 0.3, size=3), "b": rng.uniform(-0.3, 0.3, size=3)}
    ends = [(free.pose(q0, body) @ [*point, 1])[:3] for body, point in (("b2", points["a"]), ("b5", points["b"]))]
    wanted = {kind} if kind != "everything" else set(KINDS)
    if "rod" in wanted:
        build.rod("rod", "b2", points["a"], "b5", points["b"], float(np.linalg.norm(ends[1] - ends[0])))
    apart = (np.linalg.inv(free.pose(q0, "b1")) @ [*ends[1], 1])[:3]  # where b's point is, in b1
    if "plane" in wanted:
        build.point_in_plane("plane", "b1", apart, random_axis(rng), "b5", points["b"])
    if "line" in wanted and kind == "line":
        build.point_on_line("line", "b1", apart, random_axis(rng), "b5", points["b"])
    if "relation" in wanted:
        build.relation("cam", 'j2 - 0.4*sin(j4) - 0.3*j4**2 + 0.5*q["j1"][0]')
    if "follower" in wanted:
        build.couple("j5", "j0", -1.7, 0.0)
    if kind == "loop":
        there = np.eye(4)
        there[:3, 3] = points["b"]
        here = np.linalg.inv(free.pose(q0, "b2")) @ free.pose(q0, "b5") @ there
        build.loop("pin", "cylindrical", "b2", "b5", here, there, axis=random_axis(rng))
    model = build.model()
    q = model.assemble(model.integrate(model.neutral(), 0.1 * rng.normal(size=model.nv)))
    return model, q, model.assemble_velocity(q, rng.normal(size=model.nv)), rng.normal(size=model.nv)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_random_models_with_every_kind_of_constraint_accelerate_as_the_compiled_engine_says(kind, seed):
    model, q, v, tau = held(kind, seed)
    answer = agreed(model, q, v, tau)
    by_name = model.forward_dynamics(q, v, tau, formulation="network")
    np.testing.assert_allclose(by_name, model.forward_dynamics(q, v, tau), rtol=1e-8, atol=1e-8)
    if answer.loads and not answer.redundant:
        loads = model.constraints.loads(q, v, tau)
        for name, load in answer.loads.items():
            np.testing.assert_allclose(load, loads[name], rtol=1e-7, atol=1e-8)


def test_inverse_problem_with_a_relation_gives_back_the_force_of_the_forward_problem():
    model, q, v, tau = held("relation", 3)
    states = [{j.name: x[getattr(j, s)] for j in model.mechanism.joints} for x, s in ((q, "q"), (v, "v"), (tau, "v"))]
    net = pb.network(model)
    forward = net.solve(*states[:2], forces=states[2])
    back = net.solve(*states[:2], forces={k: x for k, x in states[2].items() if k != "j4"},
                     accelerations={"j4": forward.accelerations["j4"]})
    np.testing.assert_allclose(back.forces["j4"], states[2]["j4"], rtol=1e-9)
    np.testing.assert_allclose(back.accelerations["j1"], forward.accelerations["j1"], rtol=1e-9, atol=1e-10)


def test_states_that_break_a_rod_are_refused_and_close_mends_them():
    model, q, v, _ = held("rod", 4)
    net = pb.network(model)
    state = {j.name: q[j.q] for j in model.mechanism.joints}
    off = {**state, "j3": state["j3"] + 0.05}
    with pytest.raises(pb.InputError, match="off what 'rod' holds"):
        net.solve(off, {j.name: np.zeros(j.nv) for j in model.mechanism.joints})
    closed = net.close(off, hold=["j0"])
    net.solve(closed, {j.name: np.zeros(j.nv) for j in model.mechanism.joints})
    speeds = net.velocities(state, {j.name: v[j.v] for j in model.mechanism.joints if j.name != "j3"})
    np.testing.assert_allclose(speeds["j3"], v[model.mechanism.joints[3].v], rtol=1e-8)
