"""Runs keep what physics keeps, give the paper's numbers, and converge as fast as their methods should."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from simulation_cases import SAHA_START, moving, satellite, shipped, tree, tumbling_body

import polybody as pb
from polybody.simulation import METHODS
from polybody.simulation.trajectory import Pieces

FREE_FALL = {  # ERRATA.md, 003 Saha
    0.5: (-0.0406348075, 0.5667771536, 0.3480179831, -0.0240587010, 1.0041563702, 0.0129165740),
    1.0: (0.0025434783, 0.0809666575, 2.9996616196, 0.0444530563, 1.4895769770, -0.0035945922),
}


def test_stanford_arm_falls_as_sahas_paper_corrected() -> None:
    run = pb.simulate(shipped("stanford-arm"), 1.0, SAHA_START, rtol=1e-12, atol=1e-13, sample=0.5)
    for k, (time, expected) in enumerate(FREE_FALL.items(), start=1):
        assert run.t[k] == time
        np.testing.assert_allclose(run.q[k], expected, atol=1e-8, rtol=0)
    assert run.audit.trusted
    assert run.audit.energy_error_relative < 1e-12


def test_planar_arm_falls_as_sahas_paper_corrected() -> None:
    run = pb.simulate(shipped("planar-3r"), 1.0, np.zeros(3), rtol=1e-12, atol=1e-13, sample=0.5)
    np.testing.assert_allclose(run.q[1], (-0.9511477776, 0.4309997625, 0.6345288495), atol=1e-8, rtol=0)
    np.testing.assert_allclose(run.q[2], (-1.8061432291, -0.5418059542, -0.1322192091), atol=1e-8, rtol=0)


@pytest.mark.parametrize("name", ["double-pendulum", "tumbling body"])
def test_energy_is_kept_to_1e_9_over_ten_seconds(name: str) -> None:
    model = tumbling_body() if name == "tumbling body" else shipped(name)
    q, v = (model.neutral(), np.array([1.0, -5.0, 2.0, 0.1, 0.2, 3.0])) if model.nv == 6 else ([2.5, -1.0], [0.0, 1.0])
    run = pb.simulate(model, 10.0, q, v, rtol=1e-12, atol=1e-13)
    kinetic, potential = run.energies
    total = kinetic + potential
    assert np.max(np.abs(total - total[0])) <= 1e-9 * max(1.0, np.max(kinetic))
    assert run.audit.energy_error_relative <= 1e-9


def test_momentum_of_a_free_tumbling_tree_is_kept_but_for_gravity() -> None:
    model = satellite()
    run = pb.simulate(model, 2.0, *moving(model), rtol=1e-11, atol=1e-12)
    assert run.audit.momentum_note == ""
    assert run.audit.momentum_error_relative is not None
    assert run.audit.momentum_error_relative < 1e-9
    assert run.audit.quaternion_error is not None
    assert run.audit.quaternion_error < 1e-9
    lengths = np.linalg.norm(run.q[:, 3:7], axis=1)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-15)


def final_error(model: pb.Model, run: pb.Trajectory, reference: pb.Trajectory) -> float:
    apart = model.difference(reference.q[-1], run.q[-1])
    return float(np.linalg.norm(np.concatenate([apart, run.v[-1] - reference.v[-1]])))


@pytest.fixture(scope="module")
def satellite_reference() -> pb.Trajectory:
    model = satellite()
    return pb.simulate(model, 0.8, *moving(model), rtol=2e-14, atol=1e-15, sample=0.8)


@pytest.mark.parametrize(
    ("method", "steps"), [("semi-implicit", 400), ("midpoint", 40), ("rk4", 20)], ids=lambda x: str(x)
)
def test_order_of_fixed_steps_on_quaternions(method: str, steps: int, satellite_reference: pb.Trajectory) -> None:
    model = satellite()
    errors = [
        final_error(model, pb.simulate(model, 0.8, *moving(model), method=method, dt=0.8 / (steps * k)),
                    satellite_reference)
        for k in (1, 2, 4)
    ]  # fmt: skip
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert abs(orders[-1] - METHODS[method].order) < 0.25, orders


def test_order_of_dop853_on_quaternions(satellite_reference: pb.Trajectory) -> None:
    model = satellite()
    errors = [
        final_error(
            model,
            pb.simulate(model, 0.8, *moving(model), rtol=1e9, atol=1e9, first_step=h, max_step=h, sample=0.8),
            satellite_reference,
        )
        for h in (0.1, 0.05)
    ]
    assert 7.0 < np.log2(errors[0] / errors[1]) < 9.5, errors


def test_order_of_radau_on_quaternions(satellite_reference: pb.Trajectory) -> None:
    """Its tolerances cannot be switched off, so steps and errors are compared."""
    model = satellite()
    runs = [pb.simulate(model, 0.8, *moving(model), method="radau", rtol=r, atol=r, sample=0.8) for r in (1e-5, 1e-9)]
    errors = [final_error(model, run, satellite_reference) for run in runs]
    order = np.log(errors[0] / errors[1]) / np.log(runs[1].audit.steps / runs[0].audit.steps)
    assert 4.0 < order < 6.5, (order, errors)


def test_error_of_cvodes_on_quaternions_follows_its_tolerance(satellite_reference: pb.Trajectory) -> None:
    """Its order varies from step to step: what it promises is the tolerance."""
    model = satellite()
    errors = [
        final_error(model, pb.simulate(model, 0.8, *moving(model), method="cvodes", rtol=r, atol=r, sample=0.8),
                    satellite_reference)
        for r in (1e-5, 1e-7, 1e-9)
    ]  # fmt: skip
    assert errors[0] > errors[1] > errors[2]
    assert all(error < 5e3 * r for error, r in zip(errors, (1e-5, 1e-7, 1e-9), strict=True)), errors


def test_energy_error_of_the_midpoint_rule_stays_bounded() -> None:
    model = shipped("double-pendulum")
    run = pb.simulate(model, 200.0, [1.0, 0.5], method="midpoint", dt=0.02, sample=0.4)
    kinetic, potential = run.energies
    error = np.abs(kinetic + potential - (kinetic[0] + potential[0])) / np.ptp(potential)
    assert run.audit.steps == 10_000
    half = len(error) // 2
    assert np.max(error) < 5e-3
    assert np.max(error[half:]) < 1.5 * np.max(error[:half])
    assert abs(np.mean(error[-100:]) - np.mean(error[:100])) < 0.5 * np.max(error)


def test_midpoint_rule_keeps_energy_and_momentum_of_a_free_body_exactly() -> None:
    v = np.array([1.0, -5.0, 2.0, 0.0, 0.0, 0.0])
    build = pb.Builder("body", gravity=(0, 0, 0))
    build.body("box", mass=2.0, inertia=(0.3, 0.5, 0.7))
    build.joint("root_joint", "floating", "world", "box")
    model = build.model()
    run = pb.simulate(model, 20.0, v0=v, method="midpoint", dt=0.02)
    assert run.audit.energy_error_relative < 1e-11
    sizes = np.linalg.norm(model.momentum(run.q, run.v)[:, :3], axis=1)
    np.testing.assert_allclose(sizes, sizes[0], rtol=1e-11)


def test_work_of_everything_that_acts_balances_energy_on_a_random_tree() -> None:
    """Springs, dampers, armature, every kind of joint, a controller and wrenches of two frames."""
    model = tree(5, 6)
    frames = [name for name in model.frame_names if name.startswith("frame")]
    wrenches = {
        frames[0]: lambda t: np.array([0.1, 0.2 * np.sin(t), 0, 1.0, -0.5, np.cos(3 * t)]),
        frames[1]: np.array([0.0, 0.0, 0.1, 0.3, 0.2, 0.1]),
    }

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return 0.3 * np.sin(2 * t + np.arange(model.nv)) - 0.1 * v

    q, v = moving(model, 3, 0.3)
    run = pb.simulate(model, 0.3, 0.5 * q + 0.5 * model.neutral() if model.nq == model.nv else q, v, controller,
                      wrenches=wrenches, rtol=1e-11, atol=1e-12, limits="ignore")  # fmt: skip
    assert np.ptp(run.work) > 1e-3
    assert run.audit.energy_error_relative < 1e-9


@pytest.mark.parametrize("method", ["radau", "cvodes", "idas", "rk4", "semi-implicit", "midpoint"])
def test_every_method_agrees_with_dop853_under_controller_and_wrench(method: str) -> None:
    model = satellite()
    q, v = moving(model)
    wrenches = {"arm": lambda t: np.array([0.1, 0, 0.2, np.sin(5 * t), 0.3, 0])}

    def controller(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros(6), -0.5 * v[6:] + np.sin(t)])

    best = pb.simulate(model, 0.5, q, v, controller, wrenches=wrenches, rtol=1e-12, atol=1e-13)
    run = pb.simulate(model, 0.5, q, v, controller, wrenches=wrenches, method=method, dt=5e-4, rtol=1e-8, atol=1e-9)
    tolerance = {"semi-implicit": 2e-2, "midpoint": 1e-5}.get(method, 2e-6)
    assert final_error(model, run, best) < tolerance
    assert run.audit.energy_error_relative < {"semi-implicit": 1e-2, "midpoint": 1e-5}.get(method, 1e-6)


def test_dense_output_lies_on_the_motion_between_samples() -> None:
    model = satellite()
    q, v = moving(model)
    coarse = pb.simulate(model, 1.0, q, v, rtol=1e-10, atol=1e-11, sample=0.5, dense=True)
    fine = pb.simulate(model, 1.0, q, v, rtol=1e-13, atol=1e-14, sample=0.05)
    between, speeds = coarse.at(fine.t)
    assert np.max(np.abs(model.difference(fine.q, between))) < 1e-7
    assert np.max(np.abs(fine.v - speeds)) < 1e-6
    with pytest.raises(ValueError, match="outside the run"):
        coarse.at(1.5)
    none = dataclasses.replace(coarse, pieces=Pieces(), stopped="the run diverged after t = 0 s")
    with pytest.raises(ValueError, match="took no step: the run diverged"):
        none.at(0.0)
