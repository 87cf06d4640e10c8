"""The equations of bodies and joints as text: terminal equations by component, reasons of the tree, unknowns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polybody.formulations.network.graph import Edge, SystemGraph
from polybody.formulations.network.parts import CENTRE
from polybody.names import counted

if TYPE_CHECKING:
    from polybody.formulations.network.network import Network

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


def tree_reason(graph: SystemGraph, edge: Edge) -> str:
    """Why an edge is in the formulation tree, or in the co-tree."""
    inside = edge.name in {graph.edges[i].name for i in graph.tree}
    if edge.kind == "body" and not inside:
        return f"the tree enters {edge.component} by this port: its through variable follows from the others'"
    reasons = {
        "body": (f"its across variable follows from the port by which the tree enters {edge.component}", ""),
        "joint": ("it leads the tree on to a body", "its bodies are connected already: it closes a circuit"),
        "velocity": ("an across driver: always in the tree", ""),
        "force": ("", "a through driver: never in the tree"),
        "spring": ("", "its through variable follows from the state"),
        "constraint": ("", "it leaves most of its across variable open"),
        "multiport": ("nothing else leads from the ground to it", "its port is reached by a joint"),
        "voltage": ("an across driver: always in the tree", ""),
        "current": ("", "a through driver, or its current is a state: never in the tree"),
        "electric": ("it connects what sources left apart", "its nodes are connected already"),
    }
    return reasons[edge.kind][0 if inside else 1]


def assembled(net: Network, graph: SystemGraph) -> list[str]:
    """Unknowns, states and the order of solution of bodies and joints at a state."""
    joints = [joint for joint in net.parts.joints.values() if joint.name not in net.parts.followers()]
    numbers = sum(joint.nv for joint in joints)
    in_tree = {graph.edges[i].name for i in graph.tree}
    closing = [joint.name for joint in joints if joint.name not in in_tree]
    states = [joint.name for joint in joints if joint.nv and joint.name in in_tree]
    mechanical = [edge for edge in graph.edges if edge.size == 6]
    branches = sum(edge.name in in_tree for edge in mechanical)
    order = list(dict.fromkeys(graph.entries))
    lines = [
        f"unknowns: dx/dt of {counted(branches, 'branch', 'branches')} and y of "
        f"{counted(len(mechanical) - branches, 'chord')}, six numbers each, and dv/dt of "
        f"{counted(numbers, 'joint velocity', 'joint velocities')}",
        f"states: q and v of {', '.join(states) or 'no joint'}",
        f"across variables outwards (40): {', '.join(order)}",
        f"through variables inwards (41): {', '.join(reversed(order))}",
    ]
    held = [*closing, *net.parts.holds, *net.parts.relations]
    return lines + ([f"solved together with them, as circuits that are closed: {', '.join(held)}"] if held else [])


__all__ = ["assembled", "signed_sum", "terminal_equations", "tree_reason"]
