"""An arm in Exudyn: reads its description as JSON, prints rows of what its solvers took. Run by bench_simulate.py.

Exudyn's links turn about their own x, y or z: every link's frame is turned so that its axis is z.
"""

import json
import sys
import time

import exudyn as exu
import numpy as np
from exudyn.robotics import Robot, RobotBase, RobotLink, RobotTool


def turned(axis):
    """A rotation that takes z to the axis."""
    z = np.array(axis) / np.linalg.norm(axis)
    x = np.cross([0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def transform(rotation, position):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rotation, position
    return T


def system(arm):
    SC = exu.SystemContainer()
    mbs = SC.AddSystem()
    robot = Robot(gravity=arm["gravity"], base=RobotBase(), tool=RobotTool(), referenceConfiguration=arm["q"])
    before = np.eye(3)
    for link in arm["links"]:
        A = turned(link["axis"])
        place = transform(before.T, np.zeros(3)) @ transform(np.array(link["rotation"]) @ A, link["position"])
        robot.AddLink(RobotLink(
            mass=link["mass"], COM=A.T @ np.array(link["com"]), inertia=A.T @ np.array(link["inertia"]) @ A,
            preHT=place, jointType="Rz"))  # fmt: skip
        before = A
    made = robot.CreateKinematicTree(mbs)
    mbs.Assemble()
    return mbs, made["nodeGeneric"]


def solved(arm, kind, count, tolerance=None):
    best, q, steps = np.inf, None, count
    for _ in range(3):
        mbs, node = system(arm)
        settings = exu.SimulationSettings()
        settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = count, arm["seconds"]
        settings.timeIntegration.verboseMode = 0
        settings.solutionSettings.writeSolutionToFile = False
        settings.timeIntegration.explicitIntegration.computeEndOfStepAccelerations = False
        if tolerance is not None:
            settings.timeIntegration.automaticStepSize = True
            settings.timeIntegration.relativeTolerance = tolerance
            settings.timeIntegration.absoluteTolerance = tolerance / 100
            settings.timeIntegration.minimumStepSize = 1e-9
        start = time.perf_counter()
        mbs.SolveDynamic(settings, solverType=kind)
        best = min(best, time.perf_counter() - start)
        q = mbs.GetNodeOutput(node, exu.OutputVariableType.Coordinates) + np.array(arm["q"])
        if tolerance is not None:
            steps = int(mbs.sys["dynamicSolver"].it.currentStepIndex)
    return best, q.tolist(), steps


def main():
    arm = json.load(sys.stdin)
    rows = []
    for dt in arm["steps"]:
        count = round(arm["seconds"] / dt)
        seconds, q, _ = solved(arm, exu.DynamicSolverType.RK44, count)
        rows.append({"method": "RK44", "setting": {"dt": dt}, "steps": count, "seconds": seconds, "q": q})
    for tolerance in arm["tolerances"]:
        seconds, q, steps = solved(arm, exu.DynamicSolverType.DOPRI5, 100, tolerance)
        rows.append({"method": "DOPRI5", "setting": {"rtol": tolerance}, "steps": max(1, steps), "seconds": seconds,
                     "q": q})  # fmt: skip
    print()
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
