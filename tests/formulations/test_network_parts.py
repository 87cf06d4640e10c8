"""Networks of parts: any mix of given motions and forces, multiports, motors, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms import random_tree
from polybody.algebra.domains import domain
from polybody.errors import InputError, PolybodyError
from polybody.formulations import denoc, network
from polybody.formulations.network import Network, network_of
from polybody.formulations.network.reactions import reaction_names
from polybody.mechanism import mechanism_from


def scale(*arrays) -> float:
    return 1.0 + max(float(np.abs(x).max(initial=0.0)) for x in arrays)


def tree(seed, n=4, **options):
    rng = np.random.default_rng(seed)
    mechanism = mechanism_from(random_tree(rng, n, **options))
    q = np.concatenate([j.model.random(rng) for j in mechanism.joints])
    v, a = rng.normal(size=(2, mechanism.nv))
    return mechanism, q, v, a, rng


@pytest.mark.parametrize("seed", range(6))
def test_circuits_cutsets_and_terminal_equations_give_denoc_and_every_reaction(seed):
    mechanism, q, v, a, _ = tree(seed, 5, fixed=0)
    tau = denoc.inverse_dynamics(mechanism, q, v, a)
    net = network_of(mechanism)
    answer = net.solve(q, v, forces=tau)
    for joint in mechanism.joints:
        np.testing.assert_allclose(answer.accelerations[joint.name], a[joint.v], atol=1e-10 * scale(a, tau))
    reactions = network.reactions(mechanism, q, v, a)
    for name, row in zip(reaction_names(mechanism), reactions, strict=True):
        np.testing.assert_allclose(answer.reactions[name], row, atol=1e-10 * scale(reactions))


@pytest.mark.parametrize("seed", range(6))
def test_mixed_problem_equals_denoc(seed):
    """Velocity at one joint, force at the others: M_ff a_f = τ_f − b_f − M_fg a_g, τ_g from the rest."""
    mechanism, q, v, a, rng = tree(seed, 5)
    given = mechanism.joints[int(rng.integers(len(mechanism.joints)))]
    mask = np.zeros(mechanism.nv, dtype=bool)
    mask[given.v] = True
    tau = rng.normal(size=mechanism.nv)
    M = denoc.mass_matrix(mechanism, q)
    rest = denoc.bias_forces(mechanism, q, v) - denoc.passive_forces(mechanism, q, v)
    full = np.where(mask, a, 0.0)
    full[~mask] = np.linalg.solve(M[np.ix_(~mask, ~mask)], (tau - rest - M @ full)[~mask])
    expected = denoc.inverse_dynamics(mechanism, q, v, full)
    forces = {j.name: tau[j.v] for j in mechanism.joints if j is not given}
    answer = network_of(mechanism).solve(q, v, forces=forces, accelerations={given.name: a[given.v]})
    for joint in mechanism.joints:
        np.testing.assert_allclose(answer.accelerations[joint.name], full[joint.v], atol=1e-9 * scale(full, expected))
        np.testing.assert_allclose(answer.forces[joint.name], expected[joint.v], atol=1e-9 * scale(full, expected))


def arm(links, base="floating", name="arm", m=None, l=None):
    """Links k of a spatial arm with skew axes; `base` holds the first one to the ground."""
    net = Network(name, gravity=(0, 0, -9.81))
    net.ground(base=(0, 0, 0))
    axes = {1: (0, 0, 1), 2: (0, 1, 0), 3: (0.6, 0.8, 0), 4: (0, 1, 0)}
    before = "world.base"
    for k in links:
        length, mass = (0.5, 1.0 + 0.3 * k) if l is None else (l[k - 1], m[k - 1])
        ports = {"in": (0, 0, 0), "root": (0, 0, 0), "out": (length, 0, 0)}
        net.body(f"l{k}", mass, (length / 2, 0, 0), (mass / 50, mass / 30, mass / 40), ports=ports)
        kind = base if k == links[0] else "revolute"
        net.joint(f"j{k}" if kind == "revolute" else "free", kind, before, f"l{k}.in", axes[k])
        before = f"l{k}.out"
    return net, axes


def state_of_half(whole_situation, body):
    """Floating-joint coordinates that put a body where the whole arm has it."""
    from polybody.algebra.rotations import matrix_quaternion

    frame = whole_situation.frames[body]
    q = np.concatenate([frame.p, matrix_quaternion(frame.R)])
    return q, np.concatenate([frame.R.T @ frame.x[3:], frame.R.T @ frame.x[:3]])


def test_arm_split_into_two_multiports_and_reconnected_equals_the_whole():
    rng = np.random.default_rng(1)
    q, v, tau = rng.normal(size=(3, 4))
    names = [f"j{k}" for k in (1, 2, 3, 4)]
    whole, axes = arm((1, 2, 3, 4), "revolute")
    expected = whole.solve(q, v, forces=tau)
    one, _ = arm((1, 2), "revolute", "one")
    two, _ = arm((3, 4), "floating", "two")
    free_q, free_v = state_of_half(whole.situation(q, v), "l3")
    joined = Network("joined")
    joined.add(one.multiport(["l2.out"], q[:2], v[:2], forces=tau[:2]))
    joined.add(two.multiport(["l3.root"], {"free": free_q, "j4": q[3]}, {"free": free_v, "j4": v[3]},
                             forces={"j4": tau[3]}))
    joined.joint("j3", "revolute", "one.l2.out", "two.l3.root", axes[3])
    answer = joined.solve({"j3": q[2]}, {"j3": v[2]}, forces={"j3": tau[2]})
    np.testing.assert_allclose(answer.accelerations["j3"], expected.accelerations["j3"], rtol=1e-9)
    np.testing.assert_allclose(answer.reactions["j3"], expected.reactions["j3"], atol=1e-9)
    # what the port gives back moves the inside of each half as in the whole
    one.force("hand", "l2.out")
    inside = one.solve(q[:2], v[:2], forces=tau[:2], wrenches={"hand": -answer.reactions["j3"]})
    for name in names[:2]:
        np.testing.assert_allclose(inside.accelerations[name], expected.accelerations[name], rtol=1e-8)


def test_symbolic_multiport_is_the_numeric_one():
    import sympy as sp

    m, l, g = sp.symbols("m1:3", positive=True), sp.symbols("l1:3", positive=True), sp.Symbol("g")
    net, _ = arm((1, 2), "revolute", "half", m, l)
    net.gravity = np.array([0, 0, -g], dtype=object)
    q, v = sp.symbols("q1:3"), sp.symbols("v1:3")
    reduced = net.multiport(["l2.out"], np.array(q, dtype=object), np.array(v, dtype=object), domain=domain("sympy"))
    values = {**dict(zip(m, (1.2, 0.7), strict=True)), **dict(zip(l, (0.4, 0.6), strict=True)), g: 9.81,
              **dict(zip(q, (0.3, -0.8), strict=True)), **dict(zip(v, (1.1, 0.5), strict=True))}
    evaluate = sp.lambdify(list(values), [*reduced.A.ravel(), *reduced.b], modules="math", cse=True)
    symbolic = np.array(evaluate(*values.values()), dtype=float)
    numbers, _ = arm((1, 2), "revolute", "half", (1.2, 0.7), (0.4, 0.6))
    numeric = numbers.multiport(["l2.out"], (0.3, -0.8), (1.1, 0.5))
    np.testing.assert_allclose(symbolic, np.concatenate([numeric.A.ravel(), numeric.b]), atol=1e-10)


def test_multiport_as_an_expression_graph_is_the_numeric_one():
    import casadi

    graph = domain("casadi")
    net, _ = arm((1, 2), "revolute", "half")
    (q_column, q), (v_column, v) = graph.variables("q", 2), graph.variables("v", 2)
    reduced = net.multiport(["l2.out"], q, v, domain=graph)
    answer = casadi.Function("f", [q_column, v_column], [graph.column(reduced.A), graph.column(reduced.b)])
    numeric = net.multiport(["l2.out"], (0.3, -0.8), (1.1, 0.5))
    A, b = answer([0.3, -0.8], [1.1, 0.5])
    np.testing.assert_allclose(np.array(A).reshape(6, 6), numeric.A, atol=1e-10)
    np.testing.assert_allclose(np.array(b).ravel(), numeric.b, atol=1e-10)


def test_multiport_is_the_inverse_operational_inertia():
    """A = J M⁻¹ Jᵀ, symmetric; the impedance of a free body is its own inertia (50)."""
    net, _ = arm((3, 4), "floating", "two")
    q = {"free": (0.1, 0.2, 0.3, 0.5, 0.5, -0.5, 0.5), "j4": 0.3}
    v = {"free": (0.1, 0.2, 0.3, 0.5, 0.5, -0.5), "j4": 0.3}
    two = net.multiport(["l3.root"], q, v)
    np.testing.assert_allclose(two.A, two.A.T, atol=1e-12)
    P, p = two.impedance()
    np.testing.assert_allclose(two.A @ P, np.eye(6), atol=1e-9)
    np.testing.assert_allclose(two.A @ p + two.b, 0, atol=1e-9)


def test_ports_that_are_not_independent_are_named():
    net, _ = arm((1, 2), "revolute")
    with pytest.raises(InputError, match=r"ports 'l2.out' are not independent"):
        net.multiport(["l2.out"], (0.3, 0.2), (0, 0)).impedance()
    with pytest.raises(InputError, match=r"ports 'l2.out', 'l2.root' are not independent"):
        net.hybrid(["l2.out", "l2.root"], across=["l2.out", "l2.root"], q=(0.3, 0.2), v=(0, 0))
    with pytest.raises(InputError, match="named twice"):
        net.multiport(["l2.out", "l2.out"], (0.3, 0.2), (0, 0))


def pendulum(**joint):
    net = Network("pendulum", gravity=(0, -9.81, 0))
    net.ground(pin=(0, 0, 0))
    net.body("rod", 2.0, (0.4, 0, 0), (0, 0.05, 0.05), ports={"pin": (0, 0, 0), "tip": (0.8, 0, 0)})
    net.joint("hinge", "revolute", "world.pin", "rod.pin", **joint)
    return net


def test_motor_winding_is_a_branch_of_the_network():
    """u = R i + k N ω and (J + N² J_r) a = k N i − gravity torque, solved together."""
    net, angle, speed = pendulum(), 0.4, 1.5
    net.motor("motor", "hinge", ("p", "n"), torque_constant=0.05, gear=80, resistance=1.2, rotor_inertia=3e-5)
    net.voltage("battery", "p", "n", 24.0)
    answer = net.solve({"hinge": angle}, {"hinge": speed})
    i = (24.0 - 0.05 * 80 * speed) / 1.2
    J = 0.05 + 2 * 0.4**2 + 80**2 * 3e-5
    a = (0.05 * 80 * i - 2 * 9.81 * 0.4 * np.cos(angle)) / J
    np.testing.assert_allclose(answer.currents["motor"], i, rtol=1e-12)
    np.testing.assert_allclose(answer.currents["battery"], -i, rtol=1e-12)
    np.testing.assert_allclose(answer.accelerations["hinge"], a, rtol=1e-11)


def test_winding_with_inductance_keeps_its_current_and_tells_its_rate():
    net = pendulum()
    net.motor("motor", "hinge", ("p", "n"), torque_constant=0.05, gear=80, resistance=1.2, inductance=2e-3)
    net.resistor("cable", "s", "p", 0.3)
    net.voltage("battery", "s", "n", 24.0)
    answer = net.solve({"hinge": 0.0}, {"hinge": 1.5}, currents={"motor": 3.0})
    np.testing.assert_allclose(answer.current_rates["motor"], (24 - 1.5 * 3 - 0.05 * 80 * 1.5) / 2e-3, rtol=1e-12)
    J = 0.05 + 2 * 0.4**2
    np.testing.assert_allclose(answer.accelerations["hinge"], (0.05 * 80 * 3 - 2 * 9.81 * 0.4) / J, rtol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_motors_of_the_mechanism_are_branches_of_its_network(seed):
    """Against the states of the motor-driven model: gears, transmissions, rotors, bearings, back-EMF."""
    from polybody.model import Model

    mechanism, q, v, _, rng = tree(seed, 5, kinds=("revolute", "prismatic", "screw", "universal"), motors=0.9)
    motors = mechanism.motors
    assert len(motors) >= 1
    currents, volts = rng.normal(size=(2, len(motors)))
    tau = rng.normal(size=mechanism.nv)
    a, rates = Model(mechanism).motors.dynamics(q, v, currents, volts, tau)
    net = network_of(mechanism, powered=True)
    answer = net.solve(
        q, v, forces=tau, currents=dict(zip(motors.names, currents, strict=True)),
        sources={f"{name} supply": u for name, u in zip(motors.names, volts, strict=True)},
    )
    for joint in mechanism.joints:
        np.testing.assert_allclose(answer.accelerations[joint.name], a[joint.v], atol=1e-9 * scale(a))
    np.testing.assert_allclose([answer.current_rates[name] for name in motors.names], rates, atol=1e-9 * scale(rates))
    drivers = {j.name: a[j.v] for j in mechanism.joints}
    back = network_of(mechanism).solve(q, v, accelerations=drivers)  # windings open: what drivers alone must exert
    expected = denoc.inverse_dynamics(mechanism, q, v, a)
    for joint in mechanism.joints:
        np.testing.assert_allclose(back.forces[joint.name], expected[joint.v], atol=1e-9 * scale(expected))


def test_joint_spring_damper_and_point_damper_act_as_they_should():
    net = pendulum(stiffness=7.0, damping=0.3, rest=0.1, armature=0.02)
    net.ground(post=(0.8, -1.0, 0))
    net.damper("damper", "world.post", "rod.tip", 5.0)
    angle, speed = 0.5, -0.7
    answer = net.solve({"hinge": angle}, {"hinge": speed})
    tip = 0.8 * np.array([np.cos(angle), np.sin(angle)])
    velocity = speed * np.array([-tip[1], tip[0]])
    line = tip - np.array([0.8, -1.0])
    u = line / np.linalg.norm(line)
    moment = np.cross([*tip, 0], [*(-5.0 * (u @ velocity) * u), 0])[2]
    J = 0.05 + 2 * 0.4**2 + 0.02
    a = (-7 * (angle - 0.1) - 0.3 * speed - 2 * 9.81 * 0.4 * np.cos(angle) + moment) / J
    np.testing.assert_allclose(answer.accelerations["hinge"], a, rtol=1e-11)


def test_body_moved_by_a_velocity_driver_tells_the_wrench_that_moves_it():
    net = Network("shaker", gravity=(0, 0, -9.81))
    net.body("table", 3.0, (0, 0, 0.1), (1, 1, 1), ports={"foot": (0, 0, 0)})
    net.motion("shaker", "table.foot")
    answer = net.solve({"shaker": (0, 0, 0, 0, 0, 0, 1)}, {"shaker": np.zeros(6)},
                       accelerations={"shaker": (0, 0, 0, 2.0, 0, 0)})
    np.testing.assert_allclose(answer.reactions["shaker"], [0, 0.6, 0, 6.0, 0, 3 * 9.81], atol=1e-12)


def test_tree_obeys_the_topological_conditions():
    mechanism, *_ = tree(2, 6)
    net = network_of(mechanism)
    graph = net.graph(driven=[mechanism.joints[3].name])
    in_tree = {graph.edges[i].name for i in graph.tree}
    assert mechanism.joints[3].name in in_tree
    for body in net.parts.bodies.values():
        assert sum(port.full not in in_tree for port in body.ports.values()) == 1
    assert not any(graph.edges[i].kind in ("spring", "force") for i in graph.tree)
    np.testing.assert_array_equal(graph.circuit_matrix() @ graph.cutset_matrix().T, 0)
    np.testing.assert_array_equal(np.abs(graph.incidence @ graph.circuit_matrix().T), 0)
    import networkx as nx

    picture = graph.networkx()
    kept = [(u, v) for u, v, data in picture.edges(data=True) if data["tree"]]
    assert nx.is_tree(nx.Graph(kept))


class TestRefusals:
    def test_port_connected_twice(self):
        net = pendulum()
        net.ground(other=(1, 0, 0))
        with pytest.raises(InputError, match=r"port 'rod.pin' is connected twice, by 'hinge' and 'again'"):
            net.joint("again", "revolute", "world.other", "rod.pin")

    def test_component_not_connected(self):
        net = pendulum()
        net.body("loose", 1.0, ports={"p": (0, 0, 0)})
        with pytest.raises(InputError, match=r"body 'loose' is not connected: connect one of its ports 'loose.p'"):
            net.solve({"hinge": 0.0})

    def test_floating_body(self):
        net = pendulum()
        net.body("one", 1.0, ports={"p": (0, 0, 0), "q": (1, 0, 0)})
        net.body("two", 1.0, ports={"p": (0, 0, 0)})
        net.joint("between", "revolute", "one.p", "two.p")
        with pytest.raises(InputError, match=r"no formulation tree: 'one', 'two' are floating"):
            net.graph()

    def test_loop_of_velocity_drivers(self):
        net = pendulum()
        net.motion("shaker", "rod.tip")
        with pytest.raises(InputError, match=r"over-driven, the velocity drivers .*'hinge'.* close a loop through"):
            net.graph(driven=["hinge"])

    def test_massless_free_body(self):
        net = pendulum()
        net.body("bare", ports={"p": (0, 0, 0)})
        net.joint("idle", "revolute", "rod.tip", "bare.p")
        with pytest.raises(PolybodyError, match=r"floating: the acceleration of joint 'idle' is not determined"):
            net.solve({"hinge": 0.0, "idle": 0.0})

    def test_voltage_sources_in_a_loop_and_current_without_return(self):
        net = pendulum()
        net.voltage("a", "p", "n", 1.0)
        net.voltage("b", "p", "n", 2.0)
        with pytest.raises(InputError, match="voltage source 'b' closes a loop of voltage sources"):
            net.graph()
        net = pendulum()
        net.current("source", "p", "n", 1.0)
        with pytest.raises(InputError, match="current of 'source' has no return path"):
            net.graph()

    def test_names_sizes_and_states(self):
        net = pendulum()
        with pytest.raises(InputError, match=r"'rod.tp', which does not exist \(did you mean 'rod.tip'"):
            net.force("push", "rod.tp")
        with pytest.raises(InputError, match="both ends at port"):
            net.spring("s", "rod.tip", "rod.tip", 1.0)
        with pytest.raises(InputError, match="two ports of 'rod', which is rigid"):
            net.spring("s", "rod.tip", "rod.G", 1.0)
        with pytest.raises(InputError, match="no configuration is given for joint 'hinge'"):
            net.solve({}, {"hinge": 0.0})
        with pytest.raises(InputError, match=r"q of joint 'hinge' has shape \(2,\), expected \(1,\)"):
            net.solve({"hinge": (0.0, 1.0)})
        with pytest.raises(InputError, match=r"q of joint 'hinge' is \[nan\], expected finite"):
            net.solve({"hinge": np.nan})
        with pytest.raises(InputError, match=r"its mass is -1.0, expected"):
            net.body("anti", -1.0, ports={"p": (0, 0, 0)})
        with pytest.raises(InputError, match="expected three numbers that are not all zero"):
            net.joint("flat", "revolute", "world.pin", "rod.tip", axis=(0, 0, 0))
        with pytest.raises(InputError, match="the name 'rod' is taken"):
            net.body("rod", ports={"p": (0, 0, 0)})


def closed_loop():
    """A square of side 1 whose fourth side is the ground."""
    net = Network("square", gravity=(0, -9.81, 0))
    net.ground(o=(0, 0, 0), e=(1, 0, 0))
    for k in range(3):
        net.body(f"b{k}", 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1), ports={"in": (0, 0, 0), "out": (1, 0, 0)})
    net.joint("p0", "revolute", "world.o", "b0.in")
    net.joint("p1", "revolute", "b0.out", "b1.in")
    net.joint("p2", "revolute", "b1.out", "b2.out")
    net.joint("p3", "revolute", "world.e", "b2.in")
    return net


def test_closed_form_refuses_loops_by_name():
    with pytest.raises(InputError, match=r"'p2' makes this network another|'p3' makes this network another"):
        closed_loop().closed_form(
            {"p0": np.pi / 2, "p1": -np.pi / 2, "p3": np.pi / 2}, {"p0": 0.0, "p1": 0.0, "p3": 0.0}
        )
