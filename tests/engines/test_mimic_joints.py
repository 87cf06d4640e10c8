"""URDFs with mimic joints behave as coupled: positions follow, torques map back, couplings do no work."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import polybody as pb
from pinocchio_bridge import robot_files
from polybody.errors import PolybodyWarning

FILES = [path for path in robot_files() if "<mimic" in path.read_text()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_positions_follow_torques_map_back_and_couplings_do_no_work(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolybodyWarning)
        model = pb.load(path)
    if not model.mechanism.couplings:
        pytest.skip("all its mimic joints are fixed")
    rng = np.random.default_rng(1)
    q = model.random_configuration(rng)
    v = model.close_velocity(q, rng.normal(size=model.nv))
    slices = model.joint_slices()
    for c in model.mechanism.couplings:
        (i, k), (j, m) = slices[c.joint], slices[c.source_joint]
        np.testing.assert_allclose(q[i], c.ratio * q[j] + c.offset, atol=1e-10)
        np.testing.assert_allclose(v[k], c.ratio * v[m], atol=1e-10)
    tau = rng.normal(size=model.nv)
    M, force = model._tree_terms(q, v, tau, None, "denoc")
    if path.stem == "romeo":  # its fingers have no mass at all
        with pytest.raises(pb.PolybodyError, match="moves no mass"):
            model.loop_solution(q, v, tau, formulation="denoc")
        return
    solved = model.loop_solution(q, v, tau, formulation="denoc")
    for c in model.mechanism.couplings:
        k, m = slices[c.joint][1], slices[c.source_joint][1]
        np.testing.assert_allclose(solved.a[k], c.ratio * solved.a[m], atol=1e-8 * (1 + np.abs(solved.a).max()))
    constraint = M @ solved.a - force
    scale = np.abs(v) @ (np.abs(M) @ np.abs(solved.a) + np.abs(force))
    assert abs(constraint @ v) < 1e-9 * (1 + scale)
    # a torque on a follower is its ratio times as much on its leader
    c = next(c for c in model.mechanism.couplings if c.source_joint not in {x.joint for x in model.mechanism.couplings})
    moved = tau.copy()
    moved[slices[c.source_joint][1]] += c.ratio * moved[slices[c.joint][1]]
    moved[slices[c.joint][1]] = 0.0
    same = model.loop_solution(q, v, moved, formulation="denoc").a
    np.testing.assert_allclose(same, solved.a, atol=1e-7 * (1 + np.abs(solved.a).max()))
