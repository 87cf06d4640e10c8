"""Transfer of coordinates: independent computations of the same motion, there and back, and what goes wrong."""

from __future__ import annotations

import numpy as np
import pytest

import polybody as pb
from mechanisms import random_tree
from polybody.coordinates.arrays import dependent_coefficients, quadratic, reversed_coefficients
from polybody.coordinates.spaces import JointSpace
from polybody.mechanism import mechanism_from
from polybody.quantities.frames import find_frame

PUMA_DH = [
    {"alpha": np.pi / 2, "mass": 1.0, "com": (0, 0, 0), "inertia": (0.2, 0.35, 0.2)},
    {"a": 0.4318, "mass": 17.4, "com": (-0.3638, 0.006, 0.2275), "inertia": (0.13, 0.524, 0.539)},
    {"a": 0.0203, "d": 0.15005, "alpha": -np.pi / 2, "mass": 4.8, "com": (-0.0203, -0.0141, 0.07),
     "inertia": (0.066, 0.076, 0.0125)},
    {"d": 0.4318, "alpha": np.pi / 2, "mass": 0.82, "com": (0, 0.019, 0), "inertia": (1.8e-3, 1.3e-3, 1.8e-3)},
    {"alpha": -np.pi / 2, "mass": 0.34, "inertia": (0.3e-3, 0.4e-3, 0.3e-3)},
    {"mass": 0.09, "com": (0, 0, 0.032), "inertia": (0.15e-3, 0.15e-3, 0.04e-3)},
]


@pytest.fixture(scope="module")
def puma():
    return pb.from_dh(PUMA_DH, name="puma560")


@pytest.fixture(scope="module")
def state(puma):
    rng = np.random.default_rng(3)
    q = np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5])
    return q, *rng.normal(size=(3, 6))


def scale(*arrays) -> float:
    return 1.0 + max(float(np.abs(x).max(initial=0.0)) for x in arrays)


def test_task_space_inertia_of_the_puma_is_the_operational_space_inertia(puma, state):
    q = state[0]
    task = pb.transfer(puma, pb.Pose("dh_6"))
    J, M = puma.jacobian(q, "dh_6"), puma.mass_matrix(q)
    Lambda = np.linalg.inv(J @ np.linalg.solve(M, J.T))
    np.testing.assert_allclose(task.mass_matrix(q), Lambda, atol=1e-10 * scale(Lambda))
    # and without mass matrix or its inverse: what unit wrenches on the hand do to its acceleration, by the recursion
    rest, hold = np.zeros(6), puma.gravity_forces(q)
    pushed = [puma.forward_dynamics(q, rest, hold, wrenches={"dh_6": w}, formulation="denoc") for w in np.eye(6)]
    np.testing.assert_allclose(task.mass_matrix(q) @ J @ np.transpose(pushed), np.eye(6), atol=1e-10 * scale(Lambda))


def test_transferred_dynamics_move_the_hand_as_the_joints_do(puma, state):
    q, v, a, _ = state
    task = pb.transfer(puma, [pb.Position("dh_6"), pb.Orientation("dh_6")])
    found = puma.coefficients.influence(q, "dh_6", 2)
    order = [3, 4, 5, 0, 1, 2]
    u_dot, u_ddot = found.velocity(v)[order], found.acceleration(v, a)[order]
    T_u = task.inverse_dynamics(q, u_dot, u_ddot)
    np.testing.assert_allclose(puma.jacobian(q, "dh_6")[order].T @ T_u, puma.inverse_dynamics(q, v, a), atol=1e-9)
    np.testing.assert_allclose(task.forward_dynamics(q, u_dot, T_u), u_ddot, atol=1e-9 * scale(u_ddot))
    np.testing.assert_allclose(task.dynamics(q, u_dot).effort(u_dot, u_ddot), T_u, atol=1e-9 * scale(T_u))
    np.testing.assert_allclose(task.velocity(q, u_dot), v, atol=1e-11)
    np.testing.assert_allclose(task.acceleration(q, u_dot, u_ddot), a, atol=1e-10)


