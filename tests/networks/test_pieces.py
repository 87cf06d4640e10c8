"""Reduced sub-networks with anything inside and between them: the motion and energy of the expanded network."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polybody as pb
from polybody.description.records import FRICTION_DEFAULTS, Friction, Limits
from polybody.formulations.network.parts import MotorPart

Change = Callable[[pb.Network], None]


def leg(inside: Change) -> pb.Network:
    net = pb.Network("leg")
    net.body("upper", 1.2, (0.2, 0, 0), (0.001, 0.02, 0.02),
             ports={"pin": (0, 0, 0), "end": (0.4, 0, 0), "eye": (0.1, 0.05, 0), "side": (0.2, 0.3, 0)})
    net.body("lower", 0.8, (0.1, 0, 0), (0.001, 0.01, 0.01),
             ports={"pin": (0, 0, 0), "tip": (0.3, 0, 0), "eye": (0.15, 0.05, 0), "mid": (0.2, 0, 0)})
    net.body("foot", 0.3, (0.05, 0, 0), (0.001, 0.002, 0.002),
             ports={"pin": (0, 0, 0), "eye": (0.1, 0.02, 0), "out": (0.2, 0, 0), "toe": (0.2, 0, 0.01)})
    net.joint("bend", "revolute", "upper.end", "lower.pin")
    net.joint("ankle", "revolute", "lower.mid", "foot.pin", stiffness=3.0)
    inside(net)
    return net


def walker(inside: Change, between: Change, reduced: bool, entry: str = "universal", **laws: object) -> pb.Network:
    """Two legs on each other, the first on the ground."""
    net = pb.Network("walker", gravity=(0.3, -9.81, 0.4))
    net.ground(pin=(0.1, 0.2, 0), far=(1.0, 0.3, 0.1))
    for name in "ab":
        net.use(name, leg(inside), reduced=reduced)
    net.joint("first", "revolute", "world.pin", "a.upper.pin", axis=(0, 0.2, 1), armature=0.01, **laws)  # type: ignore[arg-type]
    net.joint("second", entry, "b.upper.pin", "a.lower.tip", damping=0.2, stiffness=1.0)
    between(net)
    return net


def nothing(net: pb.Network) -> None: ...


def sprung(net: pb.Network) -> None:
    net.spring("S", "upper.eye", "lower.eye", 30.0, 0.2, 0.5)
    net.motor("M", "bend", torque_constant=0.05, resistance=1.0, rotor_inertia=1e-4, damping=1e-4, gear=10)


def geared(net: pb.Network) -> None:
    net.gear("G", "ankle", "bend", -2.0, 0.1)


def closed(net: pb.Network) -> None:
    """A four-bar whose last joint is elastic: five rows, of which three hold."""
    net.body("coupler", 0.4, (0.1, 0, 0), (0.001, 0.003, 0.003), ports={"p": (0, 0, 0), "q": (0.35, 0, 0)})
    net.joint("turn", "revolute", "upper.side", "coupler.p", damping=0.02)
    net.joint("close", "revolute", "coupler.q", "foot.out", damping=0.03, stiffness=0.5)


def tied(net: pb.Network) -> None:
    net.relation("R", "ankle - sin(bend)")


def struts(net: pb.Network) -> None:
    net.spring("S", "a.upper.eye", "b.lower.tip", 20.0, 0.3, 0.4)
    net.spring("Z", "world.far", "b.foot.eye", 5.0)
    net.motor("M", "first", torque_constant=0.05, resistance=1.0, rotor_inertia=1e-3, damping=1e-2, gear=10)


def entry_follows(net: pb.Network) -> None:
    net.gear("G", "first", "b.bend", 0.5, 0.1)
    net.gear("H", "b.ankle", "a.ankle", -1.5)


def leader_is_an_entry(net: pb.Network) -> None:
    net.gear("G", "b.bend", "first", 0.5, 0.1)


def bound(net: pb.Network) -> None:
    net.rod("rod", "world.far", "b.foot.toe", 0.9)
    net.relation("R", "q['b.bend'][0] - q['a.bend'][0] - 0.2*sin(first)")


def pinned(net: pb.Network) -> None:
    net.joint("last", "spherical", "world.far", "b.foot.toe")


@functools.cache
def plain() -> tuple[tuple[str, ...], np.ndarray]:
    """(states, A) of the legs with nothing added."""
    found = pb.linearize(walker(nothing, nothing, True))
    return tuple(found.states), found.A


CASES = [(sprung, nothing), (geared, nothing), (nothing, struts), (nothing, entry_follows),
         (nothing, leader_is_an_entry), (geared, struts), (closed, nothing), (tied, nothing), (nothing, bound),
         (nothing, pinned)]  # fmt: skip


@pytest.mark.parametrize(("inside", "between"), CASES, ids=lambda change: change.__name__)
def test_what_is_inside_and_between_acts_as_in_the_expanded_network(inside: Change, between: Change) -> None:
    expanded, made = (walker(inside, between, x) for x in (False, True))
    runs = [pb.simulate(net, 0.1) for net in (expanded, made)]
    for name, value in runs[0].final.items():
        assert runs[1].final[name] == pytest.approx(value, rel=1e-7, abs=1e-8), name
    assert runs[1].audit.energy_error_relative < 1e-10
    theirs, mine = (pb.linearize(net) for net in (expanded, made))
    assert mine.states == theirs.states
    assert_allclose(mine.A, theirs.A, rtol=1e-10, atol=1e-8)
    states, A = plain()
    assert mine.states != list(states) or np.abs(A - mine.A).max() > 1e-3  # what was added matters


def test_an_entry_has_compliant_stops_and_elasticity_in_several_directions() -> None:
    stops = Limits(*(np.array([x]) for x in (-0.1, 0.1, np.inf, np.inf)), stiffness=np.array([50.0]),
                   damping=np.array([1.0]))
    start = {"first.q": 0.2, "second_0.w": 1.0}
    runs = [pb.simulate(walker(nothing, nothing, x, "spherical", limits=stops), 0.1, start) for x in (False, True)]
    for name, value in runs[0].final.items():
        assert runs[1].final[name] == pytest.approx(value, rel=1e-7, abs=1e-8), name


@pytest.mark.parametrize("reduced", [False, True])
def test_bodies_outside_that_are_joined_through_a_sub_network_and_to_each_other(reduced: bool) -> None:
    """The last joint closes a circuit through a sub-network, though both its bodies are outside of all."""
    net = pb.Network("frame", gravity=(0, -9.81, 0))
    net.ground(pin=(0, 0, 0))
    net.use("a", leg(nothing), reduced=reduced)
    for name in "xy":
        net.body(name, 0.4, (0.1, 0, 0), (0.001, 0.003, 0.003), ports={"p": (0, 0, 0), "q": (0.25, 0, 0)})
    net.joint("left", "revolute", "a.upper.side", "x.p")
    net.joint("right", "revolute", "a.lower.eye", "y.p")
    net.joint("top", "spherical", "x.q", "y.q")
    net.joint("base", "revolute", "world.pin", "a.upper.pin")
    run = pb.simulate(net, 0.1)
    known = pb.simulate(net.model(), 0.1, run.configuration(net.name)[0])
    assert_allclose(run.configuration(net.name)[-1], known.q[-1], atol=1e-7)


def closing(kind: str, flipped: bool = False, **laws: Any) -> Change:
    def change(net: pb.Network) -> None:
        ends = ("b.foot.toe", "world.far") if flipped else ("world.far", "b.foot.toe")
        net.joint("last", kind, *ends, **laws)

    return change


def driven(net: pb.Network) -> None:
    closing("spherical")(net)
    net.motor("M", "last", torque_constant=0.05, resistance=1.0, rotor_inertia=1e-3, damping=1e-2, gear=10)


def led_from_outside(net: pb.Network) -> None:
    """A joint in the loop of b follows one of a: the loop is no longer b's own."""
    closing("cylindrical", damping=0.1, stiffness=2.0)(net)
    net.gear("G", "b.ankle", "a.ankle", 0.5)


