"""A network's linear model about a state, its frequency responses, and the impedance of its ports.

With the algebraic unknowns a eliminated, f_a and g_a the Jacobians of `reduction`'s equations,

    A = f_y − f_a g_a⁻¹ g_y,      B = f_u − f_a g_a⁻¹ g_u,      C, D likewise from what is measured,
    H(jω) = C (jω − A)⁻¹ B + D, from the equations as assembled (`_response`).

The states of a model are displacements in tangent space, as in `linearize`: with quaternions δq = Γ δ and
δ̇ = −ad_v δ + δv; with loops those of independent coordinates, δφ = G δ, δv_φ = G δv + V δ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError, PolybodyError, warn
from polybody.formulations.influence.incidence import structure_constants
from polybody.linearization import StateSpace
from polybody.names import listed, nearest
from polybody.networks.component import PartComponent
from polybody.networks.energy import GROUND
from polybody.networks.joint_laws import smooth_friction
from polybody.networks.library import part_named
from polybody.networks.models import ModelComponent, doubtful_loops
from polybody.networks.motion import Motion
from polybody.networks.system import System

if TYPE_CHECKING:
    from polybody.networks.network import Network

Array = np.ndarray
#: a through driver and an across driver for each domain, to measure ports with
PROBES = {
    "electrical": ("current_source", "current", "voltage_source", "voltage"),
    "rotational": ("torque_source", "torque", "speed_source", "speed"),
    "translational": ("force_source", "force", "velocity_source", "velocity"),
    "hydraulic": ("flow_source", "flow", "pressure_source", "pressure"),
}


def linearize_network(
    net: Network,
    at: Mapping[str, Any] | None = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    sources: Mapping[str, Any] | None = None,
    time: float = 0.0,
    steady: bool = False,
) -> StateSpace:
    """A, B, C, D of a network about the state `at` ({state: value}; zero, or a part's start, where not given).

    `inputs` names sources ("supply.voltage"; all of them where not given), `outputs` any variables ("load.w"; the
    states where not given). `sources` are values of inputs, as in `pb.simulate`. `steady` takes the equilibrium near
    `at` in its place.
    """
    motion = Motion(net, sources, frozenset(at or {}))
    if rough := smooth_friction(motion.components):
        warn(f"linear model of {net.name!r}: the friction of {listed(rough)} is the smooth law of forward_dynamics, "
             "which has a slope where joints would stick")
    system, y = motion.start(time, dict(at or {}))
    if steady:
        y = equilibrium(system, time, y)
    if doubts := doubtful_loops(motion.components, motion.inputs, system.values(time, y)):
        warn(f"linear model of {net.name!r}: {'; '.join(doubts)}")
    chosen = [n for n in system.assembly.inputs if n not in motion.constant] if inputs is None else list(inputs)
    for name in chosen:
        if name not in system.assembly.inputs:
            known = system.assembly.inputs
            raise InputError(f"inputs: there is no input {name!r}{nearest(name, known)}; available: {', '.join(known)}")
    measured = None if outputs is None else list(outputs)
    for name in measured or ():
        if name not in system.observed:
            raise InputError(f"outputs: there is no variable {name!r}{nearest(name, system.observed)}")
    fy, fu, hy, hu = _slopes(system, time, y, chosen, measured or [])
    T, rows, labels, F = _tangent(system, y)
    A, B = F(fy @ T)[rows], fu[rows]
    n = len(rows)
    C, D = (np.eye(n), np.zeros((n, len(chosen)))) if measured is None else (hy @ T, hu)
    names = tuple(labels) if measured is None else tuple(measured)
    return StateSpace(A, B, C, D, tuple(labels), tuple(chosen), names, np.zeros((n, 0)), (), np.zeros((0, 0)))


def _slopes(system: System, t: float, y: Array, inputs: list[str], outputs: list[str]) -> tuple[Array, ...]:
    """∂f/∂y, ∂f/∂u, ∂h/∂y, ∂h/∂u with the algebraic unknowns eliminated."""
    import casadi as ca

    equations, assembly = system.equations, system.assembly
    symbols = equations.reduced.symbols
    observables = assembly.observables()
    rates = [symbols[(j, k + 1)] for j, k in equations.states]
    f = ca.vertcat(*equations.substituted(rates), ca.SX(0, 1))
    h = ca.vertcat(*equations.substituted([observables[name] for name in outputs]), ca.SX(0, 1))
    g = ca.vertcat(*equations.g, ca.SX(0, 1))
    fixed = _fixed(system, inputs)
    u = ca.vertcat(*(assembly.inputs[name] for name in inputs), ca.SX(0, 1))
    parts = [f, g, h]
    if fixed:
        symbols, given = (ca.densify(ca.vertcat(*column)) for column in zip(*fixed, strict=True))  # zeros are sparse
        parts = ca.substitute(parts, [symbols], [given])
    moved = [name for (name, order), s in assembly.input_rates.items()
             if order and name in inputs and any(ca.depends_on(p, s) for p in parts)]
    if moved:
        raise PolybodyError(f"the network answers to the time derivative of {moved[0]!r}: it has no state-space model "
                            "with this input; put a resistance (or compliance) beside the source")
    s = system.argument(t, y)
    values = np.array([_value(system, name, t) for name in inputs])
    blocks = [ca.densify(ca.jacobian(p, x)) for p in parts for x in (system.y, system.a, u)]
    free = [assembly.inputs[name] for name in system.called if name not in inputs]
    arguments = [ca.vertcat(system.y, system.a), u, ca.vertcat(*free, ca.SX(0, 1)), system.t]
    function = ca.Function("slopes", arguments, blocks)
    numbers = [s[: system.n + system.m], values,
               np.array([_value(system, name, t) for name in system.called if name not in inputs]), t]
    fy, fa, fu, gy, ga, gu, hy, ha, hu = (np.asarray(x) for x in function(*numbers))
    if system.m:
        fy, fu = fy - fa @ np.linalg.solve(ga, gy), fu - fa @ np.linalg.solve(ga, gu)
        hy, hu = hy - ha @ np.linalg.solve(ga, gy), hu - ha @ np.linalg.solve(ga, gu)
    return fy, fu, hy, hu


def rate_function(net: Network) -> Any:
    """casadi.Function (y, u, t) -> ẏ in the first modes; a network with iterated unknowns has none."""
    import casadi as ca

    motion = Motion(net)
    system = motion.system(motion.first_modes())
    if system.m:
        raise PolybodyError(f"{', '.join(system.algebraic)} are found by iteration: the network has no explicit rates")
    equations, assembly = system.equations, system.assembly
    rates = equations.substituted([equations.reduced.symbols[(j, k + 1)] for j, k in equations.states])
    u = ca.vertcat(*assembly.inputs.values(), ca.SX(0, 1))
    slow = [(symbol, 0.0) for (_, order), symbol in assembly.input_rates.items() if order]  # inputs are held
    if slow:
        rates = ca.substitute(rates, [ca.vertcat(*(s for s, _ in slow))], [ca.SX.zeros(len(slow))])
    column = ca.vertcat(*rates, ca.SX(0, 1))
    return ca.Function("network", [system.y, u, system.t], [ca.densify(column)], ["y", "u", "t"], ["rates"])


def _fixed(system: System, inputs: list[str]) -> list[tuple[Any, Any]]:
    """Symbols of inputs that are not chosen, with their values in time; derivatives of chosen ones stay."""
    chosen = {symbol.element_hash() for (name, _), symbol in system.assembly.input_rates.items() if name in inputs}
    return [(s, x) for s, x in system.given if s.element_hash() not in chosen]


def _value(system: System, name: str, t: float) -> float:
    import casadi as ca

    if name in system.called:
        return float(system.called[name](t))
    wanted = system.assembly.inputs[name].element_hash()
    expression = next(x for s, x in system.given if s.element_hash() == wanted)
    found: Any = ca.Function("value", [system.t], [expression])(t)
    return float(found)


def _tangent(system: System, y: Array) -> tuple[Array, list[int], list[str], Any]:
    """(T, rows, names, correct): δy = T r with r the rows of tangent coordinates, and their rates' own part.

    `correct` adds −ad_v δ to the rates of quaternion models, whose rows are taken through Γ⁺.
    """
    n, index = system.n, {name: k for k, name in enumerate(system.states)}
    T, drop, labels = np.eye(n), set[int](), list(system.states)
    fixes: list[tuple[list[int], list[int], Array, Array]] = []
    for part in system.assembly.components:
        if not isinstance(part, ModelComponent) or not all(x in index for x in part.configuration_names):
            continue
        model = part.model
        q_at = [index[x] for x in part.configuration_names]
        curved = any(j.nq != j.nv for j in model.mechanism.independent_joints)
        if not curved and not model.mechanism.constrained:
            continue
        v_at = [index[x] for x in part.velocity_names]
        q, v = y[q_at], y[v_at]
        gamma = _gamma(model, q)
        ad = np.einsum("kmn,m->kn", structure_constants(model.mechanism), v)
        if model.mechanism.constrained:
            columns = list(model.constraints.indices(model.constraints.independent))
            *_, G, V = model.constraints.motion_derivatives(q, v, np.zeros(model.nv))
        else:
            columns, G, V = list(range(model.nv)), np.eye(model.nv), np.zeros((model.nv, model.nv))
        # tangent coordinates take the places of the first numbers of q, and of their velocities
        places, speeds = q_at[: len(columns)], [v_at[c] for c in columns]
        for k in [*q_at, *v_at]:
            T[:, k] = 0.0
        for k, (place, speed) in enumerate(zip(places, speeds, strict=True)):
            T[q_at, place] = gamma @ G[:, k]
            T[v_at, place] = V[:, k]
            T[v_at, speed] = G[:, k]
            labels[place] = f"{part.prefix}{model.mechanism.owner(columns[k]).name}.δ{columns[k]}"
        drop |= {*q_at, *v_at} - {*places, *speeds}
        fixes.append((places, speeds, -(ad @ G)[columns], np.eye(len(columns))))
    rows = [k for k in range(n) if k not in drop]

    def correct(rates: Array) -> Array:
        for places, speeds, turning, eye in fixes:
            rates[places] = 0.0
            rates[np.ix_(places, places)] = turning
            rates[np.ix_(places, speeds)] = eye
        return rates[:, rows]

    return T, rows, [labels[k] for k in rows], correct


def _gamma(model: Any, q: Array) -> Array:
    import casadi as ca

    v = ca.SX.sym("v", model.nv)
    rate = model.casadi("rate")
    slopes = ca.densify(ca.jacobian(rate(ca.SX(ca.DM(q)), v), v))
    return np.asarray(ca.Function("gamma", [v], [slopes])(np.zeros(model.nv)))


def equilibrium(system: System, t: float, y: Array) -> Array:
    """A state near y at which no rate is left (Newton with least steps: what is free stays)."""
    y = y.copy()
    for _ in range(50):
        rates = system.rate(t, y)[:-1]
        step = np.linalg.lstsq(system.jacobian(t, y)[:-1, :-1], -rates, rcond=1e-12)[0]
        y[:-1] += step
        y = system.project(y)
        if np.abs(step).max(initial=0.0) <= 1e-12 * (1 + np.abs(y).max()):
            break
    rates = system.rate(t, y)[:-1]
    if np.abs(rates).max(initial=0.0) > 1e-6 * (1 + np.abs(y).max()):
        worst = system.states[int(np.argmax(np.abs(rates)))]
        raise PolybodyError(f"there is no equilibrium near the given state: {worst!r} keeps a rate of "
                            f"{np.abs(rates).max():.3g}")
    return y


def frequency_response(
    net: Network, input: str, output: str, omega: Any, at: Mapping[str, Any] | None = None, **options: Any
) -> Array:
    """Frequency response H(jω) from an input ("supply.voltage") to a variable ("load.w"), complex; ω in rad/s."""
    motion = Motion(net, options.pop("sources", None), frozenset(at or {}))
    return _response(motion, input, output, omega, at, **options)


def _response(
    motion: Motion, input: str, output: str, omega: Any, at: Mapping[str, Any] | None, time: float = 0.0,
    steady: bool = False,
) -> Array:  # fmt: skip
    """H(jω) = h_z (−F_z − jω F_ż)⁻¹ F_u + h_u of the equations F(z, ż, u) = 0 as they are assembled.

    No state-space model is needed: the answer may grow with ω, as an inductor's impedance does.
    """
    import casadi as ca

    w = np.asarray(omega, dtype=float)
    if not np.isfinite(w).all():
        raise InputError("omega must be finite angular frequencies, in rad/s")
    system, y = motion.start(time, dict(at or {}))
    if steady:
        y = equilibrium(system, time, y)
    assembly = system.assembly
    if input not in assembly.inputs:
        known = assembly.inputs
        raise InputError(f"there is no input {input!r}{nearest(input, known)}; available: {', '.join(known) or 'none'}")
    if output not in system.observed:
        raise InputError(f"there is no variable {output!r}{nearest(output, system.observed)}")
    values, count = system.values(time, y), len(assembly.names)
    F, h = ca.vertcat(*assembly.equations()[0]), ca.SX(assembly.observables()[output])
    z, rates = (ca.vertcat(*(assembly.symbols[(j, k)] for j in range(count))) for k in (0, 1))
    u = assembly.inputs[input]
    others = [name for name in assembly.inputs if name != input]
    given = [z, rates, u, ca.vertcat(*(assembly.inputs[name] for name in others), ca.SX(0, 1)), system.t]
    blocks = [ca.densify(ca.jacobian(x, s)) for x, s in ((F, z), (F, rates), (F, u), (h, z), (h, u))]
    numbers = [np.array([values.get(assembly.key_name((j, k)), 0.0) for j in range(count)]) for k in (0, 1)]
    at_others = np.array([_value(system, name, time) for name in others])
    implicit = ca.Function("implicit", given, blocks)(*numbers, _value(system, input, time), at_others, time)
    Fz, Fr, Fu, hz, hu = (np.asarray(x) for x in implicit)
    found = [(hz @ np.linalg.solve(-Fz - 1j * x * Fr, Fu.astype(complex)) + hu)[0, 0] for x in w.ravel()]
    return np.array(found).reshape(w.shape)


def impedance(net: Network, port: Any, omega: Any, at: Mapping[str, Any] | None = None, **options: Any) -> Array:
    """Impedance (across / through) at a node to ground or between two nodes, complex; ω in rad/s.

    Units are Ω for electrical ports, (rad/s)/(N m) for rotational, (m/s)/N for translational, Pa/(m³/s) for hydraulic
    ones. `at` is the operating point.
    """
    return _measured(net, port, omega, at, 0, options)


def admittance(net: Network, port: Any, omega: Any, at: Mapping[str, Any] | None = None, **options: Any) -> Array:
    """Admittance (through / across) at a node or between two nodes, complex: the inverse of `impedance`.

    Computed with an across driver at the port. Arguments as in `impedance`.
    """
    return _measured(net, port, omega, at, 1, options)


def _measured(net: Network, port: Any, omega: Any, at: Any, which: int, options: dict[str, Any]) -> Array:
    head, tail = (port, GROUND) if isinstance(port, str) else port
    for node in (head, tail):
        if node != GROUND and node not in net.nodes:
            raise InputError(f"there is no node {node!r}{nearest(node, net.nodes)}")
    domain = net.nodes[head if head != GROUND else tail][0]
    if domain.name not in PROBES:
        raise InputError(f"node {head!r} is a {domain.name}; impedance is defined at ports that carry power")
    kind, key = PROBES[domain.name][2 * which : 2 * which + 2]
    probe = PartComponent("probe of the port", part_named(kind), {"": (head, tail)}, {key: 0.0})
    probed = net.with_component(probe)
    letter = domain.across if which == 0 else domain.through
    answer = frequency_response(probed, f"probe of the port.{key}", f"probe of the port.{letter}", omega, at, **options)
    # through variables flow into the probe; what the port takes is their opposite. An electrical current source has its
    # current flow inside it from head to tail, so out of the port.
    sign = -1.0 if which == 1 or kind == "current_source" else 1.0
    return sign * answer


__all__ = ["PROBES", "admittance", "equilibrium", "frequency_response", "impedance", "linearize_network"]
