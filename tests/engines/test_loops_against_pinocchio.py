"""Closed loops against Pinocchio's constraintDynamics, on random consistent states, by every route."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from loop_states import massive, states

pin = pytest.importorskip("pinocchio")


class Twin:
    """The same tree in Pinocchio, with welds as its 6-D constraints and all other loops as points, its 3-D ones.

    `held` are more welds: pairs of frames.
    """

    def __init__(self, model, held=()) -> None:
        self.ours, m = model, model.mechanism
        self.model = pin.Model()
        self.model.gravity = pin.Motion(np.concatenate([m.gravity, np.zeros(3)]))
        ids, columns = [], []
        for joint, body in zip(m.joints, m.bodies, strict=True):
            kind, order = self._joint(joint)
            parent = 0 if joint.parent < 0 else ids[joint.parent]
            index = self.model.addJoint(parent, kind, pin.SE3(joint.rotation, joint.position), joint.name)
            self.model.appendBodyToJoint(index, pin.Inertia(body.mass, body.com, body.inertia), pin.SE3.Identity())
            ids.append(index)
            columns.append((index, order))
        self.P = np.zeros((self.model.nv, m.nv))
        for joint, (index, order) in zip(m.joints, columns, strict=True):
            start = self.model.joints[index].idx_v
            for k, other in enumerate(order):
                self.P[start + k, joint.v.start + other] = 1
        armature = np.asarray(m.armature, dtype=float)
        assert not np.any(armature - np.diag(np.diag(armature))), "Pinocchio has no rotors that several joints turn"
        self.model.armature = self.P @ np.diag(armature)
        self.data = self.model.createData()
        self.contacts, self.contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for a, b, weld in [(c.a, c.b, c.model is None) for c in m.closures] + [(*pair, True) for pair in held]:
            ends = [(0 if f.body < 0 else ids[f.body], pin.SE3(f.rotation, f.position)) for f in (a, b)]
            kind = pin.ContactType.CONTACT_6D if weld else pin.ContactType.CONTACT_3D
            self.contacts.append(pin.RigidConstraintModel(
                kind, self.model, *ends[0], *ends[1], pin.ReferenceFrame.LOCAL))
        for contact in self.contacts:
            self.contact_data.append(contact.createData())
        pin.initConstraintDynamics(self.model, self.data, self.contacts, self.contact_data)

    @staticmethod
    def _joint(joint):
        if joint.kind == "universal":
            both = pin.JointModelComposite(pin.JointModelRZ())
            both.addJoint(pin.JointModelRY())
            return both, (1, 0)
        if joint.kind == "floating":
            return pin.JointModelFreeFlyer(), (3, 4, 5, 0, 1, 2)
        if joint.kind == "planar":
            return pin.JointModelPlanar(), (1, 2, 0)
        H = np.asarray(joint.model.constant_map)[:, 0]
        if joint.kind == "prismatic":
            return pin.JointModelPrismaticUnaligned(*H[3:]), (0,)
        return pin.JointModelRevoluteUnaligned(*H[:3]), (0,)

    def q(self, q):
        parts = {}
        for joint in self.ours.mechanism.joints:
            part = q[joint.q]
            if joint.kind == "planar":
                part = np.array([part[1], part[2], np.cos(part[0]), np.sin(part[0])])
            parts[joint.name] = part[::-1] if joint.kind == "universal" else part
        return np.concatenate([parts[name] for name in self.model.names[1:]])

    def accelerations(self, q, v, tau):
        settings = pin.ProximalSettings(1e-13, 1e-10, 50)
        a = pin.constraintDynamics(self.model, self.data, self.q(q), self.P @ v, self.P @ tau, self.contacts,
                                   self.contact_data, settings)
        return self.P.T @ a

    def loads(self):
        """{loop: [moment; force] of the constraint on b, world axes}, after `accelerations`."""
        result = {}
        for closure, contact in zip(self.ours.mechanism.closures, self.contact_data, strict=True):
            R = closure.a.rotation
            if closure.a.body >= 0:
                R = self.data.oMi[self.model.getJointId(self.ours.mechanism.joints[closure.a.body].name)].rotation @ R
            force = contact.contact_force  # on a, in a's axes
            result[closure.name] = -np.concatenate([R @ force.angular, R @ force.linear])
        return result


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "3-rrr", "stewart"])
def test_accelerations_equal_pinocchios_by_every_route(name):
    model = massive(name)
    q, v, tau = states(model)
    twin = Twin(model)
    a = model.forward_dynamics(q, v, tau)
    scale = np.abs(a).max()
    for k in range(len(q)):
        np.testing.assert_allclose(a[k], twin.accelerations(q[k], v[k], tau[k]), atol=1e-9 * scale)
    for route in ("multipliers", "minimal"):
        np.testing.assert_allclose(model.constraints.solution(q, v, tau, route=route).a, a, atol=1e-9 * scale)
    by_network = model.forward_dynamics(q[0], v[0], tau[0], formulation="network")
    np.testing.assert_allclose(by_network, a[0], atol=1e-9 * scale)


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "3-rrr", "stewart", "two-arms"])
def test_closure_loads_equal_pinocchios_contact_forces(name):
    """3-D for pins in the plane and for balls, 6-D for the welds of two arms that hold one object."""
    model = massive(name)
    q, v, tau = states(model)
    twin, loads = Twin(model), model.constraints.loads(q, v, tau)
    for k in range(len(q)):
        twin.accelerations(q[k], v[k], tau[k])
        size = max(np.abs(load[k]).max() for load in loads.values())
        for loop, wrench in twin.loads().items():
            np.testing.assert_allclose(loads[loop][k], wrench, atol=1e-9 * size)


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "3-rrr", "stewart"])
def test_actuator_efforts_give_the_motion_back(name):
    model = massive(name)
    q, v, tau = states(model)
    from polybody.mechanism.columns import actuated

    driven = np.zeros(model.nv, dtype=bool)
    driven[actuated(model.mechanism)] = True
    tau = np.where(driven, tau, 0.0)
    a = model.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(model.inverse_dynamics(q, v, a), tau, atol=1e-8 * np.abs(tau).max())
    by_ranks = model.inverse_dynamics(q, v, a, weights=np.ones(driven.sum()))
    np.testing.assert_allclose(by_ranks, tau, atol=1e-8 * np.abs(tau).max())


def test_forward_dynamics_with_armature_equals_pinocchio_on_a_long_chain():
    build, rng, count = pb.Builder("chain"), np.random.default_rng(0), 60
    for k in range(count):
        origin = np.eye(4)
        origin[0, 3] = 0.1
        build.body(f"b{k}", 1.0, (0.05, 0, 0), (1e-3, 2e-3, 2e-3))
        axis = ((0, 0, 1), (0, 1, 0))[k % 2]
        build.joint(f"j{k}", "revolute", f"b{k - 1}" if k else "world", f"b{k}", origin, axis=axis, armature=0.01)
    model = build.model()
    twin = Twin(model)
    q, v, tau = rng.uniform(-0.3, 0.3, count), rng.normal(size=count), rng.normal(size=count)
    theirs = twin.P.T @ pin.aba(twin.model, twin.data, twin.q(q), twin.P @ v, twin.P @ tau)
    assert np.abs(model.forward_dynamics(q, v, tau) - theirs).max() < 1e-10 * np.abs(theirs).max()