def coupled(net: pb.Network) -> None:
    """Two motors that turn with a joint between sub-networks and one inside each: a transmission of the model."""
    closing("cylindrical")(net)
    for k, speeds in enumerate(({"first": [3.0], "b.bend": [1.0]}, {"first": [-1.0], "b.bend": [2.0]})):
        net.add_motor(MotorPart(f"M{k}", {joint: np.array(E) for joint, E in speeds.items()}, 0.1, 0.1, 1.0, 0.0,
                                0.02 + 0.01 * k, 0.3, None, None))


def sized(n: int, **given: float) -> Friction:
    return Friction(**{key: np.full(n, given.get(key, x or given["coulomb"])) for key, x in FRICTION_DEFAULTS.items()})


STOPS = Limits(*(np.full(2, x) for x in (-0.1, 0.1, np.inf, np.inf)), stiffness=np.full(2, 50.0),
               damping=np.full(2, 1.0))
LAWS = {
    "elastic ball": closing("spherical", damping=0.1, stiffness=2.0),
    "flipped ball": closing("spherical", True, damping=0.1, stiffness=2.0),
    "elastic cylinder": closing("cylindrical", damping=0.1, stiffness=2.0),
    "friction": closing("cylindrical", friction=sized(2, coulomb=0.3, viscous=0.1)),
    "armature": closing("universal", armature=0.1),
    "stops": closing("universal", limits=STOPS),
    "motor": driven,
    "led from outside": led_from_outside,
    "transmission": coupled,
}


