"""Sub-networks of bodies and of models, used several times."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polybody as pb


def link() -> pb.Network:
    """A body with a spring inside: an upper and a lower half."""
    net = pb.Network("link")
    net.body("upper", 1.2, (0.2, 0, 0), (0.001, 0.02, 0.02), ports={"pin": (0, 0, 0), "end": (0.4, 0, 0)})
    net.body("lower", 0.8, (0.1, 0, 0), (0.001, 0.01, 0.01), ports={"pin": (0, 0, 0), "tip": (0.3, 0, 0)})
    net.joint("bend", "revolute", "upper.end", "lower.pin", stiffness=3.0, damping=0.1)
    return net


def test_a_chain_of_copied_links_moves_as_the_chain_built_by_hand() -> None:
    chain = pb.Network("chain", gravity=(0, -9.81, 0))
    chain.ground(pin=(0, 0, 0))
    chain.use("a", link())
    chain.use("b", link())
    chain.joint("first", "revolute", "world.pin", "a.upper.pin")
    chain.joint("second", "revolute", "a.lower.tip", "b.upper.pin")
    build = pb.Builder("chain", gravity=(0, -9.81, 0))
    parent, place = "world", 0.0
    for k in "ab":
        build.body(f"u{k}", 1.2, (0.2, 0, 0), (0.001, 0.02, 0.02))
        build.body(f"l{k}", 0.8, (0.1, 0, 0), (0.001, 0.01, 0.01))
        at = np.eye(4)
        at[0, 3] = place
        build.joint(f"{k}1", "revolute", parent, f"u{k}", at)
        at = np.eye(4)
        at[0, 3] = 0.4
        build.joint(f"{k}2", "revolute", f"u{k}", f"l{k}", at, stiffness=3.0, damping=0.1)
        parent, place = f"l{k}", 0.3
    model = build.model()
    made = chain.model()
    assert set(made.joint_names) == {"first", "second", "a.bend", "b.bend"}
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 4))
    order = [made.joint_names.index(name) for name in ("first", "a.bend", "second", "b.bend")]
    full = np.empty((3, 4))
    full[:, order] = q, v, tau
    assert_allclose(made.forward_dynamics(*full)[order], model.forward_dynamics(q, v, tau), rtol=1e-10)
    run = pb.simulate(chain, 0.3)
    assert_allclose(run.final["b.bend.q"], pb.simulate(model, 0.3).q[-1][3], atol=1e-7)


def test_two_robots_with_their_drives_are_one_sub_network_used_twice() -> None:
    cell = pb.Network("cell")
    arm = pb.load("two-link")
    cell.mechanism("arm", arm)
    cell.part("M", "dc_motor", winding="p", shaft=f"arm.{arm.joint_names[0]}", torque_constant=0.5, resistance=2.0)
    cell.terminal("supply", "p")
    both = pb.Network("both")
    both.part("V", "voltage_source", "plus", voltage=12.0)
    both.use("left", cell, supply="plus")
    both.use("right", cell, supply="plus")
    run = pb.simulate(both, 0.1)
    single = pb.Network("single")
    single.part("V", "voltage_source", "plus", voltage=12.0)
    single.use("one", cell, supply="plus")
    alone = pb.simulate(single, 0.1)
    assert_allclose(run.configuration("left.arm"), alone.configuration("one.arm"), atol=1e-9)
    assert_allclose(run.final["V.i"], 2 * alone.final["V.i"], rtol=1e-7)


def test_a_copied_relation_is_between_the_copied_joints() -> None:
    net = link()
    net.ground(pin=(0, 0, 0))
    net.joint("base", "revolute", "world.pin", "upper.pin")
    net.relation("tie", "bend - 2*sin(base)")
    outer = pb.Network("outer", gravity=(0, -9.81, 0))
    outer.use("a", net)
    net.gravity = outer.gravity
    start = {"base.q": 0.3, "bend.q": 2 * np.sin(0.3)}
    run = pb.simulate(outer, 0.2, {f"a.{name}": x for name, x in start.items()})
    assert_allclose(run.final["a.bend.q"], 2 * np.sin(run.final["a.base.q"]), atol=1e-9)
    assert_allclose(run.final["a.base.q"], pb.simulate(net, 0.2, start).final["base.q"], atol=1e-9)


def test_a_copied_multiport_is_the_multiport() -> None:
    inner, base = pb.Network("half"), link()
    base.ground(pin=(0, 0, 0))
    base.joint("base", "revolute", "world.pin", "upper.pin")
    inner.add(base.multiport(["lower.tip"], {"base": 0.3, "bend": 0.4}, {"base": 0.1, "bend": -0.2}))
    outer = pb.Network("outer")
    outer.use("a", inner)
    for net, port in ((inner, "link.lower.tip"), (outer, "a.link.lower.tip")):
        net.force("push", port)
    wrench = {"push": np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])}
    mine, theirs = (net.solve({}, {}, wrenches=wrench) for net in (outer, inner))
    assert np.abs(theirs.ports["link.lower.tip"]).max() > 1.0
    assert_allclose(mine.ports["a.link.lower.tip"], theirs.ports["link.lower.tip"], rtol=1e-12)
