"""Saha 1999: the numbers of the errata for both examples, and what the paper says of its matrices."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import polybody as pb
from polybody.formulations import denoc
from polybody.kernels.counts import operation_counts
from polybody.model.tracing import trace

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import saha_planar_3r
import saha_stanford_arm

STANFORD_FORCES = {
    0.0: (0, 13.3416, 0, 0, 0, 0),
    2.5: (0.1043025753, 13.8227158279, -2.7862940317, 3.271952e-4, 4.69066e-5, 2.683875e-4),
    5.0: (-0.0057085887, 15.7537854002, -15.5743918965, 4.00285e-5, -9.80994e-5, -6.97973e-5),
    7.5: (-0.0998369761, 16.7328672744, -27.5183536764, -2.104238e-4, 3.19849e-5, -2.174701e-4),
    10.0: (0, 16.7365471459, -29.9205, 0, 0, 0),
}
STANFORD_FALL = {
    0.5: (-0.0406348075, 0.5667771536, 0.3480179831, -0.0240587010, 1.0041563702, 0.0129165740),
    1.0: (0.0025434783, 0.0809666575, 2.9996616196, 0.0444530563, 1.4895769770, -0.0035945922),
}
PLANAR_TORQUES = {
    0.0: (44.145, 19.62, 4.905),
    2.5: (41.5641225, 17.1599009, 3.7664145),
    5.0: (-17.4784892, -15.1097842, 0.7895684),
}
PLANAR_FALL = {
    0.5: (-0.9511477776, 0.4309997625, 0.6345288495),
    1.0: (-1.8061432291, -0.5418059542, -0.1322192091),
}


@pytest.mark.parametrize("formulation", [None, *pb.formulations()])
def test_stanford_arm_forces_along_the_path(formulation):
    """Erratum of (39): the path needs its scale. Every formulation gives the table of the errata."""
    model = pb.load("stanford-arm")
    times = np.array(list(STANFORD_FORCES))
    q, v, a = saha_stanford_arm.cycloid(times, saha_stanford_arm.START, saha_stanford_arm.END)
    tau = model.inverse_dynamics(q, v, a, formulation=formulation)
    # The errata print between seven and ten digits after the point.
    np.testing.assert_allclose(tau, np.array(list(STANFORD_FORCES.values())), atol=6e-11)


def test_stanford_arm_free_fall():
    times = np.array([0.0, *STANFORD_FALL])
    q = saha_stanford_arm.free_fall(pb.load("stanford-arm"), times)
    np.testing.assert_allclose(q[1:], np.array(list(STANFORD_FALL.values())), atol=1e-8)


def test_planar_arm_torques_and_free_fall():
    model = pb.load("planar-3r")
    tau = model.inverse_dynamics(*saha_planar_3r.path(np.array(list(PLANAR_TORQUES))))
    np.testing.assert_allclose(tau, np.array(list(PLANAR_TORQUES.values())), atol=6e-8)
    q = pb.simulate(model, 1.0, times=np.array([0.0, *PLANAR_FALL]), rtol=1e-11, atol=1e-13).q
    np.testing.assert_allclose(q[1:], np.array(list(PLANAR_FALL.values())), atol=1e-8)


def chain(n: int) -> pb.Model:
    build = pb.Builder("chain")
    origin = np.eye(4)
    origin[:3, 3] = 0.1, 0.0, 0.3
    for i in range(n):
        build.body(f"b{i}", 1.0, com=(0.1, 0.2, 0.3), inertia=(0.5, 0.6, 0.7, 0.01, 0.02, 0.03))
        axis = ((0, 0, 1), (0, 1, 0))[i % 2]
        build.joint(f"j{i}", "revolute", f"b{i - 1}" if i else "world", f"b{i}", origin, axis)
    return build.model()


def test_udu_factors_take_operations_proportional_to_the_number_of_links():
    """Appendix B: the factors and a solve in O(n). Equal steps in n cost equal steps in operations."""

    def operations(n: int) -> int:
        m = chain(n).mechanism

        def solve(q, f, *, domain):
            return denoc.solve_mass_matrix(m, q, f, domain=domain)

        return operation_counts(trace("solve", [("q", n), ("f", n)], solve)).total

    counts = [operations(n) for n in (10, 14, 18)]
    assert abs((counts[2] - counts[1]) - (counts[1] - counts[0])) <= 2


def test_traced_arms_need_fewer_operations_than_every_row_of_table_1():
    from polybody.model.counting import FORWARD, INVERSE, model_counts

    for name in ("stanford-arm", "puma560"):
        model = pb.load(name)
        for quantity, rows in (("inverse_dynamics", INVERSE), ("forward_dynamics", FORWARD)):
            own = model_counts(model)[quantity]
            assert own.multiplications < min(row.multiplications(6) for row in rows)
            assert own.additions < min(row.additions(6) for row in rows)


@pytest.mark.parametrize(("n", "theirs"), [(6, (871, 797)), (12, (2077, 1955))])
def test_table_2_counts_what_follows_phi_and_ours_is_below_it(n, theirs):
    """φ is an input of section 5.2. Counts of articulated bodies are affine in n; short arms take fewer still."""
    from polybody.model.counting import FORWARD, GIVEN, INVERSE, general_counts

    saha = next(row for row in FORWARD if row.algorithm == "Saha 1999")
    assert (saha.multiplications(n), saha.additions(n)) == theirs
    ours = general_counts(n)
    given = ours[GIVEN]
    assert (given.multiplications, given.additions) == ((466, 344) if n == 6 else (178 * n - 314, 131 * n - 247))
    walker = next(row for row in FORWARD if row.algorithm.startswith("Walker"))
    assert given.multiplications < walker.multiplications(n)
    assert given.additions < walker.additions(n)
    assert given.multiplications < theirs[0]
    assert given.additions < theirs[1]
    # with φ from the same table's inverse dynamics his forward dynamics would take more than ours does as a whole
    phi = next(row for row in INVERSE if row.algorithm == "Saha 1999")
    whole = ours["forward_dynamics"]
    assert whole.multiplications < theirs[0] + phi.multiplications(n)
    assert whole.additions < theirs[1] + phi.additions(n)
    best = next(row for row in INVERSE if row.algorithm.startswith("Balafoutis"))
    inverse = ours["inverse_dynamics"]
    assert inverse.multiplications < best.multiplications(n)
    assert inverse.additions < best.additions(n)
    if n == 12:
        assert general_counts(20)[GIVEN].multiplications == 178 * 20 - 314
        assert general_counts(29)[GIVEN].multiplications == 178 * 29 - 314
        assert general_counts(29)[GIVEN].additions == 131 * 29 - 247
