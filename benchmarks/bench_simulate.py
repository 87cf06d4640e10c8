"""One motion, by everybody's integrators: µs per step, and error against cost (work-precision diagram).

    python benchmarks/bench_simulate.py [SYSTEM …] [--json FILE] [--picture FILE]

Systems: UR5 falling freely, a floating G1 with moving joints, a Stewart platform that sinks, forty four-bars, and a
chain of 200 links. All start from the same state, without contacts and limits. The error is the distance of a probe
body from where the reference (dop853, rtol 1e-13) has it at the end; the cost is the time of the whole run, one thread,
the shortest of several.

    polybody    pb.simulate: rk4, semi-implicit, dop853, radau
    MuJoCo      its own C loop (`mujoco.rollout`): RK4 and implicitfast, the model written by `model.save("….xml")`
    SciPy       solve_ivp (DOP853) on Pinocchio's aba, with loops on constraintDynamics (no projection)
    Drake       its continuous MultibodyPlant by Runge-Kutta of orders 3 and 5 and semi-explicit Euler in C++; trees
                only, for it has loops in discrete time only; DRAKE_PYTHON names the Python that has it
    Exudyn      its kinematic tree by RK44 and DOPRI5 in C++, UR5 only; EXUDYN_PYTHON names the Python that has it

MuJoCo's loops are soft constraints: its error there is that of its model, not of its steps.

`controllers` instead of a system: what steps cost under controllers (`controlled.py`).

`events` instead of a system: what an event costs (a limit reached, a joint that comes to rest or slips), by our methods
alone. The time per event is that of the whole run, its steps included, over the number of events dealt with.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / folder) for folder in ("tests", "tests/engines", "examples"))]

import controlled  # noqa: E402
from rivals import FILES, machine, robots  # noqa: E402

import polybody as pb  # noqa: E402

Array = np.ndarray
STEPS = {"rk4": (8e-3, 4e-3, 2e-3, 1e-3, 5e-4), "semi-implicit": (2e-3, 1e-3, 5e-4, 2.5e-4)}
LONG = 2_500  # steps
OTHERS = ("events", "controllers")  # that are no systems
TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)


@dataclass
class System:
    """What is simulated, from where, how long, and which body tells the error."""

    name: str
    model: pb.Model
    q: Array
    v: Array
    seconds: float
    probe: str

    def place(self, q: Array) -> Array:
        return self.model.pose(q, self.probe)[:3, 3]


def systems() -> dict[str, Callable[[], System]]:
    return {"UR5": ur5, "G1": g1, "Stewart": stewart, "40 four-bars": four_bars, "200 links": links}


def _urdf(name: str, base: str) -> pb.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pb.load(robots() / FILES[name][0], base=base, friction=False)


def ur5() -> System:
    model = _urdf("UR5", "fixed")
    q = np.array([0.3, -1.0, 0.8, 0.4, 0.9, 0.2])
    return System("UR5", model, q, np.zeros(model.nv), 1.0, model.body_names[-1])


def g1() -> System:
    model = _urdf("G1", "floating")
    rng, q = np.random.default_rng(3), model.neutral()
    q[7:] = rng.uniform(-0.3, 0.3, model.nq - 7)
    return System("G1", model, q, rng.normal(size=model.nv), 0.32, model.body_names[-1])


def stewart() -> System:
    model = pb.load("stewart")
    return System("Stewart", model, model.assemble(), np.zeros(model.nv), 0.2, "platform")


def four_bars() -> System:
    from four_bar_chain import LOOPS, RATE, chain

    model = chain(LOOPS)
    turning = np.array([joint.name.startswith("base") for joint in model.mechanism.joints])
    return System("40 four-bars", model, model.neutral(), np.where(turning, RATE, -RATE), 0.32, f"top{LOOPS}")


def links(count: int = 200) -> System:
    """A chain of hinges about two axes in turn, damped, from a bent configuration."""
    build, rng = pb.Builder("chain"), np.random.default_rng(0)
    for k in range(count):
        origin = np.eye(4)
        origin[0, 3] = 0.1 if k else 0.0
        build.body(f"b{k}", 1.0, (0.05, 0, 0), (1e-3, 2e-3, 2e-3))
        axis = ((0, 0, 1), (0, 1, 0))[k % 2]
        parent = f"b{k - 1}" if k else "world"
        build.joint(f"j{k}", "revolute", parent, f"b{k}", origin, axis=axis, damping=0.1, armature=0.01)
    model = build.model()
    return System("200 links", model, rng.uniform(-0.3, 0.3, count), rng.normal(size=count), 0.1, f"b{count - 1}")


def shortest(work: Callable[[], Any], seconds: float = 0.4) -> tuple[float, Any]:
    """(time of the fastest run, what it gave)."""
    found, best, end, runs = work(), np.inf, time.perf_counter() + seconds, 0
    while runs < 2 or (time.perf_counter() < end and runs < 30):
        start = time.perf_counter()
        found = work()
        best, runs = min(best, time.perf_counter() - start), runs + 1
    return best, found


# The rivals: each gives rows {who, method, setting, steps, seconds, error}.


def ours(s: System, reference: Array) -> list[dict[str, Any]]:
    rows = []
    settings: list[tuple[str, dict[str, float]]] = [(m, {"dt": dt}) for m, all_dt in STEPS.items() for dt in all_dt]
    settings += [(m, {"dt": s.seconds / LONG}) for m in STEPS]  # what a run costs beside its steps no longer matters
    settings += [("dop853", {"rtol": r, "atol": r / 100}) for r in TOLERANCES]
    settings += [("radau", {"rtol": r, "atol": r / 100}) for r in TOLERANCES[:4]]
    for method, setting in settings:
        options = {"method": method, "limits": "ignore", "sample": s.seconds, **setting}
        seconds, run = shortest(lambda options=options: pb.simulate(s.model, s.seconds, s.q, s.v, **options))
        rows.append(_row("polybody", method, setting, run.audit.steps, seconds, s.place(run.q[-1]), reference))
    return rows


def _row(
    who: str, method: str, setting: Any, steps: int, seconds: float, place: Array, reference: Array
) -> dict[str, Any]:
    error = float(np.linalg.norm(place - reference))
    return {"who": who, "method": method, "setting": setting, "steps": steps, "seconds": seconds, "error": error,
            "us_per_step": 1e6 * seconds / steps}  # fmt: skip


def mujoco_rows(s: System, reference: Array) -> list[dict[str, Any]]:
    import mujoco
    from mujoco import rollout

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            s.model.save(path, lossy=True)
        theirs = mujoco.MjModel.from_xml_path(str(path))
    theirs.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    data = mujoco.MjData(theirs)
    _start(s, theirs, data)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros(mujoco.mj_stateSize(theirs, full))
    mujoco.mj_getState(theirs, data, state, full)
    rows = []
    kinds = {"RK4": mujoco.mjtIntegrator.mjINT_RK4, "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST}
    for method, kind in kinds.items():
        for dt in STEPS["rk4" if method == "RK4" else "semi-implicit"]:
            theirs.opt.integrator, theirs.opt.timestep = kind, dt
            count = round(s.seconds / dt)
            seconds, (states, _) = shortest(lambda count=count: rollout.rollout(theirs, data, state, nstep=count))
            mujoco.mj_setState(theirs, data, states[0, -1], full)
            mujoco.mj_kinematics(theirs, data)
            rows.append(_row("MuJoCo", method, {"dt": dt}, count, seconds, data.body(s.probe).xpos.copy(), reference))
    return rows


def _start(s: System, theirs: Any, data: Any) -> None:
    """The same state in MuJoCo: joints of one number by name, a free base with its own order and axes."""
    import mujoco

    names = {theirs.joint(k).name: theirs.joint(k) for k in range(theirs.njnt)}
    for joint in s.model.mechanism.independent_joints:
        other = names.get(joint.name)
        if other is None:  # universal joints are two hinges there, at rest and at zero in all systems here
            continue
        at, speed = int(other.qposadr[0]), int(other.dofadr[0])
        q, v = s.q[joint.q], s.v[joint.v]
        if joint.kind == "floating":
            pose = s.model.pose(s.q, s.model.mechanism.bodies[joint.index].name)
            quaternion = np.zeros(4)
            mujoco.mju_mat2Quat(quaternion, pose[:3, :3].ravel())
            data.qpos[at : at + 7] = np.concatenate([pose[:3, 3], quaternion])
            data.qvel[speed : speed + 6] = np.concatenate([pose[:3, :3] @ v[3:], v[:3]])
        elif joint.nv == 1:
            data.qpos[at], data.qvel[speed] = q[0], v[0]


def scipy_rows(s: System, reference: Array) -> list[dict[str, Any]]:
    from scipy.integrate import solve_ivp
    from test_loops_against_pinocchio import Twin, pin

    m, twin = s.model.mechanism, Twin(s.model)
    nq, nothing = s.model.nq, np.zeros(s.model.nv)
    damping = np.concatenate([np.broadcast_to(np.asarray(j.damping, float).ravel(), (j.nv,)) if np.ndim(j.damping) < 2
                              else np.diag(j.damping) for j in m.independent_joints])  # fmt: skip
    plain = all(joint.model.rates_are_velocities for joint in m.joints)
    redundant = s.model.constraints.rank(s.q) < 3 * len(m.closures) if m.constrained else False
    settings = pin.ProximalSettings(1e-13, 1e-10, 50) if redundant else pin.ProximalSettings(1e-12, 0.0, 1)
    end = [np.inf]

    def accelerations(q: Array, v: Array) -> Array:
        if time.perf_counter() > end[0]:
            raise TimeoutError
        tau = twin.P @ (nothing - damping * v)
        if m.constrained:
            return twin.P.T @ pin.constraintDynamics(
                twin.model, twin.data, twin.q(q), twin.P @ v, tau, twin.contacts, twin.contact_data, settings)
        return twin.P.T @ pin.aba(twin.model, twin.data, twin.q(q), twin.P @ v, tau)

    def rate(t: float, y: Array) -> Array:
        q, v = y[:nq], y[nq:]
        moved = v if plain else _rates(m, q, v)
        return np.concatenate([moved, accelerations(q, v)])

    rows = []
    start = np.concatenate([s.q, s.v])
    for tolerance in TOLERANCES[:-1]:
        solve = lambda r=tolerance: solve_ivp(rate, (0, s.seconds), start, "DOP853", [s.seconds], rtol=r, atol=r / 100)  # noqa: E731
        end[0] = time.perf_counter() + 8.0
        try:
            seconds, found = shortest(solve, 0.1)
        except TimeoutError:
            print(f"SciPy on Pinocchio: three runs at rtol {tolerance:g} take more than 8 s; left out")
            continue
        steps = max(1, found.nfev // 12)
        place = s.place(s.model.normalize(found.y[:nq, -1]))
        rows.append(_row("SciPy on Pinocchio", "DOP853", {"rtol": tolerance}, steps, seconds, place, reference))
    return rows


def _rates(m: Any, q: Array, v: Array) -> Array:
    """q̇ = Γ(q) v, quaternions by hand: plain NumPy, as a user would write it."""
    result = np.empty(len(q))
    for joint in m.joints:
        if joint.kind != "floating":
            result[joint.q] = v[joint.v]
            continue
        x, y, z, w = q[joint.q][3:]
        rotation, (a, b, c), own = joint.model.configuration(q[joint.q])[0], v[joint.v][:3], joint.q.start
        result[own : own + 3] = rotation @ v[joint.v][3:]
        result[own + 3 : own + 7] = 0.5 * np.array([w * a + y * c - z * b, w * b + z * a - x * c, w * c + x * b - y * a,
                                                    -x * a - y * b - z * c])  # fmt: skip
    return result


def drake_rows(s: System, reference: Array) -> list[dict[str, Any]]:
    """The tree as Drake's continuous plant, in a process of its own."""
    python, m = os.environ.get("DRAKE_PYTHON"), s.model.mechanism
    if m.constrained or not python:
        return []
    links = []
    for j, b in zip(m.joints, m.bodies, strict=True):
        pose = s.model.pose(s.q, b.name)
        links.append({
            "body": b.name, "joint": j.name, "kind": j.kind, "parent": j.parent, "rotation": j.rotation.tolist(),
            "position": j.position.tolist(), "mass": b.mass, "com": b.com.tolist(), "inertia": b.inertia.tolist(),
            "axis": [] if j.kind == "floating" else j.model.constant_map[:3, 0].tolist(),
            "damping": float(np.ravel(j.damping)[0]) if np.size(j.damping) else 0.0,
            "armature": float(np.abs(m.armature[j.v, j.v]).max()), "q": s.q[j.q].tolist(), "v": s.v[j.v].tolist(),
            "pose_rotation": pose[:3, :3].tolist(), "pose_position": pose[:3, 3].tolist(),
        })  # fmt: skip
    tree = {"gravity": s.model.gravity.tolist(), "seconds": s.seconds, "steps": STEPS["rk4"],
            "small_steps": STEPS["semi-implicit"], "tolerances": TOLERANCES[:-1], "probe": s.probe,
            "links": links}  # fmt: skip
    told = subprocess.run([python, str(HERE / "drake_tree.py")], input=json.dumps(tree), capture_output=True, text=True)
    if told.returncode:
        print(f"Drake: {told.stderr.strip().splitlines()[-1:]}")
        return []
    found = json.loads(told.stdout.splitlines()[-1])
    return [_row("Drake", r["method"], r["setting"], r["steps"], r["seconds"], np.array(r["place"]), reference)
            for r in found]  # fmt: skip


