"""The system graph of one-dimensional parts, its formulation tree, and why each edge is where it is.

Kruskal's algorithm in the order in which edges belong into the tree: across drivers (they must be in it), edges whose
across variable is a state, plain ones, edges whose through variable is one, through drivers (they must not be in it).
So a normal tree comes out: a state that the tree cannot take (capacitors in parallel) depends on others, and the
equations' index is above one. Across drivers that close a circuit, and through drivers that alone are a cut-set, are
refused with that circuit or cut-set.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polybody.errors import InputError
from polybody.formulations.network.graph import Edge, Groups, SystemGraph, graph_with_tree
from polybody.networks.component import Component, Port
from polybody.networks.energy import GROUND

ORDER = ("across driver", "across state", "plain", "through state", "through driver")
REASONS = {
    ("across driver", True): "an across driver: always in the tree",
    ("across state", True): "its across variable is a state",
    ("across state", False): "its across variable follows from others around its circuit: no state of its own",
    ("plain", True): "it connects what the states left apart",
    ("plain", False): "its ends are connected already",
    ("through state", True): "its through variable follows from others of its cut-set: no state of its own",
    ("through state", False): "its through variable is a state",
    ("through driver", False): "a through driver: always in the co-tree",
}


@dataclass(frozen=True, eq=False)
class PartGraph:
    """The graph, and the character of each edge by name."""

    system: SystemGraph
    ports: dict[str, Port]
    characters: dict[str, str]
    owners: dict[str, str]

    def reason(self, edge: str) -> str:
        """Why an edge is in the tree, or not."""
        tree = {self.system.edges[i].name for i in self.system.tree}
        return REASONS[(self.characters[edge], edge in tree)]


def part_graph(components: Sequence[Component]) -> PartGraph:
    """The graph of all components with its tree, or an error that names the circuit or cut-set at fault."""
    ports = {port.name: port for part in components for port in part.ports}
    owners = {port.name: part.name for part in components for port in part.ports}
    characters = {port.name: part.character(port) for part in components for port in part.ports}
    edges = tuple(Edge(p.name, p.tail, p.head, characters[p.name], owners[p.name], 1) for p in ports.values())
    for port in ports.values():
        if port.head == port.tail:
            raise InputError(f"{port.name!r} has both ends at node {port.head!r}; it needs two nodes")
    _refuse_undriven(components)
    groups, chosen = Groups(), set()
    for edge in sorted(edges, key=lambda e: ORDER.index(e.kind)):
        joined = groups.find(edge.tail) != groups.find(edge.head)
        if not joined and edge.kind == "across driver":
            raise InputError(_source_loop(edge, edges, chosen, ports))
        if joined and edge.kind == "through driver":
            raise InputError(_source_cutset(edge, edges, groups))
        if joined:
            groups.join(edge.tail, edge.head)
            chosen.add(edge.name)
    references = _references(ports, groups)
    return PartGraph(graph_with_tree(edges, chosen, references, {}), ports, characters, owners)


def _refuse_undriven(components: Sequence[Component]) -> None:
    """Raise where a signal is read, and nothing gives it."""
    readers: dict[str, list[str]] = {}
    given = {GROUND}
    for part in components:
        for port in part.ports:
            if port.domain.name == "signal":
                if part.reads(port):
                    readers.setdefault(port.head, []).append(port.name)
                else:
                    given.add(port.head)
    for node, ports in readers.items():
        if node not in given:
            raise InputError(f"nothing drives the signal at node {node!r}, which {', '.join(map(repr, ports))} reads; "
                             "connect a source, a sensor or the output of another part")


def _references(ports: dict[str, Port], groups: Groups) -> tuple[str, ...]:
    """The ground, and a node of each electrical part that is connected to nothing else; other such parts float."""
    anchored, references = {groups.find(GROUND)}, [GROUND]
    for port in ports.values():
        group = groups.find(port.head)
        if group in anchored:
            continue
        if port.domain.absolute:
            members = [p.name for p in ports.values() if groups.find(p.head) == group]
            raise InputError(f"floating: {', '.join(map(repr, members))} ({port.domain.name}) are connected to each "
                             f"other, but not to {GROUND!r}; connect one of their nodes to it")
        anchored.add(group)
        references.append(port.tail)
    return tuple(references)


def _path(edge: Edge, edges: Sequence[Edge], chosen: set[str]) -> list[str]:
    import networkx as nx

    graph: Any = nx.Graph()
    for other in edges:
        if other.name in chosen:
            graph.add_edge(other.tail, other.head, name=other.name)
    nodes = nx.shortest_path(graph, edge.head, edge.tail)
    return [graph.edges[a, b]["name"] for a, b in itertools.pairwise(nodes)]


def _source_loop(edge: Edge, edges: Sequence[Edge], chosen: set[str], ports: dict[str, Port]) -> str:
    circuit = [edge.name, *_path(edge, edges, chosen)]
    domain = ports[edge.name].domain
    what = {"electrical": "a resistor", "signal": "only one source at a node"}.get(domain.name, "a spring or damper")
    return (f"no formulation tree: across drivers alone close the circuit {' - '.join(map(repr, circuit))}, and each "
            f"fixes its own {domain.across} ({domain.across_unit or 'value'}); put {what} into the circuit, or take "
            "one of them away")


def _source_cutset(edge: Edge, edges: Sequence[Edge], groups: Groups) -> str:
    here = edge.tail if groups.find(edge.head) == groups.find(GROUND) else edge.head  # the side without the ground
    side = groups.find(here)
    cut = [e.name for e in edges if (groups.find(e.head) == side) != (groups.find(e.tail) == side)]
    return (f"no formulation tree: through drivers alone are the cut-set {', '.join(map(repr, cut))} around node "
            f"{here!r}: their flow has no other path; connect something else to that node")


__all__ = ["PartGraph", "part_graph"]
