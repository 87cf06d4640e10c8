"""The regressor of every URDF of example-robot-data against Pinocchio's `computeJointTorqueRegressor`.

Pinocchio's ten parameters of a body are (m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz), ours (m, m c, Ixx, Iyy, Izz, Ixy, Ixz,
Iyz); both about the origin of the joint's frame. Its bodies are in the order of its own joints.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pinocchio_bridge import PinModel, pin, robot_file, robot_files
from polybody.errors import InputError
from polybody.formulations import denoc

#: Pinocchio's column of each of ours
OURS = (0, 1, 2, 3, 4, 6, 9, 5, 7, 8)


def theirs(both: PinModel, q, v, a):
    """Pinocchio's regressor with our rows, bodies and columns."""
    Y = pin.computeJointTorqueRegressor(both.model, both.data, both.q(q), both.v(v), both.v(a))
    blocks = (both.P.T @ Y).reshape(both.ours.nv, -1, 10)[:, :, OURS]
    order = [both.model.getJointId(joint.name) - 1 for joint in both.ours.mechanism.joints]
    return blocks[:, order].reshape(both.ours.nv, -1)


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("path", robot_files(), ids=lambda p: f"{p.parent.parent.name}-{p.stem}")
def test_regressor_of_every_robot_equals_pinocchios(path: Path, floating: bool) -> None:
    try:
        both = PinModel(path, floating)
    except InputError as problem:
        assert "has no <link>" in str(problem)  # noqa: PT017 - a file that is not a robot
        return
    m = both.ours.mechanism
    if not m.nv:
        return
    rng = np.random.default_rng(7)
    q, (v, a) = both.ours.random_configuration(rng), rng.normal(size=(2, m.nv))
    expected = theirs(both, q, v, a)
    np.testing.assert_allclose(denoc.regressor(m, q, v, a), expected, atol=1e-12 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize(("name", "floating"), [("xarm7.urdf", False), ("solo12.urdf", True)])
def test_compiled_regressor_equals_pinocchios_state_by_state(name: str, floating: bool) -> None:
    both = PinModel(robot_file(name), floating)
    rng = np.random.default_rng(8)
    q, (v, a) = both.ours.random_configuration(rng, 9), rng.normal(size=(2, 9, both.ours.nv))
    expected = np.array([theirs(both, *state) for state in zip(q, v, a, strict=True)])
    scale = 1 + np.abs(expected).max()
    np.testing.assert_allclose(both.ours.regressor(q, v, a), expected, atol=1e-12 * scale)
    rows, columns = both.ours.regressor.structure()
    np.testing.assert_allclose(both.ours.regressor.nonzeros(q, v, a), expected[:, rows, columns], atol=1e-12 * scale)