def exudyn_rows(s: System, reference: Array) -> list[dict[str, Any]]:
    """The arm as Exudyn's kinematic tree, in a process of its own."""
    python = os.environ.get("EXUDYN_PYTHON")
    if s.name != "UR5" or not python:
        return []
    arm = {
        "gravity": s.model.gravity.tolist(), "q": s.q.tolist(), "seconds": s.seconds, "steps": STEPS["rk4"],
        "tolerances": TOLERANCES[:-1],
        "links": [{"rotation": j.rotation.tolist(), "position": j.position.tolist(),
                   "axis": j.model.constant_map[:3, 0].tolist(), "mass": b.mass, "com": b.com.tolist(),
                   "inertia": b.inertia.tolist()}
                  for j, b in zip(s.model.mechanism.joints, s.model.mechanism.bodies, strict=True)],
    }  # fmt: skip
    told = subprocess.run([python, str(HERE / "exudyn_arm.py")], input=json.dumps(arm), capture_output=True, text=True)
    if told.returncode:
        print(f"Exudyn: {told.stderr.strip().splitlines()[-1:]}")
        return []
    found = json.loads(told.stdout.splitlines()[-1])
    return [_row("Exudyn", r["method"], r["setting"], r["steps"], r["seconds"], s.place(np.array(r["q"])), reference)
            for r in found]  # fmt: skip


