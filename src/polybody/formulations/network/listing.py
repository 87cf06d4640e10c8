"""The equations of a network as text: terminal equations by component, fundamental cut-sets and circuits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polybody.formulations.network.graph import SystemGraph
from polybody.formulations.network.parts import CENTRE
from polybody.names import counted

if TYPE_CHECKING:
    from polybody.formulations.network.network import Network

Array = np.ndarray


def terminal_equations(net: Network, graph: SystemGraph) -> list[str]:
    """One line (or two) for each component: x = [v; ω] across, y = [f; M] through, world axes."""
    lines = []
    for body in net.parts.bodies.values():
        ports = [p.name for p in body.ports.values() if p.name != CENTRE]
        base = graph.entries[body.name].removeprefix(f"{body.name}.")
        lines.append(f"body {body.name}: " + ", ".join(f"x_{p} = K_{p}ᵀ x_G" for p in ports))
        levers = " + ".join(f"K_{p} y_{p}" for p in ports)
        kinetic = "0" if body.ideal else "W_G x_G + u_G"
        lines.append(f"  {levers} + y_G = {kinetic}, solved for y_{base} (its edge is in the co-tree)")
    driven = {e.name for e in graph.edges if e.kind == "velocity"}
    for joint in net.parts.joints.values():
        if joint.model is None:
            lines.append(f"joint {joint.name} (weld): x = 0")
        elif joint.name in driven:
            lines.append(f"velocity driver {joint.name} ({joint.kind}): x = Φ v, v given")
        else:
            lines.append(f"joint {joint.name} ({joint.kind}): x = Φ v, −Φᵀ y = tau + passive − armature dv/dt")
    for gear in net.parts.gears.values():
        law = f"v({gear.follower}) = k v({gear.leader}), λ along {gear.follower}, −k λ along {gear.leader}"
        lines.append(f"gear {gear.name}: {law}, k = {gear.factor}")
    for hold in net.parts.holds.values():
        held = {"rod": "‖p_b − p_a‖ = length", "line": "b on a line of a", "plane": "b in a plane of a"}[hold.kind]
        lines.append(f"{'rod' if hold.kind == 'rod' else 'guide'} {hold.name}: {held}: wᵀ x = 0, y = −[w λ; 0]")
    for relation in net.parts.relations.values():
        lines.append(f"relation {relation.name}: {relation.expression.text} = 0: J v = 0, Jᵀ λ along its joints")
    for name in net.parts.springs:
        lines.append(f"spring {name}: y = [f; 0], f from its length and its rate")
    for name in net.parts.forces:
        lines.append(f"force driver {name}: y given")
    for name in net.parts.multiports:
        lines.append(f"multiport {name}: dx/dt = A y + b")
    for part in net.parts.electric.values():
        law = {"voltage": "u given", "current": "i given", "resistor": "u = R i"}[part.kind]
        lines.append(f"{part.kind} {part.name}: {law}")
    for motor in net.parts.motors.values():
        law = "winding open" if motor.plus is None else "u = R i + L di/dt + K_e E v, tau = Eᵀ K_t i"
        lines.append(f"motor {motor.name}: {law}")
    return lines


def signed_sum(terms: list[tuple[float, str]]) -> str:
    """`+ a − b`, without the leading plus."""
    text = " ".join(f"{'+' if sign > 0 else '−'} {name}" for sign, name in terms)
    return text.removeprefix("+ ")


def cutset_equations(graph: SystemGraph) -> list[str]:
    """Q_f y = 0, a row for each tree branch."""
    return [f"{_sum(row, graph, 'y', 'i')} = 0" for row in graph.cutset_matrix()]


def circuit_equations(graph: SystemGraph) -> list[str]:
    """B_f x = 0, a row for each chord."""
    return [f"{_sum(row, graph, 'x', 'u')} = 0" for row in graph.circuit_matrix()]


def _sum(row: Array, graph: SystemGraph, mechanical: str, electrical: str) -> str:
    letters = [mechanical if e.size == 6 else electrical for e in graph.edges]
    order = sorted(np.flatnonzero(row), key=lambda k: (-row[k], k))
    return signed_sum([(row[k], f"{letters[k]}({graph.edges[k].name})") for k in order])


def listing(net: Network, graph: SystemGraph) -> str:
    """Everything, as a person reads it."""
    parts = [
        f"{net.name}: {counted(len(graph.vertices), 'terminal')}, {counted(len(graph.edges), 'edge')}, "
        f"{len(graph.tree)} in the formulation tree",
        "\nTerminal equations",
        *terminal_equations(net, graph),
        "\nFundamental cut-sets, Q_f y = 0",
        *cutset_equations(graph),
        "\nFundamental circuits, B_f x = 0",
        *circuit_equations(graph),
    ]
    return "\n".join(parts)


__all__ = ["circuit_equations", "cutset_equations", "listing", "signed_sum", "terminal_equations"]
