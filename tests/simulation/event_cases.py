"""Mechanisms with loops, limits and dry friction, by load too, that stick, slip and hit their stops."""

from __future__ import annotations

from typing import Any

import numpy as np

import polybody as pb

Case = tuple[pb.Model, float, np.ndarray, "np.ndarray | None", dict[str, Any]]


def four_bar(**of: dict[str, Any]) -> pb.Model:
    build = pb.Builder("four-bar", gravity=(0, -9.81, 0))
    for name, mass, length in (("crank", 1.0, 0.5), ("coupler", 2.0, 1.2), ("rocker", 1.5, 0.9)):
        build.body(name, mass, (length / 2, 0, 0), (0, mass * length**2 / 12, mass * length**2 / 12))
    build.joint("a", "revolute", "world", "crank", **of.get("a", {}))
    build.joint("b", "revolute", "crank", "coupler", (0.5, 0, 0), **of.get("b", {}))
    build.joint("d", "revolute", "world", "rocker", (1.1, 0, 0), **of.get("d", {}))
    build.loop("c", "revolute", "coupler", "rocker", (1.2, 0, 0), (0.9, 0, 0))
    return build.model()


def five_bar(**of: dict[str, Any]) -> pb.Model:
    """Two motions."""
    build = pb.Builder("five-bar", gravity=(0, -9.81, 0))
    for name, mass, length in (("a1", 1.0, 0.5), ("a2", 1.0, 0.8), ("b1", 1.2, 0.5), ("b2", 0.8, 0.8)):
        build.body(name, mass, (length / 2, 0, 0), (0, mass * length**2 / 12, mass * length**2 / 12))
    build.joint("p", "revolute", "world", "a1", **of.get("p", {}))
    build.joint("q", "revolute", "a1", "a2", (0.5, 0, 0), **of.get("q", {}))
    build.joint("r", "revolute", "world", "b1", (0.6, 0, 0), **of.get("r", {}))
    build.joint("s", "revolute", "b1", "b2", (0.5, 0, 0), **of.get("s", {}))
    build.loop("c", "revolute", "a2", "b2", (0.8, 0, 0), (0.8, 0, 0))
    return build.model()


def pushed_four_bar(seconds: float = 2.5, **of: dict[str, Any]) -> Case:
    """The crank is pushed to and fro."""
    model = four_bar(**of)
    table = np.array([[0, 0, 0.0], [15, 0, 0], [-25, 0, 0], [20, 0, 0], [-20, 0, 0]])
    law = pb.controllers.Given(model, table, [0, 0.3, 0.8, 1.5, 2.0])
    q = model.assemble([0.7, -0.274, 1.141], hold=["a"])
    return model, seconds, q, None, {"controller": law, "restitution": 0.3}


def rubbing(coulomb: float, static: float, **more: Any) -> dict[str, Any]:
    return {"friction": {"coulomb": coulomb, "static": static, **more}}


def four_bar_at_stops() -> Case:
    model = four_bar(a={"limits": (0.2, 1.2)}, d={"limits": (0.9, 2.2)})
    return model, 3.0, model.assemble([0.7, -0.274, 1.141], hold=["a"]), None, {"restitution": 0.6}


def four_bar_that_sticks() -> Case:
    """Every joint rubs: what holds them is not unique."""
    return pushed_four_bar(a=rubbing(2.0, 2.5), b=rubbing(1.0, 1.2), d=rubbing(1.0, 1.2))


def four_bar_with_both() -> Case:
    return pushed_four_bar(a=rubbing(1.0, 1.5) | {"limits": (0.2, 1.2)}, d=rubbing(1.0, 1.2))


def four_bar_by_load() -> Case:
    a, d = {"friction": {"load": 0.02}, "limits": (0.2, 1.2)}, {"friction": {"coulomb": 0.5, "load": 0.02}}
    return pushed_four_bar(a=a, d=d)


def sampled_four_bar() -> Case:
    """Driven by a computer that holds its forces for 20 ms."""
    model, _, q, v, options = four_bar_with_both()
    law = pb.controllers.Sampled(pb.PD(model, q + np.array([2.0, 0, 0]), [30.0, 0, 0], 0.1), 0.02)
    return model, 1.5, q, v, options | {"controller": law}


