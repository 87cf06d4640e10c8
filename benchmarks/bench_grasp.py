"""Two UR5 that hold one object: microseconds a state, one thread, against Pinocchio and MuJoCo.

    python benchmarks/bench_grasp.py

All get the same 4096 closed states. Pinocchio's `constraintDynamics` with two 6-D contacts between the arms and a
free-flyer has no batched call, so that its own is called in a Python loop (some 1 µs a call of what is measured); its
answers are compared before anything is timed. MuJoCo's welds are soft: its `mj_forward` solves another problem, by its
own Newton iterations, and is here for its time alone. polybody's calls check every state (grips closed, not coming
apart, rank) within the time given.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from rivals import FILES, best, robots

import polybody as pb

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "engines")]

COUNT, FEW = 4096, 512
HANDS = ["left_ee_link", "right_ee_link"]


def two_ur5() -> tuple[pb.Model, np.ndarray]:
    """(model, a configuration with the object between the hands)."""
    from test_grasp_against_pinocchio import two_arms

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arm = pb.load(robots() / FILES["UR5"][0])
    return two_arms(arm, 1.0, [0.4, -1.2, 1.6, -0.5, 0.8, -0.2])


def pinocchio_loop(grasp: pb.Grasp, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[Any, Any]:
    """(its twin, a call that goes through the states)."""
    from test_loops_against_pinocchio import Twin, pin

    twin = Twin(grasp.model, [(grip.tip, grip.hold) for grip in grasp.held.grips])
    rows = [(twin.q(x), twin.P @ y, twin.P @ z) for x, y, z in zip(q, v, tau, strict=True)]
    settings = pin.ProximalSettings(1e-12, 0.0, 1)

    def loop() -> None:
        for x, y, z in rows:
            pin.constraintDynamics(twin.model, twin.data, x, y, z, twin.contacts, twin.contact_data, settings)

    return twin, loop


def mujoco_loop(grasp: pb.Grasp, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Any:
    """A call of mj_forward on the states, the grips as weld constraints between sites."""
    import mujoco

    spec, m = mujoco.MjSpec(), grasp.model.mechanism
    spec.option.gravity = m.gravity
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT

    def turned(R: np.ndarray) -> np.ndarray:
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(R).ravel())
        return quaternion

    made = {-1: spec.worldbody}
    for joint, body in zip(m.joints, m.bodies, strict=True):
        own = made[joint.parent].add_body(name=body.name, pos=joint.position, quat=turned(joint.rotation))
        moments, axes = np.linalg.eigh(body.inertia)
        axes[:, 2] *= np.linalg.det(axes)
        moments[2] = min(moments[2], (moments[0] + moments[1]) * (1 - 1e-12))
        own.mass, own.ipos, own.explicitinertial = body.mass, body.com, True
        own.inertia, own.iquat = moments, turned(axes)
        if joint.kind == "floating":
            own.add_freejoint(name=joint.name)
        else:
            own.add_joint(name=joint.name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=joint.model.constant_map[:3, 0])
        made[joint.index] = own
    for j, grip in enumerate(grasp.held.grips):
        for end, frame in (("hand", grip.tip), ("hold", grip.hold)):
            made[frame.body].add_site(name=f"{end}{j}", pos=frame.position, quat=turned(frame.rotation))
        weld = spec.add_equality(name1=f"hand{j}", name2=f"hold{j}", objtype=mujoco.mjtObj.mjOBJ_SITE)
        weld.type = mujoco.mjtEq.mjEQ_WELD
    model = spec.compile()
    data, free = mujoco.MjData(model), m.joints[grasp.held.object]
    Q = np.array(q)
    Q[:, free.q] = np.column_stack([q[:, free.q][:, :3], q[:, free.q][:, [6, 3, 4, 5]]])
    V, T = (np.array(x) for x in (v, tau))
    for x, y in ((v, V), (tau, T)):
        y[:, free.v] = x[:, free.v][:, [3, 4, 5, 0, 1, 2]]

    def loop() -> None:
        for x, y, z in zip(Q, V, T, strict=True):
            data.qpos[:], data.qvel[:], data.qfrc_applied[:] = x, y, z
            mujoco.mj_forward(model, data)

    return loop


def main() -> None:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    os.environ["POLYBODY_CACHE"] = tempfile.mkdtemp()  # so that compiling is measured, not reading
    model, start = two_ur5()
    grasp, rng = pb.grasp(model, "load", HANDS, start), np.random.default_rng(0)
    moved, v, tau = rng.normal(size=(3, COUNT, model.nv))
    q, v = grasp.project(model.integrate(start, 0.2 * moved), v)
    tau *= 20.0
    begun = time.process_time()
    motion = grasp.forward_dynamics(q, v, tau)
    forward_compiled = time.process_time() - begun
    wanted, internal = motion.a[:, -6:], rng.normal(size=(COUNT, 6))
    begun = time.process_time()
    grasp.inverse_dynamics(q, v, wanted, internal=internal)
    inverse_compiled = time.process_time() - begun
    twin, pinocchio = pinocchio_loop(grasp, q[:FEW], v[:FEW], tau[:FEW])
    error = max(
        np.abs(motion.a[k] - twin.accelerations(q[k], v[k], tau[k])).max() / np.abs(motion.a[k]).max()
        for k in range(0, COUNT, 200)
    )
    open_states = model.integrate(q, 0.01 * moved)
    with pb.threads(1):
        rows = [
            ("polybody forward", best(lambda: grasp.forward_dynamics(q, v, tau)) / COUNT),
            ("polybody inverse", best(lambda: grasp.inverse_dynamics(q, v, wanted, internal=internal)) / COUNT),
            ("polybody project", best(lambda: grasp.project(open_states)) / COUNT),
            ("Pinocchio forward", best(pinocchio) / FEW),
            ("MuJoCo mj_forward", best(mujoco_loop(grasp, q[:FEW], v[:FEW], tau[:FEW])) / FEW),
        ]
    print(f"load before {load:.1f}; largest relative difference from Pinocchio {error:.1e}")
    print(f"first calls: forward {forward_compiled:.2f} s, inverse {inverse_compiled:.2f} s of CPU, compiling included")
    for name, seconds in rows:
        ratio = "" if name.startswith("polybody") else f"   ratio to forward {seconds / rows[0][1]:.1f}"
        print(f"{name:18} {seconds * 1e6:8.3f} us a state{ratio}")


if __name__ == "__main__":
    main()
