"""Sensitivities under every controller of `pb.controllers`, on trees, loops and floating bases, against differences.

`CASES` is the list of all of them; a sample is compared with Richardson's differences of `pb.simulate` (the whole list
was, with errors below 1e-6: docs/howto/sensitivities.md). What is refused is listed with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from sensitivity_cases import compared

import polybody as pb
from polybody.errors import InputError

own: Any = pb.controllers


class Machine(NamedTuple):
    variant: pb.Model
    frame: str
    q: np.ndarray
    v: np.ndarray
    goal: np.ndarray
    gains: tuple[float, float]


def tree(*parameters: str) -> Machine:
    model, q = pb.load("planar-3r"), np.array([0.3, 0.8, -0.5])
    return Machine(model.with_parameters(*parameters), "tip", q, np.array([0.2, -0.1, 0.3]), q + 0.2, (29.7, 3.1))


def loop(*parameters: str) -> Machine:
    model = pb.load("four-bar")
    q = model.assemble()
    moved = q + np.array([0.2, 0, 0])
    goal = model.constraints.assemble_dependent(moved)
    v = model.assemble_velocity(q, np.full(3, 0.3))
    return Machine(model.with_parameters(*parameters), "coupler", q, v, goal, (5.13, 0.47))


def floating(*parameters: str) -> Machine:
    build = pb.Builder("space", gravity=(0, 0, -9.81))
    build.body("base", 3.0, inertia=(0.2, 0.25, 0.3))
    build.joint("root_joint", "floating", "world", "base")
    build.body("l1", 1.0, com=(0.2, 0, 0), inertia=(0.01, 0.02, 0.02))
    build.joint("j1", "revolute", "base", "l1", (0.1, 0, 0.1))
    build.body("l2", 0.8, com=(0.2, 0, 0), inertia=(0.01, 0.02, 0.02))
    build.joint("j2", "revolute", "l1", "l2", (0.4, 0, 0), axis=(0, 1, 0))
    build.frame("tip", "l2", (0.4, 0, 0))
    model = build.model()
    q, v = model.neutral().copy(), np.linspace(-0.3, 0.4, model.nv)
    q[-2:] = [0.3, 0.6]
    goal = model.integrate(q, np.full(model.nv, 0.2), 1.0)
    return Machine(model.with_parameters(*parameters), "tip", q, v, goal, (30.0, 3.0))


def pd(m: Machine, **options: Any) -> Any:
    return own.PD(m.variant, m.goal, *m.gains, **options)


def path(m: Machine) -> Any:
    return pb.paths.quintic(m.variant, m.q, m.goal, 0.4)


def target(m: Machine) -> np.ndarray:
    return m.variant.pose(m.q, m.frame)[:3, 3] + [0.03, 0.02, 0]


def felt(t: Any, q: Any, v: Any) -> Any:
    return np.array([0, 0, 0, 3 - v[0], 2 * q[1], 0])


def framed(kind: Callable[..., Any], *numbers: Any, **options: Any) -> Callable[[Machine], Any]:
    return lambda m: kind(m.variant, m.frame, target(m), *numbers, rows="position", **options)


def observer(m: Machine, law: Any = None, **options: Any) -> Any:
    return own.DisturbanceObserver(m.variant, pd(m) if law is None else law, 30.0, period=0.02, **options)


def adaptive(m: Machine) -> Any:
    gains = (0.4, 5.0, 0.1) if m.variant.mechanism.constrained else (4.0, 5.0, 2.0)
    return own.Adaptive(m.variant, path(m), *gains, period=0.02)


def integral(m: Machine) -> Any:
    start = np.zeros(m.variant.nv)
    return own.Stateful(lambda t, q, v, z: z - 0.3 * v, lambda t, q, v, z: z + 0.008 * (1 - v), start, 0.02)


admitting = framed(own.Admittance, 100.0, 20.0, 2.0, felt, period=0.02, kp=400.0, kd=40.0)
operational = framed(own.OperationalSpace, kp=100.0, kd=20.0)
CASES: dict[str, Callable[[Machine], Any]] = {
    "PD": pd,
    "PD with gravity": lambda m: pd(m, gravity=True),
    "PD along a path": lambda m: own.PD(m.variant, None, *m.gains, path=path(m)),
    "ComputedTorque": lambda m: own.ComputedTorque(m.variant, path(m), 100.0, 20.0),
    "GravityCompensation": lambda m: own.GravityCompensation(m.variant, 0.3),
    "Given": lambda m: own.Given(m.variant, np.outer([0.1, -0.2, 0.4], np.ones(m.variant.nv)), [0.0, 0.03, 0.2]),
    "Given as a function": lambda m: own.Given(m.variant, lambda t: np.full(m.variant.nv, float(np.sin(9 * t)))),
    "zero": lambda m: own.zero(m.variant),
    "OperationalSpace": operational,
    "OperationalSpace along a path": lambda m: own.OperationalSpace(
        m.variant, m.frame, path(m), 100.0, 20.0, rows="position"),
    "ResolvedAcceleration": framed(own.ResolvedAcceleration, kp=100.0, kd=20.0),
    "ResolvedRate": framed(own.ResolvedRate, gain=5.0, rate_gain=50.0),
    "Impedance": framed(own.Impedance, 100.0, 20.0),
    "Impedance with force": framed(own.Impedance, 100.0, 20.0, inertia=2.0, force=felt),
    "HybridForcePosition": lambda m: own.HybridForcePosition(
        m.variant, m.frame, target(m), [0, 0, 0, 0, -2.0, 0], [0, 1, 0], rows="position"),
    "FeedbackLinearisation": lambda m: own.FeedbackLinearisation(
        m.variant, pb.Function(lambda q, domain: np.array([domain.sin(q[-1]) + q[-2]]), 1), [0.2]),
    "Admittance": admitting,
    "Stateful": integral,
    "DisturbanceObserver": observer,
    "Adaptive": adaptive,
    "Sampled": lambda m: own.Sampled(pd(m), 0.02),
    "Sampled with delay": lambda m: own.Sampled(pd(m), 0.02, 0.03),
    "Sampled OperationalSpace": lambda m: own.Sampled(operational(m), 0.01),
    "Sampled DisturbanceObserver": lambda m: own.Sampled(observer(m), 0.01),
    "DisturbanceObserver of Sampled": lambda m: observer(m, own.Sampled(pd(m), 0.01)),
    "DisturbanceObserver of DisturbanceObserver": lambda m: observer(m, observer(m)),
    "Sampled Adaptive": lambda m: own.Sampled(adaptive(m), 0.01),
    "Sampled Admittance": lambda m: own.Sampled(admitting(m), 0.01),
    "Sampled Stateful": lambda m: own.Sampled(integral(m), 0.01),
    "Sampled Noisy": lambda m: own.Sampled(own.Noisy(m.variant, pd(m), 0.01, 0.02), 0.01),
    "Noisy Sampled": lambda m: own.Noisy(m.variant, own.Sampled(pd(m), 0.01), 0.01, 0.02),
    "Sampled Quantised": lambda m: own.Sampled(own.Quantised(m.variant, pd(m), 1e-2, 1e-2), 0.01),
    "Quantised": lambda m: own.Quantised(m.variant, pd(m), 1e-2),
}  # fmt: skip
SAMPLE = [
    (tree, ("link2.mass", "joint3.origin.x"), name) for name in (
        "Given as a function", "HybridForcePosition", "FeedbackLinearisation", "Sampled DisturbanceObserver",
        "DisturbanceObserver of DisturbanceObserver", "Sampled Noisy", "Sampled Stateful",
        "OperationalSpace along a path")
] + [
    (loop, ("coupler.mass",), name) for name in ("DisturbanceObserver", "Adaptive", "Sampled with delay")
] + [
    (loop, ("coupler.mass", "rocker_joint.origin.x"), name) for name in ("ComputedTorque", "HybridForcePosition")
] + [
    (floating, ("l2.mass", "base.com.x"), name) for name in ("PD with gravity", "DisturbanceObserver of Sampled")
]  # fmt: skip
#: (machine, parameters, controller) -> why there is no derivative, or no such controller
REFUSED = [
    (tree, ("link2.mass",), "Quantised", "rounded forces jump within steps"),
    (floating, ("l2.mass",), "Adaptive", "no quaternions"),
    (loop, ("rocker_joint.origin.x",), "DisturbanceObserver", "only a part of the controller puts states onto its own"),
]


@pytest.mark.parametrize(("machine", "parameters", "name"), SAMPLE)
def test_sensitivities_under_a_controller_equal_differences_of_runs(machine: Any, parameters: Any, name: str) -> None:
    m = machine(*parameters)
    compared(m.variant, CASES[name](m), m.q, m.v, 0.04, 1e-6, method="rk4", dt=5e-3)


@pytest.mark.parametrize(("machine", "parameters", "name", "reason"), REFUSED)
def test_what_has_no_derivative_is_refused(machine: Any, parameters: Any, name: str, reason: str) -> None:
    m = machine(*parameters)
    with pytest.raises(InputError, match=reason):
        pb.sensitivities(m.variant, CASES[name](m), q0=m.q, v0=m.v, duration=0.02, sample=0.01)


def test_rounded_measurements_of_a_computer_do_not_respond_between_their_jumps() -> None:
    """The derivative is that between jumps: differences so small that no number is rounded otherwise show it."""
    m, h = tree("link2.mass"), 1e-8
    law, options = CASES["Sampled Quantised"](m), {"method": "rk4", "dt": 5e-3}
    found = pb.sensitivities(pb.simulate(m.variant, 0.04, m.q, m.v, law, sample=0.02, **options), law)
    ends = [pb.simulate(m.variant, 0.04, m.q, m.v, law, times=[0.04], parameters=m.variant.parameters.nominal + x,
                        **options).v[-1] for x in (h, -h)]  # fmt: skip
    np.testing.assert_allclose(found.v_p[-1, :, 0], (ends[0] - ends[1]) / (2 * h), atol=1e-6)


def test_every_controller_is_in_the_list() -> None:
    kinds = {name for name in own.__all__ if name not in ("Sampling", "Actuators")}  # a protocol; servos, below
    assert kinds <= {word for name in CASES for word in name.split()}


def test_sensitivities_under_actuators_equal_differences_of_runs() -> None:
    build = pb.Builder("servo", gravity=(0, -9.81, 0))
    build.body("a", 1.0, com=(0.25, 0, 0), inertia=(0.01, 0.02, 0.02))
    build.joint("s", "revolute", "world", "a")
    build.actuator("servo", "s", gain=20.0, bias=(0.0, -20.0, -2.0))
    variant = build.model().with_parameters("a.mass")
    compared(variant, own.Actuators(variant, [0.4]), np.zeros(1), np.zeros(1), 0.1, 1e-6, method="rk4", dt=5e-3)
