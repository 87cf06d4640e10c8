"""Influence coefficients and inverse kinematics against Pinocchio and robotics-toolbox, in one run.

    python benchmarks/bench_influence.py [states]

Batched G and H of the Panda's hand (`model.influence`, order 2) against Pinocchio's kinematic Hessian and
robotics-toolbox's `hessian0`, each called as a user has them, from Python, state by state. Inverse kinematics of
random reachable poses of UR5 and Panda against robotics-toolbox's `ikine_LM`, from the same start, with restarts;
ours to 1e-9, theirs to its default 1e-6. Batches run on one thread. robotics-toolbox may live in another environment:
name its Python in RTB_PYTHON. What is not installed is not measured, and the table says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import polybody as pb
from polybody.kernels import threads

SAMPLE = 200  # states given to engines that go one by one

RTB = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, roboticstoolbox as rtb
from spatialmath import SE3
request = json.load(sys.stdin)
robot = {"panda": rtb.models.Panda, "ur5": rtb.models.DH.UR5}[request["robot"]]()
rng = np.random.default_rng(0)
low, high = np.nan_to_num(robot.qlim, nan=np.pi)
q = rng.uniform(np.maximum(low, -np.pi), np.minimum(high, np.pi), size=(request["count"], robot.n))
out = {}
if request["what"] == "hessian":
    robot.hessian0(q[0])
    start = time.perf_counter()
    for one in q:
        robot.hessian0(one)
    out["seconds"] = (time.perf_counter() - start) / len(q)
else:
    T = [robot.fkine(one) for one in q]
    robot.ikine_LM(T[0], q0=np.zeros(robot.n))
    start = time.perf_counter()
    solved = [robot.ikine_LM(one, q0=np.zeros(robot.n)).success for one in T]
    out["seconds"] = (time.perf_counter() - start) / len(q)
    out["solved"] = float(np.mean(solved))
print("RESULT" + json.dumps(out))
"""


def rtb(what: str, robot: str, count: int) -> dict[str, float] | None:
    """Ask robotics-toolbox, in its own Python; None where it is not installed."""
    python = os.environ.get("RTB_PYTHON", sys.executable)
    request = json.dumps({"what": what, "robot": robot, "count": count})
    run = subprocess.run([python, "-c", RTB], input=request, capture_output=True, text=True, check=False)
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT")]
    return json.loads(lines[-1].removeprefix("RESULT")) if lines else None


def robot_path(name: str) -> Path:
    for folder in map(Path, sys.path):
        found = sorted(folder.glob(f"cmeel.prefix/share/example-robot-data/robots/*/*/{name}"))
        if found:
            return found[0]
    raise SystemExit(f"example-robot-data has no {name} here; pip install example-robot-data")


def best(function: Callable[[], Any], repeats: int = 5) -> float:
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def panda_arm(path: Path) -> pb.Model:
    """The Panda as an arm of seven joints: its fingers are held."""
    from polybody.description.urdf_reader import read_urdf
    from polybody.model.soundness import model_from

    description = read_urdf(path)
    joints = tuple(
        replace(j, kind="fixed", limits=None, damping=None, friction=None) if "finger" in j.name else j
        for j in description.joints
    )
    return model_from(replace(description, joints=joints, couplings=()))


def pinocchio_hessian(path: Path, frame: str) -> float | None:
    """Seconds a state of Pinocchio's kinematic Hessian of the joint that carries the frame, fingers held too."""
    try:
        import pinocchio as pin
    except ImportError:
        return None
    whole = pin.buildModelFromUrdf(str(path))
    fingers = [k for k, name in enumerate(whole.names) if "finger" in name]
    model = pin.buildReducedModel(whole, fingers, pin.neutral(whole))
    q = np.random.default_rng(0).uniform(-1, 1, size=(SAMPLE, model.nq))
    data, joint = model.createData(), model.frames[model.getFrameId(frame)].parentJoint

    def loop() -> None:
        for one in q:
            pin.computeJointJacobians(model, data, one)
            pin.computeJointKinematicHessians(model, data)
            pin.getJointKinematicHessian(model, data, joint, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)

    return best(loop) / len(q)


def line(what: str, seconds: float | None, reference: float | None = None, note: str = "") -> None:
    if seconds is None:
        print(f"  {what:<44} not installed, not measured")
        return
    ratio = "" if reference is None else f"   {seconds / reference:8.1f} times ours"
    print(f"  {what:<44}{seconds * 1e6:12.3f} us{ratio}   {note}")


def main() -> None:
    warnings.simplefilter("ignore")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    path, frame = robot_path("panda.urdf"), "panda_link7"
    model = panda_arm(path)
    with threads(1):
        answer = rtb("hessian", "panda", SAMPLE)
        for batch in (1_000, count):
            q = model.random_configuration(np.random.default_rng(0), batch)
            ours = best(lambda q=q: model.influence(q, frame, 2), 30) / batch
            print(f"G and H of {frame}, {model.nv} velocities, batch of {batch}, a state:")
            line("polybody model.influence(q, frame, 2)", ours)
            line("Pinocchio kinematic Hessian, loop", pinocchio_hessian(path, frame), ours)
            line("robotics-toolbox hessian0, loop", answer and answer["seconds"], ours)
        for name, file, hand in (("ur5", "ur5_robot.urdf", "tool0"), ("panda", "panda.urdf", "panda_hand")):
            arm = pb.load(robot_path(file))
            targets = arm.pose(arm.random_configuration(np.random.default_rng(1), count), hand)
            pb.inverse_kinematics(arm, {hand: targets[:16]})
            start = time.perf_counter()
            found = pb.inverse_kinematics(arm, {hand: targets})
            seconds = (time.perf_counter() - start) / count
            print(f"inverse kinematics of {name}, {count} random reachable poses, a pose:")
            line("polybody pb.inverse_kinematics, to 1e-9", seconds, None, f"{found.converged.mean():.2%} solved")
            answer = rtb("ik", name, SAMPLE)
            note = f"{answer['solved']:.2%} solved" if answer else ""
            line("robotics-toolbox ikine_LM, to 1e-6", answer and answer["seconds"], seconds, note)


if __name__ == "__main__":
    main()