def test_joint_jerk_follows_from_the_hands_jerk(puma, state):
    q, v, a, jerk = state
    task = pb.transfer(puma, pb.Pose("dh_6"))
    found = puma.coefficients.influence(q, "dh_6", 3)
    u = found.velocity(v), found.acceleration(v, a), found.jerk(v, a, jerk)
    np.testing.assert_allclose(task.jerk(q, *u), jerk, atol=1e-9 * scale(jerk))


def test_there_and_back_returns_the_model(puma, state):
    q, v, _, _ = state
    task = pb.transfer(puma, pb.Pose("dh_6"))
    back = pb.transfer(task, pb.Joints(*puma.joint_names))
    original = JointSpace(puma).dynamics(q, v)
    returned = back.dynamics(q, v)
    for name in ("I", "P", "load"):
        expected = getattr(original, name)
        np.testing.assert_allclose(getattr(returned, name), expected, atol=1e-10 * scale(expected))
    np.testing.assert_allclose(back.inverse_dynamics(q, v, v), puma.inverse_dynamics(q, v, v), atol=1e-9)


def test_dependent_parameters_are_those_of_a_direct_computation(puma, state):
    """The elbow's motion over the hand's: (3-22), (3-26) against velocities and accelerations."""
    q, v, a, _ = state
    task = pb.transfer(puma, pb.Pose("dh_6"))
    G, H = task.parameter(q, pb.Position("dh_3"))
    hand, elbow = puma.coefficients.influence(q, "dh_6", 2), puma.coefficients.influence(q, "dh_3", 2)
    u_dot, u_ddot = hand.velocity(v), hand.acceleration(v, a)
    np.testing.assert_allclose(G @ u_dot, elbow.velocity(v)[3:], atol=1e-11)
    np.testing.assert_allclose(
        G @ u_ddot + quadratic(u_dot, H, u_dot), elbow.acceleration(v, a)[3:], atol=1e-10 * scale(u_ddot))
    joints = dependent_coefficients(np.eye(6), np.zeros((6, 6, 6)), np.linalg.inv(hand.G), hand.H)
    direct = reversed_coefficients(np.linalg.inv(hand.G), hand.H)
    np.testing.assert_allclose(joints[1], direct[1], atol=1e-10 * scale(direct[1]))


def test_batches_answer_state_by_state(puma, state):
    q, v, a, _ = state
    task = pb.transfer(puma, pb.Pose("dh_6"))
    many = np.stack([q, q + 0.1])
    both = task.inverse_dynamics(many, v, a)
    np.testing.assert_allclose(both[1], task.inverse_dynamics(many[1], v, a), atol=1e-9 * scale(both))