@pytest.mark.parametrize("inside", [nothing, closed], ids=lambda change: change.__name__)
@pytest.mark.parametrize("law", LAWS)
def test_joints_with_laws_close_loops_between_sub_networks_as_in_the_expanded_one(inside: Change, law: str) -> None:
    """Accelerations against the expanded model, reactions against the tableau of all bodies: no code in common."""
    expanded, made = (walker(inside, LAWS[law], x, "spherical") for x in (False, True))
    model = expanded.model()
    rng = np.random.default_rng(1)
    q = model.assemble(model.integrate(model.neutral(), 0.2 * rng.normal(size=model.nv)))
    v = model.assemble_velocity(q, rng.normal(size=model.nv))
    tau = rng.normal(size=model.nv)
    a, wrenches = made.port_wrenches(q, v, tau)
    assert_allclose(a, model.forward_dynamics(q, v, tau), rtol=0, atol=1e-12 * np.abs(a).max())
    slices = {name: part for name, part in model.joint_slices().items() if name in expanded.parts.joints}
    known = expanded.solve({n: q[s] for n, (s, _) in slices.items()}, {n: v[s] for n, (_, s) in slices.items()},
                           forces={n: tau[s] for n, (_, s) in slices.items()})
    assert {"first", "second", "last"} <= set(wrenches)
    for name in ("first", "second", "last"):
        sure = ~np.asarray(known.indeterminate[name]) if known.redundant else np.ones(6, dtype=bool)
        scale = np.abs(known.reactions[name]).max()
        assert_allclose(wrenches[name][sure], known.reactions[name][sure], rtol=0, atol=1e-10 * scale)
    plain_one = closing("cylindrical" if law in ("friction", "elastic cylinder", "transmission") else "spherical")
    without = walker(inside, plain_one, False, "spherical").model()
    if without.nv == model.nv:  # what was added matters
        assert np.abs(without.forward_dynamics(q, v, tau) - a).max() > 1e-3


def test_wrenches_on_a_branch_where_pivots_of_general_position_vanish() -> None:
    """All in one plane: the plan of general position lost every digit of the moments there, without a word."""
    expanded, made = (walker(nothing, LAWS["elastic cylinder"], x) for x in (False, True))
    model = expanded.model()
    rng = np.random.default_rng(32)
    q = model.assemble(model.integrate(model.neutral(), rng.normal(size=model.nv)))
    v, tau = model.assemble_velocity(q, rng.normal(size=model.nv)), rng.normal(size=model.nv)
    assert abs(q[0]) < 1e-9
    assert np.linalg.svd(model.constraints.jacobian(q))[1].min() > 0.05  # not singular
    a, wrenches = made.port_wrenches(q, v, tau)
    assert_allclose(a, model.forward_dynamics(q, v, tau), rtol=0, atol=1e-11 * np.abs(a).max())
    slices = model.joint_slices()
    known = expanded.solve({n: q[s] for n, (s, _) in slices.items()}, {n: v[s] for n, (_, s) in slices.items()},
                           forces={n: tau[s] for n, (_, s) in slices.items()})
    for name in ("first", "second", "last"):
        assert_allclose(wrenches[name], known.reactions[name], rtol=0, atol=1e-9 * np.abs(known.reactions[name]).max())


def test_wrenches_at_a_singular_configuration_are_refused() -> None:
    """Two equal links folded on each other, their end on the ground's pin: the loop's rows lose their rank."""
    link = pb.Network("link")
    link.body("bar", 1.0, (0.2, 0, 0), (0.01, 0.02, 0.02), ports={"p": (0, 0, 0), "q": (0.5, 0, 0)})
    net = pb.Network("bars", gravity=(0, -9.81, 0))
    net.ground(a=(0, 0, 0), b=(0.5, 0, 0))
    for name in "xyz":
        net.use(name, link, reduced=True)
    net.joint("one", "revolute", "world.a", "x.bar.p")
    net.joint("two", "revolute", "x.bar.q", "y.bar.p")
    net.joint("three", "revolute", "y.bar.q", "z.bar.q")
    net.joint("four", "revolute", "world.b", "z.bar.p")
    model = net.model()
    q = np.array([{"one": 0.0, "two": np.pi, "three": 0.0}[name] for name in model.joint_names])
    assert np.abs(q - model.assemble(q)).max() < 1e-9
    with pytest.raises(pb.PolybodyError, match="singular"):
        net.port_wrenches(q, np.zeros(model.nv), np.zeros(model.nv))