# Events.


def block() -> tuple[pb.Model, Array, Array, float, dict[str, Any]]:
    """Bounces on its stop, 18 times."""
    build = pb.Builder("block")
    build.body("block", 1.0)
    build.joint("z", "prismatic", "world", "block", axis=(0, 0, 1), limits=(0.0, 100.0))
    return build.model(), np.array([1.0]), np.zeros(1), 4.0, {"restitution": 0.8}


def sticking(load: float = 0.0) -> tuple[pb.Model, Array, Array, float, dict[str, Any]]:
    """An arm of three joints whose bearings stick, slip and hit a stop; friction by `load` too."""
    build = pb.Builder("arm", gravity=(0, -9.81, 0))
    for name in "abc":
        build.body(name, 1.0, com=(0.3, 0, 0), inertia=(0.01, 0.03, 0.03))
    curve = {"coulomb": 0.8, "static": 1.4, "stribeck": 0.2, "viscous": 0.1, "load": load}
    build.joint("one", "revolute", "world", "a", friction=curve)
    build.joint("two", "revolute", "a", "b", (0.6, 0, 0), friction={"coulomb": 0.6, "load": load}, limits=(-1.2, 0.5))
    build.joint("three", "revolute", "b", "c", (0.6, 0, 0), damping=0.05)
    return build.model(), np.array([0.3, 0.2, -0.4]), np.array([0.0, 0.5, 0.0]), 5.0, {}


