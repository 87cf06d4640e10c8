"""Sample time, delay, quantisation and noise; observers; outputs of one's own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import polybody as pb

MASS, T = 2.0, 0.02


def cart():
    build = pb.Builder("cart", gravity=(0, 0, 0))
    build.body("b", MASS, inertia=(1, 1, 1))
    build.joint("x", "prismatic", "world", "b", axis=(1, 0, 0))
    return build.model()


def law(t, q, v):
    return -30.0 * q - 9.0 * v


@pytest.mark.parametrize("method", ["rk4", "dop853", "radau", "cvodes", "idas", "midpoint", "semi-implicit"])
@pytest.mark.parametrize("compiled", [None, False])
def test_every_method_holds_the_forces_of_a_computer(method, compiled):
    """Delayed, noisy and quantised: one motion, whatever integrates it."""
    model = pb.load("two-link")
    hold = pb.PD(model, [0.4, 0.7], kp=40.0, kd=12.0, gravity=True)
    runs = []
    for kind in (method, "dop853"):
        law = wrapped(model, ("sampled", "noisy", "quantised"), hold)
        steps = {"dt": 2e-4} if kind in ("midpoint", "semi-implicit") else {"dt": 1e-3} if kind == "rk4" else {}
        runs.append(pb.simulate(model, 0.03, [0.3, 0.6], controller=law, method=kind, compiled=compiled, **steps))
    bound = 3e-5 if method == "semi-implicit" else 1e-6
    np.testing.assert_allclose(runs[0].q[-1], runs[1].q[-1], atol=bound)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
@pytest.mark.parametrize("delay", [0.0, 0.013, 0.045])
def test_a_sampled_and_delayed_law_is_its_difference_equation(method, delay):
    """Of a free mass the states at the instants follow exactly from forces held between them."""
    model = cart()
    run = pb.simulate(model, 0.4, [0.1], [0.3], pb.controllers.Sampled(law, T, delay), method=method, dt=0.004,
                      times=T * np.arange(21))
    x, v, forces = 0.1, 0.3, []
    for k, (q, rate) in enumerate(zip(run.q[:, 0], run.v[:, 0], strict=True)):
        np.testing.assert_allclose([q, rate], [x, v], atol=1e-12)
        forces.append(-30.0 * x - 9.0 * v)
        # within the interval forces change once, when those of an earlier sample take effect
        late = int(delay // T)
        split = delay - late * T
        before = forces[k - late - 1] if k - late - 1 >= 0 else 0.0
        after = forces[k - late] if k - late >= 0 else 0.0
        for h, f in ((split, before), (T - split, after)):
            x, v = x + h * v + h * h / 2 * f / MASS, v + h * f / MASS


def test_sample_time_moves_the_poles_as_discrete_theory_says():
    """Eigenvalues of the sampled loop: those of Φ − ΓK, reached by the run."""
    model, period = cart(), 0.1
    Phi, Gamma = np.array([[1, period], [0, 1]]), np.array([period**2 / 2, period]) / MASS
    wanted = Phi - np.outer(Gamma, [30.0, 9.0])
    columns = []
    for start in ((1.0, 0.0), (0.0, 1.0)):
        run = pb.simulate(model, period, [start[0]], [start[1]], pb.controllers.Sampled(law, period))
        columns.append([run.q[-1, 0], run.v[-1, 0]])
    np.testing.assert_allclose(np.array(columns).T, wanted, atol=1e-12)


def test_runs_of_one_controller_do_not_remember_each_other():
    model, sampled = cart(), pb.controllers.Sampled(law, T, 0.01)
    one, two = (pb.simulate(model, 0.1, [0.2], controller=sampled, method="rk4", dt=0.005) for _ in range(2))
    assert one.trusted is one.audit.trusted
    np.testing.assert_array_equal(one.q, two.q)


def test_quantised_and_noisy_sensors():
    model = pb.load("two-link")
    seen = []

    def spy(t, q, v):
        seen.append((q.copy(), v.copy()))
        return np.array([0.123, -0.456])

    rough = pb.controllers.Quantised(model, spy, position=0.01, velocity=0.1, effort=0.05)
    tau = rough(0.0, np.array([0.1234, -0.2371]), np.array([0.44, -0.46]))
    np.testing.assert_allclose(seen[-1][0], [0.12, -0.24], atol=1e-12)
    np.testing.assert_allclose(seen[-1][1], [0.4, -0.5], atol=1e-12)
    np.testing.assert_allclose(tau, [0.1, -0.45], atol=1e-12)
    noisy = pb.controllers.Noisy(model, spy, position=0.01, velocity=0.1, seed=3)
    seen.clear()
    for k in range(2000):
        noisy.measured(0.001 * k, np.zeros(2), np.zeros(2))
    noise = np.array([np.concatenate(x) for x in seen])
    np.testing.assert_allclose(noise.std(axis=0), [0.01, 0.01, 0.1, 0.1], rtol=0.08)
    assert np.abs(noise.mean(axis=0) / noise.std(axis=0)).max() < 0.1
    with pytest.raises(pb.PolybodyError, match="put Noisy inside Sampled"):
        noisy(0.0, np.zeros(2), np.zeros(2))
    chained = pb.controllers.Sampled(pb.controllers.Quantised(model, noisy, position=1e-3), 0.01)
    runs = [pb.simulate(model, 0.05, [0.3, 0.2], controller=chained, method="rk4", dt=0.005) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].tau, runs[1].tau)
    floating = pb.Builder("free")
    floating.body("b", 1.0, inertia=(1, 1, 1))
    floating.joint("root_joint", "floating", "world", "b")
    with pytest.raises(pb.InputError, match="quaternions have no such number"):
        pb.controllers.Quantised(floating.model(), spy, position=np.ones(6))


def wrapped(model, order, law):
    """A law in wrappers, the first outermost."""
    c = pb.controllers
    make = {
        "sampled": lambda x: c.Sampled(x, 0.01, 0.004), "slow": lambda x: c.Sampled(x, 0.014),
        "quantised": lambda x: c.Quantised(model, x, position=1e-3, velocity=1e-2, effort=0.05),
        "noisy": lambda x: c.Noisy(model, x, position=1e-3, velocity=1e-2, seed=5),
        "observed": lambda x: c.DisturbanceObserver(model, x, 20.0, period=0.005),
    }  # fmt: skip
    for name in reversed(order):
        law = make[name](law)
    return law


WRAPPERS = ("sampled", "slow", "quantised", "noisy", "observed")


@pytest.mark.parametrize("order", list(itertools.permutations(WRAPPERS, 3)))
def test_wrappers_in_any_order_run_and_repeat_or_say_what_is_missing(order):
    model = pb.load("two-link")
    hold = pb.PD(model, [0.4, 0.7], kp=40.0, kd=12.0, gravity=True)
    law, again = wrapped(model, order, hold), wrapped(model, order, hold)
    push = {"tip": [0, 0, 0, 2.0, -3.0, 0]}

    def motion(law):
        run = pb.simulate(model, 0.04, [0.3, 0.6], controller=law, wrenches=push, method="rk4", dt=0.005)
        return run.q, run.tau

    noise = order.index("noisy") if "noisy" in order else 3
    inside = [name for name in order[noise + 1 :] if name != "quantised"][:1]
    computer = {"sampled", "slow"}
    if noise < 3 and not computer & set(order[:noise]) and not computer & set(inside):
        with pytest.raises(pb.PolybodyError, match="put Noisy inside Sampled"):
            motion(law)
        return
    first = motion(law)
    for other in (law, again):
        for x, y in zip(first, motion(other), strict=True):
            np.testing.assert_array_equal(x, y)
    part = law
    while hasattr(part, "law"):
        if isinstance(part, pb.controllers.DisturbanceObserver):
            assert np.abs(part.estimate).max() > 1e-2  # it is told the state wherever it stands
        part = part.law


def test_noise_around_a_computer_is_noise_inside_it():
    model = pb.load("two-link")
    hold = pb.PD(model, [0.4, 0.7], kp=40.0, kd=12.0, gravity=True)
    runs = [pb.simulate(model, 0.05, [0.3, 0.6], controller=wrapped(model, order, hold), method="rk4", dt=0.005)
            for order in (("noisy", "sampled"), ("sampled", "noisy"))]  # fmt: skip
    np.testing.assert_array_equal(runs[0].q, runs[1].q)
    other = pb.controllers.Sampled(pb.controllers.Noisy(model, hold, 1e-3, 1e-2, seed=6), 0.01, 0.004)
    third = pb.simulate(model, 0.05, [0.3, 0.6], controller=other, method="rk4", dt=0.005)
    assert np.abs(third.q[-1] - runs[0].q[-1]).max() > 1e-7


@pytest.mark.parametrize("order", [("sampled", "observed"), ("observed", "sampled"), ("slow", "observed"),
                                   ("observed", "slow"), ("slow", "observed", "sampled")])  # fmt: skip
@pytest.mark.parametrize("push", [0.0, 1.5])
def test_observer_counts_the_forces_that_are_held(order, push):
    """Of a free mass under held forces the momentum is exact: no push, no estimate, whatever the periods and order."""
    model = cart()
    controller = wrapped(model, order, law)
    for part in (controller, getattr(controller, "law", None), getattr(controller.law, "law", None)):
        if isinstance(part, pb.controllers.DisturbanceObserver):
            observer = part
        elif isinstance(part, pb.controllers.Sampled) and order[0] != "observed":
            part.delay, part.effects = 0.0, type(part.clock)(part.clock.period)  # an observer outside cannot know it
    pb.simulate(model, 0.6, [0.1], [0.3], controller, wrenches={"b": [0, 0, 0, push, 0, 0]}, method="rk4", dt=0.01)
    assert len(observer.times) >= 0.6 / 0.005
    if not push:
        assert np.abs(observer.estimates).max() < 1e-9
    else:
        wanted = push * (1 - np.exp(-20.0 * np.array(observer.times)))
        np.testing.assert_allclose(np.ravel(observer.estimates), wanted, atol=2e-3 * push)


def test_an_admittance_inside_a_computer_gives_way():
    model = pb.load("planar-3r")
    q, push = np.array([0.4, 0.9, -0.7]), np.array([0, 0, 0, 6.0, 4.0, 0])
    frame = model.frame_names[-1]
    place = model.pose(q, frame)[:3, 3]
    soft = pb.controllers.Admittance(model, frame, place, 100.0, 60.0, 2.0, lambda t, q, v: push, rows="position",
                                     period=5e-3, kp=900.0, kd=60.0)  # fmt: skip
    alone, within = (pb.simulate(model, 0.3, q, controller=law, wrenches={frame: push}, method="rk4", dt=2.5e-3)
                     for law in (soft, pb.controllers.Sampled(soft, 2.5e-3)))  # fmt: skip
    moved = [model.pose(run.q[-1], frame)[:3, 3] - place for run in (alone, within)]
    assert np.linalg.norm(moved[0]) > 5e-3
    np.testing.assert_allclose(moved[1], moved[0], atol=0.05 * np.linalg.norm(moved[0]))
    lame = pb.controllers.Admittance(model, frame, place, 100.0, 60.0, 2.0, lambda t, q, v: push * np.nan,
                                     rows="position")  # fmt: skip
    with pytest.raises(pb.PolybodyError, match="six finite numbers"):
        pb.simulate(model, 0.1, q, controller=lame)


def test_wrappers_refuse_what_is_no_number():
    model = pb.load("two-link")
    for wrong in ({"position": -1e-3}, {"velocity": -1.0}, {"velocity": np.nan}, {"position": [1, 2, 3]}):
        for wrapper in (pb.controllers.Noisy, pb.controllers.Quantised):
            with pytest.raises(pb.InputError):
                wrapper(model, law, **wrong)
    for seed in (-1, 1.5, "x", True):
        with pytest.raises(pb.InputError, match="seed must be a whole number"):
            pb.controllers.Noisy(model, law, seed=seed)
    for wrapper in (pb.controllers.Noisy, pb.controllers.Quantised, pb.controllers.DisturbanceObserver):
        with pytest.raises(pb.InputError, match="expected a controller"):
            wrapper(model, 3.0)


@pytest.mark.parametrize("name", ["puma560", "four-bar"])
def test_observer_finds_the_disturbance_as_its_filter_says(name):
    """ṙ = K(d − r): of a constant generalised force the estimate is d(1 − exp(−Kt))."""
    model = pb.load(name)
    q = model.assemble() if name == "four-bar" else np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.5])
    frame = model.frame_names[-1]
    push = np.array([0, 0, 0, 4.0, -6.0, 3.0])
    u = list(model.constraints.indices(model.constraints.independent))
    hold = pb.controllers.ComputedTorque(model, pb.paths.spline(model, [0.0, 9.0], np.stack([q, q])), 900.0, 60.0)
    gain, period = 25.0, 2e-3
    observer = pb.controllers.DisturbanceObserver(model, hold, gain, period=period, compensate=False)
    run = pb.simulate(model, 0.2, q, controller=observer, wrenches={frame: push}, method="rk4", dt=period,
                      times=np.array(0.02 * np.arange(11)))
    joints = model.constraints.joint_influence(run.q, 1).G if len(model.constraints) else np.eye(model.nv)
    d = np.einsum("tik,tij,j->tk", np.broadcast_to(joints, (len(run.t), model.nv, len(u))),
                  np.swapaxes(model.jacobian(run.q, frame), -1, -2), push)
    found = np.array([observer.estimates[round(t / period)] for t in run.t[:-1]])
    size = np.abs(d).max()
    np.testing.assert_allclose(found, d[:-1] * (1 - np.exp(-gain * run.t[:-1]))[:, None], atol=0.03 * size)


def test_a_compensated_disturbance_no_longer_bends_the_arm():
    model = pb.load("two-link")
    q, push = np.array([0.4, 0.7]), {"tip": [0, 0, 0, 6.0, -4.0, 0]}
    hold = pb.PD(model, q, kp=40.0, kd=12.0, gravity=True)
    bent = pb.simulate(model, 3.0, q, controller=hold, wrenches=push, sample=3.0, method="rk4", dt=2e-3)
    observer = pb.controllers.DisturbanceObserver(model, hold, 20.0, period=2e-3)
    kept = pb.simulate(model, 3.0, q, controller=observer, wrenches=push, sample=3.0, method="rk4", dt=2e-3)
    assert np.abs(bent.q[-1] - q).max() > 0.02
    assert np.abs(kept.q[-1] - q).max() < 1e-3


def test_outputs_of_ones_own_obey_their_equation():
    model = pb.load("two-link")
    reach = pb.Function(lambda q, domain: [q[0] + domain.sin(q[1]) / domain.const(3), q[1] - q[0] * q[0]], 2)
    law = pb.controllers.FeedbackLinearisation(model, reach, [1.2, 0.3], kp=[36.0, 100.0], kd=[12.0, 20.0])
    start = np.array([0.5, 1.1])
    run = pb.simulate(model, 0.4, start, controller=law, sample=0.1)
    e0 = np.array([1.2, 0.3]) - law.values(start)
    for t, q in zip(run.t, run.q, strict=True):
        wanted = e0 * (1 + np.array([6.0, 10.0]) * t) * np.exp(-np.array([6.0, 10.0]) * t)
        np.testing.assert_allclose(np.array([1.2, 0.3]) - law.values(q), wanted, atol=1e-6)
    with pytest.raises(pb.InputError, match="3 outputs for 2 actuators"):
        pb.controllers.FeedbackLinearisation(model, (reach, pb.Function(lambda q, domain: [q[0]])), np.zeros(3))
    lost = pb.controllers.FeedbackLinearisation(model, pb.Function(lambda q, domain: [q[0], q[0]], 2), [0.0, 0.0])
    with pytest.raises(pb.PolybodyError, match="cannot steer these outputs"):
        lost(0.0, start, np.zeros(2))


def test_an_underactuated_arm_steers_its_passive_joint():
    """The acrobot: one motor at the elbow, the shoulder's angle as output (non-collocated partial linearisation)."""
    build = pb.Builder("acrobot", gravity=(0, -9.81, 0))
    for k in range(2):
        build.body(f"b{k}", 1.0, (0.25, 0, 0), (1e-3, 0.03, 0.03))
    build.joint("shoulder", "revolute", "world", "b0", active=False)
    build.joint("elbow", "revolute", "b0", "b1", (0.5, 0, 0))
    model = build.model()
    start = np.array([-1.5, 0.3])
    law = pb.controllers.FeedbackLinearisation(model, pb.Function(lambda q, domain: [q[0]], 1), [-1.4], 64.0, 16.0,
                                               null_damping=0.0)
    run = pb.simulate(model, 0.2, start, controller=law, sample=0.05)
    assert not run.tau[:, 0].any()
    gap = -1.4 - run.q[:, 0]
    np.testing.assert_allclose(gap, gap[0] * (1 + 8 * run.t) * np.exp(-8 * run.t), atol=1e-6)


def test_outputs_of_a_machine_with_loops_obey_their_equation():
    model = pb.load("five-bar")
    q0 = model.neutral()
    sums = pb.Function(lambda q, domain: [q[0] + q[3], q[0] - domain.const(2) * q[3]], 2)
    goal = np.array([0.05, -0.02])
    law = pb.controllers.FeedbackLinearisation(model, sums, goal, 100.0, 20.0)
    run = pb.simulate(model, 0.3, q0, controller=law, sample=0.1)
    e0 = goal - law.values(q0)
    for t, q in zip(run.t, run.q, strict=True):
        np.testing.assert_allclose(goal - law.values(q), e0 * (1 + 10 * t) * np.exp(-10 * t), atol=1e-6)
