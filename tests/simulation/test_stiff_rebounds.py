"""Rebounds of a stiff arm that follow each other within a millisecond."""

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


@pytest.mark.parametrize(("method", "longest"), [("radau", np.inf), ("cvodes", 1e-3), ("idas", 1e-3)])
def test_rebounds_of_a_stiff_arm_are_all_found(arm, wanted, method, longest):
    """SUNDIALS' methods look at intervals of 0.05 s unless steps are bounded."""
    options = {"method": method, "rtol": 1e-9, "atol": 1e-10, "restitution": 0.5, "max_step": longest}
    run = pb.simulate(arm, 1.0, np.zeros(3), **options)
    times, reference = ([x.time for x in y.happenings] for y in (run, wanted))
    assert len(reference) > 20
    np.testing.assert_allclose(times[:15], reference[:15], rtol=0, atol=1e-7)
    np.testing.assert_allclose(run.q[-1], wanted.q[-1], rtol=0, atol=1e-8)
    assert run.audit.trusted, run.audit.doubts


@pytest.mark.parametrize("method", ["cvodes", "idas"])
def test_a_stop_that_was_passed_between_two_recorded_states_is_no_trusted_run(arm, method):
    with pytest.warns(pb.PolybodyWarning, match="j0 upper limit was passed"):
        run = pb.simulate(arm, 1.0, np.zeros(3), method=method, rtol=1e-9, atol=1e-10, restitution=0.5)
    assert not run.audit.trusted
