"""Closed chains as networks, without cutting, against Lagrange multipliers in absolute coordinates."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from mechanisms import random_pose
from oracles.planar_linkages import five_bar, four_bar
from polybody.algebra.domains import domain
from polybody.description.records import Body, Description, Joint, Loop, frozen_array
from polybody.errors import InputError
from polybody.formulations.network import Network
from polybody.mechanism import mechanism_from
from polybody.model import Model

CASES = {"four-bar": (four_bar, {0: 1.3}, {0: 2.0}), "five-bar": (five_bar, {0: 1.3, 3: -0.8}, {0: 2.0, 4: -1.5})}


def point(p):
    return (float(p[0]), float(p[1]), 0.0)


def as_network(linkage) -> Network:
    """Bodies with a port for every pin, joined by revolute joints: no joint is special."""
    net = Network("linkage", gravity=(*linkage.gravity, 0.0))
    ports = [{} for _ in linkage.bodies]
    for k, (i, s, j, t) in enumerate(linkage.pins):
        for body, place in ((i, s), (j, t)):
            if body < 0:
                net.ground({f"p{k}": point(place)})
            else:
                ports[body][f"p{k}"] = point(place)
    for b, (mass, inertia, com) in enumerate(linkage.bodies):
        net.body(f"link{b}", mass, point(com), (0.01, 0.01, inertia), ports=ports[b])
    for k, (i, _, j, _) in enumerate(linkage.pins):
        names = ["world" if b < 0 else f"link{b}" for b in (i, j)]
        net.joint(f"pin{k}", "revolute", f"{names[0]}.p{k}", f"{names[1]}.p{k}")
    return net


def joint_values(linkage, values):
    """Relative angles (or rates) of all pins from absolute ones."""
    return {f"pin{k}": values[j] - (values[i] if i >= 0 else 0.0) for k, (i, _, j, _) in enumerate(linkage.pins)}


def state(name):
    make, rates, torques = CASES[name]
    linkage, guess, fixed = make()
    angles = linkage.assemble(guess, fixed)
    speeds = linkage.rates(angles, rates)
    return linkage, angles, speeds, torques


@pytest.mark.parametrize("name", CASES)
def test_accelerations_and_pin_forces_equal_lagrange_multipliers(name):
    linkage, angles, speeds, torques = state(name)
    accelerations, pins = linkage.solve(angles, speeds, torques)
    net = as_network(linkage)
    answer = net.solve(
        joint_values(linkage, angles), joint_values(linkage, speeds[2::3]),
        forces={f"pin{k}": moment for k, moment in torques.items()},
    )
    expected = joint_values(linkage, accelerations[2::3])
    for pin, value in expected.items():
        np.testing.assert_allclose(answer.accelerations[pin], value, rtol=1e-9, atol=1e-9)
    for k, force in enumerate(pins):
        np.testing.assert_allclose(answer.reactions[f"pin{k}"][3:5], force, rtol=1e-9, atol=1e-9)
        assert not answer.indeterminate[f"pin{k}"][3:5].any()
    assert answer.redundant == 3  # a planar loop of spatial pins holds its plane three times over
    assert any(answer.indeterminate[f"pin{k}"][[0, 1, 5]].any() for k in range(len(pins)))


@pytest.mark.parametrize("name", CASES)
def test_inverse_problem_gives_back_the_torques_of_the_forward_problem(name):
    linkage, angles, speeds, torques = state(name)
    accelerations, pins = linkage.solve(angles, speeds, torques)
    net = as_network(linkage)
    drivers = {f"pin{k}": joint_values(linkage, accelerations[2::3])[f"pin{k}"] for k in torques}
    answer = net.solve(joint_values(linkage, angles), joint_values(linkage, speeds[2::3]), accelerations=drivers)
    for k, moment in torques.items():
        np.testing.assert_allclose(answer.forces[f"pin{k}"], moment, rtol=1e-9)
    for k, force in enumerate(pins):
        np.testing.assert_allclose(answer.reactions[f"pin{k}"][3:5], force, rtol=1e-9, atol=1e-9)


def test_five_bar_with_one_motion_and_one_torque_given_is_the_same_motion():
    linkage, angles, speeds, torques = state("five-bar")
    accelerations, _ = linkage.solve(angles, speeds, torques)
    relative = joint_values(linkage, accelerations[2::3])
    answer = as_network(linkage).solve(
        joint_values(linkage, angles), joint_values(linkage, speeds[2::3]),
        forces={"pin4": torques[4]}, accelerations={"pin0": relative["pin0"]},
    )
    np.testing.assert_allclose(answer.forces["pin0"], torques[0], rtol=1e-9)
    for pin, value in relative.items():
        np.testing.assert_allclose(answer.accelerations[pin], value, rtol=1e-9, atol=1e-9)


def as_mechanism(linkage, active=None):
    """The four-bar as a description whose last pin but one is a loop's cut joint."""
    def origin(p):
        T = np.eye(4)
        T[:2, 3] = p
        return frozen_array(T)

    bodies = tuple(Body(f"link{b}", m, frozen_array(point(c)), frozen_array(np.diag([0.01, 0.01, I])))
                   for b, (m, I, c) in enumerate(linkage.bodies))
    joints, loops = [], []
    for k, (i, s, j, t) in enumerate(linkage.pins):
        a = "world" if i < 0 else f"link{i}"
        if np.any(t):
            loops.append(Loop(f"pin{k}", "revolute", a, f"link{j}", origin(s), origin(t)))
        else:
            driven = active is None or k in active
            joints.append(Joint(f"pin{k}", "revolute", a, f"link{j}", origin(s), active=(driven,)))
    return mechanism_from(Description("linkage", frozen_array((*linkage.gravity, 0.0)), bodies, tuple(joints),
                                      loops=tuple(loops)))


