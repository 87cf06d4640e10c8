"""The system graph, its formulation tree, and the fundamental circuit and cut-set matrices.

Vertices are terminals, with one reference vertex O for the ground (and one for each electrical part). Edges are ports:
from O to each port of a body and to its mass centre, from a to b for a joint, a spring or a driver. An edge's across
variable is x_head − x_tail; its through variable acts on its component at the head (and minus it at the tail).

The formulation tree T obeys the paper's topological conditions:
- of the edges of a body (k ports and G), all but one are in T: the body is an ideal transformer, any one of whose ports
  determines the others (forms (1), (5), (6));
- velocity drivers are in T, force drivers (and springs, whose force the state fixes) in the co-tree, and so are rods
  and guides, which leave most of their across variables open.

So each body is entered by exactly one joint of T; the edge of that port is its co-tree edge. With A the incidence
matrix [A_T A_C],

    cut-sets:  Q_f y = 0,  Q_f = [1 Q_C],  Q_C = A_T⁻¹ A_C          y_T = −Q_C y_C
    circuits:  B_f x = 0,  B_f = [−Q_Cᵀ 1]                          x_C = Q_Cᵀ x_T
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from polybody.errors import InputError
from polybody.formulations.network.parts import WORLD
from polybody.late import dataclass

if TYPE_CHECKING:
    from polybody.formulations.network.builder import NetworkBuilder

Array = np.ndarray
#: the reference vertex of the mechanical graph
REFERENCE = "O"


@dataclass(frozen=True)
class Edge:
    """One port of a component.

    `kind`: body, joint, velocity, force, spring, constraint, multiport, voltage, current, electric.
    """

    name: str  # port
    tail: str  # vertex that the edge leaves
    head: str  # vertex that it enters
    kind: str
    component: str
    size: int = 6  # of its across and through variables


@dataclass(frozen=True, eq=False)
class SystemGraph:
    """Edges with their places in tree and co-tree, and what follows from it."""

    edges: tuple[Edge, ...]  # all ports
    tree: tuple[int, ...]
    cotree: tuple[int, ...]  # places of the chords
    vertices: tuple[str, ...]  # without the references
    references: tuple[str, ...]  # vertices whose across variables are known
    incidence: Array  # vertices × edges
    #: for each body the port by which the tree enters it
    entries: dict[str, str]

    @property
    def cutset_chords(self) -> Array:
        """Q_C: rows tree branches, columns chords."""
        if not self.tree:
            return np.zeros((0, len(self.cotree)))
        return np.round(np.linalg.solve(self.incidence[:, self.tree], self.incidence[:, self.cotree]))

    def cutset_matrix(self) -> Array:
        """Q_f: one row for each tree branch, one column for each edge, in the order of `edges`."""
        Q = np.zeros((len(self.tree), len(self.edges)))
        Q[:, self.tree] = np.eye(len(self.tree))
        Q[:, self.cotree] = self.cutset_chords
        return Q

    def circuit_matrix(self) -> Array:
        """B_f: one row for each chord, one column for each edge, in the order of `edges`."""
        B = np.zeros((len(self.cotree), len(self.edges)))
        B[:, self.cotree] = np.eye(len(self.cotree))
        B[:, self.tree] = -self.cutset_chords.T
        return B

    def networkx(self) -> Any:
        """The graph as a networkx.MultiDiGraph; edge attributes kind, component, tree."""
        import networkx as nx

        graph = nx.MultiDiGraph()
        graph.add_nodes_from([*self.references, *self.vertices])
        for i, edge in enumerate(self.edges):
            graph.add_edge(edge.tail, edge.head, key=edge.name, kind=edge.kind, component=edge.component,
                           tree=i in set(self.tree))
        return graph

    def circuit_of(self, chord: int) -> list[Edge]:
        """The edges of the fundamental circuit of a chord (an index into `cotree`)."""
        row = self.circuit_matrix()[chord]
        return [edge for edge, entry in zip(self.edges, row, strict=True) if entry]


def system_graph(net: NetworkBuilder, driven: Iterable[str] = ()) -> SystemGraph:
    """The system graph and its formulation tree, with the joints `driven` as velocity drivers."""
    net.check()
    moving = {*driven, *(name for name, joint in net.parts.joints.items() if joint.driven)}
    chosen, entries, roots = _enter_bodies(net, moving)
    edges = [*_mechanical_edges(net, moving), *_electrical_edges(net)]
    in_tree = {name for name in chosen} | roots
    for body in net.parts.bodies.values():
        in_tree |= {port.full for port in body.ports.values() if port.full != entries[body.name]}
    electrical_tree, electrical_roots = _electrical_tree([e for e in edges if e.size == 1])
    in_tree |= electrical_tree
    references = (REFERENCE, *electrical_roots)
    return graph_with_tree(tuple(edges), in_tree, references, entries)


def graph_with_tree(edges: tuple[Edge, ...], in_tree: set[str], references: tuple[str, ...],
            entries: dict[str, str]) -> SystemGraph:
    tree = tuple(i for i, e in enumerate(edges) if e.name in in_tree)
    cotree = tuple(i for i, e in enumerate(edges) if e.name not in in_tree)
    seen = dict.fromkeys(x for e in edges for x in (e.tail, e.head))
    vertices = tuple(x for x in seen if x not in references)
    row = {name: i for i, name in enumerate(vertices)}
    A = np.zeros((len(vertices), len(edges)))
    for k, edge in enumerate(edges):
        for vertex, sign in ((edge.head, 1.0), (edge.tail, -1.0)):
            if vertex in row:
                A[row[vertex], k] += sign
    assert len(tree) == len(vertices), "the formulation tree does not span the graph"
    return SystemGraph(edges, tree, cotree, vertices, references, A, entries)


def _vertex(net: NetworkBuilder, port: str | None) -> str:
    return REFERENCE if port is None or net.ports[port].component == WORLD else port


def _mechanical_edges(net: NetworkBuilder, moving: set[str]) -> list[Edge]:
    edges = []
    for body in net.parts.bodies.values():
        edges += [Edge(p.full, REFERENCE, p.full, "body", body.name) for p in body.ports.values()]
    for name, multiport in net.parts.multiports.items():
        edges += [Edge(f"{name}.{p}", REFERENCE, f"{name}.{p}", "multiport", name) for p in multiport.ports]
    for joint in net.parts.joints.values():
        kind = "velocity" if joint.name in moving else "joint"
        edges.append(Edge(joint.name, _vertex(net, joint.a), _vertex(net, joint.b), kind, joint.name))
    for spring in net.parts.springs.values():
        edges.append(Edge(spring.name, _vertex(net, spring.a), _vertex(net, spring.b), "spring", spring.name))
    for hold in net.parts.holds.values():
        edges.append(Edge(hold.name, _vertex(net, hold.a), _vertex(net, hold.b), "constraint", hold.name))
    for force in net.parts.forces.values():
        edges.append(Edge(force.name, _vertex(net, force.a), _vertex(net, force.b), "force", force.name))
    return edges


def _electrical_edges(net: NetworkBuilder) -> list[Edge]:
    kinds = {"voltage": "voltage", "current": "current", "resistor": "electric"}
    edges = [Edge(p.name, p.minus, p.plus, kinds[p.kind], p.name, 1) for p in net.parts.electric.values()]
    for motor in net.parts.windings().values():
        assert motor.plus is not None
        assert motor.minus is not None
        # an inductor's current is part of the state: like a current source it belongs in the co-tree
        kind = "current" if _nonzero(motor.inductance) else "electric"
        edges.append(Edge(motor.name, motor.minus, motor.plus, kind, motor.name, 1))
    return edges


def _nonzero(value: Any) -> bool:
    return bool(value != 0)


class Groups:
    """Union-find, for Kruskal's choice of a tree."""

    def __init__(self) -> None:
        self.parent: dict[str, str] = {}

    def find(self, x: str) -> str:
        self.parent.setdefault(x, x)
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def join(self, x: str, y: str) -> bool:
        """True when x and y were apart."""
        a, b = self.find(x), self.find(y)
        self.parent[a] = b
        return a != b