def falling() -> tuple[pb.Model, Array, Array, float, dict[str, Any]]:
    """A UR5 that falls onto its stops."""
    s = ur5()
    return s.model, s.q, s.v, 10.0, {}


def four_bar(load: float = 0.0) -> tuple[pb.Model, Array, Array, float, dict[str, Any]]:
    """A four-bar whose crank is pushed to and fro between its stops, with dry friction in two joints."""
    build = pb.Builder("four-bar", gravity=(0, -9.81, 0))
    for name, mass, length in (("crank", 1.0, 0.5), ("coupler", 2.0, 1.2), ("rocker", 1.5, 0.9)):
        build.body(name, mass, (length / 2, 0, 0), (0, mass * length**2 / 12, mass * length**2 / 12))
    rough = {"coulomb": 1.0, "static": 1.2, "load": load}
    build.joint("a", "revolute", "world", "crank", limits=(0.2, 1.2), friction=rough)
    build.joint("b", "revolute", "crank", "coupler", (0.5, 0, 0))
    build.joint("d", "revolute", "world", "rocker", (1.1, 0, 0), friction=rough)
    build.loop("c", "revolute", "coupler", "rocker", (1.2, 0, 0), (0.9, 0, 0))
    model, push = build.model(), np.zeros((9, 3))
    push[1:, 0] = [15, -25, 20, -20, 15, -25, 20, -20]
    law = pb.controllers.Given(model, push, np.linspace(0, 4, 9))
    q = model.assemble([0.7, -0.274, 1.141], hold=["a"])
    return model, q, np.zeros(3), 4.0, {"controller": law, "restitution": 0.3}