@pytest.mark.parametrize("name", CASES)
def test_network_of_a_mechanism_solves_its_loops_without_cutting(name):
    linkage, angles, speeds, torques = state(name)
    accelerations, pins = linkage.solve(angles, speeds, torques)
    mechanism = as_mechanism(linkage)
    tree = [joint.name for joint in mechanism.joints]
    assert mechanism.closures
    q, v = (np.array([joint_values(linkage, x)[n] for n in tree]) for x in (angles, speeds[2::3]))
    tau = np.array([torques.get(int(n[3:]), 0.0) for n in tree])
    answer = pb.network(Model(mechanism)).solve(q, v, forces=tau)
    for k, force in enumerate(pins):
        np.testing.assert_allclose(answer.reactions[f"pin{k}"][3:5], force, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            answer.accelerations[f"pin{k}"], joint_values(linkage, accelerations[2::3])[f"pin{k}"], rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("name", CASES)
def test_reactions_of_a_model_with_loops_are_the_pin_forces_of_lagrange_multipliers(name):
    linkage, angles, speeds, torques = state(name)
    accelerations, pins = linkage.solve(angles, speeds, torques)
    model = Model(as_mechanism(linkage, active=set(torques)))
    q, v, a = (
        np.array([joint_values(linkage, x)[n] for n in model.joint_names])
        for x in (angles, speeds[2::3], accelerations[2::3])
    )
    both = model.reactions(np.stack([q, q]), np.stack([v, v]), np.stack([a, a]))
    turned = model.reactions(q, v, a, axes="joint")
    network = pb.network(model).solve(q, v, forces={f"pin{k}": [t] for k, t in torques.items()}).reactions
    assert set(both) == {f"pin{k}" for k in range(len(pins))}
    for k, force in enumerate(pins):
        for wrench in both[f"pin{k}"]:
            np.testing.assert_allclose(wrench[3:5], force, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(wrench, network[f"pin{k}"], rtol=1e-8, atol=1e-8)
        assert np.linalg.norm(turned[f"pin{k}"]) == pytest.approx(np.linalg.norm(network[f"pin{k}"]), rel=1e-8)


def test_state_off_the_loop_is_refused_with_its_distance_and_its_loop():
    linkage, angles, speeds, _ = state("four-bar")
    net, q, v = as_network(linkage), joint_values(linkage, angles), joint_values(linkage, speeds[2::3])
    del q["pin3"]
    q["pin0"] += 1e-3
    with pytest.raises(InputError, match=r"configuration .* loop that joint 'pin3' closes .*link2.*off by .* m and"):
        net.solve(q, v)
    q["pin0"] -= 1e-3
    v["pin1"] += 0.1
    with pytest.raises(InputError, match=r"velocity .* joint 'pin3' .*m/s and .*rad/s"):
        net.solve(q, v)


def test_closing_joint_given_otherwise_than_its_loop_says_is_refused():
    linkage, angles, speeds, _ = state("four-bar")
    net, q, v = as_network(linkage), joint_values(linkage, angles), joint_values(linkage, speeds[2::3])
    with pytest.raises(InputError, match=r"configuration given for joint 'pin3' is 0.02 .* off what its loop requires"):
        net.solve({**q, "pin3": q["pin3"] + 0.02}, v)
    with pytest.raises(InputError, match=r"velocity given for joint 'pin3' is 0.5 off what its loop requires"):
        net.solve(q, {**v, "pin3": v["pin3"] + 0.5})
    turned = net.solve({**q, "pin3": q["pin3"] + 2 * np.pi}, v)  # the same place, once around
    np.testing.assert_allclose(turned.accelerations["pin0"], net.solve(q, v).accelerations["pin0"], rtol=1e-9)


def test_two_velocity_drivers_of_a_one_freedom_loop_are_over_driven():
    linkage, angles, speeds, _ = state("four-bar")
    net, q, v = as_network(linkage), joint_values(linkage, angles), joint_values(linkage, speeds[2::3])
    with pytest.raises(InputError, match=r"over-driven: the velocity drivers 'pin0', 'pin3' ask for incompatible"):
        net.solve(q, v, accelerations={"pin0": 1.0, "pin3": 40.0})


def test_spring_across_a_loop_pulls_as_its_length_says():
    linkage, angles, speeds, _ = state("four-bar")
    net, q, v = as_network(linkage), joint_values(linkage, angles), joint_values(linkage, speeds[2::3])
    frames, _ = linkage.frames(angles)
    bare = net.solve(q, v)
    net.ground(hook=(0.5, -0.4, 0.0))
    net.spring("spring", "world.hook", "link1.G", stiffness=80.0, length=0.2)
    com = frames[1] + np.array(
        [[np.cos(angles[1]), -np.sin(angles[1])], [np.sin(angles[1]), np.cos(angles[1])]]
    ) @ linkage.bodies[1][2]
    line = com - np.array([0.5, -0.4])
    pull = -80.0 * (np.linalg.norm(line) - 0.2) * line / np.linalg.norm(line)
    M = np.zeros(9)
    M[3:5] = pull
    # the same pull as extra gravity on link1 in the oracle
    C = linkage.jacobian(angles)
    masses = np.concatenate([[m, m, i] for m, i, _ in linkage.bodies])
    K = np.block([[np.diag(masses), C.T], [C, np.zeros((len(C), len(C)))]])
    change = np.linalg.solve(K, np.concatenate([M, np.zeros(len(C))]))
    answer = net.solve(q, v)
    np.testing.assert_allclose(answer.accelerations["pin0"] - bare.accelerations["pin0"], change[2], rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_loops_close_near_a_guess_and_velocities_follow_through_them(name):
    linkage, angles, speeds, torques = state(name)
    net, q, v = as_network(linkage), joint_values(linkage, angles), joint_values(linkage, speeds[2::3])
    held = [f"pin{k}" for k in torques]
    chord = next(f"pin{k}" for k, (_, _, _, t) in enumerate(linkage.pins) if np.any(t))
    tree = [pin for pin in q if pin != chord]
    guess = {pin: q[pin] if pin in held else q[pin] + 0.2 for pin in tree}
    closed = net.close(guess, hold=held)
    for pin in tree:
        np.testing.assert_allclose(closed[pin], q[pin], atol=1e-10)
    found = net.velocities(closed, {pin: v[pin] for pin in held})
    for pin in tree:
        np.testing.assert_allclose(found[pin], v[pin], atol=1e-9)
    answer = net.solve(q, {pin: v[pin] for pin in held})  # the rest of v follows, that of the closing joint too
    np.testing.assert_allclose(answer.accelerations["pin1"], net.solve(q, v).accelerations["pin1"], atol=1e-7)
    if name == "five-bar":
        with pytest.raises(InputError, match="do not follow from the given ones; 1 more must be given"):
            net.velocities(closed, {held[0]: 1.0})


def determinate_four_bar():
    """The four-bar with one pin made a ball and one a cylinder: nothing holds the plane twice."""
    linkage, angles, speeds, torques = state("four-bar")
    net = Network("determinate", gravity=(*linkage.gravity, 0.0))
    plain = as_network(linkage)
    net.ground({name: port.place for name, port in plain.parts.ground.items()})
    for body in plain.parts.bodies.values():
        ports = {name: port.place for name, port in body.ports.items() if name != "G"}
        net.body(body.name, body.mass, body.com, body.inertia, ports=ports)
    for k, joint in enumerate(plain.parts.joints.values()):
        net.joint(joint.name, ("revolute", "spherical", "cylindrical", "revolute")[k], joint.a, joint.b)
    relative, rates = joint_values(linkage, angles), joint_values(linkage, speeds[2::3])
    q = {"pin0": [relative["pin0"]], "pin1": [0, 0, np.sin(relative["pin1"] / 2), np.cos(relative["pin1"] / 2)],
         "pin3": [relative["pin3"]]}
    v = {"pin0": [rates["pin0"]], "pin1": [0, 0, rates["pin1"]], "pin3": [rates["pin3"]]}
    return net, q, v, linkage.solve(angles, speeds, torques), torques


def test_loop_without_redundancy_has_unique_reactions():
    net, q, v, (accelerations, pins), torques = determinate_four_bar()
    answer = net.solve(q, v, forces={"pin0": torques[0]})
    assert answer.redundant == 0
    np.testing.assert_allclose(answer.accelerations["pin0"], accelerations[2], rtol=1e-9)
    for k, force in enumerate(pins):
        np.testing.assert_allclose(answer.reactions[f"pin{k}"][3:5], force, rtol=1e-9, atol=1e-9)


def test_loop_solved_in_many_digits_equals_numbers():
    import mpmath

    net, q, v, _, torques = determinate_four_bar()
    expected = net.solve(q, v, forces={"pin0": torques[0]})
    with mpmath.workdps(40):
        many = net.solve(q, v, forces={"pin0": [torques[0]]}, domain=domain("mpmath"))
        np.testing.assert_allclose(float(many.accelerations["pin0"][0]), expected.accelerations["pin0"], rtol=1e-9)


def spatial_loop(rng):
    """Revolute, spherical, cylindrical, revolute in general position: closed at neutral, then moved."""
    net = Network("spatial", gravity=rng.normal(size=3) * 5)
    frames = [random_pose(rng, 1.0) for _ in range(4)]
    bodies = [random_pose(rng, 1.0) for _ in range(3)]
    net.ground(p0=frames[0], p3=frames[3])
    for k, body in enumerate(bodies):
        root = rng.normal(size=(3, 3)) * 0.2
        ports = {f"p{j}": np.linalg.inv(body) @ frames[j] for j in (k, k + 1)}
        net.body(f"b{k}", 1.0 + k, rng.normal(size=3) * 0.1, root @ root.T + np.eye(3) * 0.05, ports=ports)
    for j, kind in enumerate(("revolute", "spherical", "cylindrical", "revolute")):
        a = "world" if j == 0 else f"b{j - 1}"
        b = "world" if j == 3 else f"b{j}"
        net.joint(f"j{j}", kind, f"{a}.p{j}", f"{b}.p{j}")
    q = net.close({"j0": 0.25, "j1": (0, 0, 0, 1), "j2": (0, 0)}, hold=["j0"])
    return net, q, net.velocities(q, {"j0": 0.8})


@pytest.mark.parametrize("seed", range(3))
def test_spatial_loop_moves_so_that_its_energy_changes_by_the_power_of_its_motor(seed):
    """And the expression graph of the same text gives the same numbers."""
    import casadi

    net, q, v = spatial_loop(np.random.default_rng(seed))
    torque = 1.7
    answer = net.solve(q, v, forces={"j0": torque})
    assert answer.redundant == 0
    power, frames = 0.0, net.situation(q, v)
    for name, body in net.parts.bodies.items():
        centre = frames.port(net, f"{name}.G")
        R = frames.frames[name].R
        J, omega = R @ body.inertia @ R.T, centre.x[3:]
        port = f"p{name[1]}"  # port b of its joint, so fixed in the body
        moved = answer.ports[f"{name}.{port}"]
        r = centre.p - frames.port(net, f"{name}.{port}").p
        a_G = moved[3:] + np.cross(moved[:3], r) + np.cross(omega, np.cross(omega, r))
        power += body.mass * (a_G - net.gravity) @ centre.x[:3] + (J @ moved[:3]) @ omega
    np.testing.assert_allclose(power, torque * v["j0"][0], rtol=1e-9)
    graph = domain("casadi")
    given = [*q.items(), *((name, v[name]) for name in q)]
    columns, names = zip(*(graph.variables(name, len(x)) for name, x in given), strict=True)
    arrays = dict(zip(q, names[: len(q)], strict=True)), dict(zip(q, names[len(q) :], strict=True))
    drawn = net.solve(*arrays, forces={"j0": [torque]}, domain=graph)
    outputs = [graph.column(drawn.accelerations["j0"]), graph.column(drawn.reactions["j2"])]
    a, w = casadi.Function("f", list(columns), outputs)(*(x for _, x in given))
    np.testing.assert_allclose(np.array(a).ravel(), answer.accelerations["j0"], rtol=1e-8)
    size = np.abs(answer.reactions["j2"]).max()
    np.testing.assert_allclose(np.array(w).ravel(), answer.reactions["j2"], atol=1e-8 * size)


def geared_four_bar() -> pb.Model:
    """A parallelogram whose rocker drives a pointer by a gear, on the crank's own axis."""
    build = pb.Builder("geared four-bar", gravity=(0, -9.81, 0))
    for name, length in (("crank", 1.0), ("coupler", 2.0), ("rocker", 1.0), ("pointer", 0.5)):
        moment = length**2 / 12
        build.body(name, 1.0, com=(length / 2, 0, 0), inertia=(0.01, moment, moment))

    def at(x):
        T = np.eye(4)
        T[0, 3] = x
        return T

    build.joint("crank", "revolute", "world", "crank", stiffness=2.0, damping=0.3)
    build.joint("coupler", "revolute", "crank", "coupler", at(1), active=False)
    build.joint("rocker", "revolute", "world", "rocker", at(2), active=False)
    build.joint("pointer", "revolute", "world", "pointer", at(-1), damping=0.2)
    build.loop("pin", "revolute", "coupler", "rocker", at(2), at(1))
    build.couple("pointer", "rocker", -2.5, 0.1)
    return build.model()


def test_followers_in_loops_are_gears_of_the_network():
    model = geared_four_bar()
    assert list(model.followers) == ["pointer"]
    q = model.assemble([0.7, -0.7, 0.7])
    v = model.assemble_velocity(q, [1.3, -1.3, 1.3])
    tau = np.array([1.1, 0.0, -0.4])
    wanted = model.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau, formulation="network"), wanted, rtol=1e-9, atol=1e-9)
    answer = pb.network(model).solve(q, v, forces=tau)
    np.testing.assert_allclose(answer.accelerations["pointer"], -2.5 * wanted[2], rtol=1e-9)