def node_of(net: NetworkBuilder, port: str) -> str:
    """Where a joint ends: a body, the ground, or one port of a multiport."""
    component = net.ports[port].component
    return port if component in net.parts.multiports else component


def _enter_bodies(net: NetworkBuilder, moving: set[str]) -> tuple[set[str], dict[str, str], set[str]]:
    """(joints in T, the port by which each body is entered, ports of multiports whose own edge is in T)."""
    groups, chosen = Groups(), set()
    joints = sorted(net.parts.joints.values(), key=lambda j: j.name not in moving)
    for joint in joints:
        if groups.join(node_of(net, joint.a), node_of(net, joint.b)):
            chosen.add(joint.name)
        elif joint.name in moving:
            raise InputError(_over_driven(net, joint.name, chosen))
    groups.find(WORLD)
    ports = [f"{name}.{p}" for name, multiport in net.parts.multiports.items() for p in multiport.ports]
    roots: set[str] = set()
    anchored = {groups.find(WORLD)}
    for port in ports:
        if groups.find(port) not in anchored:
            anchored.add(groups.find(port))
            roots.add(port)
    floating = [b for b in net.parts.bodies if groups.find(b) not in anchored]
    if floating:
        raise InputError(
            f"no formulation tree: {', '.join(map(repr, floating))} "
            f"{'is' if len(floating) == 1 else 'are'} floating, no chain of joints leads there from the ground; "
            "connect it, by a 'floating' joint if it moves freely"
        )
    return chosen, _entries(net, chosen, {WORLD, *roots}), roots


