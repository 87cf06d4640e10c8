"""Long chains take compiled steps whose dynamics are recursions: the steps are Python's, whatever acts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from test_compiled import assert_same, both

import polybody as pb
from machines import four_bar_chain
from polybody.simulation.compiled import rolled

N = 140


def chain(limits: Any = None, friction: Any = None, floating: bool = False, contacts: bool = False) -> pb.Model:
    """A branched chain of joints about two axes, springs and dampers in some; every seventh may be held."""
    build = pb.Builder("chain")
    for k in range(N):
        build.body(f"b{k}", 1.0, (0.05, 0.01, 0), (1e-3, 2e-3, 2e-3))
        parent = "world" if k == 0 else f"b{k - 2}" if k == N // 2 else f"b{k - 1}"
        origin = np.eye(4)
        origin[0, 3] = 0.1
        more: dict[str, Any] = {"limits": limits, "friction": friction} if k % 7 == 3 else {}
        kind = "floating" if floating and k == 0 else "spherical" if floating and k == 3 else "revolute"
        own = {"axis": ((0, 0, 1), (0, 1, 0))[k % 2], "damping": 0.1 * (k % 3), "armature": 0.01} | more
        build.joint(f"j{k}", kind, parent, f"b{k}", origin, **(own if kind == "revolute" else {}))
    for k in (N // 7, N - 1) if contacts else ():
        build.contact(f"c{k}", f"b{k}", [(0.1, 0, 0)], stiffness=1e4, damping=0.5, friction=0.3, radius=0.05)
    return build.model()


def moving(model: pb.Model) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    q = model.integrate(model.neutral(), rng.uniform(-0.2, 0.2, model.nv), 1.0)
    return q, rng.normal(size=model.nv)


@pytest.mark.parametrize("method", ["rk4", "semi-implicit", "dop853"])
@pytest.mark.parametrize("floating", [False, True])
def test_steps_of_long_trees_are_those_of_python(method: str, floating: bool) -> None:
    model = chain(floating=floating)
    assert model.nv > rolled.MOST_STRAIGHT
    options = {"method": method, "rtol": 1e-6, "atol": 1e-8}
    assert_same(*both(model, 0.004, *moving(model), **options), 1e-7 if method == "dop853" else 1e-11)


def test_radau_of_long_chains_has_differences_of_recursions_for_its_jacobian() -> None:
    model = chain(floating=True)
    options: dict[str, Any] = {"method": "radau", "rtol": 1e-4, "atol": 1e-6}
    assert_same(*both(model, 0.002, *moving(model), **options), 1e-7)


@pytest.mark.parametrize("method", ["rk4", "semi-implicit"])
def test_compliant_stops_and_contacts_act_on_long_chains_as_in_python(method: str) -> None:
    soft = {"lower": -0.1, "upper": 0.1, "stiffness": 500.0, "damping": 0.5}
    model = chain(limits=soft, contacts=True)
    q, v = moving(model)
    heights = [model.pose(q, f"b{k}")[2, 3] for k in (20, 139)]
    assert min(heights) < 0  # in contact
    assert np.abs(q[3::7]).max() > 0.1  # at stops
    assert_same(*both(model, 0.004, q, v, method=method), 1e-10)


def test_controllers_and_wrenches_act_on_long_chains_as_in_python() -> None:
    model = chain()
    q, v = moving(model)
    law = pb.controllers.PD(model, q, 20.0, 1.0)
    push = {"b139": [0.1, 0, 0.2, 1.0, 2.0, 3.0], "b60": lambda t: np.array([0, 0, 0, 0, 0, 5 * t])}
    assert_same(*both(model, 0.004, q, v, law, wrenches=push, method="rk4"))
    assert_same(*both(model, 0.004, q, v, pb.controllers.GravityCompensation(model), method="rk4"))


def test_joints_of_long_chains_hit_stops_rest_there_and_stick_as_in_python() -> None:
    model = chain(limits=(-0.25, 0.25), friction=0.4)
    q, v = moving(model)
    for joint in model.mechanism.joints[3::7]:
        q[joint.q] = np.clip(q[joint.q], -0.24, 0.24)
    ours, theirs = both(model, 0.01, q, v, method="rk4", dt=5e-4)
    assert len(ours.t) > 24  # of 21 steps some end at events, which are kept too
    assert_same(ours, theirs, 1e-8)


def test_energy_of_a_long_chain_is_kept_to_the_tolerance() -> None:
    model = chain()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = pb.simulate(model, 0.05, *moving(model), rtol=1e-9, atol=1e-11, compiled=True)
    assert run.trusted
    assert run.audit.path == "compiled"


def test_the_midpoint_rule_of_a_long_chain_is_of_second_order_and_keeps_its_energy() -> None:
    model = chain(floating=True)
    q, v = moving(model)
    wanted = pb.simulate(model, 8e-4, q, v, rtol=1e-10, atol=1e-12)
    errors = []
    for dt in (2e-4, 1e-4):
        run = pb.simulate(model, 8e-4, q, v, method="midpoint", dt=dt, compiled=True)
        errors.append(np.abs(run.v[-1] - wanted.v[-1]).max())
    assert 3.5 < errors[0] / errors[1] < 4.5
    assert run.audit.energy_error_relative < 1e-4


def test_midpoint_steps_of_long_chains_are_those_of_python() -> None:
    model = chain()
    q, v = moving(model)
    assert_same(*both(model, 8e-4, q, v, pb.controllers.PD(model, q, 20.0, 1.0), method="midpoint", dt=2e-4), 1e-7)


@pytest.mark.parametrize("friction", [None, 0.1])
def test_parameters_of_long_chains_are_numbers_of_their_recursions(friction: Any) -> None:
    model = chain(friction=friction).with_parameters("b3.mass", "*.damping")
    values = np.array(model.parameters.nominal) + 0.5
    options: dict[str, Any] = {"method": "rk4", "dt": 1e-3, "parameters": values}
    ours = pb.simulate(model, 0.004, *moving(model), compiled=True, **options)
    theirs = pb.simulate(model, 0.004, *moving(model), compiled=False, **options)
    nominal = pb.simulate(model, 0.004, *moving(model), method="rk4", dt=1e-3)
    assert_same(ours, theirs, 1e-11 if friction is None else 1e-8)
    if friction is None:
        wanted = model.forward_dynamics(*moving(model), np.zeros(model.nv), parameters=values)
        np.testing.assert_allclose(ours.a[0], wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    assert np.abs(ours.v[-1] - nominal.v[-1]).max() > 1e-3
    np.testing.assert_array_equal(ours.model.parameters.nominal, values)


def test_steps_of_a_row_of_66_four_bars_are_those_of_python() -> None:
    """Loops are straight lines along a plan, as the model's own answers are, up to 300 velocities."""
    model = four_bar_chain(66)
    assert model.nv > rolled.MOST_STRAIGHT
    v = np.array([-1.0 if joint.name.startswith("base") else 1.0 for joint in model.mechanism.joints])
    assert_same(*both(model, 0.01, model.neutral(), v, method="rk4", dt=1e-3), 1e-9)
