"""Engines that live in environments of their own: frax and MJX (JAX, float64 and float32), dynibo (Rust, single calls).

    python benchmarks/anchors.py [frax mjx dynibo]    writes results/anchors.json; `bench_dynamics.py` runs them too

    FRAX_PYTHON, MJX_PYTHON, DYNIBO_PYTHON    the python of an environment that has the package; where one is not
                                              named, its rows are left out

Each runs its own best way on one core (`jit` of `vmap` over a batch of 4,096; calls in a loop), and tells its times
and, for a few states, its answers: the differences from ours are printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rivals import best, machine, robot, robots

import polybody as pb

Record = Callable[..., None]  # (model, quantity, rival, our seconds, their seconds, difference=…)
BATCH = 4096
TIMING = """
import json, sys, time
import numpy as np
given = np.load(sys.argv[1])
q, v, a = given["q"], given["v"], given["a"]
def best(work, seconds=0.8):
    work()
    shortest, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter(); work(); shortest = min(shortest, time.perf_counter() - begun)
    return shortest
"""
FRAX = TIMING + """
import jax, jax.numpy as jnp, frax
from frax.assets import FRANKA_ASSETS_DIR
arm = frax.load_panda()
down = jnp.array([0, 0, 9.81, 0, 0, 0])  # acceleration of the base, against gravity
x = [jnp.asarray(k) for k in (q, v, a)]
inverse = jax.jit(jax.vmap(lambda q, v, a: arm.rnea(q, v, a, down, None)))
forward = jax.jit(jax.vmap(lambda q, v, tau: arm.forward_dynamics(q, v, tau, None)))
told = {"file": str(FRANKA_ASSETS_DIR / "panda.urdf"), "dtype": str(x[0].dtype)}
for name, call in (("inverse_dynamics", inverse), ("forward_dynamics", forward)):
    told[name] = best(lambda: call(*x).block_until_ready()) / len(q)
    told[name + "_result"] = np.asarray(call(*x))[:8].tolist()