def test_any_function_of_the_configuration_is_a_coordinate():
    """Polar coordinates of a planar arm's tip, with quasi-velocities of a spherical joint below."""
    build = pb.Builder("two", gravity=(0, -9.81, 0))
    for k in range(2):
        build.body(f"link{k}", 1 + k, (0.3, 0, 0), (0.01, 0.05, 0.05))
        build.joint(f"j{k}", "revolute", f"link{k - 1}" if k else "world", f"link{k}", (0.6 * k, 0, 0))
    build.frame("tip", "link1", (0.6, 0, 0))
    model = build.model()

    def polar(q, domain):
        c = domain.const(0.6)
        x = c * domain.cos(q[0]) + c * domain.cos(q[0] + q[1])
        y = c * domain.sin(q[0]) + c * domain.sin(q[0] + q[1])
        return [domain.sqrt(x * x + y * y), domain.atan2(y, x)]

    task = pb.transfer(model, pb.Function(polar, 2, "polar"))
    q, v, a = np.array([0.4, 0.9]), np.array([0.7, -1.1]), np.array([0.3, 0.2])
    tip = model.coefficients.influence(q, "tip", 2)
    p, p_dot, p_ddot = model.pose(q, "tip")[:2, 3], tip.velocity(v)[3:5], tip.acceleration(v, a)[3:5]
    r = np.linalg.norm(p)
    radial, across = p / r, np.array([-p[1], p[0]]) / r
    r_dot, turn = radial @ p_dot, across @ p_dot / r
    expected = np.array([radial @ p_ddot + r * turn**2, (across @ p_ddot - 2 * r_dot * turn) / r])
    G, H, D = task.coefficients(q, 3)
    np.testing.assert_allclose(G @ v, [r_dot, turn], atol=1e-12)
    np.testing.assert_allclose(G @ a + quadratic(v, H, v), expected, atol=1e-12)
    np.testing.assert_allclose(task.acceleration(q, G @ v, expected), a, atol=1e-12)
    np.testing.assert_allclose(D, np.swapaxes(D, 1, 2), atol=1e-12)  # a true function: derivatives commute
    T_u = task.inverse_dynamics(q, G @ v, expected)
    np.testing.assert_allclose(task.forward_dynamics(q, G @ v, T_u), expected, atol=1e-11)


def test_function_coefficients_of_quasi_velocities_equal_the_frames_own():
    mechanism = mechanism_from(random_tree(5, 2, ("spherical", "revolute"), branching=0, springs=0, fixed=0))
    model = pb.Model(mechanism)
    rng = np.random.default_rng(1)
    q = np.concatenate([j.model.random(rng) for j in mechanism.joints])
    from polybody.mechanism import kinematics

    frame = find_frame(model.mechanism, "body1")

    def position(q, domain):
        return kinematics.frame_pose(frame, kinematics.body_poses(mechanism, q, domain=domain), domain=domain)[1]

    found = pb.Function(position, 3).coefficients(model, q, 3)
    direct = pb.Position("body1").coefficients(model, q, 3)
    for ours, theirs in zip(found, direct, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("coordinates", [pb.Pose("dh_6"), pb.Position("dh_4")])
def test_linearised_model_in_new_coordinates_equals_differences(coordinates):
    """Vary q and u̇, and look at δu = G δφ and u̇ of the moved motion, over a short time."""
    model = pb.from_dh(PUMA_DH if coordinates == pb.Pose("dh_6") else PUMA_DH[:4], name="puma")
    if coordinates != pb.Pose("dh_6"):
        coordinates = [coordinates, model.joint_names[3]]
    n = model.nv
    rng = np.random.default_rng(0)
    q, v, tau = np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5])[:n], *rng.normal(size=(2, n))
    task = pb.transfer(model, coordinates)

    def G(q):
        return task.coefficients(q, 1)[0]

    u_dot = G(q) @ v
    system = task.linearize(q, u_dot, tau)
    h, eps = 1e-4, 1e-5

    def nominal(s):
        a = model.forward_dynamics(q, v, tau)
        return q + v * s * h + a * (s * h) ** 2 / 2

    def states(delta, dv):
        """d/dt of (δu, u̇) for a motion that starts at q + delta, v + dv."""
        moved, velocity = q + delta, v + dv
        a = model.forward_dynamics(moved, velocity, tau)
        x = [np.concatenate([
            G(nominal(s)) @ (moved + velocity * s * h + a * (s * h) ** 2 / 2 - nominal(s)),
            G(moved + velocity * s * h + a * (s * h) ** 2 / 2) @ (velocity + a * s * h),
        ]) for s in (-1, 1)]
        return (x[1] - x[0]) / (2 * h)

    columns = np.zeros((2 * n, 2 * n))
    inverse = np.linalg.inv(np.block([
        [G(q), np.zeros((n, n))], [np.einsum("iln,n->il", task.coefficients(q, 2)[1], v), G(q)]]))
    for k in range(2 * n):
        x = inverse[:, k] * eps
        columns[:, k] = (states(x[:n], x[n:]) - states(-x[:n], -x[n:])) / (2 * eps)
    np.testing.assert_allclose(system.A, columns, atol=2e-5 * scale(columns))
    np.testing.assert_allclose(system.B[n:], G(q) @ np.linalg.inv(model.mass_matrix(q)), atol=1e-8 * scale(system.B))


