"""MJCF's actuators as ours: the same joint forces and the same motion."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import polybody as pb
from polybody.description.mechanism_file.reader import read_mechanism
from polybody.description.mechanism_file.writer import mechanism_text
from polybody.description.records import same_description

mujoco = pytest.importorskip("mujoco")

ARM = """<mujoco><compiler angle="radian"/><option timestep=".0005" integrator="RK4"/><worldbody>
<body name="a"><joint name="shoulder" axis="0 1 0" ref=".2" damping=".1"/>
<inertial pos=".3 0 0" mass="1" diaginertia=".01 .05 .05"/>
<body name="b" pos=".6 0 0"><joint name="slide" type="slide" axis="1 0 0" damping="1"/>
<inertial pos=".1 0 0" mass=".5" diaginertia=".01 .02 .02"/></body></body></worldbody><actuator>
<motor name="push" joint="slide" gear="3" ctrlrange="-2 2" ctrllimited="true"/>
<position name="servo" joint="shoulder" kp="40" kv="2" forcerange="-9 9" forcelimited="true"/>
<velocity name="speed" joint="slide" kv="4" gear="-1"/>{more}</actuator></mujoco>"""


def test_actuators_give_mujocos_joint_forces_and_motion(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(ARM.format(more=""))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = pb.load(path)
    theirs = mujoco.MjModel.from_xml_path(str(path))
    data, rng = mujoco.MjData(theirs), np.random.default_rng(0)
    law = pb.controllers.Actuators(model, lambda t, q, v: np.array([5.0, 0.6, 0.3]))
    assert law.names == ["push", "servo", "speed"]
    for _ in range(5):
        q, v = rng.normal(size=(2, 2))
        data.qpos[:], data.qvel[:], data.ctrl[:] = q + theirs.qpos0, v, (5.0, 0.6, 0.3)
        mujoco.mj_forward(theirs, data)
        np.testing.assert_allclose(law(0.0, q, v), data.qfrc_actuator, atol=1e-12)
    data.qpos[:], data.qvel[:] = theirs.qpos0, 0
    while data.time < 0.5 - 1e-9:
        mujoco.mj_step(theirs, data)
    run = pb.simulate(model, 0.5, controller=pb.controllers.Actuators(model, {"push": 5.0, "servo": 0.6, "speed": 0.3}))
    np.testing.assert_allclose(run.q[-1], data.qpos - theirs.qpos0, atol=1e-6)
    assert same_description(read_mechanism(mechanism_text(model.description), str(path)), model.description)


def test_actuators_that_are_not_taken_are_named_and_wrong_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(ARM.format(more='<intvelocity name="memory" joint="slide" kp="3" actrange="-1 1"/>'))
    with pytest.warns(pb.PolybodyWarning, match="actuator 'memory'"):
        model = pb.load(path)
    assert len(model.description.actuators) == 3
    with pytest.raises(pb.InputError, match="no actuator 'pull'"):
        pb.controllers.Actuators(model, {"pull": 1.0})
    with pytest.raises(pb.InputError, match=r"expected \(3,\)"):
        pb.controllers.Actuators(model, [1.0])
    with pytest.raises(pb.InputError, match="has no actuators"):
        pb.controllers.Actuators(pb.load("two-link"))
    build = pb.Builder("one")
    build.body("b", 1.0, inertia=(1, 1, 1))
    build.joint("k", "revolute", "world", "b")
    with pytest.raises(pb.InputError, match="no joint 'j'"):
        build.actuator("m", "j")
    build.actuator("m", "k", gain=2.0, gear=3.0, limit=(-1, 1))
    assert pb.controllers.Actuators(build.model(), [5.0])(0.0, np.zeros(1), np.zeros(1)) == pytest.approx([3.0])