def platform() -> tuple[pb.Model, Array, Array, float, dict[str, Any]]:
    """A Stewart platform that falls until its legs are at their stops."""
    model = pb.load("stewart")
    q = model.assemble(model.neutral())
    return model, q, model.assemble_velocity(q, 0.02 * np.arange(model.nv)), 0.6, {"restitution": 0.5}


def kicked(friction: bool) -> tuple[pb.Model, Array, Array, float, dict[str, Any]]:
    """The arm that sticks, or one without friction and stops, whose joints an action of the user slows ten times a
    second."""
    model, q, v, seconds, _ = sticking()
    if not friction:
        build = pb.Builder("arm", gravity=(0, -9.81, 0))
        for k, name in enumerate("abc"):
            build.body(name, 1.0, com=(0.3, 0, 0), inertia=(0.01, 0.03, 0.03))
            build.joint(f"j{k}", "revolute", ("world", "a", "b")[k], name, (0.6 * (k > 0), 0, 0))
        model = build.model()
    kick = pb.Event("kick", lambda t, q, v: np.sin(10 * np.pi * t + 0.5), action=lambda t, q, v: (q, 0.8 * v))
    return model, q, v, seconds, {"events": [kick]}


def event_rows() -> list[dict[str, Any]]:
    from polybody.simulation.switches import Switches

    cases: dict[str, Callable[[], Any]] = {"block bounces": block, "arm sticks": sticking, "UR5 on stops": falling}
    cases |= {"arm, by load": lambda: sticking(0.02), "four-bar": four_bar, "four-bar, by load": lambda: four_bar(0.01)}
    cases |= {"Stewart on stops": platform, "action": lambda: kicked(False), "arm with action": lambda: kicked(True)}
    original, rows = (Switches.act, Switches.happened), []  # in Python, and those that compiled loops decide
    for name, make in cases.items():
        model, q, v, seconds, more = make()
        methods = ("rk4", "dop853", "radau", "semi-implicit" if model.mechanism.constrained else "midpoint")
        for method in methods:
            count = [0]

            def counted(of: Any, count: list[int] = count) -> Any:
                def call(self: Any, *given: Any) -> Any:
                    count[0] += 1
                    return of(self, *given)

                return call

            options = {"method": method, "sample": seconds, **more}
            Switches.act, Switches.happened = map(counted, original)  # type: ignore[method-assign]
            pb.simulate(model, seconds, q, v, **options)
            Switches.act, Switches.happened = original  # type: ignore[method-assign]
            took, run = shortest(lambda options=options: pb.simulate(model, seconds, q, v, **options))  # noqa: B023
            rows.append({"who": name, "method": method, "setting": {"events": count[0]}, "steps": run.audit.steps,
                         "seconds": took, "error": 0.0, "us_per_step": 1e6 * took / run.audit.steps,
                         "us_per_event": 1e6 * took / max(count[0], 1), "path": run.audit.path})  # fmt: skip
    return rows