def _entries(net: NetworkBuilder, chosen: set[str], starts: set[str]) -> dict[str, str]:
    neighbours: dict[str, list[tuple[str, str]]] = {}
    for name in chosen:
        joint = net.parts.joints[name]
        for near, far in ((joint.a, joint.b), (joint.b, joint.a)):
            neighbours.setdefault(node_of(net, near), []).append((node_of(net, far), far))
    entries: dict[str, str] = {}
    seen, stack = set(starts), list(starts)
    while stack:
        for node, port in neighbours.get(stack.pop(), ()):
            if node not in seen:
                seen.add(node)
                stack.append(node)
                if node in net.parts.bodies:
                    entries[node] = port
    return entries


def _over_driven(net: NetworkBuilder, closing: str, chosen: set[str]) -> str:
    import networkx as nx

    graph = nx.Graph()
    for name in chosen:
        joint = net.parts.joints[name]
        graph.add_edge(node_of(net, joint.a), node_of(net, joint.b), joint=name)
    joint = net.parts.joints[closing]
    path = nx.shortest_path(graph, node_of(net, joint.a), node_of(net, joint.b))
    drivers = [graph.edges[pair]["joint"] for pair in pairwise(path)]
    names = ", ".join(repr(name) for name in [*drivers, closing])
    return (
        f"no formulation tree: over-driven, the velocity drivers {names} close a loop through "
        f"{' - '.join([*path, path[0]])}; the motion of one follows from the others: replace one by a force"
    )


def _electrical_tree(edges: list[Edge]) -> tuple[set[str], tuple[str, ...]]:
    """(edges in the electrical forest, its reference nodes): voltage sources first, never current sources."""
    groups, chosen = Groups(), set()
    order = {"voltage": 0, "electric": 1}
    for edge in sorted((e for e in edges if e.kind in order), key=lambda e: order[e.kind]):
        if groups.join(edge.tail, edge.head):
            chosen.add(edge.name)
        elif edge.kind == "voltage":
            raise InputError(
                f"no formulation tree: over-driven, voltage source {edge.name!r} closes a loop of voltage sources "
                f"between nodes {edge.tail!r} and {edge.head!r}; put a resistor into the loop"
            )
    for edge in edges:
        if groups.find(edge.tail) != groups.find(edge.head):
            raise InputError(
                f"no formulation tree: the current of {edge.name!r} has no return path from node {edge.head!r} to "
                f"{edge.tail!r} (inconsistent); connect the nodes by a source or a resistor"
            )
    roots: dict[str, str] = {}
    for edge in edges:
        roots.setdefault(groups.find(edge.tail), edge.tail)
    return chosen, tuple(roots.values())


__all__ = ["REFERENCE", "Edge", "Groups", "SystemGraph", "graph_with_tree", "node_of", "system_graph"]