print(json.dumps(told))
"""
MJX = TIMING + """
import jax, jax.numpy as jnp, mujoco
from mujoco import mjx
model = mujoco.MjModel.from_xml_path(sys.argv[2])
model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
theirs, data = mjx.put_model(model), mjx.put_data(model, mujoco.MjData(model))
x = [jnp.asarray(k) for k in (q, v, a)]
def one(q, v, tau):
    return mjx.forward(theirs, data.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc
forward = jax.jit(jax.vmap(one))
told = {"dtype": str(x[0].dtype), "forward_dynamics": best(lambda: forward(*x).block_until_ready()) / len(q)}
told["forward_dynamics_result"] = np.asarray(forward(*x))[:8].tolist()
print(json.dumps(told))
"""
DYNIBO = TIMING + """
from dynibo import Robot
arm = Robot.from_urdf(sys.argv[2])
told = {}
for name in ("inverse_dynamics", "forward_dynamics"):
    call = getattr(arm, name)
    told[name] = best(lambda: [call(*state) for state in zip(q, v, a)]) / len(q)
    told[name + "_result"] = [np.asarray(call(*state)).tolist() for state in zip(q[:8], v[:8], a[:8])]
print(json.dumps(told))
"""
ARM = "<mujoco><worldbody>{}</worldbody></mujoco>"


def asked(python: str, script: str, states: dict[str, np.ndarray], *arguments: str, single: bool = False) -> Any:
    """What a script in another environment tells about these states."""
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "0" if single else "1", "XLA_FLAGS": flags}
    environment.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "states.npz"
        np.savez(path, **states)
        found = subprocess.run(
            ["taskset", "-c", "0", python, "-c", script, str(path), *arguments], env=environment, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
    return json.loads(found.stdout.splitlines()[-1])


def states_of(nq: int, nv: int, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"q": rng.uniform(-1, 1, (count, nq)), "v": rng.normal(size=(count, nv)), "a": rng.normal(size=(count, nv))}


def entered(told: Any, model: Any, states: dict[str, np.ndarray], title: str, rival: str, record: Record) -> None:
    """A row for each quantity told, our batch beside theirs, with the difference of the results."""
    dtype = np.dtype(told["dtype"])
    given = [x.astype(dtype) for x in states.values()]
    for quantity in ("inverse_dynamics", "forward_dynamics"):
        if quantity in told:
            call = getattr(model, quantity)
            with pb.threads(1):
                mine = best(lambda call=call: call(*given)) / len(given[0])
            wanted = np.array(told[quantity + "_result"])
            apart = float(np.abs(call(*given)[: len(wanted)] - wanted).max() / np.abs(wanted).max())
            name = f"{quantity.replace('_', ' ')}, {dtype}"
            record(title, name, rival, mine, told[quantity], difference=apart)
            print(f"{'':28s} results differ by {apart:.1e}")


def against_frax(python: str, record: Record) -> None:
    states = states_of(7, 7, BATCH)
    for single in (False, True):
        told = asked(python, FRAX, states, single=single)
        model = pb.load(told["file"], friction=False)
        model = model.lock([name for name in model.joint_names if "finger" in name]) if model.nv > 7 else model
        entered(told, model, states, "frax's Panda", "frax, batch of 4,096", record)


def against_mjx(python: str, record: Record) -> None:
    inertial = '<inertial pos="0 0 .15" mass="1" diaginertia=".02 .03 .01"/>'
    axes = ("0 0 1", "0 1 0", "0 1 0", "0 0 1", "0 1 0", "1 0 0")
    bodies = "".join(f'<body pos="0 0 .3"><joint axis="{axis}"/>{inertial}' for axis in axes) + "</body>" * 6
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.xml"
        path.write_text(ARM.format(bodies))
        model, states = pb.load(path), states_of(6, 6, BATCH)
        for single in (False, True):
            told = asked(python, MJX, states, str(path), single=single)
            entered(told, model, states, "6R arm", "MJX, batch of 4,096", record)


def against_dynibo(python: str, record: Record) -> None:
    path = robots() / "ur_description" / "urdf" / "ur5_robot.urdf"
    model, states = robot("UR5")[0].with_gravity((0, 0, -9.80665)), states_of(6, 6, 400)  # its gravity
    told = asked(python, DYNIBO, states, str(path))
    rows = [tuple(np.ascontiguousarray(x[k]) for x in states.values()) for k in range(400)]
    for quantity in ("inverse_dynamics", "forward_dynamics"):
        call = getattr(model, quantity)
        for row in rows[:3]:
            call(*row)
        call = getattr(model, quantity)
        mine = best(lambda call=call: [call(*row) for row in rows]) / len(rows)
        wanted = np.array(told[quantity + "_result"])
        apart = float(np.abs([call(*row) for row in rows[:8]] - wanted).max() / np.abs(wanted).max())
        name = f"single {quantity.replace('_', ' ')}"
        record("UR5", name, "dynibo, call", mine, told[quantity], difference=apart)
        print(f"{'':28s} results differ by {apart:.1e}")


def compared(record: Record) -> None:
    """Rows for every engine whose environment is named."""
    engines = {"FRAX_PYTHON": against_frax, "MJX_PYTHON": against_mjx, "DYNIBO_PYTHON": against_dynibo}
    for variable, against in engines.items():
        if os.environ.get(variable):
            against(os.environ[variable], record)
        else:
            print(f"{variable} is not set: no rows of {variable.partition('_')[0].lower()}")


def main() -> None:
    """The engines named, or all, into a file of their own; what is measured again replaces its rows."""
    chosen = sys.argv[1:] or ["frax", "mjx", "dynibo"]
    path = Path(__file__).parent / "results" / "anchors.json"
    before = json.loads(path.read_text())["results"] if path.exists() else []
    rows = [row for row in before if not row["rival"].lower().startswith(tuple(chosen))]

    def record(model: str, quantity: str, rival: str, ours: float, theirs: float, *, difference: float) -> None:
        rows.append({"model": model, "quantity": quantity, "rival": rival, "ours_ns": 1e9 * ours,
                     "rival_ns": 1e9 * theirs, "ratio": theirs / ours, "difference": difference})  # fmt: skip
        print(f"{model:14s} {quantity:28s} {rival:22s} {1e9 * ours:8.1f} {1e9 * theirs:9.1f} ns {theirs / ours:7.1f}")

    for engine in chosen:
        python = os.environ.get(f"{engine.upper()}_PYTHON")
        if python:
            {"frax": against_frax, "mjx": against_mjx, "dynibo": against_dynibo}[engine](python, record)
        else:
            print(f"{engine.upper()}_PYTHON is not set")
    path.write_text(json.dumps({"machine": machine(), "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