def show_events(rows: list[dict[str, Any]]) -> None:
    print(f"\nevents: {'run':20s}{'method':14s}{'steps':>8s}{'events':>8s}{'ms/run':>10s}{'µs/event':>10s}  path")
    for r in rows:
        print(f"        {r['who']:20s}{r['method']:14s}{r['steps']:8d}{r['setting']['events']:8d}"
              f"{1e3 * r['seconds']:10.2f}{r['us_per_event']:10.0f}  {r['path']}", flush=True)  # fmt: skip


def measure(names: list[str]) -> dict[str, list[dict[str, Any]]]:
    results = {}
    for name in names:
        if name == "controllers":
            with pb.threads(1):
                results[name] = controlled.rows([ur5(), stewart()], shortest)
            continue
        if name == "events":
            with warnings.catch_warnings(), pb.threads(1):
                warnings.simplefilter("ignore")
                results[name] = event_rows()
            show_events(results[name])
            continue
        s = systems()[name]()
        exact = pb.simulate(s.model, s.seconds, s.q, s.v, limits="ignore", rtol=1e-13, atol=1e-15, sample=s.seconds)
        reference = s.place(exact.q[-1])
        rows: list[dict[str, Any]] = []
        with warnings.catch_warnings(), pb.threads(1):
            warnings.simplefilter("ignore")
            for rival in (ours, mujoco_rows, scipy_rows, drake_rows, exudyn_rows):
                try:
                    rows += rival(s, reference)
                except ImportError as error:
                    print(f"{rival.__name__}: {error}")
        results[name] = rows
        show(name, rows)
    return results


def show(name: str, rows: list[dict[str, Any]]) -> None:
    heads = f"{'who':22s}{'method':24s}{'setting':>20s}{'steps':>8s}{'µs/step':>10s}{'ms/run':>10s}{'error, m':>11s}"
    print(f"\n{name}: {heads}")
    for r in rows:
        setting = ", ".join(f"{k} {v:g}" for k, v in r["setting"].items() if k != "atol")
        print(f"{'':{len(name) + 2}}{r['who']:22s}{r['method']:24s}{setting:>20s}{r['steps']:8d}"
              f"{r['us_per_step']:10.2f}{1e3 * r['seconds']:10.2f}{r['error']:11.1e}", flush=True)  # fmt: skip


def picture(results: dict[str, list[dict[str, Any]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    results = {name: rows for name, rows in results.items() if name not in OTHERS}
    figure, axes = plt.subplots(1, len(results), figsize=(4.3 * len(results), 4), layout="constrained", squeeze=False)
    marks = {"polybody": ("C0", "o"), "MuJoCo": ("C1", "s"), "SciPy on Pinocchio": ("C2", "^"), "Exudyn": ("C3", "d"),
             "Drake": ("C4", "v")}
    lines = ("-", "--", ":", "-.")
    for ax, (name, rows) in zip(axes[0], results.items(), strict=True):
        methods: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in rows:
            methods.setdefault((row["who"], row["method"]), []).append(row)
        seen: dict[str, int] = {}
        for (who, method), points in methods.items():
            points = [r for r in points if r["steps"] < LONG or who != "polybody"]
            colour, mark = marks[who]
            style = lines[seen.get(who, 0) % 4]
            seen[who] = seen.get(who, 0) + 1
            ax.loglog([1e3 * r["seconds"] for r in points], [max(r["error"], 1e-16) for r in points], color=colour,
                      marker=mark, ms=4, ls=style, lw=1, label=f"{who}: {method}")  # fmt: skip
        ax.set(title=name, xlabel="time of the run, ms", ylabel="error of the probe body, m")
        ax.grid(alpha=0.3)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=8, fontsize=8)
    figure.savefig(path, dpi=120)
    print(f"written: {path}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("systems", nargs="*", default=[*systems(), *OTHERS])
    options.add_argument("--json", type=Path, help="write the rows there; what is there of other systems is kept")
    options.add_argument("--picture", type=Path, help="draw the diagram of all rows of --json there")
    chosen = options.parse_args()
    results = measure(chosen.systems)
    if chosen.json is not None:
        kept = json.loads(chosen.json.read_text())["systems"] if chosen.json.exists() else {}
        results = {name: {**kept, **results}[name] for name in (*systems(), *OTHERS) if name in {**kept, **results}}
        chosen.json.write_text(json.dumps({"machine": machine(), "systems": results}, indent=1) + "\n")
    if chosen.picture is not None:
        picture(results, chosen.picture)


if __name__ == "__main__":
    main()
