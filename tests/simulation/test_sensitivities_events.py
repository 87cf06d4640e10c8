"""Sensitivities of whole runs against Richardson's differences of `pb.simulate`: methods, events, what acts.

Between events S is the derivative of the steps to rounding; across events to the order of the method.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sensitivity_cases import TIGHT, compared

import polybody as pb
from polybody.errors import InputError, PolybodyError


def arm(friction: tuple[Any, Any] = (0, 0), limits: Any = ((-0.6, 0.6), (-0.5, 0.5))) -> pb.Model:
    build = pb.Builder("arm", gravity=(0, -9.81, 0))
    build.body("a", 1.0, com=(0.25, 0, 0), inertia=(0.01, 0.02, 0.02))
    build.body("b", 0.7, com=(0.2, 0, 0), inertia=(0.005, 0.01, 0.01))
    build.joint("s", "revolute", "world", "a", limits=limits[0], damping=0.02, friction=friction[0])
    build.joint("e", "revolute", "a", "b", (0.5, 0, 0), limits=limits[1], damping=0.01, friction=friction[1])
    build.frame("tip", "b", (0.4, 0, 0))
    return build.model()


Q, V = np.array([0.3, 0.2]), np.zeros(2)
PARAMETERS = ("*.mass", "b.com.x", "e.origin.x", "gravity.y", "e.damping", "a.inertia.zz")


@pytest.mark.parametrize(
    ("method", "options", "tolerance"),
    [("rk4", {"dt": 5e-3}, 1e-7), ("semi-implicit", {"dt": 5e-3}, 1e-7), ("midpoint", {"dt": 5e-3}, 1e-5),
     ("dop853", TIGHT, 1e-6), ("radau", {"rtol": 1e-8, "atol": 1e-10}, 1e-5)],
)  # fmt: skip
def test_sensitivities_by_every_method_equal_differences_of_runs(method: str, options: Any, tolerance: float) -> None:
    variant = arm(limits=(None, None)).with_parameters("b.mass", "e.origin.x", "gravity.y")
    law = pb.PD(variant, np.array([0.5, 0.1]), 30.0, 3.0, gravity=True)
    compared(variant, law, Q, V, 0.05 if method == "radau" else 0.2, tolerance, method=method, **options)


@pytest.mark.parametrize("method", ["cvodes", "idas"])
def test_sensitivities_of_runs_by_multistep_methods_are_those_of_the_motion(method: str) -> None:
    variant = arm(limits=(None, None)).with_parameters("b.mass", "e.origin.x")
    wanted = pb.sensitivities(variant, q0=Q, v0=V, duration=0.1, sample=0.05, **TIGHT)
    found = pb.sensitivities(pb.simulate(variant, 0.1, Q, V, method=method, sample=0.05, rtol=1e-8, atol=1e-10))
    np.testing.assert_allclose(found.v_p, wanted.v_p, atol=1e-6 * np.abs(wanted.v_p).max())


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_sensitivities_across_impacts_equal_differences_of_runs(restitution: float) -> None:
    found = compared(arm().with_parameters(*PARAMETERS), None, Q, V, 0.35, 1e-5, restitution=restitution, **TIGHT)
    assert [event.names[0] for event in found.events if np.isfinite(event.t_p).all()] == [
        "e upper limit reached", "s lower limit reached"]  # fmt: skip


@pytest.mark.parametrize(("method", "order"), [("rk4", 4), ("midpoint", 2), ("semi-implicit", 1)])
def test_sensitivities_across_impacts_converge_with_the_order_of_the_method(method: str, order: int) -> None:
    variant = arm().with_parameters("*.mass")
    options = {"q0": Q, "v0": V, "duration": 0.35, "sample": 0.35, "restitution": 0.5}
    exact = pb.sensitivities(variant, **options, rtol=1e-12, atol=1e-14).q_p[-1]
    errors = [np.abs(pb.sensitivities(variant, **options, method=method, dt=dt).q_p[-1] - exact).max()
              for dt in (2e-3, 1e-3)]  # fmt: skip
    assert errors[1] < 1.5 * errors[0] / 2**order


def test_the_time_of_an_impact_is_differentiated() -> None:
    variant = arm().with_parameters("b.mass", "gravity.y")
    run = pb.simulate(variant, 0.2, Q, V, sample=0.1, **TIGHT)
    found, h, p = pb.sensitivities(run), 1e-4, variant.parameters.nominal
    for k in range(2):
        times = [pb.simulate(variant, 0.2, Q, V, sample=0.1, parameters=p + s * h * np.eye(2)[k], **TIGHT).happenings[0]
                 .time for s in (1, -1)]  # fmt: skip
        np.testing.assert_allclose(found.events[0].t_p[k], (times[0] - times[1]) / (2 * h), rtol=1e-5)


def test_sensitivities_of_joints_that_stick_and_slip_by_masses_and_by_friction_equal_differences_of_runs() -> None:
    variant = arm((1.0, {"coulomb": 0.5, "static": 0.7}), (None, (-1.2, 0.5))).with_parameters(
        "*.mass", "gravity.y", "s.friction.coulomb", "e.friction.static")  # fmt: skip
    found = compared(variant, None, np.array([-0.5, 0.2]), np.array([2.0, 3.0]), 0.6, 1e-3, **TIGHT)
    assert {"a joint comes to rest", "a joint begins to slide"} <= {name for e in found.events for name in e.names}


def test_sensitivities_across_events_of_a_user_equal_differences_of_runs() -> None:
    variant = arm(limits=(None, None)).with_parameters("*.mass", "e.origin.x")
    events = [pb.Event("kick", lambda t, q, v: q[0] - 0.1, action=lambda t, q, v: (q, v * np.array([1.0, 0.5]))),
              pb.Event("later", lambda t, q, v: t - 0.25, action=lambda t, q, v: (q, -v))]  # fmt: skip
    found = compared(variant, None, Q, V, 0.35, 1e-5, events=events, **TIGHT)
    assert [e.names for e in found.events] == [("kick",), ("later",)]
    np.testing.assert_allclose(found.events[1].t_p, 0, atol=1e-15)


def test_sensitivities_under_wrenches_and_voltages_equal_differences_of_runs() -> None:
    variant = arm(limits=(None, None)).with_parameters("b.mass", "tip.origin.x")
    wrench = {"tip": lambda t: np.array([0.0, 0.0, 0.1, 2.0, 3 * np.sin(9 * t), 0.0])}
    compared(variant, None, Q, V, 0.2, 1e-6, wrenches=wrench, **TIGHT)
    with pytest.raises(InputError, match="give the controller, wrenches"):
        pb.sensitivities(pb.simulate(variant, 0.5, Q, V, wrenches=wrench, sample=0.1))
    build = pb.Builder("driven", gravity=(0, -9.81, 0))
    build.body("a", 1.0, com=(0.25, 0, 0), inertia=(0.01, 0.02, 0.02))
    build.joint("s", "revolute", "world", "a")
    build.motor("s", 1.0, 0.01, 0.1, rotor_inertia=1e-3, damping=1e-2, gear=40, name="m")
    variant = build.model().with_parameters("m.*", "a.mass")
    for method, options in (("dop853", TIGHT), ("semi-implicit", {"dt": 1e-3})):
        compared(variant, None, np.zeros(1), np.zeros(1), 0.2, 1e-6, voltages=[5.0], method=method, **options)


def test_sensitivities_of_saturated_drives_equal_differences_of_runs() -> None:
    build = pb.Builder("weak", gravity=(0, -9.81, 0))
    build.body("a", 1.0, com=(0.25, 0, 0), inertia=(0.01, 0.02, 0.02))
    build.joint("s", "revolute", "world", "a", limits={"effort": 3.0, "velocity": 5.0})
    variant = build.model().with_parameters("a.mass", "a.com.x")
    law = pb.PD(variant, np.array([0.6]), 60.0, 3.0)
    compared(variant, law, np.zeros(1), np.zeros(1), 0.4, 1e-5, efforts="saturate", rtol=1e-10, atol=1e-12)


def test_sensitivities_across_impacts_and_sticking_of_loops_by_their_lengths_equal_differences_of_runs() -> None:
    build = pb.Builder("linkage", gravity=(0, -9.81, 0))
    lengths = {"crank": 0.2, "coupler": 0.5, "rocker": 0.5}
    for name, x in lengths.items():
        build.body(name, 1.0, com=(x / 2, 0, 0), inertia=(1e-4, x * x / 12, x * x / 12))
    turned = np.array([[0.0, -1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    build.joint("a", "revolute", "world", "crank", turned, limits=(-0.5, 0.02), friction=0.3)
    build.joint("b", "revolute", "crank", "coupler", (0.2, 0, 0))
    turned[0, 3] = 0.4
    build.joint("c", "revolute", "world", "rocker", turned)
    build.loop("d", "revolute", "coupler", "rocker", (0.5, 0, 0), (0.5, 0, 0))
    model = build.model()
    variant = model.with_parameters("coupler.mass", "c.origin.x", "a.friction.coulomb")
    q = model.assemble(np.array([0.0, -0.9, 0.0]))
    v = model.assemble_velocity(q, np.full(3, 2.0))
    found = compared(variant, None, q, v, 0.2, 1e-4, restitution=0.6, rtol=1e-10, atol=1e-12)
    assert found.events


def test_events_that_only_happen_together_at_these_values_are_refused() -> None:
    build = pb.Builder("two", gravity=(0, 0, -9.81))
    for name in "ab":
        build.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
        build.joint(f"fall_{name}", "prismatic", "world", name, limits=(-0.1, 1.0))
    model = build.model()
    alike = pb.sensitivities(model.with_parameters("a.mass"), duration=0.3, sample=0.1)
    assert not alike.q_p.any()  # both fall alike, whatever their masses
    with pytest.raises(PolybodyError, match="happen together"):
        pb.sensitivities(model.with_parameters("fall_a.damping"), duration=0.3, sample=0.1)


def test_actions_that_depend_on_time_shift_with_the_time_of_their_event() -> None:
    variant = arm(limits=(None, None)).with_parameters("*.mass", "e.origin.x")
    kick = pb.Event("kick", lambda t, q, v: q[0] - 0.1, action=lambda t, q, v: (q, v * (1 + 5 * t)))
    found = compared(variant, None, Q, V, 0.35, 1e-5, events=[kick], **TIGHT)
    assert np.abs(found.events[0].t_p).max() > 1e-3