def test_an_elastic_joint_that_closes_a_loop_between_sub_networks_moves_and_is_linearized_as_expanded() -> None:
    expanded, made = (walker(closed, LAWS["elastic ball"], x, "spherical") for x in (False, True))
    runs = [pb.simulate(net, 0.02) for net in (expanded, made)]
    for name, value in runs[0].final.items():
        assert runs[1].final[name] == pytest.approx(value, rel=1e-7, abs=1e-8), name
    assert runs[1].audit.energy_error_relative < 1e-10
    theirs, mine = (pb.linearize(net) for net in (expanded, made))
    assert_allclose(mine.A, theirs.A, rtol=1e-9, atol=1e-8)


def test_a_joint_that_a_gear_names_is_no_joint_that_closes_a_loop() -> None:
    """The last joint of a four-bar leads another: the loop is cut elsewhere."""
    net = pb.Network("bars", gravity=(0, -9.81, 0))
    net.ground(a=(0, 0, 0), b=(1, 0, 0), c=(2, 0, 0))
    for name in "xyzw":
        net.body(name, 1.0, (0.2, 0, 0), (0.01, 0.02, 0.02), ports={"p": (0, 0, 0), "q": (0.8, 0, 0)})
    net.joint("one", "revolute", "world.a", "x.p")
    net.joint("two", "revolute", "x.q", "y.p")
    net.joint("three", "revolute", "y.q", "z.q")
    net.joint("four", "revolute", "world.b", "z.p")
    net.joint("five", "revolute", "world.c", "w.p")
    net.gear("G", "five", "four", 2.0)
    model = net.model()
    assert "four" in model.joint_names
    q = model.assemble(model.neutral() + 0.3)
    v = model.assemble_velocity(q, np.ones(model.nv))
    slices = {name: part for name, part in model.joint_slices().items()}
    known = net.solve({n: q[s] for n, (s, _) in slices.items()}, {n: v[s] for n, (_, s) in slices.items()})
    a = model.forward_dynamics(q, v, np.zeros(model.nv))
    for name, (_, own) in slices.items():
        assert_allclose(a[own], known.accelerations[name], rtol=1e-9)
    assert_allclose(known.accelerations["five"], 2 * known.accelerations["four"], rtol=1e-9)


def test_a_loop_inside_may_be_closed_by_a_joint_with_a_law_and_coordinates_of_its_own() -> None:
    """A damped ball joint that closes a loop has no record as a force on the loop: the model keeps its coordinates."""
    def ball(net: pb.Network) -> None:
        net.body("coupler", 0.4, (0.1, 0, 0), (0.001, 0.003, 0.003), ports={"p": (0, 0, 0), "q": (0.35, 0, 0)})
        net.joint("turn", "revolute", "upper.side", "coupler.p", damping=0.02)
        net.joint("close", "spherical", "coupler.q", "foot.out", damping=0.03)

    rates = []
    for reduced in (False, True):
        net = pb.Network("one", gravity=(0.3, -9.81, 0.4))
        net.ground(pin=(0.1, 0.2, 0))
        net.use("a", leg(ball), reduced=reduced)
        net.joint("first", "revolute", "world.pin", "a.upper.pin", axis=(0, 0.2, 1))
        rates.append(pb.linearize(net).A)
    assert_allclose(rates[1], rates[0], rtol=1e-10, atol=1e-8)


def test_a_sub_network_whose_bodies_are_not_connected_inside_is_several_pieces() -> None:
    pair = pb.Network("pair")
    for name in "xy":
        pair.body(name, 1.0, (0.1, 0, 0), (0.01, 0.01, 0.01), ports={"p": (0, 0, 0), "q": (0.2, 0, 0)})
    pair.spring("S", "x.q", "y.q", 40.0, 0.3)
    runs = []
    for reduced in (False, True):
        net = pb.Network("hung", gravity=(0, -9.81, 0))
        net.ground(a=(0, 0, 0), b=(1, 0, 0))
        net.use("s", pair, reduced=reduced)
        net.joint("left", "revolute", "world.a", "s.x.p")
        net.joint("right", "revolute", "world.b", "s.y.p")
        runs.append(pb.simulate(net, 0.1).final)
    assert abs(runs[0]["right.q"]) > 1e-3
    for name, value in runs[0].items():
        assert runs[1][name] == pytest.approx(value, rel=1e-7, abs=1e-8), name
