"""Drives of mechanisms with loops: more of them than motions, though not of every motion, and of structures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import polybody as pb
from loop_states import states
from polybody.algebra.spatial import inverse_pose
from polybody.constraints.actuation import internal_load_basis
from polybody.description.records import Body, Joint
from polybody.model.validation import model_from


def driven_four_bar(passive: bool) -> pb.Model:
    """A four-bar with drives at all its joints, and a pendulum on its coupler that has one or none."""
    d = pb.load("four-bar").description
    joints = tuple(replace(joint, active=(True,)) for joint in d.joints)
    pendulum = Joint("hinge", "revolute", "coupler", "pendulum", axis=(0, 0, 1), active=(not passive,))
    body = Body("pendulum", mass=0.3, com=(0.1, 0, 0), inertia=np.diag([1e-3, 2e-3, 2e-3]))
    return model_from(replace(d, bodies=(*d.bodies, body), joints=(*joints, pendulum)), warn=False)


@pytest.mark.parametrize("lead", [0, slice(None)], ids=["one", "batch"])
def test_more_drives_than_motions_of_which_one_has_none_are_refused(lead):
    model = driven_four_bar(passive=True)
    q, v, tau = states(model)
    a = model.forward_dynamics(q, v, tau)
    with pytest.raises(pb.PolybodyError, match="cannot give this motion"):
        model.inverse_dynamics(q[lead], v[lead], a[lead])


def test_more_drives_than_motions_share_what_is_least():
    model = driven_four_bar(passive=False)
    q, v, tau = states(model)
    a = model.forward_dynamics(q, v, tau)
    found = model.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(model.forward_dynamics(q, v, found), a, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found, model.inverse_dynamics(q, v, a, formulation="denoc"), rtol=1e-8, atol=1e-8)


def test_drives_of_a_structure_need_nothing():
    """Its projector onto motions is rounding alone, of which the drives once seemed to make something."""
    mechanism = pb.load("four-bar")
    d, q = mechanism.description, mechanism.neutral()
    a, b = (mechanism.pose(q, name) for name in ("rocker", "coupler"))
    pin = replace(d.loops[0], name="weld", kind="fixed", origin_b=inverse_pose(b) @ a @ d.loops[0].origin_a)
    model = model_from(replace(d, loops=(pin,), joints=tuple(replace(j, active=(True,)) for j in d.joints)), warn=False)
    q = q[None].repeat(3, axis=0)
    none = np.zeros((3, model.nv))
    assert model.engine.constraint_rank(q).tolist() == [model.nv] * 3
    for formulation in (None, "denoc", "network"):
        np.testing.assert_array_equal(model.inverse_dynamics(q, none, none, formulation=formulation), 0)
    assert internal_load_basis(model.constraints.jacobian(q[0]), np.arange(model.nv)).shape == (model.nv, model.nv)
