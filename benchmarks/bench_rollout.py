"""RK4 steps a second of many arms at once: polybody's `rollout` against MuJoCo's, same arm, torques and threads.

    python benchmarks/bench_rollout.py [threads …]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import polybody as pb
from polybody.kernels import threads

BATCH, STEPS, DT = 2048, 100, 1e-3


def mujoco_arm(model: pb.Model) -> tuple[object, Callable[..., object]]:
    """The same arm in MuJoCo: bodies, inertias and joints copied from the mechanism, contacts off, RK4."""
    import mujoco
    from mujoco import rollout

    spec = mujoco.MjSpec()
    spec.option.timestep, spec.option.integrator = DT, mujoco.mjtIntegrator.mjINT_RK4
    spec.option.gravity = model.gravity
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    bodies = {-1: spec.worldbody}
    for joint, body in zip(model.mechanism.joints, model.mechanism.bodies, strict=True):
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, joint.rotation.ravel())
        made = bodies[joint.parent].add_body(name=body.name, pos=joint.position, quat=quaternion)
        made.mass, made.ipos, made.explicitinertial = body.mass, body.com, True
        moments, axes = np.linalg.eigh(body.inertia)
        axes[:, 2] *= np.linalg.det(axes)
        moments[2] = min(moments[2], (moments[0] + moments[1]) * (1 - 1e-12))  # flat bodies: MuJoCo refuses rounding
        mujoco.mju_mat2Quat(quaternion, axes.ravel())
        made.inertia, made.iquat = moments, quaternion
        slide = joint.kind == "prismatic"
        axis = joint.model.constant_map[3:, 0] if slide else joint.model.constant_map[:3, 0]
        kind = mujoco.mjtJoint.mjJNT_SLIDE if slide else mujoco.mjtJoint.mjJNT_HINGE
        made.add_joint(name=joint.name, type=kind, axis=axis)
        motor = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.gainprm[0] = 1.0
        bodies[joint.index] = made
    return spec.compile(), rollout.rollout


def best(function: Callable[[], object], tries: int = 5) -> float:
    function()
    times = []
    for _ in range(tries):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def compare(name: str, count: int) -> None:
    import mujoco

    model = pb.load(name)
    rng = np.random.default_rng(0)
    q, v = model.random_configuration(rng, BATCH), 0.3 * rng.normal(size=(BATCH, model.nv))
    tau = rng.normal(size=(BATCH, STEPS, model.nv))
    arm, roll = mujoco_arm(model)
    state = np.concatenate([np.zeros((BATCH, 1)), q, v], axis=1)
    data = [mujoco.MjData(arm) for _ in range(count)]
    theirs, _ = roll(arm, data, state, tau)
    with threads(count):
        ours = pb.rollout(model, q, v, tau, dt=DT)
        apart = np.abs(ours.q - theirs[:, :, 1 : 1 + model.nq]).max()
        mine = best(lambda: pb.rollout(model, q, v, tau, dt=DT))
    other = best(lambda: roll(arm, data, state, tau), 3)
    steps = BATCH * STEPS
    print(
        f"{name:14s} {count} thread(s)   polybody {steps / mine / 1e6:8.2f} M steps/s ({mine / steps * 1e9:6.0f} ns)   "
        f"MuJoCo {steps / other / 1e6:6.3f} M steps/s ({other / steps * 1e9:6.0f} ns)   ratio {other / mine:6.1f}   "
        f"largest difference of q {apart:.1e}"
    )


if __name__ == "__main__":
    for count in [int(x) for x in sys.argv[1:]] or [1, 2]:
        for name in ("stanford-arm",):
            compare(name, count)
