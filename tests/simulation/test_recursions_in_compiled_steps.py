"""Steps by recursions, as long chains have them, are Python's steps: short chains are made to take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import test_compiled_long_chains as chains
from decided_events import assert_same_events
from decided_events import both as decided
from test_compiled import assert_same, both

import polybody as pb
from polybody.algebra.domains import FLOAT
from polybody.model import long_chains
from polybody.simulation.compiled import rolled
from polybody.simulation.integrators import midpoint

C = pb.controllers
N = 14
METHODS = ("rk4", "semi-implicit", "dop853", "radau", "midpoint")
pytestmark = pytest.mark.filterwarnings("ignore::polybody.errors.PolybodyWarning")


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: Any) -> None:
    monkeypatch.setattr(rolled, "MOST_STRAIGHT", N - 2)
    monkeypatch.setattr(chains, "N", N)


def coupled(limits: Any = None, friction: Any = None, followers: bool = False) -> pb.Model:
    """A branched chain whose motors each turn with two joints, some with inductance; or whose last joints follow."""
    build = pb.Builder("coupled")
    for k in range(N + 2):
        build.body(f"b{k}", 1.0, (0.05, 0.01, 0), (1e-3, 2e-3, 2e-3))
        parent = "world" if k == 0 else f"b{k - 2}" if k == N // 2 else f"b{k - 1}"
        own: dict[str, Any] = {"limits": limits, "friction": friction} if k % 4 == 2 else {}
        build.joint(f"j{k}", "revolute", parent, f"b{k}", (0.1, 0, 0), axis=((0, 0, 1), (0, 1, 0))[k % 2], damping=0.05,
                    armature=0.01, **own)  # fmt: skip
    if followers:
        build.couple(f"j{N + 1}", "j1", -0.5, 0.1)
    for k in () if followers else range(0, N + 1, 2):
        for joint in (k, k + 1):
            inductance = 0.02 if joint % 3 == 0 else 0.0
            build.motor(f"j{joint}", 0.5, inductance, 0.1, rotor_inertia=2e-3, damping=1e-3, name=f"m{joint}")
        build.transmission(f"t{k}", [f"j{k}", f"j{k + 1}"], [[1.0, 0.0], [0.6, 1.5]])
    return build.model()


def options(method: str) -> dict[str, Any]:
    return {"method": method, **({"rtol": 1e-7, "atol": 1e-9} if method in ("dop853", "radau") else {"dt": 1e-3})}


@pytest.mark.parametrize("floating", [False, True])
def test_midpoint_steps_by_recursions_are_those_of_python(floating: bool) -> None:
    model = chains.chain(floating=floating)
    assert_same(*both(model, 0.01, *chains.moving(model), **options("midpoint")), 1e-9)


def test_midpoint_steps_by_recursions_under_controllers_wrenches_and_contacts_are_those_of_python(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(midpoint, "MOST_EXACT", N - 4)
    soft = {"lower": -0.05, "upper": 0.05, "stiffness": 500.0, "damping": 0.5}
    model = chains.chain(limits=soft, contacts=True)
    q, v = chains.moving(model)
    push = {f"b{N - 1}": [0.1, 0, 0.2, 1.0, 2.0, 3.0], "b6": lambda t: np.array([0, 0, 0, 0, 0, 5 * t])}
    law = C.PD(model, q, 20.0, 1.0)
    assert np.abs(q[3::7]).max() > 0.05  # at stops
    assert min(model.pose(q, f"b{k}")[2, 3] for k in (2, N - 1)) < 0.05  # in contact
    assert_same(*both(model, 0.01, q, v, law, wrenches=push, **options("midpoint")), 1e-9)


def test_midpoint_steps_by_recursions_stop_stick_and_slip_as_in_python(monkeypatch: Any) -> None:
    model = chains.chain(limits=(-0.25, 0.25), friction=0.4)
    q, v = chains.moving(model)
    q[3::7] = np.clip(q[3::7], -0.24, 0.24)
    slow, fast, counts = decided(monkeypatch, model, 0.25, q, 4 * v, method="midpoint", dt=5e-4, restitution=0.3)
    assert counts[0] > 4
    assert counts[1] <= 1
    assert fast.audit.path == "compiled"
    assert_same_events(fast, slow, 1e-6)


@pytest.mark.parametrize("followers", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_steps_of_chains_whose_joints_are_coupled_are_those_of_python(
    method: str, followers: bool, monkeypatch: Any
) -> None:
    monkeypatch.setattr(midpoint, "MOST_EXACT", N - 4)  # differences in Python too: the exact text compiles for long
    model = coupled(followers=followers)
    assert not model.mechanism.separable
    more = {} if followers else {"voltages": np.linspace(-3, 3, N + 2)}
    q, v = chains.moving(model)
    tolerance = {"dop853": 1e-6, "radau": 1e-6, "midpoint": 1e-9}.get(method, 1e-11)
    assert_same(*both(model, 0.01, q, v, **options(method), **more), tolerance)


@pytest.mark.parametrize("method", ["rk4", "midpoint"])
def test_coupled_joints_that_stops_and_friction_hold_move_as_in_python(method: str, monkeypatch: Any) -> None:
    model = coupled(limits=(-0.25, 0.25), friction=0.4)
    q, v = chains.moving(model)
    q = np.clip(q, -0.24, 0.24)
    slow, fast, counts = decided(monkeypatch, model, 0.25, q, 4 * v, method=method, dt=5e-4, restitution=0.3)
    assert counts[0] > 4
    assert counts[1] <= 1
    assert fast.audit.path == "compiled"
    assert_same_events(fast, slow, 1e-6)


@pytest.mark.parametrize("joined", [False, True])
def test_recursions_of_momentum_are_those_of_the_mass_matrix(joined: bool) -> None:
    model = coupled() if joined else chains.chain(floating=True)
    q, v = chains.moving(model)
    product, rate = (long_chains.kernel(model.mechanism, name) for name in ("mass_product", "momentum_rate"))
    assert product is not None
    assert rate is not None
    M, h = model.mass_matrix(q), 1e-5
    np.testing.assert_allclose(product(q, v), M @ v, rtol=0, atol=1e-12 * np.abs(M @ v).max())
    change = model.mass_matrix(model.integrate(q, v, h)) - model.mass_matrix(model.integrate(q, v, -h))
    np.testing.assert_allclose(rate(q, v), change @ v / (2 * h), rtol=0, atol=1e-7 * np.abs(M @ v).max())


def test_energies_beside_recursions_are_those_that_the_bare_tree_lacks() -> None:
    soft = {"lower": -0.05, "upper": 0.05, "stiffness": 500.0, "damping": 0.5}
    model = chains.chain(limits=soft, contacts=True)
    q, v = chains.moving(model)
    energy = long_chains.kernel(rolled.bare(model.mechanism), "energy")
    assert energy is not None
    beside = rolled.stored_beside(model.mechanism, q, FLOAT)
    assert beside > 0.1
    np.testing.assert_allclose(sum(energy(q, v)) + beside, sum(model.energy(q, v)), rtol=1e-13)
