"""What a solved network reports: accelerations, reactions, forces of velocity drivers, voltages and currents."""

from __future__ import annotations

from typing import Any

import numpy as np

from polybody.algebra.domains import FLOAT, Array
from polybody.errors import InputError, PolybodyError
from polybody.formulations.network.elimination import Answer, eliminate, solve_numbers
from polybody.formulations.network.parts import CENTRE
from polybody.formulations.network.tableau import Tableau
from polybody.formulations.network.terminals import swapped
from polybody.late import dataclass

#: what a contradiction must exceed, relative to the size of what is given
CONTRADICTION = 1e-7
#: entries of null vectors above this part of the largest move something
MOVES = 1e-6


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of `Network.solve`.

    accelerations   {joint: nv numbers}
    reactions       {joint: [moment; force] on its child (port b), at port b, world axes}; the whole wrench
    forces          {joint: nv numbers}: what acts along each joint's freedom from outside; for a velocity driver, what
                    it must exert
    ports           {port: [angular; linear] acceleration of the port's place, world axes}
    voltages, currents, current_rates   of electrical components; the rates of windings with inductance
    gears           {gear: what it exerts along the joint that follows; minus factor times that along the leader}
    loads           {rod, guide or relation: its loads, one a direction it holds}; a rod's is positive where it pushes
    redundant       how many reaction components the constraints leave undetermined
    indeterminate   {joint: 6 booleans}, true where the reaction is not unique (its least-norm value is given)
    """

    accelerations: dict[str, Array]
    reactions: dict[str, Array]
    forces: dict[str, Array]
    ports: dict[str, Array]
    voltages: dict[str, Any]
    currents: dict[str, Any]
    current_rates: dict[str, Any]
    gears: dict[str, Any]
    loads: dict[str, Array]
    redundant: int
    indeterminate: dict[str, Array]


def solve_tableau(tableau: Tableau) -> Answer:
    """Solve, and name the components at fault where no or no unique motion exists."""
    if tableau.domain is not FLOAT:
        z = eliminate(tableau.A, tableau.B, domain=tableau.domain)
        return Answer(z, np.zeros((tableau.size, 0)), np.zeros((tableau.size, tableau.width)))
    answer = solve_numbers(tableau.A, tableau.B)
    _refuse_contradictions(tableau, answer)
    _refuse_open_motion(tableau, answer)
    return answer


def _refuse_contradictions(tableau: Tableau, answer: Answer) -> None:
    size = 1.0 + float(np.abs(answer.z).max(initial=0.0))
    worst = np.abs(answer.left).max(axis=1, initial=0.0)
    if worst.max(initial=0.0) <= CONTRADICTION * size:
        return
    at_fault = dict.fromkeys(
        label for label, amount in zip(tableau.labels, worst, strict=True) if amount > 1e-3 * worst.max()
    )
    joints = [name for name in at_fault if name in tableau.net.parts.joints]
    drivers = [name for name in joints if name in tableau.problem.accelerations]
    opened = [name.removesuffix("*") for name, kind in tableau.problem.opened.items() if kind == "across"]
    if opened:
        raise InputError(
            f"the ports {', '.join(map(repr, opened))} are not independent: the motion of one follows from the others; "
            "leave one of them to its through variable"
        )
    names = ", ".join(map(repr, drivers or joints or at_fault))
    off = float(worst.max())
    if drivers:
        raise InputError(
            f"over-driven: the velocity drivers {names} ask for incompatible accelerations, {off:.3g} m/s² or rad/s² "
            f"apart, in the loop of {', '.join(map(repr, joints))}; give one of them a force instead"
        )
    raise InputError(f"inconsistent: the equations of {names} contradict each other by {off:.3g} (m/s², rad/s² or N)")


def _refuse_open_motion(tableau: Tableau, answer: Answer) -> None:
    if not answer.null.shape[1]:
        return
    reach = np.abs(answer.null) / np.maximum(np.abs(answer.null).max(axis=0), 1e-300)
    for joint in tableau.net.parts.joints.values():
        rows = reach[tableau.columns[("a", joint.name)]]
        if rows.max(initial=0.0) > MOVES and joint.name not in tableau.problem.opened:
            raise PolybodyError(
                f"floating: the acceleration of joint {joint.name!r} is not determined, nothing that it moves has "
                "inertia along its motion; give its body mass and inertia, or the joint an armature"
            )


def read_solution(tableau: Tableau, answer: Answer) -> Solution:
    """The last column of z by name."""
    z, net, domain = answer.z[:, -1], tableau.net, tableau.domain
    accelerations = {name: z[tableau.columns[("a", name)]] for name in net.parts.joints}
    reactions = {name: swapped(-tableau.read("through", name, z)) for name in net.parts.joints}
    ports = {e.name: swapped(tableau.read("across", e.name, z)) for e in tableau.graph.edges
             if e.kind in ("body", "multiport") and not e.name.endswith(f".{CENTRE}")}
    indeterminate = {name: _open_components(tableau, answer, name) for name in net.parts.joints}
    electric = [*net.parts.electric, *net.parts.windings()]
    voltages = {name: tableau.read("across", name, z)[0] for name in electric}
    currents = {name: tableau.read("through", name, z)[0] for name in electric}
    rates = {}
    for name, motor in net.parts.windings().items():
        if motor.inductance != 0:
            R, L = domain.array([motor.resistance, motor.inductance])
            rates[name] = (voltages[name] - R * currents[name] - tableau.back_voltage(name)[0]) / L
    gears = {name: z[tableau.columns[("gear", name)]][0] for name in net.parts.gears}
    loads = {name: z[tableau.columns[("load", name)]] for name in [*net.parts.holds, *net.parts.relations]}
    return Solution(
        accelerations, reactions, _forces(tableau, accelerations, reactions, currents, {**gears, **loads}), ports,
        voltages, currents, rates, gears, loads, answer.null.shape[1], indeterminate,
    )


def _forces(
    tableau: Tableau,
    accelerations: dict[str, Array],
    reactions: dict[str, Array],
    currents: dict[str, Any],
    ties: dict[str, Any],
) -> dict[str, Array]:
    """tau of every joint; for a velocity driver Φᵀ y − passive + armature a + rotors − windings − gears − relations."""
    net, domain, given, result = tableau.net, tableau.domain, tableau.problem.forces, {}
    for name, joint in net.parts.joints.items():
        zero = domain.zeros(joint.nv)
        if name not in tableau.problem.accelerations:
            result[name] = given.get(name, zero)
            continue
        passive = tableau.joint_force(name) - given.get(name, zero)
        tau = tableau.state.joints[name].directions.T @ swapped(reactions[name]) - passive
        tau = tau + domain.array(joint.armature) @ accelerations[name]
        for motor in net.parts.motors.values():
            if name in motor.speeds:
                J, K_t = domain.array([motor.inertia, motor.torque_constant])
                shaft = sum((domain.array(E) @ accelerations[j] for j, E in motor.speeds.items()), domain.const(0))
                torque = shaft * J - (K_t * currents[motor.name] if motor.plus is not None else domain.const(0))
                tau = tau + domain.array(motor.speeds[name]) * torque
        for gear, share in tableau.gear_shares(name):
            tau = tau - domain.array([share]) * ties[gear]
        for relation, share in tableau.relation_shares(name):
            tau = tau - share * ties[relation][0]
        result[name] = tau
    return result


def _open_components(tableau: Tableau, answer: Answer, name: str) -> Array:
    if not answer.null.shape[1]:
        return np.zeros(6, dtype=bool)
    throughs = tableau.read("through", name, answer.null)
    return swapped(np.abs(throughs).max(axis=1) > 1e-8 * np.abs(answer.null).max())


__all__ = ["Solution", "read_solution", "solve_tableau"]
