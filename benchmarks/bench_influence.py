"""Influence coefficients and inverse kinematics against Pinocchio and robotics-toolbox, in one run.

    python benchmarks/bench_influence.py [poses]

Batched G and H of the Panda's last link (`model.coefficients.influence`, order 2) against Pinocchio's kinematic
Hessian and robotics-toolbox's `hessian0`, each called as a user has them, from Python, state by state. The three take
turns, so that whatever else the machine does meets all of them; each time is CPU time of one thread, and ratios are
given of the shortest and of the median times. Inverse kinematics of random reachable poses of UR5 and Panda against
robotics-toolbox's `ikine_LM`, from the same start, with restarts; ours to 1e-9, theirs to its default 1e-6, on one
thread. robotics-toolbox may live in another environment: name its Python in RTB_PYTHON. What is not installed is not
measured, and the table says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import polybody as pb
from polybody.kernels import threads

SAMPLE = 200  # states given to engines that go one by one
BATCHES = (100, 1_000, 3_000, 10_000, 30_000, 100_000)
ROUNDS = 15  # of turns

RTB = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, roboticstoolbox as rtb
from spatialmath import SE3
request = json.loads(sys.stdin.readline())
robot = {"panda": rtb.models.Panda, "ur5": rtb.models.DH.UR5}[request["robot"]]()
rng = np.random.default_rng(0)
low, high = np.nan_to_num(robot.qlim, nan=np.pi)
q = rng.uniform(np.maximum(low, -np.pi), np.minimum(high, np.pi), size=(request["count"], robot.n))
out = {}
if request["what"] == "hessian":
    for one in q:
        robot.hessian0(one)
    print("READY", flush=True)
    for _ in iter(sys.stdin.readline, ""):
        start = time.thread_time()
        for one in q:
            robot.hessian0(one)
        print("RESULT" + json.dumps((time.thread_time() - start) / len(q)), flush=True)
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
    run = subprocess.run([python, "-c", RTB], input=request + "\n", capture_output=True, text=True, check=False)
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT")]
    return json.loads(lines[-1].removeprefix("RESULT")) if lines else None


def robot_path(name: str) -> Path:
    for folder in map(Path, sys.path):
        found = sorted(folder.glob(f"cmeel.prefix/share/example-robot-data/robots/*/*/{name}"))
        if found:
            return found[0]
    raise SystemExit(f"example-robot-data has no {name} here; pip install example-robot-data")


Turn = Callable[[], float]  # one measurement: seconds a state, CPU time


def rtb_hessian(stack: ExitStack) -> Turn | None:
    """robotics-toolbox's `hessian0` in a loop of 100 calls, in its own Python, whenever asked."""
    python = os.environ.get("RTB_PYTHON", sys.executable)
    server = stack.enter_context(
        subprocess.Popen(
            [python, "-c", RTB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    )
    assert server.stdin is not None
    assert server.stdout is not None
    sent, told = server.stdin, server.stdout
    stack.callback(sent.close)
    sent.write(json.dumps({"what": "hessian", "robot": "panda", "count": 100}) + "\n")
    sent.flush()
    if not any(line.startswith("READY") for line in iter(told.readline, "")):
        return None

    def turn() -> float:
        sent.write("\n")
        sent.flush()
        return next(json.loads(line[6:]) for line in iter(told.readline, "") if line.startswith("RESULT"))

    return turn


def pinocchio_hessian(path: Path, frame: str) -> Turn | None:
    """Pinocchio's kinematic Hessian of the joint that carries the frame, fingers held too."""
    try:
        import pinocchio as pin
    except ImportError:
        return None
    whole = pin.buildModelFromUrdf(str(path))
    fingers = [k for k, name in enumerate(whole.names) if "finger" in name]
    model = pin.buildReducedModel(whole, fingers, pin.neutral(whole))
    q = np.random.default_rng(0).uniform(-1, 1, size=(SAMPLE, model.nq))
    data, joint = model.createData(), model.frames[model.getFrameId(frame)].parentJoint

    def turn() -> float:
        start = time.thread_time()
        for one in q:
            pin.computeJointJacobians(model, data, one)
            pin.computeJointKinematicHessians(model, data)
            pin.getJointKinematicHessian(model, data, joint, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        return (time.thread_time() - start) / len(q)

    return turn


def our_influence(model: pb.Model, frame: str, batch: int) -> Turn:
    """`model.coefficients.influence` of a batch, some calls in a row."""
    q = model.random_configuration(np.random.default_rng(0), batch)
    calls = max(3, 20_000 // batch)

    def turn() -> float:
        model.coefficients.influence(q, frame, 2)  # the others have had the caches meanwhile
        start = time.thread_time()
        for _ in range(calls):
            model.coefficients.influence(q, frame, 2)
        return (time.thread_time() - start) / calls / batch

    return turn


def compare_influence(path: Path, frame: str) -> None:
    """G and H of an arm of seven joints, its fingers locked, and of what `pb.load` returns: one more for both."""
    with ExitStack() as stack, threads(1):
        rivals = {"Pinocchio": pinocchio_hessian(path, frame), "robotics-toolbox": rtb_hessian(stack)}
        present = {name: turn for name, turn in rivals.items() if turn is not None}
        for name in rivals.keys() - present.keys():
            print(f"{name}: not installed, not measured")
        whole = pb.load(path)
        for model in (whole.lock([name for name in whole.joint_names if "finger" in name]), whole):
            print(f"G and H of {frame}, {model.nv} velocities, CPU time of one thread; ratios of least | median times")
            for batch in BATCHES:
                turns = {"polybody": our_influence(model, frame, batch), **present}
                rounds = [{name: turn() for name, turn in turns.items()} for _ in range(ROUNDS)]
                times = {name: np.array([one[name] for one in rounds]) for name in turns}
                ours = times["polybody"]
                told = [f"{batch:>8} states {ours.min() * 1e9:7.0f} | {np.median(ours) * 1e9:5.0f} ns a state"]
                for name in present:
                    least, median = times[name].min(), np.median(times[name])
                    ratios = f"{least / ours.min():5.0f} | {median / np.median(ours):5.0f} times"
                    told.append(f"{name} {least * 1e6:6.2f} us, {ratios}")
                print("   ".join(told), flush=True)


def line(what: str, seconds: float | None, reference: float | None = None, note: str = "") -> None:
    if seconds is None:
        print(f"  {what:<44} not installed, not measured")
        return
    ratio = "" if reference is None else f"   {seconds / reference:8.1f} times ours"
    print(f"  {what:<44}{seconds * 1e6:12.3f} us{ratio}   {note}")


def main() -> None:
    warnings.simplefilter("ignore")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    compare_influence(robot_path("panda.urdf"), "panda_link7")
    with threads(1):
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