def test_singular_coordinates_say_what_is_lost_and_damp_where_asked(puma):
    q = np.array([0.3, 0.7, -0.9, 0.4, 0.0, -0.5])  # the wrist is straight: joints 4 and 6 turn about one axis
    task = pb.transfer(puma, pb.Pose("dh_6"))
    with pytest.raises(pb.SingularTransferError, match="condition number") as caught:
        task.mass_matrix(q)
    error = caught.value
    assert error.condition > 1e7
    np.testing.assert_allclose(np.abs(error.unseen[[3, 5]]), np.sqrt(0.5), atol=1e-6)
    np.testing.assert_allclose(puma.jacobian(q, "dh_6").T @ error.lost, 0, atol=1e-9)
    damped = pb.transfer(puma, pb.Pose("dh_6"), damping=0.1)
    assert np.isfinite(damped.mass_matrix(q)).all()


def test_coordinate_sets_that_do_not_fit_are_refused(puma):
    with pytest.raises(pb.InputError, match="3 missing"):
        pb.transfer(puma, pb.Position("dh_6"))
    with pytest.raises(pb.InputError, match="1 too many"):
        pb.transfer(puma, [pb.Pose("dh_6"), puma.joint_names[0]])
    with pytest.raises(pb.InputError, match=r"dh_6\.x.*depend on each other"):
        pb.transfer(puma, [pb.Position("dh_6"), pb.Position("dh_6", "x"), *puma.joint_names[:2]])
    with pytest.raises(pb.InputError, match="did you mean 'dh_6'"):
        pb.transfer(puma, pb.Pose("dh6"))
    with pytest.raises(pb.InputError, match="coordinates must be"):
        pb.transfer(puma, [3])
    with pytest.raises(pb.InputError, match="axes is 'xx'"):
        pb.transfer(puma, pb.Position("dh_6", "xx"))


@pytest.fixture(scope="module")
def seven():
    rows = [{"alpha": (-1) ** k * np.pi / 2, "d": 0.3 * (k % 2), "mass": 2.0, "com": (0, 0.02, 0.1),
             "inertia": (0.02, 0.02, 0.01)} for k in range(7)]
    return pb.from_dh(rows, name="seven")


@pytest.mark.parametrize("criterion", ["energy", "least squares", np.arange(1.0, 8.0)])
def test_redundant_motion_is_the_least_of_all_with_the_same_hand_motion(seven, criterion):
    rng = np.random.default_rng(2)
    q, u_dot = rng.normal(size=7), rng.normal(size=6)
    task = pb.redundant(seven, pb.Pose("dh_7"), criterion)
    v, W = task.velocity(q, u_dot), task.weight(q)
    J = seven.jacobian(q, "dh_7")
    np.testing.assert_allclose(J @ v, u_dot, atol=1e-10)
    null = np.linalg.svd(J)[2][-1]
    np.testing.assert_allclose(null @ W @ v, 0, atol=1e-10 * scale(W @ v))  # stationary along the self-motion
    np.testing.assert_allclose(J @ task.null_projector(q), 0, atol=1e-10)
    np.testing.assert_allclose(J @ task.velocity(q, u_dot, null=np.ones(7)), u_dot, atol=1e-10)


def written_weight(q, domain):
    return [domain.const(2) + domain.sin(x) for x in q]


WEIGHTS = ["energy", "least squares", lambda q: np.diag(1 + np.asarray(q) ** 2), written_weight]


