"""The system graph of a network as an SVG: tree branches heavy, co-tree chords light, drivers marked.

The reference O is a rail at the bottom. Bodies stand above it side by side, in the order the formulation tree enters
them, each with its terminals; a body's edges drop to the rail, joints, springs and forces between bodies arch above
them, and those to the ground curve beside the edge they are parallel to. Electrical nodes stand at the right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from polybody.formulations.network import Network, SystemGraph
from polybody.formulations.network.graph import Edge
from polybody.formulations.network.parts import CENTRE
from polybody.studio.network_layers import layered_svg
from polybody.studio.svg_pieces import ACROSS, COLOURS, THROUGH, arrow, key_entry, key_of_weights, mark, page, words

COLUMN, GAP, MARGIN = 84.0, 46.0, 70.0
#: a row of bodies that would be wider is laid out in layers
WIDEST = 1600.0
LEGEND = (
    ("body", "port of a body"),
    ("joint", "joint"),
    ("velocity", "velocity driver"),
    ("force", "force driver"),
    ("spring", "spring or damper"),
    ("constraint", "rod or guide"),
    ("electric", "electrical"),
)

@dataclass
class _Layout:
    """Where vertices are, and the boxes of components."""

    place: dict[str, tuple[float, float]] = field(default_factory=dict)
    boxes: list[tuple[str, float, float]] = field(default_factory=list)
    width: float = 0.0
    terminals: float = 0.0  # y of the terminals
    centres: float = 0.0  # y of the mass centres
    rail: float = 0.0
    height: float = 0.0
    ground: float = 0.0  # where the rail ends


def network_svg(net: Network, graph: SystemGraph) -> str:
    """The drawing as SVG text; what would be wider than a page is laid out in layers."""
    layout = _laid_out(net, graph)
    if layout.width > WIDEST:
        return layered_svg(net, graph)
    tree = set(graph.tree)
    drawn = [_edge(edge, i in tree, layout, k) for i, (edge, k) in enumerate(_parallels(graph))]
    kinds = {edge.kind for edge in graph.edges}
    legend = _legend(kinds, layout)  # first: it may need a wider page
    content = [*_boxes(layout), _rail(layout), *drawn, *_names(layout), *_vertices(layout)]
    content.append(legend)
    title = f"System graph of {net.name}: {len(tree)} of {len(graph.edges)} edges in the formulation tree"
    content.append(words(MARGIN, 30, title, size=16, weight="600", anchor="start", halo=False))
    return page(layout.width, layout.height, content)


def _parallels(graph: SystemGraph) -> list[tuple[Edge, int]]:
    """Each edge with how many earlier ones join the same two vertices."""
    seen: dict[frozenset[str], int] = {}
    result = []
    for edge in graph.edges:
        ends = frozenset((edge.tail, edge.head))
        result.append((edge, seen.get(ends, 0)))
        seen[ends] = seen.get(ends, 0) + 1
    return result


def _laid_out(net: Network, graph: SystemGraph) -> _Layout:
    layout, x = _Layout(), MARGIN
    columns = [(name, _ports_in_order(net, graph, name)) for name in _body_order(net, graph)]
    columns += [(name, [f"{name}.{p}" for p in part.ports]) for name, part in net.parts.multiports.items()]
    nodes = [v for v in graph.vertices if v not in net.ports]
    electrical = bool(nodes)
    if electrical:
        columns.append(("electrical", nodes))
    spread: dict[str, float] = {}
    for name, vertices in columns:
        start = x
        for vertex in vertices:
            spread[vertex] = x + COLUMN / 2
            x += COLUMN
        layout.boxes.append((name, start, x))
        x += GAP
    layout.width = max(x - GAP + MARGIN, 560.0)
    mechanical = layout.boxes[:-1] if electrical else layout.boxes
    layout.ground = max([MARGIN * 2, *(end for _, _, end in mechanical)]) + MARGIN / 2
    longest = max([0.0, *(abs(spread[e.tail] - spread[e.head]) for e in graph.edges
                          if e.tail in spread and e.head in spread)])
    layout.terminals = 96.0 + _arch(longest)
    layout.centres = layout.terminals + 62
    layout.rail = layout.terminals + 190
    layout.height = layout.rail + 92
    for vertex, column in spread.items():
        layout.place[vertex] = (column, layout.centres if vertex.endswith(f".{CENTRE}") else layout.terminals)
    return layout


def _arch(distance: float) -> float:
    return 26 + 0.16 * distance


def _body_order(net: Network, graph: SystemGraph) -> list[str]:
    """Bodies as the formulation tree enters them, depth first."""
    in_tree = {graph.edges[i].name for i in graph.tree}
    owner = {port.full: port.component for port in net.ports.values()}
    reached: dict[str, list[str]] = {}
    for name, joint in net.parts.joints.items():
        if name in in_tree:
            for near, far in ((joint.a, joint.b), (joint.b, joint.a)):
                if graph.entries.get(owner[far]) == far:
                    reached.setdefault(owner[near], []).append(owner[far])
    order: list[str] = []
    roots = [name for name in reached if name not in net.parts.bodies]
    stack = [body for root in reversed(roots) for body in reversed(reached[root])]
    while stack:
        body = stack.pop()
        order.append(body)
        stack.extend(reversed(reached.get(body, [])))
    return order


def _ports_in_order(net: Network, graph: SystemGraph, body: str) -> list[str]:
    """The port of entry, the mass centre, then the others."""
    ports = [port.full for port in net.parts.bodies[body].ports.values()]
    entry, centre = graph.entries[body], f"{body}.{CENTRE}"
    return [entry, centre, *(p for p in ports if p not in (entry, centre))]


def _boxes(layout: _Layout) -> list[str]:
    result = []
    for _, start, end in layout.boxes:
        top, bottom = layout.terminals - 18, layout.centres + 40
        result.append(
            f'<rect x="{start:.1f}" y="{top:.1f}" width="{end - start:.1f}" height="{bottom - top:.1f}" rx="12" '
            'fill="#eef2f5" stroke="#c9d2d9"/>'
        )
    return result


def _names(layout: _Layout) -> list[str]:
    """Names of components, between the drops of their first two terminals."""
    y = layout.centres + 31
    return [words(min(start + COLUMN, (start + end) / 2), y, name, size=13, weight="600", colour="#33404a")
            for name, start, end in layout.boxes]


def _rail(layout: _Layout) -> str:
    y = layout.rail
    hatch = "".join(
        f'<path d="M{x:.0f} {y + 3:.0f} l-9 10" stroke="#8a949c" stroke-width="1"/>'
        for x in range(int(MARGIN), int(layout.ground), 16)
    )
    right = layout.ground
    line = f'<path d="M{MARGIN / 2:.0f} {y:.0f} H{right:.0f}" stroke="#22292f" stroke-width="4"/>'
    return hatch + line + words(MARGIN / 2 - 8, y + 5, "O", size=15, weight="700", anchor="end", halo=False)


def _node_rail(edge: Edge, x: float, layout: _Layout) -> str:
    """An electrical reference has a rail of its own."""
    name = edge.tail if edge.tail not in layout.place else edge.head
    bar = f'<path d="M{x - 22:.1f} {layout.rail:.1f} h44" stroke="{COLOURS["electric"]}" stroke-width="4"/>'
    return bar + words(x, layout.rail + 18, name, size=11)


def _point(vertex: str, other: str, layout: _Layout) -> tuple[float, float]:
    """A vertex's place; the rail below `other` for a reference."""
    if vertex in layout.place:
        return layout.place[vertex]
    return layout.place[other][0], layout.rail


