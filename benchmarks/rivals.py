"""What the benchmarks share: timing as ratios in one run, robots, and the rivals' own batched or looped calls."""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("POLYBODY_TIER", "optimised")  # what is measured is compiled code

import polybody as pb
from polybody.description.records import Body, Description, Joint, frozen_array
from polybody.mechanism import mechanism_from

Array = np.ndarray


#: of every measurement; BENCH_SECONDS=0.2 for a short run on a machine that others use
SECONDS = float(os.environ.get("BENCH_SECONDS", "0.6"))


def best(work: Callable[[], object], seconds: float = SECONDS, least: int = 3) -> float:
    """The shortest of many runs: other processes only ever make one longer."""
    work()
    shortest, end, runs = float("inf"), time.perf_counter() + seconds, 0
    while runs < least or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - start)
        runs += 1
    return shortest


TURNS = 6


def best_of(*works: Callable[[], object], seconds: float = SECONDS) -> list[float]:
    """`best` of each, by turns of many runs: what disturbs one for a while does not decide a ratio."""
    rounds = [[best(work, seconds / TURNS, 2) for work in works] for _ in range(TURNS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def robots() -> Path:
    """The folder of example-robot-data."""
    import pinocchio

    return Path(pinocchio.__file__).parents[4] / "share" / "example-robot-data" / "robots"


FILES = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", False),
    "Panda": ("panda_description/urdf/panda.urdf", False),
    "G1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", True),
    "TALOS": ("talos_data/robots/talos_reduced.urdf", True),
}


def robot(name: str, couplings: bool = True) -> tuple[Any, Any]:
    """(what `pb.load` returns, Pinocchio's model) of the same URDF, with joints that follow others or with all free."""
    relative, floating = FILES[name]
    path = robots() / relative
    if not path.exists():
        folder = robots() / relative.split("/")[0]
        path = sorted(folder.rglob("*.urdf"))[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = pb.load(path, base="floating" if floating else "fixed", couplings=couplings,
                       friction=False)  # Pinocchio has none
    return ours, pinocchio_model(path, floating, couplings)


def arm_without_fingers() -> tuple[Any, Any]:
    """The Panda with its fingers locked, for both."""
    import pinocchio as pin

    ours, theirs = robot("Panda", couplings=False)
    fingers = [name for name in ours.joint_names if "finger" in name]
    places = [theirs.getJointId(name) for name in fingers]
    return ours.lock(fingers), pin.buildReducedModel(theirs, places, pin.neutral(theirs))


def pinocchio_model(path: Path, floating: bool, couplings: bool) -> Any:
    """Pinocchio's reading, by default with every joint free; its mimic joints have no coordinates, as ours."""
    import pinocchio as pin

    return pin.buildModelFromUrdf(str(path), *([pin.JointModelFreeFlyer()] if floating else []), mimic=couplings)


def has_mimic(model: Any) -> bool:
    """Whether a Pinocchio model has mimic joints: its aba and derivatives refuse them."""
    return any("Mimic" in joint.shortname() for joint in model.joints)


_AXES = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))


def chain_description(n: int) -> Description:
    """A serial chain of n links, axes z, y, x in turn."""
    origin = np.eye(4)
    origin[:3, 3] = 0.1, 0.0, 0.3
    bodies = [
        Body(f"b{i}", 1.0 + 0.1 * (i % 3), frozen_array((0.05, 0.02, 0.15)), frozen_array(np.diag((0.02, 0.03, 0.015))))
        for i in range(n)
    ]
    joints = [
        Joint(f"j{i}", "revolute", f"b{i - 1}" if i else "world", f"b{i}", frozen_array(origin),
              frozen_array(_AXES[i % 3]))
        for i in range(n)
    ]  # fmt: skip
    return Description(f"chain-{n}", bodies=tuple(bodies), joints=tuple(joints))


def chain(n: int) -> tuple[Any, Any]:
    """(polybody's model, Pinocchio's model) of the chain."""
    import pinocchio as pin

    description = chain_description(n)
    turns = (pin.JointModelRZ(), pin.JointModelRY(), pin.JointModelRX())
    theirs, last = pin.Model(), 0
    for i, (body, joint) in enumerate(zip(description.bodies, description.joints, strict=True)):
        place = pin.SE3(np.array(joint.origin[:3, :3]), np.array(joint.origin[:3, 3]))
        last = theirs.addJoint(last, turns[i % 3], place, joint.name)
        own = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
        theirs.appendBodyToJoint(last, own, pin.SE3.Identity())
    return pb.Model(mechanism_from(description)), theirs


def pinocchio_states(model: Any, states: int, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """q, v, a and a result, as columns of states in Fortran order: the layout Pinocchio wants."""
    import pinocchio as pin

    q = np.asfortranarray(np.column_stack([pin.neutral(model)] * states))
    for joint in model.joints:
        if joint.nq == 1 and joint.nv == 1:
            q[joint.idx_q] = rng.uniform(-1, 1, states)
    v, a = (np.asfortranarray(rng.normal(size=(model.nv, states))) for _ in range(2))
    return q, v, a, np.asfortranarray(np.zeros((model.nv, states)))


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    import llvmlite.binding as llvm

    from polybody.kernels.target import host

    return {
        "cpu": platform.processor() or llvm.get_host_cpu_name(),
        "llvm_cpu": host().cpu,
        "lanes": host().lanes,
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "date": time.strftime("%Y-%m-%d"),
    }