def five_bar_at_stops() -> Case:
    model = five_bar(p={"limits": (1.8, 2.3)}, q={"limits": (-1.4, -1.0)}, s={"limits": (0.8, 1.2)})
    table = np.array([[0, 0, 0, 0], [6, 0, -3, 0], [-8, 0, 4.0, 0], [5, 0, 5, 0]])
    law = pb.controllers.Given(model, table, [0, 0.2, 0.5, 0.8])
    q = model.assemble([2.09152089, -1.20521338, 1.17176001, 1.13526421])
    return model, 0.8, q, None, {"controller": law, "restitution": 0.3}


def three_rrr() -> Case:
    """Three motions; one of the driven joints rubs, two have stops."""
    build, one = pb.Builder("3-RRR", gravity=(0, -9.81, 0)), (0, 0, 0)
    places = [2 * np.pi * k / 3 - np.pi / 2 for k in range(3)]
    build.body("hand", 0.8, one, (0.002, 0.002, 0.004))
    build.joint("hand", "planar", "world", "hand", active=False)
    for k, turn in enumerate(places):
        foot, ball = 0.5 * np.array([np.cos(turn), np.sin(turn), 0]), 0.1 * np.array([np.cos(turn), np.sin(turn), 0])
        middle = (foot + ball) / 2 + 0.15 * np.array([-np.sin(turn), np.cos(turn), 0])
        for name, start, end in ((f"base{k}", foot, middle), (f"middle{k}", middle, ball)):
            build.body(name, 0.3, tuple((end - start) / 2), (1e-4, 1e-4, 3e-3))
        more = {0: rubbing(0.05, 0.08) | {"limits": (-0.2, 0.25)}, 1: {"limits": (-0.3, 0.15)}}.get(k, {})
        build.joint(f"base{k}", "revolute", "world", f"base{k}", tuple(foot), **more)
        build.joint(f"middle{k}", "revolute", f"base{k}", f"middle{k}", tuple(middle - foot), active=False)
        build.loop(f"ball{k}", "revolute", "hand", f"middle{k}", tuple(ball), tuple(ball - middle))
    model = build.model()
    return model, 0.6, model.assemble(model.neutral()), None, {"restitution": 0.4}


def stewart() -> Case:
    """The platform falls until its legs are at their stops."""
    model = pb.load("stewart")
    q = model.assemble(model.neutral())
    return model, 0.5, q, model.assemble_velocity(q, 0.02 * np.arange(model.nv)), {"restitution": 0.3}


def arm(load: float) -> Case:
    """Three joints whose bearings stick, slip and hit a stop; friction by `load` too."""
    build = pb.Builder("arm", gravity=(0, -9.81, 0))
    for name in "abc":
        build.body(name, 1.0, com=(0.3, 0, 0), inertia=(0.01, 0.03, 0.03))
    curve = {"coulomb": 0.8, "static": 1.4, "stribeck": 0.2, "viscous": 0.1, "load": load}
    build.joint("one", "revolute", "world", "a", friction=curve)
    build.joint("two", "revolute", "a", "b", (0.6, 0, 0), friction={"coulomb": 0.6, "load": load}, limits=(-1.2, 0.5))
    build.joint("three", "revolute", "b", "c", (0.6, 0, 0), damping=0.05)
    return build.model(), 2.0, np.array([0.3, 0.2, -0.4]), np.array([0.0, 0.5, 0.0]), {}


def shaken() -> Case:
    """A slide that a velocity relation moves to and fro, a pendulum on it with stops and dry friction."""
    build = pb.Builder("shaken", gravity=(0, -9.81, 0))
    build.clock()
    build.body("cart", 1.0, inertia=(0.1, 0.1, 0.1))
    build.joint("slide", "prismatic", "world", "cart", axis=(1, 0, 0))
    build.body("bob", 0.7, com=(0, -0.5, 0), inertia=(0.02, 0.02, 0.02))
    build.joint("swing", "revolute", "cart", "bob", limits=(-0.3, 0.25), friction={"coulomb": 0.4, "static": 0.6})
    build.velocity_relation("shaker", {"slide": 1}, "2.0*cos(4*clock)")
    model = build.model()
    q = model.neutral()
    return model, 3.0, q, model.assemble_velocity(q, np.zeros(model.nv)), {"restitution": 0.5}


CASES = {
    "four-bar at stops": four_bar_at_stops, "four-bar that sticks": four_bar_that_sticks,
    "four-bar with both": four_bar_with_both, "five-bar at stops": five_bar_at_stops, "3-RRR": three_rrr,
    "Stewart": stewart, "shaken": shaken, "four-bar by load": four_bar_by_load, "arm by load": lambda: arm(0.02),
    "sampled four-bar": sampled_four_bar,
}  # fmt: skip
