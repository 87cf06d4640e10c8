"""Quick rebounds of stiff mechanisms: methods that report states at given times only must not step over them."""

import numpy as np
import pytest

import polybody as pb


@pytest.fixture(scope="module")
def arm() -> pb.Model:
    """Three links on stiff joints that fall on the stop of the first."""
    build = pb.Builder("stiff")
    for i in range(3):
        build.body(f"b{i}", mass=1.0, inertia=np.diag([0.02, 0.02, 0.02]), com=[0.25, 0, 0])
        springs = {"stiffness": 2e4, "damping": 60.0} if i else {"limits": (-0.6, 0.6)}
        parent, origin = (f"b{i - 1}", [0.5, 0, 0]) if i else ("world", [0, 0, 0])
        build.joint(f"j{i}", "revolute", parent, f"b{i}", origin, [0, 1, 0], **springs)
    return build.model()


@pytest.fixture(scope="module")
def wanted(arm: pb.Model) -> pb.Trajectory:
    return pb.simulate(arm, 1.0, np.zeros(3), method="dop853", rtol=1e-12, atol=1e-13, restitution=0.5)


@pytest.mark.parametrize(("method", "compiled"), [("radau", None), ("cvodes", None), ("cvodes", False), ("idas", None)])
def test_rebounds_that_follow_each_other_at_once_are_all_found(arm, wanted, method, compiled):
    run = pb.simulate(
        arm, 1.0, np.zeros(3), method=method, rtol=1e-9, atol=1e-10, restitution=0.5, compiled=compiled
    )  # fmt: skip
    times, reference = ([x.time for x in y.happenings] for y in (run, wanted))
    assert len(reference) > 20
    np.testing.assert_allclose(times[:15], reference[:15], rtol=0, atol=1e-7)
    np.testing.assert_allclose(run.q[-1], wanted.q[-1], rtol=0, atol=1e-8)
    assert run.audit.trusted, run.audit.doubts


@pytest.mark.parametrize(("method", "compiled"), [("cvodes", None), ("cvodes", False), ("idas", None)])
def test_dense_output_follows_a_short_pulse_between_two_recorded_states(arm, method, compiled):
    """Two milliseconds of force, states recorded every tenth of a second."""
    push = {"b2": lambda t: np.array([0, 30 * np.exp(-(((t - 0.213) / 0.002) ** 2)), 0, 0, 0, 0])}
    times = np.linspace(0, 0.3, 1001)
    given = {"wrenches": push, "dense": True}
    ours = pb.simulate(
        arm, 0.3, np.zeros(3), method=method, rtol=1e-8, atol=1e-9, sample=0.1, compiled=compiled, **given
    )  # fmt: skip
    wanted = pb.simulate(arm, 0.3, np.zeros(3), rtol=1e-12, atol=1e-13, max_step=1e-3, **given)
    assert np.abs(np.diff(wanted.at(times)[1], axis=0)).max() > 0.03  # speeds change that much in 0.3 ms
    np.testing.assert_allclose(ours.at(times)[1], wanted.at(times)[1], rtol=0, atol=1e-5)