@pytest.mark.parametrize("criterion", WEIGHTS)
def test_both_second_order_choices_move_the_hand_alike_and_only_one_integrates(seven, criterion):
    rng = np.random.default_rng(4)
    q, u_dot, u_ddot = rng.normal(size=7), *rng.normal(size=(2, 6))
    task = pb.redundant(seven, pb.Pose("dh_7"), criterion)
    found = seven.coefficients.influence(q, "dh_7", 2)
    v = task.velocity(q, u_dot)
    integrable, paper = (task.acceleration(q, u_dot, u_ddot, c) for c in ("integrable", "paper"))
    for a in (integrable, paper):
        np.testing.assert_allclose(found.acceleration(v, a), u_ddot, atol=1e-8 * scale(a))
    assert np.linalg.norm(integrable - paper) > 1e-3
    h = 1e-5
    moved = [task.velocity(q + s * h * v, u_dot + s * h * u_ddot) for s in (-1, 1)]
    np.testing.assert_allclose(integrable, (moved[1] - moved[0]) / (2 * h), atol=1e-6 * scale(integrable))
    null = np.linalg.svd(seven.jacobian(q, "dh_7"))[2][-1]
    difference = integrable - paper
    np.testing.assert_allclose(difference, null * (null @ difference), atol=1e-8 * scale(difference))


def test_a_weight_over_domains_is_differentiated_exactly(seven):
    rng = np.random.default_rng(5)
    q, v = rng.normal(size=(2, 3, 7))
    wanted = np.cos(q)[..., None] * v[..., None] * np.eye(7)
    exact = pb.redundant(seven, pb.Pose("dh_7"), written_weight)
    assert exact.weight_rate_found_by(q) == "exact"
    np.testing.assert_allclose(exact.weight(q), (2 + np.sin(q))[..., None] * np.eye(7), rtol=1e-15)
    np.testing.assert_allclose(exact._weight_rate(q, v), wanted, rtol=0, atol=4e-16 * scale(wanted))


def through_linalg(q):
    return np.linalg.inv((2 + np.sin(q))[..., None] * np.eye(7))


def into_floats(q):
    W = np.zeros((*q.shape, 7))
    for k in range(7):
        W[..., k, k] = 2 + np.sin(q[..., k])
    return W


def of_absolutes(q):
    return (2 + np.linalg.svd(q[..., None, None])[1]) * np.eye(7)


PLAIN_WEIGHTS = [  # function, how it is differentiated, derivative of its diagonal by q, error allowed
    (lambda q: (2 + np.sin(q))[..., None] * np.eye(7), "traced", np.cos, 1e-15),
    (lambda q: (2 + np.exp(-(q**2)) + np.where(q > 0, q, -q))[..., None] * np.eye(7), "traced",
     lambda q: -2 * q * np.exp(-(q**2)) + np.sign(q), 4e-15),
    (lambda q: np.sqrt(1 + np.square(q) / np.hypot(q, 3.0))[..., None] * np.eye(7), "traced",
     lambda q: (q / np.hypot(3, q) - q**3 / (2 * np.hypot(3, q) ** 3)) / np.sqrt(1 + q**2 / np.hypot(3, q)), 4e-15),
    (through_linalg, "complex step", lambda q: -np.cos(q) / (2 + np.sin(q)) ** 2, 4e-15),
    (into_floats, "differences", np.cos, 1e-10),
    (of_absolutes, "differences", np.sign, 1e-10),
]  # fmt: skip


@pytest.mark.parametrize(("weight", "way", "slope", "error"), PLAIN_WEIGHTS)
def test_a_weight_in_plain_numpy_is_differentiated_as_exactly_as_it_allows(seven, weight, way, slope, error):
    rng = np.random.default_rng(5)
    q, v = rng.normal(size=(2, 3, 7))
    q += 0.1 * np.sign(q)  # away from the kinks of absolute values
    task = pb.redundant(seven, pb.Pose("dh_7"), weight)
    assert task.weight_rate_found_by(q) == way
    wanted = (slope(q) * v)[..., None] * np.eye(7)
    np.testing.assert_allclose(task._weight_rate(q, v), wanted, rtol=0, atol=error * scale(wanted))


