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


def chain(reduced: tuple[bool, bool], *, flip: bool = False) -> pb.Network:
    """Two links on each other and a plate on the second, the first on the ground."""
    net = pb.Network("chain", gravity=(0.3, -9.81, 0.4))
    net.ground(pin=(0.1, 0.2, 0))
    net.use("a", link(), reduced=reduced[0])
    net.use("b", link(), reduced=reduced[1])
    net.body("plate", 0.5, (0, 0.05, 0.02), (0.002, 0.003, 0.004), ports={"hole": (0.02, 0.03, 0)})
    net.joint("first", "revolute", "world.pin", "a.upper.pin", axis=(0, 0.2, 1), armature=0.01)
    ends = ("b.upper.pin", "a.lower.tip") if flip else ("a.lower.tip", "b.upper.pin")
    net.joint("second", "universal", *ends, damping=0.2, stiffness=1.0, rest=(0.1, 0))
    net.joint("third", "spherical", "b.lower.tip", "plate.hole", damping=0.05)
    return net


@pytest.mark.parametrize("reduced", [(True, True), (False, True), (True, False)])
@pytest.mark.parametrize("flip", [False, True])
def test_sub_networks_as_moving_multiports_move_as_expanded_ones(reduced: tuple[bool, bool], flip: bool) -> None:
    start = {"a.bend.q": 0.3, "first.q": 0.2, "second.q0": 0.4, "b.bend.w": 1.0, "third_1.w": 2.0}
    expanded, made = (pb.simulate(chain(x, flip=flip), 0.2, start) for x in ((False, False), reduced))
    for name, value in expanded.final.items():
        assert made.final[name] == pytest.approx(value, rel=1e-7, abs=1e-8), name
    assert made.audit.energy_error_relative < 1e-10  # counted by the expanded model


def test_moving_multiports_are_linearized_as_expanded_ones() -> None:
    at = {"a.bend.q": 0.3, "second.q0": 0.4}
    mine, theirs = (pb.linearize(chain((x, x)), at) for x in (True, False))
    assert mine.states == theirs.states
    assert_allclose(mine.A, theirs.A, atol=1e-8)


def test_the_closed_form_of_a_port_is_the_multiport_evaluated() -> None:
    net = pb.Network("pendulum", gravity=(0, -9.81, 0))
    net.ground(pin=(0, 0, 0))
    net.body("rod", 1.5, (0.2, 0, 0), (0.001, 0.02, 0.02), ports={"pin": (0, 0, 0), "tip": (0.4, 0, 0)})
    net.joint("turn", "revolute", "world.pin", "rod.pin")
    text = net.port_equations(["rod.tip"])
    scope = {"sin": np.sin, "cos": np.cos}
    q, v = 0.7, -0.4
    values = {}
    for line in text.splitlines():
        left, found, right = line.strip().partition(" = ")
        if found and not left.startswith("x"):
            right = right.replace("turn.q", f"({q})").replace("turn.v", f"({v})")
            values[left] = scope[left] = eval(right, {}, scope)  # the test's own text
    made = net.multiport(["rod.tip"], {"turn": q}, {"turn": v})
    names = [f"rod.tip.{axis}" for axis in ("vx", "vy", "vz", "wx", "wy", "wz")]
    A = np.array([[values.get(f"A({r}, {c})", values.get(f"A({c}, {r})", 0.0)) for c in names] for r in names])
    assert_allclose(A, made.A, atol=1e-12)
    assert_allclose([values.get(f"b({r})", 0.0) for r in names], made.b, atol=1e-12)
    assert "\\section*{A, symmetric}" in net.port_equations(["rod.tip"], "latex")
    assert "<math>" in net.port_equations(["rod.tip"], "html")
