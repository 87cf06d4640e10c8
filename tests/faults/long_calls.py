"""Every public call that can take long, each with the same call on a small problem, for `interrupts.py`.

An entry makes a pair (long, small): `long()` takes seconds at least, `small()` returns numbers to compare.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import polybody as pb

METHODS = ("rk4", "semi-implicit", "dop853", "midpoint", "radau", "cvodes", "idas")

#: (a call that takes long, the same call on a small problem)
Pair = tuple[Callable[[], Any], Callable[[], Any]]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# ---- runs ------------------------------------------------------------------------------------------------------------


def simulation(method: str, **more: Any) -> Pair:
    arm = pb.load("puma560")
    q = np.array([0.1, 0.3, -0.2, 0.4, 0.5, 0.2])

    def run(duration: float) -> Any:
        return pb.simulate(arm, duration, q, method=method, **more).q[-1]

    return lambda: run(400.0), lambda: run(0.01)


def with_loops(method: str) -> Pair:
    machine = pb.load("stewart")
    q = machine.assemble(hold=["platform_joint"])

    def run(duration: float) -> Any:
        return pb.simulate(machine, duration, q, method=method, limits="ignore").q[-1]

    return lambda: run(400.0), lambda: run(0.01)


def with_friction() -> Pair:
    build = pb.Builder("slider")
    build.body("slider", 1.0, inertia=(1, 1, 1))
    build.joint("slide", "prismatic", "world", "slider", axis=(1, 0, 0), friction={"coulomb": 1.0, "static": 2.0})
    model = build.model()

    def run(duration: float) -> Any:
        return pb.simulate(model, duration, controller=lambda t, q, v: 100 * (0.1 * t - q)).q[-1]

    return lambda: run(400.0), lambda: run(0.01)


def network(method: str) -> Pair:
    def run(duration: float) -> Any:
        net = pb.Network("drive")
        net.part("supply", "voltage_source", "plus", voltage="24*sin(50*time)")
        net.part("motor", "dc_motor", winding="plus", shaft="axle", torque_constant=0.05, resistance=1.2,
                 inductance="3 mH")  # fmt: skip
        net.part("flywheel", "inertia", "axle", inertia=2e-4)
        return pb.simulate(net, duration, method=method).final["flywheel.w"]

    return lambda: run(2000.0), lambda: run(0.01)


def rollout(name: str, states: int, steps: int, tau: Any = None) -> Pair:
    model = pb.load(name)
    q = model.assemble() + np.zeros((states, model.nq))
    q = q + (rng().uniform(-1, 1, q.shape) if not len(model.constraints) else 0.0)
    v = np.zeros((states, model.nv))
    return (
        lambda: pb.rollout(model, q, v, tau, steps=steps),
        lambda: pb.rollout(model, q[:4], v[:4], tau, steps=10).q,
    )


def sensitivities() -> Pair:
    variant = pb.load("puma560").with_parameters("link2.mass", "link2.com.x")
    q = np.full(6, 0.3)

    def found(duration: float) -> Any:
        return pb.sensitivities(variant, q0=q, v0=0 * q, duration=duration, sample=duration / 4).q_p[-1]

    return lambda: found(400.0), lambda: found(0.01)


def study(kind: str) -> Pair:
    folder = tempfile.TemporaryDirectory()
    arm = pb.load("puma560").with_payload("link6", 1.0)
    what: dict[str, Any] = {
        "quantity": {"quantity": "forward_dynamics"},
        "rollout": {"rollout": {"steps": 2000}},
        "simulate": {"simulate": {"duration": 3.0}},
        "linearize": {"linearize": {}},
        "processes": {"simulate": {"duration": 3.0}},
    }[kind]
    count, vary = itertools.count(), {"payload.mass": {"uniform": [0, 3]}}

    def run(samples: int, **more: Any) -> Any:
        made = pb.Study(arm, vary, samples=samples, **what)
        return made.run(Path(folder.name, str(next(count))), **more)

    workers = {"workers": 2} if kind == "processes" else {"workers": 1}
    return (
        lambda: run(4_000_000 if kind == "quantity" else 20_000, **workers),
        lambda: run(2, workers=1).numpy("payload.mass")["payload.mass"],
    )


# ---- batches ---------------------------------------------------------------------------------------------------------


def batch(quantity: str, states: int) -> Pair:
    arm = pb.load("puma560")
    x = rng().uniform(-1, 1, (3, states, 6))
    call = getattr(arm, quantity)
    return lambda: call(*x), lambda: call(*x[:, :10])[0]


def assembly() -> Pair:
    machine = pb.load("stewart")
    guess = machine.neutral() + rng().normal(0, 0.02, (40_000, machine.nq))
    return lambda: machine.assemble(guess), lambda: machine.assemble()


def loop_batch() -> Pair:
    machine = pb.load("stewart")
    q = np.broadcast_to(machine.assemble(), (200_000, machine.nq))
    v = machine.assemble_velocity(q[0], rng().normal(size=machine.nv)) + np.zeros((len(q), machine.nv))
    tau = np.ones(machine.nv)
    return lambda: machine.forward_dynamics(q, v, tau), lambda: machine.forward_dynamics(q[:3], v[:3], tau)


def grasp_batch() -> Pair:
    model = pb.load("two-arms")
    held = pb.grasp(model, "object", ["left_hand", "right_hand"], model.neutral())
    q = np.broadcast_to(held.project(held.model.neutral())[0], (400_000, held.model.nq))
    v, tau = np.zeros((len(q), held.model.nv)), np.zeros(held.model.nv)
    return lambda: held.forward_dynamics(q, v, tau), lambda: held.forward_dynamics(q[:3], v[:3], tau).a


def mobility() -> Pair:
    machine = pb.load("stewart")
    q = machine.assemble()
    return lambda: [machine.mobility(q) for _ in range(10_000)], lambda: machine.mobility(q).here


def linearized() -> Pair:
    arm = pb.load("puma560")
    q = rng().uniform(-1, 1, (400_000, 6))
    return lambda: pb.linearize(arm, q, 0 * q), lambda: pb.linearize(arm, q[0], 0 * q[0]).A


def linearized_along() -> Pair:
    arm = pb.load("puma560")
    path = pb.paths.quintic(arm, np.zeros(6), np.full(6, 0.8), 1.0)

    def found(n: int) -> Any:
        along = pb.linearize_along(arm, path, np.linspace(0, 1, n))
        return along.lqr(np.ones(12), np.ones(6))[0]

    return lambda: found(20_000), lambda: found(5)


# ---- optimisation ----------------------------------------------------------------------------------------------------


def inverse_kinematics() -> Pair:
    arm = pb.load("puma560")
    frame = arm.frame_names[-1]
    goals = arm.pose(arm.random_configuration(rng(), size=60_000), frame)
    return lambda: pb.inverse_kinematics(arm, {frame: goals}), lambda: pb.inverse_kinematics(arm, {frame: goals[:5]}).q


def reach() -> Pair:
    arm = pb.load("puma560")
    q = np.full(6, 0.3)
    hand = arm.pose(q + 0.15, "dh_6")[:3, 3]
    goals = hand + rng().normal(0, 0.02, (4000, 3))
    return (
        lambda: pb.reach(arm, [pb.Goal("dh_6", goals)], q),
        lambda: pb.reach(arm, [pb.Goal("dh_6", hand)], q).q,
    )


def actuator_forces(norm: Any) -> Pair:
    hand = pb.load("two-fingered-hand")
    q = np.broadcast_to(hand.neutral(), (20_000, hand.nq))
    still = np.zeros(hand.nv)
    return (
        lambda: pb.actuator_forces(hand, q, still, still, norm=norm, limits=100.0),
        lambda: pb.actuator_forces(hand, q[:2], still, still, norm=norm, limits=100.0),
    )


def excitation() -> Pair:
    arm = pb.load("puma560")

    def found(**more: Any) -> Any:
        return pb.excitation(arm, speed=2.0, acceleration=6.0, harmonics=2, tries=1, **more).q[0]

    return lambda: found(samples=40, iterations=200), lambda: found(samples=10, iterations=1)


def identification() -> Pair:
    arm = pb.load("puma560")

    def recorded(n: int) -> dict[str, Any]:
        t = np.linspace(0, 10, n)
        phase, speed = np.arange(6), np.array([0.5, 0.8, 1.1, 1.4, 1.7, 2.0])
        q, v = np.sin(t[:, None] * speed + phase), speed * np.cos(t[:, None] * speed + phase)
        tau = arm.inverse_dynamics(q, v, -(speed**2) * q) + 0.3 * v
        return {"t": t, "q": q, "v": v, "tau": tau}

    long, short = recorded(20_000), recorded(400)
    return (
        lambda: pb.identify(arm, long),
        lambda: pb.identify(arm, short, terms=["viscous"], consistent=False).base,
    )


def performance(what: str) -> Pair:
    found = pb.performance(pb.load("puma560" if what == "workspace" else "delta"))
    q = found.model.assemble()
    if what == "workspace":
        return lambda: found.workspace(300_000), lambda: found.workspace(10, rng=1).positions
    return (
        lambda: [found.modes(q, 1e4) for _ in range(10_000)],
        lambda: found.velocity_ellipsoid(q).radii,
    )


def base_parameters() -> Pair:
    machine = pb.load("stewart")
    seeds = itertools.count(1)
    return lambda: [pb.base_parameters(machine, seed=next(seeds)) for _ in range(100)], lambda: len(
        pb.base_parameters(machine).names
    )


# ---- models and what is made of them -------------------------------------------------------------------------------


def loading() -> Pair:
    folder = tempfile.TemporaryDirectory()

    def chain(links: int) -> Path:
        path = Path(folder.name, f"{links}.urdf")
        if path.exists():
            return path
        inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        parts = [f'<link name="l{k}">{inertial}</link>' for k in range(links)]
        parts += [f'<joint name="j{k}" type="continuous"><parent link="l{k - 1}"/><child link="l{k}"/></joint>'
                  for k in range(1, links)]  # fmt: skip
        path.write_text(f"<robot name='chain'>{''.join(parts)}</robot>")
        return path

    return lambda: pb.load(chain(9_999)), lambda: pb.load(chain(5)).nv


def compiling() -> Pair:
    """Traces and LLVM: of models that no other call has seen."""
    count = itertools.count()

    def compiled(links: int, extra: float) -> Any:
        build = pb.Builder("chain")
        for k in range(links):
            build.body(f"b{k}", 1.0 + extra, (0.1, 0, 0), (1, 1, 1))
            build.joint(f"j{k}", "revolute", f"b{k - 1}" if k else "world", f"b{k}", (0.2, 0, 0), (0, k % 2, 1 - k % 2))
        model = build.model()
        return model.forward_dynamics_derivatives(*np.full((3, links), 0.1))[0]

    return lambda: compiled(25, 1e-3 * next(count)), lambda: compiled(2, 0.0)


def symbolic() -> Pair:
    arm = pb.load("six-dof-arm")
    small = pb.load("two-link")
    return (
        lambda: arm.symbolic("none").coriolis_matrix(),
        lambda: float(small.symbolic("none").mass_matrix()[1, 1]),
    )


def exported(what: str) -> Pair:
    folder = tempfile.TemporaryDirectory()
    arm, small = pb.load("puma560"), pb.load("two-link")

    def written(model: Any, name: str, **more: Any) -> int:
        path = Path(folder.name, name)
        if what == "c":
            return len(pb.export_c(model, path, force=True, **more))
        pb.export_fmu(model, path.with_suffix(".fmu"), force=True)
        return int(path.with_suffix(".fmu").stat().st_size > 0)

    return lambda: [written(arm, "long") for _ in range(100)], lambda: written(small, "small")


CALLS: dict[str, Callable[[], Pair]] = {
    "batch": lambda: batch("forward_dynamics", 1_500_000),
    "batch:derivatives": lambda: batch("forward_dynamics_derivatives", 300_000),
    "batch:loops": loop_batch,
    "batch:grasp": grasp_batch,
    "assemble": assembly,
    "mobility": mobility,
    "linearize": linearized,
    "linearize_along": linearized_along,
    "rollout": lambda: rollout("puma560", 600, 20_000),
    "rollout:policy": lambda: rollout("puma560", 600, 20_000, lambda t, q, v: -v),
    "rollout:loops": lambda: rollout("stewart", 60, 20_000),
    **{f"simulate:{method}": lambda method=method: simulation(method) for method in METHODS},
    "simulate:controller": lambda: simulation("dop853", controller=lambda t, q, v: -v),
    "simulate:friction": with_friction,
    **{f"loops:{method}": lambda method=method: with_loops(method) for method in METHODS if method != "midpoint"},
    **{f"network:{m}": lambda m=m: network(m) for m in ("dop853", "radau", "rk4", "idas")},
    "sensitivities": sensitivities,
    "inverse_kinematics": inverse_kinematics,
    "reach": reach,
    "actuator_forces:1": lambda: actuator_forces(1),
    "actuator_forces:2": lambda: actuator_forces(2),
    "excitation": excitation,
    "identify": identification,
    "base_parameters": base_parameters,
    "performance:workspace": lambda: performance("workspace"),
    "performance:modes": lambda: performance("modes"),
    **{f"study:{kind}": lambda kind=kind: study(kind)
       for kind in ("quantity", "rollout", "simulate", "linearize", "processes")},
    "load": loading,
    "compile": compiling,
    "symbolic": symbolic,
    "export:c": lambda: exported("c"),
    "export:fmu": lambda: exported("fmu"),
}  # fmt: skip
