"""Every public call that computes with a model takes `parameters=`, and answers as the model with those numbers does.

The table below is compared with the public names, so that a new call must be entered here, or in `WITHOUT` with the
reason why it has no parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import polybody as pb
from polybody.model.model import Model

SETS = 2
#: relative to the largest number of a result; answers go by other plans of elimination
EPS = 1e-9
NAMESPACES = ("constraints", "actuation", "coefficients", "motors", "regressor", "base")

NO_NUMBERS = "names and sizes: no number of the machine enters"
MANIFOLD = "the manifold of configurations has no parameters"
MAKES = "makes a model or reads a file; the values follow by .parameters.at(values)"
OUTLET = "writes or shows something of a model; a variant's C, CasADi and FMU have parameters as inputs"
FINDS = "finds the parameters; give it variant.parameters.at(values)"
NETWORK = "of networks, which have parameters of their own"
WITHOUT = {
    "model.casadi": OUTLET, "model.difference": MANIFOLD, "model.integrate": MANIFOLD, "model.normalize": MANIFOLD,
    "model.neutral": MANIFOLD, "model.joint_limits": "limits of joints are structure", "model.joint_slices": NO_NUMBERS,
    "model.lock": MAKES, "model.save": OUTLET, "model.symbolic": OUTLET, "model.with_frame": MAKES,
    "model.with_gravity": MAKES, "model.with_parameters": MAKES, "model.with_payload": MAKES,
    "model.constraints.indices": NO_NUMBERS, "model.actuation.column_name": NO_NUMBERS,
    "model.actuation.mask": NO_NUMBERS, "model.regressor.columns": NO_NUMBERS, "model.regressor.structure": NO_NUMBERS,
    "model.regressor.parameters": "the numbers themselves, of model.parameters.at(values)", "model.base.rebase": MAKES,
    "pb.admittance": NETWORK, "pb.bode": NETWORK, "pb.frequency_response": NETWORK, "pb.impedance": NETWORK,
    "pb.network": NETWORK, "pb.load_network": NETWORK, "pb.parts": NETWORK, "pb.configurations": NO_NUMBERS,
    "pb.export_c": OUTLET, "pb.export_fmu": OUTLET, "pb.render": OUTLET, "pb.view": OUTLET,
    "pb.from_dh": MAKES, "pb.load": MAKES, "pb.grasp": MAKES,
    "pb.joint_kinematics": NO_NUMBERS, "pb.threads": NO_NUMBERS, "pb.identify": FINDS, "pb.identify_payload": FINDS,
    "pb.identify_drive_gains": FINDS, "pb.legs": MAKES, "pb.share_load": "of a matrix, not of a model",
}  # fmt: skip


def arm() -> pb.Model:
    """A floating base with a driven arm, a spring and a joint that follows another."""
    build = pb.Builder("floating arm")
    build.body("hull", 4.0, com=(0.1, 0, 0), inertia=(0.2, 0.3, 0.4))
    build.body("upper", 1.0, com=(0.2, 0.05, 0), inertia=(0.02, 0.03, 0.03))
    build.body("lower", 0.7, com=(0.15, 0, 0.02), inertia=(0.01, 0.02, 0.02))
    build.body("flap", 0.2, com=(0.05, 0, 0), inertia=(0.001, 0.002, 0.002))
    pose = np.eye(4)
    build.joint("root_joint", "floating", "world", "hull")
    pose[:3, 3] = 0.3, 0.1, 0.0
    build.joint("shoulder", "revolute", "hull", "upper", pose, (0, 0, 1), damping=0.3)
    pose[:3, 3] = 0.4, 0.0, 0.0
    build.joint("elbow", "revolute", "upper", "lower", pose, (0, 1, 0), stiffness=2.0)
    build.joint("hinge", "revolute", "lower", "flap", pose, (0, 1, 0))
    build.couple("hinge", "elbow", 0.5, 0.1)
    pose[:3, 3] = 0.3, 0.0, 0.1
    build.frame("tool", "lower", pose)
    build.motor("shoulder", 1.2, 0.0, 0.05, rotor_inertia=1e-4, gear=40)
    build.motor("elbow", 0.9, 0.01, 0.04, rotor_inertia=1e-4, gear=30)
    return build.model()


def variant_of(model: pb.Model, *patterns: str) -> tuple[pb.Model, np.ndarray]:
    variant = model.with_parameters(*patterns)
    nominal, rng = variant.parameters.nominal, np.random.default_rng(3)
    return variant, nominal * (1 + 0.03 * rng.uniform(-1, 1, size=(SETS, len(nominal))))


class Bench:
    """A variant, sets of its parameters, and states that each of them allows."""

    def __init__(self, variant: pb.Model, p: np.ndarray, q0: np.ndarray, **own: Any) -> None:
        self.variant, self.p, rng = variant, p, np.random.default_rng(5)
        nv = variant.nv
        if variant.mechanism.constrained:
            q = np.array([variant.assemble(q0, parameters=x) for x in p])
            v = variant.assemble_velocity(q, rng.normal(size=(SETS, nv)), parameters=p)
            a = variant.assemble_acceleration(q, v, rng.normal(size=(SETS, nv)), parameters=p)
        else:
            q, (v, a) = variant.random_configuration(rng, SETS), rng.normal(size=(2, SETS, nv))
        m = len(variant.constraints.independent)
        self.states = {
            "q": q, "v": v, "a": a, "tau": rng.normal(size=(SETS, nv)), "u_dot": rng.normal(size=(SETS, m)),
            "u_ddot": rng.normal(size=(SETS, m)), "forces": rng.normal(size=(SETS, nv)), "jerk": 0.1 * v,
            "currents": np.ones((SETS, 2)), "voltages": np.full((SETS, 2), 3.0), "momentum": np.ones((SETS, 6)),
        }  # fmt: skip
        self.states |= own

    def arguments(self, names: tuple[str, ...], index: Any) -> dict[str, Any]:
        return {name: self.states[name][index] for name in names}


@pytest.fixture(scope="module")
def benches() -> dict[str, Bench]:
    tree = variant_of(arm(), "upper.mass", "lower.com.x", "elbow.origin.x", "hinge.ratio", "joints/shoulder.damping",
                      "elbow.torque_constant", "shoulder.resistance", "gravity.z")  # fmt: skip
    loops = variant_of(pb.load("five-bar"), "*.mass", "*.origin.x")
    fixed = variant_of(pb.load("puma560"), "link2.mass", "link3.com.x", "joint3.origin.x")
    return {
        "tree": Bench(*tree, tree[0].neutral()),
        "loops": Bench(*loops, np.deg2rad([70, -35, -100, -25])),
        "fixed": Bench(*fixed, np.zeros(6)),
    }


WRENCHES = {"tree": {"tool": (0.1, 0.2, 0.3, 1.0, -2.0, 3.0)}, "loops": {"link2": (0, 0, 0.2, 1.0, -2.0, 0)}}
#: (call, arguments of states, other options, benches); "one" in the options: only one set at a time
CALLS: list[tuple[str, tuple[str, ...], dict[str, Any], str]] = [
    ("model.assemble", ("q",), {}, "loops"),
    ("model.assemble_velocity", ("q", "v"), {}, "loops"),
    ("model.assemble_acceleration", ("q", "v", "a"), {}, "loops"),
    ("model.bias_forces", ("q", "v"), {}, "tree loops"),
    ("model.center_of_mass", ("q",), {}, "tree loops"),
    ("model.compute", ("q", "v"), {"quantities": ["bias_forces", "energy"]}, "tree loops"),
    ("model.coriolis_matrix", ("q", "v"), {}, "tree loops"),
    ("model.energy", ("q", "v"), {}, "tree loops"),
    ("model.forward_dynamics", ("q", "v", "tau"), {"wrenches": True}, "tree loops"),
    ("model.forward_dynamics_derivatives", ("q", "v", "tau"), {"wrenches": True}, "tree loops"),
    ("model.frame_acceleration", ("q", "v", "a"), {"frame": True}, "tree loops"),
    ("model.frame_velocity", ("q", "v"), {"frame": True}, "tree loops"),
    ("model.gravity_forces", ("q",), {}, "tree loops"),
    ("model.inverse_dynamics", ("q", "v", "a"), {"wrenches": True}, "tree loops"),
    ("model.inverse_dynamics_derivatives", ("q", "v", "a"), {"wrenches": True}, "tree loops"),
    ("model.inverse_mass_matrix", ("q",), {}, "tree loops"),
    ("model.jacobian", ("q",), {"frame": True}, "tree loops"),
    ("model.jacobian_rate", ("q", "v"), {"frame": True}, "tree loops"),
    ("model.mass_matrix", ("q",), {}, "tree loops"),
    ("model.mobility", ("q",), {"one": True}, "loops"),
    ("model.momentum", ("q", "v"), {}, "tree loops"),
    ("model.passive_forces", ("q", "v"), {}, "tree loops"),
    ("model.pose", ("q",), {"frame": True}, "tree loops"),
    ("model.poses", ("q",), {}, "tree loops"),
    ("model.random_configuration", (), {"rng": 4, "one": True}, "loops"),
    ("model.reactions", ("q", "v", "a"), {"wrenches": True}, "tree loops"),
    ("model.constraints.assemble_dependent", ("q",), {}, "loops"),
    ("model.constraints.assembly_modes", ("q",), {"hold": "own", "one": True}, "loops"),
    ("model.constraints.bias", ("q", "v"), {}, "tree loops"),
    ("model.constraints.coupling_forces", ("q", "v", "a"), {"wrenches": True}, "tree"),
    ("model.constraints.jacobian", ("q",), {}, "tree loops"),
    ("model.constraints.joint_influence", ("q",), {"order": 3}, "tree loops"),
    ("model.constraints.joint_motion", ("q", "u_dot", "u_ddot"), {}, "tree loops"),
    ("model.constraints.joint_positions", ("q",), {}, "tree loops"),
    ("model.constraints.loads", ("q", "v", "tau"), {"wrenches": True}, "loops"),
    ("model.constraints.motion_derivatives", ("q", "v", "tau"), {"wrenches": True}, "tree loops"),
    ("model.constraints.projection_step", ("q", "v"), {}, "loops"),
    ("model.constraints.rank", ("q",), {}, "tree loops"),
    ("model.constraints.residual", ("q",), {}, "tree loops"),
    ("model.constraints.solution", ("q", "v", "tau"), {"wrenches": True}, "tree loops"),
    ("model.actuation.active_forces", ("q", "v", "a"), {}, "loops fixed"),
    ("model.actuation.equivalent_actuator_forces", ("q", "forces"), {}, "loops"),
    ("model.actuation.holding_forces", ("q",), {}, "tree loops"),
    ("model.actuation.hybrid_dynamics", ("q", "v", "a", "tau"), {"wrenches": True}, "tree loops"),
    ("model.actuation.internal_loads", ("q",), {"one": True}, "loops"),
    ("model.coefficients.center_of_mass", ("q",), {"order": 2}, "tree loops"),
    ("model.coefficients.centroidal_momentum_matrix", ("q",), {}, "tree loops"),
    ("model.coefficients.dynamic_arrays", ("q",), {}, "loops fixed"),
    ("model.coefficients.influence", ("q",), {"frame": True, "order": 2, "point": "com"}, "tree loops"),
    ("model.coefficients.operators", ("q", "v", "tau"), {"one": True}, "tree"),
    ("model.coefficients.reduced_dynamics", ("q",), {}, "loops"),
    ("model.coefficients.task_space_inertia", ("q",), {"frame": True}, "tree"),
    ("model.motors.dynamics", ("q", "v", "currents", "voltages", "tau"), {}, "tree"),
    ("model.motors.full_currents", ("v", "currents", "voltages"), {}, "tree"),
    ("model.motors.inputs", ("q", "v", "a", "jerk"), {}, "tree"),
    ("model.regressor.__call__", ("q", "v", "a"), {"terms": "armature"}, "tree loops"),
    ("model.regressor.energy", ("q", "v"), {}, "tree loops"),
    ("model.regressor.momentum", ("q", "v"), {}, "tree loops"),
    ("model.regressor.nonzeros", ("q", "v", "a"), {}, "tree"),
    ("model.base.motion", ("q",), {"times": [0, 0.1, 0.2], "joint_velocities": lambda t: (t, 1), "one": True}, "tree"),
    ("model.base.reaction", ("q", "v", "a"), {}, "tree"),
    ("model.base.zero_momentum_velocity", ("q", "v", "momentum"), {}, "tree"),
    ("pb.actuator_forces", ("q", "v", "a"), {"limits": None}, "loops fixed"),
    ("pb.base_parameters", (), {"one": True}, "loops"),
    ("pb.derivative", ("q", "v", "a"), {"quantity": "inverse_dynamics"}, "loops fixed"),
    ("pb.excitation", (), {"harmonics": 1, "samples": 6, "iterations": 1, "tries": 1, "one": True}, "fixed"),
    ("pb.inverse_kinematics", (), {"targets": {"link6": (0.4, 0.1, 0.3)}, "q0": np.full(6, 0.2), "rng": 1}, "fixed"),
    ("pb.linearize", ("q", "v", "tau"), {"wrenches": True}, "tree loops"),
    ("pb.linearize_along", (), {"motion": "path", "times": [0.0, 0.5], "one": True}, "fixed"),
    ("pb.performance", (), {"one": True}, "fixed"),
    ("pb.reach", (), {"goals": [pb.Goal("link6", (0.4, 0.1, 0.3))], "q0": np.full(6, 0.2)}, "fixed"),
    ("pb.redundant", (), {"coordinates": pb.Position("link6"), "one": True}, "fixed"),
    ("pb.rollout", ("q", "v"), {"steps": 3}, "tree loops"),
    ("pb.sensitivities", ("q", "v"), {"duration": 0.01, "sample": 0.005, "one": True}, "fixed"),
    ("pb.simulate", ("q", "v"), {"duration": 0.02, "sample": 0.01}, "tree loops"),
    ("pb.transfer", (), {"coordinates": pb.Pose("link6"), "one": True}, "fixed"),
]  # fmt: skip
RENAMED = {"pb.rollout": "q0 v0", "pb.sensitivities": "q0 v0", "pb.simulate": "q0 v0"}
CASES = [(*call[:3], bench) for call in CALLS for bench in call[3].split()]


def public_calls() -> set[str]:
    model, found = pb.load("two-link"), set()
    owners: dict[str, Any] = {"model": model} | {f"model.{name}": getattr(model, name) for name in NAMESPACES}
    for owner, thing in owners.items():
        for name in dir(type(thing)):
            if (not name.startswith("_") or name == "__call__") and callable(getattr(type(thing), name)):
                found.add(f"{owner}.{name}")
    for name in dir(pb):
        thing = getattr(pb, name)
        if not name.startswith("_") and inspect.isfunction(thing) and thing.__module__.startswith("polybody"):
            found.add(f"pb.{name}")
    return found


def test_every_public_call_is_in_the_table_or_has_a_reason_to_have_no_parameters() -> None:
    entered = {call for call, *_ in CALLS}
    assert entered | set(WITHOUT) == public_calls()
    assert not entered & set(WITHOUT)


def invoke(call: str, model: Model, arguments: dict[str, Any], options: dict[str, Any]) -> Any:
    """The call with its arguments of states and its options; `parameters` among the latter."""
    _, *path = call.split(".")
    if call.startswith("pb."):
        options = dict(options)
        first = () if call == "pb.sensitivities" else ("quantity", "duration")
        front = [options.pop(name) for name in first if name in options]
        if call == "pb.derivative":
            return pb.derivative(model, *front, *arguments.values(), **options)
        names = dict(zip(arguments, RENAMED.get(call, " ".join(arguments)).split(), strict=True))
        return getattr(pb, path[0])(model, *front, **{names[k]: x for k, x in arguments.items()}, **options)
    function: Any = model
    for name in path:
        function = getattr(function, name)
    return function(**arguments, **options)


def numbers(found: Any) -> list[np.ndarray]:
    """All arrays of a result."""
    if isinstance(found, np.ndarray | np.generic | float):
        return [np.asarray(found)]
    if type(found).__name__ in ("Trajectory", "Runs", "Rollout", "Reached"):
        return [getattr(found, name) for name in ("q", "v", "a") if hasattr(found, name)]
    if isinstance(found, Mapping):
        return [x for part in found.values() for x in numbers(part)]
    if isinstance(found, tuple | list):
        return [x for part in found for x in numbers(part)]
    if type(found).__name__ == "Operators":
        return [found.J, found.M, found.C]
    if type(found).__name__ in ("Transferred", "Redundant"):
        q = np.array([0.1, 0.4, -0.5, 0.3, 0.6, 0.2])
        return numbers(found.velocity(q, np.ones(6 if type(found).__name__ == "Transferred" else 3)))
    if type(found).__name__ == "Performance":
        return [found.jacobian(np.array([0.1, 0.4, -0.5, 0.3, 0.6, 0.2]))]
    if hasattr(found, "q_p"):
        return [found.q_p, found.v_p]
    if is_dataclass(found):
        return [x for field in fields(found) for x in numbers(getattr(found, field.name))]
    return []


def straight(t: Any) -> Any:
    t = np.asarray(t, dtype=float)[..., None]
    return np.full(6, 0.3) + 0.1 * t * np.ones(6), np.full((*t.shape[:-1], 6), 0.1), np.zeros((*t.shape[:-1], 6))


@pytest.mark.parametrize(("call", "states", "options", "bench"), CASES, ids=[f"{c[0]} {c[3]}" for c in CASES])
def test_parameters_of_a_call_are_those_of_the_model_at_them(
    benches: dict[str, Bench], call: str, states: tuple[str, ...], options: dict[str, Any], bench: str
) -> None:
    made = benches[bench]
    variant, p = made.variant, made.p
    options, lone = prepared(made, bench, states, options)
    expected = [
        numbers(invoke(call, variant.parameters.at(p[k]), made.arguments(states, k), options)) for k in range(SETS)
    ] if call != "pb.sensitivities" and call != "pb.derivative" else None
    if expected is None:  # with respect to the parameters: of a model that has some, at those values
        expected = [
            numbers(invoke(call, variant, made.arguments(states, k), options | {"parameters": p[k]}))
            for k in range(SETS)
        ]
    assert expected[0]
    single = [numbers(invoke(call, variant, made.arguments(states, k), options | {"parameters": p[k]}))
              for k in range(SETS)]  # fmt: skip
    pairs = [*zip(single, expected, strict=True)]
    if not lone:
        every = numbers(invoke(call, variant, made.arguments(states, slice(None)), options | {"parameters": p}))
        pairs += [([x[k] for x in every], expected[k]) for k in range(SETS)]
    for ours, theirs in pairs:
        for x, y in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(x, y, atol=EPS * (1 + np.abs(y).max(initial=0.0)), rtol=0)


def prepared(made: Bench, bench: str, states: tuple[str, ...], options: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """(options of a call of the table, whether it takes one set only)."""
    options = dict(options)
    lone = bool(options.pop("one", False))
    if options.pop("wrenches", False):
        options["wrenches"] = WRENCHES[bench]
    if options.pop("frame", False):
        options["frame"] = "tool" if bench == "tree" else made.variant.frame_names[-1]
    if options.get("hold") == "own":
        options["hold"] = made.variant.constraints.independent
    if options.get("motion") == "path":
        options["motion"] = straight
    return options, lone


MASS = {"tree": "upper.mass", "loops": "link1.mass", "fixed": "link2.mass"}


@pytest.mark.parametrize(("call", "states", "options", "bench"), CASES, ids=[f"{c[0]} {c[3]}" for c in CASES])
def test_impossible_parameters_of_every_call_are_named_with_their_state(
    benches: dict[str, Bench], call: str, states: tuple[str, ...], options: dict[str, Any], bench: str
) -> None:
    made = benches[bench]
    options, lone = prepared(made, bench, states, options)
    place, where = (1, "") if lone else (slice(None), r" \(state 1 of the batch\)")
    column = made.variant.parameters.names.index(MASS[bench])
    for value, text in ((-1.0, "is -1 kg{}; expected"), (np.nan, "is nan{}; expected a finite number"),
                        (np.inf, "is inf{}; expected a finite number")):  # fmt: skip
        p = made.p.copy()
        p[1, column] = value
        with pytest.raises(pb.InputError, match=f"'{MASS[bench]}' {text.format(where)}"):
            invoke(call, made.variant, made.arguments(states, place), options | {"parameters": p[place]})
    for shape in ((made.p.shape[1] + 1,), ()):
        with pytest.raises(pb.InputError, match="parameters"):
            invoke(call, made.variant, made.arguments(states, 1), options | {"parameters": np.ones(shape)})
    if lone and call != "model.random_configuration":  # whose sets draw other states
        with pytest.raises(pb.InputError, match="one set of parameters"):
            invoke(call, made.variant, made.arguments(states, 1), options | {"parameters": made.p})


def test_inertias_that_break_the_triangle_inequality_are_named_with_their_state() -> None:
    variant = pb.load("two-link").with_parameters("*.inertia")
    p = np.tile(variant.parameters.nominal, (3, 1))
    p[2, 0] = 10.0
    q = np.zeros((3, variant.nq))
    for call, arguments in (("model.mass_matrix", {"q": q}), ("pb.rollout", {"q": q, "v": q}),
                            ("pb.simulate", {"q": q, "v": q}), ("pb.linearize", {"q": q, "v": q})):  # fmt: skip
        options = {"pb.rollout": {"steps": 2}, "pb.simulate": {"duration": 0.01}}.get(call, {})
        with pytest.raises(pb.InputError, match=r"state 2 of the batch.*triangle"):
            invoke(call, variant, arguments, options | {"parameters": p})


#: with loops, these answer for any q: they put it onto the loops, say how far it is off, or ask the bodies alone
OF_ANY_Q = {
    "model.assemble", "model.assemble_velocity", "model.assemble_acceleration", "model.center_of_mass", "model.energy",
    "model.frame_acceleration", "model.frame_velocity", "model.jacobian", "model.jacobian_rate", "model.momentum",
    "model.pose", "model.poses", "model.constraints.assemble_dependent", "model.constraints.assembly_modes",
    "model.constraints.bias", "model.constraints.jacobian", "model.constraints.joint_positions",
    "model.constraints.projection_step", "model.constraints.rank", "model.constraints.residual",
    "model.actuation.equivalent_actuator_forces", "model.actuation.holding_forces", "model.coefficients.center_of_mass",
    "model.coefficients.centroidal_momentum_matrix", "model.coefficients.influence", "model.regressor.energy",
    "model.regressor.momentum",
}  # fmt: skip


def test_loops_that_a_set_does_not_close_are_named_with_their_state_by_every_call(benches: dict[str, Bench]) -> None:
    made = benches["loops"]
    for call, names, options, on in CALLS:
        if "loops" not in on or not names or call in OF_ANY_Q:
            continue
        options, lone = prepared(made, "loops", names, options)
        arguments = {name: made.states[name][0] for name in names}
        options |= {"parameters": made.p[1] if lone else made.p}
        with pytest.raises(pb.PolybodyError, match="'B' by" if lone else "state 1 of the batch"):
            invoke(call, made.variant, arguments, options)


def test_wrenches_of_each_state_broadcast_with_sets_of_parameters_in_linear_models(benches: dict[str, Bench]) -> None:
    made, loads = benches["fixed"], np.random.default_rng(0).normal(size=(SETS, 6))
    q, v = made.states["q"][0], made.states["v"][0]
    found = pb.linearize(made.variant, q, v, wrenches={"link6": loads}, parameters=made.p)
    for k in range(SETS):
        one = pb.linearize(made.variant.parameters.at(made.p[k]), q, v, wrenches={"link6": loads[k]})
        np.testing.assert_allclose(found.A[k], one.A, atol=1e-9 * np.abs(one.A).max())