def test_a_weight_that_changes_its_mind_about_other_numbers_is_not_traced(seven):
    def weight(q):
        return np.eye(7) * (2.0 + np.sin(q[0]) if q.dtype == float else q[0] * 0 + 1.0)

    task = pb.redundant(seven, pb.Pose("dh_7"), weight)
    q, v = np.full(7, 0.4), np.ones(7)
    assert task.weight_rate_found_by(q) == "differences"
    np.testing.assert_allclose(task._weight_rate(q, v), np.cos(0.4) * np.eye(7), atol=1e-10)


def test_weights_and_motions_that_do_not_fit_are_refused(seven):
    q, task = np.full(7, 0.3), pb.redundant(seven, pb.Pose("dh_7"))
    cases = ((np.ones(4), r"\(4, 4\), expected \(7, 7\) or 7 numbers"), (-np.ones(7), "eigenvalue is -1"))
    for weight, message in cases:
        with pytest.raises(pb.InputError, match=message):
            pb.redundant(seven, pb.Pose("dh_7"), weight).velocity(q, np.ones(6))
    with pytest.raises(pb.InputError, match=r"u_dot has shape \(5,\), expected \(6,\)"):
        task.velocity(q, np.ones(5))
    with pytest.raises(pb.InputError, match=r"T_u has shape \(3,\), expected \(2,\)"):
        pb.share_load(np.eye(3)[:, :2]).loads(np.ones(3))


def test_redundant_arrays_give_the_loads_of_the_papers_choice(seven):
    rng = np.random.default_rng(5)
    q, u_dot, u_ddot = rng.normal(size=7), *rng.normal(size=(2, 6))
    task = pb.redundant(seven, pb.Pose("dh_7"))
    inertia, power = task.arrays(q)
    J, M = seven.jacobian(q, "dh_7"), seven.mass_matrix(q)
    closed = J.T @ np.linalg.inv(J @ np.linalg.solve(M, J.T))  # (4-74), second form
    np.testing.assert_allclose(inertia, closed, atol=1e-9 * scale(closed))
    v = task.velocity(q, u_dot)
    load = JointSpace(seven).dynamics(q, v).load
    expected = inertia @ u_ddot + quadratic(u_dot, power, u_dot) - load
    np.testing.assert_allclose(task.loads(q, u_dot, u_ddot, "paper"), expected, atol=1e-8 * scale(expected))


def test_shared_loads_carry_the_whole_with_the_least_cost_and_internal_loads_move_nothing():
    rng = np.random.default_rng(6)
    G, T_u, cost = rng.normal(size=(4, 3)), rng.normal(size=3), rng.uniform(1, 3, size=4)
    plain, weighted = pb.share_load(G), pb.share_load(G, cost)
    np.testing.assert_allclose(plain.loads(T_u), np.linalg.pinv(G.T) @ T_u, atol=1e-12)
    for sharing, W in ((plain, np.ones(4)), (weighted, cost)):
        T_q = sharing.loads(T_u)
        np.testing.assert_allclose(G.T @ T_q, T_u, atol=1e-12)
        np.testing.assert_allclose(sharing.internal.T @ (W * T_q), 0, atol=1e-12)
        np.testing.assert_allclose(G.T @ sharing.loads(T_u, [2.5]), T_u, atol=1e-12)
    with pytest.raises(pb.InputError, match="do not move every coordinate"):
        pb.share_load(np.ones((4, 2)))
    with pytest.raises(pb.InputError, match="positive"):
        pb.share_load(G, [1, 1, 1, -1])
