"""Derivatives of a tree whose base floats freely equal those of inverse dynamics, and what ties the base is noticed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.algebra.domains import FLOAT
from polybody.description.records import Friction
from polybody.mechanism.entries import Entries
from polybody.quantities.derivatives import forward_derivatives, forward_factors
from polybody.quantities.free_base import free_base

TURNED = np.array([[0.36, 0.48, -0.8, 0.3], [-0.8, 0.6, 0.0, -0.2], [0.48, 0.64, 0.6, 0.5], [0, 0, 0, 1]])


def tree(
    *, fixed: bool = False, second: bool = False, spring: bool = False, child: str = "trunk", **options: Any
) -> pb.Model:
    """A base that floats from a turned placement under oblique gravity; three branches of four joints on it."""
    build = pb.Builder("tree", gravity=(1.0, -2.0, -9.0))
    rng = np.random.default_rng(4)
    build.body("trunk", 3.0, com=rng.normal(size=3) / 9, inertia=(0.2, 0.3, 0.25))
    ends = ("world", child) if child == "trunk" else ("trunk", "world")
    build.joint("base", "fixed" if fixed else "floating", *ends, origin=TURNED, **options)
    kinds = ("revolute", "prismatic", "spherical", "revolute")
    for branch in range(3):
        parent = "world" if second and branch == 2 else "trunk"
        for k, kind in enumerate(kinds):
            name, place = f"b{branch}{k}", np.eye(4)
            place[:3, 3] = rng.normal(size=3) / 3
            build.body(name, 1.0 + rng.random(), com=rng.normal(size=3) / 9, inertia=(0.02, 0.03, 0.025))
            axis = {} if kind == "spherical" else {"axis": np.eye(3)[k % 3]}
            build.joint(f"j{name}", kind, parent, name, origin=place, damping=0.3, **axis)
            parent = name
    if spring:
        build.spring("tie", "world", (0, 0, 0), "b03", (0, 0.1, 0), 30.0, damping=2.0)
    return build.model()


def compared(model: pb.Model) -> None:
    """The kernel's answer and that of inverse dynamics, under wrenches too; and the text's."""
    rng = np.random.default_rng(7)
    q = model.random_configuration(rng, size=3)
    v, tau = rng.normal(size=(2, 3, model.nv))
    for w in (None, {model.body_names[-1]: rng.normal(size=6)}):
        a = model.forward_dynamics(q, v, tau, wrenches=w)
        dq, dv, M = model.inverse_dynamics_derivatives(q, v, a, wrenches=w)
        found = model.forward_dynamics_derivatives(q, v, tau, wrenches=w)
        wanted = (-np.linalg.solve(M, dq), -np.linalg.solve(M, dv), np.linalg.inv(M))
        for one, reference in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, reference, rtol=0, atol=1e-9 * np.abs(reference).max())


def test_factors_of_a_free_base_multiply_to_the_derivatives_and_have_empty_columns():
    model = tree()
    m, rng = model.mechanism, np.random.default_rng(3)
    q = model.random_configuration(rng)
    v, tau = rng.normal(size=(2, model.nv))
    assert free_base(m) is m.joints[0]
    A, B_q, B_v, C_q, C_v = forward_factors(m, q, v, tau, domain=FLOAT)
    da_dq, da_dv, M_inverse = forward_derivatives(m, q, v, tau, domain=FLOAT)
    for one, reference in ((A, M_inverse), (C_q - A @ B_q, da_dq), (C_v - A @ B_v, da_dv)):
        np.testing.assert_allclose(one, reference, rtol=0, atol=1e-10 * np.abs(reference).max())
    assert not B_q[:, :6].any()
    assert not B_v[:, 3:6].any()
    assert B_v[:, :3].any(axis=0).all()


def test_derivatives_of_a_free_base_are_those_of_inverse_dynamics_with_parameters_too():
    model = tree()
    assert model.nv == 24
    compared(model)
    compared(model.with_parameters("trunk.mass"))


@pytest.mark.parametrize(
    "options",
    [
        {"damping": np.diag([0.0, 0, 0, 2.0, 2.0, 2.0])}, {"stiffness": np.diag([1.0, 1, 1, 20, 20, 20])},
        {"armature": (0, 0, 0, 0.5, 0.5, 0.5)}, {"second": True}, {"spring": True}, {"child": "world"},
        {"fixed": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_a_base_that_is_tied_to_the_ground_is_not_free(options):
    model = tree(**options)
    assert free_base(model.mechanism) is None
    compared(model)


def test_friction_stops_and_symbols_are_noticed():
    m = tree().mechanism
    base, *others = m.joints
    stops = replace(base.limits, stiffness=np.full(6, 100.0))
    dry = Friction(np.ones(6), *np.zeros((5, 6)), load=np.zeros(6))
    for tied in (replace(base, friction=dry), replace(base, limits=stops)):
        assert free_base(replace(m, joints=(tied, *others))) is None
    for load, free in ((0.0, True), (0.1, False)):
        rubbing = replace(others[0], friction=Friction(np.ones(1), *np.zeros((5, 1)), load=np.full(1, load)))
        assert (free_base(replace(m, joints=(base, rubbing, *others[1:]))) is not None) == free
    assert free_base(replace(m, symbols=(object(),))) is None
    bearings = np.zeros((m.nv, m.nv))
    bearings[0, 0] = 0.1
    assert free_base(replace(m, motor_damping_entries=Entries.of(bearings))) is None