def _edge(edge: Edge, heavy: bool, layout: _Layout, parallel: int) -> str:
    (x0, y0), (x1, y1) = _point(edge.tail, edge.head, layout), _point(edge.head, edge.tail, layout)
    grounded = edge.tail not in layout.place or edge.head not in layout.place
    if grounded:
        bend = 0.0 if parallel == 0 else 34.0 * ((parallel + 1) // 2) * (-1 if parallel % 2 else 1)
        control = (x0 + 2 * bend, (y0 + y1) / 2)
    else:
        control = ((x0 + x1) / 2, min(y0, y1) - 2 * _arch(abs(x1 - x0)) - 30 * parallel)
    middle = ((x0 + 2 * control[0] + x1) / 4, (y0 + 2 * control[1] + y1) / 4)
    colour, width = COLOURS[edge.kind], 3.6 if heavy else 1.2
    path = f'<path d="M{x0:.1f} {y0:.1f} Q{control[0]:.1f} {control[1]:.1f} {x1:.1f} {y1:.1f}" fill="none" '
    path += f'stroke="{colour}" stroke-width="{width}"><title>{escape(edge.name)}</title></path>'
    path += arrow(middle, (x1 - x0, y1 - y0), colour, heavy) + mark(edge.kind, middle, colour)
    if edge.kind in ("body", "multiport"):
        return path
    if grounded:
        side = 1 if control[0] >= x0 else -1
        path += _node_rail(edge, x0, layout) if edge.size == 1 else ""
        return path + words(middle[0] + 9 * side, middle[1] + 34, edge.name, colour=colour,
                            anchor="start" if side > 0 else "end")
    above = 18 if edge.kind in ACROSS | THROUGH else 11
    return path + words(middle[0], middle[1] - above, edge.name, colour=colour)


def _vertices(layout: _Layout) -> list[str]:
    """Terminals with their names: at their right, but inside the box for the last ones."""
    result, starts = [], {start + COLUMN / 2 for _, start, _ in layout.boxes}
    for vertex, (x, y) in layout.place.items():
        result.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#ffffff" stroke="#22292f" stroke-width="1.8"/>')
        label = vertex.rpartition(".")[2] if "." in vertex else vertex
        right = x in starts or y == layout.centres
        result.append(words(x + 9 if right else x - 9, y + 4, label, size=11, anchor="start" if right else "end"))
    return result


def _legend(kinds: set[str], layout: _Layout) -> str:
    y = layout.height - 30
    drawn, x = key_of_weights(MARGIN, y)
    for kind, said in LEGEND:
        same = {"electric": {"electric", "voltage", "current"}}.get(kind, {kind})
        if same & kinds:
            more, x = key_entry(x, y, COLOURS[kind], said)
            drawn += more
    layout.width = max(layout.width, x + MARGIN / 2)
    return drawn


__all__ = ["network_svg"]
