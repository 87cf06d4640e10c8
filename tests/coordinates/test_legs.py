"""A planar 3-RRR leg by leg (Freeman (4-42)-(4-64)) against the same machine with its loops closed."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb

ANGLES = np.deg2rad([210.0, 330.0, 90.0])
BASE, HELD, LINKS = 0.5, 0.12, (0.35, 0.3)
PLATFORM = {"mass": 1.3, "com": (0.01, -0.02, 0), "inertia": (0.01, 0.01, 0.02)}


def chain(build, k):
    """Leg k without the plate."""
    x, y = BASE * np.cos(ANGLES[k]), BASE * np.sin(ANGLES[k])
    for i, (length, mass) in enumerate(zip(LINKS, (0.8, 0.5), strict=True)):
        build.body(f"link{k}_{i}", mass, (length / 2, 0.01, 0), (1e-3, 5e-3, 5e-3))
    build.joint(f"a{k}", "revolute", "world", f"link{k}_0", origin=(x, y, 0), damping=0.1)
    build.joint(f"b{k}", "revolute", f"link{k}_0", f"link{k}_1", origin=(LINKS[0], 0, 0), active=False)


def corner(k):
    return (HELD * np.cos(ANGLES[k]), HELD * np.sin(ANGLES[k]), 0)


def leg(k):
    build = pb.Builder(f"leg{k}", gravity=(0, -9.81, 0))
    chain(build, k)
    build.body("plate", 0.0)
    build.joint(f"c{k}", "revolute", f"link{k}_1", "plate", origin=(LINKS[1], 0, 0))
    build.frame("hand", "plate", tuple(-np.array(corner(k))))
    return build.model()


def whole():
    """The same with loops: leg 0 carries the plate, the others close on it."""
    build = pb.Builder("3-rrr", gravity=(0, -9.81, 0))
    for k in range(3):
        chain(build, k)
    shift = -np.array(corner(0))
    com = np.array(PLATFORM["com"]) + shift
    build.body("plate", PLATFORM["mass"], com, PLATFORM["inertia"])
    build.joint("c0", "revolute", "link0_1", "plate", origin=(LINKS[1], 0, 0), active=False)
    for k in (1, 2):
        build.loop(f"c{k}", "revolute", f"link{k}_1", "plate", origin_a=(LINKS[1], 0, 0),
                   origin_b=tuple(np.array(corner(k)) + shift))
    build.frame("hand", "plate", tuple(shift))
    return build.model()


@pytest.fixture(scope="module")
def machine():
    model = whole()
    legs = [leg(k) for k in range(3)]
    parallel = pb.legs(legs, "hand", motions="rz x y", driven=[(k, f"a{k}") for k in range(3)], platform=PLATFORM)
    rng = np.random.default_rng(0)
    names = model.joint_names
    ordered = {**{f"a{k}": ANGLES[k] + np.pi + 0.6 for k in range(3)}, **{f"b{k}": -1.0 for k in range(3)}}
    guess = np.array([ordered.get(name, 0.0) for name in names])
    q = model.assemble(guess)
    states, place = [], model.pose(q, "hand")
    for k in range(3):
        turns = [q[names.index(f"a{k}")], q[names.index(f"b{k}")]]
        turn = np.arctan2(place[1, 0], place[0, 0]) - sum(turns)
        states.append(np.array([*turns, turn]))
    return model, parallel, q, states, rng


def test_legs_summed_are_the_machine_with_its_loops_closed(machine):
    model, parallel, q, states, rng = machine
    driven = ["a0", "a1", "a2"]
    found, G, _ = parallel.at_actuators(states)
    wanted = model.mass_matrix(q, independent=driven)
    np.testing.assert_allclose(found.I, wanted, atol=1e-10 * (1 + np.abs(wanted).max()))
    u = list(model.constraints.indices(driven))
    w_dot, w_ddot = rng.normal(size=(2, 3))
    J = model.jacobian(q, "hand")[[2, 3, 4]]
    rows = np.vstack([J, model.constraints.jacobian(q)])
    v = np.linalg.lstsq(rows, np.concatenate([w_dot, np.zeros(len(rows) - 3)]), rcond=None)[0]
    np.testing.assert_allclose(J @ v, w_dot, atol=1e-9)
    np.testing.assert_allclose(G @ v[u], w_dot, atol=1e-9)
    bias = model.frame_acceleration(q, v, np.zeros(model.nv), "hand")[[2, 3, 4]]
    a = np.linalg.lstsq(rows, np.concatenate([w_ddot - bias, -model.constraints.bias(q, v)]), rcond=None)[0]
    tau = model.inverse_dynamics(q, v, a)
    forces = parallel.inverse_dynamics(states, w_dot, w_ddot)
    np.testing.assert_allclose(forces, tau[u], atol=1e-9 * (1 + np.abs(tau).max()))
    for k, (velocity, acceleration) in enumerate(parallel.joint_motion(states, w_dot, w_ddot)):
        np.testing.assert_allclose(velocity[0], v[u[k]], atol=1e-9)
        np.testing.assert_allclose(acceleration[0], a[u[k]], atol=1e-8)


def test_legs_that_do_not_fit_are_named(machine):
    _, parallel, _, states, _ = machine
    with pytest.raises(pb.InputError, match="leg 1 has the platform off by"):
        parallel.dynamics([states[0], states[1] + 0.1, states[2]])
    with pytest.raises(pb.InputError, match="leg 0 has 3 velocities and the platform 6 motions"):
        pb.legs([leg(0)], "hand")
    with pytest.raises(pb.InputError, match=r"1 driven joint for 3 motions of the platform"):
        pb.legs([leg(0)], "hand", motions="rz x y", driven={0: ["a0"]}).at_actuators([states[0]])


def test_a_batch_of_states_is_every_state_by_itself(machine):
    model, parallel, q, _, rng = machine
    names = model.joint_names
    many = np.stack([model.assemble(q + 0.05 * rng.normal(size=len(q))) for _ in range(4)]).reshape(2, 2, -1)
    turned = model.pose(many, "hand")
    legs = []
    for k in range(3):
        turns = many[..., [names.index(f"a{k}"), names.index(f"b{k}")]]
        last = np.arctan2(turned[..., 1, 0], turned[..., 0, 0]) - turns.sum(axis=-1)
        legs.append(np.concatenate([turns, last[..., None]], axis=-1))
    w, dw = rng.normal(size=(2, 2, 2, 3))
    found, G, H = parallel.at_actuators(legs, w)
    forces, motions = parallel.inverse_dynamics(legs, w, dw), parallel.joint_motion(legs, w, dw)
    assert found.I.shape == (2, 2, 3, 3)
    for at in np.ndindex(2, 2):
        one = [leg[at] for leg in legs]
        alone, G1, H1 = parallel.at_actuators(one, w[at])
        pairs = [(found.I, alone.I), (found.P, alone.P), (found.load, alone.load), (G, G1), (H, H1),
                 (forces, parallel.inverse_dynamics(one, w[at], dw[at])),
                 (motions[2][1], parallel.joint_motion(one, w[at], dw[at])[2][1])]
        for every, wanted in pairs:
            np.testing.assert_allclose(every[at], wanted, atol=1e-11 * (1 + np.abs(wanted).max()))
    legs[1][1, 0] += 0.1
    with pytest.raises(pb.InputError, match=r"leg 1 has the platform off by .* \(state 1, 0 of the batch\)"):
        parallel.dynamics(legs)


def stewart_leg(model, k):
    """Leg k of a shipped Stewart platform as a chain of its own: foot, slide, ball; its plate has no mass."""
    parts = {x.name: x for x in (*model.description.bodies, *model.description.joints, *model.description.loops)}
    build = pb.Builder(f"leg{k}", gravity=tuple(model.gravity))
    for name in (f"cylinder{k}", f"piston{k}"):
        build.body(name, parts[name].mass, parts[name].com, parts[name].inertia)
    for name in (f"foot{k}", f"leg{k}"):
        joint = parts[name]
        build.joint(name, joint.kind, joint.parent, joint.child, joint.origin, joint.axis, active=name == f"leg{k}")
    ball = parts[f"ball{k}"]
    build.body("plate", 0.0)
    build.joint("ball", "spherical", f"piston{k}", "plate", ball.origin_b, active=False)
    build.frame("hand", "plate", np.linalg.inv(ball.origin_a))  # the ball's frame on the platform, seen from the ball
    return build.model()


@pytest.mark.filterwarnings("ignore::polybody.PolybodyWarning")
def test_six_spatial_legs_are_the_stewart_platform():
    """Quaternions, quasi-velocities and Euler's equations of the platform, (4-48)-(4-64) in space."""
    from scipy.spatial.transform import Rotation

    model = pb.load("stewart")
    rng = np.random.default_rng(2)
    q = model.constraints.assemble_dependent(model.integrate(model.assemble(), 0.1 * rng.normal(size=model.nv)))
    legs = [stewart_leg(model, k) for k in range(1, 7)]
    body = next(b for b in model.description.bodies if b.name == "platform")
    given = {"mass": body.mass, "com": body.com, "inertia": body.inertia}
    parallel = pb.legs(legs, "hand", driven=[(k, f"leg{k + 1}") for k in range(6)], platform=given)
    slices, place, states = model.joint_slices(), model.pose(q, "platform"), []
    for k, leg in enumerate(legs, start=1):
        here = np.concatenate([q[slices[f"foot{k}"][0]], q[slices[f"leg{k}"][0]], [0, 0, 0, 1]])
        turned = leg.pose(here, "hand")[:3, :3].T @ place[:3, :3]
        ball = next(x for x in model.description.loops if x.name == f"ball{k}").origin_a[:3, :3]
        here[-4:] = Rotation.from_matrix(ball.T @ turned @ ball).as_quat()
        np.testing.assert_allclose(leg.pose(here, "hand"), place, atol=1e-9)
        states.append(here)
    found, G, _ = parallel.at_actuators(states)
    np.testing.assert_allclose(found.I, model.mass_matrix(q), rtol=1e-9, atol=1e-9)
    w_dot, w_ddot = rng.normal(size=(2, 6))
    J = model.jacobian(q, "platform")
    u = list(model.constraints.indices(model.constraints.independent))
    joints = model.constraints.joint_influence(q, 1).G
    rates = np.linalg.solve(J @ joints, w_dot)
    np.testing.assert_allclose(G @ rates, w_dot, atol=1e-9)
    v, still = model.constraints.joint_motion(q, rates, np.zeros(6))
    drift = model.frame_acceleration(q, v, still, "platform")
    _, a = model.constraints.joint_motion(q, rates, np.linalg.solve(J @ joints, w_ddot - drift))
    wanted = model.inverse_dynamics(q, v, a)[u]
    forces = parallel.inverse_dynamics(states, w_dot, w_ddot)
    np.testing.assert_allclose(forces, wanted, atol=1e-8 * np.abs(wanted).max())
